"""Files that other tools are reported to read wrongly: read right, a bad row, or refused; each with its like beside it.

What a message says to do is done where it has options, and has to work.
"""

import gzip
import io
import re
import zipfile
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest
import yaml

from lakewriter.errors import LakeError
from lakewriter.source.files.file_source import open_files
from lakewriter.spec.table_spec import Read
from tests.source.files.reading import in_turn
from tests.source.tables import table

BREAK = 'id,text\n1,"hello\n2,world"\n'
QUOTES = 'id,text\n1,"say ""hi"", ok"\n'
JSON = {"format": "json"}
INFER = {"options": {"inferSchema": "true"}}
PARQUET = {"format": "parquet"}
AVRO, ORC = {"format": "avro"}, {"format": "orc"}
TEN_EUROS = "a,b\n10 €,Müller\n".encode("cp1252")


def read(folder, files: dict[str, bytes | str], declared: dict[str, Any], *, aside: bool = True, **fields: Any) -> Any:
    """The names, the good rows, and why the others are bad."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    given = {"format": "csv", "path": str(folder)} | fields
    given["options"] = ({"header": "true"} if given["format"] == "csv" else {}) | given.get("options", {})
    source = Read(**given)
    options = {name: str(value) for name, value in source.options.items()}
    opened = open_files(table(columns=declared), source, options, in_turn, aside=aside)
    good, bad = [], []
    for batch in opened.source.read_all(opened.cut(1 << 30, in_turn)):
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            mark = row[-1] if aside else {"reason": None}
            values = row[:-1] if aside else row
            if mark["reason"] is None:
                good.append(values)
            else:
                bad.append(mark["reason"])
    return opened.source.schema.names, good, bad


RIGHT = [
    # files, read, columns:, names, rows
    ({"a.csv": BREAK}, {}, {}, ["id", "text"], [("1", "hello\n2,world")]),
    ({"a.csv": BREAK.replace("\n", "\r\n")}, {}, {}, ["id", "text"], [("1", "hello\r\n2,world")]),
    ({"a.csv": 'id,text\n1,"\n"\n2,"a\n\n\nb"\n'}, {}, {}, ["id", "text"], [("1", "\n"), ("2", "a\n\n\nb")]),
    ({"a.csv": '"i\nd",text\n1,2\n'}, {}, {}, ["i\nd", "text"], [("1", "2")]),
    ({"a.csv": BREAK}, {"options": {"multiLine": "false"}}, {}, ["id", "text"], [("1", "hello\n2,world")]),
    ({"a.csv": QUOTES}, {}, {}, ["id", "text"], [("1", 'say "hi", ok')]),
    ({"a.csv": 'id,text\n1,""""\n2,""""""\n'}, {}, {}, ["id", "text"], [("1", '"'), ("2", '""')]),
    ({"a.csv": 'id,text\n1,"a"","\n'}, {}, {}, ["id", "text"], [("1", 'a",')]),
    ({"a.csv": 'id,te""xt\n1,2\n'}, {}, {}, ["id", 'te""xt'], [("1", "2")]),
    ({"a.csv": r'''id,text
1,"\\srv\share"
2,"ends\"
3,"C:\"
'''}, {}, {}, ["id", "text"], [("1", r"\\srv\share"), ("2", "ends\\"), ("3", "C:\\")]),
    ({"a.csv": 'id,text\n1,C:\\\n2,\\n\n3,"\\"\n'}, {}, {}, ["id", "text"], [("1", "C:\\"), ("2", r"\n"), ("3", "\\")]),
    ({"a.csv": 'id,text\n"1\\","\\\\"\n'}, {}, {}, ["id", "text"], [("1\\", r"\\")]),
    ({"a.csv": 'id,text\n1,"\\""\\"\n'}, {}, {}, ["id", "text"], [("1", '\\"\\')]),
    # Headers that differ, one with blanks around a name.
    ({"a.csv": "id,name\n1,a\n", "b.csv": "id, name\n2,b\n"}, {}, {}, ["id", "name"], [("1", "a"), ("2", "b")]),
    ({"a.csv": "id, name\n1,a\n", "b.csv": "name,id\nb,2\n"}, {}, {}, ["id", " name"], [("1", "a"), ("2", "b")]),
    ({"a.csv": "id,name\n1,a\n", "b.csv": "name ,id,x\nb,2,3\n"}, {}, {}, ["id", "name", "x"],
     [("1", "a", None), ("2", "b", "3")]),
    ({"a.csv": "id, name\n1,a\n", "b.csv": "ID\n2\n"}, {}, {}, ["id", " name"],
     [("1", "a"), ("2", None)]),
    ({"a.csv": " id,name\n1,a\n", "b.csv": "id,name\n2,b\n"}, {}, {" id": "int"}, [" id", "name"],
     [(1, "a"), (2, "b")]),
    # Keys of JSON that differ by case.
    ({"a.json": '{"Id":1}\n{"id":3}\n'}, JSON, {}, ["Id", "id"], [(1, None), (None, 3)]),
    ({"a.json": '{"Id":1,"id":2}\n'}, JSON, {}, ["Id", "id"], [(1, 2)]),
    ({"a.json": '{"a":{"Id":1}}\n{"a":{"id":3}}\n'}, JSON, {}, ["a"],
     [({"Id": 1, "id": None},), ({"Id": None, "id": 3},)]),
    ({"a.json": '{"Id":1}\n', "b.json": '{"id":3}\n'}, JSON, {}, ["Id"], [(1,), (3,)]),
    ({"a.json": '{"a":{"Id":1}}\n', "b.json": '{"A":{"id":3}}\n'}, JSON, {}, ["a"], [({"Id": 1},), ({"Id": 3},)]),
    ({"a.json": '{"a":1}\n{"a":2}'}, JSON | {"options": {"multiLine": "true"}}, {}, ["a"], [(1,), (2,)]),
    ({"a.json": '{"a":1}\n{"a":2}'}, JSON, {}, ["a"], [(1,), (2,)]),
    ({"a.csv": "t\n1704448800000\n"}, {}, {"t": {"type": "timestamp", "unit": "epoch_ms"}}, ["t"],
     [(datetime(2024, 1, 5, 10, tzinfo=UTC),)]),
    ({"a.csv": "n\n1.23\n1.230\n1.2\n"}, {}, {"n": "decimal(10,2)"}, ["n"],
     [(Decimal("1.23"),), (Decimal("1.23"),), (Decimal("1.20"),)]),
    ({"a.csv": "n\n1e308\n-1e308\n0e400\n"}, {}, {"n": "double"}, ["n"], [(1e308,), (-1e308,), (0.0,)]),
    # Text in other charsets, and compressed files, whatever their names are.
    ({"a.csv": "a,b\n10 €,Müller\n".encode("utf-16")}, {}, {}, ["a", "b"], [("10 €", "Müller")]),
    ({"a.csv": gzip.compress("a,b\n10 €,Müller\n".encode())}, {}, {}, ["a", "b"], [("10 €", "Müller")]),
    ({"a.csv": gzip.compress(TEN_EUROS)}, {"options": {"encoding": "windows-1252"}}, {}, ["a", "b"],
     [("10 €", "Müller")]),
]  # fmt: skip


@pytest.mark.parametrize(("files", "fields", "columns", "names", "rows"), RIGHT, ids=range(len(RIGHT)))
def test_read_right(tmp_path, files, fields, columns, names, rows):
    assert read(tmp_path, files, columns, **fields) == (names, rows, [])


BAD = [
    # files, read, columns:, good rows, the reasons of bad ones
    ({"a.csv": 'a,b\n1,"x\n2,y\n'}, {}, {}, [("2", "y")], ["a quote is opened and not closed"]),
    ({"a.csv": 'a,b\n1,"x"y\n2,y\n'}, {}, {}, [("2", "y")], ["text follows a closing quote"]),
    ({"a.csv": "a,b\n1\n2,y\n3,4,5\n"}, {}, {}, [("2", "y")],
     ["it has 1 field, expected 2", "it has 3 fields, expected 2"]),
    ({"a.csv": "a,b\n1,x\r2,y\n3,z\n"}, {}, {}, [("3", "z")],
     ["a line end outside quotes differs from the file's"]),
    ({"a.json": '{"a":1}{"a":2}\n{"a":3}\n'}, JSON, {}, [(3,)],
     ["""behind the document, at character 8, is '{"a":2}'"""]),
    ({"a.json": '{"a":1},{"a":2}\n{"a":3}\n'}, JSON, {}, [(3,)],
     ["""behind the document, at character 8, is ',{"a":2}'"""]),
    ({"a.json": '{"a":1} x\n{"a":3}\n'}, JSON, {}, [(3,)], ["behind the document, at character 9, is 'x'"]),
    ({"a.json": '{"a":1,"a":2}\n{"a":3}\n'}, JSON, {}, [(3,)], ['the key "a" is twice in one object']),
    ({"a.json": '{"a":{"b":1,"b":1}}\n{"a":{"b":3}}\n'}, JSON, {}, [({"b": 3},)],
     ['the key "b" is twice in one object']),
    ({"a.json": '{"a":NaN}\n{"a":3}\n'}, JSON, {}, [(3,)], ["NaN is no number of JSON"]),
    ({"a.csv": "t\n1704448800000\n"}, {}, {"t": "timestamp"}, [],
     ["it does not convert to timestamp: it is a number; a unit can be named by from:, such as from: epoch_ms"]),
    ({"a.csv": "t\n12:30\n"}, {}, {"t": "timestamp"}, [],
     ["it does not convert to timestamp: it is not written as YYYY-MM-DD hh:mm:ss"]),
    ({"a.csv": "t\n2024-01-05 tomorrow\n"}, {}, {"t": "date"}, [],
     ["it does not convert to date: it is not a date as YYYY-MM-DD; another spelling can be named by format:"]),
    ({"a.json": '{"t":1704448800000}\n'}, JSON, {"t": "timestamp"}, [],
     ["it does not fit timestamp: it is a number; a unit can be named by from:, such as from: epoch_ms"]),
    ({"a.csv": "n\n1.239\n"}, {}, {"n": "decimal(10,2)"}, [],
     ["it does not convert to decimal(10,2): it has 3 decimal places, and decimal(10,2) has 2"]),
    ({"a.csv": "n\n123456789.5\n"}, {}, {"n": "decimal(10,2)"}, [],
     ["it does not convert to decimal(10,2): it has 9 digits before the point, and decimal(10,2) has 8"]),
    ({"a.csv": "n\n1.5\n"}, {}, {"n": "int"}, [],
     ["it does not convert to int: it is not a whole number of digits 0 to 9"]),
    ({"a.json": '{"n":1.239}\n'}, JSON, {"n": "decimal(10,2)"}, [],
     ["it does not fit decimal(10,2): it has 3 decimal places, and decimal(10,2) has 2"]),
    ({"a.csv": "n\n1e400\n-1e400\n1e-400\n1d\n0x1p3\n"}, {}, {"n": "double"}, [], [
        "it does not convert to double: it is beyond the range of double",
        "it does not convert to double: it is beyond the range of double",
        "it does not convert to double: it is closer to zero than any double",
        "it does not convert to double: it is not a number such as -1234.5 or 1.5e3",
        "it does not convert to double: it is not a number such as -1234.5 or 1.5e3"]),
    ({"a.json": '{"n":1e400}\n{"n":1.5}\n'}, JSON, {}, [(1.5,)],
     ["it does not fit double: it is beyond the range of double"]),
]  # fmt: skip


@pytest.mark.parametrize(("files", "fields", "columns", "rows", "reasons"), BAD, ids=range(len(BAD)))
def test_bad_row(tmp_path, files, fields, columns, rows, reasons):
    assert read(tmp_path, files, columns, **fields)[1:] == (rows, reasons)


def make_workbook() -> bytes:
    """The archive of a workbook with one number, which is shown with zeros before it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr(
            "xl/worksheets/sheet1.xml", '<sheetData><row r="1"><c r="A1" s="1"><v>123</v></c></row></sheetData>'
        )
    return out.getvalue()


