"""What is read of files: columns, values, and the options with which Spark reads them so."""

import bz2
import gzip

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
