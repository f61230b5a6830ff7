"""Conclude what a change leaves in a table's state once it is closed, with its intent and without it.

The close of a load, the rebuild of a lost state and the plan of a further undo ask it here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from lakewriter.receipt import Batch, Cursor, DeletedKeys, InferredType
from lakewriter.records.changes import Compact, Expire, Intent, Kind, Load, Merge, Refresh, Undo, lets_loads_go_on
from lakewriter.records.fold.by_hand import add_reset
from lakewriter.records.fold.steps import UNLESS_PENDING, Step, Successions, fold, set_fields
from lakewriter.records.input_records import Inputs, follow_load, follow_other, follow_undo
from lakewriter.records.state import (
    LOADED_AGAIN,
    DroppedPartition,
    Generation,
    Lost,
    Numbers,
    Pending,
    Reset,
    Retiring,
    Running,
    TableState,
    Undone,
    join_types,
)
from lakewriter.records.sync_records import Live, SyncState, advance_sync
from lakewriter.report import TableHealth
from lakewriter.spec.load_ids import REPLAY, make_next_job_id

KEPT_UNDONE: Final = 100
"""The most undone loads that a state names; the undo's report names older ones."""

KEPT_GENERATIONS: Final = 100
"""The most full refreshes of a table that keep their files, however often it is refreshed: a state names each."""

KEPT_PARTITIONS: Final = 100
"""The most dropped partitions that a state names."""

LATE: Final = timedelta(days=1)
"""For so long a call of a process that was held up may still come, since its credentials last for hours."""


@dataclass(frozen=True)
class Close(Step):
    """A change counts as committed at ``at``.

    pending       the intent as it is pending; None where the change is added to a state that is rebuilt
    is_abandoned  whether a person has given it up, so that its catalog may lack it
    health        the table after it; None where the catalog does not say
    """

    intent: Intent
    at: datetime
    pending: Pending | None
    is_abandoned: bool = False
    health: TableHealth | None = None

    successions: ClassVar[Successions] = {"uploaded": (None,), None: (None,)}

    def _apply(self, state: TableState) -> TableState:
        # Rule move-own-pending/2
        if state.pending != self.pending:
            raise Lost
        intent = self.intent
        return set_fields(
            _count(state, intent.job_id, self.at, intent.started),
            needs=tuple(sorted({*state.needs, *intent.lasting_needs})),
            partitions=_follow_partitions(state, self),
            deletes=state.deletes if self.health is None else self.health.deletes,
            **_CLOSES[intent.kind](state, intent, self),
        )


def _count(state: TableState, job_id: str, at: datetime, started: datetime) -> TableState:
    """Return the state with one more committed change, and nothing pending."""
    return set_fields(
        state,
        pending=None,
        committed=state.committed + 1,
        # Rule compactions-are-counted
        compactions=state.compactions + lets_loads_go_on(job_id),
        last_job=choose_last_job(state, job_id),
        last_commit=max(at, started, state.last_commit or started),
        running=state.list_running_except(job_id),
    )


def choose_last_job(state: TableState, job_id: str) -> str | None:
    """Return the table's last job after the commit of ``job_id``. A continuous run continues only if the last job is
    its own batch, so changes that read nothing of its source do not count: a replay, and a change that lets loads go
    on, such as a compaction."""
    if lets_loads_go_on(job_id):
        return state.last_job
    is_between = job_id.startswith(REPLAY) and state.last_batch is not None
    return state.last_job if is_between else job_id


def _follow_partitions(state: TableState, close: Close) -> tuple[DroppedPartition, ...]:
    """Return the partitions that were dropped lately, after the change. Whether readers see an abandoned load is not
    known, so it decides about none."""
    # Rule dropped-partitions-end
    entries = tuple(entry for entry in state.partitions if entry.until > close.at)
    intent = close.intent
    target, effects = intent.catalog.find_partition(), intent.effects
    drops = effects.removes is not None and effects.removes.drops_partition
    if target is None or not (drops or (effects.adds and not close.is_abandoned)):
        return entries
    partition, location = target
    others = tuple(entry for entry in entries if entry.partition != partition)
    # Rule dropped-partitions-only
    if not drops and others == entries:
        return entries
    entry = DroppedPartition(
        partition=partition,
        location=location,
        job_id=intent.job_id,
        attempt=intent.attempt,
        is_due=effects.adds,
        until=close.at + LATE,
    )
    return (*others, entry)[-KEPT_PARTITIONS:]


