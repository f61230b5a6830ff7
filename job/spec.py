"""The dialect-neutral specification: what a load does, with no vendor's name in it."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from job.collection import Collection
from job.key_layout import KeyLayout
from job.layout import Layout
from job.naming import join_key
from job.stream import AvroEncoding, Envelope, MessageSource, Stream, TextEncoding

_REFERENCE: Final = re.compile(r"\$\{(env|secret|ssm):([^{}]+)\}")
MIB: Final = 1024 * 1024


@dataclass(frozen=True)
class SecretText:
    """A secret by reference, ``${env:NAME}``, ``${secret:ARN[:json-key]}`` or ``${ssm:NAME}``, or a literal.

    Its ``repr`` and its JSON form show a reference, never a literal.
    """

    text: str

    @property
    def reference(self) -> tuple[str, str] | None:
        """``(kind, name)``, or None for a literal."""
        found = _REFERENCE.fullmatch(self.text)
        return (found[1], found[2]) if found else None

    def __repr__(self) -> str:
        return f"SecretText({self.text if self.reference else '***'})"

    __str__ = __repr__

    @classmethod
    def parse(cls, value: "str | SecretText") -> "SecretText":
        """``value`` as a secret; text that looks like a reference must be one."""
        if isinstance(value, SecretText):
            return value
        if "${" in value and not _REFERENCE.fullmatch(value):
            raise ValueError("expected ${env:NAME}, ${secret:ARN[:json-key]} or ${ssm:NAME}, and nothing around it")
        return cls(value)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "minLength": 1}

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            cls.parse,
            core_schema.union_schema([core_schema.is_instance_schema(cls), core_schema.str_schema(min_length=1)]),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda value: value.text if value.reference else None
            ),
        )


class Model(BaseModel):
    """Frozen, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Access(Model):
    """How to reach the destination bucket. ``endpoint`` is a custom S3 endpoint; STS and Glue never use it."""

    bucket: str
    region: str
    prefix: str = ""
    endpoint: str | None = None
    role_arn: str | None = None
    external_id: SecretText | None = None
    access_key_id: SecretText | None = None
    secret_access_key: SecretText | None = None
    single_writer: bool = False
    role_wait_seconds: float = 60.0

    @property
    def explicit(self) -> bool:
        """Whether a role or keys are named."""
        return bool(self.role_arn or self.access_key_id)

    @property
    def checksum_algorithm(self) -> str | None:
        """None for S3-compatible stores, which reject the SDK's default checksums."""
        return None if self.endpoint else "CRC32"


class NoCatalog(Model):
    """Files only."""

    kind: Literal["none"] = "none"


class GlueCatalog(Model):
    """Hive-style tables in the Glue Data Catalog."""

    kind: Literal["glue"] = "glue"
    partition_key: str | None


class GlueService(Model):
    """Iceberg tables in the Glue Data Catalog."""

    kind: Literal["glue"] = "glue"


class RestService(Model):
    """An Iceberg REST catalog with OAuth2 client credentials; ``warehouse`` is the catalog's name in it.

    ``client_id`` may be a reference, as a secret may; the secret must be one.
    """

    kind: Literal["rest"] = "rest"
    uri: str
    warehouse: str
    client_id: str
    client_secret: SecretText
    scope: str


IcebergService = Annotated[GlueService | RestService, Field(discriminator="kind")]


class IcebergCatalog(Model):
    """Iceberg tables."""

    kind: Literal["iceberg"] = "iceberg"
    service: IcebergService


Catalog = Annotated[NoCatalog | GlueCatalog | IcebergCatalog, Field(discriminator="kind")]


class Tracking(StrEnum):
    """What a tracking column holds."""

    SYNCED = "synced"
    DELETED = "deleted"
    INDEX = "index"
    ID = "id"
    JOB_ID = "job_id"


class TrackingColumn(Model):
    """One column the job adds; they follow the data columns in this order."""

    name: str
    holds: Tracking


