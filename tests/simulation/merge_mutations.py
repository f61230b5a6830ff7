"""The rules of merges by key, each taken out."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.mutation import Mutation

MERGE_MUTATIONS: Final[Mapping[str, Mutation]] = {
    "judged-on-its-snapshot": Mutation(
        "positions are looked for again in each snapshot that a commit is tried on",
        (
            "self._first = getattr(self, '_first', None)\n"
            "self._first = self._first or self._judge(table, schema, list(make_files()), replaces=replaces)\n"
            "judgment = self._first"
        ),
        kinds="merged",
        held_by="tests/iceberg/test_merge.py -k test_another_writer_of_the_same_keys_comes_between",
    ),
    "deletes-of-the-snapshot": Mutation(
        "rows that the table's deletes have taken out are not compared with",
        "if False:",
        kinds="merged",
        held_by="tests/iceberg/test_merge.py -k test_random_merges",
    ),
    "keys-of-the-file": Mutation(
        "rows of a file are read with the positions that they have in it",
        "start += len(batch) + 1",
        kinds="merged",
        held_by="tests/iceberg/test_merge_reads.py -k test_rows_are_read_in_several_batches",
    ),
    "order-against-the-table": Mutation(
        "a row that is older than the table's is not written",
        "return np.full(len(loaded), True), equal",
        kinds="merged",
        more={
            "order-against-the-table/2": (
                'sort_keys = [(name, "ascending") for name in (_IS_LOADED, *by, _WEIGHT, PRECEDENCE, FILE, POSITION)]'
            ),
        },
    ),
    "same-order-changes-nothing": Mutation(
        "of rows with the same order that of the table stays",
        "return np.where(deleted, 4, 0)",
        kinds="merged",
        held_by="tests/iceberg/test_merge.py -k test_rows_of_one_key_and_order",
    ),
    "last-row-of-the-load": Mutation(
        "of a load's rows with the same order the last one stays",
        "of_load = _weigh_loaded(deleted, wins_ties=wins_ties)",
        kinds="merged",
        held_by="tests/iceberg/test_merge.py -k test_rows_of_one_key_and_order",
    ),
    "files-in-their-order": Mutation(
        "files of a load are in the order of its tasks, not of its receipts",
        "return files",
        kinds="merged",
        held_by="tests/iceberg/test_merge.py -k test_rows_further_down_stay_however_they_are_divided",
    ),
    "row-further-down": Mutation(
        "of rows that are sorted or brought together by partition the one further down in the files stays",
        "if True:",
        kinds="merged",
        held_by="tests/load/test_merged_order.py -k test_the_row_further_down_stays_after_a_retry",
    ),
    "deletes-of-their-partition": Mutation(
        "a file with deletes has the partition of its data files",
        "groups[file.spec_id, positions[0][0].partition].append((file, gone))",
        kinds="merged",
    ),
    "deletes-stay": Mutation(
        "what a load only deletes is not among its rows",
        "stays = newest.loaded",
        kinds="merged",
    ),
    "deleted-keys-keep-out": Mutation(
        "a key that was deleted keeps older rows out",
        "pass",
        kinds="merged",
        held_by="tests/load/test_merged.py -k test_deleted_keys_keep_older_rows_out",
    ),
    "deleted-keys-are-carried": Mutation(
        "keys that were deleted before a load keep older rows out after it",
        "pass",
        kinds="merged",
        held_by="tests/load/test_merged.py -k test_deleted_keys_keep_older_rows_out",
    ),
    "groups-by-their-bounds": Mutation(
        "of the keys that were deleted before a load those are read that it has",
        "return []",
        kinds="merged",
        held_by="tests/iceberg/test_merge.py -k test_row_groups_that_may_have_a_key",
    ),
    "deleted-keys-of-an-undo": Mutation(
        "after an undo the keys are deleted that were deleted before its load",
        '"deleted_keys": lambda state, intent, at: state.deleted_keys',
        kinds="merged",
        held_by="tests/load/test_merged.py -k test_keys_are_deleted_as_before_where_the_delete_is_undone",
    ),
    "floors-keep-out": Mutation(
        "rows below a floor stay out, of the load that brings it and of later ones",
        "return {}",
        kinds="merged",
        held_by="tests/iceberg/test_merge_floors.py",
    ),
    "floors-of-the-snapshot": Mutation(
        "rows of the table that are below a floor go, whoever wrote them",
        "for live in ():",
        kinds="merged",
        held_by="tests/iceberg/test_merge_floors.py",
    ),
    "whole-files-below": Mutation(
        "a file leaves only if all of its rows are below a floor",
        "if False:",
        kinds="merged",
        held_by="tests/iceberg/test_merge_floors.py",
    ),
    "undo-behind-nobody": Mutation(
        "an undo of a merge takes nothing back that came after it",
        "if False:",
        kinds="merged",
        held_by="tests/load/test_refresh.py -k test_an_undo_that_another_writer_has_overtaken_can_be_given_up",
    ),
    "undo-of-rewritten-files": Mutation(
        "an undo whose files were rewritten since it was planned is not done",
        "if False:",
        kinds="merged",
        held_by="tests/operate/test_undo.py -k test_files_that_are_rewritten_while_they_are_undone",
    ),
    "compacted-as-it-was-read": Mutation(
        "files of which others have deleted rows since they were read are not replaced",
        "",
        kinds="merged",
        held_by="tests/load/test_compacted.py -k test_changes_between_reading_and_commit",
    ),
    "compacted-without-deleted": Mutation(
        "rows that are deleted are not written again",
        "stays = pc.is_valid(positions)",
        kinds="merged",
    ),
    "deletes-of-other-files": Mutation(
        "files with deletes that apply to other files too stay",
        "return sorted(applied)",
        kinds="merged",
        held_by="tests/load/test_compacted.py -k test_deletes_of_files_that_are_left",
    ),
    "compactions-are-counted": Mutation(
        "loads depend on no compaction",
        "",
        kinds="merged",
    ),
    "compaction-is-no-change": Mutation(
        "an undo goes back behind a compaction",
        "if False:",
        kinds="merged",
        held_by="tests/load/test_compacted.py -k test_loads_of_a_compacted_table_are_undone",
    ),
    "bound-as-a-pair": Mutation(
        "a table and its history are bound together",
        "groups = dict[str, _Group]()",
        kinds="history",
        held_by="tests/load/test_history.py -k test_both_have_a_load_or_neither",
    ),
    "changes-of-the-whole-table": Mutation(
        "a history keeps a truncate that comes again once",
        "self.required_keys = self.keys[:1]",
        kinds="history",
        held_by="tests/load/test_history.py -k test_changes_of_the_whole_table_are_kept_once",
    ),
    "later-record-stays": Mutation(
        "of a stream's records with the same order that of the later sync stays",
        "wins_ties=table.between is not None",
        kinds="deduped",
    ),
    "generation-replaces-once": Mutation(
        "later syncs of a generation that has replaced others merge",
        "return intent.minimum_generation_id > 0",
        kinds="deduped",
    ),
    "replacing-sync-is-whole": Mutation(
        "of a generation that replaces others nothing is loaded before all is there",
        "if True:",
        kinds="deduped",
    ),
    "replacing-sync-from-its-start": Mutation(
        "a generation that replaces others is loaded from its first record on",
        "before = state.source",
        kinds="deduped",
        held_by="tests/load/test_deduped_streams.py -k test_a_generation_begins_apart",
    ),
    "replacing-rows-alone": Mutation(
        "rows of a generation that replaces others are merged among themselves",
        "sees_none = not len(rows.extremes)",
        kinds="deduped",
    ),
    "deleted-keys-of-a-generation": Mutation(
        "keys that were deleted before a generation keep no rows of it out",
        "objects = _list_deleted(load, table, began)",
        kinds="deduped",
        held_by="tests/load/test_deduped_streams.py -k test_a_generation_begins_apart",
    ),
    "rest-behind-another": Mutation(
        "the rest of a sync does not follow another one's, whatever the generation that both are of has replaced",
        "if require_stream(table).minimum_generation_id or (state.source and state.source.job_id == self._job_id):",
        kinds="deduped",
        held_by="tests/load/test_overlapping_loads.py -k test_the_rest_of_a_load_after_another_one",
    ),
    "reads-below-the-log": Mutation(
        "what a snapshot has read is older than what was streamed",
        "log = pa.repeat(pa.scalar(_STREAMED, pa.int64()), count)",
        kinds="merged",
    ),
    "epoch-outranks": Mutation(
        "events of a higher epoch are newer",
        "epoch = pa.repeat(pa.scalar(0, pa.int64()), count)",
        kinds="merged",
    ),
    "undo-of-compacted": Mutation(
        "an undo is not bound once a compaction may have replaced its files",
        "return is_there",
        kinds="merged",
        held_by="tests/load/test_compacted.py -k test_an_undo_that_a_compaction_overtakes",
    ),
    "filled-on-its-snapshot": Mutation(
        "values that events leave out are looked for again in each snapshot that a commit is tried on",
        (
            "self._once = getattr(self, '_once', None)\n"
            "self._once = self._once or (histories and histories.find_filling(self._intent))\n"
            "filling = self._once"
        ),
        kinds="merged",
        held_by="tests/iceberg/test_unchanged.py -k test_another_writer_of_the_row_comes_between",
    ),
    "filled-from-no-deleted-row": Mutation(
        "a row that was deleted gives no value to a later one of its key",
        "is_there = row >= 0",
        kinds="merged",
        held_by="tests/iceberg/test_unchanged.py -k test_values_that_nothing_has",
    ),
    "filled-in-its-epoch": Mutation(
        "a row gives no value to one of another epoch",
        "return sources",
        kinds="merged",
        held_by="tests/iceberg/test_unchanged.py -k test_values_that_nothing_has",
    ),
    "nothing-is-guessed": Mutation(
        "a load of which a value is not known publishes nothing",
        "if absent := ():",
        kinds="merged",
        held_by="tests/iceberg/test_unchanged.py -k test_values_that_nothing_has",
    ),
}
