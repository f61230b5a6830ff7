"""Each value in a block of its own, read by the fast parser and by the exact one: both give the same, or refuse it.

Random files mix values, and a block with one that Arrow refuses is read exactly as a whole: a value that Arrow alone
takes, wrongly, shows only where nothing else is in its block.
"""

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from lakewriter.source.files.json_blocks import BlockReader, parse_exactly, split_lines
from lakewriter.source.files.json_by_arrow import FastParser, ParsedPart
from lakewriter.source.files.json_columns import Columns
from tests.cast.numbers_by_length import DECIMALS, fits, is_of_json, is_plain, list_numbers, write_text
from tests.support.sample import values_alone

VALUES = values_alone()
TYPES = [(10, 2), (20, 19), (38, 0), (38, 38), (38, 18), (38, 37), (1, 0), (1, 1), (18, 0), (19, 4)]
PLACES = {
    "top": (lambda kind: kind, "%s"),
    "array": (pa.list_, "[null, %s]"),
    "struct": (lambda kind: pa.struct([("x", kind)]), '{"x": %s}'),
    "structs": (lambda kind: pa.list_(pa.struct([("x", kind)])), '[{"x": null}, {"x": %s}]'),
}


def read_both(kind, text):
    """Return the value by both parsers, None where a row is bad, and whether the fast one has read it."""
    columns = Columns(pa.schema([("v", kind)]), frozenset("v"))
    lines = split_lines(b'{"v": ' + text.encode() + b"}")
    part = FastParser(columns).parse(lines.data, 1)
    rows = BlockReader(columns).read(lines)
    exact = parse_exactly(lines, [0])
    arrays, faults = exact.build(columns)
    one = None if rows.faults else repr(rows.columns[0].to_pylist())
    other = None if faults else repr(arrays[0].to_pylist())
    return one, other, isinstance(part, ParsedPart) and bool(np.all(part.sure))


@pytest.mark.parametrize("place", PLACES)
def test_decimals(place):
    """Arrow takes all plain numbers that fit, and of the others what it can."""
    rng, (nest, pattern) = random.Random(place), PLACES[place]
    types = DECIMALS if VALUES > 20_000 else rng.sample(DECIMALS, 40)
    for precision, scale in types:
        kind = nest(pa.decimal128(precision, scale))
        for number in list_numbers(rng, precision, scale, VALUES // (len(types) * len(PLACES))):
            text = f'"{write_text(rng, number)}"' if rng.random() < 0.3 else number
            one, other, is_fast = read_both(kind, pattern % text)
            assert one == other, (kind, text)
            assert (one is not None) == fits(number, precision, scale), (kind, text)
            assert is_fast or one is None or not is_plain(number, precision, scale), (kind, text)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("precision", "scale"), TYPES)
def test_decimals_of_every_length(place, precision, scale):
    """Nines are the highest of each length, and the fast parser is to take all that fit without zeros around them."""
    nest, pattern = PLACES[place]
    kind = nest(pa.decimal128(precision, scale))
    edges = {0, 1, precision - scale, precision - scale + 1, precision, precision + 1, 38, 39, 76, 77, 80}
    for before in range(81) if VALUES > 20_000 else sorted(edges):
        for after in (0, 1, scale, scale + 1, 80):
            text = ("9" * before or "0") + ("." + "9" * after if after else "")
            one, other, is_fast = read_both(kind, pattern % text)
            assert one == other, text
            assert (one is not None) == fits(text, precision, scale), text
            assert is_fast or one is None, text


# type, values that Arrow is to take, and values that it reads otherwise than the exact parser, or not at all
OTHERS = [
    (pa.int8(), ["0", "-128", "127"], ['"5"', "128", "-129", "1.0", "1e1", '"0x1F"', '"+5"', '" 5"', "true", "-0"]),
    (pa.int64(), ["9223372036854775807", "-9223372036854775808"], ["9223372036854775808", '"9"', "1.5", "[]", "{}"]),
    (pa.float32(), ["1.5", "16777217", "3.4028235e38", "0", "-0.0"], ["3.5e38", "1e-50", '"1.5"', '"NaN"', "-0"]),
    (pa.float64(), ["0.1", "1e308", "4.9e-324", "9007199254740993", "0.0"],
     ["1e309", "2e-324", "0." + "0" * 330 + "1", '"1e5"', '"Infinity"', '"inf"', "-0", "0e-400", "-Infinity"]),
    (pa.bool_(), ["true", "false"], ['"true"', '"T"', "1", "0", '"2"', "[true]"]),
    (pa.string(), ['"a"', '""', '"\\u0000"', '"\\ud83d\\ude00"', '"1.10"'], ["1.10", "true", "{}", '"\\ud83d"', "[1]"]),
    (pa.date32(), ['"2024-02-29"', '"0001-01-01"', '"9999-12-31"'], ['"2023-02-29"', '"10000-01-01"', "5"]),
    (pa.timestamp("us", "UTC"), ['"2024-01-05T10:00:00Z"', '"2024-01-05 10:00:00.123456+05:30"', '"2024-01-05"'],
     ['"2024-01-05T10:00:00.1234567Z"', '"2024-01-05T24:00:00Z"', '"2024-01-05T10:00:00z"', "1704448800"]),
    (pa.timestamp("us"), ['"2024-01-05T10:00:00"', '"2024-01-05 10:00"'], ['"2024-01-05T10:00:00Z"', '"0000-01-01"']),
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("kind", "plain", "odd"), OTHERS, ids=[str(row[0]) for row in OTHERS])
def test_other_values(place, kind, plain, odd):
    nest, pattern = PLACES[place]
    for text in [*plain, *odd, "null"]:
        one, other, is_fast = read_both(nest(kind), pattern % text)
        assert one == other, text
        assert is_fast or text not in plain, text


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("kind", "digits", "scale"),
    [(pa.int8(), 2, 0), (pa.int32(), 9, 0), (pa.int64(), 18, 0), (pa.float32(), 17, 9), (pa.float64(), 17, 9)],
)
def test_numbers(place, kind, digits, scale):
    rng, (nest, pattern), taken, count = random.Random(f"{kind} {place}"), PLACES[place], 0, VALUES // 40
    for number in list_numbers(rng, digits, scale, count):
        text = f'"{write_text(rng, number)}"' if rng.random() < 0.3 else number
        one, other, is_fast = read_both(nest(kind), pattern % text)
        assert one == other, text
        taken += is_fast and one is not None
    assert taken > count // 100, "the fast path was hardly taken"


