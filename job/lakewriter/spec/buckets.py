"""The buckets beside the destination's own: those of sources, what exists already, and a replica."""

import re
from typing import Final

from pydantic import Field, field_validator, model_validator

from lakewriter.spec.model import FileModel

_ACCOUNT: Final = re.compile(r"\d{12}")
KEY_ARN: Final = r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[\w-]+$"


def require_account(value: str | None) -> str | None:
    """Return the number of an account as it is; ``ValueError`` for anything else."""
    if value is not None and not _ACCOUNT.fullmatch(value):
        raise ValueError("expected 12 digits, in quotes")
    return value


class Replication(FileModel):
    """The bucket that S3 copies the objects to. It exists already, keeps versions, and is in another region."""

    bucket: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")
    """The name of the bucket."""
    account: str | None = None
    """The account of the bucket's owner, where it is another one. Synth prints what the owner has to add."""
    kms_key_arn: str | None = Field(None, pattern=KEY_ARN)
    """The KMS key of its region that copies are encrypted with, where this bucket has a key."""
    within_15_minutes: bool = False
    """S3 Replication Time Control: nearly all objects are copied within 15 minutes, and metrics count those that are
    not."""

    @field_validator("account")
    @classmethod
    def _twelve_digits(cls, value: str | None) -> str | None:
        return require_account(value)


class SourceBucket(FileModel):
    """A bucket of sources that takes more than a permission of the job to read."""

    bucket: str
    """The name of the bucket."""
    account: str | None = None
    """The account of the bucket's owner, where it is another one. Synth prints what the owner has to add."""
    kms_key_arn: str | None = Field(None, pattern=KEY_ARN)
    """The KMS key that the bucket's objects are encrypted with."""

    @field_validator("account")
    @classmethod
    def _twelve_digits(cls, value: str | None) -> str | None:
        return require_account(value)


class Existing(FileModel):
    """What exists already and is used as it is."""

    bucket: bool = False
    """The destination's bucket exists already. Synth prints what its owner has to add to its policy."""
    bucket_account: str | None = None
    """The account of the bucket's owner, where it is another one: then its policy has to grant every access too."""
    kms_key_arn: str | None = Field(None, pattern=KEY_ARN)
    """The KMS key to encrypt with. Synth prints the statements that its policy needs."""
    databases: bool = False
    """The Glue databases, or the namespaces of the table bucket, exist already."""
    table_bucket: bool = False
    """The table bucket of ``table_bucket_arn`` exists already, as one of another account always does. Synth prints what
    its owner has to set. Loads make the namespaces that are missing."""
    job_role_arn: str | None = Field(None, pattern=r"^arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+$")
    """The role that the Spark job runs as. Its owner attaches the policies that ``lakewriter policy`` prints."""
    log_bucket: str | None = None
    """The bucket that access logs go to, in place of one that the stack makes."""

    @field_validator("bucket_account")
    @classmethod
    def _twelve_digits(cls, value: str | None) -> str | None:
        return require_account(value)

    @model_validator(mode="after")
    def _existing_bucket(self) -> "Existing":
        if self.bucket_account and not self.bucket:
            raise ValueError("'bucket_account' is of a bucket that exists; set 'bucket: true' beside it")
        return self
