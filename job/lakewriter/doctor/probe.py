"""Probes and what they find; a probe that cannot be asked says why."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from lakewriter import aws
from lakewriter.errors import InternalError, LakeError, S3AccessDeniedError
from lakewriter.spec.access import Access

Status = Literal["ok", "failed", "warning", "skipped"]

LOG: Final = logging.getLogger(__name__)
NOTHING_TO_DO: Final = "Nothing to do."

_KMS_ACTION = re.compile(r"kms:[A-Za-z]+")


@dataclass(frozen=True)
class Finding:
    """What one probe found; ``code`` is that of the error a load would meet."""

    probe: str
    status: Status
    message: str
    remedy: str = NOTHING_TO_DO
    code: str | None = None


@dataclass(frozen=True)
class Probe:
    """A question; it is not asked when one of ``needs`` failed or could not be asked for that reason.

    ``ask`` gives findings; an error out of it is a finding that ``failed``.
    """

    name: str
    ask: Callable[[], Iterable[Finding]]
    needs: tuple[str, ...] = ()


def run_probes(probes: Sequence[Probe]) -> Iterator[Finding]:
    """Every probe's findings, in order."""
    blocked: set[str] = set()
    for probe in probes:
        blocker = next((name for name in probe.needs if name in blocked), None)
        found = [_not_asked(probe, blocker)] if blocker else _findings(probe)
        if blocker or any(finding.status == "failed" for finding in found):
            blocked.add(probe.name)
        yield from found


def call(doing: str, access: Access, request: Callable[[], Any]) -> Any:
    """The answer of one AWS call; ``doing`` is the IAM action with what it is asked on."""
    try:
        return request()
    except (aws.ClientError, aws.BotoCoreError) as error:
        raise explained(error, doing, access) from error


def explained(error: Any, doing: str, access: Access) -> LakeError:
    """The error to report; a refusal that names a KMS action has that action in its remedy."""
    failure = aws.explain(error, doing=doing, access=access)
    kms = _KMS_ACTION.search(failure.message)
    if kms is None:
        return failure
    remedy = f"Allow {kms[0]} on the bucket's KMS key, in the policy of the role and in that of the key."
    return S3AccessDeniedError(failure.message, remedy=remedy)


def code_behind(failure: LakeError) -> str:
    """The service's own code behind an explained error, blank when it never answered."""
    return aws.code_of(failure.__cause__) if isinstance(failure.__cause__, aws.ClientError) else ""


def status_behind(failure: LakeError) -> int:
    """The HTTP status behind an explained error, 0 when there was no answer."""
    return aws.status_of(failure.__cause__) if isinstance(failure.__cause__, aws.ClientError) else 0


def _findings(probe: Probe) -> list[Finding]:
    found: list[Finding] = []
    try:
        found.extend(probe.ask())
    except LakeError as error:
        remedy = error.remedy or "Read the message; docs/troubleshooting.md has a section for each code."
        found.append(Finding(probe.name, "failed", error.message, remedy, error.code))
    except Exception as error:
        LOG.exception("The check %r met a fault of the program.", probe.name)
        fault = InternalError.met(f"check {probe.name!r}", error)
        found.append(Finding(probe.name, "failed", fault.message, fault.remedy, fault.code))
    return found


def _not_asked(probe: Probe, blocker: str) -> Finding:
    message = f"not asked, since {blocker!r} did not succeed."
    return Finding(probe.name, "skipped", message, f"Settle {blocker!r} first.")
