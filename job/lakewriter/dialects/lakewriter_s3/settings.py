"""Check the settings of ``lakewriter-s3``, the destination without a vendor; its keys are the field's own words."""

import re
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema, field_validator, model_validator

from lakewriter.dialects.common.destination import Destination, require_bucket, require_region
from lakewriter.dialects.common.iceberg import CatalogBase, CatalogEndpoint, SecretReference
from lakewriter.dialects.common.places import require_match, require_plain, require_url
from lakewriter.dialects.common.problems import list_words, suggest_nearest
from lakewriter.dialects.common.role_and_external_id import ExternalId, RoleArn
from lakewriter.dialects.lakewriter_s3.file_formats import check_compression
from lakewriter.dialects.lakewriter_s3.rest_catalog import check_catalog_keys
from lakewriter.naming import join_key
from lakewriter.spec.access import KeyNames, SecretText
from lakewriter.spec.specification import Tracking

TRACKING: Final = {
    "loaded_at": Tracking.SYNCED,
    "load_id": Tracking.JOB_ID,
    "row_number": Tracking.INDEX,
    "row_id": Tracking.ID,
    "deleted": Tracking.DELETED,
}
"""The words for tracking columns; a column's own name is the word behind an underscore, unless the file gives one."""

_COLUMN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SIGNING_NAME: Final = re.compile(r"[a-z0-9-]+")
_TABLE_BUCKET: Final = re.compile(
    r"arn:aws(?:-[a-z]+)*:s3tables:[a-z]{2,4}(?:-[a-z]+)+-\d{1,2}:\d{12}:bucket/[a-z0-9][a-z0-9-]{1,61}[a-z0-9]"
)
"""https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-tables-buckets-naming.html"""
_LOCATION: Final = "s3://acme-lake/production"


def _require_signing_name(value: str) -> str:
    return require_match(_SIGNING_NAME, value, "lower-case letters, digits and '-', such as 'execute-api'")


def _require_table_bucket(value: str) -> str:
    return require_match(_TABLE_BUCKET, value, "'arn:aws:s3tables:us-east-1:123456789012:bucket/NAME'")


_WORDS_OR_NAMES: Final = {
    "anyOf": [
        {"type": "array", "items": {"enum": list(TRACKING)}},
        {"type": "object", "propertyNames": {"enum": list(TRACKING)}, "additionalProperties": {"type": "string"}},
    ]
}


