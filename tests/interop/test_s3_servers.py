"""The whole protocol on S3 servers that are not Amazon's: staged uploads, conditional completion, conditional state."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lakewriter.aws import Clients
from lakewriter.doctor import run_checks
from lakewriter.errors import SpecInvalidError
from tests.faults.process import KILLED
from tests.interop.conftest import RealLake
from tests.interop.servers import BUCKET
from tests.load.lakes import completes, table, uploads_part

pytestmark = pytest.mark.spark

WITH_CONDITIONS = ["seaweedfs", "versitygw"]
SCHEMA = "nyc_public"
EVENTS = "id,at\n" + "".join(f"{number},{number}\n" for number in range(10))

conditional = pytest.mark.parametrize("server", WITH_CONDITIONS, indirect=True)
unconditional = pytest.mark.parametrize("server", ["rclone"], indirect=True)


def by_job(lake: RealLake) -> list[tuple[Any, ...]]:
    query = "SELECT _supa_job_id, count(*), count(DISTINCT id) FROM t GROUP BY ALL ORDER BY ALL"
    return lake.rows(query, f"{SCHEMA}/events")


def events(lake: RealLake, **destination: object) -> RealLake:
    read = {"sql": "SELECT /*+ REPARTITION(2) */ * FROM e", "views": {"e": table("e", "events.csv")["read"]}}
    lake.csv("events.csv", EVENTS)
    lake.write({"table": "events", "schema": "public", "read": read, "cursor": "at"}, **destination)
    return lake


@conditional
def test_check_finds_nothing_missing(lake: RealLake) -> None:
    spec = events(lake).spec
    found = {finding.probe: finding for finding in run_checks(spec, Clients(spec.access))}
    assert [probe for probe, finding in found.items() if finding.status == "failed"] == []
    wanted = ["conditional write", "conditional completion", "multipart upload", "abort upload", "delete"]
    assert {probe: found[probe].status for probe in wanted} == dict.fromkeys(wanted, "ok")


@conditional
def test_a_load_and_the_same_again(lake: RealLake) -> None:
    events(lake)
    assert [lake.load(job).tables[0].status for job in ("a", "a")] == ["done", "already_done"]
    assert by_job(lake) == [("a", 10, 10)]
    assert lake.aws.uploads(BUCKET) == []


POINTS = [
    # where a load of two files is killed: the matching call, how many of them pass before; how many uploads lie there
    pytest.param(uploads_part, 1, {1, 2}, id="before the second part"),
    pytest.param(completes, 0, {2}, id="before a completion"),
]


@conditional
@pytest.mark.exhaustive
@pytest.mark.parametrize(("match", "after", "staged"), POINTS)
def test_killed_while_it_uploads_then_the_same_job_again(
    lake: RealLake, match: Any, after: int, staged: set[int]
) -> None:
    events(lake)
    assert lake.killed("a", match, after=after) == KILLED
    assert len(lake.aws.uploads(BUCKET)) in staged
    assert lake.data() == {}
    assert lake.load("a").status == "done"
    assert by_job(lake) == [("a", 10, 10)]
    assert lake.aws.uploads(BUCKET) == []


@conditional
def test_two_incremental_loads_at_once(lake: RealLake) -> None:
    events(lake)
    with ThreadPoolExecutor(2) as pool:
        codes = [report.tables[0].code for report in pool.map(lake.load, ("a", "b"))]
    assert sorted(codes, key=str) in (["CONCURRENT_LOAD", None], [None, None])
    assert sum(rows for _, rows, _ in by_job(lake)) == 10
    assert lake.aws.uploads(BUCKET) == []


@conditional
def test_a_key_that_is_taken(lake: RealLake) -> None:
    key = f"data/production/{SCHEMA}/events/a/part-a-00000.gzip.parquet"
    lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"a stranger's")
    assert events(lake).load("a").tables[0].code == "KEY_EXISTS"
    assert (lake.aws.objects(BUCKET)[key], len(lake.data())) == (b"a stranger's", 1)
    assert lake.aws.uploads(BUCKET) == []


@unconditional
def test_a_store_without_conditions_is_found_out(lake: RealLake) -> None:
    spec = events(lake).spec
    found = {finding.probe: finding for finding in run_checks(spec, Clients(spec.access))}
    assert (found["conditional write"].status, found["conditional write"].code) == ("failed", "SPEC_INVALID")
    assert "single_writer: true" in found["conditional write"].remedy
    with pytest.raises(SpecInvalidError, match="single_writer: true"):
        lake.load("a")
    assert lake.data() == {}


@unconditional
def test_a_store_without_conditions_on_a_promise(lake: RealLake) -> None:
    events(lake, single_writer=True)
    assert [lake.load(job).tables[0].status for job in ("a", "a")] == ["done", "already_done"]
    assert by_job(lake) == [("a", 10, 10)]
