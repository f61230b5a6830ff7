"""Register an attempt at one table, bind it to its intent, or withdraw it: steps 1 and 4 of a load."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from lakewriter.commit.at_once import call_all
from lakewriter.commit.control import Control
from lakewriter.commit.data_store import OpenClients
from lakewriter.commit.deferred_deletions import retire_due
from lakewriter.commit.earlier_attempts import BeginRecord, BegunTable
from lakewriter.commit.latest import require_followed
from lakewriter.commit.recover import read_failure, recover
from lakewriter.commit.repeated_loads import Repeats, find_done, make_undone_error
from lakewriter.commit.store import Store, Upload
from lakewriter.commit.uploads import abort_all
from lakewriter.control_object import parse
from lakewriter.errors import ConcurrentLoadError, NoAnswerError
from lakewriter.receipt import NotedUpload, Receipt
from lakewriter.records.changes import Intent
from lakewriter.records.fold.steps import Bind, Fence, Leave, Register, Step, is_unchanged, may_bind
from lakewriter.records.state import Lost, Pending, Phase, TableState
from lakewriter.spec.layout import ObjectNames, uuid_pattern
from lakewriter.spec.load_ids import UNDO

_NO_REPEATS: Final = Repeats()


@dataclass(frozen=True)
class Attempt:
    """One process working on a load.

    ``started`` (UTC) is the time in its paths and rows. ``keep`` is how long control objects are kept.
    ``repeats`` are the undone loads that it repeats.
    """

    pipeline: str
    job_id: str
    id: str
    started: datetime
    keep: timedelta
    repeats: Repeats = _NO_REPEATS

    @property
    def load(self) -> str:
        """The value of the objects' load metadata."""
        return f"{self.pipeline}/{self.job_id}/{self.id}"


def make_begin_record(attempt: Attempt, names: Mapping[str, ObjectNames]) -> dict[str, Any]:
    """Make the content of ``begin.json``, from which a later attempt finds the uploads that this one left."""
    tables = {table: BegunTable.of(object_names).model_dump() for table, object_names in names.items()}
    return {"version": 1, "attempt": attempt.id, "started": attempt.started.isoformat(), "tables": tables}


def register(
    control: Control, attempt: Attempt, open_clients: OpenClients, note_begin: Callable[[], None] = lambda: None
) -> TableState | None:
    """Register this as the one attempt of its job that may bind, and abort the uploads of earlier attempts.

    A pending intent, of any load, is recovered first. ``note_begin`` is called before the state names the attempt.
    Returns the state with this attempt in it; None when the job, or one that it repeats, is done. ``LOAD_UNDONE`` for a
    job that was taken back; ``STATE_LOST`` where the object that names the files of the last full refresh is another's,
    or ahead of the state.
    """
    while True:
        # Rule recover-first
        recover(control, open_clients)
        is_undo = attempt.job_id.startswith(UNDO)
        require_followed(control, control.state.recall(), shares=control.shares_tables and not is_undo)
        if not is_undo:
            # An undo keeps these objects: it may be about to show them to readers again.
            retire_due(control)
        seen = control.state.recall()
        if find_done(control, seen, attempt.job_id, attempt.repeats) is not None:
            return None
        earlier = attempt.job_id in seen.running
        if earlier:
            # A record that cannot be read is an error: raise it before this attempt is registered.
            _read_begin_records(control, attempt, seen)
        note_begin()
        try:
            state = control.state.move(
                Register(
                    attempt.job_id,
                    attempt.id,
                    attempt.started,
                    seen=seen,
                    repeats=frozenset(attempt.repeats.of),
                    gone=_find_gone(control, seen, attempt),
                    # An object outside the control folder says which state it belongs to.
                    is_named=control.latest is not None,
                ),
                lambda state: state.is_registered(attempt.job_id, attempt.id),
            )
        except Lost:
            continue
        if earlier:
            with control.note_failed_cleanup("uploads of earlier attempts"):
                _abort_earlier(control, attempt, seen)
        return state


