"""Tables of which CI plays a sample, and ``scripts/nightly`` all of it."""

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import pytest

IS_NIGHTLY = os.environ.get("LAKEWRITER_FAULTS") == "all"
"""Whether the tests that only ``scripts/nightly`` runs are among them."""


def sampled(rows: Sequence[tuple[Any, ...]], sample: Collection[Any]) -> list[Any]:
    """The rows for ``parametrize``; those whose first value is not in the sample are marked ``exhaustive``."""
    return [pytest.param(*row, marks=() if row[0] in sample else pytest.mark.exhaustive) for row in rows]


def in_turn(*values: Any) -> list[Any]:
    """The values of a parameter that many tests of a file have; CI runs each test with one, and the next with the next.

    For a parameter such as the catalog, whose every value is as telling, and whose every combination is much the same.
    """
    return [pytest.param(value, marks=pytest.mark.in_turn(number, len(values))) for number, value in enumerate(values)]


def fifth_of(cases: int) -> int:
    """As many random cases; CI plays a fifth of them."""
    return cases if IS_NIGHTLY else cases // 5


def values_alone() -> int:
    """As many values of a fast path, each in a block of its own: nothing beside one then makes the block exact."""
    return 200_000 if IS_NIGHTLY else 2_000


def list_left_out(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the tests that CI leaves out: by ``exhaustive``, ``in_turn``, and ``one_in``."""
    turns: dict[str, dict[str, int]] = {}
    sampled_tables: dict[str, list[pytest.Item]] = {}
    for item in items:
        table = item.nodeid.partition("[")[0]
        tables = turns.setdefault(table.partition("::")[0], {})
        turn, part = item.get_closest_marker("in_turn"), item.get_closest_marker("one_in")
        is_left_out = item.get_closest_marker("exhaustive") is not None
        if turn and not is_left_out:
            number, values = turn.args
            is_left_out = tables.setdefault(table, len(tables)) % values != number
        if is_left_out:
            yield item
        elif part:
            sampled_tables.setdefault(table, []).append(item)
    for rows in sampled_tables.values():
        yield from _leave_out(rows)


def _leave_out(rows: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield all rows but one of each ``n``: the one whose values the chosen ones have had least often, so that no
    parameter keeps to one value because it changes every ``n`` rows."""
    seen: Counter[tuple[str, str]] = Counter()
    marker = rows[0].get_closest_marker("one_in")
    assert marker is not None
    (size,) = marker.args
    for first in range(0, len(rows), size):
        part = rows[first : first + size]
        chosen = min(part, key=lambda row: sum(seen[value] for value in _list_values(row)))
        seen.update(_list_values(chosen))
        yield from (row for row in part if row is not chosen)


def _list_values(item: pytest.Item) -> list[tuple[str, str]]:
    call = getattr(item, "callspec", None)
    return [(name, repr(value)) for name, value in call.params.items()] if call else []
