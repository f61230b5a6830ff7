"""Change a table's state outside a load: by a person's command, and by the file's backfill."""

from collections.abc import Callable
from datetime import datetime

from lakewriter.commit.control import Control
from lakewriter.commit.data_store import OpenClients
from lakewriter.commit.recover import recover
from lakewriter.commit.table_objects import find_last_numbers, list_objects
from lakewriter.errors import ConcurrentLoadError, SpecInvalidError
from lakewriter.records.fold.by_hand import BeginBackfill, ByHand
from lakewriter.records.state import Lost, TableState


def change_by_hand(
    control: Control, make_step: Callable[[datetime], ByHand], done: Callable[[TableState], bool] = lambda _: False
) -> TableState:
    """Change the state by the step that ``make_step`` makes for the time, and return it; or return one that is ``done``
    already. ``CONCURRENT_LOAD`` while a load is pending."""
    control.state.read()
    try:
        return control.state.move(make_step(control.find_time()), done)
    except Lost:
        pending = control.state.read().pending
        raise ConcurrentLoadError(
            f"table {control.table_id} has a pending change, {pending.job_id if pending else 'of another process'!r}.",
            remedy="Call this again once it is finished: lakewriter status LAKE shows it.",
        ) from None


def begin_backfill(control: Control, reason: str) -> TableState:
    """Begin the next backfill, without cursor and batch, so that everything is loaded again; return the state.

    Its number is above those in files that another writer has left: readers use the files with the highest number.
    """
    left = _find_highest_backfill(control)
    return change_by_hand(control, lambda at: BeginBackfill(at, reason, left))


def settle_backfill(control: Control, wanted: int | None, open_clients: OpenClients) -> None:
    """Begin the backfill that the file asks for, once what is pending is finished; None asks for none.

    Raises ``SPEC_INVALID`` for a number below the table's, and below that of files which another writer has left.
    """
    if wanted is None or wanted <= check_backfill(control, recover(control, open_clients), wanted).backfill:
        return
    left = _find_highest_backfill(control)
    if left > wanted:
        raise _make_lower_error(control, wanted, f"{left} among the files under its path")

    reason = f"backfill: {wanted} in the file"
    # Another process may be faster, and go further than this file does.
    state = change_by_hand(
        control, lambda at: BeginBackfill(at, reason, wanted - 1), lambda state: state.backfill >= wanted
    )
    check_backfill(control, state, wanted)


def check_backfill(control: Control, state: TableState, wanted: int | None) -> TableState:
    """Return the state; ``SPEC_INVALID`` where the file asks for a backfill below the table's."""
    if wanted is not None and wanted < state.backfill:
        raise _make_lower_error(control, wanted, f"{state.backfill} by its state")
    return state


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
