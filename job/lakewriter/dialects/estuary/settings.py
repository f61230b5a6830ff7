"""Estuary's Apache Parquet in S3: the keys of its endpoint and of a binding, checked."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from lakewriter.dialects.common.destination import BucketName, Destination, require_region
from lakewriter.dialects.common.form import allow_config_file
from lakewriter.dialects.common.places import require_path, require_url
from lakewriter.dialects.common.role_and_external_id import ExternalId, RoleArn
from lakewriter.dialects.common.tables import TableEntry
from lakewriter.dialects.estuary.collection_schema import CollectionSchema, read_schema
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.access import KeyNames, SecretText
from lakewriter.spec.collection import PUBLISHED_AT, Collection, LogicalType, Selection
from lakewriter.spec.model import FileModel, require_one

Compression = Literal["snappy", "gzip", "lz4", "zstd"]

MOST_SECONDS: Final = 366 * 86_400
"""The longest interval: a longer one is a mistake."""


class Advanced(FileModel):
    """Options for advanced users."""

    endpoint: str | None = None
    """The URL of an S3-compatible store such as MinIO. It is used for S3 only, never for STS or Glue."""

    @field_validator("endpoint")
    @classmethod
    def _url(cls, value: str | None) -> str | None:
        return require_url(value, "https://s3.example.com") if value else None


def allow_flow_file(schema: dict[str, Any]) -> None:
    """Let editors take a destination without the keys that a Flow file may have."""
    allow_config_file(schema)
    schema["properties"]["materialization"] = {
        "type": "string",
        "description": "Which of the materializations of ``config_file`` to use, where it has several.",
    }


def _make_resource_optional(schema: dict[str, Any]) -> None:
    """Let editors take an entry without a resource, since a Flow file's binding may have it."""
    schema["required"] = [key for key in schema["required"] if key != "resource"]


class EstuaryDestination(Destination):
    """What the connector's older and present configurations have in common, then what is this project's own."""

    model_config = ConfigDict(json_schema_extra=allow_flow_file)

    type: Literal["estuary-s3-parquet"]
    """Estuary's Apache Parquet in S3."""
    bucket: BucketName
    """The bucket: 3 to 63 lower-case letters, digits, ``.`` and ``-``."""
    compressionType: Compression = "snappy"  # noqa: N815 - the vendor's key
    """The codec of the Parquet files, for bindings that name none."""
    awsAccessKeyId: SecretText | None = None  # noqa: N815 - the vendor's key
    """An access key to sign with. Leave it and its secret out where the job's own credentials may write."""
    awsSecretAccessKey: SecretText | None = None  # noqa: N815 - the vendor's key
    """The secret of ``awsAccessKeyId``. Give it by reference: ``${env:NAME}``, ``${ssm:NAME}`` or ``${secret:ARN}``."""
    flatten_separator: Literal["/", "_", ".", "__"] = "/"
    """The separator of property names in the name of a flattened field."""
    logical_types: tuple[LogicalType, ...] = ()
    """Writes JSON text and durations with the Parquet types for them, which few readers know. Without it both are
    strings."""

    @property
    def interval_seconds(self) -> int:
        """Seconds between the loads of a continuous run."""
        raise NotImplementedError

    def list_warnings(self) -> Iterable[str]:
        """Return what is taken otherwise than the connector does."""
        return ()

    @property
    def common_prefix(self) -> str:
        """The prefix under which the paths of all bindings lie; it may have date patterns."""
        return ""


