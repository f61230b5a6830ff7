"""The ``deployment`` of a lake.yaml: what the stacks make beside the data, and for whom. The job does not read it."""

import re
from datetime import timedelta
from difflib import get_close_matches
from typing import Annotated, Any, Final, Literal
from zoneinfo import available_timezones

from pydantic import Field, field_validator, model_validator

from lakewriter.spec.buckets import KEY_ARN, Existing, Replication, SourceBucket, require_account
from lakewriter.spec.cron import Cron, measure_rate
from lakewriter.spec.model import FileModel, require_one
from lakewriter.spec.trust import KeyedParty, LfTags, Party, Snowflake, Trust

_STAGE: Final = re.compile(r"[a-z][a-z0-9]{0,15}")
_RELEASE: Final = re.compile(r"emr-(spark-)?\d+\.\d+\.\d+")
_MEMORY: Final = re.compile(r"\d+G")
_CRON: Final = re.compile(r"(\S+ ){5}\S+")
_RATE: Final = re.compile(r"\d+ (minute|hour|day)s?")


_PRINCIPAL_ARN: Final = r"^arn:aws[a-z-]*:iam::\d{12}:(role|user)/[\w+=,.@/-]+$"


class Schedule(FileModel):
    """When loads start: a cron expression of EventBridge Scheduler (six fields), or a rate."""

    cron: str | None = None
    """A cron expression of EventBridge Scheduler, with six fields: ``30 6 * * ? *``. Give either this or ``rate``."""
    rate: str | None = None
    """A fixed pace such as ``15 minutes`` or ``1 hour``. Give either this or ``cron``."""
    timezone: str = "UTC"
    """The time zone that ``cron`` is read in, such as ``America/New_York``."""
    flexible_minutes: int = Field(0, ge=0, le=1440)
    """A load may start up to so many minutes after its time."""
    enabled: bool = True
    """``false`` stops the schedule, and removes the alarm for missing successes unless ``alarms.no_success_hours`` asks
    for it."""

    @model_validator(mode="after")
    def _one_expression(self) -> "Schedule":
        require_one(cron=self.cron is not None, rate=self.rate is not None)
        if self.cron is not None and not _CRON.fullmatch(self.cron):
            fields = len(self.cron.split())
            raise ValueError(f"'cron' has {fields} fields in {self.cron!r}; expected six, such as '0 * * * ? *'")
        if self.cron is not None:
            _parse_cron(self.cron)
        if self.rate is not None and not _RATE.fullmatch(self.rate):
            raise ValueError(f"rate {self.rate!r} is not such as '15 minutes' or '1 hour'")
        if self.rate is not None:
            measure_rate(self.rate)
        return self

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        zones = available_timezones()
        # Without a time zone database on this machine, CloudFormation checks the name.
        if zones and value not in zones:
            near = get_close_matches(value, zones, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "; expected a name such as 'Europe/Berlin'"
            raise ValueError(f"there is no time zone {value!r}{hint}")
        return value

    @property
    def expression(self) -> str:
        """As EventBridge Scheduler takes it."""
        return f"cron({self.cron})" if self.cron else f"rate({self.rate})"

    def measure_periods(self) -> tuple[timedelta, timedelta] | None:
        """Measure the shortest and longest time between two starts; None if there is one only."""
        if self.cron is not None:
            return Cron.parse(self.cron).measure_periods()
        period = measure_rate(str(self.rate))
        return period, period


def _parse_cron(text: str) -> None:
    try:
        Cron.parse(text)
    except ValueError as error:
        raise ValueError(f"'cron' {text!r}: {error}") from error


class Worker(FileModel):
    """One driver or executor. Sizes as EMR Serverless has them."""

    cores: Literal[1, 2, 4, 8, 16] = 4
    """The worker's vCPUs."""
    memory: str = "12G"
    """Java's heap, in whole gigabytes. The stack adds what Java and the tasks' Python processes take beside it."""
    disk: str = "20G"
    """The worker's disk, in whole gigabytes."""

    @field_validator("memory", "disk")
    @classmethod
    def _gigabytes(cls, value: str) -> str:
        if not _MEMORY.fullmatch(value):
            raise ValueError("expected whole gigabytes such as '14G'")
        return value


CANARY: Final = Worker(cores=1, memory="4G")
"""The size of the driver and of the one executor of a canary that runs beside a continuous run."""


class Spark(FileModel):
    """The EMR Serverless application and the limits of a load."""

    release: str = "emr-spark-8.1.0"
    """The EMR release, which has to have Spark 4.1."""
    architecture: Literal["X86_64", "ARM64"] = "X86_64"
    """The processors of the workers. ``ARM64`` costs about a fifth less and writes the same rows."""
    mode: Literal["BATCH", "STREAMING"] = "BATCH"
    """``BATCH`` for loads that start and end, ``STREAMING`` for a continuous run."""
    driver: Worker = Worker(cores=2, memory="7G")
    """The size of the driver. By default 2 cores and 7G."""
    executor: Worker = Worker()
    """The size of each executor. By default 4 cores and 12G."""
    max_executors: int = Field(3, ge=1, le=1000)
    """The most executors of a load. With the driver they must fit ``account_vcpu_quota``."""
    timeout_minutes: int = Field(180, ge=5, le=10080)
    """The longest that one attempt of a load may take."""
    queue_timeout_minutes: int = Field(60, ge=15, le=720)
    """The longest that an attempt may wait for capacity."""
    idle_stop_minutes: int = Field(5, ge=1, le=10080)
    """Minutes without a job after which the application stops."""
    attempts: int = Field(3, ge=1, le=10)
    """Attempts of one load, the first included. It is tried again only where a retry can help."""
    plain_start: bool = False
    """Starts job runs without tags, and without the key of the workers' disks, should Step Functions refuse a request
    that has them. A load is then not followed beyond a deployment that makes a new application, and disks are under a
    key of AWS. A continuous run is a job run of a week, which the state machine starts anew: stop it before such a
    deployment."""
    conf: dict[str, str] = Field(default_factory=dict)
    """Further Spark settings. They take precedence over those that the stack gives. The time zone stays UTC."""

    @field_validator("release")
    @classmethod
    def _label(cls, value: str) -> str:
        if not _RELEASE.fullmatch(value):
            raise ValueError("expected an EMR release such as 'emr-spark-8.1.0'")
        return value

    @property
    def run_lasts(self) -> timedelta | None:
        """The longest that one job run of a continuous run lasts before the next one continues; None without a limit.

        Without its mode a job run is one that ends, and has a week from EMR 7.11 on.
        https://docs.aws.amazon.com/emr/latest/EMR-Serverless-UserGuide/release-version-7110.html
        """
        return timedelta(days=7) if self.plain_start and self.mode == "STREAMING" else None

    @property
    def vcpus(self) -> int:
        """The most vCPUs that run at a time, with the canary beside a continuous run."""
        canary = 2 * CANARY.cores if self.mode == "STREAMING" else 0
        return self.driver.cores + self.max_executors * self.executor.cores + canary

    @property
    def pauses(self) -> tuple[timedelta, ...]:
        """The pauses between attempts: a minute, doubled each time, a quarter of an hour at most."""
        return tuple(timedelta(minutes=min(2**number, 15)) for number in range(self.attempts - 1))

    @property
    def longest_load(self) -> timedelta:
        """The longest time from the first attempt's start to the last one's end, waits included."""
        attempts = self.attempts * timedelta(minutes=self.timeout_minutes + self.queue_timeout_minutes)
        return attempts + sum(self.pauses, timedelta())


class Network(FileModel):
    """A VPC with a route out, to reach what EMR Serverless does not reach on its own."""

    subnet_ids: tuple[str, ...] = Field(min_length=1, max_length=16)
    """The subnets of the workers, with a route to what the load calls."""
    security_group_ids: tuple[str, ...] = Field(min_length=1, max_length=5)
    """The security groups of the workers."""


LONGEST_SILENCE: Final = 2000
"""The most hours without a success that an alarm waits for."""


class Alarms(FileModel):
    """When to call somebody."""

    topic_arn: str | None = Field(None, pattern=r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[\w-]+$")
    """The SNS topic that alarms are sent to. Give either this or ``email``."""
    email: str | None = None
    """The address that alarms are sent to, by a topic that the stack makes."""
    no_success_hours: int | None = Field(None, ge=1, le=LONGEST_SILENCE)
    """Hours without a successful load after which to alarm, whatever starts loads. By default the schedule's longest
    gap and the time of one attempt. Without a schedule, or with one that is off, there is no such alarm by default."""
    queued_minutes: int = Field(30, ge=5, le=720)
    """Minutes that a load may wait for capacity before an alarm."""
    late_minutes: int | None = Field(None, ge=1, le=1440)
    """Minutes that a continuous run may be behind before an alarm. By default three intervals, and 15 at least."""
    monthly_budget_usd: int | None = Field(None, ge=1)
    """US dollars a month that the stage may cost. The receivers of alarms are also notified at four fifths of it, and
    of a forecast above it. Needs the tag ``LakewriterStack`` as a cost-allocation tag."""

    @model_validator(mode="after")
    def _one_topic(self) -> "Alarms":
        if self.monthly_budget_usd and not (self.topic_arn or self.email):
            raise ValueError("'monthly_budget_usd' needs somebody to notify; give 'email' or 'topic_arn' beside it")
        if self.topic_arn and self.email:
            raise ValueError("expected either 'topic_arn' or 'email', got both")
        return self


class LakeFormation(FileModel):
    """What the stack does in Lake Formation, beside granting rights."""

    tags: LfTags
    """LF-tags of the databases, such as ``{domain: flights}``. Their tables inherit them, also those that loads make
    later."""
    create_tags: bool = False
    """Makes the keys of ``tags``, each with its one value. Without it the keys have to exist already. Keys that several
    databases share always have to exist."""


class Deployment(FileModel):
    """What the CDK stacks create. Every key has a default."""

    account: str | None = None
    """The AWS account, in quotes. Without it the templates fit any account."""
    stages: dict[str, dict[str, Any] | None] = Field(default_factory=dict)
    """What each stage merges over the file: ``dev: {destination: {s3_bucket_name: acme-lake-dev}}``."""
    protect: bool | None = None
    """Keeps bucket, keys and databases when their stack is deleted, and protects the stack. On by default, except in
    the stage ``dev``."""
    destroy_data: bool = False
    """Empties the bucket when an unprotected stack is deleted."""
    trust: tuple[Trust, ...] = ()
    """The parties from outside that get a role of their own on the destination."""
    snowflake: Snowflake | None = None
    """Roles for Snowflake: one for Open Catalog, which writes metadata, and one for compute, which only reads."""
    iam_user: bool | KeyedParty = False
    """A user with an access key, for a vendor that takes no role. ``true`` shares the whole prefix; a mapping says what
    it reaches."""
    iam_user_key_serial: int = Field(1, ge=1)
    """A higher number makes a new access key and deletes the old one."""
    vendor_verbatim: bool = False
    """Gives vendors' roles the policy documents of the vendors' own pages, word for word."""
    allow_reset: bool = False
    """Adds Glue's deleting actions, for a vendor that resets tables."""
    lake_formation: bool | LakeFormation = False
    """Grants rights in Lake Formation too. A mapping also says which LF-tags the databases have."""
    existing: Existing = Existing()
    """What exists already and is used as it is, in place of what the stacks would make."""
    encryption: Literal["SSE-S3", "SSE-KMS"] = "SSE-S3"
    """The bucket's encryption: S3's own keys, or a KMS key that the stack makes or ``existing.kms_key_arn`` names."""
    earlier_kms_key_arns: tuple[Annotated[str, Field(pattern=KEY_ARN)], ...] = ()
    """KMS keys that encrypted objects of the bucket before. Every role may decrypt with them, and none may encrypt."""
    left_behind: tuple[Annotated[str, Field(pattern=r"^(s3://[^/]+(/[^/]+)*|glue:(own|\d{12}))$")], ...] = ()
    """Earlier places of the tables, such as ``s3://acme-lake/data``, whose data stays there as it is, and their earlier
    catalogs: ``glue:123456789012``, or ``glue:own`` for the stacks' account. With ``-c deployed`` synth refuses another
    bucket, prefix, region or catalog until the old one is listed here."""
    versioning: bool | None = None
    """Keeps versions of objects. By default on for files and off for Iceberg, which has versions of its own."""
    access_logs: bool = True
    """Keeps S3's server access logs, in a bucket of their own."""
    access_log_versions: bool = False
    """Keeps versions of access logs, so that none is lost by a deletion: each is kept ``log_retention_days`` more."""
    replication: Replication | None = None
    """A bucket in another region that S3 copies all objects to, records and versions included."""
    abort_incomplete_uploads_days: int = Field(30, ge=1, le=365)
    """Days after which S3 aborts uploads that nobody has completed. It must be longer than the longest load."""
    operators: tuple[Annotated[str, Field(pattern=_PRINCIPAL_ARN)], ...] = ()
    """The roles and users of this account that may take the role of an operator, who follows the runbook. Without any,
    the stack makes no such role."""
    permissions_boundary_arn: str | None = Field(
        None, pattern=r"^arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[\w+=,.@/-]+$"
    )
    """The permissions boundary of every role and user of the stacks. ``lakewriter policy --who deployer`` prints
    one."""
    role_path: str = Field("/", pattern=r"^/([\w+=,.@-]+/)*$")
    """The path in the names of roles, such as ``/teams/data/``."""
    source_role_conditions: bool = True
    """Lets only EMR Serverless applications of this account take the job's role."""
    reads: tuple[str, ...] = ()
    """``s3://`` prefixes that the job reads, beside the paths of its tables."""
    source_buckets: tuple[SourceBucket, ...] = ()
    """Source buckets that are encrypted with a KMS key, or another account's."""
    secret_kms_key_arns: tuple[Annotated[str, Field(pattern=KEY_ARN)], ...] = ()
    """The KMS keys of the secrets and parameters that the file refers to, where they are not AWS's own."""
    catalog_kms_key_arn: str | None = Field(None, pattern=KEY_ARN)
    """The KMS key that encrypts the metadata of the Glue Data Catalog, where that is not one of AWS's own. Every role
    that calls Glue may then use it through Glue."""
    jars: tuple[
        Annotated[str, Field(pattern=r"^(s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[^*?,]+|[^:*?,]+)\.jar$")], ...
    ] = ()
    """Jars of Spark, such as a database's JDBC driver: objects as ``s3://acme-jars/postgresql.jar``, or files beside
    this one, which are published with the job. No jar comes with the product."""
    schedule: Schedule | None = None
    """When loads start. Without it they are started by hand."""
    spark: Spark = Spark()
    """The EMR Serverless application, its workers, and how long a load may take."""
    network: Network | None = None
    """A VPC for the job. The job needs it to reach anything but AWS services of its region."""
    alarms: Alarms = Alarms()
    """Whom to call, and when."""
    stopped_stacks: tuple[str, ...] = ()
    """Pipeline stacks that this file had under an earlier pipeline or stage name, and whose loads and schedules are
    stopped. With ``-c deployed`` synth refuses a new name until the old stack is listed here."""
    log_retention_days: Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731] = 30
    """Days that the job's and the state machine's logs are kept."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Tags of every resource."""
    account_vcpu_quota: int = Field(16, ge=1)
    """The account's quota 'Max concurrent vCPUs per account' of EMR Serverless."""
    bootstrap_qualifier: str | None = Field(None, pattern=r"^[a-z0-9]{1,10}$")
    """The qualifier of CDK's bootstrap, where the account's is not the usual one."""

    artifact_bucket: str | None = Field(None, pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$")
    """A bucket of yours for the job, its packages and the templates, in place of the bucket of CDK's bootstrap.
    ``lakewriter publish`` or the CDK's command uploads them. The templates then ask for no bootstrap."""

    artifact_kms_key_arn: str | None = Field(None, pattern=KEY_ARN)
    """The KMS key of ``artifact_bucket``, or of the bucket of CDK's bootstrap, where that is not one of AWS's own. The
    job, CloudFormation and the publisher may then use it."""

    @property
    def unreferenced_days(self) -> int:
        """Return the days after which S3 Tables may take away a file that no snapshot names. A load's files are named
        once it commits, and it may complete its uploads for all of ``abort_incomplete_uploads_days``."""
        return self.abort_incomplete_uploads_days + 1

    @property
    def jar_objects(self) -> tuple[str, ...]:
        """Return the jars that are objects in S3, those of ``spark.conf`` included."""
        given = (*self.jars, *self.spark.conf.get("spark.jars", "").split(","))
        return tuple(jar.strip() for jar in given if jar.strip().startswith("s3://"))

    @property
    def qualifier(self) -> str:
        """The qualifier in the names of CDK's bootstrap."""
        return self.bootstrap_qualifier or "hnb659fds"

    def name_assets(self, account: str, region: str) -> str:
        """Return the name of the bucket that the job and the templates are uploaded to."""
        return self.artifact_bucket or f"cdk-{self.qualifier}-assets-{account}-{region}"

    @property
    def makes_key(self) -> bool:
        """Return True if a stack makes a KMS key: the bucket's, or without one that of the topic of alarms."""
        return not self.existing.kms_key_arn and (self.encryption == "SSE-KMS" or self.alarms.email is not None)

    @property
    def user(self) -> Party | None:
        """Return the party whose access key the stack makes; None without one."""
        if isinstance(self.iam_user, Party):
            return self.iam_user
        return Party() if self.iam_user else None

    @property
    def governed(self) -> LakeFormation | None:
        """Return the stack's settings of Lake Formation beyond grants; None where it only grants."""
        return self.lake_formation if isinstance(self.lake_formation, LakeFormation) else None

    @property
    def parties(self) -> tuple[tuple[str, Party], ...]:
        """Every party from outside with its own contract, by the name that the file gives it."""
        user = self.user
        return (*((trust.role, trust) for trust in self.trust), *((("iam_user", user),) if user else ()))

    @field_validator("account")
    @classmethod
    def _twelve_digits(cls, value: str | None) -> str | None:
        return require_account(value)

    @field_validator("stages")
    @classmethod
    def _stage_names(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if not _STAGE.fullmatch(name):
                raise ValueError(f"stage {name!r}: expected at most 16 lower-case letters and digits, a letter first")
        return value

    @model_validator(mode="after")
    def _one_place_for_artifacts(self) -> "Deployment":
        if self.artifact_bucket and self.bootstrap_qualifier:
            raise ValueError("expected either 'artifact_bucket' or 'bootstrap_qualifier', got both")
        return self

    @model_validator(mode="after")
    def _granted_by_tags(self) -> "Deployment":
        named = next((name for name, party in self.parties if party.lf_tags), None)
        if named and not self.lake_formation:
            raise ValueError(
                f"'lake_formation' is off, and {named!r} has 'lf_tags', by which Lake Formation grants; set it to true"
            )
        return self

    @model_validator(mode="after")
    def _replicated_bucket(self) -> "Deployment":
        if self.replication is None:
            return self
        if self.existing.bucket:
            raise ValueError("'replication' is of a bucket that the stack makes; have this one's owner replicate it")
        if self.versioning is False:
            raise ValueError("'replication' needs versions of objects; leave out 'versioning: false'")
        has_key = self.encryption == "SSE-KMS" or self.existing.kms_key_arn is not None
        if has_key != (self.replication.kms_key_arn is not None):
            need = "needs 'kms_key_arn', the replica's key" if has_key else "has 'kms_key_arn', and the bucket no key"
            raise ValueError(f"'replication' {need}; expected a key for both buckets or for neither")
        return self

    @model_validator(mode="after")
    def _distinct_roles(self) -> "Deployment":
        names = [trust.role for trust in self.trust]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two entries of 'trust' make the role {twice[0]!r}; give one another 'name'")
        if self.destroy_data and self.protect:
            raise ValueError("'destroy_data' needs 'protect: false' beside it")
        return self


STACK_TAG: Final = "LakewriterStack"
"""The tag by which policies, and the applications of earlier releases, are bound to their stack."""


def name_deployment(pipeline: str, stage: str) -> str:
    """Return the beginning of the names of all that a stage deploys; no two stages share it."""
    # CloudFormation takes no "_" in a stack's name.
    return f"lakewriter-{pipeline.replace('_', '-')}-{stage}"


def name_destination_stack(pipeline: str, stage: str) -> str:
    """Return the name of the stack of a stage's destination."""
    return f"{name_deployment(pipeline, stage)}-destination"


def name_pipeline_stack(pipeline: str, stage: str) -> str:
    """Return the name of the stack of a stage's loads."""
    return f"{name_deployment(pipeline, stage)}-pipeline"
