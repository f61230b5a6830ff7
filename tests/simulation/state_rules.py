"""What one replacement of a ``state.json`` may change, by its documentation alone."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

State = Mapping[str, Any]

NEXT: Final[Mapping[str | None, frozenset[str | None]]] = {
    None: frozenset({None, "intended"}),
    "intended": frozenset({"intended", "uploaded", "aborting"}),
    "uploaded": frozenset({"uploaded", None}),
    "aborting": frozenset({"aborting", None}),
}
"""The phases of a pending intent that may follow one another."""


def faults_of(before: State, after: State) -> Iterable[str]:
    """What is wrong with the step; ``before`` is empty for the first state."""
    yield from _counters(before, after)
    yield from _pending(before.get("pending") or {}, after)


def _counters(before: State, after: State) -> Iterable[str]:
    for name in ("write", "committed", "counter", "backfill"):
        if after[name] < before.get(name, 0):
            yield f"{name} goes back from {before[name]} to {after[name]}"
    if after["write"] == before.get("write", 0):
        yield f"write stays at {after['write']}"
    if after["committed"] > before.get("committed", 0) + 1:
        yield f"committed goes from {before.get('committed', 0)} to {after['committed']}"
    if before.get("last_commit") and after["last_commit"] < before["last_commit"]:
        yield f"last_commit goes back from {before['last_commit']} to {after['last_commit']}"
    for name in ("sync_id", "generation_id"):
        if after["sync"][name] < before.get("sync", after["sync"])[name]:
            yield f"{name} goes back"


def _pending(old: State, after: State) -> Iterable[str]:
    new = after.get("pending") or {}
    if new.get("phase") not in NEXT[old.get("phase")]:
        yield f"phase {old.get('phase')} becomes {new.get('phase')}"
    if old and new and (old["job_id"], old["attempt"]) != (new["job_id"], new["attempt"]):
        yield f"pending {old['job_id']} becomes {new['job_id']}"
    if new and not old and after["running"].get(new["job_id"], {}).get("attempt") != new["attempt"]:
        yield f"{new['job_id']}/{new['attempt']} is bound and not registered"
