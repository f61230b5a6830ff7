"""How many requests a second are sent to a service that refuses more than so many."""

import threading
import time

import pytest

from lakewriter.aws.clients import SLOWEST, Pace


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def read(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def send(clock: Clock, pace: Pace, limit: int, seconds: int) -> tuple[list[int], int]:
    """Requests of 1 ms, one after the other, to a token bucket: answers in each second, and how many were refused."""
    answered, refused, began, left = [0] * (seconds + 1), 0, clock.now, float(limit)
    while clock.now - began < seconds:
        before = clock.now
        pace.wait()
        clock.sleep(0.001)
        left = min(limit, left + limit * (clock.now - before))
        is_over = left < 1
        left -= not is_over
        pace.note(is_throttled=is_over)
        refused += is_over
        answered[int(clock.now - began)] += not is_over
    return answered[:seconds], refused


def test_without_a_refusal_nothing_waits():
    clock = Clock()
    answered, refused = send(clock, Pace(clock.read, clock.sleep), 10_000, 5)
    assert (min(answered) > 990, refused) == (True, 0)


@pytest.mark.parametrize("limit", [50, 200, 500])
def test_requests_become_as_many_as_the_service_allows(limit):
    clock = Clock()
    answered, refused = send(clock, Pace(clock.read, clock.sleep), limit, 60)
    # From 0.7 of the limit it takes 8 seconds to come back to it.
    assert sum(answered[20:]) > 0.8 * limit * 40
    assert refused < 0.15 * sum(answered)


def test_some_requests_are_sent_to_a_service_that_refuses_all():
    clock = Clock()
    pace = Pace(clock.read, clock.sleep)
    for _ in range(50):
        pace.wait()
        pace.note(is_throttled=True)
        clock.sleep(1.1)
    before = clock.now
    pace.wait()
    pace.wait()
    assert clock.now - before <= 2 / SLOWEST


def test_threads_take_turns():
    pace = Pace()
    pace.note(is_throttled=True)
    began = time.monotonic()
    threads = [threading.Thread(target=pace.wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - began >= 3 / SLOWEST - 0.01
