"""What lies in the bucket, and what is handed back, when a sync is committed in steps or one stream fails."""

import json
from typing import Any

import pytest

from lakewriter.errors import S3AccessDeniedError, SchemaIncompatibleError, SourceFailedError
from tests.cli.platform import USERS, Platform, states, user
from tests.load.syncs import BUCKET, failure, record, state, status, stream

pytestmark = pytest.mark.spark

REPLACED: dict[str, Any] = {"destination_sync_mode": "overwrite", "sync_mode": "full_refresh"}
A, B = stream("a", **REPLACED), stream("b", **REPLACED)


@pytest.fixture
def platform(tmp_path, aws, bucket, spark):
    return Platform(tmp_path, aws, spark)


def shared(lsn):
    """A state of all streams."""
    return {"type": "STATE", "state": {"type": "GLOBAL", "global": {"shared_state": {"lsn": lsn}}}}


def both(platform):
    return platform.ids("data/public/a/"), platform.ids("data/public/b/")


@pytest.mark.exhaustive
def test_overwrite_without_generations_in_steps(platform):
    first = [user(1, "a"), user(2, "b"), shared(1)]
    _, error = platform.sync(*first, streams=(A, B))
    assert (error, both(platform)) == (None, ([1], [2]))
    # A step ends before the first record of b: its old ones go all the same.
    later = [user(3, "a"), shared(2), user(4, "a"), shared(3), user(5, "b"), shared(4), user(6, "b")]
    _, error = platform.sync(*later, streams=(A, B), job="again", step_bytes=1)
    assert (error, both(platform)) == (None, ([3, 4], [5, 6]))
    assert set(platform.generations().values()) == {"2"}


@pytest.mark.exhaustive
def test_overwrite_without_generations_that_ends_empty(platform):
    platform.sync(user(1, "a"), user(2, "b"), streams=(A, B))
    _, error = platform.sync(user(3, "a"), shared(2), user(4, "a"), streams=(A, B), job="again", step_bytes=1)
    assert (error, both(platform)) == (None, ([3, 4], []))


def test_overwrite_without_generations_that_ends_early(platform):
    platform.sync(user(1, "a"), streams=(A,))
    messages = [user(2, "a"), state("a", 2), user(3, "a"), failure("boom")]
    said, error = platform.sync(*messages, streams=(A,), job="again", step_bytes=1)
    # The next call begins the refresh anew and so deletes what this one leaves: no source may go on from there.
    assert (states(said), platform.ids("data/")) == ([], [1, 2])
    assert isinstance(error, SourceFailedError)
    said, error = platform.sync(*messages[:-1], streams=(A,), job="third", step_bytes=1)
    assert (error, states(said), platform.ids("data/")) == (None, [(2, 1)], [2, 3])


PART = {"stream_descriptor": {"name": "a", "namespace": "public"}, "stream_state": {"at": 2}}


@pytest.mark.parametrize(("parts", "expected"), [([PART], []), ([], [1])])
def test_state_for_all_streams_that_has_a_part_of_an_overwrite_without_generations(platform, parts, expected):
    """A source that went on from it would leave out the records of a that the next call replaces."""
    whole = {
        "type": "STATE",
        "state": {"type": "GLOBAL", "global": {"shared_state": {"lsn": 1}, "stream_states": parts}},
    }
    messages = [user(1, "a"), user(2, "users"), whole, user(3, "a"), failure("boom")]
    _, error = platform.sync(*messages, streams=(A, USERS), step_bytes=1)
    assert isinstance(error, SourceFailedError)
    back = [json.loads(line)["state"]["global"]["shared_state"]["lsn"] for line in platform.heard if b'"STATE"' in line]
    # What it covers is committed with it, or not at all: the source sends it again.
    assert (back, platform.ids("data/public/users/")) == (expected, [2] if expected else [])


ORDERS = stream("orders")


@pytest.mark.parametrize("in_a_step", [True, False])
def test_states_of_committed_streams_come_back_when_another_fails(platform, in_a_step):
    platform.aws.deny("s3:PutObject", f"arn:aws:s3:::{BUCKET}/data/public/orders/*")
    messages = [user(1), record("orders", {"id": 1}), state("orders", 2), state("users", 1)]
    said, error = platform.sync(
        *messages, failure("boom"), streams=(USERS, ORDERS), step_bytes=1 if in_a_step else None
    )
    assert isinstance(error, S3AccessDeniedError)
    assert (states(said), platform.ids()) == ([(1, 1)], [1])


def test_unknown_type_fails_before_anything_is_written(platform):
    odd = stream("orders", {"type": "object", "properties": {"id": {"type": "bigserial"}}})
    messages = [user(1), state("users", 1), record("orders", {"id": 1})]
    said, error = platform.sync(*messages, streams=(USERS, odd), format={"format_type": "Avro"})
    assert isinstance(error, SchemaIncompatibleError)
    assert "public.orders: the schema of id has type 'bigserial'" in str(error)
    assert (said, platform.data()) == ([], {})


def test_nothing_is_read_behind_a_message_that_cannot_be_read(platform):
    messages = [user(1), record("orders", {"id": 1}), status("orders", "COMPLETE"), state("users", 1),
                '{"type":"RECORD","record":{"stream":"users","namespace":"public","data":[2]}}',
                user(3), state("users", 3), status("users", "COMPLETE")]  # fmt: skip
    said, error = platform.sync(*messages, streams=(USERS, ORDERS))
    assert "public.users (a message at byte" in str(error)
    assert "its data is not an object" in str(error)
    assert (states(said), platform.ids()) == ([(1, 1)], [1])
    # No STATE covers its records, and the next sync sends them again.
    assert not platform.rows("data/public/orders/")


def test_state_comes_back_in_its_own_numbers(platform):
    plain = '{"type":"STATE","state":{"type":"LEGACY","data":{"a":%s,"b":1.10}}}'
    said = [plain % number for number in ("1e400", "12345678901234567.89")]
    _, error = platform.sync(user(1), *said)
    assert error is None
    sent = '{"type":"STATE","state":{"type":"LEGACY","data":{"a":%s,"b":1.10},"destinationStats":{"recordCount":%d}}}'
    assert platform.heard[-2:] == [(sent % each).encode() for each in (("1e400", 1), ("12345678901234567.89", 0))]
