"""Merges by key: after each, readers see what a dictionary says, whoever wrote between."""

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from itertools import pairwise, product
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.transforms import BucketTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType

from lakewriter.aws import Clients
from lakewriter.commit.iceberg import merge_keys, merge_rows
from lakewriter.commit.iceberg.added_files import DELETES, name_made
from lakewriter.commit.iceberg.append import IcebergTables
from lakewriter.commit.iceberg.iceberg_catalogs import open_catalog
from lakewriter.commit.iceberg.iceberg_tables import IcebergTable
from lakewriter.commit.iceberg.merge import KeyMerge
from lakewriter.commit.iceberg.merge_keys import RowReader, number_keys, read_gone
from lakewriter.commit.iceberg.merge_snapshot import StreamedMerge
from lakewriter.commit.iceberg.merge_winners import DELETED, FILE, KEY, POSITION, PRECEDENCE, judge
from lakewriter.commit.iceberg.schema_evolution import IcebergTargetTable
from lakewriter.errors import LakeError
from lakewriter.naming import LOAD_METADATA
from lakewriter.records.actions import IcebergAction
from lakewriter.records.changes import Intent
from lakewriter.records.facets import MergeIntent
from lakewriter.report import MergeCounts, format_size
from lakewriter.spec.table_spec import Mode
from tests.commit import intents
from tests.iceberg.commits import ACCESS, Table, intent, strays
from tests.iceberg.test_changed_tables import change
from tests.load.lakes import BUCKET
from tests.support.narrow import need
from tests.support.open_catalog import OpenCatalog

MERGE = MergeIntent(keys=("id",), order_by=("at",), deleted="gone")
SCHEMA = pa.schema(
    [("id", pa.int64()), ("at", pa.int64()), ("day", pa.string()), ("v", pa.string()), ("gone", pa.bool_())]
)
Row = dict[str, Any]


def foreign(table: Table) -> PyIcebergTable:
    """The table as another writer has it, who knows nothing of merges."""
    return need(IcebergTable(table.action, table.clients, "other/load/attempt").load())


def open_tables(table: Table, found: Intent) -> IcebergTables:
    assert isinstance(found.catalog, IcebergAction)
    return IcebergTables(found.catalog, table.clients, found.load)


def merge(table: Table, rows: list[Row], number: int, by: MergeIntent = MERGE, fields: tuple[str, ...] = ()) -> Any:
    found = make(table, rows, number, by, fields)
    table.publish(found, number)
    return found


def make(table: Table, rows: list[Row], number: int, by: MergeIntent = MERGE, fields: tuple[str, ...] = ()) -> Any:
    written, job = pa.Table.from_pylist(rows, SCHEMA), f"j{number}"
    if fields:
        found = table.partitioned(job, written, *fields, committed=number - 1)
    else:
        found = table.intent(job, written, committed=number - 1)
    return intents.recast(found, "merge", merge=by)


def apply(expected: dict[Any, Row], rows: list[Row], keeps_deleted: bool = False) -> None:
    """The rule by itself: one row after another, the newer one stays."""
    best: dict[Any, Row] = {}
    for row in rows:
        other = best.get(row["id"])
        if other is None or row["at"] >= other["at"]:
            best[row["id"]] = row
    for key, row in best.items():
        seen = expected.get(key)
        if seen is not None and (row["at"], row["gone"]) <= (seen["at"], seen["gone"]):
            continue
        if row["gone"] and not keeps_deleted:
            expected.pop(key, None)
        else:
            expected[key] = row


def read(table: Table, **options: Any) -> list[Row]:
    return sorted(table.seen.scan(**options).to_arrow().to_pylist(), key=lambda row: (row["id"], row["at"], row["v"]))


def show(expected: dict[Any, Row], day: str | None = None) -> list[Row]:
    rows = [row for row in expected.values() if day is None or row["day"] == day]
    return sorted(rows, key=lambda row: (row["id"], row["at"], row["v"]))


@pytest.mark.one_in(6)
@pytest.mark.parametrize("fields", [(), ("day",)])
@pytest.mark.parametrize("seed", range(2))
def test_random_merges(aws, bucket, monkeypatch, fields, seed):
    rng, table, expected = random.Random(seed), Table(aws), dict[Any, Row]()
    if seed % 2:
        monkeypatch.setattr(merge_rows, "PART", 5)
    for number in range(1, 8):
        rows: list[Row] = [
            {
                "id": rng.randrange(20),
                "at": rng.randrange(number * 3),
                "day": rng.choice("abc"),
                "v": f"{number}-{place}",
                "gone": rng.random() < 0.2,
            }
            for place in range(rng.randrange(1, 15))
        ]
        rows.sort(key=lambda row: row["day"])
        merge(table, rows, number, fields=fields)
        apply(expected, rows)
        assert read(table) == show(expected)
        for day in "abc":
            assert read(table, row_filter=f"day == '{day}'") == show(expected, day)