def _close_load(state: TableState, intent: Load, close: Close) -> dict[str, Any]:
    """Return the fields that a load moves. A replay of bad rows is one, too."""
    changes: dict[str, Any] = {
        # Rule cursor-closed
        "cursor": intent.cursor_after or state.cursor,
        # Rule counter-closed
        "counter": max(state.counter, intent.counter_after or 0),
        # Rule batch-closed
        "batch": intent.batch or _follow_replay(state, intent),
        "inferred": state.inferred if intent.inferred is None else intent.inferred,
        "inputs": _read(state, intent, close),
        "names": state.add_names(intent.names),
        "types": state.add_types(intent.types, intent.job_id),
        "origin": intent.origin or state.origin,
        "adopted": max(filter(None, (state.adopted, intent.adopted)), default=None),
    }
    if intent.sync is not None:
        changes["sync"] = advance_sync(
            state.sync, intent.sync, intent.job_id, files=bool(intent.files), batch=intent.batch
        )
    # Rule repeats-burnt
    if intent.repeats:
        # These refuse a slow attempt at a load that this one repeats.
        burnt = [
            Undone(job_id=job, by=intent.job_id, at=intent.started, next=make_next_job_id(job), reason=LOADED_AGAIN)
            for job in intent.repeats
            if state.find_undone(job) is None
        ]
        changes["undone"] = (*state.undone, *burnt)[-KEPT_UNDONE:]
    return changes


def _read(state: TableState, intent: Load, close: Close) -> Inputs | None:
    """Return the record of the files that loads have read."""
    if close.pending is None and intent.inputs is not None:
        # Each intent repeats the record of the loads before it. Only a person knows whether later ones are missing.
        return follow_load(intent.inputs.before.model_copy(update={"committed": -1}), intent.inputs, 0)
    if intent.taken:
        return follow_other(state.inputs, state.committed)
    return follow_load(state.inputs, intent.inputs, state.committed)


def _follow_replay(state: TableState, intent: Load) -> Batch | None:
    """Return the state's batch after a load: a continuous run that may begin on top of so many changes may begin after
    a replay, too."""
    mark = state.batch
    may_begin = intent.taken and mark is not None and state.last_batch is None and mark.number == state.changes
    return mark.model_copy(update={"number": mark.number + 1}) if mark and may_begin else mark


def _close_merge(state: TableState, intent: Merge, close: Close) -> dict[str, Any]:
    """Return the fields that a merge moves. Where nobody knows whether the table has an abandoned merge, the keys that
    it names stay out of older rows' way all the same; if it names none, those of before do."""
    changes, merge = _close_load(state, intent, close), intent.merge
    if close.is_abandoned and merge.deleted_keys is None:
        return changes
    return changes | {"deleted_keys": intent.deleted_after}


def _close_refresh(state: TableState, intent: Refresh, close: Close) -> dict[str, Any]:
    """Return the fields that a full refresh moves. The files of the refresh before it are kept for a while, so that
    this one can be undone. A catalog with versions keeps them with its versions.

    Nobody knows which files readers see after an abandoned refresh: the files of both stay until the next refresh.
    """
    switch, keeps_partitions = intent.switch, intent.replaces == "partitions"
    begins_anew = not (keeps_partitions or intent.catalog.keeps_versions)
    # Rule types-of-a-refresh
    types = (set_fields(state, types=None) if begins_anew else state).add_types(intent.types, intent.job_id)
    changes = _close_load(state, intent, close) | {"types": types, "inputs": None}
    if not keeps_partitions and not close.is_abandoned:
        changes["deleted_keys"] = intent.deleted_after
    generation = Generation(
        number=switch.after,
        job_id=intent.job_id,
        attempt=intent.attempt,
        started=intent.started,
        inputs=state.inputs,
        types=state.types,
    )
    generations = (*state.generations, generation)
    changes["generation"] = max(state.generation, switch.after)
    if intent.catalog.keeps_versions:
        return changes if close.is_abandoned else changes | {"generations": generations[-KEPT_GENERATIONS:]}
    changes["generations"] = generations
    if close.is_abandoned:
        return changes
    retiring, until = state.retiring, close.at + timedelta(seconds=switch.keep_seconds)
    waiting = {entry.generation for entry in retiring}
    retiring = (
        *retiring,
        *(_make_retiring(other, until) for other in state.generations if other.number not in waiting),
    )
    due = {other.number for other in generations[:-KEPT_GENERATIONS]}
    retiring = tuple(
        entry.model_copy(update={"not_before": min(close.at, entry.not_before)}) if entry.generation in due else entry
        for entry in retiring
    )
    return changes | {"retiring": retiring}


def _make_retiring(generation: Generation, not_before: datetime) -> Retiring:
    return Retiring(
        job_id=generation.job_id, attempt=generation.attempt, not_before=not_before, generation=generation.number
    )


def _close_compact(state: TableState, intent: Compact, close: Close) -> dict[str, Any]:
    """Return the fields that a compaction moves: it changes nothing for readers and for loads."""
    return {
        "counter": max(state.counter, intent.counter_after or 0),
        "inputs": follow_other(state.inputs, state.committed),
    }


