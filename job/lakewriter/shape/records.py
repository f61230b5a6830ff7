"""Records of a stream as rows of a table: documents whose properties are columns, ordered and deleted as they say."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.cast.log_positions import WHOLE_DIGITS, read_position
from lakewriter.documents.decoding import Documents
from lakewriter.documents.schema import make_record_type
from lakewriter.documents.types import DATA, ROW, DocumentType, Items, Leaf, Record, Union, make_arrow_field
from lakewriter.errors import SpecInvalidError, ValueUnrepresentableError
from lakewriter.naming import DELETED
from lakewriter.receipt import Findings
from lakewriter.shape.envelope import ChangeNotes
from lakewriter.shape.table import Shaped, ShapePlan, Shaper
from lakewriter.spec.change_events import CHANGE_ORDER
from lakewriter.spec.collection import Kind
from lakewriter.spec.stream import LogProperties
from lakewriter.spec.table_spec import TableSpec

WHOLE: Final = pa.decimal128(WHOLE_DIGITS, 0)
_LOG, _POSITION = CHANGE_ORDER[1:3]
_CURSOR: Final = 1 << 40
"""The log of a connector's own cursor: a connector that begins to say one outranks the numbers of log files."""
_FILE: Final = r"\.(?P<number>[0-9]{1,12})$"


@dataclass(frozen=True)
class Records:
    """The columns of a stream's records: ``record`` types what is read of a document, ``built`` are its columns as they
    are read, ``schema`` those of the rows."""

    record: Record
    built: tuple[pa.Field, ...]
    schema: pa.Schema
    log: LogProperties | None = None
    deleted_at: str | None = None
    paths: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class RecordsPlan(ShapePlan):
    """The plan of records that become rows. A document's number is its place in the order in which records came."""

    ordinal: ClassVar[str | None] = ROW
    records: Records = field(default_factory=lambda: Records(Record(()), (), pa.schema([])))

    @classmethod
    def of(cls, rows: ShapePlan, records: Records) -> "RecordsPlan":
        """Return the plan of records, whose rows are shaped as ``rows`` has it."""
        return cls(**{one.name: getattr(rows, one.name) for one in fields(rows)}, records=records)


def plan_records(table: TableSpec) -> Records:
    """Plan the columns of a stream; ``SPEC_INVALID`` for a key inside an object that its schema does not describe."""
    stream = table.stream
    assert stream is not None
    whole = make_record_type(stream.json_schema)
    # Connectors change the types of these from release to release.
    log = stream.log or LogProperties()
    fixed = dict.fromkeys(log.numbers, Leaf(Kind.JSON))
    fixed |= {name: Leaf(Kind.STRING) for name in (stream.deleted_at, log.file) if name}
    typed = tuple((name, fixed.get(name, _without_times(kind))) for name, kind in whole.fields)
    record = Record(typed, whole.declares_all)
    built = tuple(make_arrow_field(name, kind, list) for name, kind in typed)
    columns = {one.name: _choose_type(kind, one.type) for one, (_, kind) in zip(built, typed, strict=True)}
    columns |= dict.fromkeys(log.numbers, WHOLE)
    schema = [
        *columns.items(),
        *((".".join(path), _find_inside(table, columns, path)) for path in stream.paths),
        *([(_LOG, pa.int64()), (_POSITION, WHOLE)] if stream.log else []),
        *([(DELETED, pa.bool_())] if stream.deleted_at else []),
    ]
    return Records(record, built, pa.schema(schema), stream.log, stream.deleted_at, stream.paths)


def _without_times(kind: DocumentType) -> DocumentType:
    """Return the type with times of day as text: engines cannot read Iceberg's."""
    if isinstance(kind, Leaf):
        return Leaf(Kind.STRING) if kind.kind in (Kind.TIME, Kind.LOCAL_TIME) else kind
    if isinstance(kind, Record):
        return Record(tuple((name, _without_times(inner)) for name, inner in kind.fields), kind.declares_all)
    if isinstance(kind, Items):
        return Items(_without_times(kind.item))
    if isinstance(kind, Union):
        return Union(tuple((name, _without_times(inner)) for name, inner in kind.branches), kind.takes_first)
    return kind


def _choose_type(kind: DocumentType, built: pa.DataType) -> pa.DataType:
    """Return the type of a column of the table, where timestamps without a zone are such."""
    if kind == Leaf(Kind.LOCAL_TIMESTAMP):
        return pa.timestamp("us")
    if isinstance(kind, Items):
        return pa.list_(built.value_field.with_type(_choose_type(kind.item, built.value_type)))
    if not isinstance(kind, Record | Union):
        return built
    inner = kind.fields if isinstance(kind, Record) else kind.branches
    first = len(built) - len(inner)
    chosen = [
        built.field(number).with_type(_choose_type(t, built.field(number).type))
        for number, t in enumerate((t for _, t in inner), first)
    ]
    return pa.struct([*(built.field(number) for number in range(first)), *chosen])


