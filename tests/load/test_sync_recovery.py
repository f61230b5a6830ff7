"""Syncs killed with SIGKILL, in each format and at each step of an overwrite; then the same load again."""

import pytest

from tests.load.lakes import completes, uploads_part
from tests.load.syncs import BUCKET, SyncLake, catalog, read, record, state, stream

pytestmark = pytest.mark.spark

KILLED = -9
NEIGHBOURS = ["data/public/users_archive/2021_01_01_1_0.parquet", "data/public/users/notes.txt"]


def writes(ending: str):
    """A PutObject of the control object with this ending."""
    return lambda call: call.method == "PUT" and call.key.endswith(ending)


def deletes(call) -> bool:
    """DeleteObject of data."""
    return call.method == "DELETE" and "uploadId" not in call.query and "/_lakewriter/" not in call.key


@pytest.fixture
def lake(tmp_path, aws, bucket, spark):
    return SyncLake(tmp_path, aws, spark)


def users(lake, numbers):
    """Messages in two files."""
    half = len(numbers) // 2
    own = [record("users", {"user_id": number}) for number in numbers]
    lake.messages(*own[:half], name="1.jsonl")
    lake.messages(*own[half:], state("users", numbers[-1]), name="2.jsonl")
    return ["1.jsonl", "2.jsonl"]


FORMATS = [
    # the format, where the load is killed, how many calls of that kind pass before
    pytest.param("CSV", uploads_part, 0, id="CSV"),
    pytest.param("JSONL", writes("/state.json"), 1, id="JSONL"),
    pytest.param("Avro", completes, 0, id="Avro"),
    pytest.param("Parquet", writes(".report.json"), 0, id="Parquet"),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("form", "match", "after"), FORMATS)
def test_killed_then_the_same_load(lake, form, match, after):
    own = {"format_type": form} | ({"flattening": "Root level flattening"} if form in ("CSV", "JSONL") else {})
    source = {"messages": users(lake, list(range(10))), "catalog": catalog(stream("users"))}
    lake.write({"format": own}, source=source)
    assert lake.killed("a", match, after=after) == KILLED
    assert lake.load("a").status == "done"
    assert sorted(int(row["user_id"]) for row in lake.rows()) == list(range(10))
    assert len({row["_airbyte_raw_id"] for row in lake.rows()}) == 10
    assert not lake.aws.uploads(BUCKET)
    kept = lake.control("public.users").state.read()
    assert (kept.pending, dict(kept.running), kept.sync.source.job_id) == (None, {}, "a")


STEPS = [
    pytest.param(uploads_part, 0, id="while staging"),
    pytest.param(completes, 1, id="while completing"),
    pytest.param(deletes, 0, id="before it deletes"),
    pytest.param(deletes, 1, id="while deleting"),
    pytest.param(writes(".report.json"), 0, id="before the report"),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("match", "after"), STEPS)
def test_overwrite_killed_leaves_one_generation_whole(lake, match, after):
    for key in NEIGHBOURS:
        lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"x")
    own = stream("users", destination_sync_mode="overwrite", sync_mode="full_refresh")
    lake.write({"format": {"format_type": "Parquet"}, "file_name_pattern": "{part_number}{format_extension}"},
               source={"messages": users(lake, list(range(10))), "catalog": catalog(own)})  # fmt: skip
    lake.load("a")
    users(lake, list(range(10, 20)))
    assert lake.killed("b", match, after=after) == KILLED
    assert any(whole(lake, generation, numbers) for generation, numbers in (("1", range(10)), ("2", range(10, 20))))
    assert lake.load("b").status == "done"
    assert whole(lake, "2", range(10, 20))
    assert set(lake.generations().values()) == {"2", ""}
    assert all(key in lake.data() for key in NEIGHBOURS)


def whole(lake, generation, numbers) -> bool:
    """Whether a reader who lists by generation finds all rows of one."""
    mine = [key for key, own in lake.generations().items() if own == generation]
    found = [row["user_id"] for key in mine for row in read(key, lake.data()[key])]
    return sorted(found) == list(numbers)
