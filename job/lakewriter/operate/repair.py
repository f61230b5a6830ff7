"""Change a table's state by hand: abandon a load, reset a cursor, begin a backfill, adopt another writer's files."""

import uuid
from collections.abc import Mapping, Sequence

from lakewriter.aws import Clients
from lakewriter.commit.catalog import open_catalog_writer, open_iceberg_writer
from lakewriter.commit.control import Control
from lakewriter.commit.data_store import open_data_store, reuse_clients
from lakewriter.commit.decisions import Group, conclude_completion, is_bound
from lakewriter.commit.latest import read_latest, take_over, write_latest
from lakewriter.commit.read_files import write_files
from lakewriter.commit.recover import close, give_up_number, move_pending, withdraw_intent
from lakewriter.commit.resets import change_by_hand
from lakewriter.commit.stream_generations import delete_all
from lakewriter.errors import (
    CatalogFailedError,
    CatalogNotFoundError,
    CatalogUnauthorizedError,
    EndpointUnreachableError,
    LakeError,
    NoAnswerError,
    SecretUnresolvedError,
    SpecInvalidError,
    StagedLostError,
)
from lakewriter.receipt import Cursor
from lakewriter.records.changes import MOST_NAMED, Intent, Load
from lakewriter.records.facets import UndoneLoad
from lakewriter.records.fold.by_hand import AdoptFiles, AdoptSyncs, ChangeOver, CountAsRead, Note, SetCursor
from lakewriter.records.fold.steps import Turn
from lakewriter.records.state import Failure, Numbers, Pending, Phase, TableState
from lakewriter.report import ABANDONED, format_count, join_first
from lakewriter.spec.listed_files import ListedFile
from lakewriter.spec.load_ids import UNDO, make_undo_job_id


def abandon(controls: Mapping[str, Control], job_id: str, reason: str, clients: Clients) -> dict[str, str]:
    """Abandon the load in each table where it is pending; return what was done, by table.

    The load is undone where its catalog certainly does not have it, otherwise closed as it is. If readers see it, the
    older files that it replaces are deleted first.
    """
    chosen = find_pending_tables(controls, job_id)
    return {control.table_id: _abandon(control, job_id, reason, clients) for control in chosen}


def find_pending_tables(controls: Mapping[str, Control], job_id: str) -> list[Control]:
    """Return the tables in which the load is pending; ``SPEC_INVALID`` where there are none."""
    chosen = [control for control in controls.values() if find_pending(control, job_id) is not None]
    if not chosen:
        raise SpecInvalidError(
            f"load {job_id!r} is pending in no table of this pipeline.", remedy="lakewriter status LAKE shows what is."
        )
    return chosen


def find_pending(control: Control, job_id: str) -> Pending | None:
    """Return the load's pending intent in a table, None where the load is not pending there."""
    pending = control.state.read().pending
    return pending if pending is not None and pending.job_id == job_id else None


def _abandon(control: Control, job_id: str, reason: str, clients: Clients) -> str:
    """Abandon the load in one table. Another process may be finishing it, so the state is read after each step."""
    noted, files = False, "files"
    while (pending := find_pending(control, job_id)) is not None:
        # Read first: a load whose intent needs a later release is refused before the state changes.
        intent = control.read_intent(job_id, pending.attempt)
        _require_end(control, pending, intent, clients)
        if not noted:
            what = f"load {job_id} abandoned ({pending.phase})"
            control.state.move(Note(control.find_time(), reason, what))
            # Another process may have ended the load: nothing may be published under the number of the next change.
            noted = True
            continue
        files = format_count(len(intent.files), "file")
        if pending.phase == "aborting":
            _undo(control, pending, intent, clients)
        # Rule abandon-by-phase
        elif pending.phase == "uploaded":
            if done := _end_uploaded(control, pending, intent, clients):
                return done
        else:
            move_pending(control, Turn(pending, _choose_phase(control, pending, intent)))
    return _say_end(control, job_id, files) or _abandon(control, job_id, reason, clients)


