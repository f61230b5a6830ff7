"""The destination protocol, as Airbyte's platform speaks it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lakewriter.dialects.airbyte.connector import make_connector_specification
from lakewriter.errors import SourceFailedError
from tests.cli.platform import USERS, Platform, states, user
from tests.load.syncs import BUCKET, failure, record, state, status, stream
from tests.support.narrow import need

ROOT = Path(__file__).parents[2]


@pytest.fixture
def platform(tmp_path, aws, bucket, spark):
    return Platform(tmp_path, aws, spark)


@pytest.mark.spark
def test_states_come_back_after_their_data_with_counts(platform):
    said, error = platform.sync(user(1), user(2), state("users", "a"), user(3), state("users", "b"), user(4),
                                status("users", "COMPLETE"))  # fmt: skip
    assert error is None
    assert states(said) == [("a", 2), ("b", 1)]
    assert platform.ids() == [1, 2, 3, 4]


@pytest.mark.spark
def test_each_step_commits_before_its_states_come_back(platform):
    said, error = platform.sync(user(1), state("users", 1), user(2), state("users", 2), user(3), step_bytes=1)
    assert error is None
    assert states(said) == [(1, 1), (2, 1)]
    assert platform.ids() == [1, 2, 3]
    kinds = [message["type"] for message in said]
    assert kinds == ["LOG", "STATE", "LOG", "STATE", "LOG"]
    assert set(platform.generations().values()) == {"3"}


@pytest.mark.spark
def test_old_generations_go_when_the_last_step_is_done(platform):
    s3 = platform.aws.client("s3")
    old = "data/public/users/2021_01_01_1_0.jsonl"
    s3.put_object(Bucket=BUCKET, Key=old, Body=b"", Metadata={"ab-generation-id": "2"})
    _, error = platform.sync(user(1), state("users", 1), user(2), status("users", "INCOMPLETE"), step_bytes=1)
    assert "streams are not complete" in str(error)
    assert old in platform.data()
    assert platform.ids() == [1]
    platform.sync(user(2), status("users", "COMPLETE"), job="again")
    assert old not in platform.data()
    assert platform.ids() == [1, 2]


LOG = {"type": "LOG", "log": {"level": "INFO", "message": "starting"}}
TRACEBACK = "Traceback (most recent call last):"
KEPT: dict[str, Any] = {"destination_sync_mode": "overwrite", "sync_mode": "full_refresh"}

DEAD = [
    # what a source says until it dies, the users that lie there afterwards: 1 is of the sync before
    ((), [1]),
    ((LOG,), [1]),
    ((TRACEBACK,), [1]),
    ((user(2),), [1]),
    ((LOG, user(2), TRACEBACK), [1]),
    ((user(2), state("users", 2)), [1, 2]),
    ((status("users", "STARTED"), user(2)), [1]),
    ((user(2), status("users", "INCOMPLETE")), [1]),
    ((user(2), status("orders", "COMPLETE")), [1]),
    ((status("users", "COMPLETE"), user(2)), [1]),
    ((user(2), state("users", 2), status("users", "COMPLETE"), user(3)), [1, 2]),
    ((user(2), state("users", 2), '{"type":"TRACE","trace":{"type":"STREAM_STATUS","stream_st'), [1, 2]),
]


@pytest.mark.exhaustive
@pytest.mark.spark
@pytest.mark.parametrize("streams", [(stream("users", **KEPT),), (USERS,)], ids=["counted", "given"])
def test_a_source_that_dies_deletes_nothing(platform, streams):
    _, error = platform.sync(user(1), status("users", "COMPLETE"), streams=streams, ended="unseen")
    assert error is None
    there = platform.data()
    for number, (said, ids) in enumerate(DEAD):
        _, error = platform.sync(*said, job=f"dead{number}", streams=streams, ended="unseen")
        assert isinstance(error, SourceFailedError), said
        assert platform.ids() == ids, said
        assert there.items() <= platform.data().items()
        for key in platform.data().keys() - there.keys():
            platform.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)


@pytest.mark.spark
def test_a_cut_last_line_is_no_end(platform):
    platform.sync(user(1), streams=(stream("users", **KEPT),))
    _, error = platform.sync(user(2), '{"type":"REC', streams=(stream("users", **KEPT),), job="again")
    assert "the input ends in the middle of a line" in str(error)
    assert platform.ids() == [1]


@pytest.mark.spark
def test_a_stream_without_a_state_waits(platform):
    orders = stream("orders")
    messages = [record("orders", {"id": 1}), user(1), state("users", 1), record("orders", {"id": 2}), failure("boom")]
    said, error = platform.sync(*messages, step_bytes=1, streams=(USERS, orders))
    assert "boom" in str(error)
    assert states(said) == [(1, 1)]
    assert platform.ids() == [1]
    assert not platform.rows("data/public/orders/")


@pytest.mark.spark
def test_state_for_all_streams_waits_for_all(platform):
    shared: dict[str, Any] = {
        "type": "STATE",
        "state": {"type": "GLOBAL", "global": {"shared_state": {"lsn": 5}, "stream_states": []}},
    }
    said, error = platform.sync(user(1), record("orders", {"id": 1}), shared, user(2), failure("boom"),
                                streams=(USERS, stream("orders")))  # fmt: skip
    assert error is not None
    (back,) = [message["state"] for message in said if message["type"] == "STATE"]
    assert back == shared["state"] | {"destinationStats": {"recordCount": 2}}
    assert platform.ids() == [1]


OLD: dict[str, Any] = {"destination_sync_mode": "overwrite", "sync_mode": "full_refresh"}
"""A full refresh of a platform that gives no generation ids."""


def shared(kind, *names):
    """A STATE for all streams, with a part of each of these."""
    if kind == "LEGACY":
        return {"type": "STATE", "state": {"type": "LEGACY", "data": {name: {"at": 1} for name in names}}}
    parts = [{"stream_descriptor": {"name": name, "namespace": "public"}, "stream_state": {}} for name in names]
    content = {"shared_state": {"lsn": 1}, "stream_states": parts}
    return {"type": "STATE", "state": {"type": "GLOBAL", "global": content}}


CUT_OFF = '{"type":"RECORD","record":{"stream":"'
S0, S1, S2 = "s0", "s1", "s2"
UNTIL_DEATH = [
    # modes of streams, what the source says until it dies, the kind of STATE for all, STATEs that come back, rows
    pytest.param(
        (OLD, {}, {}),
        (user(1, S1), user(2, S2), (S0, S1, S2), status(S1, "COMPLETE"), status(S2, "COMPLETE"), (S0, S1, S2),
         user(9, S0)),
        0, ([], [], []), id="an overwrite that is not whole keeps the STATE back: nothing is committed up to it",
    ),
    pytest.param(
        (OLD, {}, {}),
        (user(9, S0), user(1, S1), (S0, S1, S2), status(S0, "COMPLETE"), user(2, S2), CUT_OFF),
        1, ([9], [1], []), id="a line that is cut off concerns no stream that was complete before it",
    ),
    pytest.param(
        ({}, {}), (user(1, S0), user(1, S1), (S0, S1), user(2, S0), status(S0, "COMPLETE")),
        1, ([1], [1]), id="what a complete stream sent behind the last STATE comes again",
    ),
    pytest.param(
        ({}, {}), (user(1, S0), state(S0, 1), user(2, S0), status(S0, "COMPLETE"), user(1, S1), state(S1, 1)),
        2, ([1], [1]), id="also where each stream has its own STATE",
    ),
    pytest.param(
        ({"sync_mode": "full_refresh"}, {}), (user(1, S0), status(S0, "COMPLETE"), user(1, S1), state(S1, 1)),
        1, ([], [1]), id="a full refresh that is appended is read again whole",
    ),
    pytest.param(
        ({"sync_mode": "full_refresh"}, {}), (user(1, S0), user(1, S1), (S1,), status(S0, "COMPLETE")),
        1, ([], [1]), id="a STATE without a part of it does not cover it",
    ),
]  # fmt: skip


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["GLOBAL", "LEGACY"])
@pytest.mark.parametrize(("modes", "said", "back", "rows"), UNTIL_DEATH)
def test_nothing_stays_behind_the_last_state_that_comes_back(platform, modes, said, back, rows, kind):
    names = [f"s{number}" for number in range(len(modes))]
    streams = tuple(stream(name, **mode) for name, mode in zip(names, modes, strict=True))
    messages = [shared(kind, *message) if isinstance(message, tuple) else message for message in said]
    heard, error = platform.sync(*messages, streams=streams, ended="unseen", step_bytes=1)
    assert "streams are not complete" in str(error)
    assert sum(message["type"] == "STATE" for message in heard) == back
    assert tuple(platform.ids(f"data/public/{name}/") for name in names) == rows


def test_specification():
    found = make_connector_specification()
    connection = found["connectionSpecification"]
    assert connection["required"] == ["s3_bucket_name", "s3_bucket_path", "s3_bucket_region", "format"]
    assert [name for name, own in connection["properties"].items() if own.get("airbyte_secret")] == [
        "access_key_id",
        "secret_access_key",
        "external_id",
    ]
    assert found["supported_destination_sync_modes"] == ["overwrite", "append"]


def command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "lakewriter", "airbyte", *arguments],
        cwd=ROOT,
        capture_output=True,
        check=False,
        **options,
    )


def test_spec_command():
    done = command("spec")
    assert done.returncode == 0
    assert json.loads(done.stdout)["type"] == "SPEC"


def test_check_command(platform):
    config, _ = platform.given()
    (message,) = [json.loads(line) for line in command("check", "--config", str(config)).stdout.splitlines()][-1:]
    assert message == {"type": "CONNECTION_STATUS", "connectionStatus": {"status": "SUCCEEDED"}}
    config, _ = platform.given(s3_bucket_name="nowhere")
    (message,) = [json.loads(line) for line in command("check", "--config", str(config)).stdout.splitlines()][-1:]
    assert message["connectionStatus"]["status"] == "FAILED"


@pytest.mark.exhaustive
def test_sockets_are_refused_by_name(platform):
    config, streams = platform.given(USERS)
    channel = {**os.environ, "DATA_CHANNEL_MEDIUM": "SOCKET", "DATA_CHANNEL_FORMAT": "PROTOBUF"}
    (message,) = map(json.loads, command("check", "--config", str(config), env=channel).stdout.splitlines())
    assert "DATA_CHANNEL_MEDIUM is 'SOCKET'" in message["connectionStatus"]["message"]
    done = command("write", "--config", str(config), "--catalog", str(streams), input=b"", env=channel)
    (message,) = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, message["trace"]["error"]["failure_type"]) == (1, "config_error")
    assert "DATA_CHANNEL_MEDIUM is 'SOCKET'" in message["trace"]["error"]["message"]


@pytest.mark.spark
def test_write_command(platform):
    config, streams = platform.given(USERS)
    lines = "".join(json.dumps(each) + "\n" for each in (user(1), state("users", 1)))
    files = ["--config", str(config), "--catalog", str(streams)]
    done = command("write", *files, "--statuses", "none", input=lines.encode())
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["type"] for line in done.stdout.splitlines()] == ["LOG", "STATE", "LOG"]
    assert json.loads(done.stdout.splitlines()[-1])["log"]["message"].startswith("public.users: 1 row in 1 file, ")
    assert platform.ids() == [1]
    done = command("write", *files, input=b"")
    (message,) = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, "SOURCE_FAILED" in message["trace"]["error"]["message"], platform.ids()) == (1, True, [1])
    bad = platform.folder / "bad.json"
    bad.write_text("[]", "utf-8")
    done = command("write", "--config", str(bad), "--catalog", str(streams), input=b"")
    (message,) = map(json.loads, done.stdout.splitlines())
    assert (done.returncode, message["trace"]["error"]["failure_type"]) == (1, "config_error")


@pytest.mark.exhaustive
@pytest.mark.spark
def test_a_signal_while_write_waits_for_messages(platform):
    config, streams = platform.given(USERS)
    arguments = [sys.executable, "-m", "lakewriter", "airbyte", "write", "--config", config, "--catalog", streams]
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True) as process:
        typed = need(process.stdin)
        typed.write("".join(json.dumps(each) + "\n" for each in (user(1), state("users", 1))).encode())
        typed.flush()
        until = time.monotonic() + 120
        while (
            not any(call.key.endswith("/state.json") for call, _ in platform.aws.history) and time.monotonic() < until
        ):
            time.sleep(0.1)
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
        warned, ended = map(json.loads, need(process.stdout).read().splitlines())
    assert (warned["log"]["level"], "SIGTERM" in warned["log"]["message"]) == ("WARN", True)
    assert (ended["trace"]["error"]["message"], ended["trace"]["error"]["failure_type"]) == (
        "stopped by SIGTERM",
        "transient_error",
    )
    assert platform.ids() == []
