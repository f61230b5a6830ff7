"""JSON as a load reads it: columns, rows, where each begins, and what is told of bad ones."""

import bz2
import gzip
import json
import lzma
import pickle
import random
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
import zstandard

from lakewriter.cast.sql_types import parse_columns
from lakewriter.errors import LakeError, SourceFailedError, SpecInvalidError
from lakewriter.receipt import Absent
from lakewriter.source.bad_rows import read_absent
from lakewriter.source.files.json_reader import JsonReader
from lakewriter.source.files.spark_options import take_options
from tests.source.files.json_files import parse_by_python, read_files, spread, write_compact, write_file

INFERRED = [
    # content, columns in their order, rows
    (b'{"b":1,"a":"x"}\n{"c":true}', "a string, b bigint, c boolean",
     [{"a": "x", "b": 1, "c": None}, {"a": None, "b": None, "c": True}]),
    (b'{"Id":1}\n{"id":3}', "Id bigint, id bigint", [{"Id": 1, "id": None}, {"Id": None, "id": 3}]),
    (b'{"s":{"Id":1}}\n{"s":{"id":3}}', "s struct<Id: bigint, id: bigint>",
     [{"s": {"Id": 1, "id": None}}, {"s": {"Id": None, "id": 3}}]),
    (b'{"":1,"_corrupt_record":"x"}', "`` bigint, _corrupt_record string", [{"": 1, "_corrupt_record": "x"}]),
    (b'{"a":1}\n{"a":0.5}', "a double", [{"a": 1.0}, {"a": 0.5}]),
    (b'{"a":9007199254740993}\n{"a":0.5}', "a decimal(17,1)",
     [{"a": Decimal("9007199254740993.0")}, {"a": Decimal("0.5")}]),
    (b'{"a":12345678901234567890}', "a decimal(20,0)", [{"a": Decimal("12345678901234567890")}]),
    (b'{"a":18446744073709551615}\n{"a":0.5}', "a decimal(21,1)",
     [{"a": Decimal("18446744073709551615.0")}, {"a": Decimal("0.5")}]),
    (b'{"a":%b}' % (b"1" * 60), "a string", [{"a": "1" * 60}]),
    (b'{"a":0.1234567890123456789}', "a decimal(20,19)", [{"a": Decimal("0.1234567890123456789")}]),
    (b'{"a":0.30000000000000004}', "a double", [{"a": 0.30000000000000004}]),
    (b'{"a":-0}\n{"a":1}', "a double", [{"a": -0.0}, {"a": 1.0}]),
    (b'{"a":1e2}', "a double", [{"a": 100.0}]),
    (b'{"a":1180591620717411303e24}\n{"a":1}', "a string", [{"a": "1180591620717411303e24"}, {"a": "1"}]),
    (b'{"a":5e-324}', "a double", [{"a": 5e-324}]),
    (b'{"a":1.10}\n{"a":"x"}\n{"a":-0}\n{"a":true}\n{"a":{"b" : [1.0]}}', "a string",
     [{"a": "1.10"}, {"a": "x"}, {"a": "-0"}, {"a": "true"}, {"a": '{"b":[1.0]}'}]),
    (b'{"a":null,"b":[],"c":{},"d":[null]}', "a string, b array<string>, c string, d array<string>",
     [{"a": None, "b": [], "c": "{}", "d": [None]}]),
    (b'{"a":[null,1]}\n{"a":[{"x":1}]}', "a array<string>", [{"a": [None, "1"]}, {"a": ['{"x":1}']}]),
    (b'{"t":"2024-01-05T10:00:00Z","d":"2024-01-05"}', "d string, t string",
     [{"d": "2024-01-05", "t": "2024-01-05T10:00:00Z"}]),
    (b'[{"a":1},{"a":2}]\n[]\n{"a":3}', "a bigint", [{"a": 1}, {"a": 2}, {"a": 3}]),
    ('{"é":"\U0001f600","\\u20ac":1}'.encode(), "`é` string, `€` bigint", [{"é": "\U0001f600", "€": 1}]),
]  # fmt: skip


@pytest.mark.parametrize(("content", "columns", "rows"), INFERRED, ids=range(len(INFERRED)))
@pytest.mark.parametrize("times", [1, 40])
def test_columns_take_what_there_is(tmp_path, content, columns, rows, times):
    """Many lines go through the fast parser where one alone may not."""
    schema, found = read_files(tmp_path, b"\n".join([content] * times))
    assert schema == (pa.schema([("", pa.int64()), ("_corrupt_record", pa.string())]) if "``" in columns else
                      parse_columns(columns))  # fmt: skip
    assert [row.values for row in found] == rows * times
    assert [repr(row.values) for row in found] == [repr(row) for row in rows * times]


