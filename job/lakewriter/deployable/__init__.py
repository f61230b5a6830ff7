"""Refuse what ``cdk synth`` refuses, before the CDK is there: every problem of a file that its stacks would have."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from lakewriter.deployable.aws_names import (
    check_budget,
    check_parties,
    check_partitions,
    check_region,
    check_replica,
    check_snowflake_bucket,
    check_table_bucket,
)
from lakewriter.deployable.aws_values import check_values
from lakewriter.deployable.load_limits import (
    check_continuous,
    check_quota,
    check_schedule,
    check_uploads,
    check_workers,
)
from lakewriter.deployable.network import check_jars, check_lake_file, check_network
from lakewriter.deployable.stage_overlaps import check_stages
from lakewriter.deployable.staged_lake import StagedLake, load_siblings
from lakewriter.dialects.lake_yaml import Lake
from lakewriter.errors import SpecInvalidError
from lakewriter.report import format_count

CHECKS: Final[tuple[Callable[[StagedLake], Iterator[str]], ...]] = (
    check_region,
    check_partitions,
    check_values,
    check_budget,
    check_replica,
    check_snowflake_bucket,
    check_table_bucket,
    check_parties,
    check_lake_file,
    check_continuous,
    check_network,
    check_jars,
    check_schedule,
    check_workers,
    check_quota,
    check_uploads,
    check_stages,
)


STACK_KEYS: Final = frozenset({
    "schedule", "spark", "network", "jars", "alarms", "tags", "account_vcpu_quota", "log_retention_days", "operators"
})  # fmt: skip
"""Keys by which a file says that the stacks run its loads. Without any, its ``deployment`` may only say what
``lakewriter policy`` prints for loads that run elsewhere, where other networks and files are in reach."""


def judge(path: Path, lake: Lake, stage: str | None) -> SpecInvalidError | None:
    """Return the refusal of a file whose loads the stacks are to run; None where there is none.

    A file with stages is deployed as one of them; without one it may be for this machine.
    """
    if not lake.deployment.model_fields_set & STACK_KEYS or (stage is None and lake.deployment.stages):
        return None
    # The stacks are of one stage: the file as it is stands beside none.
    siblings = load_siblings(path, lake, stage) if stage else {}
    problems = list_problems(StagedLake(lake, stage or "", siblings=siblings))
    return make_refusal(stage or "", problems) if problems else None


def list_problems(settings: StagedLake) -> list[str]:
    """List every problem that a deployment of this stage would have, as far as the file shows it."""
    return [problem for check in CHECKS for problem in check(settings)]


def make_refusal(stage: str, problems: Sequence[str]) -> SpecInvalidError:
    """Make the error that names them all."""
    which = f"stage {stage!r}" if stage else "the file"
    return SpecInvalidError(f"{which} cannot be deployed, {format_count(len(problems), 'problem')}:", problems=problems)