class EstuaryS3Parquet(EstuaryDestination):
    """The endpoint's keys as the document spells them."""

    key_names: ClassVar = KeyNames(
        bucket="bucket",
        region="region",
        prefix="pathPrefix",
        endpoint="advanced.endpoint",
        access_key_id="awsAccessKeyId",
        secret_access_key="awsSecretAccessKey",
    )
    renamed_keys: ClassVar = {"interval_seconds": "uploadIntervalInSeconds"}

    advanced: Advanced = Advanced()
    """Options for advanced users."""
    region: str = ""
    """The region of the bucket. Where it is left out, the bucket is asked."""
    uploadIntervalInSeconds: int = Field(ge=1, le=MOST_SECONDS)  # noqa: N815 - the vendor's key
    """Seconds between the loads of a continuous run."""
    iam_role_arn: RoleArn | None = None
    """The role that the job assumes to write. Leave it out where the job's own credentials may write."""
    external_id: ExternalId | None = None
    """The external id in the role's trust policy, as text or by reference such as ``${secret:ARN}``."""

    @property
    def interval_seconds(self) -> int:
        """Seconds between the loads of a continuous run."""
        return self.uploadIntervalInSeconds

    @field_validator("region")
    @classmethod
    def _region(cls, value: str, others: ValidationInfo) -> str:
        advanced = others.data.get("advanced")
        return value and require_region(value, endpoint=advanced and advanced.endpoint)


ENDPOINT_KEYS: Final = (
    "bucket",
    "region",
    "uploadIntervalInSeconds",
    "awsAccessKeyId",
    "awsSecretAccessKey",
    "advanced",
    "compressionType",
)
"""A vendor's own file may hold these keys."""


class ResourceEntry(FileModel):
    """A binding's resource."""

    pathPrefix: str | None = None  # noqa: N815 - the vendor's key
    """Where the binding's files go in the bucket, such as ``/my-prefix``. Today's configuration calls it ``path``."""
    path: str | None = None
    """Where the binding's files go in the bucket, below ``prefix``. It may have date patterns such as ``%Y/%m/%d``."""
    compressionType: Compression | None = None  # noqa: N815 - the vendor's key
    """The codec of this binding's files, in place of the destination's."""

    @field_validator("pathPrefix", "path")
    @classmethod
    def _path(cls, value: str | None) -> str | None:
        if value is None:
            return None
        if not value.strip("/"):
            raise ValueError("expected a path inside the bucket, such as '/my-prefix'")
        return require_path(value, "/my-prefix")

    @model_validator(mode="after")
    def _one_path(self) -> Self:
        require_one(path=self.path is not None, pathPrefix=self.pathPrefix is not None)
        return self

    @property
    def key(self) -> str:
        """The key that says where the files go."""
        return "pathPrefix" if self.path is None else "path"


class FieldOptions(FileModel):
    """The options of one field's column."""

    castToString: bool = False  # noqa: N815 - the vendor's key
    """Makes the field's column text: strings as they are, anything else as its JSON."""


class FieldsEntry(FileModel):
    """Which fields are materialized."""

    include: dict[str, FieldOptions | None] = Field(default_factory=dict)
    """Fields to add to the recommended ones. Arrays and objects become columns of JSON text."""
    require: dict[str, FieldOptions | None] = Field(default_factory=dict)
    """The newer word for ``include``."""
    exclude: tuple[str, ...] = ()
    """Fields to leave out."""
    recommended: bool | Annotated[int, Field(ge=0)] = True
    """``false`` or 0 for keys and included fields only; a number for fields whose paths have at most so many names."""

    @model_validator(mode="after")
    def _once(self) -> "FieldsEntry":
        both = sorted(set(self.include | self.require).intersection(self.exclude))
        if both:
            raise ValueError(f"{both[0]!r} is included and excluded")
        if PUBLISHED_AT in self.as_text:
            raise ValueError(f"{PUBLISHED_AT!r} is a TIMESTAMP: leave its castToString out")
        return self

    @property
    def depth(self) -> int | None:
        """Names that the path of a recommended field may have; None for any number."""
        if isinstance(self.recommended, bool):
            return None if self.recommended else 0
        return self.recommended

    @property
    def as_text(self) -> Iterator[str]:
        """Fields whose columns are strings, whatever their type."""
        yield from (name for name, options in (self.include | self.require).items() if options and options.castToString)


