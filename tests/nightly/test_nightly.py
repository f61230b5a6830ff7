"""Sections are run until they pass, once on each tree."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.nightly.marks import Marks, is_clean, read_tree
from tests.nightly.nightly import CHANGED, Line, format_table, main, run_sections
from tests.nightly.sections import ROOT, Section, list_sections

TESTS = """
import os
def test_good(record_property):
    record_property("kills", 10)
    record_property("struck", ["PutObject", "PutObject"])
def test_bad():
    assert os.environ.get("GOOD")
"""


WHOLE = """
import os
def pytest_sessionfinish(session):
    if os.environ.get("WHOLE"):
        session.exitstatus = 1
"""


class Repository:
    """A repository with one commit, and sections that write what they did beside it."""

    def __init__(self, folder: Path) -> None:
        self.root, self.build, self.runs = folder / "repository", folder / "build", folder / "runs"
        self.root.mkdir()
        self.git("init", "--quiet")
        (self.root / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
        (self.root / ".gitignore").write_text("__pycache__/\n")
        (self.root / "test_some.py").write_text(TESTS)
        self.commit()

    def git(self, *arguments: str) -> None:
        """With a name to commit by."""
        named = ("-c", "user.name=tests", "-c", "user.email=tests@example.com")
        subprocess.run(["git", *named, *arguments], cwd=self.root, check=True)

    def commit(self) -> None:
        """All there is."""
        self.git("add", ".")
        self.git("commit", "--quiet", "--allow-empty", "--message", "one")

    def section(self, name: str, code: str = "") -> Section:
        """Python code that first says that it ran."""
        ran = f"print({name!r}, file=open({str(self.runs)!r}, 'a')); "
        return Section(name, "for the test", (sys.executable, "-c", ran + code))

    def run(self, *sections: Section) -> dict[str, tuple[str, str]]:
        """Results and figures by section."""
        return {line.section: (line.result, line.figures) for line in run_sections(sections, self.root, self.build)}

    def ran(self) -> list[str]:
        """The sections that ran since this was asked last."""
        names = self.runs.read_text().split() if self.runs.exists() else []
        self.runs.unlink(missing_ok=True)
        return names


def two_tests(**environment: str) -> Section:
    """A section of two tests, one of which needs a variable."""
    command = (sys.executable, "-m", "pytest", "-p", "tests.nightly.notes", "test_some.py")
    # The plugins of this environment would take seconds to load.
    return Section(
        "tests", "two", command, {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environment
    )


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_failed_section_is_run_again_and_the_next_one_is_not_held_up(repository: Repository) -> None:
    bad, good = repository.section("bad", "print('7 of 9'); raise SystemExit(3)"), repository.section("good")
    assert repository.run(bad, good) == {"bad": ("FAILED", "exit code 3; 7 of 9"), "good": ("passed", "")}
    assert repository.ran() == ["bad", "good"]
    assert repository.run(repository.section("bad", "print('9 of 9')"), good) == {
        "bad": ("passed", "9 of 9"),
        "good": ("passed before", ""),
    }
    assert repository.ran() == ["bad"]


def test_tests_of_a_session_that_fails_as_a_whole_are_run_again(repository: Repository) -> None:
    conftest = repository.root / "conftest.py"
    conftest.write_text(WHOLE)
    repository.commit()
    assert repository.run(two_tests(GOOD="yes", WHOLE="bad"))["tests"][0] == "FAILED"
    assert repository.run(two_tests(GOOD="yes", WHOLE="bad"))["tests"][0] == "FAILED"
    assert repository.run(two_tests(GOOD="yes"))["tests"] == ("passed", "2 passed, 10 kills")


def test_figures_are_the_last_line_that_has_them(repository: Repository) -> None:
    section = replace(repository.section("one", "print('9 histories'); print('more')"), figures=" histories")
    assert repository.run(section)["one"] == ("passed", "9 histories")


def test_another_commit_forgets(repository: Repository) -> None:
    section = repository.section("one")
    repository.run(section)
    repository.commit()
    assert repository.run(section)["one"] == ("passed", "")
    assert repository.ran() == ["one", "one"]


@pytest.mark.parametrize("name", ["test_some.py", "new.py"])
def test_changes_that_are_not_committed_are_a_tree_of_their_own(repository: Repository, name: str) -> None:
    section, clean = repository.section("one"), read_tree(repository.root)
    repository.run(section)
    (repository.root / name).write_text("")
    changed = read_tree(repository.root)
    assert (is_clean(clean), is_clean(changed)) == (True, False)
    assert repository.run(section)["one"] == ("passed", "")
    assert repository.run(section)["one"] == ("passed before", "")
    (repository.root / name).write_text("# more\n")
    assert read_tree(repository.root) not in {clean, changed}
    assert Marks(repository.build, clean).read("one") is not None


def test_change_while_a_section_runs_is_a_failure(repository: Repository) -> None:
    section = repository.section("one", "open('new.py', 'w'); print('3 of 3')")
    tree = read_tree(repository.root)
    assert repository.run(section)["one"] == ("FAILED", f"{CHANGED}; 3 of 3")
    assert Marks(repository.build, tree).read("one") is None


def test_tests_that_passed_are_left_out(repository: Repository) -> None:
    assert repository.run(two_tests())["tests"] == ("FAILED", "exit code 1; 1 passed, 1 failed, 10 kills")
    assert repository.run(two_tests(GOOD="yes"))["tests"] == ("passed", "2 passed, 10 kills")
    log = Marks(repository.build, read_tree(repository.root)).log("tests").read_text()
    assert "1 passed, 1 deselected" in log
    assert "    2 PutObject" in log


def test_tests_that_all_passed_need_no_test_to_run(repository: Repository) -> None:
    repository.run(two_tests(GOOD="yes"))
    # As if it had been killed between its last test and its end.
    next(repository.build.glob("*/tests.mark.json")).unlink()
    assert repository.run(two_tests())["tests"] == ("passed", "2 passed, 10 kills")


@pytest.mark.parametrize("ignored", ["", "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "])
def test_section_ends_with_the_run_that_is_stopped(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, ignored: str
) -> None:
    section = repository.section("one", f"{ignored}import time; print('begun', flush=True); time.sleep(3600)")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    # The first that it says comes when it runs; the with statement around the process waits for its end.
    monkeypatch.setattr("tests.nightly.nightly.print_piece", stop)
    monkeypatch.setattr("tests.nightly.nightly.CLEAN_UP_SECONDS", 1)
    with pytest.raises(KeyboardInterrupt):
        repository.run(section)
    assert Marks(repository.build, read_tree(repository.root)).read("one") is None


def test_every_exhaustive_test_is_in_a_section() -> None:
    files = {argument for section in list_sections(kills=300, seed=1) for argument in section.command}
    marked = {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / "tests").rglob("test_*.py")
        if re.search(r"mark\.(exhaustive|one_in)|(sampled|in_turn|fifth_of)\(", file.read_text("utf-8"))
        and file != Path(__file__)
    }
    assert marked - files == set()
    assert {name for name in files if name.startswith("tests/") and not (ROOT / name).exists()} == set()


def test_sections_have_notes_of_their_own() -> None:
    keys = [section.key for section in list_sections(kills=300, seed=1)]
    assert len(set(keys)) == len(keys)


def test_seeds_pass_by_themselves() -> None:
    keys = {section.key for seed in (1, 2) for section in list_sections(kills=20, seed=seed) if section.variant}
    assert {"random-kills-seed-1-kills-20", "random-kills-seed-2-kills-20"} <= keys


def test_unknown_section_is_refused() -> None:
    done = CliRunner().invoke(main, ["kils"])
    assert done.exit_code == 2
    assert "unknown section kils; expected " in done.output


def test_table() -> None:
    line = Line("kills", "passed", 12.3, "5 passed")
    rows = [(line.section, line.result, f"{line.seconds:.0f}", line.figures)]
    assert format_table(("section", "result", "seconds", "figures"), rows) == (
        "section  result  seconds  figures\nkills    passed  12       5 passed"
    )
