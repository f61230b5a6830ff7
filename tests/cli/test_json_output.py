"""``--json``: one object on standard output however a command ends, and always of the published schema."""

import json
import os
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from lakewriter.cli.main import main
from lakewriter.cli.output_schemas import make_output_schema
from lakewriter.cli.schema_command import PRINTED
from lakewriter.operate import context
from tests.dialects.files import lake
from tests.load.lakes import BUCKET, Lake, table

ROOT = Path(__file__).parents[2]
EVENTS = "id,at\n1,5\n2,7\n"


def ask(*arguments):
    """The exit code and the one object of a command, which is of its schema without any other field."""
    done = CliRunner().invoke(main, [*map(str, arguments), "--json"], prog_name="lakewriter")
    content = json.loads(done.stdout)
    command = next((str(word) for word in arguments if word in PRINTED), "run")
    for is_open in (True, False):
        jsonschema.validate(content, make_output_schema(command, PRINTED[command], is_open=is_open))
    assert (content["error"] is None) == (done.exit_code == 0)
    if content["error"] is not None:
        assert content["error"]["exit_code"] == done.exit_code
    return done.exit_code, content


@pytest.fixture
def file(tmp_path, bucket):
    return lake(tmp_path, s3_bucket_name=bucket, s3_path_prefix="data/production")


