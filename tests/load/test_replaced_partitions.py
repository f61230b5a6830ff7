"""``mode: replace_partitions``: a load takes the place of the partitions that it has rows for, and of no other."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from lakewriter.errors import SpecInvalidError
from tests.load.refreshed import Refreshed

pytestmark = pytest.mark.spark

DAYS = [datetime(2026, 3, day, 12, tzinfo=UTC) for day in (1, 2, 3)]
VALUES = [
    # partition_by, a value in each of three partitions
    ("kind", ["a", "b", "c"]),
    ("kind", ["a", None, "c"]),
    ("kind", [1, 2, 3]),
    ("kind", [date(2026, 3, 1), date(1969, 12, 31), date(2026, 3, 3)]),
    ("kind", [Decimal("1.50"), Decimal("-2.25"), Decimal("3.00")]),
    ("kind", [True, False, None]),
    ("day(kind)", DAYS),
    ("hour(kind)", DAYS),
    ("month(kind)", [date(2026, 1, 1), date(2026, 2, 1), date(1960, 1, 1)]),
    ("year(kind)", [date(2024, 1, 1), date(2025, 1, 1), date(2026, 1, 1)]),
    ("truncate(2, kind)", ["aab", "abb", "acb"]),
    ("truncate(10, kind)", [5, 15, 25]),
    # 1, 2 and 3, by the hash of the specification's appendix B
    ("bucket(4, kind)", [6, 4, 3]),
]


def make(tmp_path, aws, spark, by="kind", **changes):
    return Refreshed(tmp_path, aws, "iceberg", partition_by=[by], mode="replace_partitions", spark=spark, **changes)


@pytest.mark.one_in(16)
@pytest.mark.parametrize(("by", "values"), VALUES)
def test_partitions_with_rows_are_replaced_and_the_others_stay(tmp_path, aws, bucket, spark, by, values):
    first, second, third = values
    users = make(tmp_path, aws, spark, by)
    users.load("a", id=[1, 2, 3], kind=[first, second, second])
    users.load("b", id=[4, 5], kind=[second, third])
    assert users.ids() == [1, 4, 5]
    users.load("c", id=[6], kind=[first])
    assert users.ids() == [4, 5, 6]
    assert users.differences() == []


def test_readers_see_one_snapshot_for_it(tmp_path, aws, bucket, spark):
    users = make(tmp_path, aws, spark)
    users.load("a", id=[1, 2], kind=["x", "y"])
    before = users.iceberg().current_snapshot()
    users.load("b", id=[3], kind=["y"])
    table = users.iceberg()
    after = table.current_snapshot()
    assert after.parent_snapshot_id == before.snapshot_id
    summary = after.summary
    assert summary.operation.value == "overwrite"
    counts = {
        key: summary[key] for key in ("added-data-files", "deleted-data-files", "total-data-files", "total-records")
    }
    assert counts == {"added-data-files": "1", "deleted-data-files": "1", "total-data-files": "2", "total-records": "2"}
    assert sorted(table.scan(snapshot_id=before.snapshot_id).to_arrow()["id"].to_pylist()) == [1, 2]


def test_a_load_without_rows_replaces_nothing(tmp_path, aws, bucket, spark):
    users = make(tmp_path, aws, spark)
    users.load("a", id=[1], kind=["x"])
    before = users.iceberg().current_snapshot()
    users.load("b", id=pa.array([], pa.int64()), kind=pa.array([], pa.string()))
    assert users.ids() == [1]
    assert users.iceberg().current_snapshot() == before
    users.undo("b").run()
    users.undo("a").run()
    assert users.ids() == []
    assert users.differences() == []


def test_an_undo_brings_the_partitions_back(tmp_path, aws, bucket, spark):
    users = make(tmp_path, aws, spark)
    users.load("a", id=[1, 2], kind=["x", "y"])
    users.load("b", id=[3], kind=["y"])
    users.load("c", id=[4], kind=["x"])
    with pytest.raises(SpecInvalidError):
        users.undo("b").plan()
    users.undo("c").run()
    assert users.ids() == [1, 3]
    users.undo("b").run()
    assert users.ids() == [1, 2]
    assert users.differences() == []


@pytest.mark.exhaustive
def test_an_undo_does_not_go_back_behind_that_of_an_older_load(tmp_path, aws, bucket, spark):
    """The snapshot before load f has the rows of e, which was undone after it."""
    users = make(tmp_path, aws, spark)
    users.load("a", id=[1], kind=["x"])
    users.load("b", id=[2], kind=["y"])
    users.load("c", id=[3], kind=["z"])
    users.write(mode="append")
    users.load("d", id=[4], kind=["z"])
    users.undo("d").run()
    users.load("e", id=[5], kind=["v"])
    users.write(mode="replace_partitions")
    users.load("f", id=[6], kind=["w"])
    users.undo("e").run()
    assert users.ids() == [1, 2, 3, 6]
    with pytest.raises(SpecInvalidError, match=r"the table has changed since, by load 'crm/undo\.e/"):
        users.undo("f").plan()
    assert users.ids() == [1, 2, 3, 6]


@pytest.mark.exhaustive
def test_it_takes_turns_with_the_other_modes(tmp_path, aws, bucket, spark):
    users = make(tmp_path, aws, spark)
    users.load("a", id=[1, 2], kind=["x", "y"])
    users.write(mode="append")
    users.load("b", id=[3], kind=["y"])
    assert users.ids() == [1, 2, 3]
    users.write()
    users.load("c", id=[4], kind=["y"])
    assert users.ids() == [1, 4]
    with pytest.raises(SpecInvalidError, match="load c has replaced 1 of its 1 file"):
        users.undo("b").plan()
    users.write(mode="refresh")
    users.load("d", id=[5], kind=["z"])
    assert users.ids() == [5]
    assert users.differences() == []


def test_files_of_others_go_with_their_partition(tmp_path, aws, bucket, spark):
    """As with Spark's dynamic overwrite, whoever wrote them."""
    users = make(tmp_path, aws, spark)
    users.load("a", id=[1], kind=["x"])
    aws.hide_missing = False
    table = users.iceberg()
    rows = table.scan().to_arrow()
    table.append(rows.set_column(rows.schema.get_field_index("id"), "id", [[7]]).cast(rows.schema))
    assert users.ids() == [1, 7]
    users.load("b", id=[2], kind=["x"])
    assert users.ids() == [2]


def test_files_of_earlier_partition_fields_are_refused(tmp_path, aws, bucket, spark):
    """One of them may have rows of several of today's partitions."""
    users = make(tmp_path, aws, spark)
    users.load("a", id=[1], kind=["x"])
    aws.hide_missing = False
    with users.iceberg().update_spec() as spec:
        spec.add_identity("id")
    users.write(partition_by=["kind", "id"])
    (refused,) = users.try_load("b", id=[2], kind=["x"]).tables
    assert (refused.code, "partitioned in another way" in refused.message) == ("SCHEMA_INCOMPATIBLE", True)
    assert users.ids() == [1]
    users.write(partition_by=["kind", "id"], mode="refresh")
    users.load("c", id=[2], kind=["x"])
    users.write(partition_by=["kind", "id"], mode="replace_partitions")
    users.load("d", id=[3], kind=["x"])
    assert users.ids() == [2, 3]
