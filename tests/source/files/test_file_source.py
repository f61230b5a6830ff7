"""A source as a table reads it: files found, types cast, bad rows marked or told."""

import gzip
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.errors import LakeError, SchemaIncompatibleError, SourceFailedError, SpecInvalidError
from lakewriter.source.bad_rows import read_blank_lines
from lakewriter.source.files.file_source import OpenedFiles, has_reader, open_files
from lakewriter.source.files.folder_listing import list_stored
from lakewriter.spec.table_spec import Read
from tests.source.files.reading import in_turn
from tests.source.tables import table

HEADED = {"header": "true"}


def write(folder: Path, **files: str | bytes) -> None:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_eq_", "=").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def opened(path: Path, aside: bool = False, columns: dict[str, str] | None = None, **fields: Any) -> OpenedFiles:
    read = Read(**{"format": "csv", "path": str(path), "options": HEADED} | fields)
    options = {name: str(value) for name, value in read.options.items()}
    return open_files(table(columns=columns or {}), read, options, in_turn, aside=aside)


def rows(source: OpenedFiles) -> list[list[Any]]:
    batches = source.source.read_all(source.cut(1 << 30, in_turn))
    return [list(row.values()) for batch in batches for row in batch.to_pylist()]


FOUND = [
    # path below the folder, options, the files found
    ("", {}, ["a.csv", "b.csv"]),
    ("a.csv", {}, ["a.csv"]),
    ("*.csv", {}, ["a.csv", "b.csv"]),
    ("[b-c].csv", {}, ["b.csv"]),
    ("{a,x}.csv", {}, ["a.csv"]),
    ("s*/*", {}, ["sub/c.csv"]),
    ("", {"recursivefilelookup": "true"}, ["a.csv", "b.csv", "k=1/d.csv", "odd/x[1].csv", "sub/c.csv"]),
    ("", {"pathglobfilter": "b*"}, ["b.csv"]),
    # A name that has a pattern's characters is a name.
    ("k=1", {}, ["k=1/d.csv"]),
    ("odd/x[1].csv", {}, ["odd/x[1].csv"]),
]


@pytest.mark.parametrize(("path", "options", "expected"), FOUND)
def test_files_are_found(tmp_path, path, options, expected):
    write(tmp_path, a_dot_csv="a\n", b_dot_csv="a\n", _SUCCESS="", _dot_crc="", sub__c_dot_csv="a\n")
    write(tmp_path / "odd", **{"x[1]_dot_csv": "a\n"})
    if any("k=1" in name for name in expected):
        write(tmp_path, k_eq_1__d_dot_csv="a\n")
    found = list_stored([str(tmp_path / path)], options, "s.t")
    assert [str(Path(file.path).relative_to(tmp_path)) for file in found.files] == expected


REFUSED = [
    # paths below the folder, what is said
    (["nothing.csv"], SourceFailedError, "there is no .*nothing.csv"),
    (["x*.csv"], SourceFailedError, "no file matches"),
    (["a.csv", "a.csv"], SpecInvalidError, "names .*a.csv' twice: its rows would be loaded twice"),
    (["", "a.csv"], SpecInvalidError, "twice"),
]


@pytest.mark.parametrize(("paths", "kind", "message"), REFUSED)
def test_paths_that_are_refused(tmp_path, paths, kind, message):
    write(tmp_path, a_dot_csv="a\n")
    with pytest.raises(kind, match=message):
        list_stored([str(tmp_path / path) for path in paths], {}, "s.t")


def test_files_beside_folders_of_a_key_are_refused(tmp_path):
    write(tmp_path, a_dot_csv="a\n", k_eq_1__d_dot_csv="a\n")
    with pytest.raises(SourceFailedError, match="lie in folders of different keys: none and k"):
        list_stored([str(tmp_path)], {}, "s.t")


def test_links_to_nothing_and_to_themselves_are_no_files(tmp_path):
    (tmp_path / "a.csv").write_text("id\n1\n")
    (tmp_path / "b.csv").symlink_to(tmp_path / "none.csv")
    (tmp_path / "c.csv").symlink_to(tmp_path / "c.csv")
    assert [file.path for file in list_stored([str(tmp_path)], {}, "t").files] == [str(tmp_path / "a.csv")]


