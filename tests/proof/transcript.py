"""Record every AWS call of a proof, without secrets, bodies and the account's number."""

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest import mock

from botocore.client import BaseClient
from botocore.exceptions import ClientError

EXAMPLE = "123456789012"
"""The account in a transcript."""
SECRET = re.compile(r"secret|password|token|accesskey|credential|signature|externalid", re.IGNORECASE)
BODIES = frozenset({"Body", "TemplateBody", "Definition", "definition", "Policy", "PolicyDocument"})
_LONGEST = 300


class Transcript:
    """The calls of this thread, each with the step that made it; others are made by what the calls have started."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []
        self.step = ""
        self.account = ""
        self._thread = threading.get_ident()

    @contextmanager
    def record(self) -> Iterator[None]:
        """Within, note every call of boto3's clients, the product's own included."""
        make_call = BaseClient._make_api_call  # type: ignore[attr-defined]

        def noted(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
            if threading.get_ident() != self._thread:
                return make_call(client, operation, parameters)
            began, status, answer = time.monotonic(), "OK", {}
            try:
                answer = make_call(client, operation, parameters)
            except ClientError as error:
                status = error.response["Error"]["Code"]
                raise
            finally:
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

    def write(self, path: Path) -> None:
        """Write the calls; polls that answered the same one after the other are one line with their number."""
        lines: list[dict[str, Any]] = []
        for call in self.calls:
            same = lines and all(lines[-1][key] == call[key] for key in call if key not in {"seconds", "answer"})
            if same:
                lines[-1] |= {"answer": call["answer"], "times": lines[-1].get("times", 1) + 1}
            else:
                lines.append(dict(call))
        text = json.dumps({"version": 1, "calls": lines}, indent=1)
        path.write_text((text.replace(self.account, EXAMPLE) if self.account else text) + "\n", "utf-8")


def mask(value: Any, name: str = "") -> Any:
    """Leave out what is secret or long, and what is no JSON."""
    if isinstance(value, dict):
        return {key: mask(each, str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [mask(each, name) for each in value]
    if value is not None and SECRET.search(name) and not name.endswith(("Arn", "ARN")):
        return "<secret>"
    if name in BODIES or not isinstance(value, str | int | float | bool | type(None) | datetime):
        return "<left out>"
    text = value.isoformat() if isinstance(value, datetime) else value
    return f"{text[:_LONGEST]} [...]" if isinstance(text, str) and len(text) > _LONGEST else text
