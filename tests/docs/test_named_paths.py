"""What CONTRIBUTING, the architecture and the decisions name in backticks is there."""

import re
import subprocess
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    "CONTRIBUTING.md",
    "docs/architecture.md",
    "docs/recipes.md",
    *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/adr/*.md")),
]
BELOW: Final = ("", "job/lakewriter/", "job/", "infra/", "tests/", "docs/")
"""Where a path may begin that is not given from the top."""
CODE: Final = ("job/", "infra/", "tests/", "scripts/", "bench/", "examples/", ".ci/", "app.py", "pyproject.toml")

ELSEWHERE: Final = {
    "CONTRIBUTING.md": {"job/lakewriter/dialects/NAME/settings.py"},
    "docs/adr/0020-compression-that-a-configuration-leaves-out.md": {"airbytehq/airbyte"},
    "docs/adr/0017-one-document-engine.md": {"referencing"},
    "docs/adr/0027-an-undo-is-a-change.md": {"repeats/"},
    # Of objects in S3.
    "docs/architecture.md": {"_writers/", "_latest/files.json"},
    "docs/adr/0029-a-refresh-switches-readers.md": {"_latest/files.json"},
    "docs/adr/0035-a-state-for-all-streams-belongs-to-the-sync.md": {"sync/decision.json", "sync/completion.json"},
}
"""What is named by these pages and is not ours."""


@cache
def list_files() -> frozenset[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return frozenset(listed.splitlines())


@cache
def list_places() -> frozenset[str]:
    """Files and folders."""
    return list_files() | {str(folder) for file in list_files() for folder in PurePosixPath(file).parents}


@cache
def list_words() -> frozenset[str]:
    """Every word of the code but of this file, which names what is elsewhere."""
    files = [file for file in list_files() if file.startswith(CODE) and ROOT / file != Path(__file__)]
    texts = [(ROOT / file).read_text("utf-8", "ignore") for file in files]
    names = {PurePosixPath(file).name for file in list_files()}
    return frozenset(re.findall(r"\w+", "\n".join([*texts, *names])))


def is_there(named: str) -> bool:
    if "/" in named or named.endswith(".py"):
        path = named.rstrip("/")
        names = {PurePosixPath(file).name for file in list_files()}
        return path in names or any(f"{folder}{path}" in list_places() for folder in BELOW)
    return all(part in list_words() for part in re.findall(r"\w+", named))


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_is_there(page):
    text = (ROOT / page).read_text("utf-8")
    named = {name.removesuffix("()") for name in re.findall(r"`([^`\n]+)`", text)}
    names = {name for name in named if re.fullmatch(r"[A-Za-z_.][\w./-]*", name)}
    assert {name for name in names - ELSEWHERE.get(page, set()) if not is_there(name)} == set()
    # What has come, or is named no more, leaves the list.
    assert {name for name in ELSEWHERE.get(page, set()) if name not in names or is_there(name)} == set()
