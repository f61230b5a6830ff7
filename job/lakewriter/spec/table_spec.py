"""Describe one table: where its rows come from, what a load does to them, where they go."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from pydantic import model_validator

from lakewriter.naming import LATEST, QUARANTINE, cut, join_key
from lakewriter.receipt import InferredType
from lakewriter.spec.access import SecretText
from lakewriter.spec.change_events import CHANGE_SOURCE, ChangeEvents
from lakewriter.spec.collection import Collection
from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.expectations import Condition, Expectation, Unique
from lakewriter.spec.layout import Layout
from lakewriter.spec.listed_files import ListedFile, Repetition
from lakewriter.spec.model import Model
from lakewriter.spec.row_rules import BadRows, Contract
from lakewriter.spec.source_formats import Format, find_format
from lakewriter.spec.stream import Stream


class JdbcPartition(Model):
    """A column whose ranges of values are read by ``count`` tasks."""

    column: str
    count: int


class JdbcRules(Model):
    """Rules of reading a database. ``quote`` is what quotes the names of an unknown database, None for a known one.

    ``reconcile`` says how far the rows are compared with the server's own answer; None leaves it to what can be known.
    With ``lock`` the table is locked until all connections of a partition have begun.
    """

    quote: str | None = None
    reconcile: Literal["counts", "columns", "off"] | None = None
    lock: bool = False


class KnownTypes(Model):
    """The types that the values of earlier loads have given a table's columns, by their names in the source.

    With ``grows_decimals`` the table's readers take its older decimals as ones of a higher precision.
    """

    columns: tuple[InferredType, ...] = ()
    grows_decimals: bool = False


class AvroValues(Model):
    """The schemas of a topic's values in Avro: those of a ``registry``, each value with the id of its own before it; or
    the one in the file ``schema_path``, that of all values.

    ``user`` and ``password`` sign in to the registry.
    """

    registry: str | None = None
    user: SecretText | None = None
    password: SecretText | None = None
    schema_path: str | None = None

    @property
    def secrets(self) -> tuple[SecretText, ...]:
        """The secrets that are sent to the registry as they are."""
        return tuple(filter(None, (self.user, self.password)))


class Read(Model):
    """One source: a ``spark.read`` format with its options, or SQL over other reads.

    With ``sql``, ``views`` names the reads that the statement sees as tables. ``files: new`` leaves out files that an
    earlier load has read. With ``engine`` Spark's own reader reads a format that the product has a reader for.
    """

    format: str | None = None
    engine: Literal["spark"] | None = None
    path: str | tuple[str, ...] | None = None
    options: Mapping[str, str | SecretText] = {}
    columns: str | None = None
    partition: JdbcPartition | None = None
    jdbc: JdbcRules = JdbcRules()
    values: AvroValues | None = None
    """The schemas of Kafka's values; None where they are JSON."""
    sql: str | None = None
    views: Mapping[str, "Read"] = {}
    files: Literal["all", "new"] = "all"
    listed: tuple[ListedFile, ...] | None = None
    """The files to read, once they are listed; None before, and where only Spark can list them."""
    is_empty: bool = False
    """If true, the files in ``listed`` give the columns alone: a load has no file to read."""
    nameless: tuple[str, ...] = ()
    """The names that columns without one have had in earlier loads, in their order; a load fills them in."""
    learnt: KnownTypes = KnownTypes()
    """The types that earlier loads have given the columns; a load fills them in."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths, none for a format without files."""
        if self.path is None:
            return ()
        return (self.path,) if isinstance(self.path, str) else self.path

    @property
    def needed_paths(self) -> tuple[str, ...]:
        """The paths of all that a load reads of the source, those of views among them."""
        beside = self.values.schema_path if self.values is not None else None
        inside = (path for view in self.views.values() for path in view.needed_paths)
        return (*self.paths, *filter(None, (beside,)), *inside)

    @property
    def kind(self) -> Format:
        """The format, with what is known of it."""
        return find_format(self.format)

    @property
    def is_of_files(self) -> bool:
        """Return whether the source is read file by file."""
        return self.kind.has_files and bool(self.paths)

    @property
    def has_reader(self) -> bool:
        """True if the product has a reader for what the source reads by itself, and may use it."""
        return self.sql is None and self.engine is None and self.kind.has_reader

    @property
    def keeps_key_order(self) -> bool:
        """True if no event of a key comes in a later load than an event that followed it: the source is one topic, or
        the files of one path, and nothing is passed over."""
        options = {name.lower(): value for name, value in self.options.items()}
        if self.kind.name == "kafka":
            topic, fails = options.get("subscribe"), str(options.get("failondataloss", "true")).lower() == "true"
            return self.sql is None and isinstance(topic, str) and "," not in topic and fails
        in_order = str(options.get("latestfirst", "false")).lower() == "false"
        return self.sql is None and self.is_of_files and len(self.paths) == 1 and in_order

    @property
    def leaves(self) -> tuple["Read", ...]:
        """The reads of the source that are no SQL: itself, or those of its views."""
        own_reads = (self,) if self.sql is None else ()
        return (*own_reads, *(read for view in self.views.values() for read in view.leaves))

    @property
    def new_files(self) -> tuple["Read", ...]:
        """Itself and those of its views that leave out files which an earlier load has read."""
        own_reads = (self,) if self.files == "new" else ()
        return (*own_reads, *(read for view in self.views.values() for read in view.new_files))


