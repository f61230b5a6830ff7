"""Types that a table's state keeps, and loads that may give theirs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakewriter.commit.attempt import Attempt
from lakewriter.receipt import InferredType
from lakewriter.records.facets import Switch, UndoneLoad
from lakewriter.records.fold.closing import Close
from lakewriter.records.fold.steps import fold, may_bind
from lakewriter.records.state import Running, TableState
from tests.commit.intents import intent, recast

LONG, DOUBLE = InferredType(name="v", type="bigint"), InferredType(name="v", type="double")
BEYOND = InferredType(name="v", type="bigint", beyond_double=True)
X, Y = InferredType(name="x", type="bigint"), InferredType(name="y", type="string")
STRUCT, LONGER = (InferredType(name="s", type="struct", fields=fields) for fields in ((X,), (Y, X)))


def of(load: str, *columns: InferredType) -> tuple[InferredType, ...]:
    return tuple(column.model_copy(update={"load": load}) for column in columns)


@pytest.mark.parametrize(
    ("kept", "given", "expected"),
    [
        (None, None, None),
        (None, (LONG,), of("b", LONG)),
        (of("a", LONG), None, of("a", LONG)),
        # Another load has the column as well; what is known of its values stays.
        (of("a", BEYOND), (LONG,), (BEYOND,)),
        (of("b", LONG), (LONG,), of("b", LONG)),
        (of("a", LONG), (STRUCT,), (*of("a", LONG), *of("b", STRUCT))),
        (of("a", STRUCT), (LONGER,), (LONGER,)),
        (of("a", LONGER), (STRUCT,), (LONGER.model_copy(update={"fields": (X, Y)}),)),
    ],
)
def test_types_stay(kept, given, expected):
    assert TableState(types=kept).add_types(given, "b") == expected


ACCEPTED = [
    # what the table had when the load began, what it has now, what the load gives, whether it may
    (None, None, (LONG,), True),
    (None, (LONG,), (LONG,), True),
    (None, of("x", LONG), (BEYOND,), True),
    ((LONG,), (LONG,), (DOUBLE,), True),
    ((LONG,), (DOUBLE,), (DOUBLE,), True),
    ((STRUCT,), (STRUCT,), (LONGER,), True),
    # another load has given the column another type meanwhile
    (None, (LONG,), (DOUBLE,), False),
    ((LONG,), (DOUBLE,), (LONG,), False),
    (None, (STRUCT,), (LONGER,), False),
    (None, (LONG,), (STRUCT,), True),
    (None, (LONG,), None, True),
]


@pytest.mark.parametrize(("before", "now", "given", "may"), ACCEPTED)
def test_a_load_whose_types_another_one_gave(before, now, given, may):
    assert TableState(types=now).accepts_types(given, TableState(types=before)) is may


UNDONE = UndoneLoad(job_id="a", attempt="a1", files=1, rows=1, reason="r", next="a.r2")
OWN = Attempt("p", "a", "a1", datetime(2024, 3, 1, tzinfo=UTC), timedelta(days=30))


def test_a_load_is_not_bound_where_another_one_gave_its_types():
    began = TableState(running={"a": Running(attempt="a1", since=OWN.started)})
    now = began.model_copy(update={"committed": 1, "types": of("b", LONG)})
    typed = intent(OWN).model_copy(update={"types": (DOUBLE,)})
    assert may_bind(began, typed, began)
    assert not may_bind(now, typed, began)
    assert may_bind(now, typed.model_copy(update={"types": None}), began)


def test_a_full_refresh_has_the_types_of_its_own_files():
    state, change = TableState(types=of("x", LONG, STRUCT)), intent(OWN, kind="refresh", types=(DOUBLE,))
    assert fold(state, Close(change, OWN.started, None)).types == of("a", DOUBLE)
    kept = fold(state, Close(recast(change, "replace_partitions"), OWN.started, None))
    assert kept.types == (DOUBLE, *of("x", STRUCT))


TEXT, TRUTH = InferredType(name="n", type="string"), InferredType(name="o", type="boolean")


@pytest.mark.parametrize(
    ("refresh", "later", "left"),
    [
        ((DOUBLE,), None, of("x", LONG, STRUCT)),
        (None, None, of("x", LONG, STRUCT)),
        # What loads after the refresh have given stays, as their files do.
        ((DOUBLE,), (TEXT,), (*of("x", LONG, STRUCT), *of("b", TEXT))),
        ((TEXT,), (TEXT, TRUTH), (*of("x", LONG, STRUCT), TEXT, *of("b", TRUTH))),
        ((TEXT,), (LONGER,), (*of("x", LONG), STRUCT.join(LONGER))),
    ],
)
def test_types_after_the_undo_of_a_full_refresh(refresh, later, left):
    """Its own go, and those of the files before it come back."""
    state = TableState(types=of("x", LONG, STRUCT), generation=3)
    for change in (
        intent(OWN, kind="refresh", types=refresh, switch=Switch(before=3, after=4)),
        intent(replace(OWN, job_id="b"), types=later),
        intent(replace(OWN, job_id="undo.a"), kind="undo", undoes=UNDONE, switch=Switch(before=4, after=3)),
    ):
        state = fold(state, Close(change, OWN.started, None))
    assert state.types == left