def _say_end(control: Control, job_id: str, files: str) -> str:
    """Say how the load that was pending has ended; blank where another attempt was bound meanwhile."""
    report = control.read_report(job_id)
    # What is said holds for the state that is read last.
    if find_pending(control, job_id) is not None:
        return ""
    if job_id.startswith(UNDO):
        return "given up: the load that it was to take out stays" if report is None else "nothing: it is done"
    if report is None:
        return f"undone: nothing of its {files} is visible, the cursor is as it was"
    return f"nothing: another process brought it to its end meanwhile, with {format_count(report.rows, 'row')}"


def _choose_phase(control: Control, pending: Pending, intent: Intent) -> Phase:
    """Return the phase from which an abandoned intent is ended. Intents of other tables that are bound together with it
    end in the same way."""
    if pending.phase == "prepared":
        return "intended" if is_bound(control, pending) else "aborting"
    if not intent.together:
        return "aborting"
    why = f"load {pending.job_id!r} was abandoned before the files of all its tables were complete."
    failure = Failure(code=StagedLostError.code, message=why, remedy="Run the same job id again.")
    is_given_up = conclude_completion(control, Group.of(pending), failure) is not None
    return "aborting" if is_given_up else "uploaded"


def _require_end(control: Control, pending: Pending, intent: Intent, clients: Clients) -> None:
    """Raise ``SPEC_INVALID`` for an undo that may have taken files out: one in a catalog without versions, one that its
    catalog has, and one whose catalog does not say so."""
    removes, number = intent.effects.removes, control.state.recall().committed + 1
    if removes is None or pending.phase != "uploaded":
        return
    try:
        is_safe = intent.catalog.keeps_versions and not open_iceberg_writer(intent, clients).has_change(intent, number)
    except LakeError as error:
        raise _make_undo_error(control, removes, f" ({error})") from error
    if not is_safe:
        raise _make_undo_error(control, removes)


def _make_undo_error(control: Control, load: UndoneLoad, why: str = "") -> SpecInvalidError:
    undo = make_undo_job_id(load.job_id)
    return SpecInvalidError(
        f"the undo of load {load.job_id!r} of {control.table_id} cannot be given up: some of its files may be gone"
        f"{why}.",
        remedy=f"Let it finish: lakewriter undo LAKE {load.job_id} --reason TEXT. If it can never finish, end it as it "
        f"is, and undo the load again once it can: lakewriter abandon LAKE {undo} --intent-lost --reason TEXT",
    )


def _end_uploaded(control: Control, pending: Pending, intent: Intent, clients: Clients) -> str:
    """End a load whose files exist as its catalog shows it; return what was done, blank if it is now being
    withdrawn."""
    effects = intent.effects
    number = control.state.recall().committed + 1
    try:
        catalog = open_catalog_writer(intent, reuse_clients(clients)(intent.access))
        is_seen = catalog.decide(intent, number)
        if is_seen:
            write_latest(control, intent, number)
            delete_all(control, effects.ends)
    except LakeError as error:
        if effects.removes is not None:
            raise _make_undo_error(control, effects.removes, f" ({error})") from error
        return _close_unknown(control, pending, intent, f" ({error})")
    if is_seen and effects.removes is not None:
        raise _make_undo_error(control, effects.removes)
    if is_seen:
        return _close_seen(control, pending, intent)
    if is_seen is None:
        return _close_unknown(control, pending, intent, "")
    # The catalog may have used the number up.
    give_up_number(control, pending, intent)
    return ""


def _close_seen(control: Control, pending: Pending, intent: Intent) -> str:
    replaced = intent.effects.ends
    shown = f"{_count_shown(intent)} visible under {control.table_id}"
    close(control, pending, intent, intent.make_report(f"given up by hand once readers saw it: {shown}"))
    gone = f", and {format_count(len(replaced), 'object')} that they replace deleted" if replaced else ""
    return f"closed as it is: {shown}{gone}"


def _close_unknown(control: Control, pending: Pending, intent: Intent, why: str) -> str:
    said = _close_as_it_is(control, pending, intent)
    return f"{said}{intent.describe_unknown(why, _list_replaced(control, intent))}"


def _list_replaced(control: Control, intent: Intent) -> list[str]:
    """List the files that the change replaces and that records name."""
    effects = intent.effects
    if effects.deletes:
        return [key for key, _ in effects.deletes]
    before = control.state.recall().find_generation(effects.switch.before) if effects.switch is not None else None
    earlier = control.find_intent(before.job_id, before.attempt) if before is not None else None
    return list(earlier.files.list_keys()) if earlier is not None else []