def test_what_a_merge_may_read_is_said(aws, bucket):
    table = Table(aws)
    before = IcebergTargetTable(table.action, table.clients, "p/a/a1", mode=Mode.MERGE)
    assert before.describe_changes(SCHEMA) == [f"create Iceberg table db.t at {table.action.location} with 5 columns"]
    merge(table, [row(number, 1, "a") for number in range(8)], 1)
    said = "merge rows into db.t by key: the newest row of a key stays; of its "
    size = need(need(table.seen.current_snapshot()).summary).additional_properties["total-files-size"]
    [change] = IcebergTargetTable(table.action, table.clients, "p/b/b1", mode=Mode.MERGE).describe_changes(SCHEMA)
    assert change == f"{said}1 data file ({format_size(int(size))}) those are read that may have a key"
    merge(table, [row(1, 2, "b"), row(2, 2, "b")], 2)
    [change] = IcebergTargetTable(table.action, table.clients, "p/b/b1", mode=Mode.MERGE).describe_changes(SCHEMA)
    assert change.endswith("; 20% of its rows are deleted by 1 file until they are rewritten")


def row(key: int, at: int, v: str, day: str = "a", *, gone: bool = False) -> Row:
    return {"id": key, "at": at, "day": day, "v": v, "gone": gone}


NEW, DELETE = ("new", False), ("", True)
TWICE = [
    # The rows of one key and order in each load, and what the table has afterwards.
    ([(DELETE, NEW)], ["new"]),
    ([(NEW, DELETE)], []),
    ([(DELETE,), (NEW,)], ["new"]),
    ([(NEW,), (DELETE,)], []),
    # The same load once more changes nothing.
    ([(DELETE, NEW), (DELETE, NEW)], ["new"]),
    ([(NEW, DELETE), (NEW, DELETE)], []),
    ([(NEW,), (DELETE, NEW)], ["new"]),
    ([(NEW,), (("later", False),)], ["new"]),
    ([(DELETE, NEW, DELETE)], []),
    ([(NEW, DELETE, ("newer", False))], ["newer"]),
]  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("loads", "expected"), TWICE)
def test_rows_of_one_key_and_order(aws, bucket, loads, expected):
    """Without keys of deleted rows, which tests of whole loads have."""
    table = Table(aws)
    for number, given in enumerate(loads, 1):
        merge(table, [row(1, 5, v, gone=gone) for v, gone in given], number)
    assert [seen["v"] for seen in read(table)] == expected


def split(rng: random.Random, rows: list[Row]) -> list[list[Row]]:
    cuts = sorted(rng.sample(range(1, len(rows)), rng.randrange(min(4, len(rows)))))
    return [rows[start:stop] for start, stop in pairwise([0, *cuts, len(rows)])]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(6))
def test_rows_further_down_stay_however_they_are_divided(aws, bucket, seed):
    """Tasks, files of a task, and the order in which their receipts arrive differ; what readers see does not."""
    rng = random.Random(seed)
    rows = [row(rng.randrange(4), rng.randrange(2), str(place), gone=rng.random() < 0.4) for place in range(24)]
    expected = dict[Any, Row]()
    apply(expected, rows)
    for _ in range(4):
        table, receipts = Table(aws, name=f"t{rng.randrange(10**9)}"), []
        action, schema = table.ready("j1", SCHEMA)
        for task, of_task in enumerate(split(rng, rows)):
            for seq, of_file in enumerate(split(rng, of_task) if len(of_task) > 1 else [of_task]):
                file = pa.Table.from_pylist(of_file, SCHEMA).cast(schema)
                written = table.write(action, f"{rng.randrange(10**9)}.parquet", file)
                receipts.append(written.model_copy(update={"partition": task, "seq": task + 10 * seq}))
        rng.shuffle(receipts)
        found = intents.recast(intent("j1", action, *receipts), "merge", merge=MERGE)
        table.publish(found, 1)
        assert read(table) == show(expected)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(4))
