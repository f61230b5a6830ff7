"""Finish a pending intent, from the intent alone. Any process may do this, and several at once.

prepared --all tables bound--> intended
    \\--undecided, or none bound--> aborting
intended --all complete--> uploaded --published, read back, reported--> nothing pending, committed + 1
    \\--cannot complete--> aborting --withdrawn--> nothing pending, as if it had not been
"""

from datetime import timedelta
from functools import partial
from typing import Final

from lakewriter.commit.at_once import call_all
from lakewriter.commit.catalog import find_catalog, open_catalog_writer, open_iceberg_writer
from lakewriter.commit.control import Control
from lakewriter.commit.data_store import OpenClients, open_data_store
from lakewriter.commit.decisions import Group, conclude_completion, find_completion, find_decision, is_bound
from lakewriter.commit.deferred_deletions import retire_partition
from lakewriter.commit.latest import require_earlier, write_latest
from lakewriter.commit.repeated_loads import note_repeat
from lakewriter.commit.store import Store
from lakewriter.commit.stream_generations import delete_all
from lakewriter.commit.uploads import complete_all, withdraw
from lakewriter.control_object import parse
from lakewriter.errors import (
    CODES,
    CatalogNotFoundError,
    CatalogUnauthorizedError,
    ConcurrentLoadError,
    CredentialsInvalidError,
    GlueAccessDeniedError,
    LakeError,
    PendingUnrecoverableError,
    RoleNotAssumableError,
    S3AccessDeniedError,
    SchemaIncompatibleError,
    SecretUnresolvedError,
    StagedLostError,
)
from lakewriter.records.changes import Effects, Intent, Undo
from lakewriter.records.fold.closing import Close
from lakewriter.records.fold.steps import GiveUp, PendingStep, Turn, Withdraw
from lakewriter.records.state import DroppedPartition, Failure, GivenUp, Lost, Pending, Phase, TableState
from lakewriter.report import TableReport, format_count

_CLEARED_AFTER: Final = timedelta(days=1)
"""No service clears files away that are younger."""
CORRECTIONS: Final = 20
"""How many partitions are corrected at a time: the rest waits for the next look."""

_OUT_OF_REACH = (
    CredentialsInvalidError,
    S3AccessDeniedError,
    GlueAccessDeniedError,
    RoleNotAssumableError,
    SecretUnresolvedError,
    CatalogUnauthorizedError,
    CatalogNotFoundError,
)


def recover(control: Control, open_clients: OpenClients, *, mine: str | None = None) -> TableState:
    """Finish whatever is pending, correct partitions that late calls have changed, and return the state.

    ``PENDING_UNRECOVERABLE`` for an intent whose table no longer accepts it, and for one of another attempt than
    ``mine`` whose role has lost its access; an error of access of ``mine`` is raised as it is.
    """
    while True:
        _finish(control, open_clients, mine)
        try:
            # Rule late-calls
            corrected = correct_partitions(control, open_clients)
        except LakeError as error:
            corrected = ()
            control.left.append(f"partitions of {control.table_id} that were dropped were not compared: {error}")
        control.left += corrected
        if control.state.recall().pending is None:
            return control.state.recall()


def _finish(control: Control, open_clients: OpenClients, mine: str | None) -> None:
    """Advance the pending intent, and each that is found after it, until nothing is pending."""
    while (pending := (state := control.state.recall()).pending) is not None:
        try:
            _advance(control, pending, state.committed + 1, open_clients, mine)
        except _OUT_OF_REACH as error:
            if pending.attempt == mine:
                raise
            raise _make_unrecoverable_error(control, pending, str(error), "Restore the access") from error
        except SchemaIncompatibleError as error:
            # Its remedy is for a load that is not bound yet: the files of this one are written.
            raise _make_unrecoverable_error(control, pending, error.message, "Change the table back") from error


