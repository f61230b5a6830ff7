"""The functions of the package on the S3 server of this machine, and what a notebook shows."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.local_server.server import LocalServer, find_program

ROOT = Path(__file__).parents[2]
LAKE = """\
pipeline: shop
destination: {type: lakewriter-s3, location: s3://acme-lake/lake, region: us-east-1}
tables:
  - table: orders
"""
PROGRAM = """\
import json, lakewriter
spark = lakewriter.open_spark()
df = spark.range(0, 10, 1, 1)
first = lakewriter.write(df, lake="lake.yaml", table="orders", job_id="a", local=True)
with lakewriter.local("lake.yaml") as options:
    df.write.format("lakewriter").mode("append").options(**options, table="orders", job_id="b").save()
    rows = [lakewriter.verify("lake.yaml", job, rows=True).rows for job in ("a", "b")]
print(json.dumps({"repr": repr(first), "html": first._repr_html_()[:60], "rows": rows}))
"""


@pytest.fixture
def folder(tmp_path):
    try:
        find_program()
    except SpecInvalidError as error:
        pytest.skip(str(error))
    (tmp_path / "lake.yaml").write_text(LAKE, "utf-8")
    yield tmp_path
    LocalServer.beside(tmp_path / "lake.yaml").stop()


@pytest.mark.spark
@pytest.mark.exhaustive
def test_a_program_writes_to_this_machine(folder):
    """In a process of its own, whose Spark has started before the server did: its tasks get the keys all the same."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=environment | {"PYTHONPATH": str(ROOT / "job"), "NO_PROXY": "127.0.0.1,localhost"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["repr"].startswith("<load a of shop: done, 1 table, 10 rows, 1 file in ")
    assert said["html"].startswith('<iframe srcdoc="&lt;!DOCTYPE html&gt;')
    assert said["rows"] == [10, 10]
