"""Headers of CSV files: names of one file as they stand, of several by name, declared ones by name or position."""

import pytest

from lakewriter.errors import SchemaIncompatibleError
from lakewriter.source.files.csv_headers import list_nameless
from tests.source.files.reading import read_csv

HEADED = {"header": "true"}

NAMES = [
    # options, files, the columns, the rows
    (HEADED, ["Name,name,name\n1,2,3\n"], ["Name", "name", "name"], [("1", "2", "3")]),
    (HEADED, ["a,,a\n1,2,3\n"], ["a", "_c1", "a"], [("1", "2", "3")]),
    (HEADED | {"nullValue": "NA"}, ["a,NA\n1,2\n"], ["a", "_c1"], [("1", "2")]),
    (HEADED, [" a,b \n1,2\n"], [" a", "b "], [("1", "2")]),
    (HEADED, ['"a\nb","c""d"\n1,2\n'], ["a\nb", 'c"d'], [("1", "2")]),
    (HEADED | {"comment": "#", "sep": ";"}, ["#x\n\na;b\n1;2\n"], ["a", "b"], [("1", "2")]),
    ({}, ["1,2\n"], ["_c0", "_c1"], [("1", "2")]),
    (HEADED, ["a,b\n"], ["a", "b"], []),
    # By name in several files.
    (HEADED, ["id,name\n1,Ann\n", "name,id\nBob,2\n"], ["id", "name"], [("1", "Ann"), ("2", "Bob")]),
    (HEADED, ["id,name\n1,Ann\n", "ID,age\n3,40\n"], ["id", "name", "age"], [("1", "Ann", None), ("3", None, "40")]),
    (HEADED, ["a,b\n1,2\n", '"a", b\r\n3,4\r\n', "\ufeffb,a\n6,5\n", "\n \nA,B\n7,8\n", ""], ["a", "b"],
     [("1", "2"), ("3", "4"), ("5", "6"), ("7", "8")]),
    # Names that differ by case alone are two where one file has both.
    (HEADED, ["Id,id\n1,2\n", "id\n3\n"], ["Id", "id"], [("1", "2"), (None, "3")]),
    (HEADED, ["id\n3\n", "ID,Id\n1,2\n"], ["id", "ID", "Id"], [("3", None, None), (None, "1", "2")]),
    (HEADED | {"sep": "||"}, ["a||b\n1||2\n", "b||a\n4||3\n"], ["a", "b"], [("1", "2"), ("3", "4")]),
    # By position where that is asked for, or without names.
    (HEADED | {"enforceSchema": "true"}, ["a,b\n1,2\n", "b,a\n3,4\n"], ["a", "b"], [("1", "2"), ("3", "4")]),
    ({}, ["a,b\n", "b,a\n"], ["_c0", "_c1"], [("a", "b"), ("b", "a")]),
]  # fmt: skip


@pytest.mark.parametrize(("options", "files", "names", "rows"), NAMES)
def test_names(options, files, names, rows):
    reader_rows = read_csv(*(text.encode() for text in files), options=options)
    assert (reader_rows.names, reader_rows.good, reader_rows.bad) == (names, rows, [])


def test_columns_that_are_not_in_all_files_are_noted():
    notes = read_csv(b"id,name\n", b"name,id\n", b"ID,age\n", options=HEADED).notes
    assert notes == (
        "column 'name' is not in 1 of 3 files, such as '2.csv': null in their rows",
        "column 'age' is not in 2 of 3 files, such as '0.csv': null in their rows",
    )


BLANKS = [
    # the header, the notes: docs/sources.md names a column without a name by its position
    (b"a,,_c1\n1,2,3\n", ("column 2 of '0.csv' has no name and gets '_c1', which another column is called: the second "
                         "of them is numbered",)),
    (b"_C1,\n1,2\n", ("column 2 of '0.csv' has no name and gets '_c1', which another column is called: the second of "
                     "them is numbered",)),
    (b"a,,_c2\n1,2,3\n", ()),
    (b"a,_c1\n1,2\n", ()),
    (b"a,,\n1,2,3\n", ()),
]  # fmt: skip


@pytest.mark.parametrize(("text", "notes"), BLANKS)
def test_blank_beside_a_column_of_its_name_is_told(text, notes):
    # A hint at names that are missing follows in any case.
    found = read_csv(text, options=HEADED).notes
    assert tuple(note for note in found if note.endswith("numbered")) == notes


