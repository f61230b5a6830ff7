"""Processes that keep rows out, and replay them, killed at a call between their staging and their end: whoever goes on
finds each row once, in the table or in its quarantine."""

import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from lakewriter.cli.main import main
from tests.faults.process import KILLED, Process
from tests.load.lakes import BUCKET, Lake, table, uploads_part
from tests.load.test_quarantine import RULE, is_write, list_differences
from tests.support.call import Call

pytestmark = pytest.mark.spark

TABLE = "supaflow_nyc_public.sums"
KILLS = 25
"""Of loads, and as many of replays."""
MOST_CALLS = 14
"""Writes of such a load after the first part of its first file."""


class Staged:
    """Matches writes from the first part of a file on."""

    def __init__(self) -> None:
        self.is_begun = False

    def __call__(self, call: Call) -> bool:
        self.is_begun = self.is_begun or uploads_part(call)
        return self.is_begun and is_write(call)


@pytest.fixture
def lake(tmp_path, aws, bucket, spark):
    return Lake(tmp_path, aws, spark)


def write_sums(lake: Lake, number: int, *, is_corrected: bool = False) -> None:
    """Two rows that are good, one below the check's bound, and one line that is none."""
    first = number * 10
    text = f"id,amount\n{first},5\n{first + 1},-1\n{first + 2}\n{first + 3},8\n"
    check: dict[str, Any] = {"range": {"column": "amount", "at_least": -1 if is_corrected else 0}}
    rules = {"on_bad_row": RULE | {"at_most": 0.9}, "expect": [check | {"on_violation": "quarantine"}]}
    lake.write(table("sums", lake.csv("sums.csv", text)) | rules | {"columns": {"id": "int", "amount": "int"}})


def read_rows(lake: Lake, number: int) -> tuple[list[int], list[str]]:
    """The ids of this load that are in the table, and its rows in the quarantine."""
    objects, ids, bad = lake.aws.objects(BUCKET), list[int](), list[str]()
    for key, body in objects.items():
        if not key.endswith(".parquet") or "/_lakewriter/" in key:
            continue
        rows = pq.read_table(pa.BufferReader(body)).to_pylist()
        if "__quarantine/" in key:
            bad += [row["_lake_row"] or row["_lake_line"] for row in rows]
        else:
            ids += [row["id"] for row in rows]
    own = [str(number * 10 + place) for place in range(4)]
    return sorted(each for each in ids if each // 10 == number), sorted(
        text for text in bad if text in own or any(f'"id":{name},' in text for name in own)
    )


def play_load(lake: Lake, number: int, after: int) -> int:
    """Kill a load, and load again under its job id; the exit code of the one that was killed."""
    write_sums(lake, number)
    code = lake.killed(f"job-{number}", Staged(), after=after)
    first = number * 10
    whole = ([first, first + 3], [str(first + 2), f'{{"id":{first + 1},"amount":-1}}'])
    if lake.control(TABLE).state.read().pending is None:
        assert read_rows(lake, number) in (([], []), whole)
    assert lake.load(f"job-{number}").status == "done"
    assert read_rows(lake, number) == whole
    assert not lake.aws.uploads(BUCKET)
    assert list_differences(lake, f"job-{number}") == []
    return code


def play_replay(lake: Lake, number: int, after: int) -> int:
    """Kill the replay of what that load has kept out, and run it again; the exit code of the one that was killed."""
    write_sums(lake, number, is_corrected=True)
    process = Process(lake.file, f"replay-{number}", lake.aws.url)
    process.command = [*process.command[:3], "replay", str(lake.file), TABLE, "--json"]
    with process.killed_at(Staged(), after=after):
        code = process.wait()
    again = CliRunner().invoke(main, ["replay", str(lake.file), TABLE, "--json"])
    assert again.exit_code == 0, again.stderr
    first = number * 10
    assert read_rows(lake, number) == ([first, first + 1, first + 3], [str(first + 2)])
    assert not lake.aws.uploads(BUCKET)
    assert list_differences(lake, f"job-{number}") == []
    return code


@pytest.mark.exhaustive
def test_a_load_and_a_replay_that_are_killed(lake):
    assert (play_load(lake, 1, 3), play_replay(lake, 1, 5)) == (KILLED, KILLED)


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_loads_and_replays_that_are_killed(lake, record_property):
    rng, codes = random.Random(1), list[int]()
    for number in range(1, KILLS + 1):
        codes += [
            play_load(lake, number, rng.randrange(MOST_CALLS)),
            play_replay(lake, number, rng.randrange(MOST_CALLS)),
        ]
    record_property("kills", codes.count(KILLED))
    assert codes.count(KILLED) > KILLS
