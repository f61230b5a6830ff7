"""A load in a folder that holds files and folders named like modules of the package."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakewriter

PACKAGE = Path(lakewriter.__file__).parent

MARK = """
from pathlib import Path
Path({mark!r}).touch()
raise ImportError("not the module that was meant")
"""


def names() -> set[str]:
    """Of every module and folder that a worker may import."""
    modules = {path.stem for path in PACKAGE.rglob("*.py")}
    return {
        "lakewriter",
        *("access", "app", "infra", "job", "model", "run", "source", "spec", "tests", "types", "write"),
        *modules,
        *(path.parent.name for path in PACKAGE.rglob("__init__.py")),
    }


@pytest.fixture
def others(tmp_path):
    """Each name as a module and as a package; whichever is imported leaves its name under ``imported``."""
    folder, marks = tmp_path / "work", tmp_path / "imported"
    folder.mkdir()
    marks.mkdir()
    for name in sorted(names() - {"__init__", "__main__"}):
        (folder / f"{name}.py").write_text(MARK.format(mark=str(marks / f"{name}.py")), "utf-8")
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(MARK.format(mark=str(marks / name)), "utf-8")
    (folder / "lakewriter.yaml").write_text("pipeline: somebody-else\n", "utf-8")
    return folder, marks


@pytest.mark.exhaustive
def test_names_like_our_modules(lake, others):
    folder, marks = others
    rows = {"format": "csv", "path": lake.csv("r.csv", "1\n2\n")}
    lake.write(
        {"table": "rows", "schema": "s", "read": {"sql": "SELECT * FROM v", "views": {"v": rows}}},
        {"table": "splits", "schema": "s", "read": {"format": "parquet", "path": parquet(lake.folder)}},
    )
    command = [str(Path(sys.executable).with_name("lakewriter")), "run", str(lake.file), "--job-id", "a", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    tables = json.loads(done.stdout)["tables"]
    assert [(table["table"], table["feed"], table["rows"]) for table in tables] == [
        ("rows", "rows", 2),
        ("splits", "splits", 3),
    ]
    assert list(marks.iterdir()) == []


def parquet(folder: Path) -> str:
    pq.write_table(pa.table({"n": [1, 2, 3]}), folder / "n.parquet")
    return "n.parquet"
