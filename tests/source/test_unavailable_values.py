"""Values that change events leave out since they are unchanged: which become gaps that a merge fills, and which not."""

from typing import Any

import pytest

from lakewriter.spec.change_events import ChangeEvents
from lakewriter.spec.row_rules import BadRows
from lakewriter.spec.table_spec import PartitionField, Read
from tests.source.test_change_events import POSTGRESQL, event, unfold

PLACEHOLDER = "__debezium_unavailable_value"
UNAVAILABLE = {
    "text": PLACEHOLDER,
    "bytes, as base64": "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==",
    "text[]": ["a", PLACEHOLDER],
    "int[]": list(PLACEHOLDER.encode()),
    "hstore, as JSON": '{"__debezium_unavailable_value":"__debezium_unavailable_value"}',
    "a struct": {"inner": PLACEHOLDER},
    "bytes": PLACEHOLDER.encode(),
}


WITHIN = {"text[]", "a struct"}
"""The forms that have the placeholder beside other values."""
UNCERTAIN: dict[str, dict[str, Any]] = {
    "a quarantine": {"on_bad_row": BadRows(action="quarantine")},
    "a column of the key": {"primary_key": ("id", "v")},
    "several topics": {"read": Read(format="kafka", options={"subscribe": "a,b"})},
    "a pattern of topics": {"read": Read(format="kafka", options={"subscribePattern": "a.*"})},
    "lost messages": {"read": Read(format="kafka", options={"subscribe": "a", "failOnDataLoss": "false"})},
    "several paths": {"read": Read(format="json", path=("a", "b"))},
    "the latest files first": {"read": Read(format="json", path="a", options={"latestFirst": "true"})},
    "a query": {"read": Read(sql="SELECT * FROM v", views={"v": Read(format="json", path="a")})},
    "a partition": {"partition_by": (PartitionField(column="v"),)},
}


@pytest.mark.parametrize("form", UNAVAILABLE)
def test_unavailable_values(form):
    (result,) = unfold([event("u", {"id": 1, "v": UNAVAILABLE[form]}, POSTGRESQL)])
    if form in WITHIN:
        assert result.startswith("bad: column 'v' has '__debezium_unavailable_value': ")
    else:
        assert result == ("upsert", {"id": 1, "v": None}, (0, 1, 24023128, 0), '[false,"v"]')


def test_the_only_text_of_a_list():
    # UnchangedToastedPlaceholder.java: the placeholder of text[] is a list with nothing else.
    (result,) = unfold([event("u", {"id": 1, "v": [PLACEHOLDER]}, POSTGRESQL)])
    assert result == ("upsert", {"id": 1, "v": None}, (0, 1, 24023128, 0), '[false,"v"]')


@pytest.mark.parametrize("why", UNCERTAIN)
def test_unavailable_values_that_are_not_certain(why):
    (result,) = unfold([event("u", {"id": 1, "v": PLACEHOLDER}, POSTGRESQL)], **UNCERTAIN[why])
    assert result.startswith("bad: column 'v' has '__debezium_unavailable_value': ")
    is_of_column = why in ("a column of the key", "a partition")
    assert ("it is of a key" in result, "the source is not one topic" in result) == (is_of_column, not is_of_column)


def test_one_topic():
    read = Read(format="kafka", options={"subscribe": "a"})
    (result,) = unfold([event("u", {"id": 1, "v": PLACEHOLDER}, POSTGRESQL)], read=read)
    assert result[-1] == '[false,"v"]'


def test_another_placeholder():
    events = ChangeEvents(form="debezium", unavailable="[left out]")
    given = [event("u", {"id": 1, "v": value}, POSTGRESQL) for value in ("[left out]", PLACEHOLDER)]
    (lacking, good) = unfold(given, events)
    assert lacking == ("upsert", {"id": 1, "v": None}, (0, 1, 24023128, 0), '[false,"v"]')
    assert good == ("upsert", {"id": 1, "v": PLACEHOLDER}, (0, 1, 24023128, 0))
