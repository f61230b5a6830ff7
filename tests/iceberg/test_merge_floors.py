"""Floors of merges: truncates and whole snapshots take rows out by their order, whoever wrote between.

Each row is (key, epoch, position, source table); a floor is (source table, epoch, position).
"""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from lakewriter.commit.iceberg.deletion_vectors import list_position_deletes, plan_files
from lakewriter.commit.iceberg.format3 import find_deleted_from
from lakewriter.commit.iceberg.merge_floors import Floors
from lakewriter.commit.iceberg.merge_keys import RowReader
from lakewriter.commit.iceberg.snapshot_presence import read_counts
from lakewriter.receipt import Floor
from lakewriter.records.facets import MergeIntent, UndoneLoad
from lakewriter.report import MergeCounts
from tests.commit import intents
from tests.iceberg.commits import Table, strays
from tests.iceberg.test_changed_tables import change, version
from tests.iceberg.test_merge import foreign, interfere
from tests.support.narrow import need

SCHEMA = pa.schema(
    [("id", pa.int64()), ("e", pa.int64()), ("p", pa.decimal128(38, 0)), ("of", pa.string()), ("gone", pa.bool_())]
)
MERGE = MergeIntent(keys=("id",), order_by=("e", "p"), deleted="gone")
LATER = datetime(2099, 1, 1, tzinfo=UTC)
Given = tuple[Any, ...]


def floors(*given: Given, until: datetime | None = None) -> tuple[Floor, ...]:
    return tuple(Floor(source=of, order=(str(e), str(p)), until=until) for of, e, p in given)


def table_of(*given: Given) -> pa.Table:
    names = ("id", "e", "p", "of")
    rows = [dict(zip(names, one, strict=True)) for one in given]
    rows = [one | {"p": None if one["p"] is None else Decimal(one["p"]), "gone": False} for one in rows]
    return pa.Table.from_pylist(rows, SCHEMA)


class Merged:
    """A table, and its loads; format 3 where ``version`` says so."""

    def __init__(self, aws: Any, format_version: int = 2) -> None:
        self.table, self.number = Table(aws), 0
        self.table.action = self.table.action.model_copy(update={"format_version": format_version})

    def make(self, *given: Given, own: tuple[Given, ...] = (), before: tuple[Given, ...] = ()) -> Any:
        self.number += 1
        found = self.table.intent(f"j{self.number}", table_of(*given), committed=self.number - 1)
        if not given:
            (unused,) = found.receipts
            self.table.aws.client("s3").delete_object(Bucket=unused.bucket, Key=unused.key)
            found = found.model_copy(update={"receipts": ()})
        source = {"source": "of"} if own or before else {}
        by = MERGE.model_copy(update={"floors": floors(*own), "floors_before": floors(*before, until=LATER)} | source)
        return intents.recast(found, "merge", merge=by)

    def load(self, *given: Given, own: tuple[Given, ...] = (), before: tuple[Given, ...] = ()) -> Any:
        found = self.make(*given, own=own, before=before)
        self.table.publish(found, self.number)
        return found

    @property
    def rows(self) -> list[Given]:
        rows = self.table.seen.scan().to_arrow().to_pylist()
        return sorted((row["id"], row["e"], None if row["p"] is None else int(row["p"]), row["of"]) for row in rows)

    @property
    def counts(self) -> Any:
        return need(read_counts(self.table.seen.current_snapshot(), "merge"))

    def total(self, name: str) -> int:
        properties = need(need(self.table.seen.current_snapshot()).summary).additional_properties
        return int(properties.get(f"total-{name}", 0))