def test_values_of_folders_are_text(tmp_path):
    write(tmp_path, day_eq_001__a_dot_csv="a\n1\n", **{"day_eq_a%2Fb__a_dot_csv": "a\n2\n"})
    (tmp_path / "day=__HIVE_DEFAULT_PARTITION__").mkdir()
    (tmp_path / "day=__HIVE_DEFAULT_PARTITION__" / "c.csv").write_text("a\n3\n")
    source = opened(tmp_path)
    assert source.source.schema.names == ["a", "day"]
    assert sorted(rows(source), key=str) == [["1", "001"], ["2", "a/b"], ["3", None]]
    with pytest.raises(LakeError, match=r"column 'day': it does not convert to int.*'a/b'"):
        rows(opened(tmp_path, columns={"day": "int"}))


def test_a_folder_key_that_is_a_column_is_refused(tmp_path):
    write(tmp_path, A_eq_1__a_dot_csv="a\n1\n")
    with pytest.raises(SchemaIncompatibleError, match="'a' is a column of the files, and 'A' a key in the names"):
        opened(tmp_path)


def test_folders_inside_are_noted(tmp_path):
    write(tmp_path, a_dot_csv="a\n1\n", sub__b_dot_csv="a\n2\n")
    source = opened(tmp_path)
    assert rows(source) == [["1"]]
    assert source.notes == (
        f"'{tmp_path}' has folders whose files are not read: sub; with recursiveFileLookup: true they are",
    )


TOLD = [
    # the file, columns:, what is said
    (
        "a,b\n1,2\n3\n",
        {},
        "line 3, offset 8: it has 1 field, expected 2: '3'. Correct the file, or keep such rows apart",
    ),
    ('a,b\n1,"x\ny"\n2,"z\n', {}, "line 4, offset 12: a quote is opened and not closed: '2,\"z'"),
    ('a,b\n"\\"x\\"",2\n', {}, "If a backslash escapes quotes in it, set options: {escape: '\\'}"),
    ("a,b\n1,x\n", {"b": "int"}, "line 2, offset 4, column 'b': it does not convert to int: it is not a whole number"),
]


@pytest.mark.parametrize(("text", "columns", "message"), TOLD)
def test_the_first_bad_row_is_told(tmp_path, text, columns, message):
    write(tmp_path, a_dot_csv=text)
    with pytest.raises(LakeError) as caught:
        rows(opened(tmp_path, columns=columns))
    assert message in str(caught.value)
    assert f"table 's.t': '{tmp_path}/a.csv'" in str(caught.value)


def test_the_remedy_of_an_escaped_quote_works(tmp_path):
    write(tmp_path, a_dot_csv='a,b\n"\\"x\\"",2\n')
    assert rows(opened(tmp_path, options=HEADED | {"escape": "\\"})) == [['"x"', "2"]]


def test_bad_rows_are_marked(tmp_path):
    write(tmp_path, a_dot_csv="a,b\n1,2020-01-01\n3\nx,y\n,\n")
    *good, last = rows(opened(tmp_path, aside=True, columns={"a": "int", "b": "date"}))
    marks = [row[-1] for row in [*good, last]]
    assert [row[0] for row in [*good, last]] == [1, None, None, None]
    assert [mark["offset"] for mark in marks] == [4, 17, 19, 23]
    assert [mark["column"] for mark in marks] == [None, None, "a", None]
    # Of two values that do not fit neither is lost.
    assert (marks[2]["value"], marks[2]["row"]) == ("x", '{"a":"x","b":"y"}')
    assert marks[3]["reason"] is None


def test_no_text_of_a_bad_row_is_lost_where_one_column_has_a_format_of_its_own(tmp_path):
    write(tmp_path, a_dot_csv="a,b,c\nx,2020-01-01,z\nx,02.01.2020,3\n1,y,3\n")
    columns: dict[str, Any] = {"a": "int", "b": {"type": "date", "format": "dd.MM.yyyy"}, "c": "int"}
    found = rows(opened(tmp_path, aside=True, columns=columns))
    assert [(mark["column"], mark["value"], mark["row"]) for *_, mark in found] == [
        ("a", "x", '{"a":"x","c":"z","b":"2020-01-01"}'),
        ("a", "x", None),
        ("b", "y", None),
    ]


def test_the_dates_of_declared_columns_are_spelled_as_the_options_say(tmp_path):
    write(tmp_path, a_dot_csv="a,b\n1,02.01.2020\n")
    found = rows(opened(tmp_path, columns={"b": "date"}, options=HEADED | {"dateFormat": "dd.MM.yyyy"}))
    assert found == [["1", date(2020, 1, 2)]]


