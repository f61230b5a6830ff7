"""Describe a staged file: all that is needed to complete it, to withdraw it, or to check it later."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from lakewriter.control_object import ControlObject, sparse

COPIED: Final = "copied"
"""The engine of a file that belongs to a record, and has no rows of its own."""
MOST_BAD_ROWS_SHOWN: Final = 5


class Part(ControlObject):
    """One uploaded part; ``checksum`` is base64, or None where the store keeps none."""

    number: int
    etag: str
    checksum: str | None = None

    def __init__(self, number: int, etag: str, checksum: str | None = None, **later: Any) -> None:
        fields = {"number": number, "etag": etag, "checksum": checksum}
        super().__init__(**fields, **later)


class ColumnStatistics(ControlObject):
    """One leaf column of a file. Bounds are Python values rendered as text, or None where the writer kept none."""

    values: int
    nulls: int | None
    compressed_bytes: int
    lower: str | None = None
    upper: str | None = None

    def __init__(
        self,
        values: int,
        nulls: int | None,
        compressed_bytes: int,
        lower: str | None = None,
        upper: str | None = None,
        **later: Any,
    ) -> None:
        fields = {"values": values, "nulls": nulls, "compressed_bytes": compressed_bytes}
        bounds = {"lower": lower, "upper": upper}
        super().__init__(**fields, **bounds, **later)


class TextShapes(ControlObject):
    """The shapes of texts, as ``99.99.9999``, each with the lowest and the highest text that has it.

    With ``is_many`` the texts have more shapes than are kept, and none is named.
    """

    ends: Mapping[str, tuple[str, str]] = Field(default_factory=dict)
    is_many: bool = False


class Cursor(ControlObject):
    """The highest value of the cursor column: its Arrow type and exact text (timestamps: UTC microseconds).

    ``edge`` has the keys of a database's rows that have the value, each as a JSON list of its columns' texts: the next
    load reads the other rows that have the value. ``edge`` is empty where the keys are not known. ``topic`` is the id
    of the Kafka topic that has counted an offset. ``shapes`` are those of the texts that were compared, for the process
    that loads: no intent and no state has them.
    """

    type: str
    text: str
    edge: tuple[str, ...] = sparse(())
    topic: str = sparse("")
    shapes: TextShapes | None = sparse(None)

    def __init__(self, type: str, text: str, **later: Any) -> None:  # noqa: A002 - the field's name
        fields = {"type": type, "text": text}
        super().__init__(**fields, **later)

    def without_shapes(self) -> Self:
        """Return the cursor as control objects keep it."""
        return self if self.shapes is None else self.model_copy(update={"shapes": None})


class Observed(ControlObject):
    """Observations of a column that a table's expectations name, over the rows of a file or of several.

    ``nulls`` is None where it is not known. A bound is None where no row has a value, and where it is not known; NaN
    has no order, and no part in the bounds.
    """

    rows: int
    nulls: int | None = None
    nans: int = 0
    lower: Cursor | None = None
    upper: Cursor | None = None

    @property
    def has_values(self) -> bool:
        """Return whether a row may have a value with an order."""
        return self.nulls is None or self.rows > self.nulls + self.nans


class Violations(ControlObject):
    """The number of rows that break a check on rows, and the first of them in words."""

    rows: int
    samples: tuple[str, ...] = ()

    def __add__(self, other: "Violations") -> "Violations":
        samples = tuple(dict.fromkeys((*self.samples, *other.samples)))
        return Violations(rows=self.rows + other.rows, samples=samples[:MOST_BAD_ROWS_SHOWN])


class RepeatedFiles(ControlObject):
    """The number of files of a load that earlier loads have read, by their records.

    files     those that the load has read, None where the source has none, or they could not be listed
    again     those of them that an earlier load has read as they are
    changed   those that have other contents since an earlier load has read them
    left_out  those in the source that the load has left out, since an earlier one has read them
    rows      the rows of the files that were read again, None where it is not known
    allowed   whether the file asks for it: it is counted, and nobody is warned
    """

    files: int | None = None
    again: int = 0
    changed: int = sparse(0)
    left_out: int = sparse(0)
    rows: int | None = sparse(None)
    allowed: bool = sparse(False)

    @property
    def is_silent(self) -> bool:
        """True where nothing is appended again, or the file asks for it."""
        return self.allowed or (self.files is not None and not self.again and not self.changed)


class Verdict(ControlObject):
    """The verdict on one expectation in one load; ``holds`` is None where that is not known.

    check     its name
    outcome   what followed from it; what is not known is a warning, ``set_aside`` says that rows were kept out
    found     what the load has, in words, and ``expected`` what it should have
    samples   values or rows that do not conform, in words
    by        who accepted it as it is, and ``reason`` why
    """

    check: str
    kind: str
    column: str | None = None
    holds: bool | None
    outcome: Literal["passed", "failed", "warned", "accepted", "set_aside"]
    found: str
    expected: str
    samples: tuple[str, ...] = ()
    by: str | None = sparse(None)
    reason: str | None = sparse(None)


class InferredColumn(ControlObject):
    """A column that documents without a schema have given their table; its name and its kind stay.

    ``path`` is empty where only its files show it. ``kind`` is ``included`` where the table's fields decide it.
    """

    name: str
    kind: str
    path: tuple[str, ...] = ()


class GivenName(ControlObject):
    """A column, or a field of a struct, and its name in the source: they stay together once a load is committed.

    ``within`` are the names in the source of what a field lies in, from the column on; ``[]`` is any element of an
    array, ``key`` and ``value`` those of a map.
    """

    source: str
    name: str
    within: tuple[str, ...] = sparse(())


class InferredType(ControlObject):
    """The type that the values of a source's files have given a column, or a part of one, by its name in the source.

    type           in SQL's words; ``struct``, ``array`` and ``map`` have the types of their parts in ``fields``
    beyond_double  whether a double may not hold one of its whole numbers
    load           the job id of the only load whose files have the column; blank once there are several
    """

    name: str
    type: str
    fields: tuple["InferredType", ...] = sparse(())
    beyond_double: bool = sparse(False)
    load: str = sparse("")

    def is_same_type(self, other: "InferredType") -> bool:
        """Return whether both are one type, whatever order their fields have."""
        if self.type != other.type or len(self.fields) != len(other.fields):
            return False
        others = {field.name: field for field in other.fields}
        return all(field.name in others and field.is_same_type(others[field.name]) for field in self.fields)

    def join(self, other: "InferredType") -> "InferredType":
        """Return the type of a later load, ``other``, with what is known of the values of both."""
        mine = {field.name: field for field in self.fields}
        fields = tuple(mine[field.name].join(field) if field.name in mine else field for field in other.fields)
        named = {field.name for field in fields}
        return other.model_copy(
            update={
                "fields": (*fields, *(field for field in self.fields if field.name not in named)),
                "beyond_double": self.beyond_double or other.beyond_double,
                "load": other.load if self.load == other.load else "",
            }
        )


class Origin(ControlObject):
    """The source table whose rows a table holds, by the names that lake.yaml has for it."""

    source_schema: str
    source_table: str


class Floor(ControlObject):
    """An order below which a table has no rows of one ``source`` table: that of a truncate, or that of the first event
    of an epoch whose snapshot was read to its end. Its parts are whole numbers as text, since some have 38 digits. Rows
    that come later and are below it are late ``until`` a time; None in the load that brings it."""

    source: str
    order: tuple[str, ...]
    until: datetime | None = sparse(None)

    @property
    def numbers(self) -> tuple[int, ...]:
        """The parts of the order."""
        return tuple(map(int, self.order))

    @classmethod
    def join(cls, floors: Iterable["Floor"]) -> "tuple[Floor, ...]":
        """Return the floors without those that a higher one of their source outlasts."""
        lasting = list[Floor]()
        for floor in sorted(floors, key=lambda one: (one.source, one.numbers, one.until or _NEVER), reverse=True):
            if not any(
                one.source == floor.source and (one.until or _NEVER) >= (floor.until or _NEVER) for one in lasting
            ):
                lasting.append(floor)
        return tuple(reversed(lasting))


_NEVER: Final = datetime.min.replace(tzinfo=UTC)


class DeletedKeys(ControlObject):
    """The object that a merge has created with the keys that it deleted, and the ``earlier`` ones, the newest first. Of
    a key the first object that has it counts; none of an object's keys keeps older rows out after ``until``.

    An object of a higher ``level`` has ``FOLDED`` times as many keys. Where as many objects would have one level, a
    merge folds them into its own. So a key is written again only when so many times as many have come, and few objects
    are read.

    The ``floors`` keep out older rows of any key. They are the same in whatever says which keys are deleted.
    """

    FOLDED: ClassVar[int] = 4

    job_id: str
    key: str
    until: datetime
    level: int = sparse(0)
    earlier: tuple["DeletedKeys", ...] = sparse(())
    floors: tuple[Floor, ...] = sparse(())

    @property
    def objects(self) -> tuple["DeletedKeys", ...]:
        """All objects, the newest first, each without the earlier ones and the floors."""
        return (self.model_copy(update={"earlier": (), "floors": ()}), *self.earlier)

    @classmethod
    def join(cls, objects: Sequence["DeletedKeys"]) -> "DeletedKeys | None":
        """Return the objects, the newest first, as one."""
        return objects[0].model_copy(update={"earlier": tuple(objects[1:])}) if objects else None

    @classmethod
    def plan_fold(cls, objects: Sequence["DeletedKeys"], rows: int) -> tuple[int, int]:
        """Return how many of the objects, the newest first, that of a merge of so many rows folds into its own, and
        that one's level. Each object has at least the level of the one before it."""
        level = int(math.log(max(rows, 1), cls.FOLDED))
        while sum(one.level == level for one in objects) >= cls.FOLDED - 1:
            level += 1
        return sum(one.level < level for one in objects), level


