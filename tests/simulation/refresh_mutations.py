"""The rules of full refreshes, each taken out."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.mutation import Mutation, leave_out

_KIND: Final = "refresh"

REFRESH_MUTATIONS: Final[Mapping[str, Mutation]] = {
    "switch-number": leave_out(
        "a process that comes late finds that its switch, or a later one, is done in Glue",
        "commit.glue:GlueTables._switch",
        "            if last >= number:\n                return True\n",
        "            if last == number:\n                return True\n",
        _KIND,
    ),
    "latest-number": leave_out(
        "a process that comes late does not name its files in place of later ones",
        "commit.latest:_require_earlier",
        "    elif latest.change > number or (latest.change == number and latest.load != intent.load):\n",
        "    elif False:\n",
        _KIND,
    ),
    "give-up-first": leave_out(
        "the state gives a refresh up before its files are deleted",
        "commit.deferred_deletions:_retire",
        "    if entry.generation is not None and not _give_up_generation(control, entry):\n        return\n",
        "",
        _KIND,
    ),
    "shown-again-stays": leave_out(
        "what an undo shows again is not deleted in its time",
        "commit.changes:Undo._list_switched_back",
        "    retiring = tuple(entry for entry in state.retiring if entry.generation != switch.after)\n",
        "    retiring = state.retiring\n",
        _KIND,
    ),
    "folder-of-its-own": leave_out(
        "each full refresh has a folder in which nothing lies",
        "run.placement:_find_next_generation",
        "    return max(state.generation, *(number for number in numbers if number is not None), 0) + 1\n",
        "    return max(0 * state.generation, *(0 for _ in numbers), 0) + 1\n",
        _KIND,
    ),
    "undo-of-the-last": leave_out(
        "only the refresh that readers see is undone",
        "operate.undo_plan:UndoPlanner._plan_switch",
        "        if shown is None or shown.job_id != intent.job_id:\n",
        "        if False:\n",
        _KIND,
    ),
}