class ColumnType(Model):
    """The type that a column is declared with, in SQL's words, and how its texts are spelled.

    ``unit`` is what numbers count since 1970 where a timestamp or a date comes as a number, or ``base64`` where a
    decimal or bytes come as such a text; ``format`` is the pattern of dates and times; without either the type has its
    default spelling.
    """

    type: str
    unit: Literal["epoch_s", "epoch_ms", "epoch_us", "epoch_ns", "epoch_days", "base64"] | None = None
    format: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _take_text(cls, value: object) -> object:
        return {"type": value} if isinstance(value, str) else value


class Mode(StrEnum):
    """A load's effect on the rows that are there. It adds rows; or it replaces rows: file by file at its end; or at
    once, all of them or those of the partitions that it has rows for; or those with the same key as one of its own."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    REFRESH = "refresh"
    REPLACE_PARTITIONS = "replace_partitions"
    MERGE = "merge"

    @property
    def replaces_at_once(self) -> bool:
        """Return whether readers see the rows from before the load or those after it, and never both."""
        return self in {Mode.REFRESH, Mode.REPLACE_PARTITIONS}

    @property
    def is_exclusive(self) -> bool:
        """Return whether a load is valid only while no other has committed since it began."""
        return self.replaces_at_once or self is Mode.MERGE

    @property
    def brings_changes(self) -> bool:
        """Return whether rows that a load does not bring stay as they are."""
        return self in {Mode.APPEND, Mode.MERGE}


class IndexKind(StrEnum):
    """``contiguous`` numbers rows 1..N; ``sparse`` is unique and increasing but may have gaps."""

    CONTIGUOUS = "contiguous"
    SPARSE = "sparse"


class PartitionField(Model):
    """One field of an Iceberg table's partition: a column, and a transform in Iceberg's own spelling."""

    column: str
    transform: str = "identity"

    @property
    def kind(self) -> str:
        """The transform without its number."""
        return self.transform.partition("[")[0]

    @property
    def of_time(self) -> bool:
        """Return whether the transform keeps only a unit of time of a value."""
        return self.kind in {"year", "month", "day", "hour"}

    @property
    def name(self) -> str:
        """The field's name, as Iceberg's own engines choose it."""
        suffix = {"identity": "", "truncate": "_trunc"}.get(self.kind, f"_{self.kind}")
        return f"{self.column}{suffix}"

    def __str__(self) -> str:
        number = self.transform.partition("[")[2].rstrip("]")
        if self.kind == "identity":
            return self.column
        return f"{self.kind}({number}, {self.column})" if number else f"{self.kind}({self.column})"


Partition = tuple[PartitionField, ...]


class Bound(Model):
    """An end of a range, as a person has typed it; ``moment`` is None where that is no time, else in UTC."""

    text: str
    moment: datetime | None = None


class Between(Model):
    """The rows that a load brings again: from ``first`` on, and below ``end``; ``sql`` says so in Spark's SQL."""

    column: str
    kind: str
    """The type of both ends, as a cursor names types."""
    first: Bound
    end: Bound
    sql: str

    def __str__(self) -> str:
        return f"{self.column} from {self.first.text} on, below {self.end.text}"