NAMELESS = [
    # the names that columns without one had in earlier loads, the header, its names, the notes on them
    (("_c1",), "a,", ["a", "_c1"], ()),
    (("_c1",), "new,a,", ["new", "a", "_c1"],
     ("column 3 of '0.csv' has no name and stays '_c1', as earlier loads called it",)),
    (("_c1", "_c2"), "new,a,,", ["new", "a", "_c1", "_c2"],
     ("column 3 of '0.csv' has no name and stays '_c1', as earlier loads called it",
      "column 4 of '0.csv' has no name and stays '_c2', as earlier loads called it")),
    (("_c1", "_c3"), "new,a,,b,", ["new", "a", "_c1", "b", "_c3"],
     ("column 3 of '0.csv' has no name and stays '_c1', as earlier loads called it",
      "column 5 of '0.csv' has no name and stays '_c3', as earlier loads called it")),
    (("_c1",), "a,,", ["a", "_c1", "_c2"],
     ("2 columns of '0.csv' without a name, 1 in earlier loads: they are matched in their order",)),
    (("_c3",), "a,b,,", ["a", "b", "_c3", "_c4"],
     ("column 3 of '0.csv' has no name and stays '_c3', as earlier loads called it",
      "column 4 of '0.csv' has no name and gets '_c4': earlier loads called another one '_c3'",
      "2 columns of '0.csv' without a name, 1 in earlier loads: they are matched in their order")),
    # A name of the header is no nameless column's, unless two had it.
    (("_c1",), "_c1,x,", ["_c1", "x", "_c2"], ()),
    (("_c1", "_c1"), "new,a,,_c1", ["new", "a", "_c1", "_c1"],
     ("column 3 of '0.csv' has no name and gets '_c1', which another column is called: the second of them is "
      "numbered",)),
    (("_c1",), "a,b", ["a", "b"], ()),
]  # fmt: skip


@pytest.mark.parametrize("by_position", ["false", "true"])
@pytest.mark.parametrize(("earlier", "header", "names", "notes"), NAMELESS)
def test_columns_without_a_name_keep_the_one_of_earlier_loads(earlier, header, names, notes, by_position):
    text = f"{header}\n{','.join('1' * len(names))}\n".encode()
    found = read_csv(text, options=HEADED | {"enforceSchema": by_position}, nameless=earlier)
    assert found.names == names
    # A hint at names that are missing follows in any case.
    assert tuple(note for note in found.notes if not note.startswith("the header of")) == notes


SOURCES = [
    # the source columns of earlier loads, those without a name
    ((), ()),
    (("a", "_c1", "_c12", "_c01", "_c", "x_c1", "_C2"), ("_c1", "_c12")),
    (("a", "_c3", "_c2"), ("_c3", "_c2")),
    # A file without a header: its columns have positions.
    (("_c0", "_c1"), ()),
]


@pytest.mark.parametrize(("sources", "nameless"), SOURCES)
def test_names_that_columns_without_one_had(sources, nameless):
    assert list_nameless(sources) == nameless


DECLARED = [
    # options, the files, read.columns, the rows, the notes
    ({}, [b"1,2\n"], "a INT, b STRING", [(1, "2")], ()),
    (HEADED, [b"a,b\n1,2\n"], "a INT, b STRING", [(1, "2")], ()),
    (HEADED, [b"b,a\n2,1\n"], "a INT, b STRING", [(1, "2")], ()),
    (HEADED, [b"x,y\n1,2\n"], "a INT, b STRING", [(1, "2")],
     ("read.columns names the columns of '0.csv' by their positions: its header has x, y",)),
    (HEADED, [b"id,n\n1,2\n", b"n,id\n3,4\n"], "n INT, id BIGINT", [(2, 1), (3, 4)], ()),
    (HEADED | {"enforceSchema": "true"}, [b"b,a\n1,2\n"], "a INT, b STRING", [(1, "2")], ()),
]  # fmt: skip


@pytest.mark.parametrize(("options", "files", "columns", "rows", "notes"), DECLARED)
def test_declared_columns(options, files, columns, rows, notes):
    outcome = read_csv(*files, columns=columns, options=options)
    assert (outcome.good, outcome.notes) == (rows, notes)


REFUSED = [
    # files, read.columns, what is said
    (["id,id\n1,2\n", "id\n3\n"], None, "has names that are blank or occur twice"),
    (["id,\n1,2\n", "id\n3\n"], None, "has names that are blank or occur twice"),
    (["id,n\n1,2\n", "n,id\n3,4\n"], "x INT, y INT", "has 'id', which read.columns does not have"),
    (["id,n\n1,2\n"], "x INT", r"read.columns has 1 column, and the header of '0.csv' has 2: id, n"),
]


@pytest.mark.parametrize(("files", "columns", "message"), REFUSED)
def test_headers_that_are_refused(files, columns, message):
    with pytest.raises(SchemaIncompatibleError, match=message):
        read_csv(*(text.encode() for text in files), columns=columns, options=HEADED)


@pytest.mark.parametrize("before", ["", "# a comment\n" * 10_000])
def test_headers_that_are_long_or_far_from_the_beginning(before):
    """More than 64 KiB: columns n0 to n19999, and in one file another name behind them."""
    names = [f"n{number}" for number in range(20_000)]
    one = before + ",".join(names) + "\n"
    other = before + ",".join([*names, "more"])
    assert read_csv(one.encode(), other.encode(), options=HEADED | {"comment": "#"}).names == [*names, "more"]


def test_headers_in_another_charset():
    options = HEADED | {"encoding": "latin1"}
    outcome = read_csv("a,ä\n1,2\n".encode("latin-1"), "ä,a\n3,4\n".encode("latin-1"), options=options)
    assert (outcome.names, outcome.good) == (["a", "ä"], [("1", "2"), ("4", "3")])
