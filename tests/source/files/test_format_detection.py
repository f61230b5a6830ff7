"""What a file is told to be, and that what is said to do about it works."""

import io
import pickle
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.errors import LakeError, SourceFailedError
from lakewriter.source.files.format_detection import guess_format, list_csv_hints, suggest_charset
from tests.source.files.json_files import read_files


def make_parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1]}), sink)
    return sink.getvalue()


def make_zip() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("a.csv", "a,b\n1,2\n")
    return sink.getvalue()


OTHERS = [
    # content, what is said, the remedy
    (make_parquet(), "is a Parquet file, expected text", "Set format: parquet."),
    (make_zip(), "is a ZIP archive, as Excel workbooks are, expected text",
     "Save its sheet or table as CSV or Parquet, and name that file."),
    (b"id,name\n1,x\n", "is not JSON: it begins with 'id,name'", "Set format: csv, or name the file that is meant."),
    (b"<a>\n<b/></a>\n", "is not JSON: it begins with '<a>'", "Set format: xml, or name the file that is meant."),
    (b'{\n "a": 1\n}\n', "has JSON documents over several lines", "Set options: {multiLine: true}."),
    (b'[\n{"a":1},\n{"a":2}\n]', "has JSON documents over several lines", "Set options: {multiLine: true}."),
    (b'{"a":1,\n"b":"' + b"x" * 70_000 + b'"}', "has JSON documents over several lines",
     "Set options: {multiLine: true}."),
]  # fmt: skip


@pytest.mark.parametrize(("content", "said", "remedy"), OTHERS, ids=range(len(OTHERS)))
def test_other_content_is_told(tmp_path, content, said, remedy):
    with pytest.raises(SourceFailedError) as error:
        read_files(tmp_path, content)
    assert said in error.value.message
    assert error.value.remedy == remedy


@pytest.mark.parametrize("content", [content for content, _, remedy in OTHERS if "multiLine" in remedy])
def test_remedy_of_documents_over_several_lines_works(tmp_path, content):
    _, rows = read_files(tmp_path, content, options={"multiLine": "true"})
    assert [row.reason for row in rows] == [None] * len(rows)
    assert rows[0].values["a"] == 1


def test_remedy_of_utf_16_without_its_mark_works(tmp_path):
    data = '{"a":"x"}\n{"a":"é"}\n'.encode("utf-16-le")
    with pytest.raises(LakeError) as error:
        read_files(tmp_path, data)
    assert "UTF-16LE" in error.value.remedy
    _, rows = read_files(tmp_path, data, options={"encoding": "UTF-16LE"})
    assert [row.values["a"] for row in rows] == ["x", "é"]


FINE = [
    b'{"a":1\n{"a":2}\n{"a":3}\n',
    b'# a comment\n{"a":2}\n',
    b'{"a":1\n' + b'{"a":2}\n' * 20_000,
    b'[{"a":1},{"a":2}]\n[{"a":3}]\n',
    b'{"a":"PAR1"}\n',
]


@pytest.mark.parametrize("content", FINE, ids=range(len(FINE)))
def test_one_bad_line_does_not_keep_the_others_from_being_read(tmp_path, content):
    _, rows = read_files(tmp_path, content)
    assert sum(row.reason is None for row in rows) >= len(rows) - 1


def test_text_that_begins_like_another_format_is_text():
    assert guess_format(b"ORC,PAR1\n1,2\n") == "csv"


CHARSETS = [
    # a row as it is shown, the remedy
    (r"M\xfcller, 10 \x80", "If 'Müller,' is right in it, set options: {encoding: windows-1252}. "),
    (r"10 \x80", "If '€' is right in it, set options: {encoding: windows-1252}. "),
    (r"caf\xe9", "If 'café' is right in it, set options: {encoding: windows-1252}. "),
    (r"don\x92t", "If 'don\u2019t' is right in it, set options: {encoding: windows-1252}. "),
    # Russian in windows-1251, Japanese in Shift-JIS, a byte that windows-1252 does not have.
    (r"\xcf\xf0\xe8\xe2\xe5\xf2", ""),
    (r"\x93\xfa\x96{", ""),
    (r"a\x81", ""),
    # UTF-8 that is damaged in one place.
    (r"Mülle\xff", ""),
    ("plain", ""),
]


@pytest.mark.parametrize(("shown", "remedy"), CHARSETS, ids=range(len(CHARSETS)))
def test_charset_is_suggested_only_where_it_is_likely(shown, remedy):
    assert suggest_charset(shown) == remedy


HINTS = [
    # rows, has a header, hints
    ([["a;b"], ["1;2"]], True, ["'f' has one column by the delimiter ',', and ';' in every row. "
                                'Set options: {sep: ";"}.']),
    ([["a\tb"], ["1\t2"]], True, ["'f' has one column by the delimiter ',', and tabs in every row. "
                                  'Set options: {sep: "\\t"}.']),
    ([["id", "name"], ["1", "x"]], False, ["the first row of 'f' is read as data and looks like names: id, name. "
                                           "Set options: {header: true}."]),
    ([["1", "x"], ["2", "y"]], True, ["the first row of 'f' is read as the columns' names, and has 1. If it is data, "
                                      "set options: {header: false}, and declare the names: read.columns: "
                                      '"id BIGINT, name STRING".']),
    ([["a", "", "a"], ["x", "y", "z"]], True, [
        "the header of 'f' has no name for column 2 and the name a more than once. The columns get names by their "
        "positions. Name them where the file is written, or with an sql: read."]),
    ([['{"a":1', '"b":2}']], True, ["'f' begins like JSON, and is read as csv. If it is JSON, set format: json."]),
    ([["id", "name"], ["1", "x"]], True, []),
    ([], True, []),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "has_header", "hints"), HINTS, ids=range(len(HINTS)))
def test_hints_of_csv(rows, has_header, hints):
    found = list_csv_hints("f", rows, ",", has_header=has_header, is_declared=False)
    assert [f"{hint.message} {hint.remedy}" for hint in found] == hints
    assert [pickle.loads(pickle.dumps(hint)).remedy for hint in found] == [hint.remedy for hint in found]
