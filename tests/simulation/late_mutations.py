"""The rules of compactions beside loads, of late calls, and of what other commands rely on, each taken out."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.mutation import Mutation

_COMPACTED: Final = "tests/load/test_compacted.py -k "
_FORMAT3: Final = "tests/iceberg/test_format3.py -k test_random_changes"
_MERGES3: Final = "tests/iceberg/test_format3_merges.py -k "
_LATE: Final = "tests/operate/test_late_calls.py -k "

LATE_MUTATIONS: Final[Mapping[str, Mutation]] = {
    "compaction-compares-no-state": Mutation(
        "a compaction is bound whatever loads have committed meanwhile",
        "and is_unchanged(began, state, exclusive=intent.depends())",
        kinds="merged",
        held_by="tests/commit/test_attempt.py -k test_what_may_change_before_a_change_is_bound",
    ),
    "sequence-not-taken": Mutation(
        "a load is committed again where a commit to another branch has taken its sequence number",
        "if False:",
        held_by="tests/iceberg/test_format3.py -k test_another_writer_commits_to_a_branch_between",
    ),
    "retention-of-main": Mutation(
        "a load keeps how long the snapshots of its branch are kept",
        "retention = {}",
        held_by="tests/iceberg/test_format3.py -k test_the_retention_of_main_stays",
    ),
    "row-ids-inherited": Mutation(
        "a manifest that is written again keeps the ids that its rows have",
        "next_id = None",
        held_by=_FORMAT3,
    ),
    "row-ids-assigned": Mutation(
        "rows that have ids get no others",
        "if True:\n    prepared[15] = self.next_row_id\n    self.next_row_id += prepared.added_rows_count",
        held_by=_FORMAT3,
    ),
    "vector-of-the-file": Mutation(
        "the deletion vector of a data file is read, and not those of others",
        "applied = deletes",
        kinds="merged,deduped",
        held_by=f"{_MERGES3}test_random_merges",
    ),
    "vector-holds-former-deletes": Mutation(
        "a deletion vector has what the deletes before it said",
        "return positions",
        kinds="merged,deduped",
        held_by=f"{_MERGES3}test_random_merges",
    ),
    "one-vector-for-each-file": Mutation(
        "the former deletion vector leaves in the snapshot that brings another one",
        "return file.file_path in self._removed",
        kinds="merged,deduped",
        held_by=f"{_MERGES3}test_random_merges",
    ),
    "position-deletes-leave": Mutation(
        "position deletes leave with the first vectors",
        "replaced = []",
        held_by=f"{_MERGES3}test_random_merges",
    ),
    "updated-rows-keep-ids": Mutation(
        "a row that takes the place of another one has its id",
        "if False:",
        held_by=f"{_MERGES3}test_random_merges",
    ),
    "compacted-with-ids": Mutation(
        "rows keep their ids where a compaction writes them again",
        "self._keeps_ids = False",
        held_by=f"{_MERGES3}test_random_merges",
    ),
    "ids-since-it-was-read": Mutation(
        "a compaction is left out if the table has given ids to its rows since they were read",
        "return True",
        held_by=f"{_MERGES3}test_an_upgrade_between",
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
        'return what, {"batch": Batch(ADOPTED, state.changes)}',
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
    "blind-undo": Mutation(
        "an undo that is abandoned without its intent can be made again",
        "if False:",
        kinds="files",
        held_by="tests/operate/test_undo.py -k test_an_undo_whose_intent_is_lost_is_undone_again",
    ),
    "blind-gives-up": Mutation(
        "an undecided sync is given up where one table has lost its intent",
        "pass",
        kinds="connector",
        held_by="tests/operate/test_streams_by_hand.py -k test_what_has_its_intent_is_left_beside",
    ),
    "blind-counted": Mutation(
        "a load that is closed without its intent counts as a change of its table",
        "",
        kinds="files",
        held_by="tests/operate/test_rebuild.py -k test_a_pending_load_whose_intent_is_gone",
    ),
    "blind-deleted-keys": Mutation(
        "a merge that is closed without its intent keeps the keys that it deleted",
        "",
        kinds="merged",
        held_by="tests/load/test_undone_states.py -k test_deleted_keys_of_a_merge_whose_intent_is_lost",
    ),
    "lost-stops-all": Mutation(
        "no stream of a common state is loaded where one cannot go on",
        "if False:",
        kinds="connector",
        held_by="tests/run/test_common_state.py",
    ),
    "one-digest": Mutation(
        "streams of a common state are done at one state",
        "if False:",
        kinds="connector",
        held_by="tests/run/test_common_state.py",
    ),
    "common-is-new": Mutation(
        "a common state is loaded to where it is after all that is committed",
        "is_new = True",
        kinds="connector",
        held_by="tests/run/test_common_state.py",
    ),
    "ended-exactly": Mutation(
        "nothing follows a table of the same load whose state says more than its rows",
        "if ended.before is None:",
        kinds="connector",
        held_by="tests/run/test_common_state.py",
    ),
    "begun-since-listing": Mutation(
        "an attempt that began since the listing is cleared up after",
        "if job is None or (job.job_id, job.attempt) != (job_id, attempt):",
        kinds="files,glue",
        held_by="tests/commit/test_earlier_attempts.py",
    ),
    "begun-named-anew": Mutation(
        "names that an attempt gave a table's files since the listing are read",
        "elif False:",
        kinds="files,glue",
        held_by="tests/commit/test_earlier_attempts.py",
    ),
    "retire-before-adding": Mutation(
        "undone objects are deleted before their partition is added again",
        "if False:",
        kinds="glue",
    ),
    "repeats-stay": Mutation(
        "an undo forgets no file where a load has read files again",
        "if False:",
        kinds="files",
        held_by="tests/commit/test_read_files.py",
    ),
    "partial-lacks": Mutation(
        "a load that may have read more files than it noted is not counted",
        '"committed": _count(before, committed)',
        kinds="files",
        held_by="tests/commit/test_read_files.py",
    ),
    "joined-of-parts": Mutation(
        "joined parts replace only parts that are still there",
        "if intent.joined is not None:",
        kinds="files",
        held_by="tests/commit/test_read_files.py",
    ),
    "adopt-asks-owner": Mutation(
        "no files are adopted into a table that another pipeline refreshes",
        "pass",
        kinds="refresh",
        held_by="tests/load/test_handed_over.py -k test_a_hand_over_by_adopt",
    ),
    "adopt-beyond": Mutation(
        "files that the state counts already are not adopted",
        "if False:",
        kinds="estuary",
        held_by="tests/load/test_adopted_files.py -k test_estuary_goes_on_behind_the_last_number",
    ),
    "given-up-snapshot": Mutation(
        "a process that has begun its commit cannot commit what was given up",
        "pass",
        kinds="merged,iceberg",
        held_by="tests/load/test_given_up.py -k test_a_process_that_has_begun_its_commit",
    ),
    "hand-over-ended": Mutation(
        "a table is handed over when nothing of the other pipeline is pending",
        "if (other := _read_state_of(control, latest)) is None or True:",
        kinds="refresh",
        held_by="tests/load/test_handed_over.py -k test_a_table_is_handed_over_when_nothing_is_pending",
    ),
    "hand-over-number": Mutation(
        "refreshes of two pipelines have folders of their own",
        "return state",
        kinds="refresh",
        held_by="tests/load/test_handed_over.py -k test_files_of_two_pipelines_have_folders_of_their_own",
    ),
    "switch-is-due": Mutation(
        "a table in Glue is not switched once another pipeline has it",
        "pass",
        kinds="refresh",
        held_by="tests/load/test_handed_over.py -k test_a_load_that_is_held_up_while_its_table_is_handed_over",
    ),
    "bind-followed": Mutation(
        "a load is not bound once another pipeline has its table",
        "pass",
        kinds="refresh",
        held_by="tests/load/test_handed_over.py -k test_a_load_that_is_held_up_while_its_table_is_handed_over",
    ),
    "finish-giving-up": Mutation(
        "a change that was given up in its catalog is withdrawn by the next load",
        "raise",
        kinds="iceberg",
        statements=2,
        held_by="tests/load/test_given_up.py -k test_giving_up_that_died_is_finished_by_the_next_load",
    ),
    "ended-meanwhile": Mutation(
        "a load goes on where the change that it was finishing has ended meanwhile",
        "if True:",
        kinds="merged",
        held_by="tests/load/test_given_up.py -k test_a_load_that_finds_a_change_withdrawn_meanwhile",
    ),
    "withdrawn-meanwhile": Mutation(
        "a change that another process has begun to withdraw is published no more",
        "return pending.is_same(now)",
        kinds="merged",
        held_by="tests/load/test_given_up.py -k test_a_load_that_finds_a_change_withdrawn_meanwhile",
    ),
    "given-up-first": Mutation(
        "what was given up is found before anything is deleted beside its table",
        "if False:",
        kinds="iceberg",
        held_by="tests/load/test_given_up.py -k test_bad_rows_stay_where_their_undo_was_given_up",
    ),
}
