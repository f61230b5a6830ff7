"""Change a table's state outside a load: note the change, and begin a backfill."""

from collections.abc import Callable
from typing import Final

from lakewriter.commit.control import Control
from lakewriter.commit.data_store import OpenClients
from lakewriter.commit.input_records import Inputs
from lakewriter.commit.recover import recover
from lakewriter.commit.state import ANEW, Lost, Reset, TableState
from lakewriter.commit.sync_records import SyncState
from lakewriter.commit.table_objects import find_last_numbers, list_objects
from lakewriter.errors import ConcurrentLoadError, SpecInvalidError
from lakewriter.receipt import Batch

KEPT_RESETS: Final = 20


def change_unless_pending(control: Control, change: Callable[[TableState], TableState]) -> TableState:
    """Replace the state by what ``change`` returns, and return that; ``CONCURRENT_LOAD`` while a load is pending."""

    def allowed(state: TableState) -> TableState:
        if state.pending is not None:
            raise Lost
        return change(state)

    control.state.read()
    try:
        return control.state.move(allowed)
    except Lost:
        pending = control.state.read().pending
        raise ConcurrentLoadError(
            f"table {control.table_id} has a pending change, {pending.job_id if pending else 'of another process'!r}.",
            remedy="Call this again once it is finished: lakewriter status LAKE shows it.",
        ) from None


def note_change(control: Control, state: TableState, what: str, reason: str) -> TableState:
    """Add a change by hand to the state's list of resets, of which the last ``KEPT_RESETS`` stay. Its time is that of
    the store's clock, as that of commits is. The number of changes says which came before it; compactions, which change
    nothing that a load leaves, do not count.
    """
    entry = Reset(at=control.find_time(), what=what, reason=reason, committed=state.changes)
    return state.replace(resets=(*state.resets, entry)[-KEPT_RESETS:])


def forget_source(state: TableState) -> SyncState:
    """Return the syncs without the source's state: the next one reads the stream from its beginning."""
    if not state.sync.sync_id:
        return state.sync
    return state.sync.model_copy(update={"source": None, "unfinished": False, "begins_anew": True})


def begin_backfill(control: Control, reason: str) -> TableState:
    """Begin the next backfill, without cursor and batch, so that everything is loaded again; return the state.

    Its number is above those in files that another writer has left: readers use the files with the highest number.
    """
    left = _find_highest_backfill(control)

    def change(state: TableState) -> TableState:
        number = max(state.backfill, left) + 1
        return number_backfill(note_change(control, state, f"backfill {number} begun", reason), number)

    return change_unless_pending(control, change)


def settle_backfill(control: Control, wanted: int | None, open_clients: OpenClients) -> None:
    """Begin the backfill that the file asks for, once what is pending is finished; None asks for none.

    Raises ``SPEC_INVALID`` for a number below the table's, and below that of files which another writer has left.
    """
    if wanted is None or wanted <= check_backfill(control, recover(control, open_clients), wanted).backfill:
        return
    left = _find_highest_backfill(control)
    if left > wanted:
        raise _make_lower_error(control, wanted, f"{left} among the files under its path")

    def change(state: TableState) -> TableState:
        if state.backfill >= wanted:
            # Another process was faster, and may have gone further than this file does.
            return check_backfill(control, state, wanted)
        noted = note_change(control, state, f"backfill {wanted} begun", f"backfill: {wanted} in the file")
        return number_backfill(noted, wanted)

    change_unless_pending(control, change)


def check_backfill(control: Control, state: TableState, wanted: int | None) -> TableState:
    """Return the state; ``SPEC_INVALID`` where the file asks for a backfill below the table's."""
    if wanted is not None and wanted < state.backfill:
        raise _make_lower_error(control, wanted, f"{state.backfill} by its state")
    return state


def number_backfill(state: TableState, number: int) -> TableState:
    """Return the state at the beginning of a backfill: the next load reads everything into its folder."""
    return state.replace(
        backfill=number,
        cursor=None,
        batch=Batch(ANEW, state.changes),
        running={},
        inferred=None,
        inputs=state.inputs and Inputs(committed=state.committed),
        # The files of the backfill lie in a folder of their own, so earlier names do not bind them.
        names=None if state.names is None else (),
        types=None if state.types is None else (),
        sync=forget_source(state),
    )


def _make_lower_error(control: Control, wanted: int, highest: str) -> SpecInvalidError:
    return SpecInvalidError(
        f"table {control.table_id}: backfill is {wanted} in the file, and {highest}: readers take the highest one's "
        "files.",
        remedy="Set backfill to the higher number, above it to load everything again; or leave it out.",
    )


def _find_highest_backfill(control: Control) -> int:
    layout = control.layout
    if layout is None or "backfill" not in layout.template.variables:
        return 0
    return find_last_numbers(layout, (entry.key for entry in list_objects(control.store, layout))).backfill
