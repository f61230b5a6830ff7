"""The kinds of change that an intent may be: what each does to its table, and to the table's state once it is done.

A catalog applies a change's ``Effects`` and asks for no kind. A new kind is a class here, and the module that plans it.
"""

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Literal

from lakewriter.commit.input_records import Inputs, follow_load, follow_other, follow_undo
from lakewriter.commit.intent import Intent, Kind, Removal, Switch, UndoneLoad
from lakewriter.commit.state import LOADED_AGAIN, DroppedPartition, Generation, Pending, Retiring, TableState, Undone
from lakewriter.commit.sync_records import advance_sync
from lakewriter.control_object import ControlObject
from lakewriter.receipt import Batch, DeletedKeys, InferredType
from lakewriter.report import join_first
from lakewriter.spec.load_ids import REPLAY, find_job_ids, make_next_job_id

KEPT_UNDONE: Final = 100
"""How many undone loads a state names; the undo's report names older ones."""

KEPT_GENERATIONS: Final = 100
"""How many full refreshes of a table keep their files, however often it is refreshed: a state names each."""

MOST_NAMED: Final = 100
"""Keys that a message names."""

LATE: Final = timedelta(days=1)
"""For so long a call of a process that was held up may still come, since its credentials last for hours."""

KEPT_PARTITIONS: Final = 100
"""How many dropped partitions a state names."""

Replaced = Literal["nothing", "partitions", "everything"]


@dataclass(frozen=True)
class Effects:
    """What a change does to its table.

    adds            whether the intent's files become the table's
    work            the part of the intent that says what else a catalog does; its type selects how. None where files
                    are only added to the table's files, or replace them
    writes_deletes  whether the catalog writes files with deletes for it
    replaces        which of the older files readers no longer see
    generation      the generation that readers see next, where a table has generations; None: as before
    deletes         objects that are deleted once readers see the change
    bad_rows        objects that leave the quarantine with the files
    loaded          objects that leave the quarantine last: the change has loaded their rows
    """

    adds: bool
    work: ControlObject | None = None
    writes_deletes: bool = False
    replaces: Replaced = "nothing"
    generation: int | None = None
    deletes: tuple[tuple[str, str], ...] = ()
    bad_rows: tuple[Removal, ...] = ()
    loaded: tuple[Removal, ...] = ()

    @property
    def removes(self) -> UndoneLoad | None:
        """The load whose files leave the table."""
        return self.work if isinstance(self.work, UndoneLoad) else None

    @property
    def ends(self) -> tuple[tuple[str, str], ...]:
        """Key and etag of all objects that are deleted once readers see the change."""
        return (*self.deletes, *((removal.key, removal.etag) for removal in self.loaded))


class Change(ABC):
    """A change of one table, by its intent."""

    is_exclusive: ClassVar[bool] = True
    """Whether the change is valid only while no other has committed since it began, because it removes loads."""
    compares_state: ClassVar[bool] = True
    """Whether the change is valid only while the fields of the state that it was planned on are the same. Without it
    the catalog decides, by what the change has read, in the commit itself."""
    lets_loads_go_on: ClassVar[bool] = False
    """Whether loads that began before it stay valid: it changes nothing that a load depends on."""

    def __init__(self, intent: Intent) -> None:
        self.intent = intent

    @property
    @abstractmethod
    def effects(self) -> Effects:
        """The effects on the table."""

    def describe_unknown(self, why: str, before: Sequence[str]) -> str:
        """Describe, for a person, a change that is given up while nobody can tell whether readers see it. ``before``
        are the keys of the files that it replaces, where records name them."""
        new = join_first(list(self.intent.files.list_keys()), MOST_NAMED) or "none"
        return f". Whether readers see this change cannot be known{why}. Its files: {new}"

    def depends(self) -> bool:
        """Return whether the change is valid only while no other has committed since it began."""
        # Rule undo-fence
        return self.is_exclusive or self.intent.depends_on_state

    def may_bind(self, state: TableState, began: TableState) -> bool:
        """Return whether the files that an undo shows again still exist: the state drops them before they are deleted.

        ``began`` is the state that the change was planned on.
        """
        switch = self.intent.switch
        return switch is None or switch.job_id is None or state.find_generation(switch.after) is not None

    @abstractmethod
    def list_state_changes(self, state: TableState, now: datetime, *, abandoned: bool = False) -> dict[str, Any]:
        """List the fields of the state that changes of this kind set, with their new values, at ``now``."""

    def list_all_state_changes(self, state: TableState, now: datetime, *, abandoned: bool = False) -> dict[str, Any]:
        """List all fields of the state that the change sets, also the one which says that running loads stay valid."""
        fields = self.list_state_changes(state, now, abandoned=abandoned)
        # Rule compactions-are-counted
        return fields | {"compactions": state.compactions + self.lets_loads_go_on}