def test_large_files_that_one_task_reads_are_told(monkeypatch, tmp_path):
    monkeypatch.setattr("lakewriter.source.files.file_source._LARGE", 4)
    data = "a,b\n1,2\n"
    write(tmp_path, a_dot_csv=data, b_dot_csv=gzip.compress(data.encode()), c_dot_csv=data.encode("utf-16"))
    assert opened(tmp_path).notes == (
        f"'{tmp_path}/b.csv' is in gzip, so that one task reads the whole file, as of 1 other file",
    )
    (tmp_path / "b.csv").unlink()
    assert opened(tmp_path).notes == (f"'{tmp_path}/c.csv' is in UTF-16-LE, so that one task reads the whole file",)


@pytest.mark.parametrize("columns", [{}, {"a": "int"}])
@pytest.mark.parametrize("block", [1, 1 << 20])
def test_blank_lines_are_counted(monkeypatch, tmp_path, columns, block):
    monkeypatch.setattr("lakewriter.source.files.csv_reader._BLOCK_BYTES", block)
    monkeypatch.setattr("lakewriter.source.files.stored_files.BLOCK", block)
    monkeypatch.setattr("lakewriter.source.storage.BLOCK", block)
    write(tmp_path, k_eq_1__a_dot_csv="a,b\n\n1,2\n \t\n#\n3,4\n\n", k_eq_1__b_dot_csv="a,b\n")
    source = opened(tmp_path, columns=columns, options=HEADED | {"comment": "#"})
    batches = list(source.source.read_all(source.cut(1 << 20, in_turn)))
    assert sum(read_blank_lines(batch.schema) for batch in batches) == 3
    assert sum(batch.num_rows for batch in batches) == 2
    write(tmp_path, one_dot_csv="a\n1\n\n")
    single = opened(tmp_path / "one.csv")
    assert not any(read_blank_lines(batch.schema) for batch in single.source.read_all(single.cut(1 << 20, in_turn)))


INFERRED = [
    # the values of a column, its type
    (["1", "-2", ""], "int32"),
    (["1", "3000000000"], "int64"),
    (["1", "2.5", "1e3"], "double"),
    (["2020-01-01", ""], "date32[day]"),
    (["2020-01-01 10:00:00", "2020-01-01"], "timestamp[us, tz=UTC]"),
    (["true", "False"], "bool"),
    # Others would lose something.
    (["007", "8"], "string"),
    (["0.12345678901234567"], "string"),
    (["yes", "no"], "string"),
    (["12:30"], "string"),
    (["1", "x"], "string"),
    (["", ""], "null"),
]


@pytest.mark.parametrize(("values", "kind"), INFERRED)
def test_types_that_all_values_have(tmp_path, values, kind):
    write(tmp_path, a_dot_csv="x,a\n" + "".join(f"0,{value}\n" for value in values))
    schema = opened(tmp_path, options=HEADED | {"inferSchema": "true"}).source.schema
    assert [str(field.type) for field in schema] == ["int32", kind]


def test_declared_types_are_not_inferred(tmp_path):
    write(tmp_path, a_dot_csv="a,b\n1,007\n")
    source = opened(tmp_path, options=HEADED | {"inferSchema": "true"}, columns={"B": "string"})
    assert rows(source) == [[1, "007"]]


def test_files_without_rows(tmp_path):
    write(tmp_path, a_dot_csv="")
    with pytest.raises(SourceFailedError, match=r"a.csv' is empty, without any byte"):
        opened(tmp_path)
    read = Read(format="csv", path=str(tmp_path), options=HEADED, columns="a INT, b STRING")
    empty = open_files(table(), read, HEADED, in_turn, aside=False)
    assert (empty.source.schema.names, rows(empty)) == (["a", "b"], [])


def test_a_file_without_columns(tmp_path):
    pq.write_table(pa.table({}), tmp_path / "a.parquet")
    with pytest.raises(SourceFailedError, match=r"a.parquet' names no column: it has no rows, or rows without a value"):
        opened(tmp_path / "a.parquet", format="parquet", options={})


def test_a_file_without_bytes_among_others(tmp_path):
    write(tmp_path, a_dot_csv="", b_dot_csv="a\n1\n")
    assert rows(opened(tmp_path)) == [["1"]]


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (Read(format="CSV", path="a"), True),
        (Read(format="csv", path="a", engine="spark"), False),
        (Read(format="xml", path="a"), False),
        (Read(format="csv"), False),
        (Read(sql="SELECT 1"), False),
    ],
)
def test_formats_that_have_a_reader(read, expected):
    assert has_reader(read) == expected
