"""Rows that share a primary key, as several tasks see them and as the driver adds them up."""

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from lakewriter.expect import repeated_keys
from lakewriter.expect.repeated_keys import KeyCounter, add_keys

AT = datetime(2027, 1, 1, tzinfo=UTC)
TASKS = [
    # the key's columns, the rows of each task, how many have the key of another
    (["id"], [[{"id": 1}, {"id": 2}]], 0),
    (["id"], [[{"id": 1}, {"id": 1}], [{"id": 1}]], 3),
    (["id"], [[{"id": 1}], [{"id": 2}], [{"id": 1}]], 2),
    # A null is no key.
    (["id"], [[{"id": None}, {"id": 1}], [{"id": None}]], 0),
    (["a", "b"], [[{"a": "a", "b": "bc"}], [{"a": "ab", "b": "c"}]], 0),
    (["a", "b"], [[{"a": "a", "b": "1:c"}], [{"a": "a", "b": "1:c"}]], 2),
    (["id"], [[{"id": AT}], [{"id": AT}]], 2),
    (["id"], [[{"id": Decimal("1.10")}], [{"id": Decimal("1.10")}]], 2),
    (["id"], [[{"id": True}], [{"id": False}]], 0),
]


def look(columns, tasks):
    seen, schema = [], pa.Table.from_pylist([row for rows in tasks for row in rows]).schema
    for rows in tasks:
        counter = KeyCounter(columns, len(tasks))
        for row in rows:
            counter.add(pa.RecordBatch.from_pylist([row], schema))
        if (found := counter.finish()) is not None:
            seen.append(found)
    return add_keys(seen)


@pytest.mark.parametrize(("columns", "tasks", "repeated"), TASKS, ids=range(len(TASKS)))
def test_keys_of_all_tasks_are_compared(columns, tasks, repeated):
    found = look(columns, tasks)
    assert (found.violations.rows, found.rows, found.is_cut) == (repeated, sum(map(len, tasks)), False)


def test_no_more_rows_are_looked_at_than_memory_is_for(monkeypatch):
    monkeypatch.setattr(repeated_keys, "MOST_ROWS", 4)
    found = look(["id"], [[{"id": 1}, {"id": 2}, {"id": 2}], [{"id": 1}]])
    assert (found.violations.rows, found.rows, found.is_cut) == (2, 3, True)
    # A program's DataFrame may have any number of partitions.
    assert look(["id"], [[{"id": 1}]] * 5) is None
