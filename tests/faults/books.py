"""A pipeline of three tables whose every row is known, and the audit of what loads of it left behind."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakewriter.aws import Clients
from lakewriter.commit.control import Control
from lakewriter.operate.verification import verify
from tests.faults.process import Process
from tests.load.lakes import BUCKET, PREFIX, Lake, table
from tests.support.narrow import need

SCHEMA = "supaflow_nyc_public"
ORDERS, EVENTS, SHOTS = "orders", "events", "shots"
TABLES = (ORDERS, EVENTS, SHOTS)
STEP = 12
"""Rows by which the incremental table grows."""


@dataclass
class Found:
    """What an audit met that the design allows: incomplete uploads left to the lifecycle rule, by job id."""

    committed: dict[str, list[str]] = field(default_factory=dict)
    left_uploads: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Pace:
    """How a load goes by about: how many calls it makes, how many of them before it reads, and for how many seconds.

    A kill may come too late, and then the load has ended. Before a load reads, it registers, and takes what an earlier
    one left to its end.
    """

    calls: int
    early: int
    seconds: float


class Books:
    """``orders`` is appended in three partitions, ``events`` read from a cursor in two, ``shots`` by splits of two."""

    pace = Pace(65, 22, 8.0)

    def __init__(self, lake: Lake, *tables: str, **destination: Any) -> None:
        self.lake = lake
        self.tables = tables or TABLES
        self.rows: dict[str, list[tuple[int, str]]] = {
            ORDERS: [(number, f"order {number}") for number in range(30)],
            SHOTS: [(number, f"shot {number}") for number in range(20)],
            EVENTS: [],
        }
        lake.csv("orders.csv", _csv(self.rows[ORDERS]))
        (lake.folder / "shots").mkdir()
        for half in (0, 1):
            ids, texts = zip(*self.rows[SHOTS][half::2], strict=True)
            pq.write_table(pa.table({"id": ids, "text": texts}), lake.folder / "shots" / f"{half}.parquet")
        self.grow()
        lake.write(*(ENTRIES[name] for name in self.tables), **destination)

    @cached_property
    def controls(self) -> Mapping[str, Control]:
        """The control objects of each table, by its name."""
        return {name: self.lake.control(f"{SCHEMA}.{name}") for name in self.tables}

    @cached_property
    def _clients(self) -> Clients:
        return Clients(self.lake.spec.access)

    def process(self, job: str) -> Process:
        """A load in a process of its own."""
        return Process(self.lake.file, job, self.lake.aws.url)

    def grow(self) -> None:
        """More rows beyond the cursor of ``events``."""
        first = len(self.rows[EVENTS])
        self.rows[EVENTS] += [(number, f"event {number}") for number in range(first, first + STEP)]
        self.lake.csv("events.csv", _csv(self.rows[EVENTS]))

    def audit(self, *, again: Iterable[str] = (), left: Iterable[str] = (), fenced: Iterable[str] = ()) -> Found:
        """Compare rows, objects, uploads, catalog and state with one clean load of each job.

        Jobs of ``again`` are done in every table; those of ``left`` were killed and not run again, so that each of
        their tables is there whole or not at all, and their incomplete uploads wait for the lifecycle rule. So do
        those of ``fenced``, of which one attempt went on staging while another had taken over: no key tells them apart.
        """
        found = Found()
        for name in self.tables:
            found.committed[name] = self._committed(name, [*again, *left])
            assert set(again) <= set(found.committed[name]), name
            self._check_state(name, found.committed[name], set(left))
            self._check_rows(name, found.committed[name])
            self._check_glue(name, found.committed[name])
        keys = sorted(key for name in self.tables for job in found.committed[name] for key in self._keys(name, job))
        assert [f"{PREFIX}/{key}" for key in self.lake.data()] == keys
        found.left_uploads = self._check_uploads({*left, *fenced})
        self._check_verified({job for jobs in found.committed.values() for job in jobs})
        return found

    def glance(self) -> None:
        """What holds at any instant: a partition in Glue is whole, and no row of a load is there twice."""
        for name in self.tables:
            for job, location in self._partitions(name).items():
                assert {key for key in self.lake.aws.objects(BUCKET) if key.startswith(location + "/")} == set(
                    self._promised(name, job)
                ), (name, job)
            seen = Counter((row[0], row[1]) for row in self._read(name))
            assert not [row for row, times in seen.items() if times > 1], name

    def _committed(self, name: str, jobs: list[str]) -> list[str]:
        return [job for job in jobs if self.controls[name].read_report(job) is not None]

    def _keys(self, name: str, job: str) -> list[str]:
        report = self.controls[name].read_report(job)
        return [] if report is None else list(self.controls[name].list_written_keys(report))

    def _promised(self, name: str, job: str) -> list[str]:
        """The keys of a load that is done or past its point of no return."""
        pending = self.controls[name].state.read().pending
        if pending is None or pending.job_id != job:
            return self._keys(name, job)
        return list(self.controls[name].read_intent(job, pending.attempt).files.list_keys())

    def _check_state(self, name: str, committed: list[str], left: set[str]) -> None:
        state = self.controls[name].state.read()
        assert state.pending is None, name
        assert state.committed == len(committed), name
        assert set(state.running) <= left - set(committed), name

    def _expected(self, name: str, job: str) -> list[tuple[int, str]]:
        if name != EVENTS:
            return self.rows[name]
        report = need(self.controls[name].read_report(job))
        before, after = (int(cursor.text) if cursor else -1 for cursor in (report.cursor_before, report.cursor_after))
        return [row for row in self.rows[EVENTS] if before < row[0] <= after]

    def _check_rows(self, name: str, committed: list[str]) -> None:
        read = self._read(name)
        clean = Counter((job, *row, _digest(row[0])) for job in committed for row in self._expected(name, job))
        assert Counter((job, number, text, digest) for job, number, text, digest, *_ in read) == clean, name
        for job in committed:
            own = [row for row in read if row[0] == job]
            assert self._is_numbered([row[4] for row in own]), (name, job)
            assert len({row[5] for row in own}) <= 1, (name, job)
        if name == EVENTS and committed:
            loaded = int(need(self.controls[name].state.read().cursor).text) + 1
            assert sorted(row[1] for row in read) == list(range(loaded)), name

    def _is_numbered(self, indexes: list[int]) -> bool:
        return sorted(indexes) == list(range(1, len(indexes) + 1))

    def _read(self, name: str) -> list[tuple[Any, ...]]:
        if not any(key.startswith(f"{SCHEMA}/{name}/") for key in self.lake.data()):
            return []
        columns = "_supa_job_id, id, text, _supa_id, _supa_index, epoch_us(_supa_synced)"
        return self.lake.rows(f"SELECT {columns} FROM t", f"{SCHEMA}/{name}")

    def _partitions(self, name: str) -> dict[str, str]:
        glue = self.lake.aws.client("glue")
        try:
            found = glue.get_partitions(DatabaseName=SCHEMA, TableName=name)["Partitions"]
        except glue.exceptions.EntityNotFoundException:
            return {}
        bucket = f"s3://{BUCKET}/"
        return {each["Values"][0]: each["StorageDescriptor"]["Location"].removeprefix(bucket) for each in found}

    def _check_glue(self, name: str, committed: list[str]) -> None:
        full = [job for job in committed if self._keys(name, job)]
        assert self._partitions(name) == {job: f"{PREFIX}/{SCHEMA}/{name}/{job}" for job in full}, name

    def _check_uploads(self, waiting: set[str]) -> Counter[str]:
        """Each incomplete upload is one of a job that may have some, by its key."""
        owners: Counter[str] = Counter()
        for key, _ in self.lake.aws.uploads(BUCKET):
            owner = re.fullmatch(rf"{PREFIX}/{SCHEMA}/\w+/([^/]+)/part-\1-\d{{5}}\.gzip\.parquet", key)
            assert owner is not None, key
            assert owner[1] in waiting, key
            owners[owner[1]] += 1
        return owners

    def _check_verified(self, committed: set[str]) -> None:
        controls = {f"{SCHEMA}.{name}": control for name, control in self.controls.items()}
        for job in committed:
            assert verify(controls, job, self._clients).differences == (), job


def _query(name: str, partitions: int, **fields: Any) -> dict[str, Any]:
    """An entry for a CSV file, read through SQL in so many tasks."""
    view = table(name, f"{name}.csv")["read"]
    read = {"sql": f"SELECT /*+ REPARTITION({partitions}) */ * FROM source", "views": {"source": view}}
    return {"table": name, "schema": "public", "read": read, "primary_key": ["id"]} | fields


ENTRIES = {
    ORDERS: _query(ORDERS, 3),
    EVENTS: _query(EVENTS, 2, cursor="id"),
    SHOTS: {
        "table": SHOTS,
        "schema": "public",
        "read": {"format": "parquet", "path": "shots"},
        "primary_key": ["id"],
    },
}


def _csv(rows: list[tuple[int, str]]) -> str:
    return "id,text\n" + "".join(f"{number},{text}\n" for number, text in rows)


def _digest(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()
