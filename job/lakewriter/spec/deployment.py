"""The ``deployment`` of a lake.yaml: what the stacks make beside the data, and for whom. The job does not read it."""

import re
from datetime import timedelta
from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from lakewriter.spec.model import Model, require_one
from lakewriter.spec.trust import Party, Snowflake, Trust

_ACCOUNT: Final = re.compile(r"\d{12}")
_STAGE: Final = re.compile(r"[a-z][a-z0-9]{0,15}")
_RELEASE: Final = re.compile(r"emr-(spark-)?\d+\.\d+\.\d+")
_MEMORY: Final = re.compile(r"\d+G")
_CRON: Final = re.compile(r"(\S+ ){5}\S+")
_RATE: Final = re.compile(r"\d+ (minute|hour|day)s?")


_KEY_ARN: Final = r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[\w-]+$"


def _require_account(value: str | None) -> str | None:
    if value is not None and not _ACCOUNT.fullmatch(value):
        raise ValueError("expected 12 digits, in quotes")
    return value


class SourceBucket(Model):
    """A bucket that sources are read from, where reading takes more than a permission of the job's."""

    bucket: str
    account: str | None = None
    """The account of its owner, where it is another one; what the owner has to add is printed."""
    kms_key_arn: str | None = Field(None, pattern=_KEY_ARN)
    """The key that its objects are encrypted with."""

    @field_validator("account")
    @classmethod
    def _twelve_digits(cls, value: str | None) -> str | None:
        return _require_account(value)


class Existing(Model):
    """What is there already and is used as it is."""

    bucket: bool = False
    """The bucket of ``destination`` is there; what its owner has to add to its policy is printed."""
    bucket_account: str | None = None
    """The account of its owner, where it is another one: then its policy has to grant every access too."""
    kms_key_arn: str | None = Field(None, pattern=_KEY_ARN)
    databases: bool = False
    """The Glue databases are there."""
    job_role_arn: str | None = Field(None, pattern=r"^arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+$")
    """The role of the Spark job; its policies are its owner's to attach, and ``lakewriter policy`` prints them."""
    log_bucket: str | None = None
    """Takes the access logs of a bucket that the stack makes."""

    @field_validator("bucket_account")
    @classmethod
    def _twelve_digits(cls, value: str | None) -> str | None:
        return _require_account(value)

    @model_validator(mode="after")
    def _existing_bucket(self) -> "Existing":
        if self.bucket_account and not self.bucket:
            raise ValueError("'bucket_account' is of a bucket that exists; set 'bucket: true' beside it")
        return self


class Schedule(Model):
    """When loads start: a cron expression of EventBridge Scheduler (six fields), or a rate."""

    cron: str | None = None
    rate: str | None = None
    timezone: str = "UTC"
    flexible_minutes: int = Field(0, ge=0, le=1440)
    """A start may come up to so many minutes after its time."""
    enabled: bool = True

    @model_validator(mode="after")
    def _one_expression(self) -> "Schedule":
        require_one(cron=self.cron is not None, rate=self.rate is not None)
        if self.cron is not None and not _CRON.fullmatch(self.cron):
            fields = len(self.cron.split())
            raise ValueError(f"'cron' has {fields} fields in {self.cron!r}; expected six, such as '0 * * * ? *'")
        if self.rate is not None and not _RATE.fullmatch(self.rate):
            raise ValueError(f"rate {self.rate!r} is not such as '15 minutes' or '1 hour'")
        return self

    @property
    def expression(self) -> str:
        """As EventBridge Scheduler takes it."""
        return f"cron({self.cron})" if self.cron else f"rate({self.rate})"


class Worker(Model):
    """One driver or executor. Sizes as EMR Serverless has them."""

    cores: Literal[1, 2, 4, 8, 16] = 4
    memory: str = "12G"
    """Of Java's heap; the stack adds what Java and the tasks' Python processes take beside it."""
    disk: str = "20G"

    @field_validator("memory", "disk")
    @classmethod
    def _gigabytes(cls, value: str) -> str:
        if not _MEMORY.fullmatch(value):
            raise ValueError("expected whole gigabytes such as '14G'")
        return value


class Spark(Model):
    """The EMR Serverless application and the limits of a load."""

    release: str = "emr-spark-8.1.0"
    architecture: Literal["X86_64", "ARM64"] = "X86_64"
    mode: Literal["BATCH", "STREAMING"] = "BATCH"
    driver: Worker = Worker(cores=2, memory="7G")
    executor: Worker = Worker()
    max_executors: int = Field(3, ge=1, le=1000)
    timeout_minutes: int = Field(180, ge=5, le=10080)
    """The longest one attempt may take."""
    queue_timeout_minutes: int = Field(60, ge=15, le=720)
    """The longest an attempt may wait for a free application."""
    idle_stop_minutes: int = Field(5, ge=1, le=10080)
    attempts: int = Field(3, ge=1, le=10)
    """Attempts of one load, the first included; only where a retry can help."""
    conf: dict[str, str] = Field(default_factory=dict)
    """Further Spark settings, over those the stack gives."""

    @field_validator("release")
    @classmethod
    def _label(cls, value: str) -> str:
        if not _RELEASE.fullmatch(value):
            raise ValueError("expected an EMR release such as 'emr-spark-8.1.0'")
        return value

    @property
    def vcpus(self) -> int:
        """The most that run at a time."""
        return self.driver.cores + self.max_executors * self.executor.cores

    @property
    def pauses(self) -> tuple[timedelta, ...]:
        """Between one attempt and the next: a minute, doubled each time, a quarter of an hour at most."""
        return tuple(timedelta(minutes=min(2**number, 15)) for number in range(self.attempts - 1))

    @property
    def longest_load(self) -> timedelta:
        """From the first attempt's start to the last one's end, waits included."""
        attempts = self.attempts * timedelta(minutes=self.timeout_minutes + self.queue_timeout_minutes)
        return attempts + sum(self.pauses, timedelta())


