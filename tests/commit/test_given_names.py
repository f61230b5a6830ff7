"""Names that a table's state keeps, and loads that may give theirs."""

from datetime import UTC, datetime, timedelta

import pytest

from lakewriter.commit.attempt import Attempt
from lakewriter.receipt import GivenName
from lakewriter.records.fold.steps import may_bind
from lakewriter.records.state import Running, TableState
from tests.commit.intents import intent

NAME, OTHER = GivenName(source="Name", name="name"), GivenName(source="NAME", name="name")
NUMBERED, FIELD = GivenName(source="NAME", name="name_1"), GivenName(source="Name", name="name", within=("address",))


@pytest.mark.parametrize(
    ("kept", "given", "expected"),
    [
        (None, None, None),
        (None, (NAME,), (NAME,)),
        ((NAME,), None, (NAME,)),
        ((NAME,), (NUMBERED, NAME), (NAME, NUMBERED)),
        ((NAME,), (FIELD,), (NAME, FIELD)),
    ],
)
def test_names_stay(kept, given, expected):
    assert TableState(names=kept).add_names(given) == expected


ACCEPTED = [
    # what the table had when the load began, what it has now, what the load gives, whether it may
    (None, None, (NAME,), True),
    (None, (NAME,), (NAME,), True),
    ((NAME,), (NAME,), (NUMBERED,), True),
    # another load has given the name to another column meanwhile, or the column another name
    (None, (OTHER,), (NAME,), False),
    (None, (OTHER,), (NUMBERED,), False),
    (None, (OTHER,), (FIELD,), True),
    (None, (OTHER,), None, True),
    # the names that were there when the load began are those that it went by
    ((OTHER,), (OTHER,), (NAME,), True),
]


@pytest.mark.parametrize(("before", "now", "given", "may"), ACCEPTED)
def test_a_load_whose_names_another_one_gave(before, now, given, may):
    assert TableState(names=now).accepts_names(given, TableState(names=before)) is may


def test_a_load_is_not_bound_where_another_one_gave_its_names():
    own = Attempt("p", "a", "a1", datetime(2024, 3, 1, tzinfo=UTC), timedelta(days=30))
    began = TableState(running={"a": Running(attempt="a1", since=own.started)})
    now = began.model_copy(update={"committed": 1, "names": (OTHER,)})
    named = intent(own).model_copy(update={"names": (NAME,)})
    assert may_bind(began, named, began)
    assert not may_bind(now, named, began)
    assert may_bind(now, named.model_copy(update={"names": None}), began)