def _count_shown(intent: Intent) -> str:
    return f"{format_count(len(intent.files), 'object')} with {format_count(intent.rows, 'row')}"


def _close_as_it_is(control: Control, pending: Pending, intent: Intent) -> str:
    shown = f"{_count_shown(intent)} left visible under {control.table_id}"
    if intent.catalog.keeps_versions:
        shown = f"{_count_shown(intent)} left at {control.table_id}, which readers see if a snapshot has them"
    merge = intent.merge if isinstance(intent, Load) else None
    deleted_keys = merge.deleted_keys if merge is not None else None
    if merge is not None and deleted_keys is not None and control.store.find(deleted_keys) is None:
        # The state may name only what exists.
        intent = intent.model_copy(update={"merge": merge.model_copy(update={"deleted_keys": None})})
    report = intent.make_report(f"{ABANDONED}: {shown}").model_copy(update={"abandoned": "before_catalog"})
    close(control, pending, intent, report)
    taken = [removal.key for removal in intent.taken]
    both = f"; its rows are in the quarantine too: delete {join_first(taken, MOST_NAMED)} there" if taken else ""
    return f"closed as it is: {shown}; the catalog may not know them{both}"


def _undo(control: Control, aborting: Pending, intent: Intent, clients: Clients) -> None:
    try:
        store = open_data_store(control.store, intent.catalog, intent.access, reuse_clients(clients))
        withdraw_intent(control, aborting, intent, store)
    except (
        CatalogFailedError,
        CatalogNotFoundError,
        CatalogUnauthorizedError,
        EndpointUnreachableError,
        NoAnswerError,
        SecretUnresolvedError,
    ):
        # A catalog that cannot be reached gives no credentials: the destination's own may do.
        withdraw_intent(control, aborting, intent, control.store)


def reset_cursor(control: Control, cursor: Cursor | None, reason: str) -> TableState:
    """Set or remove the table's cursor; attempts that are running can no longer commit. Return the state.

    Without a cursor a stream of messages begins anew: its source is not given the state that the stream was at.
    """
    return change_by_hand(control, lambda at: SetCursor(at, reason, cursor))


def reset_files(control: Control, files: Sequence[ListedFile] | None, reason: str) -> TableState:
    """Say which files of its source count as read: ``files``, or with None those that the table's record names.

    Attempts that are running can no longer commit. Return the state.
    """
    parts = write_files(control, uuid.uuid4().hex[:12], "reset", files or ())
    return change_by_hand(control, lambda at: CountAsRead(at, reason, None if files is None else parts))


def change_over(control: Control, reason: str) -> TableState:
    """Let a stream go on after plain loads, or plain loads after a stream; return the state.

    Raises ``SPEC_INVALID`` for a table without loads, and ``CONCURRENT_LOAD`` while one is pending.
    """

    if not control.state.read().is_loaded:
        raise SpecInvalidError(
            f"table {control.table_id} has no loads to go on from.",
            remedy="Load it; or take over what another writer has left in the bucket: lakewriter adopt LAKE.",
        )
    return change_by_hand(control, lambda at: ChangeOver(at, reason))


def adopt_objects(control: Control, objects: str, generation_id: int, sync_id: int, reason: str) -> bool:
    """Let the syncs of a stream continue those of another writer, whose ``objects`` it has, in words. Return whether
    its state was below their numbers."""
    before = control.state.read().sync
    change_by_hand(control, lambda at: AdoptSyncs(at, reason, objects, generation_id, sync_id))
    return before.generation_id < generation_id or before.sync_id < sync_id


def adopt_files(control: Control, files: str, numbers: Numbers, cursor: Cursor | None, reason: str) -> TableState:
    """Let a table's loads continue after ``files``, in words: they number files above ``numbers``, and read rows above
    ``cursor``, all rows without it. Return the state.

    The object that names the files of a full refresh becomes this table's; readers see the same files."""
    new_id = uuid.uuid4().hex[:12] if control.latest is not None else ""
    if control.latest is not None:
        # One that nobody can take over is an error: raise it before the state is changed.
        read_latest(control.store, control.latest)

    state = change_by_hand(control, lambda at: AdoptFiles(at, reason, files, numbers, cursor, new_id))
    take_over(control, state)
    return state