TOLD = [
    # line, columns, why it is bad
    (b'{"a":1}{"a":2}', None, "behind the document, at character 8, is '{\"a\":2}'"),
    (b'{"a":1},', None, "behind the document, at character 8, is ','"),
    (b'{"a":1,"a":2}', None, 'the key "a" is twice in one object'),
    (b'{"a":1,"z":{"b":1,"b":2}}', "a bigint", 'the key "b" is twice in one object'),
    (b'{"a":1,"z":NaN}', "a bigint", "NaN is no number of JSON"),
    (b'{"a":1,"z":"\xff"}', "a bigint", "byte 0xff is not UTF-8"),
    (b'{"a":NaN}', "a double", "NaN is no number of JSON"),
    (b'{"a":1e400}', "a double", "it does not fit double: it is beyond the range of double"),
    (b'{"a":1e-400}', "a double", "it does not fit double: it is closer to zero than any double"),
    (b'{"a":1.5}', "a bigint", "it does not fit bigint: it is not a whole number of digits 0 to 9"),
    (b'{"a":1.239}', "a decimal(10,2)",
     "it does not fit decimal(10,2): it has 3 decimal places, and decimal(10,2) has 2"),
    (b'{"a":1704448800000}', "a timestamp",
     "it does not fit timestamp: it is a number; a unit can be named by from:, such as from: epoch_ms"),
    (b'{"a":{"b":[1,"x"]}}', "a struct<b: array<bigint>>", "in /b/* \"x\" does not fit bigint: it is not a whole "
     "number of digits 0 to 9"),
    (b'{"A":1}', "a bigint", "its key 'A' differs by case from the column 'a'"),
    (b'{"s":{"X":1}}', "s struct<x: bigint>", "its key 'X' differs by case from the column 's.x'"),
    (b"[1]", None, "it is 1, expected an object"),
    (b"null", None, "it is null, expected an object"),
    (b'"x"', None, 'it is "x", expected an object'),
    (b"x", None, "there is no value at character 1"),
    (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", None,
     "it nests more than 994 levels deep"),
    (b'{"z":' + b'{"z":' * 100_000 + b"1" + b"}" * 100_001, "a bigint",
     "it nests more than 994 levels deep"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "columns", "reason"), TOLD, ids=range(len(TOLD)))
def test_bad_row_is_told_among_good_ones(tmp_path, line, columns, reason):
    good = b"{}\n" * 30
    declared = None if columns is None else parse_columns(columns)
    _, rows = read_files(tmp_path, good + b'{"ok":1}\n' + line + b"\n" + good, columns=declared)
    bad = [row for row in rows if row.reason is not None]
    assert [row.reason for row in bad] == [reason]
    assert (bad[0].offset, len(rows)) == (len(good) + 9 + (line == b"[1]"), 62)
    shown = line[1:-1] if line == b"[1]" else line
    if bad[0].column is None:
        assert bad[0].text == shown[: 2**18].decode(errors="backslashreplace")
    else:
        assert bad[0].column == "a"
        assert bad[0].text == write_compact(parse_by_python(line)["a"])
    assert set(bad[0].values.values()) <= {None}


DECLARED = [
    # columns, line, row
    ("a bigint", b'{"a":"5"}', {"a": 5}),
    ("a boolean", b'{"a":"yes"}', {"a": True}),
    ("a double", b'{"a":9007199254740993}', {"a": 9007199254740992.0}),
    ("a float", b'{"a":0.1}', {"a": 0.10000000149011612}),
    ("a decimal(10,2)", b'{"a":1.230}', {"a": Decimal("1.23")}),
    ("a date", b'{"a":"2024-01-05"}', {"a": date(2024, 1, 5)}),
    ("a timestamp", b'{"a":"2024-01-05T10:00:00+02:00"}', {"a": datetime(2024, 1, 5, 8, tzinfo=UTC)}),
    ("a timestamp_ntz", b'{"a":"2024-01-05 10:00"}', {"a": datetime(2024, 1, 5, 10)}),
    ("a map<string,bigint>", b'{"a":{"x":1,"y":null}}', {"a": [("x", 1), ("y", None)]}),
    ("a binary", b'{"a":"aGk="}', {"a": b"hi"}),
    ("a string", b'{"a":{"b":1.50}}', {"a": '{"b":1.50}'}),
    ("b bigint, a string", b'{"a":"x","c":[1,"y"]}', {"b": None, "a": "x"}),
    ("a array<date>", b'{"a":["2024-01-05",null]}', {"a": [date(2024, 1, 5), None]}),
]


