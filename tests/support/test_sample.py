"""Which tests CI leaves to the nightly run."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.support.sample import in_turn, list_left_out, sampled


def make(name: str, *marks: pytest.Mark, **values: Any) -> pytest.Item:
    by_name, call = {mark.name: mark for mark in marks}, SimpleNamespace(params=values)
    item: Any = SimpleNamespace(nodeid=f"tests/test_t.py::{name}", get_closest_marker=by_name.get, callspec=call)
    return cast(pytest.Item, item)


def run(*items: pytest.Item) -> list[str]:
    """Return the names of what CI runs."""
    left_out = [item.nodeid for item in list_left_out(items)]
    return [item.nodeid.partition("::")[2] for item in items if item.nodeid not in left_out]


def test_values_take_turns() -> None:
    """Each test has one catalog, and each catalog a test; what else a test is a table of stays whole."""
    catalogs = [(row.values[0], row.marks[0].mark) for row in in_turn("iceberg", "glue", "none")]
    items = [make(f"{test}[{value}-{n}]", mark) for test in "abcd" for value, mark in catalogs for n in (1, 2)]
    expected = ["a[iceberg-1]", "a[iceberg-2]", "b[glue-1]", "b[glue-2]", "c[none-1]", "c[none-2]"]
    assert run(*items) == [*expected, "d[iceberg-1]", "d[iceberg-2]"]


def test_first_of_every_few_rows() -> None:
    mark = pytest.mark.one_in(3).mark
    rows = [make(f"a[{number}]", mark) for number in range(7)]
    assert run(*rows, make("b[0]", mark), make("b[1]", mark)) == ["a[0]", "a[3]", "a[6]", "b[0]"]


def test_no_parameter_keeps_to_one_value() -> None:
    """The first of every two rows has one value of the parameter that changes with each row."""
    mark = pytest.mark.one_in(2).mark
    rows = [make(f"a[{kind}-{feed}]", mark, kind=kind, feed=feed) for kind in "xyz" for feed in ("rows", "splits")]
    assert run(*rows) == ["a[x-rows]", "a[y-splits]", "a[z-rows]"]


def test_exhaustive_tests_do_not_count() -> None:
    mark = pytest.mark.one_in(2).mark
    rows = [make("a[0]", pytest.mark.exhaustive.mark, mark), make("a[1]", mark), make("a[2]", mark), make("a[3]")]
    assert run(*rows) == ["a[1]", "a[3]"]


def test_sample_of_a_table() -> None:
    rows = sampled([("x", 1), ("y", 2)], ["y"])
    assert [[mark.name for mark in row.marks] for row in rows] == [["exhaustive"], []]
