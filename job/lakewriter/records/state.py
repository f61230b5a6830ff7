"""Define a table's state: what is committed, who may commit, what is pending. ``fold`` concludes the next one."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

from pydantic import Field

from lakewriter.control_object import ControlObject, sparse
from lakewriter.receipt import Batch, Cursor, DeletedKeys, GivenName, InferredColumn, InferredType, Origin
from lakewriter.records.input_records import Inputs
from lakewriter.records.sync_records import SyncState
from lakewriter.report import DeletedRows

LOADED_AGAIN: Final = "loaded again"
"""The reason in the entry of a load that another one repeats in this table."""

SWEPT_EVERY: Final = timedelta(days=1)
"""How often the control objects of old loads are deleted."""

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

    One that is ``prepared`` is not past it yet: it is bound together with those of other tables, by the decision of
    their ``group``.
    """

    job_id: str
    attempt: str
    phase: Phase
    since: datetime
    failure: Failure | None = None
    group: str = sparse("")

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
    generation: int | None = sparse(None)


class Generation(ControlObject):
    """A full refresh that can be shown to readers: its load, and the number that its folder is named by. ``inputs`` are
    the files that loads had read before it, ``types`` those that their values had given: both count again once it is
    undone. A state names the files, so that they are not cleared away."""

    number: int
    job_id: str
    attempt: str
    started: datetime
    inputs: Inputs | None = sparse(None)
    types: tuple[InferredType, ...] | None = sparse(None)


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
    """A change made by hand, kept with its reason.

    committed  how many changes were committed by then, compactions left out
    cursor     the text of the cursor that it has set
    ended      the job id of the change that it has ended without its intent
    """

    at: datetime
    what: str
    reason: str
    committed: int
    cursor: str | None = sparse(None)
    ended: str | None = sparse(None)


class Numbers(NamedTuple):
    """The highest numbers that keys have: backfill and full refresh, and the counter of the next file; 0 for none."""

    backfill: int = 0
    counter: int = 0
    generation: int = 0


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
    given_up      how many of the committed changes are none: their numbers were used up by what was given up
    deletes       the share of rows that files with deletes delete, as of the last change; None where there are none
    deleted_keys  the keys that merges have deleted, None where no key keeps older rows out
    adopted   when a person last took over another writer's files: those that are no newer belong to the table
    partitions    partitions that undos have dropped lately: calls that drop or add one have no condition
    """

    version: Literal[1] = 1
    id: str = sparse("")
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
    inferred: tuple[InferredColumn, ...] | None = sparse(None)
    names: tuple[GivenName, ...] | None = sparse(None)
    types: tuple[InferredType, ...] | None = sparse(None)
    origin: Origin | None = sparse(None)
    needs: tuple[str, ...] = sparse(())
    undone: tuple[Undone, ...] = sparse(())
    retiring: tuple[Retiring, ...] = sparse(())
    generation: int = sparse(0)
    generations: tuple[Generation, ...] = sparse(())
    inputs: Inputs | None = sparse(None)
    compactions: int = sparse(0)
    given_up: int = sparse(0)
    deletes: DeletedRows | None = sparse(None)
    deleted_keys: DeletedKeys | None = sparse(None)
    partitions: tuple[DroppedPartition, ...] = sparse(())
    adopted: datetime | None = sparse(None)

    @property
    def changes(self) -> int:
        """The number of committed changes that loads depend on: compactions are none."""
        return self.committed - self.compactions - self.given_up

    @property
    def is_loaded(self) -> bool:
        """Return whether a change of the table was ever committed. Its number may be used up without one."""
        return self.committed > self.given_up

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
        moves = [reset.cursor for reset in self.resets if reset.cursor is not None]
        return bool(moves) and self.cursor is not None and moves[-1] == self.cursor.text

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
        return join_types(self.types, [column.model_copy(update={"load": job_id}) for column in inferred])

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

    def is_sweep_due(self, now: datetime) -> bool:
        """Return whether it is time to sweep again; a sweep in the future was noted by a clock that was wrong."""
        return self.swept is None or abs(now - self.swept) >= SWEPT_EVERY

    def is_registered(self, job_id: str, attempt: str) -> bool:
        """Return whether this attempt is the one of its job that may bind."""
        entry = self.running.get(job_id)
        return entry is not None and entry.attempt == attempt

    def is_bound(self, job_id: str, attempt: str) -> bool:
        """Return whether the intent of this attempt is pending."""
        pending = self.pending
        return pending is not None and (pending.job_id, pending.attempt) == (job_id, attempt)

    def list_running_except(self, job_id: str) -> dict[str, Running]:
        """Return ``running`` without one job."""
        return {job: entry for job, entry in self.running.items() if job != job_id}


def join_types(before: Iterable[InferredType] | None, later: Iterable[InferredType]) -> tuple[InferredType, ...]:
    """Return the types of a table's columns once ``later`` loads have given some, too."""
    types = {column.name: column for column in before or ()}
    for column in later:
        there = types.get(column.name)
        # Rule types-kept
        types[column.name] = column if there is None else there.join(column)
    return tuple(types.values())


Follows = Literal["grows", "stays", "source", "files"]
"""What a field of a state does when a load is undone: it is at least what it was after the load (``grows``); it is what
it was after the load (``stays``); or it is what it was before the load, since it follows the ``source`` or the
``files``."""

FIELDS: Final[Mapping[str, Follows]] = {
    **dict.fromkeys(("version", "id", "running", "pending", "batch", "inferred", "names", "origin"), "stays"),
    **dict.fromkeys(("write", "committed", "last_commit", "last_job", "counter", "backfill", "resets"), "grows"),
    **dict.fromkeys(("swept", "needs", "undone", "generation", "compactions", "given_up"), "grows"),
    **dict.fromkeys(("partitions", "adopted"), "grows"),
    **dict.fromkeys(("sync.sync_id", "sync.generation_id"), "grows"),
    **dict.fromkeys(("cursor", "inputs", "sync.source", "sync.unfinished", "sync.begins_anew"), "source"),
    **dict.fromkeys(("generations", "retiring", "deletes", "deleted_keys", "types", "sync.live"), "files"),
}
"""The class of each field of a state; a new field has to have one. ``fold`` keeps to them."""