class Append(Change):
    """A load that adds files. A replay of bad rows is one, too: it takes them out of the quarantine."""

    is_exclusive = False

    @property
    def effects(self) -> Effects:
        """See ``Change``."""
        sync = self.intent.sync
        return Effects(adds=True, deletes=sync.retire if sync is not None else (), loaded=self.intent.taken)

    def describe_unknown(self, why: str, before: Sequence[str]) -> str:
        """See ``Change``."""
        if self.intent.taken:
            return ""
        if self.effects.replaces == "nothing" and not self.effects.ends:
            return super().describe_unknown(why, before)
        new, old = (join_first(list(keys), MOST_NAMED) or "none" for keys in (self.intent.files.list_keys(), before))
        return (
            f". Whether readers see this refresh or what was there before it, or both, cannot be known{why}. Its "
            f"files: {new}. Those of before: {old}. The next refresh deletes both"
        )

    def list_state_changes(self, state: TableState, now: datetime, *, abandoned: bool = False) -> dict[str, Any]:
        """See ``Change``."""
        intent = self.intent
        changes: dict[str, Any] = {
            # Rule cursor-closed
            "cursor": intent.cursor_after or state.cursor,
            # Rule counter-closed
            "counter": max(state.counter, intent.counter_after or 0),
            # Rule batch-closed
            "batch": intent.batch or _follow_replay(state, intent),
            "inferred": state.inferred if intent.inferred is None else intent.inferred,
            "inputs": self._follow_inputs(state),
            "names": state.add_names(intent.names),
            "types": self._follow_types(state),
            "origin": intent.origin or state.origin,
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

    def _follow_types(self, state: TableState) -> tuple[InferredType, ...] | None:
        """Return the types of the columns of the table's files."""
        return state.add_types(self.intent.types, self.intent.job_id)

    def _follow_inputs(self, state: TableState) -> Inputs | None:
        """Return the record of the files that loads have read."""
        if self.intent.taken:
            return follow_other(state.inputs, state.committed)
        return follow_load(state.inputs, self.intent.inputs, state.committed)


class Merge(Append):
    """A load whose rows replace the table's older rows of the same key."""

    is_exclusive = True

    @property
    def effects(self) -> Effects:
        """See ``Change``."""
        return replace(super().effects, work=self.intent.merge, writes_deletes=True)

    def list_state_changes(self, state: TableState, now: datetime, *, abandoned: bool = False) -> dict[str, Any]:
        """See ``Change``. Where nobody knows whether the table has an abandoned merge, the keys that it names stay out
        of older rows' way all the same; if it names none, those of before do."""
        changes, merge, intent = super().list_state_changes(state, now), self.intent.merge, self.intent
        if merge is None or (abandoned and merge.deleted_keys is None):
            return changes
        deleted = None
        if merge.deleted_keys is not None:
            until = intent.started + timedelta(seconds=merge.deleted_seconds)
            deleted = DeletedKeys(job_id=intent.job_id, key=merge.deleted_keys, until=until)
        return changes | {"deleted_keys": deleted}


class Refresh(Append):
    """A full refresh: its files are all that the table has after it."""

    is_exclusive = True

    @property
    def effects(self) -> Effects:
        """See ``Change``."""
        switch = self.intent.switch
        return replace(
            super().effects,
            replaces="partitions" if self.intent.keeps_partitions else "everything",
            generation=switch.after if switch is not None else None,
        )

    def list_state_changes(self, state: TableState, now: datetime, *, abandoned: bool = False) -> dict[str, Any]:
        """See ``Change``. The files of the refresh before it are kept for a while, so that this one can be undone. A
        catalog with versions keeps them with its versions.

        Nobody knows which files readers see after an abandoned refresh: the files of both stay until the next refresh.
        """
        changes, switch = super().list_state_changes(state, now), self.intent.switch
        if not self.intent.keeps_partitions and not abandoned:
            changes["deleted_keys"] = None
        if switch is None:
            return changes
        intent = self.intent
        generation = Generation(
            number=switch.after,
            job_id=intent.job_id,
            attempt=intent.attempt,
            started=intent.started,
            inputs=state.inputs,
        )
        generations = (*state.generations, generation)
        changes["generation"] = max(state.generation, switch.after)
        if intent.catalog.keeps_versions:
            return changes if abandoned else changes | {"generations": generations[-KEPT_GENERATIONS:]}
        changes["generations"] = generations
        if abandoned:
            return changes
        retiring, until = state.retiring, now + timedelta(seconds=switch.keep_seconds)
        waiting = {entry.generation for entry in retiring}
        retiring = (
            *retiring,
            *(_make_retiring(other, until) for other in state.generations if other.number not in waiting),
        )
        due = {other.number for other in generations[:-KEPT_GENERATIONS]}
        retiring = tuple(
            entry.model_copy(update={"not_before": min(now, entry.not_before)}) if entry.generation in due else entry
            for entry in retiring
        )
        return changes | {"retiring": retiring}

    def _follow_types(self, state: TableState) -> tuple[InferredType, ...] | None:
        """Return the types of its own files alone, unless older files or the catalog's columns stay."""
        begins_anew = not (self.intent.keeps_partitions or self.intent.catalog.keeps_versions)
        # Rule types-of-a-refresh
        return (state.replace(types=None) if begins_anew else state).add_types(self.intent.types, self.intent.job_id)

    def _follow_inputs(self, state: TableState) -> Inputs | None:
        """Return no record of files that loads have read: the refresh replaces them all."""
        return None


class Compact(Change):
    """Replace files of a table by others with the same rows, which changes nothing for readers and for loads.

    The state says nothing of the files that it has read, so any load may commit meanwhile. The commit leaves out the
    groups of files that have changed."""

    is_exclusive = False
    compares_state = False
    lets_loads_go_on = True

    @property
    def effects(self) -> Effects:
        """See ``Change``."""
        return Effects(adds=True, work=self.intent.compact)

    def list_state_changes(self, state: TableState, now: datetime, *, abandoned: bool = False) -> dict[str, Any]:
        """See ``Change``."""
        return {
            "counter": max(state.counter, self.intent.counter_after or 0),
            "inputs": follow_other(state.inputs, state.committed),
        }


class Undo(Change):
    """Take a load's files, or a full refresh, out of the table again."""

    @property
    def load(self) -> UndoneLoad:
        """The load that is undone."""
        assert self.intent.undoes is not None
        return self.intent.undoes

    def may_bind(self, state: TableState, began: TableState) -> bool:
        """See ``Change``: a compaction since then may have replaced the files that the undo names."""
        # Rule undo-of-compacted
        return super().may_bind(state, began) and state.compactions == began.compactions

    @property
    def effects(self) -> Effects:
        """See ``Change``. Objects that running queries may read are deleted later."""
        intent, at_once = self.intent, not self.load.grace_seconds
        return Effects(
            adds=False,
            generation=intent.switch.after if intent.switch is not None else None,
            work=self.load,
            deletes=tuple((removal.key, removal.etag) for removal in intent.removes) if at_once else (),
            bad_rows=self.load.quarantined,
        )

    def list_state_changes(self, state: TableState, now: datetime, *, abandoned: bool = False) -> dict[str, Any]:
        """See ``Change``. Counters stay, since no key is used twice; so do columns."""
        intent, load = self.intent, self.load
        undone = Undone(job_id=load.job_id, by=intent.job_id, at=now, next=load.next, reason=load.reason)
        live = tuple(other for other in state.sync.live if other.job_id != load.job_id)
        changes: dict[str, Any] = {
            "undone": (*state.undone, undone)[-KEPT_UNDONE:],
            "sync": state.sync.model_copy(update={"live": live} | self._list_source()),
            "inputs": self._follow_inputs(state),
            # Rule types-undone
            "types": state.types and (tuple(c for c in state.types if c.load != load.job_id) or None),
        }
        # Rule undo-cursor
        if load.restores_cursor:
            changes["cursor"] = intent.cursor_after
        # Rule deleted-keys-of-an-undo
        if load.restores_keys:
            changes["deleted_keys"] = load.before.deleted_keys if load.before is not None else None
        until = now + timedelta(seconds=load.grace_seconds)
        if load.grace_seconds and intent.removes:
            entry = Retiring(job_id=intent.job_id, attempt=intent.attempt, not_before=until)
            changes["retiring"] = (*state.retiring, entry)
        if intent.switch is not None:
            changes |= self._list_switched_back(state, intent.switch, until)
        return changes

    def _list_source(self) -> dict[str, Any]:
        """List the fields of the source's state that become those of before the load."""
        before = self.load.before if self.load.restores_source else None
        if before is None:
            return {}
        return {"source": before.source, "unfinished": before.unfinished, "begins_anew": before.begins_anew}

    def _follow_inputs(self, state: TableState) -> Inputs | None:
        """Return the record of the files that were read: after the undo of a full refresh that of before it."""
        switch, load = self.intent.switch, self.load
        undone = state.find_generation(switch.before) if switch is not None else None
        inputs = undone.inputs if undone is not None else state.inputs
        return follow_undo(inputs, load.job_id, state.committed, is_whole=load.restores_inputs)

    def _list_switched_back(self, state: TableState, switch: Switch, until: datetime) -> dict[str, Any]:
        """List what else the undo of a full refresh sets: files of the refresh before it stay, its own are deleted."""
        gone = state.find_generation(switch.before)
        generations = tuple(other for other in state.generations if other.number != switch.before)
        # Rule shown-again-stays
        retiring = tuple(entry for entry in state.retiring if entry.generation != switch.after)
        # Rule undone-refresh-deleted
        if gone is not None and not self.intent.catalog.keeps_versions:
            retiring = (*retiring, _make_retiring(gone, until))
        return {"generations": generations, "retiring": retiring}


KINDS: Final[Mapping[Kind, type[Change]]] = {
    "load": Append,
    "merge": Merge,
    "refresh": Refresh,
    "undo": Undo,
    "compact": Compact,
}


def read_change(intent: Intent) -> Change:
    """Return the change that the intent is of."""
    return KINDS[intent.kind](intent)


def list_effects(intent: Intent) -> Effects:
    """Return what the intent does to its table."""
    return read_change(intent).effects


def require_able(effects: Effects, works: Container[type]) -> None:
    """Raise ``TypeError`` for work of another type, and for a change that has no work and adds nothing: the catalog
    would do nothing, and the change would count as committed."""
    if type(effects.work) not in works or not (effects.adds or effects.work):
        raise TypeError(f"the catalog has no way to publish the work {type(effects.work).__name__} of a change")


def close_state(
    state: TableState, pending: Pending, intent: Intent, now: datetime, *, abandoned: bool = False
) -> TableState:
    """Return the state with the pending change counted as committed at ``now``; ``abandoned`` says that its catalog may
    lack it."""
    closed = state.replace(
        pending=None,
        committed=state.committed + 1,
        last_job=choose_last_job(state, pending.job_id),
        last_commit=max(now, intent.started, state.last_commit or intent.started),
        running=state.list_running_except(pending.job_id),
        needs=tuple(sorted({*state.needs, *intent.lasting_needs})),
        partitions=follow_partitions(state, intent, now, abandoned=abandoned),
    )
    return closed.replace(**read_change(intent).list_all_state_changes(state, now, abandoned=abandoned))


def follow_partitions(
    state: TableState, intent: Intent, now: datetime, *, abandoned: bool
) -> tuple[DroppedPartition, ...]:
    """Return the partitions that were dropped lately, after the change. Whether readers see an abandoned load is not
    known, so it decides about none."""
    # Rule dropped-partitions-end
    entries = tuple(entry for entry in state.partitions if entry.until > now)
    target, effects = intent.catalog.find_partition(), list_effects(intent)
    drops = effects.removes is not None and effects.removes.drops_partition
    if target is None or not (drops or (effects.adds and not abandoned)):
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
        until=now + LATE,
    )
    return (*others, entry)[-KEPT_PARTITIONS:]


def choose_last_job(state: TableState, job_id: str) -> str | None:
    """Return the table's last job after the commit of ``job_id``. A continuous run continues only if the last job is
    its own batch, so changes that read nothing of its source do not count: a replay, and a change whose job ids say so,
    such as a compaction."""
    ids = find_job_ids(job_id)
    if ids is not None and not ids.becomes_last:
        return state.last_job
    is_between = job_id.startswith(REPLAY) and state.last_batch is not None
    return state.last_job if is_between else job_id


def _make_retiring(generation: Generation, not_before: datetime) -> Retiring:
    return Retiring(
        job_id=generation.job_id, attempt=generation.attempt, not_before=not_before, generation=generation.number
    )


def _follow_replay(state: TableState, intent: Intent) -> Batch | None:
    """Return the state's batch after a load: a continuous run that may begin on top of so many changes may begin after
    a replay, too."""
    mark = state.batch
    may_begin = intent.taken and mark is not None and state.last_batch is None and mark.number == state.changes
    return mark.model_copy(update={"number": mark.number + 1}) if mark and may_begin else mark
