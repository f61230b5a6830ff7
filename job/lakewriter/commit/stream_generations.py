"""Find every object of a stream and its generation, and delete those of older generations.

The generation is known from receipts for objects that this pipeline's loads wrote, and from HEAD for others that match
the key template. An object with another table's or another pipeline's metadata does not belong to the stream.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from lakewriter.commit.at_once import call_all
from lakewriter.commit.control import Control
from lakewriter.commit.store import Entry, StoredObject
from lakewriter.naming import CONTROL_DIRECTORY
from lakewriter.records.sync_records import SyncState
from lakewriter.spec.layout import Layout


@dataclass(frozen=True)
class StreamObject:
    """An object of the stream; ``seen`` is true where its metadata were read by HEAD, ``is_own`` where a load of this
    pipeline wrote it."""

    key: str
    etag: str
    generation_id: int
    seen: bool = True
    is_own: bool = True


def find_stream_objects(
    control: Control, layout: Layout, state: SyncState, others: Sequence[Layout]
) -> tuple[StreamObject, ...]:
    """Return every object of this stream whose key the layout matches, without control objects, and objects in receipts
    whose keys today's layout does not match."""
    generations = _read_known_generations(control, state)
    may_replace = layout.make_replacement_rule(others)
    entries = [
        entry
        for entry in control.store.list_entries(layout.replaced_prefix)
        if may_replace(entry.key) and CONTROL_DIRECTORY not in entry.key.split("/")
    ]
    elsewhere = sorted(set(generations).difference(entry.key for entry in entries))
    objects = [
        *call_all(partial(_read_listed_object, control, generations), entries),
        *call_all(partial(_find_moved_object, control, generations), elsewhere),
    ]
    return tuple(old for old in objects if old is not None)


def select_older(control: Control, objects: Iterable[StreamObject], generation_id: int) -> tuple[tuple[str, str], ...]:
    """Return key and etag of the objects with a generation below ``generation_id``.

    Another writer may have replaced an object that a receipt names, so its metadata are read now.
    """
    older = [old for old in objects if old.generation_id < generation_id]
    checks = call_all(lambda old: old.seen or _is_of_stream(control, control.store.head(old.key)), older)
    return tuple((old.key, old.etag) for old, is_own in zip(older, checks, strict=True) if is_own)


def find_highest_generation(objects: Iterable[StreamObject]) -> int:
    """Return the highest generation among the objects, 0 for none."""
    return max((old.generation_id for old in objects), default=0)


def delete_all(control: Control, objects: Iterable[tuple[str, str]]) -> None:
    """Delete each object, given as key and etag, unless it was replaced since."""
    call_all(lambda entry: control.store.delete(*entry), objects)


def _read_known_generations(control: Control, state: SyncState) -> dict[str, int]:
    generations = {}
    for live in state.live:
        report = control.read_report(live.job_id)
        for key in control.list_written_keys(report) if report is not None else ():
            generations[key] = live.generation_id
    return generations


def _read_listed_object(control: Control, generations: dict[str, int], entry: Entry) -> StreamObject | None:
    if entry.key in generations:
        return StreamObject(entry.key, entry.etag, generations[entry.key], seen=False)
    stored = control.store.head(entry.key)
    return (
        StreamObject(entry.key, stored.etag, stored.generation_id, is_own=bool(stored.load))
        if stored and _is_of_stream(control, stored)
        else None
    )


def _is_of_stream(control: Control, stored: StoredObject | None) -> bool:
    """Return whether a full refresh may replace the object: its metadata name this pipeline's table, or nothing."""
    if stored is None or stored.is_of_another(control.keys.pipeline):
        return False
    return stored.table in ("", control.table_id)


def _find_moved_object(control: Control, generations: dict[str, int], key: str) -> StreamObject | None:
    """Return an object that a receipt names and today's template does not match."""
    stored = control.store.find(key)
    return StreamObject(key, stored.etag, generations[key]) if stored and _is_of_stream(control, stored) else None
