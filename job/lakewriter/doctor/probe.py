"""Run probes and collect their findings; a probe whose need failed is skipped with the reason."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from lakewriter import aws
from lakewriter.control_object import sparse
from lakewriter.errors import InternalError, LakeError, S3AccessDeniedError
from lakewriter.spec.access import Access
from lakewriter.spec.model import Model

Status = Literal["ok", "failed", "warning", "skipped"]

LOG: Final = logging.getLogger(__name__)
NOTHING_TO_DO: Final = "Nothing to do."

_KMS_ACTION = re.compile(r"kms:[A-Za-z]+")


class SeenColumn(Model):
    """A column of a source, with its type in SQL's words."""

    name: str
    type: str


class SeenSource(Model):
    """The findings of a look at a table's source; a number is None where it could not be had for free.

    ``looked_at`` counts the files that were opened for columns and types, ``sampled`` the rows that were read.
    """

    table: str
    format: str
    files: int | None
    looked_at: int | None
    bytes: int | None
    rows: int | None
    sampled: int | None
    columns: tuple[SeenColumn, ...]
    proposed: Mapping[str, str] = {}
    """Types for columns of text, as ``columns:`` takes them."""
    server: str = sparse("")
    """The name and version of a database's server."""


class Finding(Model):
    """The result of one probe; ``code`` is the error code that a load would fail with.

    ``source`` is what was seen of the source that the finding is about.
    """

    probe: str
    status: Status
    message: str
    remedy: str = NOTHING_TO_DO
    code: str | None = None
    source: SeenSource | None = None

    def __init__(
        self,
        probe: str,
        status: Status,
        message: str,
        remedy: str = NOTHING_TO_DO,
        code: str | None = None,
        **more: Any,
    ) -> None:
        fields = {"probe": probe, "status": status, "message": message, "remedy": remedy, "code": code}
        super().__init__(**fields, **more)


class CheckReport(Model):
    """The output of ``lakewriter check --json``."""

    version: Literal[1] = 1
    pipeline: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Probe:
    """A named check, skipped if one of the probes in ``needs`` failed or was skipped itself.

    ``ask`` yields findings; an error that it raises becomes a finding that ``failed``.
    """

    name: str
    ask: Callable[[], Iterable[Finding]]
    needs: tuple[str, ...] = ()


def run_probes(probes: Sequence[Probe]) -> Iterator[Finding]:
    """Run the probes in order and yield their findings."""
    blocked: set[str] = set()
    for probe in probes:
        blocker = next((name for name in probe.needs if name in blocked), None)
        findings = [_skip_probe(probe, blocker)] if blocker else _run_probe(probe)
        if blocker or any(finding.status == "failed" for finding in findings):
            blocked.add(probe.name)
        yield from findings


def call(doing: str, access: Access, request: Callable[[], Any]) -> Any:
    """Make one AWS call and return its response; ``doing`` is the IAM action and its resource, for the error."""
    try:
        return request()
    except (aws.ClientError, aws.BotoCoreError) as error:
        raise explain_failure(error, doing, access) from error


def explain_failure(error: Any, doing: str, access: Access) -> LakeError:
    """Make the error to report; if it names a KMS action, the remedy is to allow that action."""
    failure = aws.explain(error, doing=doing, access=access)
    kms = _KMS_ACTION.search(failure.message)
    if kms is None:
        return failure
    remedy = f"Allow {kms[0]} on the bucket's KMS key, in the policy of the role and in that of the key."
    return S3AccessDeniedError(failure.message, remedy=remedy)


def find_cause_code(failure: LakeError) -> str:
    """Find the service's own error code in the cause of an error; blank if there was no response."""
    return aws.read_error_code(failure.__cause__) if isinstance(failure.__cause__, aws.ClientError) else ""


def find_cause_status(failure: LakeError) -> int:
    """Find the HTTP status in the cause of an error; 0 if there was no response."""
    return aws.read_status(failure.__cause__) if isinstance(failure.__cause__, aws.ClientError) else 0


def _run_probe(probe: Probe) -> list[Finding]:
    findings: list[Finding] = []
    try:
        findings.extend(probe.ask())
    except LakeError as error:
        remedy = error.remedy or f"lakewriter docs {error.code} has more."
        findings.append(Finding(probe.name, "failed", error.message, remedy, error.code))
    except Exception as error:
        LOG.exception("The check %r met a fault of the program.", probe.name)
        fault = InternalError.met(f"check {probe.name!r}", error)
        findings.append(Finding(probe.name, "failed", fault.message, fault.remedy, fault.code))
    return findings


def _skip_probe(probe: Probe, blocker: str) -> Finding:
    message = f"not asked, since {blocker!r} did not succeed."
    return Finding(probe.name, "skipped", message, f"Settle {blocker!r} first.")
