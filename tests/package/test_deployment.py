"""A deployment with what requirements.txt pins alone: lakewriter itself is not installed."""

import json
from pathlib import Path

import pytest

from tests.package.environments import ROOT, Environment
from tests.support.bundles import light_bundle

pytestmark = pytest.mark.synth


@pytest.fixture
def deployer(environment: Environment) -> Environment:
    """The pins of a deployment."""
    environment.link(ROOT / "requirements.txt")
    return environment


@pytest.mark.exhaustive
def test_synth_finds_the_job(deployer: Environment, tmp_path: Path) -> None:
    bundle, out = light_bundle(tmp_path / "bundle"), tmp_path / "out"
    context = ("-c", "stage=dev", "-c", f"bundle={bundle}")
    # In the home folder jsii keeps what it has unpacked, which takes longer than the rest.
    variables = {"CDK_OUTDIR": str(out), "HOME": str(Path.home())}
    done = deployer.run(str(deployer.python), "app.py", *context, cwd=ROOT, **variables)
    assert done.returncode == 0, done.stderr
    assert "lakewriter-flights-dev-destination" in json.loads((out / "manifest.json").read_text("utf-8"))["artifacts"]


def test_bundle_finds_the_job(deployer: Environment) -> None:
    done = deployer.run(str(deployer.python), "-m", "infra.bundle.build", "--help", cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_lakewriter_is_not_installed(deployer: Environment) -> None:
    done = deployer.run(str(deployer.python), "-c", "import lakewriter")
    assert "ModuleNotFoundError" in done.stderr
