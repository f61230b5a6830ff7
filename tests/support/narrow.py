"""Which of its types a value has, for the reader and for mypy."""

from typing import TypeVar

T = TypeVar("T")


def need(value: T | None) -> T:
    """``value``, which is not None."""
    assert value is not None
    return value


def expect(kind: type[T], value: object) -> T:
    """``value``, which is of this ``kind``."""
    assert isinstance(value, kind), value
    return value
