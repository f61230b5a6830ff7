"""Check that the pipelines of one bucket are apart, and that its one lifecycle rule fits them all."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import combinations, permutations, product

from infra.settings import Settings
from lakewriter.deployable.stage_overlaps import find_reachable, is_nested, list_databases, name_kind
from lakewriter.policy.prefixes import list_written_prefixes


def check_guests(settings: Settings) -> Iterator[str]:
    """Refuse files that do not share the first one's bucket, or that share more than it."""
    host = settings.spec.access
    for guest in settings.guests:
        access, deployment = guest.spec.access, guest.deployment
        host_bucket, theirs = ((bucket_access.bucket, bucket_access.region) for bucket_access in (host, access))
        if host_bucket != theirs or deployment.account != settings.deployment.account or access.endpoint:
            yield (
                f"lake: pipeline {guest.spec.pipeline!r} writes to {access.bucket!r} in {access.region!r}, account "
                f"{deployment.account or 'any'}; expected bucket, region and account of {settings.spec.pipeline!r}, "
                "whose stack makes the bucket for all of these files. Deploy it by itself, or correct its destination."
            )
        if deployment.replication:
            yield (
                f"deployment.replication of {guest.spec.pipeline!r}: the stack of {settings.spec.pipeline!r} makes the "
                "bucket, and copies the whole bundle or nothing. Give it there."
            )
        days, longest = settings.deployment.abort_incomplete_uploads_days, deployment.spark.longest_load
        if timedelta(days=days) <= longest:
            yield (
                f"deployment.abort_incomplete_uploads_days: {days} of {settings.spec.pipeline!r} is too few for a load "
                f"of {guest.spec.pipeline!r}; expected {longest.days + 1} or more, since the bucket has one rule."
            )
    for one, other in combinations((settings, *settings.guests), 2):
        yield from _find_shared(one, other)
    for one, other in permutations((settings, *settings.guests), 2):
        for pattern, database in find_reachable(one.lake, other.lake):
            yield (
                f"lake: {one.spec.pipeline!r} lets parties from outside write databases named {pattern}, and "
                f"{database!r} of {other.spec.pipeline!r} is one. Give its parties 'tables' of their own."
            )


def _find_shared(one: Settings, other: Settings) -> Iterator[str]:
    named = f"lake: pipelines {one.spec.pipeline!r} and {other.spec.pipeline!r}"
    if one.spec.pipeline == other.spec.pipeline:
        yield f"{named} have one name; expected names of their own, by which their records are kept apart."
        return
    prefixes = product(list_written_prefixes(one.spec), list_written_prefixes(other.spec))
    shared = next((pair for pair in prefixes if is_nested(*pair)), None)
    if shared:
        first, second = shared
        yield (
            f"{named} write under {first!r} and {second!r}; expected prefixes of which none holds the other. Give "
            f"{other.spec.pipeline!r} another {other.spec.access.key_names.prefix}."
        )
    for database in sorted(list_databases(one.lake) & list_databases(other.lake)):
        yield (
            f"{named} both write the {name_kind(one.lake)} {database!r}; expected "
            f"{name_kind(one.lake).split()[-1]}s of their own. Give "
            f"{other.spec.pipeline!r} another {other.spec.access.key_names.database}."
        )
