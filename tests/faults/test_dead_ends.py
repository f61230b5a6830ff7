"""Loads that cannot go on: each ends in its code with nothing half done, and a person gets the pipeline going again."""

import json

import pytest
from click.testing import CliRunner

from lakewriter.cli.main import main
from lakewriter.errors import RoleNotAssumableError
from lakewriter.report import TableResult
from tests.faults.books import ENTRIES, EVENTS, SCHEMA, Books
from tests.faults.gate import Gate
from tests.load.lakes import BUCKET, PREFIX, Lake, calls, completes

pytestmark = pytest.mark.spark

ROLE = "arn:aws:iam::123456789012:role/LakeWriter"
OTHER = "arn:aws:iam::123456789012:role/Other"
TABLE = f"{SCHEMA}.{EVENTS}"


def command(lake: Lake, verb: str, *arguments: str) -> tuple[int, str]:
    """Exit code, and standard output or the first line of an error."""
    done = CliRunner().invoke(main, [verb, str(lake.file), *arguments])
    return done.exit_code, done.stdout or done.stderr.splitlines()[0]


def pending(lake: Lake) -> str | None:
    """What ``status`` says is pending: the load and its phase."""
    code, text = command(lake, "status", "--json")
    assert code == 0
    found = json.loads(text)["tables"][TABLE]["pending"]
    return found and f"{found['job_id']} {found['phase']}"


def nothing_is_left(lake: Lake) -> None:
    """No object, no upload, no table, nothing pending and the cursor where it was."""
    assert (lake.data(), lake.aws.uploads(BUCKET), pending(lake)) == ({}, [], None)
    glue = lake.aws.client("glue")
    assert [each["Name"] for each in glue.get_databases()["DatabaseList"]] == []
    assert lake.control(TABLE).state.read().cursor is None


def through_gate(lake: Lake, environment: pytest.MonkeyPatch, match, do, *, after: int = 0) -> TableResult:
    """Load ``a``, and what the table's result is when ``do`` happens before the matching call."""
    with Gate(lake.aws.url) as gate, environment.context() as own:
        own.setenv("AWS_ENDPOINT_URL", gate.url)
        gate.at(match, do, after=after)
        (result,) = lake.load("a").tables
    return result


@pytest.mark.exhaustive
def test_stranger_at_an_intended_key(events):
    lake, client = events.lake, events.lake.aws.client("s3")
    lake.cut_off("a", completes)
    key = lake.aws.uploads(BUCKET)[0][0]
    client.put_object(Bucket=BUCKET, Key=key, Body=b"a stranger's")
    assert pending(lake) == "a intended"
    assert lake.load("a").tables[0].code == "KEY_EXISTS"
    assert lake.aws.objects(BUCKET)[key] == b"a stranger's"
    client.delete_object(Bucket=BUCKET, Key=key)
    nothing_is_left(lake)
    assert lake.load("a").status == "done"
    events.audit(again=["a"])


@pytest.mark.exhaustive
@pytest.mark.parametrize("after", [0, 1], ids=["before a completion", "between two"])
def test_upload_vanished_after_the_intent(events, after):
    lake = events.lake
    lake.cut_off("a", completes, after=after)
    for key, upload in lake.aws.uploads(BUCKET):
        lake.aws.client("s3").abort_multipart_upload(Bucket=BUCKET, Key=key, UploadId=upload)
    assert command(lake, "abandon", "a", "--reason", "its uploads are gone")[0] == 0
    nothing_is_left(lake)
    assert command(lake, "verify", "a") == (
        2,
        "SPEC_INVALID: load 'a' is committed in no table of this pipeline. lakewriter history LAKE lists its loads.",
    )
    assert lake.load("a").status == "done"
    events.audit(again=["a"])


@pytest.mark.exhaustive
def test_upload_vanishes_between_intent_and_completion(events, monkeypatch):
    lake, client = events.lake, events.lake.aws.client("s3")

    def vanish() -> None:
        for key, upload in lake.aws.uploads(BUCKET):
            client.abort_multipart_upload(Bucket=BUCKET, Key=key, UploadId=upload)

    assert through_gate(lake, monkeypatch, completes, vanish).code == "STAGED_LOST"
    nothing_is_left(lake)
    assert lake.load("a").status == "done"
    events.audit(again=["a"])


