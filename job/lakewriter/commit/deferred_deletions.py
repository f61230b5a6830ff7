"""Delete objects that a change took out of a table, once no query that began before it reads them any more.

Objects of a replaced full refresh are kept longer, since an undo can show them again. So the state drops the refresh
before its objects are deleted, and an undo is bound only while the state has the refresh.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from lakewriter.commit.control import Control
from lakewriter.commit.stream_generations import delete_all
from lakewriter.commit.uploads import delete_own
from lakewriter.records.changes import Intent, Undo
from lakewriter.records.fold.steps import DropGeneration, Forget
from lakewriter.records.state import Lost, Retiring, TableState

_ROUNDED: Final = timedelta(seconds=2)
"""The store's clock may be ahead of the time in its answers by this: they have whole seconds and take a moment."""


def retire_due(control: Control) -> None:
    """Delete the objects whose time is over; what cannot be deleted now stays for the next load of the table."""
    retiring = control.state.recall().retiring
    if not retiring:
        return
    with control.note_failed_cleanup("objects of undone and replaced loads"):
        now = control.require_time() + _ROUNDED
        for entry in retiring:
            # Rule retire-in-time
            if entry.not_before <= now:
                _retire(control, entry, control.find_intent(entry.job_id, entry.attempt))


def retire_partition(control: Control, intent: Intent) -> None:
    """Delete the objects that lie in the partition which the intent is to add, whether or not their time is over:
    readers would find them there again."""
    partition = intent.catalog.find_partition()
    if partition is None:
        return
    for entry, removal in _read_retiring(control):
        # Rule retire-before-adding
        if removal.catalog.find_partition() == partition:
            _retire(control, entry, removal)


def _read_retiring(control: Control) -> Iterator[tuple[Retiring, Intent]]:
    for entry in control.state.recall().retiring:
        yield entry, control.read_intent(entry.job_id, entry.attempt)


def _retire(control: Control, entry: Retiring, intent: Intent | None) -> None:
    """Delete the objects, then the entry. If the intent is gone, its objects are not known: they stay, and no reader
    sees them."""
    # Rule give-up-first
    if entry.generation is not None and not _give_up_generation(control, entry):
        return
    if intent is not None and entry.generation is not None:
        delete_own(control.store, intent)
    elif isinstance(intent, Undo):
        delete_all(control, ((removal.key, removal.etag) for removal in intent.removes))

    control.state.move(Forget(entry), lambda state: entry not in state.retiring)


def _give_up_generation(control: Control, entry: Retiring) -> bool:
    """Drop the refresh from those that an undo can show again; return False where an undo may be showing it by now."""

    def is_given_up(state: TableState) -> bool:
        return entry in state.retiring and state.find_generation(entry.generation or 0) is None

    try:
        control.state.move(DropGeneration(entry), is_given_up)
    except Lost:
        return False
    return True
