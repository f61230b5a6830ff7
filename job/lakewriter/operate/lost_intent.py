"""Abandon a pending load whose intent is lost: it cannot be finished, and what it was to publish is not known."""

import json
from collections.abc import Mapping
from itertools import islice
from typing import Final

from lakewriter.commit.control import Control
from lakewriter.commit.decisions import Group, conclude_completion, find_decision, is_bound
from lakewriter.commit.store import StoredObject
from lakewriter.commit.table_objects import MOST_LISTED, find_highest_numbers, find_own_objects
from lakewriter.errors import PendingUnrecoverableError, SpecInvalidError, StagedLostError
from lakewriter.operate.rebuild_records import MOST_ASKED, parse_batch
from lakewriter.operate.repair import find_pending, find_pending_tables
from lakewriter.receipt import DeletedKeys
from lakewriter.records.fold.closing import CloseBlindly, EndBlindly
from lakewriter.records.state import Failure, Lost, Pending
from lakewriter.report import ABANDONED_BLIND, TableReport, format_count
from lakewriter.spec.load_ids import REPLAY, UNDO

_OVERTAKEN: Final = "nothing: another process brought it to its end meanwhile"

Objects = Mapping[str, StoredObject]


def abandon_without_intent(controls: Mapping[str, Control], job_id: str, reason: str) -> dict[str, str]:
    """Abandon the load in each table where it is pending without its intent; return what was done, by table.

    Its objects are deleted where no catalog has the load, otherwise they stay. A table that has its intent is left as
    it is; ``SPEC_INVALID`` where all have theirs. An undo that may have taken files out is ended even with its intent:
    there is no other way out where it can never finish.
    """
    chosen = find_pending_tables(controls, job_id)
    lost = {control.table_id for control in chosen if _is_lost(control, job_id)}
    remedy = f"Abandon it by what it says: lakewriter abandon LAKE {job_id} --reason TEXT"
    if not lost:
        raise SpecInvalidError(f"the intent of load {job_id!r} of {chosen[0].table_id} is there.", remedy=remedy)
    return {
        control.table_id: _abandon(control, job_id, reason)
        # Rule blind-beside
        if control.table_id in lost
        else f"left as it is, since its intent is there. {remedy}"
        for control in chosen
    }


def _abandon(control: Control, job_id: str, reason: str) -> str:
    pending = find_pending(control, job_id)
    if pending is None:
        return _OVERTAKEN
    # Rule blind-undo
    if job_id.startswith(UNDO):
        return _end_undo(control, pending, reason)
    objects = _find_objects(control, pending)
    shown = format_count(len(objects), "object")
    if pending.phase == "prepared":
        # If the sync is undecided, this gives it up in every table: none is bound without this one.
        # Rule blind-gives-up
        is_bound(control, pending)
    if find_decision(control, Group.of(pending)) is not None and pending.phase != "uploaded":
        # The sync's other tables are not published without this one's files.
        conclude_completion(control, Group.of(pending), _make_lost(control))
    if pending.phase == "uploaded":
        _close(control, pending, objects, reason)
        return (
            f"closed as it is, without its intent: {shown} that it wrote stay, and readers see them if its catalog has "
            "them, or there is none. What cannot be known: its rows, whether the catalog has them, how far it read, "
            "which objects it was to replace (they stay until the next full refresh), and the names that it alone gave "
            "to columns (names: pins them). The cursor and the source's state were not moved, so the next load may "
            "read its rows again: see "
            f"{control.table_id} in lakewriter status LAKE, and lakewriter reset LAKE{_say_both(control, job_id)}"
        )
    # Rule blind-quarantine
    objects = {**objects, **_find_quarantined(control, pending)}
    shown = format_count(len(objects), "object")
    for key, stored in objects.items():
        control.store.delete(key, stored.etag)
    _end(control, pending, reason)
    return (
        f"undone, without its intent: {shown} that it wrote deleted, the cursor as it was. What cannot be known: "
        "whether it wrote others; uploads that it did not complete are left to the bucket's lifecycle rule"
    )


def _say_both(control: Control, job_id: str) -> str:
    """Say what becomes of a replay's files: this job id loads nothing again, and another replay would."""
    if not job_id.startswith(REPLAY):
        return ""
    return (
        f". The rows of a replay may be in the table and in {control.quarantine}/ too: before the next replay delete "
        "there the files that were there when it ran, if readers see its rows"
    )


def _end_undo(control: Control, pending: Pending, reason: str) -> str:
    """End an undo, so that the load counts as done and can be undone again.

    With the undo's report the load would count as undone, though cursor and source's state are not put back. The report
    returns where another process, which has the intent in memory, has completed the undo meanwhile.
    """
    report = control.delete_report(pending.job_id)
    if _end(control, pending, reason, _conclude(control, pending, {})):
        return "closed as it is: what it has taken out is not known. Undo the load again: it goes on from there"
    if report is not None and any(undone.by == pending.job_id for undone in control.state.read().undone):
        control.write_once(control.keys.report(pending.job_id, control.table_id), report)
    return _OVERTAKEN


