"""The conditions by which tasks read parts of a table."""

import pytest

from lakewriter.source.databases.database_server import Column
from lakewriter.source.databases.parallel_ranges import cut_ranges
from lakewriter.source.databases.servers import find_server

PG = find_server("jdbc:postgresql:d")
CUTS = [
    # the column's type, how many, the lowest and the highest value: the conditions
    (
        "int4",
        3,
        "0",
        "30",
        [
            "c < CAST('10' AS int4) OR c IS NULL",
            "c >= CAST('10' AS int4) AND c < CAST('20' AS int4)",
            "c >= CAST('20' AS int4)",
        ],
    ),
    ("int4", 4, "-9223372036854775808", "-9223372036854775807", []),
    ("int4", 4, "5", "5", []),
    ("numeric", 2, "0.5", "9.9", ["c < CAST('4' AS numeric) OR c IS NULL", "c >= CAST('4' AS numeric)"]),
    ("numeric", 2, "0", "NaN", []),
    ("float8", 2, "-Infinity", "1", []),
    (
        "date",
        2,
        "2024-01-01",
        "2024-01-31",
        ["c < CAST('2024-01-16' AS date) OR c IS NULL", "c >= CAST('2024-01-16' AS date)"],
    ),
    ("date", 2, "0044-03-15 BC", "2024-01-31", []),
    (
        "timestamp",
        2,
        "2024-01-01 00:00:00",
        "2024-01-01 00:00:01",
        [
            "c < CAST('2024-01-01 00:00:00.500000' AS timestamp) OR c IS NULL",
            "c >= CAST('2024-01-01 00:00:00.500000' AS timestamp)",
        ],
    ),
    ("timestamp", 2, "2024-01-01 00:00:00", "infinity", []),
]


@pytest.mark.parametrize(("kind", "count", "lowest", "highest", "conditions"), CUTS)
def test_conditions_of_the_ranges(kind, count, lowest, highest, conditions):
    assert cut_ranges(PG, Column("c", kind), "c", count, lowest, highest) == conditions
