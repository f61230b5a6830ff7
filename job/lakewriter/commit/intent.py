"""All that is needed to publish one table of one load, or to withdraw it, without the lake.yaml it came from."""

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, PrivateAttr, field_validator

from lakewriter.commit.actions import CatalogAction, FilesAction, GlueAction, dump_part
from lakewriter.commit.input_records import InputsIntent
from lakewriter.commit.sync_records import SourceState, SyncIntent
from lakewriter.control_object import (
    LASTING,
    RECEIPT_PARTS,
    ControlObject,
    is_empty,
    is_false,
    is_none,
    is_zero,
    parse,
)
from lakewriter.errors import PendingUnrecoverableError
from lakewriter.naming import QUARANTINE
from lakewriter.receipt import (
    Batch,
    Cursor,
    DeletedKeys,
    GivenName,
    InferredColumn,
    InferredType,
    Origin,
    Receipt,
    ReceiptPart,
    SetAside,
    Verdict,
)
from lakewriter.receipts.parts import Read, Receipts
from lakewriter.report import COUNTS, Counts, TableHealth, TableReport
from lakewriter.spec.access import Access, KeyNames

Kind = Literal["load", "merge", "refresh", "undo", "compact"]
"""What an intent may do to its table; each kind is a class in ``changes.py``."""


class IntentAccess(Access):
    """The destination of lake.yaml, as an intent stores it: unknown fields of later releases are kept."""

    model_config = ConfigDict(extra="allow")


class Removal(ControlObject):
    """An object to delete, unless it was replaced since it had this etag."""

    key: str
    etag: str


class Quarantine(ControlObject):
    """The files with the rows that a load keeps out of its table. They belong to a table of their own, ``catalog``, and
    are published together with the load or not at all. Many ``receipts`` are in ``parts``. A replay ``takes`` the files
    whose rows it loads: they are deleted once it is published."""

    catalog: Annotated[FilesAction | GlueAction, Field(discriminator="kind")]
    receipts: tuple[Receipt, ...] = ()
    parts: tuple[ReceiptPart, ...] = Field((), exclude_if=is_empty)
    takes: tuple[Removal, ...] = Field((), exclude_if=is_empty)


class Before(ControlObject):
    """Fields of a table's state that a load moves and an undo sets back, as they were when the load began."""

    source: SourceState | None = None
    unfinished: bool = Field(False, exclude_if=is_false)
    begins_anew: bool = Field(False, exclude_if=is_false)
    deleted_keys: DeletedKeys | None = Field(None, exclude_if=is_none)
    knows_inputs: bool = Field(False, exclude_if=is_false)
    """Whether no load had read files that the state does not name."""


class UndoneLoad(ControlObject):
    """The load that an undo takes back, and what becomes of its table.

    files, rows      what leaves the table
    next             the job id that loads the rows again
    drops_partition  whether the load is alone in its Glue partition, which is dropped before the objects are deleted
    grace_seconds    for how long queries that began before that may still read the objects
    restores_cursor  whether the table's cursor becomes the intent's ``cursor_after``, None included
    restores_source  whether the source's state becomes that of ``before``
    restores_keys    whether the deleted keys become those of ``before``: it has merged rows, or replaced them all
    restores_inputs  whether the record of files that were read lacks no load once this one is undone
    column           the tracking column with the job id: its rows are deleted from files that were rewritten since
    snapshot_before  the id of the Iceberg snapshot that becomes the current one again, of a full refresh
    is_absent        whether its Iceberg snapshot had been rolled back already, so that the table has none of its rows
    """

    job_id: str
    attempt: str
    files: int
    rows: int
    reason: str
    next: str
    drops_partition: bool = False
    grace_seconds: float = 0.0
    restores_cursor: bool = False
    restores_source: bool = False
    restores_keys: bool = Field(False, exclude_if=is_false)
    before: Before | None = Field(None, exclude_if=is_none)
    restores_inputs: bool = Field(False, exclude_if=is_false)
    column: str | None = None
    snapshot_before: int | None = Field(None, exclude_if=is_none)
    is_absent: bool = Field(False, exclude_if=is_false)
    locations: tuple[str, ...] = ()
    """The URIs of the files, in an Iceberg table, whose objects stay for its older snapshots."""
    quarantined: tuple[Removal, ...] = Field((), exclude_if=is_empty)
    """The files with its bad rows."""


