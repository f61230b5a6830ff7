"""Rules of what a table's state records beside its loads, each taken out: the source's state for all streams, the names
that were given, the files that were read, and changes by hand."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.mutation import Mutation, leave_out

_STATES: Final[Mapping[str, Mutation]] = {
    "undecided-unbound": leave_out(
        "a sync that is met before its decision is bound in none of its tables",
        "commit.decisions:is_bound",
        "control, pending.job_id, pending.attempt, Decision(bound=False))",
        "control, pending.job_id, pending.attempt, Decision(bound=True))",
        "connector",
        held_by="tests/commit/test_decisions.py",
    ),
    "first-decision": leave_out(
        "the decision that was written first counts",
        "commit.decisions:decide",
        '        raise PendingUnrecoverableError(f"{key} was deleted.", remedy="Restore the object from its bucket\'s '
        'versions.")\n    return written\n',
        '        raise PendingUnrecoverableError(f"{key} was deleted.", remedy="Restore the object from its bucket\'s '
        'versions.")\n    return decision\n',
        "connector",
        held_by="tests/commit/test_decisions.py",
    ),
    "first-completion": leave_out(
        "the files of all tables of a sync are completed, or those of none",
        "commit.decisions:conclude_completion",
        "    return written.failure\n",
        "    return failure\n",
        "connector",
        held_by="tests/commit/test_decisions.py",
    ),
    "ends-together": leave_out(
        "no stream is done before the others where the source has one state for all",
        "run.common_state:judge_together",
        "    return {member.table_id: _load_up_to(seen, member, job_id, cuts.get(member.table_id), why) for member in "
        "members}\n",
        "    return {each.table_id: each.verdict if each.verdict.complete else _load_up_to(seen, each, job_id, "
        "cuts.get(each.table_id), why) for each in members}\n",
        "connector",
        held_by="tests/run/test_common_state.py",
    ),
    "common-state": leave_out(
        "a source is given a state for all streams only if all of them are at it",
        "run.resumption:_find_common",
        "        if is_common:\n",
        "        if name:\n",
        "connector",
        held_by="tests/run/test_resumption.py",
    ),
    "streams-of-state": leave_out(
        "a stream goes on behind a state only if that has a part of it",
        "run.common_state:_cut",
        "        covered = [member for member in members if is_covered(last.text, member.stream, "
        "needs_part=not member.goes_on)]\n",
        "        covered = list(members)\n",
        "connector",
        held_by="tests/run/test_common_state.py",
    ),
    "unsure-waits": leave_out(
        "a stream without a state is not done before the others while the source may yet say one for all",
        "run.common_state:hold_unsure",
        "    if failed is None:\n        return verdicts\n    why = (",
        "    if failed is None or failed:\n        return verdicts\n    why = (",
        "connector",
        held_by="tests/run/test_common_state.py",
    ),
    "read-again-by-order": leave_out(
        "a stream with rows and without a state is read from its beginning by order alone",
        "run.resumption:_require_order",
        "    if may_repeat and state.live and state.source is None and not state.begins_anew:\n",
        "    if may_repeat and not state:\n",
        "connector",
        held_by="tests/run/test_resumption.py",
    ),
    "replaced-begins": leave_out(
        "a full refresh that did not end begins anew where the others are at another state",
        "run.resumption:_hand_over",
        "    sources = _drop_replaced(tables, states, sources)\n",
        "",
        "connector",
        held_by="tests/run/test_resumption.py",
    ),
    "fresh-taken-out": leave_out(
        "a state is handed over without the streams that begin anew",
        "run.resumption:_hand_over",
        "{table.stream.key for table in fresh if table.stream})\n",
        "set())\n",
        "connector",
        held_by="tests/run/test_resumption.py",
    ),
    "exact-states": leave_out(
        "a state that an earlier release left behind the rows of its table is not handed over",
        "run.resumption:_require_exact",
        "    if ended and len(ended) < len(alone):\n",
        "    if ended and not alone:\n",
        "connector",
        held_by="tests/run/test_resumption.py",
    ),
}
_NAMES: Final[Mapping[str, Mutation]] = {
    "names-kept": leave_out(
        "the names that a load has given stay in the state",
        "commit.state:TableState.add_names",
        "        return (*names, *(name for name in given if name not in there))\n",
        "        return self.names\n",
        held_by="tests/commit/test_given_names.py",
    ),
    "names-bound": leave_out(
        "a load is not bound where another one has given its names since",
        "commit.attempt:_may_bind",
        "        and state.accepts_names(intent.names, began)\n",
        "",
        held_by="tests/commit/test_given_names.py",
    ),
    "names-given": leave_out(
        "a source column keeps the name that it has",
        "shape.kept_names:ColumnNames._take_given",
        "                chosen[position] = names[source].popleft()\n",
        "                names[source].popleft()\n",
        held_by="tests/shape/test_kept_names.py",
    ),
    "names-owned": leave_out(
        "a name is not free once a column has had it",
        "shape.kept_names:ColumnNames._choose",
        "        taken = [*owned, *self._list_there(), *(name for name in chosen if name is not None)]\n",
        "        taken = [name for name in chosen if name is not None]\n",
        held_by="tests/shape/test_kept_names.py",
    ),
}
_FILES: Final[Mapping[str, Mutation]] = {
    "files-noted": leave_out(
        "the files of a load count as read once it is committed",
        "commit.input_records:follow_load",
        '            "parts": (*parts, *intent.adds),\n',
        '            "parts": parts,\n',
        "files,glue,iceberg",
        held_by="tests/commit/test_read_files.py",
    ),
    "files-of-undone": leave_out(
        "the files of a load that was undone are new again",
        "commit.input_records:follow_undo",
        '    changes = {"without": (*inputs.without, job_id),',
        '    changes = {"without": inputs.without,',
        "files,glue,iceberg",
        held_by="tests/commit/test_read_files.py",
    ),
    "files-lacking": leave_out(
        "a record that lacks a load lacks it for ever",
        "commit.input_records:_count",
        "    return committed + 1 if inputs.committed == committed else inputs.committed\n",
        "    return committed + 1\n",
        "files,glue,iceberg",
        held_by="tests/commit/test_read_files.py",
    ),
    "files-unknown": leave_out(
        "files: new is refused where nobody has noted what was read",
        "run.chosen_files:choose_inputs",
        "    if new and not (state.knows_inputs or not state.committed):\n",
        "    if new and not state:\n",
        "files,glue,iceberg",
        held_by="tests/run/test_chosen_files.py",
    ),
    "files-exclusive": leave_out(
        "a load that goes by its list is bound only while no other load has been",
        "run.chosen_files:Chosen.make_intent",
        "            exclusive=self.goes_by_record,\n",
        "            exclusive=False,\n",
        "files,glue,iceberg",
        held_by="tests/run/test_chosen_files.py",
    ),
    "files-as-listed": leave_out(
        "a file that was written while the load read it ends the load",
        "run.chosen_files:is_as_listed",
        "    if chosen.goes_by_record and replaced:\n",
        "    if chosen.goes_by_record and not chosen:\n",
        "files,glue,iceberg",
        held_by="tests/run/test_chosen_files.py",
    ),
    "files-contents": leave_out(
        "a file with other contents under its path is no file that was read",
        "spec.listed_files:ListedFile.has_contents_of",
        "        if self.size != other.size:\n            return False\n",
        "        if self.size != other.size:\n            return True\n",
        "files,glue,iceberg",
        held_by="tests/commit/test_read_files.py",
    ),
}
RECORD_MUTATIONS: Final[Mapping[str, Mutation]] = {
    **_STATES,
    **_NAMES,
    **_FILES,
    "resets-counted": leave_out(
        "a change by hand is after the last load if no load was committed since",
        "operate.load_records:_is_later",
        "    if reset.committed is not None:\n        return",
        "    if reset.committed is not None and not state:\n        return",
        "files,glue,iceberg,airbyte",
        held_by="tests/operate/test_load_records.py",
    ),
    "blind-quarantine": leave_out(
        "bad rows of a load that is abandoned without its intent go with its other objects",
        "operate.lost_intent:_abandon",
        "    objects = {**objects, **_find_quarantined(control, pending)}\n",
        "",
        "quarantine",
        held_by="tests/operate/test_by_hand.py -k bad_rows",
    ),
    "blind-beside": leave_out(
        "what has its intent is left as it is beside tables without one",
        "operate.lost_intent:abandon_without_intent",
        "        if control.table_id in lost\n",
        "        if lost\n",
        "connector,files,airbyte",
        held_by="tests/operate/test_streams_by_hand.py -k left_beside",
    ),
}