class Read(Model):
    """One source: a ``spark.read`` format with its options, or SQL over other reads.

    With ``sql``, ``views`` names the reads that the statement sees as tables.
    """

    format: str | None = None
    path: str | tuple[str, ...] | None = None
    options: dict[str, str | SecretText] = {}
    columns: str | None = None
    sql: str | None = None
    views: "dict[str, Read]" = {}

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths, none for a format without files."""
        if self.path is None:
            return ()
        return (self.path,) if isinstance(self.path, str) else self.path


class Mode(StrEnum):
    """What a load does to the rows that are there."""

    APPEND = "append"
    OVERWRITE = "overwrite"


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
        """Whether it sees of a value no more than its hour."""
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
    columns: dict[str, str] = {}
    index: IndexKind = IndexKind.CONTIGUOUS
    partition_by: Partition = ()
    """By source columns; none but Iceberg tables have any."""
    layout: Layout | KeyLayout
    path: str
    must_be_empty: bool = False
    collection: Collection | None = None
    stream: Stream | None = None
    encoding: "Encoding | None" = None

    @property
    def id(self) -> str:
        """``{schema}.{table}``, or the table alone without a schema."""
        return f"{self.schema_name}.{self.name}" if self.schema_name else self.name


class Limits(Model):
    """Sizes in bytes. ``row_group_bytes`` bounds Arrow data held for one row group in a task."""

    upload_parallelism: int = 5
    part_bytes: int = 8 * MIB
    target_file_bytes: int = 200 * MIB
    row_group_bytes: int = 192 * MIB
    parallel_tables: int = 2


class Encoding(Model):
    """How Parquet files are encoded. ``engine`` ``auto`` takes parquet-rs where it is installed, else pyarrow."""

    codec: str = "gzip"
    level: int = 4
    engine: Literal["auto", "arro3", "pyarrow"] = "auto"
    delta: bool = False
    page_bytes: int | None = None
    dictionary_page_bytes: int | None = None
    dictionary: bool = True


class Spec(Model):
    """One pipeline, ready to run. ``interval_seconds`` and ``checkpoint``, a URI, are for continuous runs."""

    pipeline: str
    dialect: str
    access: Access
    catalog: Catalog
    tracking: tuple[TrackingColumn, ...]
    tables: tuple[TableSpec, ...]
    encoding: Encoding | AvroEncoding | TextEncoding = Encoding()
    envelope: Envelope | None = None
    source: MessageSource | None = None
    purge_first: bool = False
    limits: Limits = Limits()
    interval_seconds: int = 300
    checkpoint: str | None = None
    on_failure: Literal["continue", "stop"] = "continue"
    keep_loads_days: int = 30
    roots: tuple[str, ...] = ()
    """The folders that the tables lie in, where they have none in common."""
    database_prefix: str = ""
    """What the names of the vendor's databases in Glue are, or begin with, an underscore following."""
    warnings: tuple[str, ...] = ()

    @property
    def prefixes(self) -> tuple[str, ...]:
        """What the tables lie under. The pipeline's own records lie under ``access.prefix`` in any case."""
        return self.roots or (self.access.prefix,)

    @property
    def iceberg(self) -> bool:
        """Whether the tables are Iceberg's, in whichever catalog."""
        return isinstance(self.catalog, IcebergCatalog)

    @property
    def in_glue(self) -> bool:
        """Whether the tables are in the Glue Data Catalog."""
        catalog = self.catalog
        return isinstance(catalog, GlueCatalog) or (
            isinstance(catalog, IcebergCatalog) and isinstance(catalog.service, GlueService)
        )

    @property
    def rest_service(self) -> RestService | None:
        """The Iceberg REST catalog that the tables are in, if they are in one."""
        service = self.catalog.service if isinstance(self.catalog, IcebergCatalog) else None
        return service if isinstance(service, RestService) else None

    @property
    def reserved_columns(self) -> tuple[str, ...]:
        """Names that a source column cannot have."""
        names = [column.name for column in self.tracking]
        if isinstance(self.catalog, GlueCatalog) and self.catalog.partition_key:
            names.append(self.catalog.partition_key)
        return (*names, *(self.envelope.names if self.envelope else ()))

    def table_location(self, table: TableSpec) -> str:
        """The table's ``s3://`` URI, without a slash at its end."""
        return f"s3://{join_key(self.access.bucket, table.path)}"