class Network(Model):
    """A VPC with a way out, for what EMR Serverless does not reach on its own."""

    subnet_ids: tuple[str, ...] = Field(min_length=1, max_length=16)
    security_group_ids: tuple[str, ...] = Field(min_length=1, max_length=5)


class Alarms(Model):
    """When to call somebody."""

    topic_arn: str | None = Field(None, pattern=r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[\w-]+$")
    email: str | None = None
    """Makes a topic of the stack's own that sends here."""
    no_success_hours: int | None = Field(None, ge=1, le=168)
    """By default the longest time between two starts and that of one attempt; no alarm where that is over a week."""
    queued_minutes: int = Field(30, ge=5, le=720)
    late_minutes: int | None = Field(None, ge=1, le=1440)
    """Of a continuous run: by default three intervals, and 15 minutes at least."""

    @model_validator(mode="after")
    def _one_topic(self) -> "Alarms":
        if self.topic_arn and self.email:
            raise ValueError("expected either 'topic_arn' or 'email', got both")
        return self


class Deployment(Model):
    """All of it; every key has a default."""

    account: str | None = None
    """The AWS account; left out, the templates fit any."""
    stages: dict[str, dict[str, Any] | None] = Field(default_factory=dict)
    """What each stage lays over the file."""
    protect: bool | None = None
    """Keeps bucket, roles and databases when the stack goes, and the stack from going; everywhere but in ``dev``."""
    destroy_data: bool = False
    """Empties the bucket when an unprotected stack goes."""
    trust: tuple[Trust, ...] = ()
    snowflake: Snowflake | None = None
    iam_user: bool | Party = False
    """A user with an access key, for a vendor that takes no role; in place of ``true``, what it reaches."""
    iam_user_key_serial: int = Field(1, ge=1)
    """Raising it makes a new key."""
    vendor_verbatim: bool = False
    """Vendors' roles get the vendor's own policy documents, for a vendor that checks them."""
    allow_reset: bool = False
    """Adds the deleting actions of Glue, for a vendor that resets tables."""
    lake_formation: bool = False
    existing: Existing = Existing()
    encryption: Literal["SSE-S3", "SSE-KMS"] = "SSE-S3"
    versioning: bool | None = None
    """By default on for plain files and off for Iceberg, which keeps versions of its own."""
    access_logs: bool = True
    abort_incomplete_uploads_days: int = Field(30, ge=1, le=365)
    permissions_boundary_arn: str | None = Field(
        None, pattern=r"^arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[\w+=,.@/-]+$"
    )
    role_path: str = Field("/", pattern=r"^/([\w+=,.@-]+/)*$")
    source_role_conditions: bool = True
    """The job's role trusts EMR Serverless for this account's applications only."""
    reads: tuple[str, ...] = ()
    """``s3://`` prefixes that the job reads beside the paths of its tables."""
    source_buckets: tuple[SourceBucket, ...] = ()
    """Buckets of sources that are encrypted with a key, or another account's."""
    secret_kms_key_arns: tuple[Annotated[str, Field(pattern=_KEY_ARN)], ...] = ()
    """The keys of the secrets and parameters that the job reads, where they are not AWS's own."""
    schedule: Schedule | None = None
    spark: Spark = Spark()
    network: Network | None = None
    alarms: Alarms = Alarms()
    log_retention_days: Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731] = 30
    tags: dict[str, str] = Field(default_factory=dict)
    account_vcpu_quota: int = Field(16, ge=1)
    """The account's 'Max concurrent vCPUs' of EMR Serverless."""
    bootstrap_qualifier: str | None = Field(None, pattern=r"^[a-z0-9]{1,10}$")

    @property
    def user(self) -> Party | None:
        """What the user with an access key reaches; None without one."""
        if isinstance(self.iam_user, Party):
            return self.iam_user
        return Party() if self.iam_user else None

    @property
    def parties(self) -> tuple[tuple[str, Party], ...]:
        """Every party from outside with its own contract, by the name that the file gives it."""
        user = self.user
        return (*((trust.role, trust) for trust in self.trust), *((("iam_user", user),) if user else ()))

    @field_validator("account")
    @classmethod
    def _twelve_digits(cls, value: str | None) -> str | None:
        return _require_account(value)

    @field_validator("stages")
    @classmethod
    def _stage_names(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if not _STAGE.fullmatch(name):
                raise ValueError(f"stage {name!r}: expected at most 16 lower-case letters and digits, a letter first")
        return value

    @model_validator(mode="after")
    def _distinct_roles(self) -> "Deployment":
        names = [trust.role for trust in self.trust]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two entries of 'trust' make the role {twice[0]!r}; give one another 'name'")
        if self.destroy_data and self.protect:
            raise ValueError("'destroy_data' needs 'protect: false' beside it")
        return self
