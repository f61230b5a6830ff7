"""How a load of messages ends, from files and from a connector: an overwrite deletes what a whole stream replaces."""

import json
import sys
from typing import Any

import pytest

from tests.load.syncs import SyncLake, catalog, record, state, status, stream

pytestmark = pytest.mark.spark

PARQUET = {"format": {"format_type": "Parquet"}}
REPLACED: dict[str, Any] = {"destination_sync_mode": "overwrite", "sync_mode": "full_refresh"}
LOG = {"type": "LOG", "log": {"level": "INFO", "message": "starting"}}
STARTED, COMPLETE, INCOMPLETE = (status("users", text) for text in ("STARTED", "COMPLETE", "INCOMPLETE"))


@pytest.fixture
def lake(tmp_path, aws, bucket, spark):
    return SyncLake(tmp_path, aws, spark)


def user(number: int) -> dict[str, Any]:
    return record("users", {"user_id": number})


def ids(lake: SyncLake) -> list[int]:
    return sorted(row["user_id"] for row in lake.rows())


FILES = [
    # the lines of a file, how the stream ends, the users that lie there: 1 is of the load before
    ((), "failed", [1]),
    ((LOG, "Traceback (most recent call last):"), "failed", [1]),
    ((user(2),), "failed", [1]),
    ((user(2), state("users", 2), user(3)), "failed", [1, 2]),
    ((STARTED, user(2)), "failed", [1]),
    ((user(2), INCOMPLETE), "failed", [1]),
    ((user(2), COMPLETE, user(3)), "failed", [1]),
    ((LOG, user(2), COMPLETE, COMPLETE), "done", [2]),
    ((COMPLETE,), "done", []),
]


@pytest.mark.exhaustive
def test_files(lake):
    source = {"messages": "m.jsonl", "statuses": "reported", "catalog": catalog(stream("users", **REPLACED))}
    lake.write(PARQUET, source=source)
    for number, (lines, expected, left) in enumerate(FILES):
        lake.messages(user(1), COMPLETE)
        assert lake.load(f"before{number}").status == "done"
        lake.messages(*lines)
        (result,) = lake.load(f"after{number}").tables
        assert (result.status, ids(lake)) == (expected, left), lines
        assert result.code == (None if expected == "done" else "SOURCE_FAILED")


CONNECTORS = [
    # what a connector prints, its exit code, how the stream ends, the users that lie there: 1 is of the load before
    ((LOG,), 1, "failed", [1]),
    ((user(2), state("users", 2)), 1, "failed", [1, 2]),
    ((user(2), COMPLETE), 1, "done", [2]),
    ((user(2),), 0, "done", [2]),
    ((STARTED, user(2)), 0, "done", [2]),
    ((user(2), INCOMPLETE), 0, "failed", [1]),
]


def test_connectors(lake):
    text = "import pathlib, sys\nsys.stdout.write(pathlib.Path('said').read_text())\nsys.exit(int(sys.argv[1]))\n"
    (lake.folder / "source.py").write_text(text, "utf-8")
    for number, (lines, code, expected, left) in enumerate(CONNECTORS):
        for job_id, said, exit_code in [("before", (user(1), COMPLETE), 0), ("after", lines, code)]:
            (lake.folder / "said").write_text("".join(json.dumps(line) + "\n" for line in said), "utf-8")
            source = {"command": [sys.executable, "source.py", str(exit_code)], "statuses": "reported",
                      "catalog": catalog(stream("users", **REPLACED))}  # fmt: skip
            lake.write(PARQUET, source=source)
            report = lake.load(f"{job_id}{number}")
        (result,) = report.tables
        assert (result.status, ids(lake)) == (expected, left), lines
        # It has printed nothing on its standard error.
        end = f"the connector {sys.executable!r} ended with exit code 1"
        assert any(end in note for note in report.notes) is (code == 1)
        assert not any(f"{end}:" in text for text in (*report.notes, result.message or ""))