class Batch(ControlObject):
    """One micro-batch of a continuous run: its query's id, which the checkpoint keeps, and its number from 0.

    ``offsets`` is a digest of what the checkpoint planned for it: the same number planned again is another batch.
    """

    query: str
    number: int
    offsets: str | None = None

    def __init__(self, query: str, number: int, offsets: str | None = None, **later: Any) -> None:
        fields = {"query": query, "number": number, "offsets": offsets}
        super().__init__(**fields, **later)

    @property
    def job_id(self) -> str:
        """The load's name: the same batch is the same load, whenever it is run."""
        return f"{make_batch_prefix(self.query)}{self.number:010d}"


def make_batch_prefix(query: str) -> str:
    """Return the prefix of the job ids of a query's batches; they sort by number."""
    return f"stream-{query}-"


class ChangedValues(ControlObject):
    """The number of values of a field that one way changed; ``[]`` in a field's path is any element of an array."""

    field: str
    change: str
    reason: str
    values: int


class Uploaded(NamedTuple):
    """A multipart upload with all its parts, its size in bytes, and where it goes."""

    upload_id: str
    parts: tuple[Part, ...]
    size: int
    bucket: str
    key: str
    checksum_algorithm: str | None


class NotedUpload(ControlObject):
    """The note of an upload in a bucket that lists none, written before the upload has a part."""

    version: Literal[1] = 1
    bucket: str
    key: str
    upload_id: str


