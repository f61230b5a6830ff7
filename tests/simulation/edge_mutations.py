"""Rules that only rare moments need, each taken out. Most are held by tests of their own."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.mutation import Mutation, leave_out

_ALL: Final = "files,glue,iceberg,airbyte,estuary"

EDGE_MUTATIONS: Final[Mapping[str, Mutation]] = {
    "undo-source": leave_out(
        "a sync from whose state another one went on is not undone without it",
        "operate.undo_plan:UndoPlanner._plan_source",
        "        if later := self._name_after(_goes_on):\n",
        '        if later := "":\n',
        "connector",
    ),
    "undo-batch": leave_out(
        "a batch is undone only with a gap",
        "operate.undo_plan:UndoPlanner._plan_cursor",
        "        if intent.batch is not None:\n            self._allow_gap(",
        "        if intent.batch is not None:\n            str(",
        "batches",
    ),
    "undo-again": leave_out(
        "an undo is planned anew where the refreshes kept have changed",
        "operate.undo:Undo._try",
        "            if not is_kept or not attempts.is_unchanged(",
        "            if not attempts.is_unchanged(",
        "refresh",
    ),
    "stream-after-load": leave_out(
        "a stream does not go on after another load",
        "commit.batches:require_stream",
        "    elif state.last_job == last.job_id:\n",
        "    elif last is not None:\n",
        "batches",
    ),
    "refreshes-said": leave_out(
        "a pipeline that begins to refresh says so in the record",
        "commit.ownership:Ownership.join",
        "            if writer is not None and writer.refreshes >= refreshes:\n",
        "            if writer is not None:\n",
        "airbyte,refresh",
    ),
    "partition-spec": leave_out(
        "files of another partition spec are not added",
        "commit.iceberg.append:_add_files",
        "    if table.spec().spec_id != spec_id:\n",
        "    if table.spec().spec_id == -1:\n",
        "iceberg",
    ),
    "same-table": leave_out(
        "a table made anew under the name does not get the files",
        "commit.iceberg.append:_require_same_table",
        "    if table is None or not is_same_table(table, intent):\n        what",
        "    if table is None:\n        what",
        "iceberg",
    ),
    "repeats-burnt": leave_out(
        "a load that stands for others burns their job ids",
        "commit.changes:Append.list_state_changes",
        "    if intent.repeats:\n",
        "    if intent.repeats is None:\n",
        _ALL,
    ),
    "undone-refresh-deleted": leave_out(
        "an undone refresh's own files are deleted",
        "commit.changes:Undo._list_switched_back",
        "    if gone is not None and not self.intent.catalog.keeps_versions:\n",
        "    if gone is None and not self.intent.catalog.keeps_versions:\n",
        "refresh",
    ),
    "give-up-unless-pending": leave_out(
        "a refresh is not given up while a change is pending",
        "commit.deferred_deletions:_give_up_generation",
        "        if state.pending is not None or entry not in state.retiring:\n",
        "        if entry not in state.retiring:\n",
        "refresh",
    ),
    "retire-in-time": leave_out(
        "objects stay until their time",
        "commit.deferred_deletions:retire_due",
        "            if entry.not_before <= now:\n",
        "            if now:\n",
        "glue,refresh",
    ),
    "states-after-listing": leave_out(
        "states are read after the listing of a sweep too",
        "commit.retention:sweep",
        "    named |= find_named_loads(states)\n",
        "",
        _ALL,
    ),
    "replay-looks-again": leave_out(
        "a replay looks at the quarantine again once it has registered",
        "run.replay:Replay._open",
        "        if find_files(control, table, self.chosen) != self.files:\n",
        "        if not self.files:\n",
        "quarantine",
    ),
    "shared-awaited": leave_out(
        "a shared job returns only when no task of it runs",
        "staging.shared_job:stage_together",
        "        for text in run_in_group(spark, lambda: items.mapPartitions(_run_shares).collect()):\n",
        "        for text in items.mapPartitions(_run_shares).collect():\n",
        "files",
    ),
    "numbers-claimed": leave_out(
        "two syncs never have one number",
        "run.loader:Loader.begin",
        "        if counted_alone:\n",
        "        if counted_alone or self.states:\n",
        "airbyte,messages,connector",
    ),
    "numbers-of-pipeline": leave_out(
        "a sync counts on from the numbers of all tables of its pipeline",
        "run.sync:TableNumbers.find_highest",
        "        listed = list_state_etags(self.control)\n",
        "        listed = {name: etag for name, etag in list_state_etags(self.control).items() if name in self.read}\n",
        "connector",
        held_by="tests/run/test_sync_numbers.py",
    ),
    "numbers-seen-again": leave_out(
        "a number that a table has by the time it is claimed is not used",
        "run.sync:_claim",
        "        if (highest := find_highest()) < number:\n",
        "        if (highest := 0) < number:\n",
        "airbyte,messages,connector",
        held_by="tests/run/test_sync_numbers.py",
    ),
    "bad-rows-aborted": leave_out(
        "bad rows staged by a task that fails are aborted",
        "staging.quarantine:QuarantineWriter.abandon",
        "        for upload in self._uploads:\n            upload.abandon(cause)\n",
        "        del cause\n",
        "quarantine",
    ),
    "gone-by-age": leave_out(
        "an attempt that ran longer than keep is dropped only by age",
        "commit.attempt:_find_gone",
        "        return all(record.modified <= before for record in records)\n",
        "        return not records or bool(before)\n",
        _ALL,
    ),
    "same-state-again": leave_out(
        "the same state after new records is another load",
        "run.stream_judging:make_partial_job_id",
        '    ending = f"{job_id} {source.digest} {committed}"\n',
        '    ending = f"{job_id} {source.digest}"\n',
        "messages,connector",
    ),
    "earlier-number": leave_out(
        "an earlier attempt's sync number is kept",
        "run.sync:find_known_number",
        "    return next(iter(said or had), None)\n",
        "    return next(iter(said), None) if had or said else None\n",
        "airbyte,messages,connector",
    ),
    "first-number": leave_out(
        "all attempts go by the number written first",
        "run.sync:claim_number",
        "    return number if claimed is None else claimed\n",
        "    return number\n",
        "airbyte,messages,connector",
    ),
}
