"""A module added anywhere is bound by the import rules, though no rule names it."""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "job" / "lakewriter"

LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"

DATA_FLOW = "Data flows one way"
TERMINAL = "The command line's libraries only in cli"
ENGINES = "Each engine behind one module"
NO_STACKS = "The job knows nothing of its stacks"
NO_AWS_IN_STACKS = "Synth asks neither Spark nor AWS"

DOORS = {
    "boto3": ("boto3 only in aws", {"aws"}),
    "botocore": ("boto3 only in aws", {"aws"}),
    "pyspark": (
        "Spark only where rows are read and tasks are started",
        {"api", "run", "source", "source.databases", "source.messages"},
    ),
    "pyiceberg": ("PyIceberg only in the catalogs and the partition transforms", {"commit.iceberg"}),
    "isal": (ENGINES, {"encode"}),
    "thrift": (ENGINES, {"encode"}),
    "zlib_ng": (ENGINES, {"encode"}),
    "datafusion": (ENGINES, set[str]()),
    # Modules are added one by one there.
    "openlineage": ("OpenLineage's client only where events are made and sent", set[str]()),
    "yaml": (
        "YAML only in the dialects",
        {
            "dialects",
            "dialects.airbyte",
            "dialects.common",
            "dialects.estuary",
            "dialects.lakewriter_s3",
            "dialects.supaflow",
        },
    ),
    "click": (TERMINAL, {"cli", "cli.airbyte"}),
    "rich": (TERMINAL, {"cli"}),
    "infra": (NO_STACKS, set[str]()),
    "aws_cdk": (NO_STACKS, set[str]()),
}
"""For each library: the contract that forbids it, and the folders in which a new module may import it."""

FOLDERS = sorted(
    ".".join(folder.relative_to(PACKAGE).parts)
    for folder in [PACKAGE, *PACKAGE.rglob("*")]
    if (folder / "__init__.py").exists()
)

WITHOUT_LAYER = [
    (DATA_FLOW, "lakewriter.planted"),
    (DATA_FLOW, "lakewriter.planted_folder"),
    ("A commit from the top to the bottom", "lakewriter.commit.planted"),
    ("A load from the top to the bottom", "lakewriter.run.planted"),
    ("The specification's parts", "lakewriter.spec.planted"),
    ("No dialect knows another", "lakewriter.dialects.planted"),
    ("Stacks only wire", "infra.planted"),
]

UPWARD = [
    (DATA_FLOW, "lakewriter.spec.planted", "lakewriter.run"),
    (DATA_FLOW, "lakewriter.aws.planted", "lakewriter.commit"),
    (DATA_FLOW, "lakewriter.dialects.common.planted", "lakewriter.documents"),
    (DATA_FLOW, "lakewriter.policy.planted", "lakewriter.dialects"),
    (DATA_FLOW, "lakewriter.documents.planted", "lakewriter.shape"),
    (DATA_FLOW, "lakewriter.encode.planted", "lakewriter.source"),
    (DATA_FLOW, "lakewriter.staging.planted", "lakewriter.commit"),
    (DATA_FLOW, "lakewriter.commit.iceberg.planted", "lakewriter.staging"),
    (DATA_FLOW, "lakewriter.run.planted", "lakewriter.operate"),
    (DATA_FLOW, "lakewriter.doctor.planted", "lakewriter.operate"),
    (DATA_FLOW, "lakewriter.operate.planted", "lakewriter.cli"),
    ("A commit from the top to the bottom", "lakewriter.commit.iceberg.planted", "lakewriter.commit.attempt"),
    ("No dialect knows another", "lakewriter.dialects.airbyte.planted", "lakewriter.dialects.estuary"),
    ("No dialect knows another", "lakewriter.dialects.supaflow.planted", "lakewriter.dialects.registry"),
    ("No dialect knows another", "lakewriter.dialects.common.planted", "lakewriter.dialects.supaflow"),
    ("Stacks only wire", "infra.bundle.planted", "infra.pipeline"),
    (NO_AWS_IN_STACKS, "infra.planted", "boto3"),
    (NO_AWS_IN_STACKS, "infra.planted", "pyspark"),
]


