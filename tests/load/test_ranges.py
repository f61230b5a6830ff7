"""``run --from --to``: the rows of a range come again, into the rows of their keys or the partitions of their days."""

from datetime import UTC, datetime

import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.run.ranges import Bounds, choose_range
from tests.load.refreshed import Refreshed
from tests.support.narrow import need

MERGED = {"mode": "merge", "primary_key": ["id"], "order_by": ["at"], "cursor": "at"}
DAYS = [datetime(2026, 3, day, 12, tzinfo=UTC) for day in (1, 2, 3, 4)]


@pytest.fixture
def table(tmp_path, aws, bucket):
    def make(**keys):
        return Refreshed(tmp_path, aws, "iceberg", **{key: value for key, value in keys.items() if value is not None})

    return make


class Ranged(Refreshed):
    """Its loads may bring a range."""

    bounds: Bounds | None = None

    @property
    def spec(self):
        spec = super().spec
        if self.bounds is None:
            return spec
        cursor = self.state_of(spec).cursor
        return choose_range(spec, self.bounds, cursor and cursor.type)

    def state_of(self, spec):
        bounds, self.bounds = self.bounds, None
        try:
            return self.pipeline.first_control.state.read()
        finally:
            self.bounds = bounds

    def load_range(self, job, first, end, column=None, **columns):
        self.bounds = Bounds(first, end, column)
        try:
            return self.load(job, **columns)
        finally:
            self.bounds = None

    def rows(self):
        return sorted(self.iceberg().scan().to_arrow().select(["id", "at", "name"]).to_pylist(), key=lambda r: r["id"])


@pytest.mark.spark
def test_rows_of_a_merged_table(tmp_path, aws, bucket, spark):
    users = Ranged(tmp_path, aws, "iceberg", spark=spark, **MERGED)
    users.load("a", id=[1, 2, 3], at=[10, 20, 30], name=["a", "b", "c"])
    # The source was corrected where nothing says so: each row has the order that it had. Row 3 is not of the range.
    report = users.load_range("again", "10", "30", id=[1, 2, 3, 4], at=[10, 20, 30, 25], name=["A", "B", "C", "D"])
    assert [(row["id"], row["name"]) for row in users.rows()] == [(1, "A"), (2, "B"), (3, "c"), (4, "D")]
    assert report.tables[0].notes[0] == "rows with at from 10 on, below 30, loaded again: the cursor stays"
    assert (users.state.cursor.text, users.differences()) == ("30", [])
    # The next load goes on from where the cursor was.
    users.load("b", id=[1, 5], at=[29, 31], name=["?", "e"])
    assert [row["name"] for row in users.rows()] == ["A", "B", "c", "D", "e"]
    users.undo("b").run()
    users.undo("again").run()
    assert [row["name"] for row in users.rows()] == ["a", "b", "c"]
    assert (users.state.cursor.text, users.differences()) == ("30", [])


@pytest.mark.spark
def test_rows_beyond_the_cursor_come_with_the_next_load(tmp_path, aws, bucket, spark):
    users = Ranged(tmp_path, aws, "iceberg", spark=spark, **MERGED)
    users.load("a", id=[1], at=[10], name=["a"])
    columns = {"id": [1, 2, 3], "at": [10, 15, 90], "name": ["a", "b", "c"]}
    users.load_range("again", "80", "100", **columns)
    assert ([row["id"] for row in users.rows()], users.state.cursor.text) == ([1, 3], "10")
    users.load("b", **columns)
    assert ([row["id"] for row in users.rows()], users.state.cursor.text) == ([1, 2, 3], "90")


@pytest.mark.spark
def test_row_that_was_deleted_comes_again(tmp_path, aws, bucket, spark):
    """At the order at which it was deleted, too: the source has it."""
    tracking = {"tracking": ["deleted"]}
    users = Ranged(tmp_path, aws, "iceberg", spark=spark, destination=tracking, deleted="gone", **MERGED)
    users.load("a", id=[1, 2], at=[10, 20], name=["a", "b"], gone=[False, False])
    users.load("b", id=[1], at=[30], name=["a"], gone=[True])
    users.load_range("again", "0", "31", id=[1, 2], at=[30, 20], name=["A", "B"], gone=[False, True])
    assert [row["name"] for row in users.rows()] == ["A"]
    users.load("c", id=[2, 1], at=[20, 31], name=["b", "z"], gone=[False, False])
    assert [row["name"] for row in users.rows()] == ["z"]


@pytest.mark.spark
def test_partitions_that_are_replaced(tmp_path, aws, bucket, spark):
    users = Ranged(tmp_path, aws, "iceberg", mode="replace_partitions", partition_by=["day(at)"], spark=spark)
    users.load("a", id=[1, 2, 3, 4], at=DAYS, name=["a", "b", "c", "d"])
    users.load_range("again", "2026-03-02", "2026-03-04", id=[5, 6, 7], at=DAYS[1:], name=["B", "C", "D"])
    assert [row["id"] for row in users.rows()] == [1, 4, 5, 6]


