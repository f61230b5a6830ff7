"""PyAirbyte as the client, with a real source: each is a program of its own, as is this destination."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.cli.platform import Platform
from tests.cli.scenarios import FORMS
from tests.interop.installed import install

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = {"client": "airbyte==0.71.3", "source": "airbyte-source-faker==7.2.1"}


@pytest.mark.spark
@pytest.mark.parametrize(("form", "strategies"), [("jsonl-flat", ["append", "replace"]), ("parquet", ["append"])])
def test_a_real_source_through_pyairbyte(tmp_path, aws, bucket, spark, form, strategies):
    """It gives every sync generation 1, so "replace" keeps what the first sync wrote, with any destination that goes by
    the generations of the protocol."""
    client, source = install(PACKAGES["client"]), install(PACKAGES["source"])
    platform = Platform(tmp_path, aws, spark)
    config, _ = platform.given(format=FORMS[form])
    program = tmp_path / "destination"
    program.write_text(f'#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m lakewriter airbyte "$@"\n', "utf-8")
    program.chmod(0o755)
    for times, strategy in enumerate(strategies, 1):
        arguments = [client / "python", Path(__file__).parent / "pyairbyte_sync.py", source / "source-faker", program]
        done = subprocess.run(
            [*arguments, config, strategy], cwd=tmp_path, capture_output=True, text=True, check=False,
            env=os.environ | {"AIRBYTE_OFFLINE_MODE": "1"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        users = platform.rows("data/users/")
        assert sorted(int(row["id"]) for row in users) == sorted([*range(1, 51)] * times)
        assert len({row["_airbyte_raw_id"] for row in users}) == 50 * times
        assert {"name", "email", "created_at"} <= users[0].keys()
        assert platform.rows("data/products/")
