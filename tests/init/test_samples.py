"""What is read of files: columns, values, and the options with which Spark reads them so."""

import bz2
import gzip

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from lakewriter.init.file_tables import find_tables
from lakewriter.init.samples import read_back, read_sample

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
    sample = read_sample(table.files, table.head)
    assert (table.head.format, sample.rows.to_pylist(), dict(sample.options)) == (kind, rows, options)
    assert sample.is_whole


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_columns_of_all_files_are_read(tmp_path, kind):
    write = {"parquet": pq.write_table, "orc": pa.orc.write_table}[kind]
    write(pa.table({"id": [1], "a": ["x"], "b": ["y"]}), tmp_path / f"1.{kind}")
    write(pa.table({"id": [2], "a": ["z"], "b": ["y"], "more": [True]}), tmp_path / f"2.{kind}")
    (table,) = find_tables(str(tmp_path))
    sample = read_sample(table.files, table.head)
    assert sample.rows.to_pylist() == [
        {"id": 1, "a": "x", "b": "y", "more": None},
        {"id": 2, "a": "z", "b": "y", "more": True},
    ]


def test_a_large_file_is_read_in_part(tmp_path, monkeypatch):
    monkeypatch.setattr("lakewriter.init.samples.LOOK_BYTES", 25)
    (tmp_path / "a.csv").write_bytes(b"id,name\n" + b"".join(b"%d,abc\n" % number for number in range(9)))
    (table,) = find_tables(str(tmp_path / "a.csv"))
    sample = read_sample(table.files, table.head)
    # 25 bytes end within the third row, which is left out.
    assert (sample.rows["id"].to_pylist(), sample.is_whole) == (["0", "1"], False)


@pytest.mark.spark
def test_spark_reads_the_same_names(spark, tmp_path):
    (tmp_path / "a.csv").write_bytes(b",id,value,Value\n0,7,8,9\n")
    (table,) = find_tables(str(tmp_path / "a.csv"))
    options = read_sample(table.files, table.head).options
    assert tuple(spark.read.csv(str(tmp_path / "a.csv"), **options).columns) == table.head.names


READ_BACK = [
    # file, bytes, what a load would say of it with the options that are proposed
    ("a.csv", b'id,name\n1,"say ""hi"""\n2,"two\nlines"\n', None),
    ("a.csv", "id,name\n1,M\u00fcller\n".encode("utf-16"), None),
    ("a.csv", "id;name\n1;M\u00fcller\n".encode("cp1252"), None),
    ("a.csv", b"id,name\n1,x\n2\n", "a load would end at 1 row, unless on_bad_row keeps them apart: "),
    ("a.json", b'[{"id": 1},\n {"id": 2}]\n', None),
    ("a.json", b'{"id": 1}\n{"id": 2}{"id": 3}\n', "a load would end at 1 row, unless on_bad_row keeps them apart: "),
]


@pytest.mark.parametrize(("name", "data", "said"), READ_BACK, ids=range(len(READ_BACK)))
def test_what_is_proposed_is_read_back(tmp_path, name, data, said):
    (tmp_path / name).write_bytes(data)
    (table,) = find_tables(str(tmp_path / name))
    notes = read_back(table.name, table.head.format, table.paths, read_sample(table.files, table.head).options)
    assert [note[: len(said or "")] for note in notes] == ([] if said is None else [said])
