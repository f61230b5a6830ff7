"""Write messages of Airbyte's protocol: one JSON message a line on standard output, and nothing else.

See: https://docs.airbyte.com/understanding-airbyte/airbyte-protocol
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import msgspec

from lakewriter.errors import LakeError, SpecInvalidError
from lakewriter.run.stop import Stopped

Emit = Callable[[dict[str, Any]], None]


@contextmanager
def standard_output() -> Iterator[Emit]:
    """Yield the function that writes to standard output; other output goes to standard error meanwhile."""
    sys.stdout.flush()
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        # Without a buffer: at the end nothing is written again for a reader that is gone.
        with os.fdopen(os.dup(output), "wb", buffering=0) as out:

            def emit(message: dict[str, Any]) -> None:
                rest = memoryview(msgspec.json.encode(message) + b"\n")
                while rest:
                    rest = rest[out.write(rest) or 0 :]

            yield emit
    finally:
        sys.stdout.flush()
        os.dup2(output, 1)
        os.close(output)


def make_log(level: str, message: str) -> dict[str, Any]:
    """Return a LOG; ``level`` is INFO, WARN or ERROR."""
    return {"type": "LOG", "log": {"level": level, "message": message}}


def make_trace(error: BaseException) -> dict[str, Any]:
    """Return a TRACE with an error, which shows the platform whether a retry may help."""
    kind = "system_error"
    if isinstance(error, SpecInvalidError):
        kind = "config_error"
    elif isinstance(error, Stopped) or (isinstance(error, LakeError) and error.transient):
        kind = "transient_error"
    message = str(error) if isinstance(error, LakeError | Stopped) else f"{type(error).__name__}: {error}"
    content = {"message": message, "internal_message": message, "failure_type": kind}
    return {"type": "TRACE", "trace": {"type": "ERROR", "emitted_at": int(time.time() * 1000), "error": content}}


def make_state(text: str, records: int, counts: Mapping[str, int] = MappingProxyType({})) -> dict[str, Any]:
    """Return a STATE to hand back: all records before it are committed, ``records`` of them since the last STATE.

    Its parts stay text: the source's numbers may have more digits than a float. ``counts`` are other counts of the
    records.
    """
    message = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    additional = {"additionalStats": dict(counts)} if counts else {}
    return {"type": "STATE", "state": {**message, "destinationStats": {"recordCount": records, **additional}}}


def make_connection_status(problem: str | None) -> dict[str, Any]:
    """Return the answer to a check."""
    status = {"status": "SUCCEEDED"} if problem is None else {"status": "FAILED", "message": problem}
    return {"type": "CONNECTION_STATUS", "connectionStatus": status}
