"""Send fewer requests a second while a service answers that they are too many, all threads of a client together."""

import random
import threading
import time
from collections.abc import Callable
from typing import Any, Final

THROTTLED: Final = frozenset({"RequestLimitExceeded", "SlowDown", "SlowDownRead", "SlowDownWrite", "TooManyRequests"})
"""Codes with which S3 and stores like it say that requests are too many. A 503 alone may be any fault."""
SLOWEST: Final = 5.0
"""Requests a second that are always sent."""
TRIES: Final = 40
"""How often a request is sent that is refused each time: about a minute and a half."""
_LONGEST: Final = 5.0
_SLOWER: Final = 0.7
_FASTER: Final = 1.05
_SECONDS: Final = 1.0
"""How often the pace changes: requests that were under way when it became slower say nothing of it."""


class Pace:
    """No limit until a service throttles; then 0.7 of what it answered in the last second, and 5 % more each second.

    The SDK's own ``adaptive`` mode goes down with every single refusal: with 64 threads it comes to a fifteenth of what
    the service allows.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._clock, self._sleep, self._lock = clock, sleep, threading.Lock()
        self._rate: float | None = None
        self._next = self._changed = self._counted_from = clock()
        self._answered, self._last = 0, 0.0

    def wait(self) -> None:
        """Wait for the turn of one request."""
        with self._lock:
            now = self._clock()
            if self._rate is None:
                return
            if now - self._changed >= _SECONDS:
                self._rate, self._changed = self._rate * _FASTER, now
            turn = max(self._next, now)
            self._next = turn + 1 / self._rate
        if turn > now:
            self._sleep(turn - now)

    def note(self, *, is_throttled: bool) -> None:
        """Note an answer."""
        with self._lock:
            now = self._clock()
            if is_throttled:
                self._slow_down(now)
                return
            if now - self._counted_from >= _SECONDS:
                self._last, self._answered, self._counted_from = self._answered / (now - self._counted_from), 0, now
            self._answered += 1

    def _slow_down(self, now: float) -> None:
        if self._rate is not None and now - self._changed < _SECONDS:
            return
        seen = max(self._last, self._answered / max(now - self._counted_from, _SECONDS))
        self._rate = max(SLOWEST, _SLOWER * min(seen, self._rate or seen))
        self._changed = self._next = now


def keep_pace(client: Any, pace: Pace) -> None:
    """Make the client's requests go by ``pace``."""
    service = client.meta.service_model.service_id.hyphenize()

    def note(response: Any, attempts: int, **_: Any) -> float | None:
        """Note the answer; the seconds until a refused request is sent again, as its turn comes."""
        if response is None:
            return None
        is_throttled = str(response[1].get("Error", {}).get("Code", "")) in THROTTLED
        pace.note(is_throttled=is_throttled)
        # The SDK has a budget of some hundred repetitions, which is spent before the pace is found.
        return random.uniform(0, min(_LONGEST, 0.1 * attempts)) if is_throttled and attempts < TRIES else None

    client.meta.events.register_first(f"needs-retry.{service}.*", note)
    client.meta.events.register_first(f"before-send.{service}", lambda **_: pace.wait())
