"""Rules that only rare moments need, each taken out. Most are held by tests of their own."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.mutation import Mutation

EDGE_MUTATIONS: Final[Mapping[str, Mutation]] = {
    "undo-source": Mutation(
        "a sync from whose state another one went on is not undone without it",
        'if later := "":',
        kinds="connector",
    ),
    "undo-batch": Mutation(
        "a batch is undone only with a gap",
        'str(intent, "it is a batch of a continuous run, whose checkpoint is beyond it")',
        kinds="batches",
    ),
    "undo-again": Mutation(
        "an undo is planned anew where the refreshes kept have changed",
        "if not attempts.is_unchanged(table.state, began, exclusive=True):",
        kinds="refresh",
    ),
    "stream-after-load": Mutation(
        "a stream does not go on after another load",
        "elif last is not None:",
        kinds="batches",
    ),
    "refreshes-said": Mutation(
        "a pipeline that begins to refresh says so in the record",
        "if writer is not None:",
        kinds="airbyte,refresh",
    ),
    "partition-spec": Mutation(
        "files of another partition spec are not added",
        "if table.spec().spec_id == -1:",
        kinds="iceberg",
    ),
    "same-table": Mutation(
        "a table made anew under the name does not get the files",
        "if table is None:",
        kinds="iceberg",
    ),
    "repeats-burnt": Mutation(
        "a load that stands for others burns their job ids",
        "if intent.repeats is None:",
        kinds="files,glue,iceberg,airbyte,estuary",
        held_by="tests/commit/test_changes.py -k test_job_ids_that_a_load_stands_for_load_nothing_any_more",
    ),
    "undone-refresh-deleted": Mutation(
        "an undone refresh's own files are deleted",
        "if gone is None and not intent.catalog.keeps_versions:",
        kinds="refresh",
    ),
    "give-up-unless-pending": Mutation(
        "a refresh is not given up while a change is pending",
        "successions: ClassVar[Successions] = ANYWHERE",
        kinds="refresh",
    ),
    "retire-in-time": Mutation(
        "objects stay until their time",
        "if now:",
        kinds="glue,refresh",
    ),
    "states-after-listing": Mutation(
        "states are read after the listing of a sweep too",
        "pass",
        kinds="files,glue,iceberg,airbyte,estuary",
    ),
    "replay-looks-again": Mutation(
        "a replay looks at the quarantine again once it has registered",
        "if not self.files:",
        kinds="quarantine",
    ),
    "shared-awaited": Mutation(
        "a shared job returns only when no task of it runs",
        "for text in items.mapPartitions(_run_shares).collect():",
        kinds="files",
    ),
    "numbers-claimed": Mutation(
        "two syncs never have one number",
        "if not is_claimed or states:",
        kinds="airbyte,messages,connector",
    ),
    "numbers-of-pipeline": Mutation(
        "a sync counts on from the numbers of all tables of its pipeline",
        "listed = {name: etag for name, etag in list_state_etags(self.control).items() if name in self.read}",
        kinds="connector",
        held_by="tests/run/test_sync_numbers.py",
    ),
    "numbers-seen-again": Mutation(
        "a number that a table has by the time it is claimed is not used",
        "if (highest := 0) < number:",
        kinds="airbyte,messages,connector",
        held_by="tests/run/test_sync_numbers.py",
    ),
    "bad-rows-aborted": Mutation(
        "bad rows staged by a task that fails are aborted",
        "del cause",
        kinds="quarantine",
        statements=2,
    ),
    "gone-by-age": Mutation(
        "an attempt that ran longer than keep is dropped only by age",
        "return not records or bool(before)",
        kinds="files,glue,iceberg,airbyte,estuary",
    ),
    "same-state-again": Mutation(
        "the same state after new records is another load",
        'ending = f"{job_id} {source.digest}"',
        kinds="messages,connector",
    ),
    "earlier-number": Mutation(
        "an earlier attempt's sync number is kept",
        "return next(iter(said), None) if had or said else None",
        kinds="airbyte,messages,connector",
    ),
    "first-number": Mutation(
        "all attempts go by the number written first",
        "return number",
        kinds="airbyte,messages,connector",
    ),
}
