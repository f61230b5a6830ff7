"""Batches come in the order of their files, and no more is read early than is asked for."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event

import pyarrow as pa
import pytest

from lakewriter.source.file_splits import Reading, read_ahead
from lakewriter.spec.specification import MIB


class Files:
    """Files of so many batches each, which say when they are opened and read."""

    def __init__(self, *batches: int) -> None:
        self.counts = batches
        self.opened: list[int] = []
        self.held: dict[int, Event] = {}

    def list_readings(self, *sizes: int) -> list[Reading]:
        return [Reading(size, partial(self._open, number)) for number, size in enumerate(sizes)]

    def _open(self, number: int) -> Iterator[pa.RecordBatch]:
        for place in range(self.counts[number]):
            if place == 0:
                self.opened.append(number)
            if number in self.held:
                assert self.held[number].wait(30)
            yield pa.record_batch({"file": [number], "batch": [place]})
        if self.counts[number] < 0:
            raise OSError(f"file {number} is broken")


def list_pairs(batches: Iterator[pa.RecordBatch]) -> Generator[tuple[int, int]]:
    for batch in batches:
        yield batch["file"][0].as_py(), batch["batch"][0].as_py()


@pytest.mark.parametrize(
    ("counts", "sizes", "expected"),
    [
        ((), (), []),
        ((2,), (1,), [(0, 0), (0, 1)]),
        ((1, 0, 2, 1), (1, 1, 1, 1), [(0, 0), (2, 0), (2, 1), (3, 0)]),
        ((1,) * 7, (1,) * 7, [(number, 0) for number in range(7)]),
        ((2, 2), (100 * MIB, 100 * MIB), [(0, 0), (0, 1), (1, 0), (1, 1)]),
        ((2, 1, 1, 2), (5 * MIB, 1, 5 * MIB, 1), [(0, 0), (0, 1), (1, 0), (2, 0), (3, 0), (3, 1)]),
    ],
)
def test_order(counts, sizes, expected):
    assert list(list_pairs(read_ahead(Files(*counts).list_readings(*sizes)))) == expected


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((1,) * 6, [0, 1, 2, 3]),
        ((2 * MIB,) * 6, [0, 1]),
        ((MIB, 2 * MIB, 2 * MIB, 1), [0, 1]),
        ((5 * MIB, 1, 1), [0]),
        ((1, 5 * MIB, 1), [0]),
    ],
    ids=["four at most", "4 MiB at most", "in their order", "a large one alone", "none behind a large one"],
)
def test_files_that_are_open_with_the_first_batch(sizes, expected):
    files = Files(*(2,) * len(sizes))
    batches = list_pairs(read_ahead(files.list_readings(*sizes)))
    assert next(batches) == (0, 0)
    batches.close()
    assert sorted(files.opened) == expected


def test_later_files_do_not_wait_for_the_first():
    files = Files(1, 1, 1)
    files.held[0] = Event()
    batches = list_pairs(read_ahead(files.list_readings(1, 1, 1)))
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(list, batches)
        while sorted(files.opened) != [0, 1, 2]:
            Event().wait(0.001)
        assert not found.done()
        files.held[0].set()
        assert found.result(30) == [(0, 0), (1, 0), (2, 0)]


def test_error_comes_where_its_batch_would():
    batches = list_pairs(read_ahead(Files(2, -1, 2).list_readings(1, 1, 1)))
    assert [next(batches), next(batches)] == [(0, 0), (0, 1)]
    with pytest.raises(OSError, match="file 1 is broken"):
        next(batches)