@dataclass(frozen=True)
class Copy:
    """A copy of the package beside its rules."""

    folder: Path

    def plant(self, module: str, *imports: str) -> None:
        path = self.folder.joinpath("job" if module.startswith("lakewriter") else "", *module.split("."))
        with path.with_suffix(".py").open("a") as planted:
            planted.writelines(f"import {name}\n" for name in imports)

    def lint(self) -> tuple[int, dict[str, str]]:
        """Run lint-imports here: its exit code, and for each broken contract what it says."""
        environment = os.environ | {
            "PYTHONPATH": f"{self.folder / 'job'}{os.pathsep}{self.folder}",
            # Lines are wrapped at the terminal's width.
            "COLUMNS": "1000",
        }
        done = subprocess.run(
            [sys.executable, "-c", LINT],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        contracts = re.findall(r"^(.+) (?:KEPT|BROKEN)", done.stdout, re.MULTILINE)
        assert contracts, done.stdout + done.stderr
        texts = done.stdout.partition("Broken contracts")[2]
        sections = re.split(r"^(.+)\n-{3,}\n", texts, flags=re.MULTILINE)[1:]
        return done.returncode, dict(zip(sections[::2], sections[1::2], strict=True))


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    folder = tmp_path_factory.mktemp("planted")
    for name in ("infra", "job"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / ".importlinter", folder)
    return Copy(folder)


@pytest.fixture(scope="module")
def kept(copy: Copy) -> tuple[int, dict[str, str]]:
    """What lint-imports says of the copy before anything is planted."""
    return copy.lint()


@pytest.fixture(scope="module")
def broken(copy: Copy, kept: tuple[int, dict[str, str]]) -> dict[str, str]:
    """What each contract says once everything is planted: one run, as each line names the module at fault."""
    (copy.folder / "job" / "lakewriter" / "planted_folder").mkdir()
    copy.plant("lakewriter.planted_folder.__init__")
    copy.plant("infra.planted")
    for folder in FOLDERS:
        copy.plant(".".join(filter(None, ["lakewriter", folder, "planted"])), *DOORS)
    for _, module, imported in UPWARD:
        copy.plant(module, imported)
    code, sections = copy.lint()
    assert code == 1
    return sections


def test_package_without_planted_modules_keeps_every_contract(kept: tuple[int, dict[str, str]]) -> None:
    assert kept == (0, {})


@pytest.mark.parametrize(("contract", "module"), WITHOUT_LAYER)
def test_module_without_layer_breaks_the_lint(broken: dict[str, str], contract: str, module: str) -> None:
    missing = broken[contract].partition("not listed as layers:")[2]
    assert f"- {module}\n" in missing


@pytest.mark.parametrize(("contract", "module", "imported"), UPWARD)
def test_upward_import_breaks_the_lint(broken: dict[str, str], contract: str, module: str, imported: str) -> None:
    assert re.search(rf"^- +{module} -> {imported} \(", broken[contract], re.MULTILINE)


@pytest.mark.parametrize("library", DOORS)
def test_library_outside_its_doors_breaks_the_lint(broken: dict[str, str], library: str) -> None:
    contract, doors = DOORS[library]
    bound = set(re.findall(rf"^- +lakewriter\.(?:(\S+)\.)?planted -> {library} \(", broken[contract], re.MULTILINE))
    assert sorted(set(FOLDERS) - bound) == sorted(doors)


def modules() -> list[Path]:
    return [path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]


def test_few_modules_lie_at_the_root() -> None:
    assert len([path for path in modules() if path.parent == PACKAGE]) <= 10


def test_file_names_occur_once_outside_the_dialects() -> None:
    dialects = PACKAGE / "dialects"
    often = {name for name, count in Counter(path.name for path in modules()).items() if count > 1}
    assert [path for path in modules() if path.name in often and not path.is_relative_to(dialects)] == []


def test_public_functions_share_their_names_with_no_module() -> None:
    public = {"LakeError", "check", "load", "plan", "register", "sink", "verify", "write"}
    assert public.isdisjoint(path.stem for path in PACKAGE.iterdir())