WORKBOOK = make_workbook()


def as_avro(*fields: str, records: bytes, count: int = 1) -> dict[str, bytes | str]:
    """A file of one block: ``fields`` are those of its schema as JSON, ``records`` the rows as they are stored."""
    schema = f'{{"type":"record","name":"r","fields":[{",".join(fields)}]}}'.encode()
    out = io.BytesIO(b"Obj\x01\x02\x16avro.schema")
    out.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(out, {"type": "bytes"}, schema)
    out.write(b"\x00" + b"s" * 16)
    fastavro.schemaless_writer(out, {"type": "long"}, count)
    fastavro.schemaless_writer(out, {"type": "bytes"}, records)
    return {"a.avro": out.getvalue() + b"s" * 16}


def as_orc(kind: pa.DataType, *values: Any) -> dict[str, bytes | str]:
    """A file of a column."""
    out = io.BytesIO()
    po.write_table(pa.table({"a": pa.array(values, kind)}), out)
    return {"a.orc": out.getvalue()}


REFUSED: list[tuple[Any, ...]] = [
    # files, read, columns:, what is said, the rows once the options that the message gives are set
    ({"ts=1/a.csv": "ts,x\n5,6\n"}, {}, {},
     "'ts' is a column of the files, and 'ts' a key in the names of their folders",
     None),
    ({"TS=1/a.csv": "ts,x\n5,6\n"}, {}, {}, "'ts' is a column of the files, and 'TS' a key", None),
    ({"ts=1/a.json": '{"ts":5}\n'}, JSON, {}, "'ts' is a column of the files, and 'ts' a key", None),
    ({"ts=1/a.csv": "x,ts\n5,6\n", "ts=2/a.csv": "x\n5\n"}, {}, {},
     "'ts' is a column of the files, and 'ts' a key", None),
    ({"a.csv": TEN_EUROS}, {}, {}, "byte 0x80 is not UTF-8: '10 \\\\x80,M\\\\xfcller'", [("10 €", "Müller")]),
    ({"a.csv": "a,b\ncafé,1\n".encode("latin-1")}, {}, {}, "byte 0xe9 is not UTF-8", [("café", "1")]),
    ({"a.csv": gzip.compress(TEN_EUROS)}, {}, {}, "byte 0x80 is not UTF-8", [("10 €", "Müller")]),
    ({"a.csv": "a,b\n1,x\n".encode("utf-16-le")}, {}, {}, "is UTF-16LE text without a byte order mark, read as UTF-8",
     [("1", "x")]),
    ({"a.csv": "a,b\n1,x\n".encode("utf-16-be")}, {}, {}, "is UTF-16BE text without a byte order mark", [("1", "x")]),
    ({"a.csv": 'a,b\n"say \\"hi\\"",2\n'}, {}, {}, "text follows a closing quote", [('say "hi"', "2")]),
    ({"a.csv": "a,b\n1,x\n2,y\r\n"}, {}, {}, "a line end outside quotes differs from", [("1", "x"), ("2", "y")]),
    # MaterializeInc/materialize#3612, fastavro/fastavro#261: to read bytes would change the column in silence.
    (as_avro('{"name":"a","type":{"type":"bytes","logicalType":"decimal","precision":2,"scale":3}}',
             records=b"\x02\x01"), AVRO, {}, "column 'a' is a decimal of 2 digits, 3 of them behind the point", None),
    (as_avro('{"name":"a","type":{"type":"bytes","logicalType":"decimal","precision":"5","scale":2}}',
             records=b"\x02\x01"), AVRO, {}, "column 'a' is a decimal of '5' digits, 2 of them behind the point", None),
    # tidyverse/readxl#389 and SpartnerNL/Laravel-Excel#1126: codes and long numbers of a workbook are read as others.
    ({"a.xlsx": WORKBOOK}, {}, {}, "is a ZIP archive, as Excel workbooks are, expected text", None),
    ({"a.json": WORKBOOK}, JSON, {}, "is a ZIP archive, as Excel workbooks are, expected text", None),
    ({"a.json": '{"a":\n1}\n{"a":\n2}\n'}, JSON, {}, "has JSON documents over several lines", [(1,), (2,)]),
]  # fmt: skip


