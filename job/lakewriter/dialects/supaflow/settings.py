"""Supaflow's Amazon S3 and S3 Data Lake forms: their labels in snake_case, checked."""

import re
from typing import Any, ClassVar, Final, Literal

from pydantic import ConfigDict, ValidationInfo, field_validator, model_validator

from lakewriter.dialects.common.destination import BucketName, Destination, require_region
from lakewriter.dialects.common.iceberg import (
    OPEN_CATALOG_KEYS,
    OPEN_CATALOG_ONLY,
    CatalogBase,
    CatalogEndpoint,
    SecretReference,
    find_missing_keys,
)
from lakewriter.dialects.common.places import require_path, require_plain, require_url
from lakewriter.dialects.common.problems import suggest_nearest
from lakewriter.dialects.common.role_and_external_id import ExternalId, RoleArn
from lakewriter.spec.access import KeyNames, SecretText
from lakewriter.spec.key_template import Template

FILE_VARIABLES: Final = {
    "{seq}": "{seq}",
    "{uuid}": "{uuid}",
    "{timestamp}": "{date:%Y%m%d%H%M%S}",
    "{supa_job_id}": "{job_id}",
    "{date}": "{date:%Y%m%d}",
}

_BRACED = re.compile(r"\{[^{}]*\}|[{}]")


def _allow_blank_fields(schema: dict[str, Any]) -> None:
    """Let editors take blank text for the fields of the form that may be empty."""
    for key in _MAY_BE_BLANK & schema["properties"].keys():
        for value in schema["properties"][key].get("anyOf", ()):
            value.pop("minLength", None)


class SupaflowDestination(Destination):
    """The settings both connectors have."""

    model_config = ConfigDict(json_schema_extra=_allow_blank_fields)

    s3_bucket_name: BucketName
    """The bucket: 3 to 63 lower-case letters, digits, ``.`` and ``-``."""
    custom_s3_endpoint: str | None = None
    """The URL of an S3-compatible store such as MinIO. It is used for S3 only, never for STS or Glue."""
    bucket_region: str
    """The region of the bucket, where Glue and STS are called too. With ``custom_s3_endpoint`` the store's own name for
    it."""
    s3_path_prefix: str = ""
    """The path that every key begins with, such as ``data/production``, without the bucket."""
    iam_role_arn: RoleArn | None = None
    """The role that the job assumes to write. Leave it out where the job's own credentials may write."""
    external_id: ExternalId | None = None
    """The external id in the role's trust policy, as text or by reference such as ``${secret:ARN}``."""
    access_key_id: SecretText | None = None
    """An access key to sign with, where the environment has no credentials; needs ``secret_access_key`` beside it."""
    secret_access_key: SecretText | None = None
    """The secret of ``access_key_id``. Give it by reference: ``${env:NAME}``, ``${ssm:NAME}`` or ``${secret:ARN}``."""
    glue_database_prefix: str = "supaflow"
    """The first part of the names of databases in Glue. ``""`` for none."""
    destination_prefix: str = ""
    """Supaflow's pipeline setting: a part of each schema's name, between the Glue prefix and the source's schema."""
    destination_table_handling: Literal["APPEND", "FAIL"] = "APPEND"
    """Supaflow's pipeline setting. With ``FAIL``, a table's first load needs an empty path; with ``APPEND``, it does
    not look at the path."""

    @model_validator(mode="before")
    @classmethod
    def _blank_is_absent(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if not _is_blank(key, value)}

    @field_validator("glue_database_prefix", "destination_prefix", "s3_path_prefix")
    @classmethod
    def _is_literal(cls, value: str) -> str:
        if value.rstrip("/").endswith("*"):
            raise ValueError("expected the prefix itself, without the '*' that it has in a policy: 'mycompany'")
        return value

    @field_validator("bucket_region")
    @classmethod
    def _region(cls, value: str, others: ValidationInfo) -> str:
        return require_region(value, endpoint=others.data.get("custom_s3_endpoint"))

    @field_validator("s3_path_prefix")
    @classmethod
    def _prefix(cls, value: str) -> str:
        return require_path(value, "data-lake/production")

    @field_validator("custom_s3_endpoint")
    @classmethod
    def _endpoint(cls, value: str | None) -> str | None:
        return value and require_url(value, "https://s3.example.com")