class Switch(ControlObject):
    """The numbers of the generations of files that a table's readers leave and see next; 0 is the empty one.

    keep_seconds     for how long the files of ``before`` are kept
    job_id, attempt  the refresh whose files are ``after``, in an undo
    latest           the key of the object that names the files which readers are to read; None in Iceberg
    """

    before: int
    after: int
    latest: str | None = None
    keep_seconds: float = 0.0
    job_id: str | None = None
    attempt: str | None = None


class MergeIntent(ControlObject):
    """The columns, by their written names, by which a load's rows replace the table's rows of the same key.

    deleted          the column that is true for a row that deletes; None where no row does
    keeps_deleted    whether such a row takes the place of the table's, and is read
    deleted_keys     the object that the load creates with the keys that were deleted, for later loads; None for none
    deleted_seconds  for how long these keep older rows out, from the load's start on
    deleted_before   the object of the load before it
    compared         the columns that decide between rows of the load with the same key and order. None where these rows
                     are in the order of the files that they were read from: then the last one stays
    """

    keys: tuple[str, ...]
    order_by: tuple[str, ...]
    deleted: str | None = None
    keeps_deleted: bool = False
    deleted_keys: str | None = Field(None, exclude_if=is_none)
    deleted_seconds: float = Field(0.0, exclude_if=is_zero)
    deleted_before: DeletedKeys | None = Field(None, exclude_if=is_none)
    compared: tuple[str, ...] | None = Field(None, exclude_if=is_none)


class CompactedGroup(ControlObject):
    """Files of an Iceberg table that are replaced together, or not at all. Their rows are in the receipts whose
    ``partition`` is the group's number.

    removes   the URIs of the data files
    deletes   the URIs of the files with deletes that are already applied to these rows
    """

    removes: tuple[str, ...]
    deletes: tuple[str, ...] = ()


class CompactIntent(ControlObject):
    """The files that a compaction replaces. ``snapshot`` is the id of the snapshot that it has read, ``sequence`` its
    sequence number."""

    snapshot: int
    sequence: int
    groups: tuple[CompactedGroup, ...]


def is_load(kind: str) -> bool:
    """Return whether the kind is a load, so that its field is left out."""
    return kind == "load"


