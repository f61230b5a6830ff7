"""Name the files that hold the rows which a load does not put into its table."""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from lakewriter.naming import QUARANTINE, join_key, normalise
from lakewriter.spec.layout import ObjectNames, file_uuid, uuid_pattern

ON_BAD_ROW: Final = "on_bad_row"
"""The check of rows that cannot be read or written, named after its key."""
_READABLE: Final = 60
"""Characters of a check in a key; a digest tells it apart from others."""


@dataclass(frozen=True)
class QuarantineNames:
    """The keys of one attempt's files in the quarantine of a table.

    All lie in one folder, which is the quarantine's table: no engine has to look into folders or to know partitions.
    """

    folder: str
    attempt: str
    table: str

    @classmethod
    def of(cls, names: ObjectNames) -> "QuarantineNames | None":
        """Return those beside the table's own names; None for a table without a quarantine."""
        return cls(join_key(names.quarantine), names.attempt, names.table) if names.quarantine else None

    def make_key(self, check: str, seq: int) -> str:
        """Return the key of file number ``seq``, whose rows fail ``check``; no other attempt makes the same."""
        name = file_uuid(self.attempt, seq, f"{self.table}{QUARANTINE}")
        return f"{self.folder}/{make_check_prefix(check)}{name}.parquet"

    @property
    def pattern(self) -> str:
        """Matches the keys of this attempt."""
        return rf"{re.escape(self.folder)}/[^/]+-{uuid_pattern(self.attempt)}\.parquet"


def make_check_prefix(check: str) -> str:
    """Return the prefix of the names of all files with rows of a check."""
    return f"{normalise(check)[:_READABLE]}-{hashlib.sha256(check.encode()).hexdigest()[:8]}-"
