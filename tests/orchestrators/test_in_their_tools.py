"""The examples in Airflow and Dagster, each in an environment of its own: what ends well, is retried, or fails.

Each tool calls a stand-in for ``lakewriter`` that answers as told, since only the tool's part is in question here;
``test_examples.py`` holds what the real command answers.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from uv import find_uv_bin

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(900)]

EXAMPLES = Path(__file__).parents[2] / "examples" / "orchestrators"

ANSWER = """\
#!{python}
import json, pathlib, sys
calls = pathlib.Path({calls!r})
number = len(calls.read_text().splitlines()) if calls.exists() else 0
with calls.open("a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
error = {errors!r}[min(number, {last})]
print(json.dumps({{"job_id": "j", "tables": [{{"rows": 3, "bytes": 9}}], "error": error}}))
sys.exit(error["exit_code"] if error else 0)
"""

RETRY = {"code": "NO_ANSWER", "message": "busy.", "remedy": "Run it again.", "transient": True, "exit_code": 75}
FAIL = {"code": "SPEC_INVALID", "message": "wrong.", "remedy": "Mend it.", "transient": False, "exit_code": 2}

AIRFLOW = """\
import sys
sys.path.insert(0, {examples!r})
import airflow_local
from datetime import timedelta
dag = airflow_local.lakewriter_local()
for task in dag.tasks:
    task.retry_delay = timedelta(0)
    task.retry_exponential_backoff = False
run = dag.test()
print("STATE", run.state)
"""

DAGSTER = """\
import sys
sys.path.insert(0, {examples!r})
import dagster as dg, dagster_asset
with dg.DagsterInstance.ephemeral() as instance:
    result = dg.materialize([dagster_asset.lake], instance=instance, raise_on_error=False)
print("STATE", "success" if result.success else "failed")
"""

TOOLS = {
    # package, what is run once, the program that runs the example
    "airflow": ("apache-airflow==3.3.2", ["airflow", "db", "migrate"], AIRFLOW),
    "dagster": ("dagster==1.13.29", None, DAGSTER),
}


@pytest.fixture(scope="module", params=TOOLS)
def tool(request, tmp_path_factory):
    package, first, script = TOOLS[request.param]
    home = tmp_path_factory.mktemp("tool")
    uv, environment = find_uv_bin(), home / "environment"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(environment)], check=True)
    python = environment / "bin" / "python"
    done = subprocess.run(
        [uv, "pip", "install", "--quiet", "--python", str(python), package], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"{package} cannot be had here: {done.stderr[-300:]}")
    dags = home / "dags"
    dags.mkdir()
    shutil.copy(EXAMPLES / "airflow_local.py", dags)
    variables = {
        "AIRFLOW_HOME": str(home / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "DAGSTER_HOME": "",
        "LAKEWRITER_RETRY_SECONDS": "0",
        # The examples are imported where they are.
        "PYTHONDONTWRITEBYTECODE": "1",
        "PATH": f"{environment / 'bin'}:{os.environ['PATH']}",
    }
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "AWS_"))}
    if first is not None:
        subprocess.run(first, env=clean | variables, capture_output=True, check=True)
    return python, script, clean | variables


ENDS = [
    # the errors of the calls in turn, how many calls there are, how the run ends
    ([None], 1, "success"),
    ([RETRY, None], 2, "success"),
    ([FAIL], 1, "failed"),
]


@pytest.mark.parametrize(("errors", "calls", "state"), ENDS)
def test_a_load_ends_as_its_exit_code_says(tool, tmp_path, errors, calls, state):
    python, script, environment = tool
    program, log = tmp_path / "lakewriter", tmp_path / "calls"
    program.write_text(
        ANSWER.format(python=sys.executable, calls=str(log), errors=errors, last=len(errors) - 1), "utf-8"
    )
    program.chmod(0o755)
    done = subprocess.run(
        [str(python), "-c", script.format(examples=str(EXAMPLES))],
        env=environment | {"LAKEWRITER": str(program), "LAKE": "lake.yaml"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"STATE {state}" in done.stdout, done.stdout[-3000:] + done.stderr[-3000:]
    called = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert len(called) == calls
    # A retry is the same load.
    assert {call[call.index("--run-id") + 1] for call in called} == {called[0][called[0].index("--run-id") + 1]}
