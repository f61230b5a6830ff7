"""The rules of quarantines and replays, each taken out."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.mutation import Mutation, leave_out

_KIND: Final = "quarantine"

QUARANTINE_MUTATIONS: Final[Mapping[str, Mutation]] = {
    "quarantine-completed": leave_out(
        "a load's bad rows are completed with it",
        "commit.recover:complete_files",
        "    if failure is None and (quarantined := intent.of_quarantine) is not None:\n"
        "        failure = complete_all(control.store, quarantined, control.pause)\n",
        "",
        _KIND,
    ),
    "quarantine-withdrawn": leave_out(
        "a load that is withdrawn takes its bad rows along",
        "commit.recover:withdraw_intent",
        "    if (quarantined := intent.of_quarantine) is not None:\n        withdraw(control.store, quarantined)\n",
        "",
        _KIND,
    ),
    "quarantine-published": leave_out(
        "a quarantine has a table in Glue",
        "commit.recover:_publish_quarantine",
        "        catalog.publish(quarantined, number)\n        catalog.read_back(quarantined)\n",
        "        pass\n",
        _KIND,
    ),
    "quarantine-undone": leave_out(
        "an undo takes a load's bad rows out",
        "commit.recover:_publish_quarantine",
        "    delete_all(control, ((removal.key, removal.etag) for removal in effects.bad_rows))\n",
        "",
        _KIND,
    ),
    "quarantine-overtaken": leave_out(
        "an attempt that another one overtook aborts its bad rows",
        "commit.attempt:_abort_if_done",
        "for receipt in intent.list_staged()))",
        "for receipt in intent.files.without_statistics()))",
        _KIND,
    ),
    "quarantine-superseded": leave_out(
        "so does one that gives up where another has taken over",
        "commit.attempt:give_up",
        "        strays = _select_bad_rows(files, strays)\n",
        "        strays = []\n",
        _KIND,
    ),
    "quarantine-pattern": leave_out(
        "an attempt's record names its files with bad rows",
        "commit.earlier_attempts:BegunTable.of",
        '        return begun.model_copy(update={"quarantine": quarantine.folder, '
        '"quarantine_pattern": quarantine.pattern})\n',
        "        return begun\n",
        _KIND,
    ),
    "quarantine-repeated": leave_out(
        "uploads of bad rows that a repeated task has left are aborted",
        "run.table_staging:conclude_staging",
        " or bad_rows.totals.is_repeated:\n",
        ":\n",
        _KIND,
    ),
    "quarantine-cursor": leave_out(
        "the cursor passes bad rows",
        "run.table_intent:_find_cursor_after",
        "choose_higher(staged.receipts.totals.cursor, staged.quarantined.totals.cursor))",
        "staged.receipts.totals.cursor)",
        _KIND,
    ),
    "taken-at-all": leave_out(
        "what a replay has loaded leaves the quarantine",
        "commit.recover:_publish",
        "    delete_all(control, ((removal.key, removal.etag) for removal in effects.loaded))\n",
        "",
        _KIND,
    ),
    "taken-last": leave_out(
        "files leave the quarantine once their rows are in the table",
        "commit.recover:complete_files",
        "    failure = complete_all(store, intent, control.pause)\n",
        "    delete_all(control, ((removal.key, removal.etag) for removal in intent.taken))\n"
        "    failure = complete_all(store, intent, control.pause)\n",
        _KIND,
    ),
    "taken-own": leave_out(
        "a replay takes the files of its own pipeline",
        "run.replay:find_files",
        '        if stored_object is not None and stored_object.load.startswith(f"{control.keys.pipeline}/")\n',
        "        if stored_object is not None\n",
        _KIND,
    ),
    "replay-not-undone": leave_out(
        "a replay is not undone",
        "operate.undo_plan:UndoPlanner._require_undoable",
        "        if intent.taken:\n",
        "        if False:\n",
        _KIND,
    ),
    "replayed-not-undone": leave_out(
        "a load of which a replay has loaded rows is not undone",
        "operate.undo_plan:UndoPlanner._find_quarantined",
        "            if self._name_after(lambda load: load.job_id.startswith(REPLAY)):\n",
        "            if False:\n",
        _KIND,
    ),
    "replayed-verified": leave_out(
        "verify expects no files that a replay has taken",
        "operate.verification:Verifier._compare_quarantine",
        "self._clients, lambda key: key not in taken)",
        "self._clients, lambda key: True)",
        _KIND,
    ),
    "replay-sets-no-cursor": leave_out(
        "a replay sets no cursor where a person has taken it away",
        "run.table_intent:_find_cursor_after",
        "    if load.kind.takes and (before is None or began.is_cursor_by_hand):\n",
        "    if False:\n",
        _KIND,
    ),
}