@pytest.mark.parametrize(("columns", "line", "row"), DECLARED, ids=range(len(DECLARED)))
def test_declared_types(tmp_path, columns, line, row):
    schema, rows = read_files(tmp_path, b"\n".join([line] * 30), columns=parse_columns(columns))
    assert schema == parse_columns(columns)
    assert [(found.values, found.reason) for found in rows] == [(row, None)] * 30


FAR = ["1e-77", "1e-40", "1e-10000007", "1e-2147483647", "1E-20", "0.0000000000000000001e-30"]


@pytest.mark.parametrize("number", FAR)
@pytest.mark.parametrize(
    "columns", ["a decimal(10,2)", "a decimal(38,0), b double", "b decimal(38,10), s struct<a: int>"]
)
def test_decimals_of_many_places_are_told(tmp_path, number, columns):
    """Of a decimal Arrow takes some for zero, and ends the process at others."""
    line = b'{"a":%b,"b":%b,"s":{"a":1}}' % (number.encode(), number.encode())
    _, rows = read_files(tmp_path, b"\n".join([line] * 30), columns=parse_columns(columns))
    assert [row.reason is not None for row in rows] == [True] * 30


@pytest.mark.parametrize("number", FAR)
def test_numbers_of_many_places_beside_others(tmp_path, number):
    lines = [b'{"a":%b,"b":0.12345678901234567}' % number.encode(), b'{"a":1.5,"b":1}']
    _, rows = read_files(tmp_path, b"\n".join(lines * 10))
    assert [row.values["a"] for row in rows if row.values["a"] is not None][-1] in (1.5, "1.5", Decimal("1.5"))
    assert len(rows) == 20


def test_date_format_is_taken(tmp_path):
    _, rows = read_files(
        tmp_path, b'{"a":"05.01.2024"}', columns=parse_columns("a date"), options={"dateFormat": "dd.MM.yyyy"}
    )
    assert rows[0].values == {"a": date(2024, 1, 5)}


def test_names_of_files_that_differ_by_case_are_one_column(tmp_path):
    schema, rows = read_files(tmp_path, b'{"Id":1,"s":{"X":1}}', b'{"id":2,"s":{"x":"2"}}')
    assert schema == parse_columns("Id bigint, s struct<X: string>")
    assert [row.values for row in rows] == [{"Id": 1, "s": {"X": "1"}}, {"Id": 2, "s": {"X": "2"}}]


def test_column_alone_is_bad(tmp_path):
    content = b'{"Id":1,"n":"x","t":"a"}\n{"Id":"y","n":"x","t":"b"}\n{"Id":2,"n":3,"t":"c"}'
    columns = parse_columns("Id bigint, n bigint, t string")
    _, rows = read_files(tmp_path, content, columns=columns)
    why = "it does not fit bigint: it is not a whole number of digits 0 to 9"
    assert [(list(row.values.values()), row.column, row.text, row.reason) for row in rows] == [
        ([1, None, "a"], "n", "x", why),
        ([None, None, "b"], "Id", "y", why),
        ([2, 3, "c"], None, None, None),
    ]


def test_names_of_files_stay_apart_where_one_file_has_both(tmp_path):
    schema, rows = read_files(tmp_path, b'{"id":2}', b'{"Id":1,"id":3}', b'{"ID":4}')
    assert schema.names == ["id", "Id", "ID"]
    assert [row.values["id"] for row in rows] == [2, 3, None]


