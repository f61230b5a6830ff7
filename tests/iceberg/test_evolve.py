"""What becomes of a column whose type in the source changes, without Spark."""

from decimal import Decimal

import pyarrow as pa
import pytest
from pyiceberg.table.snapshots import Snapshot

from lakewriter.column_types import reconcile, to_stored_type
from lakewriter.commit.iceberg.schema_evolution import IcebergTargetTable
from lakewriter.errors import SchemaIncompatibleError, StateLostError
from tests.iceberg.commits import Table


def list_of(t: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", t))


CHANGES = [
    # the source's first and second type, the column's after it, or None where neither fits the other
    (pa.int32(), pa.int64(), "long"),
    (pa.int64(), pa.int32(), "long"),
    (pa.int16(), pa.int8(), "int"),
    (pa.float32(), pa.float64(), "double"),
    (pa.float64(), pa.float32(), "double"),
    (pa.decimal128(5, 2), pa.decimal128(9, 2), "decimal(9, 2)"),
    (pa.decimal128(9, 2), pa.decimal128(5, 2), "decimal(9, 2)"),
    (pa.decimal128(9, 2), pa.decimal128(9, 3), None),
    (pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int64()), ("b", pa.string())]),
     "struct<4: a: optional long, 5: b: optional string>"),
    (pa.struct([("a", pa.int32()), ("b", pa.string())]), pa.struct([("A", pa.int32())]),
     "struct<4: a: optional int, 5: b: optional string>"),
    (pa.struct([("a", pa.decimal128(5, 2))]), pa.struct([("a", pa.decimal128(9, 2))]),
     "struct<4: a: optional decimal(9, 2)>"),
    (list_of(pa.int32()), list_of(pa.int64()), "list<long>"),
    (pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64()), "map<string, long>"),
    (pa.map_(pa.int32(), pa.int32()), pa.map_(pa.int64(), pa.int32()), None),
    (pa.timestamp("us", "UTC"), pa.timestamp("us"), None),
    (pa.timestamp("us"), pa.timestamp("us", "UTC"), None),
    (pa.date32(), pa.string(), None),
    (pa.string(), pa.binary(), None),
    (pa.int32(), pa.struct([("a", pa.int32())]), None),
]  # fmt: skip


def fitted(table: Table, job: str, name: str, source: pa.DataType) -> pa.Schema:
    """The schema that a load of this source would ask for, as it is planned."""
    before = IcebergTargetTable(table.action, table.clients, f"p/{job}/{job}1")
    fitting = before.fit_types({"id": pa.int64(), "v": to_stored_type(name, source)})
    written = reconcile(name, source, fitting["v"]) if "v" in fitting else to_stored_type(name, source)
    schema = pa.schema([("id", pa.int64()), (name, written), ("z", pa.string())])
    before.describe_changes(schema)
    return schema


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("first", "second", "expected"), CHANGES)
def test_change(aws, bucket, first, second, expected):
    table = Table(aws)
    table.ready("a", fitted(table, "a", "v", first))
    if expected is None:
        with pytest.raises(SchemaIncompatibleError, match=r"'[vV]'"):
            fitted(table, "b", "V", second)
        return
    _, schema = table.ready("b", fitted(table, "b", "V", second))
    assert str(table.seen.schema().find_type("v")) == expected
    assert schema.names == ["id", "V", "z"]
    assert [field.metadata[b"PARQUET:field_id"] for field in schema] == [b"1", b"2", b"3"]


def test_changes_in_words(aws, bucket):
    table = Table(aws)
    table.ready("a", pa.schema([("id", pa.int32()), ("n", pa.decimal128(5, 2))]))
    before = IcebergTargetTable(table.action, table.clients, "p/b/b1")
    assert before.describe_changes(
        pa.schema([("id", pa.int64()), ("n", pa.decimal128(7, 2)), ("more", pa.string())])
    ) == [
        "widen column id of db.t from int to long",
        "widen column n of db.t from decimal(5, 2) to decimal(7, 2)",
        "add column more string to db.t",
    ]
    assert len(table.seen.schemas()) == 1


def test_a_column_that_others_required_becomes_optional(aws, bucket):
    table = Table(aws)
    table.ready("a", pa.schema([("id", pa.int32())]))
    aws.hide_missing = False
    with table.seen.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("id", required=True)
    before = IcebergTargetTable(table.action, table.clients, "p/b/b1")
    assert before.describe_changes(pa.schema([("id", pa.int32())])) == ["make column id of db.t optional"]


def test_a_count_beyond_the_state_is_refused(aws, bucket):
    table = Table(aws)
    rows = pa.table({"id": [1], "n": [Decimal("1.00")]})
    table.publish(table.intent("a", rows), 1)
    with pytest.raises(StateLostError, match=r"lakewriter\.p"):
        table.ready("b", rows.schema, committed=0)


def test_only_the_current_snapshot_is_copied(aws, bucket, monkeypatch):
    """PyIceberg copies a table's metadata some twenty times in a transaction, with each of 5,000 snapshots where there
    are as many: 80 seconds where 30 columns were tried one by one."""
    table, rows = Table(aws), pa.table({"id": [1], "n": [2]})
    for number, job in enumerate("abc"):
        table.publish(table.intent(job, rows, committed=number), number + 1)
    first = table.seen.snapshots()[0].snapshot_id
    copied, copy = list[int](), Snapshot.__deepcopy__

    def note(snapshot: Snapshot, memo: dict[int, object] | None = None) -> Snapshot:
        copied.append(snapshot.snapshot_id)
        return copy(snapshot, memo)

    monkeypatch.setattr(Snapshot, "__deepcopy__", note)
    before = IcebergTargetTable(table.action, table.clients, "p/d/d1")
    assert before.describe_changes(rows.schema) == []
    intent = table.intent("d", rows, committed=3)
    assert (len(copied) > 3, copied.count(first)) == (True, 0)
    table.publish(intent, 4)
    # By the catalog, which makes the metadata that it has into the next.
    assert copied.count(first) == 1