def _find_gone(control: Control, seen: TableState, attempt: Attempt) -> frozenset[str]:
    """Find the attempts that registered so long ago that their loads are forgotten. The store's clock decides, since
    each machine registers by its own clock.

    Empty where the time is not certain. The store is only asked about attempts that are old by this machine's clock.
    """
    others = seen.list_running_except(attempt.job_id).items()
    old = [(job, entry.attempt) for job, entry in others if attempt.started - entry.since >= attempt.keep]
    if not old:
        return frozenset()
    try:
        before = control.require_time() - attempt.keep
    except NoAnswerError:
        return frozenset()

    def is_gone(job_id: str, name: str) -> bool:
        records = list(control.store.list_entries(control.keys.begin(job_id, name), limit=1))
        # Rule gone-by-age
        return all(record.modified <= before for record in records)

    return frozenset(name for job_id, name in old if is_gone(job_id, name))


def _abort_earlier(control: Control, attempt: Attempt, seen: TableState) -> None:
    """Abort the uploads that earlier attempts of this job left incomplete."""
    for record in _read_begin_records(control, attempt, seen):
        table = record.tables.get(control.table_id)
        if table is not None:
            _abort_while_registered(control, attempt, _find_own_uploads(control, attempt.job_id, record.attempt, table))


def _read_begin_records(control: Control, attempt: Attempt, seen: TableState | None = None) -> list[BeginRecord]:
    """Read the begin records of the job's other attempts; ``PENDING_UNRECOVERABLE`` for one that cannot be read."""
    registered = seen.running.get(attempt.job_id) if seen is not None else None
    return control.begun.read(
        control.table_id, attempt.job_id, attempt.id, registered.attempt if registered is not None else None
    )


def _find_own_uploads(control: Control, job_id: str, attempt_id: str, files: BegunTable) -> list[Upload]:
    """List the incomplete uploads of an attempt. S3 shows only their keys, so the keys are matched with the attempt's
    patterns.

    Uploads under the quarantine's prefix always belong to the attempt. Others are returned only if no other running
    load can produce the same keys: a load of this table with the same counter or the same time, or another pipeline's
    load of the same job id. Every load writes a record before it stages, so a load that has none after the listing owns
    none of the listed uploads. The bucket's lifecycle rule removes the uploads that stay.
    """
    bad_rows = _list_matching(control, files.quarantine, files.quarantine_pattern) if files.quarantine else []
    if not control.abilities.lists_uploads:
        # No other attempt gives such names.
        return [*bad_rows, *_list_noted(control, job_id, attempt_id)]
    uploads = _list_matching(control, files.location, files.pattern)
    own_uuid = uuid_pattern(attempt_id)
    # A part's name is a UUID only where numbers would clash: the pattern takes both.
    if not uploads or (own_uuid in files.pattern and rf"\d+|{own_uuid}" not in files.pattern):
        return [*bad_rows, *uploads]
    # Rule shared-uploads
    return bad_rows if _has_rival(control, job_id, files, own_uuid) else [*bad_rows, *uploads]


def _list_noted(control: Control, job_id: str, attempt_id: str) -> list[Upload]:
    """List the uploads that the attempt noted; those that are completed or aborted are among them."""
    keys = [
        entry.key for entry in control.store.list_entries(control.keys.uploads(job_id, attempt_id, control.table_id))
    ]
    contents = zip(keys, call_all(control.store.get, keys), strict=True)
    notes = [parse(NotedUpload, key, content[0]) for key, content in contents if content is not None]
    return [Upload(note.key, note.upload_id, note.bucket) for note in notes]


def _has_rival(control: Control, job_id: str, files: BegunTable, own_uuid: str) -> bool:
    others = control.state.read().list_running_except(job_id)
    if files.shared:
        return bool(others)

    def is_alike(other: str, attempt: str) -> bool:
        """Return whether both attempts make the same keys, apart from their UUIDs. Loads that registered after the same
        commit can have the same time.
        """
        patterns = control.read_patterns(other, attempt)
        return files.pattern.replace(own_uuid, "") in [
            pattern.replace(uuid_pattern(attempt), "") for pattern in patterns
        ]

    # Rule alike-uploads
    return any(is_alike(other, entry.attempt) for other, entry in others.items()) or control.has_namesake(job_id)


