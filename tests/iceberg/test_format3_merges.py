"""Merges and compactions of tables of format version 3: rows are those that a dictionary has, and keep their ids.

The ids are computed here from the Avro, Parquet and Puffin files by the specification alone:
https://iceberg.apache.org/spec/#row-lineage
"""

import io
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.metadata import TableMetadataV3
from pyiceberg.table.puffin import PuffinFile

from lakewriter.commit.iceberg.deletion_vectors import plan_files, read_vector
from lakewriter.commit.iceberg.snapshot_presence import read_counts
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.records.facets import Switch, UndoneLoad
from tests.commit import intents
from tests.iceberg.commits import Table
from tests.iceberg.test_changed_tables import change, setting, version
from tests.iceberg.test_merge import SCHEMA, Row, apply, foreign, make, merge, read, row, show
from tests.load.lakes import BUCKET
from tests.support.narrow import need
from tests.support.open_catalog import OpenCatalog


class Merged:
    """A table that rows are merged into. ``rows`` and ``ids`` have what is expected, by key."""

    def __init__(self, aws: Any, fields: tuple[str, ...] = ()) -> None:
        self.aws, self.table, self.fields = aws, Table(aws), fields
        self.rows, self.ids = dict[Any, Row](), dict[Any, int]()
        self.committed = 0

    def merge(self, rows: list[Row]) -> Any:
        """Merge; rows that are there already keep their ids, others get ids that no row has had."""
        rows = sorted(rows, key=lambda one: one["day"])
        self.committed += 1
        found = merge(self.table, rows, self.committed, fields=self.fields)
        apply(self.rows, rows)
        return found

    def undo(self, found: Any, before: int | None) -> None:
        """Take the last merge back."""
        files = tuple(f"s3://{BUCKET}/{key}" for key in found.files.list_keys())
        undone = UndoneLoad(
            job_id=found.job_id,
            attempt=found.attempt,
            files=len(files),
            rows=found.rows,
            reason="",
            next="n",
            snapshot_before=before,
            locations=files,
        )
        own = {"job_id": f"undo.{found.job_id}", "attempt": f"u{self.committed}", "undoes": undone}
        self.committed += 1
        self.table.publish(intents.recast(found, "undo", cursor_before=None, cursor_after=None, **own), self.committed)

    def compact(self, found: Any = None) -> Any:
        """Compact what is worth it, or what was read before; return the counts."""
        found = found or self.table.compacted(f"c{self.committed}", self.committed)
        self.committed += 1
        self.table.publish(found, self.committed)
        return need(read_counts(self.table.seen.current_snapshot(), "compact"))

    def check(self) -> None:
        """The rows, and their ids: those of rows that were there before are the same."""
        assert read(self.table) == show(self.rows)
        now = self.read_ids()
        assert now.keys() == self.rows.keys()
        known = self.ids.keys() & now.keys()
        assert {key: now[key] for key in known} == {key: self.ids[key] for key in known}
        assert len(set(now.values())) == len(now)
        metadata = self.table.seen.metadata
        assert isinstance(metadata, TableMetadataV3)
        assert max(now.values(), default=-1) < need(metadata.next_row_id)
        self.ids = now

    def open(self, location: str) -> io.BytesIO:
        return io.BytesIO(self.aws.objects(BUCKET)[location.removeprefix(f"s3://{BUCKET}/")])

    def list_records(self, location: str) -> Iterator[dict[str, Any]]:
        return (record for record in fastavro.reader(self.open(location)) if isinstance(record, dict))

    def list_files(self, content: int) -> Iterator[tuple[dict[str, Any], int | None]]:
        """Live data files, or files with deletes, each with the id of its first row."""
        for manifest in self.list_records(need(self.table.seen.current_snapshot()).manifest_list):
            first = manifest["first_row_id"]
            for entry in self.list_records(manifest["manifest_path"]) if manifest["content"] == content else ():
                file = entry["data_file"]
                if entry["status"] == 2:
                    continue
                own = file.get("first_row_id")
                if own is None and first is not None:
                    own, first = first, first + file["record_count"]
                yield file, own

    def read_gone(self) -> dict[str, set[int]]:
        """The deleted positions of each data file; a vector has all of its file."""
        gone, vectors = defaultdict[str, set[int]](set), dict[str, set[int]]()
        for file, _ in self.list_files(1):
            path = str(file.get("referenced_data_file"))
            if file["file_format"] == "PUFFIN":
                assert path not in vectors
                for vector in deletion_vectors_from_puffin_file(PuffinFile(self.open(file["file_path"]).getvalue())):
                    if vector.referenced_data_file == path:
                        vectors[path] = set(vector.to_vector().to_pylist())
                assert len(vectors[path]) == file["record_count"]
            else:
                for one in pq.read_table(self.open(file["file_path"])).to_pylist():
                    gone[one["file_path"]].add(one["pos"])
        # A vector has the deletes that were there before it.
        assert all(vectors[path] >= gone[path] for path in vectors)
        return gone | vectors

    def has_both(self) -> bool:
        """Whether a file with position deletes is there beside vectors."""
        return {file["file_format"] for file, _ in self.list_files(1)} > {"PUFFIN"}

    def read_ids(self) -> dict[int, int]:
        """The id of each row, by its key."""
        found, gone = dict[int, int](), self.read_gone()
        for file, first in self.list_files(0):
            rows = pq.read_table(self.open(file["file_path"]))
            own = rows["_row_id"].to_pylist() if "_row_id" in rows.column_names else [None] * len(rows)
            for position, (key, row_id) in enumerate(zip(rows["id"].to_pylist(), own, strict=True)):
                if position not in gone.get(file["file_path"], ()):
                    assert key not in found
                    found[key] = need(first) + position if row_id is None else row_id
        return found


