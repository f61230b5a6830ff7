"""Check the region, and names and ids that Snowflake or STS would refuse."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from infra.pipeline.lake_file import walk_scalars
from infra.settings import Settings
from lakewriter.errors import LakeError
from lakewriter.policy.arns import find_partition
from lakewriter.policy.parties import find_overlaps
from lakewriter.policy.roles import find_snowflake
from lakewriter.spec.trust import ALPHABET, EXTERNAL_ID

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


def check_region(settings: Settings) -> Iterator[str]:
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


def check_partitions(settings: Settings) -> Iterator[str]:
    """Refuse ARNs of another partition than the bucket's region: no principal, key or policy is known across.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference-arns.html
    """
    access, deployment = settings.spec.access, settings.deployment
    if access.endpoint is not None or not access.region:
        return
    own = find_partition(access.region)
    given = dict(walk_scalars(deployment.model_dump(mode="json", exclude={"stages"}), "deployment"))
    given |= {f"deployment.trust.{number}.vendor": trust.arn for number, trust in enumerate(deployment.trust)}
    given["destination's role"] = access.role_arn
    for key, value in given.items():
        if isinstance(value, str) and value.startswith("arn:") and value.split(":")[1] != own:
            way = "Ask the vendor for its principal there, and give it as principal." if key.endswith(".vendor") else ""
            yield (
                f"{key}: {value!r} is of the partition {value.split(':')[1]!r}, and the region {access.region!r} of "
                f"{own!r}; expected an ARN that begins with 'arn:{own}:'. {way}"
            ).rstrip()


def check_snowflake_bucket(settings: Settings) -> Iterator[str]:
    """Refuse a bucket name with dots for Snowflake: its virtual-hosted URL matches no TLS certificate."""
    bucket = settings.spec.access.bucket
    if find_snowflake(settings.spec, settings.deployment) and "." in bucket:
        yield (
            f"the destination's bucket {bucket!r} has dots in its name, and a Snowflake external volume cannot use it; "
            "expected a name of letters, digits and '-'. Take another bucket, or leave out deployment.snowflake."
        )


def check_parties(settings: Settings) -> Iterator[str]:
    """Refuse contracts over what is the job's, and keys that could write nothing."""
    yield from find_overlaps(settings.spec, settings.deployment)


def check_external_ids(settings: Settings) -> Iterator[str]:
    """Refuse external ids that STS would refuse; the value of ``${env:NAME}`` is known only here."""
    for number, trust in enumerate(settings.deployment.trust):
        for place, secret in enumerate(trust.external_ids):
            name = f"earlier_external_ids.{place - 1}" if place else "external_id"
            key = f"deployment.trust.{number}.{name}"
            try:
                value = settings.read_external_id(secret)
            except LakeError as error:
                yield f"{key}: {error.message} {error.remedy}".strip()
                continue
            if secret.reference and secret.reference[0] == "env" and not EXTERNAL_ID.fullmatch(value):
                yield (
                    f"{key}: {secret.text} holds {value!r}; expected {ALPHABET}. "
                    "Take the external id as the vendor shows it."
                )
