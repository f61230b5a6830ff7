"""The rules of undos, each taken out."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.mutation import Mutation

UNDO_MUTATIONS: Final[Mapping[str, Mutation]] = {
    "undo-fence": Mutation(
        "an undo binds only to the table it was planned on",
        "return False",
        kinds="files,glue,iceberg,airbyte,estuary",
        held_by="tests/commit/test_attempt.py -k test_what_may_change_before_a_change_is_bound",
    ),
    "undo-binds-first": Mutation(
        "nothing is deleted before the undo is bound",
        (
            "[member.control.store.delete(each.key, each.etag) for plan in plans for each in plan.removes]\n"
            "attempts.bind(member.control, attempt, member.intent, member.began, open_clients)"
        ),
        kinds="files,glue,airbyte,estuary",
    ),
    "undone-as-a-pair": Mutation(
        "a load is undone in a table and in its history, or in neither",
        "together = None",
        kinds="history",
        held_by="tests/load/test_history.py -k test_both_are_undone_or_neither",
    ),
    "undo-cursor": Mutation(
        "the cursor goes back with the load that moved it",
        '"cursor": lambda state, intent, at: state.cursor',
        kinds="files,glue,iceberg,airbyte,estuary",
    ),
    "undo-last": Mutation(
        "a load from whose cursor another one went on is not undone without it",
        "jobs: list[str] = []",
        kinds="files,glue,iceberg,airbyte,estuary",
    ),
    "repeat-where-undone": Mutation(
        "a load after an undo is done where the load that it repeats is",
        "for done in (job_id,):",
        kinds="files,glue,iceberg,airbyte,estuary",
    ),
    "retire-before-partition": Mutation(
        "objects that are still to be deleted are not found again with a new partition",
        "pass",
        kinds="glue",
    ),
    "undo-partition-alone": Mutation(
        "a partition is dropped only if nothing but the load lies in it",
        "return True",
        kinds="glue",
    ),
}
