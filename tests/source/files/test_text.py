"""Files of lines: each line a row, whatever ends it and wherever the file is cut."""

import gzip

import pyarrow as pa
import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.source.files.spark_options import take_options
from lakewriter.source.files.text_reader import TextReader
from tests.source.files.reading import Outcome, hold, read_with


def read(data: bytes, size: int = 1 << 30, **options: str) -> Outcome:
    reader = TextReader.make(take_options("text", options, "s.t"), None)
    return read_with(reader, [hold(data)], size)


LINES = [
    # options, bytes, the lines
    ({}, b"a\r\nbc\n\nd\re\r\n", ["a", "bc", "", "d", "e"]),
    ({}, b"\xef\xbb\xbfa\nb", ["a", "b"]),
    ({}, b'"x,\n"', ['"x,', '"']),
    ({}, b"", []),
    ({"lineSep": ";"}, b"a;b\n;;", ["a", "b\n", ""]),
    ({"wholetext": "true"}, b"a\nb\n", ["a\nb\n"]),
    ({"encoding": "utf-16-le"}, "é\nü".encode("utf-16-le"), ["é", "ü"]),
    ({"charset": "windows-1252"}, b"\x80\n", ["€"]),
    ({}, gzip.compress(b"a\n\nb", mtime=0), ["a", "", "b"]),
]


@pytest.mark.parametrize(("options", "data", "lines"), LINES)
def test_lines(options, data, lines):
    assert read(data, **options).good == [(line,) for line in lines]


@pytest.mark.parametrize("size", range(1, 16))
def test_lines_of_a_file_in_pieces(size):
    data = b"a\r\nbc\n\nd\re\r\n\r\nfgh"
    assert read(data, size).good == [("a",), ("bc",), ("",), ("d",), ("e",), ("",), ("fgh",)]


def test_a_line_that_is_no_text():
    outcome = read(b"a\n\n b\xe9\nc")
    assert outcome.good == [("a",), ("",), ("c",)]
    assert outcome.bad == [(3, "byte 0xe9 is not UTF-8", " b\\xe9")]


def test_text_has_one_column():
    with pytest.raises(SpecInvalidError, match=r"read.columns has 2 columns, and a source of text has one"):
        TextReader.make(take_options("text", {}, "s.t"), pa.schema({"a": "string", "b": "string"}))
