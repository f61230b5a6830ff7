"""Describe what is no longer as a load left it: the kinds that ``verify`` reports, and the error code of each."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What is wrong. Kinds may be added; none changes its meaning."""

    OBJECT_GONE = "object_gone"
    OBJECT_REPLACED = "object_replaced"
    OBJECT_CHANGED = "object_changed"
    OBJECT_COPIED = "object_copied"
    OBJECT_FOREIGN = "object_foreign"
    ROWS_DIFFER = "rows_differ"
    IDS_REPEATED = "ids_repeated"
    TABLE_GONE = "table_gone"
    TABLE_CHANGED = "table_changed"
    COLUMN_GONE = "column_gone"
    COLUMN_RETYPED = "column_retyped"
    PARTITION_GONE = "partition_gone"
    PARTITION_CHANGED = "partition_changed"
    PARTITION_FOREIGN = "partition_foreign"
    LATEST_GONE = "latest_gone"
    LATEST_CHANGED = "latest_changed"
    ROLLED_BACK = "rolled_back"
    ROWS_REMOVED = "rows_removed"
    METADATA_DAMAGED = "metadata_damaged"
    RECORD_GONE = "record_gone"
    RECORD_DAMAGED = "record_damaged"
    RECORDS_DISAGREE = "records_disagree"
    NOT_COMPARED = "not_compared"


CODES: Final = {
    Kind.OBJECT_GONE: "STAGED_LOST",
    Kind.OBJECT_REPLACED: "KEY_EXISTS",
    Kind.OBJECT_CHANGED: "KEY_EXISTS",
    Kind.OBJECT_COPIED: "KEY_EXISTS",
    Kind.OBJECT_FOREIGN: "KEY_EXISTS",
    Kind.ROWS_DIFFER: "KEY_EXISTS",
    Kind.IDS_REPEATED: "KEY_EXISTS",
    Kind.TABLE_GONE: "COMMIT_UNKNOWN",
    Kind.TABLE_CHANGED: "COMMIT_UNKNOWN",
    Kind.COLUMN_GONE: "COMMIT_UNKNOWN",
    Kind.COLUMN_RETYPED: "COMMIT_UNKNOWN",
    Kind.PARTITION_GONE: "COMMIT_UNKNOWN",
    Kind.PARTITION_CHANGED: "COMMIT_UNKNOWN",
    Kind.PARTITION_FOREIGN: "COMMIT_UNKNOWN",
    Kind.LATEST_GONE: "COMMIT_UNKNOWN",
    Kind.LATEST_CHANGED: "COMMIT_UNKNOWN",
    Kind.ROLLED_BACK: "LOAD_GONE",
    Kind.ROWS_REMOVED: "LOAD_GONE",
    Kind.METADATA_DAMAGED: "LOAD_GONE",
    Kind.RECORD_GONE: "PENDING_UNRECOVERABLE",
    Kind.RECORD_DAMAGED: "PENDING_UNRECOVERABLE",
    Kind.RECORDS_DISAGREE: "PENDING_UNRECOVERABLE",
    Kind.NOT_COMPARED: "TIMEOUT",
}
"""The error code of each kind; a mismatch that an error was raised for has that error's code."""


@dataclass(frozen=True)
class Mismatch:
    """One thing that is not as the load left it; ``key`` is blank where it is not an object.

    ``code`` is the code of the error that showed it, ``load`` the load in a copied object's metadata.
    """

    kind: Kind
    message: str
    key: str = ""
    code: str = ""
    load: str = ""


@dataclass(frozen=True)
class Comparison:
    """A load compared with its catalog.

    ``notes`` describe changes that are no fault. The table no longer has the objects of ``replaced_keys``.
    """

    mismatches: tuple[Mismatch, ...] = ()
    notes: tuple[str, ...] = ()
    replaced_keys: frozenset[str] = frozenset()
