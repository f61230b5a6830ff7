"""A pytest plugin that notes each test that passed, leaves it out the next time, and counts."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.nightly.marks import FIGURES, NOTES, TREE, read_tree


class Notes:
    """The tests that passed, one line of JSON each: its id, its seconds and what it recorded as properties.

    Properties that are whole numbers are added up as figures; what is in those that are lists is counted.
    """

    def __init__(self, notes: Path, figures: Path, tree: str, root: Path) -> None:
        self._notes, self._figures, self._tree, self._root = notes, figures, tree, root
        self._passed = {line["test"]: line for line in _read_lines(notes)}
        self._before = frozenset(self._passed)
        self._left_out = 0
        self._reports: dict[str, list[pytest.TestReport]] = {}
        self._others: Counter[str] = Counter()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what passed on this tree."""
        passed = [item for item in items if item.nodeid in self._passed]
        self._left_out = len(passed)
        config.hook.pytest_deselected(items=passed)
        items[:] = [item for item in items if item.nodeid not in self._passed]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test once its fixtures are gone too."""
        reports = self._reports.setdefault(report.nodeid, [])
        reports.append(report)
        if report.when != "teardown":
            return
        del self._reports[report.nodeid]
        outcome = next((one.outcome for one in reports if not one.passed), "passed")
        if outcome == "passed" and read_tree(self._root) != self._tree:
            outcome = "on another tree"
        if outcome != "passed":
            self._others[outcome] += 1
            return
        line = {
            "test": report.nodeid,
            "seconds": round(sum(one.duration for one in reports), 1),
            "properties": dict(report.user_properties),
        }
        self._passed[report.nodeid] = line
        with self._notes.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the figures; a session whose tests all passed before has passed."""
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self._left_out:
            session.exitstatus = pytest.ExitCode.OK
        if session.exitstatus == pytest.ExitCode.TESTS_FAILED and not self._others["failed"]:
            self._forget_session()
        figures = Counter(passed=len(self._passed)) + self._others
        for name, values in self._properties(int).items():
            figures[name] = sum(values)
        self._figures.write_text(json.dumps(figures), "utf-8")

    def _forget_session(self) -> None:
        """Have the tests of this session run again: what failed is what all of them did, such as their calls to AWS."""
        kept = [line for test, line in self._passed.items() if test in self._before]
        self._notes.write_text("".join(json.dumps(line) + "\n" for line in kept), "utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show how often each item of a list was recorded, tests that passed before included."""
        for name, values in self._properties(list).items():
            terminalreporter.section(name)
            for item, times in Counter(item for value in values for item in value).most_common():
                terminalreporter.write_line(f"{times:5} {item}")

    def _properties(self, kind: type) -> dict[str, list[Any]]:
        """What the passed tests recorded of this kind, by name."""
        recorded: dict[str, list[Any]] = {}
        for line in self._passed.values():
            for name, value in line["properties"].items():
                if isinstance(value, kind):
                    recorded.setdefault(name, []).append(value)
        return recorded


def pytest_configure(config: pytest.Config) -> None:
    """Take part where ``scripts/nightly`` says so."""
    if NOTES in os.environ:
        notes = Notes(Path(os.environ[NOTES]), Path(os.environ[FIGURES]), os.environ[TREE], config.rootpath)
        config.pluginmanager.register(notes, "lakewriter-notes")


def _read_lines(file: Path) -> Iterator[dict[str, Any]]:
    """The notes; the last one may have been cut when the process was killed."""
    for line in file.read_text("utf-8").splitlines() if file.exists() else []:
        try:
            yield cast(dict[str, Any], json.loads(line))
        except json.JSONDecodeError:
            continue
