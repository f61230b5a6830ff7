"""Retry a conditional write that another writer has won: for how long, and after which pauses."""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from lakewriter.commit.store import Unclear
from lakewriter.errors import CommitUnknownError

T = TypeVar("T")

FIRST_SECONDS: Final = 0.05
LONGEST_SECONDS: Final = 5.0
WRITE_SECONDS: Final = 180.0
"""For how long a conditional write of a control object is tried again: after a lost race, or without an answer."""


class Backoff:
    """Pauses that double up to a limit, each cut short at random, until ``seconds`` are over.

    Writers that wait equally long collide again, so pauses are random. The number of writers decides how many tries one
    needs, so the time is limited and not the tries. ``pause`` and ``clock`` are those of ``time``, or what a test puts
    in their place.
    """

    def __init__(
        self,
        seconds: float,
        *,
        pause: Callable[[float], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        shorten: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._seconds, self._pause, self._clock, self._shorten = seconds, pause or time.sleep, clock, shorten
        self._began = clock()
        self._paused = 0.0
        self._longest = FIRST_SECONDS

    def wait(self) -> bool:
        """Pause before the next try; False when the time is up."""
        # A pause counts in full even where the clock stopped meanwhile, as that of a suspended machine may.
        if max(self._clock() - self._began, self._paused) >= self._seconds:
            return False
        seconds = self._shorten(0, self._longest)
        # Count half of the longest pause, whatever the random one is: pauses that are all near zero must end, too.
        self._paused += self._longest / 2
        self._longest = min(2 * self._longest, LONGEST_SECONDS)
        self._pause(seconds)
        return True


def write(
    key: str,
    step: Callable[[], T | None],
    pause: Callable[[float], None],
    *,
    remedy: str = "Run the same job id again.",
) -> T:
    """Call ``step``, one try at a conditional write of ``key``, until its result is not None; return the result.

    A try that raises ``Unclear`` counts as None. ``COMMIT_UNKNOWN`` when ``WRITE_SECONDS`` are over.
    """
    backoff = Backoff(WRITE_SECONDS, pause=pause)
    while True:
        with suppress(Unclear):
            if (done := step()) is not None:
                return done
        if not backoff.wait():
            raise CommitUnknownError(f"{key} could not be written in {WRITE_SECONDS:.0f} s.", remedy=remedy)