class ParquetDestination(SupaflowDestination):
    """The Parquet settings both connectors have."""

    key_names: ClassVar = KeyNames(file_name="file_name_pattern")

    partition_strategy: Literal["NONE", "DAY", "HOUR", "SYNC_ID"] = "HOUR"
    """The folders of a table's files: by hour or day of the load's start, by its job id (``SYNC_ID``), or none."""
    file_name_pattern: str = "part-{supa_job_id}-{seq}"
    """The names of files, made of ``{seq}``, ``{uuid}``, ``{supa_job_id}``, ``{timestamp}`` and ``{date}``."""

    @field_validator("file_name_pattern")
    @classmethod
    def _file(cls, value: str) -> str:
        parse_file_name(require_plain(value, "part-{supa_job_id}-{seq}"))
        return value


class S3Parquet(ParquetDestination):
    """The older Amazon S3 connector."""

    type: Literal["supaflow-s3"]
    """Supaflow's Amazon S3 connector, the older of its two."""
    sync_schema_with_aws_glue_catalog: bool = False
    """Keeps the tables and their partitions in AWS Glue, so that Athena and Spark can query them."""

    @property
    def glue(self) -> bool:
        """The switch under its older name."""
        return self.sync_schema_with_aws_glue_catalog


class S3DataLakeParquet(ParquetDestination):
    """The S3 Data Lake connector with ``table_format: PARQUET``."""

    type: Literal["supaflow-s3-data-lake"]
    """Supaflow's S3 Data Lake connector."""
    table_format: Literal["PARQUET"] = "PARQUET"
    """``PARQUET`` for files, which may be tables in Glue too; ``ICEBERG`` for Iceberg tables."""
    update_aws_glue_catalog: bool = False
    """Keeps the tables and their partitions in AWS Glue, so that Athena and Spark can query them."""

    @model_validator(mode="before")
    @classmethod
    def _no_iceberg_keys(cls, data: Any) -> Any:
        return refuse_keys(data, ICEBERG_ONLY, "table_format: ICEBERG")

    @field_validator("table_format", mode="before")
    @classmethod
    def _require_format(cls, value: Any) -> Any:
        if value != "PARQUET":
            raise ValueError("expected 'PARQUET' or 'ICEBERG'")
        return value

    @property
    def glue(self) -> bool:
        """The switch of the Parquet settings."""
        return self.update_aws_glue_catalog


