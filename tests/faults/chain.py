"""Loads killed at random, one after the other: what comes next is the same job id, or the next, or another kill."""

import random
import re
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.faults.books import Found, Pace
from tests.faults.process import KILLED, Process
from tests.load.lakes import Lake
from tests.load.syncs import SyncLake
from tests.support.call import Call


class Audited(Protocol):
    """A pipeline whose every row is known; ``Books`` is one."""

    pace: Pace

    @property
    def lake(self) -> Lake | SyncLake:
        """Where it is."""

    def process(self, job: str) -> Process:
        """A load in a process of its own."""

    def grow(self) -> None:
        """More rows in the source."""

    def glance(self) -> None:
        """Check what holds at any instant."""

    def audit(self, *, again: Iterable[str] = (), left: Iterable[str] = ()) -> Found:
        """Compare everything with one clean load of each job; see ``Books``."""


def _named(call: Call) -> str:
    """A call's action, what of an upload it is, and the control object."""
    upload = {"uploads": "begin", "partNumber": "part", "uploadId": "complete"}
    kinds = [kind for name, kind in upload.items() if name in call.query]
    control = re.search(r"(failed(?=/)|(?:state|begin|outcome|report)(?=\.json$))", call.key)
    what = kinds[0] if kinds else control[1] if control else "intent" if call.key.endswith(".json") else ""
    return f"{call.action} {what}".strip()


@dataclass
class Chain:
    """The history that ``seed`` gives; ``steps`` tells it in words."""

    books: Audited
    seed: str
    kills: int = 0
    struck: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    left_uploads: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)
        self._jobs = 0
        self._done: set[str] = set()
        self._left: set[str] = set()
        self._open: str | None = None

    def play(self, kills: int) -> None:
        """So many kills, and an audit whenever a load has ended after them."""
        while self.kills < kills:
            self._kill(self._next())
            self.books.glance()
            if self._rng.random() < 0.5:
                self._settle(self._next())
        self._settle(self._open or self._next())
        for job in sorted(self._left):
            self._open = job
            self._settle(job)

    def record(self) -> dict[str, Any]:
        """What happened: the kills and the calls they struck, and the uploads left to the lifecycle rule."""
        return {
            "seed": self.seed,
            "kills": self.kills,
            "left uploads": self.left_uploads.total(),
            "struck": self.struck,
            "history": "; ".join(self.steps),
        }

    def _next(self) -> str:
        """The job id that ran last and was not done, else the next one; now and then the next one instead."""
        if self._open is not None and self._rng.random() < 0.65:
            return self._open
        if self._open is not None:
            self._left.add(self._open)
        self._jobs += 1
        self._open = f"job{self._jobs:03d}"
        self.books.grow()
        return self._open

    def _kill(self, job: str) -> None:
        with self.books.process(job) as process:
            if self._rng.random() < 0.85:
                number = self._rng.randrange(self._rng.choice([self.books.pace.early, self.books.pace.calls]))
                applied = self._rng.random() < 0.5
                process.killed_at(lambda _: True, after=number, applied=applied)
                moment = f"{'after' if applied else 'at'} call {number}"
                code = process.wait()
            else:
                seconds = self._rng.uniform(0, self.books.pace.seconds)
                moment = f"{seconds:.1f} s after its first call"
                timer = threading.Timer(seconds, process.kill)
                process.gate.at(lambda _: True, timer.start)
                code = process.wait()
                timer.cancel()
        assert code in (KILLED, 0), process.errors
        if code == 0:
            self.steps.append(f"{job} done before it was killed {moment}")
            self._close(job)
            return
        last = _named(process.gate.calls[-1])
        self.kills += 1
        self.struck.append(last)
        self.steps.append(f"{job} killed {moment}: {last}")

    def _settle(self, job: str) -> None:
        assert self.books.lake.load(job).status == "done"
        self._close(job)
        found = self.books.audit(again=self._done, left=self._left)
        self.left_uploads |= found.left_uploads
        self.steps.append(f"{job} done; left to the lifecycle rule: {dict(found.left_uploads)}")

    def _close(self, job: str) -> None:
        self._done.add(job)
        self._left.discard(job)
        self._open = None
