"""Check the region, and names and ids that Snowflake or STS would refuse."""

from collections.abc import Iterator

from infra.settings import Settings
from lakewriter.errors import LakeError
from lakewriter.policy.parties import find_overlaps
from lakewriter.policy.roles import find_snowflake
from lakewriter.spec.trust import ALPHABET, EXTERNAL_ID


def check_region(settings: Settings) -> Iterator[str]:
    """Refuse a file without a region: the stacks are made in the region of the bucket."""
    access = settings.spec.access
    if not access.region and access.endpoint is None:
        yield (
            "destination.region is not given; expected the region of the bucket, such as 'us-east-1', since the stacks "
            "are made there."
        )


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
        key = f"deployment.trust.{number}.external_id"
        try:
            value = settings.read_external_id(trust)
        except LakeError as error:
            yield f"{key}: {error.message} {error.remedy}".strip()
            continue
        if trust.external_id.reference and trust.external_id.reference[0] == "env" and not EXTERNAL_ID.fullmatch(value):
            yield (
                f"{key}: {trust.external_id.text} holds {value!r}; expected {ALPHABET}. "
                "Take the external id as the vendor shows it."
            )
