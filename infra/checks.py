"""Refuse a deployment that cannot work before its templates are written, with every problem at once.

Checked here is what only the machine that synthesizes has, the bundle of the job and the variables of external ids; and
that the pipelines of one bucket are apart, and that its one lifecycle rule fits them all.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import combinations, permutations, product
from typing import Final

from infra.bundle.manifest import read_manifest
from infra.bundle.release import describe_mismatch
from infra.pipeline.artifact import find_dependencies
from infra.settings import Settings
from lakewriter.deployable import list_problems, make_refusal
from lakewriter.deployable.stage_overlaps import find_reachable, is_nested, list_databases, name_kind
from lakewriter.errors import LakeError, SpecInvalidError
from lakewriter.policy.prefixes import list_written_prefixes
from lakewriter.spec.trust import ALPHABET, EXTERNAL_ID


def check_bundle(settings: Settings) -> Iterator[str]:
    """Refuse a missing or stale bundle, and one for another architecture or another Spark."""
    spark = settings.deployment.spark
    try:
        manifest = read_manifest(settings.bundle)
    except SpecInvalidError as error:
        yield f"{error.message} {error.remedy}"
        return
    if reason := describe_mismatch(spark.release, manifest):
        yield reason
    try:
        find_dependencies(spark.architecture, manifest)
    except SpecInvalidError as error:
        yield f"{error.message} {error.remedy}"


def check_external_ids(settings: Settings) -> Iterator[str]:
    """Refuse external ids that STS would refuse; the value of ``${env:NAME}`` is known only here."""
    for number, trust in enumerate(settings.deployment.trust):
        for index, secret in enumerate(trust.external_ids):
            name = f"earlier_external_ids.{index - 1}" if index else "external_id"
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


CHECKS: Final[tuple[Callable[[Settings], Iterator[str]], ...]] = (check_external_ids, check_bundle, check_guests)
"""Those that ask this machine, or several files; ``lakewriter check`` and ``plan`` make all others too."""


def require_deployable(settings: Settings) -> None:
    """Raise ``SPEC_INVALID`` with every problem that a deployment of this stage would have."""
    problems = list_problems(settings) + [problem for check in CHECKS for problem in check(settings)]
    if problems:
        raise make_refusal(settings.stage, problems)
