"""Sizes as Spark's settings have them."""

import pytest

from lakewriter.source.task_sizes import parse_size


@pytest.mark.parametrize(
    ("text", "expected"),
    [("134217728b", 134217728), ("64m", 64 << 20), ("64MB", 64 << 20), ("12", 12), ("1 g", 1 << 30)],
)
def test_size_in_bytes(text, expected):
    assert parse_size(text) == expected


def test_size_in_bytes_unknown_unit():
    with pytest.raises(ValueError, match="'3x'"):
        parse_size("3x")
