"""Deployments that cannot work, and what a person is told of each."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.checks import require_deployable
from infra.settings import Settings
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
        return Settings(lakes.pop("prod"), "prod", bundle, lakes)

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
        "deployment.spark.architecture is 'ARM64', and the bundle has dependencies for x86_64. Run scripts/bundle "
        "--architecture aarch64.",
        "deployment.spark.max_executors",
        "deployment.abort_incomplete_uploads_days",
    ]
