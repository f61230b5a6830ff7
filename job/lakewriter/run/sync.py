"""Plan a sync: its number, the generation of each table, and the objects that a refresh deletes."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from lakewriter.commit.at_once import call_all
from lakewriter.commit.backoff import write
from lakewriter.commit.control import Control
from lakewriter.commit.named_loads import list_state_etags
from lakewriter.commit.ownership import Ownership
from lakewriter.commit.stream_generations import (
    StreamObject,
    find_highest_generation,
    find_stream_objects,
    select_older,
)
from lakewriter.control_object import ControlObject, parse
from lakewriter.errors import CODES, LakeError
from lakewriter.records.state import TableState
from lakewriter.records.sync_records import SyncIntent
from lakewriter.run.kinds import Ending, StreamFeed, TablePart
from lakewriter.spec.beside import list_layouts_beside
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec


@dataclass(frozen=True)
class TableSync:
    """One table's part, planned on the state it registered with; ``purge`` is deleted before anything is staged."""

    intent: SyncIntent
    feed: StreamFeed | None = None
    purge: tuple[tuple[str, str], ...] = ()

    def with_source_in(self, record: str) -> "TableSync":
        """Return the same, with a new state for all streams kept by the decision of ``record``."""
        source = self.intent.source
        if source is None or not source.is_shared or source.record is not None:
            return self
        return replace(self, intent=self.intent.model_copy(update={"source": source.kept_in(record)}))

    @property
    def refreshes(self) -> bool:
        """True if older generations are deleted, with this load or with a later one."""
        return self.intent.minimum_generation_id > 0


def find_known_number(spec: Spec, reports: Iterable[int | None], given: int | None) -> int | None:
    """Return the number of this sync: as given, as the catalog has it, or as an earlier attempt of the load had it;
    None where it is to be counted."""
    if given is not None:
        return given
    said = [table.stream.sync_id for table in spec.tables if table.stream and table.stream.sync_id is not None]
    had = [number for number in reports if number is not None]
    # Rule earlier-number
    return next(iter(said or had), None)


class SyncNumber(ControlObject):
    """The number of a load."""

    version: Literal[1] = 1
    sync_id: int


def find_next_number(states: Iterable[TableState]) -> int:
    """Return the number after the highest that a table has."""
    return max((state.sync.sync_id for state in states), default=0) + 1


@dataclass
class TableNumbers:
    """The highest number of each table of a pipeline, with the etag of the state that it was read from."""

    control: Control
    read: dict[str, tuple[str | None, int]]

    @classmethod
    def of(cls, controls: Mapping[str, Control]) -> "TableNumbers":
        """Return the numbers in the states of a load's own tables, as it has last seen these."""
        read = {}
        for table_id, control in controls.items():
            if control.state.seen is not None:
                state, etag = control.state.seen
                read[table_id] = (etag, state.sync.sync_id)
        return cls(next(iter(controls.values())), read)

    def find_highest(self) -> int:
        """Read the states that have changed since they were read, also those of tables that the load does not touch;
        return the highest number of all, 0 for none."""
        # Rule numbers-of-pipeline
        listed = list_state_etags(self.control)
        changed = [name for name, etag in listed.items() if name not in self.read or self.read[name][0] != etag]
        numbers = call_all(partial(_read_number, self.control), changed)
        self.read |= {name: (listed[name], number) for name, number in zip(changed, numbers, strict=True)}
        return max((number for _, number in self.read.values()), default=0)


def _read_number(control: Control, table_id: str) -> int:
    """Return the highest number of a table; 0 where this release cannot read its state."""
    try:
        return Control(control.store, control.keys, table_id).state.read().sync.sync_id
    except LakeError as error:
        if CODES[error.code].transient:
            raise
        return 0


def claim_number(control: Control, job_id: str, find_highest: Callable[[], int]) -> int:
    """Claim the number after the highest that a table of the pipeline has, or the next one that no other load of the
    pipeline has claimed; the same again for the same load."""
    key = control.keys.own_sync_number(job_id)
    if (claimed := _number_of(control, key)) is not None:
        return claimed
    number = _claim(control, job_id, find_highest)
    # Another attempt of the load may have counted at the same time: all use the number that was written first.
    control.write_once(key, {"version": 1, "sync_id": number}, keep=True)
    claimed = _number_of(control, key)
    # Rule first-number
    return number if claimed is None else claimed


def _number_of(control: Control, key: str) -> int | None:
    stored = control.store.get(key)
    return None if stored is None else parse(SyncNumber, key, stored[0]).sync_id


def _claim(control: Control, job_id: str, find_highest: Callable[[], int]) -> int:
    claim = json.dumps({"version": 1, "job_id": job_id}).encode()
    number = find_highest() + 1
    while True:
        key = control.keys.sync_number(number)
        if not _create(control, key, claim) and (control.read_json(key) or {}).get("job_id") != job_id:
            number += 1
            continue
        # Another load with this number may have been committed since the states were read, and its claim be old and
        # cleared away. A claim goes only when a state has its number, so the states tell whether it was there.
        # Rule numbers-seen-again
        if (highest := find_highest()) < number:
            return number
        number = highest + 1


def _create(control: Control, key: str, body: bytes) -> bool:
    """Return whether the object is created; False where one is there already, which may be this very one."""
    return write(key, lambda: control.store.create(key, body) is not None, control.pause)


def plan_sync(
    spec: Spec, table: TableSpec, control: Control, state: TableState, sync_id: int, part: TablePart
) -> TableSync:
    """Return the generations of one table's load, and the objects that it deletes, by the state it registered with."""
    ending = part.ending or Ending(complete=not state.sync.unfinished, source=state.sync.source)
    generation, lowest, objects = state.sync.generation_id, 0, None
    if table.stream and table.stream.generation_id is not None:
        generation, lowest = table.stream.generation_id, table.stream.minimum_generation_id or 0
    elif table.overwrites and ending.continues:
        lowest = generation
    elif table.overwrites:
        objects = _survey(spec, table, control, state)
        generation = max(generation, find_highest_generation(objects)) + 1
        lowest = generation
    if lowest and objects is None and (ending.complete or spec.purge_first):
        objects = _survey(spec, table, control, state)
    old = select_older(control, objects or (), lowest)
    intent = SyncIntent(
        sync_id=sync_id,
        generation_id=generation,
        minimum_generation_id=lowest,
        retire=old if ending.complete and not spec.purge_first else (),
        source=ending.source,
        unfinished=not ending.complete,
        exclusive=bool(lowest) or ending.source is not None or not table.layout.varies,
    )
    return TableSync(intent, part.feed, old if spec.purge_first else ())


def make_ownership(spec: Spec, table: TableSpec, control: Control) -> Ownership:
    """Return the record of who writes where the table's objects lie."""
    return Ownership(control, spec.pipeline, table.layout)


def replaces_rows(table: TableSpec, intent: SyncIntent | None, state: TableState) -> bool:
    """Return whether a load is the first one of a generation that replaces those before it at once: readers see the
    rows of that generation alone from then on."""
    if table.stream is None or not table.stream.at_once or intent is None:
        return False
    # Rule generation-replaces-once
    return intent.minimum_generation_id > state.sync.shown_generation


def _survey(spec: Spec, table: TableSpec, control: Control, state: TableState) -> tuple[StreamObject, ...]:
    if table.stream is not None and table.stream.at_once:
        return ()
    return find_stream_objects(control, table.layout, state.sync, list_layouts_beside(spec, table))
