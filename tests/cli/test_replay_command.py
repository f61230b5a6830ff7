"""``lakewriter replay`` as a person uses it: what it prints, what it leaves, and what it refuses."""

import json

import pytest
from click.testing import CliRunner, Result

from lakewriter.cli.main import main
from tests.load.lakes import Lake
from tests.load.test_replay import TABLE, bad, ids, write_sums

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(tmp_path, aws, bucket, spark):
    return Lake(tmp_path, aws, spark)


def replay(lake: Lake, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["replay", str(lake.file), *arguments])


def test_replay_prints_the_report_of_its_load(lake):
    write_sums(lake)
    lake.load("monday")
    write_sums(lake, expect=[])
    done = replay(lake, TABLE, "--check", "range.amount", "--since", "monday", "--json")
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["job_id"].startswith("replay.")
    assert [(each["status"], each["rows"], each["feed"]) for each in report["tables"]] == [("done", 1, "rows")]
    assert "appended again" not in done.stderr
    assert ids(lake) == [1, 4, 5]
    assert len(bad(lake)) == 2
    again = replay(lake, TABLE, "--check", "range.amount", "--json")
    assert (again.exit_code, json.loads(again.stdout)["tables"]) == (0, [])
    assert "holds no rows of check 'range.amount': there is nothing to replay" in again.stderr
    # What the load history has of it.
    shown = CliRunner().invoke(main, ["history", str(lake.file), "--json"])
    assert [(each["job_id"], each["rows"]) for each in json.loads(shown.stdout)["loads"]] == [(report["job_id"], 1), (
        "monday", 2)]  # fmt: skip


REFUSED = [
    (["other"], "'other' is no table of this pipeline"),
    ([TABLE, "--since", "sunday"], "--since 'sunday' is not a committed load of supaflow_nyc_public.sums"),
]


@pytest.mark.parametrize(("arguments", "said"), REFUSED)
def test_what_is_not_there_is_refused(lake, arguments, said):
    write_sums(lake)
    done = replay(lake, *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
