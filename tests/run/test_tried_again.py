"""Where a load that is tried again goes on: behind what it has committed, or nowhere where that is not to be found."""

from typing import Any

import pytest

from lakewriter.records.sync_records import FirstMessage, SourceState
from lakewriter.run.stream_completion import Input, StreamVerdict, make_source_state
from lakewriter.source.messages.contents import Event
from lakewriter.spec.stream import StreamKey
from tests.run.test_stream_completion import (
    BOOM,
    COMPLETE,
    EXIT_0,
    FAILED,
    NONE,
    ORDERS,
    UNSEEN,
    UNTOLD,
    USERS,
    ended_well,
    state,
    status,
)
from tests.support.narrow import need


def test_records_before_a_state_of_the_same_load_are_skipped():
    first, second = state(10, USERS, 1), state(20, USERS, 2)
    before = make_source_state(first, "j")
    assert need(ended_well(first, second).judge(USERS, "j", before).stretch).start == 11
    assert need(ended_well(first, second).judge(USERS, "other", before).stretch).start == 0
    assert need(ended_well(first, state(20, USERS, 1)).judge(USERS, "j", before).stretch).start == 11
    assert Input([first, BOOM]).judge(USERS, "j", before) == StreamVerdict(
        None, before, complete=False, error="the source reports: boom", reached=10
    )


OTHER = Event(30, "error", ORDERS, "boom")
ONE, TWO, THREE = state(10, USERS, 1), state(20, USERS, 2), state(30, USERS, 3)
COMMITTED = "load 'j' has committed its records up to the STATE at byte 20 of input file 1, and the input"
ENDED_BEFORE = f"{COMMITTED} ends before it, with the line at byte 10 of input file 1"
CHANGED = f"{COMMITTED}, which has the same first message of the stream, has another line there"
TRIED_AGAIN = [
    # What is known of the end of an input that is tried again, the digest of its first record, its events, its last
    # line, where records of users begin, or why none may be loaded. The first record was "a", at 0; TWO is committed.
    # The same input, as long as it was or longer.
    (UNSEEN, "a", [ONE, TWO], 20, 21),
    (UNSEEN, "a", [ONE, TWO, THREE, status(40, USERS, "COMPLETE")], 40, 21),
    # The same, cut off.
    (UNSEEN, "a", [ONE], 10, ENDED_BEFORE),
    (NONE, "a", [ONE], 10, ENDED_BEFORE),
    (NONE, "a", [], 10, ENDED_BEFORE),
    (NONE, None, [OTHER], 10, ENDED_BEFORE),
    (NONE, None, [], -1, f"{COMMITTED} is empty"),
    (NONE, None, [OTHER], 30, f"{COMMITTED} has no message of the stream"),
    (UNSEEN, None, [], -1, UNTOLD),
    # Changed before the state, or sent again from the beginning.
    (UNSEEN, "a", [ONE, state(25, USERS, 2), COMPLETE], 25, CHANGED),
    (EXIT_0, "a", [ONE, THREE], 30, CHANGED),
    # Another one.
    (UNSEEN, "b", [state(5, USERS, 3), COMPLETE], 5, 0),
    (NONE, "b", [THREE], 30, 0),
    (NONE, "b", [state(5, USERS, 2), THREE], 30, 0),
    (EXIT_0, "b", [], 0, 0),
    (EXIT_0, None, [], -1, 0),
    (UNSEEN, None, [COMPLETE], 5, 0),
]  # fmt: skip


def try_again(ended: Any, first: str | None, events: Any, last_line: int) -> Input:
    records: dict[StreamKey, tuple[int, str]] = {USERS: (0, first)} if first else {}
    return Input(events, "", dict.fromkeys(records, 0), ended, first_records=records, last_line=last_line)


@pytest.mark.parametrize(("ended", "first", "events", "last_line", "expected"), TRIED_AGAIN)
def test_input_of_a_load_that_is_tried_again(ended, first, events, last_line, expected):
    before = need(try_again(UNSEEN, "a", [ONE, TWO], 20).judge(USERS, "j", None).source)
    assert before.first == FirstMessage(place=0, digest="a")
    found = try_again(ended, first, events, last_line).judge(USERS, "j", before)
    if isinstance(expected, str):
        assert (found.stretch, found.source, found.complete, found.error) == (None, before, False, expected)
        assert bool(found.remedy) == (expected != UNTOLD)
    else:
        assert found.stretch is None or found.stretch.start == expected
        assert found.complete or events == [ONE, TWO]


