"""Refuse a deployment that cannot work before its templates are written, with every problem at once."""

from collections.abc import Callable, Iterator
from typing import Final

from infra.checks.bundle import check_bundle
from infra.checks.capacity import check_orphans, check_quota, check_uploads, check_workers
from infra.checks.continuous import check_continuous
from infra.checks.guests import check_guests
from infra.checks.names import (
    check_budget,
    check_external_ids,
    check_parties,
    check_partitions,
    check_region,
    check_replica,
    check_snowflake_bucket,
)
from infra.checks.network import check_jars, check_lake_file, check_network
from infra.checks.schedule import check_schedule
from infra.checks.stages import check_stages
from infra.checks.values import check_values
from infra.settings import Settings
from lakewriter.errors import SpecInvalidError
from lakewriter.report import format_count

CHECKS: Final[tuple[Callable[[Settings], Iterator[str]], ...]] = (
    check_region,
    check_partitions,
    check_values,
    check_budget,
    check_replica,
    check_snowflake_bucket,
    check_external_ids,
    check_parties,
    check_lake_file,
    check_continuous,
    check_network,
    check_jars,
    check_schedule,
    check_bundle,
    check_workers,
    check_quota,
    check_uploads,
    check_orphans,
    check_stages,
    check_guests,
)


def require_deployable(settings: Settings) -> None:
    """Raise ``SPEC_INVALID`` with every problem that a deployment of this stage would have."""
    problems = [problem for check in CHECKS for problem in check(settings)]
    if problems:
        count = format_count(len(problems), "problem")
        raise SpecInvalidError(f"stage {settings.stage!r} cannot be deployed, {count}:", problems=problems)
