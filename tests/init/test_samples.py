"""What is read of files: columns, values, and the options with which Spark reads them so."""

import bz2
import gzip

import fastavro
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from lakewriter.init.file_tables import find_tables
from lakewriter.init.samples import read_sample

SAMPLES = [
    # file, bytes, format, rows, options of spark.read
    ("a.csv", b'id,name\n1,\n2,""\n', "csv", [{"id": "1", "name": None}, {"id": "2", "name": ""}], {"header": True}),
    ("a.tsv", b"id\tname\n1\tx\n", "csv", [{"id": "1", "name": "x"}], {"header": True, "sep": "\t"}),
    ("a.txt", b"id|name\n1|x\n", "csv", [{"id": "1", "name": "x"}], {"header": True, "sep": "|"}),
    ("a.csv.gz", gzip.compress(b"id,name\n1,x\n", mtime=0), "csv", [{"id": "1", "name": "x"}], {"header": True}),
    ("a.csv.bz2", bz2.compress(b"id,name\n1,x\n"), "csv", [{"id": "1", "name": "x"}], {"header": True}),
    # A row that has another number of columns is left out of the sample.
    ("a.csv", b"id,name\n1,x\n2\n", "csv", [{"id": "1", "name": "x"}], {"header": True}),
    ("a.jsonl", b'{"id": 1, "at": "x"}\n{"id": 2}\n', "json", [{"id": 1, "at": "x"}, {"id": 2, "at": None}], {}),
    ("a.json", b'[{"id": 1},\n {"id": 2}]\n', "json", [{"id": 1}, {"id": 2}], {"multiLine": True}),
    ("a.json", b'{\n  "id": 1,\n  "n": 2.5\n}\n', "json", [{"id": 1, "n": 2.5}], {"multiLine": True}),
    ("a.json", b'\xef\xbb\xbf{"id": true}\n', "json", [{"id": True}], {}),
    ("a.json", b'{"id": 1}\n{"id": 2.5}\n', "json", [{"id": 1.0}, {"id": 2.5}], {}),
]


@pytest.mark.parametrize(("name", "data", "kind", "rows", "options"), SAMPLES)
def test_text(tmp_path, name, data, kind, rows, options):
    (tmp_path / name).write_bytes(data)
    (table,) = find_tables(str(tmp_path / name))
    sample = read_sample(table.paths, table.head)
    assert (table.head.format, sample.rows.to_pylist(), dict(sample.options)) == (kind, rows, options)
    assert sample.is_whole


def write_avro(table, path):
    kinds = {pa.int64(): "long", pa.string(): "string", pa.bool_(): "boolean"}
    fields = [{"name": field.name, "type": kinds[field.type]} for field in table.schema]
    with path.open("wb") as out:
        fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, table.to_pylist())


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_columns_of_all_files_are_read(tmp_path, kind):
    write = {"parquet": pq.write_table, "orc": pa.orc.write_table, "avro": write_avro}[kind]
    write(pa.table({"id": [1], "a": ["x"], "b": ["y"]}), tmp_path / f"1.{kind}")
    write(pa.table({"id": [2], "a": ["z"], "b": ["y"], "more": [True]}), tmp_path / f"2.{kind}")
    (table,) = find_tables(str(tmp_path))
    assert (table.head.format, table.head.names) == (kind, ("id", "a", "b"))
    sample = read_sample(table.paths, table.head)
    assert sample.rows.to_pylist() == [
        {"id": 1, "a": "x", "b": "y", "more": None},
        {"id": 2, "a": "z", "b": "y", "more": True},
    ]


def test_a_large_file_is_read_in_part(tmp_path, monkeypatch):
    monkeypatch.setattr("lakewriter.init.samples.LOOK_ROWS", 1)
    (tmp_path / "1.csv").write_bytes(b"id,name\n0,abc\n1,abc\n")
    (tmp_path / "2.csv").write_bytes(b"id,name\n2,abc\n")
    (table,) = find_tables(str(tmp_path))
    sample = read_sample(table.paths, table.head)
    assert (sample.rows["id"].to_pylist(), sample.is_whole) == (["0", "1"], False)


def test_names_are_those_that_a_load_gives(tmp_path):
    (tmp_path / "a.csv").write_bytes(b",id,value,Value,id\n0,7,8,9,1\n")
    (table,) = find_tables(str(tmp_path / "a.csv"))
    sample = read_sample(table.paths, table.head)
    assert table.head.names == ("_c0", "id", "value", "Value", "id")
    assert sample.rows.to_pylist() == [{"_c0": "0", "value": "8", "Value": "9"}]
    assert "more than once" in sample.notes[0]


READ_BACK = [
    # file, bytes, what a load would say of it with the options that are proposed
    ("a.csv", b'id,name\n1,"say ""hi"""\n2,"two\nlines"\n', None),
    ("a.csv", "id,name\n1,M\u00fcller\n".encode("utf-16"), None),
    ("a.csv", "id;name\n1;M\u00fcller\n".encode("cp1252"), None),
    ("a.csv", "id,name\n1,\u041f\u0440\u0438\u0432\u0435\u0442\n".encode("cp1251"), "a load would end at 1 row, "),
    ("a.csv", b"id,name\n1,x\n2\n", "a load would end at 1 row, unless on_bad_row keeps them apart: "),
    ("a.json", b'[{"id": 1},\n {"id": 2}]\n', None),
    ("a.json", b'{"id": 1}\n{"id": 2}{"id": 3}\n', "a load would end at 1 row, unless on_bad_row keeps them apart: "),
]


@pytest.mark.parametrize(("name", "data", "said"), READ_BACK, ids=range(len(READ_BACK)))
def test_what_is_proposed_is_read_back(tmp_path, name, data, said):
    (tmp_path / name).write_bytes(data)
    (table,) = find_tables(str(tmp_path / name))
    notes = read_sample(table.paths, table.head).notes
    assert [note[: len(said or "")] for note in notes] == ([] if said is None else [said])


STORED = pa.table(
    {
        "id": pa.array([1, 2], pa.uint64()),
        "took": pa.array([1, 2], pa.duration("us")),
        "kind": pa.array(["a", "b"]).dictionary_encode(),
        "n": [1, 2],
    }
)


def test_types_that_a_load_changes_are_told(tmp_path):
    """How values are encoded in the file is no other type."""
    pq.write_table(STORED, tmp_path / "a.parquet")
    (table,) = find_tables(str(tmp_path / "a.parquet"))
    sample = read_sample(table.paths, table.head)
    assert sample.retyped == {"id": ("uint64", "decimal(20,0)"), "took": ("duration[us]", "bigint")}


def test_types_that_a_load_changes_of_avro_are_told(tmp_path):
    fields = [
        {"name": "at", "type": ["null", {"type": "int", "logicalType": "time-millis"}]},
        {"name": "kind", "type": {"type": "enum", "name": "e", "symbols": ["A"]}},
    ]
    with (tmp_path / "a.avro").open("wb") as out:
        fastavro.writer(out, {"type": "record", "name": "r", "fields": fields}, [{"kind": "A"}])
    (table,) = find_tables(str(tmp_path / "a.avro"))
    assert read_sample(table.paths, table.head).retyped == {"at": ("time32[ms]", "string")}
