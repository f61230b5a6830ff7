"""Read and replace state.json of one table: what is committed, who may commit, what is pending.

It is only ever replaced by conditional writes.
"""

import json
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, Literal, Protocol

from pydantic import Field

from lakewriter.commit.backoff import write
from lakewriter.commit.input_records import Inputs
from lakewriter.commit.store import Store, Unclear
from lakewriter.commit.sync_records import SyncState
from lakewriter.control_object import ControlObject, is_blank, is_empty, is_none, is_zero, parse
from lakewriter.errors import StateLostError
from lakewriter.receipt import Batch, Cursor, DeletedKeys, GivenName, InferredColumn, InferredType, Origin
from lakewriter.report import DeletedRows

REBUILD: Final = (
    "Restore the object from its bucket's versions; or conclude it from what the loads have left: "
    "lakewriter rebuild LAKE TABLE --reason WHY."
)

CURSOR_SET: Final = "cursor set to "
"""Begins the entry of a cursor that a person has set; ``{its text}, was {the text before}`` follows."""

LOADED_AGAIN: Final = "loaded again"
"""The reason in the entry of a load that another one repeats in this table."""

Phase = Literal["prepared", "intended", "uploaded", "aborting"]


class GivenUp(Exception):  # noqa: N818 - as below
    """The change was given up before the catalog had it: no process can publish it any more."""


class Lost(Exception):  # noqa: N818 - an answer that its caller handles, not yet an error
    """The state transition is no longer valid: another attempt won, or this one was superseded."""


class Running(ControlObject):
    """The one attempt of an unfinished job that may bind an intent; ``first`` is when the job's first attempt began."""

    attempt: str
    since: datetime
    first: datetime | None = None


class Failure(ControlObject):
    """Why an intent is withdrawn: an error's code, message and remedy."""

    code: str
    message: str
    remedy: str = ""


class Pending(ControlObject):
    """The intent that is past its point of no return; ``failure`` says why it is ``aborting``.

    One that is ``prepared`` is not past it yet: it is bound together with those of other tables, by their decision.
    """

    job_id: str
    attempt: str
    phase: Phase
    since: datetime
    failure: Failure | None = None

    def is_same(self, other: "Pending | None") -> bool:
        """Return whether ``other`` is this intent, in whatever phase."""
        return other is not None and (self.job_id, self.attempt) == (other.job_id, other.attempt)


class Undone(ControlObject):
    """A load that an undo has taken back, or that another one has replaced: its job id loads nothing again.

    ``by`` is the job id of the undo, or of the load that replaced it; ``next`` is the job id that loads its rows again.
    """

    job_id: str
    by: str
    at: datetime
    next: str
    reason: str


class Retiring(ControlObject):
    """A change whose removed objects new queries do not find. Running queries may still read them until ``not_before``.

    With a ``generation`` they are the objects of a refresh that another one has replaced.
    """

    job_id: str
    attempt: str
    not_before: datetime
    generation: int | None = Field(None, exclude_if=is_none)


class Generation(ControlObject):
    """A full refresh that can be shown to readers: its load, and the number that its folder is named by. ``inputs`` are
    the files that loads had read before it, which count again once it is undone; a state names them, so that they are
    not cleared away."""

    number: int
    job_id: str
    attempt: str
    started: datetime
    inputs: Inputs | None = Field(None, exclude_if=is_none)


class DroppedPartition(ControlObject):
    """A partition of a Glue table that an undo has dropped, and the last change since that dropped or added it.

    is_due   whether readers are to see the partition
    until    when no call of a process that was held up comes late any more
    """

    partition: str
    location: str
    job_id: str
    attempt: str
    is_due: bool
    until: datetime


class Reset(ControlObject):
    """A change made by hand, kept with its reason; ``committed`` is how many changes were committed by then,
    compactions left out, None where a release noted it that did not say so."""

    at: datetime
    what: str
    reason: str
    committed: int | None = Field(None, exclude_if=is_none)


ANEW: Final = "anew"
ADOPTED: Final = "adopted"
"""Values of a query's id in a state's ``batch`` after ``lakewriter reset``. On top of ``number`` changes, a
stream may begin (anew), or begin or continue (adopted). Either is valid until the next load commits."""


