"""Tables of format version 3 that others made: loads, refreshes and undos keep every row's id, as other readers see it.

The ids are computed here from the Avro files by the specification alone:
https://iceberg.apache.org/spec/#row-lineage
"""

import io
import random
from collections.abc import Iterator
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table.metadata import TableMetadataV3

from lakewriter.commit.iceberg.manifests import StreamedAppend
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.records.facets import Switch, UndoneLoad
from tests.commit import intents
from tests.iceberg.commits import Table
from tests.iceberg.test_changed_tables import change, version
from tests.iceberg.test_readers import extension
from tests.load.lakes import BUCKET
from tests.support.narrow import need

Row = dict[str, Any]


def upgrade(metadata: Row) -> None:
    """What an engine does that upgrades a table; the row ids of its files are given by the next snapshot."""
    version(3)(metadata)


class Lineage:
    """A table whose loads, and what each row should be, are known here."""

    def __init__(self, aws: Any, fields: tuple[str, ...] = ()) -> None:
        self.aws, self.table, self.fields = aws, Table(aws), fields
        self.loads: list[tuple[Any, list[Row]]] = []
        self.committed, self.next_id = 0, 0

    def make(self, days: str, each: int = 2) -> tuple[Any, list[Row]]:
        """A load with ``each`` rows of each day."""
        rows = [{"id": self.next_id + place, "day": day} for place, day in enumerate(sorted(days * each))]
        self.next_id += len(rows)
        job, written = f"j{self.committed + 1}", pa.Table.from_pylist(rows)
        if self.fields:
            return self.table.partitioned(job, written, *self.fields, committed=self.committed), rows
        return self.table.intent(job, written, committed=self.committed), rows

    def load(self, days: str = "ab", kind: Any = "load") -> None:
        found, rows = self.make(days)
        more = {} if kind == "load" else {"switch": Switch(before=0, after=1)}
        self.publish(intents.recast(found, kind, **more))
        if kind == "refresh":
            self.loads.clear()
        if kind == "replace_partitions":
            self.loads = [(of, [row for row in kept if row["day"] not in days]) for of, kept in self.loads]
        self.loads.append((found, rows))

    def publish(self, found: Any) -> None:
        self.committed += 1
        self.table.publish(found, self.committed)

    def undo(self, place: int, snapshot_before: int | None = None, column: str | None = None) -> None:
        """Take a load back."""
        found, _ = self.loads.pop(place)
        undone = UndoneLoad(
            job_id=found.job_id,
            attempt=found.attempt,
            files=len(found.files),
            rows=found.rows,
            reason="",
            next="n",
            snapshot_before=snapshot_before,
            column=column,
            locations=tuple(f"s3://{BUCKET}/{key}" for key in found.files.list_keys()),
        )
        other = {"job_id": f"undo.{found.job_id}", "attempt": f"u{self.committed}", "undoes": undone}
        self.publish(intents.recast(found, "undo", cursor_before=None, cursor_after=None, **other))

    @property
    def rows(self) -> list[Row]:
        return sorted((row for _, rows in self.loads for row in rows), key=lambda row: row["id"])

    def open(self, location: str) -> io.BytesIO:
        return io.BytesIO(self.aws.objects(BUCKET)[location.removeprefix(f"s3://{BUCKET}/")])

    def list_records(self, location: str) -> Iterator[dict[str, Any]]:
        """The records of an Avro file."""
        return (record for record in fastavro.reader(self.open(location)) if isinstance(record, dict))

    def read_row_ids(self) -> dict[int, int]:
        """The id of each row of the current snapshot, by the value of its column."""
        found = dict[int, int]()
        for manifest in self.list_records(need(self.table.seen.current_snapshot()).manifest_list):
            if manifest["content"]:
                continue
            first = manifest["first_row_id"]
            for entry in self.list_records(manifest["manifest_path"]):
                file = entry["data_file"]
                if entry["status"] == 2:
                    continue
                own = file.get("first_row_id")
                if own is None:
                    own, first = first, first + file["record_count"]
                rows = pq.read_table(self.open(file["file_path"]))["id"].to_pylist()
                found |= {value: own + position for position, value in enumerate(rows)}
        return found

    def read_by_duckdb(self) -> list[Row]:
        """The rows, sorted."""
        return read_by_duckdb(self.table, "id, day", "id")


