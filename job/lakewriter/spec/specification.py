"""The dialect-neutral specification: what a load does, with no vendor's name in it."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal

from pydantic import Field, model_validator

from lakewriter.naming import LATEST, QUARANTINE, cut, join_key
from lakewriter.spec.access import Access, SecretText
from lakewriter.spec.catalogs import AnyRestService, Catalog, GlueCatalog, GlueService, IcebergCatalog, RestService
from lakewriter.spec.collection import Collection
from lakewriter.spec.expectations import Acceptance, Condition, Expectation, Unique
from lakewriter.spec.layout import Layout
from lakewriter.spec.lineage import Lineage
from lakewriter.spec.listed_files import ListedFile, Repetition
from lakewriter.spec.maintenance import Maintenance
from lakewriter.spec.model import Model
from lakewriter.spec.readers import ValueEncoding
from lakewriter.spec.row_rules import BadRows, Contract
from lakewriter.spec.stream import AvroEncoding, Envelope, MessageSource, Stream, TextEncoding
from lakewriter.spec.vendor_policy import VendorPolicy

MIB: Final = 1024 * 1024
BLOCK_BYTES: Final = 16 * MIB
"""Rows gathered for one block of a format that has no row groups."""


class Tracking(StrEnum):
    """The content of a tracking column."""

    SYNCED = "synced"
    DELETED = "deleted"
    INDEX = "index"
    ID = "id"
    JOB_ID = "job_id"


class TrackingColumn(Model):
    """One column the job adds; they follow the data columns in this order."""

    name: str
    holds: Tracking


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
    sql: str | None = None
    views: Mapping[str, "Read"] = {}
    files: Literal["all", "new"] = "all"
    listed: tuple[ListedFile, ...] | None = None
    """The files to read, once they are listed; None before, and where only Spark can list them."""
    is_empty: bool = False
    """If true, the files in ``listed`` give the columns alone: a load has no file to read."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths, none for a format without files."""
        if self.path is None:
            return ()
        return (self.path,) if isinstance(self.path, str) else self.path

    @property
    def new_files(self) -> tuple["Read", ...]:
        """Itself and those of its views that leave out files which an earlier load has read."""
        own_reads = (self,) if self.files == "new" else ()
        return (*own_reads, *(read for view in self.views.values() for read in view.new_files))


class ColumnType(Model):
    """The type that a column is declared with, in SQL's words, and how its texts are spelled.

    ``unit`` is what numbers count since 1970 where a timestamp comes as a number, ``format`` the pattern of dates and
    times; without either the type has its default spelling.
    """

    type: str
    unit: Literal["epoch_s", "epoch_ms", "epoch_us", "epoch_ns"] | None = None
    format: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _take_text(cls, value: object) -> object:
        return {"type": value} if isinstance(value, str) else value


class Mode(StrEnum):
    """A load's effect on the rows that are there. It adds to them, or replaces them file by file after it. It replaces
    them at once, all of them or those of the partitions that it has rows for. Or its rows take the place of those of
    the same key."""

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
        """Return whether the transform takes no more of a value than a unit of time."""
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


class TableSpec(Model):
    """One table: where it comes from, what is done to its rows, where it goes.

    ``schema_name`` and ``name`` are physical names; ``source_schema`` and ``source_table`` the source's own.
    With ``collection`` its rows are documents. ``encoding`` is its own where it differs from the pipeline's.
    ``contract`` and ``on_bad_row`` are None where the file has neither: the destination's documents decide then.
    """

    source_schema: str = ""
    source_table: str
    schema_name: str
    name: str
    read: Read
    primary_key: tuple[str, ...] = ()
    unique_key: tuple[str, ...] = ()
    mode: Mode = Mode.APPEND
    cursor: str | None = None
    cursor_lag: str | None = None
    deleted: str | None = None
    order_by: tuple[str, ...] = ()
    """The source columns by which rows of one key are newer than others; none but merged tables have any."""
    keep_deleted: bool = False
    deleted_seconds: float = 0.0
    """For how long deleted rows that a merge does not keep keep older rows of their key out."""
    columns: Mapping[str, ColumnType] = {}
    truncates_nanoseconds: bool = False
    """Times finer than microseconds are cut, and counted, instead of being bad values."""
    names: Mapping[str, str] = {}
    """Written names of source columns; a field of a struct is named by its path, with dots."""
    index: IndexKind = IndexKind.CONTIGUOUS
    partition_by: Partition = ()
    """Names source columns; none but Iceberg tables have any."""
    sort_by: tuple[str, ...] = ()
    """The source columns by which the rows of each row group are sorted; none but Parquet files have any."""
    layout: Layout
    path: str
    alike: tuple[str, ...] | None = None
    """The ids of the other tables whose names collide with its own, which numbers keep apart; None where no table gets
    a number."""
    is_pinned: bool = False
    """True if lake.yaml says what the table is called at the destination."""
    must_be_empty: bool = False
    backfill: int | None = None
    """The number of the backfill that a load begins if the table is below it; None where ``reset`` alone begins any."""
    collection: Collection | None = None
    stream: Stream | None = None
    encoding: "Encoding | None" = None
    contract: Contract | None = None
    on_bad_row: BadRows | None = None
    expect: tuple[Expectation, ...] = ()
    repeated: Repetition = "warn"

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


