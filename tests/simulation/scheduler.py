"""One baton for all threads: exactly one runs at a time, and it is handed on at simulated calls and sleeps only.

Whose turn it is comes from the seed, and time is a number, so that a seed is one history.
"""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

BEGINNING: Final = datetime(2026, 1, 15, 10, tzinfo=UTC)
MOST_STEPS: Final = 60_000
"""More switches than any history needs: a product that waits for itself ends here."""


class Killed(BaseException):
    """The process is gone. Whatever it still calls on its way out is not applied."""


def _held() -> threading.Lock:
    """What one thread waits for and another one releases: a bare lock takes half the time of a semaphore."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class Stuck(Exception):  # noqa: N818 - it is a finding, not an error of the simulation
    """The history does not come to its end."""


@dataclass
class Process:
    """What dies together; ``skew`` is how far its clock goes wrong, ``job`` what it loads. An executor dies with its
    driver."""

    name: str
    skew: timedelta = timedelta(0)
    parent: "Process | None" = None
    killed: bool = False
    job: str = ""

    @property
    def dead(self) -> bool:
        """Whether nothing it calls is applied any more."""
        return self.killed or (self.parent is not None and self.parent.dead)

    def __str__(self) -> str:
        return self.name


@dataclass
class Fiber:
    """One thread of a process."""

    process: Process
    body: Callable[[], Any]
    wake: int = 0
    joins: tuple["Fiber", ...] = ()
    until: Callable[[], bool] | None = None
    finished: bool = False
    error: BaseException | None = None
    baton: threading.Lock = field(default_factory=_held)
    thread: threading.Thread | None = None

    def may_run(self, now: int) -> bool:
        """Whether it waits for nothing."""
        return self.wake <= now and self.is_met

    @property
    def is_met(self) -> bool:
        """Whether it waits for the time alone."""
        return all(other.finished for other in self.joins) and (self.until is None or self.until())


class Scheduler:
    """``switching`` is the chance that a call hands the baton on."""

    def __init__(self, rng: random.Random, switching: float, most_steps: int = MOST_STEPS) -> None:
        self.rng, self.switching, self._most_steps = rng, switching, most_steps
        self.now_us = 0
        self.steps = 0
        self.current: Fiber | None = None
        self.on_step: Callable[[], None] = lambda: None
        self._open: list[Fiber] = []
        self._done = _held()
        self._failure: BaseException | None = None

    @property
    def now(self) -> datetime:
        """The true time."""
        return BEGINNING + timedelta(microseconds=self.now_us)

    def is_mine(self) -> bool:
        """Whether the caller is the fiber whose turn it is, and not some thread of the test's own."""
        fiber = self.current
        return fiber is not None and fiber.thread is threading.current_thread()

    def list_running(self) -> list[Process]:
        """Processes that have begun and not ended, but for the caller's."""
        return [fiber.process for fiber in self._open if fiber.thread is not None and fiber is not self.current]

    def spawn(self, process: Process, body: Callable[[], Any], delay: float = 0.0) -> Fiber:
        """A fiber that begins after ``delay`` seconds."""
        fiber = Fiber(process, body, wake=self.now_us + int(delay * 1e6))
        self._open.append(fiber)
        return fiber

    def run(self) -> None:
        """Until every fiber has ended."""
        if self._open:
            self._hand_to(self._next())
            self._done.acquire()
        self.current = None
        if self._failure is not None:
            raise self._failure

    def pass_on(self) -> None:
        """Perhaps let another go first."""
        if len(self._open) > 1 and self.rng.random() < self.switching:
            self.switch()

    def switch(self) -> None:
        """Let whoever is chosen go on; the caller goes on when it is chosen itself."""
        mine = self.current
        assert mine is not None
        self.steps += 1
        if self.steps > self._most_steps:
            raise Stuck(f"more than {self._most_steps} steps")
        self.on_step()
        following = self._next()
        if following is not mine:
            self._hand_to(following)
            mine.baton.acquire()
        self.check()

    def check(self) -> None:
        """Raise where the caller's process is gone."""
        mine = self.current
        assert mine is not None
        if mine.process.dead:
            raise Killed

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        mine = self.current
        assert mine is not None
        self.check()
        mine.wake = self.now_us + int(seconds * 1e6)
        self.switch()

    def join(self, fibers: tuple[Fiber, ...]) -> None:
        """Wait for these to end."""
        mine = self.current
        assert mine is not None
        mine.joins = fibers
        if not mine.may_run(self.now_us):
            self.switch()
        mine.joins = ()

    def wait(self, until: Callable[[], bool]) -> None:
        """Wait for what another fiber brings about."""
        mine = self.current
        assert mine is not None
        mine.until = until
        if not mine.may_run(self.now_us):
            self.switch()
        mine.until = None

    def _next(self) -> Fiber:
        ready = [fiber for fiber in self._open if fiber.may_run(self.now_us) or self._is_doomed(fiber)]
        if not ready:
            waiting = [fiber for fiber in self._open if fiber.is_met]
            if not waiting:
                raise Stuck("every thread waits for another")
            self.now_us = min(fiber.wake for fiber in waiting)
            ready = [fiber for fiber in waiting if fiber.wake <= self.now_us]
        return ready[0] if len(ready) == 1 else self.rng.choice(ready)

    def _is_doomed(self, fiber: Fiber) -> bool:
        """A dead process's fibers end at once, but for one whose children have not ended yet."""
        return fiber.process.dead and all(other.finished for other in fiber.joins)

    def _hand_to(self, fiber: Fiber) -> None:
        self.current = fiber
        if fiber.thread is None:
            fiber.thread = threading.Thread(target=self._live, args=(fiber,), daemon=True)
            fiber.thread.start()
        else:
            fiber.baton.release()

    def _live(self, fiber: Fiber) -> None:
        try:
            self.check()
            fiber.body()
        except BaseException as error:  # noqa: BLE001 - kept for whoever joins
            fiber.error = error
        fiber.finished = True
        self._open.remove(fiber)
        if isinstance(fiber.error, Stuck):
            self._failure = fiber.error
            self._done.release()
            return
        try:
            following = self._next() if self._open else None
        except Stuck as error:
            self._failure, following = error, None
        if following is None:
            self.current = None
            self._done.release()
        else:
            self._hand_to(following)
