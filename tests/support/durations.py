"""Seconds of tests by folder, by file and by test, printed at the end of a whole run: where CI's minutes go."""

from collections import Counter, defaultdict
from typing import Final

import pytest

FEWEST_TESTS: Final = 1_000
"""A run of a few files prints nothing: its seconds say little of CI's."""
LONGEST: Final = 25
"""So many files and tests are printed."""
SHARE: Final = 0.015
"""The longest tests, whose part of all seconds says whether a few take most of the time."""


class Durations:
    """Adds set-up, call and teardown of each test to its file."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._tests: defaultdict[str, float] = defaultdict(float)
        self._counts: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called in the process that prints, with xdist too."""
        file = report.nodeid.partition("::")[0]
        self._seconds[file] += report.duration
        self._tests[report.nodeid] += report.duration
        self._counts[file] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the folders, the longest files, and the longest tests."""
        if self._counts.total() < FEWEST_TESTS:
            return
        write = terminalreporter.write_line
        terminalreporter.section("seconds of tests by folder")
        write(", ".join(f"{name} {seconds:.0f}" for name, seconds in _longest(self._by_folder())))
        terminalreporter.section(f"the {LONGEST} longest files")
        for file, seconds in _longest(self._seconds)[:LONGEST]:
            write(f"{seconds:7.1f} s {self._counts[file]:6} tests  {file}")
        tests = _longest(self._tests)
        few = tests[: int(len(tests) * SHARE)]
        terminalreporter.section(f"the {LONGEST} longest tests")
        for test, seconds in tests[:LONGEST]:
            write(f"{seconds:7.1f} s  {test}")
        whole = sum(self._tests.values())
        write(f"the {len(few)} longest of {len(tests)} tests take {sum(each[1] for each in few):.0f} of {whole:.0f} s")

    def _by_folder(self) -> dict[str, float]:
        folders: defaultdict[str, float] = defaultdict(float)
        for file, seconds in self._seconds.items():
            folders[file.rpartition("/")[0]] += seconds
        return folders


def _longest(seconds: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda item: -item[1])


def pytest_configure(config: pytest.Config) -> None:
    """Workers of xdist print nothing."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(), "durations")
