"""A source of three streams, and how the platform keeps its STATEs."""

import json
from typing import Any

NAMES = ("s0", "s1", "s2")
MODES: dict[str, dict[str, Any]] = {
    "incremental": {"sync_mode": "incremental", "destination_sync_mode": "append"},
    "full append": {"sync_mode": "full_refresh", "destination_sync_mode": "append"},
    "overwrite": {"sync_mode": "full_refresh", "destination_sync_mode": "overwrite"},
    "counted": {
        "sync_mode": "full_refresh",
        "destination_sync_mode": "overwrite",
        "generation_id": 3,
        "minimum_generation_id": 3,
    },
}
KINDS = ("STREAM", "GLOBAL", "GLOBAL without parts", "LEGACY", "none")


class Source:
    """A source of three streams with rows 1 to 3 each, which says STATEs of one kind, and COMPLETE."""

    def __init__(self, modes, kind, rng):
        self._modes, self._kind, self._rng = dict(zip(NAMES, modes, strict=True)), kind, rng

    def start(self, given):
        """Return the row behind which each stream begins, by the STATEs that it is given."""
        starts = dict.fromkeys(NAMES, 0)
        for text in given:
            if text["type"] == "STREAM":
                starts[text["stream"]["stream_descriptor"]["name"]] = text["stream"]["stream_state"]
            elif text["type"] == "GLOBAL":
                parts = {p["stream_descriptor"]["name"]: p["stream_state"] for p in text["global"]["stream_states"]}
                shared = text["global"]["shared_state"]
                for name, mode in self._modes.items():
                    starts[name] = parts.get(name, 0 if parts or mode != "incremental" else shared[name])
            else:
                starts |= dict.fromkeys(NAMES, 0) | {n: v["at"] for n, v in text["data"].items()}
        # The platform begins a full refresh anew: no STATE of one whose generation goes is given.
        return {name: 0 if self._modes[name] == "overwrite" else start for name, start in starts.items()}

    def say(self, given):
        """Yield the messages of a sync."""
        at, left = self.start(given), list(NAMES)
        while left:
            name = self._rng.choice(left)
            key = ("public", name)
            if at[name] < 3:
                at[name] += 1
                yield ("record", key, at[name])
                if self._rng.random() < 0.5:
                    yield from self._make_state(name, at)
                continue
            left.remove(name)
            if self._rng.random() < 0.7:
                yield from self._make_state(name, at)
            yield ("status", key, "COMPLETE")

    def _make_state(self, name, at):
        covered = {n: at[n] for n in NAMES if self._modes[n] == "incremental"}
        descriptors = [{"stream_descriptor": {"name": n, "namespace": "public"}, "stream_state": v}
                       for n, v in covered.items()]  # fmt: skip
        match self._kind:
            case "STREAM":
                own = {"stream_descriptor": {"name": name, "namespace": "public"}, "stream_state": at[name]}
                yield ("state", ("public", name), json.dumps({"type": "STREAM", "stream": own}))
            case "GLOBAL":
                content = {"shared_state": covered, "stream_states": descriptors}
                yield ("state", None, json.dumps({"type": "GLOBAL", "global": content}))
            case "GLOBAL without parts":
                content = {"shared_state": covered, "stream_states": []}
                yield ("state", None, json.dumps({"type": "GLOBAL", "global": content}))
            case "LEGACY":
                content = {n: {"at": v} for n, v in covered.items()}
                yield ("state", None, json.dumps({"type": "LEGACY", "data": content}))


def take_last(given, back, kind):
    """Return the STATEs that the platform keeps after those that came back."""
    if kind != "STREAM":
        return back[-1:] or given
    by_stream = {text["stream"]["stream_descriptor"]["name"]: text for text in (*given, *back)}
    return list(by_stream.values())
