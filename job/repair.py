"""What a person does to a table's state by hand: give a load up, move a cursor."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from job.aws import Clients
from job.commit.control import Control
from job.commit.intent import IcebergAction
from job.commit.reach import Reach, reach_from
from job.commit.recover import close, move_pending, undo
from job.commit.state import Lost, Pending, Reset, TableState
from job.errors import ConcurrentLoadError, SpecInvalidError
from job.receipt import Cursor
from job.report import counted

KEPT_RESETS: Final = 20


def abandon(controls: Mapping[str, Control], job_id: str, reason: str, clients: Clients) -> dict[str, str]:
    """What was done, by table: undone where no catalog has heard of the load, otherwise closed as it is."""
    done, reach = {}, reach_from(clients)
    for table_id, control in controls.items():
        pending = control.state.read().pending
        if pending is not None and pending.job_id == job_id:
            done[table_id] = _abandon(control, pending, reason, reach)
    if not done:
        raise SpecInvalidError(
            f"load {job_id!r} is pending in no table of this pipeline.", remedy="lakewriter status LAKE shows what is."
        )
    return done


def _abandon(control: Control, pending: Pending, reason: str, reach: Reach) -> str:
    intent = control.intent(pending.job_id, pending.attempt)
    _note(control, f"load {pending.job_id} abandoned ({pending.phase})", reason)
    if pending.phase == "uploaded":
        objects = counted(len(intent.receipts), "object")
        rows = counted(intent.rows, "row")
        shown = f"{objects} with {rows} left visible under {control.table_id}"
        if isinstance(intent.catalog, IcebergAction):
            shown = f"{objects} with {rows} left at {control.table_id}, which readers see if a snapshot has them"
        close(control, pending, intent, intent.report(f"abandoned before its catalog agreed: {shown}"))
        return f"closed as it is: {shown}; the catalog may not know them"
    aborting = pending.model_copy(update={"phase": "aborting", "failure": None})
    move_pending(control, pending, lambda state: state.changed(pending=aborting))
    undo(control, aborting, intent, reach)
    return f"undone: nothing of its {counted(len(intent.receipts), 'file')} is visible, the cursor is as it was"


def reset_cursor(control: Control, cursor: Cursor | None, reason: str) -> TableState:
    """The state with its cursor moved, or taken away; loads that are running lose their turn."""
    shown = "taken away" if cursor is None else f"set to {cursor.text}"

    def change(state: TableState) -> TableState:
        if state.pending is not None:
            raise Lost
        before = state.cursor.text if state.cursor else "none"
        noted = _noted(state, f"cursor {shown}, was {before}", reason)
        return noted.changed(cursor=cursor, running={})

    control.state.read()
    try:
        return control.state.move(change)
    except Lost:
        pending = control.state.read().pending
        raise ConcurrentLoadError(
            f"table {control.table_id} has load {pending.job_id if pending else 'of another'!r} pending.",
            remedy="Run or abandon that load first.",
        ) from None


def _note(control: Control, what: str, reason: str) -> None:
    control.state.move(lambda state: _noted(state, what, reason))


def _noted(state: TableState, what: str, reason: str) -> TableState:
    entry = Reset(at=datetime.now(UTC), what=what, reason=reason)
    return state.changed(resets=(*state.resets, entry)[-KEPT_RESETS:])
