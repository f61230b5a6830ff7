"""The ``tables`` of a lake.yaml, with what is known of their columns. ``read_keys`` has their sources."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, field_validator, model_validator

from lakewriter.dialects.common.column_entries import ColumnEntry, TypeText
from lakewriter.dialects.common.expect_keys import ExpectEntry
from lakewriter.dialects.common.faults import FaultError
from lakewriter.dialects.common.read_keys import ReadEntry
from lakewriter.dialects.common.row_rule_keys import BadRowEntry, ContractEntry
from lakewriter.dialects.common.source_files import Location
from lakewriter.errors import NameCollisionError
from lakewriter.naming import name_tables
from lakewriter.spec.change_events import ChangeEvents
from lakewriter.spec.expectations import Duration, OnViolation, to_seconds
from lakewriter.spec.listed_files import Repetition
from lakewriter.spec.model import FileModel
from lakewriter.spec.table_spec import ColumnType, IndexKind, Mode, PartitionField, Read, TableSource, TableSpec

_LAG: Final = re.compile(r"\d+(\.\d+)?|\d+ (second|minute|hour|day|week)s?")
DELETED_FOR: Final = "7 days"
_OF_TIME: Final = re.compile(r"(year|month|day|hour)\(\s*([^()]+?)\s*\)")
_NUMBERED: Final = re.compile(r"(bucket|truncate)\(\s*([1-9]\d{0,8})\s*,\s*([^()]+?)\s*\)")


def _check_partition_field(text: str) -> str:
    parse_partition_field(text)
    return text


def _allow_bare_type(schema: dict[str, Any]) -> None:
    whole = dict(schema)
    schema.clear()
    schema["anyOf"] = [{"enum": ["debezium"]}, whole]


class EnvelopeEntry(FileModel):
    """The form of the change events that the rows come in; ``debezium`` alone may stand in its place."""

    model_config = ConfigDict(json_schema_extra=_allow_bare_type)

    type: Literal["debezium", "dms"]
    """``debezium`` for events with ``before``, ``after``, ``source`` and ``op``; ``dms`` for the files that AWS DMS
    writes to S3, with the operation in a column."""
    epoch: int | None = Field(None, ge=0)
    """For ``debezium``: a number that outranks all events of lower ones. Raise it when the database's log begins anew,
    as after a failover, and when a whole new snapshot follows changes that were lost. By default 0."""
    unavailable: str | None = Field(None, min_length=1)
    """For ``debezium``: the connector's ``unavailable.value.placeholder``, where it is not
    ``__debezium_unavailable_value``."""
    wall_clock: bool | None = None
    """For ``debezium``: true lets events of MongoDB be ordered by the server's wall clock, which is all that Debezium
    gives of their time since 3.4. Without it they are bad rows: changes of one document within a millisecond, or around
    an election, could be taken in the wrong order."""
    op: str | None = Field(None, min_length=1)
    """For ``dms``: the column with the operation. By default ``Op``."""
    full_load: str | None = Field(None, min_length=1)
    """For ``dms``: the names of the files of a full load, such as ``LOAD*``, whose rows have no operation or no order.
    Rows of other files are changes."""
    before: str | None = Field(None, min_length=1)
    """For ``dms``: what begins the names of the columns with the values before an update, such as ``BI_``. Without it a
    row whose key changes leaves its old row in the table."""

    @model_validator(mode="before")
    @classmethod
    def _type_alone(cls, value: Any) -> Any:
        return {"type": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _keys_of_the_type(self) -> Self:
        for kind, keys in _OF_ENVELOPES.items():
            for key in keys:
                if kind != self.type and getattr(self, key) is not None:
                    raise ValueError(f"'{key}' is only for 'type: {kind}'")
        return self

    @property
    def events(self) -> ChangeEvents:
        """The neutral form."""
        return ChangeEvents(form=self.type, **self.model_dump(exclude={"type"}, exclude_none=True))

    @property
    def leaves_old_keys(self) -> bool:
        """True if a change of a row's key does not say which key it had."""
        return self.type == "dms" and self.before is None

    @property
    def gives(self) -> frozenset[str]:
        """The keys of the entry that the events make unnecessary."""
        return self.events.gives


_OF_ENVELOPES: Final = {"debezium": ("epoch", "unavailable", "wall_clock"), "dms": ("op", "full_load", "before")}


