"""The files that people start from: every stage of each can be deployed, by the commands beside them."""

import re
from pathlib import Path

import pytest
import yaml

from infra.application import synthesise
from infra.checks import require_deployable
from infra.settings import ROOT, Settings

README = "README.md"
LOCAL = {"examples/dataframe/lake.yaml", "examples/broken_days/lake.yaml"}
"""Whose tables a program writes, or files of one machine: there is no job to deploy."""
FILES = (path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "examples").rglob("*.yaml")))
EXAMPLES = [name for name in FILES if name not in LOCAL]


def text_of(name: str) -> str:
    """The file's own, or the README's lake.yaml."""
    text = (ROOT / name).read_text("utf-8")
    (found,) = re.findall(r"```yaml\n(pipeline:.*?)```", text, re.DOTALL) if name == README else [text]
    return found


def stages_of(name: str) -> list[str]:
    return list((yaml.safe_load(text_of(name)).get("deployment") or {}).get("stages") or {})


DEPLOYED = [name for name in (README, *EXAMPLES) if "deployment" in yaml.safe_load(text_of(name))]


COMMAND = re.compile(r"^# .*scripts/cdk synth -c lake=(\S+) -c stage=(\S+)$", re.MULTILINE)


def test_every_example_has_a_deployment() -> None:
    assert [README, *EXAMPLES] == DEPLOYED


@pytest.mark.one_in(3)
@pytest.mark.synth
@pytest.mark.parametrize("name", EXAMPLES)
def test_synthesizes_by_the_command_in_its_opening_comment(
    name: str, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comment = (ROOT / name).read_text("utf-8").partition("pipeline:")[0]
    ((lake, stage),) = COMMAND.findall(comment)
    assert lake == name
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path))
    for variable in re.findall(r"\$\{env:(\w+)\}", text_of(name)):
        # What somebody's own machine has is not asked for.
        monkeypatch.delenv(variable, raising=False)
    folder, _ = synthesise({"lake": lake, "stage": stage, "bundle": str(bundle)})
    assert sorted(path.name for path in folder.glob("review.*")) == ["review.html", "review.md"]


@pytest.mark.parametrize(("name", "stage"), [(name, stage) for name in DEPLOYED for stage in stages_of(name)])
def test_can_be_deployed(tmp_path: Path, bundle: Path, name: str, stage: str) -> None:
    lake = ROOT / name
    if name == README:
        lake = tmp_path / "lake.yaml"
        lake.write_text(text_of(name), "utf-8")
    require_deployable(Settings.read({"lake": str(lake), "stage": stage, "bundle": str(bundle)}.get))


@pytest.mark.parametrize("name", DEPLOYED)
def test_commands_name_stages_that_are_there(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    named = re.findall(r"(?:stage=|--stage )([a-z0-9]+)", text)
    assert set(named) <= set(stages_of(name))
    assert named or name.startswith("examples/demo/")
