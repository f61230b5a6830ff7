"""What a person does with a sync whose streams are committed together: ``prepared`` comes before they are bound."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pytest

from lakewriter.commit.pipeline import Pipeline
from lakewriter.operate.lost_intent import abandon_without_intent
from tests.operate.test_by_hand import COMMANDS, ENDS, shorten
from tests.simulation.drill import TOGETHER, Drill
from tests.simulation.simulated import SimulatedClients
from tests.simulation.stand_ins import installed


def list_phases(drill: Drill) -> list[str | None]:
    """Of what is pending in each table."""
    states = [json.loads(own.body) for key, own in drill.bucket.objects.items() if key.endswith("/state.json")]
    return [(state["pending"] or {}).get("phase") for state in states]


def is_first(drill: Drill, phase: str) -> bool:
    state = drill.read_state()
    return state is not None and state.pending is not None and state.pending.phase == phase


def is_decided(drill: Drill) -> bool:
    return any("/loads/b/" in key and key.endswith("/decision.json") for key in drill.bucket.objects)


def stop(drill: Drill, kill: Callable[[], bool]) -> None:
    assert drill.change(kill=lambda _: kill()) == "killed"


def stop_undecided(drill: Drill) -> None:
    stop(drill, lambda: list_phases(drill) == ["prepared"] * 2 and not is_decided(drill))


def stop_decided(drill: Drill) -> None:
    stop(drill, lambda: list_phases(drill) == ["prepared"] * 2 and is_decided(drill))


def lose_intent(drill: Drill, come_to: Callable[[Drill], None]) -> None:
    come_to(drill)
    tables = f"/tables/{drill.table.id}.json"
    drill.lose(next(key for key in drill.bucket.objects if "/loads/b/" in key and key.endswith(tables)))


MOMENTS: Final[Mapping[str, tuple[str, Callable[[Drill], object]]]] = {
    # The phase that the first of the tables is in, and how it comes to that.
    "`prepared`": ("prepared", stop_undecided),
    "`prepared`, decided": ("prepared", stop_decided),
    "`intended`": ("intended", lambda drill: stop(drill, lambda: is_first(drill, "intended"))),
    "`uploaded`": ("uploaded", lambda drill: stop(drill, lambda: is_first(drill, "uploaded"))),
    "`prepared`, an intent is lost": ("prepared", lambda drill: lose_intent(drill, stop_undecided)),
    "`prepared`, decided, an intent is lost": ("prepared", lambda drill: lose_intent(drill, stop_decided)),
}


LOST, INVALID = "PENDING_UNRECOVERABLE", "SPEC_INVALID"
ENDS_AT: Final = {
    # the command, and what it comes to at each of the moments
    "abandon": ("undone", "undone", "closed", "closed", LOST, LOST),
    "abandon --intent-lost": (INVALID, INVALID, INVALID, INVALID, "undone", "undone"),
    "reset --no-cursor": ("done", "done", "done", "done", LOST, LOST),
    "reset --go-on": ("done", "done", "done", "done", LOST, LOST),
    "rebuild": (INVALID, INVALID, INVALID, INVALID, INVALID, INVALID),
    "undo": (INVALID, "done", "done", "done", LOST, LOST),
    "undo, twice": (INVALID, "nothing", "nothing", "nothing", LOST, LOST),
}
"""``abandon --intent-lost`` ends the table without an intent and leaves the others, which end in the same way when the
job runs again or ``abandon`` ends them."""
CELLS: Final = [
    (command, moment, said) for command, ends in ENDS_AT.items() for moment, said in zip(MOMENTS, ends, strict=True)
]


@pytest.fixture(scope="module", autouse=True)
def simulated() -> Iterator[None]:
    with installed():
        yield


def test_the_table_is_whole():
    assert ENDS_AT.keys() == COMMANDS.keys() - {"replay", "compact"}


@pytest.mark.one_in(9)
@pytest.mark.parametrize(("command", "moment", "said"), CELLS)
def test_cell(command: str, moment: str, said: str):
    drill, (phase, come_to) = Drill(TOGETHER), MOMENTS[moment]
    drill.prepare()
    come_to(drill)
    state: Any = drill.read_state()
    assert state.pending.phase == phase
    before = drill.bucket.objects[drill.place.state]
    assert shorten(drill.run(COMMANDS[command](drill))) == said
    if said.isupper() and not command.startswith(("undo", "reset")):
        assert drill.bucket.objects[drill.place.state] == before, "it was refused"
    go_on(drill)
    # A stream whose cursor was taken away is read from its beginning, so its rows come again.
    doubled = [] if (command, said) == ("reset --no-cursor", "done") else drill.list_doubled()
    assert (list_phases(drill), doubled, drill.verify()) == ([None] * 2, [], [])


def test_what_has_its_intent_is_left_beside_a_table_without():
    drill, told = Drill(TOGETHER), dict[str, str]()
    drill.prepare()
    lose_intent(drill, stop_undecided)

    def abandon(clients: SimulatedClients) -> None:
        told.update(abandon_without_intent(Pipeline.open(drill.lake.spec, clients).controls, "b", "r"))

    drill.run(abandon)
    assert told["public.orders"].startswith("undone, without its intent")
    assert told["public.users"] == (
        "left as it is, since its intent is there. Abandon it by what it says: lakewriter abandon LAKE b --reason TEXT"
    )
    assert list_phases(drill) == [None, "prepared"]
    decisions = [
        own.body for key, own in drill.bucket.objects.items() if "/loads/b/" in key and key.endswith("/decision.json")
    ]
    assert [json.loads(body)["bound"] for body in decisions] == [False], "its process must not bind the other table"


def go_on(drill: Drill) -> None:
    """End what has no intent, make the change again, and load once more."""
    drill.run(drill.abandon_lost)
    assert drill.change() in ENDS
    assert drill.change("z") == "done"
