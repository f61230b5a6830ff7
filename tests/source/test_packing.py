"""Expected partitions are worked out by hand from FilePartition.scala's rules."""

import pytest

from lakewriter.source.packing import Chunk, Sizes, SourceFile, pack, parse_size

SIZES = Sizes(partition_bytes=100, open_cost=10, least_partitions=1)

PACKED = [
    # files by length, settings, partitions as (file, start, length)
    ([], SIZES, []),
    ([0], SIZES, []),
    ([40], SIZES, [[(0, 0, 40)]]),
    ([250], SIZES, [[(0, 0, 100)], [(0, 100, 100)], [(0, 200, 50)]]),
    ([30, 60, 30], SIZES, [[(1, 0, 60), (0, 0, 30)], [(2, 0, 30)]]),
    (
        [20, 20, 20],
        Sizes(100, 10, 9),
        [[(0, 0, 10)], [(0, 10, 10)], [(1, 0, 10)], [(1, 10, 10)], [(2, 0, 10)], [(2, 10, 10)]],
    ),
    ([50, 50, 50, 50], Sizes(60, 0, 1, 2), [[(0, 0, 50), (1, 0, 50)], [(2, 0, 50), (3, 0, 50)]]),
]


@pytest.mark.parametrize(("lengths", "sizes", "expected"), PACKED)
def test_pack(lengths, sizes, expected):
    files = [SourceFile(str(number), length) for number, length in enumerate(lengths)]
    assert pack(files, sizes) == [tuple(Chunk(str(f), start, n) for f, start, n in part) for part in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("134217728b", 134217728), ("64m", 64 << 20), ("64MB", 64 << 20), ("12", 12), ("1 g", 1 << 30)],
)
def test_size_in_bytes(text, expected):
    assert parse_size(text) == expected


def test_size_in_bytes_unknown_unit():
    with pytest.raises(ValueError, match="'3x'"):
        parse_size("3x")
