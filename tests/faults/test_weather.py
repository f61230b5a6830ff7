"""Loads through a bad network: a fifth of all calls fails somehow, or the answer to one kind of change is lost."""

import random
from collections import Counter

import pytest

from tests.faults.books import EVENTS, SCHEMA, Books
from tests.faults.gate import Fault, once
from tests.faults.process import Process
from tests.load.lakes import BUCKET, calls, completes, creates_upload, uploads_part

pytestmark = pytest.mark.spark

ROLE = "arn:aws:iam::123456789012:role/LakeWriter"


def a_fifth(seed: int):
    """Of the calls to each service; a fault follows from the seed and the number of the call."""
    rng = random.Random(seed)
    return lambda _: rng.choice(list(Fault)) if rng.random() < 0.2 else None


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(1, 11))
def test_a_fifth_of_all_calls_fails(lake, seed):
    lake.aws.role(ROLE, external_id="acme")
    books = Books(lake, iam_role_arn=ROLE, external_id="acme")
    reference = {table.table: (table.rows, table.files, table.feed) for table in lake.load("clean").tables}
    books.grow()
    with Process(lake.file, "a", lake.aws.url, weather=a_fifth(seed)) as process:
        assert process.wait() == 0, process.errors
    report = {table["table"]: (table["rows"], table["files"], table["feed"]) for table in process.report["tables"]}
    assert report == reference
    assert books.audit(again=["clean", "a"]).left_uploads == {}
    met = Counter(process.gate.met)
    assert set(met) == set(Fault), met
    assert {call.service for call in process.gate.calls} == {"s3", "glue", "sts"}


def test_creation_sent_again_leaves_no_upload(lake):
    books = Books(lake, EVENTS)
    lake.aws.drop_answer(creates_upload)
    assert lake.load("a").status == "done"
    assert books.audit(again=["a"]).left_uploads == {}


CHANGES = {
    # calls that change something and that tests of the commit do not lose the answers of
    "an upload begun": creates_upload,
    "a part uploaded": uploads_part,
    "columns added in Glue": calls("glue:UpdateTable"),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("fault", [Fault.DROP, Fault.CUT])
@pytest.mark.parametrize("match", CHANGES.values(), ids=CHANGES)
def test_answer_lost(lake, match, fault):
    books = Books(lake, EVENTS)
    assert lake.load("a").status == "done"
    glue = lake.aws.client("glue")
    table = glue.get_table(DatabaseName=SCHEMA, Name=EVENTS)["Table"]
    table["StorageDescriptor"]["Columns"][0]["Type"] = "smallint"
    kept = ("Name", "StorageDescriptor", "PartitionKeys", "TableType", "Parameters")
    glue.update_table(DatabaseName=SCHEMA, TableInput={name: table[name] for name in kept})
    books.grow()
    with Process(lake.file, "b", lake.aws.url, weather=once(match, fault)) as process:
        assert process.wait() == 0, process.errors
    assert process.gate.met == [fault]
    columns = glue.get_table(DatabaseName=SCHEMA, Name=EVENTS)["Table"]["StorageDescriptor"]["Columns"]
    assert columns[0]["Type"] == "int"
    assert books.audit(again=["a", "b"]).left_uploads == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("match", [completes, calls("glue:BatchCreatePartition"), calls("s3:GetObject")])
def test_each_fault_on_its_own(lake, match, fault):
    books = Books(lake, EVENTS)
    with Process(lake.file, "a", lake.aws.url, weather=once(match, fault)) as process:
        assert process.wait() == 0, process.errors
    assert process.gate.met == [fault]
    assert books.audit(again=["a"]).left_uploads == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize("match", [uploads_part, completes, calls("glue:CreateTable")])
def test_no_answer_for_longer_than_the_job_waits(lake, match):
    books = Books(lake, EVENTS)
    with Process(lake.file, "a", lake.aws.url, weather=once(match, Fault.STALL), stall_seconds=75) as process:
        assert process.wait() == 0, process.errors
    assert books.audit(again=["a"]).left_uploads == {}


@pytest.mark.exhaustive
def test_nothing_but_errors_ends_in_a_code_that_says_retry(lake):
    books = Books(lake, EVENTS)
    with Process(
        lake.file, "a", lake.aws.url, weather=lambda call: Fault.ERROR if completes(call) else None
    ) as process:
        assert process.wait(600) == 75, process.errors
    assert "COMMIT_UNKNOWN: " in process.errors
    assert lake.aws.objects(BUCKET)
    assert lake.load("a").status == "done"
    books.audit(again=["a"])
