"""state.json of one table: what is committed, who may commit, what is pending; moved by conditional writes only."""

import json
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, Literal

from pydantic import Field

from lakewriter.commit.backoff import write
from lakewriter.commit.generations import SyncState
from lakewriter.commit.store import Store, Unclear
from lakewriter.control_object import ControlObject, is_empty, is_none, parse
from lakewriter.errors import StateLostError
from lakewriter.receipt import Batch, Cursor, InferredColumn

REBUILD: Final = (
    "Restore the object from its bucket's versions; or conclude it from what the loads have left: "
    "lakewriter rebuild LAKE TABLE --reason WHY."
)

Phase = Literal["intended", "uploaded", "aborting"]


class Lost(Exception):  # noqa: N818 - it is a verdict on one attempt, told apart by its caller
    """The move is not allowed any more: another attempt came first, or this one was fenced."""


class Running(ControlObject):
    """The one attempt of an unfinished job that may bind an intent; ``first`` is when its earliest one began."""

    attempt: str
    since: datetime
    first: datetime | None = None


class Failure(ControlObject):
    """Why an intent is withdrawn: an error's code, message and remedy."""

    code: str
    message: str
    remedy: str = ""


class Pending(ControlObject):
    """The intent that is past its point of no return; ``failure`` says why it is ``aborting``."""

    job_id: str
    attempt: str
    phase: Phase
    since: datetime
    failure: Failure | None = None

    def is_same(self, other: "Pending | None") -> bool:
        """Whether ``other`` is this intent, in whatever phase."""
        return other is not None and (self.job_id, self.attempt) == (other.job_id, other.attempt)


class Reset(ControlObject):
    """A change made by hand, kept with its reason."""

    at: datetime
    what: str
    reason: str


class TableState(ControlObject):
    """``write`` grows with every replacement, so that no two contents and no two etags are equal.

    ``counter`` is that of the next file and never goes back, ``backfill`` the number of times all was loaded
    anew, ``batch`` the last one of a continuous run, ``inferred`` the columns that documents without a schema have
    given the table, None where it has had none.
    """

    version: Literal[1] = 1
    write: int = 0
    committed: int = 0
    last_commit: datetime | None = None
    last_job: str | None = None
    cursor: Cursor | None = None
    running: Mapping[str, Running] = Field(default_factory=dict)
    pending: Pending | None = None
    counter: int = 0
    backfill: int = 0
    batch: Batch | None = None
    resets: tuple[Reset, ...] = ()
    swept: datetime | None = None
    sync: SyncState = SyncState()
    inferred: tuple[InferredColumn, ...] | None = Field(None, exclude_if=is_none)
    needs: tuple[str, ...] = Field((), exclude_if=is_empty)

    def is_registered(self, job_id: str, attempt: str) -> bool:
        """Whether this attempt is the one of its job that may bind."""
        entry = self.running.get(job_id)
        return entry is not None and entry.attempt == attempt

    def list_running_except(self, job_id: str) -> dict[str, Running]:
        """``running`` less one job."""
        return {job: entry for job, entry in self.running.items() if job != job_id}

    def replace(self, **changes: Any) -> "TableState":
        """A copy with ``changes``."""
        return self.model_copy(update=changes)


def is_blank(body: bytes) -> bool:
    """Whether a state's content says nothing: it is empty, no JSON object, or lacks what every state has."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return True
    return not isinstance(content, dict) or not {"version", "write", "committed"} <= content.keys()


class StateFile:
    """The state of one table in a store. ``pause`` is ``time.sleep``, or what a test puts in its place.

    ``find_trace`` is asked where there is no state: the key of something that only a table with a state can have.
    """

    def __init__(
        self,
        store: Store,
        key: str,
        *,
        pause: Callable[[float], None] = time.sleep,
        find_trace: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._store = store
        self._key = key
        self._pause = pause
        self._find_trace = find_trace
        self._is_new = False
        self._seen: tuple[TableState, str | None] | None = None

    def read(self) -> TableState:
        """The state as it is now; a table never loaded has the empty one."""
        return self._look()[0]

    def recall(self) -> TableState:
        """The state as last seen or written here; read where it is not known."""
        return (self._seen or self._look())[0]

    def move(
        self, change: Callable[[TableState], TableState], done: Callable[[TableState], bool] = lambda _: False
    ) -> TableState:
        """The state after ``change``, or the first one seen that is ``done`` already.

        ``change`` raises ``Lost`` where it is not allowed. The first try goes by the state last seen, and after every
        answer but a clear yes the state is read again; ``CommitUnknownError`` when no clear answer comes.
        """

        def step() -> TableState | None:
            remembered = self._seen is not None
            try:
                return self._try_move(change, done)
            except Lost:
                self._seen = None
                if not remembered:
                    raise
                return self._try_move(change, done)

        return write(self._key, step, self._pause)

    def _try_move(
        self, change: Callable[[TableState], TableState], done: Callable[[TableState], bool]
    ) -> TableState | None:
        seen, etag = self._seen or self._look()
        if done(seen):
            return seen
        new = change(seen).replace(write=seen.write + 1)
        return new if self._try_write(new, etag) else None

    def _look(self) -> tuple[TableState, str | None]:
        content = self._store.get(self._key) or self._confirm_absence()
        self._is_new = content is None
        self._seen = (self._parse(content[0]), content[1]) if content else (TableState(), None)
        return self._seen

    def _confirm_absence(self) -> tuple[bytes, str] | None:
        """``STATE_LOST`` where a state that is not there must have been: a load would begin from nothing."""
        trace = None if self._is_new else self._find_trace()
        if trace is None:
            return None
        # Another load may have created the state, and left that trace, since it was not there.
        content = self._store.get(self._key)
        if content is None:
            raise StateLostError(
                f"{self._key} is not there, and {trace} is of a table that was loaded.", remedy=REBUILD
            )
        return content

    def _try_write(self, new: TableState, etag: str | None) -> bool:
        self._seen = None
        try:
            written = self._write(new, etag)
        except Unclear:
            return False
        if written:
            self._seen, self._is_new = (new, written), False
        return written is not None

    def _write(self, state: TableState, etag: str | None) -> str | None:
        body = state.model_dump_json(indent=1).encode()
        return self._store.create(self._key, body) if etag is None else self._store.replace(self._key, body, etag)

    def _parse(self, body: bytes) -> TableState:
        if is_blank(body):
            raise StateLostError(f"{self._key} holds no state: {body[:80]!r}.", remedy=REBUILD)
        return parse(TableState, self._key, body)
