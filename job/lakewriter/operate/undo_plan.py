"""Plan the undo of one load of one table: what is deleted, what readers see meanwhile, where the cursor goes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, Literal

from lakewriter.commit.at_once import call_all
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.catalog import open_iceberg_writer
from lakewriter.commit.control import Control
from lakewriter.commit.decisions import Group, find_decision
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.store import StoredObject
from lakewriter.control_object import CHANGES
from lakewriter.errors import PendingUnrecoverableError, SpecInvalidError
from lakewriter.receipt import Cursor
from lakewriter.records.actions import CatalogAction
from lakewriter.records.changes import Intent, Load, Merge, Refresh, Undo
from lakewriter.records.facets import Removal, Switch, UndoneLoad
from lakewriter.records.fold.closing import Close
from lakewriter.records.fold.steps import fold_ahead
from lakewriter.records.state import Generation, TableState
from lakewriter.records.sync_records import SourceState
from lakewriter.report import TableReport, format_count, join_first
from lakewriter.spec.load_ids import REPLAY, make_next_job_id, make_undo_job_id
from lakewriter.spec.specification import Tracking

View = Literal["snapshot", "switch", "partition", "files", "nothing"]
"""A load disappears for readers at once, with a snapshot, a switch to other files, or a partition; or file by file.
Nothing disappears of a load without files."""

_REQUESTS: Final = 20
"""Requests that every undo makes: its records, three state reads, the catalog."""
_THROUGH: Final = "Undo those as well: --through"
MOST_NAMED: Final = 3
"""The most job ids or keys that a sentence names."""


@dataclass(frozen=True)
class Choices:
    """A person's choices: the reason, whether the cursor stays where it is, whether rewritten files are written
    again."""

    reason: str
    keep_cursor: bool = False
    rewrite: bool = False


@dataclass(frozen=True)
class UndoPlan:
    """What the undo of one load does to its table; ``notes`` are sentences for the person who decides.

    ``catalog`` is the table as the undo leaves it, if the load left it otherwise.
    """

    intent: Intent
    undone: UndoneLoad
    catalog: CatalogAction | None = None
    switch: Switch | None = None
    view: View = "nothing"
    removes: tuple[Removal, ...] = ()
    cursor_before: Cursor | None = None
    cursor_after: Cursor | None = None
    notes: tuple[str, ...] = ()

    @property
    def requests(self) -> int:
        """The approximate number of requests to AWS: a HEAD and a DELETE for each object, and the change itself."""
        return _REQUESTS + 2 * (len(self.removes) + len(self.undone.quarantined))

    def make_intent(self, attempt: Attempt, began: TableState, group: str | None = None) -> Undo:
        """Return the undo as an intent that any process can carry out; with a ``group`` it is bound together with that
        group's other tables."""
        of = self.intent
        return Undo(
            pipeline=of.pipeline,
            job_id=attempt.job_id,
            attempt=attempt.id,
            table_id=of.table_id,
            schema_name=of.schema_name,
            table=of.table,
            started=attempt.started,
            access=of.access,
            catalog=self.catalog or of.catalog,
            cursor_before=began.cursor,
            cursor_after=self.cursor_after,
            undoes=self.undone,
            removes=self.removes,
            switch=self.switch,
            notes=self.notes,
            needs=(CHANGES,),
            together=group is not None,
            group=group or "",
        )

    def leave(self, state: TableState, at: datetime) -> TableState:
        """Return the state after this undo, on which the undo of another load is planned."""
        attempt = Attempt(self.intent.pipeline, make_undo_job_id(self.intent.job_id), "plan", at, timedelta())
        return fold_ahead(state, Close(self.make_intent(attempt, state), at, None))