def test_rows_without_a_place_are_told_apart_by_their_values(aws, bucket, seed):
    """Those of a query come in any order: what readers see is always the same, and a delete counts."""
    rng, seen = random.Random(seed), list[list[Row]]()
    rows = [row(key, 1, v, gone=gone) for key, gone in ((1, False), (2, True)) for v in "abcd"]
    rows += [row(2, 1, "e"), row(3, 1, "x"), row(3, 1, "x")]
    for number in range(3):
        table, by = Table(aws, name=f"t{number}"), MERGE.model_copy(update={"compared": ("id", "at", "DAY", "v")})
        rng.shuffle(rows)
        merge(table, rows, 1, by)
        seen.append(read(table))
    assert [found["id"] for found in seen[0]] == [1, 3]
    assert seen == [seen[0]] * 3


def test_strays_of_a_merge_are_none_of_older_snapshots(aws, bucket):
    """Another process looks for them, and reads the lists of no snapshot from before the load."""
    table = Table(aws)
    for number in (1, 2, 3):
        merge(table, [row(1, number, str(number))], number)
    older = [snapshot.manifest_list.partition(f"{BUCKET}/")[2] for snapshot in table.seen.snapshots()[:2]]

    def edit(metadata):
        for snapshot in metadata["snapshots"][:2]:
            snapshot["timestamp-ms"] -= 400 * 86_400_000

    change(aws, edit)
    found = make(table, [row(1, 4, "4")], 4).model_copy(update={"started": datetime.now(UTC)})
    stray = f"{table.action.location.partition(f'{BUCKET}/')[2]}/data/{name_made(DELETES, found.load)}1.parquet"
    aws.client("s3").put_object(Bucket=BUCKET, Key=stray, Body=b"", Metadata={LOAD_METADATA: found.load})
    table.publish(found, 4)
    asked = len(aws.history)
    assert open_tables(table, found).clear_up(found, gone=True) == ()
    keys = [call.key for call, _ in aws.history[asked:]]
    assert (stray in aws.objects(BUCKET), set(older) & set(keys)) == (False, set())
    assert read(table) == [row(1, 4, "4")]


def test_no_metadata_file_is_read_twice(aws, bucket):
    table = Table(aws)
    for number in (1, 2, 3):
        merge(table, [row(1, number, str(number))], number)
    table.clients, asked = Clients(ACCESS), len(aws.history)
    merge(table, [row(1, 4, "4")], 4)
    keys = [call.key for call, _ in aws.history[asked:] if call.method == "GET" and str(call.key).endswith(".avro")]
    assert len(keys) == len(set(keys)) > 3
    assert read(table) == [row(1, 4, "4")]


def interfere(monkeypatch, act: Any) -> None:
    """Another writer commits while a merge has looked at the table, and has not committed yet."""
    commit, acts = KeyMerge.commit, [act]

    def late(self: Any, *arguments: Any, **named: Any) -> None:
        commit(self, *arguments, **named)
        if acts:
            acts.pop()()

    monkeypatch.setattr(KeyMerge, "commit", late)


def test_another_writer_of_the_same_keys_comes_between(aws, bucket, monkeypatch):
    table = Table(aws)
    merge(table, [row(1, 1, "a"), row(2, 1, "a"), row(3, 1, "a")], 1)
    rows = pa.Table.from_pylist([row(1, 9, "foreign"), row(2, 2, "foreign")], SCHEMA)
    interfere(monkeypatch, lambda: foreign(table).append(rows))
    merge(table, [row(1, 5, "b"), row(2, 5, "b"), row(3, 5, "b"), row(4, 5, "b")], 2)
    # That writer does not merge: its newer row stays, and all older ones of the load's keys are gone.
    assert read(table) == [row(1, 9, "foreign"), row(2, 5, "b"), row(3, 5, "b"), row(4, 5, "b")]
    assert strays(aws, table.seen) == set()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("fields", [(), ("day",)])
def test_files_are_compacted_between(aws, bucket, monkeypatch, fields):
    table = Table(aws)
    monkeypatch.setattr(merge_rows, "PART", 1 if fields else merge_rows.PART)
    merge(table, [row(1, 1, "a"), row(2, 1, "a", "b"), row(3, 1, "a")], 1, fields=fields)
    merge(table, [row(1, 2, "b", "b"), row(4, 1, "b")], 2, fields=fields)

    def compact() -> None:
        # All rows, deletes applied, into new files: what Glue's optimizer does, but for the operation's name.
        foreign(table).overwrite(table.seen.scan().to_arrow())

    interfere(monkeypatch, compact)
    merge(table, [row(1, 3, "c"), row(2, 3, "c"), row(3, 0, "late")], 3, fields=fields)
    assert read(table) == [row(1, 3, "c"), row(2, 3, "c"), row(3, 1, "a"), row(4, 1, "b")]
    assert read(table, row_filter="day == 'b'") == []
    assert strays(aws, table.seen) == set()


