"""Several small tables of bare Parquet files, which share Spark's jobs: each begins, fails and commits by itself."""

from collections.abc import Iterator
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from lakewriter.aws import Clients
from lakewriter.run.load import run
from lakewriter.run.shared_jobs import SharedJobs
from lakewriter.run.stop import Stop
from lakewriter.staging import shared_job
from tests.load.lakes import Lake, uploads_part
from tests.support.call import Call

pytestmark = pytest.mark.spark

NAMES = ("a", "b", "c", "d")


def write_tables(lake: Lake, **keys: Any) -> None:
    """Four tables of one file each, three rows in each file."""
    for name in NAMES:
        pq.write_table(
            pa.table({"id": [1, 2, 3], "text": [f"{name}{number}" for number in range(3)]}), lake.folder / name
        )
    lake.write(
        *({"table": name, "schema": "public", "read": {"format": "parquet", "path": name}} | keys for name in NAMES)
    )


def list_rows(lake: Lake, name: str) -> list[tuple[Any, ...]]:
    return lake.rows("SELECT id, text FROM t ORDER BY id", f"supaflow_nyc_public/{name}")


def expect_rows(name: str) -> list[tuple[Any, ...]]:
    return [(1, f"{name}0"), (2, f"{name}1"), (3, f"{name}2")]


@pytest.fixture
def tables(lake: Lake) -> Lake:
    write_tables(lake)
    return lake


class Refusals:
    """Refuses the parts of one table, so many times."""

    def __init__(self, table: str, times: int) -> None:
        self.path, self.left = f"/{table}/", times

    def __call__(self, call: Call, proceed: Any) -> Any:
        if self.left and uploads_part(call) and self.path in call.key:
            self.left -= 1
            return call.error(400, "EntityTooSmall", "A part is refused.")
        return proceed(call)