class Absent(ControlObject):
    """Declared columns that none of so many documents has."""

    documents: int
    columns: tuple[str, ...]

    @classmethod
    def join(cls, parts: Iterable["Absent | None"]) -> "Absent | None":
        """Return the columns that no document of several parts has; None if no part says so."""
        counted = [part for part in parts if part is not None]
        if not counted:
            return None
        first, *others = counted
        columns = (column for column in first.columns if all(column in part.columns for part in others))
        return cls(documents=sum(part.documents for part in counted), columns=tuple(columns))


class NotedRows(ControlObject):
    """What tasks have noted of rows, for the process that loads: an intent has none of it.

    observed     the columns that expectations name
    violations   the rows that are not as expected, by check
    blank_lines  how many lines of the source were passed over
    skipped      how many events of each kind changed no row
    absent       the declared columns that no document has
    unchanged    how many unchanged values of each column, by its written name, events leave out
    orders       the shapes of texts by which rows are merged, by the column's name in the source
    """

    observed: Mapping[str, Observed] = sparse({})
    violations: Mapping[str, Violations] = sparse({})
    blank_lines: int = sparse(0)
    skipped: Mapping[str, int] = sparse({})
    absent: Absent | None = sparse(None)
    unchanged: Mapping[str, int] = sparse({})
    orders: Mapping[str, TextShapes] = sparse({})