def test_range_is_of_one_table(table):
    spec = table(**MERGED).spec
    several = spec.model_copy(update={"tables": spec.tables * 2})
    with pytest.raises(SpecInvalidError, match="--from and --to are for one table, and 2 are to be loaded"):
        choose_range(several, Bounds("1", "2"), None)


REFUSED = [
    # the table's keys, the range, what is said
    ({"mode": "append", "cursor": "at"}, Bounds("1", "2"), "mode 'append' would add its rows to the same ones"),
    ({"mode": "refresh"}, Bounds("1", "2"), "mode 'refresh' would leave these rows alone in the table"),
    (
        MERGED | {"cursor": None, "read": {"format": "parquet", "path": "users", "files": "new"}},
        Bounds("1", "2", "at"),
        "'files: new' says which rows are read",
    ),
    (
        MERGED | {"cursor": None, "order_by": None, "envelope": "debezium", "destination": {"tracking": ["deleted"]}},
        Bounds("1", "2", "id"),
        "its rows come as change events, of which a range of rows is no part",
    ),
    (MERGED | {"cursor": None}, Bounds("1", "2"), "has no cursor, so nothing says of which column"),
    (MERGED, Bounds("2", "2"), "--from '2' is not below --to '2'"),
    (MERGED, Bounds("2026-03-02T10:00", "2026-03-02T10:00+02:00"), "is not below --to '2026-03-02T10:00+02:00'"),
    (MERGED, Bounds("10", "9"), "--from '10' is not below --to '9'"),
]
TYPED = [
    # the cursor's type, the range, the condition or what is said
    (None, Bounds("9", "10"), "`at` >= 9L AND `at` < 10L"),
    ("string", Bounds("10", "9"), "`at` >= '10' AND `at` < '9'"),
    ("int64", Bounds("9", "x"), "--to 'x' is not of type 'int64', as the cursor is."),
    ("date32[day]", Bounds("2026-03-01", "2026-03-02T10:00"), "`at` >= DATE '2026-03-01' AND `at` < DATE '2026-03-02'"),
    (
        None,
        Bounds("2026-03-01", "2026-03-01T10:00+02:00"),
        "`at` >= TIMESTAMP '2026-03-01 00:00:00.000000+00:00' AND `at` < TIMESTAMP '2026-03-01 08:00:00.000000+00:00'",
    ),
    (
        "timestamp[us]",
        Bounds("2026-03-01", "2026-03-02"),
        "`at` >= TIMESTAMP_NTZ '2026-03-01 00:00:00.000000' AND `at` < TIMESTAMP_NTZ '2026-03-02 00:00:00.000000'",
    ),
    (None, Bounds("a", "b", "k`"), "`k``` >= 'a' AND `k``` < 'b'"),
    ("decimal128(10, 2)", Bounds("1.50", "10"), "`at` >= CAST('1.50' AS DECIMAL(10,2)) AND `at` < CAST('10' AS DEC"),
]
AMID = [
    # the partition, the range, what is said; blank where it is loaded
    ("day(at)", Bounds("2026-03-01", "2026-03-02"), ""),
    ("day(at)", Bounds("2026-03-01", "2026-03-02T12:00"), "amid a partition of day(at)"),
    ("month(at)", Bounds("2026-03-01", "2026-04-02"), "--to '2026-04-02' is amid a partition of month(at)"),
    ("year(at)", Bounds("2026-02-01", "2027-01-01"), "--from '2026-02-01' is amid a partition of year(at)"),
    ("hour(at)", Bounds("2026-03-01T10:30+00:30", "2026-03-01T11:00"), ""),
    ("day(at)", Bounds("1", "2"), "--from '1' is amid a partition of day(at)"),
    ("kind", Bounds("a", "c"), ""),
    ("kind", Bounds("a", "c", "at"), "a range of column 'at' may have parts of some"),
    ("bucket(4, kind)", Bounds("a", "c"), "a range of its partition_by may have parts of some"),
]


@pytest.mark.parametrize(("keys", "bounds", "said"), REFUSED)
def test_refused_ranges(table, keys, bounds, said):
    with pytest.raises(SpecInvalidError) as refused:
        choose_range(table(**keys).spec, bounds, None)
    assert said in refused.value.message


@pytest.mark.parametrize(("kind", "bounds", "said"), TYPED)
def test_bounds_have_the_type_of_the_cursor(table, kind, bounds, said):
    spec = table(**MERGED).spec
    if said.startswith("--"):
        with pytest.raises(SpecInvalidError, match="is not of type"):
            choose_range(spec, bounds, kind)
        return
    assert need(choose_range(spec, bounds, kind).tables[0].between).sql.startswith(said)


@pytest.mark.parametrize(("by", "bounds", "said"), AMID)
def test_partitions_stay_whole(table, by, bounds, said):
    spec = table(mode="replace_partitions", partition_by=[by]).spec
    if not said:
        assert need(choose_range(spec, bounds, None).tables[0].between).column == by.split("(")[-1].rstrip(")")
        return
    with pytest.raises(SpecInvalidError) as refused:
        choose_range(spec, bounds, None)
    assert said in refused.value.message