def test_what_became_of_the_rows(aws, bucket):
    table = Table(aws)
    merge(table, [row(1, 5, "a"), row(2, 5, "a"), row(3, 5, "a")], 1)
    found = make(
        table,
        [
            row(1, 6, "b"),
            row(1, 4, "b"),
            row(2, 4, "b"),
            row(3, 5, "b", gone=True),
            row(4, 1, "b"),
            row(5, 1, "b", gone=True),
        ],
        2,
    )
    tables = open_tables(table, found)
    tables.publish(found, 2)
    tables.read_back(found)
    assert tables.counts == MergeCounts(inserted=1, updated=1, deleted=1, unchanged=1, late=1, superseded=1)
    assert read(table) == [row(1, 6, "b"), row(2, 5, "a"), row(4, 1, "b")]


def test_deleted_rows_that_are_kept_keep_older_ones_out(aws, bucket):
    table, by = Table(aws), MERGE.model_copy(update={"keeps_deleted": True})
    merge(table, [row(1, 5, "a")], 1, by)
    merge(table, [row(1, 6, "b", gone=True)], 2, by)
    merge(table, [row(1, 5, "a")], 3, by)
    assert read(table) == [row(1, 6, "b", gone=True)]


def test_columns_of_the_key_change(aws, bucket):
    schema = pa.schema([("id", pa.int32()), ("part", pa.string()), ("at", pa.int64())])
    table, by = Table(aws), MergeIntent(keys=("id", "part"), order_by=("at",))

    def load(job: str, number: int, rows: list[Row], schema: pa.Schema) -> None:
        found = table.intent(job, pa.Table.from_pylist(rows, schema), committed=number - 1)
        table.publish(intents.recast(found, "merge", merge=by), number)

    load("a", 1, [{"id": 1, "part": "x", "at": 1}, {"id": 1, "part": "y", "at": 1}], schema)
    with foreign(table).update_schema() as update:
        update.update_column("id", LongType())
        update.rename_column("part", "piece")
    by = MergeIntent(keys=("id", "piece"), order_by=("at",))
    wider = pa.schema([("id", pa.int64()), ("piece", pa.string()), ("at", pa.int64())])
    load("b", 2, [{"id": 1, "piece": "y", "at": 2}, {"id": 2**40, "piece": "x", "at": 2}], wider)
    found = sorted(table.seen.scan().to_arrow().to_pylist(), key=str)
    assert found == [
        {"id": 1, "piece": "x", "at": 1},
        {"id": 1, "piece": "y", "at": 2},
        {"id": 2**40, "piece": "x", "at": 2},
    ]


def test_partition_fields_have_changed(aws, bucket):
    """Deletes go to the partition spec of the file that they are of, and readers with a filter see them."""
    table = Table(aws)
    merge(table, [row(1, 1, "a"), row(2, 1, "a", "b")], 1, fields=("day",))
    with foreign(table).update_spec() as update:
        update.add_field("id", BucketTransform(4), "id_bucket")
    merge(table, [row(1, 2, "b"), row(2, 2, "b"), row(3, 2, "b")], 2, fields=("day", "bucket(4, id)"))
    expected = [row(1, 2, "b"), row(2, 2, "b"), row(3, 2, "b")]
    assert read(table) == expected
    for day, rows in (("a", expected), ("b", [])):
        assert read(table, row_filter=f"day == '{day}'") == rows
    snapshot = table.seen.current_snapshot()
    assert snapshot is not None
    deletes = [each for each in snapshot.manifests(table.seen.io) if each.content == ManifestContent.DELETES]
    assert [each.partition_spec_id for each in deletes] == [0]


def test_manifests_of_deletes_are_merged(aws, bucket):
    """As the table asks for it."""
    table = Table(aws)
    merge(table, [row(1, 1, "1")], 1)
    assert table.seen.properties["commit.manifest.min-count-to-merge"] == "20"
    aws.hide_missing = False
    with table.seen.transaction() as transaction:
        transaction.set_properties({"commit.manifest.min-count-to-merge": "4"})
    aws.hide_missing = True
    for number in range(2, 9):
        merge(table, [row(1, number, f"{number}")], number)
    snapshot = table.seen.current_snapshot()
    assert snapshot is not None
    assert read(table) == [row(1, 8, "8")]
    manifests = snapshot.manifests(table.seen.io)
    assert sum(manifest.content == ManifestContent.DELETES for manifest in manifests) < 4
    assert len(manifests) < 7
    assert strays(aws, table.seen) == set()


