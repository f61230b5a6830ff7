"""Record every AWS call of a proof, without secrets, bodies and the account's number, and compare two records."""

import difflib
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest import mock

from botocore.client import BaseClient
from botocore.exceptions import ClientError

from lakewriter.aws.credentials import list_resolved
from lakewriter.source.messages.masking import Mask

EXAMPLE = "123456789012"
"""The account in a transcript."""
SECRET = re.compile(r"secret|password|token|accesskey|credential|signature|externalid", re.IGNORECASE)
BODIES = frozenset({"Body", "TemplateBody", "Definition", "definition", "Policy", "PolicyDocument"})
LOOKS_SECRET = re.compile(
    r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|(?<=X-Amz-Signature=)[^&\"\s]+|(?<=X-Amz-Security-Token=)[^&\"\s]+|(?<=X-Amz-Credential=)[^&\"\s]+"
    r"|(?<=://)[^/@\s\":]*:[^/@\s\"]+(?=@)",
    re.DOTALL,
)
"""What is secret by its looks: access key ids, private keys, JSON web tokens, what signs a URL, and its password."""
READ = {"DescribeStacks": ("Stacks", 0, "StackStatus"), "DescribeExecution": ("status",)}
"""What a proof reads in an answer, which therefore has to be the same."""
_LONGEST = 300


class Transcript:
    """The calls of this thread, each with the step that made it; others are made by what the calls have started.

    A call without a step is not recorded.
    """

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.step = ""
        self.account = ""
        self._secrets: set[str] = set()
        self._thread = threading.get_ident()

    @contextmanager
    def record(self) -> Iterator[None]:
        """Within, note every call of boto3's clients, the product's own included."""
        make_call = BaseClient._make_api_call  # type: ignore[attr-defined]

        def noted(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
            if threading.get_ident() != self._thread or not self.step:
                return make_call(client, operation, parameters)
            began, status, answer = time.monotonic(), "OK", {}
            try:
                answer = make_call(client, operation, parameters)
            except ClientError as error:
                status = error.response["Error"]["Code"]
                raise
            finally:
                self._secrets |= {*_read_credentials(client), *list_secrets(parameters), *list_secrets(answer)}
                self.calls.append(
                    {
                        "step": self.step,
                        "service": client.meta.service_model.service_name,
                        "operation": operation,
                        "parameters": mask(parameters),
                        "status": status,
                        "answer": mask({key: each for key, each in answer.items() if key != "ResponseMetadata"}),
                        "seconds": round(time.monotonic() - began, 2),
                    }
                )
            return answer

        with mock.patch.object(BaseClient, "_make_api_call", noted):
            yield

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Within, record nothing: what an emulator needs is no call of the proof."""
        step, self.step = self.step, ""
        try:
            yield
        finally:
            self.step = step

    def write(self, path: Path) -> None:
        """Write the calls; polls that answered the same one after the other are one line with their number.

        A value that any call had under a secret's name is masked in all of them.
        """
        lines: list[dict[str, Any]] = []
        for call in self.calls:
            same = lines and all(lines[-1][key] == call[key] for key in call if key not in {"seconds", "answer"})
            if same:
                lines[-1] |= {"answer": call["answer"], "times": lines[-1].get("times", 1) + 1}
            else:
                lines.append(dict(call))
        text = json.dumps({"version": 1, "calls": lines}, indent=1)
        text = LOOKS_SECRET.sub("<secret>", Mask({*self._secrets, *list_resolved()}).mask(text))
        path.write_text((text.replace(self.account, EXAMPLE) if self.account else text) + "\n", "utf-8")


def mask(value: Any, name: str = "") -> Any:
    """Leave out what is secret or long, and what is no JSON."""
    if isinstance(value, dict):
        return {key: mask(each, str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [mask(each, name) for each in value]
    if value is not None and is_secret(name):
        return "<secret>"
    if name in BODIES or not isinstance(value, str | int | float | bool | type(None) | datetime):
        return "<left out>"
    text = value.isoformat() if isinstance(value, datetime) else value
    return f"{text[:_LONGEST]} [...]" if isinstance(text, str) and len(text) > _LONGEST else text


def is_secret(name: str) -> bool:
    """Return True if a value of this name is secret."""
    return SECRET.search(name) is not None and not name.endswith(("Arn", "ARN"))


def list_secrets(value: Any, name: str = "") -> Iterator[str]:
    """Yield the texts that a call has under a secret's name."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from list_secrets(inner, str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from list_secrets(inner, name)
    elif isinstance(value, str) and is_secret(name):
        yield value


def _read_credentials(client: Any) -> Iterator[str]:
    credentials = client._request_signer._credentials
    if credentials is not None:
        frozen = credentials.get_frozen_credentials()
        yield from filter(None, (frozen.access_key, frozen.secret_key, frozen.token))


def compare(recorded: Sequence[Mapping[str, Any]], replayed: Sequence[Mapping[str, Any]]) -> list[str]:
    """List where two proofs made other calls, or were answered otherwise; lines begin with ``-`` or ``+``.

    Polls, keys and ids differ from one proof to the next, and do not count.
    """
    before, after = (list(_list_lines(calls)) for calls in (recorded, replayed))
    lines = difflib.unified_diff(before, after, lineterm="", n=0)
    return [line for line in lines if line[0] in "-+" and not line.startswith(("---", "+++"))]


def _list_lines(calls: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    last = ""
    for call in calls:
        line = f"{call['step']}: {call['service']}:{call['operation']} {call['status']}"
        if call["status"] == "OK" and call["operation"] in READ:
            value: Any = call["answer"]
            for key in READ[call["operation"]]:
                value = value[key]
            if str(value).endswith(("RUNNING", "_IN_PROGRESS")):
                continue
            line += f", {value}"
        if line != last:
            yield line
        last = line