class ProjectionEntry(FileModel):
    """A projection in its long form."""

    location: str
    """A JSON pointer to the field's place in a document, such as ``/meta/id``."""
    partition: bool = False
    """Whether the collection is partitioned by the field. It has no effect here."""


def _allow_schema_files(schema: dict[str, Any]) -> None:
    """Let editors take the name of a file for a schema: it is read before the keys are checked."""
    for key in ("schema", "readSchema", "writeSchema"):
        schema["properties"][key]["anyOf"].append({"type": "string"})


class CollectionEntry(FileModel):
    """The collection's own specification, as far as it shapes columns."""

    model_config = ConfigDict(json_schema_extra=_allow_schema_files)

    key: tuple[str, ...] = ()
    """JSON pointers to the properties that identify a document, such as ``/meta/id``."""
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    """The JSON Schema of the documents, or the name of a file that holds it."""
    readSchema: dict[str, Any] | None = None  # noqa: N815 - the vendor's key
    """The JSON Schema for readers, if it differs from that for writers."""
    writeSchema: dict[str, Any] | None = None  # noqa: N815 - the vendor's key
    """The JSON Schema for writers, if it differs from that for readers."""
    projections: dict[str, str | ProjectionEntry] = Field(default_factory=dict)
    """Names of fields in place of their paths, each with the JSON pointer that it stands for."""

    @cached_property
    def read(self) -> CollectionSchema | None:
        """The schema that readers use; None without a schema."""
        schema = self.readSchema or self.schema_ or self.writeSchema
        return None if schema is None else read_schema(schema, self.writeSchema)

    @model_validator(mode="after")
    def _readable(self) -> "CollectionEntry":
        try:
            _ = self.read
        except SpecInvalidError as error:
            raise ValueError(f"{error.message} {error.remedy}".strip()) from error
        return self


class BindingEntry(TableEntry):
    """One binding of the materialization, and where its collection's documents come from."""

    model_config = ConfigDict(json_schema_extra=_make_resource_optional)

    table: str = ""
    """The collection's table in messages. By default the last part of ``source``."""
    source: str = Field(min_length=1)
    """The collection's name, such as ``acme/shop/orders``."""
    resource: ResourceEntry
    """Where the binding's files go."""
    fields: FieldsEntry = FieldsEntry()
    """Which fields of a document become columns."""
    collection: CollectionEntry = CollectionEntry()
    """The collection's own specification: its key, its schema, its projections."""
    documents: str | None = None
    """The column that holds a JSON document in each row. Without it each row is a document."""
    backfill: int = Field(default=0, ge=0)
    """The number of the binding's backfill. Raise it, and the next load reads everything again into a folder of that
    number. 0 leaves it to ``lakewriter reset --backfill``."""

    @model_validator(mode="after")
    def _has_keys(self) -> "BindingEntry":
        if not (self.collection.key or self.primary_key):
            raise ValueError("the collection has no key: give 'collection.key', or 'primary_key'")
        return self

    @property
    def title(self) -> str:
        """The binding's name in messages."""
        return f"binding {self.source!r}"

    def make_collection(self, separator: str, logical_types: Iterable[LogicalType]) -> Collection:
        """Return the neutral form."""
        schema = self.collection.read
        named = {
            name: projection if isinstance(projection, str) else projection.location
            for name, projection in self.collection.projections.items()
        }
        selection = Selection(
            include=tuple(self.fields.include | self.fields.require),
            exclude=self.fields.exclude,
            depth=self.fields.depth,
            separator=separator,
            projections=tuple(named.items()),
            as_text=tuple(self.fields.as_text),
            logical_types=frozenset(logical_types),
        )
        return Collection(
            keys=self.primary_key or self.collection.key,
            column=self.documents,
            locations=None if schema is None else schema.locations,
            selection=selection,
        )
