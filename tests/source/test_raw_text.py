"""Bytes that Spark's readers would replace, told before they read; the offsets are counted by hand."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    DecimalType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from lakewriter.source import raw_text
from lakewriter.source.raw_text import (
    Finding,
    describe_json_fault,
    find_in_encoded,
    find_in_json,
    find_in_text,
    split_blocks,
)

LINES = [
    # bytes, where the piece begins and ends, what of them are its lines
    (b"a\nbb\nc\n", 0, None, b"a\nbb\nc\n"),
    (b"a\nbb\nc", 0, None, b"a\nbb\nc"),
    (b"a\nbb\nc", 0, 1, b"a\n"),
    (b"a\nbb\nc", 0, 2, b"a\n"),
    (b"a\nbb\nc", 0, 3, b"a\nbb\n"),
    (b"a\nbb\nc", 2, 3, b"bb\n"),
    (b"a\nbb\nc", 2, 5, b"bb\n"),
    (b"a\nbb\nc", 3, 5, b""),
    (b"a\nbb\nc", 3, 6, b"c"),
    (b"a\nbb\nc", 5, 6, b"c"),
    (b"\n\n\n", 0, 1, b"\n"),
    (b"\n\n\n", 1, 3, b"\n\n"),
    (b"aaaaaaaaa\nb", 3, 6, b""),
    (b"", 0, None, b""),
]


@pytest.mark.parametrize("block", [1, 2, 3, 100])
@pytest.mark.parametrize(("data", "start", "end", "expected"), LINES)
def test_lines_that_begin_in_a_piece(monkeypatch, block, data, start, end, expected):
    monkeypatch.setattr(raw_text, "_BLOCK", block)
    # As the byte before a piece tells whether its first line begins there.
    before = max(start - 1, 0)
    found = list(split_blocks(io.BytesIO(data[before:]).read, before, end, skip=start > 0))
    assert b"".join(lines for _, lines in found) == expected
    assert all(data[place : place + len(lines)] == lines for place, lines in found)


TEXTS = [
    (b"a,b\n1,\xc3\xa9\n", None),
    (b"\xef\xbb\xbfa,b\n", None),
    (b"a,b\n1,\xe9\n", Finding(106, "byte 0xe9 is not UTF-8 (invalid continuation byte)")),
    (b"a\x80", Finding(101, "byte 0x80 is not UTF-8 (invalid start byte)")),
    (b"\xed\xa0\x80", Finding(100, "byte 0xed is not UTF-8 (invalid continuation byte)")),
    (b"\xc0\xaf", Finding(100, "byte 0xc0 is not UTF-8 (invalid start byte)")),
    (b"a\xe2\x82", Finding(101, "byte 0xe2 0x82 is not UTF-8 (unexpected end of data)")),
]


@pytest.mark.parametrize(("lines", "expected"), TEXTS)
def test_bytes_that_are_no_utf_8(lines, expected):
    assert find_in_text(100, lines) == expected


ENCODED = [
    ("iso-8859-1", b"\xe9\xff", None),
    ("windows-1252", b"ab\x81", Finding(2, "byte 0x81 is not windows-1252 (character maps to <undefined>)")),
    ("utf-16", "é\n".encode("utf-16"), None),
    ("utf-16-le", b"a\x00\x00\xd8a\x00", Finding(2, "byte 0x00 0xd8 is not utf-16-le (illegal UTF-16 surrogate)")),
    ("utf-16-le", b"a\x00b", Finding(2, "byte 0x62 is not utf-16-le (truncated data)")),
    ("shift_jis", "あ".encode("shift_jis"), None),
]


@pytest.mark.parametrize("block", [1, 3, 100])
@pytest.mark.parametrize(("encoding", "data", "expected"), ENCODED)
def test_bytes_of_another_encoding(monkeypatch, block, encoding, data, expected):
    monkeypatch.setattr(raw_text, "_BLOCK", block)
    assert find_in_encoded(io.BytesIO(data).read, encoding) == expected


def of(**fields):
    return StructType([StructField(name, kind) for name, kind in fields.items()])


DOUBLE, TEXT = of(a=DoubleType()), of(a=StringType())
LONG = "1" * 400
JSON = [
    # a line, its columns, what Spark would change: https://www.rfc-editor.org/rfc/rfc8259#section-7 and #section-6
    (rb'{"a": "\ud83d\ude00"}', TEXT, None),
    (rb'{"a": "\\ud800"}', TEXT, None),
    (rb'{"a": "x\ud800y"}', TEXT, r"/a has \ud800, half of a surrogate pair"),
    (rb'{"a": "\udc00\ud800"}', TEXT, r"/a has \udc00, half of a surrogate pair"),
    (rb'{"b": "\ud800"}', TEXT, None),
    (rb'{"a": {"b": "\uD800"}}', TEXT, r"/a/b has \ud800, half of a surrogate pair"),
    (rb'{"a": [1, "\uD800"]}', of(a=ArrayType(StringType())), r"/a/1 has \ud800, half of a surrogate pair"),
    (rb'{"\ud800": 1}', TEXT, r"a name in the document has \ud800, half of a surrogate pair"),
    (rb'{"a": {"x/~": "\udbff"}}', of(a=MapType(StringType(), StringType())), r"/a/x~1~0 has \udbff, half of a "
     "surrogate pair"),
    (b'{"a": %s}' % LONG.encode(), DOUBLE, f"/a: {'1' * 40}... (400 characters) is beyond the range of a double"),
    (b'{"a": -%s}' % LONG.encode(), DOUBLE, f"/a: -{'1' * 39}... (401 characters) is beyond the range of a double"),
    (b'{"a": %s}' % LONG.encode(), TEXT, None),
    (b'{"a": "%s"}' % LONG.encode(), DOUBLE, None),
    (b'{"a": %s}' % (b"1" * 39), DOUBLE, f"/a: {'1' * 39} has more digits than a double or a decimal"),
    (b'{"a": 1%s}' % (b"0" * 38), DOUBLE, "/a: 1" + "0" * 38 + " has more digits than a double or a decimal"),
    (b'{"a": %d}' % 2**130, DOUBLE, None),
    (b'{"a": %s}' % (b"1" * 38), of(a=DecimalType(38, 0)), None),
    (b'{"a": 1e400}', DOUBLE, "/a: 1e400 is beyond the range of a double"),
    (b'{"a": 1E+400}', DOUBLE, "/a: 1E+400 is beyond the range of a double"),
    (b'{"a": 1.5e-400}', DOUBLE, "/a: 1.5e-400 is beyond the range of a double"),
    (b'{"a": 0e-400}', DOUBLE, None),
    (b'{"a": 1e300}', DOUBLE, None),
    (b'{"a": 1e400}', of(a=LongType()), None),
    (b"{'a': 1e400, 'b': '\\ud800'}", DOUBLE, r"\ud800 is half of a surrogate pair"),
    (b'{"a": ' + b"[" * 100_000, DOUBLE, None),
]  # fmt: skip


@pytest.mark.parametrize(("line", "kind", "expected"), JSON)
def test_values_of_json_lines(line, kind, expected):
    first = b'{"a": null, "b": "caf\xc3\xa9"}\n'
    found = find_in_json(100, first + line + b"\n", kind, whole=True)
    assert found == (None if expected is None else Finding(100 + len(first), expected))


def test_bytes_of_json_that_are_no_utf_8():
    assert find_in_json(0, b'{"a": "\xe9"}\n', TEXT, whole=True) == Finding(
        7, "byte 0xe9 is not UTF-8 (invalid continuation byte)"
    )


DOCUMENTS = [
    # a line of a document that goes over several
    (rb'  "a": "\ud800",', r"\ud800 is half of a surrogate pair"),
    (b'  "a": 1e400,', "1e400 is beyond the range of a double"),
    (b'  "a": "1e400 %s",' % (b"1" * 50), None),
    (b'  "a": %s' % (b"1" * 60), f"{'1' * 40}... (60 characters) has more digits than a double or a decimal"),
]


@pytest.mark.parametrize(("line", "expected"), DOCUMENTS)
def test_lines_of_a_document(line, expected):
    assert describe_json_fault(line, DOUBLE, whole=False) == expected


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        (b'{"t": "e728e400", "n": 1}\n', False),
        (b'{"t": "e728e400", "n": 1e400}\n', True),
    ],
)
def test_texts_that_look_like_numbers_hide_none(line, is_found):
    kind = StructType([StructField("t", StringType()), StructField("n", DoubleType())])
    assert (find_in_json(0, line, kind, whole=True) is not None) == is_found


def test_number_behind_a_byte_order_mark():
    line = b'\xef\xbb\xbf{"a": 1e400}\n'
    assert find_in_json(0, line, DOUBLE, whole=True) == Finding(0, "/a: 1e400 is beyond the range of a double")


SIGNIFICANDS = [b"7", b"12.5", b"1" * 37, b"1" * 38, b"1" * 39, b"1" * 310, b"%d" % 2**130, b"0.%s1" % (b"0" * 330)]
EXPONENTS = [b"", b"e1", b"E+12", b"e-099", b"e300", b"E308", b"e+309", b"e-400", b"e0400"]
NUMBERS = st.builds(
    b"%b%b%b".__mod__,
    st.tuples(st.sampled_from([b"", b"-"]), st.sampled_from(SIGNIFICANDS), st.sampled_from(EXPONENTS)),
)
PARTS = [
    rb"\ud83d\ude00",
    rb"\ud83d",
    rb"\uDE00",
    rb"\\",
    rb"\"",
    rb"\u00e9",
    rb"\ud7ff",
    b"1e400",
    b"e4001",
    b"1" * 39,
    b"x",
]
PARTS += [b" ", b",", b"-", b"'", "\u00e9".encode()]
TEXT_VALUES = st.lists(st.sampled_from(PARTS), max_size=5).map(lambda parts: b'"' + b"".join(parts) + b'"')
VALUES = st.one_of(NUMBERS, TEXT_VALUES)
LINE = st.tuples(VALUES, VALUES, st.sampled_from([b"\n", b"\r\n", b"\r"])).map(
    lambda own: b'{"a":%b,"t": [%b]}%b' % own
)


@given(st.lists(LINE, min_size=1, max_size=5))
def test_no_line_that_has_to_be_parsed_is_left_out(lines):
    kind = StructType([StructField("a", DoubleType()), StructField("t", ArrayType(DoubleType()))])
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    expected = {
        start: what for start, line in zip(starts, lines, strict=True) if (what := describe_json_fault(line, kind))
    }
    block = b"".join(lines)
    first = next((Finding(100 + start, what) for start, what in expected.items()), None)
    assert find_in_json(100, block, kind, whole=True) == first
