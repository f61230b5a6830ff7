"""The rules of compactions beside loads, of late calls, and of what other commands rely on, each taken out."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.mutation import Mutation

_COMPACTED: Final = "tests/load/test_compacted.py -k "
_LATE: Final = "tests/operate/test_late_calls.py -k "

LATE_MUTATIONS: Final[Mapping[str, Mutation]] = {
    "compaction-compares-no-state": Mutation(
        "a compaction is bound whatever loads have committed meanwhile",
        "and is_unchanged(began, state, exclusive=change.depends())",
        kinds="merged",
        held_by="tests/commit/test_attempt.py -k test_what_may_change_before_a_change_is_bound",
    ),
    "compacted-deletes-stay": Mutation(
        "deletes that a compaction has applied must still be in the table when it is committed",
        "",
        kinds="merged",
        held_by=f"{_COMPACTED}test_a_merge_whose_deletes_were_applied_is_undone",
    ),
    "compacted-spec": Mutation(
        "files of a compaction are of the table's partition spec",
        "is_of_spec = True",
        kinds="merged",
        held_by=f"{_COMPACTED}test_a_table_that_is_partitioned_in_another_way_meanwhile",
    ),
    "compacted-behind-a-rollback": Mutation(
        "after a rollback the deletes are compared that were there before",
        "return entry.sequence_number is None or entry.sequence_number > self._sequence",
        kinds="merged",
        held_by=f"{_COMPACTED}test_changes_between_binding_and_commit",
    ),
    "unused-deletes": Mutation(
        "files with deletes that apply to nothing leave the table",
        "unused: list[str] = []",
        kinds="merged",
        held_by=f"{_COMPACTED}test_deletes_leave_with_the_rows_that_they_deleted",
    ),
    "compaction-after-commit": Mutation(
        "a compaction begins after the last commit of its table",
        "if False:",
        kinds="merged",
        held_by=f"{_COMPACTED}test_a_compaction_begins_after_the_last_commit",
    ),
    "sweep-spares-decision": Mutation(
        "the load stays whose decision has the source's state",
        "synced: set[str] = set()",
        kinds="connector",
        held_by="tests/commit/test_retention.py -k test_what_another_tables_state_names_stays",
    ),
    "sweep-spares-deleted-keys": Mutation(
        "the load stays that has noted the deleted keys",
        "deleted: set[str] = set()",
        kinds="merged",
        held_by="tests/commit/test_retention.py -k test_what_another_tables_state_names_stays",
    ),
    "sweep-spares-partitions": Mutation(
        "the change stays that decides whether a dropped partition is there",
        "shown = generation_jobs",
        kinds="glue",
        held_by="tests/commit/test_retention.py -k test_what_another_tables_state_names_stays",
    ),
    "reset-ends-attempts": Mutation(
        "no attempt that runs commits after single loads and batches were changed over",
        "return noted.replace(batch=Batch(ADOPTED, state.changes))",
        kinds="batches",
        held_by="tests/operate/test_repair.py -k test_no_running_attempt_commits_after_it",
    ),
    "adopt-ends-attempts": Mutation(
        "no attempt that runs commits after files were adopted",
        "",
        kinds="estuary",
        held_by="tests/operate/test_repair.py -k test_no_running_attempt_commits_after_it",
    ),
    "release-together": Mutation(
        "what was prepared together is withdrawn together",
        "if False:",
        kinds="connector",
        held_by="tests/commit/test_together.py",
    ),
    "deleted-keys-gone": Mutation(
        "a merge is not done without the keys that were deleted before it",
        "if False:",
        kinds="merged",
        held_by="tests/load/test_merged.py -k test_deleted_keys_that_are_gone",
    ),
    "late-calls": Mutation(
        "each process looks at dropped partitions again after its calls",
        "corrected: tuple[str, ...] = ()",
        kinds="glue",
        held_by=f"{_LATE}test_a_process_that_was_held_up_at_its_call_looks_again",
    ),
    "late-drop-of-others": Mutation(
        "a partition is not dropped again where it has files of others",
        "return True",
        kinds="glue",
        held_by=f"{_LATE}test_a_partition_with_files_of_others_stays",
    ),
    "undone-while-held": Mutation(
        "a load that was undone while its process was held up is not done",
        "if False:",
        kinds="glue",
        held_by=f"{_LATE}test_a_process_that_was_held_up_at_its_call_looks_again",
    ),
    "dropped-partitions-end": Mutation(
        "a dropped partition is compared for a day",
        "entries = state.partitions",
        kinds="glue",
        held_by="tests/commit/test_changes.py -k test_partitions_that_were_dropped",
    ),
    "dropped-partitions-only": Mutation(
        "partitions that no undo has dropped are not compared",
        "if False:",
        kinds="glue",
        held_by="tests/commit/test_changes.py -k test_partitions_that_were_dropped",
    ),
}
