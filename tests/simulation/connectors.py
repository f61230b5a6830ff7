"""Connectors that the job runs: processes that read what a source holds, send states of every kind, and die.

A source is a log of rows, each of one stream. Every state tells for each stream how many of its rows were sent, so that
no row that is sent again and none that is left out is the source's doing.
"""

import io
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from lakewriter.spec.table_spec import TableSpec
from tests.simulation.lakes import Lake
from tests.simulation.simulated import Here
from tests.simulation.source import Reading, Sources

Kind = Literal["stream", "global", "shared", "named", "opaque"]
KINDS: Final[tuple[Kind, ...]] = ("stream", "global", "shared", "named", "opaque")
"""A state for each stream; one for all with a part for each stream; one for all whose streams share a place in the log;
of the old kind by the streams' names, or with that place alone."""
WHOLE: Final = frozenset({"shared", "opaque"})
"""Kinds that have one place for all: a stream that is read anew each time is not in them."""
EXIT_CODES: Final = (0, 1, 2, 137, -9)


@dataclass
class Given:
    """What a connector goes on from: how many rows of each stream it has sent, and the kinds of state that say so."""

    cursors: dict[str, int] = field(default_factory=dict)
    kinds: list[str] = field(default_factory=list)
    place: int | None = None


@dataclass
class Connector:
    """The source of one pipeline; ``check`` is told what it is given. It is of one ``kind``, or of any where that is
    None."""

    lake: Lake
    sources: Sources
    seed: int
    met: Counter[str]
    log: list[str] = field(default_factory=list)
    is_whole: bool = False
    kind: Kind | None = None
    job: str = ""
    check: Callable[["Given", list[str]], None] = lambda *_: None

    def __post_init__(self) -> None:
        self.rng = random.Random(f"connector of {self.lake.pipeline} {self.seed}")
        self._tables = {_name(table): table for table in self.lake.spec.tables}
        drawn = self.rng.choice(KINDS)
        self._kind: Kind = self.kind or drawn
        # A source that is set up anew may send states of another kind from then on.
        self._is_changing = self.rng.random() < 0.15 and self.kind is None
        self._is_dying = self.rng.random() < 0.85

    def run(self, state: str | None, streams: list[str]) -> tuple[bytes, int]:
        """What one process prints, and its exit code."""
        rng = self.rng
        if self._is_changing and rng.random() < 0.5:
            self._kind = rng.choice(KINDS)
        for _ in range(rng.randint(0, 4)):
            self.log.append(rng.choice(sorted(self._tables)))
        given = self._read(state)
        self.check(given, streams)
        lines = list(self._messages(given, streams))
        if self.is_whole or not self._is_dying or rng.random() < 0.4:
            return _join(lines), 0
        self.met["died"] += 1
        shown = lines[: rng.randrange(len(lines))]
        code, cut = rng.choice(EXIT_CODES), rng.random() < 0.2
        if not code:
            # One that ends in good order says so of each stream that it has not read to its end.
            complete = [own for own in shown if own["type"] == "TRACE"]
            left = [own for own in streams if _status(own, "COMPLETE") not in complete]
            return _join([*shown, *(_status(own, "INCOMPLETE") for own in left)]), code
        if rng.random() < 0.2:
            shown.append(_trace("ERROR", error={"message": "the server closed the connection"}))
        return _join(shown)[: -5 if cut and shown else None], code

    def _read(self, state: str | None) -> Given:
        given = Given()
        if state is None:
            return given
        content = json.loads(state)
        if not isinstance(content, list):
            given.kinds.append("LEGACY")
            self._take(given, content)
            return given
        for each in content:
            given.kinds.append(each["type"])
            if each["type"] == "STREAM":
                own = each["stream"]
                given.cursors[own["stream_descriptor"]["name"]] = own["stream_state"]["sent"]
            elif each["type"] == "GLOBAL":
                for own in each["global"]["stream_states"]:
                    if "sent" in own["stream_state"]:
                        given.cursors[own["stream_descriptor"]["name"]] = own["stream_state"]["sent"]
                    else:
                        given.cursors[own["stream_descriptor"]["name"]] = self._count(
                            own["stream_descriptor"]["name"], each["global"]["shared_state"]["place"]
                        )
            else:
                self._take(given, each["data"])
        return given

    def _take(self, given: Given, data: Mapping[str, Any]) -> None:
        if "place" in data:
            given.cursors |= {name: self._count(name, data["place"]) for name in data["streams"]}
            return
        given.cursors |= {name: own["sent"] for name, own in data.items()}

    def _count(self, name: str, place: int) -> int:
        return sum(own == name for own in self.log[:place])

    def _messages(self, given: Given, streams: list[str]) -> Iterator[dict[str, Any]]:
        """Every message of a process that is not cut off."""
        rng, readings = self.rng, dict[str, Reading]()
        # Of kinds with one place, the log is read in its order from the first place that any stream is at.
        sent = {name: given.cursors.get(name, 0) for name in streams}
        yield {"type": "LOG", "log": {"level": "INFO", "message": f"run {rng.random()}"}}
        if rng.random() < 0.7:
            yield from (_status(name, "STARTED") for name in streams)
        rows = self._order(sent, streams)
        ids = {name: tuple(number for own, number, _ in rows if own == name) for name in streams}
        for name in streams:
            readings[name] = self.sources.read(
                self.lake.pipeline, self._tables[name].id, self.job, "its connector", ids[name]
            )
        left = Counter(own for own, _, _ in rows)
        done = [name for name in streams if not left[name]]
        yield from (_status(name, "COMPLETE") for name in done if rng.random() < 0.5)
        every, most = rng.choice([1, 2, 3]), self._find_furthest(sent) if self._kind in WHOLE else 0
        waiting = sum(place <= most and not _is_anew(self._tables[name]) for name, _, place in rows)
        for number, (name, row, place) in enumerate(rows):
            data = {"id": row, "nonce": readings[name].nonce, "name": f"row {row}"}
            yield {"type": "RECORD", "record": {"stream": name, "namespace": "public", "data": data, "emitted_at": 1}}
            sent[name], left[name] = row + 1, left[name] - 1
            waiting -= place <= most and not _is_anew(self._tables[name])
            if (number % every == 0 or not left[name]) and not waiting:
                yield from self._states(sent, streams, name, max(place, most))
            if not left[name] and rng.random() < 0.5:
                done.append(name)
                yield _status(name, "COMPLETE")
        if rows or rng.random() < 0.5:
            yield from self._states(sent, streams, None, len(self.log))
        yield from (_status(name, "COMPLETE") for name in streams)

    def _order(self, sent: Mapping[str, int], streams: list[str]) -> list[tuple[str, int, int]]:
        """Stream, number and place in the log behind it, of each row that is to be sent, in the order they are sent."""
        counts, rows = Counter[str](), []
        for place, name in enumerate(self.log):
            if name in sent and counts[name] >= sent[name]:
                rows.append((name, counts[name], place + 1))
            counts[name] += 1
        if self._kind in WHOLE:
            # What one place does not tell of comes first, and what lies before the place that another stream is at.
            most = self._find_furthest(sent)
            return sorted(rows, key=lambda row: (not _is_anew(self._tables[row[0]]), row[2] > most))
        if self.rng.random() < 0.6:
            turns = self.rng.sample(streams, len(streams))
            return sorted(rows, key=lambda row: turns.index(row[0]))
        return rows

    def _find_furthest(self, sent: Mapping[str, int]) -> int:
        """The place in the log up to which a stream of those in one place has its rows."""
        named = {name: own for name, own in sent.items() if not _is_anew(self._tables[name]) and own}
        counts, furthest = Counter[str](), 0
        for place, name in enumerate(self.log):
            counts[name] += 1
            if name in named and counts[name] == named[name]:
                furthest = place + 1
        return furthest

    def _states(
        self, sent: Mapping[str, int], streams: list[str], name: str | None, place: int
    ) -> Iterator[dict[str, Any]]:
        if self._kind in WHOLE:
            if name is None or not _is_anew(self._tables[name]):
                named = [own for own in streams if not _is_anew(self._tables[own])]
                states = [{"stream_descriptor": _describe(own), "stream_state": {}} for own in named]
                shared: dict[str, Any] = {"shared_state": {"place": place}, "stream_states": states}
                # A stream that is added later is not of those that came that far.
                data = {"place": place, "streams": named}
                yield _state(data=data) if self._kind == "opaque" else _make_global(shared)
            return
        match self._kind:
            case "stream":
                for own in streams if name is None else [name]:
                    stream = {"stream_descriptor": _describe(own), "stream_state": {"sent": sent[own]}}
                    yield _state(type="STREAM", stream=stream)
            case "global":
                parts = [{"stream_descriptor": _describe(own), "stream_state": {"sent": sent[own]}} for own in streams]
                yield _make_global({"shared_state": {"at": place}, "stream_states": parts})
            case "named":
                yield _state(data={own: {"sent": sent[own]} for own in streams})