class TableState(ControlObject):
    """The content of ``state.json``.

    id        the attempt that first registered, for a table whose files an object names that says whose it is
    write     grows with every replacement, so that no two contents and no two etags are equal
    counter   the number of the next file; never decreases
    backfill  how often everything was loaded again
    batch     the last one of a continuous run
    inferred  the table's columns from documents without a schema, None where there were none
    names     the names that the table's columns have in their source, None where no load has kept them
    types     the types that the values of files have given the table's columns, None where no load has kept them
    origin    the source table whose rows the table holds, None where no load has kept it
    needs     features that a release must know to use the state
    undone    loads that were taken back, the last one last
    retiring  changes whose removed objects are still to be deleted
    generation   the number of the last full refresh; never decreases
    generations  the refreshes whose files are kept, the one that readers see last
    inputs    the files of the source that loads have read, None where no load noted them
    compactions   how many of the committed changes leave loads valid that began before them, as compactions do
    deletes       the share of rows that files with deletes delete, as of the last change; None where there are none
    deleted_keys  the keys that merges have deleted, None where no key keeps older rows out
    adopted   when a person last took over another writer's files: those that are no newer belong to the table
    partitions    partitions that undos have dropped lately: calls that drop or add one have no condition
    """

    version: Literal[1] = 1
    id: str = Field("", exclude_if=is_blank)
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
    names: tuple[GivenName, ...] | None = Field(None, exclude_if=is_none)
    types: tuple[InferredType, ...] | None = Field(None, exclude_if=is_none)
    origin: Origin | None = Field(None, exclude_if=is_none)
    needs: tuple[str, ...] = Field((), exclude_if=is_empty)
    undone: tuple[Undone, ...] = Field((), exclude_if=is_empty)
    retiring: tuple[Retiring, ...] = Field((), exclude_if=is_empty)
    generation: int = Field(0, exclude_if=is_zero)
    generations: tuple[Generation, ...] = Field((), exclude_if=is_empty)
    inputs: Inputs | None = Field(None, exclude_if=is_none)
    compactions: int = Field(0, exclude_if=is_zero)
    deletes: DeletedRows | None = Field(None, exclude_if=is_none)
    deleted_keys: DeletedKeys | None = Field(None, exclude_if=is_none)
    partitions: tuple[DroppedPartition, ...] = Field((), exclude_if=is_empty)
    adopted: datetime | None = Field(None, exclude_if=is_none)

    @property
    def changes(self) -> int:
        """The number of committed changes that loads depend on: compactions are none."""
        return self.committed - self.compactions

    @property
    def knows_inputs(self) -> bool:
        """Return whether no load of the table has read files that its record lacks."""
        return self.inputs is not None and self.inputs.committed == self.committed

    @property
    def last_batch(self) -> Batch | None:
        """The last batch of the stream that loads the table; None where no stream does, or one may begin."""
        return None if self.batch is None or self.batch.query in (ANEW, ADOPTED) else self.batch

    @property
    def shown(self) -> Generation | None:
        """The refresh that readers see; None where there was none, or all were taken back."""
        return self.generations[-1] if self.generations else None

    @property
    def is_cursor_by_hand(self) -> bool:
        """Return whether a person has set the cursor last, so that no load has moved it since."""
        moves = [reset.what for reset in self.resets if reset.what.startswith(CURSOR_SET)]
        return bool(moves) and self.cursor is not None and moves[-1].startswith(f"{CURSOR_SET}{self.cursor.text}, was ")

    def find_generation(self, number: int) -> Generation | None:
        """Return the refresh with this number, while its files exist."""
        return next((generation for generation in self.generations if generation.number == number), None)

    def find_undone(self, job_id: str) -> Undone | None:
        """Return the outcome of a load that was taken back; None for any other."""
        return next((load for load in self.undone if load.job_id == job_id), None)

    def add_names(self, given: tuple[GivenName, ...] | None) -> "tuple[GivenName, ...] | None":
        """Return the table's names after a load that has ``given`` some; all names that were given before stay."""
        if given is None:
            return self.names
        names, there = self.names or (), set(self.names or ())
        # Rule names-kept
        return (*names, *(name for name in given if name not in there))

    def accepts_names(self, given: tuple[GivenName, ...] | None, before: "TableState") -> bool:
        """Return whether a load whose names were chosen as of the state ``before`` may give them: no load that was
        committed since has given a column another name, or a name to another column.
        """
        planned = set(given or ())
        sources = {(name.within, name.source) for name in planned}
        written = {(name.within, name.name.lower()) for name in planned}
        new = set(self.names or ()) - planned - set(before.names or ())
        return not any(
            (name.within, name.source) in sources or (name.within, name.name.lower()) in written for name in new
        )

    def add_types(self, inferred: tuple[InferredType, ...] | None, job_id: str) -> "tuple[InferredType, ...] | None":
        """Return the types of the table's columns after the load ``job_id``, which has ``inferred`` some."""
        if inferred is None:
            return self.types
        types = {column.name: column for column in self.types or ()}
        for column in inferred:
            noted = column.model_copy(update={"load": job_id})
            before = types.get(column.name)
            # Rule types-kept
            types[column.name] = noted if before is None else before.join(noted)
        return tuple(types.values())

    def accepts_types(self, inferred: tuple[InferredType, ...] | None, before: "TableState") -> bool:
        """Return whether a load whose types were chosen as of the state ``before`` may give them: no load that was
        committed since has given one of its columns another type.
        """
        now = {column.name: column for column in self.types or ()}
        old = {column.name: column for column in before.types or ()}

        def is_accepted(column: InferredType) -> bool:
            there, expected = now.get(column.name), old.get(column.name)
            if there is None or column.is_same_type(there):
                return True
            return expected is not None and expected.is_same_type(there)

        return all(map(is_accepted, inferred or ()))

    def is_registered(self, job_id: str, attempt: str) -> bool:
        """Return whether this attempt is the one of its job that may bind."""
        entry = self.running.get(job_id)
        return entry is not None and entry.attempt == attempt

    def list_running_except(self, job_id: str) -> dict[str, Running]:
        """Return ``running`` without one job."""
        return {job: entry for job, entry in self.running.items() if job != job_id}

    def replace(self, **changes: Any) -> "TableState":
        """Return a copy with ``changes``."""
        return self.model_copy(update=changes)


