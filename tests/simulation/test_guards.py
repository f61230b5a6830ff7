"""Guards are counted without a change of what the product does."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.simulation import guards, tested_guards
from tests.simulation.tested_guards import judge_tests, read_unreached

MODULE = '''"""What the module is for."""

from __future__ import annotations


class Door:
    def open(self, key: str) -> str:
        if key == "none":
            return "stays shut"
        if key == "wrong":
            raise ValueError(key)
        for turn in range(2):
            if turn:
                continue
            if key == "broken":
                raise KeyError(key)
        return "opens"
'''

ACTS = [
    # the key, what comes of it, the guards that act
    ("none", "stays shut", {'m:Door.open if key == "none"': 1}),
    ("wrong", ValueError, {"m:Door.open raises ValueError": 1}),
    ("broken", KeyError, {"m:Door.open raises KeyError": 1}),
    ("right", "opens", {"m:Door.open if turn": 1}),
]


@pytest.mark.parametrize(("key", "outcome", "acted"), ACTS)
def test_what_acts_is_counted(key: str, outcome: object, acted: dict[str, int], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(guards, "REACHED", Counter())
    tree, _ = guards.transform(MODULE, "m")
    names: dict[str, Any] = {"__name__": "m"}
    exec(compile(tree, "m", "exec"), names)
    door = names["Door"]()
    if isinstance(outcome, type):
        with pytest.raises(outcome):
            door.open(key)
    else:
        assert door.open(key) == outcome
    assert acted == guards.REACHED


JUDGED = [
    # what acted, in how many histories; what is found
    ({"a": 50, "b": 1}, 10_000, []),
    ({"a": 49, "b": 1}, 10_000, ["guard a acted 49 times, expected 50 or more"]),
    # Of fewer histories less is expected.
    ({"a": 5}, 1_000, []),
]


@pytest.mark.parametrize(("acted", "histories", "found"), JUDGED)
def test_guards_that_act_too_rarely_are_found(
    acted: dict[str, int], histories: int, found: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(guards, "read_least", lambda: {"a": 50, "b": 1, "c": 0})
    monkeypatch.setattr(guards, "list_guards", lambda: iter(["a", "b", "c"]))
    assert guards.judge_guards(acted, histories) == found


def test_guards_and_numbers_are_of_each_other(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(guards, "read_least", lambda: {"a": 0, "gone": 1})
    monkeypatch.setattr(guards, "list_guards", lambda: iter(["a", "new"]))
    assert guards.judge_guards({}, 10_000) == [
        "guard new has no least number in guards.txt",
        "guard gone of guards.txt is in no module",
    ]


def test_every_guard_has_a_name_of_its_own():
    names = list(guards.list_guards())
    assert len(names) == len(set(names)) > 600
    assert "commit.attempt:bind raises _make_concurrent_error" in names
    assert list(guards.read_least()) == names


UNKNOWN = 168
"""Of so many guards at most no test is known yet."""


def test_every_guard_that_no_history_comes_to_has_a_reason():
    assert list(judge_tests(guards.read_least(), Path(__file__).parents[2])) == []
    assert sum(not test for _, _, test in read_unreached()) <= UNKNOWN


REASONS = [
    # the least numbers, what is said of guards that no history comes to; what is wrong with it
    ({"a": 0}, "## why\na <- tests/simulation/test_guards.py::test_what_acts_is_counted\n", []),
    ({"a": 0}, "## why\na\n", []),
    ({"a": 0}, "", ["guard a acts in no history, and unreached.txt does not say why"]),
    ({"a": 0}, "a\n", ["guard a of unreached.txt is under no reason"]),
    ({"a": 1}, "## why\na\n", ["guard a of unreached.txt acts in histories, or is in no module"]),
    ({}, "## why\na\n", ["guard a of unreached.txt acts in histories, or is in no module"]),
    ({"a": 0}, "## why\na <- tests/none.py::test_a\n", ["guard a: there is no test tests/none.py::test_a"]),
]


@pytest.mark.parametrize(("least", "text", "found"), REASONS)
def test_reasons_are_judged(
    least: dict[str, int], text: str, found: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "unreached.txt").write_text(text, "utf-8")
    monkeypatch.setattr(tested_guards, "UNREACHED", tmp_path / "unreached.txt")
    assert list(judge_tests(least, Path(__file__).parents[2])) == found
