"""The first hour of ``examples/first_hour``, where SeaweedFS has a wheel: what it says, and what the lake has then."""

import duckdb
import pytest
from rich.console import Console

from examples.first_hour.hour import MISTAKES, begin, go_on, make_mistakes
from lakewriter.aws import Clients
from lakewriter.errors import SpecInvalidError
from lakewriter.local_server.server import LocalServer, find_program

pytestmark = pytest.mark.spark

BUCKET = "change-me"


@pytest.fixture
def session(tmp_path):
    try:
        find_program()
    except SpecInvalidError as error:
        pytest.skip(str(error))
    try:
        yield begin(tmp_path / "hour", Console(quiet=True))
    finally:
        LocalServer(tmp_path / "hour" / ".lakewriter").stop()


def read_lake(session, query):
    """The rows that DuckDB finds in the files of the lake, which are copied beside it."""
    running = LocalServer.beside(session.folder / "lake.yaml").start()
    s3 = Clients(running.make_access(BUCKET)).s3
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="lake/"):
        for entry in page["Contents"]:
            if "/_lakewriter/" not in entry["Key"]:
                file = session.folder / entry["Key"]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(s3.get_object(Bucket=BUCKET, Key=entry["Key"])["Body"].read())
    return duckdb.sql(query.format(lake=session.folder / "lake")).fetchall()


def test_from_files_to_a_lake(session):
    session.run("queries", "lake.yaml", "--local", says="read_parquet")
    # Each is a process of its own, and the last two open a Spark session.
    make_mistakes(session, MISTAKES[:2])
    assert session.failures == []
    counts = "SELECT (SELECT count(*) FROM '{lake}/%s/**/*.parquet')"
    names = ("orders", "customers", "events")
    assert [read_lake(session, counts % name)[0][0] for name in names] == [400, 40, 300]
    rows = "SELECT order_id, zip, amount, updated_at::VARCHAR FROM '{lake}/orders/**/*.parquet' WHERE order_id = 2"
    assert read_lake(session, rows) == [(2, "00074", 2.02, "2026-01-05 00:14:00+00")]


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_the_whole_hour(session):
    go_on(session)
    make_mistakes(session)
    assert session.failures == []
    query = "SELECT count(*), count(vip), count(DISTINCT _load_id) FROM read_parquet('{lake}/orders/**/*.parquet', "
    assert read_lake(session, f"{query}union_by_name = true)") == [(520, 20, 3)]