def _close_expire(state: TableState, intent: Expire, close: Close) -> dict[str, Any]:
    """Return the fields that an expiry moves: it changes nothing for readers of the table as it is, and for loads."""
    return {"inputs": follow_other(state.inputs, state.committed)}


TakeBack = Callable[[TableState, Undo, datetime], Any]


def _close_undo(state: TableState, intent: Undo, close: Close) -> dict[str, Any]:
    """Return the fields that an undo moves: those that follow the source or the files, each by its row of
    ``_TAKEN_BACK``. Counters stay, since no key is used twice; so do columns."""
    load = intent.undoes
    undone = Undone(job_id=load.job_id, by=intent.job_id, at=close.at, next=load.next, reason=load.reason)
    back = {name: take_back(state, intent, close.at) for name, take_back in _TAKEN_BACK.items()}
    synced = {name.removeprefix("sync."): back.pop(name) for name in tuple(back) if name.startswith("sync.")}
    sync = state.sync.model_copy(update=synced)
    return back | {"undone": (*state.undone, undone)[-KEPT_UNDONE:], "sync": sync}


def _unread(state: TableState, intent: Undo, at: datetime) -> Inputs | None:
    """Return the record of the files that were read: after the undo of a full refresh that of before it."""
    undone = state.find_generation(intent.switch.before) if intent.switch is not None else None
    inputs = undone.inputs if undone is not None else state.inputs
    load = intent.undoes
    return follow_undo(inputs, load.job_id, state.committed, is_whole=load.restores_inputs)


def _retire_undone(state: TableState, intent: Undo, at: datetime) -> tuple[Retiring, ...]:
    """Return the objects that are to be deleted: what a refresh shows again stays, its own files go."""
    retiring, switch, grace = state.retiring, intent.switch, intent.undoes.grace_seconds
    until = at + timedelta(seconds=grace)
    if grace and intent.removes:
        retiring = (*retiring, Retiring(job_id=intent.job_id, attempt=intent.attempt, not_before=until))
    if switch is None:
        return retiring
    # Rule shown-again-stays
    retiring = tuple(entry for entry in retiring if entry.generation != switch.after)
    gone = state.find_generation(switch.before)
    # Rule undone-refresh-deleted
    if gone is not None and not intent.catalog.keeps_versions:
        retiring = (*retiring, _make_retiring(gone, until))
    return retiring


def _forget_types(state: TableState, intent: Undo, at: datetime) -> tuple[InferredType, ...] | None:
    """Return the types of the columns of the table's files: after the undo of a full refresh those of before it, with
    those of later loads. A catalog with versions keeps its columns."""
    # Rule types-undone
    stay = state.types and (tuple(column for column in state.types if column.load != intent.undoes.job_id) or None)
    undone = state.find_generation(intent.switch.before) if intent.switch is not None else None
    if undone is None or intent.catalog.keeps_versions:
        return stay
    return join_types(undone.types, stay or ()) or None


def _drop_generation(state: TableState, intent: Undo, at: datetime) -> tuple[Generation, ...]:
    gone = intent.switch.before if intent.switch is not None else None
    return tuple(other for other in state.generations if other.number != gone)


def _go_back(name: str) -> TakeBack:
    """Return how a field of the source's state follows an undo."""

    def take_back(state: TableState, intent: Undo, at: datetime) -> Any:
        return getattr(intent.undoes.before if intent.undoes.restores_source else state.sync, name)

    return take_back


_TAKEN_BACK: Final[Mapping[str, TakeBack]] = {
    # Rule undo-cursor
    "cursor": lambda state, intent, at: intent.cursor_after if intent.undoes.restores_cursor else state.cursor,
    "inputs": _unread,
    "sync.source": _go_back("source"),
    "sync.unfinished": _go_back("unfinished"),
    "sync.begins_anew": _go_back("begins_anew"),
    "sync.live": lambda state, intent, at: tuple(
        load for load in state.sync.live if load.job_id != intent.undoes.job_id
    ),
    "generations": _drop_generation,
    "retiring": _retire_undone,
    # Rule deleted-keys-of-an-undo
    "deleted_keys": lambda state, intent, at: (
        intent.undoes.before.deleted_keys if intent.undoes.restores_keys else state.deleted_keys
    ),
    "types": _forget_types,
}
"""The way back of each field that follows the source or the files, in an undo; ``deletes`` is
looked at after every change."""

_CLOSES: Final[Mapping[Kind, Callable[[TableState, Any, Close], dict[str, Any]]]] = {
    "load": _close_load,
    "merge": _close_merge,
    "refresh": _close_refresh,
    "replace_partitions": _close_refresh,
    "undo": _close_undo,
    "compact": _close_compact,
    "expire": _close_expire,
}
"""What a closed change of each kind leaves in the state."""


