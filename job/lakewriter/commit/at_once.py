"""Make many requests at once: the calls of one step that do not depend on each other."""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")

MOST: Final = 32
"""Threads, as many as a client keeps connections. Each has one request on its way, and where S3 answers SlowDown it
waits longer from try to try, so that all of them together become as slow as S3 wants."""
LEAST_INSIDE: Final = 4
"""Threads of a call that is itself one of many: a table of thousands of files may be one of thousands of tables."""

_share = threading.local()


def call_all(call: Callable[[Item], Answer], items: Iterable[Item]) -> list[Answer]:
    """Return the answers in the order of ``items``; after the first error in that order, which is raised when those
    under way have ended, no further call begins."""
    listed = list(items)
    if len(listed) < 2:
        return [call(item) for item in listed]
    workers = min(getattr(_share, "workers", MOST), len(listed))
    inside = max(LEAST_INSIDE, MOST // workers)

    def call_inside(item: Item) -> Answer:
        _share.workers = inside
        return call(item)

    with ThreadPoolExecutor(workers, thread_name_prefix="request") as pool:
        return list(pool.map(call_inside, listed))
