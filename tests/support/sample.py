"""Tables of which CI plays a sample, and ``scripts/nightly`` all of it."""

from collections.abc import Collection, Sequence
from typing import Any

import pytest


def sampled(rows: Sequence[tuple[Any, ...]], sample: Collection[Any]) -> list[Any]:
    """The rows for ``parametrize``; those whose first value is not in the sample are marked ``exhaustive``."""
    return [pytest.param(*row, marks=() if row[0] in sample else pytest.mark.exhaustive) for row in rows]
