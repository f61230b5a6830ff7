"""The command line without Spark: exit codes, what is printed, and never a traceback."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from job.__main__ import main
from tests.dialects.files import lake

ROOT = Path(__file__).parents[1]


def lakewriter(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def file(tmp_path, bucket):
    return lake(tmp_path, s3_bucket_name=bucket)


USAGE = [
    (["run", "missing.yaml"], 2, "SPEC_INVALID: missing.yaml cannot be read"),
    (["run"], 2, "Missing argument 'LAKE'"),
    (["runn", "lake.yaml"], 2, "No such command 'runn'"),
]


@pytest.mark.parametrize(("arguments", "code", "said"), USAGE)
def test_usage(arguments, code, said):
    result = lakewriter(*arguments)
    assert result.exit_code == code
    assert said in result.stderr


WRONG = [
    (["run", "FILE", "--job-id", "a b"], 2, "SPEC_INVALID: job id 'a b'"),
    (["verify", "FILE", "never"], 2, "SPEC_INVALID: load 'never' is committed in no table"),
    (["abandon", "FILE", "never", "--reason", "r"], 2, "SPEC_INVALID: load 'never' is pending in no table"),
    (["reset", "FILE", "accounts", "--reason", "r"], 2, "SPEC_INVALID: expected either --cursor VALUE or --no-cursor"),
    (["reset", "FILE", "other", "--no-cursor", "--reason", "r"], 2, "SPEC_INVALID: 'other' names 0 tables"),
    (["reset", "FILE", "accounts", "--cursor", "1", "--reason", "r"], 2, "has no cursor column"),
    (["status", "FILE", "--stage", "x"], 2, "SPEC_INVALID: lake.yaml has no stage 'x'"),
]


@pytest.mark.parametrize(("arguments", "code", "said"), WRONG)
def test_wrong(file, arguments, code, said):
    result = lakewriter(*(file if argument == "FILE" else argument for argument in arguments))
    assert (result.exit_code, said in result.stderr) == (code, True), result.stderr


def test_bad_file_is_told_line_by_line(tmp_path):
    file = lake(tmp_path, partition_strategy="HOURLY", upload_parallelism=0)
    done = subprocess.run(
        [sys.executable, "-m", "job", "plan", str(file)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == "SPEC_INVALID: lake.yaml has 2 problems:"
    assert len(done.stderr.splitlines()) == 3


def test_status(file):
    result = lakewriter("status", file, "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["tables"]["accounts"]["committed"] == 0


def test_check(file):
    result = lakewriter("check", file)
    assert (result.exit_code, "0 failed" in result.stdout) == (0, True), result.stdout


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
    result = lakewriter(command, lake(tmp_path, **({"s3_bucket_name": bucket} | settings)))
    assert result.exit_code == 1
    assert code in result.stdout + result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)


@pytest.mark.parametrize("action", ["s3:PutObject", "s3:ListBucket"])
def test_denied(aws, file, action):
    aws.deny(action)
    result = lakewriter("run", file)
    assert (result.exit_code, result.stderr.startswith("S3_ACCESS_DENIED: s3:")) == (1, True), result.stderr


def test_queries_without_a_destination(tmp_path, bucket):
    result = lakewriter("queries", lake(tmp_path, s3_bucket_name="no-such-bucket"))
    assert result.exit_code == 0
    assert "latest-job-id" in result.stdout
    assert "BUCKET_NOT_FOUND" in result.stderr


def test_schema():
    assert json.loads(lakewriter("schema").stdout)["properties"]["pipeline"] == {"title": "Pipeline", "type": "string"}
