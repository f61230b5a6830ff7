"""Syncs of Airbyte messages: a file for each job id, which may be cut short until the calm, or be sent anew."""

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lakewriter.run.loader import with_messages
from lakewriter.spec.specification import Spec
from lakewriter.spec.stream import Stream
from lakewriter.spec.table_spec import Mode, TableSpec
from tests.simulation.lakes import Lake
from tests.simulation.source import Sources

LOG: Final = json.dumps({"type": "LOG", "log": {"level": "INFO", "message": "begins anew"}})


@dataclass
class Inputs:
    """The files of one pipeline; a job's is the same whenever it is read, but for how much of it is there.

    In some histories attempts may get the same messages with other times and at other places, as from a source that was
    run once more.
    """

    lake: Lake
    sources: Sources
    folder: Path
    seed: int
    lines: dict[str, list[str]] = field(default_factory=dict)
    turns: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        # Chance of its own leaves the histories without such inputs what they were.
        self.rng = random.Random(f"inputs of {self.seed}")
        self.is_sent_anew = self.rng.random() < 0.3

    def spec_for(self, job: str, rng: random.Random, *, whole: bool) -> tuple[Spec, tuple[str, ...]]:
        """The pipeline with the job's file as its input, and in which ways that is not as it was."""
        if job not in self.lines:
            self.lines[job] = [line for table in self.lake.spec.tables for line in self._messages(table, job)]
        lines = self.lines[job]
        shown = len(lines) if whole or rng.random() < 0.6 else rng.randrange(1, len(lines))
        is_anew = self._is_anew(job, whole=whole)
        path = self.folder / f"{self.lake.pipeline}-{job}-{shown}{'-anew' * is_anew}.jsonl"
        if not path.exists():
            text = "".join(f"{line}\n" for line in lines[:shown])
            if is_anew:
                text = f"{LOG}\n" + text.replace('"emitted_at": 1}', '"emitted_at": 2}')
            path.write_text(text, "utf-8")
            os.utime(path, (0, 0))
        ways = {"cut": shown < len(lines), "anew": is_anew}
        # By its name alone, as the product notes it: a seed is one history, wherever its files lie.
        return with_messages(self._make_spec(job), path.name), tuple(way for way, is_so in ways.items() if is_so)

    def _make_spec(self, job: str) -> Spec:
        """The pipeline as the catalog of the job's sync has it."""
        return self.lake.spec

    def _is_anew(self, job: str, *, whole: bool) -> bool:
        """In the calm each file has its turn: a load goes on with the one of which it has committed a part."""
        self.turns[job] += whole
        if not self.is_sent_anew:
            return False
        return self.turns[job] % 2 == 1 if whole else self.rng.random() < 0.5

    def _messages(self, table: TableSpec, job: str) -> Iterator[str]:
        """Records with a state after every second one, and the word that the stream is complete."""
        assert table.stream is not None
        place = f"{self.lake.pipeline}/{table.id}"
        first = 0 if table.mode is Mode.OVERWRITE else self.sources.rows.get(place, 0)
        ids = tuple(range(first, max(self.sources.grow(place), first + 1)))
        reading = self.sources.read(self.lake.pipeline, table.id, job, "its file", ids)
        for number in ids:
            data = {"id": number, "nonce": reading.nonce, "name": f"row {number}"}
            yield make_record(table.stream, data)
            if number % 2:
                yield make_state(table.stream, {"cursor": number, "of": job})
        yield make_complete(table.stream)


def make_record(stream: Stream, data: dict[str, Any]) -> str:
    return json.dumps({"type": "RECORD", "record": {**_named(stream), "data": data, "emitted_at": 1}})


def make_state(stream: Stream, state: dict[str, Any]) -> str:
    own = {"stream_descriptor": _describe(stream), "stream_state": state}
    return json.dumps({"type": "STATE", "state": {"type": "STREAM", "stream": own}})


def make_complete(stream: Stream) -> str:
    status = {"stream_descriptor": _describe(stream), "status": "COMPLETE"}
    trace = {"type": "STREAM_STATUS", "emitted_at": 1.0, "stream_status": status}
    return json.dumps({"type": "TRACE", "trace": trace})


def _describe(stream: Stream) -> dict[str, Any]:
    return {"name": stream.name, "namespace": stream.namespace}


def _named(stream: Stream) -> dict[str, Any]:
    return {"stream": stream.name, "namespace": stream.namespace}
