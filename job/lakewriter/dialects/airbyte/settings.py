"""Airbyte's S3 destination form, under the JSON keys of its own configuration, and Hero Pixel's, which is older."""

import re
from typing import Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from lakewriter.dialects.airbyte.file_formats import Format, filled
from lakewriter.dialects.airbyte.paths import DEFAULT_FILE, DEFAULT_PATH, check_directory, check_file
from lakewriter.dialects.common.form import or_config_file
from lakewriter.dialects.common.places import require_path, require_plain, require_url
from lakewriter.spec.access import SecretText
from lakewriter.spec.model import Model
from lakewriter.spec.trust import ALPHABET, EXTERNAL_ID

_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_REGION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*")
_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+")


class AirbyteDestination(Model):
    """The settings both products have; those from ``external_id`` on are this project's own."""

    model_config = ConfigDict(json_schema_extra=or_config_file)

    vendor_keys: ClassVar = (
        "access_key_id", "secret_access_key", "role_arn", "s3_bucket_name", "s3_bucket_path", "s3_bucket_region",
        "s3_endpoint", "s3_path_format", "file_name_pattern", "format",
    )  # fmt: skip

    access_key_id: SecretText | None = None
    secret_access_key: SecretText | None = None
    role_arn: str | None = None
    s3_bucket_name: str
    s3_bucket_path: str
    s3_bucket_region: str
    s3_endpoint: str | None = None
    s3_path_format: str = DEFAULT_PATH
    file_name_pattern: str = DEFAULT_FILE
    format: Format
    external_id: SecretText | None = None
    """What the role's trust policy asks for; by default the environment's AWS_ASSUME_ROLE_EXTERNAL_ID."""
    upload_parallelism: int = Field(5, ge=1, le=10)
    allow_insecure: bool = False
    """Accepts an ``http://`` endpoint that is not on this machine."""
    single_writer: bool = False
    """Promises that one load runs at a time, for a store without conditional writes."""
    role_wait_seconds: float = Field(60.0, ge=0, le=600)
    """A role made a moment ago is refused at first: it is tried for this long."""

    @model_validator(mode="before")
    @classmethod
    def _blank_is_absent(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        kept = {key: value for key, value in data.items() if value not in ("", None)}
        if "format" in kept:
            kept["format"] = filled(kept["format"])
        if kept.get("s3_endpoint"):
            kept.setdefault("s3_bucket_region", "us-east-1")
        if "s3_bucket_path" in data:
            kept.setdefault("s3_bucket_path", "")
        return kept

    @field_validator("s3_bucket_name")
    @classmethod
    def _bucket(cls, value: str) -> str:
        return _matching(_BUCKET, value, "a bucket name: letters, digits, '.' and '-'")

    @field_validator("s3_bucket_region")
    @classmethod
    def _region(cls, value: str) -> str:
        return _matching(_REGION, value, "a region such as 'us-east-1'")

    @field_validator("role_arn")
    @classmethod
    def _role(cls, value: str | None) -> str | None:
        return value and _matching(_ROLE, value, "a role's ARN such as 'arn:aws:iam::123456789012:role/LakeWriter'")

    @field_validator("external_id")
    @classmethod
    def _external(cls, value: SecretText | None) -> SecretText | None:
        if value is not None and value.reference is None:
            _matching(EXTERNAL_ID, value.text, ALPHABET)
        return value

    @field_validator("s3_endpoint")
    @classmethod
    def _endpoint(cls, value: str | None) -> str | None:
        return value and require_url(value, "http://localhost:9000")

    @field_validator("s3_bucket_path", "s3_path_format")
    @classmethod
    def _directory(cls, value: str) -> str:
        return check_directory(require_path(value, "data_sync/test"))

    @field_validator("file_name_pattern")
    @classmethod
    def _file(cls, value: str) -> str:
        return check_file(require_plain(value, DEFAULT_FILE))

    @model_validator(mode="after")
    def _together(self) -> "AirbyteDestination":
        if self.external_id is not None and self.role_arn is None:
            raise ValueError("'external_id' needs 'role_arn' beside it")
        if (self.access_key_id is None) != (self.secret_access_key is None):
            raise ValueError("'access_key_id' and 'secret_access_key' are given both or not at all")
        return self


class AirbyteS3(AirbyteDestination):
    """Airbyte's S3 destination."""

    type: Literal["airbyte-s3"]
    record_undeclared: bool = False
    """Names properties that the schema does not declare in ``_airbyte_meta.changes`` too."""


class HeroPixelS3(AirbyteDestination):
    """Hero Pixel's S3 destination."""

    type: Literal["heropixel-s3"]
    purge_first: bool = False
    """Deletes a stream's objects before a full refresh instead of after it, as documented."""


def _matching(pattern: re.Pattern[str], value: str, expected: str) -> str:
    if not pattern.fullmatch(value):
        raise ValueError(f"expected {expected}")
    return value