LOST = [
    # what is dropped after it was applied, as often as the SDK asks
    lambda call: call.action == "glue:UpdateTable",
    lambda call: call.action == "s3:PutObject" and "deletes-" in call.key,
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("match", LOST)
def test_lost_answers(aws, bucket, match):
    table = Table(aws)
    merge(table, [row(1, 1, "a"), row(2, 1, "a")], 1)
    found = make(table, [row(1, 2, "b")], 2)
    aws.drop_answer(match, times=8)
    with suppress(LakeError):
        table.publish(found, 2)
    table.publish(found, 2)
    assert read(table) == [row(1, 2, "b"), row(2, 1, "a")]
    open_tables(table, found).clear_up(found, gone=True)
    assert strays(aws, table.seen) == set()
    assert read(table) == [row(1, 2, "b"), row(2, 1, "a")]


def test_several_processes_at_once(aws, bucket):
    table = Table(aws)
    merge(table, [row(1, 1, "a"), row(2, 1, "a")], 1)
    found = make(table, [row(1, 2, "b"), row(3, 2, "b")], 2)
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda each: table.publish(each, 2), [found] * 3))
    assert read(table) == [row(1, 2, "b"), row(2, 1, "a"), row(3, 2, "b")]
    assert strays(aws, table.seen) == set()