def _list_matching(control: Control, location: str, pattern: str) -> list[Upload]:
    matcher = re.compile(pattern)
    listed = control.store.list_uploads(f"{location}/" if location else "")
    return [upload for upload in listed if matcher.fullmatch(upload.key)]


def avoid_taken_names(store: Store, attempt: Attempt, names: ObjectNames) -> ObjectNames:
    """Number the names beyond the objects that another pipeline's load of the same job id has written.

    Objects of other writers are not avoided: they cause ``KEY_EXISTS``. Names with the table's counter need no other
    number, since no two loads are bound with the same counter.
    """
    if "seq" not in names.template.variables or names.unique or names.counts:
        return names
    pattern, taken = names.pattern(), []
    for key in [entry.key for entry in store.list_entries(names.prefix) if pattern.fullmatch(entry.key)]:
        stored = store.find(key)
        if stored is not None and stored.is_of_another(attempt.pipeline):
            taken.append(key)
    return names.after(taken)


def bind(control: Control, attempt: Attempt, intent: Intent, began: TableState, open_clients: OpenClients) -> None:
    """Write the intent and make the state name it as pending. This is the point of no return; for an intent that is
    bound together with others it is the step before that point.

    ``CONCURRENT_LOAD`` where another attempt of the job has taken over, or the table has changed since this load was
    planned: an exclusive load needs it unchanged, plain appends commit one after the other. ``STATE_LOST`` where
    another pipeline has taken over the table that the change would switch. Where another attempt has finished the job,
    this attempt's uploads are aborted, since no other intent names them.
    """
    # Rule bind-followed
    require_followed(control, began, shares=False)
    key = control.keys.intent(attempt.job_id, attempt.id, control.table_id)
    control.write_once(key, intent.model_dump_json(indent=1), remember=True)
    phase: Phase = "prepared" if intent.together else "intended"
    pending = Pending(job_id=attempt.job_id, attempt=attempt.id, phase=phase, since=attempt.started, group=intent.group)
    step = Bind(pending, intent, began)

    while True:
        try:
            control.state.move(step, lambda state: pending.is_same(state.pending))
        except Lost:
            state = recover(control, open_clients)
            is_done = _abort_if_done(control, attempt, intent)
            if is_done and not intent.together:
                return
            # Another attempt has finished this table of the sync: its other tables must not be bound without it.
            if is_done or not may_bind(state, intent, began):
                raise _make_concurrent_error(control, state, attempt) from None
        else:
            return


def require_unchanged(
    control: Control, attempt: Attempt, before: TableState, now: TableState, *, exclusive: bool
) -> None:
    """Raise ``CONCURRENT_LOAD`` where the table changed between the load's planning and its registration."""
    if not is_unchanged(before, now, exclusive=exclusive):
        raise _make_concurrent_error(control, now, attempt)


def require_unbound(control: Control, attempt: Attempt, before: TableState) -> None:
    """Raise ``CONCURRENT_LOAD`` where another load has been bound since the state ``before`` was read."""
    now = control.state.read()
    if now.pending is not None or not is_unchanged(before, now, exclusive=True):
        raise _make_concurrent_error(control, now, attempt)


def _abort_if_done(control: Control, attempt: Attempt, intent: Intent) -> bool:
    """Return whether the table is done under this job id; abort this attempt's uploads then, unless the table's report
    names it as the attempt that finished the job."""
    report = control.read_report(attempt.job_id)
    if report is None:
        return False
    with control.note_failed_cleanup("uploads that another attempt overtook"):
        if report.attempt != attempt.id:
            # Rule quarantine-overtaken
            abort_all(control.store, intent.list_staged())
    return True


def _make_concurrent_error(control: Control, state: TableState, attempt: Attempt) -> ConcurrentLoadError:
    if not state.is_registered(attempt.job_id, attempt.id):
        why = f"another attempt of load {attempt.job_id!r} has taken over"
    else:
        why = "another load committed first, and this one was planned on the table before it"
    return ConcurrentLoadError(
        f"table {control.table_id}: {why}; nothing of this attempt was published.",
        remedy="Run the same job id again.",
    )


