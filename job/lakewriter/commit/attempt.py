"""One attempt at one table: registered, bound to an intent, or withdrawn; steps 1 and 4 of a load."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from pydantic import field_validator

from lakewriter.commit.control import Control
from lakewriter.commit.data_store import OpenClients
from lakewriter.commit.intent import Intent
from lakewriter.commit.recover import read_failure, recover
from lakewriter.commit.state import Lost, Pending, Running, TableState
from lakewriter.commit.store import Store, Upload
from lakewriter.commit.uploads import abort_all
from lakewriter.control_object import ControlObject, parse
from lakewriter.errors import ConcurrentLoadError
from lakewriter.receipt import Receipt
from lakewriter.spec.layout import ObjectNames, uuid_pattern

_COMPARED_FIELDS: Final = ("committed", "cursor", "counter", "backfill", "batch", "sync", "inferred")
"""What of a table's state a load may be planned on."""


@dataclass(frozen=True)
class Attempt:
    """One process working on a load; ``started`` (UTC) is the time its paths and rows carry."""

    pipeline: str
    job_id: str
    id: str
    started: datetime
    keep: timedelta

    @property
    def load(self) -> str:
        """The value of the objects' load metadata."""
        return f"{self.pipeline}/{self.job_id}/{self.id}"


class BegunTable(ControlObject):
    """Where an attempt would put a table's files, and the regular expression of their keys."""

    location: str
    pattern: str
    shared: bool = False

    @field_validator("pattern")
    @classmethod
    def _is_pattern(cls, value: str) -> str:
        try:
            re.compile(value)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"{value!r} is no regular expression ({error})") from error
        return value


class BeginRecord(ControlObject):
    """``begin.json``."""

    version: Literal[1] = 1
    attempt: str
    started: datetime
    tables: Mapping[str, BegunTable]


def make_begin_record(attempt: Attempt, names: Mapping[str, ObjectNames]) -> dict[str, Any]:
    """What an attempt would name its files, by table, for whoever has to clear up after it."""
    tables = {table: _make_begun_table(object_names).model_dump() for table, object_names in names.items()}
    return {"version": 1, "attempt": attempt.id, "started": attempt.started.isoformat(), "tables": tables}


def _make_begun_table(names: ObjectNames) -> BegunTable:
    return BegunTable(location=names.location, pattern=names.pattern().pattern, shared=names.shared)


def register(control: Control, attempt: Attempt, open_clients: OpenClients) -> TableState | None:
    """Make this the attempt of its job that may bind, and clear up after earlier ones; None when the job is done.

    Whatever is pending, whoever's it is, is recovered first.
    """
    while True:
        seen = recover(control, open_clients)
        if control.read_report(attempt.job_id) is not None:
            return None
        earlier = attempt.job_id in seen.running
        if earlier:
            # What an earlier attempt left is refused before this one registers, if it has to be refused.
            _read_begin_records(control, attempt)
        try:
            state = control.state.move(
                lambda state, seen=seen: _add_running(state, seen, attempt),  # type: ignore[misc]
                lambda state: state.is_registered(attempt.job_id, attempt.id),
            )
        except Lost:
            continue
        if earlier:
            with control.note_failed_cleanup("uploads of earlier attempts"):
                _abort_earlier(control, attempt)
        return state


def _add_running(state: TableState, seen: TableState, attempt: Attempt) -> TableState:
    """A report is only written while its intent is pending, so none can be new when ``committed`` is as seen."""
    if state.pending is not None or state.committed != seen.committed:
        raise Lost
    others = {job: entry for job, entry in state.running.items() if attempt.started - entry.since < attempt.keep}
    earlier = state.running.get(attempt.job_id)
    first = (earlier.first or earlier.since) if earlier else None
    own = Running(attempt=attempt.id, since=attempt.started, first=first)
    if earlier is not None:
        own = earlier.model_copy(update=dict(own))
    return state.replace(running=others | {attempt.job_id: own})


def _abort_earlier(control: Control, attempt: Attempt) -> None:
    """Abort what earlier attempts of this job left staged."""
    for record in _read_begin_records(control, attempt):
        table = record.tables.get(control.table_id)
        if table is not None:
            _abort_while_registered(control, attempt, _find_own_uploads(control, attempt.job_id, record.attempt, table))


