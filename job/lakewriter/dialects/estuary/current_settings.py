"""The endpoint as Estuary's connector of today is configured: credentials of two kinds, a duration, a prefix, limits.

See: https://docs.estuary.dev/reference/Connectors/materialization-connectors/amazon-s3-parquet/
"""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, ClassVar, Final, Literal, Self

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from lakewriter.dialects.common.destination import require_region
from lakewriter.dialects.common.places import require_path, require_url
from lakewriter.dialects.common.role_and_external_id import ExternalId, RoleArn
from lakewriter.dialects.estuary.settings import MOST_SECONDS, EstuaryDestination, allow_flow_file
from lakewriter.spec.access import KeyNames, SecretText
from lakewriter.spec.model import FileModel

_DURATION_PART: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_DURATION: Final = re.compile(rf"(?P<sign>[+-]?)(?P<parts>0|(?:{_DURATION_PART.pattern})+)")
"""A duration as Go's ``time.ParseDuration`` reads it: https://pkg.go.dev/time#ParseDuration"""
_NANOS: Final = {
    "ns": 1, "us": 1000, "\u00b5s": 1000, "\u03bcs": 1000, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip
_KEYS_OF: Final = {"AWSAccessKey": ("awsAccessKeyId", "awsSecretAccessKey"), "AWSIAM": ("aws_role_arn", "aws_region")}


class Credentials(FileModel):
    """Whom to write as: an access key, or a role that the job assumes."""

    auth_type: Literal["AWSAccessKey", "AWSIAM"] = "AWSAccessKey"
    """An access key, or a role that the job assumes."""
    awsAccessKeyId: SecretText | None = None  # noqa: N815 - the vendor's key
    """The access key to sign with, for ``AWSAccessKey``."""
    awsSecretAccessKey: SecretText | None = None  # noqa: N815 - the vendor's key
    """The secret of ``awsAccessKeyId``. Give it by reference: ``${env:NAME}``, ``${ssm:NAME}`` or ``${secret:ARN}``."""
    aws_region: str | None = None
    """The region of the bucket, for ``AWSIAM``."""
    aws_role_arn: RoleArn | None = None
    """The role that the job assumes, for ``AWSIAM``. It has to trust the job."""
    external_id: ExternalId | None = None
    """The external id in the role's trust policy. It is Lakewriter's own key: Estuary's connector signs in with an
    identity of its own."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kind = self.auth_type
        missing = [key for key in _KEYS_OF[kind] if getattr(self, key) is None]
        if missing:
            raise ValueError(f"auth_type {kind!r} needs {missing[0]!r}")
        others = [key for other, keys in _KEYS_OF.items() if other != kind for key in keys]
        others += ["external_id"] if kind == "AWSAccessKey" else []
        given = [key for key in others if getattr(self, key) is not None]
        if given:
            raise ValueError(f"{given[0]!r} has no meaning beside auth_type {kind!r}: leave it out")
        return self


class ParquetConfig(FileModel):
    """Sizes of row groups."""

    rowGroupRowLimit: int | None = Field(None, ge=0)  # noqa: N815 - the vendor's key
    """The most rows of a row group. By default, and with 0, 1,000,000."""
    rowGroupByteLimit: int | None = Field(None, ge=0)  # noqa: N815 - the vendor's key
    """The most bytes of a row group before compression, which a task holds in memory. By default, and with 0,
    ``limits.row_group_mb``."""
    bufferSize: int | None = Field(None, ge=0)  # noqa: N815 - the vendor's key
    """It has no effect here: a task's memory is bounded by its row group."""


class AdvancedOptions(FileModel):
    """Options of Estuary's own connector."""

    feature_flags: str | None = None
    """Flags of Estuary's own connector. Only a blank is taken here."""

    @field_validator("feature_flags")
    @classmethod
    def _none(cls, value: str | None) -> str | None:
        if value:
            raise ValueError("the flags are for Estuary's own connector and have no effect here: leave the key out")
        return value


CURRENT_ONLY: Final = ("credentials", "uploadInterval", "prefix", "fileSizeLimit", "parquetConfig", "endpoint")
"""Keys that a present configuration has and an older one has not."""
CURRENT_KEYS: Final = (
    *CURRENT_ONLY, "bucket", "region", "awsAccessKeyId", "awsSecretAccessKey", "use_path_style", "advanced",
)  # fmt: skip
"""A vendor's own file may hold these keys."""


def is_current(value: Callable[[str], Any]) -> bool:
    """Return whether a destination, by its keys' values, has the present configuration."""
    return any(value(key) is not None for key in CURRENT_ONLY)


def _tell_apart(schema: dict[str, Any]) -> None:
    """Let editors take a destination for this one by a key of its own."""
    allow_flow_file(schema)
    schema["anyOf"] = [{"required": [key]} for key in CURRENT_ONLY]


class EstuaryConnector(EstuaryDestination):
    """Estuary's Apache Parquet in S3, with the keys of the connector's configuration of today."""

    model_config = ConfigDict(json_schema_extra=_tell_apart)

    key_names: ClassVar = KeyNames(
        bucket="bucket",
        region="region",
        prefix="prefix",
        endpoint="endpoint",
        role_arn="credentials.aws_role_arn",
        external_id="credentials.external_id",
        access_key_id="credentials.awsAccessKeyId",
        secret_access_key="credentials.awsSecretAccessKey",
    )
    renamed_keys: ClassVar = {"interval_seconds": "uploadInterval"}

    endpoint: str | None = None
    """The URL of an S3-compatible store such as MinIO. It is used for S3 only, never for STS or Glue."""
    region: str = ""
    """The region of the bucket. Where it is left out, the bucket is asked."""
    credentials: Credentials | None = None
    """As whom to write. Leave it out where the job's own credentials may write."""
    use_path_style: bool = False
    """It has no effect here: requests to an ``endpoint`` have the bucket in the path, those to AWS in the host."""
    uploadInterval: str = "5m"  # noqa: N815 - the vendor's key
    """The time between the loads of a continuous run, such as ``90s`` or ``1h30m``. Parts of a second count as a
    whole one."""
    prefix: str = ""
    """The path that all bindings' files lie under. It may have date patterns such as ``%Y/%m/%d``."""
    fileSizeLimit: int | None = Field(None, ge=0)  # noqa: N815 - the vendor's key
    """About how many bytes a file has. By default, and with 0, ``limits.target_file_mb``."""
    parquetConfig: ParquetConfig = ParquetConfig()  # noqa: N815 - the vendor's key
    """Sizes of row groups."""
    advanced: AdvancedOptions = AdvancedOptions()
    """Options of Estuary's own connector."""

    @property
    def interval_seconds(self) -> int:
        """Between the loads of a continuous run."""
        return read_duration(self.uploadInterval)

    @property
    def common_prefix(self) -> str:
        """The prefix under which the paths of all bindings lie."""
        return self.prefix

    def find_key_names(self) -> KeyNames:
        """Return the names of keys; without ``credentials``, those of an access key are at the root."""
        if self.credentials is not None or (self.awsAccessKeyId is None and self.awsSecretAccessKey is None):
            return self.key_names
        return self.key_names.model_copy(
            update={"access_key_id": "awsAccessKeyId", "secret_access_key": "awsSecretAccessKey"}
        )

    def list_warnings(self) -> Iterator[str]:
        """Yield what is taken otherwise than the connector does."""
        seconds = self.interval_seconds
        if compute_nanos(self.uploadInterval) != seconds * 10**9:
            yield f"uploadInterval {self.uploadInterval!r} is rounded up to {seconds} s: the shortest is 1 s."
        if self.credentials is not None and (self.awsAccessKeyId or self.awsSecretAccessKey):
            yield "awsAccessKeyId and awsSecretAccessKey beside 'credentials' have no effect: credentials count."

    def read_key(self, key: str) -> Any:
        """Return the value at ``key``; None inside ``credentials`` that are not given."""
        if self.credentials is None and key.startswith("credentials."):
            return None
        return super().read_key(key)

    @field_validator("endpoint")
    @classmethod
    def _url(cls, value: str | None) -> str | None:
        return require_url(value, "https://s3.example.com") if value else None

    @field_validator("region")
    @classmethod
    def _region(cls, value: str, others: ValidationInfo) -> str:
        return value and require_region(value, endpoint=others.data.get("endpoint"))

    @field_validator("uploadInterval")
    @classmethod
    def _duration(cls, value: str) -> str:
        read_duration(value)
        return value

    @field_validator("prefix")
    @classmethod
    def _prefix(cls, value: str) -> str:
        if value.startswith("/"):
            raise ValueError("expected a prefix without '/' at its beginning, such as 'lake/%Y/%m/%d'")
        return require_path(value, "lake/%Y/%m/%d") if value else value

    @model_validator(mode="after")
    def _one_region(self) -> Self:
        other = self.credentials and self.credentials.aws_region
        if other and self.region and other != self.region:
            raise ValueError(
                f"'credentials.aws_region' is {other!r} and 'region' is {self.region!r}: expected the bucket's in both"
            )
        return self


def read_duration(text: str) -> int:
    """Return the whole seconds of a duration, rounded up and at least 1; raise ``ValueError`` for text that is none,
    for one below zero, and for one beyond a year."""
    nanos = compute_nanos(text)
    if nanos < 0:
        raise ValueError("expected an interval of 0 or more, such as '30s'")
    if nanos > MOST_SECONDS * 10**9:
        raise ValueError(f"expected an interval of a year at most ('{MOST_SECONDS // 3600}h')")
    return max(1, -(-nanos // 10**9))


def compute_nanos(text: str) -> int:
    """Return the nanoseconds of a duration; raise ``ValueError`` for text that is none."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("expected a duration such as '30s', '5m' or '1h30m'")
    parts = _DURATION_PART.findall(match["parts"])
    # As Go does it: each part is cut to whole nanoseconds.
    nanos = sum(int(Decimal(number) * _NANOS[unit]) for number, unit in parts)
    return -nanos if match["sign"] == "-" else nanos
