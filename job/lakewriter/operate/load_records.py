"""Compare a committed load's own records: its report, its intent, and the table's state."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from lakewriter.commit.at_once import MOST, call_all
from lakewriter.commit.committed_loads import TableReports
from lakewriter.commit.control import Control
from lakewriter.commit.mismatch import Kind, Mismatch
from lakewriter.commit.store import Entry
from lakewriter.errors import LakeError, PendingUnrecoverableError, StateLostError
from lakewriter.records.changes import Intent, Load
from lakewriter.records.state import Reset, TableState
from lakewriter.report import ABANDONED_BLIND, COUNTS, TableReport
from lakewriter.spec.load_ids import REPLAY, UNDO, make_undo_job_id

NOT_COMPARED: Final = frozenset({"notes", "health", "abandoned", *(counts.field for counts in COUNTS.values())})
"""The fields of a report that the load's intent does not decide: they say what became of it."""

_DAMAGE: Final = (PendingUnrecoverableError, StateLostError)


@dataclass
class LoadRecords:
    """The records of one load of one table; without an intent there is nothing to compare with.

    ``is_retired`` is true where a full refresh has replaced the load since, so that its objects are deleted;
    ``is_undone`` where an undo has taken it back; ``is_replaced`` where readers see the files of another full refresh,
    while its own may still be there; ``is_abandoned`` where a person has given it up, so that its catalog may lack it.
    """

    intent: Intent | None = None
    is_retired: bool = False
    is_undone: bool = False
    is_replaced: bool = False
    is_abandoned: bool = False
    mismatches: list[Mismatch] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class TableRecords(TableReports):
    """The records of one table, each read once; its reports are listed before its state is read."""

    def __init__(self, control: Control, entries: Mapping[str, Entry]) -> None:
        super().__init__(control, entries)
        self._state: TableState | LakeError | None = None
        self._taken: frozenset[str] | None = None

    def list_taken(self) -> frozenset[str]:
        """Return the keys of the quarantine whose rows were loaded by replays with kept records."""
        if self._taken is None:
            replays = [job_id for job_id in self.entries if job_id.startswith(REPLAY)]
            intents = call_all(self._find_replay, replays)
            self._taken = frozenset(removal.key for intent in intents if intent is not None for removal in intent.taken)
        return self._taken

    def _find_replay(self, job_id: str) -> Intent | None:
        try:
            report = self.read(job_id)
            return self.control.find_intent(job_id, report.attempt) if report is not None else None
        except _DAMAGE:
            # Comparing that replay itself reports the damage.
            return None

    @property
    def state(self) -> TableState | LakeError:
        """The table's state, or the error of reading it."""
        if self._state is None:
            try:
                self._state = self.control.state.read()
            except _DAMAGE as error:
                self._state = error
        return self._state

    def compare(self, job_id: str) -> LoadRecords | None:
        """Read and compare the load's records; None for a load that this table does not have."""
        records = LoadRecords()
        report = self._read_report(job_id, records)
        if report is not None:
            records.is_abandoned = report.abandoned is not None
            records.intent = self._read_intent(job_id, report, records)
            if records.intent is not None:
                records.mismatches += _compare_report(self.control, report, records.intent)
        elif records.mismatches or self._is_committed(job_id, records):
            records.intent = records.intent or self._find_intent(job_id)
        else:
            return None
        self._compare_state(job_id, records)
        self._note_undo(job_id, records)
        if not records.is_undone:
            self._note_replacement(job_id, records)
        return records

    def _note_replacement(self, job_id: str, records: LoadRecords) -> None:
        """Note that readers see another full refresh; an Iceberg table's snapshot says so itself."""
        intent, state = records.intent, self.state
        if intent is None or intent.effects.switch is None or isinstance(state, LakeError) or not intent.effects.adds:
            return
        if intent.catalog.keeps_versions or (state.shown is not None and state.shown.job_id == job_id):
            return
        records.notes.append(f"a later full refresh of {self.control.table_id} has replaced load {job_id!r}")
        records.is_replaced = True

    def _note_undo(self, job_id: str, records: LoadRecords) -> None:
        """Say that the load is undone, or is being undone, so that none of its objects and no snapshot is expected."""
        undone = self.state.find_undone(job_id) if isinstance(self.state, TableState) else None
        pending = self.state.pending if isinstance(self.state, TableState) else None
        undo, load = make_undo_job_id(job_id), f"load {job_id!r} of {self.control.table_id}"
        if undone is not None and undone.by == undo:
            records.notes.append(f"{load} was undone at {undone.at:%Y-%m-%d %H:%M} UTC: {undone.reason}")
        elif pending is not None and pending.job_id == undo:
            finish = f"lakewriter undo LAKE {job_id} --reason TEXT, or the table's next load, finishes it"
            records.notes.append(f"{load} is being undone: {undo!r} is pending ({pending.phase}); {finish}")
        elif undo in self.entries:
            # The state names the last undos only.
            records.notes.append(f"{load} was undone by {undo!r}")
        else:
            return
        records.is_undone = True

    def _read_report(self, job_id: str, records: LoadRecords) -> TableReport | None:
        try:
            return self.read(job_id)
        except _DAMAGE as error:
            key = self.control.keys.report(job_id, self.control.table_id)
            records.mismatches.append(Mismatch(Kind.RECORD_DAMAGED, error.message, key, error.code))
            return None

    def _read_intent(self, job_id: str, report: TableReport, records: LoadRecords) -> Intent | None:
        key = self.control.keys.intent(job_id, report.attempt, self.control.table_id)
        try:
            intent = self.control.find_intent(job_id, report.attempt)
            if intent is not None:
                intent.files.require_parts()
        except _DAMAGE as error:
            records.mismatches.append(Mismatch(Kind.RECORD_DAMAGED, error.message, key, error.code))
            return None
        if intent is None and report.is_blind:
            records.notes.append(
                f"load {job_id!r} of {self.control.table_id} was {ABANDONED_BLIND}: nothing is compared"
            )
        elif intent is None:
            gone = f"{key} is not there, so nothing shows what load {job_id!r} of {self.control.table_id} wrote."
            records.mismatches.append(Mismatch(Kind.RECORD_GONE, gone, key))
        elif report.counts is not None and (dropped := report.counts.list_dropped()):
            # Their files were deleted when the others were published.
            return intent.leave_out(dropped)
        return intent

    def _is_committed(self, job_id: str, records: LoadRecords) -> bool:
        """Return whether a load without a report is committed all the same: the state names it, or its objects are
        there.
        """
        state = self.state
        if not isinstance(state, TableState) or (state.pending is not None and state.pending.job_id == job_id):
            return False
        if state.last_job != job_id and job_id not in state.sync.live_jobs:
            records.intent = self._find_intent(job_id)
            if records.intent is None:
                return False
        key = self.control.keys.report(job_id, self.control.table_id)
        gone = f"{key} is not there, and load {job_id!r} is committed in {self.control.table_id}."
        records.mismatches.append(Mismatch(Kind.RECORD_GONE, gone, key))
        return True

    def _find_intent(self, job_id: str) -> Intent | None:
        """Return the intent of the attempt whose objects are there: attempts that lost a race have intents, too."""
        for item in self.control.history.list_load(job_id).list_intents(self.control.table_id):
            try:
                intent = self.control.find_intent(job_id, item.attempt)
            except _DAMAGE:
                continue
            if intent is not None and self._has_an_object(intent):
                return intent
        return None

    def _has_an_object(self, intent: Intent) -> bool:
        keys = intent.files.list_keys()
        while some := list(islice(keys, MOST)):
            objects = call_all(self.control.store.find, some)
            if any(stored is not None and stored.load == intent.load for stored in objects):
                return True
        return False

    def _compare_state(self, job_id: str, records: LoadRecords) -> None:
        key = self.control.keys.state(self.control.table_id)
        state = self.state
        if isinstance(state, LakeError):
            records.mismatches.append(Mismatch(Kind.RECORD_DAMAGED, state.message, key, state.code))
            return
        differences = [*self._compare_loads(state, job_id), *_compare_progress(state, records.intent, job_id)]
        records.mismatches += [Mismatch(Kind.RECORDS_DISAGREE, f"{key}: {what}.", key) for what in differences]
        sync = records.intent.sync if isinstance(records.intent, Load) else None
        records.is_retired = (
            sync is not None and job_id not in state.sync.live_jobs and state.sync.generation_id > sync.generation_id
        )

    def _compare_loads(self, state: TableState, job_id: str) -> Iterator[str]:
        if state.last_job is not None and state.last_job not in self.entries:
            # It may have been committed since the reports were listed.
            self.entries = self.control.history.list_reports().get(self.control.table_id, {})
        closing = state.pending is not None and state.pending.job_id in self.entries
        if state.committed + closing < len(self.entries):
            yield f"it counts {state.committed} committed loads, and the reports of {len(self.entries)} are kept"
        last = state.last_job
        if last is None or last in self.entries or last == job_id or job_id in state.sync.live_jobs:
            return
        # An undo that was abandoned without its intent may be done again: it leaves a note in the state, and no report.
        if last.startswith(UNDO) and any(reset.ended == last for reset in state.resets):
            return
        # The age of its youngest object decides when a load's records are deleted: a load that was tried again later
        # may keep them longer than the last load.
        load = self.control.history.list_load(job_id)
        if load.items and state.last_commit is not None and load.at < state.last_commit:
            yield f"its last load is {last!r}, and that load has no report, while older loads have theirs"


