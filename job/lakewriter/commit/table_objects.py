"""Find the data objects of a table by its layout: which of them its loads wrote, and which numbers their keys have."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from lakewriter.commit.store import Entry, Store, StoredObject
from lakewriter.errors import CODES, LakeError
from lakewriter.naming import CONTROL_DIRECTORY, ControlKeys
from lakewriter.records.state import Numbers
from lakewriter.report import format_count
from lakewriter.spec.key_template import PER_FILE
from lakewriter.spec.layout import Layout

MOST_LISTED: Final = 50_000
"""How many objects of a table are listed at most: a table that others have filled is not listed for minutes."""
MOST_ASKED: Final = 64
"""For how many of these objects, the newest first, HEAD reads which load wrote them."""

GO_ON: Final = "lakewriter adopt LAKE says what another writer has left there, and goes on from it."
"""The remedy where another writer's numbers are in the way."""

_NUMBERS: Final = {name: rf"(?P<{name}>{PER_FILE[name]})" for name in ("backfill", "counter", "generation")}


def find_own_objects(
    store: Store, keys: ControlKeys, table_id: str, layout: Layout, *, most: int = MOST_ASKED
) -> Iterator[tuple[str, StoredObject]]:
    """Yield the objects that loads of this pipeline wrote for the table, the newest first; HEAD reads at most
    ``most``."""
    for entry in list_newest(store, layout, most):
        try:
            stored = store.head(entry.key)
        except LakeError as error:
            if CODES[error.code].transient:
                # Nobody knows whose it is.
                raise
            # An object that this pipeline may not read is not its own.
            continue
        if stored is None or not stored.load.startswith(f"{keys.pipeline}/"):
            continue
        if stored.table == table_id or (not stored.table and _may_be_of(store, keys, table_id, stored.load)):
            yield entry.key, stored


def list_newest(store: Store, layout: Layout, most: int = MOST_ASKED) -> list[Entry]:
    """List at most so many of the objects that match the table's layout, the newest first."""
    return sorted(list_objects(store, layout), key=lambda entry: entry.modified, reverse=True)[:most]


def list_objects(store: Store, layout: Layout) -> list[Entry]:
    """List the objects that match the table's layout, without control objects."""
    pattern, entries = layout.matcher(), islice(store.list_entries(layout.prefix), MOST_LISTED)
    return [
        entry for entry in entries if pattern.fullmatch(entry.key) and f"/{CONTROL_DIRECTORY}/" not in f"/{entry.key}"
    ]


def is_hidden(path: str) -> bool:
    """Return whether query engines leave out the object at ``path`` in a table's folder, by its name or a folder's."""
    *_, name = parts = path.split("/")
    return name[:1] in ("", "_", ".") or any(part[:1] in ("_", ".") and "=" not in part for part in parts)


def _may_be_of(store: Store, keys: ControlKeys, table_id: str, load: str) -> bool:
    """Return False where the attempt's begin record, if it still exists, does not name the table: the directory of a
    table without a schema may hold another table's."""
    _, _, attempt = load.partition("/")
    job_id, _, name = attempt.rpartition("/")
    record = store.get(keys.begin(job_id, name))
    return record is None or f'"{table_id}"'.encode() in record[0]


def find_highest_numbers(layout: Layout | None, keys: Iterable[str]) -> Numbers:
    """Return the highest numbers in the keys."""
    numbers = _read_numbers(layout, keys)
    return Numbers(
        backfill=max((number.backfill for number in numbers), default=0),
        counter=max((number.counter for number in numbers), default=0),
        generation=max((number.generation for number in numbers), default=0),
    )


def find_last_numbers(layout: Layout, keys: Iterable[str]) -> Numbers:
    """Return the highest backfill in the keys, and the counter of the next file in it.

    Keys of a table inside this one's directory do not count.
    """
    return max(_read_numbers(layout, keys, re.escape(layout.prefix) if layout.directory else ""), default=Numbers())


def _read_numbers(layout: Layout | None, keys: Iterable[str], start: str = r"(?:.*/)?") -> Sequence[Numbers]:
    """Read the numbers in the keys that match ``start``, a regular expression, and then the whole layout."""
    if layout is None or not layout.template.variables & _NUMBERS.keys():
        return ()
    pattern = re.compile(f"{start}{layout.template.match_text(_NUMBERS)}")
    groups = [match.groupdict() for key in keys if (match := pattern.fullmatch(key)) is not None]
    return [
        Numbers(
            backfill=int(group.get("backfill", 0)),
            counter=int(group["counter"]) + 1 if "counter" in group else 0,
            generation=int(group.get("generation", 0)),
        )
        for group in groups
    ]


def describe_left(store: Store, layout: Layout, backfill: int, counter: int) -> str:
    """Describe the objects at keys that a table's next files would have, or beyond them; blank for none.

    ``backfill`` and ``counter`` are the next file's. Without a counter no key of another writer is in the way.
    """
    if "counter" not in layout.template.variables:
        return ""
    keys = [entry.key for entry in list_objects(store, layout)]
    last = find_last_numbers(layout, keys)
    if not last.counter or (last.backfill, last.counter) <= (backfill, counter):
        return ""
    files = sum(1 for key in keys if find_last_numbers(layout, [key]).counter)
    return (
        f"{format_count(files, 'file')} of another writer {'lies' if files == 1 else 'lie'} under {layout.prefix}, the "
        f"last one number {last.counter - 1} of "
        f"backfill {last.backfill}"
    )