@pytest.fixture
def role(lake) -> Books:
    """The incremental table alone, written with a role's credentials; a load died before Glue had its partition."""
    lake.aws.role(ROLE)
    lake.aws.role(OTHER)
    books = Books(lake, EVENTS, iam_role_arn=ROLE, role_wait_seconds=0)
    lake.cut_off("a", calls("glue:BatchCreatePartition"))
    lake.aws.role(ROLE, external_id="changed by somebody")
    with pytest.raises(RoleNotAssumableError):
        lake.load("b")
    assert command(lake, "status")[1].startswith("ROLE_NOT_ASSUMABLE: ")
    lake.write(ENTRIES[EVENTS], iam_role_arn=OTHER, role_wait_seconds=0)
    assert lake.load("b").tables[0].code == "PENDING_UNRECOVERABLE"
    assert (pending(lake), lake.aws.uploads(BUCKET)) == ("a uploaded", [])
    return books


@pytest.mark.exhaustive
def test_role_works_again(role):
    role.lake.aws.role(ROLE)
    role.grow()
    assert role.lake.load("b").status == "done"
    role.audit(again=["a", "b"])


@pytest.mark.exhaustive
def test_role_gone_for_good(role):
    lake, client = role.lake, role.lake.aws.client("s3")
    code, text = command(lake, "abandon", "a", "--reason", "the role is gone")
    assert (code, "closed as it is: 2 objects with 12 rows left visible" in text) == (0, True)
    assert command(lake, "verify", "a")[0] == 1
    assert lake.load("b").tables[0].rows == 0
    for key in lake.data():
        client.delete_object(Bucket=BUCKET, Key=f"{PREFIX}/{key}")
    assert command(lake, "reset", EVENTS, "--no-cursor", "--reason", "they are read again") == (
        0,
        f"{TABLE}: cursor taken away, was 11\n",
    )
    assert lake.load("c").tables[0].rows == 12
    assert command(lake, "verify", "c")[0] == 0
    assert lake.rows("SELECT _supa_job_id, count(*) FROM t GROUP BY ALL", f"{SCHEMA}/{EVENTS}") == [("c", 12)]


@pytest.mark.exhaustive
def test_database_dropped_while_a_load_is_pending(events):
    events.lake.cut_off("a", calls("glue:BatchCreatePartition"))
    events.lake.aws.client("glue").delete_database(Name=SCHEMA)
    assert events.lake.load("b").status == "done"
    events.audit(again=["a", "b"])


@pytest.mark.exhaustive
def test_database_dropped_before_it_is_read_back(events, monkeypatch):
    lake, glue = events.lake, events.lake.aws.client("glue")
    found = through_gate(
        lake, monkeypatch, calls("glue:GetPartition"), lambda: glue.delete_database(Name=SCHEMA), after=1
    )
    assert found.code == "COMMIT_UNKNOWN"
    assert (pending(lake), lake.aws.uploads(BUCKET)) == ("a uploaded", [])
    assert lake.load("a").status == "done"
    events.audit(again=["a"])


@pytest.mark.exhaustive
def test_database_dropped_and_not_to_be_made_again(events):
    lake = events.lake
    assert lake.load("a").status == "done"
    lake.aws.client("glue").delete_database(Name=SCHEMA)
    lake.aws.deny("glue:CreateDatabase")
    events.grow()
    assert lake.load("b").tables[0].code == "GLUE_ACCESS_DENIED"
    assert (pending(lake), lake.aws.uploads(BUCKET)) == ("b uploaded", [])
    code, text = command(lake, "abandon", "b", "--reason", "the database is made by others")
    assert (code, "closed as it is: 2 objects with 12 rows left visible" in text) == (0, True)
    lake.aws.allow_everything()
    events.grow()
    assert lake.load("c").status == "done"
    assert [command(lake, "verify", job)[0] for job in "abc"] == [1, 1, 0]
    assert lake.rows("SELECT count(*), count(DISTINCT id) FROM t", f"{SCHEMA}/{EVENTS}") == [(36, 36)]
