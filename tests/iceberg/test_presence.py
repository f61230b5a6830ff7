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
        """As if hours lay between the loads."""
        own = self.intents[job]
        self.intents[job] = own.model_copy(update={"started": own.started + timedelta(hours=1)})

    def roll_back(self, job: str) -> None:
        with self.table.seen.manage_snapshots() as change:
            change.set_current_snapshot(snapshot_id=self.snapshot(job))

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
        *(Loads.load, Loads.delay, Loads.roll_back, Loads.expire, Loads.rewrite, Loads.empty),
        *(Loads.forget_count, Loads.drop, Loads.make_anew),
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
    ("rolled back, the rest expired", ["roll_back b", "expire a", "expire c"], {"a": None, "b": None}),
    ("the same hours later", ["delay c", "roll_back b", "expire a", "expire c"], {"a": None, "b": None, "c": GONE}),
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
    for step in steps:
        name, *jobs = step.split()
        STEPS[name](loads, *jobs)
    for job, why in expected.items():
        found = loads.absence(job)
        assert (found is None) is (why is None), f"{job}: {found}"
        assert why is None or why in found
