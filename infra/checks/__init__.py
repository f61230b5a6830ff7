"""Refuse a deployment that cannot work before its templates are written, with every problem at once."""

from collections.abc import Callable, Iterator
from typing import Final

from infra.checks.guests import check_guests
from infra.checks.machine import check_bundle, check_external_ids
from infra.settings import Settings
from lakewriter.deployable import list_problems, make_refusal

CHECKS: Final[tuple[Callable[[Settings], Iterator[str]], ...]] = (check_external_ids, check_bundle, check_guests)
"""Those that ask this machine, or several files; ``lakewriter check`` and ``plan`` make all others too."""


def require_deployable(settings: Settings) -> None:
    """Raise ``SPEC_INVALID`` with every problem that a deployment of this stage would have."""
    problems = list_problems(settings) + [problem for check in CHECKS for problem in check(settings)]
    if problems:
        raise make_refusal(settings.stage, problems)
