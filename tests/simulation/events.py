"""The changes of the rows of sources that are merged by key, and what tasks get of them: rows, or events as Debezium
says them, of which the product's own code makes rows."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from lakewriter.naming import DELETED
from lakewriter.source.bad_rows import Marked, mark_schema
from lakewriter.source.change_events.unfolding import plan_events, unfold_batch
from lakewriter.spec.table_spec import TableSpec
from tests.simulation.source import SCHEMA, Feed, Reading, Session

KEYS: Final = 2
"""So few keys that most events are of a key that the table has."""
STEP: Final = 10
"""Between the order of one event and the next, so that rows of others fit between."""
COARSE: Final = 3 * STEP
"""Between one cursor of a stream and the next."""
COLUMNS: Final = ("key", "at", "region")
_ROW: Final = pa.struct([*SCHEMA, *(pa.field(name, pa.int64()) for name in COLUMNS)])
_SOURCE: Final = pa.struct(
    [
        *((name, pa.string()) for name in ("connector", "table", "snapshot")),
        *((name, pa.int64()) for name in ("lsn", "ts_ms")),
    ]
)
_EVENTS: Final = pa.schema([("op", pa.string()), ("before", _ROW), ("after", _ROW), ("source", _SOURCE)])


@dataclass(frozen=True)
class Event:
    """A change of a source's row. ``at`` is its time, ``region`` a column that the table may be partitioned by. What a
    snapshot has read is older than what was streamed in its epoch, which is the number of snapshots begun by then.

    Of change events ``is_end`` is the last read of a snapshot, and ``is_truncate`` no row, but a truncate.
    """

    key: int
    at: int
    region: int
    is_delete: bool = False
    is_read: bool = False
    epoch: int = 0
    is_truncate: bool = False
    is_end: bool = False


@dataclass
class Events:
    """The events of all sources by their number; they do not come in the order of their times."""

    seed: int
    events: dict[str, list[Event]] = field(default_factory=dict)

    def open(self, session: Session, table: TableSpec, ids: tuple[int, ...], *, single: bool) -> Feed:
        """Open the events of these numbers."""
        name, sources = f"{session.pipeline}/{table.history_of or table.id}", session.sources
        reading = sources.read(session.pipeline, table.id, session.job, session.process, ids)
        events, partitions = self.list(name, max(ids, default=-1) + 1), 1 if single else sources.rng.choice([1, 1, 2])
        if table.envelope is not None:
            # What a load reads is of its own epoch.
            sources.epochs[reading.nonce] = table.envelope.epoch
            return ChangeFeed(reading, partitions, session, events, table)
        column = DELETED if table.deleted is not None else ""
        return EventsFeed(reading, partitions, session, events, column, is_clustered=bool(table.partition_by))

    def list(self, name: str, count: int) -> list[Event]:
        """List the first events of a source; no two of one key have the same time."""
        events = self.events.setdefault(name, [])
        rng = random.Random(f"events of {name} {self.seed} {len(events)}")
        while len(events) < count:
            at, what, epoch = max(0, len(events) - rng.choice([0, 0, 1, 4, 6])) * STEP, rng.random(), events[-1:]
            number = epoch[0].epoch if epoch else 0
            keys = rng.sample(range(KEYS), rng.choice([1, KEYS]) if what > 0.85 else 1)
            while any(event.key in keys and event.at == at for event in events):
                at += STEP
            if what > 0.93:
                # All keys that there are come once more.
                reads = [Event(key, at, rng.randrange(2), is_read=True, epoch=number + 1) for key in keys]
                events += [*reads[:-1], replace(reads[-1], is_end=rng.random() < 0.8)]
            elif what > 0.85:
                # The change of a key deletes one and creates the other, both at one time.
                events += [Event(key, at, rng.randrange(2), not place, epoch=number) for place, key in enumerate(keys)]
            else:
                events.append(Event(keys[0], at, rng.randrange(2), rng.random() < 0.35, epoch=number))
                events[-1] = replace(events[-1], is_truncate=rng.random() < 0.06)
        return events[:count]

    def find_epoch(self, name: str, count: int) -> int:
        """Return the epoch of the last one of so many events of a source."""
        return self.list(name, count)[-1].epoch if count else 0


class EventsFeed(Feed):
    """Events of a source, with the column ``deleted`` where the table has deletes; those that are clustered are in the
    order of the table's partitions."""

    def __init__(
        self,
        reading: Reading,
        partitions: int,
        session: Session,
        events: Sequence[Event],
        deleted: str,
        *,
        is_clustered: bool,
    ) -> None:
        super().__init__(reading, partitions, session)
        self.events, self.deleted = events, deleted
        self.is_clustered = is_clustered
        more = [pa.field(deleted, pa.bool_())] if deleted else []
        self.schema = pa.schema([*SCHEMA, *(pa.field(name, pa.int64()) for name in COLUMNS), *more])

    def batches(self, partition: int) -> Any:
        """See ``Feed``."""
        ids = list(self._ids(partition))
        if self.is_clustered:
            # As Spark sorts them.
            ids.sort(key=lambda number: (self.events[number].region, number))
        if ids:
            events = [self.events[number] for number in ids]
            values: dict[str, list[Any]] = {
                "id": ids,
                "nonce": [self.reading.nonce] * len(ids),
                "name": [f"event {number}" for number in ids],
                self.deleted: [event.is_delete for event in events],
            }
            values |= {name: [getattr(event, name) for event in events] for name in COLUMNS}
            yield pa.RecordBatch.from_arrays(
                [pa.array(values[own.name], own.type) for own in self.schema], schema=self.schema
            )


