"""How long a table waits between batches."""

import pytest

from lakewriter.run.pace import Pace, restart_pause

MIB = 1024 * 1024
FULL = 64 * MIB

PACES = [
    # least, most, batches as (bytes, seconds, is behind), the interval after each, the last wait
    (60, None, [(MIB, 1, False)] * 2, [60, 60], 0),
    (60, 600, [(MIB, 1, False)] * 5, [120, 240, 480, 600, 600], 540),
    (60, 600, [(FULL, 1, False)] * 2, [60, 60], 0),
    # Batches that grow with the interval: it stays where they fill files.
    (60, 600, [(FULL // 2, 1, False), (FULL, 1, False)], [120, 120], 60),
    # One odd batch moves it by a factor of two at most; nothing is no batch, and 0 bytes are few.
    (60, 600, [(0, 1, False), (0, 1, False), (100 * FULL, 1, False)], [120, 240, 120], 60),
    # A backlog ends waiting at once, and so does a batch that takes longer than any interval.
    (60, 600, [(MIB, 1, False), (MIB, 1, False), (MIB, 1, True)], [120, 240, 60], 0),
    (60, 600, [(MIB, 1, False), (MIB, 601, False)], [120, 60], 0),
    # What the batch took is not waited for again.
    (60, 600, [(MIB, 1, False), (MIB, 100, False)], [120, 240], 140),
    (60, 60, [(MIB, 1, False)] * 2, [60, 60], 0),
]


@pytest.mark.parametrize(("least", "most", "batches", "intervals", "wait"), PACES)
def test_interval(least, most, batches, intervals, wait):
    pace, found, waits = Pace(least, most), [], []
    for number, (size, seconds, is_behind) in enumerate(batches):
        waits.append(pace.note(number * 1000.0, size=size, files=1, seconds=seconds, is_behind=is_behind))
        found.append(pace.interval)
    assert (found, waits[-1]) == (intervals, wait)


RATES = [
    # ends of batches as (second, files), files a day
    ([], None),
    ([(0, 3)], None),
    ([(0, 3), (86_400, 2)], 2),
    ([(0, 1), (5, 1), (10, 1)], 17_280),
    ([(0, 1), (0, 1)], None),
    # the last 64 batches only: a rate is the present one's
    ([(second, 9) for second in range(100)] + [(100 + 10 * n, 1) for n in range(64)], 8640),
]


@pytest.mark.parametrize(("ends", "files"), RATES)
def test_files_a_day(ends, files):
    pace = Pace(1, None)
    for second, count in ends:
        pace.note(second, size=1, files=count, seconds=1, is_behind=False)
    assert pace.files_a_day == files


@pytest.mark.parametrize(("restarts", "seconds"), [(0, 1), (1, 2), (5, 32), (6, 60), (2000, 60)])
def test_pause_before_a_restart(restarts, seconds):
    assert restart_pause(restarts) == seconds
