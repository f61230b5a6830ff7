"""The days of ``examples/broken_days``, in this process: what each command says, and what the lake has in the end."""

import re
from contextlib import chdir
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from rich.console import Console

from examples.broken_days.days import play
from examples.demo.demo import packaged
from examples.first_hour.hour import Session
from lakewriter.cli.main import main
from tests.load.lakes import BUCKET

pytestmark = [pytest.mark.spark, pytest.mark.exhaustive]


class InProcess(Session):
    """Commands that need no process of their own, nor a Spark."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, Console(quiet=True))
        self.printed: list[str] = []

    def run(self, *arguments: str, exit_code: int = 0, says: str = "") -> str:
        with chdir(self.folder):
            done = CliRunner().invoke(main, arguments)
        output = done.stdout + done.stderr
        self.printed.append(output)
        if done.exit_code != exit_code or says not in output:
            self.failures.append(f"{arguments}: exit code {done.exit_code}, {output}")
        return output


def read(aws: Any, folder: str) -> list[dict[str, Any]]:
    found = {key: body for key, body in aws.objects(BUCKET).items() if f"/{folder}/" in key}
    return [row for body in found.values() for row in pq.read_table(pa.BufferReader(body)).to_pylist()]


@pytest.mark.timeout(900)
def test_three_broken_days(tmp_path, aws, bucket, spark):
    session = InProcess(tmp_path / "days")
    play(session, packaged("flights"))
    assert session.failures == []
    text = "\n".join(session.printed)
    for said in SAID:
        assert said in text
    # 842 + 943 + 457 + 910 + 684 + 36 + 832: no row of January 5 is missing, or there twice.
    rows = read(aws, "flights")
    assert len(rows) == 4704
    replayed = [row["dep_delay"] for row in rows if row["_load_id"].startswith("replay.")]
    assert replayed == [None] * 36
    assert sorted(row["_lake_check"] for row in read(aws, "flights__quarantine")) == [
        *["not_null.flight"] * 3, *["range.distance"] * 2,
    ]  # fmt: skip
    page = (session.folder / "january-3.html").read_text("utf-8")
    assert "La Guardia was closed by snow" in page
    page = (session.folder / "january-4.html").read_text("utf-8")
    assert re.search(r"lakewriter replay \S+ nyc\.flights", page)


SAID = [
    "EXPECTATION_FAILED: table 'nyc.flights': 1 of 5 expectations not met: rows.of_last_loads found 457 rows, expected "
    "535.5 to 1,785 rows, 60% to 200% of the median of the last 2 loads. Nothing of the load was published, what was "
    "staged is gone, and the cursor has not moved. Correct the source, and run the load again: lakewriter run LAKE "
    "--scheduled-at 2013-01-04T06:00:00Z; or load it as it is, with --accept rows.of_last_loads --reason TEXT behind "
    "it",
    "not_null.flight found 3 rows",
    "range.distance found 2 rows",
    "these rows are in the quarantine",
    "36 of 720 rows cannot be loaded, 5.00%, and on_bad_row takes at most 1.00% into the quarantine",
    "dep_delay: it does not convert to int",
    "fresh.time_hour found 2013-01-06T04:00:00.000000Z as the newest value",
]