class Receipt(NotedRows):
    """A multipart upload that has all its parts and is not completed.

    ``size`` is bytes, ``partition`` the Spark partition that wrote it, ``first_index`` the tracking index of its
    first row, ``cursor_nulls`` the rows whose cursor was null, ``requests`` counts HTTP requests by method. ``changes``
    counts values that are not as the source gave them, ``undeclared`` properties without a column, by path.
    ``partition_values`` is the Iceberg partition that all rows are in, in Iceberg's JSON. ``changed`` has the changes
    by field, for the process that loads; it is left out of the intent as well.
    """

    version: Literal[1] = 1
    bucket: str
    key: str
    upload_id: str
    parts: tuple[Part, ...]
    checksum_algorithm: str | None
    size: int
    rows: int
    partition: int
    seq: int
    first_index: int
    engine: str
    row_groups: int
    requests: Mapping[str, int]
    cursor: Cursor | None = None
    cursor_nulls: int = 0
    changes: int = 0
    change_samples: tuple[str, ...] = ()
    undeclared: Mapping[str, int] = Field(default_factory=dict)
    changed: tuple[ChangedValues, ...] = sparse(())
    task_attempt: int = 0
    columns: Mapping[str, ColumnStatistics] = Field(default_factory=dict)
    partition_values: tuple[str | int | bool | None, ...] = ()

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        numbers = [part.number for part in self.parts]
        if not numbers or numbers != list(range(1, len(numbers) + 1)):
            raise ValueError(f"parts of {self.key!r} are numbered {numbers}, expected 1 to N without gaps")
        return self

    @classmethod
    def of(cls, uploaded: Uploaded, facts: "FileFacts") -> "Receipt":
        """Return the receipt of an upload, with what its writer knows of the file."""
        findings = facts.findings
        return cls(
            bucket=uploaded.bucket,
            key=uploaded.key,
            upload_id=uploaded.upload_id,
            parts=uploaded.parts,
            checksum_algorithm=uploaded.checksum_algorithm,
            size=uploaded.size,
            rows=facts.rows,
            partition=facts.partition,
            seq=facts.seq,
            first_index=facts.first_index,
            engine=facts.engine,
            row_groups=facts.row_groups,
            requests=facts.requests,
            cursor=facts.cursor,
            cursor_nulls=facts.cursor_nulls,
            changes=findings.changes,
            change_samples=tuple(findings.samples),
            undeclared=dict(findings.undeclared),
            changed=tuple(
                ChangedValues(field=path, change=change, reason=reason, values=count)
                for (path, change, reason), count in findings.changed.items()
            ),
            observed=facts.observed,
            violations=facts.violations,
            blank_lines=facts.blank_lines,
            skipped=facts.skipped,
            absent=facts.absent,
            unchanged=facts.unchanged,
            orders=findings.orders,
            columns=facts.columns,
            partition_values=facts.partition_values,
        )

    def for_intent(self) -> Self:
        """Return the receipt without the fields that only the loading process needs."""
        cursor = self.cursor and self.cursor.without_shapes()
        left_out = {name: field.default for name, field in NotedRows.model_fields.items()}
        return self.model_copy(update=left_out | {"changed": (), "cursor": cursor})


class Totals(NotedRows):
    """Sums over several files.

    ``last_seq`` is the highest of their numbers, ``cursor`` the highest value, ``changed`` is sorted by how many values
    were changed. ``is_repeated`` says that a task or a request ran again: there may be uploads without a receipt.
    """

    files: int = 0
    rows: int = 0
    bytes: int = 0
    small_files: int = 0
    last_seq: int = -1
    engines: tuple[str, ...] = ()
    cursor: Cursor | None = None
    cursor_nulls: int = 0
    changes: int = 0
    change_samples: tuple[str, ...] = ()
    undeclared: Mapping[str, int] = Field(default_factory=dict)
    changed: tuple[ChangedValues, ...] = ()
    requests: Mapping[str, int] = Field(default_factory=dict)
    is_repeated: bool = False


class ReceiptPart(ControlObject):
    """An object with some of a load's receipts, its SHA-256 and its length in bytes, and the sums over their files."""

    key: str
    sha256: str
    length: int
    totals: Totals

    def for_intent(self) -> Self:
        """Return the part without the shapes of texts, which only the loading process needs."""
        cursor = self.totals.cursor and self.totals.cursor.without_shapes()
        return self.model_copy(update={"totals": self.totals.model_copy(update={"cursor": cursor, "orders": {}})})


class SetAside(ControlObject):
    """Rows that were not loaded: how many, the objects that hold them, and the first ones in words."""

    rows: int
    keys: tuple[str, ...]
    samples: tuple[str, ...] = ()

    @classmethod
    def of(cls, parts: Sequence["SetAside"]) -> "SetAside | None":
        """Return the rows that several tasks have set aside; None where there are none."""
        if not parts:
            return None
        keys = tuple(key for part in parts for key in part.keys)
        samples = tuple(sample for part in parts for sample in part.samples)
        return cls(rows=sum(part.rows for part in parts), keys=keys, samples=samples[:MOST_BAD_ROWS_SHOWN])


@dataclass
class Findings:
    """Changes made to values, a sample of them, counts by field, change and reason, undeclared properties, and the
    shapes of texts by which rows are merged."""

    changes: int = 0
    samples: list[str] = field(default_factory=list)
    undeclared: Counter[str] = field(default_factory=Counter)
    changed: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    orders: dict[str, TextShapes] = field(default_factory=dict)


@dataclass(frozen=True)
class FileFacts:
    """A file's facts from its writer, as its receipt has them; defaults are for a file without a table's rows.

    ``cursor``, ``cursor_nulls`` and ``findings`` are of the rows shaped while the file was written: over all receipts
    of a task these are all its rows.
    """

    rows: int
    partition: int
    seq: int
    engine: str
    row_groups: int
    requests: Mapping[str, int]
    first_index: int = 0
    cursor: Cursor | None = None
    cursor_nulls: int = 0
    findings: Findings = field(default_factory=Findings)
    observed: Mapping[str, Observed] = field(default_factory=dict)
    violations: Mapping[str, Violations] = field(default_factory=dict)
    blank_lines: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    absent: Absent | None = None
    unchanged: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)
    partition_values: tuple[str | int | bool | None, ...] = ()