def _read_begin_records(control: Control, attempt: Attempt) -> list[BeginRecord]:
    """Those of the job's other attempts."""
    root, records = control.keys.load(attempt.job_id) + "/", []
    for key in [entry.key for entry in control.store.list_entries(root)]:
        is_begin = control.keys.is_begin(attempt.job_id, control.table_id, key)
        if is_begin and not key.startswith(f"{root}{attempt.id}/"):
            content = control.store.get(key)
            records += [parse(BeginRecord, key, content[0])] if content is not None else []
    return records


def _find_own_uploads(control: Control, job_id: str, attempt_id: str, files: BegunTable) -> list[Upload]:
    """Uploads whose keys show that they are this attempt's, or another's of the same load: all that S3 tells of an
    upload is its key.

    None where another load can make the same keys and has begun, since they may be its own: one of this table that
    takes the same counter, or else another pipeline's load of the same job id. Both begin before they stage, so whoever
    is not there after the listing has staged none of what was listed. What is left is the lifecycle rule's.
    """
    pattern = re.compile(files.pattern)
    listed = control.store.list_uploads(f"{files.location}/" if files.location else "")
    uploads = [upload for upload in listed if pattern.fullmatch(upload.key)]
    if not uploads or uuid_pattern(attempt_id) in files.pattern:
        return uploads
    has_rival = bool(control.state.read().list_running_except(job_id)) if files.shared else control.has_namesake(job_id)
    return [] if has_rival else uploads


def avoid_taken_names(store: Store, attempt: Attempt, names: ObjectNames) -> ObjectNames:
    """The names with numbers beyond those that another pipeline's load of the same job id has taken.

    Nobody else's object is avoided: whoever wrote it, that it lies there is ``KEY_EXISTS``. Nor is one with the table's
    counter: no two loads are bound under the same one.
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
    """The point of no return: the state names the intent. ``CONCURRENT_LOAD`` where that is not allowed any more.

    Loads that go by the table as it was when they began need it as it was; plain appends commit in turn. Where another
    attempt of the job has finished it, what this one staged is aborted: its uploads are in no other's intent.
    """
    control.write_once(
        control.keys.intent(attempt.job_id, attempt.id, control.table_id), intent.model_dump_json(indent=1)
    )
    pending = Pending(job_id=attempt.job_id, attempt=attempt.id, phase="intended", since=attempt.started)

    def bind_to(state: TableState) -> TableState:
        if state.pending is not None or not _may_bind(state, attempt, intent, began):
            raise Lost
        return state.replace(pending=pending)

    while True:
        try:
            control.state.move(bind_to, lambda state: pending.is_same(state.pending))
        except Lost:
            state = recover(control, open_clients)
            report = control.read_report(attempt.job_id)
            if report is not None:
                with control.note_failed_cleanup("uploads that another attempt overtook"):
                    _abort_if_overtaken(control, report, attempt, intent.receipts)
                return
            if not _may_bind(state, attempt, intent, began):
                raise _make_concurrent_error(control, state, attempt) from None
        else:
            return


def _may_bind(state: TableState, attempt: Attempt, intent: Intent, began: TableState) -> bool:
    registered = state.is_registered(attempt.job_id, attempt.id)
    return registered and is_unchanged(began, state, exclusive=intent.exclusive)


def is_unchanged(before: TableState, now: TableState, *, exclusive: bool) -> bool:
    """Whether all that a load planned on ``before`` goes by is still so.

    An exclusive load goes by the whole table as it was. Any other one goes by the source's state: it leaves the one
    with which it ends, and would take another load's away. It also goes by what streams the table has, since a stream
    that began meanwhile loads the same rows.
    """
    if not exclusive:
        return (before.sync.source, before.batch) == (now.sync.source, now.batch)
    return all(getattr(before, name) == getattr(now, name) for name in _COMPARED_FIELDS)


def require_unchanged(
    control: Control, attempt: Attempt, before: TableState, now: TableState, *, exclusive: bool
) -> None:
    """``CONCURRENT_LOAD`` where what a load was planned on, before it registered, is over."""
    if not is_unchanged(before, now, exclusive=exclusive):
        raise _make_concurrent_error(control, now, attempt)


def _abort_if_overtaken(
    control: Control, report: Mapping[str, Any], attempt: Attempt, receipts: Iterable[Receipt]
) -> None:
    """Abort what this attempt staged, unless the table's report says that this is the attempt that finished the job."""
    if report["attempt"] != attempt.id:
        abort_all(control.store, ((receipt.key, receipt.upload_id) for receipt in receipts))


