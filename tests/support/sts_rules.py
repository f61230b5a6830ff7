"""Roles, trust and temporary credentials; moto lets anybody assume anything."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import urlencode

from tests.support.call import ACCOUNT, Answer, Call
from tests.support.narrow import need

Proceed = Callable[[Call], Answer]

CALLER = f"arn:aws:sts::{ACCOUNT}:user/moto"
"""Whom moto takes every key for that STS did not hand out."""

_ACCESS_KEY = re.compile(rb"<AccessKeyId>([^<]+)</AccessKeyId>")
_SECRET = re.compile(rb"<SecretAccessKey>([^<]+)</SecretAccessKey>")
_TOKEN = re.compile(rb"<SessionToken>([^<]+)</SessionToken>")
_ROLE_ARN = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]+")
# https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html
_EXTERNAL_ID = re.compile(r"[\w+=,.@:/-]{2,1224}")
_EXPIRATION = re.compile(rb"<Expiration>[^<]*</Expiration>")


@dataclass(frozen=True)
class Role:
    """Who may assume a role; ``principal`` is a caller's ARN or an account's root."""

    external_id: str | None
    principal: str | None

    def trusts(self, caller: str, external_id: str | None) -> bool:
        """Whether the trust policy lets ``caller`` in."""
        root = re.fullmatch(r"arn:aws:iam::(\d{12}):root", self.principal or "")
        known = self.principal is None or (caller.split(":")[4] == root[1] if root else caller == self.principal)
        return known and (self.external_id is None or external_id == self.external_id)


class Sts:
    """The roles there are, and when the credentials handed out for them expire."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.clock = clock
        self.roles: dict[str, Role] = {}
        self.session_seconds: int | None = None
        self._sessions: dict[str, tuple[str, datetime]] = {}
        self._secrets: dict[str, tuple[str, str]] = {}

    @property
    def keys(self) -> set[str]:
        """The access keys handed out."""
        return set(self._sessions)

    def find_secret(self, key: str) -> tuple[str, str] | None:
        """The secret and the token of an access key that was handed out and has not expired."""
        session = self._sessions.get(key)
        return self._secrets[key] if session is not None and self.clock() < session[1] else None

    def assume(self, call: Call, proceed: Proceed) -> Answer:
        """Only roles that exist and trust the caller can be assumed."""
        if call.action != "sts:AssumeRole":
            return proceed(call)
        arn, name = call.document["RoleArn"], call.document["RoleSessionName"]
        if complaint := _malformed(arn, call.document.get("ExternalId")):
            return call.error(400, "ValidationError", complaint)
        caller = self._sessions[call.access_key][0] if call.access_key in self._sessions else CALLER
        role = self.roles.get(arn)
        if role is None or not role.trusts(caller, call.document.get("ExternalId")):
            message = f"User: {caller} is not authorized to perform: sts:AssumeRole on resource: {arn}"
            return call.denied(message)
        seconds = self.session_seconds or int(call.document.get("DurationSeconds", 3600))
        answer = proceed(_with_duration(call, seconds))
        expires = self.clock() + timedelta(seconds=seconds)
        if found := _ACCESS_KEY.search(answer.body):
            session = f"arn:aws:sts::{arn.split(':')[4]}:assumed-role/{arn.rpartition('/')[2]}/{name}"
            self._sessions[found[1].decode()] = (session, expires)
            secret, token = (need(form.search(answer.body))[1].decode() for form in (_SECRET, _TOKEN))
            self._secrets[found[1].decode()] = (secret, token)
        text = expires.strftime("%Y-%m-%dT%H:%M:%S.%fZ").encode()
        return answer.with_body(_EXPIRATION.sub(b"<Expiration>" + text + b"</Expiration>", answer.body))

    def expire(self, call: Call, proceed: Proceed) -> Answer:
        """Credentials past their time are refused."""
        session = self._sessions.get(call.access_key)
        if session is None or self.clock() < session[1]:
            return proceed(call)
        if call.service == "s3":
            return call.error(400, "ExpiredToken", "The provided token has expired.")
        code = "ExpiredTokenException" if call.service == "glue" else "ExpiredToken"
        return call.error(403, code, "The security token included in the request is expired")


def _malformed(arn: str, external_id: str | None) -> str | None:
    if not _ROLE_ARN.fullmatch(arn):
        return f"{arn} is invalid"
    if external_id is None or _EXTERNAL_ID.fullmatch(external_id):
        return None
    return (
        f"1 validation error detected: Value '{external_id}' at 'externalId' failed to satisfy constraint: "
        r"Member must satisfy regular expression pattern: [\w+=,.@:\/-]*"
    )


def _with_duration(call: Call, seconds: int) -> Call:
    document = {**call.document, "DurationSeconds": str(max(seconds, 900))}
    return replace(call, document=document, body=urlencode(document).encode())