def test_what_does_not_stay_may_be_loaded_from_the_beginning():
    before = try_again(UNSEEN, "a", [ONE, TWO], 20).judge(USERS, "j", None).source
    assert need(try_again(NONE, "a", [ONE], 10).judge(USERS, "j", before, stays=False).stretch).start == 0
    assert need(try_again(NONE, "a", [ONE, TWO], 20).judge(USERS, "j", before, stays=False).stretch).start == 21


def test_state_that_was_an_inputs_first_message_covers_no_record():
    before = need(try_again(UNSEEN, None, [ONE], 10).judge(USERS, "j", None).source)
    again = try_again(NONE, None, [state(7, USERS, 1), TWO], 20)
    assert (before.first, need(again.judge(USERS, "j", before).stretch).start) == (
        FirstMessage(place=10, digest=ONE.digest), 0,
    )  # fmt: skip


EARLIER_RELEASES = [
    # the place of a state without the first message of its input, the last line of the one that is tried again, where
    # its records begin, or None
    (None, 10, 0),
    (20, 30, 0),
    (20, 20, None),
    (20, 10, None),
]


@pytest.mark.parametrize(("place", "last_line", "start"), EARLIER_RELEASES)
def test_state_that_an_earlier_release_has_left(place, last_line, start):
    before = SourceState(kind="stream", text="{}", digest=TWO.digest, job_id="j", place=place)
    stretch = try_again(NONE, "a", [ONE], last_line).judge(USERS, "j", before).stretch
    assert (stretch and stretch.start) == start


def test_state_of_a_complete_stream_has_no_first_message():
    found = try_again(NONE, "a", [ONE], 10).judge(USERS, "j", None)
    assert "first" not in need(found.source).model_dump()


def test_state_behind_a_record_that_is_bad_by_now_is_found():
    before = try_again(NONE, "a", [ONE, TWO, BOOM], 90).judge(USERS, "j", None).source
    bad = Event(15, "bad record", USERS, "cut")
    found = try_again(NONE, "a", [ONE, bad, TWO, THREE], 30).judge(USERS, "j", before)
    assert (found.stretch, found.source, found.error) == (
        None, before, "a message at byte 15 of input file 1 cannot be read: cut",
    )  # fmt: skip


PASSED_BY = (
    "load 'j' has committed its records up to a later STATE than the one that the connector was given, and the "
    "connector has not reached that STATE again"
)
GIVEN = [
    # the state of users, what the connector was given, whether it sent a record of users, its failure, where records of
    # users begin or why none may be loaded: it says states 1 at 10 and 15, 2 at 20
    (1, 1, True, "", 0),
    (1, 0, True, "", 11),
    (2, 1, True, "", 21),
    (3, 1, False, "", 0),
    (3, 1, True, "", PASSED_BY),
    (3, 1, True, FAILED, FAILED),
    (3, 1, False, FAILED, FAILED),
]


@pytest.mark.parametrize(("own", "given", "sent", "failure", "expected"), GIVEN)
def test_connector_begins_behind_what_it_was_given(own, given, sent, failure, expected):
    before, handed = (make_source_state(state(10, None, cursor), "j") for cursor in (own, given))
    said = [state(10, None, 1), state(15, None, 1), state(20, None, 2)]
    last: dict[StreamKey, int] = {USERS: 12} if sent else {}
    found = Input(said, failure, last, "unseen" if failure else "exit 0").judge(USERS, "j", before, handed)
    if isinstance(expected, str):
        assert (found.stretch, found.source, found.error) == (None, before, expected)
        assert "lakewriter undo LAKE j --table TABLE --reason WHY" in found.remedy
        # The way out where that load is undone already.
        assert found.remedy.endswith("lakewriter reset LAKE TABLE --no-cursor --reason WHY")
    else:
        assert (need(found.stretch).start, found.complete) == (expected, True)
