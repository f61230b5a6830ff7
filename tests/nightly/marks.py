"""What passed on a tree of the repository: files under ``build/nightly``, in a folder for each tree."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

FIGURES = "LAKEWRITER_NIGHTLY_FIGURES"
"""The variable that names the file for a section's figures."""
NOTES = "LAKEWRITER_NIGHTLY_NOTES"
"""The variable that names the file in which passed tests are noted."""
TREE = "LAKEWRITER_NIGHTLY_TREE"
"""The variable that holds the tree that notes are valid for."""


def read_tree(root: Path) -> str:
    """The commit; with a digest of the changes behind it, after a ``+``, where the working tree differs from it."""
    commit = _git(root, "rev-parse", "HEAD").decode().strip()
    untracked = sorted(filter(None, _git(root, "ls-files", "-z", "--others", "--exclude-standard").split(b"\0")))
    changes = _git(root, "diff", "HEAD", "--binary")
    if not changes and not untracked:
        return commit
    digest = sha256(changes)
    for name in untracked:
        path = root / name.decode()
        digest.update(b"\0" + name + b"\0" + (path.read_bytes() if path.is_file() else b""))
    return f"{commit}+{digest.hexdigest()[:12]}"


def is_clean(tree: str) -> bool:
    """True if the tree is a commit without changes."""
    return "+" not in tree


def _git(root: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True).stdout


@dataclass(frozen=True)
class Mark:
    """How a section ended; ``seconds`` are those of all its starts on this tree."""

    passed: bool
    seconds: float
    figures: str


class Marks:
    """The marks of one tree, in ``folder``."""

    def __init__(self, build: Path, tree: str) -> None:
        self.tree = tree
        self.folder = build / tree

    def make_folder(self) -> None:
        """Before anything is written."""
        self.folder.mkdir(parents=True, exist_ok=True)

    def read(self, key: str) -> Mark | None:
        """A section's mark; None if it never ended on this tree."""
        try:
            mark = json.loads(self._file(key).read_text("utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        return Mark(mark["passed"], mark["seconds"], mark["figures"])

    def write(self, key: str, mark: Mark) -> None:
        """Replace a section's mark."""
        text = json.dumps({"passed": mark.passed, "seconds": round(mark.seconds, 1), "figures": mark.figures})
        self._file(key).write_text(text + "\n", "utf-8")

    def variables(self, key: str) -> Mapping[str, str]:
        """What tells a section's command where to put its notes and figures."""
        figures = self.folder / f"{key}.figures.json"
        notes = self.folder / f"{key}.tests.jsonl"
        return {FIGURES: str(figures), NOTES: str(notes), TREE: self.tree}

    def log(self, key: str) -> Path:
        """The file for what a section prints."""
        return self.folder / f"{key}.log"

    def _file(self, key: str) -> Path:
        return self.folder / f"{key}.mark.json"
