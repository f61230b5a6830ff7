"""Files in S3: listed and read by the rules of local ones, each as it was when it was listed."""

import gzip
import io
from typing import Any

import fastavro
import pytest

from lakewriter.errors import SourceFailedError
from lakewriter.source.files.file_source import OpenedFiles, open_files
from lakewriter.spec.table_spec import Read
from tests.source.files.reading import in_turn
from tests.source.tables import table

HEADED = {"header": "true"}


@pytest.fixture
def objects(aws: Any, bucket: str) -> Any:
    client = aws.client("s3")
    contents = {
        "in/": b"", "in/b.csv.gz": gzip.compress(b"a\n2\n"), "in/a.csv": b"a\n1\n", "in/_SUCCESS": b"",
        "in/sub/c.csv": b"a\n3\n",
        "days/day=001/a.csv": b"a\n1\n", "days/day=x%20y/a.csv": b"a\n2\n", "odd/x[1].csv": b"a\n9\n",
    }  # fmt: skip
    for key, body in contents.items():
        client.put_object(Bucket=bucket, Key=key, Body=body)
    return client


def opened(path: str, **options: str) -> OpenedFiles:
    read = Read(format="csv", path=path, options=HEADED | options)
    return open_files(table(), read, HEADED | options, in_turn, aside=False)


def rows(source: OpenedFiles) -> list[list[Any]]:
    batches = source.source.read_all(source.cut(1 << 30, in_turn))
    return [list(row.values()) for batch in batches for row in batch.to_pylist()]


FOUND = [
    # the path, options, the rows
    ("s3://acme-lake/in", {}, [["1"], ["2"]]),
    ("s3a://acme-lake/in/", {}, [["1"], ["2"]]),
    ("s3://acme-lake/in/a.csv", {}, [["1"]]),
    ("s3://acme-lake/in/*.csv", {}, [["1"]]),
    ("s3://acme-lake/*/{a,c}.csv", {}, [["1"]]),
    ("s3://acme-lake/in", {"recursiveFileLookup": "true"}, [["1"], ["2"], ["3"]]),
    ("s3://acme-lake/days", {}, [["1", "001"], ["2", "x y"]]),
    ("s3://acme-lake/odd/x[1].csv", {}, [["9"]]),
]


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize(("path", "options", "expected"), FOUND)
def test_rows(path: str, options: dict[str, str], expected: list[list[str]]) -> None:
    assert rows(opened(path, **options)) == expected


@pytest.mark.usefixtures("objects")
def test_nothing_there_is_told() -> None:
    with pytest.raises(SourceFailedError, match="there is no object at or below 's3://acme-lake/none'"):
        opened("s3://acme-lake/none")


def test_an_object_that_is_replaced_is_told(objects: Any) -> None:
    source = opened("s3://acme-lake/in/a.csv")
    objects.put_object(Bucket="acme-lake", Key="in/a.csv", Body=b"a\n7\n")
    with pytest.raises(SourceFailedError, match=r"s3://acme-lake/in/a\.csv has changed since the load listed it"):
        rows(source)


def test_pieces_of_an_object(objects: Any) -> None:
    objects.put_object(Bucket="acme-lake", Key="in/large.csv", Body=b'a\n1\n"2\n3"\n4\n')
    source = opened("s3://acme-lake/in/large.csv")
    pieces = source.cut(4, in_turn)
    assert [(piece.start, piece.end, piece.first_line) for piece in pieces] == [(0, 10, 1), (10, 12, 5)]
    assert [row["a"] for batch in source.source.read_all(pieces) for row in batch.to_pylist()] == ["1", "2\n3", "4"]


def write_avro(first: int) -> bytes:
    out = io.BytesIO()
    rows = [{"n": number} for number in range(first, first + 200)]
    schema: Any = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}]}
    fastavro.writer(out, schema, rows, sync_interval=50)
    return out.getvalue()


def test_pieces_of_an_object_of_avro(objects: Any) -> None:
    objects.put_object(Bucket="acme-lake", Key="avro/a", Body=write_avro(0))
    read = Read(format="avro", path="s3://acme-lake/avro")
    source = open_files(table(), read, {}, in_turn, aside=False)
    pieces = source.cut(100, in_turn)
    assert len(pieces) > 3
    assert [row["n"] for batch in source.source.read_all(pieces) for row in batch.to_pylist()] == list(range(200))
    objects.put_object(Bucket="acme-lake", Key="avro/a", Body=write_avro(7))
    with pytest.raises(SourceFailedError, match="s3://acme-lake/avro/a has changed since the load listed it"):
        list(source.source.read_all(pieces[1:]))
