"""The steps of a table's state: where each is valid, and that nothing else sets a field of a state."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from lakewriter.commit.attempt import Attempt
from lakewriter.records.changes import KINDS
from lakewriter.records.fold import by_hand, closing, steps
from lakewriter.records.fold.closing import Close
from lakewriter.records.fold.steps import Step, Successions, Turn, fold
from lakewriter.records.input_records import InputPart, Inputs, InputsIntent
from lakewriter.records.state import FIELDS, Lost, Pending, TableState
from tests.commit.intents import intent

PACKAGE: Final = Path(by_hand.__file__).parents[2]
NOW: Final = datetime(2024, 3, 1, tzinfo=UTC)
OWN: Final = Attempt("p", "a", "A1", NOW, timedelta(days=30))
EVERYWHERE: Final = "none>none prepared>prepared intended>intended uploaded>uploaded aborting>aborting"

SUCCESSIONS: Final = {
    # each step, by docs/control-objects.md: the phases of the pending change in which it is valid, and those it leaves
    "Register": "none>none",
    "Fence": EVERYWHERE,
    "Leave": EVERYWHERE,
    "Bind": "none>prepared none>intended",
    "Turn": "prepared>intended prepared>aborting intended>uploaded intended>aborting",
    "GiveUp": "uploaded>aborting",
    "Withdraw": "aborting>none",
    "Close": "uploaded>none none>none",
    "CloseBlindly": "none>none",
    "EndBlindly": "prepared>none intended>none uploaded>none aborting>none",
    "Conclude": "none>none none>prepared none>intended none>uploaded none>aborting",
    "Note": EVERYWHERE,
    "SetCursor": "none>none",
    "CountAsRead": "none>none",
    "ChangeOver": "none>none",
    "AdoptSyncs": "none>none",
    "AdoptFiles": "none>none",
    "BeginBackfill": "none>none",
    "DropGeneration": "none>none",
    "Forget": EVERYWHERE,
    "PassGeneration": EVERYWHERE,
    "Sweep": EVERYWHERE,
    "Learn": EVERYWHERE,
}


def list_steps() -> dict[str, type[Step]]:
    return {
        name: step
        for module in (steps, closing, by_hand)
        for name, step in vars(module).items()
        if isinstance(step, type) and issubclass(step, Step) and not step.__abstractmethods__
    }


def test_every_step_has_its_row():
    assert list_steps().keys() == SUCCESSIONS.keys()


@pytest.mark.parametrize("name", SUCCESSIONS)
def test_the_phases_in_which_a_step_is_valid(name: str):
    rows = {
        f"{before or 'none'}>{after or 'none'}" for before, to in list_steps()[name].successions.items() for after in to
    }
    assert rows == set(SUCCESSIONS[name].split())


SETS: Final = re.compile(
    r"\b\w*(?:state|began|seen|closed)\.(?:model_copy|replace)\(|\bset_fields\b|(?<!class )\bTableState\([^)]"
)


def test_nothing_but_the_fold_sets_a_field_of_a_state():
    modules = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "fold"]
    assert len(modules) > 400
    found = [f"{path.name}: {match[0]}" for path in modules for match in SETS.finditer(path.read_text("utf-8"))]
    assert found == []


class Skip(Turn):
    """A step that leaves a phase which its successions lack."""

    successions: ClassVar[Successions] = {"uploaded": (None,)}


def test_a_step_that_leaves_another_phase_is_a_fault():
    pending = Pending(job_id="a", attempt="A", phase="uploaded", since=NOW)
    with pytest.raises(AssertionError, match="Skip leaves 'aborting', expected one of"):
        fold(TableState(pending=pending), Skip(pending, "aborting"))


@pytest.mark.parametrize("phase", ["prepared", "intended", "aborting"])
def test_a_step_that_is_not_valid_in_a_phase(phase: Any):
    """Only a change whose files are complete is closed."""
    pending = Pending(job_id="a", attempt="A1", phase=phase, since=NOW)
    with pytest.raises(Lost):
        fold(TableState(pending=pending), Close(intent(OWN), NOW, pending))


def test_each_kind_of_change_leaves_something():
    assert closing._CLOSES.keys() == KINDS.keys()


def test_each_field_that_an_undo_takes_back_has_its_way():
    """A new field has a class, and if it follows the source or the files, a way back. Deleted rows are counted anew."""
    assert {name for name, follows in FIELDS.items() if follows in ("source", "files")} == {
        *closing._TAKEN_BACK,
        "deletes",
    }


def test_files_that_loads_of_a_rebuilt_state_have_read():
    """Each intent repeats the record of the loads before it; whether later loads are missing nobody knows."""
    first, second = (InputPart(key=key, sha256="", length=1, files=1) for key in "ab")
    inputs = InputsIntent(before=Inputs(committed=7, parts=(first,)), adds=(second,))
    closed = fold(TableState(), Close(intent(OWN, inputs=inputs), NOW, None)).inputs
    assert closed == Inputs(committed=-1, parts=(first, second))