def _find_inside(table: TableSpec, columns: dict[str, pa.DataType], path: Sequence[str]) -> pa.DataType:
    inside = columns.get(path[0])
    for name in path[1:]:
        members = {one.name: one.type for one in inside} if inside is not None and pa.types.is_struct(inside) else {}
        inside = members.get(name)
    if inside is None:
        raise SpecInvalidError(
            f"stream {table.source_table!r} is merged by {'.'.join(path)!r}, which its schema does not describe.",
            remedy="Choose a key and a cursor that the catalog's json_schema has, with the objects around them.",
        )
    return inside


class RecordsShaper(Shaper):
    """Shaper of the records of one task; see ``Shaper``."""

    def __init__(self, plan: RecordsPlan, *, job_id: str, start: datetime, first_index: int) -> None:
        super().__init__(plan, job_id=job_id, start=start, first_index=first_index)
        self._records = plan.records
        self._notes = ChangeNotes()

    def shape(self, batch: pa.RecordBatch) -> Shaped:
        """See ``Shaper``; a value that does not fit its column is null, and noted."""
        documents, numbers = Documents(batch.column(DATA)), batch.column(ROW)
        columns = documents.build_columns(self._records.record, self._records.built)
        built = dict(zip((name for name, _ in self._records.record.fields), columns, strict=True))
        rows = pa.RecordBatch.from_arrays(list(self._make_columns(built)), schema=self._records.schema)
        shaped = super().shape(rows)
        self._notes.note(self._notes.note_documents(documents, numbers), numbers)
        return shaped

    def take_findings(self) -> Findings:
        """See ``Shaper``."""
        of_rows, taken = super().take_findings(), self._notes.take()
        taken.undeclared += of_rows.undeclared
        taken.orders = of_rows.orders
        return taken

    def _make_columns(self, built: dict[str, pa.Array]) -> Iterator[pa.Array]:
        """Yield the columns of the rows: properties, those inside objects, the order, whether the row is deleted."""
        records, types = self._records, {one.name: one.type for one in self._records.schema}
        if records.log is not None:
            built = built | {name: self._read_positions(name, built[name]) for name in records.log.numbers}
        columns = {name: v if v.type == types[name] else v.cast(types[name]) for name, v in built.items()}
        yield from columns.values()
        for path in records.paths:
            yield pc.struct_field(columns[path[0]], list(path[1:]))
        if records.log is not None:
            yield from _order(records.log, columns)
        if records.deleted_at is not None:
            yield columns[records.deleted_at].is_valid()

    def _read_positions(self, name: str, texts: pa.Array) -> pa.Array:
        """Return places in a log, which are JSON, as numbers."""
        plain = pc.utf8_trim(texts, characters='"')
        plain = pc.if_else(pc.equal(plain, "null"), pa.scalar(None, pa.string()), plain)
        if pc.all(pc.fill_null(pc.match_substring_regex(plain, r"^[0-9]{1,37}$"), True)).as_py() is not False:
            return plain.cast(WHOLE)
        numbers = [None if text is None else read_position(text) for text in plain.to_pylist()]
        values = pa.array(numbers, WHOLE)
        if values.null_count > plain.null_count:
            bad = pc.index(pc.and_(values.is_null(), plain.is_valid()), True).as_py()
            raise ValueUnrepresentableError(
                f"column {name!r}: {plain[bad].as_py()!r} is no place in a database's log, by which records of a key "
                "are newer than others.",
                remedy="Correct the record; or let the connector read the stream without change data capture.",
                column=name,
            )
        return values


def _order(log: LogProperties, columns: dict[str, pa.Array]) -> list[pa.Array]:
    """Return log and position of each record: by the first of the connector's cursor, a file and the position in it,
    and an LSN that it has. A record without any is older than those that have one."""
    count = len(next(iter(columns.values())))
    cursor, in_file, lsn = (
        columns.get(name or "", pa.nulls(count, WHOLE)) for name in (log.cursor, log.in_file, log.lsn)
    )
    file = pc.extract_regex(columns.get(log.file or "", pa.nulls(count, pa.string())), _FILE)
    number = pc.struct_field(file, [0]).cast(pa.int64())
    in_file = pc.if_else(number.is_valid(), in_file, pa.scalar(None, WHOLE))
    logs = ((cursor, pa.scalar(_CURSOR, pa.int64())), (in_file, number), (lsn, pa.scalar(0, pa.int64())))
    none = pa.scalar(None, pa.int64())
    numbers = [pc.if_else(given.is_valid(), value, none) for given, value in logs]
    return [pc.coalesce(*numbers), pc.coalesce(cursor, in_file, lsn)]
