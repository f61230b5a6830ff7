"""What an IAM policy would deny, rule by rule."""

import re
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from xml.sax.saxutils import escape

from tests.support.call import Answer, Call
from tests.support.sts_rules import CALLER

Proceed = Callable[[Call], Answer]

_OBJECT = re.compile(rb"<Object>.*?<Key>(.*?)</Key>.*?</Object>", re.DOTALL)
_NOTHING = b'<DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"></DeleteResult>'


class Denials:
    """Refused ``(action, resource, message)``; action and resource may have ``*``."""

    def __init__(self) -> None:
        self.rules: list[tuple[str, str, str | None]] = []

    def __call__(self, call: Call, proceed: Proceed) -> Answer:
        """Refuse the call if anything it needs is denied."""
        if call.deletes_several:
            return self._refuse_some(call, proceed)
        for message in (self.reason(action, resource) for action, resource in call.needs):
            if message is not None:
                return call.denied(message)
        return proceed(call)

    def reason(self, action: str, resource: str) -> str | None:
        """The message of the first rule that denies ``action`` on ``resource``."""
        for denied, on, message in self.rules:
            if fnmatchcase(action.lower(), denied.lower()) and fnmatchcase(resource, on):
                return message or f"User: {CALLER} is not authorized to perform: {action} on resource: {resource}"
        return None

    def _refuse_some(self, call: Call, proceed: Proceed) -> Answer:
        """Deleting several objects is refused object by object, inside a 200."""
        errors = b""

        def keep(entry: re.Match[bytes]) -> bytes:
            nonlocal errors
            message = self.reason(call.action, f"{call.resource}/{entry[1].decode()}")
            if message is None:
                return entry[0]
            text = f"<Code>AccessDenied</Code><Message>{escape(message)}</Message>".encode()
            errors += b"<Error><Key>" + entry[1] + b"</Key>" + text + b"</Error>"
            return b""

        body = _OBJECT.sub(keep, call.body)
        some = b"<Object>" in body
        answer = proceed(replace(call, body=body)) if some else Answer(200, (("Content-Type", "text/xml"),), _NOTHING)
        return answer.with_body(answer.body.replace(b"</DeleteResult>", errors + b"</DeleteResult>"))


def deleted_keys(call: Call) -> list[str]:
    """The keys that a ``DeleteObjects`` names."""
    return [key.decode() for key in _OBJECT.findall(call.body)]


def outcomes(call: Call, answer: Answer) -> list[tuple[str, str, int]]:
    """``(action, resource, status)`` of all that the call asked for, each deleted object by itself."""
    if call.deletes_several:
        refused = re.findall(rb"<Error>.*?<Key>(.*?)</Key>", answer.body, re.DOTALL)
        return [
            (call.action, f"{call.resource}/{key}", 403 if key.encode() in refused else answer.status)
            for key in deleted_keys(call)
        ]
    return [(action, resource, answer.status) for action, resource in ((call.action, call.resource), *call.also)]