class TableEntry(FileModel):
    """One table of the pipeline."""

    table: str = Field(min_length=1)
    """The table's name in the source. The destination's table is named after it."""
    schema_: str = Field("", alias="schema")
    """The table's schema (or namespace) in the source. It becomes a part of the destination's names."""
    written_as: str | None = Field(None, min_length=1)
    """The table's name at the destination, where it is to be another than the one that follows from ``table``. A table
    that is written already keeps its name."""
    read: ReadEntry | None = None
    """Where the rows come from: a Spark data source, or SQL over several of them. A table without it is written by a
    program, from a DataFrame."""
    primary_key: tuple[str, ...] = ()
    """The columns that identify a row. Row ids are computed from them, where the destination has row ids."""
    unique_key: tuple[str, ...] = ()
    """The columns that row ids are computed from, where there is no ``primary_key``."""
    mode: Mode = Mode.APPEND
    """``append`` adds rows to those of earlier loads. The other modes need a destination that can do them.
    ``overwrite`` replaces the rows file by file at the end of the load. ``refresh`` replaces them at once, so that
    readers see one load. In Iceberg tables ``replace_partitions`` replaces the partitions that the load has rows for,
    and ``merge`` keeps one row of each ``primary_key``: the newest by ``order_by``."""
    cursor: str | None = None
    """A column that grows with every change, such as ``updated_at``: later loads read only rows above the highest value
    loaded."""
    cursor_lag: str | int | float | None = None
    """How far below the highest value later loads begin, for rows that arrive late: a number, or a time such as ``2
    hours``."""
    deleted: str | None = None
    """A SQL condition over source columns that is true for a deleted row, such as ``op = 'D'``."""
    envelope: EnvelopeEntry | None = None
    """With ``mode: merge``: the source has change events, each of which says what becomes of a row. Without it the
    source's rows are written, and ``deleted`` and ``order_by`` name what says so."""
    order_by: tuple[str, ...] = ()
    """The columns that say which of two rows of a key is newer, such as ``[updated_at]``. With ``mode: merge`` a row
    that is older than the table's is not written. With ``mode: append`` all are, and ``queries`` prints the history of
    each row by them."""
    keep_deleted: bool = False
    """With ``mode: merge``: deleted rows stay in the table, flagged, and keep older rows of their key out. Without it
    they are gone from it."""
    history: bool = False
    """With ``mode: merge``: each change of a row is kept as well, in a table named ``{table}_history``. Both tables are
    loaded, and undone, together."""
    deleted_for: Duration | None = None
    """With ``mode: merge``: how long a deleted row, once gone from the table, still keeps older rows of its key out,
    such as ``12 hours``; ``0 days`` for not at all. By default ``7 days``."""
    columns: dict[str, TypeText | ColumnEntry] = Field(default_factory=dict)
    """Types of single columns, where the source has only text or its type changes: ``{updated_at: timestamp}``; with a
    spelling, ``{seen: {type: timestamp, from: epoch_ms}}``. A value that is not of its type makes a bad row. A
    column that the source has renamed: ``{mail: {renamed_from: email}}``."""
    nanoseconds: Literal["exact", "truncate"] = "exact"
    """What happens to a time that is finer than microseconds: ``exact`` makes its row a bad row, ``truncate`` cuts
    it."""
    names: dict[str, str] = Field(default_factory=dict)
    """Written names of single columns, by their names in the source: ``{First-Name: first_name}``; of a field inside a
    struct by its path, ``{address.Street: street}``. A column that is written already keeps its name. A column that
    the source has renamed goes on under the name of the old one: ``{email: mail}``."""
    index: Literal["contiguous", "sparse"] | None = None
    """How rows are numbered, where the destination has a column for it: ``contiguous`` counts them before the load;
    ``sparse`` saves the count, and numbers have gaps. By default ``contiguous``."""

    partition_by: tuple[Annotated[str, AfterValidator(_check_partition_field)], ...] = ()
    """For Iceberg tables: columns, or ``year(c)``, ``month(c)``, ``day(c)``, ``hour(c)``, ``bucket(16, c)``,
    ``truncate(4, c)``."""
    sort_by: tuple[str, ...] = ()
    """For Parquet files: columns by which the rows of each row group are sorted, nulls last. Sorted columns compress
    better, and queries that name some of their values read less."""
    contract: ContractEntry = ContractEntry()
    """What happens when the columns or types of this table change in the source."""
    on_bad_row: BadRowEntry | None = None
    """What happens to a row of this table that cannot be loaded."""
    expect: tuple[ExpectEntry, ...] = ()
    """What each load of this table is expected to be. It is judged once the files are staged, before anybody sees
    them."""
    on_violation: OnViolation | None = None
    """What happens where an expectation of this table does not hold: ``fail`` publishes nothing of the load, ``warn``
    publishes it and says so. By default ``fail``."""
    repeated: Repetition | None = None
    """What happens where a load of this table would append rows of files that an earlier load has read: ``warn`` counts
    them, ``fail`` loads nothing, ``allow`` says nothing. By default ``warn``; ``fail`` with ``files: new``. ``fail`` is
    refused where no load could keep it: with a cursor, a mode that replaces rows, or a source without files."""

    @field_validator("names")
    @classmethod
    def _names(cls, value: dict[str, str]) -> dict[str, str]:
        return require_names(value)

    @field_validator("cursor_lag")
    @classmethod
    def _lag(cls, value: str | int | float | None) -> str | None:
        if value is None or _LAG.fullmatch(str(value)):
            return None if value is None else str(value)
        raise ValueError("expected a number, or a time such as '2 hours'")

    @model_validator(mode="after")
    def _one_order(self) -> Self:
        if self.read is not None and (self.cursor or "").lower() == "offset" and self.read.has_partial_offsets:
            raise ValueError(
                "the cursor is Kafka's 'offset', which each partition counts on its own, so that messages of a shorter "
                "partition would be left out; run --continuous, which follows each partition, or read one partition: "
                """assign: '{"orders":[0]}'"""
            )
        is_first = self.mode is Mode.MERGE and [name.lower() for name in self.order_by[:1]] == ["offset"]
        if is_first and self.read is not None and self.read.has_partial_offsets:
            raise ValueError(
                "order_by begins with Kafka's 'offset', which each partition counts on its own: once partitions are "
                "added, a key's newer messages may have lower ones, and would be late; set order_by: [timestamp, "
                """offset], or read one partition: assign: '{"orders":[0]}'"""
            )
        return self

    @model_validator(mode="after")
    def _order_of_events(self) -> Self:
        if self.envelope is not None and self.order_by and self.envelope.events.order:
            raise ValueError("'order_by' is given by the events of 'envelope: debezium'; leave it out")
        if self.envelope is not None and len(self.order_by) > 1:
            raise ValueError("'order_by' is one column with 'envelope: dms': the one with AR_H_CHANGE_SEQ")
        has_values = self.read is not None and self.read.values is not None
        if has_values and (self.envelope is None or not self.envelope.events.has_rows_inside):
            raise ValueError("'read.values' is only for 'envelope: debezium', which makes rows of a message's value")
        return self

    @field_validator("columns")
    @classmethod
    def _renamed_once(cls, columns: dict[str, str | ColumnEntry]) -> dict[str, str | ColumnEntry]:
        renamed = list_renamed(columns)
        for name, before in renamed.items():
            if before.lower() in map(str.lower, columns):
                raise ValueError(
                    f"{name!r} was renamed from {before!r}, which is a column itself; rename one at a time"
                )
            if list(renamed.values()).count(before) > 1:
                raise ValueError(f"two columns were renamed from {before!r}; expected one")
        return columns

    @property
    def renamed_from(self) -> dict[str, str]:
        """The names that the source had for columns before, by those that it has now."""
        return list_renamed(self.columns)

    def _list_types(self) -> Iterator[tuple[str, ColumnType | None]]:
        for name, column in self.columns.items():
            yield name, ColumnType(type=column) if isinstance(column, str) else column.column_type

    @property
    def title(self) -> str:
        """The entry's name in messages."""
        return f"table {self.table!r}"

    def make_read(self, root: str) -> Read:
        """Return the neutral form of ``read``; an empty one where a program gives the rows."""
        return Read() if self.read is None else self.read.make_read(root)

    @field_validator("primary_key", "unique_key", "order_by", "partition_by", "sort_by")
    @classmethod
    def _once_each(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        twice = [name for name, count in Counter(value).items() if count > 1]
        if twice:
            raise ValueError(f"{twice[0]!r} is there {Counter(value)[twice[0]]} times; expected each once")
        return value

    def apply_defaults(self, contract: ContractEntry, on_bad_row: BadRowEntry | None) -> Self:
        """Return the entry with what the pipeline decides for all of its tables."""
        rules = {"contract": self.contract.fill_from(contract), "on_bad_row": self.on_bad_row or on_bad_row}
        return self.model_copy(update=rules)

    def make_source(self, root: str) -> TableSource:
        """Return the source side of the table, with paths made absolute."""
        return TableSource(
            source_schema=self.schema_,
            source_table=self.table,
            read=self.make_read(root),
            primary_key=self.primary_key,
            unique_key=self.unique_key,
            mode=self.mode,
            cursor=self.cursor,
            cursor_lag=None if self.cursor_lag is None else str(self.cursor_lag),
            deleted=self.deleted,
            envelope=None if self.envelope is None else self.envelope.events,
            order_by=self.order_by or (() if self.envelope is None else self.envelope.events.order),
            keep_deleted=self.keep_deleted,
            history=self.history,
            deleted_seconds=to_seconds(self.deleted_for or DELETED_FOR),
            columns={name: column for name, column in self._list_types() if column is not None},
            renamed_from=self.renamed_from,
            truncates_nanoseconds=self.nanoseconds == "truncate",
            names=self.names,
            written_as=self.written_as,
            index=IndexKind(self.index or IndexKind.CONTIGUOUS),
            partition_by=tuple(parse_partition_field(text) for text in self.partition_by),
            sort_by=self.sort_by,
            contract=self.contract.contract,
            on_bad_row=self.on_bad_row and self.on_bad_row.bad_rows,
        )


def list_renamed(columns: Mapping[str, str | ColumnEntry]) -> dict[str, str]:
    """Return the names that the source had for columns before, by those that it has now."""
    entries = {name: column for name, column in columns.items() if isinstance(column, ColumnEntry)}
    return {name: entry.renamed_from for name, entry in entries.items() if entry.renamed_from is not None}


def choose_table_name(source: TableSource, location: Location) -> str | None:
    """Return the name that lake.yaml gives a table at the destination, None for none; ``SPEC_INVALID`` for one that
    would be written as another."""
    if source.written_as is not None and name_tables([source.written_as]) != [source.written_as]:
        raise FaultError(
            (*location, "written_as"),
            f"no table is written as {source.written_as!r}.",
            remedy=f"Give it as it is written, such as {name_tables([source.written_as])[0]!r}.",
        )
    return source.written_as


def require_names(names: dict[str, str]) -> dict[str, str]:
    """Return written names by source column; ``ValueError`` for one that two columns of one struct have, or a blank."""
    taken: dict[tuple[str, str], str] = {}
    for source, name in names.items():
        if not name:
            raise ValueError(f"{source!r} has no name; expected one such as 'first_name'")
        other = taken.setdefault((source.rpartition(".")[0], name.lower()), source)
        if other != source:
            raise ValueError(f"{other!r} and {source!r} have the name {name!r}; expected one for each")
    return names


def parse_partition_field(text: str) -> PartitionField:
    """Return a column, or a transform of one as Spark and Athena spell it."""
    if match := _OF_TIME.fullmatch(text):
        return PartitionField(column=match[2], transform=match[1])
    if match := _NUMBERED.fullmatch(text):
        return PartitionField(column=match[3], transform=f"{match[1]}[{match[2]}]")
    if not text or text.endswith((")", "]")):
        raise ValueError("expected a column, or year(c), month(c), day(c), hour(c), bucket(16, c) or truncate(4, c)")
    return PartitionField(column=text)


def find_nested(paths: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the number of each path that lies below another one or is an earlier one, and that one's number."""
    numbers: dict[str, list[int]] = {}
    for number, path in enumerate(paths):
        numbers.setdefault(path, []).append(number)
    for number, path in enumerate(paths):
        folders = list(accumulate(path.split("/"), "{}/{}".format))
        others = [
            other
            for folder in folders
            for other in numbers.get(folder, ())
            if other < number or (other > number and folder != path)
        ]
        if others:
            yield number, min(others)


def refuse_nested(
    tables: Sequence[TableSpec],
    remedy: str,
    within: Location = ("tables",),
    *,
    numbers: Sequence[int] | None = None,
) -> None:
    """Raise ``NAME_COLLISION`` for a table at another's path or below it, whose rows would be read as the other's.
    ``within`` is the location of their entries, ``numbers`` those of the entries; by default each table has its own."""
    entries = range(len(tables)) if numbers is None else numbers
    for number, other in find_nested([table.path for table in tables]):
        table, taker = tables[number], tables[other]
        path = f"{table.path!r}" if table.path == taker.path else f"{table.path!r}, in {taker.path!r}"
        location = ".".join(map(str, (*within, entries[other])))
        raise FaultError(
            (*within, entries[number]),
            f"table {table.source_table!r} would lie at {path}, where table {taker.source_table!r} ({location}) lies.",
            remedy=remedy,
            kind=NameCollisionError,
        )