@dataclass
class UndoPlanner:
    """Plans undos of one table on ``state``. ``before`` and ``after`` are its live loads of before and after
    the load, the oldest first; ``is_whole`` says that the records of all its loads are kept,
    ``is_partial`` that other tables of the pipeline are left out; ``gone`` are the loads that are undone before;
    ``find_expiry`` tells when an expiry removed what the undo of a load needs."""

    control: Control
    pipeline: Pipeline
    state: TableState
    before: Sequence[TableReport]
    after: Sequence[TableReport]
    choices: Choices
    is_whole: bool
    is_partial: bool = False
    gone: tuple[str, ...] = ()
    find_expiry: Callable[[str], datetime | None] = lambda _: None
    notes: list[str] = field(default_factory=list)

    def plan(self, intent: Intent) -> UndoPlan:
        """Plan the undo of the load that the intent is of; ``SPEC_INVALID`` where it cannot be undone."""
        load = self._require_undoable(intent)
        undone = UndoneLoad(
            job_id=intent.job_id,
            attempt=intent.attempt,
            files=len(intent.files),
            rows=intent.rows,
            reason=self.choices.reason,
            next=make_next_job_id(intent.job_id),
            before=load.before,
            restores_inputs=self._restores_inputs(load),
        )
        undone = undone.model_copy(update={"quarantined": self._find_quarantined(intent)})
        undone = self._plan_source(load, self._plan_cursor(load, undone))
        cursor = load.cursor_before if undone.restores_cursor else self.state.cursor
        plan = UndoPlan(load, undone, cursor_before=self.state.cursor, cursor_after=cursor)
        self._require_changeable(intent)
        if isinstance(load, Refresh):
            plan = self._plan_switch(plan, load.switch)
        elif intent.changes_rows and isinstance(load, Merge):
            plan = self._plan_parent(plan)
        elif intent.files and intent.catalog.keeps_versions:
            plan = self._plan_snapshot(plan)
        elif intent.files:
            plan = self._plan_objects(plan)
        return replace(plan, notes=tuple(self.notes))

    def _require_undoable(self, intent: Intent) -> Load:
        if isinstance(intent, Undo):
            raise self._refuse(intent, "it is an undo", f"Load the rows again: --job-id {intent.undoes.next}")
        if not isinstance(intent, Load):
            raise self._refuse(intent, "it loads no rows")
        # Rule replay-not-undone
        if intent.taken:
            raise self._refuse(intent, "its rows come from the quarantine, which has them no more")
        sync = intent.sync
        if sync is not None and sync.retire:
            files = format_count(len(sync.retire), "file")
            raise self._refuse(intent, f"it has replaced older generations, whose {files} are deleted")
        is_live = intent.job_id in self.state.sync.live_jobs
        if sync is not None and not is_live and self.state.sync.generation_id > sync.generation_id:
            raise self._refuse(intent, "a later full refresh has replaced it: none of its rows are there")
        return intent

    def _require_changeable(self, intent: Intent) -> None:
        """Refuse an undo that would be bound and could not be committed in its catalog, such as one of a table that is
        gone."""
        if not intent.catalog.keeps_versions:
            return
        try:
            open_iceberg_writer(intent, self.pipeline.clients).require_changeable(intent)
        except PendingUnrecoverableError as error:
            raise self._refuse(intent, error.message.rstrip(".")) from error

    def _restores_inputs(self, intent: Load) -> bool:
        """Return whether the record of files that were read was whole before the load, and no other load came between
        or after it."""
        return intent.before.knows_inputs and not self.after and intent.depends()

    def _plan_cursor(self, intent: Load, undone: UndoneLoad) -> UndoneLoad:
        """Take the cursor back to where the load began, if the load is the last one that moved it."""
        if intent.batch is not None:
            # Rule undo-batch
            self._allow_gap(intent, "it is a batch of a continuous run, whose checkpoint is beyond it")
            return undone
        if intent.cursor_after is None or intent.cursor_after == intent.cursor_before:
            return undone
        if later := self._name_after(lambda load: load.cursor_after not in (None, load.cursor_before)):
            self._allow_gap(intent, f"{later} went on from its cursor", _THROUGH)
            return undone
        if self.choices.keep_cursor:
            self.notes.append(f"the cursor stays at {_show(self.state.cursor)}: its rows are not read again")
            return undone
        if self.state.cursor == intent.cursor_after:
            return undone.model_copy(update={"restores_cursor": True})
        if not self.is_whole:
            # Records are cleared away by age, and one job id's may be younger than those of a load after it.
            self._allow_gap(intent, "its cursor has gone on since, by hand or by loads whose records are gone")
        else:
            self.notes.append(f"the cursor was moved by hand since, and stays at {_show(self.state.cursor)}")
        return undone

    def _plan_source(self, intent: Load, undone: UndoneLoad) -> UndoneLoad:
        """Take the source's state back to that of the sync before, if the load brought the present one."""
        source = intent.sync.source if intent.sync is not None else None
        if source is None or not source.is_brought_by(intent.job_id):
            return undone
        # Rule undo-source
        if later := self._name_after(_goes_on):
            self._allow_gap(intent, f"{later} went on from the state of its source", _THROUGH)
            return undone
        if self.choices.keep_cursor or self.state.sync.source != source:
            self.notes.append("the state of the source stays: it does not send its rows again")
            return undone
        if source.is_shared and self.is_partial and self._is_shared_with_others(source):
            # Taken back in one table, it would make the source send the rows of all streams again.
            why = "the state of its source is that of all streams, and other tables are left out"
            self._allow_gap(intent, why, "Undo it in all tables: leave --table out")
            return undone
        if not self._has_text(intent.before.source):
            self._allow_gap(intent, "the records of the sync before it, with the state of its source, are gone")
            return undone
        return undone.model_copy(update={"restores_source": True})

    def _has_text(self, source: SourceState | None) -> bool:
        """Return whether the state of the source can still be given to it: one of all streams lies in a decision."""
        if source is None or source.record is None:
            return True
        return find_decision(self.control, Group(*source.record.split("/"))) is not None

    def _is_shared_with_others(self, source: SourceState) -> bool:
        """Return whether other tables are at this state too. A table that is alone there is taken back to the others'
        state.
        """
        others = [control for name, control in self.pipeline.controls.items() if name != self.control.table_id]
        sources = call_all(lambda control: control.state.read().sync.source, others)
        return any(other is not None and other.digest == source.digest for other in sources)

    def _plan_switch(self, plan: UndoPlan, switch: Switch) -> UndoPlan:
        """Plan to show readers the table as it was before the full refresh, while its files are kept."""
        intent, shown = plan.intent, self.state.shown
        # Rule undo-of-the-last
        if shown is None or shown.job_id != intent.job_id:
            later = f"full refresh {shown.job_id!r}" if shown is not None else "an undo"
            raise self._refuse(intent, f"{later} has replaced it", _THROUGH)
        back = Switch(before=switch.after, after=switch.before, latest=switch.latest)
        if intent.catalog.keeps_versions:
            return replace(self._plan_parent(plan), switch=back)
        before = self.state.find_generation(switch.before)
        if switch.before and before is None:
            raise self._refuse(intent, "the files of the full refresh before it were deleted, after refresh.keep_days")
        catalog = self._find_action(intent, before)
        if before is not None:
            back = back.model_copy(update={"job_id": before.job_id, "attempt": before.attempt})
            self.notes.append(f"readers see load {before.job_id!r} again")
        else:
            self.notes.append("it is the first one: readers see an empty table")
        grace = self.pipeline.spec.undo.grace_minutes * 60.0
        undone = plan.undone.model_copy(update={"grace_seconds": grace})
        return replace(plan, undone=undone, catalog=catalog, switch=back, view="switch")

    def _find_action(self, intent: Intent, before: Generation | None) -> CatalogAction:
        """Return the table as the refresh before this one left it, or without files where this is the first."""
        if before is None:
            return intent.catalog.at_generation(0)
        earlier = self.control.find_intent(before.job_id, before.attempt)
        if earlier is None:
            raise self._refuse(intent, f"the intent of load {before.job_id!r} before it is gone")
        return earlier.catalog

    def _plan_parent(self, plan: UndoPlan) -> UndoPlan:
        """Plan to make the snapshot before a refresh or a merge current again, while nothing came after it."""
        intent = plan.intent
        writer = open_iceberg_writer(intent, self.pipeline.clients)
        why, before = writer.look_before(intent, self.gone)
        if why is not None:
            at = self.find_expiry(intent.job_id)
            raise self._refuse(intent, why if at is None else f"{why}: an expiry has removed it on {at:%Y-%m-%d}")
        keys = tuple(f"s3://{intent.bucket}/{key}" for key in intent.files.list_keys())
        # Without a snapshot before it, all files leave that the load has in the table.
        moved = writer.find_moved(intent) if before is None else ()
        changes = {"locations": (*keys, *moved), "snapshot_before": before, "restores_keys": True}
        undone = plan.undone.model_copy(update=changes)
        return replace(plan, undone=undone, view="snapshot")

    def _plan_snapshot(self, plan: UndoPlan) -> UndoPlan:
        """Plan one snapshot without the load's files; the objects stay for older snapshots."""
        intent, undone = plan.intent, plan.undone
        writer = open_iceberg_writer(intent, self.pipeline.clients)
        keys = tuple(f"s3://{intent.bucket}/{key}" for key in intent.files.list_keys())
        undone = undone.model_copy(update={"locations": keys})
        if later := self._name_after(lambda load: load.merged is not None):
            # Its rows may have replaced others, which would not come back.
            raise self._refuse(intent, f"{later} has merged rows into the table since", _THROUGH)
        missing = writer.find_missing(intent)
        if missing and any(load.refreshes for load in self.after):
            later = self._name_after(lambda load: load.refreshes)
            what = f"{len(missing)} of its {format_count(len(intent.files), 'file')}"
            raise self._refuse(intent, f"{later} has replaced {what}", "Undo that first")
        if missing and writer.explain_absence(intent) is not None:
            self.notes.append("its snapshot was rolled back: none of its rows are in the table")
            undone = undone.model_copy(update={"is_absent": True})
        elif missing:
            writer.require_deletable(intent)
            undone = undone.model_copy(update={"column": self._choose_column(intent, missing)})
        return replace(plan, undone=undone, view="snapshot")

    def _choose_column(self, intent: Intent, missing: Sequence[str]) -> str:
        """Return the tracking column with the job id; ``SPEC_INVALID`` where rows may not or cannot be deleted."""
        what = f"{len(missing)} of its {format_count(len(intent.files), 'file')} rewritten since, such as {missing[0]}"
        tracking = self.pipeline.spec.tracking
        column = next((tracked.name for tracked in tracking if tracked.holds is Tracking.JOB_ID), None)
        if column is None:
            raise self._refuse(intent, f"compaction has {what}, and no column shows which rows are its own")
        if not self.choices.rewrite:
            remedy = f"Delete its rows, by {column}, from the files that have them now: --rewrite"
            raise self._refuse(intent, f"compaction has {what}", remedy)
        self.notes.append(f"{what}: its rows are deleted by {column}, and the files that have them written again")
        return column

    def _plan_objects(self, plan: UndoPlan) -> UndoPlan:
        """Delete the objects that are still the load's, with their partition where nothing else lies in it."""
        intent = plan.intent
        keys = list(intent.files.list_keys())
        stored = dict(zip(keys, call_all(self.control.store.find, keys), strict=True))
        own_objects = [
            (key, stored_object.etag)
            for key, stored_object in stored.items()
            if stored_object is not None and stored_object.load == intent.load
        ]
        removes = tuple(Removal(key=key, etag=etag) for key, etag in own_objects)
        self._note_others(intent, stored, len(own_objects))
        undo, target = self.pipeline.spec.undo, intent.catalog.find_partition()
        if target is None or not undo.drop_partitions:
            return replace(plan, removes=removes, view="files")
        partition, location = target
        if self.control.has_other_writer():
            # If its load adds the partition again, readers see this load's remaining files, which only this pipeline
            # deletes.
            self.notes.append(f"another pipeline loads the table too, and may add partition {partition}: it stays")
            return replace(plan, removes=removes, view="files")
        if self._is_alone(location, {removal.key for removal in removes}):
            changes = {"drops_partition": True, "grace_seconds": undo.grace_minutes * 60.0}
            return replace(plan, removes=removes, view="partition", undone=plan.undone.model_copy(update=changes))
        self.notes.append(f"other loads have files in partition {partition}, which stays")
        return replace(plan, removes=removes, view="files")

    def _find_quarantined(self, intent: Intent) -> tuple[Removal, ...]:
        """Return the load's objects in the quarantine. The next load keeps their rows out again."""
        if (quarantined := intent.of_quarantine) is None:
            return ()
        keys = list(quarantined.files.list_keys())
        stored = zip(keys, call_all(self.control.store.find, keys), strict=True)
        own_objects = [
            (key, stored_object.etag)
            for key, stored_object in stored
            if stored_object is not None and stored_object.load == intent.load
        ]
        if gone := len(keys) - len(own_objects):
            files = format_count(gone, "file")
            # Rule replayed-not-undone
            if self._name_after(lambda load: load.job_id.startswith(REPLAY)):
                why = f"{files} of its bad rows left the quarantine, as rows do that a replay loads"
                raise self._refuse(intent, why)
            if not self.is_whole:
                # A load that was started again later has younger records than the replay of its rows.
                why = f"{files} of its bad rows left the quarantine, and the records of loads since then are gone"
                raise self._refuse(intent, f"{why}: a replay may have loaded them")
            self.notes.append(f"gone already: {files} of its bad rows")
        return tuple(Removal(key=key, etag=etag) for key, etag in own_objects)

    def _is_alone(self, location: str, keys: set[str]) -> bool:
        prefix = location.split("/", 3)[3].rstrip("/") + "/"
        # Rule undo-partition-alone
        return all(entry.key in keys for entry in self.control.store.list_entries(prefix))

    def _note_others(self, intent: Intent, stored: dict[str, StoredObject | None], own_count: int) -> None:
        gone = [key for key, stored_object in stored.items() if stored_object is None]
        if gone:
            self.notes.append(f"gone already: {format_count(len(gone), 'file')} deleted, such as {gone[0]}")
        if others := len(stored) - len(gone) - own_count:
            self.notes.append(f"left, since others wrote them: {format_count(others, 'object')} under its keys")

    def _allow_gap(self, intent: Intent, why: str, instead: str = "") -> None:
        """Refuse what would leave rows out, unless that is asked for; ``instead`` says what to do otherwise."""
        if not self.choices.keep_cursor:
            leave = "leave its rows out of the table: --keep-cursor"
            raise self._refuse(intent, why, f"{instead}; or {leave}" if instead else leave.capitalize())
        self.notes.append(f"{why}: its rows are not read again")

    def _name_after(self, goes_on: Callable[[TableReport], bool]) -> str:
        """Name the later loads that go on from what this one has left; blank where there are none."""
        # Rule undo-last
        jobs = [load.job_id for load in self.after if goes_on(load)]
        return f"{'load' if len(jobs) == 1 else 'loads'} {join_first(jobs, MOST_NAMED)}" if jobs else ""

    def _refuse(self, intent: Intent, why: str, remedy: str = "") -> SpecInvalidError:
        return make_refusal(self.control, intent.job_id, why, remedy)


def make_refusal(control: Control, job_id: str, why: str, remedy: str = "") -> SpecInvalidError:
    """Make the error for a load that cannot be undone."""
    return SpecInvalidError(f"load {job_id!r} of {control.table_id} cannot be undone: {why}.", remedy=remedy)


def _show(cursor: Cursor | None) -> str:
    return cursor.text if cursor is not None else "none"


def _goes_on(load: TableReport) -> bool:
    """Return whether a load goes on from the state of the source: a replay leaves it as it was."""
    return load.sync_id is not None and not load.job_id.startswith(REPLAY)