def test_spellings_that_json_has_not():
    rng = random.Random(7)
    spellings = (write_text(rng, number) for number in list_numbers(rng, 10, 2, 400))
    for text in [text for text in spellings if not is_of_json(text)]:
        assert read_both(pa.decimal128(10, 2), text)[:2] == (None, None), text


SILENT = [
    # what came out as another number, or beyond its type: a bad row, as for CSV
    ("12345678901234567.5", (20, 19)),
    ("6000000000", (10, 2)),
    ("99999999.995e0", (10, 2)),
    ('"6000000000"', (10, 2)),
    ("1e37", (38, 2)),
    ("-1e37", (38, 2)),
    ("170141183460469231731687303715884105728", (38, 0)),
]


@pytest.mark.parametrize(("text", "kind"), SILENT)
@pytest.mark.parametrize("place", PLACES)
def test_a_number_beyond_its_type_is_a_bad_row(place, text, kind):
    nest, pattern = PLACES[place]
    one, other, _ = read_both(nest(pa.decimal128(*kind)), pattern % text)
    assert (one, other) == (None, None)


@pytest.mark.parametrize("place", PLACES)
def test_a_bad_number_leaves_the_rows_beside_it_to_the_fast_parser(place):
    nest, pattern = PLACES[place]
    columns = Columns(pa.schema([("v", nest(pa.decimal128(10, 2)))]), frozenset("v"))
    texts = [pattern % text for text in ("1.5", "6000000000", "null", "-99999999.99")]
    lines = split_lines("\n".join(f'{{"v": {text}, "w": 1}}' for text in texts).encode())
    part = FastParser(columns).parse(lines.data, 4)
    assert isinstance(part, ParsedPart)
    assert part.sure.tolist() == [True, False, True, True]
    assert str(Decimal("-99999999.99")) in str(part.columns[0][2].as_py())
    assert list(BlockReader(columns).read(lines).faults) == [1]


def test_an_infinity_that_is_not_read_makes_its_row_alone_exact():
    columns = Columns(pa.schema([("v", pa.int64())]), frozenset())
    lines = split_lines(b'{"v": 1}\n{"v": 2, "w": [{"x": NaN}]}\n{"v": 3, "w": [{"x": 1.5}]}')
    part = FastParser(columns).parse(lines.data, 3)
    assert isinstance(part, ParsedPart)
    assert part.sure.tolist() == [True, False, True]
    assert list(BlockReader(columns).read(lines).faults) == [1]


# (the declared type, a document that has what the type has not, the reason)
UNDECLARED = [
    ("struct", pa.struct([("x", pa.int32())]), '{"x": 1, "y": 2}', "the struct has no field 'y'"),
    ("null", pa.struct([("x", pa.int32())]), '{"x": 1, "y": null}', "the struct has no field 'y'"),
    ("empty", pa.struct([("x", pa.int32())]), '{"y": {}}', "the struct has no field 'y'"),
    ("list", pa.list_(pa.struct([("x", pa.int32())])), '[{"x": 1}, {"z": 3}]', "the struct has no field 'z'"),
    ("map", pa.map_(pa.string(), pa.struct([("x", pa.int32())])), '{"k": {"x": 1, "y": 2}}', "has no field 'y'"),
    ("inner", pa.struct([("x", pa.struct([("a", pa.int32())]))]), '{"x": {"a": 1, "b": 2}}', "has no field 'b'"),
]


@pytest.mark.parametrize(
    ("kind", "document", "reason"), [row[1:] for row in UNDECLARED], ids=[row[0] for row in UNDECLARED]
)
@pytest.mark.parametrize("rows", [1, 40], ids=["alone", "among many"])
def test_a_member_that_the_declared_struct_has_not_makes_a_bad_row(kind, document, reason, rows):
    columns = Columns(pa.schema([("v", kind)]), frozenset("v"))
    lines = split_lines(b"\n".join([b'{"v": null}'] * (rows - 1) + [b'{"v": ' + document.encode() + b"}"]))
    read = BlockReader(columns).read(lines)
    assert list(read.faults) == [rows - 1]
    assert reason in read.faults[rows - 1].reason


def test_a_column_that_nobody_declared_has_all_members():
    """The columns of a sample may lack what another document has, and take what they have."""
    columns = Columns(pa.schema([("v", pa.struct([("x", pa.int64())]))]), frozenset())
    assert not BlockReader(columns).read(split_lines(b'{"v": {"x": 1, "y": 2}}')).faults