def correct_partitions(control: Control, open_clients: OpenClients) -> tuple[str, ...]:
    """Add or drop partitions of Glue that are not as the state says; return a sentence for each.

    A call that drops or adds a partition has no condition, so that of a process that was held up may come after later
    changes. The state is read again after each call: it may have been overtaken, too. Nothing is done while a change is
    pending, since its process may be about to call.
    """
    corrected = list[str]()
    for _ in range(CORRECTIONS):
        state = control.state.recall()
        wrong = None
        if state.pending is None:
            wrong = next((entry for entry in state.partitions if _is_wrong(control, entry, open_clients)), None)
        if wrong is None:
            break
        intent = control.read_intent(wrong.job_id, wrong.attempt)
        open_catalog_writer(intent, open_clients(intent.access)).publish(intent, state.committed)
        what = "was gone, and was added again" if wrong.is_due else "was there after its undo, and was dropped again"
        corrected.append(
            f"partition {wrong.partition!r} of {control.table_id} {what}: a call of a process that was held up came "
            "late"
        )
        control.state.read()
    return tuple(corrected)


def _is_wrong(control: Control, entry: DroppedPartition, open_clients: OpenClients) -> bool:
    intent = control.find_intent(entry.job_id, entry.attempt)
    if intent is None:
        return False
    clients = open_clients(intent.access)
    if find_catalog(intent.catalog).has_partition(intent.catalog, clients) == entry.is_due:
        return False
    # Another pipeline, or a person, may have added the partition for files of their own.
    # Rule late-drop-of-others
    return entry.is_due or (_has_no_others(control, entry, intent) and not control.has_other_writer())


def _has_no_others(control: Control, entry: DroppedPartition, intent: Intent) -> bool:
    removes = intent.removes if isinstance(intent, Undo) else ()
    removed, prefix = {removal.key for removal in removes}, entry.location.split("/", 3)[3].rstrip("/") + "/"
    return all(listed.key in removed for listed in control.store.list_entries(prefix))


def _make_unrecoverable_error(control: Control, pending: Pending, why: str, mend: str) -> PendingUnrecoverableError:
    return PendingUnrecoverableError(
        f"load {pending.job_id!r} of {control.table_id} is pending ({pending.phase}) and cannot go on: {why}",
        remedy=f"{mend}, or give the load up: lakewriter abandon LAKE {pending.job_id} --reason TEXT",
    )


def _advance(control: Control, pending: Pending, number: int, open_clients: OpenClients, mine: str | None) -> None:
    """Do the step of the pending intent's phase; ``number`` is the load's number in the table once it is committed."""
    intent = control.read_intent(pending.job_id, pending.attempt)
    match pending.phase:
        case "prepared":
            phase: Phase = "intended" if is_bound(control, pending) else "aborting"
            failure = _make_unbound(control) if phase == "aborting" else None
            move_pending(control, Turn(pending, phase, failure))
        case "intended":
            complete = complete_together if intent.together else complete_files
            failure = complete(control, intent, open_clients)
            move_pending(control, Turn(pending, "aborting" if failure else "uploaded", failure))
        case "uploaded":
            _end_uploaded(control, pending, intent, number, open_clients, mine)
        case "aborting":
            store = open_data_store(control.store, intent.catalog, intent.access, open_clients)
            withdraw_intent(control, pending, intent, store)


def _end_uploaded(
    control: Control, pending: Pending, intent: Intent, number: int, open_clients: OpenClients, mine: str | None
) -> None:
    """Publish an intent whose files are complete, or give it up where its catalog will never have it."""
    if (failure := _find_cleared(control, pending, intent, number, open_clients, mine)) is not None:
        give_up_number(control, pending, intent, failure)
        return
    try:
        report = _publish(control, pending, intent, number, open_clients, gone=pending.attempt != mine)
    except GivenUp:
        # The process that gave it up died before the state said so.
        # Rule finish-giving-up
        give_up_number(control, pending, intent)
        return
    except LakeError:
        # Another process may have ended it meanwhile: a later change is what the catalog shows, or its files
        # are gone.
        # Rule ended-meanwhile
        if _is_pending(control, pending):
            raise
        return
    close(control, pending, intent, report)


