"""The rules of merges by key, each taken out."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.mutation import Mutation, leave_out

_KIND: Final = "merged"

MERGE_MUTATIONS: Final[Mapping[str, Mutation]] = {
    "judged-on-its-snapshot": leave_out(
        "positions are looked for again in each snapshot that a commit is tried on",
        "commit.iceberg.merge:KeyMerge.commit",
        "        gone, counts = self._judge(table, schema, list(make_files()))\n",
        "        self._first = getattr(self, '_first', None) or self._judge(table, schema, list(make_files()))\n"
        "        gone, counts = self._first\n",
        _KIND,
    ),
    "deletes-of-the-snapshot": leave_out(
        "rows that the table's deletes have taken out are not compared with",
        "commit.iceberg.merge:KeyMerge._read_live",
        "        if not task.delete_files or not len(rows):\n",
        "        if True:\n",
        _KIND,
        held_by="tests/iceberg/test_merge.py -k test_random_merges",
    ),
    "keys-of-the-file": leave_out(
        "rows of a file are read with the positions that they have in it",
        "commit.iceberg.merge_keys:RowReader._read_batches",
        "            start += len(batch)\n",
        "            start += len(batch) + 1\n",
        _KIND,
        held_by="tests/iceberg/test_merge.py -k test_rows_are_read_in_several_batches",
    ),
    "order-against-the-table": leave_out(
        "a row that is older than the table's is not written",
        "commit.iceberg.merge_winners:_rank",
        '    sort_keys = [(name, "ascending") for name in (*by, _WEIGHT, PLACE, FILE, POSITION)]\n',
        '    sort_keys = [(name, "ascending") for name in (IS_LOADED, *by, _WEIGHT, PLACE, FILE, POSITION)]\n',
        _KIND,
    ),
    "same-order-changes-nothing": leave_out(
        "of rows with the same order that of the table stays",
        "commit.iceberg.merge_winners:_weigh",
        "    of_table = pc.multiply(pc.invert(rows[IS_LOADED]).cast(pa.int8()), 2)\n",
        "    of_table = pc.multiply(rows[IS_LOADED].cast(pa.int8()), 2)\n",
        _KIND,
    ),
    "last-row-of-the-load": leave_out(
        "of a load's rows with the same order the last one stays",
        "commit.iceberg.merge_winners:_weigh",
        "pc.and_(rows[DELETED], pc.or_(is_last, pc.invert(rows[IS_LOADED])))",
        "rows[DELETED]",
        _KIND,
        held_by="tests/iceberg/test_merge.py -k test_rows_of_one_key_and_order",
    ),
    "files-in-their-order": leave_out(
        "files of a load are in the order of its tasks, not of its receipts",
        "commit.iceberg.merge:KeyMerge._sort_files",
        "        return sorted(files, key=lambda file: order[file.file_path])\n",
        "        return files\n",
        _KIND,
        held_by="tests/iceberg/test_merge.py -k test_rows_further_down_stay_however_they_are_divided",
    ),
    "deletes-of-their-partition": leave_out(
        "a file with deletes has the partition of its data files",
        "commit.iceberg.merge_snapshot:write_position_deletes",
        "        groups[file.spec_id, file.partition].append((file, gone))\n",
        "        groups[file.spec_id, positions[0][0].partition].append((file, gone))\n",
        _KIND,
    ),
    "deletes-stay": leave_out(
        "what a load only deletes is not among its rows",
        "commit.iceberg.merge_winners:judge",
        "        staying = staying.filter(pc.invert(deletes))\n",
        "        pass\n",
        _KIND,
    ),
    "deleted-keys-keep-out": leave_out(
        "a key that was deleted keeps older rows out",
        "commit.iceberg.merge:KeyMerge._judge",
        "*_number_files(live, len(files), is_loaded=False), deleted])\n",
        "*_number_files(live, len(files), is_loaded=False)])\n",
        _KIND,
        held_by="tests/load/test_merged.py -k test_deleted_keys_keep_older_rows_out",
    ),
    "deleted-keys-are-carried": leave_out(
        "keys that were deleted before a load keep older rows out after it",
        "commit.iceberg.merge:KeyMerge.list_deleted_keys",
        "        rows = pa.concat_tables([loaded, before.select(loaded.column_names)])\n",
        "        rows = loaded\n",
        _KIND,
        held_by="tests/load/test_merged.py -k test_deleted_keys_keep_older_rows_out",
    ),
    "deleted-keys-of-an-undo": leave_out(
        "after an undo the keys are deleted that were deleted before its load",
        "commit.changes:Undo.list_state_changes",
        "        if load.merges:\n",
        "        if False:\n",
        _KIND,
        held_by="tests/load/test_merged.py -k test_keys_are_deleted_as_before_where_the_delete_is_undone",
    ),
    "undo-behind-nobody": leave_out(
        "an undo of a merge takes nothing back that came after it",
        "commit.iceberg.removal:show_again",
        "    if not is_current(table, intent, load):\n",
        "    if False:\n",
        _KIND,
        held_by="tests/load/test_refresh.py -k test_an_undo_that_another_writer_has_overtaken_can_be_given_up",
    ),
    "undo-of-rewritten-files": leave_out(
        "an undo whose files were rewritten since it was planned is not done",
        "commit.iceberg.removal:take_out",
        "    if is_rewritten(table, load):\n",
        "    if False:\n",
        _KIND,
        held_by="tests/operate/test_undo.py -k test_files_that_are_rewritten_while_they_are_undone",
    ),
    "compacted-as-it-was-read": leave_out(
        "files of which others have deleted rows since they were read are not replaced",
        "commit.iceberg.compact_snapshot:_Live.is_unchanged",
        "            and not any(self._may_delete(entry, group) for entry in others)\n",
        "",
        _KIND,
        held_by="tests/load/test_compacted.py -k test_changes_between_reading_and_commit",
    ),
    "compacted-without-deleted": leave_out(
        "rows that are deleted are not written again",
        "commit.iceberg.compact_groups:Compactable.read_rows",
        "            for batch in scan.to_record_batches([task]):\n",
        "            for batch in scan.to_record_batches([FileScanTask(task.file)]):\n",
        _KIND,
    ),
    "deletes-of-other-files": leave_out(
        "files with deletes that apply to other files too stay",
        "commit.iceberg.compact_snapshot:_Live.list_unused",
        "        return sorted(path for path in applied if self._read_paths(self._deletes[path].data_file)"
        ".isdisjoint(left))\n",
        "        return sorted(applied)\n",
        _KIND,
        held_by="tests/load/test_compacted.py -k test_deletes_of_files_that_are_left",
    ),
    "compactions-are-counted": leave_out(
        "loads depend on no compaction",
        "commit.changes:Change.list_all_state_changes",
        '        return fields | {"compactions": state.compactions + self.lets_loads_go_on}\n',
        "        return fields\n",
        _KIND,
    ),
    "compaction-is-no-change": leave_out(
        "an undo goes back behind a compaction",
        "commit.iceberg.snapshot_presence:find_change_since",
        "        if summary is not None and summary.operation is Operation.REPLACE:\n",
        "        if False:\n",
        _KIND,
        held_by="tests/load/test_compacted.py -k test_loads_of_a_compacted_table_are_undone",
    ),
    "undo-of-compacted": leave_out(
        "an undo is not bound once a compaction may have replaced its files",
        "commit.changes:Undo.may_bind",
        "        return super().may_bind(state, began) and state.compactions == began.compactions\n",
        "        return super().may_bind(state, began)\n",
        _KIND,
        held_by="tests/load/test_compacted.py -k test_an_undo_that_a_compaction_overtakes",
    ),
}