def is_unusable(body: bytes) -> bool:
    """Return whether a state's content is unusable: empty, not a JSON object, or without the fields that every state
    has.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return True
    return not isinstance(content, dict) or not {"version", "write", "committed"} <= content.keys()


Follows = Literal["grows", "stays", "source", "files"]
"""What a field of a state does when a load is undone: it is at least what it was after the load (``grows``); it is what
it was after the load (``stays``); or it is what it was before the load, since it follows the ``source`` or the
``files``."""

FIELDS: Final[Mapping[str, Follows]] = {
    **dict.fromkeys(("version", "id", "running", "pending", "batch", "inferred", "names", "origin"), "stays"),
    **dict.fromkeys(("write", "committed", "last_commit", "last_job", "counter", "backfill", "resets"), "grows"),
    **dict.fromkeys(("swept", "needs", "undone", "generation", "compactions", "partitions", "adopted"), "grows"),
    **dict.fromkeys(("sync.sync_id", "sync.generation_id"), "grows"),
    **dict.fromkeys(("cursor", "inputs", "sync.source", "sync.unfinished", "sync.begins_anew"), "source"),
    **dict.fromkeys(("generations", "retiring", "deletes", "deleted_keys", "types", "sync.live"), "files"),
}
"""The class of each field of a state; a new field has to have one. ``changes.Undo`` keeps to them."""


class FindTrace(Protocol):
    """Finds a key that exists only if the table had a state."""

    def __call__(self, *, anew: bool) -> str | None: ...


class StateFile:
    """The state of one table in a store. ``pause`` is ``time.sleep``, or what a test puts in its place.

    ``find_trace`` is called where there is no state: it returns a key that exists only if the table had a state. It has
    to list ``anew`` where the state was seen before.
    """

    def __init__(
        self,
        store: Store,
        key: str,
        *,
        pause: Callable[[float], None] = time.sleep,
        find_trace: FindTrace = lambda *, anew: None,
    ) -> None:
        self._store = store
        self._key = key
        self._pause = pause
        self._find_trace = find_trace
        self._is_new = self._was_there = False
        self._seen: tuple[TableState, str | None] | None = None

    @property
    def seen(self) -> tuple[TableState, str | None] | None:
        """The state as this process last read or wrote it, with its etag; None where neither was done."""
        return self._seen

    def read(self) -> TableState:
        """Read the state from the store; the empty one for a table that was never loaded. ``STATE_LOST`` where a
        state must have been there."""
        return self._look()[0]

    def recall(self) -> TableState:
        """Return the state as this process last read or wrote it; read it where neither was done."""
        return (self._seen or self._look())[0]

    def move(
        self, change: Callable[[TableState], TableState], done: Callable[[TableState], bool] = lambda _: False
    ) -> TableState:
        """Replace the state by what ``change`` returns, and return that; or return a state that is ``done`` already.

        ``change`` raises ``Lost`` where the transition is not valid. The first try uses the state as last seen; after
        every answer but a clear success the state is read again. ``COMMIT_UNKNOWN`` when no clear answer comes.
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
        # Rule write-grows
        new = change(seen).replace(write=seen.write + 1)
        return new if self._try_write(new, etag) else None

    def _look(self) -> tuple[TableState, str | None]:
        content = self._store.get(self._key) or self._confirm_absence()
        self._is_new, self._was_there = content is None, self._was_there or content is not None
        self._seen = (self._parse(content[0]), content[1]) if content else (TableState(), None)
        return self._seen

    def _confirm_absence(self) -> tuple[bytes, str] | None:
        """Raise ``STATE_LOST`` where there is no state and there must have been one; return a state created since."""
        trace = None if self._is_new else self._find_trace(anew=self._was_there)
        if trace is None:
            return None
        # Another load may have created the state, and left that trace, since the state was read.
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
            self._seen, self._is_new, self._was_there = (new, written), False, True
        return written is not None

    def _write(self, state: TableState, etag: str | None) -> str | None:
        body = state.model_dump_json(indent=1).encode()
        return self._store.create(self._key, body) if etag is None else self._store.replace(self._key, body, etag)

    def _parse(self, body: bytes) -> TableState:
        if is_unusable(body):
            raise StateLostError(f"{self._key} holds no state: {body[:80]!r}.", remedy=REBUILD)
        return parse(TableState, self._key, body)