def make_rows(rng: random.Random, number: int) -> list[Row]:
    return [
        row(rng.randrange(20), rng.randrange(number * 3), f"{number}-{place}", rng.choice("abc"))
        | {"gone": rng.random() < 0.2}
        for place in range(rng.randrange(1, 15))
    ]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("fields", [(), ("day",)])
@pytest.mark.parametrize("upgraded", [0, 1, 4])
def test_random_merges(aws, bucket, fields, upgraded):
    """Into a new table, or one that is upgraded, with its position deletes where there are any."""
    rng, lake = random.Random(upgraded), Merged(aws, fields)
    aws.hide_missing = False
    for number in range(1, upgraded + 1):
        lake.merge(make_rows(rng, number))
    if upgraded:
        change(aws, version(3))
    else:
        lake.table.action = lake.table.action.model_copy(update={"format_version": 3})
        lake.merge(make_rows(rng, 1))
    change(aws, setting("commit.manifest.min-count-to-merge", "3"))
    for number in range(max(upgraded, 1) + 1, upgraded + 7):
        before, rows, ids = lake.table.seen.current_snapshot(), dict(lake.rows), dict(lake.ids)
        found = lake.merge(make_rows(rng, number))
        lake.check()
        if number > upgraded + 1 and rng.random() < 0.3:
            lake.undo(found, need(before).snapshot_id)
            lake.rows, lake.ids = rows, ids
            lake.check()
        elif rng.random() < 0.4:
            assert lake.compact().list_dropped() == ()
            lake.check()
        assert not lake.has_both()


def test_an_upgrade_between_reading_and_commit_of_a_compaction(aws, bucket):
    """The next snapshot gives ids to rows, which the compaction's files lack."""
    lake, rng = Merged(aws), random.Random(5)
    aws.hide_missing = False
    for number in range(1, 7):
        lake.merge(make_rows(rng, number))
    planned = lake.table.compacted("c", lake.committed)
    change(aws, version(3))
    lake.merge([row(90, 9, "new", "a")])
    lake.check()
    assert lake.compact(planned).list_dropped() == (0,)
    lake.check()
    assert lake.compact().list_dropped() == ()
    lake.check()


