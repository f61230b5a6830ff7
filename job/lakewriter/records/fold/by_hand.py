"""Conclude a table's state after what a person changes by hand. The state keeps each change with its reason."""

from abc import abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final

from lakewriter.receipt import Batch, Cursor
from lakewriter.records.fold.steps import ANYWHERE, UNLESS_PENDING, Step, Successions, set_fields
from lakewriter.records.input_records import InputPart, Inputs
from lakewriter.records.state import ADOPTED, ANEW, Numbers, Reset, TableState
from lakewriter.records.sync_records import SyncState
from lakewriter.report import format_count

KEPT_RESETS: Final = 20
"""The most changes by hand that a state names."""


def add_reset(state: TableState, at: datetime, what: str, reason: str, **more: str) -> tuple[Reset, ...]:
    """Add a change by hand to the last ones. The number of changes says which came before it; compactions, which change
    nothing that a load leaves, do not count."""
    return (*state.resets, Reset(at=at, what=what, reason=reason, committed=state.changes, **more))[-KEPT_RESETS:]


@dataclass(frozen=True)
class ByHand(Step):
    """A person changes the state for a reason, which it keeps; ``at`` is by the store's clock, as commits are."""

    at: datetime
    reason: str

    successions: ClassVar[Successions] = UNLESS_PENDING

    def _apply(self, state: TableState) -> TableState:
        what, fields = self._change(state)
        return set_fields(state, resets=add_reset(state, self.at, what, self.reason, **self._note()), **fields)

    def _note(self) -> dict[str, str]:
        """Return the fields of the reset that this kind of change alone has."""
        return {}

    @abstractmethod
    def _change(self, state: TableState) -> tuple[str, dict[str, Any]]:
        """Say what is changed, and return the fields with their new values."""


@dataclass(frozen=True)
class Note(ByHand):
    """A person gives up a change: a process that has read the state before can do nothing more with it."""

    what: str

    successions: ClassVar[Successions] = ANYWHERE

    def _change(self, state: TableState) -> tuple[str, dict[str, Any]]:
        return self.what, {}


@dataclass(frozen=True)
class SetCursor(ByHand):
    """The cursor is set, or taken away; attempts that are running can no longer commit.

    Without a cursor a stream of messages begins anew: its source is not given the state that the stream was at.
    """

    cursor: Cursor | None

    def _change(self, state: TableState) -> tuple[str, dict[str, Any]]:
        shown = "cursor taken away" if self.cursor is None else f"cursor set to {self.cursor.text}"
        sync = state.sync if self.cursor is not None else _forget_source(state.sync)
        what = f"{shown}, was {state.cursor.text if state.cursor else 'none'}"
        return what, {"cursor": self.cursor, "running": {}, "sync": sync}

    def _note(self) -> dict[str, str]:
        return {"cursor": self.cursor.text} if self.cursor is not None else {}


def _forget_source(sync: SyncState) -> SyncState:
    """Return the syncs without the source's state: the next one reads the stream from its beginning."""
    if not sync.sync_id:
        return sync
    return sync.model_copy(update={"source": None, "unfinished": False, "begins_anew": True})


@dataclass(frozen=True)
class CountAsRead(ByHand):
    """The files in ``parts`` count as read, or with None those that the record names; attempts that are running can no
    longer commit."""

    parts: tuple[InputPart, ...] | None

    def _change(self, state: TableState) -> tuple[str, dict[str, Any]]:
        noted = (state.inputs or Inputs(committed=0)) if self.parts is None else Inputs(committed=0, parts=self.parts)
        inputs = noted.model_copy(update={"committed": state.committed})
        return f"files that count as read: {noted.count_files():,}", {"inputs": inputs, "running": {}}


@dataclass(frozen=True)
class ChangeOver(ByHand):
    """A stream may go on after plain loads, or plain loads after a stream."""

    def _change(self, state: TableState) -> tuple[str, dict[str, Any]]:
        what = f"changed between single loads and a continuous run, with {format_count(state.committed, 'load')}"
        # Rule reset-ends-attempts
        return what, {"batch": Batch(ADOPTED, state.changes), "running": {}}


@dataclass(frozen=True)
class AdoptSyncs(ByHand):
    """The syncs of a stream continue those of another writer, whose ``objects`` it has, in words."""

    objects: str
    generation_id: int
    sync_id: int

    def _change(self, state: TableState) -> tuple[str, dict[str, Any]]:
        generation_id = max(state.sync.generation_id, self.generation_id)
        sync_id = max(state.sync.sync_id, self.sync_id)
        sync = state.sync.model_copy(update={"generation_id": generation_id, "sync_id": sync_id})
        what = f"adopted {self.objects} up to generation {generation_id} and sync {sync_id}"
        return what, {"sync": sync, "adopted": self.at}


@dataclass(frozen=True)
class AdoptFiles(ByHand):
    """A table's loads continue after another writer's ``files``, in words: they number files above ``numbers``, and
    read rows above ``cursor``. ``id`` is the state's, where it has none."""

    files: str
    numbers: Numbers
    cursor: Cursor | None
    id: str

    def _change(self, state: TableState) -> tuple[str, dict[str, Any]]:
        read = f"rows above {self.cursor.text}" if self.cursor is not None else "all rows"
        return f"adopted {self.files}; the next load reads {read}", {
            "id": state.id or self.id,
            "backfill": max(state.backfill, self.numbers.backfill),
            "counter": max(state.counter, self.numbers.counter),
            "cursor": self.cursor or state.cursor,
            "adopted": self.at,
            # Rule adopt-ends-attempts
            "running": {},
        }


@dataclass(frozen=True)
class BeginBackfill(ByHand):
    """A backfill begins, with the next number above ``left``: the next load reads everything into its folder."""

    left: int

    def _change(self, state: TableState) -> tuple[str, dict[str, Any]]:
        number = max(state.backfill, self.left) + 1
        return f"backfill {number} begun", {
            "backfill": number,
            "cursor": None,
            "batch": Batch(ANEW, state.changes),
            "running": {},
            "inferred": None,
            "inputs": state.inputs and Inputs(committed=state.committed),
            # The files of the backfill lie in a folder of their own, so earlier names do not bind them.
            "names": None if state.names is None else (),
            "types": None if state.types is None else (),
            "sync": _forget_source(state.sync),
        }