KEYS = [
    # the key's type, and two of its values
    (pa.string(), "a", "ä"),
    (pa.int32(), 1, -5),
    (pa.decimal128(9, 2), Decimal("1.50"), Decimal("-2.25")),
    (pa.date32(), date(2026, 1, 1), date(1960, 1, 1)),
    (pa.timestamp("us", "UTC"), datetime(2026, 1, 1, tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC)),
    (pa.timestamp("us"), datetime(2026, 1, 1), datetime(1960, 1, 1)),
    (pa.binary(), b"\x00", b"\xff\xff"),
    (pa.bool_(), True, False),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("others", [(), ("part",)])
@pytest.mark.parametrize(("kind", "first", "second"), KEYS)
def test_types_of_keys(aws, bucket, monkeypatch, kind, first, second, others):
    monkeypatch.setattr(merge_rows, "PART", 1)
    monkeypatch.setattr(merge_rows, "SAMPLED", 1)
    schema = pa.schema([("id", kind), ("part", pa.string()), ("at", kind), ("v", pa.int64())])
    by = MergeIntent(keys=("id", *others), order_by=("at", "v"))
    with OpenCatalog(aws, bucket) as catalog:
        table = Table(aws, catalog if others else None)
        for number, rows in enumerate(([(first, 1), (second, 1)], [(first, 2), (second, 0)]), 1):
            given = [{"id": key, "part": "x", "at": first, "v": value} for key, value in rows]
            found = table.intent(f"j{number}", pa.Table.from_pylist(given, schema), committed=number - 1)
            table.publish(intents.recast(found, "merge", merge=by), number)
        seen = {one["id"]: one["v"] for one in table.seen.scan().to_arrow().to_pylist()}
    assert seen == {first: 2, second: 1}


def delete_by_value(table: Table) -> None:
    """Add a file with equality deletes, as Flink and Kafka Connect's sink write them."""
    seen = foreign(table)
    [file] = [task.file for task in seen.scan().plan_files()]
    deletes = DataFile.from_args(
        content=DataFileContent.EQUALITY_DELETES,
        file_path=file.file_path,
        file_format=FileFormat.PARQUET,
        partition=file.partition,
        record_count=1,
        file_size_in_bytes=file.file_size_in_bytes,
        equality_ids=[1],
    )
    deletes.spec_id = file.spec_id
    with seen.transaction() as transaction:
        StreamedMerge(transaction, seen.io, lambda: iter(()), {}, [deletes]).commit()


def drop_order(table: Table) -> None:
    with foreign(table).update_schema() as update:
        update.delete_column("at")


REFUSED = [
    # what somebody does to the table once the load has written its files, and what is said
    (delete_by_value, "has equality deletes, such as s3://"),
    (drop_order, "has lost column 'at', which its rows are merged by"),
]


@pytest.mark.parametrize(("act", "said"), REFUSED)
def test_tables_that_rows_are_not_merged_into(aws, bucket, act, said):
    """Nothing is committed, and the load stays pending for a person to decide."""
    table = Table(aws)
    merge(table, [row(1, 1, "a")], 1)
    found = make(table, [row(1, 2, "b")], 2)
    act(table)
    before = table.seen.metadata.current_snapshot_id
    with pytest.raises(LakeError, match=said) as caught:
        table.publish(found, 2)
    assert caught.value.code in ("SCHEMA_INCOMPATIBLE", "PENDING_UNRECOVERABLE")
    assert table.seen.metadata.current_snapshot_id == before


def test_table_of_format_version_1_is_refused(aws, bucket):
    table, schema = Table(aws), pa.schema([("id", pa.int64()), ("at", pa.int64())])
    catalog = open_catalog(table.action.service, table.clients, "other/load/attempt", [])
    catalog.create_namespace("db")
    catalog.create_table(("db", "t"), schema, table.action.location, properties={"format-version": "1"})
    found = table.intent("j1", pa.table({"id": [1], "at": [1]}, schema))
    by = MergeIntent(keys=("id",), order_by=("at",))
    with pytest.raises(LakeError, match="has format version 1, expected 2 or 3: rows are merged by files with del"):
        table.publish(intents.recast(found, "merge", merge=by), 1)
    assert table.seen.current_snapshot() is None


def make_reader(table: Table) -> RowReader:
    seen = foreign(table)
    return RowReader(seen, seen.schema(), MERGE)


def make_file(form: FileFormat) -> DataFile:
    file = DataFile.from_args(file_path="s3://b/k", file_format=form, partition=Record(19_723), file_size_in_bytes=1)
    file.spec_id = 0
    return file


def test_files_that_rows_cannot_be_compared_with(aws, bucket):
    table = Table(aws)
    merge(table, [row(1, 1, "a")], 1)
    reader, io = make_reader(table), foreign(table).io
    with pytest.raises(LakeError, match=r"has file s3://b/k, whose format is ORC; rows are merged with those of Parq"):
        next(reader.read(make_file(FileFormat.ORC)))
    with pytest.raises(LakeError, match=r"s3://b/k has deletes in the format AVRO; expected Parquet"):
        read_gone(io, make_file(FileFormat.AVRO))
    with pytest.raises(LakeError, match=r"File s3://b/k of Iceberg table db.t has no field ids, and the table no name"):
        reader.find_names(pa.schema([("id", pa.int64())]), make_file(FileFormat.PARQUET))


def test_value_of_a_partition_stands_for_a_column_that_a_file_lacks(aws, bucket):
    """Files of Hive's tables have no partition columns. A date is days since 1970 in a partition."""
    table, schema = Table(aws), pa.schema([("id", pa.int64()), ("on", pa.date32()), ("at", pa.int64())])
    by = MergeIntent(keys=("id", "on"), order_by=("at",))
    first = pa.table({"id": [1], "on": [date(2024, 1, 1)], "at": [1]}, schema)
    table.publish(table.partitioned("j1", first, "on"), 1)
    seen = foreign(table)
    reader = RowReader(seen, seen.schema(), by)
    field_id = seen.schema().find_field("on").field_id
    assert reader.find_constant(field_id, pa.date32(), make_file(FileFormat.PARQUET)).as_py() == date(2024, 1, 1)
    assert reader.find_constant(1, pa.int64(), make_file(FileFormat.PARQUET)).as_py() is None


# the key's type, and values of which any two are keys of their own
ALIKE = [
    (
        pa.string(),
        ["", " ", "a", "A", "a ", "a\0", "\0", "\u00e4", "a\u0308", "1", "01", "null", "\U0001f600", "x" * 300],
    ),
    (pa.binary(), [b"", b"\0", b"\0\0", b"a", b"A", b"\xff", b"a" * 8, b"a" * 8 + b"\0"]),
    (pa.int64(), [0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 256, 65536]),
    (pa.int32(), [0, 1, -1, 2**31 - 1, -(2**31), 2**24, 2**24 + 1]),
    (pa.decimal128(38, 0), [Decimal(n) for n in (0, 1, -1, 10**37, 10**37 + 1, 2**64, 2**64 + 1, -(2**64), 2**63)]),
    (pa.date32(), [date(1970, 1, 1), date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31)]),
    (pa.timestamp("us"), [datetime(1970, 1, 1), datetime(1970, 1, 1, 0, 0, 0, 1), datetime(1, 1, 1)]),
    (pa.bool_(), [True, False]),
]


