"""What is loaded of the streams of a sync whose source has one state for all of them."""

import json
from typing import Any

import pytest

from lakewriter.records.sync_records import SourceState
from lakewriter.run.common_state import (
    SyncStream,
    catch_up,
    has_common_state,
    hold_unsure,
    judge_together,
    list_unsure,
)
from lakewriter.run.stream_completion import Input, StreamVerdict
from lakewriter.source.messages.contents import Event
from lakewriter.source.messages.splits import END, Stretch

ORDERS, USERS = ("public", "orders"), ("public", "users")


def state(place: int, *parts: str, own: str = "") -> Event:
    """A state for all streams, with parts of some; or one of a stream of its ``own``."""
    if own:
        return Event(place, "state", ("public", own), f"{own} {place}", f"{own} {place}")
    named = [{"stream_descriptor": {"name": name, "namespace": "public"}, "stream_state": {}} for name in parts]
    content = {"type": "GLOBAL", "global": {"shared_state": place, "stream_states": named}}
    return Event(place, "state", None, json.dumps(content), f"all {place}")


def kept(place: int, *, own: str = "") -> SourceState:
    """The state of that place, as a table has it once it is committed."""
    if own:
        return SourceState(kind="stream", text="{}", digest=f"{own} {place}", job_id="a")
    return SourceState(kind="global", text="", digest=f"all {place}", job_id="a", record="a/1")


def member(name: str, *, complete: bool = True, start: int = 0, before: Any = None, goes_on: bool = True) -> SyncStream:
    source = kept(9) if complete else before
    stretch = Stretch(("public", name), start, END)
    return SyncStream(
        name, ("public", name), StreamVerdict(stretch, source, complete, "" if complete else "died"), before, goes_on
    )


def split(each: SyncStream) -> SourceState:
    return SourceState(kind="stream", text=each.table_id, digest=each.table_id, job_id="a")


def show(verdicts: dict[str, StreamVerdict]) -> dict[str, tuple[Any, ...]]:
    """By stream the end of its stretch, its state, and whether it is complete."""
    return {
        name: (each.stretch and each.stretch.end, each.source and each.source.digest, each.complete)
        for name, each in verdicts.items()
    }


