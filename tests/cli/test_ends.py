"""How ``airbyte write`` ends amid a load: killed, asked to stop, unheard, or left by its source."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.platform import Platform, user
from tests.load.syncs import BUCKET, record, state, stream
from tests.support import sessions
from tests.support.narrow import need

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]
USERS = stream("users")
MANY = [record("users", {"user_id": number, "x": "x" * 1_000_000}) for number in range(4, 24)]
"""Enough for a load to begin its upload, with no STATE behind them."""


@pytest.fixture
def platform(tmp_path, aws, bucket, spark):
    return Platform(tmp_path, aws, spark)


def write(process, *messages):
    typed = need(process.stdin)
    typed.write("".join(json.dumps(each) + "\n" for each in messages).encode())
    typed.flush()


def uploads(platform):
    return platform.aws.client("s3").list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])


def kill(process):
    sessions.kill(process.pid)
    return process.wait(30)


def terminate(process):
    process.send_signal(signal.SIGTERM)
    return process.wait(60)


def stop_listening(process):
    """The platform dies: a STATE that is due finds nobody."""
    need(process.stdout).close()
    write(process, state("users", 23))
    return process.wait(60)


def die(process):
    """The source dies amid a line."""
    need(process.stdin).write(b'{"type":"RECORD","rec')
    need(process.stdin).close()
    return process.wait(60)


# (what happens, the exit code, whether uploads are left, what is said last, users that lie there)
ENDS = [
    (terminate, 143, False, "stopped by SIGTERM", [1, 2, 3]),
    pytest.param(kill, -signal.SIGKILL, True, "", [1, 2, 3], marks=pytest.mark.exhaustive),
    pytest.param(die, 1, False, "streams are not complete: public.users", [1, 2, 3], marks=pytest.mark.exhaustive),
    pytest.param(stop_listening, 1, False, "", list(range(1, 24)), marks=pytest.mark.exhaustive),
]


@pytest.mark.parametrize(("end", "code", "left", "said", "ids"), ENDS)
def test_what_is_not_committed_is_withdrawn(platform, end, code, left, said, ids):
    config, streams = platform.given(USERS)
    arguments = [sys.executable, "-m", "lakewriter", "airbyte", "write", "--config", config, "--catalog", streams]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*arguments, "--step-seconds", "0.5"], cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    ) as process:
        write(process, user(1), user(2), user(3), state("users", 3))
        lines = iter(need(process.stdout).readline, b"")
        assert next(each for each in lines if json.loads(each)["type"] == "STATE")
        write(process, *MANY)
        until = time.monotonic() + 60
        while not uploads(platform) and time.monotonic() < until:
            time.sleep(0.1)
        assert uploads(platform)
        assert end(process) == code
        if said:
            assert said in json.loads(need(process.stdout).read().splitlines()[-1])["trace"]["error"]["message"]
        noise = need(process.stderr).read().decode()
    assert "Traceback" not in noise
    assert (bool(uploads(platform)), platform.ids()) == (left, ids)
    # What the source was not told of comes again, from the last STATE on.
    if ids[-1] == 3:
        _, error = platform.sync(*(user(number) for number in range(4, 24)), job="again", streams=(USERS,))
        assert (error, platform.ids()) == (None, list(range(1, 24)))
