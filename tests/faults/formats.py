"""Pipelines in every format, whose every row is known and whose loads need no Spark, with their audits."""

import sys
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from pyspark.sql import SparkSession

from lakewriter.aws import Clients
from lakewriter.commit.control import Control
from lakewriter.operate.verification import verify
from tests.faults.books import SCHEMA, SHOTS, Books, Found, Pace
from tests.faults.process import Process
from tests.faults.without_spark import ForkedProcess
from tests.iceberg.commits import strays
from tests.iceberg.tables import IcebergLake
from tests.load.lakes import BUCKET, Lake
from tests.load.syncs import SyncLake, catalog, read, stream
from tests.support.narrow import need

FORMATS: dict[str, dict[str, Any]] = {
    "CSV": {"format_type": "CSV", "flattening": "Root level flattening"},
    "JSONL": {"format_type": "JSONL", "flattening": "Root level flattening"},
    "Avro": {"format_type": "Avro", "compression_codec": {"codec": "Deflate", "compression_level": 6}},
    "Parquet": {"format_type": "Parquet", "compression_codec": "ZSTD"},
}
USERS, ITEMS = "users", "items"
STEP = 5
"""Rows by which the source grows."""
CONNECTOR = """
import json, pathlib, sys
given = json.loads(pathlib.Path(sys.argv[sys.argv.index("--state") + 1]).read_text()) if "--state" in sys.argv else []
first = next((each["stream"]["stream_state"]["cursor"] for each in given), 0)
total = int(pathlib.Path("total").read_text())
def say(kind, **content):
    print(json.dumps({"type": kind, kind.lower(): content}))
for name, start in (("users", first), ("items", 0)):
    own = {"name": name, "namespace": "public"}
    for number in range(start, total):
        say("RECORD", stream=name, namespace="public", data={"user_id": number}, emitted_at=0)
    say("STATE", type="STREAM", stream={"stream_descriptor": own, "stream_state": {"cursor": total}})
    say("TRACE", type="STREAM_STATUS", emitted_at=1, stream_status={"stream_descriptor": own, "status": "COMPLETE"})
"""


class Streams:
    """A connector's streams in one of Airbyte's formats: ``users`` is appended from its state, ``items`` refreshed."""

    pace = Pace(74, 30, 2.0)

    def __init__(self, lake: SyncLake, form: str) -> None:
        self.lake, self._total = lake, 0
        (lake.folder / "source.py").write_text(CONNECTOR, "utf-8")
        refreshed = stream(ITEMS, sync_mode="full_refresh", destination_sync_mode="overwrite")
        source = {"command": [sys.executable, "source.py"], "catalog": catalog(stream(USERS), refreshed)}
        lake.write({"format": FORMATS[form]}, source=source | {"statuses": "reported"})
        self.grow()

    @cached_property
    def controls(self) -> dict[str, Control]:
        """The control objects of each stream, by its name."""
        return {name: self.lake.control(f"public.{name}") for name in (USERS, ITEMS)}

    @cached_property
    def _clients(self) -> Clients:
        return Clients(self.lake.spec.access)

    def process(self, job: str) -> Process:
        """A load in a process of its own."""
        return ForkedProcess(self.lake.file, job, self.lake.aws.url)

    def grow(self) -> None:
        """More rows beyond the state of ``users``, and in all of ``items``."""
        self._total += STEP
        (self.lake.folder / "total").write_text(str(self._total), "utf-8")

    def glance(self) -> None:
        """What holds at any instant: no row of a stream or a generation is there twice; one of a refresh is whole."""
        assert _repeated(self._ids(USERS)) == []
        generations = self._generations()
        assert [_repeated(ids) for ids in generations.values() if _repeated(ids)] == []
        if self.controls[ITEMS].state.read().committed:
            whole = [set(range(total)) for total in range(STEP, self._total + 1, STEP)]
            assert [ids for ids in generations.values() if set(ids) in whole], generations

    def audit(self, *, again: Iterable[str] = (), left: Iterable[str] = ()) -> Found:
        """See ``Books.audit``; the last job of all was done in full."""
        jobs, waiting = [*again, *left], set(left)
        committed = {name: [job for job in jobs if control.read_report(job)] for name, control in self.controls.items()}
        for name, control in self.controls.items():
            state = control.state.read()
            assert set(again) <= set(committed[name]), name
            assert (state.pending, state.committed) == (None, len(committed[name])), name
            assert set(state.running) <= waiting - set(committed[name]), name
        everything = list(range(self._total))
        assert sorted(self._ids(USERS)) == everything
        assert [sorted(ids) for ids in self._generations().values()] == [everything]
        rows = self.lake.rows()
        assert len({row["_airbyte_raw_id"] for row in rows}) == len(rows)
        reported = {name: self._keys(name, committed[name]) for name in self.controls}
        assert {key for key in self.lake.data() if f"/{USERS}/" in key} == reported[USERS]
        assert {key for key in self.lake.data() if f"/{ITEMS}/" in key} <= reported[ITEMS]
        for job in committed[USERS]:
            assert verify({USERS: self.controls[USERS]}, job, self._clients).differences == (), job
        uploads = Counter({"left": len(self.lake.aws.uploads(BUCKET))})
        assert waiting or not uploads.total()
        return Found(committed, uploads)

    def _keys(self, name: str, jobs: list[str]) -> set[str]:
        return {key for job in jobs for key in need(self.controls[name].read_report(job)).keys}

    def _ids(self, name: str) -> list[int]:
        return [int(row["user_id"]) for row in self.lake.rows(f"data/public/{name}/")]

    def _generations(self) -> dict[str, list[int]]:
        """The ids of ``items`` by generation."""
        found: dict[str, list[int]] = {}
        numbers = self.lake.generations()
        for key, body in self.lake.data().items():
            if f"/{ITEMS}/" in key:
                found.setdefault(numbers[key], []).extend(int(row["user_id"]) for row in read(key, body))
        return found