TOGETHER = [
    # the states of the input; the streams; what is loaded of each
    pytest.param(
        [state(3), state(9)], [member("orders"), member("users")],
        {"orders": (END, "all 9", True), "users": (END, "all 9", True)}, id="both complete",
    ),
    pytest.param(
        [state(3), state(6)], [member("orders"), member("users", complete=False)],
        {"orders": (6, "all 6", False), "users": (6, "all 6", False)}, id="one is complete",
    ),
    pytest.param(
        [], [member("orders"), member("users", complete=False)],
        {"orders": (None, None, False), "users": (None, None, False)}, id="no state",
    ),
    pytest.param(
        [state(6, "orders")], [member("orders", complete=False), member("users", complete=False)],
        {"orders": (6, "all 6", False), "users": (None, None, False)}, id="a new stream without a part",
    ),
    pytest.param(
        [state(6, "orders")],
        [member("orders", complete=False, before=kept(1)), member("users", complete=False, before=kept(1))],
        {"orders": (None, "all 1", False), "users": (None, "all 1", False)}, id="a stream that the state leaves out",
    ),
    pytest.param(
        [state(6)], [member("orders", complete=False, start=8, before=kept(1)), member("users", complete=False)],
        {"orders": (None, "all 1", False), "users": (None, None, False)}, id="one is further",
    ),
    pytest.param(
        [state(6)],
        [member("orders", complete=False), member("users", complete=False, goes_on=False)],
        {"orders": (6, "all 6", False), "users": (None, None, False)}, id="a full refresh without a part",
    ),
    pytest.param(
        [state(5, own="orders"), state(7, own="users")], [member("orders", complete=False), member("users")],
        {"orders": (5, "orders 5", False), "users": (7, "users 7", False)}, id="states of each now",
    ),
    pytest.param(
        [state(5, own="orders")], [member("orders", complete=False), member("users", complete=False)],
        {"orders": (None, None, False), "users": (None, None, False)}, id="a state of one alone",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("events", "members", "expected"), TOGETHER)
def test_streams_end_together(events, members, expected):
    assert show(judge_together(Input(events), members, "a", split=split)) == expected


def test_a_stream_that_cannot_go_on_holds_all():
    lost = SyncStream(
        "users", USERS, StreamVerdict(None, kept(1), complete=False, error="gone", reached=END), kept(1), True
    )
    found = judge_together(Input([state(6)]), [member("orders"), lost], "a", split=split)
    assert [each.stretch for each in found.values()] == [None, None]
    assert found["orders"].error.endswith("stream 'users' cannot go on: gone")


def test_states_of_which_there_is_none_for_all():
    orders = SyncStream("orders", ORDERS, StreamVerdict(Stretch(ORDERS, 0, END), kept(9), complete=True), None, True)
    users = SyncStream("users", USERS, StreamVerdict(Stretch(USERS, 0, END), kept(3), complete=True), None, True)
    found = judge_together(Input([]), [orders, users], "a", split=split)
    assert [(each.stretch, each.error) for each in found.values()] == [
        (None, "the connector has sent no state that all streams have reached.")
    ] * 2


def test_a_stream_takes_its_own_out_of_a_state_for_all():
    orders = SyncStream("orders", ORDERS, StreamVerdict(Stretch(ORDERS, 0, END), kept(9), complete=True), kept(9), True)
    own = kept(5, own="users")
    users = SyncStream("users", USERS, StreamVerdict(Stretch(USERS, 0, END), own, complete=True), kept(9), True)
    found = judge_together(Input([]), [orders, users], "a", split=split)
    assert show(found) == {"orders": (END, "orders", True), "users": (END, "users 5", True)}


@pytest.mark.parametrize(
    ("ended", "error"),
    [
        (member("s.t", before=kept(6)), ""),
        (member("s.t", before=kept(7)), "is done under this job id up to a STATE that the connector has not reached"),
        (member("s.t", before=None), "is done under this job id, and nothing shows up to which state"),
        (
            member("s.t", before=kept(6).model_copy(update={"record": None})),
            "is done under this job id, and nothing shows",
        ),
        (member("s.t", before=kept(6, own="t")), "is done under this job id, up to a STATE of its stream alone"),
    ],
)
def test_the_rest_of_a_load_that_is_done_in_another_table(ended, error):
    members = [member("orders", before=kept(1))]
    found = judge_together(Input([state(6), state(9)]), members, "a", ended=ended, split=split)["orders"]
    assert error in found.error
    assert (found.stretch and found.stretch.end, found.complete) == ((None, False) if error else (6, True))


def test_streams_are_caught_up_to_a_state_behind_both():
    members = [member("orders", start=4, before=kept(3)), member("users", start=1, before=None)]
    assert show(catch_up(Input([state(3), state(6)]), members, "a")) == {
        "orders": (6, "all 6", False), "users": (6, "all 6", False)
    }  # fmt: skip
    assert catch_up(Input([state(2)]), members, "a") == {}
    assert catch_up(Input([state(5, own="orders"), state(6, own="users")]), members, "a") == {}


def test_a_stream_without_a_state_waits_while_the_source_may_say_one_for_all():
    orders, users = member("orders"), member("users", complete=False)
    assert list_unsure(Input([]), [orders, users]) == [orders, users]
    held = hold_unsure(Input([]), [orders, users])
    assert held["orders"].error == (
        "the source has sent no state for it, and stream 'users' is not complete: the next state may be one for all "
        "streams"
    )
    assert (held["orders"].stretch, held["users"]) == (None, users.verdict)
    assert hold_unsure(Input([]), [orders]) == {"orders": orders.verdict}
    assert list_unsure(Input([state(5, own="orders")]), [orders]) == []


def test_whether_a_source_has_one_state_for_all():
    assert has_common_state(Input([state(3)]), [None])
    assert has_common_state(Input([]), [kept(3)])
    assert not has_common_state(Input([state(3, own="orders")]), [None, kept(3, own="orders")])
