"""Random chains of syncs by ``airbyte write``, each a process: the source dies at any message, or the process is told
to end. The last sync of a chain is whole, and each row is there once then."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.platform import Platform, user
from tests.cli.scripted_source import KINDS, MODES, NAMES, Source, take_last
from tests.load.syncs import status, stream
from tests.support.narrow import need

pytestmark = [pytest.mark.spark, pytest.mark.exhaustive, pytest.mark.timeout(14_400)]

CHAINS = int(os.environ.get("LAKEWRITER_WRITE_CHAINS", "200"))
SEED = int(os.environ.get("LAKEWRITER_FAULTS_SEED", "1"))
ROOT = Path(__file__).parents[2]


def to_message(kind, key, content):
    if kind == "state":
        return {"type": "STATE", "state": json.loads(content)}
    return user(content, key[1]) if kind == "record" else status(key[1], content)


def sync(platform, modes, messages, rng, *, ending):
    """Run one sync, in which the source pauses at random; return its exit code and the STATEs that came back."""
    streams = (stream(name, **MODES[mode]) for name, mode in zip(NAMES, modes, strict=True))
    config, catalog = platform.given(*streams)
    arguments = [sys.executable, "-m", "lakewriter", "airbyte", "write", "--config", config, "--catalog", catalog]
    pipe = subprocess.PIPE
    with subprocess.Popen([*arguments, "--step-seconds", "0.3"], cwd=ROOT, stdin=pipe, stdout=pipe) as process:
        typed = need(process.stdin)
        for message in messages:
            typed.write((json.dumps(to_message(*message)) + "\n").encode())
            typed.flush()
            time.sleep(rng.choice([0, 0, 0.1, 0.5]))
        if ending == "signal":
            time.sleep(rng.uniform(0, 6))
            process.send_signal(signal.SIGTERM)
        typed.close()
        heard = [json.loads(line) for line in need(process.stdout).read().splitlines()]
        back = [message["state"] for message in heard if message["type"] == "STATE"]
        return process.wait(120), [{key: part for key, part in text.items() if "Stats" not in key} for text in back]


@pytest.mark.parametrize("number", range(CHAINS))
def test_each_row_is_there_once_after_a_chain_of_syncs(tmp_path, aws, bucket, spark, number):
    rng = random.Random(SEED * 1_000_000 + number)
    platform = Platform(tmp_path, aws, spark)
    modes, kind = rng.choices(list(MODES), weights=[3, 1, 1, 1], k=3), rng.choice(KINDS)
    given, code = list[Any](), 1
    for _ in range(rng.randint(1, 2)):
        source = Source(modes, kind, random.Random(rng.random()))
        messages, ending = list(source.say(given)), rng.choice(["death", "death", "signal"])
        if ending == "death":
            messages = messages[: rng.randint(0, len(messages))]
        code, back = sync(platform, modes, messages, rng, ending=ending)
        given = take_last(given, back, kind)
        if code == 0:
            break
    if code:
        source = Source(modes, kind, random.Random(rng.random()))
        code, _ = sync(platform, modes, list(source.say(given)), rng, ending="end")
    rows = {name: platform.ids(f"data/public/{name}/") for name in NAMES}
    assert (code, rows) == (0, {name: [1, 2, 3] for name in NAMES}), (modes, kind)