@pytest.mark.parametrize("command", PRINTED)
def test_published_schemas_are_schemas(command):
    done = CliRunner().invoke(main, ["schema", "--of", command])
    schema = json.loads(done.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema == make_output_schema(command, PRINTED[command])


FAILURES = [
    # arguments, the command that the object names, the beginning of the message, its remedy
    (["run"], "run", "Missing argument 'LAKE'", "See 'lakewriter run --help'."),
    (["run", "FILE", "--jobid", "a"], "run", "No such option '--jobid'", "See 'lakewriter run --help'."),
    (["run", "FILE", "--sync-id", "x"], "run", "Invalid value for '--sync-id'", "See 'lakewriter run --help'."),
    (["runn", "FILE"], "", "No such command 'runn'", "See 'lakewriter --help'."),
    (["completion", "bash"], "completion", "No such option '--json'", "See 'lakewriter completion --help'."),
    (["abandon", "FILE", "a"], "abandon", "Missing option '--reason'", "See 'lakewriter abandon --help'."),
    (["mend", "abandon", "FILE", "a"], "mend abandon", "Missing option '--reason'", "See 'lakewriter mend abandon --"),
    (["mend", "undoo"], "mend", "No such command 'undoo'. Did you mean 'undo'?", "See 'lakewriter mend --help'."),
    (["mend", "reset", "FILE", "none", "--no-cursor", "--reason", "r"], "mend reset", "'none' names 0 tables", ""),
    (["run", "none.yaml"], "run", "there is no file 'none.yaml'", "The folder has: action.yml."),
    (["plan", "none.yaml"], "plan", "there is no file 'none.yaml'", "The folder has: action.yml."),
    (["check", "none.yaml"], "check", "there is no file 'none.yaml'", "The folder has: action.yml."),
    (["status", "none.yaml"], "status", "there is no file 'none.yaml'", "The folder has: action.yml."),
    (["policy", "none.yaml"], "policy", "there is no file 'none.yaml'", "The folder has: action.yml."),
    (["queries", "none.yaml"], "queries", "there is no file 'none.yaml'", "The folder has: action.yml."),
    (["verify", "none.yaml", "a"], "verify", "there is no file 'none.yaml'", "The folder has: action.yml."),
    (["verify", "FILE"], "verify", "expected either JOB", ""),
    (["history", "FILE", "--table", "none"], "history", "--table 'none' is no table of this pipeline.", "Expected "),
    (["show", "FILE"], "show", "pipeline p has no load whose records are kept.", "Load it first"),
    (["show", "FILE", "never"], "show", "load 'never' has no records in pipeline p.", "lakewriter history"),
    (["verify", "FILE", "never"], "verify", "load 'never' is committed in no table", ""),
    (["run", "FILE", "--job-id", "a b"], "run", "job id 'a b' cannot be part of a key", ""),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("arguments", "command", "message", "remedy"), FAILURES)
def test_failure_before_there_is_a_report(file, arguments, command, message, remedy):
    code, content = ask(*(file if word == "FILE" else word for word in arguments))
    error = content.pop("error")
    assert content == {"version": 1, "command": command, "status": "failed", "job_id": None}
    assert (code, error["code"], error["transient"], error["message"][: len(message)]) == (
        2,
        "SPEC_INVALID",
        False,
        message,
    )
    assert error["remedy"].startswith(remedy)


def test_problems_of_the_file_one_by_one(tmp_path):
    _, content = ask("run", lake(tmp_path, partition_strategy="HOURLY", upload_parallelism=0))
    error = content["error"]
    assert (error["message"], len(error["problems"])) == ("lake.yaml has 2 problems:", 2)


def test_fault_of_the_program(file, monkeypatch):
    def fail(*_):
        raise KeyError("gone")

    monkeypatch.setattr(context.Context, "controls", fail)
    code, content = ask("status", file)
    assert (code, content["command"], content["error"]["code"]) == (1, "status", "INTERNAL")
    assert content["error"]["message"] == "the command: KeyError: 'gone'."


COMMANDS = ["check --no-sources", "history", "status", "policy --account 123456789012", "queries"]


@pytest.mark.parametrize("command", COMMANDS)
def test_success(file, command):
    verb, *options = command.split()
    assert ask(verb, file, *options)[0] == 0


def test_check_that_fails(tmp_path, aws):
    code, content = ask("check", lake(tmp_path, s3_bucket_name="no-such-bucket"))
    failed = next(finding for finding in content["findings"] if finding["status"] == "failed")
    error = content["error"]
    assert (code, error["code"], error["message"], error["remedy"]) == (
        1,
        "BUCKET_NOT_FOUND",
        failed["message"],
        failed["remedy"],
    )


STOPS = [("status", signal.SIGTERM, 143), ("check", signal.SIGINT, 130), ("queries --look", signal.SIGHUP, 129)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("command", "number", "code"), STOPS)
def test_signal_while_a_service_does_not_answer(tmp_path, command, number, code):
    verb, *options = command.split()
    silent = socket.create_server(("127.0.0.1", 0))
    silent.settimeout(60)
    environment = os.environ | {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{silent.getsockname()[1]}",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
    }
    file = lake(tmp_path, s3_bucket_name="acme-lake", update_aws_glue_catalog=True)
    with (
        silent,
        subprocess.Popen(
            [sys.executable, "-m", "lakewriter", verb, str(file), *options, "--json"],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A run of the tests under nohup ignores it, and so would what it starts.
            preexec_fn=partial(signal.signal, signal.SIGHUP, signal.SIG_DFL),
        ) as process,
    ):
        silent.accept()
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    content, name = json.loads(out), number.name
    assert (process.returncode, content["command"], content["error"]) == (
        code,
        verb,
        {
            "code": "STOPPED",
            "message": f"stopped by {name}.",
            "remedy": "Run the same command again.",
            "problems": [],
            "notes": [],
            "transient": True,
            "exit_code": code,
        },
    )
    assert f"stopped by {name}" in err


@pytest.fixture
def events(tmp_path, aws, bucket, spark) -> Lake:
    made = Lake(tmp_path, aws, spark)
    made.write(table("events", made.csv("events.csv", EVENTS), cursor="at"))
    return made


def test_draft(tmp_path):
    (tmp_path / "orders.csv").write_text("order_id\n1\n2\n", "utf-8")
    code, content = ask("init", tmp_path / "orders.csv", "--output", tmp_path / "lake.yaml")
    assert (code, content["tables"], content["problems"]) == (0, ["orders"], [])
    assert ask("init", tmp_path / "orders.csv", "--output", "-")[0] == 2


@pytest.mark.spark
def test_repairs(events: Lake):
    assert ask("run", events.file, "--job-id", "a")[0] == 0
    code, content = ask("mend", "reset", events.file, "events", "--cursor", "5", "--reason", "r")
    assert (code, content["tables"][0]["table"].rpartition(".")[2]) == (0, "events")
    assert ask("abandon", events.file, "a", "--reason", "r")[0] == 2


@pytest.mark.spark
def test_whole_loads(events: Lake):
    file = events.file
    assert ask("plan", file)[0] == 0
    code, report = ask("run", file, "--job-id", "a")
    assert (code, report["job_id"], report["tables"][0]["rows"]) == (0, "a", 2)
    assert ask("status", file)[0] == 0
    assert ask("verify", file, "a")[0] == 0
    assert ask("verify", file, "--all")[0] == 0
    client = events.aws.client("s3")
    client.delete_object(Bucket=BUCKET, Key=report["tables"][0]["keys"][0])
    for loads in ("a", "--all"):
        code, content = ask("verify", file, loads)
        assert (code, content["error"]["code"]) == (1, "STAGED_LOST")


@pytest.mark.spark
def test_load_that_fails(events: Lake):
    events.write(table("events", str(events.folder / "none.csv"), cursor="at"))
    code, plan = ask("plan", events.file)
    assert (code, plan["error"]["code"]) == (1, "SOURCE_FAILED")
    planned = f"{plan['error']['code']}: {plan['error']['message']} {plan['error']['remedy']}"
    assert (planned, bool(plan["error"]["remedy"])) == (plan["tables"][0]["error"], True)
    code, report = ask("run", events.file, "--job-id", "a")
    (failed,) = report["tables"]
    error = report["error"]
    assert (code, error["code"], f"{error['message']} {error['remedy']}".strip()) == (
        1,
        "SOURCE_FAILED",
        failed["message"],
    )
    assert error["remedy"] == (failed["remedy"] or "")
