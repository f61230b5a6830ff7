"""Rules of what a table's state records beside its loads, each taken out: the source's state for all streams, the names
that were given, the files that were read, and changes by hand."""

from collections.abc import Mapping
from typing import Final

from tests.simulation.mutation import Mutation

RECORD_MUTATIONS: Final[Mapping[str, Mutation]] = {
    "undecided-unbound": Mutation(
        "a sync that is met before its decision is bound in none of its tables",
        "decision = decide(control, Group.of(pending), Decision(bound=True))",
        kinds="connector",
        held_by="tests/commit/test_decisions.py",
    ),
    "first-decision": Mutation(
        "the decision that was written first counts",
        "return decision",
        kinds="connector",
        held_by="tests/commit/test_decisions.py",
    ),
    "first-completion": Mutation(
        "the files of all tables of a sync are completed, or those of none",
        "return failure",
        kinds="connector",
        held_by="tests/commit/test_decisions.py",
    ),
    "ends-together": Mutation(
        "no stream is done before the others where the source has one state for all",
        "return {each.table_id: each.verdict if each.verdict.complete else "
        "_load_up_to(seen, each, job_id, cuts.get(each.table_id), why) for each in members}",
        kinds="connector",
        held_by="tests/run/test_common_state.py",
    ),
    "common-state": Mutation(
        "a source is given a state for all streams only if all of them are at it",
        "if name:",
        kinds="connector",
        held_by="tests/run/test_resumption.py",
    ),
    "streams-of-state": Mutation(
        "a stream goes on behind a state only if that has a part of it",
        "covered = list(members)",
        kinds="connector",
        held_by="tests/run/test_common_state.py",
    ),
    "unsure-waits": Mutation(
        "a stream without a state is not done before the others while the source may yet say one for all",
        "if failed is None or failed:",
        kinds="connector",
        held_by="tests/run/test_common_state.py",
    ),
    "read-again-by-order": Mutation(
        "a stream with rows and without a state is read from its beginning by order alone",
        "if may_repeat and not state:",
        kinds="connector",
        held_by="tests/run/test_resumption.py",
    ),
    "replaced-begins": Mutation(
        "a full refresh that did not end begins anew where the others are at another state",
        "pass",
        kinds="connector",
        held_by="tests/run/test_resumption.py",
    ),
    "fresh-taken-out": Mutation(
        "a state is handed over without the streams that begin anew",
        "handed = _remove_streams(sources[common].kind, text, set())",
        kinds="connector",
        held_by="tests/run/test_resumption.py",
    ),
    "exact-states": Mutation(
        "a state that an earlier release left behind the rows of its table is not handed over",
        "if ended and not alone:",
        kinds="connector",
        held_by="tests/run/test_resumption.py",
    ),
    "names-kept": Mutation(
        "the names that a load has given stay in the state",
        "return self.names",
        held_by="tests/commit/test_given_names.py",
    ),
    "names-bound": Mutation(
        "a load is not bound where another one has given its names since",
        "if False:",
        held_by="tests/commit/test_given_names.py",
    ),
    "range-sets-no-cursor": Mutation(
        "a load of a range leaves the cursor as it is",
        "if False:",
        held_by="tests/load/test_ranges.py",
    ),
    "pins-of-gone-columns": Mutation(
        "lake.yaml gives a column no name that a column of the source has",
        "left = {self._rule.fold(entry.name) for entry in self._earlier.given or ()}",
        held_by="tests/shape/test_kept_names.py",
    ),
    "types-kept": Mutation(
        "the types that the values of a load have given stay in the state",
        "types.setdefault(column.name, column)",
        held_by="tests/commit/test_inferred_types.py",
    ),
    "types-bound": Mutation(
        "a load is not bound where another one has given its columns other types since",
        "return True",
        held_by="tests/commit/test_inferred_types.py",
    ),
    "types-of-a-refresh": Mutation(
        "a full refresh has the types of its own files alone",
        "types = state.add_types(intent.types, intent.job_id)",
        held_by="tests/commit/test_inferred_types.py",
    ),
    "types-undone": Mutation(
        "an undo forgets the types that only its load has given",
        "stay = state.types",
        held_by="tests/load/test_inferred_types.py",
    ),
    "names-given": Mutation(
        "a source column keeps the name that it has",
        "names[source].popleft()",
        held_by="tests/shape/test_kept_names.py",
    ),
    "names-owned": Mutation(
        "a name is not free once a column has had it",
        "taken = [name for name in chosen if name is not None]",
        held_by="tests/shape/test_kept_names.py",
    ),
    "files-noted": Mutation(
        "the files of a load count as read once it is committed",
        '"parts": parts',
        kinds="files,glue,iceberg",
        held_by="tests/commit/test_read_files.py",
    ),
    "files-of-undone": Mutation(
        "the files of a load that was undone are new again",
        'changes = {"without": inputs.without, "committed": _count(inputs, committed)}',
        kinds="files,glue,iceberg",
        held_by="tests/commit/test_read_files.py",
    ),
    "files-lacking": Mutation(
        "a record that lacks a load lacks it for ever",
        "return committed + 1",
        kinds="files,glue,iceberg",
        held_by="tests/commit/test_read_files.py",
    ),
    "files-unknown": Mutation(
        "files: new is refused where nobody has noted what was read",
        "if new and not state:",
        kinds="files,glue,iceberg",
        held_by="tests/run/test_chosen_files.py",
    ),
    "files-exclusive": Mutation(
        "a load that goes by its list is bound only while no other load has been",
        "exclusive=False",
        kinds="files,glue,iceberg",
        held_by="tests/run/test_chosen_files.py",
    ),
    "files-as-listed": Mutation(
        "a file that was written while the load read it ends the load",
        "if chosen.goes_by_record and not chosen:",
        kinds="files,glue,iceberg",
        held_by="tests/run/test_chosen_files.py",
    ),
    "files-contents": Mutation(
        "a file with other contents under its path is no file that was read",
        "return True",
        kinds="files,glue,iceberg",
        held_by="tests/commit/test_read_files.py",
    ),
    "resets-counted": Mutation(
        "a change by hand is after the last load if no load was committed since",
        "return False",
        kinds="files,glue,iceberg,airbyte",
        held_by="tests/operate/test_load_records.py",
    ),
    "blind-quarantine": Mutation(
        "bad rows of a load that is abandoned without its intent go with its other objects",
        "pass",
        kinds="quarantine",
        held_by="tests/operate/test_by_hand.py -k bad_rows",
    ),
    "blind-beside": Mutation(
        "what has its intent is left as it is beside tables without one",
        "if lost",
        kinds="connector,files,airbyte",
        held_by="tests/operate/test_streams_by_hand.py -k left_beside",
    ),
}