class Intent(ControlObject):
    """One change of one table. It is bound when ``state.json`` is replaced and names it as pending.

    Its ``kind`` is a load, which adds the files of its receipts; a refresh, whose files are all that the table has
    after it; or an undo, which takes what ``undoes`` names out of the table and deletes the objects in ``removes``. A
    refresh, and the undo of one, ``switch`` the table's generation; with ``keeps_partitions`` a refresh replaces only
    those partitions of an Iceberg table that it has files in. ``merge`` says how a load of that kind merges its rows,
    ``compact`` which files a compaction replaces. ``repeats`` are the job ids that a load after an undo repeats.

    ``inferred`` are the table's columns after the load, for documents without a schema; ``names`` are those that the
    load's columns have in their source, None where the table keeps none; ``types`` are those that the values of files
    have given them. ``origin`` is the source table, where the table keeps it. A load of few files has their
    ``receipts``; for many files, ``parts`` name the objects that have the receipts. ``files`` are all receipts of both.
    ``needs`` names features that a release must know to finish the load.
    """

    version: Literal[1] = 1
    kind: Kind = Field("load", exclude_if=is_load)
    pipeline: str
    job_id: str
    attempt: str
    table_id: str
    schema_name: str
    table: str
    started: datetime
    access: IntentAccess
    catalog: CatalogAction
    receipts: tuple[Receipt, ...]
    cursor_before: Cursor | None
    cursor_after: Cursor | None
    feed: str
    staged_seconds: float
    counter_after: int | None = None
    batch: Batch | None = None
    notes: tuple[str, ...] = ()
    sync: SyncIntent | None = None
    inferred: tuple[InferredColumn, ...] | None = Field(None, exclude_if=is_none)
    names: tuple[GivenName, ...] | None = Field(None, exclude_if=is_none)
    types: tuple[InferredType, ...] | None = Field(None, exclude_if=is_none)
    origin: Origin | None = Field(None, exclude_if=is_none)
    set_aside: SetAside | None = Field(None, exclude_if=is_none)
    parts: tuple[ReceiptPart, ...] = Field((), exclude_if=is_empty)
    needs: tuple[str, ...] = Field((), exclude_if=is_empty)
    undoes: UndoneLoad | None = Field(None, exclude_if=is_none)
    removes: tuple[Removal, ...] = Field((), exclude_if=is_empty)
    repeats: tuple[str, ...] = Field((), exclude_if=is_empty)
    expectations: tuple[Verdict, ...] = Field((), exclude_if=is_empty)
    switch: Switch | None = Field(None, exclude_if=is_none)
    keeps_partitions: bool = Field(False, exclude_if=is_false)
    merge: MergeIntent | None = Field(None, exclude_if=is_none)
    compact: CompactIntent | None = Field(None, exclude_if=is_none)
    together: bool = Field(False, exclude_if=is_false)
    """Whether it is bound together with the attempt's intents for other tables, or not at all."""
    before: Before | None = Field(None, exclude_if=is_none)
    """What an undo of the load sets back."""
    quarantine: Quarantine | None = Field(None, exclude_if=is_none)
    inputs: InputsIntent | None = Field(None, exclude_if=is_none)
    adopted: datetime | None = Field(None, exclude_if=is_none)
    """The state's ``adopted`` when the load was planned: a state that is lost is rebuilt with it."""

    _read: Read | None = PrivateAttr(default=None)
    _access = field_validator("access", mode="before")(dump_part)

    def with_key_names(self, key_names: KeyNames) -> "Intent":
        """Return the intent with the names that today's lake.yaml gives the keys in messages."""
        return self.model_copy(update={"access": self.access.model_copy(update={"key_names": key_names})})

    @property
    def load(self) -> str:
        """The value of the objects' load metadata."""
        return f"{self.pipeline}/{self.job_id}/{self.attempt}"

    @property
    def depends_on_state(self) -> bool:
        """True if the load is valid only on the state that it was planned on: it depends on a cursor, a counter, the
        batch before, a sync, inferred columns, files that were read, or bad rows that it takes."""
        if self.taken or (self.inputs is not None and self.inputs.exclusive):
            return True
        goes_by = (self.cursor_after, self.counter_after, self.batch, self.inferred)
        return any(dependence is not None for dependence in goes_by) or (self.sync is not None and self.sync.exclusive)

    @property
    def lasting_needs(self) -> tuple[str, ...]:
        """The needs that the table's state has once the change is closed."""
        return tuple(need for need in self.needs if need in LASTING)

    @property
    def files(self) -> Receipts:
        """The receipts of all files: the intent's own, and those in parts, which each iteration reads anew."""
        lost = f"; or end the load without it: lakewriter abandon LAKE {self.job_id} --intent-lost --reason TEXT"
        return Receipts(self.receipts, self.parts, self._read, lost)

    def list_staged(self) -> Iterator[Receipt]:
        """Yield the receipts of all that is staged, bad rows included; those of parts without statistics."""
        yield from self.files.without_statistics()
        if (quarantined := self.of_quarantine) is not None:
            yield from quarantined.files.without_statistics()

    @property
    def taken(self) -> tuple[Removal, ...]:
        """The files of the quarantine whose rows it loads."""
        return self.quarantine.takes if self.quarantine is not None else ()

    @property
    def of_quarantine(self) -> "Intent | None":
        """The same change of the quarantine's table, whose files are those with the bad rows; None without any."""
        if self.quarantine is None or not (self.quarantine.receipts or self.quarantine.parts):
            return None
        changed = {
            "kind": "load",
            "table": f"{self.table}{QUARANTINE}",
            "quarantine": None,
            "switch": None,
            "sync": None,
            "merge": None,
        }
        files = {"receipts": self.quarantine.receipts, "parts": self.quarantine.parts}
        return self.model_copy(update=changed | files | {"catalog": self.quarantine.catalog})

    def reading_by(self, read: Read) -> "Intent":
        """Return the intent with ``read`` as the reader of its parts, if it has parts."""
        if not self.parts and self.quarantine is None and self.merge is None:
            return self
        intent = self.model_copy()
        intent._read = read
        return intent

    def read_deleted_before(self) -> bytes | None:
        """Return the object with the keys that were deleted before a merge, None where it names none;
        ``PENDING_UNRECOVERABLE`` where it is gone."""
        before = self.merge.deleted_before if self.merge is not None else None
        if before is None:
            return None
        body = self._read(before.key) if self._read is not None else None
        # Rule deleted-keys-gone
        if body is None:
            raise PendingUnrecoverableError(
                f"{before.key}, which has the keys that were deleted before load {self.job_id!r}, is gone.",
                remedy=(
                    "Restore the object from its bucket's versions, or give the load up: "
                    f"lakewriter abandon LAKE {self.job_id} --reason TEXT"
                ),
            )
        return body

    def leave_out(self, groups: Collection[int]) -> "Intent":
        """Return a compaction without the files of ``groups`` that were not replaced."""
        left = tuple(receipt for receipt in self.receipts if receipt.partition not in groups)
        return self.model_copy(update={"receipts": left})

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return self.files.totals.rows

    def make_report(self, *notes: str, health: TableHealth | None = None, counts: Counts | None = None) -> TableReport:
        """Make the table's report for when this intent is closed; ``notes`` are added to the intent's own."""
        dropped, of_kind = counts.list_dropped() if counts is not None else (), COUNTS.get(self.kind)
        published = self.leave_out(dropped) if dropped else self
        totals = published.files.totals
        notes = notes if counts is None else (counts.describe(), *notes)
        if health is not None and health.deletes is not None:
            notes = (*notes, health.deletes.describe())
        return TableReport(
            pipeline=self.pipeline,
            job_id=self.job_id,
            attempt=self.attempt,
            schema_name=self.schema_name,
            table=self.table,
            started=self.started,
            rows=totals.rows if of_kind is None or of_kind.are_of_loaded else 0,
            files=totals.files,
            bytes=totals.bytes,
            keys=tuple(receipt.key for receipt in published.receipts),
            feed=self.feed,
            engine=", ".join(totals.engines),
            cursor_before=self.cursor_before,
            cursor_after=self.cursor_after,
            cursor_nulls=totals.cursor_nulls,
            staged_seconds=self.staged_seconds,
            small_files=totals.small_files,
            notes=(*self.notes, *notes),
            changes=totals.changes,
            change_samples=totals.change_samples,
            undeclared=totals.undeclared,
            **self._make_sync_fields(),
            health=health,
            set_aside=self.set_aside,
            parts=self.parts,
            needs=(RECEIPT_PARTS,) if self.parts else (),
            undoes=self.undoes.job_id if self.undoes is not None else None,
            expectations=self.expectations,
            **({} if of_kind is None else {of_kind.field: counts or of_kind()}),
            refreshes=self.kind == "refresh",
            repeated=self.inputs and self.inputs.repeated,
        )

    def _make_sync_fields(self) -> dict[str, Any]:
        if self.sync is None:
            return {}
        numbers = {"sync_id": self.sync.sync_id, "generation_id": self.sync.generation_id}
        return numbers | {"retired": len(self.sync.retire)}

    @classmethod
    def parse(cls, key: str, body: bytes) -> "Intent":
        """Parse the intent in ``body``; ``PENDING_UNRECOVERABLE`` where it cannot be read."""
        return parse(cls, key, body)