def count_members(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which each shared job adds how many tables it has."""
    shared: list[int] = []
    real = shared_job.stage_together

    def count(spark: Any, members: Any) -> Any:
        shared.append(len(members))
        return real(spark, members)

    monkeypatch.setattr("lakewriter.run.shared_jobs.stage_together", count)
    return shared


def test_small_tables_share_jobs(tables, monkeypatch):
    """The file asks for nothing: the four go beside one another, and no Spark job is theirs alone."""
    shared = count_members(monkeypatch)
    posted: list[Call] = []

    def watch(call: Call, proceed: Any) -> Any:
        if call.method == "POST":
            posted.append(call)
        return proceed(call)

    tables.aws.interceptors.append(watch)
    report = tables.load("j")
    assert [(result.table, result.status, result.rows) for result in report.tables] == [
        (name, "done", 3) for name in NAMES
    ]
    assert sum(shared) == 4
    assert {name: list_rows(tables, name) for name in NAMES} == {name: expect_rows(name) for name in NAMES}
    # What the tasks ask for is counted with what the driver does: each creates an upload, and each is completed.
    assert report.requests["POST"] == len(posted) >= 8
    assert tables.aws.uploads("acme-lake") == []


def test_tables_of_every_format_share_jobs(lake, monkeypatch):
    """By patterns and of folders ``key=value`` too: they are small by the listing that they are read by."""
    shared = count_members(monkeypatch)
    rows = pa.table({"id": [1, 2, 3], "text": ["x", "y", "z"]})
    folder = lake.folder / "parts" / "day=1"
    folder.mkdir(parents=True)
    pq.write_table(rows, folder / "a.parquet")
    orc.write_table(rows, lake.folder / "a.orc")
    (lake.folder / "a.csv").write_text("id,text\n1,x\n2,y\n3,z\n")
    (lake.folder / "a.json").write_text('{"id": 1}\n{"id": 2}\n{"id": 3}\n')
    (lake.folder / "a.txt").write_text("x\ny\nz\n")
    with (lake.folder / "a.avro").open("wb") as out:
        schema = {"type": "record", "name": "r", "fields": [{"name": "id", "type": "long"}]}
        fastavro.writer(out, schema, [{"id": number} for number in range(3)])
    reads = {
        "csv": "a.c*", "json": "a.json", "text": "a.txt", "orc": "a.{orc,none}", "avro": "a.avro", "parquet": "parts",
    }  # fmt: skip
    lake.write(
        *({"table": form, "schema": "public", "read": {"format": form, "path": path}} for form, path in reads.items())
    )
    report = lake.load("j")
    # The header of a CSV file is a row without the option.
    assert {result.table: result.rows for result in report.tables} == dict.fromkeys(reads, 3) | {"csv": 4}
    assert sum(shared) == len(reads)


@pytest.mark.parametrize(("times", "status"), [(1, "done"), (1000, "failed")], ids=["once", "always"])
def test_table_that_fails_in_a_shared_job(tables, times, status):
    """It is staged again in a job of its own, where nothing keeps it from that; the others know nothing of it."""
    tables.aws.interceptors.append(Refusals("b", times))
    report = tables.load("j")
    assert {result.table: result.status for result in report.tables} == dict.fromkeys(NAMES, "done") | {"b": status}
    assert {name: list_rows(tables, name) for name in "acd"} == {name: expect_rows(name) for name in "acd"}
    assert tables.aws.uploads("acme-lake") == []
    tables.aws.interceptors.clear()
    assert tables.load("j").status == "done"
    assert list_rows(tables, "b") == expect_rows("b")
    assert tables.aws.uploads("acme-lake") == []


def test_expectation_of_one_table(lake):
    """What a shared job has staged is judged for each table alone."""
    write_tables(lake)
    entries = [
        {"table": name, "schema": "public", "read": {"format": "parquet", "path": name}}
        | ({"expect": [{"rows": {"at_least": 4}}]} if name == "c" else {})
        for name in NAMES
    ]
    lake.write(*entries)
    report = lake.load("j")
    assert {result.table: result.code for result in report.tables} == dict.fromkeys(NAMES) | {"c": "EXPECTATION_FAILED"}
    assert {key.split("/")[1] for key in lake.data()} == set("abd")
    assert lake.aws.uploads("acme-lake") == []


def test_job_that_spark_gives_up(tables, monkeypatch):
    """Every table of it is staged in a job of its own, and what the given-up one has left is gone."""
    real = SharedJobs.stage

    def stage_and_lose(self: Any, spark: Any, feed: Any, plan: Any) -> Iterator[Any]:
        real(self, spark, feed, plan)
        return shared_job.Attempted()  # type: ignore[return-value]

    monkeypatch.setattr(SharedJobs, "stage", stage_and_lose)
    assert tables.load("j").status == "done"
    assert {name: list_rows(tables, name) for name in NAMES} == {name: expect_rows(name) for name in NAMES}
    assert tables.aws.uploads("acme-lake") == []


def test_stop_while_a_shared_job_runs(tables):
    """Nothing of the tables in it is published, nothing of them is left, and those to come do not begin."""
    stop = Stop()

    def ask(call: Call, proceed: Any) -> Any:
        if uploads_part(call):
            stop.ask("SIGTERM")
        return proceed(call)

    tables.aws.interceptors.append(ask)
    report = tables.load("j", stop=stop)
    assert (report.status, report.stopped) == ("failed", "SIGTERM")
    assert {result.status for result in report.tables} == {"not_run"}
    assert (tables.data(), tables.aws.uploads("acme-lake")) == ({}, [])
    tables.aws.interceptors.clear()
    assert tables.load("j").status == "done"
    assert {name: list_rows(tables, name) for name in NAMES} == {name: expect_rows(name) for name in NAMES}


def test_failed_table_of_a_shared_job_stops_those_to_come(lake):
    """Those in the job with it are whole, and are committed; which do not begin any more is a matter of time."""
    write_tables(lake)
    lake.file.write_text("on_failure: stop\nlimits: {parallel_tables: 2}\n" + lake.file.read_text("utf-8"), "utf-8")
    lake.aws.interceptors.append(Refusals("a", 1000))
    report = lake.load("j")
    found = {result.table: result.status for result in report.tables}
    assert (found["a"], set(found.values()) <= {"failed", "done", "not_run"}) == ("failed", True)
    written = {key.split("/")[1] for key in lake.data()}
    assert written == {name for name, status in found.items() if status == "done"}
    assert lake.aws.uploads("acme-lake") == []
    lake.aws.interceptors.clear()
    assert lake.load("j").status == "done"
    assert {name: list_rows(lake, name) for name in NAMES} == {name: expect_rows(name) for name in NAMES}


@pytest.fixture
def table(lake: Lake) -> Lake:
    """A lake of one small table."""
    pq.write_table(pa.table({"id": [1, 2, 3], "text": ["a0", "a1", "a2"]}), lake.folder / "a")
    lake.write({"table": "a", "schema": "public", "read": {"format": "parquet", "path": "a"}})
    return lake


def refuse_spark() -> Any:
    raise AssertionError("Spark is started")


@pytest.mark.staged_by("driver")
def test_only_table_that_is_small_needs_no_spark(table):
    spec = table.spec
    (result,) = run(spec, job_id="j", clients=Clients(spec.access), spark=refuse_spark).tables
    assert (result.status, result.rows) == ("done", 3)
    assert list_rows(table, "a") == expect_rows("a")


@pytest.mark.staged_by("driver")
def test_only_table_is_staged_by_spark_where_the_driver_fails(table):
    """The first try's upload is aborted; the second one's rows are there once."""
    table.aws.interceptors.append(Refusals("a", 1))
    (result,) = table.load("j").tables
    assert (result.status, result.rows) == ("done", 3)
    assert list_rows(table, "a") == expect_rows("a")
    assert not table.aws.uploads("acme-lake")


@pytest.mark.staged_by("driver")
def test_stop_while_the_driver_stages(table):
    stop = Stop()

    def ask(call: Call, proceed: Any) -> Any:
        if uploads_part(call):
            stop.ask("SIGTERM")
            return call.error(400, "EntityTooSmall", "A part is refused.")
        return proceed(call)

    table.aws.interceptors.append(ask)
    report = table.load("j", stop=stop)
    assert (report.status, report.tables[0].status) == ("failed", "not_run")
    assert not table.aws.uploads("acme-lake")