FIRST_SEEN = [
    # the documents of each file, the columns: by name, but those whose written names collide as the files have them
    ([['{"b c":1,"a":2,"b_c":3}']], "a, b c, b_c"),
    ([['{"b_c":1,"a":2,"b c":3}']], "a, b_c, b c"),
    ([['{"z":1,"a":2}'], ['{"y":1}']], "a, y, z"),
    ([['{"name":1}', '{"Name":1}', '{"NAME":1}']], "name, Name, NAME"),
    ([['{"NAME":1,"x":1}', '{"name":1}', '{"Name":1,"name":2}']], "NAME, name, Name, x"),
    # The number that a collision gives may be another column's name.
    ([['{"name":1,"name_1":1}', '{"Name":1}']], "name, name_1, Name"),
    ([['{"c10":1,"c9":1,"c1":1}']], "c1, c10, c9"),
    # A document that needs the exact parser is in its order too.
    ([['{"a":1}', '{"é":-0,"a":1}', '{"e":1,"x":"\\u00e9"}', '{"É":2}']], "a, é, x, e, É"),
    ([['{"a":1}', '{"x y":-0}', '{"x-y":1}']], "a, x y, x-y"),
    ([['{"x-y":1}', '{"x y":-0}', '{"a":1}']], "a, x-y, x y"),
    ([['{"\\u0061 b":1}', '{"a_b":1}', '{"a-b":2}']], "a b, a_b, a-b"),
    # A document that is bad has no columns.
    ([['{"A b":1,"A b":2}', '{"a_b":1}', '{"A b":2}']], "a_b, A b"),
    # By file, then by byte.
    ([['{"x":1}', '{"a_b":1}'], ['{"A-b":1}', '{"a_b":2}']], "a_b, A-b, x"),
    ([['{"x":1}'], ['{"A-b":1}', '{"a_b":2}'], ['{"a_b":1}', '{"A-b":1}']], "A-b, a_b, x"),
    # As another file spells it. At any depth.
    ([['{"First Name":1}'], ['{"first_name":1,"FIRST NAME":2}']], "First Name, first_name"),
    ([['{"s":{"x":1}}', '{"s":{"b-c":1}}', '{"s":{"b c":2}}']], "s{b-c b c x}"),
    ([['{"s":[{"x":1},{"b-c":1},{"b c":2}]}']], "s[{b-c b c x}]"),
    ([['{"S":{"b_c":1}}'], ['{"s":{"b c":2}}']], "S{b_c b c}"),
]  # fmt: skip


def show_names(fields):
    return [f.name + show_members(f.type) for f in fields]


def show_members(kind):
    if pa.types.is_list(kind):
        return f"[{show_members(kind.value_type)}]"
    return f"{{{' '.join(show_names(kind))}}}" if pa.types.is_struct(kind) else ""


