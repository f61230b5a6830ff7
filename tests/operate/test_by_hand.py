"""``verbs``, cell by cell: what a person does while a change of a table is at some point, and what follows."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from lakewriter.commit.pipeline import Pipeline
from lakewriter.operate.lost_intent import abandon_without_intent
from tests.operate import verbs
from tests.operate.verbs import KINDS, VERBS, expect
from tests.simulation.drill import LAKES, Drill, is_before_report, is_before_write, is_behind_write
from tests.simulation.simulated import SimulatedClients
from tests.simulation.stand_ins import installed


def stop(drill: Drill, kill: Callable[[Any], bool]) -> None:
    assert drill.change(kill=kill) == "killed"


def lose_intent(drill: Drill, kill: Callable[[Any], bool]) -> None:
    stop(drill, kill)
    state: Any = drill.read_state()
    pending = state.pending
    for key in [key for key in drill.bucket.objects if f"/{pending.job_id}/{pending.attempt}/tables/" in key]:
        drill.lose(key)


def withdraw_in_part(drill: Drill) -> None:
    """Whoever gives it up dies before the end."""
    stop(drill, is_behind_write(2))
    assert drill.run(drill.abandon, kill=is_behind_write(2)) == "killed"


def lose_state(drill: Drill) -> None:
    stop(drill, is_before_report)
    drill.lose(drill.place.state)


MOMENTS: Final[Mapping[str, tuple[str | None, Callable[[Drill], object]]]] = {
    # The phase of what is pending then, and how it comes to that. A change replaces the state four times: it registers,
    # is bound, has its files complete, and is closed.
    "nothing is pending": (None, lambda drill: drill.change()),
    "an attempt is registered": (None, lambda drill: stop(drill, is_before_write(2))),
    "`intended`": ("intended", lambda drill: stop(drill, is_behind_write(2))),
    "`uploaded`, readers do not see it": ("uploaded", lambda drill: stop(drill, is_behind_write(3))),
    "`uploaded`, readers see it": ("uploaded", lambda drill: stop(drill, is_before_report)),
    "its report is written": ("uploaded", lambda drill: stop(drill, is_before_write(4))),
    "`aborting`": ("aborting", withdraw_in_part),
    "`intended`, the intent is lost": ("intended", lambda drill: lose_intent(drill, is_behind_write(2))),
    "`uploaded`, the intent is lost": ("uploaded", lambda drill: lose_intent(drill, is_behind_write(3))),
    "the state is lost": (None, lose_state),
}
COMMANDS: Final[Mapping[str, Callable[[Drill], Any]]] = {
    "abandon": lambda drill: drill.abandon,
    "abandon --intent-lost": lambda drill: drill.abandon_lost,
    "reset --no-cursor": lambda drill: drill.reset,
    "reset --go-on": lambda drill: drill.adopt,
    "rebuild": lambda drill: drill.rebuild,
    "undo": lambda drill: drill.undo,
    "undo, twice": lambda drill: drill.undo_again,
    "compact": lambda drill: drill.compact,
    "replay": lambda drill: drill.replay,
}


CELLS: Final = [
    (verb, moment, kind, expect(verb, moment, kind)) for verb in COMMANDS for moment in MOMENTS for kind in LAKES
]


@pytest.fixture(scope="module", autouse=True)
def simulated() -> Iterator[None]:
    with installed():
        yield


def test_verbs_moments_and_kinds_are_those_that_are_drilled():
    assert (VERBS.keys(), verbs.MOMENTS.keys(), KINDS.keys()) == (COMMANDS.keys(), MOMENTS.keys(), LAKES.keys())


SHORT: Final[Mapping[str, tuple[str, ...]]] = {
    # A row of the short table of docs/failures.md, and the moments that it is about.
    "done, or an attempt is only registered": ("nothing is pending", "an attempt is registered"),
    "`intended`, or being withdrawn (`aborting`)": ("`intended`", "`aborting`"),
    "`uploaded`": ("`uploaded`, readers do not see it", "`uploaded`, readers see it", "its report is written"),
    "`intended` or `uploaded`, the intent is lost": (
        "`intended`, the intent is lost",
        "`uploaded`, the intent is lost",
    ),
    "its state is lost": ("the state is lost",),
}
COLUMNS: Final = (
    *(("abandon",), ("abandon --intent-lost",), ("reset --no-cursor", "reset --go-on"), ("rebuild",)),
    ("undo", "compact", "replay"),
)


def test_the_short_table_of_the_page_agrees():
    """Where it says without more that a command is refused, or done, each cell here says so."""
    page = (Path(__file__).parents[2] / "docs" / "failures.md").read_text("utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.partition("| the change is |")[2].splitlines()[2:7]]
    assert [row[0] for row in rows] == list(SHORT)
    ends = {cell[:3]: cell[3] for cell in CELLS}
    for moments, short in ((SHORT[row[0]], row[1:]) for row in rows):
        for commands, said in zip(COLUMNS, short, strict=True):
            found = {ends[each] for each in ends if each[0] in commands and each[1] in moments}
            if said.startswith("refused"):
                assert all(end.isupper() for end in found), (moments, commands)
            if said == "done":
                assert found == {"done"}, (moments, commands)


def shorten(end: str) -> str:
    """What a command came to, as the page says it."""
    word = re.match("undone|closed|given up", end)
    return word[0] if word else end


@pytest.mark.one_in(63)
@pytest.mark.parametrize(("command", "moment", "kind", "said"), CELLS)
def test_cell(command: str, moment: str, kind: str, said: str):
    drill, (phase, come_to) = Drill(kind), MOMENTS[moment]
    drill.prepare()
    come_to(drill)
    state: Any = drill.read_state()
    assert (state.pending.phase if state is not None and state.pending is not None else None) == phase
    if moment == "nothing is pending":
        assert bool(state.retiring) is (kind in {"refresh", "undo of a refresh"})
    before = drill.bucket.objects.get(drill.place.state)
    assert shorten(drill.run(COMMANDS[command](drill))) == said
    # These finish what is pending before they are refused.
    if said.isupper() and command not in {"undo", "undo, twice", "compact"}:
        assert drill.bucket.objects.get(drill.place.state) == before, "it was refused"
    go_on(drill, moment)
    state = drill.read_state()
    assert (state.pending, drill.list_doubled(), drill.verify()) == (None, [], [])


def test_bad_rows_of_a_load_without_its_intent_go_with_its_other_objects():
    drill = Drill("replay")
    assert drill.change("a", kill=is_before_write(3)) == "killed"
    drill.lose(next(key for key in drill.bucket.objects if "/loads/a/" in key and "/tables/" in key))
    assert sum(f"{drill.place.quarantine}/" in key for key in drill.bucket.objects) == 1

    def abandon(clients: SimulatedClients) -> str:
        return abandon_without_intent(Pipeline.open(drill.lake.spec, clients).controls, "a", "r")[drill.table.id]

    assert drill.run(abandon).startswith("undone, without its intent: 2 objects that it wrote deleted")
    assert [key for key in drill.bucket.objects if drill.place.path in key and "_lakewriter" not in key] == []


ENDS: Final = {"done", "already_done", "nothing", "LOAD_UNDONE"}
"""Of the change made again, and of the next load."""


def go_on(drill: Drill, moment: str) -> None:
    """Restore what is lost, make the change again, and load once more."""
    state: Any = drill.read_state()
    if state is None:
        assert drill.run(drill.rebuild) == "done"
        state = drill.read_state()
    if state.pending is not None and moment.endswith("the intent is lost"):
        drill.run(drill.abandon_lost)
    end = drill.change()
    if drill.kind == "micro-batch":
        # It ends where another kind of load was let in, or its last batch was taken back.
        assert end in {*ENDS, "CHECKPOINT_LOST"}
        return
    assert end in ENDS
    assert drill.change("z") == "done"
