"""Numbers of CSV: Arrow's reader makes them where it takes what the strict cast takes, and nothing else shows."""

import random

import pytest

from lakewriter.cast.sql_types import parse_columns
from lakewriter.source import storage
from lakewriter.source.files import csv_reader, csv_values
from tests.cast.numbers_by_length import list_numbers, write_text
from tests.source.files.reading import read_csv, read_with, store
from tests.support.sample import values_alone

NONE = object()
"""A bad row."""
TABLE = [
    # type, the field as it stands, its value
    ("INT", "5", 5),
    ("INT", "-5", -5),
    ("INT", "+5", 5),
    ("INT", "007", 7),
    ("INT", "-0", 0),
    ("INT", '"5"', 5),
    ("INT", "", None),
    ("INT", '""', NONE),
    ("INT", " 5", NONE),
    ("INT", "5 ", NONE),
    ("INT", '" 5"', NONE),
    ("INT", '"5\t"', NONE),
    ("INT", "\t5", NONE),
    ("INT", "0x1F", NONE),
    ("INT", "0X1f", NONE),
    ("INT", "-0x1F", NONE),
    ("INT", '"0x1F"', NONE),
    ("INT", "1.0", NONE),
    ("INT", "1e3", NONE),
    ("INT", "NaN", NONE),
    ("INT", "2147483647", 2147483647),
    ("INT", "2147483648", NONE),
    ("INT", "٣", NONE),
    ("TINYINT", "-128", -128),
    ("TINYINT", "128", NONE),
    ("BIGINT", "-9223372036854775808", -(2**63)),
    ("BIGINT", "9223372036854775808", NONE),
    ("BIGINT", "00000000000000000000000005", 5),
    ("DOUBLE", "1.5", 1.5),
    ("DOUBLE", "+1.5", 1.5),
    ("DOUBLE", ".5", 0.5),
    ("DOUBLE", "5.", 5.0),
    ("DOUBLE", "1e3", 1000.0),
    ("DOUBLE", "1e400", NONE),
    ("DOUBLE", "1e-400", NONE),
    ("DOUBLE", "0." + "0" * 400 + "1", NONE),
    ("DOUBLE", "0e-5", 0.0),
    ("DOUBLE", "inf", NONE),
    ("DOUBLE", "-Infinity", float("-inf")),
    ("DOUBLE", "nan", NONE),
    ("DOUBLE", "1d", NONE),
    ("DOUBLE", "0x1p3", NONE),
    ("DOUBLE", " 1.5", NONE),
    ("DOUBLE", "1,5", NONE),
    ("FLOAT", "1.5", 1.5),
    ("FLOAT", "1e39", NONE),
]


@pytest.mark.parametrize(("kind", "field", "value"), TABLE)
@pytest.mark.parametrize("beside", ["a", '"a ""b"" "', "0x, 5"])
def test_numbers(kind, field, value, beside):
    quoted = f'"{field}"' if "," in field else field
    other = f'"{beside}"' if "," in beside else beside
    text = other.strip('"').replace('""', '"')
    data = f"{other},7\n{other},{quoted}\n{other},8\n".encode()
    found = read_csv(data, columns=f"a STRING, n {kind}")
    middle = [] if value is NONE else [(text, value)]
    assert found.good == [(text, 7), *middle, (text, 8)]
    assert len(found.bad) == (value is NONE)


def test_faults_and_single_rows_beside_numbers():
    data = b'a,1\n"b"x,2\nc\nd\re,4\nf,5\n'
    found = read_csv(data, columns="a STRING, n INT")
    assert found.good == [("a", 1), ("f", 5)]
    assert [reason for _, reason, _ in found.bad] == [
        "text follows a closing quote",
        "it has 1 field, expected 2",
        "a line end outside quotes differs from the file's",
    ]


@pytest.mark.parametrize("options", [{"escape": "\\"}, {"nullValue": "7"}, {"emptyValue": "3"}, {"sep": "\t"}])
def test_options_beside_numbers(options):
    sep = options.get("sep", ",")
    name = '"a\\"b"' if "escape" in options else "a"
    data = f'{name}{sep}7\na{sep}"7"\nb{sep}0x7\nc{sep}""\n'.encode()
    found = read_csv(data, columns="a STRING, n INT", options=options)
    first = 'a"b' if "escape" in options else "a"
    seven = None if "nullValue" in options else 7
    third = [("c", 3)] if "emptyValue" in options else []
    assert found.good == [(first, seven), ("a", seven), *third]
    assert len(found.bad) == 2 - len(third)


def test_blocks_that_have_another_value_are_read_twice_three_times_at_most(monkeypatch, tmp_path):
    calls = []
    call = csv_values._call_arrow

    def watch(text, block, leave_out, types):
        calls.append(bool(types))
        return call(text, block, leave_out, types)

    monkeypatch.setattr(csv_values, "_call_arrow", watch)
    monkeypatch.setattr(csv_reader, "_BLOCK_BYTES", 8)
    monkeypatch.setattr(storage, "BLOCK", 8)
    reader = csv_reader.CsvReader(columns=parse_columns("a STRING, n INT"))
    assert len(read_with(reader, [store(tmp_path / "a.csv", b"a,1\nb,2\n" * 10)]).good) == 20
    assert calls == [True] * 10
    calls.clear()
    assert len(read_with(reader, [store(tmp_path / "a.csv", b"a,+1\nb,+2\n" * 10)]).good) == 20
    assert calls.count(True) == 3


@pytest.mark.parametrize(
    ("kind", "digits", "scale"), [("INT", 9, 0), ("BIGINT", 18, 0), ("FLOAT", 7, 4), ("DOUBLE", 17, 9)]
)
def test_numbers_each_in_a_file_of_its_own(monkeypatch, kind, digits, scale):
    """Arrow's reader makes the number, or the strict cast of its text: both are the same, or the row is bad in both."""
    rng, taken, count = random.Random(kind), [], values_alone() // 40
    call = csv_values._call_arrow

    def watch(text, block, leave_out, types):
        table = call(text, block, leave_out, types)
        taken.append(bool(types) and table is not None)
        return table

    monkeypatch.setattr(csv_values, "_call_arrow", watch)
    for number in list_numbers(rng, digits, scale, count):
        field = rng.choice([number, write_text(rng, number), f'"{number}"', f" {number}"])
        data, columns = f"a,{field}\n".encode(), f"a STRING, n {kind}"
        by_arrow = read_csv(data, columns=columns)
        with monkeypatch.context() as patch:
            patch.setattr(csv_values, "has_plain_numbers", lambda _: False)
            assert repr(read_csv(data, columns=columns)) == repr(by_arrow), field
    assert sum(taken) > count // 20
