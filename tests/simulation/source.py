"""What tables are read from, and a book of who has read what: every row carries the number of its reading."""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa

from lakewriter.run.shared_jobs import SMALL_BYTES
from lakewriter.source.request import Feed as AnyFeed
from lakewriter.source.request import RowsRequest
from lakewriter.spec.table_spec import Mode
from tests.simulation.folders import Folder
from tests.simulation.simulated import Here
from tests.support.local_tasks import SETTINGS, Context

SCHEMA: Final = pa.schema([("id", pa.int64()), ("nonce", pa.int64()), ("name", pa.string())])
MARK: Final = " of row "
"""In the text of a row, between the name of its column and its number."""
HOSTILE: Final = (
    *("Name", "NAME", "na me", "na-me", "na_me", "name_1", "Name_1", "e", "\u00e9", "E", "a.b", "a_b", "A b", "a  b"),
    *("1st", "_1st", "a\tb", "..", ".", "/", "_", "__", "\ufb01", "fi", "\u0131", "i", "\u017f", "s"),
)
"""Names of columns, many of which are one when they are made fit for a catalog."""
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
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Generation:
    """What a sync is asked for: the ``number`` of its generation, None where it has none, and the ``lowest`` one that
    stays. A sync without a number and with a lowest generation replaces what there is."""

    number: int | None
    lowest: int


@dataclass
class Sources:
    """All tables' sources: row n is there when ``rows[table] > n``. Those of tables with a quarantine are
    opened by their ``marks``, those of merged tables by their ``events``."""

    rng: random.Random
    marks: Any = None
    events: Any = None
    seed: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    columns: dict[str, list[str]] = field(default_factory=dict)
    names: random.Random | None = None
    readings: dict[int, Reading] = field(default_factory=dict)
    generations: dict[tuple[str, str, str], Generation] = field(default_factory=dict)
    """By pipeline, table and job, of streams that are merged."""
    epochs: dict[int, int] = field(default_factory=dict)
    """By the number of a reading of change events."""
    folders: dict[str, Folder] = field(default_factory=dict)
    is_calm: bool = False

    def find_folder(self, pipeline: str, table: str) -> Folder:
        """The folder that a table reads new files of."""
        name = f"{pipeline}/{table}"
        return self.folders.setdefault(name, Folder(random.Random(f"folder of {name} {self.seed}")))

    def grow(self, table: str, most: int = 2, least: int = 0) -> int:
        """Perhaps some more rows; how many there are."""
        self.rows[table] = self.rows.get(table, 2) + self.rng.randint(least, most)
        return self.rows[table]

    def widen(self, table: str) -> tuple[str, ...]:
        """Now and then a column more; those that there are beyond the usual ones, in any order."""
        columns = self.columns.setdefault(table, [])
        if self.rng.random() < 0.15:
            columns.append(f"more_{len(columns)}")
        if self.names is None:
            return tuple(columns)
        left = sorted(set(HOSTILE) - set(columns))
        columns += self.names.sample(left, min(len(left), self.names.choice([0, 1, 1, 3])))
        return tuple(self.names.sample(columns, len(columns)))

    def read(
        self,
        pipeline: str,
        table: str,
        job: str,
        process: str,
        ids: tuple[int, ...],
        lines: tuple[int, ...] = (),
        columns: tuple[str, ...] = (),
    ) -> Reading:
        """A new entry in the book."""
        reading = Reading(len(self.readings) + 1, pipeline, table, job, process, ids, lines, columns)
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


class Feed(AnyFeed):
    """A table's rows in partitions; see the product's own ``Feed``."""

    kind = "rows"
    reason = "simulated"
    is_in_order = True

    def __init__(self, reading: Reading, partitions: int, session: Session) -> None:
        self.reading, self.partitions, self.session = reading, partitions, session
        more = [pa.field(name, pa.int64() if name.startswith("more_") else pa.string()) for name in reading.columns]
        # A column that comes first is the first to be named.
        is_first = bool(session.sources.names) and reading.nonce % 2
        self.schema = pa.schema([*more, *SCHEMA] if is_first else [*SCHEMA, *more])
        self.counts = tuple(len(self._ids(number)) for number in range(partitions))

    def _ids(self, partition: int) -> tuple[int, ...]:
        return self.reading.ids[partition :: self.partitions]

    def batches(self, partition: int) -> Iterator[pa.RecordBatch]:
        """The same each time they are asked for."""
        ids = list(self._ids(partition))
        if ids:
            values: dict[str, list[Any]] = {"id": ids, "nonce": [self.reading.nonce] * len(ids)}
            for own in self.schema:
                values.setdefault(own.name, ids if own.type == pa.int64() else [f"{own.name}{MARK}{n}" for n in ids])
            arrays = [pa.array(values[own.name], own.type) for own in self.schema]
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


def open_feed(request: RowsRequest) -> Feed:
    """Stands in for the product's: all rows that are there now, beyond the cursor where there is one."""
    session: Any = request.spark()
    table, condition, single, first = request.table, request.condition, request.single, 0
    if condition is not None:
        found = _BEYOND.fullmatch(condition)
        if found is None:
            raise AssertionError(f"the simulation cannot read {condition!r}")
        first = int(found[1]) + 1
    place = f"{session.pipeline}/{table.history_of or table.id}"
    count = session.sources.grow(place)
    if table.quarantine is not None:
        marked: Feed = session.sources.marks.open(session, table, first, count, single=single)
        return marked
    if table.mode is Mode.MERGE:
        merged: Feed = session.sources.events.open(session, table, tuple(range(first, count)), single=single)
        return merged
    ids = tuple(range(first, count))
    if table.read.new_files:
        ids = session.sources.find_folder(session.pipeline, table.id).read(table.read)
    nonce = session.sources.read(session.pipeline, table.id, session.job, session.process, ids).nonce
    columns = session.sources.widen(place) if table.collection is None else ()
    reading = session.sources.readings[nonce] = replace(session.sources.readings[nonce], columns=columns)
    return Feed(reading, 1 if single else session.sources.rng.choice([1, 1, 2]), session)