@pytest.mark.parametrize(("files", "fields", "columns", "said", "rows"), REFUSED, ids=range(len(REFUSED)))
def test_refused_and_what_to_do(tmp_path, files, fields, columns, said, rows):
    with pytest.raises(LakeError) as caught:
        read(tmp_path, files, columns, aside=False, **fields)
    assert said in caught.value.message
    assert not re.search("ISO-8859-1|PERMISSIVE", caught.value.remedy)
    options = re.search(r"[Ss]et options: (\{.*?\})", caught.value.remedy)
    assert (options is None) == (rows is None)
    if options is not None:
        given = {
            name: str(value).lower() if value is True else value for name, value in yaml.safe_load(options[1]).items()
        }
        assert read(tmp_path, files, columns, aside=False, **fields | {"options": given})[1] == rows


def as_parquet(value: Any, kind: pa.DataType) -> bytes:
    """A file of a column of one value; decimals are kept as integers, as other writers do."""
    out = io.BytesIO()
    pq.write_table(pa.table({"a": pa.array([value], kind)}), out, store_decimal_as_integer=True)
    return out.getvalue()


def late(value: str, before: str = "1") -> dict[str, bytes | str]:
    """A CSV file whose last row, far behind what other tools sample, is of another kind than the rows before it."""
    return {"a.csv": f"a\n{before}\n" + f"{before}\n" * 24_999 + f"{value}\n"}