@pytest.mark.parametrize("others", [0, 2], ids=["one key", "three keys"])
@pytest.mark.parametrize(("kind", "values"), ALIKE, ids=[str(row[0]) for row in ALIKE])
def test_every_two_keys_in_a_block_of_their_own(kind, values, others):
    """Arrow's numbers of keys are those of Python's equality, whichever two are alone with one another."""
    labels = [f"key{number}" for number in range(1 + others)]

    def make(*keys: Any) -> pa.Table:
        columns = [pa.array(keys, kind), *[pa.array([values[0]] * len(keys), kind)] * others]
        return pa.table([*columns, pa.array([0] * len(keys))], [*labels, "v"])

    for loaded, stored in product(values, repeat=2):
        is_same = loaded == stored
        keys, _ = number_keys(make(loaded), labels)
        assert keys.select_rows(make(stored)).to_pylist() == ([{"v": 0, KEY: 0}] if is_same else []), (loaded, stored)
        _, numbers = number_keys(make(loaded, stored), labels)
        assert numbers.to_pylist() == [0, 0 if is_same else 1], (loaded, stored)


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64()], ids=str)
@pytest.mark.parametrize("step", [1, 1024, 2**20])
def test_rows_that_have_one_of_a_few_keys(kind, step):
    """Many of them have the hash of a key without being one."""
    rng, numbers = random.Random(1), [None, *(number * step for number in range(-1000, 1000))]
    loaded = [*rng.sample(numbers, 400), None]
    stored = [rng.choice(numbers) for _ in range(5000)]
    keys, _ = number_keys(pa.table({"key0": pa.array(loaded, kind)}), ["key0"])
    chunks = pa.chunked_array([stored[:7], stored[7:7], stored[7:]], kind)
    found = keys.select_rows(pa.table({"key0": chunks, "place": range(5000)}))
    assert found["place"].to_pylist() == [place for place, key in enumerate(stored) if key in loaded]
    assert [loaded[number] for number in found[KEY].to_pylist()] == [key for key in stored if key in loaded]


# the first key column's type, its values, a row group each, and the row groups that are read for each value
GROUPS = [
    (pa.int64(), [-(2**63), -1, 0, 2**63 - 1, None], [[0, 4], [1, 4], [2, 4], [3, 4], [4]]),
    (pa.int32(), [-5, -1, 0, 2**31 - 1], [[0], [1], [2], [3]]),
    # Arrow writes no bounds of more than 4 KiB.
    (pa.string(), ["", "A", "a", "\u00e4", "\U0001f600", "z" * 5000], [[0, 5], [1, 5], [2, 5], [3, 5], [4, 5], [5]]),
    # Other writers cut bounds near 64 bytes, and do not all say so.
    (pa.string(), ["a", "b" * 60, "c" * 61, "\u00e4" * 31], [[0, 2, 3], [1, 2, 3], [2, 3], [2, 3]]),
    (pa.binary(), [b"a", b"b" * 60, b"c" * 61], [[0, 2], [1, 2], [2]]),
    (pa.string(), ["\uffff", "\U0001f600", None], [[0, 2], [1, 2], [2]]),
    (pa.binary(), [b"", b"\x01", b"\x80", b"\xff"], [[0], [1], [2], [3]]),
    (pa.binary(2), [b"\0\0", b"\x01\xff", b"\x80\0", b"\xff\xff"], [[0], [1], [2], [3]]),
    (pa.decimal128(38, 3), [Decimal("-1.5"), Decimal("0.001"), Decimal(10) ** 34], [[0], [1], [2]]),
    (pa.decimal128(9, 2), [Decimal("-1.5"), Decimal("0.01"), None], [[0, 2], [1, 2], [2]]),
    (pa.bool_(), [False, True], [[0], [1]]),
    (pa.float64(), [-1.0, 0.0, float("nan")], [[0, 1, 2]] * 3),
    (pa.date32(), [date(1969, 1, 1), date(9999, 12, 31)], [[0, 1]] * 2),
    (pa.timestamp("us", "UTC"), [-(2**62), 0, 2**62], [[0, 1, 2]] * 3),
]