class LakewriterS3(Destination):
    """Tables of files, Hive tables in Glue, or Iceberg tables."""

    key_names: ClassVar = KeyNames(
        bucket="location",
        region="region",
        prefix="location",
        endpoint="endpoint",
        role_arn="role_arn",
        database="database",
        database_prefix="database",
        catalogs=(
            ("glue", "catalog: iceberg"),
            ("rest", "catalog: open_catalog"),
            ("oauth", "auth: oauth"),
            ("sigv4", "auth: sigv4"),
            ("glue_rest", "auth: sigv4"),
            ("token", "auth: token"),
            ("open", "auth: none"),
            ("s3_tables", "catalog: s3_tables"),
        ),
    )

    type: Literal["lakewriter-s3"]
    """S3 without a vendor: Lakewriter's own layout."""
    location: str
    """The bucket and the prefix that everything lies under, such as ``s3://acme-lake/production``."""
    endpoint: str | None = None
    """The URL of an S3-compatible store such as MinIO. It is used for S3 only, never for STS or Glue."""
    region: str
    """The region of the bucket, where Glue and STS are called too. With ``endpoint`` the store's own name for it."""
    role_arn: RoleArn | None = None
    """The role that the job assumes to write. Leave it out where the job's own credentials may write."""
    external_id: ExternalId | None = None
    """The external id in the role's trust policy, as text or by reference such as ``${secret:ARN}``."""
    access_key_id: SecretText | None = None
    """An access key to sign with, where the environment has no credentials; needs ``secret_access_key`` beside it."""
    secret_access_key: SecretText | None = None
    """The secret of ``access_key_id``. Give it by reference: ``${env:NAME}``, ``${ssm:NAME}`` or ``${secret:ARN}``."""
    format: Literal["parquet", "avro", "csv", "jsonl"] = "parquet"
    """The format of the files. Tables in a catalog are Parquet."""
    compression: str | None = None
    """The codec of the files. By default ``zstd`` for Parquet, ``deflate`` for Avro, ``gzip`` for CSV and JSON
    Lines."""
    compression_level: int | None = None
    """How much time is spent for smaller files, where the codec has levels. By default the codec's usual one."""
    catalog: Literal["none", "glue", "iceberg", "open_catalog", "rest", "s3_tables"] = "none"
    """Where the tables are registered: ``none`` for files alone, ``glue`` for Hive tables and ``iceberg`` for Iceberg
    tables in AWS Glue. Iceberg in Snowflake Open Catalog or another Polaris is ``open_catalog``, in Amazon S3 Tables
    ``s3_tables``, in any other REST catalog ``rest``."""
    uri: CatalogEndpoint | None = None
    """The URL of the Iceberg REST catalog, the part before ``/v1``: ``https://glue.us-east-1.amazonaws.com/iceberg``.
    With ``catalog: s3_tables`` the region's own endpoint, unless an endpoint of your VPC is given."""
    warehouse: str = ""
    """The catalog's name behind ``uri``; of Glue's endpoint the account's 12 digits. Some catalogs have one alone, and
    need none."""
    table_bucket_arn: Annotated[str, AfterValidator(_require_table_bucket)] | None = None
    """The table bucket of ``catalog: s3_tables``; ``location`` is a bucket of yours beside it, for everything but the
    tables' files."""
    auth: Literal["oauth", "sigv4", "token", "none"] | None = None
    """How the job signs in to the catalog at ``uri``: ``oauth`` by ``client_id`` and ``client_secret``, ``sigv4`` by
    signatures with the credentials of the destination, ``token`` by a bearer token, ``none`` not at all."""
    scope: str = Field("catalog", min_length=1)
    """The OAuth2 scope that is asked for with ``auth: oauth``."""
    oauth2_server_uri: CatalogEndpoint | None = None
    """The URL that gives tokens with ``auth: oauth``. Left out, it is ``uri`` and ``/v1/oauth/tokens``."""
    token: SecretReference | None = None
    """The bearer token of ``auth: token``, by reference only: ``${env:NAME}``, ``${ssm:NAME}`` or ``${secret:ARN}``."""
    signing_name: Annotated[str, AfterValidator(_require_signing_name)] | None = None
    """The service that requests are signed for with ``auth: sigv4``. An endpoint of AWS says it itself: ``glue``."""
    catalog_endpoint: CatalogEndpoint | None = None
    """The REST endpoint of Open Catalog, such as ``https://org-account.snowflakecomputing.com/polaris/api/catalog``."""
    catalog_name: str | None = None
    """The name of the catalog in Open Catalog."""
    client_id: SecretText | None = None
    """The id of the service connection that signs in to Open Catalog, or of the client of ``auth: oauth``."""
    client_secret: SecretReference | None = None
    """The secret of ``client_id``, by reference only: ``${env:NAME}``, ``${ssm:NAME}`` or ``${secret:ARN}``."""
    principal_role: str = Field("ALL", min_length=1)
    """The principal role to take in Open Catalog; ``ALL`` for every role that the connection has."""
    catalog_base_location: CatalogBase = ""
    """Where a REST catalog keeps its tables, where that is not the destination's own prefix: the catalog's default base
    location, such as ``s3://acme-lake/open/``."""
    database: str = ""
    """The catalog's database of tables without a schema. Tables with one are in ``{database}_{schema}``."""
    partition_strategy: Literal["none", "day", "hour", "load"] = "day"
    """The folders of a table's files: by day or hour of the load's start, by its job id (``load``), or none. Iceberg
    tables have ``partition_by`` instead."""
    column_names: Literal["normalised", "kept"] = "normalised"
    """``normalised`` makes names that every engine takes; ``kept`` leaves the source's names as they are, in files
    without a catalog."""
    tracking: Annotated[dict[str, str], WithJsonSchema(_WORDS_OR_NAMES)] = Field(
        default_factory=lambda: _name_columns(["loaded_at", "load_id"])
    )
    """The columns that a load adds to each row: ``loaded_at``, ``load_id``, ``row_number``, ``row_id``, ``deleted``. A
    mapping renames them: ``{loaded_at: synced_at}``."""

    @field_validator("location")
    @classmethod
    def _location(cls, value: str) -> str:
        scheme, separator, rest = value.partition("://")
        if scheme != "s3" or not separator:
            raise ValueError(f"expected s3://bucket/prefix, such as {_LOCATION!r}")
        require_bucket(rest.partition("/")[0])
        return require_plain(value, _LOCATION)

    @field_validator("endpoint")
    @classmethod
    def _endpoint(cls, value: str | None) -> str | None:
        return value and require_url(value, "http://localhost:9000")

    @field_validator("region")
    @classmethod
    def _region(cls, value: str, others: ValidationInfo) -> str:
        return require_region(value, endpoint=others.data.get("endpoint"))

    @field_validator("tracking", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        return _name_columns(value) if isinstance(value, list) else value

    @field_validator("tracking")
    @classmethod
    def _columns(cls, value: dict[str, str]) -> dict[str, str]:
        for word, column in value.items():
            if word not in TRACKING:
                raise ValueError(
                    f"{word!r} is not known; expected {list_words(list(TRACKING))}{suggest_nearest(word, TRACKING)}"
                )
            if not _COLUMN.fullmatch(column):
                raise ValueError(f"{column!r} is no column's name; expected letters, digits and '_', no digit first")
        if len({column.lower() for column in value.values()}) < len(value):
            raise ValueError("two tracking columns have one name")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> "LakewriterS3":
        check_compression(self.format, self.compression, self.compression_level)
        if self.catalog != "none" and self.format != "parquet":
            raise ValueError(
                f"'catalog' {self.catalog!r} has tables of Parquet files; expected 'format: parquet', or "
                f"'catalog: none' for {self.format} files"
            )
        if self.column_names == "kept" and (self.catalog != "none" or self.format == "avro"):
            what = "Avro" if self.format == "avro" else "a catalog"
            raise ValueError(f"'column_names' can be kept in files without a catalog, but not in Avro; here is {what}")
        if self.is_iceberg and "partition_strategy" in self.model_fields_set:
            raise ValueError("'partition_strategy' is for files; Iceberg tables have 'partition_by' in their entry")
        if self.catalog == "none" and self.database:
            raise ValueError("'database' is only for a 'catalog'; files lie under the table's 'schema'")
        check_catalog_keys(self, self.model_fields_set)
        return self

    @property
    def is_iceberg(self) -> bool:
        """True if the tables are Iceberg's."""
        return self.catalog not in ("none", "glue")

    @property
    def bucket(self) -> str:
        """The bucket of ``location``."""
        return self.location.removeprefix("s3://").partition("/")[0]

    @property
    def prefix(self) -> str:
        """The part of ``location`` behind the bucket, without slashes around it."""
        return join_key(self.location.removeprefix("s3://").partition("/")[2])


def _name_columns(words: Any) -> Any:
    """Give each word its column's own name; leave anything but words to the checks."""
    return {word: f"_{word}" for word in words} if all(isinstance(word, str) for word in words) else words
