"""ORC's timestamps with a time zone, which Spark's own reader cannot read: the same instants in every command.

The files are Arrow's, whose footers say `timestamp with local time zone`, as those of Hive, Trino and Flink do.
"""

import datetime as dt
import json
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pytest

from lakewriter.aws import Clients
from lakewriter.commit.pipeline import Pipeline
from lakewriter.doctor.probe import run_probes
from lakewriter.doctor.source_access import SourceProbes
from lakewriter.init.file_tables import find_tables
from lakewriter.init.samples import read_sample
from lakewriter.operate.planning import plan
from tests.load.lakes import Lake
from tests.load.test_replay import replay

pytestmark = pytest.mark.spark

NOON, LATE = dt.datetime(2024, 7, 1, 12, 0, 0, 123456, dt.UTC), dt.datetime(9999, 12, 31, 23, 59, 59, 999999, dt.UTC)
EARLY, BEFORE = dt.datetime(1500, 2, 28, tzinfo=dt.UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 500000, dt.UTC)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
INSTANTS = [(1, NOON), (2, None), (3, LATE), (4, EARLY), (5, BEFORE)]
PLACE = "supaflow_nyc_public/moments"
READ = {"format": "orc", "path": "moments.orc"}
BY_SQL = {"sql": "SELECT * FROM v WHERE id > 0", "views": {"v": READ}}
COUNTED = 'SELECT id, epoch_us("at") FROM t ORDER BY 1'


def write(lake: Lake, at: pa.Array, read: dict[str, Any] = READ, **fields: Any) -> None:
    po.write_table(pa.table({"id": range(1, len(at) + 1), "at": at}), lake.folder / "moments.orc")
    lake.write({"table": "moments", "schema": "public", "read": read, "primary_key": ["id"]} | fields)


def count_micros(moment: dt.datetime | None) -> int | None:
    return None if moment is None else (moment - EPOCH) // dt.timedelta(microseconds=1)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
@pytest.mark.parametrize("read", [READ, BY_SQL], ids=["files", "sql"])
def test_instants_in_every_command(lake, spark, read, zone):
    write(lake, pa.array([count_micros(moment) for _, moment in INSTANTS], pa.timestamp("us", zone)), read)
    (found,) = run_probes(SourceProbes(lake.spec, None, lambda: spark).list_probes())
    assert (found.status, "at timestamp" in found.message) == ("ok", True), found
    clients = Clients(lake.spec.access)
    controls = Pipeline.open(lake.spec, clients).controls
    (planned,) = plan(lake.spec, job_id="a", clients=clients, spark=lambda: spark, controls=controls)
    assert (planned.error, [column.name for column in planned.columns][:2]) == (None, ["id", "at"])
    (result,) = lake.load("a").tables
    assert (result.code, result.rows) == (None, 5), result.message
    assert lake.rows(COUNTED, PLACE) == [(number, count_micros(moment)) for number, moment in INSTANTS]


def test_instants_that_init_looks_at(tmp_path):
    po.write_table(pa.table({"at": pa.array([NOON, None, BEFORE], pa.timestamp("us", "UTC"))}), tmp_path / "a.orc")
    (table,) = find_tables(str(tmp_path))
    assert table.head.format == "orc"
    assert read_sample(table.paths, table.head).rows["at"].to_pylist() == [NOON, None, BEFORE]


def test_instants_that_are_replayed(lake):
    """One that is finer than a microsecond is set aside, and loaded once the table cuts it."""
    nanos = pa.array([1_719_835_200_123_456_789, 1_719_835_200_000_000_000], pa.timestamp("ns", "UTC"))
    write(lake, nanos, on_bad_row={"action": "quarantine", "at_most": 0.9})
    (result,) = lake.load("a").tables
    assert (result.rows, result.set_aside.rows) == (1, 1), result.message
    write(lake, nanos, on_bad_row={"action": "quarantine", "at_most": 0.9}, nanoseconds="truncate")
    result = replay(lake)
    assert (result.status, result.rows) == ("done", 1), result.message
    assert lake.rows(COUNTED, PLACE) == [(1, count_micros(NOON)), (2, count_micros(NOON.replace(microsecond=0)))]


def test_engine_spark_says_who_reads_them(lake):
    write(lake, pa.array([NOON], pa.timestamp("us", "UTC")), READ | {"engine": "spark"})
    (result,) = lake.load("a").tables
    assert (result.code, result.status) == ("SOURCE_FAILED", "failed")
    assert "leave out engine: spark" in json.dumps(result.model_dump(mode="json"))
