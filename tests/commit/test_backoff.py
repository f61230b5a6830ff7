"""How long a write is tried again: by time, with pauses that no two writers share."""

import random

import pytest

from lakewriter.commit.backoff import FIRST_SECONDS, LONGEST_SECONDS, Backoff


class Clock:
    """A clock that only pauses move on; ``factor`` is how much longer a pause takes than was asked."""

    def __init__(self, factor: float = 1.0) -> None:
        self.now, self.factor, self.pauses = 100.0, factor, list[float]()

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds * self.factor


def waits(clock: Clock, seconds: float, **options: object) -> list[float]:
    backoff = Backoff(seconds, pause=clock.pause, clock=clock, **options)  # type: ignore[arg-type]
    while backoff.wait():
        pass
    return clock.pauses


def test_pauses_double_up_to_the_longest():
    pauses = waits(Clock(), 60, shorten=lambda _, longest: longest)
    assert pauses[:8] == [FIRST_SECONDS * 2**number for number in range(7)] + [LONGEST_SECONDS]
    assert max(pauses) == LONGEST_SECONDS


@pytest.mark.parametrize(
    ("factor", "shorten"),
    [
        (1.0, random.uniform),
        # The time runs faster than the pauses; it stands still; every pause is cut to nothing.
        (20.0, random.uniform),
        (0.0, random.uniform),
        (1.0, lambda *_: 0.0),
    ],
)
def test_the_end_comes(factor, shorten):
    assert 3 < len(waits(Clock(factor), 60, shorten=shorten)) < 80


def test_two_writers_do_not_wait_alike():
    assert waits(Clock(), 10) != waits(Clock(), 10)


def test_pauses_are_cut_anywhere():
    limits = set()

    def shorten(least, _longest):
        limits.add(least)
        return 0.0

    waits(Clock(), 10, shorten=shorten)
    assert limits == {0}