class Limits(Model):
    """Sizes in bytes. ``row_group_bytes`` bounds Arrow data held for one row group in a task, ``row_group_rows`` its
    rows. Without ``parallel_tables`` a load uses the sizes of its tables."""

    upload_parallelism: int = 5
    part_bytes: int = 8 * MIB
    target_file_bytes: int = 200 * MIB
    row_group_bytes: int = 80 * MIB
    row_group_rows: int = 1_000_000
    parallel_tables: int | None = None

    @property
    def tables_at_once(self) -> int:
        """Return the number of tables of any size that are loaded at a time."""
        return self.parallel_tables or 2

    def without_row_groups(self) -> "Limits":
        """Return the limits for a format without row groups, whose rows are gathered in blocks."""
        return self.model_copy(update={"row_group_bytes": min(BLOCK_BYTES, self.target_file_bytes)})


class Encoding(Model):
    """The encoding of Parquet files. Without a ``level``, gzip is chosen for each column by its first rows.

    ``value_encodings`` are those that columns may have besides dictionary and plain encoding. ``sort_by`` are the
    written columns by which the rows of each row group are sorted.
    """

    kind: Literal["parquet"] = "parquet"
    codec: str = "gzip"
    level: int | None = None
    value_encodings: frozenset[ValueEncoding] = frozenset()
    sort_by: tuple[str, ...] = ()
    page_bytes: int | None = None
    dictionary_page_bytes: int | None = None
    dictionary: bool = True


METRICS_NAMESPACE: Final = "Lakewriter"
"""CloudWatch has all metrics of loads and runs in this namespace."""

FileEncoding = Encoding | AvroEncoding | TextEncoding
"""The file formats, each identified by its ``kind``."""


class UndoRules(Model):
    """The limits of an undo in Glue; ``grace_minutes`` is how long queries may go on that began before it."""

    drop_partitions: bool = False
    grace_minutes: int = 15


class RefreshRules(Model):
    """The days for which a full refresh keeps the files of the one before."""

    keep_days: int = 3


class Spec(Model):
    """One pipeline, ready to run. ``interval_seconds`` and ``checkpoint``, a URI, are for continuous runs."""

    pipeline: str
    dialect: str
    access: Access
    catalog: Catalog
    tracking: tuple[TrackingColumn, ...]
    tables: tuple[TableSpec, ...]
    encoding: FileEncoding = Encoding()
    envelope: Envelope | None = None
    source: MessageSource | None = None
    purge_first: bool = False
    limits: Limits = Limits()
    interval_seconds: int = 300
    most_interval_seconds: int | None = None
    """An interval grows so far where little arrives; None for a fixed one."""
    put_metrics: bool = False
    checkpoint: str | None = None
    on_failure: Literal["continue", "stop"] = "continue"
    keep_loads_days: int = 30
    shares_tables: bool = False
    """True if other pipelines may write the tables too."""
    undo: UndoRules = UndoRules()
    refresh: RefreshRules = RefreshRules()
    maintenance: Maintenance | None = None
    lineage: Lineage | None = None
    roots: tuple[str, ...] = ()
    """The folders that the tables lie in, where they have none in common."""
    database_prefix: str = ""
    """The name of the vendor's database without a schema in Glue; ``databases_below`` begins those of all others."""
    folder_keys: tuple[str, ...] = ()
    """Keys in the names of folders, ``key=value``: readers make columns of them."""
    column_names: Literal["normalised", "kept"] = "normalised"
    vendor: str | None = None
    """The vendor whose destination this is, as ``deployment.trust`` names it; None where it has no name there."""
    vendor_policies: dict[str, VendorPolicy] = Field(default_factory=dict)
    """The documents of the vendors' set-up pages, by the names of vendors."""
    acceptance: Acceptance | None = None
    """Expectations that this one load need not meet."""
    scheduled_at: datetime | None = None
    """The time that this one load is for, where it was given."""
    warnings: tuple[str, ...] = ()

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Return the prefixes of the tables and their bad rows. The pipeline's records lie under
        ``access.prefix`` in any case.
        """
        roots = self.roots or (self.access.prefix,)
        starts = tuple(f"{root}/" for root in roots if root)
        quarantines = (table.quarantine for table in self.tables if table.quarantine is not None)
        return (*roots, *(quarantine for quarantine in quarantines if starts and not quarantine.startswith(starts)))

    @property
    def vendor_policy(self) -> VendorPolicy | None:
        """The document of this destination's vendor; None where there is none."""
        return self.vendor_policies.get(self.vendor) if self.vendor else None

    @property
    def databases_below(self) -> str:
        """The prefix and an underscore: one that ends with an underscore gets no second one. Blank without a prefix."""
        return f"{self.database_prefix.rstrip('_')}_" if self.database_prefix else ""

    @property
    def iceberg(self) -> bool:
        """Return whether the tables are Iceberg tables, in any catalog."""
        return isinstance(self.catalog, IcebergCatalog)

    @property
    def in_glue(self) -> bool:
        """Return whether the tables are in the Glue Data Catalog."""
        return self.catalog.in_glue

    @property
    def service(self) -> GlueService | AnyRestService | None:
        """The Iceberg catalog that the tables are in, if they are Iceberg tables."""
        return self.catalog.service if isinstance(self.catalog, IcebergCatalog) else None

    @property
    def rest_service(self) -> AnyRestService | None:
        """The Iceberg REST catalog that the tables are in, if they are in one."""
        return self.service if isinstance(self.service, RestService) else None

    @property
    def reserved_columns(self) -> tuple[str, ...]:
        """Names that a source column cannot have."""
        names = [column.name for column in self.tracking]
        if isinstance(self.catalog, GlueCatalog) and self.catalog.partition_key:
            names.append(self.catalog.partition_key)
        names += [key for key in self.folder_keys if key not in names]
        return (*names, *(self.envelope.names if self.envelope else ()))

    def table_location(self, table: TableSpec) -> str:
        """Return the table's ``s3://`` URI, without a slash at its end."""
        return f"s3://{join_key(self.access.bucket, table.path)}"