class SimulatedProcess:
    """Stands in for ``subprocess.Popen`` of a connector."""

    def __init__(self, arguments: list[str], **_: Any) -> None:
        simulation = Here.mine()
        assert simulation is not None
        connector: Connector = simulation.connectors[arguments[1]]
        state = None
        if "--state" in arguments:
            state = Path(arguments[arguments.index("--state") + 1]).read_text("utf-8")
        # Others go on while it reads.
        simulation.scheduler.sleep(connector.rng.choice([0.1, 1.0, 5.0]))
        connector.job = simulation.process.job
        printed, self.returncode = connector.run(state, arguments[2].split(","))
        simulation.network.note(f"{simulation.process} connector {state!r} -> {self.returncode}\n{printed.decode()}")
        self.stdout = io.BytesIO(printed)

    def __enter__(self) -> "SimulatedProcess":
        return self

    def __exit__(self, *_: object) -> None: ...

    def terminate(self) -> None:
        """It has ended."""


def _join(lines: list[dict[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()


def _name(table: TableSpec) -> str:
    assert table.stream is not None
    return table.stream.name


def _is_anew(table: TableSpec) -> bool:
    """Whether the stream is read from its beginning by every sync."""
    return table.stream is not None and table.stream.sync_mode == "full_refresh"


def _describe(name: str) -> dict[str, str]:
    return {"name": name, "namespace": "public"}


def _state(**state: Any) -> dict[str, Any]:
    return {"type": "STATE", "state": state}


def _make_global(content: dict[str, Any]) -> dict[str, Any]:
    return _state(type="GLOBAL", **{"global": content})


def _status(name: str, status: str) -> dict[str, Any]:
    return _trace("STREAM_STATUS", stream_status={"stream_descriptor": _describe(name), "status": status})


def _trace(kind: str, **content: Any) -> dict[str, Any]:
    return {"type": "TRACE", "trace": {"type": kind, "emitted_at": 1.0, **content}}
