"""Changes of values on their way into a file, in the words of Airbyte's protocol."""

from dataclasses import dataclass
from typing import Final

NULLED, TRUNCATED = "NULLED", "TRUNCATED"
TOO_LARGE: Final = "DESTINATION_FIELD_SIZE_LIMITATION"
NO_FIT: Final = "DESTINATION_SERIALIZATION_ERROR"
"""Changes and their reasons as Airbyte's protocol names them and its S3 destination writes them: it gives the size only
for integers beyond 64 bits, and has no entries with DESTINATION_TYPECAST_ERROR, which the protocol also names."""
KEY_TWICE: Final = "SOURCE_SERIALIZATION_ERROR"
"""The reason for a value that is left out because its object has the key again: the last value of a key counts. The
protocol names it, and nothing else here gives it."""

CUT: Final = "to the microsecond"
CUT_TO_DAY: Final = "to the day"
"""What a report says of times that are finer than their column: no change has this reason."""


@dataclass(frozen=True)
class Fault:
    """The fault of the value at a position, which is not the source's: a change and a reason as Airbyte's protocol
    names them, and the reason in words.
    """

    position: int
    change: str
    reason: str
    message: str = ""
