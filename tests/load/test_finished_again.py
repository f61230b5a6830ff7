"""A finished load that is run again: its page, its record, its history and all other objects are what they were."""

import json

import pytest
from click.testing import CliRunner

from lakewriter.api.pipeline_file import Opened
from lakewriter.aws import Clients
from lakewriter.cli.main import main
from lakewriter.receipt import Batch
from lakewriter.run.kinds import MicroBatch
from lakewriter.run.loader import load
from lakewriter.source.feed import open_feed
from tests.load.lakes import BUCKET, Lake, table
from tests.load.materializations import Materialization, binding

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(tmp_path, aws, bucket, spark):
    lake = Lake(tmp_path, aws, spark)
    lake.csv("a.csv", "id\n1\n2\n")
    lake.csv("b.csv", "id\n3\n")
    lake.write(table("orders", "a.csv"), table("users", "b.csv"), update_aws_glue_catalog=None)
    return lake


def stored(lake):
    """Every object with its content and when it was written."""
    listed = lake.aws.client("s3").list_objects_v2(Bucket=BUCKET)["Contents"]
    times = {entry["Key"]: entry["LastModified"] for entry in listed}
    return {key: (body, times[key]) for key, body in lake.aws.objects(BUCKET).items()}


def invoke(lake, *arguments):
    result = CliRunner().invoke(main, [arguments[0], str(lake.file), *arguments[1:]])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.one_in(3)
@pytest.mark.parametrize("options", [(), ("--json",), ("--quiet",)])
def test_finished_load_again(lake, options):
    assert Opened(lake.file, None).load("a").status == "done"
    assert Opened(lake.file, None).load("b").status == "done"
    before, history = stored(lake), invoke(lake, "history", "--json")
    assert sum(key.endswith(("report.html", "run/record.json")) for key in before) == 4
    for _ in range(2):
        printed = invoke(lake, "run", "--job-id", "a", *options)
        if options == ("--json",):
            assert [each["status"] for each in json.loads(printed)["tables"]] == ["already_done", "already_done"]
    assert stored(lake) == before
    assert invoke(lake, "history", "--json") == history
    assert invoke(lake, "show", "a", "--json") == invoke(lake, "show", "a", "--json")


def test_load_that_was_finished_in_two_attempts(lake):
    """The second attempt says what both came to; the third one says nothing."""
    (lake.folder / "b.csv").unlink()
    assert Opened(lake.file, None).load("a").status == "failed"
    lake.csv("b.csv", "id\n3\n")
    assert Opened(lake.file, None).load("a").status == "done"
    before = stored(lake)
    records = [json.loads(body) for key, (body, _) in before.items() if key.endswith("run/record.json")]
    assert sorted(each["status"] for each in records) == ["done", "failed"]
    invoke(lake, "run", "--job-id", "a", "--json")
    assert stored(lake) == before


def test_one_table_of_a_finished_load(lake):
    """As after a table was taken out of the file, and put back."""
    assert Opened(lake.file, None).load("a").status == "done"
    before = stored(lake)
    lake.write(table("users", "b.csv"), update_aws_glue_catalog=None)
    invoke(lake, "run", "--job-id", "a")
    assert stored(lake) == before
    lake.csv("c.csv", "id\n4\n")
    lake.write(table("users", "b.csv"), table("more", "c.csv"), update_aws_glue_catalog=None)
    (users, more) = Opened(lake.file, None).load("a").tables
    assert (users.status, more.status) == ("already_done", "done")
    assert len([key for key in stored(lake) if key.endswith("begin.json")]) == 2


def test_batch_that_is_done(tmp_path, aws, bucket, spark):
    """Spark repeats the last batch where its checkpoint does not tell of its end, even once its report is gone."""
    lake = Materialization(tmp_path, aws, spark)
    lake.write(binding("changes", "in.jsonl", primary_key=["id"]), checkpoint="checkpoint")
    lake.documents("in.jsonl", [{"id": 1}])
    spec = lake.spec

    def run(number):
        kind = MicroBatch(Batch("q", number), None, open_feed)
        job_id = kind.batch.job_id
        return load(spec, job_id=job_id, clients=Clients(spec.access), spark=lambda: spark, kind=kind).tables[0].status

    assert [run(0), run(1)] == ["done", "done"]
    before = stored(lake)
    assert run(1) == "already_done"
    assert stored(lake) == before
    report = next(key for key in before if key.endswith("-0000000001/changes.report.json"))
    aws.client("s3").delete_object(Bucket=BUCKET, Key=report)
    assert run(1) == "already_done"
    assert stored(lake) == {key: content for key, content in before.items() if key != report}
