"""Which tests come to which guards: ``python -m tests.simulation.tested_guards PATHS`` prints a test for each guard.

With ``--check`` it runs the tests that ``unreached.txt`` names, and says which of them do not come to their guard.
"""

import sys
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.simulation.guards import REACHED, count_guards

UNREACHED: Final = Path(__file__).with_name("unreached.txt")
_BETWEEN: Final = " <- "


class Watch:
    """A plugin of pytest that notes for each guard the test that comes to fewest others."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, int]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """One test with its fixtures."""
        before = REACHED.copy()
        result = yield
        acted = [name for name, number in REACHED.items() if number > before[name]]
        test = item.nodeid.partition("[")[0]
        for name in acted:
            own = self.tests.setdefault(name, {})
            own[test] = min(own.get(test, len(acted)), len(acted))
        return result

    def choose(self) -> Mapping[str, str]:
        """A test for each guard."""
        return {name: min(sorted(tests), key=lambda test: tests[test]) for name, tests in sorted(self.tests.items())}


def read_unreached() -> Iterator[tuple[str, str, str]]:
    """Yield each guard that no history comes to, with why not, and the test that does; blank where none is known."""
    why = ""
    for line in UNREACHED.read_text("utf-8").splitlines():
        if line.startswith("## "):
            why = line.removeprefix("## ")
        elif line and not line.startswith("# "):
            name, _, test = line.partition(_BETWEEN)
            yield name, why, test


def judge_tests(least: Mapping[str, int], root: Path) -> Iterator[str]:
    """Say what is wrong with the reasons: a guard that no history comes to has one, and its test is there."""
    given = {name: (why, test) for name, why, test in read_unreached()}
    for name, number in least.items():
        if not number and name not in given:
            yield f"guard {name} acts in no history, and {UNREACHED.name} does not say why"
    for name, (why, test) in given.items():
        if least.get(name) != 0:
            yield f"guard {name} of {UNREACHED.name} acts in histories, or is in no module"
        file, _, function = test.partition("::")
        if not why:
            yield f"guard {name} of {UNREACHED.name} is under no reason"
        if test and (not (root / file).is_file() or f"def {function}(" not in (root / file).read_text("utf-8")):
            yield f"guard {name}: there is no test {test}"


def main() -> int:
    """0 where every test comes to its guard."""
    count_guards()
    watch, is_check = Watch(), sys.argv[1:] == ["--check"]
    paths = sorted({test for _, _, test in read_unreached() if test}) if is_check else sys.argv[1:]
    pytest.main([*paths, "-q", "-p", "no:cacheprovider", "--tb=no"], plugins=[watch])
    if not is_check:
        sys.stdout.write("".join(f"{name}{_BETWEEN}{test}\n" for name, test in watch.choose().items()))
        return 0
    missed = [
        f"{test} does not come to {name}\n"
        for name, _, test in read_unreached()
        if test not in watch.tests.get(name, {})
    ]
    sys.stdout.write("".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