@pytest.mark.parametrize("pieces", [1, 2, 17])
@pytest.mark.parametrize("times", [1, 40])
@pytest.mark.parametrize(("documents", "columns"), FIRST_SEEN)
def test_names_that_collide_are_as_the_files_have_them_first(tmp_path, documents, columns, times, pieces):
    """However each file is split, and whatever is behind the first documents."""
    contents = ["\n".join(lines + lines[-1:] * (times - 1)).encode() for lines in documents]
    files = [write_file(tmp_path / f"{number}.json", content) for number, content in enumerate(contents)]
    size = max(1, min(map(len, contents)) // pieces)
    reader = replace(JsonReader.make(take_options("json", {}, "t"), None), look_bytes=size)
    asked = []

    def spread_pickled(work, items):
        asked.append(len(items))
        return pickle.loads(pickle.dumps([pickle.loads(pickle.dumps(work))(item) for item in items]))

    assert ", ".join(show_names(reader.look(files, "t", spread_pickled).schema)) == columns
    assert len(asked) in (1, 2)


@pytest.mark.parametrize(
    "pack",
    [gzip.compress, bz2.compress, lzma.compress, zstandard.compress, bytes],
    ids=["gzip", "bzip2", "xz", "zstd", "plain"],
)
def test_compression_is_known_by_content(tmp_path, pack):
    _, rows = read_files(tmp_path, pack(b'{"a":1}\n{"a":2}\n'))
    assert [(row.values, row.offset) for row in rows] == [({"a": 1}, 0), ({"a": 2}, 8)]


TEXT = '{"a":"é€"}\r\n\r\n {"a":"\\u00e9"}\n'
ENCODED = [
    # bytes, encoding, where the rows begin
    (TEXT.encode(), None, [0, 18]),
    (TEXT.encode("utf-8-sig"), None, [3, 21]),
    (TEXT.encode("utf-16"), None, [2, 32]),
    (b"\xfe\xff" + TEXT.encode("utf-16-be"), None, [2, 32]),
    (TEXT.encode("utf-16-be"), "UTF-16BE", [0, 30]),
    (TEXT.encode("utf-32"), None, [4, 64]),
    (TEXT.encode("cp1252"), "windows-1252", [0, 15]),
    (TEXT.encode("gb18030"), "GB18030", [0, 17]),
]


@pytest.mark.parametrize(("data", "encoding", "offsets"), ENCODED, ids=range(len(ENCODED)))
@pytest.mark.parametrize("whole", ["false", "true"])
def test_charsets(tmp_path, data, encoding, offsets, whole):
    options = {"multiLine": whole} | ({"encoding": encoding} if encoding else {})
    _, rows = read_files(tmp_path, data, options=options)
    assert [(row.values["a"], row.reason) for row in rows] == [("é€", None), ("é", None)]
    assert [row.offset for row in rows] == offsets


def test_byte_that_is_not_of_the_charset_is_told(tmp_path):
    data = b'{"a":"\x80"}\n{"a":"\x81"}\n{"a":"z"}'
    _, rows = read_files(tmp_path, data, options={"encoding": "windows-1252"})
    assert [(row.values["a"], row.reason, row.offset) for row in rows] == [
        ("€", None, 0),
        (None, "byte 0x81 is not cp1252", 10),
        ("z", None, 20),
    ]


def test_whole_documents_and_arrays(tmp_path):
    content = b'[{"a":1,\n "b":[1,2]},\n {"a":2, "b":[]}, 5, [{"a":1}]]\n\n{"a":\n7}\n{"a":"x"}'
    schema, rows = read_files(tmp_path, content, options={"multiLine": "true"})
    assert schema == parse_columns("a string, b array<bigint>")
    assert [(row.values["a"], row.offset, row.reason) for row in rows] == [
        ("1", 1, None),
        ("2", 23, None),
        (None, 40, "it is 5, expected an object"),
        (None, 43, "it is an array, expected an object"),
        ("7", 55, None),
        ("x", 64, None),
    ]


def test_cuts_lose_no_line_and_repeat_none(tmp_path):
    """Pieces that end anywhere give the rows of the whole file, each once and with its offset."""
    chance = random.Random(5)
    for _ in range(150):
        end = chance.choice([b"\n", b"\r\n", b"\r"])
        documents = [
            json.dumps({"a": chance.randint(0, 10 ** chance.randint(1, 9)), "b": "x" * chance.randint(0, 30)}).encode()
            for _ in range(chance.randint(1, 30))
        ]
        data = b"".join(document + end * chance.choice([1, 1, 2]) for document in documents)
        data = data.rstrip(b"\r\n") if chance.random() < 0.5 else data
        _, rows = read_files(tmp_path, data, size=chance.randint(1, 60))
        assert [row.values for row in rows] == [json.loads(document) for document in documents]
        assert all(data[row.offset :].startswith(document) for row, document in zip(rows, documents, strict=True))


def test_document_of_50_mb_is_read(tmp_path):
    text = "x" * 50_000_000
    _, rows = read_files(tmp_path, b'{"a":1}\n{"a":2,"b":"%b"}\n{"a":3}' % text.encode(), size=2**20)
    assert [(row.values["a"], len(row.values["b"] or "")) for row in rows] == [(1, 0), (2, len(text)), (3, 0)]


def test_document_of_more_than_128_mib_is_told(tmp_path):
    content = b'{"a":1}\n{"a":"%b"}\n{"a":3}' % (b"x" * (2**27 + 2**23))
    _, rows = read_files(tmp_path, content, columns=parse_columns("a string"))
    assert [(row.values["a"], row.offset, row.reason) for row in rows] == [
        ("1", 0, None),
        (None, 8, "it has more than 128 MiB, which no document may have"),
        ("3", len(content) - 7, None),
    ]


@pytest.mark.exhaustive
def test_wide_document_is_read(tmp_path):
    wide = {f"c{number}": number for number in range(25_000)}
    schema, rows = read_files(tmp_path, json.dumps(wide).encode() + b"\n" + json.dumps(wide).encode())
    assert len(schema) == 25_000
    assert [row.values["c24999"] for row in rows] == [24_999, 24_999]


def test_sample_is_stated_and_what_does_not_fit_it_is_bad(tmp_path):
    content = b'{"a":1,"b":0.5}\n{"a":"x","b":0.5}\n' + b'{"a":2,"b":0.12345678901234567890}\n' + b'{"a":3,"b":1}\n'
    schema, rows = read_files(tmp_path, content, options={"samplingRatio": "0.25"})
    assert schema == parse_columns("a bigint, b double")
    assert [row.reason for row in rows] == [
        None,
        "it does not fit bigint",
        "it has more digits than a double",
        None,
    ]


def test_sample_is_noted(tmp_path):
    reader = JsonReader.make(take_options("json", {"samplingRatio": "0.01"}, "t"), None)
    look = reader.look([write_file(tmp_path / "a.json", b'{"a":1}')], "t", spread)
    assert look.notes == ("the columns are those of one document in 100",)


OPTIONS = [
    # options, columns of {"a":1,"b":0.5,"c":null}
    ({"primitivesAsString": "true"}, "a string, b string, c string"),
    ({"prefersDecimal": "true"}, "a bigint, b decimal(2,1), c string"),
    ({"dropFieldIfAllNull": "true"}, "a bigint, b double"),
    ({"mode": "FAILFAST", "allowComments": "false", "lineSep": "\n"}, "a bigint, b double, c string"),
]


@pytest.mark.parametrize(("options", "columns"), OPTIONS, ids=range(len(OPTIONS)))
def test_options_of_columns(tmp_path, options, columns):
    schema, _ = read_files(tmp_path, b'{"a":1,"b":0.5,"c":null}', options=options)
    assert schema == parse_columns(columns)


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "PERMISSIVE"},
        {"columnNameOfCorruptRecord": "x"},
        {"lineSep": ";"},
        {"samplingRatio": "0"},
        {"samplingRatio": "2"},
        {"samplingRatio": "x"},
        {"encoding": "utf-9"},
        {"allowComments": "true"},
        {"multiLine": "maybe"},
    ],
    ids=str,
)
def test_options_that_are_not_taken_are_refused_by_name(options):
    with pytest.raises(SpecInvalidError, match=next(iter(options))):
        JsonReader.make(take_options("json", options, "t"), None)


