"""A lake in this process whose requests take time on a clock of its own, cost money, and are refused beyond a rate.

The product's own threads are fibers of one scheduler: the clock goes on when all of them wait. Only requests and pauses
take time; what the driver computes takes none.
"""

import os
import random
import sys
import tempfile
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, BinaryIO, Final

from lakewriter.aws.clients import TRIES, Pace
from lakewriter.pages import prices
from lakewriter.spec.access import Access
from tests.simulation.bucket import METHODS, Bucket, Change, Stored
from tests.simulation.glue import Catalog
from tests.simulation.scheduler import Process, Scheduler
from tests.simulation.simulated import SimulatedClients, Simulation
from tests.simulation.weather import Network, Weather, refused

SECONDS: Final = 0.02
"""What a request takes."""
SLOTS: Final = 8
"""Tasks that run at a time."""
WRITES_A_SECOND: Final = 3500
READS_A_SECOND: Final = 5500
"""What S3 takes under one prefix, here the whole bucket.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html"""
GLUE: Final = 1 / 1_000_000
"""US dollars for a request to the Glue Data Catalog, beyond the first million of a month.
https://aws.amazon.com/glue/pricing/, 2024"""
_FREE: Final = ("AbortMultipartUpload", "DeleteObject")
_READS: Final = ("GetObject", "HeadObject")
_LISTS: Final = ("ListObjectsV2", "ListMultipartUploads")


def price(requests: Mapping[str, int]) -> float:
    """US dollars for requests by operation; S3's are those of ``lakewriter.pages.prices``."""

    def price_one(operation: str) -> float:
        if operation not in METHODS:
            return GLUE
        return 0.0 if operation in _FREE else prices.READ if operation in _READS else prices.WRITE

    return sum(price_one(operation) * count for operation, count in requests.items())


