"""Names and identities that the other side would not take."""

from collections.abc import Iterator

from infra.settings import Settings
from lakewriter.errors import LakeError
from lakewriter.policy.roles import find_snowflake
from lakewriter.spec.trust import ALPHABET, EXTERNAL_ID


def region(settings: Settings) -> Iterator[str]:
    """A file that leaves it to the bucket: the stacks are made where the bucket is to be."""
    access = settings.spec.access
    if not access.region and access.endpoint is None:
        yield (
            "destination.region is not given; expected the region of the bucket, such as 'us-east-1', since the stacks "
            "are made there."
        )


def snowflake_bucket(settings: Settings) -> Iterator[str]:
    """Snowflake reaches a bucket at a host of its name, which no certificate fits when the name has dots."""
    bucket = settings.spec.access.bucket
    if find_snowflake(settings.spec, settings.deployment) and "." in bucket:
        yield (
            f"the destination's bucket {bucket!r} has dots in its name, and a Snowflake external volume cannot use it; "
            "expected a name of letters, digits and '-'. Take another bucket, or leave out deployment.snowflake."
        )


def external_ids(settings: Settings) -> Iterator[str]:
    """External ids that STS refuses; what ``${env:NAME}`` holds shows only here."""
    for number, trust in enumerate(settings.deployment.trust):
        place = f"deployment.trust.{number}.external_id"
        try:
            found = settings.external_id(trust)
        except LakeError as error:
            yield f"{place}: {error.message} {error.remedy}".strip()
            continue
        if trust.external_id.reference and trust.external_id.reference[0] == "env" and not EXTERNAL_ID.fullmatch(found):
            yield (
                f"{place}: {trust.external_id.text} holds {found!r}; expected {ALPHABET}. "
                "Take the external id as the vendor shows it."
            )
