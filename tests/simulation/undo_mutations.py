"""The rules of undos, each taken out."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.mutation import Mutation, leave_out

_KINDS: Final = "files,glue,iceberg,airbyte,estuary"

UNDO_MUTATIONS: Final[Mapping[str, Mutation]] = {
    "undo-fence": leave_out(
        "an undo binds only to the table it was planned on",
        "commit.changes:Change.depends",
        "        return self.is_exclusive or self.intent.depends_on_state\n",
        "        return not self.is_exclusive and self.intent.depends_on_state\n",
        _KINDS,
    ),
    "undo-binds-first": leave_out(
        "nothing is deleted before the undo is bound",
        "operate.undo:Undo._try",
        "            attempts.bind(",
        "            [control.store.delete(each.key, each.etag) for each in plan.removes]\n            attempts.bind(",
        "files,glue,airbyte,estuary",
    ),
    "undo-cursor": leave_out(
        "the cursor goes back with the load that moved it",
        "commit.changes:Undo.list_state_changes",
        "    if load.restores_cursor:\n",
        "    if False:\n",
        _KINDS,
    ),
    "undo-last": leave_out(
        "a load from whose cursor another one went on is not undone without it",
        "operate.undo_plan:UndoPlanner._name_after",
        "        jobs = [load.job_id for load in self.after if goes_on(load)]\n",
        "        jobs: list[str] = []\n",
        _KINDS,
    ),
    "repeat-where-undone": leave_out(
        "a load after an undo is done where the load that it repeats is",
        "commit.repeated_loads:find_done",
        "        for done in (job_id, *repeats.of):\n",
        "        for done in (job_id,):\n",
        _KINDS,
    ),
    "retire-before-partition": leave_out(
        "objects that are still to be deleted are not found again with a new partition",
        "commit.recover:_publish",
        "        retire_partition(control, intent)\n",
        "        pass\n",
        "glue",
    ),
    "undo-partition-alone": leave_out(
        "a partition is dropped only if nothing but the load lies in it",
        "operate.undo_plan:UndoPlanner._is_alone",
        "        return all(entry.key in keys for entry in self.control.store.list_entries(prefix))\n",
        "        return True\n",
        "glue",
    ),
}
