"""The objects of a stream and their generations: ours by their receipts, others' by the template and a look at each."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

from lakewriter.commit.control import Control
from lakewriter.commit.generations import SyncState
from lakewriter.commit.store import Entry
from lakewriter.spec.key_layout import KeyLayout

AT_ONCE: Final = 16


@dataclass(frozen=True)
class Old:
    """An object of the stream that is there."""

    key: str
    etag: str
    generation_id: int


def survey(control: Control, layout: KeyLayout, state: SyncState, others: Sequence[KeyLayout]) -> tuple[Old, ...]:
    """Every object that the template gives, but for control objects and those another stream's template gives too."""
    known = _known(control, state)
    mine, theirs = layout.matcher(), [other.matcher() for other in others]
    found = [
        entry
        for entry in control.store.entries(layout.prefix)
        if mine.fullmatch(entry.key)
        and not entry.key.startswith(control.keys.root.rpartition("/")[0] + "/")
        and not any(matcher.fullmatch(entry.key) for matcher in theirs)
    ]
    elsewhere = sorted(set(known).difference(entry.key for entry in found))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        looked = [
            *pool.map(partial(_old, control, known), found),
            *pool.map(partial(_moved, control, known), elsewhere),
        ]
        return tuple(old for old in looked if old is not None)


def below(objects: Iterable[Old], generation_id: int) -> tuple[tuple[str, str], ...]:
    """Key and etag of objects of older generations."""
    return tuple((old.key, old.etag) for old in objects if old.generation_id < generation_id)


def highest(objects: Iterable[Old]) -> int:
    """The highest generation found."""
    return max((old.generation_id for old in objects), default=0)


def delete_all(control: Control, objects: Iterable[tuple[str, str]]) -> None:
    """Delete each, unless it has become another object since."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda each: control.store.delete(*each), objects))


def _known(control: Control, state: SyncState) -> dict[str, int]:
    known = {}
    for live in state.live:
        for key in (control.report(live.job_id) or {}).get("keys", ()):
            known[key] = live.generation_id
    return known


def _old(control: Control, known: dict[str, int], entry: Entry) -> Old | None:
    if entry.key in known:
        return Old(entry.key, entry.etag, known[entry.key])
    found = control.store.look(entry.key)
    if found is None or (found.table and found.table != control.table_id and found.load.split("/")[0] == _own(control)):
        return None
    return Old(entry.key, found.etag, found.generation_id)


def _moved(control: Control, known: dict[str, int], key: str) -> Old | None:
    """An object of ours that the template of today does not give."""
    found = control.store.find(key)
    return None if found is None else Old(key, found.etag, known[key])


def _own(control: Control) -> str:
    """The pipeline's name."""
    return control.keys.root.rpartition("/")[2]
