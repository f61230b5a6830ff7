"""What a merge reads of files, and how it holds the rows of a large load."""

import io
import random
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.aws import Clients
from lakewriter.commit.iceberg import deleted_keys, merge_keys, merge_rows
from lakewriter.commit.iceberg.file_io import CLIENTS, LOAD, WRITTEN, ClientsFileIO
from lakewriter.receipt import DeletedKeys
from lakewriter.records.facets import MergeIntent
from tests.commit import intents
from tests.iceberg.commits import ACCESS, Table
from tests.iceberg.test_merge import SCHEMA, merge, open_tables, read, row
from tests.support.narrow import need


def test_rows_are_read_in_several_batches(aws, bucket, monkeypatch):
    monkeypatch.setattr(merge_keys, "ROWS", 2)
    table = Table(aws)
    merge(table, [row(number, 1, "a") for number in range(7)], 1)
    merge(table, [row(number, 2, "b") for number in (1, 2, 5, 6)], 2)
    assert [(seen["id"], seen["v"]) for seen in read(table)] == [
        (0, "a"), (1, "b"), (2, "b"), (3, "a"), (4, "a"), (5, "b"), (6, "b"),
    ]  # fmt: skip


def merge_in_turn(table: Table, seed: int) -> list[Any]:
    """Merge a random load after another one, whose deletes are noted; return what readers see after each, the noted
    keys and the counts."""
    rng, objects, before, seen = random.Random(seed), dict[str, bytes](), None, list[Any]()
    schema = pa.schema([("part", pa.string()), *SCHEMA])
    for number in range(1, 7):
        table.clients = Clients(ACCESS)
        rows = [
            {**row(rng.randrange(9), rng.randrange(number * 2), f"{number}-{place}"), "part": rng.choice("xyz"),
             "gone": rng.random() < 0.4}
            for place in range(rng.randrange(5, 40))
        ]  # fmt: skip
        folds, level = DeletedKeys.plan_fold(before.objects if before else (), len(rows))
        by = MergeIntent(
            keys=("part", "id"), order_by=("at",), deleted="gone", deleted_keys=f"deleted/{number}", deleted_seconds=9,
            deleted_before=before, deleted_folds=folds, deleted_level=level, compared=rng.choice([None, ("v",)]),
        )  # fmt: skip
        found = table.intent(f"j{number}", pa.Table.from_pylist(rows, schema), committed=number - 1)
        found = intents.recast(found, "merge", merge=by)
        found = found.model_copy(update={"started": datetime(2026, 1, 1, tzinfo=UTC)}).reading_by(objects.__getitem__)
        tables = open_tables(table, found)
        key, body = need(tables.note_deleted_keys(found))
        objects[key], before = body, found.deleted_after
        tables.publish(found, number)
        tables.read_back(found)
        seen.append((read(table), pq.read_table(io.BytesIO(body)).to_pylist(), tables.counts))
    return seen


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(4))
def test_rows_that_are_merged_in_parts(aws, bucket, monkeypatch, seed):
    """The parts are in a temporary file, the table's rows are looked up a few at a time, and deleted keys are in small
    row groups."""
    whole = merge_in_turn(Table(aws), seed)
    monkeypatch.setattr(merge_rows, "PART", 4)
    monkeypatch.setattr(merge_rows, "PENDING", 100)
    monkeypatch.setattr(merge_rows, "SAMPLED", 1)
    monkeypatch.setattr(deleted_keys, "_GROUP", 2)
    assert merge_in_turn(Table(aws, name="parts"), seed) == whole


def test_end_of_a_file_that_is_read_in_parts(aws, bucket):
    aws.client("s3").put_object(Bucket=bucket, Key="k", Body=b"abc")
    io = ClientsFileIO({CLIENTS: Table(aws).clients, LOAD: "", WRITTEN: []})
    parts = io.open_parts(f"s3://{bucket}/k", 3)
    assert [parts.read(2), parts.tell(), parts.read(9), parts.read(1), parts.seek(-2, 2), parts.read()] == [
        b"ab", 2, b"c", b"", 1, b"bc",
    ]  # fmt: skip


def test_a_process_reads_small_files_once(aws, bucket):
    """A continuous run merges onto the files of the batches before: their keys and deletes do not change."""
    table, asked, by = Table(aws), list[list[str]](), MergeIntent(keys=("id",), order_by=())
    for number in range(6):
        rows = pa.table({"id": [0, number], "v": ["a", "b"]})
        load = intents.recast(table.intent(f"j{number}", rows, committed=number), "merge", merge=by)
        before = len(aws.history)
        table.publish(load, number + 1)
        asked.append([call.key for call, _ in aws.history[before:] if call.action == "s3:GetObject"])
    # Its own file, and the deletes that it has written.
    assert [sum(key.endswith(".parquet") for key in keys) for keys in asked] == [1, 2, 2, 2, 2, 2]