def _make_lost(control: Control) -> Failure:
    return Failure(code=StagedLostError.code, message=f"the intent of table {control.table_id} is lost.")


def _is_lost(control: Control, job_id: str) -> bool:
    """Return True where the pending load's intent is gone; raise the error of reading it where a later release may read
    it."""
    pending = find_pending(control, job_id)
    if pending is None:
        return False
    if job_id.startswith(UNDO) and pending.phase == "uploaded":
        return True
    try:
        intent = control.read_intent(pending.job_id, pending.attempt)
    except PendingUnrecoverableError:
        content = control.store.get(control.keys.intent(pending.job_id, pending.attempt, control.table_id))
        if content is not None and _has_version(content[0]):
            raise
        return True
    try:
        intent.files.require_parts()
    except PendingUnrecoverableError:
        return True
    return False


def _has_version(body: bytes) -> bool:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and "version" in content


def _find_objects(control: Control, pending: Pending) -> Objects:
    if control.layout is None:
        return {}
    load = f"{control.keys.pipeline}/{pending.job_id}/{pending.attempt}"
    objects = find_own_objects(control.store, control.keys, control.table_id, control.layout, most=MOST_ASKED)
    return {key: stored for key, stored in objects if stored.load == load}


def _find_quarantined(control: Control, pending: Pending) -> Objects:
    """Find the files with bad rows that the attempt has written: a load that is run again writes others."""
    if not control.quarantine:
        return {}
    load = f"{control.keys.pipeline}/{pending.job_id}/{pending.attempt}"
    entries = islice(control.store.list_entries(f"{control.quarantine}/"), MOST_LISTED)
    newest = sorted(entries, key=lambda entry: entry.modified, reverse=True)[:MOST_ASKED]
    heads = ((entry.key, control.store.head(entry.key)) for entry in newest)
    return {key: stored for key, stored in heads if stored is not None and stored.load == load}


def _close(control: Control, pending: Pending, objects: Objects, reason: str) -> None:
    """Write the report, so that the job counts as done and its id loads nothing again; then close the state."""
    schema, _, table = control.table_id.rpartition(".")
    report = TableReport(
        pipeline=control.keys.pipeline,
        job_id=pending.job_id,
        attempt=pending.attempt,
        schema_name=schema,
        table=table,
        started=pending.since,
        rows=0,
        files=len(objects),
        bytes=sum(stored.size for stored in objects.values()),
        keys=tuple(sorted(objects)),
        feed="",
        engine="",
        cursor_before=None,
        cursor_after=None,
        cursor_nulls=0,
        staged_seconds=0.0,
        abandoned="without_intent",
        notes=(f"{ABANDONED_BLIND}, which is gone: how many rows it has is not known",),
    )
    # A report that is there already was written from the intent, and says more.
    if control.read_report(pending.job_id) is None:
        control.write_once(control.keys.report(pending.job_id, control.table_id), report.model_dump_json(indent=1))
    _end(control, pending, reason, _conclude(control, pending, objects))


def _conclude(control: Control, pending: Pending, objects: Objects) -> CloseBlindly:
    """Find what the objects and the job id say of the load, which counts as committed."""
    highest = find_highest_numbers(control.layout, objects)
    is_of_sync = control.layout is not None and not control.layout.directory and bool(objects)
    return CloseBlindly(
        pending.job_id,
        pending.since,
        control.find_time(),
        counter=highest.counter,
        generation=highest.generation,
        batch=parse_batch(pending.job_id),
        deleted_keys=_find_deleted_keys(control, pending),
        generation_id=max(stored.generation_id for stored in objects.values()) if is_of_sync else None,
        has_files=is_of_sync,
    )


def _find_deleted_keys(control: Control, pending: Pending) -> DeletedKeys | None:
    """Return the keys that the attempt has noted as deleted, which is so before readers see its merge."""
    key = control.keys.deleted_keys(pending.job_id, pending.attempt, control.table_id)
    content = control.store.get(key)
    if content is None:
        return None
    # Importing PyIceberg takes a second.
    from lakewriter.commit.iceberg.deleted_keys import read_objects

    return read_objects(content[0])


def _end(control: Control, pending: Pending, reason: str, close: CloseBlindly | None = None) -> bool:
    """Remove the intent from the state and note the reason. Return False, and do nothing, where another process removed
    it."""
    try:
        control.state.move(EndBlindly(pending, control.find_time(), reason, close))
    except Lost:
        return False
    return True