def settle(control: Control, attempt: Attempt, open_clients: OpenClients) -> None:
    """Publish the bound intent and write its report; where it was withdrawn, raise the error that was stored.

    ``LOAD_UNDONE`` where another process has finished the load, and it was undone while this one was held up.
    """
    undone = recover(control, open_clients, mine=attempt.id).find_undone(attempt.job_id)
    # Rule undone-while-held
    if undone is not None:
        raise make_undone_error(control, attempt.job_id, undone)
    if control.read_report(attempt.job_id) is None:
        failure = read_failure(control, attempt.job_id, attempt.id)
        raise failure or _make_concurrent_error(control, control.state.read(), attempt)


def leave(control: Control, attempt: Attempt) -> None:
    """Remove the attempt, which has staged nothing, from the state; change nothing where it is bound after all."""
    _try_move(control, Leave(attempt.job_id, attempt.id))


def give_up(control: Control, attempt: Attempt, names: ObjectNames, receipts: Iterable[Receipt]) -> None:
    """Abort this attempt's uploads, then remove it from the state; change nothing where it is bound after all, or
    another process finished it.

    The state is replaced first, so that no write that would bind the attempt can still succeed. Uploads without a
    receipt are found by their keys, listed while this is the registered attempt: a later attempt registers before it
    stages, so it owns none of them. A process that dies here stays registered, and its job's next attempt aborts the
    rest.
    """
    files = BegunTable.of(names)
    strays = _find_own_uploads(control, attempt.job_id, attempt.id, files)
    # Rule state-before-abort
    if not _try_move(control, Fence(attempt.job_id, attempt.id)):
        # The attempt that took over may use the same keys by now, except for files with bad rows.
        # Rule quarantine-superseded
        strays = _select_bad_rows(files, strays)
    report = control.read_report(attempt.job_id)
    is_bound = control.state.recall().is_bound(attempt.job_id, attempt.id)
    # Rule look-before-abort
    if is_bound or (report is not None and report.attempt == attempt.id):
        return
    try:
        abort_all(control.store, receipts)
    finally:
        # Where receipts cannot be read, these are all uploads of the attempt.
        abort_all(control.store, strays)
    leave(control, attempt)


def _try_move(control: Control, step: Step) -> bool:
    try:
        control.state.move(step)
    except Lost:
        return False
    return True


def abort_strays(control: Control, names: ObjectNames, receipts: Iterable[Receipt], attempt: Attempt) -> None:
    """Abort the uploads of retried and speculative tasks, whose receipts Spark did not return."""
    staged_ids = {receipt.upload_id for receipt in receipts}
    files = BegunTable.of(names)
    with control.note_failed_cleanup("uploads of repeated tasks"):
        uploads = _find_own_uploads(control, attempt.job_id, attempt.id, files)
        strays = [upload for upload in uploads if upload.upload_id not in staged_ids]
        bad_rows = _select_bad_rows(files, strays)
        # The attempt that has taken over, and may have ended by now, looked for uploads before these were made.
        abort_all(control.store, bad_rows)
        _abort_while_registered(control, attempt, [stray for stray in strays if stray not in bad_rows])


def _select_bad_rows(files: BegunTable, uploads: Sequence[Upload]) -> list[Upload]:
    """Select the uploads in the quarantine: their keys are the attempt's alone."""
    return [upload for upload in uploads if files.quarantine and re.fullmatch(files.quarantine_pattern, upload.key)]


def abort_in_catalog_location(control: Control, names: ObjectNames, attempt: Attempt) -> None:
    """Abort earlier attempts' uploads at the catalog's location of the table, which their begin records lack."""
    with control.note_failed_cleanup("uploads of earlier attempts"):
        for earlier in sorted({record.attempt for record in _read_begin_records(control, attempt)}):
            files = BegunTable.of(replace(names, attempt=earlier))
            _abort_while_registered(control, attempt, _find_own_uploads(control, attempt.job_id, earlier, files))


def _abort_while_registered(control: Control, attempt: Attempt, uploads: Sequence[Upload]) -> None:
    """Abort the listed uploads if this is still the registered attempt: a later one may stage under the same keys."""
    # Rule abort-while-registered
    if uploads and control.state.read().is_registered(attempt.job_id, attempt.id):
        abort_all(control.store, uploads)
