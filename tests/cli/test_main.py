"""The command line without Spark: exit codes, what is printed, and never a traceback."""

import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from lakewriter.cli.main import main
from tests.dialects import test_lakewriter_s3 as lakewriter_s3
from tests.dialects.files import TABLE, lake

ROOT = Path(__file__).parents[2]


def lakewriter(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def in_production(folder, **settings):
    """A file whose prefix is that of the other tests: what a blank one asks of AWS, no stack with a prefix allows."""
    return lake(folder, **({"s3_path_prefix": "data/production"} | settings))


@pytest.fixture
def file(tmp_path, bucket):
    return in_production(tmp_path, s3_bucket_name=bucket)


USAGE = [
    (["run", "missing.yaml"], 2, "SPEC_INVALID: there is no file 'missing.yaml'."),
    (["run"], 2, "Missing argument 'LAKE'"),
    (["runn", "lake.yaml"], 2, "No such command 'runn'"),
    (["run", "lake.yaml", "--jobid", "a"], 2, "No such option '--jobid'"),
    (["verify", "lake.yaml"], 2, "SPEC_INVALID: expected either JOB, the id of a load, or --run-id, or --all"),
    (
        ["verify", "lake.yaml", "a", "--all"],
        2,
        "SPEC_INVALID: expected either JOB, the id of a load, or --run-id, or --all",
    ),
    (["abandon", "lake.yaml", "a"], 2, "Missing option '--reason'"),
    (["reset", "lake.yaml", "accounts", "--no-cursor"], 2, "Missing option '--reason'"),
    (["status", "."], 2, "SPEC_INVALID: '.' is a folder. Name a file in it."),
]


@pytest.mark.parametrize(("arguments", "code", "said"), USAGE)
def test_usage(arguments, code, said):
    result = lakewriter(*arguments)
    assert result.exit_code == code
    assert said in result.stderr


WRONG = [
    (["run", "FILE", "--job-id", "a b"], 2, "SPEC_INVALID: job id 'a b'"),
    (["run", "FILE", "--job-id", ""], 2, "SPEC_INVALID: job id ''"),
    (["run", "FILE", "--outcome", "../x"], 2, "SPEC_INVALID: outcome '../x'"),
    (["run", "FILE", "--scheduled-at", "noon"], 2, "SPEC_INVALID: --scheduled-at 'noon'"),
    (["plan", "FILE", "--job-id", ""], 2, "SPEC_INVALID: job id ''"),
    (["run", "FILE", "--job-id", "a" * 81], 2, "SPEC_INVALID: job id 'aaa"),
    (["verify", "FILE", "a/b"], 2, "SPEC_INVALID: job id 'a/b'"),
    (["verify", "FILE", "a", "--run-id", "b"], 2, "SPEC_INVALID: expected either JOB"),
    (["verify", "FILE", "--run-id", "x__1:2"], 2, "load 'x__1-2--2b2538e7f6f429f102effd4aa67a9732' is committed in no"),
    (["run", "FILE", "--run-id", " "], 2, "SPEC_INVALID: --run-id is blank."),
    (["run", "FILE", "--continuous", "--run-id", "a"], 2, "SPEC_INVALID: --run-id is for a single load"),
    (["abandon", "FILE", "../x", "--reason", "r"], 2, "SPEC_INVALID: job id '../x'"),
    (["verify", "FILE", "never"], 2, "SPEC_INVALID: load 'never' is committed in no table"),
    (["abandon", "FILE", "never", "--reason", "r"], 2, "SPEC_INVALID: load 'never' is pending in no table"),
    (["reset", "FILE", "accounts", "--reason", "r"], 2, "SPEC_INVALID: expected one of --cursor VALUE, "),
    (
        ["reset", "FILE", "accounts", "--cursor", "1", "--no-cursor", "--reason", "r"],
        2,
        "SPEC_INVALID: expected one of --cursor VALUE, --no-cursor, --backfill, --files-read, --files-unread, ",
    ),
    (["reset", "FILE", "other", "--no-cursor", "--reason", "r"], 2, "SPEC_INVALID: 'other' names 0 tables"),
    (["reset", "FILE", "accounts", "--cursor", "1", "--reason", "r"], 2, "has no cursor column"),
    (["run", "FILE", "--continuous"], 2, "SPEC_INVALID: a continuous run needs a place for its checkpoints."),
    (["run", "FILE", "--continuous", "--job-id", "a"], 2, "SPEC_INVALID: --job-id is for a single load"),
    (["status", "FILE", "--stage", "x"], 2, "deployment.stages: there is no stage 'x'; known stages: none."),
]


@pytest.mark.parametrize(("arguments", "code", "said"), WRONG)
def test_wrong(file, arguments, code, said):
    result = lakewriter(*(file if argument == "FILE" else argument for argument in arguments))
    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr


CURSORS = [
    # arguments after `reset FILE accounts --reason r`, exit code, what is said
    (["--cursor", "1"], 2, "SPEC_INVALID: table accounts has no cursor yet. Give its type by --type."),
    (["--cursor", "x", "--type", "int64"], 2, "SPEC_INVALID: cursor 'x' is not of type 'int64'."),
    (["--cursor", "1", "--type", "number"], 2, "SPEC_INVALID: cursor '1' is not of type 'number'."),
    (["--cursor", "41", "--type", "int64"], 0, "accounts: cursor set to 41, was none"),
    (["--no-cursor"], 0, "accounts: cursor taken away, was none"),
    (["--backfill"], 0, "accounts: backfill 1 begun"),
]


@pytest.mark.parametrize(("arguments", "code", "said"), CURSORS)
def test_reset(tmp_path, bucket, arguments, code, said):
    file = in_production(tmp_path, s3_bucket_name=bucket, tables=[TABLE | {"cursor": "c"}])
    result = lakewriter("reset", file, "accounts", "--reason", "r", *arguments)
    assert (result.exit_code, said in result.output) == (code, True), result.output


def test_bad_file_is_told_line_by_line(tmp_path):
    file = in_production(tmp_path, partition_strategy="HOURLY", upload_parallelism=0)
    done = subprocess.run(
        [sys.executable, "-m", "lakewriter", "plan", str(file)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "SPEC_INVALID: lake.yaml has 2 problems:"
    assert len(done.stderr.splitlines()) == 3


def test_status(file):
    result = lakewriter("status", file, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["tables"]["accounts"]["committed"] == 0


def test_check(file):
    (file.parent / "a.csv").write_text("id,name\n1,Ada\n", "utf-8")
    result = lakewriter("check", file)
    assert (result.exit_code, "0 failed" in result.stdout) == (0, True), result.stdout
    seen = "csv, 1 file, 14 B, 2 columns: _c0 string, _c1 string (2 rows looked at)."
    assert f"✓ source accounts: {seen}" in result.stdout
    assert "! source accounts: table 'accounts': the first row of" in result.stdout


def test_check_of_a_source_that_is_not_there(file):
    result = lakewriter("check", file)
    assert result.exit_code == 1
    assert f"✗ source accounts: SOURCE_FAILED: table 'accounts': there is no '{file.parent}/a.csv'." in result.stdout
    assert lakewriter("check", file, "--no-sources").exit_code == 0


BROKEN = [
    ({"s3_bucket_name": "no-such-bucket"}, "BUCKET_NOT_FOUND"),
    ({"bucket_region": "eu-west-1"}, "BUCKET_REGION_MISMATCH"),
    ({"iam_role_arn": "arn:aws:iam::123456789012:role/No", "role_wait_seconds": 0}, "ROLE_NOT_ASSUMABLE"),
    (
        {"iam_role_arn": "arn:aws:iam::123456789012:role/L", "external_id": "${env:NOT_THERE}"},
        "SECRET_UNRESOLVED",
    ),
]


@pytest.mark.parametrize(("settings", "code"), BROKEN)
@pytest.mark.parametrize("command", ["check", "status", "run"])
def test_destination_out_of_reach(tmp_path, bucket, settings, code, command):
    result = lakewriter(command, in_production(tmp_path, **({"s3_bucket_name": bucket} | settings)))
    assert result.exit_code == 1
    assert code in result.stdout + result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_run_leaves_its_outcome(aws, file):
    assert lakewriter("run", file, "--job-id", "a b", "--outcome", "n").exit_code == 2
    (body,) = (body for key, body in aws.objects("acme-lake").items() if key.endswith("_lakewriter/p/runs/n.json"))
    assert (json.loads(body)["code"], json.loads(body)["transient"]) == ("SPEC_INVALID", False)


@pytest.mark.parametrize("action", ["s3:PutObject", "s3:ListBucket"])
def test_denied(aws, file, action):
    aws.deny(action)
    result = lakewriter("run", file)
    assert (result.exit_code, result.stderr.startswith("S3_ACCESS_DENIED: s3:")) == (1, True), result.stderr


def test_queries_without_a_destination(tmp_path, bucket):
    result = lakewriter("queries", in_production(tmp_path, s3_bucket_name="no-such-bucket"), "--look")
    assert result.exit_code == 0
    assert "latest-job-id" in result.stdout
    assert "BUCKET_NOT_FOUND" in result.stderr


def test_queries_ask_no_service(tmp_path, monkeypatch):
    def ask(*_):
        raise AssertionError("asked")

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", ask)
    result = lakewriter("queries", in_production(tmp_path, s3_bucket_name="no-such-bucket"))
    assert (result.exit_code, "latest-job-id" in result.stdout, "BUCKET" in result.stderr) == (0, True, False)


def test_queries_do_not_wait_for_a_bucket_that_is_silent(tmp_path, monkeypatch, bucket):
    release = threading.Event()
    monkeypatch.setattr("lakewriter.cli.queries_view.LOOK_SECONDS", 0.0)
    monkeypatch.setattr("lakewriter.operate.context.Context.controls", lambda _: release.wait() and {})
    result = lakewriter("queries", in_production(tmp_path, s3_bucket_name=bucket), "--look")
    release.set()
    assert (result.exit_code, "latest-job-id" in result.stdout) == (0, True)
    assert "the bucket has not answered for 0 s" in result.stderr


def test_queries_say_that_glue_is_off(file, bucket, tmp_path):
    off = lakewriter("queries", file, "--json")
    assert "Glue, which is off" in off.stderr
    printed = json.loads(off.stdout)["queries"]
    assert {query["table"] for query in printed} == {"accounts", "all"}
    assert {tuple(query) for query in printed} == {("table", "title", "sql", "engine")}
    on = lakewriter("queries", in_production(tmp_path, s3_bucket_name=bucket, update_aws_glue_catalog=True))
    assert (on.stderr, "FROM supaflow.accounts" in on.stdout) == ("", True)


def test_queries_of_one_engine(file, bucket):
    of_duckdb = json.loads(lakewriter("queries", file, "--engine", "duckdb", "--json").stdout)["queries"]
    assert {query["engine"] for query in of_duckdb} == {"duckdb"}
    both = lakewriter("queries", file, "--engine", "trino", "--engine", "spark")
    assert both.stderr == (
        "warning: no SQL for Trino: files without a catalog are no tables to them; put the tables in AWS Glue\n"
        "views alone, for the program that reads them; --no-views prints all statements\n"
    )
    whole = lakewriter("queries", file, "--engine", "spark", "--no-views")
    assert (whole.stderr, "SELECT" in whole.stdout, "Query a table" in both.stdout) == ("", True, False)
    assert "-- Spark, accounts: Query a table\n" in whole.stdout
    assert "-- Spark, accounts: Make a view of the files\n" in both.stdout
    assert lakewriter("queries", file, "--engine", "presto").exit_code == 2


def test_check_as_json(tmp_path, aws):
    result = lakewriter("check", in_production(tmp_path, s3_bucket_name="no-such-bucket"), "--json")
    failed = [finding for finding in json.loads(result.stdout)["findings"] if finding["status"] == "failed"]
    assert (result.exit_code, failed[0]["code"]) == (1, "BUCKET_NOT_FOUND")


def test_schema():
    pipeline = json.loads(lakewriter("schema").stdout)["properties"]["pipeline"]
    assert (pipeline["type"], pipeline["description"][:19]) == ("string", "The pipeline's name")


def test_commands_start_without_what_few_loads_need():
    """Each of these takes half a second or more to import."""
    work = "lakewriter.cli.run_load, lakewriter.cli.status_view"
    code = f"import sys, {work}; print([name for name in sys.argv[1:] if name in sys.modules])"
    slow = ["pandas", "datafusion", "pyiceberg.catalog", "pyiceberg.io.pyarrow"]
    done = subprocess.run([sys.executable, "-c", code, *slow], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


CHECKED = """\
✓ identity: the credentials are those of arn:aws:sts::123456789012:user/moto.
✓ bucket: bucket 'acme-lake' exists in us-east-1.
✓ clock: clock and store differ by N s.
✓ requester pays: the bucket does not make its requesters pay.
✓ list: keys under 'data/production/' can be listed.
✓ put: objects can be created under 'data/production/_lakewriter/orders'.
✓ conditional write: the store enforces conditions on PutObject.
✓ read: objects read as they were written; they are stored as they are.
✓ multipart upload: uploads can be created, filled and completed.
✓ conditional completion: the store enforces conditions on CompleteMultipartUpload.
✓ list uploads: incomplete uploads can be listed.
✓ abort upload: uploads can be aborted.
✓ delete: objects can be deleted; the probes' own are gone.
! lifecycle: no lifecycle rule aborts incomplete multipart uploads.
    Add a lifecycle rule that aborts incomplete multipart uploads after 30 days: \
what a killed load left staged is invisible, and is paid for until then.
✓ pending loads: no load has been pending for 15 days.
! second loads: each load appends all rows of supaflow_public.orders again.
    A cursor, read: {files: new}, or a mode that replaces rows keeps them from coming again. \
Or allow it: repeated: allow.
✓ places of tables: no load is refused for what lies where its table is.
✓ glue database supaflow_public: database 'supaflow_public' does not exist yet; the \
first load creates it (glue:CreateDatabase cannot be tried without creating it.).
✓ glue write supaflow_public: tables and partitions of 'supaflow_public' can be written
✓ glue table supaflow_public.orders: table 'supaflow_public.orders' does not exist yet; the first load creates it.
- policies: the file names no role that writes: CloudFormation names the role that the stacks make.
✓ source supaflow_public.orders: csv, 1 file, 8 B, 2 columns: _c0 string, _c1 string (1 row looked at).
19 ok, 0 failed, 2 warning, 1 skipped
"""


def test_check_of_a_destination_without_a_vendor(tmp_path, bucket):
    path = lakewriter_s3.lake(tmp_path, location=f"s3://{bucket}/data/production", catalog="glue", database="supaflow")
    (tmp_path / "a.csv").write_text("id,name\n", "utf-8")
    result = lakewriter("check", path)
    assert result.exit_code == 0, result.stdout
    assert re.sub(r"differ by \d+ s", "differ by N s", result.stdout) == CHECKED


def test_commands_of_a_remedy_name_the_file(file):
    """They can be pasted, with the options that name the same pipeline."""
    done = CliRunner().invoke(main, ["verify", str(file), "never"])
    assert done.stderr.endswith(f"lakewriter history {file} lists its loads.\n")
    done = CliRunner().invoke(main, ["verify", str(file), "never", "--json"])
    assert json.loads(done.stdout)["error"]["remedy"] == f"lakewriter history {file} lists its loads."