@pytest.mark.parametrize(("kind", "values", "read_groups"), GROUPS, ids=[str(row[0]) for row in GROUPS])
def test_row_groups_that_may_have_a_key(kind, values, read_groups):
    every = pa.table({"at": range(len(values)), "key0": pa.array(values, kind)})
    body = BytesIO()
    pq.write_table(every, body, row_group_size=1)
    file = pq.ParquetFile(BytesIO(body.getvalue()))
    of_one = [number_keys(every.slice(n, 1), ["key0"])[0] for n in range(len(values))]
    assert [keys.select_groups(file, {"key0": "key0"}) for keys in of_one] == read_groups


# Columns of a file by its names, which of them the key is, and the row groups of 2 rows that may have 3, or 30 and 31.
LAYOUTS = [
    ({"id": [1, 2, 3, 4, 5, 6]}, "id", ([1], [])),
    # Without statistics, of another type, and not there: the value is that of the file's partition.
    ({"no statistics": [1, 2, 3, 4, 5, 6]}, "no statistics", ([0, 1, 2], [0, 1, 2])),
    ({"id": pa.array([1, 2, 3, 4, 5, 6], pa.int32())}, "id", ([0, 1, 2], [0, 1, 2])),
    ({"v": [1, 2, 3, 4, 5, 6]}, None, ([0, 1, 2], [0, 1, 2])),
    # Fields of structs have the names of columns.
    ({"s": [{"id": n} for n in (3, 4, 5, 6, 1, 2)], "id": [1, 2, 3, 4, 5, 6]}, "id", ([1], [])),
    ({"s": [{"id": n} for n in (3, 4, 5, 6, 1, 2)], "s.id": [1, 2, 3, 4, 5, 6]}, "s.id", ([0, 1, 2], [0, 1, 2])),
]


@pytest.mark.parametrize(("columns", "name", "read_groups"), LAYOUTS)
def test_row_groups_of_files_of_any_layout(columns, name, read_groups):
    body = BytesIO()
    pq.write_table(pa.table(columns), body, row_group_size=2, write_statistics="no statistics" not in columns)
    names = {"key0": name} if name else {}
    of_few = [number_keys(pa.table({"key0": values}), ["key0"])[0] for values in ([3], [30, 31])]
    assert tuple(keys.select_groups(pq.ParquetFile(BytesIO(body.getvalue())), names) for keys in of_few) == read_groups


def test_row_groups_that_may_have_one_of_many_keys(monkeypatch):
    """Beyond a few keys their least and their greatest value decide."""
    body = BytesIO()
    pq.write_table(pa.table({"id": [*range(12)]}), body, row_group_size=2)
    file = pq.ParquetFile(BytesIO(body.getvalue()))
    keys, found = [[3, 8], [12, 99], [11, 12], [-1, 0], [-2, -1]], list[list[list[int]]]()
    for few in (2, 1):
        monkeypatch.setattr(merge_keys, "_FEW_KEYS", few)
        of_each = [number_keys(pa.table({"key0": values}), ["key0"])[0] for values in keys]
        found.append([of_one.select_groups(file, {"key0": "id"}) for of_one in of_each])
    assert found == [[[1, 4], [], [5], [0], []], [[1, 2, 3, 4], [], [5], [0], []]]


def test_merges_onto_files_of_many_row_groups(aws, bucket):
    """Positions are those in the file, although row groups before them are not read."""
    table = Table(aws)
    merge(table, [row(1, 1, "a")], 1)
    seen = foreign(table)
    with seen.transaction() as change:
        change.set_properties({"write.parquet.row-group-limit": "2"})
    seen.append(pa.Table.from_pylist([row(number, 1, "a") for number in range(2, 13)], SCHEMA))
    merge(table, [row(5, 2, "b"), row(11, 2, "b"), row(12, 1, "b"), row(7, 2, "b", gone=True)], 2)
    assert [(one["id"], one["v"]) for one in read(table)] == [
        (1, "a"), (2, "a"), (3, "a"), (4, "a"), (5, "b"), (6, "a"), (8, "a"), (9, "a"), (10, "a"), (11, "b"), (12, "a"),
    ]  # fmt: skip


def test_load_whose_rows_have_no_key_merges_nothing():
    columns = [(KEY, pa.int32()), ("order0", pa.int64()), (DELETED, pa.bool_()), (POSITION, pa.int64())]
    stored = pa.schema([*columns, (FILE, pa.int32())]).empty_table()
    loaded = stored.append_column(PRECEDENCE, pa.array([], pa.int64()))
    judged = judge(loaded, stored, ("order0",), keeps_deleted=False)
    assert (len(judged.gone), judged.counts) == (0, MergeCounts())