def read_by_duckdb(table: Table, columns: str, order: str) -> list[Row]:
    """The rows that DuckDB sees."""
    endpoint, location = table.aws.url.removeprefix("http://"), table.seen.metadata_location
    with duckdb.connect() as connection:
        for needed in ("httpfs", "avro", "iceberg"):
            connection.execute(f"SET autoinstall_known_extensions = false; LOAD '{extension(needed)}'")
        connection.execute(
            "CREATE SECRET (TYPE s3, KEY_ID 'testing', SECRET 'testing', REGION 'us-east-1', "
            f"ENDPOINT '{endpoint}', URL_STYLE 'path', USE_SSL false)"
        )
        found = connection.sql(f"SELECT {columns} FROM iceberg_scan('{location}') ORDER BY {order}")
        return list(found.to_arrow_table().to_pylist())


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(6))
def test_random_changes(aws, bucket, seed):
    rng = random.Random(seed)
    lake = Lineage(aws, fields=rng.choice([(), ("day",)]))
    aws.hide_missing = False
    for _ in range(rng.randrange(4)):
        lake.load(rng.choice(["a", "ab", "abc"]))
    if not lake.loads:
        lake.table.ready("j", pa.schema([("id", pa.int64()), ("day", pa.string())]))
    change(aws, upgrade)
    change(aws, lambda metadata: metadata["properties"].update({"commit.manifest.min-count-to-merge": "3"}))
    ids, kinds = dict[int, int](), ["load", "load", "refresh", *(["replace_partitions"] if lake.fields else [])]
    for step in range(10):
        whole = [place for place, (found, rows) in enumerate(lake.loads) if rows and len(rows) == found.rows]
        before, snapshot = list(lake.loads), lake.table.seen.current_snapshot()
        if whole and rng.random() < 0.3:
            lake.undo(rng.choice(whole))
        else:
            lake.load(rng.choice(["a", "b", "ac"]), rng.choice(kinds))
            if snapshot and rng.random() < 0.2:
                # What the load found is shown again.
                lake.undo(-1, snapshot.snapshot_id)
                lake.loads = before
        table = lake.table.seen
        assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == lake.rows, step
        now = lake.read_row_ids()
        assert sorted(now) == [row["id"] for row in lake.rows]
        assert len(set(now.values())) == len(now)
        assert {value: row_id for value, row_id in now.items() if value in ids} == {
            value: row_id for value, row_id in ids.items() if value in now
        }
        assert isinstance(table.metadata, TableMetadataV3)
        assert max(now.values(), default=-1) < need(table.metadata.next_row_id)
        ids |= now
    assert lake.read_by_duckdb() == lake.rows


def test_what_is_refused_by_name(aws, bucket):
    """The undo of a load whose files an engine has written anew."""
    lake = Lineage(aws)
    aws.hide_missing = False
    lake.load()
    lake.table.seen.overwrite(lake.table.seen.scan().to_arrow())
    change(aws, upgrade)
    with pytest.raises(SchemaIncompatibleError, match="expected at most 2: the load's files were rewritten"):
        lake.undo(0, column="day")


@pytest.mark.parametrize("number", [2, 3])
def test_another_writer_commits_to_a_branch_between(aws, bucket, monkeypatch, number):
    """It takes a sequence number and row ids of the table, and leaves the snapshot that the load follows as it was."""
    lake, commit, acts = Lineage(aws), StreamedAppend.commit, [1]
    aws.hide_missing = False
    lake.load()
    change(aws, version(number))

    def take(metadata: dict[str, Any]) -> None:
        metadata["last-sequence-number"] += 1
        metadata["next-row-id"] += 100

    def late(self: Any) -> None:
        commit(self)
        if acts and type(self) is StreamedAppend:
            acts.pop()
            change(aws, take)

    monkeypatch.setattr(StreamedAppend, "commit", late)
    lake.load()
    snapshot = need(lake.table.seen.current_snapshot())
    assert (snapshot.sequence_number, acts) == (3, [])
    assert lake.table.seen.scan().to_arrow().num_rows == 8
    if number == 3:
        assert sorted(lake.read_row_ids().values()) == list(range(100, 108))


@pytest.mark.parametrize("number", [2, 3])
def test_the_retention_of_main_stays(aws, bucket, number):
    """Of a load, of a refresh, and of the undo that goes back to the snapshot before it."""
    lake, kept = Lineage(aws), {"max-ref-age-ms": 9, "max-snapshot-age-ms": 5, "min-snapshots-to-keep": 7}
    aws.hide_missing = False
    lake.load()
    change(aws, version(number))
    change(aws, lambda metadata: metadata["refs"]["main"].update(kept))
    lake.load()
    before = need(lake.table.seen.current_snapshot()).snapshot_id
    lake.load("a", "refresh")
    lake.undo(-1, before)
    main = lake.table.seen.metadata.refs["main"]
    assert (main.max_ref_age_ms, main.max_snapshot_age_ms, main.min_snapshots_to_keep) == (9, 5, 7)
    assert lake.table.seen.scan().to_arrow().num_rows == 8
