"""Two pipelines that write into one directory: neither deletes what is the other's, a refresh shares with nobody."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.aws import Clients
from lakewriter.operate.planning import plan
from tests.load.syncs import BUCKET, SyncLake
from tests.support.local_tasks import local_session

FORM = {
    "format": {"format_type": "Parquet"},
    "s3_path_format": "${NAMESPACE}/",
    "file_name_pattern": "{timestamp}-{part_number}{format_extension}",
}


@pytest.fixture
def lake_in(tmp_path, aws, bucket):
    """A pipeline in a folder of its own, which needs no Spark."""

    def made(name: str) -> SyncLake:
        (tmp_path / name).mkdir(exist_ok=True)
        return SyncLake(tmp_path / name, aws, local_session())

    return made


@pytest.fixture
def pipelines(lake_in):
    """A pipeline by its name, with one table of user ids."""

    def made(name: str, table: str, mode: str, first: int) -> SyncLake:
        lake: SyncLake = lake_in(name)
        pq.write_table(pa.table({"user_id": [first, first + 1]}), lake.folder / "users.parquet")
        read = {"format": "parquet", "path": "users.parquet"}
        lake.write(
            FORM,
            pipeline=name,
            shares_tables=True,
            tables=[{"table": table, "schema": "public", "read": read, "mode": mode}],
        )
        return lake

    return made


def outcomes(*lakes: SyncLake) -> list[str | None]:
    """``done``, or the code of what went wrong, of one load of each."""
    tables = [lake.load(f"job{number}").tables[0] for number, lake in enumerate(lakes)]
    return [table.code or table.status for table in tables]


def ids(lake: SyncLake) -> list[int]:
    return sorted(row["user_id"] for row in lake.rows())


CASES = [
    # the pipelines a and b: the mode of each; what becomes of a, b and a again; which ids are there
    ("append", "append", ["done", "done", "done"], [1, 1, 2, 2, 11, 12]),
    ("append", "overwrite", ["done", "NAME_COLLISION", "done"], [1, 1, 2, 2]),
    ("overwrite", "append", ["done", "NAME_COLLISION", "done"], [1, 2]),
    ("overwrite", "overwrite", ["done", "NAME_COLLISION", "done"], [1, 2]),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("first", "second", "expected", "there"), CASES)
@pytest.mark.parametrize("table", ["users", "orders"])
def test_two_pipelines(pipelines, first, second, expected, there, table):
    a, b = pipelines("a", "users", first, 1), pipelines("b", table, second, 11)
    assert outcomes(a, b, a) == expected
    assert ids(a) == there


def record_keys(lake: SyncLake) -> list[str]:
    return [key for key in lake.aws.objects(BUCKET) if "/_lakewriter/owners/" in key]


def test_objects_of_another_pipeline_are_never_retired(pipelines):
    """As it is where a release that kept no record wrote before."""
    a, b = pipelines("a", "users", "append", 1), pipelines("b", "users", "overwrite", 11)
    outcomes(a)
    (key,) = record_keys(a)
    a.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    assert outcomes(b, b) == ["done", "done"]
    assert ids(a) == [1, 2, 11, 12]


def test_directory_is_handed_over(pipelines):
    a, b = pipelines("a", "users", "overwrite", 1), pipelines("b", "users", "overwrite", 11)
    outcomes(a)
    message = b.load("first").tables[0].message
    (key,) = record_keys(a)
    assert message == (
        "table public.users: pipeline 'a' writes into 'data/public' too, and a full refresh replaces the whole table. "
        f"Give this pipeline a path of its own. To hand the directory over, stop that pipeline, delete {key}, and set "
        "shares_tables: true in this one's file for its first load."
    )
    a.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    assert outcomes(b, a) == ["done", "NAME_COLLISION"]


def test_plan_tells_of_it_and_writes_nothing(pipelines):
    a, b = pipelines("a", "users", "append", 1), pipelines("b", "users", "overwrite", 11)
    outcomes(a)
    before = a.aws.objects(BUCKET)
    spec = b.spec
    controls = {"public.users": b.control("public.users")}
    (planned,) = plan(spec, job_id="x", clients=Clients(spec.access), spark=local_session, controls=controls)
    assert str(planned.error).startswith(
        "NAME_COLLISION: table public.users: pipeline 'a' writes into 'data/public' too"
    )
    assert a.aws.objects(BUCKET) == before
