"""Check that the job can reach its sources and stores: without a VPC it reaches only its region's AWS services."""

from collections.abc import Iterator

from infra.checks.calls import REACHED, list_calls
from infra.pipeline.lake_file import find_unshippable
from infra.settings import Settings

_NEEDED = "Give deployment.network the subnets and security groups of a VPC with a way there"


def check_lake_file(settings: Settings) -> Iterator[str]:
    """Refuse paths and variables that exist only on this machine, and secrets that others could read."""
    yield from find_unshippable(settings.lake)


def check_network(settings: Settings) -> Iterator[str]:
    """Refuse whatever a load calls beside its region's AWS services if the stack has no VPC."""
    if settings.deployment.network is not None:
        return
    home = settings.spec.access.region
    for call in list_calls(settings):
        if call.service not in REACHED or call.region not in {"", home}:
            landed = ", or land the data in S3 first" if call.expected == "files in S3" else ""
            yield (
                f"{call.what} out of reach without a VPC; expected {call.expected}, or a network. {_NEEDED}{landed}."
            )
