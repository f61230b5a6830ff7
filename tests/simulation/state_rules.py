"""What one replacement of a ``state.json`` may change, by its documentation alone."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

State = Mapping[str, Any]

NEXT: Final[Mapping[str | None, frozenset[str | None]]] = {
    None: frozenset({None, "prepared", "intended"}),
    "prepared": frozenset({"prepared", "intended", "aborting"}),
    "intended": frozenset({"intended", "uploaded", "aborting"}),
    "uploaded": frozenset({"uploaded", "aborting", None}),
    "aborting": frozenset({"aborting", None}),
}
"""The phases of a pending intent that may follow one another."""


def faults_of(before: State, after: State) -> Iterable[str]:
    """What is wrong with the step; ``before`` is empty for the first state."""
    yield from _counters(before, after)
    yield from _pending(before.get("pending") or {}, after)


def faults_of_rebuilt(lost: State, after: State, *, is_visible: bool) -> Iterable[str]:
    """What a rebuilt state has that the one that was lost did not; ``is_visible`` is whether a file of the pending load
    of the lost one is. What was pending with its report written counts as committed."""
    old, new = lost["pending"] or {}, after["pending"] or {}
    committed = lost["committed"] + (not new and after["last_job"] == old.get("job_id", ""))
    if after["committed"] != committed:
        yield f"{after['committed']} loads are committed, expected {committed}"
    if committed == lost["committed"]:
        for name in ("cursor", "batch", "last_job", "shown"):
            if (is_now := _read(after, name)) != (was := _read(lost, name)):
                yield f"{name} is {is_now}, expected {was}"
        # Files of a pending load may lie beyond it already.
        if after["counter"] < lost["counter"]:
            yield f"counter is {after['counter']}, expected {lost['counter']} or more"
        if is_visible and (new.get("job_id"), new.get("attempt")) != (old["job_id"], old["attempt"]):
            yield f"pending is {new.get('job_id')}, expected {old['job_id']}, of which files are there"
    if new and (new["job_id"], new["attempt"]) != (old.get("job_id"), old.get("attempt")):
        yield f"{new['job_id']}/{new['attempt']} is pending, and was not"


def _read(state: State, name: str) -> Any:
    """A field of a state; ``shown`` is the full refresh that readers see."""
    if name != "shown":
        return state[name]
    return state["generations"][-1]["job_id"] if state.get("generations") else None


def _counters(before: State, after: State) -> Iterable[str]:
    for name in ("write", "committed", "counter", "backfill", "generation"):
        if after.get(name, 0) < before.get(name, 0):
            yield f"{name} goes back from {before[name]} to {after.get(name, 0)}"
    if after["write"] == before.get("write", 0):
        yield f"write stays at {after['write']}"
    if after["committed"] > before.get("committed", 0) + 1:
        yield f"committed goes from {before.get('committed', 0)} to {after['committed']}"
    # Written with as many digits as they need, times cannot be compared as texts.
    times = [datetime.fromisoformat(state["last_commit"]) for state in (before, after) if state.get("last_commit")]
    if times != sorted(times):
        yield f"last_commit goes back from {before['last_commit']} to {after['last_commit']}"
    for name in ("sync_id", "generation_id"):
        if after["sync"][name] < before.get("sync", after["sync"])[name]:
            yield f"{name} goes back"


def _pending(old: State, after: State) -> Iterable[str]:
    new = after.get("pending") or {}
    is_blind = any("abandoned without its intent" in reset["what"] for reset in after["resets"][-1:])
    if is_blind and not new:
        return
    if new.get("phase") not in NEXT[old.get("phase")]:
        yield f"phase {old.get('phase')} becomes {new.get('phase')}"
    if old and new and (old["job_id"], old["attempt"]) != (new["job_id"], new["attempt"]):
        yield f"pending {old['job_id']} becomes {new['job_id']}"
    if new and not old and after["running"].get(new["job_id"], {}).get("attempt") != new["attempt"]:
        yield f"{new['job_id']}/{new['attempt']} is bound and not registered"
