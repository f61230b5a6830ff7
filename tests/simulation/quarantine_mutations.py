"""The rules of quarantines and replays, each taken out."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.mutation import Mutation

QUARANTINE_MUTATIONS: Final[Mapping[str, Mutation]] = {
    "quarantine-completed": Mutation(
        "a load's bad rows are completed with it",
        "return failure",
        kinds="quarantine",
        statements=2,
    ),
    "quarantine-withdrawn": Mutation(
        "a load that is withdrawn takes its bad rows along",
        (
            "if pending.failure is not None:\n"
            "    key = control.keys.failure(pending.job_id, pending.attempt, control.table_id)\n"
            "    control.write_once(key, pending.failure.model_dump_json(indent=1), keep=True)"
        ),
        kinds="quarantine",
        statements=2,
    ),
    "quarantine-published": Mutation(
        "a quarantine has a table in Glue",
        "pass",
        kinds="quarantine",
        statements=2,
    ),
    "quarantine-undone": Mutation(
        "an undo takes a load's bad rows out",
        "pass",
        kinds="quarantine",
    ),
    "quarantine-overtaken": Mutation(
        "an attempt that another one overtook aborts its bad rows",
        "abort_all(control.store, intent.files.without_statistics())",
        kinds="quarantine",
    ),
    "quarantine-superseded": Mutation(
        "so does one that gives up where another has taken over",
        "strays = []",
        kinds="quarantine",
    ),
    "quarantine-pattern": Mutation(
        "an attempt's record names its files with bad rows",
        "return begun",
        kinds="quarantine",
    ),
    "quarantine-repeated": Mutation(
        "uploads of bad rows that a repeated task has left are aborted",
        "if repeats or receipts.totals.is_repeated :",
        kinds="quarantine",
    ),
    "quarantine-cursor": Mutation(
        "the cursor passes bad rows",
        "after = choose_higher(before, staged.receipts.totals.cursor)",
        kinds="quarantine",
    ),
    "taken-at-all": Mutation(
        "what a replay has loaded leaves the quarantine",
        "pass",
        kinds="quarantine",
    ),
    "taken-last": Mutation(
        "files leave the quarantine once their rows are in the table",
        (
            "delete_all(control, ((removal.key, removal.etag) for removal in intent.taken))\n"
            "failure = complete_all(store, intent, control.pause)"
        ),
        kinds="quarantine",
    ),
    "taken-own": Mutation(
        "a replay takes the files of its own pipeline",
        "if stored_object is not None",
        kinds="quarantine",
    ),
    "replay-not-undone": Mutation(
        "a replay is not undone",
        "if False:",
        kinds="quarantine",
    ),
    "replayed-not-undone": Mutation(
        "a load of which a replay has loaded rows is not undone",
        "if False:",
        kinds="quarantine",
    ),
    "replayed-verified": Mutation(
        "verify expects no files that a replay has taken",
        "objects = compare_objects(quarantined, control.store, self._clients, lambda key: True)",
        kinds="quarantine",
    ),
    "replay-sets-no-cursor": Mutation(
        "a replay sets no cursor where a person has taken it away",
        "if False:",
        kinds="quarantine",
    ),
}
