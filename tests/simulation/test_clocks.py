"""A machine whose clock is wrong, on a store that takes its requests: what is old is so by the store's clock."""

from datetime import timedelta
from typing import Any

import pytest

from lakewriter.report import RunReport
from lakewriter.run.loader import load
from tests.commit.edits import Edit
from tests.simulation.crowd import Crowd
from tests.simulation.source import Session
from tests.simulation.stand_ins import installed

DAY = timedelta(days=1)


class Machine:
    """A pipeline of one table, loaded by machines with clocks of their own."""

    def __init__(self) -> None:
        self.crowd = Crowd(1)
        self.steps: list[str] = []

    def load(self, job_id: str, skew: timedelta = timedelta(0)) -> str:
        """Load the table; its status."""
        reports: list[RunReport] = []

        def act(pipeline):
            session: Any = Session(self.crowd.sources, "crowd", job_id, "p")
            told = lambda table, step, detail: self.steps.append(detail)  # noqa: E731
            report = load(self.crowd.spec, job_id=job_id, clients=pipeline.clients, spark=session, progress=told)
            reports.append(report)

        self.crowd.count(act, skew)
        return reports[0].tables[0].status

    def list_jobs(self) -> list[str]:
        """The loads that have records."""
        return sorted({key.split("/loads/")[1].split("/")[0] for key in self.crowd.bucket.objects if "/loads/" in key})


CLOCKS = [
    # How far the clock of the machine of the second load is ahead, how long after the first load that is, the loads
    # that have records then, and whether it says that it has cleared nothing away. Records are kept for 30 days.
    (timedelta(0), 40 * DAY, ["b"], False),
    (timedelta(0), 20 * DAY, ["a", "b"], False),
    (40 * DAY, timedelta(hours=1), ["a", "b"], True),
    (timedelta(hours=20), 29.5 * DAY, ["a", "b"], False),
    (timedelta(hours=-20), 30.5 * DAY, ["b"], False),
    (-40 * DAY, 40 * DAY, ["a", "b"], True),
    (365 * DAY, 40 * DAY, ["a", "b"], True),
]


@pytest.mark.parametrize(("skew", "after", "kept", "refused"), CLOCKS)
def test_records_of_other_loads(skew, after, kept, refused):
    with installed():
        machine = Machine()
        assert machine.load("a") == "done"
        machine.crowd.wait(after)
        assert machine.load("b", skew) == "done"
        assert machine.list_jobs() == kept
        said = [step for step in machine.steps if "old control objects were not cleared away: TIMEOUT" in step]
        assert bool(said) is refused, machine.steps
        if "a" in kept:
            assert machine.load("a") == "already_done"


def test_sweep_that_a_wrong_clock_has_noted():
    """An earlier release noted its sweep by the clock of the machine: the next one is due all the same."""
    with installed():
        machine = Machine()
        assert machine.load("a") == "done"

        def note(pipeline):
            control = pipeline.first_control
            control.state.move(Edit(swept=machine.crowd.scheduler.now + 400 * DAY))

        machine.crowd.count(note)
        machine.crowd.wait(40 * DAY)
        assert machine.load("b") == "done"
        assert machine.list_jobs() == ["b"]


RUNNING = [
    # How far the clock of the machine that registered first is ahead, and that of the next one; how long after the
    # first that is; whether the first load's attempt is still registered then.
    (timedelta(0), timedelta(0), timedelta(hours=1), True),
    (timedelta(0), timedelta(0), 31 * DAY, False),
    (timedelta(0), 40 * DAY, timedelta(hours=1), True),
    (-40 * DAY, timedelta(0), timedelta(hours=1), True),
    (-40 * DAY, timedelta(0), 31 * DAY, False),
]


@pytest.mark.parametrize(("first", "second", "after", "registered"), RUNNING)
def test_loads_that_are_running(first, second, after, registered):
    with installed():
        machine = Machine()
        machine.crowd.load_in_vain("a", first)
        machine.crowd.wait(after)
        machine.load("b", second)
        states = []
        machine.crowd.count(lambda pipeline: states.append(pipeline.first_control.state.read()))
        assert ("a" in states[0].running) is registered