def _repeated(ids: list[int]) -> list[int]:
    return [number for number, times in Counter(ids).items() if times > 1]


class Shots(Books):
    """The table that is read by splits, alone."""

    pace = Pace(40, 12, 2.0)

    def __init__(self, lake: Lake) -> None:
        super().__init__(lake, SHOTS)

    def process(self, job: str) -> Process:
        """See ``Books``."""
        return ForkedProcess(self.lake.file, job, self.lake.aws.url)


class IcebergShots(Shots):
    """The same as an Iceberg table in Glue."""

    lake: IcebergLake
    pace = Pace(55, 12, 2.0)

    def glance(self) -> None:
        """No snapshot has a row of a load twice, or a part of one."""
        loads = self._loads()
        assert all(ids == list(range(20)) for ids in loads.values()), loads

    def audit(self, *, again: Iterable[str] = (), left: Iterable[str] = (), fenced: Iterable[str] = ()) -> Found:
        """See ``Books.audit``."""
        found, waiting = Found(), {*left, *fenced}
        committed = found.committed[SHOTS] = self._committed(SHOTS, [*again, *left])
        assert set(again) <= set(committed)
        self._check_state(SHOTS, committed, set(left))
        self.glance()
        assert sorted(self._loads()) == sorted(committed)
        assert waiting or strays(self.lake.aws, self.lake.table(SHOTS)) == set()
        self._check_verified(set(committed))
        found.left_uploads = Counter({"left": len(self.lake.aws.uploads(BUCKET))})
        assert waiting or not found.left_uploads.total()
        return found

    def _loads(self) -> dict[str, list[int]]:
        """The ids that each load has added."""
        if not self.lake.catalog().table_exists((SCHEMA, SHOTS)):
            return {}
        found: dict[str, list[int]] = {}
        for row in self.lake.scan(SHOTS).select(["_supa_job_id", "id"]).to_pylist():
            found.setdefault(row["_supa_job_id"], []).append(row["id"])
        return {job: sorted(ids) for job, ids in found.items()}


def pipeline(folder: Any, aws: Any, session: SparkSession, form: str) -> Streams | Shots:
    """The pipeline of a format, by its name; ``Glue`` is Parquet with a table in Glue."""
    if form == "Glue":
        return Shots(Lake(folder, aws, session))
    if form == "Iceberg":
        return IcebergShots(IcebergLake(folder, aws, session))
    return Streams(SyncLake(folder, aws, session), form)
