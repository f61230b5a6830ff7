"""Rows of one key and order in a merged table: which one stays, by each way in which rows are read."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import permutations
from typing import Any, Final
from unittest.mock import patch

import botocore.client
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.aws import Clients
from lakewriter.naming import ORDINAL
from lakewriter.run.loader import load
from lakewriter.source import file_frames, file_splits
from lakewriter.source.task_sizes import Sizes
from tests.iceberg.test_readers import extension
from tests.load.lakes import BUCKET
from tests.load.test_merged import CALL, DELETED, Killed, begin_anew, make, rows
from tests.support.narrow import need

NEW, DELETE = "new", "D"


def write(users, files):
    """Files of rows, each with the key 1 and the order 5; they are listed by name."""
    folder = users.folder / "users"
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for number, values in enumerate(files):
        given = [{"id": 1, "at": 5, "v": v, "part": v} for v in values]
        if users.table.get("read", {}).get("format") == "json":
            (folder / f"{number}.json").write_text("".join(f"{json.dumps(one)}\n" for one in given), "utf-8")
        else:
            pq.write_table(pa.Table.from_pylist(given), folder / f"{number}.parquet")


def run(users, spark, job, files):
    write(users, files)
    report = load(users.spec, job_id=job, clients=Clients(users.spec.access), spark=lambda: spark)
    assert report.status == "done", report.tables


SQL = {"sql": "SELECT * FROM given", "views": {"given": {"format": "parquet", "path": "users"}}}
IN_ORDER: Final[Mapping[str, Mapping[str, Any]]] = {
    "files": {},
    "lines": {"read": {"format": "json", "path": "users"}},
    "files that Spark judges": {"deleted": "concat(v, '') = 'D'"},
    "files with bad rows": {"on_bad_row": {"action": "quarantine", "at_most": 1.0}},
    "by partition": {"partition_by": ["part"]},
    "by bucket": {"partition_by": ["bucket(3, part)"]},
    "sorted": {"sort_by": ["part"]},
    "by partition, sorted": {"partition_by": ["id"], "sort_by": ["part"]},
    "lines, sorted": {"read": {"format": "json", "path": "users"}, "sort_by": ["part"]},
    "by partition, with bad rows": {"partition_by": ["part"], "on_bad_row": {"action": "quarantine", "at_most": 1.0}},
}
WITHOUT_ORDER: Final[Mapping[str, Mapping[str, Any]]] = {
    "a query": {"read": SQL},
    "by Spark": {"read": {"format": "parquet", "path": "users", "engine": "spark"}},
    "a query, by partition": {"read": SQL, "partition_by": ["part"]},
    "a query, sorted": {"read": SQL, "sort_by": ["part"]},
}
FEEDS: Final = {**IN_ORDER, **WITHOUT_ORDER}
LOADS: Final[list[tuple[list[list[str]], list[str], list[str]]]] = [
    # The rows of each load, and what the table has afterwards: of rows in the order of files, and of others.
    ([[DELETE, NEW]], [NEW], []),
    ([[NEW, DELETE]], [], []),
    ([[DELETE], [NEW]], [], []),
    ([[NEW], [DELETE]], [], []),
]


def make_fed(folder, aws, spark, feed):
    return make(folder, aws, **{**DELETED, **FEEDS[feed]}, spark=spark)


@pytest.mark.spark
@pytest.mark.one_in(16)
@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize(("loads", "in_order", "others"), LOADS)
def test_a_delete_and_a_row(tmp_path, aws, bucket, spark, feed, loads, in_order, others):
    users = make_fed(tmp_path, aws, spark, feed)
    for number, values in enumerate(loads):
        run(users, spark, f"job-{number}", [values])
    assert [v for _, _, v in rows(users)] == (in_order if feed in IN_ORDER else others)
    assert users.differences() == []


@pytest.mark.spark
@pytest.mark.one_in(9)
@pytest.mark.parametrize("feed", IN_ORDER)
@pytest.mark.parametrize("tasks", [1, 2, 7])
def test_the_row_further_down_stays_however_files_are_split(tmp_path, aws, bucket, spark, monkeypatch, feed, tasks):
    """Over files, and over the parts of one."""
    monkeypatch.setattr(file_splits, "_ONE_TASK_BYTES", 0)
    for module in (file_splits, file_frames):
        monkeypatch.setattr(module, "PIECE_BYTES", 40)
    cut_into(monkeypatch, tasks)
    users = make_fed(tmp_path, aws, spark, feed)
    run(users, spark, "a", [["a", "b", DELETE], [DELETE, "c"], [DELETE, "d", "e"], ["f"], [DELETE, "last"]])
    assert [v for _, _, v in rows(users)] == ["last"]
    run(users, spark, "b", [["f"], [DELETE, "last"], ["g", DELETE]])
    assert rows(users) == []


@pytest.mark.spark
@pytest.mark.one_in(6)
@pytest.mark.parametrize("changes", [{"partition_by": ["part"]}, {"sort_by": ["part"]}], ids=str)
@pytest.mark.parametrize("values", list(permutations([DELETE, "a", "z"])), ids=str)
def test_the_row_further_down_stays_after_a_retry(tmp_path, aws, bucket, spark, monkeypatch, changes, values):
    """Of a load whose driver dies once all is staged; the retry has other tasks."""
    monkeypatch.setattr(file_splits, "_ONE_TASK_BYTES", 0)
    users, files = make(tmp_path, aws, **DELETED, **changes, spark=spark), [[value] for value in values]
    cut_into(monkeypatch, 3)
    with die_at(lambda key: "/loads/a/" in key and "/tables/" in key), pytest.raises(Killed):
        run(users, spark, "a", files)
    assert users.iceberg().current_snapshot() is None
    cut_into(monkeypatch, 2)
    run(users, spark, "a", files)
    assert [v for _, _, v in rows(users)] == [v for v in values[-1:] if v != DELETE]
    assert users.differences() == []


@pytest.mark.spark
@pytest.mark.parametrize("changes", [{"partition_by": ["part"]}, {"sort_by": ["part"]}], ids=str)
def test_the_row_further_down_stays_beside_bad_rows(tmp_path, aws, bucket, spark, changes):
    """Whose numbers leave with them, before and behind the others, and within one batch."""
    rules = {"columns": {"at": "bigint"}, "on_bad_row": {"action": "quarantine", "at_most": 1.0}}
    read = {"read": {"format": "json", "path": "users"}}
    users = make(tmp_path, aws, **DELETED, **changes, **rules, **read, spark=spark)
    (tmp_path / "users").mkdir()
    given = [(1, "soon", "a"), (1, 5, "z"), (2, 5, "b"), (1, "soon", "y"), (1, 5, DELETE), (2, 5, DELETE), (2, 5, "a"),
             (2, "soon", "x")]  # fmt: skip
    lines = (json.dumps({"id": key, "at": at, "v": v, "part": v}) for key, at, v in given)
    (tmp_path / "users" / "0.json").write_text("\n".join(lines), "utf-8")
    report = load(users.spec, job_id="a", clients=Clients(users.spec.access), spark=lambda: spark)
    assert (report.status, need(report.tables[0].set_aside).rows) == ("done", 3)
    assert rows(users) == [(2, 5, "a")]
    assert users.differences() == []


@pytest.mark.spark
@pytest.mark.parametrize("changes", [{"partition_by": ["part"]}, {"sort_by": ["part"]}], ids=str)
def test_readers_pass_over_the_numbers_of_rows(tmp_path, aws, bucket, spark, changes):
    users = make(tmp_path, aws, **DELETED, **changes, spark=spark)
    run(users, spark, "a", [["a", DELETE], ["z", "b"]])
    table = users.iceberg()
    keys = [task.file.file_path.removeprefix(f"s3://{BUCKET}/") for task in table.scan().plan_files()]
    objects = aws.objects(BUCKET)
    assert all(pq.read_schema(pa.BufferReader(objects[key])).names[-1] == ORDINAL for key in keys)
    assert ORDINAL not in {field.name for schema in table.metadata.schemas for field in schema.fields}
    for path, body in objects.items():
        file = tmp_path / "bucket" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)
    root = tmp_path / "bucket" / table.location().removeprefix(f"s3://{BUCKET}/")
    version = table.metadata_location.rpartition("/")[2].removesuffix(".metadata.json")
    with duckdb.connect() as connection:
        for needed in ("avro", "iceberg"):
            connection.execute(f"LOAD '{extension(needed)}'")
        scan = f"iceberg_scan('{root}', version = '{version}', allow_moved_paths = true)"
        seen = connection.sql(f"SELECT * FROM {scan}").to_arrow_table()
    assert seen.column_names == ["id", "at", "v", "part", "_deleted"]
    assert seen["v"].to_pylist() == ["b"]


@contextmanager
def die_at(is_last: Callable[[str], bool]) -> Iterator[None]:
    """Let the process be gone at the first creation of such an object."""
    call = getattr(botocore.client.BaseClient, CALL)

    def die(client, operation, parameters):
        if operation == "PutObject" and is_last(parameters["Key"]):
            raise Killed
        return call(client, operation, parameters)

    with patch.object(botocore.client.BaseClient, CALL, die):
        yield


def cut_into(monkeypatch, tasks):
    """Let files be read in so many tasks or more."""
    for module in (file_splits, file_frames):
        monkeypatch.setattr(module, "read_sizes", lambda _: Sizes(2**30, 1, tasks))


@pytest.mark.spark
@pytest.mark.one_in(4)
@pytest.mark.parametrize("feed", WITHOUT_ORDER)
def test_rows_without_an_order_are_told_apart_by_their_values(tmp_path, aws, bucket, spark, feed):
    """Whatever order they are read in: those of a retry may come in another one."""
    seen = set()
    for number, values in enumerate(permutations("abc")):
        folder = tmp_path / str(number)
        folder.mkdir()
        users = make_fed(folder, aws, spark, feed)
        begin_anew(aws)
        run(users, spark, "a", [[value] for value in values])
        seen.add(tuple(rows(users)))
    assert len(seen) == 1
