"""The union of changes: each kind's intent, with its effects on its table and what it depends on until it is bound.

A catalog applies a change's ``Effects`` and asks for no kind. What a change leaves in the table's state is in
``fold.closing``. A new kind is a class here, a function there, and the module that plans it.
"""

from abc import abstractmethod
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Literal, Self

from pydantic import PrivateAttr, field_validator

from lakewriter.control_object import LASTING, RECEIPT_PARTS, ControlObject, parse_kind, sparse
from lakewriter.errors import PendingUnrecoverableError
from lakewriter.naming import QUARANTINE
from lakewriter.receipt import (
    Batch,
    Cursor,
    DeletedKeys,
    Floor,
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
from lakewriter.records.actions import CatalogAction, dump_part
from lakewriter.records.facets import (
    Before,
    CompactIntent,
    ExpireIntent,
    IntentAccess,
    MergeIntent,
    Quarantine,
    Removal,
    Switch,
    UndoneLoad,
)
from lakewriter.records.input_records import InputsIntent
from lakewriter.records.state import TableState
from lakewriter.records.sync_records import SyncIntent
from lakewriter.report import COUNTS, Counts, TableHealth, TableReport, join_first
from lakewriter.spec.access import KeyNames
from lakewriter.spec.load_ids import find_job_ids

Kind = Literal["load", "merge", "refresh", "replace_partitions", "undo", "compact", "expire"]

MOST_NAMED: Final = 100
"""Keys that a message names."""

Replaced = Literal["nothing", "partitions", "everything"]


@dataclass(frozen=True)
class Effects:
    """What a change does to its table.

    adds            whether the intent's files become the table's
    work            the part of the intent that says what else a catalog does; its type selects how. None where files
                    are only added to the table's files, or replace them
    writes_deletes  whether the catalog writes files with deletes for it
    replaces        which of the older files readers no longer see
    switch          the generations that readers leave and see next; None: they see the same one, or there are none
    deletes         objects that are deleted once readers see the change
    bad_rows        objects that leave the quarantine with the files
    loaded          objects that leave the quarantine last: the change has loaded their rows
    """

    adds: bool
    work: ControlObject | None = None
    writes_deletes: bool = False
    replaces: Replaced = "nothing"
    switch: Switch | None = None
    deletes: tuple[tuple[str, str], ...] = ()
    bad_rows: tuple[Removal, ...] = ()
    loaded: tuple[Removal, ...] = ()

    @property
    def removes(self) -> UndoneLoad | None:
        """The load whose files leave the table."""
        return self.work if isinstance(self.work, UndoneLoad) else None

    @property
    def generation(self) -> int | None:
        """The generation that readers see next; None: as before."""
        return self.switch.after if self.switch is not None else None

    @property
    def ends(self) -> tuple[tuple[str, str], ...]:
        """Key and etag of all objects that are deleted once readers see the change."""
        return (*self.deletes, *((removal.key, removal.etag) for removal in self.loaded))


class Intent(ControlObject):
    """One change of one table: all that is needed to publish it, or to withdraw it, without the lake.yaml it came from.
    It is bound when ``state.json`` is replaced and names it as pending.

    ``needs`` names features that a release must know to finish the change. With ``together`` it is bound together with
    the attempt's intents for other tables, or not at all: those of its sync, or of its ``group``, which has the name of
    one of them.
    """

    is_exclusive: ClassVar[bool] = True
    """Whether the change is valid only while no other has committed since it began, because it removes loads."""
    compares_state: ClassVar[bool] = True
    """Whether the change is valid only while the fields of the state that it was planned on are the same. Without it
    the catalog decides, by what the change has read, in the commit itself."""
    lets_loads_go_on: ClassVar[bool] = False
    """Whether loads that began before it stay valid: it changes nothing that a load depends on."""

    version: Literal[1] = 1
    kind: Kind
    pipeline: str
    job_id: str
    attempt: str
    table_id: str
    schema_name: str
    table: str
    started: datetime
    access: IntentAccess
    catalog: CatalogAction
    notes: tuple[str, ...] = ()
    needs: tuple[str, ...] = sparse(())
    together: bool = sparse(False)
    group: str = sparse("")

    _read: Read | None = PrivateAttr(default=None)
    _access = field_validator("access", mode="before")(dump_part)

    @property
    @abstractmethod
    def effects(self) -> Effects:
        """The effects on the table."""

    @property
    def load(self) -> str:
        """The value of the objects' load metadata."""
        return f"{self.pipeline}/{self.job_id}/{self.attempt}"

    @property
    def bucket(self) -> str:
        """The bucket of the table's files; bad rows and control objects are in that of ``access``."""
        return self.catalog.find_bucket(self.access.bucket)

    @property
    def lasting_needs(self) -> tuple[str, ...]:
        """The needs that the table's state has once the change is closed."""
        return tuple(need for need in self.needs if need in LASTING)

    @property
    def files(self) -> Receipts:
        """The receipts of all files that it adds."""
        return Receipts(())

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return self.files.totals.rows

    @property
    def changes_rows(self) -> bool:
        """True if readers may see other rows after it, so that it needs a snapshot of its own."""
        return bool(self.files)

    @property
    def is_numbered(self) -> bool:
        """True if the keys of its files have the table's counter."""
        return False

    @property
    def of_quarantine(self) -> "Load | None":
        """The same change of the quarantine's table, whose files are those with the bad rows; None without any."""
        return None

    @property
    def taken(self) -> tuple[Removal, ...]:
        """The files of the quarantine whose rows it loads."""
        return ()

    def list_staged(self) -> Iterator[Receipt]:
        """Yield the receipts of all that is staged, bad rows included; those of parts without statistics."""
        yield from self.files.without_statistics()
        if (quarantined := self.of_quarantine) is not None:
            yield from quarantined.files.without_statistics()

    def with_key_names(self, key_names: KeyNames) -> Self:
        """Return the intent with the names that today's lake.yaml gives the keys in messages."""
        return self.model_copy(update={"access": self.access.model_copy(update={"key_names": key_names})})

    def reading_by(self, read: Read) -> Self:
        """Return the intent with ``read`` as the reader of objects that it names, if it names any."""
        if not self._names_objects():
            return self
        intent = self.model_copy()
        intent._read = read
        return intent

    def _names_objects(self) -> bool:
        """Return whether a part of it lies in objects of their own."""
        return False

    def depends(self) -> bool:
        """Return whether the change is valid only while no other has committed since it began."""
        # Rule undo-fence
        return self.is_exclusive

    def may_bind(self, state: TableState, began: TableState) -> bool:
        """Return whether it may be bound on the state, by what it alone knows; ``began`` is the state that it was
        planned on."""
        return True

    def describe_unknown(self, why: str, before: Sequence[str]) -> str:
        """Describe, for a person, a change that is given up while nobody can tell whether readers see it. ``before``
        are the keys of the files that it replaces, where records name them."""
        new = join_first(list(self.files.list_keys()), MOST_NAMED) or "none"
        return f". Whether readers see this change cannot be known{why}. Its files: {new}"

    def make_report(self, *notes: str, health: TableHealth | None = None, counts: Counts | None = None) -> TableReport:
        """Make the table's report for when this intent is closed; ``notes`` are added to the intent's own."""
        of_kind = COUNTS.get(self.kind)
        files = self.leave_out(counts.list_dropped() if counts is not None else ()).files
        totals = files.totals
        notes = notes if counts is None else (counts.describe(), *notes)
        if health is not None and health.deletes is not None:
            notes = (*notes, health.deletes.describe())
        plain: dict[str, Any] = {
            "pipeline": self.pipeline,
            "job_id": self.job_id,
            "attempt": self.attempt,
            "schema_name": self.schema_name,
            "table": self.table,
            "started": self.started,
            "rows": totals.rows if of_kind is None or of_kind.are_of_loaded else 0,
            "files": totals.files,
            "bytes": totals.bytes,
            "keys": tuple(receipt.key for receipt in files.at_hand),
            "feed": "",
            "engine": ", ".join(totals.engines),
            "cursor_before": None,
            "cursor_after": None,
            "cursor_nulls": totals.cursor_nulls,
            "staged_seconds": 0.0,
            "small_files": totals.small_files,
            "notes": (*self.notes, *notes),
            "changes": totals.changes,
            "change_samples": totals.change_samples,
            "undeclared": totals.undeclared,
            "health": health,
            "parts": files.parts,
            "needs": (RECEIPT_PARTS,) if files.parts else (),
        }
        counted = {} if of_kind is None else {of_kind.field: counts or of_kind()}
        return TableReport(**plain | counted | self._list_reported())

    def leave_out(self, groups: Collection[int]) -> Self:
        """Return the change without the files of ``groups`` that were not published."""
        return self

    def _list_reported(self) -> dict[str, Any]:
        """Return what the report has of this kind of change."""
        return {}


class Staged(Intent):
    """A change that adds files. A load of few files has their ``receipts``; for many files, ``parts`` name the objects
    that have the receipts. ``counter_after`` is the number of the next file, where keys have the table's counter."""

    receipts: tuple[Receipt, ...]
    parts: tuple[ReceiptPart, ...] = sparse(())
    staged_seconds: float
    counter_after: int | None = None

    @property
    def files(self) -> Receipts:
        """The receipts of all files: the intent's own, and those in parts, which each iteration reads anew."""
        lost = f"; or end the load without it: lakewriter abandon LAKE {self.job_id} --intent-lost --reason TEXT"
        return Receipts(self.receipts, self.parts, self._read, lost)

    @property
    def is_numbered(self) -> bool:
        """See ``Intent``."""
        return self.counter_after is not None

    def _names_objects(self) -> bool:
        return bool(self.parts)

    def _list_reported(self) -> dict[str, Any]:
        return {"staged_seconds": self.staged_seconds}


class Load(Staged):
    """A load that adds files. A replay of bad rows is one, too: it takes them out of the quarantine.

    inferred  the table's columns after the load, for documents without a schema
    names     the names that its columns have in their source, None where the table keeps none
    types     the types that the values of files have given its columns
    origin    the source table, where the table keeps it
    repeats   the job ids that a load after an undo repeats
    before    what an undo of the load sets back
    between   the range of rows that the load brings again, in words; None for other loads
    merge     how its rows replace older rows of the same key; None where none are
    adopted   the state's ``adopted`` when the load was planned: a state that is lost is rebuilt with it
    """

    is_exclusive = False

    kind: Kind = "load"
    feed: str
    cursor_before: Cursor | None
    cursor_after: Cursor | None
    batch: Batch | None = None
    sync: SyncIntent | None = None
    inferred: tuple[InferredColumn, ...] | None = sparse(None)
    names: tuple[GivenName, ...] | None = sparse(None)
    types: tuple[InferredType, ...] | None = sparse(None)
    origin: Origin | None = sparse(None)
    set_aside: SetAside | None = sparse(None)
    repeats: tuple[str, ...] = sparse(())
    expectations: tuple[Verdict, ...] = sparse(())
    before: Before = Before()
    quarantine: Quarantine | None = sparse(None)
    inputs: InputsIntent | None = sparse(None)
    adopted: datetime | None = sparse(None)
    between: str | None = sparse(None)
    merge: MergeIntent | None = sparse(None)

    @property
    def effects(self) -> Effects:
        """See ``Intent``."""
        retired = self.sync.retire if self.sync is not None else ()
        return Effects(
            adds=True, work=self.merge, writes_deletes=self.merge is not None, deletes=retired, loaded=self.taken
        )

    @property
    def changes_rows(self) -> bool:
        """See ``Intent``: a load without rows may bring a floor."""
        return super().changes_rows or (self.merge is not None and bool(self.merge.floors))

    @property
    def taken(self) -> tuple[Removal, ...]:
        """See ``Intent``."""
        return self.quarantine.takes if self.quarantine is not None else ()

    @property
    def of_quarantine(self) -> "Load | None":
        """See ``Intent``."""
        if self.quarantine is None or not (self.quarantine.receipts or self.quarantine.parts):
            return None
        changed = {
            "kind": "load",
            "table": f"{self.table}{QUARANTINE}",
            "catalog": self.quarantine.catalog,
            "receipts": self.quarantine.receipts,
            "parts": self.quarantine.parts,
            "quarantine": None,
            "sync": None,
            "merge": None,
        }
        same = {name: getattr(self, name) for name in Load.model_fields}
        quarantined = Load.model_construct(**same | changed)
        quarantined._read = self._read
        return quarantined

    def _names_objects(self) -> bool:
        return super()._names_objects() or self.quarantine is not None or self.merge is not None

    @property
    def deleted_objects(self) -> tuple[DeletedKeys, ...]:
        """The objects with the keys that were deleted before the merge, the newest first."""
        before = self.merge.deleted_before if self.merge is not None else None
        return before.objects if before is not None else ()

    @property
    def deleted_after(self) -> DeletedKeys | None:
        """The objects with the keys that are deleted after the merge; None where it notes none."""
        merge = self.merge
        if merge is None or merge.deleted_keys is None:
            return None
        until = self.started + timedelta(seconds=merge.deleted_seconds)
        brought = (floor.model_copy(update={"until": until}) for floor in merge.floors)
        return DeletedKeys(
            job_id=self.job_id,
            key=merge.deleted_keys,
            until=until,
            level=merge.deleted_level,
            earlier=self.deleted_objects[merge.deleted_folds :],
            floors=Floor.join([*brought, *merge.floors_before]),
        )

    def read_deleted(self, key: str) -> bytes:
        """Read one of the objects with keys that were deleted before; ``PENDING_UNRECOVERABLE`` where it is gone."""
        body = self._read(key) if self._read is not None else None
        # Rule deleted-keys-gone
        if body is None:
            raise PendingUnrecoverableError(
                f"{key}, which has keys that were deleted before load {self.job_id!r}, is gone.",
                remedy=(
                    "Restore the object from its bucket's versions, or give the load up: "
                    f"lakewriter abandon LAKE {self.job_id} --reason TEXT"
                ),
            )
        return body

    def depends(self) -> bool:
        """See ``Intent``. A load depends on a cursor, a counter, the batch before, a sync, inferred columns, files that
        were read, or bad rows that it takes."""
        goes_by = (self.cursor_after, self.counter_after, self.batch, self.inferred)
        is_of_state = bool(self.taken) or any(dependence is not None for dependence in goes_by)
        is_of_sync = self.sync is not None and self.sync.exclusive
        return self.is_exclusive or is_of_state or is_of_sync or (self.inputs is not None and self.inputs.exclusive)

    def may_bind(self, state: TableState, began: TableState) -> bool:
        """See ``Intent``: no load since has given columns other names or types."""
        # Rule names-bound
        if not state.accepts_names(self.names, began):
            return False
        # Rule types-bound
        return state.accepts_types(self.types, began)

    def describe_unknown(self, why: str, before: Sequence[str]) -> str:
        """See ``Intent``."""
        if self.taken:
            return ""
        if self.effects.replaces == "nothing" and not self.effects.ends:
            return super().describe_unknown(why, before)
        new, old = (join_first(list(keys), MOST_NAMED) or "none" for keys in (self.files.list_keys(), before))
        return (
            f". Whether readers see this refresh or what was there before it, or both, cannot be known{why}. Its "
            f"files: {new}. Those of before: {old}. The next refresh deletes both"
        )

    def _list_reported(self) -> dict[str, Any]:
        sync: dict[str, Any] = {}
        if self.sync is not None:
            numbers = {"sync_id": self.sync.sync_id, "generation_id": self.sync.generation_id}
            sync = numbers | {"retired": len(self.sync.retire)}
        return (
            super()._list_reported()
            | sync
            | {
                "feed": self.feed,
                "cursor_before": self.cursor_before,
                "cursor_after": self.cursor_after,
                "set_aside": self.set_aside,
                "expectations": self.expectations,
                "repeated": self.inputs and self.inputs.repeated,
                "between": self.between,
            }
        )


class Merge(Load):
    """A load whose rows replace the table's older rows of the same key."""

    is_exclusive = True

    kind: Kind = "merge"
    merge: MergeIntent


class Refresh(Load):
    """A full refresh: its files are all that the table has after it, and readers ``switch`` to their generation. Where
    its rows are merged, they are so among themselves."""

    is_exclusive = True
    replaces: ClassVar[Replaced] = "everything"

    kind: Kind = "refresh"
    switch: Switch

    @property
    def effects(self) -> Effects:
        """See ``Intent``."""
        return replace(super().effects, replaces=self.replaces, switch=self.switch)

    def _list_reported(self) -> dict[str, Any]:
        return super()._list_reported() | {"refreshes": True}


class ReplacePartitions(Refresh):
    """A refresh of those partitions of an Iceberg table that it has files in."""

    replaces = "partitions"

    kind: Kind = "replace_partitions"


class Compact(Staged):
    """Replace files of a table by others with the same rows, which changes nothing for readers and for loads.

    The state says nothing of the files that it has read, so any load may commit meanwhile. The commit leaves out the
    groups of files that have changed."""

    is_exclusive = False
    compares_state = False
    lets_loads_go_on = True

    kind: Kind = "compact"
    compact: CompactIntent

    @property
    def effects(self) -> Effects:
        """See ``Intent``."""
        return Effects(adds=True, work=self.compact)

    def leave_out(self, groups: Collection[int]) -> Self:
        """See ``Intent``."""
        left = tuple(receipt for receipt in self.receipts if receipt.partition not in groups)
        return self.model_copy(update={"receipts": left})


class Expire(Intent):
    """Remove old snapshots of a table, and then the files that no other snapshot has.

    The commit compares the snapshots with the table's branches and tags, and with what undos need: see ``Compact``."""

    is_exclusive = False
    compares_state = False
    lets_loads_go_on = True

    kind: Kind = "expire"
    expire: ExpireIntent

    @property
    def effects(self) -> Effects:
        """See ``Intent``."""
        return Effects(adds=False, work=self.expire)


class Undo(Intent):
    """Take what ``undoes`` names out of the table again, and delete the objects in ``removes``.

    The undo of a full refresh ``switch``es the table back to the generation before it.
    """

    kind: Kind = "undo"
    undoes: UndoneLoad
    removes: tuple[Removal, ...] = sparse(())
    switch: Switch | None = sparse(None)
    cursor_before: Cursor | None
    cursor_after: Cursor | None

    @property
    def effects(self) -> Effects:
        """See ``Intent``. Objects that running queries may read are deleted later."""
        at_once = not self.undoes.grace_seconds
        return Effects(
            adds=False,
            switch=self.switch,
            work=self.undoes,
            deletes=tuple((removal.key, removal.etag) for removal in self.removes) if at_once else (),
            bad_rows=self.undoes.quarantined,
        )

    def may_bind(self, state: TableState, began: TableState) -> bool:
        """See ``Intent``: the files that it shows again still exist, since the state drops them before they are
        deleted, and no compaction since then has replaced the files that it names."""
        back = self.switch
        is_there = back is None or back.job_id is None or state.find_generation(back.after) is not None
        # Rule undo-of-compacted
        return is_there and state.compactions == began.compactions

    def _list_reported(self) -> dict[str, Any]:
        cursors = {"cursor_before": self.cursor_before, "cursor_after": self.cursor_after}
        return cursors | {"undoes": self.undoes.job_id}


KINDS: Final[Mapping[str, type[Intent]]] = {
    "load": Load,
    "merge": Merge,
    "refresh": Refresh,
    "replace_partitions": ReplacePartitions,
    "undo": Undo,
    "compact": Compact,
    "expire": Expire,
}


def parse_intent(key: str, body: bytes) -> Intent:
    """Parse the intent in ``body``; ``PENDING_UNRECOVERABLE`` where it cannot be read."""
    return parse_kind(KINDS, key, body)


def lets_loads_go_on(job_id: str) -> bool:
    """Return whether a change of this job id, whose intent may be gone, leaves loads valid that began before it."""
    ids = find_job_ids(job_id)
    return ids is not None and KINDS[ids.kind].lets_loads_go_on


def require_able(effects: Effects, works: Container[type]) -> None:
    """Raise ``TypeError`` for work of another type, and for a change that has no work and adds nothing: the catalog
    would do nothing, and the change would count as committed."""
    if type(effects.work) not in works or not (effects.adds or effects.work):
        raise TypeError(f"the catalog has no way to publish the work {type(effects.work).__name__} of a change")
