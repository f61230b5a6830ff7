"""Files of messages that an earlier load has read: their records are counted as appended again, or refused."""

import pytest

from lakewriter.report import describe_repeated
from tests.load.syncs import SyncLake, catalog, record, state, status, stream
from tests.support.local_tasks import local_session

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}}


@pytest.fixture
def lake(tmp_path, aws, bucket) -> SyncLake:
    return SyncLake(tmp_path, aws, local_session(1))


def sync(lake, job_id, *messages, repeated=None, **settings):
    path = lake.messages(*messages) if messages else "m.jsonl"
    source = {"messages": path, "catalog": catalog(stream("users", SCHEMA, **settings))}
    more = {"repeated": repeated} if repeated else {}
    lake.write({"format": {"format_type": "JSONL"}}, source=source, **more)
    return lake.load(job_id).tables[0]


ROWS = [record("users", {"id": number}) for number in range(3)] + [status("users", "COMPLETE")]
AGAIN = "appended again: 3 rows, 1 of 1 file that an earlier load has read"
COUNTED = [
    # the stream's settings, repeated, the second load's status and code, what is said of it
    ({}, None, "done", None, AGAIN),
    ({}, "allow", "done", None, None),
    ({}, "fail", "failed", "INPUT_REPEATED", None),
    ({"destination_sync_mode": "overwrite"}, "fail", "done", None, None),
    ({"generation_id": 2, "minimum_generation_id": 2}, "fail", "done", None, None),
]


@pytest.mark.parametrize(("settings", "repeated", "status_", "code", "said"), COUNTED)
def test_the_same_messages_in_a_second_load(lake, settings, repeated, status_, code, said):
    first = sync(lake, "a", *ROWS, repeated=repeated, **settings)
    assert (first.status, describe_repeated([first.repeated])) == ("done", None)
    second = sync(lake, "b", repeated=repeated, **settings)
    assert (second.status, second.code, describe_repeated([second.repeated])) == (status_, code, said)


def test_other_messages_under_the_same_name_are_no_repetition(lake):
    sync(lake, "a", *ROWS)
    result = sync(lake, "b", record("users", {"id": 9}), *ROWS, repeated="fail")
    assert (result.status, describe_repeated([result.repeated])) == (
        "done", "1 file changed since an earlier load has read them",
    )  # fmt: skip


def test_the_rest_of_an_input_is_not_counted_again(lake):
    """The same job id goes on behind the STATE that it has committed."""
    part = [*ROWS[:2], state("users", 2)]
    assert sync(lake, "a", *part, status("users", "INCOMPLETE")).code == "SOURCE_FAILED"
    result = sync(lake, "a", *part, *ROWS[2:], repeated="fail")
    assert (result.status, result.rows) == ("done", 1), result.message