@dataclass(frozen=True)
class CloseBlindly(Step):
    """A change without its intent counts as committed, by what its report, its objects and its job id say.

    cursor         the cursor after it; with ``undoes`` also where it is None
    counter        the next file's number by its objects; ``generation`` is that of a full refresh
    sync_id        the number of its sync; ``generation_id`` is that of its stream, None where it had none
    has_files      whether objects of it are live in that generation
    forgets_source whether the source's state after it is not known, so that the source begins anew
    undoes         the load that it has undone
    """

    job_id: str
    started: datetime
    at: datetime
    cursor: Cursor | None = None
    counter: int = 0
    generation: int = 0
    batch: Batch | None = None
    deleted_keys: DeletedKeys | None = None
    sync_id: int = 0
    generation_id: int | None = None
    has_files: bool = False
    forgets_source: bool = False
    undoes: str | None = None

    successions: ClassVar[Successions] = UNLESS_PENDING

    def _apply(self, state: TableState) -> TableState:
        fields: dict[str, Any] = {"cursor": self.cursor or state.cursor}
        if self.undoes is not None:
            following = make_next_job_id(self.undoes)
            undone = Undone(job_id=self.undoes, by=self.job_id, at=self.at, next=following, reason="see its report")
            fields = {"cursor": self.cursor, "undone": (*state.undone, undone)[-KEPT_UNDONE:]}
        return set_fields(
            # The catalog may have it under this number, and would take the next change for it.
            # Rule blind-counted
            _count(state, self.job_id, self.at, self.started),
            counter=max(state.counter, self.counter),
            generation=max(state.generation, self.generation),
            batch=self.batch or state.batch,
            # Rule blind-deleted-keys
            deleted_keys=self.deleted_keys or state.deleted_keys,
            sync=self._follow_sync(state.sync),
            **fields,
        )

    def _follow_sync(self, sync: SyncState) -> SyncState:
        if self.generation_id is None:
            return sync
        live = (Live(job_id=self.job_id, generation_id=self.generation_id),) if self.has_files else ()
        fields: dict[str, Any] = {"live": (*sync.live, *live)}
        if self.forgets_source:
            fields |= {
                "source": None,
                "sync_id": max(sync.sync_id, self.sync_id),
                "generation_id": max(sync.generation_id, self.generation_id),
            }
        return sync.model_copy(update=fields)


@dataclass(frozen=True)
class EndBlindly(Step):
    """A person ends a pending change whose intent is gone, in whatever phase it is; with ``close`` it counts as
    committed."""

    pending: Pending
    at: datetime
    reason: str
    close: CloseBlindly | None = None

    successions: ClassVar[Successions] = dict.fromkeys(("prepared", "intended", "uploaded", "aborting"), (None,))

    def _apply(self, state: TableState) -> TableState:
        if not self.pending.is_same(state.pending):
            raise Lost
        ended = set_fields(state, pending=None, running=state.list_running_except(self.pending.job_id))
        ended = fold(ended, self.close) if self.close is not None else ended
        what = f"load {self.pending.job_id} abandoned without its intent ({self.pending.phase})"
        return set_fields(ended, resets=add_reset(ended, self.at, what, self.reason, ended=self.pending.job_id))


@dataclass(frozen=True)
class Conclude(Step):
    """The last step of a rebuild: what the records of single changes do not say.

    numbers   the highest numbers in the keys of its objects
    given_up  how many of the committed changes are none, as the catalog says
    running   attempts that neither ended nor were superseded
    cursor    the cursor that a person gives; None leaves that of the records
    """

    at: datetime
    reason: str
    what: str
    id: str
    committed: int
    numbers: Numbers
    given_up: int = 0
    running: Mapping[str, Running] = field(default_factory=dict)
    pending: Pending | None = None
    cursor: Cursor | None = None

    successions: ClassVar[Successions] = {None: (None, "prepared", "intended", "uploaded", "aborting")}

    def _apply(self, state: TableState) -> TableState:
        # Refreshes whose files may be deleted already cannot be shown again.
        due = {entry.generation for entry in state.retiring if entry.not_before <= self.at}
        changes = self.committed - self.given_up - state.compactions
        reset = Reset(at=self.at, what=self.what, reason=self.reason, committed=changes)
        return set_fields(
            state,
            id=self.id,
            committed=self.committed,
            given_up=self.given_up,
            backfill=self.numbers.backfill,
            counter=max(state.counter, self.numbers.counter),
            generation=max(state.generation, self.numbers.generation),
            generations=tuple(other for other in state.generations if other.number not in due),
            partitions=tuple(entry for entry in state.partitions if entry.until > self.at),
            running=self.running,
            pending=self.pending,
            resets=(reset,),
            cursor=self.cursor or state.cursor,
        )