def _compare_report(control: Control, report: TableReport, intent: Intent) -> list[Mismatch]:
    written, expected = (table_report.model_dump(mode="json") for table_report in (report, intent.make_report()))
    key = control.keys.report(intent.job_id, control.table_id)
    return [
        Mismatch(
            Kind.RECORDS_DISAGREE,
            f"{key} and the load's intent disagree: {name} is {written[name]!r} in the report, and by the intent it is "
            f"{expected[name]!r}.",
            key,
        )
        for name in expected
        if name not in NOT_COMPARED and written[name] != expected[name]
    ]


def _compare_progress(state: TableState, intent: Intent | None, job_id: str) -> Iterator[str]:
    """Yield each value of the state that is lower or other than the load left it: only a reset moves one back."""
    if not isinstance(intent, Load):
        return
    if intent.counter_after is not None and state.counter < intent.counter_after:
        yield f"its counter is {state.counter}, and load {job_id!r} has left it at {intent.counter_after}"
    if intent.sync is not None and state.sync.sync_id < intent.sync.sync_id:
        yield f"its highest sync is {state.sync.sync_id}, and load {job_id!r} was sync {intent.sync.sync_id}"
    if state.last_job != job_id or any(_is_later(reset, state) for reset in state.resets):
        return
    if intent.cursor_after is not None and state.cursor != intent.cursor_after:
        now = state.cursor.text if state.cursor else "none"
        yield f"its cursor is {now}, and its last load {job_id!r} has left it at {intent.cursor_after.text}"
    if intent.batch is not None and state.batch != intent.batch:
        yield f"its batch is {state.batch}, and its last load {job_id!r} was batch {intent.batch.number}"


def _is_later(reset: Reset, state: TableState) -> bool:
    """Return whether a change by hand came after the last load."""
    # Rule resets-counted
    return reset.committed >= state.changes
