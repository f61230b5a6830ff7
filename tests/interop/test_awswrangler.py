"""awswrangler reads the table's location in Glue while the table is refreshed, and refreshes are undone."""

import json
import os
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.interop.installed import install
from tests.load.refreshed import Refreshed

ROUNDS = [3, pytest.param(200, marks=[pytest.mark.exhaustive, pytest.mark.timeout(3600)])]
WHOLE = 4
"""Rows of each load, in two files."""


@pytest.mark.parametrize("rounds", ROUNDS)
def test_each_read_sees_one_load(tmp_path, aws, bucket, rounds):
    python = install("awswrangler==3.17.1") / "python"
    users = Refreshed(tmp_path, aws, "glue", grace_minutes=15)
    (tmp_path / "users").mkdir()
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "users" / "1.parquet")
    users.load("first", id=[3, 4])
    reads = tmp_path / "reads.txt"
    environment = os.environ | {
        "AWS_ENDPOINT_URL": aws.url, "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing",
    }  # fmt: skip
    program = Path(__file__).parent / "awswrangler_reader.py"
    with (
        reads.open("w") as seen,
        (tmp_path / "errors.txt").open("w") as errors,
        subprocess.Popen(
            [python, program, "crm", "users"], env=environment, stdin=subprocess.PIPE, stdout=seen, stderr=errors
        ) as reader,
    ):
        while not reads.stat().st_size and reader.poll() is None:
            time.sleep(0.1)
        for number in range(rounds):
            assert users.load(f"n{number}", id=[3, 4]).tables[0].files == 2
            users.undo(f"n{number}").run()
            users.load(f"m{number}", id=[3, 4])
        reader.communicate(timeout=120)
    assert reader.returncode == 0, (tmp_path / "errors.txt").read_text()[-2000:]
    found = [json.loads(line) for line in reads.read_text().splitlines()]
    assert {(len(each), *each.values()) for each in found} == {(1, WHOLE)}
    assert len({load for each in found for load in each}) > 1