def _make_concurrent_error(control: Control, state: TableState, attempt: Attempt) -> ConcurrentLoadError:
    if not state.is_registered(attempt.job_id, attempt.id):
        why = f"another attempt of load {attempt.job_id!r} has taken over"
    else:
        why = "another load committed first, and this one went by what the table was before it"
    return ConcurrentLoadError(
        f"table {control.table_id}: {why}; nothing of this attempt was published.",
        remedy="Run the same job id again.",
    )


def settle(control: Control, attempt: Attempt, open_clients: OpenClients) -> None:
    """Take the bound intent to its end; raises why it was withdrawn, if it was."""
    recover(control, open_clients, mine=attempt.id)
    if control.read_report(attempt.job_id) is None:
        failure = read_failure(control, attempt.job_id, attempt.id)
        raise failure or _make_concurrent_error(control, control.state.read(), attempt)


def give_up(control: Control, attempt: Attempt, names: ObjectNames, receipts: Iterable[Receipt]) -> None:
    """Abort what this attempt staged, then let go of the table; nothing where it turns out to be bound after all, or
    finished by whoever recovered it.

    The state is written before: no binding that is still under way can arrive any more. Uploads that no receipt tells
    of are found by their keys, listed while this is the registered attempt: a later one registers before it stages, so
    none of them is its own. Whoever dies before the end is still registered, so that its job's next attempt clears up.
    """
    strays = _find_own_uploads(control, attempt.job_id, attempt.id, _make_begun_table(names))
    if not _try_move(control, lambda state: _require_unbound(state, attempt)):
        strays = []
    report = control.read_report(attempt.job_id)
    if _is_bound(control.state.recall(), attempt) or (report is not None and report["attempt"] == attempt.id):
        return
    abort_all(control.store, ((receipt.key, receipt.upload_id) for receipt in receipts))
    abort_all(control.store, ((stray.key, stray.upload_id) for stray in strays))
    _try_move(
        control,
        lambda state: _require_unbound(state, attempt).replace(running=state.list_running_except(attempt.job_id)),
    )


def _try_move(control: Control, change: Callable[[TableState], TableState]) -> bool:
    try:
        control.state.move(change)
    except Lost:
        return False
    return True


def _require_unbound(state: TableState, attempt: Attempt) -> TableState:
    if not state.is_registered(attempt.job_id, attempt.id) or _is_bound(state, attempt):
        raise Lost
    return state


def _is_bound(state: TableState, attempt: Attempt) -> bool:
    pending = state.pending
    return pending is not None and (pending.job_id, pending.attempt) == (attempt.job_id, attempt.id)


def abort_strays(control: Control, names: ObjectNames, receipts: Iterable[Receipt], attempt: Attempt) -> None:
    """Abort uploads of retried and speculative tasks, whose receipts Spark did not return."""
    kept = {receipt.upload_id for receipt in receipts}
    with control.note_failed_cleanup("uploads of repeated tasks"):
        uploads = _find_own_uploads(control, attempt.job_id, attempt.id, _make_begun_table(names))
        _abort_while_registered(control, attempt, [upload for upload in uploads if upload.upload_id not in kept])


def abort_in_catalog_location(control: Control, names: ObjectNames, attempt: Attempt) -> None:
    """Abort what earlier attempts staged where the catalog keeps the table, which their records do not know."""
    with control.note_failed_cleanup("uploads of earlier attempts"):
        for earlier in sorted({record.attempt for record in _read_begin_records(control, attempt)}):
            files = _make_begun_table(replace(names, attempt=earlier))
            _abort_while_registered(control, attempt, _find_own_uploads(control, attempt.job_id, earlier, files))


def _abort_while_registered(control: Control, attempt: Attempt, uploads: Sequence[Upload]) -> None:
    """Abort what was listed before; a later attempt, which may stage under the same keys, registers before it does."""
    if uploads and control.state.read().is_registered(attempt.job_id, attempt.id):
        abort_all(control.store, ((upload.key, upload.upload_id) for upload in uploads))
