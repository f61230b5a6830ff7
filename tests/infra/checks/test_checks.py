"""Deployments that cannot work, and what a person is told of each."""

import ast
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from infra.checks import require_deployable
from infra.settings import ROOT, Settings
from lakewriter.cli.main import main
from lakewriter.deployable import list_problems
from lakewriter.dialects.lake_yaml import load
from lakewriter.errors import SpecInvalidError
from tests.infra.checks.deployments import BAD, GOOD, GOOD_TOO


@pytest.fixture
def settings(tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], Settings]:
    monkeypatch.setenv("BAD_EXTERNAL_ID", "acme lake")
    monkeypatch.delenv("NO_EXTERNAL_ID", raising=False)

    def make(over: dict[str, Any]) -> Settings:
        path = tmp_path / "lake.yaml"
        destination = GOOD["destination"] | over.get("destination", {})
        kept = {key: value for key, value in destination.items() if value is not None}
        content = {**GOOD, **over, "destination": kept}
        path.write_text(yaml.safe_dump(content))
        stages = over.get("deployment", {}).get("stages", {})
        lakes = {stage: load(path, stage=stage) for stage in stages} or {"prod": load(path)}
        return Settings(lakes.pop("prod"), "prod", bundle, siblings=lakes)

    return make


def refusal(settings: Settings) -> SpecInvalidError | None:
    try:
        require_deployable(settings)
    except SpecInvalidError as error:
        return error
    return None


@pytest.mark.parametrize(("over", "messages"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_refused(settings: Any, over: dict[str, Any], messages: list[str]) -> None:
    error = refusal(settings(over))
    assert error is not None
    assert list(error.problems) == messages


@pytest.mark.parametrize("over", [row[1] for row in GOOD_TOO], ids=[row[0] for row in GOOD_TOO])
def test_accepted(settings: Any, over: dict[str, Any]) -> None:
    assert refusal(settings(over)) is None


def test_no_bundle(settings: Any, tmp_path: Path) -> None:
    error = refusal(replace(settings({}), bundle=tmp_path))
    assert error is not None
    assert error.report == (
        "SPEC_INVALID: stage 'prod' cannot be deployed, 1 problem:\n"
        f"  there is no bundle of the job: {tmp_path}/manifest.json does not exist. Run scripts/bundle."
    )


def test_every_problem_at_once(settings: Any) -> None:
    spark = {"max_executors": 10, "architecture": "ARM64", "attempts": 6}
    error = refusal(settings({"deployment": {"abort_incomplete_uploads_days": 1, "spark": spark}}))
    assert error is not None
    assert error.exit_code == 2
    assert [problem.partition(":")[0] for problem in error.problems] == [
        "deployment.spark.max_executors",
        "deployment.abort_incomplete_uploads_days",
        "deployment.spark.architecture is 'ARM64', and the bundle has dependencies for x86_64. Run scripts/bundle "
        "--architecture aarch64.",
    ]


HERE = "asks the machine that synthesizes"
TOGETHER = "is of several files, and the commands are given one"
TEMPLATES = "is found in the templates, which CDK makes"
CONTEXT = "is of an argument of synth alone"
SYNTH_ALONE = {
    "application.synthesise": TEMPLATES,
    "application.require_taken": TEMPLATES,
    "bundle.manifest.read_manifest": HERE,
    "checks.check_guests": TOGETHER,
    "checks._find_shared": TOGETHER,
    "checks.check_bundle": HERE,
    "checks.check_external_ids": HERE,
    "library._require_one_maker": TOGETHER,
    "pipeline.artifact.__init__": HERE,
    "pipeline.artifact.find_dependencies": HERE,
    "review.changes.read_deployed": CONTEXT,
    "review.changes.require_stopped": CONTEXT,
    "review.refusals.require_readable": CONTEXT,
    "settings._read_deployed": CONTEXT,
    "settings._require_text": CONTEXT,
    "settings.read_external_id": HERE,
}
"""Every function of the stacks that refuses, and why the commands of the job do not know of it."""


def list_refusing() -> Iterator[str]:
    for path in (ROOT / "infra").rglob("*.py"):
        module = ".".join(path.relative_to(ROOT / "infra").with_suffix("").parts)
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            nodes = list(ast.walk(function))
            made = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
            yields = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes)
            if made & {"SpecInvalidError", "SecretUnresolvedError"} or (yields and module == "checks"):
                yield f"{module}.{function.name}"


def test_what_synth_alone_refuses() -> None:
    assert sorted(list_refusing()) == sorted(SYNTH_ALONE)


def test_the_rest_needs_no_bundle(settings: Any) -> None:
    alone = [over for _, over, messages in BAD if list_problems(settings(over)) != messages]
    assert [list(over["deployment"]) for over in alone] == [["trust"]] * 3 + [["spark"]] * (len(alone) - 3)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("deployment", "code"),
    [
        ({"spark": {"max_executors": 40}, "stages": {"dev": {}}}, 2),
        # roles alone, of loads that run where other networks and files are in reach
        ({"account": "123456789012", "stages": {"dev": {}}}, 0),
    ],
)
def test_plan_and_check_refuse_as_synth(tmp_path: Path, deployment: dict[str, Any], code: int) -> None:
    tables_here = [{"table": "orders", "schema": "shop", "read": {"format": "csv", "path": "orders.csv"}}]
    (tmp_path / "lake.yaml").write_text(yaml.safe_dump({**GOOD, "tables": tables_here, "deployment": deployment}))
    told = [
        f"table 'supaflow_shop.orders': read.path: '{tmp_path}/orders.csv' is on this machine; expected s3://..., or "
        "give source_root.",
        "deployment.spark.max_executors: 40 executors of 4 vCPUs and a driver of 2 make 162 vCPUs; expected at most "
        "account_vcpu_quota, 16. Lower it to 3, or have EMR Serverless's quota 'Max concurrent vCPUs per account' "
        "raised and account_vcpu_quota say so.",
    ]
    planned = CliRunner().invoke(main, ["plan", str(tmp_path / "lake.yaml"), "--stage", "dev", "--offline"])
    assert planned.exit_code == code
    assert [line.strip() for line in planned.stderr.splitlines()[-2:]] == (told if code else [])
    # Without its stage the file is deployed by nobody, and may be for this machine.
    assert CliRunner().invoke(main, ["plan", str(tmp_path / "lake.yaml"), "--offline"]).exit_code == 0
    given = ["--no-sources", "--json", "--stage", "dev"]
    checked = CliRunner().invoke(main, ["check", str(tmp_path / "lake.yaml"), *given])
    findings = json.loads(checked.stdout)["findings"]
    assert [f["message"] for f in findings if f["probe"] == "deployment"] == (told if code else [])
