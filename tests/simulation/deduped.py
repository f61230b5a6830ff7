"""Syncs of streams that are merged by key: each has a generation, and reads on from a state of its table.

As the platform does it, a source goes on from the last state that was committed. It may send some records once more,
and the syncs of one generation may come late, when the table has the next one.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from lakewriter.spec.specification import Spec
from lakewriter.spec.stream import Stream
from lakewriter.spec.table_spec import TableSpec
from tests.simulation.books import Place, parsed
from tests.simulation.bucket import Bucket
from tests.simulation.events import Event, make_stream_order
from tests.simulation.lakes import DELETED_AT
from tests.simulation.messages import Inputs, make_complete, make_record, make_state
from tests.simulation.places import places_of
from tests.simulation.source import Generation

LOG: Final = 7
"""The bytes of a file of the simulated log."""


@dataclass
class DedupedInputs(Inputs):
    """The files of one pipeline, and the catalog of each of its syncs."""

    bucket: Bucket = field(kw_only=True)
    last: dict[str, Generation] = field(default_factory=dict)
    """The generation of each table, as the platform counts it."""

    def _make_spec(self, job: str) -> Spec:
        tables = []
        for table in self.lake.spec.tables:
            asked = self.sources.generations[self.lake.pipeline, table.id, job]
            assert table.stream is not None
            lowest = {"generation_id": asked.number, "minimum_generation_id": asked.lowest}
            stream = table.stream if asked.number is None else table.stream.model_copy(update=lowest)
            tables.append(table.model_copy(update={"stream": stream}))
        return self.lake.spec.model_copy(update={"tables": tuple(tables)})

    def _choose_generation(self, table: TableSpec, stream: Stream) -> Generation:
        """Return the generation that the platform asks the next sync for."""
        if stream.generation_id is None:
            return Generation(None, 1 if stream.overwrites else 0)
        if table.id not in self.last:
            self.last[table.id] = Generation(1, int(stream.overwrites))
        elif stream.overwrites or self.rng.random() < 0.3:
            number = (self.last[table.id].number or 0) + 1
            is_retained = not stream.overwrites and self.rng.random() < 0.3
            self.last[table.id] = Generation(number, 0 if is_retained else number)
        last = self.last[table.id]
        # Once a refresh is complete, the platform asks for no lowest generation any more.
        is_over = last.lowest and last.lowest <= self._find_shown(table)
        return Generation(last.number, 0) if is_over and self.rng.random() < 0.5 else last

    def _read_sync(self, table: TableSpec) -> dict[str, Any]:
        place = self._find_place(table)
        stored = self.bucket.objects.get(place.state)
        return dict(parsed(stored)["sync"]) if stored is not None else {}

    def _find_shown(self, table: TableSpec) -> int:
        return max((live["generation_id"] for live in self._read_sync(table).get("live", ())), default=0)

    def _find_place(self, table: TableSpec) -> Place:
        return next(place for place in places_of(self.lake) if place.table == table.id)

    def _find_first(self, table: TableSpec, asked: Generation) -> int:
        """Return the first record that the source sends: that after the committed state, or some that it repeats."""
        text = (self._read_sync(table).get("source") or {}).get("text", "")
        if not text or asked.lowest > self._find_shown(table):
            return 0
        following = int(json.loads(text)["stream"]["stream_state"]["cursor"]) + 1
        return max(0, following - self.rng.choice([0, 0, 0, 1, 3]))

    def _messages(self, table: TableSpec, job: str) -> Iterator[str]:
        """Records with a state after every second one and after the last, and the word that the stream is complete."""
        stream, name = table.stream, f"{self.lake.pipeline}/{table.id}"
        assert stream is not None
        asked = self._choose_generation(table, stream)
        self.sources.generations[self.lake.pipeline, table.id, job] = asked
        first, count = self._find_first(table, asked), self.sources.grow(name, most=6)
        if not first and self.rng.random() < 0.3:
            # The source was set back, and has no longer what it had.
            count = self.rng.randint(0, count)
        ids = tuple(range(first, max(first, count)))
        reading = self.sources.read(self.lake.pipeline, table.id, job, "its file", ids)
        events = self.sources.events.list(name, max(first, count))
        for number in ids:
            data = {"id": number, "nonce": reading.nonce, "name": f"event {number}"}
            yield make_record(stream, data | _make_properties(stream, events[number], number))
            if number % 2 or number == ids[-1]:
                yield make_state(stream, {"cursor": number, "of": job})
        if not ids:
            yield make_state(stream, {"cursor": first - 1, "of": job})
        yield make_complete(stream)


def _make_properties(stream: Stream, event: Event, number: int) -> dict[str, Any]:
    """Return key, order and deletion of a record, as far as its stream has them; what it lacks is null."""
    order = make_stream_order(event, number)
    values: dict[str, Any] = {
        "key": event.key,
        "who": {"id": event.key},
        "at": order["at"],
        DELETED_AT: "2026-01-15T00:00:00Z" if event.is_delete else None,
    }
    if (lsn := order["lsn"]) is not None:
        # Connectors spell it in one of these ways.
        values["_ab_cdc_lsn"] = [lsn, str(lsn), f"0/{lsn:X}"][number % 3]
        values |= {"_ab_cdc_log_file": f"binlog.{lsn // LOG:06}", "_ab_cdc_log_pos": lsn % LOG, "_ab_cdc_cursor": lsn}
    return {name: value for name, value in values.items() if name in stream.json_schema["properties"]}
