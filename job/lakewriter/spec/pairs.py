"""Decide which settings of a table go together.

A setting is a key of a table's entry (``cursor``), a mode (``mode: refresh``), or ``files: new``. What two settings do
together is proven by loads, unless this table refuses the pair. What a destination refuses is in its dialect.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lakewriter.spec.table_spec import Mode

NEW_FILES: Final = "files: new"


@dataclass(frozen=True)
class Refusal:
    """The reason why a setting cannot be beside another: ``{table}`` in it stands for the table."""

    says: str
    remedy: str = "Leave it out."


def name_mode(mode: Mode) -> str:
    """Return the setting that stands for a mode."""
    return f"mode: {mode.value}"


def refuse_modes(why: str, remedy: str = "Leave mode out.", *, but: Mode = Mode.APPEND) -> dict[str, Refusal]:
    """Return the refusals of all modes except to append, and one more."""
    return {
        name_mode(mode): Refusal(f"{{table}} has mode '{mode.value}'; {why}.", remedy)
        for mode in Mode
        if mode not in {Mode.APPEND, but}
    }


REPLACING: Final = tuple(name_mode(mode) for mode in Mode if not mode.brings_changes)
_MERGED: Final = name_mode(Mode.MERGE)

NEEDS: Final[Mapping[tuple[str, str], Refusal]] = {
    ("cursor_lag", "cursor"): Refusal(
        "{table} has cursor_lag, and no cursor to take it from.", "Name the cursor, or leave cursor_lag out."
    ),
    **{
        (key, _MERGED): Refusal(
            f"{{table}} has {key} without 'mode: merge': other rows are not compared with older ones."
        )
        for key in ("keep_deleted", "deleted_for")
    },
    ("history", _MERGED): Refusal(
        "{table} has history without 'mode: merge': what is appended has every change already.",
        "Set mode: merge; or leave it out, and give order_by: queries then prints each row's history.",
    ),
    ("order_by", "primary_key"): Refusal(
        "{table} has order_by, which orders the rows of one key, and no primary_key.", "Name the key's columns."
    ),
    **{
        (key, "deleted"): Refusal(
            f"{{table}} has {key}, and no 'deleted' that says which rows are.", "Give 'deleted', or leave it out."
        )
        for key in ("keep_deleted", "deleted_for")
    },
    **{
        (_MERGED, key): Refusal(
            f"{{table}} has mode 'merge', and no {key}.",
            "Name the columns that identify a row by primary_key, and by order_by those that say which of two rows of "
            "one key is newer, such as [updated_at].",
        )
        for key in ("primary_key", "order_by")
    },
    ("envelope", _MERGED): Refusal(
        "{table} has envelope without 'mode: merge': a change is carried out where a table has one row of each key.",
        "Set mode: merge and primary_key; or leave it out, and the events are appended as they are.",
    ),
    (name_mode(Mode.REPLACE_PARTITIONS), "partition_by"): Refusal(
        "{table} has mode 'replace_partitions', and no partition_by: it has no partitions.",
        "Set partition_by, or mode: refresh.",
    ),
}
"""The settings that need another one beside them."""

REFUSED: Final[Mapping[tuple[str, str], Refusal]] = {
    ("deleted_for", "keep_deleted"): Refusal(
        "{table} has deleted_for, which is for rows that 'deleted' takes out of the table, and keep_deleted, which "
        "keeps them.",
        "Leave one of them out.",
    ),
    ("deleted", "envelope"): Refusal("{table} has deleted, and envelope, whose events say themselves which rows are."),
    ("cursor", "envelope"): Refusal(
        "{table} has a cursor, and envelope: rows are made of events once these are read.",
        "Leave the cursor out, and set files: new in read.",
    ),
    (NEW_FILES, "cursor"): Refusal(
        "{table} has 'files: new' and a cursor, and both say what later loads read.", "Leave one of them out."
    ),
    **{
        (NEW_FILES, mode): Refusal(
            f"{{table}} has 'files: new', which adds the rows of new files, and '{mode}', which replaces rows.",
            "Leave 'files: new' out: each load then reads all files; or append.",
        )
        for mode in REPLACING
    },
    **{
        ("order_by", mode): Refusal(
            f"{{table}} has order_by and '{mode}', which replaces rows and compares none of them.",
            "Leave order_by out; or merge, or append.",
        )
        for mode in REPLACING
    },
    **{
        ("cursor", mode): Refusal(
            f"{{table}} has a cursor and '{mode}': the rows below the cursor would be lost.",
            "Leave the cursor out, or append.",
        )
        for mode in REPLACING
    },
}
"""The settings that refuse each other; the first of the two is the one to name."""

CONTINUOUS: Final[Mapping[str, Refusal]] = {
    "cursor": Refusal(
        "{table} has a cursor; a continuous run uses its checkpoint.",
        "Leave cursor out, or run without --continuous.",
    ),
    **refuse_modes(
        "a continuous run appends, or merges", "Leave mode out, or run without --continuous.", but=Mode.MERGE
    ),
}
"""The settings that a continuous run refuses."""


def has(table: Any, setting: str) -> bool:
    """Return whether an entry, or a table made of it, has a setting."""
    if setting == NEW_FILES:
        return bool(table.read is not None and table.read.new_files)
    key, _, value = setting.partition(": ")
    given = getattr(table, key)
    return bool(given) if not value else given == Mode(value)


def _is_met(table: Any, needed: str) -> bool:
    """Return whether a table has a setting that another one needs, or change events that say the same."""
    return has(table, needed) or (table.envelope is not None and needed in table.envelope.gives)


def find_refusals(table: Any, refused: Mapping[str, Refusal]) -> dict[str, Refusal]:
    """Return each setting of a table that cannot be, with one reason. ``refused`` are those that its destination
    refuses, which come first: what else such a setting needs would lead nowhere."""
    refusals = {
        **{setting: refusal for (setting, other), refusal in REFUSED.items() if has(table, other)},
        **{
            setting: refusal
            for (setting, needed), refusal in reversed(list(NEEDS.items()))
            if not _is_met(table, needed)
        },
        **refused,
    }
    return {setting: refusal for setting, refusal in refusals.items() if has(table, setting)}
