"""Every permission that the product needs in tests, against those in ``tests/policy/calls.json``.

A pytest plugin: a run in which the product asks for something new fails, and so does a run of all tests, those for
``scripts/nightly`` included, in which it no longer asks for something. ``--record-calls`` writes the file instead; what
a run of CI's sample did not meet stays in it.
"""

import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.call import Answer, Call
from tests.support.product_calls import Pattern, patterns
from tests.support.sample import IS_NIGHTLY

CALLS: Final = Path(__file__).parents[1] / "policy" / "calls.json"

_WHAT_TO_DO: Final = (
    "tests/policy/calls.json differs. If the product is right, run scripts/test --record-calls; then "
    "tests/infra/least_privilege says whether the stacks' policies allow what is new and need what is gone."
)


def known_calls() -> list[Pattern]:
    """Those that are committed."""
    rows: list[dict[str, Any]] = json.loads(CALLS.read_text("utf-8"))
    return [Pattern(row["action"], row["resource"], tuple(row.get("context", {}).items())) for row in rows]


class Record:
    """What was asked so far, with the test that asked it first."""

    def __init__(self) -> None:
        self.seen: dict[Pattern, str] = {}
        self.findings: list[str] = []

    def observe(self, call: Call, _answer: Answer) -> None:
        for pattern in patterns(call):
            self.seen.setdefault(pattern, os.environ.get("PYTEST_CURRENT_TEST", "no test").partition(" ")[0])

    def to_json(self) -> list[list[Any]]:
        """What ``add`` of another process takes."""
        return [[*pattern, test] for pattern, test in self.seen.items()]

    def add(self, found: Iterable[Sequence[Any]]) -> None:
        for action, resource, context, test in found:
            self.seen.setdefault(Pattern(action, resource, tuple(tuple(pair) for pair in context)), test)

    def write(self, *, keep: bool) -> None:
        """``keep`` what is in the file already."""
        found = sorted({*self.seen, *(known_calls() if keep else ())})
        rows: list[dict[str, Any]] = [{"action": action, "resource": resource} for action, resource, _ in found]
        for row, (*_, context) in zip(rows, found, strict=True):
            if context:
                row["context"] = dict(context)
        CALLS.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", "utf-8")

    def complaints(self, *, everything: bool) -> list[str]:
        """Lines for whoever ran the tests; ``everything`` says that all of them ran."""
        known = known_calls()
        new = [f"new: {_shown(each)}, first in {test}" for each, test in self.seen.items() if each not in known]
        gone = [f"no longer: {_shown(each)}" for each in known if everything and each not in self.seen]
        return [*new, *gone, _WHAT_TO_DO] if new or gone else []


RECORD: Final = pytest.StashKey[Record]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-calls", action="store_true", help=f"Write {CALLS.name} from what all tests ask of AWS.")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[RECORD] = Record()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """One of several processes that share the tests tells what it saw; one that crashed tells nothing."""
    node.config.stash[RECORD].add(getattr(node, "workeroutput", {}).get("calls", ()))


def pytest_sessionfinish(session: pytest.Session) -> None:
    record = session.config.stash[RECORD]
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["calls"] = record.to_json()
        return
    everything = _everything(session.config)
    if not session.config.option.record_calls:
        record.findings = record.complaints(everything=everything and IS_NIGHTLY and not session.testsfailed)
    elif everything:
        record.write(keep=not IS_NIGHTLY)
    else:
        record.findings = ["No calls are recorded: run all tests."]
    if record.findings and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if findings := config.stash[RECORD].findings:
        terminalreporter.section("Calls to AWS", red=True)
        terminalreporter.write_line("\n".join(findings))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Say once more at the end, below what passed, why the run failed."""
    if (record := config.stash.get(RECORD, None)) is not None and record.findings:
        sys.stderr.write("\n".join((*record.findings, "")))


def _everything(config: pytest.Config) -> bool:
    """Whether all tests run."""
    choosing = ("collectonly", "deselect", "ignore", "ignore_glob", "keyword", "lf", "markexpr")
    chosen = any(getattr(config.option, name, None) for name in choosing)
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not chosen


def _shown(pattern: Pattern) -> str:
    context = ", ".join(f"{key}={value}" for key, value in pattern.context)
    return f"{pattern.action} on {pattern.resource}" + (f" with {context}" if context else "")