NINE = 9007199254740993  # 2 ** 53 + 1, which no double holds
REPORTED: list[tuple[Any, ...]] = [
    # where it is reported, files, read, columns:, the first row and the last, how many there are, the bad rows' reasons
    ("turi-code/SFrame#23", late("9a"), INFER, {}, [("1",), ("9a",)], 25_001, []),
    ("apache/texera#6279", late("x"), INFER, {}, [("1",), ("x",)], 25_001, []),
    ("apache/texera#6279", {"a.json": '{"a":1}\n' * 120 + '{"a":"x"}\n'}, JSON, {}, [("1",), ("x",)], 121, []),
    ("apache/texera#8512", {"a.parquet": as_parquet(Decimal("12.34"), pa.decimal128(9, 2))}, PARQUET, {},
     [(Decimal("12.34"),)], 1, []),
    ("duckdb/duckdb#25824", late("1.5"), INFER, {}, [(1.0,), (1.5,)], 25_001, []),
    ("duckdb/duckdb#25824", late("007"), INFER, {}, [("1",), ("007",)], 25_001, []),
    ("duckdb/duckdb#25824", late("1_000"), INFER, {}, [("1",), ("1_000",)], 25_001, []),
    ("duckdb/duckdb#25824", late("2024-01-05 10:00:00", "2024-01-05"), INFER, {},
     [(datetime(2024, 1, 5, tzinfo=UTC),), (datetime(2024, 1, 5, 10, tzinfo=UTC),)], 25_001, []),
    ("duckdb/duckdb#25824", late("1.5"), {}, {"a": "bigint"}, [(1,), (1,)], 25_000,
     ["it does not convert to bigint: it is not a whole number of digits 0 to 9"]),
    ("duckdb/duckdb#25828",
     {"a.json": '{"o":{"k0":1.5,' + ",".join(f'"k{number}":{NINE}' for number in range(1, 250)) + "}}\n"}, JSON, {},
     [({"k0": 1.5} | {f"k{number}": NINE for number in range(1, 250)},)], 1, []),
    ("pandas-dev/pandas#5697", {"a.csv": "x,y\n,1\n1111111111111111111,2\n"}, INFER, {},
     [(None, 1), (1111111111111111111, 2)], 2, []),
    ("pandas-dev/pandas#33766", {"a.json": '{"a":"72057594038135102"}\n'}, JSON, {}, [("72057594038135102",)], 1, []),
    ("pandas-dev/pandas#44684", {"a.json": '{"a":"202101010000000003"}\n'}, JSON, {"a": "bigint"},
     [(202101010000000003,)], 1, []),
    ("pandas-dev/pandas#34120", {"a.csv": "t,u\nTrue,\n,\n"}, {}, {"t": "double", "u": "string"},
     [(None, None)], 1, ["it does not convert to double: it is not a number such as -1234.5 or 1.5e3"]),
    ("risingwavelabs/risingwave#13047", {"a.json": '{"a":327267367867168100000}\n{"a":1}\n'}, JSON, {},
     [(Decimal(327267367867168100000),), (Decimal(1),)], 2, []),
    ("rhysd/fixjson#19", {"a.json": '{"a":3791411052119578828}\n{"a":1.5}\n'}, JSON, {},
     [(Decimal(3791411052119578828),), (Decimal("1.5"),)], 2, []),
    ("apache/spark#31319", {"a.parquet": as_parquet(Decimal("1.0"), pa.decimal128(2, 1))}, PARQUET,
     {"a": "decimal(3,2)"}, [(Decimal("1.00"),)], 1, []),
    ("apache/spark#31319",
     {"a.parquet": as_parquet(Decimal("1.0"), pa.decimal128(2, 1)),
      "b.parquet": as_parquet(Decimal("1.25"), pa.decimal128(3, 2))}, PARQUET, {},
     [(Decimal("1.00"),), (Decimal("1.25"),)], 2, []),
    ("apache/spark#58495", {"a.parquet": as_parquet(b"\xff\x00ab", pa.binary(4))}, PARQUET, {"a": "string"}, [], 0,
     ["it does not convert to string: a part of the value would be lost"]),
    ("NVIDIA/cudf#700", {"a.csv": "a\n1 \n2\n"}, INFER, {}, [("1 ",), ("2",)], 2, []),
    # By the specification of Avro a logical type that is not valid is none. These two bytes hold four digits at most,
    # but no digit is lost where fewer are stored than the type says.
    ("MaterializeInc/materialize#3628",
     as_avro('{"name":"a","type":{"type":"fixed","name":"f","size":2,"logicalType":"decimal","precision":5,"scale":2}}',
             records=b"\x0b\xe9"), AVRO, {}, [(Decimal("30.49"),)], 1, []),
    ("apache/avro#2278",
     as_avro('{"name":"a","type":"bytes","logicalType":"decimal","precision":4,"scale":2}', records=b"\x04\x0b\xe9"),
     AVRO, {}, [(b"\x0b\xe9",)], 1, []),
    ("duckdb/duckdb-avro#100",
     as_avro('{"name":"a","type":{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}}',
             records=b"\x04\x0b\xe9\x06\x0f\x42\x0d", count=2), AVRO, {},
     [(Decimal("30.49"),), (Decimal("9999.49"),)], 2, []),
    ("apache/spark#30221", as_avro('{"name":"a","type":"long"}', records=bytes(range(0, 50, 2)), count=25), AVRO, {},
     [(0,), (24,)], 25, []),
    ("apache/doris#4096", as_orc(pa.decimal128(10, 4), Decimal("-0.0014"), Decimal("-0.0300")), ORC, {},
     [(Decimal("-0.0014"),), (Decimal("-0.0300"),)], 2, []),
    ("NVIDIA/cudf#7016", as_orc(pa.decimal128(38, 18), *[Decimal("0.007123")] * 10_500), ORC, {},
     [(Decimal("0.007123"),), (Decimal("0.007123"),)], 10_500, []),
    ("scritchley/orc#37", as_orc(pa.decimal128(9, 7), Decimal("47.5296917"), Decimal("-8.8199895")), ORC, {},
     [(Decimal("47.5296917"),), (Decimal("-8.8199895"),)], 2, []),
    ("wireservice/csvkit#50", {"a.csv": 'a,b\n"1,234",1\n5,2\n'}, INFER, {}, [("1,234", 1), ("5", 2)], 2, []),
]  # fmt: skip


@pytest.mark.parametrize(("where", "files", "fields", "columns", "ends", "count", "reasons"), REPORTED)
def test_read_right_or_told(tmp_path, where, files, fields, columns, ends, count, reasons):
    _, good, bad = read(tmp_path, files, columns, **fields)
    assert (good[:1] + good[1:][-1:], len(good), bad) == (ends, count, reasons)


def test_a_value_that_does_not_fit_is_told_with_its_code(tmp_path):
    for text, kind in (("1e400", "double"), ("1.239", "decimal(10,2)"), ("1704448800000", "timestamp")):
        with pytest.raises(LakeError, match="VALUE_UNREPRESENTABLE"):
            read(tmp_path, {"a.csv": f"n\n{text}\n"}, {"n": kind}, aside=False)
    unit = {"n": {"type": "timestamp", "unit": "epoch_ms"}}
    assert read(tmp_path, {"a.csv": "n\n0\n"}, unit, aside=False)[1] == [(datetime(1970, 1, 1, tzinfo=UTC),)]
    days = {"n": {"type": "date", "format": "dd.MM.yyyy"}}
    assert read(tmp_path, {"a.csv": "n\n05.01.2024\n"}, days, aside=False)[1] == [(date(2024, 1, 5),)]
