"""The examples for orchestrators, as far as they run without one: their options, states, lines and tables."""

import ast
import json
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest
from click import Command, Context
from moto import mock_aws

from lakewriter.cli.main import main
from lakewriter.spec.load_ids import make_job_id
from tests.support.state_machine import client

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "orchestrators"
PAGE = (ROOT / "docs" / "orchestrators.md").read_text("utf-8")
PYTHON = sorted(EXAMPLES.glob("*.py"))


def list_options() -> set[str]:
    run = main.get_command(Context(main), "run")
    assert isinstance(run, Command)
    return {option for parameter in run.params for option in parameter.opts}


def test_page_names_every_example():
    files = {path.name for path in EXAMPLES.iterdir() if path.is_file()}
    assert set(re.findall(r"^\| `([a-z_.]+)` \|", PAGE, re.M)) == files


def test_mapping_of_the_page():
    rows = re.findall(r"^\| `([^`]+)`(?: \([^)]*\))? \| `([^`]+)` \|$", PAGE, re.M)
    assert len(rows) == 4
    assert [(run_id, make_job_id(run_id)) for run_id, _ in rows] == rows


@pytest.mark.parametrize("path", PYTHON, ids=lambda path: path.name)
def test_python_gives_options_that_there_are(path):
    texts = [node.value for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant)]
    given = {text for text in texts if isinstance(text, str) and re.fullmatch(r"--[a-z-]+", text)}
    assert given <= list_options()


MACHINE = json.loads((EXAMPLES / "step_functions.asl.json").read_text("utf-8"))
CHILD = {"ExecutionArn": "arn:e", "Error": "SOURCE_FAILED", "Cause": "there is no file.", "Status": "FAILED"}
ENDS = [
    # the state to begin with, its input, what the execution comes to
    (
        "GoOn",
        {"lake": {"load": "a", "rows": 7, "attempts": 1}},
        ("SUCCEEDED", '{"load":"a","rows":7,"attempts":1}', None),
    ),
    (
        "ReadFailure",
        {"failure": {"Error": "States.TaskFailed", "Cause": json.dumps(CHILD)}},
        ("FAILED", None, "SOURCE_FAILED"),
    ),
]


@pytest.mark.parametrize(("state", "given", "expected"), ENDS)
def test_states_after_the_load(state, given, expected):
    """The task itself is Step Functions' own integration; what follows goes by the output that its page documents."""
    client.cache_clear()
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        service = client("stepfunctions")
        role = "arn:aws:iam::123456789012:role/r"
        whole = service.create_state_machine(name="whole", definition=json.dumps(MACHINE), roleArn=role)
        assert whole["stateMachineArn"]
        states = {name: content for name, content in MACHINE["States"].items() if name != "LoadLake"}
        rest = {"StartAt": state, "States": {name: states[name] for name in _list_following(states, state)}}
        machine = service.create_state_machine(name="rest", definition=json.dumps(rest), roleArn=role)
        started = service.start_execution(stateMachineArn=machine["stateMachineArn"], input=json.dumps(given))
        ended = service.describe_execution(executionArn=started["executionArn"])
        while ended["status"] == "RUNNING":
            ended = service.describe_execution(executionArn=started["executionArn"])
    output = ended.get("output")
    assert (ended["status"], output and output.replace(" ", ""), ended.get("error")) == expected


def _list_following(states, state):
    names = [state]
    while (after := states[names[-1]].get("Next")) is not None:
        names.append(after)
    return names


CRON = [
    # exit codes of the command, one after the other; how often it runs, and what the line exits with
    ([0], 1, 0),
    ([75, 75, 0], 3, 0),
    ([75, 75, 75, 75], 4, 75),
    ([1], 1, 1),
    ([2], 1, 2),
]


@pytest.mark.parametrize(("codes", "times", "code"), CRON)
def test_line_of_cron(tmp_path, codes, times, code):
    """cron replaces an escaped percent sign, and gives the rest to a shell."""
    (line,) = [line for line in (EXAMPLES / "crontab").read_text("utf-8").splitlines() if not line.startswith("#")]
    command = line.split(" ", 5)[5].replace(r"\%", "%")
    (tmp_path / "codes").write_text("\n".join(map(str, codes)) + "\n", "utf-8")
    (tmp_path / "sleep").write_text("#!/bin/sh\n", "utf-8")
    (tmp_path / "lakewriter").write_text(
        f'#!/bin/sh\ncd {tmp_path}\necho "$@" >> calls\nc=$(sed -n "$(wc -l < calls)p" codes)\nexit $c\n', "utf-8"
    )
    for name in ("sleep", "lakewriter"):
        (tmp_path / name).chmod(stat.S_IRWXU)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", command], env=environment, check=False)
    calls = (tmp_path / "calls").read_text("utf-8").splitlines()
    assert (done.returncode, len(calls)) == (code, times)
    assert len(set(calls)) == 1
    assert re.fullmatch(r"run /opt/lake/lake\.yaml --scheduled-at \d{4}-\d\d-\d\d --quiet", calls[0])
