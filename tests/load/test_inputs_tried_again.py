"""A load that is partly committed and tried again with its input, with less of it, or with another one."""

import json
from typing import Any

import pytest

from lakewriter.aws import Clients
from lakewriter.commit.pipeline import Pipeline
from lakewriter.operate.lost_intent import abandon_without_intent
from lakewriter.run.loader import Loader
from tests.load.lakes import BUCKET, writes
from tests.load.syncs import SyncLake, catalog, record, state, status, stream

pytestmark = pytest.mark.spark

PARQUET = {"format": {"format_type": "Parquet"}}
REPLACED: dict[str, Any] = {"destination_sync_mode": "overwrite", "sync_mode": "full_refresh"}
COMPLETE = status("users", "COMPLETE")


@pytest.fixture
def lake(tmp_path, aws, bucket, spark):
    return SyncLake(tmp_path, aws, spark)


def user(number: int, at: int = 0) -> dict[str, Any]:
    return record("users", {"user_id": number}, at=at)


def ids(lake: SyncLake, prefix: str = "data/") -> list[int]:
    return sorted(row["user_id"] for row in lake.rows(prefix))


WHOLE = [user(1), state("users", 1), user(2), state("users", 2), user(3), COMPLETE]
"""Of which all but the end is committed first, up to the second STATE."""
BEGINS_ANEW = [user(1, 9), state("users", 1), user(2, 9), {"type": "LOG", "log": {}}, state("users", 2), COMPLETE]
GOES_ON = [user(3), state("users", 3), COMPLETE]
ENDS_BEFORE = "load 'a' has committed its records up to the STATE at byte "
LEFT_OUT = "What follows that STATE, as from a source that was given it, belongs to a load with another job id."

APPENDED: dict[str, Any] = {}
ONE_GENERATION = REPLACED | {"generation_id": 4, "minimum_generation_id": 4}
INPUTS = [
    # the stream, what is said of its statuses, the lines of the second attempt, how it ends, the users then
    (APPENDED, "reported", WHOLE, "done", [1, 2, 3]),
    (APPENDED, "reported", WHOLE[:2], "failed", [1, 2]),
    (APPENDED, "none", WHOLE[:2], "failed", [1, 2]),
    (APPENDED, "none", WHOLE[:1], "failed", [1, 2]),
    (APPENDED, "none", [], "failed", [1, 2]),
    (APPENDED, "reported", [*WHOLE[:2], json.dumps(user(2))[:40]], "failed", [1, 2]),
    (APPENDED, "reported", BEGINS_ANEW, "failed", [1, 2]),
    (APPENDED, "reported", GOES_ON, "done", [1, 2, 3]),
    (APPENDED, "reported", [COMPLETE], "done", [1, 2]),
    (ONE_GENERATION, "reported", WHOLE, "done", [1, 2, 3]),
    (ONE_GENERATION, "reported", WHOLE[:2], "failed", [1, 2]),
    (ONE_GENERATION, "none", WHOLE[:2], "failed", [1, 2]),
    (REPLACED, "reported", WHOLE, "done", [1, 2, 3]),
    (REPLACED, "reported", BEGINS_ANEW, "done", [1, 2]),
    (REPLACED, "reported", GOES_ON, "done", [3]),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("kind", "statuses", "again", "expected", "left"), INPUTS)
def test_another_attempt(lake, kind, statuses, again, expected, left):
    own = catalog(stream("users", **kind))
    lake.write(PARQUET, source={"messages": "m.jsonl", "statuses": "reported", "catalog": own})
    lake.messages(*WHOLE[:5])
    assert (lake.load("a").tables[0].code, ids(lake)) == ("SOURCE_FAILED", [1, 2])
    lake.write(PARQUET, source={"messages": "m.jsonl", "statuses": statuses, "catalog": own})
    lake.messages(*again)
    (table,) = lake.load("a").tables
    assert (table.status, ids(lake)) == (expected, left), table.message
    if expected == "failed":
        assert table.code == "SOURCE_FAILED"
        assert ENDS_BEFORE in table.message
        assert table.message.endswith(LEFT_OUT)
        assert table.remedy.endswith(LEFT_OUT)
        lake.messages(*WHOLE)
        assert (lake.load("a").status, ids(lake)) == ("done", [1, 2, 3])


def test_generation_that_replaces_the_part_has_all_records(lake):
    source = {"messages": "m.jsonl", "statuses": "reported"}
    lake.write(PARQUET, source=source | {"catalog": catalog(stream("users", **ONE_GENERATION))})
    lake.messages(*WHOLE[:5])
    lake.load("a")
    raised = ONE_GENERATION | {"generation_id": 5, "minimum_generation_id": 5}
    lake.write(PARQUET, source=source | {"catalog": catalog(stream("users", **raised))})
    lake.messages(*WHOLE)
    assert (lake.load("a").status, ids(lake)) == ("done", [1, 2, 3])


def test_part_of_another_attempt_that_is_committed_meanwhile_is_gone_on_from(lake, monkeypatch):
    """The second attempt had read the table's state before."""
    lake.write(PARQUET, source={"messages": "m.jsonl", "statuses": "reported", "catalog": catalog(stream("users"))})
    lake.messages(*WHOLE)
    begin, ran = Loader.begin, list[str]()

    def begin_and_wait(self, given, **options):
        number = begin(self, given, **options)
        if not ran:
            ran.append("")
            lake.messages(*WHOLE[:5])
            ran.append(lake.load("a").status)
            lake.messages(*WHOLE)
        return number

    monkeypatch.setattr(Loader, "begin", begin_and_wait)
    report = lake.load("a")
    assert (ran[1], report.status, report.tables[0].message, ids(lake)) == ("failed", "done", None, [1, 2, 3])


def lose_intent(lake: SyncLake) -> str:
    """Delete the intent of the load that has committed a part of load 'a', and return its job id."""
    (key,) = [key for key in lake.aws.objects(BUCKET) if "/loads/a.s" in key and "/tables/" in key]
    lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    return key.partition("/loads/")[2].split("/")[0]


def test_part_that_was_ended_without_its_intent_is_loaded_again(lake):
    """Nothing tells how far it came, and the state was not moved; the person who ended it was told so."""
    lake.write(PARQUET, source={"messages": "m.jsonl", "statuses": "reported", "catalog": catalog(stream("users"))})
    lake.messages(*WHOLE[:5])
    lake.cut_off("a", writes("users.report.json"))
    controls = Pipeline.open(lake.spec, Clients(lake.spec.access)).controls
    told = abandon_without_intent(controls, lose_intent(lake), "its intent is gone")
    assert "so the next load may read its rows again" in "".join(told.values())
    lake.messages(*WHOLE)
    report = lake.load("a")
    assert (report.status, ids(lake)) == ("done", [1, 1, 2, 2, 3]), report.tables[0].message


def test_part_whose_intent_is_deleted_and_that_another_load_follows(lake):
    lake.write(PARQUET, source={"messages": "m.jsonl", "statuses": "reported", "catalog": catalog(stream("users"))})
    lake.messages(*WHOLE[:5])
    lake.load("a")
    lake.messages(user(9), state("users", 9), COMPLETE)
    assert lake.load("b").status == "done"
    job = lose_intent(lake)
    lake.messages(*WHOLE)
    (table,) = lake.load("a").tables
    assert (table.code, ids(lake)) == ("SOURCE_FAILED", [1, 2, 9])
    assert f"load '{job}' has committed a part of this one, and its intent is gone" in table.message
