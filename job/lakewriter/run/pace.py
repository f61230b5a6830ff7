"""Decide how long a table of a continuous run waits: between batches, and before its query is started again."""

from collections import deque
from typing import Final

from lakewriter.report import SMALL_FILE_BYTES

LONGEST_PAUSE: Final = 60.0
_DAY: Final = 86_400
_FULL: Final = 4 * SMALL_FILE_BYTES
"""An adaptive interval aims at batches of this size: enough for files that are not small, in each of a few tasks."""
_STEP: Final = 2.0
"""An interval grows or shrinks by no more than this at a time: one odd batch says little."""
_REMEMBERED: Final = 64


def restart_pause(restarts: int) -> float:
    """Return the seconds before the next start, after so many restarts in a row."""
    # An outage may have any number of restarts, and a float ends at 2 to the 1024th.
    return min(LONGEST_PAUSE, 2.0 ** min(restarts, 10))


class Pace:
    """The interval between batches, in seconds from the beginning of one to that of the next.

    ``most`` is None for a fixed interval. An adaptive one grows to ``most`` while batches are small, and shrinks to
    ``least`` where they fill files, or where the source has more than a batch takes.
    """

    def __init__(self, least: float, most: float | None) -> None:
        self._least, self._most = least, most
        self.interval = least
        self._ends: deque[tuple[float, int]] = deque(maxlen=_REMEMBERED)

    def note(self, ended: float, *, size: int, files: int, seconds: float, is_behind: bool) -> float:
        """Note a batch of ``size`` bytes that took so many ``seconds``; return how long to wait before the next one."""
        self._ends.append((ended, files))
        if self._most is None:
            return 0.0
        if is_behind or seconds > self._most:
            self.interval = self._least
            return 0.0
        wanted = self.interval * _FULL / max(size, 1)
        wanted = min(max(wanted, self.interval / _STEP), self.interval * _STEP)
        self.interval = min(max(wanted, self._least), self._most)
        # The trigger itself waits for the least interval.
        return max(0.0, self.interval - max(seconds, self._least))

    @property
    def files_a_day(self) -> int | None:
        """The number of files a day at the rate of the last batches; None before there are two."""
        if len(self._ends) < 2 or self._ends[-1][0] <= self._ends[0][0]:
            return None
        files = sum(count for _, count in self._ends) - self._ends[0][1]
        return round(files * _DAY / (self._ends[-1][0] - self._ends[0][0]))
