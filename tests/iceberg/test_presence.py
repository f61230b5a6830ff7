"""Loads that somebody has taken out of an Iceberg table, and loads that only look so."""

from datetime import timedelta

import pyarrow as pa
import pytest

from lakewriter.commit.iceberg.append import IcebergTables
from lakewriter.records.actions import IcebergAction
from lakewriter.records.changes import Intent
from tests.iceberg.commits import Table
from tests.support.narrow import need

ROWS = pa.table({"id": [1, 2]})
GONE, DROPPED, ANEW = "was rolled back", "is gone from the catalog", "dropped and made anew"


class Loads:
    """Loads a, b and c of one table, and what others do to it."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.intents: dict[str, Intent] = {}
        for job in "abc":
            self.load(job)

    def load(self, job: str) -> None:
        committed = len(self.intents)
        self.intents[job] = self.table.intent(job, ROWS, committed=committed)
        self.table.publish(self.intents[job], committed + 1)

    def snapshot(self, job: str) -> int:
        """The id of the load's snapshot."""
        return next(
            own.snapshot_id
            for own in self.table.seen.snapshots()
            if need(own.summary).additional_properties.get("lakewriter.job-id") == job
        )

    def delay(self, job: str) -> None:
        """As if the clock of the load's machine were an hour fast."""
        own = self.intents[job]
        self.intents[job] = own.model_copy(update={"started": own.started + timedelta(hours=1)})

    def roll_back(self, job: str) -> None:
        with self.table.seen.manage_snapshots() as change:
            change.set_current_snapshot(snapshot_id=self.snapshot(job))

    def load_behind(self, job: str) -> None:
        """A load that another writer's commits overtake."""
        committed = len(self.intents)
        self.intents[job] = self.table.intent(job, ROWS, committed=committed)
        self.rewrite()
        self.table.publish(self.intents[job], committed + 1)

    def roll_back_before(self, job: str) -> None:
        """To what the load's snapshot followed."""
        seen = self.table.seen
        parent = need(need(seen.snapshot_by_id(self.snapshot(job))).parent_snapshot_id)
        with seen.manage_snapshots() as change:
            change.set_current_snapshot(snapshot_id=parent)

    def expire(self, job: str) -> None:
        self.table.seen.maintenance.expire_snapshots().by_id(self.snapshot(job)).commit()

    def rewrite(self) -> None:
        """All rows into other files: a compaction, or a statement of SQL."""
        seen = self.table.seen
        seen.overwrite(seen.scan().to_arrow())

    def empty(self) -> None:
        self.table.seen.delete("true")

    def forget_count(self) -> None:
        with self.table.seen.transaction() as transaction:
            transaction.remove_properties("lakewriter.p")

    def upgrade(self) -> None:
        with self.table.seen.transaction() as transaction:
            transaction.upgrade_table_version(2)

    def drop(self) -> None:
        self.table.aws.client("glue").delete_table(DatabaseName="db", Name="t")

    def make_anew(self) -> None:
        self.table.ready("z", ROWS.schema)

    def absence(self, job: str) -> str | None:
        action = self.intents[job].catalog
        assert isinstance(action, IcebergAction)
        return IcebergTables(action, self.table.clients, self.intents[job].load).explain_absence(self.intents[job])


STEPS = {
    step.__name__: step
    for step in (
        *(Loads.load, Loads.load_behind, Loads.delay, Loads.roll_back, Loads.roll_back_before, Loads.expire),
        *(Loads.rewrite, Loads.empty, Loads.forget_count, Loads.upgrade, Loads.drop, Loads.make_anew),
    )
}


@pytest.fixture
def loads(aws, bucket):
    # PyIceberg's own FileIO takes a 403 for a refusal.
    aws.hide_missing = False
    return Loads(Table(aws))


CASES = [
    # What was done to the table after loads a, b and c; why each load is not there any more, None for one that is.
    ("nothing", [], {"a": None, "b": None, "c": None}),
    ("rolled back to a", ["roll_back a"], {"a": None, "b": GONE, "c": GONE}),
    ("rolled back, then loaded", ["roll_back a", "load d"], {"a": None, "b": GONE, "c": GONE, "d": None}),
    ("rolled back and forth", ["roll_back a", "roll_back c"], {"a": None, "b": None, "c": None}),
    ("rolled back, expired", ["roll_back a", "expire b", "expire c"], {"a": None, "b": GONE, "c": GONE}),
    ("rolled back, the rest expired", ["roll_back b", "expire a", "expire c"], {"a": None, "b": None, "c": GONE}),
    ("a fast clock, then expired", ["delay b", "expire a", "expire b"], {"a": None, "b": None, "c": None}),
    (
        "rolled back to who overtook it",
        ["load_behind d", "roll_back_before d", "expire a", "expire b", "expire c", "expire d"],
        {"a": None, "b": None, "c": None, "d": GONE},
    ),
    ("rewritten", ["rewrite"], {"a": None, "b": None, "c": None}),
    ("emptied", ["empty"], {"a": None, "b": None, "c": None}),
    ("older ones expired", ["expire a", "expire b"], {"a": None, "b": None, "c": None}),
    ("one between expired", ["expire b"], {"a": None, "b": None, "c": None}),
    ("all rewritten, then expired", ["rewrite", "expire a", "expire b", "expire c"], {"a": None, "b": None, "c": None}),
    ("count removed", ["forget_count", "expire b"], {"a": None, "b": None, "c": None}),
    ("dropped", ["drop"], {"a": DROPPED, "c": DROPPED}),
    ("made anew", ["drop", "make_anew"], {"a": ANEW, "c": ANEW}),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("steps", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_loads_that_are_there_and_loads_that_are_gone(loads, steps, expected):
    require_absences(loads, steps, expected)


FORMAT_1 = [
    # As above, of a table of format version 1: once the load's snapshot has expired, nothing shows a rollback.
    ("rolled back to a", ["roll_back a"], {"a": None, "b": GONE, "c": GONE}),
    ("rolled back, then loaded", ["roll_back a", "load d"], {"a": None, "b": GONE, "c": GONE, "d": None}),
    ("rolled back, expired", ["roll_back a", "expire b", "expire c"], {"a": None, "b": None, "c": None}),
    ("a fast clock, then expired", ["delay b", "expire a", "expire b"], {"a": None, "b": None, "c": None}),
    ("upgraded", ["upgrade", "load d", "expire a", "expire c"], {"a": None, "b": None, "c": None, "d": None}),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("steps", "expected"), [case[1:] for case in FORMAT_1], ids=[case[0] for case in FORMAT_1])
def test_loads_of_a_table_without_sequence_numbers(aws, bucket, steps, expected):
    aws.hide_missing = False
    table = Table(aws)
    table.action = table.action.model_copy(update={"format_version": 1})
    require_absences(Loads(table), steps, expected)


def require_absences(loads: Loads, steps: list[str], expected: dict[str, str | None]) -> None:
    for step in steps:
        name, *jobs = step.split()
        STEPS[name](loads, *jobs)
    for job, why in expected.items():
        found = loads.absence(job)
        assert (found is None) is (why is None), f"{job}: {found}"
        assert why is None or (found is not None and why in found)
