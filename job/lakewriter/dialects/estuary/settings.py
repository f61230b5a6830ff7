"""Estuary's Apache Parquet in S3: the keys of its endpoint and of a binding, checked."""

from collections.abc import Iterable, Iterator
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
from lakewriter.spec.model import Model, require_one

Compression = Literal["snappy", "gzip", "lz4", "zstd"]

MOST_SECONDS: Final = 86_400
"""Of an interval."""


class Advanced(Model):
    """Options for advanced users."""

    endpoint: str | None = None
    """The endpoint of an S3-compatible store."""

    @field_validator("endpoint")
    @classmethod
    def _url(cls, value: str | None) -> str | None:
        return require_url(value, "https://s3.example.com") if value else None


def allow_flow_file(schema: dict[str, Any]) -> None:
    """An editor takes a destination without the keys that a Flow file may have."""
    allow_config_file(schema)
    schema["properties"]["materialization"] = {"type": "string"}


def _make_resource_optional(schema: dict[str, Any]) -> None:
    """An editor takes an entry without a resource, since a Flow file's binding may have it."""
    schema["required"] = [key for key in schema["required"] if key != "resource"]


class EstuaryDestination(Destination):
    """What the connector's older and present configurations have in common, then what is this project's own."""

    model_config = ConfigDict(json_schema_extra=allow_flow_file)

    type: Literal["estuary-s3-parquet"]
    bucket: BucketName
    compressionType: Compression = "snappy"  # noqa: N815 - the vendor's key
    """For bindings that name none."""
    flatten_separator: Literal["/", "_", ".", "__"] = "/"
    """Between the property names of a flattened field."""
    logical_types: tuple[LogicalType, ...] = ()
    """Types of Parquet's for JSON and for durations, where otherwise both are strings."""

    @property
    def interval_seconds(self) -> int:
        """Seconds between the loads of a continuous run."""
        raise NotImplementedError

    @property
    def common_prefix(self) -> str:
        """What the paths of all bindings lie under; it may have date patterns."""
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
    region: str = ""
    """The document requires it and its example lacks it: then the bucket is asked."""
    uploadIntervalInSeconds: int = Field(ge=1, le=MOST_SECONDS)  # noqa: N815 - the vendor's key
    awsAccessKeyId: SecretText | None = None  # noqa: N815 - the vendor's key
    """Left out, with the secret key, where the job's own role may write."""
    awsSecretAccessKey: SecretText | None = None  # noqa: N815 - the vendor's key
    iam_role_arn: RoleArn | None = None
    external_id: ExternalId | None = None

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
"""What a vendor's own file may hold."""


class ResourceEntry(Model):
    """A binding's resource."""

    pathPrefix: str | None = None  # noqa: N815 - the vendor's key
    """Where its files go in the bucket, in the older configuration."""
    path: str | None = None
    """The same in the present one: it may have date patterns."""
    compressionType: Compression | None = None  # noqa: N815 - the vendor's key

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


class FieldOptions(Model):
    """What is asked for one field's column."""

    castToString: bool = False  # noqa: N815 - the vendor's key
    """Strings as they are, anything else as its JSON text."""


class FieldsEntry(Model):
    """Which fields are materialized."""

    include: dict[str, FieldOptions | None] = Field(default_factory=dict)
    """Fields to add: arrays and objects become JSON strings."""
    require: dict[str, FieldOptions | None] = Field(default_factory=dict)
    """The newer word for ``include``."""
    exclude: tuple[str, ...] = ()
    recommended: bool | Annotated[int, Field(ge=0)] = True
    """Off, or 0: keys and included fields only; a number: fields whose paths have at most so many names."""

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
        yield from (name for name, own in (self.include | self.require).items() if own and own.castToString)


class ProjectionEntry(Model):
    """A projection in its long form."""

    location: str
    partition: bool = False


class CollectionEntry(Model):
    """The collection's own specification, as far as it shapes columns."""

    key: tuple[str, ...] = ()
    """JSON pointers, such as ``/meta/id``."""
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    """JSON Schema."""
    readSchema: dict[str, Any] | None = None  # noqa: N815 - the vendor's key
    writeSchema: dict[str, Any] | None = None  # noqa: N815 - the vendor's key
    projections: dict[str, str | ProjectionEntry] = Field(default_factory=dict)
    """Field names of their own for locations."""

    @property
    def read(self) -> CollectionSchema | None:
        """What readers go by; None without a schema."""
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
    """By default the last part of ``source``."""
    source: str = Field(min_length=1)
    """The collection's name."""
    resource: ResourceEntry
    fields: FieldsEntry = FieldsEntry()
    collection: CollectionEntry = CollectionEntry()
    documents: str | None = None
    """The column that holds a JSON document in each row; without it the rows are the documents."""

    @model_validator(mode="after")
    def _has_keys(self) -> "BindingEntry":
        if not (self.collection.key or self.primary_key):
            raise ValueError("the collection has no key: give 'collection.key', or 'primary_key'")
        return self

    def make_collection(self, separator: str, logical_types: Iterable[LogicalType]) -> Collection:
        """The neutral form."""
        schema = self.collection.read
        named = {
            name: own if isinstance(own, str) else own.location for name, own in self.collection.projections.items()
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