class ChangeFeed(Feed):
    """Change events of a source, unfolded into the rows of its table."""

    def __init__(
        self, reading: Reading, partitions: int, session: Session, events: Sequence[Event], table: TableSpec
    ) -> None:
        super().__init__(reading, partitions, session)
        assert table.envelope is not None
        self.events, self._is_clustered = events, bool(table.partition_by)
        self._is_history = table.history_of is not None
        self._plan = plan_events(_EVENTS, table, table.envelope)
        self._takes_floors = self._is_history or not table.keep_deleted
        # An event may be two rows, or a mark beside one.
        self.counts = None
        self.schema = pa.schema([*unfold_batch(self._plan, _mark([])).schema][:-1])

    def batches(self, partition: int) -> Iterator[pa.RecordBatch]:
        """See ``Feed``."""
        ids = list(self._ids(partition))
        if self._is_clustered:
            ids.sort(key=lambda number: (self.events[number].region, number))
        if ids:
            rows = unfold_batch(self._plan, _mark([self._make_event(number) for number in ids]))
            if self._is_history and self._is_clustered:
                # Rows that stand for floors have no region.
                regions = rows["region"].to_pylist()
                rows = rows.take(
                    sorted(range(len(regions)), key=lambda place: -1 if regions[place] is None else regions[place])
                )
            yield rows

    def _make_event(self, number: int) -> dict[str, Any]:
        event = self.events[number]
        row = {name: getattr(event, name) for name in COLUMNS}
        row |= {"id": number, "nonce": self.reading.nonce, "name": f"event {number}"}
        source = {"connector": "postgresql", "table": "orders", "lsn": event.at, "ts_ms": event.at}
        if event.is_truncate and self._takes_floors:
            return {"op": "t", "source": source}
        image, op = ("before", "d") if event.is_delete else ("after", "r" if event.is_read else "u")
        return {"op": op, image: row, "source": source | {"snapshot": "last" if event.is_end else "true"}}


def _mark(events: list[dict[str, Any]]) -> Marked:
    schema = mark_schema(_EVENTS)
    return Marked(pa.RecordBatch.from_pylist([event | {schema.names[-1]: {}} for event in events], schema=schema))


def make_stream_order(event: Event, number: int) -> Mapping[str, int | None]:
    """Return what a stream's record says of its order: a cursor that several records of a key may share, and a place in
    a log; some records say neither."""
    is_blank = number % 7 == 3
    return {"at": None if is_blank else event.at // COARSE * COARSE, "lsn": None if is_blank else event.at}
