"""A connector that reads a log of changes and says states for all of its streams, as sources of change data do."""

import json
import sys
from pathlib import Path
from typing import Any, Final

SOURCE: Final = """
import json, pathlib, sys

runs = pathlib.Path("runs")
number = len(runs.read_text()) if runs.exists() else 0
runs.write_text("x" * (number + 1))
text = pathlib.Path(sys.argv[sys.argv.index("--state") + 1]).read_text() if "--state" in sys.argv else "null"
pathlib.Path(f"given{number}").write_text(text)
log = json.loads(pathlib.Path("log.json").read_text())
run = json.loads(pathlib.Path("runs.json").read_text())[number]
kind, upto, every, dies = run["kind"], run["upto"], run.get("every", 2), run.get("dies")
streams = run.get("streams") or sorted({name for name, _ in log})


def find_starts(given):
    if not given:
        return {}
    if isinstance(given, dict):
        return {name: own["lsn"] for name, own in given.items()}
    if given[0]["type"] == "GLOBAL":
        shared = given[0]["global"]["shared_state"]["lsn"]
        named = [own["stream_descriptor"]["name"] for own in given[0]["global"]["stream_states"]]
        return dict.fromkeys(named, shared)
    return {own["stream"]["stream_descriptor"]["name"]: own["stream"]["stream_state"]["lsn"] for own in given}


starts = find_starts(json.loads(text))


def say(message):
    print(json.dumps(message), flush=True)


def describe(name):
    return {"name": name, "namespace": "public"}


def say_status(name, status):
    content = {"stream_descriptor": describe(name), "status": status}
    say({"type": "TRACE", "trace": {"type": "STREAM_STATUS", "emitted_at": 1.0, "stream_status": content}})


def say_state(lsn):
    if kind == "GLOBAL":
        own = [{"stream_descriptor": describe(name), "stream_state": {"done": True}} for name in streams]
        content = {"type": "GLOBAL", "global": {"shared_state": {"lsn": lsn}, "stream_states": own}}
    elif kind == "LEGACY":
        content = {"data": {name: {"lsn": lsn} for name in streams}}
    else:
        for name in run.get("says", streams):
            own = {"stream_descriptor": describe(name), "stream_state": {"lsn": lsn}}
            say({"type": "STATE", "state": {"type": "STREAM", "stream": own}})
        return
    say({"type": "STATE", "state": content})


ended = set()
for at, (name, user) in enumerate(log[:upto], 1):
    if dies is not None and at > dies:
        sys.exit(1)
    if name in streams and at > starts.get(name, 0):
        say({"type": "RECORD", "record": {"stream": name, "namespace": "public", "data": {"user_id": user},
                                          "emitted_at": 1000 * number}})
    if at % every == run.get("shift", 0):
        say_state(at)
    for one in streams:
        if one not in ended and one in run.get("early", ()) and one not in [other for other, _ in log[at:upto]]:
            ended.add(one)
            say_status(one, "COMPLETE")
if dies is not None:
    sys.exit(1)
if run.get("last", True):
    say_state(upto)
for name in streams:
    if name not in ended:
        say_status(name, "COMPLETE")
sys.exit(run.get("exit", 0))
"""


class ChangeLog:
    """The script of a connector in a folder: the changes of its log, and what it does in each of its runs.

    A run has the ``kind`` of its states, ``upto`` which change it reads, after ``every`` how many it says a state,
    after which one it ``dies``, the streams that say COMPLETE ``early``, its ``streams`` where not all of the log, and
    which of them it ``says`` states of, where each has its own.
    """

    def __init__(self, folder: Path, log: list[tuple[str, int]]) -> None:
        self._folder, self._runs = folder, list[dict[str, Any]]()
        (folder / "source.py").write_text(SOURCE, "utf-8")
        (folder / "log.json").write_text(json.dumps(log), "utf-8")

    @property
    def command(self) -> list[str]:
        """The command of ``source.command``."""
        return [sys.executable, "source.py"]

    def script(self, **run: Any) -> None:
        """Add what the connector does in its next run."""
        self._runs.append({"kind": "GLOBAL"} | run)
        (self._folder / "runs.json").write_text(json.dumps(self._runs), "utf-8")

    def read_given(self, number: int) -> Any:
        """Return the state that the run with this number was given, None for none."""
        return json.loads((self._folder / f"given{number}").read_text("utf-8"))

    @property
    def runs(self) -> int:
        """How often the connector ran."""
        path = self._folder / "runs"
        return len(path.read_text("utf-8")) if path.exists() else 0
