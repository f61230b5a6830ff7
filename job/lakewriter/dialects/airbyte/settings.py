"""Airbyte's S3 destination form, under the JSON keys of its own configuration, and Hero Pixel's, which is older."""

import re
from typing import Any, ClassVar, Final, Literal

from pydantic import ConfigDict, ValidationInfo, field_validator, model_validator

from lakewriter.dialects.airbyte.file_formats import Format, drop_blanks
from lakewriter.dialects.airbyte.paths import DEFAULT_FILE, DEFAULT_PATH, check_directory, check_file
from lakewriter.dialects.common.destination import Destination, require_region
from lakewriter.dialects.common.form import allow_blanks, allow_config_file
from lakewriter.dialects.common.places import require_match, require_path, require_plain, require_url
from lakewriter.dialects.common.role_and_external_id import ExternalId, RoleArn
from lakewriter.spec.access import KeyNames, SecretText

_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")


def _allow_vendor_file(schema: dict[str, Any]) -> None:
    """Let editors take what the platform writes: blanks, and no region beside an endpoint; or the name of its file."""
    needed = [key for key in schema["required"] if key != "type"]
    allow_blanks(schema)
    allow_config_file(schema)
    schema["anyOf"].append({"required": ["s3_endpoint", *(key for key in needed if key != "s3_bucket_region")]})


class AirbyteDestination(Destination):
    """The settings both products have; those from ``external_id`` on are this project's own."""

    model_config = ConfigDict(json_schema_extra=_allow_vendor_file)

    key_names: ClassVar = KeyNames(
        region="s3_bucket_region",
        prefix="s3_bucket_path",
        endpoint="s3_endpoint",
        role_arn="role_arn",
        file_name="file_name_pattern",
    )
    vendor_keys: ClassVar = (
        "access_key_id", "secret_access_key", "role_arn", "s3_bucket_name", "s3_bucket_path", "s3_bucket_region",
        "s3_endpoint", "s3_path_format", "file_name_pattern", "format",
    )  # fmt: skip

    access_key_id: SecretText | None = None
    """The id of an access key that may read and write the bucket. Leave it and the secret empty to use a role, or the
    identity that the job runs as."""
    secret_access_key: SecretText | None = None
    """The secret of the access key. A reference such as ``${env:NAME}`` keeps it out of the file."""
    role_arn: RoleArn | None = None
    """A role to assume for the bucket. Its external id is ``external_id``, or the environment's
    ``AWS_ASSUME_ROLE_EXTERNAL_ID``."""
    s3_bucket_name: str
    """The bucket that the data goes to."""
    s3_bucket_path: str
    """The directory of the bucket to sync the data into."""
    s3_endpoint: str | None = None
    """The URL of an S3-compatible store such as MinIO. Leave it empty for AWS."""
    s3_bucket_region: str
    """The bucket's region. With an endpoint it may be left empty."""
    s3_path_format: str = DEFAULT_PATH
    """How the data is laid out under the bucket path, with the variables ``${NAMESPACE}``, ``${STREAM_NAME}``,
    ``${YEAR}``, ``${MONTH}``, ``${DAY}``, ``${HOUR}``, ``${MINUTE}``, ``${SECOND}``, ``${MILLISECOND}``, ``${EPOCH}``,
    ``${UUID}``, ``${SYNC_ID}``. The file name follows directly, so end it with / for a directory."""
    file_name_pattern: str = DEFAULT_FILE
    """The name of each file, without spaces, with the variables ``{date}``, ``{date:yyyy_MM}``, ``{timestamp}``,
    ``{timestamp:millis}``, ``{timestamp:micros}``, ``{part_number}``, ``{sync_id}``, ``{format_extension}``."""
    format: Format
    """The format of the files, with its own settings."""
    external_id: ExternalId | None = None
    """The external id that the role's trust policy asks for."""

    @model_validator(mode="before")
    @classmethod
    def _blank_is_absent(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        filled = {key: value for key, value in data.items() if value not in ("", None)}
        if "format" in filled:
            filled["format"] = drop_blanks(filled["format"])
        if filled.get("s3_endpoint"):
            filled.setdefault("s3_bucket_region", "us-east-1")
        if "s3_bucket_path" in data:
            filled.setdefault("s3_bucket_path", "")
        return filled

    @field_validator("access_key_id", "secret_access_key")
    @classmethod
    def _secret(cls, value: SecretText | None) -> SecretText | None:
        if value is not None and value.text and not value.text.strip("*"):
            raise ValueError(
                "Airbyte's API shows asterisks in place of a secret; give the secret itself or a reference such as "
                "${env:NAME}"
            )
        return value

    @field_validator("s3_bucket_name")
    @classmethod
    def _bucket(cls, value: str) -> str:
        return require_match(_BUCKET, value, "a bucket name: letters, digits, '.' and '-'")

    @field_validator("s3_bucket_region")
    @classmethod
    def _region(cls, value: str, others: ValidationInfo) -> str:
        return require_region(value, endpoint=others.data.get("s3_endpoint"))

    @field_validator("s3_endpoint")
    @classmethod
    def _endpoint(cls, value: str | None) -> str | None:
        return value and require_url(value, "http://localhost:9000")

    @field_validator("s3_bucket_path")
    @classmethod
    def _directory(cls, value: str) -> str:
        return check_directory(require_path(value, "data_sync/test"))

    @field_validator("s3_path_format")
    @classmethod
    def _format(cls, value: str) -> str:
        # The file's name follows without a slash.
        return check_directory(require_path(value, "${STREAM_NAME}/", behind="0"))

    @field_validator("file_name_pattern")
    @classmethod
    def _file(cls, value: str) -> str:
        return check_file(require_plain(value, DEFAULT_FILE, before="0"))


class AirbyteS3(AirbyteDestination):
    """Airbyte's S3 destination."""

    type: Literal["airbyte-s3"]
    """Airbyte's S3 destination."""
    record_undeclared: bool = False
    """Names properties that a stream's schema does not declare in ``_airbyte_meta.changes``, too."""


class HeroPixelS3(AirbyteDestination):
    """Hero Pixel's S3 destination."""

    type: Literal["heropixel-s3"]
    """Hero Pixel's S3 destination."""
    purge_first: bool = False
    """Deletes a stream's old objects before a full refresh instead of after it, as Hero Pixel documents it."""