def test_a_merge_between_reading_and_commit_of_a_compaction(aws, bucket):
    """It replaces the vector of a file that was read. That of another file, in the same Puffin file, applies still."""
    lake = Merged(aws, ("day",))
    aws.hide_missing = False
    lake.merge([row(number, 1, "old", "a" if number < 5 else "b") for number in range(10)])
    change(aws, version(3))
    lake.merge([row(number, 2, "new", "a" if number < 5 else "b") for number in (1, 2, 7)])
    lake.check()
    planned = lake.table.compacted("c", lake.committed)
    lake.merge([row(3, 3, "newer", "a")])
    lake.check()
    [dropped] = lake.compact(planned).list_dropped()
    lake.check()
    assert planned.compact.groups[dropped].removes[0].partition("day=")[2][0] == "a"
    # Day b has none left. Three rows of the first load were replaced: two before they had ids, and that of the last
    # merge, whose new row was moved out of its load's file.
    left = sorted((Path(path).parent.name, len(gone)) for path, gone in lake.read_gone().items())
    assert left == [("day=a", 1), ("day=a", 3)]


@pytest.mark.parametrize("ids", [[1, 2, 3], [1, 1, 2]])
def test_a_refresh_whose_rows_are_merged_among_themselves(aws, bucket, ids):
    """They are other rows: none has the id of a row that was there before."""
    lake = Merged(aws)
    aws.hide_missing = False
    lake.merge([row(number, 1, "old", "a") for number in range(4)])
    change(aws, version(3))
    lake.merge([row(1, 2, "new", "a")])
    lake.check()
    before, rows = set(lake.ids.values()), [row(number, 3 + place, "last", "a") for place, number in enumerate(ids)]
    found = make(lake.table, rows, 3)
    lake.table.publish(intents.recast(found, "refresh", switch=Switch(before=0, after=1)), 3)
    lake.rows, lake.ids = {one["id"]: one for one in rows}, {}
    lake.check()
    assert before.isdisjoint(lake.ids.values())


def test_a_vector_that_is_damaged(aws, bucket):
    """Of another place in its file; nothing of it is read."""
    lake = Merged(aws)
    aws.hide_missing = False
    lake.merge([row(number, 1, "old", "a") for number in range(3)])
    change(aws, version(3))
    lake.merge([row(1, 2, "new", "a")])
    seen = foreign(lake.table)
    [live] = [live for live in plan_files(seen) if live.deletes]
    assert read_vector(seen.io, live.deletes[0]).to_pylist() == [1]
    live.deletes[0][18] += 1
    with pytest.raises(
        SchemaIncompatibleError, match=r"has no deletion vector of s3://.*parquet in its \d+ bytes from 5"
    ):
        read_vector(seen.io, live.deletes[0])


@pytest.mark.parametrize("is_rest", [False, True])
def test_new_tables(aws, bucket, is_rest):
    """In Glue and in a REST catalog. A table of version 2 is upgraded by no load."""
    aws.hide_missing = False
    with OpenCatalog(aws, bucket) as catalog:
        table, old = (Table(aws, catalog if is_rest else None, name=name) for name in ("t", "old"))
        old.ready("j", SCHEMA)
        for made in (table, old):
            made.action = made.action.model_copy(update={"format_version": 3})
        merge(table, [row(1, 1, "a"), row(2, 1, "a")], 1)
        merge(table, [row(1, 2, "b")], 2)
        assert (table.seen.format_version, read(table)) == (3, [row(1, 2, "b"), row(2, 1, "a")])
        for refused in (lambda: old.ready("j", SCHEMA), lambda: old.plan(SCHEMA)):
            with pytest.raises(SchemaIncompatibleError, match="has format version 2, and 'format_version' asks for 3"):
                refused()
