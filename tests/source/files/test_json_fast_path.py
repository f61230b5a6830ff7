"""Each value in a block of its own, read by the fast parser and by the exact one: both give the same, or refuse it.

Random files mix values, and a block with one that Arrow refuses is read exactly as a whole: a value that Arrow alone
takes, wrongly, shows only where nothing else is in its block.
"""

import os
import random
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pytest

from lakewriter.source.files.json_blocks import BlockReader, parse_exactly, split_lines
from lakewriter.source.files.json_by_arrow import FastParser, ParsedPart
from lakewriter.source.files.json_columns import Columns
from tests.support.sample import fifth_of

VALUES = int(os.environ.get("LAKEWRITER_JSON_DECIMALS", fifth_of(20_000)))
TYPES = [(10, 2), (20, 19), (38, 0), (38, 38), (38, 18), (38, 37), (1, 0), (1, 1), (18, 0), (19, 4)]
PLACES = {
    "top": (lambda kind: kind, "%s"),
    "array": (pa.list_, "[null, %s]"),
    "struct": (lambda kind: pa.struct([("x", kind)]), '{"x": %s}'),
    "structs": (lambda kind: pa.list_(pa.struct([("x", kind)])), '[{"x": null}, {"x": %s}]'),
}
EXACT = Context(prec=400)


def read_both(kind, text):
    """Return the value by both parsers, None where a row is bad, and whether the fast one has read it."""
    columns = Columns(pa.schema([("v", kind)]), frozenset("v"))
    lines = split_lines(b'{"v": ' + text.encode() + b"}")
    part = FastParser(columns).parse(lines.data, 1)
    rows = BlockReader(columns).read(lines)
    exact = parse_exactly(lines, [0])
    arrays, faults = exact.build(columns)
    one = None if rows.faults else rows.columns[0].to_pylist()
    other = None if faults else arrays[0].to_pylist()
    return one, other, isinstance(part, ParsedPart) and bool(np.all(part.sure))


def make_number(rng):
    """Return the text of a number of 1 to 80 digits before the point and after it, and whether it is plain."""
    before = rng.choice(["0", str(rng.randint(1, 9)) + "".join(rng.choices("0123456789", k=rng.randint(0, 79)))])
    after = "".join(rng.choices("0123456789", k=rng.randint(1, 80))) if rng.random() < 0.6 else ""
    exponent = rng.choice(["", "", "", f"e{rng.randint(0, 60)}", f"E-{rng.randint(1, 60)}", f"e+{rng.randint(0, 9)}"])
    sign = rng.choice(["", "-"])
    text = f"{sign}{before}{'.' if after else ''}{after}{exponent}"
    if rng.random() < 0.3:
        zeros = "0" * rng.randint(0, 3)
        return f'"{sign}{zeros}{text.removeprefix("-")}"'
    return text


def fits(text, precision, scale):
    number = EXACT.create_decimal(text.strip('"'))
    scaled = EXACT.scaleb(number, scale)
    return scaled == EXACT.to_integral_value(scaled) and EXACT.abs(scaled) < 10**precision


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("precision", "scale"), TYPES)
def test_decimals(place, precision, scale):
    rng, (nest, pattern) = random.Random(f"{precision} {scale} {place}"), PLACES[place]
    kind, taken = nest(pa.decimal128(precision, scale)), 0
    for _ in range(VALUES // (len(TYPES) * len(PLACES))):
        text = make_number(rng)
        one, other, is_fast = read_both(kind, pattern % text)
        assert one == other, text
        assert (one is not None) == fits(text, precision, scale), text
        taken += is_fast and one is not None
    assert taken, "the fast path was never taken"


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


def test_a_bad_number_leaves_the_rows_beside_it_to_the_fast_parser():
    columns = Columns(pa.schema([("v", pa.decimal128(10, 2))]), frozenset("v"))
    lines = split_lines(b'{"v": 1.5}\n{"v": 6000000000}\n{"v": null}\n{"v": -99999999.99}')
    part = FastParser(columns).parse(lines.data, 4)
    assert isinstance(part, ParsedPart)
    assert part.sure.tolist() == [True, False, True, True]
    assert part.columns[0].to_pylist() == [Decimal("1.50"), None, Decimal("-99999999.99")]
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
