"""The work of ``lakewriter status``."""

import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from lakewriter.cli import console
from lakewriter.cli.exit_reasons import find_status_error
from lakewriter.cli.printed import StatusReport
from lakewriter.cli.shared import OUT, open_context, print_json, warn
from lakewriter.commit.at_once import call_all
from lakewriter.commit.control import Control
from lakewriter.errors import InternalError, LakeError
from lakewriter.operate.health import Health, assess
from lakewriter.records.state import TableState

LOG: Final = logging.getLogger(__name__)


def print_status(lake: Path, stage: str | None, watch: int | None, *, as_json: bool) -> int:
    """Print what the pipeline has committed, once or every ``watch`` seconds."""
    controls = open_context(lake, stage).controls()
    if watch is None:
        return _show(controls, as_json).exit_code
    return show_again(lambda: _show(controls, as_json, again=True).exit_code, lambda: time.sleep(watch))


def show_again(show: Callable[[], int], pause: Callable[[], None]) -> int:
    """Call ``show`` until Ctrl-C and return its last exit code. A failure that may pass is printed, and ends
    nothing."""
    code = 0
    try:
        while True:
            try:
                code = show()
            except LakeError as error:
                if not error.transient:
                    raise
                warn(str(error))
                code = error.exit_code
            pause()
    except KeyboardInterrupt:
        return code


def read_states(controls: Mapping[str, Control]) -> tuple[dict[str, TableState], dict[str, LakeError]]:
    """Return the tables' states, and why others have none; raise what keeps all of them from being read."""
    answers = dict(zip(controls, call_all(_read_state, controls.items()), strict=True))
    states = {table_id: answer for table_id, answer in answers.items() if isinstance(answer, TableState)}
    broken = {table_id: answer for table_id, answer in answers.items() if isinstance(answer, LakeError)}
    if broken and not states:
        raise next(iter(broken.values()))
    return states, broken


def _read_state(table: tuple[str, Control]) -> TableState | LakeError:
    table_id, control = table
    try:
        return control.state.read()
    except LakeError as error:
        return error
    except Exception as error:
        LOG.exception("Reading the state of table %s met a fault of the program.", table_id)
        return InternalError.met(f"table {table_id}", error)


def _show(controls: Mapping[str, Control], as_json: bool, *, again: bool = False) -> Health:
    states, broken = read_states(controls)
    first = next(iter(controls.values()))
    continuous = first.read_json(first.keys.continuous)
    now = datetime.now(UTC)
    health = assess(states, continuous, now, broken, loses_files=not first.abilities.deletes)
    if as_json:
        # One line per repetition, so that a log shows them one by one.
        content = StatusReport.of(states, continuous, health)
        print_json(content, find_status_error(health), indent=None if again else 1)
        return health
    if again and OUT.is_terminal:
        OUT.clear()
    console.show_status(OUT, states)
    console.show_health(OUT, health, continuous, now)
    return health
