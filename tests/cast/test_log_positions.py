"""Places in a database's log, as connectors spell them."""

import pytest

from lakewriter.cast.log_positions import read_position

PLACES = [
    ("24036288", 24036288),
    # a JSON number of Java's, and one of a double
    ("2.4036288E7", 24036288),
    ("24036288.0", 24036288),
    # PostgreSQL's pg_lsn: two 32-bit halves, https://www.postgresql.org/docs/current/datatype-pg-lsn.html
    ("15/C5443049", (0x15 << 32) + 0xC5443049),
    ("0/16B3748", 0x16B3748),
    # SQL Server's: file, block, slot
    ("0000062d:00017ff0:016d", 0x0000062D00017FF0016D),
    # more digits than a double has
    ("9223372036854775809", 9223372036854775809),
    ("", None),
    ("1.5", None),
    ("NaN", None),
    ("1e400", None),
    ("15/C54430491", None),
    ("mysql-bin.000003", None),
]


@pytest.mark.parametrize(("text", "expected"), PLACES)
def test_places(text, expected):
    assert read_position(text) == expected
