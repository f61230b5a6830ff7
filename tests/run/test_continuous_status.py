"""Lag and status of a continuous run, without one."""

from datetime import UTC, datetime
from typing import cast

import pytest

from lakewriter.commit.store import Store, Unclear
from lakewriter.run.continuous_status import (
    HEARTBEAT_SECONDS,
    STATUS_SECONDS,
    Lag,
    RunStatus,
    StatusObject,
    TableStatus,
    beat,
)
from tests.support.narrow import need

AT = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
STATUS = RunStatus(pipeline="p", run="r", state="running", started_at=AT, at=AT, interval_seconds=5, tables={})

BATCHES = [
    # batches as (began, ended) at an interval of 5 seconds, the last one's lag
    ([(10, 11)], 6),
    ([(10, 11), (15, 17)], 7),
    ([(10, 22), (22, 25)], 15),
    ([(10, 11), (100, 101)], 6),
]


@pytest.mark.parametrize(("batches", "lag"), BATCHES)
def test_lag(batches, lag):
    measure = Lag(5)
    assert [measure.of(began, ended) for began, ended in batches][-1] == lag


class Cell:
    """A store of one object; ``unclear`` answers come first."""

    def __init__(self, unclear: int = 0) -> None:
        self.body: bytes | None = None
        self.etag, self.unclear = 0, unclear

    def get(self, key):
        return None if self.body is None else (self.body, str(self.etag))

    def create(self, key, body):
        return self.replace(key, body, str(self.etag)) if self.body is None else None

    def replace(self, key, body, etag):
        if self.unclear:
            self.unclear -= 1
            raise Unclear
        if etag != str(self.etag):
            return None
        self.body, self.etag = body, self.etag + 1
        return str(self.etag)


def test_status_object_is_replaced_whoever_wrote_it_last():
    cell = Cell(unclear=1)
    mine, other = (StatusObject(cast(Store, cell), "k") for _ in range(2))
    for status in (mine, mine, other, mine, mine):
        status.write(STATUS, 0)
    assert cell.etag == 3
    assert RunStatus.model_validate_json(need(cell.body)) == STATUS


def test_status_object_is_due():
    status = StatusObject(cast(Store, Cell()), "k")
    assert status.due(0, news=False)
    status.write(STATUS, 100)
    seconds = (STATUS_SECONDS - 1, STATUS_SECONDS, HEARTBEAT_SECONDS)
    assert [status.due(100 + after, news=True) for after in seconds] == [False, True, True]
    assert [status.due(100 + after, news=False) for after in seconds] == [False, False, True]


class Waiting:
    """A run's end, ``seconds`` from its beginning by a clock that only waiting moves."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now = seconds, 0.0

    def wait(self, seconds):
        self.now += seconds
        return self.now >= self.seconds


def beaten(seconds, describe):
    """When the status was written and what it said, in seconds since the run began."""
    clock, written = Waiting(seconds), []

    class Noted(StatusObject):
        def write(self, status, now):
            written.append((now, status))
            super().write(status, now)

    beat(Noted(cast(Store, Cell()), "k"), lambda: describe(clock.now), clock, lambda: clock.now)
    return written


def test_a_run_that_waits_for_an_hour_is_seen_to_live():
    """The guide: the status is replaced at least every minute while the process lives."""
    times = [now for now, _ in beaten(3600, lambda _: STATUS)]
    assert times[0] == 0
    assert max(after - before for before, after in zip(times, [*times[1:], 3600], strict=True)) < 60


def test_the_status_follows_batches_and_the_end():
    """A batch a second: a status every 15; that the run is stopping is told at once."""

    def describe(now):
        state = "stopping" if now >= 20 else "running"
        return STATUS.model_copy(update={"state": state, "tables": {"t": TableStatus(batches=int(min(now, 20)))}})

    found = [(now, status.state) for now, status in beaten(60, describe)]
    assert found == [(0, "running"), (15, "running"), (20, "stopping")]
