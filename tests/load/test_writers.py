"""A pipeline that is new to a table which another one writes, as a renamed one is: refused until the file says so."""

import threading

import pytest
import yaml

from lakewriter.aws import Clients
from lakewriter.operate.planning import plan
from lakewriter.run import checks
from tests.load.lakes import BUCKET
from tests.load.refreshed import Refreshed
from tests.load.test_abandoned_refreshes import Overwritten


class Airbyte(Overwritten):
    def write(self, **changes):
        super().write(**{"mode": "append"} | changes)


def rename(lake, pipeline, **top):
    """The same file under another name."""
    path = lake.folder / "lake.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text("utf-8")) | {"pipeline": pipeline} | top), "utf-8")


def outcome(lake, job, *numbers):
    (table,) = lake.try_load(job, id=list(numbers)).tables
    return table.code or table.status


def records(aws):
    return sorted(key for key in aws.objects(BUCKET) if "/_lakewriter/_writers/" in key)


LAKES = {
    "files": lambda folder, aws: Refreshed(folder, aws, "none", mode="append"),
    "glue": lambda folder, aws: Refreshed(folder, aws, "glue", mode="append"),
    "iceberg": lambda folder, aws: Refreshed(folder, aws, "iceberg", mode="append"),
    "iceberg refreshed": lambda folder, aws: Refreshed(folder, aws, "iceberg"),
    "refreshed": lambda folder, aws: Refreshed(folder, aws, "glue"),
    "airbyte": lambda folder, aws: Airbyte(folder, aws, None),
    "airbyte overwritten": lambda folder, aws: Overwritten(folder, aws, None),
}


@pytest.fixture(params=LAKES)
def lake(request, tmp_path, aws, bucket):
    return LAKES[request.param](tmp_path, aws)


@pytest.mark.one_in(9)
def test_renamed_pipeline(lake):
    """Again and again, and without a trace in the table's data; under its own name it goes on."""
    assert outcome(lake, "a", 1) == "done"
    before = lake.keys()
    rename(lake, "renamed")
    for job in ("a", "b", "b"):
        (table,) = lake.try_load(job, id=[1]).tables
        assert (table.code, "pipeline crm writes it" in table.message) == ("NAME_COLLISION", True), table.message
        assert "set pipeline: crm again" in table.message
    assert lake.keys() == before
    clients, controls = Clients(lake.spec.access), lake.pipeline.controls
    (planned,) = plan(lake.spec, job_id=None, clients=clients, spark=lambda: lake.spark, controls=controls)
    assert "pipeline crm writes it" in str(planned.error)
    rename(lake, "crm")
    assert outcome(lake, "b", 2) == "done"


@pytest.mark.one_in(3)
def test_bucket_of_a_release_without_records(lake):
    """What lies there, or the catalog, tells whose it is."""
    assert outcome(lake, "a", 1) == "done"
    for key in records(lake.aws):
        lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    rename(lake, "renamed")
    assert outcome(lake, "a", 1) == "NAME_COLLISION"
    # A pipeline that has a state is no new one, with or without a record.
    rename(lake, "crm")
    assert outcome(lake, "b", 2) == "done"
    assert records(lake.aws) == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["files", "glue", "iceberg", "airbyte"])
def test_shared_table(tmp_path, aws, bucket, kind):
    lake = LAKES[kind](tmp_path, aws)
    assert outcome(lake, "a", 1) == "done"
    rename(lake, "other", shares_tables=True)
    assert outcome(lake, "b", 2) == "done"
    # It has a state by now.
    rename(lake, "other", shares_tables=False)
    assert outcome(lake, "c", 3) == "done"
    rename(lake, "crm")
    assert outcome(lake, "d", 4) == "done"
    assert len(records(aws)) == 1


def test_two_new_pipelines_at_once(tmp_path, aws, bucket, monkeypatch):
    """Both look, and neither sees the other's; the record has one of them."""
    first, second = tmp_path / "a", tmp_path / "b"
    lakes = []
    for folder, name in ((first, "a"), (second, "b")):
        folder.mkdir()
        lakes.append(LAKES["files"](folder, aws))
        rename(lakes[-1], name)
    both = threading.Barrier(2)
    look = checks.require_no_writer

    def wait(*arguments):
        look(*arguments)
        both.wait(timeout=60)

    monkeypatch.setattr(checks, "require_no_writer", wait)
    outcomes: dict[str, str] = {}

    def run(lake):
        outcomes[lake.spec.pipeline] = outcome(lake, "j", 1)

    threads = [threading.Thread(target=run, args=(lake,)) for lake in lakes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes.values()) == ["NAME_COLLISION", "done"]


def test_other_tables_of_other_pipelines(tmp_path, aws, bucket):
    """In one folder, and of one name in folders of their own."""
    lake = LAKES["files"](tmp_path, aws)
    assert outcome(lake, "a", 1) == "done"
    lake.write(table="orders")
    rename(lake, "other")
    assert outcome(lake, "a", 1) == "done"
    lake.destination = {"location": f"s3://{BUCKET}/elsewhere"}
    lake.write()
    rename(lake, "third")
    assert outcome(lake, "a", 1) == "done"


def test_pipeline_that_died_before_its_first_state(tmp_path, aws, bucket, monkeypatch):
    """Its own retry goes on; another one waits for a day."""
    lake = LAKES["files"](tmp_path, aws)
    aws.deny("s3:PutObject", "*/state.json")
    assert outcome(lake, "a", 1) != "done"
    assert len(records(aws)) == 1
    aws.allow_everything()
    rename(lake, "other")
    assert outcome(lake, "a", 1) == "NAME_COLLISION"
    rename(lake, "crm")
    assert outcome(lake, "a", 1) == "done"


def test_record_that_cannot_be_read(tmp_path, aws, bucket):
    lake = LAKES["files"](tmp_path, aws)
    assert outcome(lake, "a", 1) == "done"
    (key,) = records(aws)
    aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"{}")
    rename(lake, "other")
    assert outcome(lake, "a", 1) == "PENDING_UNRECOVERABLE"