class TableSource(Model):
    """The source side of a table: where its rows come from, and what is done to them.

    ``source_schema`` and ``source_table`` are the source's own names. ``contract`` and ``on_bad_row`` are None if the
    file has neither: the destination's documents decide then.
    """

    source_schema: str = ""
    source_table: str
    read: Read
    primary_key: tuple[str, ...] = ()
    unique_key: tuple[str, ...] = ()
    mode: Mode = Mode.APPEND
    cursor: str | None = None
    cursor_lag: str | None = None
    deleted: str | None = None
    envelope: ChangeEvents | None = None
    """The form of the source's rows if each is an event that changes a row; None where they are the rows."""
    order_by: tuple[str, ...] = ()
    """The source columns by which rows of one key are newer than others; none but merged tables have any."""
    keep_deleted: bool = False
    history: bool = False
    """If true, a second table keeps every change of the rows, and is loaded together with this one."""
    deleted_seconds: float = 0.0
    """Seconds for which a deleted row, which a merge does not keep, keeps older rows of its key out."""
    columns: Mapping[str, ColumnType] = {}
    truncates_nanoseconds: bool = False
    """Times finer than microseconds are cut, and counted, instead of being bad values."""
    renamed_from: Mapping[str, str] = {}
    """The names that the source had for columns before, by those that it has now; none but Iceberg tables have any."""
    names: Mapping[str, str] = {}
    """Written names of source columns; a field of a struct is named by its path, with dots."""
    written_as: str | None = None
    """The table's name at the destination, if lake.yaml gives it."""
    index: IndexKind = IndexKind.CONTIGUOUS
    partition_by: Partition = ()
    """Names source columns; none but Iceberg tables have any."""
    sort_by: tuple[str, ...] = ()
    """The source columns by which the rows of each row group are sorted; none but Parquet files have any."""
    contract: Contract | None = None
    on_bad_row: BadRows | None = None

    @property
    def marks_deleted(self) -> bool:
        """True if the source says of each row whether it deletes the row of its key."""
        return self.deleted is not None or self.envelope is not None

    def make_table(self, *, schema_name: str, name: str, layout: Layout, path: str, **fields: Any) -> "TableSpec":
        """Return the table, written under these names; ``fields`` are others that the destination decides."""
        source = {field: getattr(self, field) for field in TableSource.model_fields}
        return TableSpec(**source | fields, schema_name=schema_name, name=name, layout=layout, path=path)


