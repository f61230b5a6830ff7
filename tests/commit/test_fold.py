"""The steps of a table's state: where each is valid, and that nothing else sets a field of a state."""

import re
from pathlib import Path
from typing import Final

import pytest

from lakewriter.commit.fold import by_hand, closing, steps
from lakewriter.commit.fold.steps import Step

PACKAGE: Final = Path(by_hand.__file__).parents[2]
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
