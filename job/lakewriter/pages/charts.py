"""Lay out small bar charts of the last loads, for a template to draw."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 300
HEIGHT: Final = 60
_GAP: Final = 2
_LEAST: Final = 1.5
"""A value of 0 is still a load that took place."""


@dataclass(frozen=True)
class Bar:
    """One load in a chart, in the units of its view box."""

    x: float
    y: float
    width: float
    height: float
    title: str
    kind: str


@dataclass(frozen=True)
class Chart:
    """A row of bars, the oldest load first; ``most`` is the greatest value in words."""

    title: str
    most: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Point:
    """One load's value: ``kind`` is its status, ``title`` what a pointer shows."""

    value: float
    title: str
    kind: str


def make_chart(title: str, most: str, points: Sequence[Point], slots: int) -> Chart:
    """Draw each point to the scale of the greatest; ``slots`` bars would fill the width."""
    top = max((point.value for point in points), default=0) or 1
    step = WIDTH / max(slots, len(points), 1)
    bars = []
    for place, point in enumerate(points):
        height = max(_LEAST, round(point.value / top * (HEIGHT - 2), 2))
        x = round(place * step, 2)
        bars.append(Bar(x, round(HEIGHT - height, 2), round(step - _GAP, 2), height, point.title, point.kind))
    return Chart(title, most, tuple(bars))
