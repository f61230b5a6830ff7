"""Check the region, and names that Snowflake would refuse."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from lakewriter.deployable.lake_file import walk_scalars
from lakewriter.deployable.staged_lake import StagedLake
from lakewriter.policy.arns import find_partition
from lakewriter.policy.parties import find_overlaps
from lakewriter.policy.roles import find_snowflake

PATTERNS: Final[Mapping[str, str]] = {
    "aws": r"(us|eu|ap|sa|ca|me|af|il|mx)-\w+-\d+",
    "aws-cn": r"cn-\w+-\d+",
    "aws-us-gov": r"us-gov-\w+-\d+",
    "aws-iso": r"us-iso-\w+-\d+",
    "aws-iso-b": r"us-isob-\w+-\d+",
    "aws-iso-e": r"eu-isoe-\w+-\d+",
    "aws-iso-f": r"us-isof-\w+-\d+",
    "aws-eusc": r"eusc-(de)-\w+-\d+",
}
"""The names of regions by partition, as botocore's endpoints have them; a region of later matches too."""
WITHOUT_EMR_SERVERLESS: Final = frozenset({"us-iso-west-1", "us-isob-west-1", "us-isof-east-1", "us-isof-south-1"})
"""Regions of botocore's endpoints that have none of EMR Serverless."""

WITHOUT_BUDGETS: Final = frozenset({
    "af-south-1", "ap-east-1", "ap-east-2", "ap-northeast-3", "ap-south-2", "ap-southeast-3", "ap-southeast-4",
    "ap-southeast-5", "ap-southeast-6", "ap-southeast-7", "ca-west-1", "eu-central-2", "eu-north-1", "eu-south-1",
    "eu-south-2", "il-central-1", "me-central-1", "mx-central-1", "us-gov-east-1", "us-gov-west-1",
})  # fmt: skip
"""Regions in which CloudFormation has no type of budgets, as cfn-lint's schemas have it."""


def check_region(settings: StagedLake) -> Iterator[str]:
    """Refuse a file without a region, or one without EMR Serverless: the stacks are made in that of the bucket."""
    access = settings.spec.access
    if access.endpoint is not None:
        return
    if access.region and not any(re.fullmatch(pattern, access.region) for pattern in PATTERNS.values()):
        yield (
            f"destination: region {access.region!r} is of no partition of AWS; expected one such as 'us-east-1', "
            "'us-gov-west-1' or 'cn-north-1'."
        )
    if access.region in WITHOUT_EMR_SERVERLESS:
        yield (
            f"destination: EMR Serverless is not offered in {access.region!r}, where the bucket is; expected another "
            "region. Take another bucket, or run the job elsewhere."
        )
    if not access.region:
        yield (
            "destination.region is not given; expected the region of the bucket, such as 'us-east-1', since the stacks "
            "are made there."
        )


def check_partitions(settings: StagedLake) -> Iterator[str]:
    """Refuse ARNs of another partition than the bucket's region: no principal, key or policy is known across.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html
    """
    access, deployment = settings.spec.access, settings.deployment
    if access.endpoint is not None or not access.region:
        return
    own_partition = find_partition(access.region)
    given = dict(walk_scalars(deployment.model_dump(mode="json", exclude={"stages"}), "deployment"))
    given |= {
        f"deployment.trust.{number}.vendor": trust.arn
        for number, trust in enumerate(deployment.trust)
        if trust.vendor and not (trust.principal or trust.identity)
    }
    given["destination's role"] = access.role_arn
    for key, value in given.items():
        if isinstance(value, str) and value.startswith("arn:") and value.split(":")[1] != own_partition:
            way = (
                "Ask the vendor for its principal there, and give it as principal beside vendor."
                if key.endswith(".vendor")
                else ""
            )
            yield (
                f"{key}: {value!r} is of the partition {value.split(':')[1]!r}, and the region {access.region!r} of "
                f"{own_partition!r}; expected an ARN that begins with 'arn:{own_partition}:'. {way}"
            ).rstrip()


def check_table_bucket(settings: StagedLake) -> Iterator[str]:
    """Refuse a table bucket of which the file does not say whose it is: the stacks make it in its account alone."""
    arn, deployment = settings.spec.table_bucket, settings.deployment
    if arn is None:
        if deployment.existing.table_bucket:
            yield (
                "deployment.existing.table_bucket: the tables lie in no table bucket; expected catalog: s3_tables. "
                "Leave it out."
            )
        return
    if deployment.account is None and not deployment.existing.table_bucket:
        account = arn.split(":")[4]
        yield (
            f"deployment.account is not given; expected '{account}', where destination.table_bucket_arn has the stack "
            "make the table bucket, or another one with existing.table_bucket: true."
        )


def check_budget(settings: StagedLake) -> Iterator[str]:
    """Refuse a budget where CloudFormation makes none."""
    region = settings.spec.access.region
    if settings.deployment.alarms.monthly_budget_usd and region in WITHOUT_BUDGETS:
        yield (
            f"deployment.alarms.monthly_budget_usd: CloudFormation makes no budgets in {region!r}. Leave it out, and "
            "make one by 'aws budgets create-budget'."
        )


def check_replica(settings: StagedLake) -> Iterator[str]:
    """Refuse a replica of a bucket that no stack of the file's makes, or that is the bucket itself."""
    access, replication = settings.spec.access, settings.deployment.replication
    if replication is None:
        return
    if access.endpoint is not None:
        yield f"deployment.replication: the store at {access.endpoint} has no S3 Replication of AWS; leave it out."
    if replication.bucket == access.bucket:
        yield (
            f"deployment.replication.bucket: {replication.bucket!r} is the destination's bucket itself; expected one "
            "in another region."
        )
    key = replication.kms_key_arn
    if key and key.split(":")[3] == access.region:
        yield (
            f"deployment.replication.kms_key_arn: {key!r} is a key of {access.region!r}, where the bucket is; expected "
            "one of the replica's region, which works when this one does not."
        )


def check_snowflake_bucket(settings: StagedLake) -> Iterator[str]:
    """Refuse a bucket name with dots for Snowflake: its virtual-hosted URL matches no TLS certificate."""
    bucket = settings.spec.access.bucket
    if find_snowflake(settings.spec, settings.deployment) and "." in bucket:
        yield (
            f"the destination's bucket {bucket!r} has dots in its name, and a Snowflake external volume cannot use it; "
            "expected a name of letters, digits and '-'. Take another bucket, or leave out deployment.snowflake."
        )


def check_parties(settings: StagedLake) -> Iterator[str]:
    """Refuse contracts over what is the job's, and keys that could write nothing."""
    yield from find_overlaps(settings.spec, settings.deployment)