class S3DataLakeIceberg(SupaflowDestination):
    """The S3 Data Lake connector with ``table_format: ICEBERG``."""

    type: Literal["supaflow-s3-data-lake"]
    """Supaflow's S3 Data Lake connector."""
    table_format: Literal["ICEBERG"]
    """``PARQUET`` for files, which may be tables in Glue too; ``ICEBERG`` for Iceberg tables."""
    iceberg_catalog: Literal["GLUE", "SNOWFLAKE_OPEN_CATALOG"] = "GLUE"
    """Where the Iceberg tables are registered: AWS Glue, or Snowflake Open Catalog (Polaris)."""
    catalog_endpoint: CatalogEndpoint | None = None
    """The REST endpoint of Open Catalog, such as ``https://org-account.snowflakecomputing.com/polaris/api/catalog``."""
    catalog_name: str | None = None
    """The name of the catalog in Open Catalog."""
    client_id: SecretText | None = None
    """The id of the service connection that signs in to Open Catalog."""
    client_secret: SecretReference | None = None
    """The secret of ``client_id``, by reference only: ``${env:NAME}``, ``${ssm:NAME}`` or ``${secret:ARN}``."""
    principal_role: str = "ALL"
    """The principal role to take in Open Catalog; ``ALL`` for every role that the connection has."""
    catalog_base_location: CatalogBase = ""
    """Where the catalog keeps its tables, where that is not the destination's own prefix: the catalog's default base
    location, such as ``s3://acme-lake/open/``."""

    @field_validator("iceberg_catalog", mode="before")
    @classmethod
    def _require_catalog(cls, value: Any) -> Any:
        if value not in ("GLUE", "SNOWFLAKE_OPEN_CATALOG"):
            raise ValueError(
                "expected 'GLUE' or 'SNOWFLAKE_OPEN_CATALOG'; 'type: lakewriter-s3' has 'catalog: rest' for others"
            )
        return value

    @model_validator(mode="before")
    @classmethod
    def _own_keys(cls, data: Any) -> Any:
        data = refuse_keys(data, PARQUET_ONLY, "table_format: PARQUET")
        if isinstance(data, dict) and data.get("iceberg_catalog") != "SNOWFLAKE_OPEN_CATALOG":
            data = refuse_keys(data, OPEN_CATALOG_ONLY, "iceberg_catalog: SNOWFLAKE_OPEN_CATALOG")
        return data

    @model_validator(mode="after")
    def _complete(self) -> "S3DataLakeIceberg":
        if self.iceberg_catalog == "SNOWFLAKE_OPEN_CATALOG":
            missing = find_missing_keys(self, OPEN_CATALOG_KEYS)
            if missing:
                raise ValueError(f"SNOWFLAKE_OPEN_CATALOG needs {', '.join(map(repr, missing))}")
        return self

    @property
    def glue(self) -> bool:
        """True if Glue holds the tables."""
        return self.iceberg_catalog == "GLUE"


AnyDestination = S3Parquet | S3DataLakeParquet | S3DataLakeIceberg

ICEBERG_ONLY: Final = ("iceberg_catalog", *OPEN_CATALOG_ONLY)
PARQUET_ONLY: Final = ("update_aws_glue_catalog", "partition_strategy", "file_name_pattern")
_MAY_BE_BLANK: Final = frozenset(
    {"iam_role_arn", "external_id", "custom_s3_endpoint", "access_key_id", "secret_access_key", *OPEN_CATALOG_ONLY}
)


def _is_blank(key: str, value: Any) -> bool:
    """Return whether this field of the form was left empty, which is as if it were not there."""
    return key in _MAY_BE_BLANK and value == ""


def refuse_keys(data: Any, keys: tuple[str, ...], with_: str) -> Any:
    """Return ``data``; raise ``ValueError`` if it has keys that go with another setting."""
    # What a class asks for itself is asked before the blank fields are taken out.
    given = [key for key in keys if isinstance(data, dict) and key in data and not _is_blank(key, data[key])]
    if given:
        verb = "are" if len(given) > 1 else "is"
        raise ValueError(f"{', '.join(map(repr, given))} {verb} only for '{with_}'")
    return data


def parse_file_name(pattern: str) -> Template:
    """Return the file name's template; ``ValueError`` when it could give two files one name."""
    for variable in _BRACED.findall(pattern):
        if variable not in FILE_VARIABLES:
            variables = ", ".join(FILE_VARIABLES)
            raise ValueError(
                f"{variable!r} is no variable; known: {variables}{suggest_nearest(variable, FILE_VARIABLES)}"
            )
    if "/" in pattern:
        raise ValueError("'/' cannot be in a file name; folders follow from 'partition_strategy'")
    if pattern.startswith(("_", ".")):
        raise ValueError("Athena and Spark leave out files whose names begin with '_' or '.'")
    if "{supa_job_id}" not in pattern and "{uuid}" not in pattern:
        raise ValueError("two loads would give their files one name; add {supa_job_id} or {uuid}")
    if "{seq}" not in pattern and "{uuid}" not in pattern:
        raise ValueError("two files of a load would have one name; add {seq} or {uuid}")
    return Template.parse(_BRACED.sub(lambda match: FILE_VARIABLES[match[0]], pattern))
