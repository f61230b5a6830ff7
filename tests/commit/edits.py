"""States that a test needs and no command makes."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from lakewriter.records.fold.steps import Step, Successions
from lakewriter.records.state import TableState

_PHASES: Final = (None, "prepared", "intended", "uploaded", "aborting")


class Edit(Step):
    """Sets fields of a state, whatever is pending; ``make`` makes them from the state."""

    successions: Successions = dict.fromkeys(_PHASES, _PHASES)  # type: ignore[misc]

    def __init__(self, make: Callable[[TableState], Mapping[str, Any]] = lambda _: {}, **fields: Any) -> None:
        self._make, self._fields = make, fields

    def _apply(self, state: TableState) -> TableState:
        return state.model_copy(update={**self._make(state), **self._fields})