class TableSpec(TableSource):
    """One table: its source, and where it goes.

    ``schema_name`` and ``name`` are physical names. With ``collection`` its rows are documents. ``encoding`` is its own
    where it differs from the pipeline's.
    """

    schema_name: str
    name: str
    layout: Layout
    path: str
    history_of: str | None = None
    """The id of the merged table, each change of which this one keeps; None for a table of its own."""
    alike: tuple[str, ...] | None = None
    """The ids of the other tables whose names collide with its own, which numbers keep apart; None where no table gets
    a number."""
    must_be_empty: bool = False
    backfill: int | None = None
    """The number of the backfill that a load begins if the table is below it; None where ``reset`` alone begins any."""
    collection: Collection | None = None
    stream: Stream | None = None
    encoding: ParquetEncoding | None = None
    expect: tuple[Expectation, ...] = ()
    repeated: Repetition = "warn"
    between: Between | None = None
    """The rows that the load brings again, in place of those above the cursor, which stays; None for other loads."""

    @property
    def marks_deleted(self) -> bool:
        """See ``TableSource``."""
        return super().marks_deleted or (self.stream is not None and self.stream.deleted_at is not None)

    @property
    def merge_key(self) -> tuple[str, ...]:
        """The columns of which a merge keeps one row each: a history has a row of each key for each order.

        Where events give the order, the rows without a key stand for the truncates and snapshots of one source table.
        """
        if self.history_of is None:
            return self.primary_key
        keys = {name.lower() for name in self.primary_key}
        source = (CHANGE_SOURCE,) if self.envelope is not None and self.envelope.has_rows_inside else ()
        return (*self.primary_key, *(name for name in (*self.order_by, *source) if name.lower() not in keys))

    @property
    def has_history(self) -> bool:
        """Return whether the table has each change of its rows, not only the newest."""
        return self.history_of is not None or self.mode is Mode.APPEND

    @property
    def refuses_floors(self) -> bool:
        """Return whether no event may take out all rows, since deleted rows stay flagged. In a history such an event is
        a row itself."""
        return self.keep_deleted and self.history_of is None

    @property
    def group(self) -> str | None:
        """The id of the table that it is loaded together with, which may be its own; None if it is loaded alone."""
        return self.history_of or (self.id if self.history else None)

    @property
    def overwrites(self) -> bool:
        """Return whether each sync replaces the rows of those before it, where no generations say otherwise."""
        return self.mode is Mode.OVERWRITE or (self.stream is not None and self.stream.overwrites)

    @property
    def latest(self) -> str | None:
        """The key of the object that names the files of the last full refresh; None where there is none."""
        return join_key(self.path, LATEST) if self.layout.has_generations else None

    @property
    def is_given(self) -> bool:
        """Return whether a program gives its rows, as a DataFrame: nothing says where to read them."""
        return self.stream is None and self.read.format is None and self.read.sql is None

    @property
    def sets_aside(self) -> bool:
        """Return whether bad rows go to the quarantine, and the load goes on without them."""
        return self.on_bad_row is not None and self.on_bad_row.action == "quarantine"

    @property
    def marks_rows(self) -> bool:
        """Return whether bad rows are marked, and judged by the tasks that write: those of events are always."""
        return self.sets_aside or self.envelope is not None

    @property
    def fills_unchanged(self) -> bool:
        """Return whether values that change events leave out, since they are unchanged, are taken from earlier events
        or from the table's row.

        This is right if the load and the table have all earlier events of a key. They may not if some are in the
        quarantine, and if a query, a program or several topics give them.
        """
        events = self.envelope is not None and self.envelope.has_rows_inside and self.history_of is None
        return events and not self.sets_aside and not self.conditions and self.read.keeps_key_order

    @property
    def whole_columns(self) -> frozenset[str]:
        """The columns, by their names in the source and in lower case, whose values no event may leave out: rows are
        found, divided or checked by them."""
        partition = (field.column for field in self.partition_by)
        return frozenset(name.lower() for name in (*self.primary_key, *partition, *self.expected_columns))

    @property
    def quarantine(self) -> str | None:
        """The folder of the files with the table's bad rows; None where it has no quarantine."""
        return f"{self.path}{QUARANTINE}" if self.sets_aside else None

    @property
    def names_in_catalog(self) -> tuple[str, ...]:
        """Its name, and that of its quarantine where it has one."""
        return (self.name, *([cut(f"{self.name}{QUARANTINE}")] if self.quarantine is not None else []))

    @property
    def expected_columns(self) -> tuple[str, ...]:
        """The columns that expectations name, by their names in the source."""
        single = (expectation.column for expectation in self.expect if expectation.column is not None)
        several = (
            column for expectation in self.expect if isinstance(expectation, Unique) for column in expectation.columns
        )
        return tuple(dict.fromkeys((*single, *several)))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The expectations in SQL, which Spark looks at row by row."""
        return tuple(expectation for expectation in self.expect if isinstance(expectation, Condition))

    @property
    def unique_checks(self) -> tuple[Unique, ...]:
        """The expectations for which Spark reads the rows a second time."""
        return tuple(expectation for expectation in self.expect if isinstance(expectation, Unique))

    @property
    def id(self) -> str:
        """``{schema}.{table}``, or the table alone without a schema."""
        return f"{self.schema_name}.{self.name}" if self.schema_name else self.name