def test_map_with_other_keys_is_refused():
    with pytest.raises(SpecInvalidError, match="keys of JSON are text"):
        JsonReader.make(take_options("json", {}, "t"), parse_columns("a struct<m: map<int,string>>"))


NOTHING = [
    (b"", "is empty, without any byte"),
    (b" \n\n", "there is no document with a column in"),
    (b"{}\n[]", "there is no document with a column in"),
    (b'[1]\n{"a":\n', "at byte 1: it is 1, expected an object: '1'"),
    (b"hello\n", "is not JSON: it begins with 'hello'"),
    (b'{\n"a":1\n}', "has JSON documents over several lines"),
]


@pytest.mark.parametrize(("content", "said"), NOTHING, ids=range(len(NOTHING)))
def test_files_without_a_column_are_told(tmp_path, content, said):
    with pytest.raises(SourceFailedError) as error:
        read_files(tmp_path, content)
    assert said in error.value.message


def test_file_without_a_document_has_no_rows_where_columns_are_declared(tmp_path):
    assert read_files(tmp_path, b"", b"\n", columns=parse_columns("a int"))[1] == []


def test_declared_columns_without_a_value_are_noted_by_the_batch(tmp_path):
    """A batch has at most 65,536 rows, and a bad row is no document; once all columns are seen, none is noted."""
    lines = [b'{"a":1}'] * 200_000 + [b'{"a":"x"}', b'{"a":1,"b":2}'] + [b'{"a":3}'] * 200_000
    file = write_file(tmp_path / "a.json", b"\n".join(lines))

    def note(columns: str, size: int) -> list[list[Absent | None]]:
        reader = JsonReader.make(take_options("json", {}, "s.t"), parse_columns(columns))
        look = reader.look([file], "s.t", spread)
        pieces = reader.cut(look, size, spread)
        return [[read_absent(batch.schema) for batch in reader.read(piece, look.schema)] for piece in pieces]

    (batches,) = note("a bigint, b bigint, c bigint", 1 << 30)
    assert len(batches) > 3
    assert Absent.join(batches) == Absent(documents=len(lines) - 1, columns=("c",))
    one, two = note("a bigint, b bigint, c bigint", 2_000_000)
    assert Absent.join([*one, *two]) == Absent(documents=len(lines) - 1, columns=("c",))
    assert [part and part.columns for part in (Absent.join(one), Absent.join(two))] == [("c",), ("b", "c")]
    (first, *_, last) = note("a bigint", 1 << 30)[0]
    assert (first and first.columns, last) == ((), None)


def test_damaged_compression_is_told(tmp_path):
    with pytest.raises(LakeError, match="breaks off"):
        read_files(tmp_path, gzip.compress(b'{"a":1}\n' * 1000)[:-20])


def test_reader_and_look_are_picklable(tmp_path):
    reader = JsonReader.make(take_options("json", {}, "t"), None)
    look = reader.look([write_file(tmp_path / "a.json", b'{"a":1}')], "t", spread)
    assert pickle.loads(pickle.dumps((reader, look))) == (reader, look)
