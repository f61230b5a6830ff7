"""Seconds of tests by folder and by file, printed at the end of a whole run: where CI's minutes go."""

from collections import defaultdict
from typing import Final

import pytest

FEWEST_TESTS: Final = 1_000
"""A run of a few files prints nothing: its seconds say little of CI's."""
LONGEST_FILES: Final = 25


class Durations:
    """Adds set-up, call and teardown of each test to its file."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._tests: defaultdict[str, int] = defaultdict(int)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called in the process that prints, with xdist too."""
        file = report.nodeid.partition("::")[0]
        self._seconds[file] += report.duration
        self._tests[file] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the folders, and the longest files."""
        if sum(self._tests.values()) < FEWEST_TESTS:
            return
        terminalreporter.section("seconds of tests by folder")
        terminalreporter.write_line(", ".join(f"{name} {seconds:.0f}" for name, seconds in _longest(self._by_folder())))
        terminalreporter.section(f"the {LONGEST_FILES} longest files")
        for file, seconds in _longest(self._seconds)[:LONGEST_FILES]:
            terminalreporter.write_line(f"{seconds:7.1f} s {self._tests[file]:6} tests  {file}")

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
