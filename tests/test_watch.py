"""Lag and status of a continuous run, without one."""

from datetime import UTC, datetime

import pytest

from job.commit.store import Unclear
from job.watch import HEARTBEAT_SECONDS, STATUS_SECONDS, Lag, RunStatus, StatusObject

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
        self.body, self.etag, self.unclear = None, 0, unclear

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
    mine, other = StatusObject(cell, "k"), StatusObject(cell, "k")
    for status in (mine, mine, other, mine, mine):
        status.write(STATUS, 0)
    assert cell.etag == 3
    assert RunStatus.model_validate_json(cell.body) == STATUS


def test_status_object_is_due():
    status = StatusObject(Cell(), "k")
    assert status.due(0, news=False)
    status.write(STATUS, 100)
    seconds = (STATUS_SECONDS - 1, STATUS_SECONDS, HEARTBEAT_SECONDS)
    assert [status.due(100 + after, news=True) for after in seconds] == [False, True, True]
    assert [status.due(100 + after, news=False) for after in seconds] == [False, False, True]
