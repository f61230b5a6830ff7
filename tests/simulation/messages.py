"""Syncs of Airbyte messages: a file for each job id, which may be cut short until the calm."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lakewriter.run.loader import with_messages
from lakewriter.spec.specification import Mode, Spec, TableSpec
from tests.simulation.lakes import Lake
from tests.simulation.source import Sources


@dataclass
class Inputs:
    """The files of one pipeline; a job's is the same whenever it is read, but for how much of it is there."""

    lake: Lake
    sources: Sources
    folder: Path
    lines: dict[str, list[str]] = field(default_factory=dict)

    def spec_for(self, job: str, rng: random.Random, *, whole: bool) -> tuple[Spec, bool]:
        """The pipeline with the job's file as its input, and whether that is cut short."""
        if job not in self.lines:
            self.lines[job] = [line for table in self.lake.spec.tables for line in self._messages(table, job)]
        lines = self.lines[job]
        shown = len(lines) if whole or rng.random() < 0.6 else rng.randrange(1, len(lines))
        path = self.folder / f"{self.lake.pipeline}-{job}-{shown}.jsonl"
        if not path.exists():
            path.write_text("".join(f"{line}\n" for line in lines[:shown]), "utf-8")
        return with_messages(self.lake.spec, str(path)), shown < len(lines)

    def _messages(self, table: TableSpec, job: str) -> Iterator[str]:
        """Records with a state after every second one, and the word that the stream is complete."""
        assert table.stream is not None
        place = f"{self.lake.pipeline}/{table.id}"
        first = 0 if table.mode is Mode.OVERWRITE else self.sources.rows.get(place, 0)
        ids = tuple(range(first, max(self.sources.grow(place), first + 1)))
        reading = self.sources.read(self.lake.pipeline, table.id, job, "its file", ids)
        stream = {"name": table.stream.name, "namespace": table.stream.namespace}
        for number in ids:
            data = {"id": number, "nonce": reading.nonce, "name": f"row {number}"}
            yield json.dumps({"type": "RECORD", "record": {**_named(stream), "data": data, "emitted_at": 1}})
            if number % 2:
                own = {"stream_descriptor": stream, "stream_state": {"cursor": number, "of": job}}
                yield json.dumps({"type": "STATE", "state": {"type": "STREAM", "stream": own}})
        status = {"stream_descriptor": stream, "status": "COMPLETE"}
        trace = {"type": "STREAM_STATUS", "emitted_at": 1.0, "stream_status": status}
        yield json.dumps({"type": "TRACE", "trace": trace})


def _named(stream: dict[str, Any]) -> dict[str, Any]:
    return {"stream": stream["name"], "namespace": stream["namespace"]}
