"""Make many requests at once: the calls of one step that do not depend on each other."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

MOST: Final = 64
"""Number of threads: as many as the connections that a client keeps. Each thread has one request in flight. After a
SlowDown of S3 the client sends fewer requests a second for all threads."""
LEAST_INSIDE: Final = 4
"""Threads of a call inside another one: a table of thousands of files may be one of thousands of tables."""
TAKEN: Final = 1024
"""Items that are taken at a time, so that the items of a hundred thousand files are never all in memory."""

_share = threading.local()


def call_all(call: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
    """Return the answers in the order of ``items``. After an error no further call begins; the first error, in that
    order, is raised once the running calls have ended."""
    left = iter(items)
    taken = list(islice(left, TAKEN))
    if len(taken) < 2:
        return [call(item) for item in taken]
    workers = min(getattr(_share, "workers", MOST), len(taken))
    inside = max(LEAST_INSIDE, MOST // workers)

    def call_inside(item: Item) -> Answer:
        _share.workers = inside
        return call(item)

    answers: list[Answer] = []
    with ThreadPoolExecutor(workers, thread_name_prefix="request") as pool:
        while taken:
            answers += pool.map(call_inside, taken)
            taken = list(islice(left, TAKEN))
    return answers
