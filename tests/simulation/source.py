"""What tables are read from, and a book of who has read what: every row carries the number of its reading."""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pyarrow as pa

from lakewriter.run.shared_jobs import SMALL_BYTES
from lakewriter.spec.specification import TableSpec
from tests.simulation.simulated import Here
from tests.support.local_tasks import SETTINGS, Context

SCHEMA: Final = pa.schema([("id", pa.int64()), ("nonce", pa.int64()), ("name", pa.string())])
_BEYOND: Final = re.compile(r"`id` > (-?\d+)L")


@dataclass(frozen=True)
class Reading:
    """One look of an attempt at a table's source; ``ids`` are the rows it was given, ``lines`` those it could not
    read."""

    nonce: int
    pipeline: str
    table: str
    job: str
    process: str
    ids: tuple[int, ...]
    lines: tuple[int, ...] = ()


@dataclass
class Sources:
    """All tables' sources: row n is there when ``rows[table] > n``. Those of tables with a quarantine are
    opened by their ``marks``."""

    rng: random.Random
    marks: Any = None
    rows: dict[str, int] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)
    readings: dict[int, Reading] = field(default_factory=dict)

    def grow(self, table: str, most: int = 2) -> int:
        """Perhaps some more rows; how many there are."""
        self.rows[table] = self.rows.get(table, 2) + self.rng.randint(0, most)
        return self.rows[table]

    def widen(self, table: str) -> int:
        """Now and then a column more; how many there are beyond the usual ones."""
        self.columns[table] = self.columns.get(table, 0) + (self.rng.random() < 0.15)
        return self.columns[table]

    def read(
        self, pipeline: str, table: str, job: str, process: str, ids: tuple[int, ...], lines: tuple[int, ...] = ()
    ) -> Reading:
        """A new entry in the book."""
        reading = Reading(len(self.readings) + 1, pipeline, table, job, process, ids, lines)
        self.readings[reading.nonce] = reading
        return reading


@dataclass(frozen=True)
class Session:
    """What stands in for Spark's session; it knows for whom it reads."""

    sources: Sources
    pipeline: str
    job: str
    process: str

    def __call__(self) -> "Session":
        """The factory and the session are one."""
        return self

    @property
    def conf(self) -> "Session":
        """Settings, of which there are none."""
        return self

    def get(self, name: str, default: str | None = None) -> str | None:
        """Spark's own defaults, but for tasks of which a copy may run at once."""
        if name == "spark.speculation":
            simulation = Here.mine()
            return str(simulation is not None and simulation.is_speculative).lower()
        return SETTINGS.get(name, default)

    @property
    def sparkContext(self) -> Context:  # noqa: N802
        """What distributes the pieces of messages."""
        return Context()


class Feed:
    """A table's rows in partitions; see the product's own ``Feed``."""

    kind = "rows"
    notes: tuple[str, ...] = ()
    reason = "simulated"

    def __init__(self, reading: Reading, partitions: int, session: Session, columns: int = 0) -> None:
        self.reading, self.partitions, self.session = reading, partitions, session
        more = [(f"more_{number}", pa.int64()) for number in range(columns)]
        self.schema = pa.schema([*SCHEMA, *map(pa.field, *zip(*more, strict=True))] if more else SCHEMA)
        self.counts: tuple[int, ...] | None = tuple(len(self._ids(number)) for number in range(partitions))

    def _ids(self, partition: int) -> tuple[int, ...]:
        return self.reading.ids[partition :: self.partitions]

    def batches(self, partition: int) -> Iterator[pa.RecordBatch]:
        """The same each time they are asked for."""
        ids = list(self._ids(partition))
        if ids:
            columns = [ids, [self.reading.nonce] * len(ids), [f"row {number}" for number in ids]]
            columns += [ids] * (len(self.schema) - len(columns))
            arrays = [pa.array(column, own.type) for column, own in zip(columns, self.schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    @property
    def input_bytes(self) -> int:
        """Few, or so many that the table needs a job of its own."""
        return SMALL_BYTES + (1 if self.reading.nonce % 4 == 0 else -1)

    def list_readers(self) -> list[Callable[[], Iterator[pa.RecordBatch]]]:
        """What reads each partition."""
        return [partial(self.batches, number) for number in range(self.partitions)]

    def run(self, body: Callable[[int, Iterator[pa.RecordBatch]], Iterator[str]]) -> list[str]:
        """For what the product asks of the rows before it stages them."""
        return [text for number in range(self.partitions) for text in body(number, self.batches(number))]

    def close(self) -> None:
        """Nothing is held."""


def open_feed(
    spark: Callable[[], Session],
    table: TableSpec,
    *,
    deleted_column: str,
    condition: str | None = None,
    twice: bool = False,
    single: bool = False,
    **_: Any,
) -> Feed:
    """Stands in for the product's: all rows that are there now, beyond the cursor where there is one."""
    session, first = spark(), 0
    if condition is not None:
        found = _BEYOND.fullmatch(condition)
        if found is None:
            raise AssertionError(f"the simulation cannot read {condition!r}")
        first = int(found[1]) + 1
    place = f"{session.pipeline}/{table.id}"
    count = session.sources.grow(place)
    if table.quarantine is not None:
        marked: Feed = session.sources.marks.open(session, table, first, count, single=single)
        return marked
    ids = tuple(range(first, count))
    reading = session.sources.read(session.pipeline, table.id, session.job, session.process, ids)
    columns = session.sources.widen(place) if table.collection is None else 0
    return Feed(reading, 1 if single else session.sources.rng.choice([1, 1, 2]), session, columns)