def complete_files(control: Control, intent: Intent, open_clients: OpenClients) -> Failure | None:
    """Complete the table's files; return why one can never be completed."""
    store = open_data_store(control.store, intent.catalog, intent.access, open_clients)
    # Rule complete-before-publish, retire-after-complete, taken-last
    failure = complete_all(store, intent, control.pause)
    # Rule quarantine-completed
    if failure is None and (quarantined := intent.of_quarantine) is not None:
        failure = complete_all(control.store, quarantined, control.pause)
    return failure


def complete_together(control: Control, intent: Intent, open_clients: OpenClients) -> Failure | None:
    """Complete the files of all tables that are bound together; return why one of them can never be completed."""
    if (done := find_completion(control, Group.of(intent))) is not None:
        return done.failure
    decision = find_decision(control, Group.of(intent))
    tables = [name for name in (decision.tables if decision is not None else ()) if name != control.table_id]

    def complete(name: str) -> Failure | None:
        other = Control(control.store, control.keys, name, key_names=control.key_names, pause=control.pause)
        return complete_files(other, other.read_intent(intent.job_id, intent.attempt), open_clients)

    answers = [complete_files(control, intent, open_clients), *call_all(complete, tables)]
    failure = next((answer for answer in answers if answer is not None), None)
    return conclude_completion(control, Group.of(intent), failure)


def give_up_number(control: Control, pending: Pending, intent: Intent, failure: Failure | None = None) -> None:
    """Turn a change that its catalog lacks for good to its withdrawal, its number and its refresh's used up."""
    move_pending(control, GiveUp(pending, intent.effects.generation or 0, failure))


def _find_cleared(
    control: Control, pending: Pending, intent: Intent, number: int, open_clients: OpenClients, mine: str | None
) -> Failure | None:
    """Return why a change can never be published whose files its service has cleared away, since no snapshot named
    them for days; its number is used up then. None for any other change."""
    is_fresh = pending.attempt == mine and control.find_time() - pending.since < _CLEARED_AFTER
    if intent.catalog.abilities.deletes or is_fresh:
        return None
    catalog = open_iceberg_writer(intent, open_clients(intent.access))
    if catalog.has_change(intent, number):
        return None
    store = open_data_store(control.store, intent.catalog, intent.access, open_clients)
    objects = call_all(store.find, intent.files.list_keys())
    gone = sum(stored is None for stored in objects)
    if not gone:
        return None
    catalog.require_changeable(intent)
    if catalog.decide(intent, number):
        # Another process published it meanwhile.
        return None
    return Failure(
        code=StagedLostError.code,
        message=f"table {control.table_id}: {gone} of {format_count(len(objects), 'file')} of load {intent.job_id!r} "
        "were cleared away by the catalog's service: no snapshot named them for days.",
        remedy="Run the same job id again.",
    )


def _make_unbound(control: Control) -> Failure:
    return Failure(
        code=ConcurrentLoadError.code,
        message=f"table {control.table_id}: another process met the tables that are bound together before all "
        "of them were, and bound none; nothing of this attempt was published.",
        remedy="Run the same job id again.",
    )


def _is_pending(control: Control, pending: Pending) -> bool:
    """Return whether the change is pending in the same phase: one that is withdrawn is published no more."""
    now = control.state.read().pending
    # Rule withdrawn-meanwhile
    return now is not None and pending.is_same(now) and pending.phase == now.phase


def _is_due(control: Control, pending: Pending, intent: Intent, number: int) -> bool:
    # The table may have been handed to another pipeline: the catalog has no number of it to compare.
    require_earlier(control, intent, number)
    return _is_pending(control, pending)


