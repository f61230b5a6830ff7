"""Deployments that cannot work, refused before a template is written: every problem at once."""

from collections.abc import Callable, Iterator
from typing import Final

from infra.checks.bundle import bundle
from infra.checks.capacity import quota, uploads, workers
from infra.checks.continuous import continuous
from infra.checks.names import external_ids, region, snowflake_bucket
from infra.checks.reach import network, shipping
from infra.checks.schedule import schedule
from infra.checks.stages import stages
from infra.settings import Settings
from infra.text import counted
from lakewriter.errors import SpecInvalidError

CHECKS: Final[tuple[Callable[[Settings], Iterator[str]], ...]] = (
    region,
    snowflake_bucket,
    external_ids,
    shipping,
    continuous,
    network,
    schedule,
    bundle,
    workers,
    quota,
    uploads,
    stages,
)


def require_deployable(settings: Settings) -> None:
    """``SPEC_INVALID`` with every problem that a deployment of this stage would have."""
    problems = [problem for check in CHECKS for problem in check(settings)]
    if problems:
        count = counted(len(problems), "problem")
        raise SpecInvalidError(f"stage {settings.stage!r} cannot be deployed, {count}:", problems=problems)
