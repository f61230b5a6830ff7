"""Files of records that tasks take as they come."""

import itertools
from types import SimpleNamespace

import pytest

from lakewriter.documents.types import ROW
from lakewriter.errors import SourceFailedError, WorkerDiedError
from lakewriter.source.messages.arriving import ArrivingFeed, _run_task, take_arriving
from lakewriter.source.messages.backlog import Backlog
from lakewriter.source.messages.chunks import Records


class Arriving:
    """A feed, and what comes."""

    def __init__(self, folder):
        self.folder = folder / "load"
        self.feed = ArrivingFeed(None, self.folder, "t", most=2)  # type: ignore[arg-type]
        self._backlog = Backlog(folder, itertools.count())

    def put(self, *places):
        for place in places:
            self._backlog.add(Records(("n", "users"), [place], [b"{}"], [None], [None]))
        for piece in self._backlog.take_all(1 << 62):
            self.feed.hand(piece)

    def take(self, partition, sleep):
        for batch in take_arriving(self.folder, partition, sleep):
            yield from batch.column(ROW).to_pylist()


@pytest.fixture
def arriving(tmp_path):
    return Arriving(tmp_path)


def test_records_that_come_while_a_task_waits(arriving):
    coming = iter([lambda: arriving.put(2), lambda: arriving.put(3, 4), arriving.feed.end])
    arriving.put(1)
    assert list(arriving.take(0, lambda _: next(coming)())) == [1, 2, 3, 4]
    assert arriving.feed.waiting_bytes == 0


def test_two_tasks_have_each_record_once(arriving):
    for place in range(1, 7):
        arriving.put(place)
    arriving.feed.end()
    first, second = arriving.take(0, None), arriving.take(1, None)
    assert [next(first), next(second), next(second)] == [1, 2, 3]
    assert [list(second), list(first)] == [[4, 5, 6], []]


@pytest.mark.parametrize("how", ["given up", "closed"])
def test_a_load_that_is_given_up_ends_its_tasks(arriving, how):
    arriving.put(1, 2)
    taken = arriving.take(0, None)
    assert next(taken) == 1
    (arriving.feed.give_up if how == "given up" else arriving.feed.close)()
    assert next(taken) == 2
    with pytest.raises(SourceFailedError, match="before a STATE that covers these records"):
        next(taken)


def test_a_load_without_records_starts_no_task(arriving):
    arriving.feed.end()
    assert arriving.feed.run(lambda *_: pytest.fail("a task")) == []


def test_a_task_that_is_started_again_takes_nothing(arriving, monkeypatch):
    """Its first run has deleted what it took: with what is left the load would be committed without those records."""
    arriving.put(1, 2)
    arriving.feed.end()
    context = SimpleNamespace(attemptNumber=lambda: 1)
    monkeypatch.setattr("lakewriter.source.messages.arriving.TaskContext", SimpleNamespace(get=lambda: context))
    with pytest.raises(WorkerDiedError, match="was started again, and what its first run took is gone"):
        list(_run_task(arriving.folder, lambda partition, batches: map(str, batches), iter([0])))
    assert arriving.feed.waiting_bytes