def _publish(
    control: Control, pending: Pending, intent: Intent, number: int, open_clients: OpenClients, *, gone: bool
) -> TableReport:
    """Make readers see the change; ``gone`` says that another process began it. Returns the report to close it with."""
    effects = intent.effects
    is_due = partial(_is_due, control, pending, intent, number)
    catalog = open_catalog_writer(intent, open_clients(intent.access), is_due)
    if effects.adds:
        # Rule retire-before-partition
        retire_partition(control, intent)
    if effects.removes is not None:
        note_repeat(control, effects.removes.job_id)
    if (deleted := catalog.note_deleted_keys(intent)) is not None:
        # Written before the state names it: any process may close the load.
        control.write_once(*deleted, keep=True)
    catalog.publish(intent, number)
    _publish_quarantine(control, pending, intent, effects, number, open_clients)
    write_latest(control, intent, number)
    # Rule retire-at-all
    delete_all(control, effects.deletes)
    health = catalog.read_back(intent)
    # What a replay has loaded leaves the quarantine once readers are known to see it in the table.
    # Rule taken-at-all
    delete_all(control, ((removal.key, removal.etag) for removal in effects.loaded))
    if catalog.version is not None:
        control.versions[intent.load] = catalog.version
    left = catalog.clear_up(intent, gone=gone)
    return intent.make_report(*control.left, *left, health=health, counts=catalog.counts)


def _publish_quarantine(
    control: Control, pending: Pending, intent: Intent, effects: Effects, number: int, open_clients: OpenClients
) -> None:
    """Publish the table of the bad rows, and delete from it what an undo takes out."""
    # Rule quarantine-undone
    delete_all(control, ((removal.key, removal.etag) for removal in effects.bad_rows))
    if (quarantined := intent.of_quarantine) is not None:
        is_pending = partial(_is_pending, control, pending)
        catalog = open_catalog_writer(quarantined, open_clients(intent.access), is_pending)
        # Rule quarantine-published
        catalog.publish(quarantined, number)
        catalog.read_back(quarantined)


def close(control: Control, pending: Pending, intent: Intent, report: TableReport) -> None:
    """Write the report, then the state with nothing pending: the last step of a load or an undo."""
    # Several processes may recover one load, each when the table is in another state: the first one's report stays.
    key = control.keys.report(pending.job_id, control.table_id)
    # Rule report-before-close
    control.write_once(key, report.model_dump_json(indent=1), keep=True, remember=True)
    move_pending(control, Close(intent, control.find_time(), pending, report.abandoned is not None, report.health))


def withdraw_intent(control: Control, pending: Pending, intent: Intent, store: Store) -> None:
    """Withdraw an intent that is in no catalog: abort its uploads, delete its objects, and write why."""
    withdraw(store, intent)
    # Rule quarantine-withdrawn
    if (quarantined := intent.of_quarantine) is not None:
        withdraw(control.store, quarantined)
    if pending.failure is not None:
        key = control.keys.failure(pending.job_id, pending.attempt, control.table_id)
        control.write_once(key, pending.failure.model_dump_json(indent=1), keep=True)
    move_pending(control, Withdraw(pending))


def move_pending(control: Control, step: PendingStep | Close) -> None:
    """Move the state by what happens to its pending intent; do nothing where another process has done it already."""
    try:
        control.state.move(step)
    except Lost:
        return


def read_failure(control: Control, job_id: str, attempt: str) -> LakeError | None:
    """Read the error for which this attempt's intent was withdrawn; None where none is kept."""
    key = control.keys.failure(job_id, attempt, control.table_id)
    if (content := control.store.get(key)) is None:
        return None
    failure = parse(Failure, key, content[0])
    if failure.code not in CODES:
        # A later release wrote it.
        return PendingUnrecoverableError(f"{failure.code}: {failure.message}", remedy=failure.remedy)
    return CODES[failure.code](failure.message, remedy=failure.remedy)