DIGITS = 10**37
# Loads before it, as rows of one file each; the load with its rows and floors; what the table has then, the rows that
# were cleared and that are late, and the data files left. By the rule alone: below the floor, and of its source.
CASES: dict[str, tuple[list[list[Given]], list[Given], list[Given], list[Given], tuple[int, int, int]]] = {
    "nothing but a truncate": ([[(1, 0, 5, "t"), (2, 0, 6, "t")]], [], [("t", 0, 9)], [], (2, 0, 0)),
    "of an empty table": ([], [], [("t", 0, 9)], [], (0, 0, 0)),
    "rows on both sides of it": (
        [[(1, 0, 5, "t"), (2, 0, 9, "t"), (3, 0, 12, "t")]],
        [],
        [("t", 0, 9)],
        [(2, 0, 9, "t"), (3, 0, 12, "t")],
        (1, 0, 1),
    ),
    "files on both sides of it": (
        [[(1, 0, 5, "t")], [(2, 0, 12, "t")]],
        [(3, 0, 13, "t")],
        [("t", 0, 9)],
        [(2, 0, 12, "t"), (3, 0, 13, "t")],
        (1, 0, 2),
    ),
    "its own rows": (
        [[(1, 0, 5, "t")]],
        [(1, 0, 8, "t"), (2, 0, 10, "t"), (3, 0, 7, "t")],
        [("t", 0, 9)],
        [(2, 0, 10, "t")],
        (1, 2, 1),
    ),
    "a key that comes back": ([[(1, 0, 5, "t")]], [(1, 0, 10, "t")], [("t", 0, 9)], [(1, 0, 10, "t")], (1, 0, 1)),
    "a key with a newer row than the load's": (
        [[(1, 0, 11, "t"), (2, 0, 1, "t")]],
        [(1, 0, 10, "t")],
        [("t", 0, 9)],
        [(1, 0, 11, "t")],
        (1, 1, 2),
    ),
    "another source table": (
        [[(1, 0, 5, "t"), (2, 0, 5, "u")], [(3, 0, 5, "u")]],
        [(4, 0, 5, "u"), (5, 0, 5, "t")],
        [("t", 0, 9)],
        [(2, 0, 5, "u"), (3, 0, 5, "u"), (4, 0, 5, "u")],
        (1, 1, 3),
    ),
    "two source tables, each with its floor": (
        [[(1, 0, 5, "t"), (2, 0, 5, "u"), (3, 0, 3, "u")]],
        [],
        [("t", 0, 9), ("u", 0, 4)],
        [(2, 0, 5, "u")],
        (2, 0, 1),
    ),
    "a higher epoch": (
        [[(1, 0, 99, "t"), (2, 0, 5, "t")], [(3, 1, 1, "t")]],
        [(1, 1, 2, "t")],
        [("t", 1, 0)],
        [(1, 1, 2, "t"), (3, 1, 1, "t")],
        (2, 0, 2),
    ),
    "both epochs in one file": (
        [[(1, 0, 99, "t"), (2, 1, 5, "t"), (3, 1, 50, "t")]],
        [],
        [("t", 1, 10)],
        [(3, 1, 50, "t")],
        (2, 0, 1),
    ),
    "an order of 38 digits": (
        [[(1, 0, DIGITS - 1, "t"), (2, 0, DIGITS, "t"), (3, 0, DIGITS + 1, "t")]],
        [],
        [("t", 0, DIGITS)],
        [(2, 0, DIGITS, "t"), (3, 0, DIGITS + 1, "t")],
        (1, 0, 1),
    ),
    "rows without an order": ([[(1, None, None, "t"), (2, 0, None, "t")]], [], [("t", 0, 0)], [], (2, 0, 0)),
    "rows without a source": (
        [[(1, 0, 5, None), (2, 0, 5, "t")]],
        [],
        [("t", 0, 9)],
        [(1, 0, 5, None)],
        (1, 0, 1),
    ),
    "a name that is longer than a bound": (
        [[(1, 0, 5, "t" * 80)], [(2, 0, 5, "t" * 80 + "u")]],
        [],
        [("t" * 80, 0, 9)],
        [(2, 0, 5, "t" * 80 + "u")],
        (1, 0, 1),
    ),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("format_version", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_rows_below_a_floor_go(aws, bucket, case, format_version):
    before, given, own, expected, (cleared, late, files) = CASES[case]
    merged = Merged(aws, format_version)
    for rows in before:
        merged.load(*rows)
    merged.load(*given, own=tuple(own))
    assert merged.rows == expected
    assert (merged.counts.cleared, merged.counts.late) == (cleared, late)
    # In format 3 rows that take the place of others are written into a file of their own.
    assert merged.total("data-files") >= files
    assert format_version == 3 or merged.total("data-files") == files
    assert merged.total("records") - merged.total("position-deletes") == len(expected)
    assert strays(aws, merged.table.seen) == set()
    # The same load again changes nothing.
    merged.load(*given, own=tuple(own))
    assert (merged.rows, merged.counts.cleared) == (expected, 0)


# What a later load brings while a floor is remembered, and what the table has then.
LATE = {
    "below it": ([(1, 0, 8, "t"), (2, 0, 12, "t")], [(2, 0, 12, "t")], 1),
    "above it, and as high": ([(1, 0, 9, "t"), (2, 0, 12, "t")], [(1, 0, 9, "t"), (2, 0, 12, "t")], 0),
    "of another source": ([(1, 0, 8, "u")], [(1, 0, 8, "u")], 0),
    "nothing but late rows": ([(1, 0, 8, "t"), (2, 0, 1, "t")], [], 2),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("case", LATE)
def test_rows_of_later_loads(aws, bucket, case):
    given, expected, late = LATE[case]
    merged = Merged(aws)
    merged.load(own=(("t", 0, 9),))
    merged.load(*given, before=(("t", 0, 9),))
    assert (merged.rows, merged.counts.late, merged.counts.cleared) == (expected, late, 0)


def test_both_orders_of_two_loads(aws, bucket):
    """A truncate comes from another partition of its topic than the rows: the order decides, not the arrival."""
    old, new, truncate = [(1, 0, 5, "t"), (2, 0, 6, "t")], [(3, 0, 11, "t")], (("t", 0, 9),)
    for number, rows_first in enumerate((True, False)):
        merged = Merged(aws)
        merged.table = Table(aws, name=f"t{number}")
        if rows_first:
            merged.load(*old, *new)
            merged.load(own=truncate)
        else:
            merged.load(own=truncate)
            merged.load(*old, *new, before=truncate)
        assert merged.rows == new


@pytest.mark.parametrize("format_version", [2, 3])
def test_another_writer_adds_rows_between(aws, bucket, monkeypatch, format_version):
    """Its rows below the floor go, too: the retry looks at the snapshot that it is based on. No file is read twice."""
    merged = Merged(aws, format_version)
    merged.load((1, 0, 5, "t"), (2, 0, 12, "t"))
    if format_version == 3:
        # PyIceberg writes no snapshot of format 3: our own load comes between.
        other = merged.make((7, 0, 6, "t"), (8, 0, 13, "t"))
        interfere(monkeypatch, lambda: merged.table.publish(other, 2))
    else:
        interfere(monkeypatch, lambda: foreign(merged.table).append(table_of((7, 0, 6, "t"), (8, 0, 13, "t"))))
    reads, read = [], RowReader.read

    def counted(reader: Any, file: Any, *rest: Any) -> Any:
        reads.append((file.file_path, reader.keys, rest == ()))
        return read(reader, file, *rest)

    with patch.object(RowReader, "read", counted):
        merged.load((3, 0, 20, "t"), own=(("t", 0, 9),))
    assert merged.rows == [(2, 0, 12, "t"), (3, 0, 20, "t"), (8, 0, 13, "t")]
    assert merged.counts.cleared == 2
    assert len([one for one in reads if not one[2]]) == len({one for one in reads if not one[2]})


def test_files_whose_bounds_are_certain_are_not_read(aws, bucket):
    """One below goes whole, one above stays: only the file with rows on both sides is opened."""
    merged = Merged(aws)
    merged.load((1, 0, 5, "t"), (2, 0, 6, "t"))
    merged.load((3, 0, 20, "t"))
    merged.load((4, 0, 7, "t"), (5, 0, 21, "t"))
    reads, read = list[str](), RowReader.read

    def counted(reader: Any, file: Any, *rest: Any) -> Any:
        reads.append(file.file_path.rpartition("/")[2])
        return read(reader, file, *rest)

    with patch.object(RowReader, "read", counted):
        merged.load(own=(("t", 0, 9),))
    assert reads == ["part-j3-00000.parquet"]
    assert merged.rows == [(3, 0, 20, "t"), (5, 0, 21, "t")]
    assert (merged.total("data-files"), merged.total("position-deletes")) == (2, 1)


@pytest.mark.parametrize("format_version", [2, 3])
def test_deletes_leave_with_their_files(aws, bucket, format_version):
    """Files with deletes, and vectors, that apply to nothing any more; rows that they had deleted do not count."""
    merged = Merged(aws, format_version)
    merged.load((1, 0, 5, "t"), (2, 0, 6, "t"), (3, 0, 7, "t"))
    merged.load((1, 0, 8, "t"))
    merged.load(own=(("t", 0, 9),))
    assert (merged.rows, merged.counts.cleared) == ([], 3)
    names = ("data-files", "records", "delete-files", "position-deletes")
    assert [merged.total(name) for name in names] == [0, 0, 0, 0]


def test_a_floor_in_a_table_that_was_upgraded(aws, bucket):
    """Position deletes of format 2 become vectors but for those of files that leave."""
    merged = Merged(aws)
    aws.hide_missing = False
    merged.load((1, 0, 5, "t"), (2, 0, 6, "t"))
    merged.load((3, 0, 20, "t"), (4, 0, 21, "t"))
    merged.load((1, 0, 8, "t"), (3, 0, 30, "t"))
    change(aws, version(3))
    merged.load(own=(("t", 0, 9),))
    assert merged.rows == [(3, 0, 30, "t"), (4, 0, 21, "t")]
    table = merged.table.seen
    assert list_position_deletes(table) == []
    vectors = [find_deleted_from(file) for live in plan_files(table) for file in live.deletes]
    assert (len(vectors), merged.total("delete-files"), merged.total("data-files")) == (2, 2, 2)


def test_a_load_without_rows_is_seen_and_taken_back(aws, bucket):
    merged = Merged(aws)
    merged.load((1, 0, 5, "t"))
    before = need(merged.table.seen.current_snapshot()).snapshot_id
    found = merged.load(own=(("t", 0, 9),))
    assert found.changes_rows
    assert merged.counts == MergeCounts(cleared=1)
    undone = UndoneLoad(
        job_id=found.job_id, attempt=found.attempt, files=0, rows=0, reason="", next="n", snapshot_before=before
    )
    own = {"job_id": f"undo.{found.job_id}", "attempt": "u", "undoes": undone}
    merged.table.publish(intents.recast(found, "undo", cursor_before=None, cursor_after=None, **own), 3)
    assert merged.rows == [(1, 0, 5, "t")]


def test_no_floor_reads_nothing(aws, bucket):
    merged = Merged(aws)
    merged.load((1, 0, 5, "t"))
    with patch.object(Floors, "_find_below", side_effect=AssertionError):
        merged.load((2, 0, 6, "t"), before=(("t", 0, 1),))
    assert merged.rows == [(1, 0, 5, "t"), (2, 0, 6, "t")]
