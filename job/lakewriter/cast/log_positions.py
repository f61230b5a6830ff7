"""Read a place in a database's log, as connectors spell it: a whole number, or its parts in hexadecimal digits."""

import re
from decimal import Decimal, InvalidOperation
from typing import Final

WHOLE_DIGITS: Final = 38
_SQL_SERVER: Final = re.compile(r"([0-9a-f]{8}):([0-9a-f]{8}):([0-9a-f]{4})", re.IGNORECASE)
_POSTGRESQL: Final = re.compile(r"([0-9a-f]{1,8})/([0-9a-f]{1,8})", re.IGNORECASE)


def read_server_lsn(text: str) -> int | None:
    """Return an LSN of SQL Server as a number; None for another text."""
    match = _SQL_SERVER.fullmatch(text)
    return int("".join(match.groups()), 16) if match else None


def read_position(text: str) -> int | None:
    """Return a position as a number, the same for each of its spellings; None for another text."""
    if (number := read_server_lsn(text)) is not None:
        return number
    if match := _POSTGRESQL.fullmatch(text):
        high, low = (int(part, 16) for part in match.groups())
        return (high << 32) + low
    try:
        # Java writes a double with an exponent.
        exact = Decimal(text)
    except InvalidOperation:
        return None
    is_whole = exact.is_finite() and exact.adjusted() < WHOLE_DIGITS and exact == exact.to_integral_value()
    return int(exact) if is_whole else None