class PacedNetwork(Network):
    """Every request takes ``SECONDS``, and is refused with 503 beyond the rates; clients keep the product's pace.

    ``requests`` are counted by who makes them, the driver or its tasks.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler, Weather())
        self.requests: dict[str, Counter[str]] = {}
        self.forget()
        self._paces: dict[int, Pace] = {}
        self._second, self._taken = 0, Counter[bool]()

    def forget(self) -> None:
        """Count anew."""
        self.requests = {"driver": Counter(), "tasks": Counter()}

    def note(self, text: str) -> None:
        """Nobody reads the history."""

    def call(self, operation: str, what: str, apply: Callable[[], Any], count: Callable[[str], None]) -> Any:
        """See ``Network``."""
        fiber = self.scheduler.current
        assert fiber is not None
        process, is_s3 = fiber.process, operation in METHODS
        made = self.requests["driver" if process.parent is None else "tasks"]
        pace = self._find_pace(process)
        for attempt in range(1, TRIES):
            if is_s3:
                pace.wait()
            count(operation)
            made[operation] += 1
            self.scheduler.sleep(SECONDS)
            if not is_s3 or self._may_pass(operation):
                pace.note(is_throttled=False)
                return apply()
            made["503"] += 1
            pace.note(is_throttled=True)
            self.scheduler.sleep(random.uniform(0, min(5.0, 0.1 * attempt)))
        raise refused(operation, 503, "SlowDown")

    def _find_pace(self, process: Process) -> Pace:
        driver = id(process.parent or process), process.parent is None
        clock = self.scheduler
        return self._paces.setdefault(hash(driver), Pace(lambda: clock.now_us / 1e6, clock.sleep))

    def _may_pass(self, operation: str) -> bool:
        if (second := self.scheduler.now_us // 1_000_000) != self._second:
            self._second, self._taken = second, Counter()
        is_read = operation in (*_READS, *_LISTS)
        self._taken[is_read] += 1
        return self._taken[is_read] <= (READS_A_SECOND if is_read else WRITES_A_SECOND)


class FiledObject(Stored):
    """An object whose content is in a file, so that the driver's memory is not the lake's."""

    __slots__ = ()

    @classmethod
    def write(cls, file: BinaryIO, stored: Stored) -> "FiledObject":
        """Append the content to the file."""
        start = file.seek(0, os.SEEK_END)
        file.write(stored.body)
        file.flush()
        self = cls.__new__(cls)
        self.__dict__.update({name: value for name, value in vars(stored).items() if name != "body"})
        self.__dict__["_where"] = (file.fileno(), start, len(stored.body))
        return self

    @property
    def size(self) -> int:
        """In bytes."""
        return int(self.__dict__["_where"][2])

    def __getattr__(self, name: str) -> Any:
        if name != "body":
            raise AttributeError(name)
        descriptor, start, size = self.__dict__["_where"]
        return os.pread(descriptor, size, start)


class FiledBucket(Bucket):
    """A bucket of a million objects: contents in a file, keys by folder, so that a listing looks at its own."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__(clock, 1000)
        self._file: Any = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self._folders: dict[str, list[str]] = {}
        self.watch.append(self._note)

    def _note(self, change: Change) -> None:
        if change.after is not None:
            self.objects[change.key] = FiledObject.write(self._file, change.after)
        if (change.before is None) == (change.after is None):
            return
        for folder, name in _split(change.key):
            names = self._folders.setdefault(folder, [])
            place = bisect_left(names, name)
            is_there = place < len(names) and names[place] == name
            if change.after is not None:
                if is_there:
                    return
                insort(names, name)
            else:
                del names[place]
                if names:
                    return
                del self._folders[folder]

    def list_keys(self, prefix: str, after: str) -> Iterator[str]:
        """Yield the keys that begin with ``prefix`` and come after another one, in their order."""
        folder, _, start = prefix.rpartition("/")
        yield from self._walk(f"{folder}/" if folder else "", start, after)

    def _walk(self, folder: str, start: str, after: str) -> Iterator[str]:
        names = self._folders.get(folder, [])
        beyond = after[len(folder) :] if after.startswith(folder) else ""
        first = max(start, beyond.partition("/")[0]) if beyond else start
        for place in range(bisect_left(names, first), len(names)):
            name = names[place]
            if not name.startswith(start):
                return
            key = folder + name
            if name.endswith("/"):
                yield from self._walk(key, "", after)
            elif key > after:
                yield key


def _split(key: str) -> Iterator[tuple[str, str]]:
    """The key's name in its folder, then each folder's name, with a slash, in the one above it."""
    end = len(key)
    while end > 0:
        start = key.rfind("/", 0, end - 1) + 1
        yield key[:start], key[start:end]
        end = start


class SimulatedLake:
    """A bucket and a catalog, and processes that work on them one after the other."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(random.Random(0), 0, most_steps=sys.maxsize)
        self.network = PacedNetwork(self.scheduler)
        self.bucket = FiledBucket(lambda: self.scheduler.now)
        self.simulation = Simulation(0, self.scheduler, self.network, self.bucket, Catalog())
        # A cluster that nothing befalls.
        self.simulation.is_speculative, self.simulation.lateness, self.simulation.slots = False, (0.0,), (SLOTS,)
        self.simulation.bounds = type(self.simulation.bounds)()
        self._processes = 0

    def run(self, access: Access, act: Callable[[SimulatedClients], Any]) -> tuple[Any, float]:
        """What a process of its own comes to, and the seconds that it takes on the lake's clock."""
        self._processes += 1
        began, answers = self.scheduler.now_us, list[Any]()
        fiber = self.scheduler.spawn(
            Process(f"p#{self._processes}"), lambda: answers.append(act(SimulatedClients(access, self.simulation)))
        )
        self.scheduler.run()
        if fiber.error is not None:
            raise fiber.error
        return answers[0], (self.scheduler.now_us - began) / 1e6

    def wait_until(self, seconds: float) -> None:
        """Let time pass until so long after the beginning, where it is not that late already."""
        self.scheduler.now_us = max(self.scheduler.now_us, int(seconds * 1e6))
