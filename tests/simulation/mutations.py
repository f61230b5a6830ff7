"""One rule taken out at a time: each as a change of what is marked with its name, made while Python imports it.

A name that marks nothing is an error: the rule has gone, or its mark was lost.
"""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Mapping, Sequence
from types import CodeType, ModuleType
from typing import Any, Final

from tests.simulation.edge_mutations import EDGE_MUTATIONS
from tests.simulation.expiry_mutations import EXPIRY_MUTATIONS
from tests.simulation.late_mutations import LATE_MUTATIONS
from tests.simulation.merge_mutations import MERGE_MUTATIONS
from tests.simulation.mutation import Edit, Mutation, change, list_edits
from tests.simulation.quarantine_mutations import QUARANTINE_MUTATIONS
from tests.simulation.record_mutations import RECORD_MUTATIONS
from tests.simulation.refresh_mutations import REFRESH_MUTATIONS
from tests.simulation.shared_mutations import SHARED_MUTATIONS
from tests.simulation.undo_mutations import UNDO_MUTATIONS

MUTATIONS: Final[Mapping[str, Mutation]] = {
    "committed-part": Mutation(
        "nothing of an input is loaded that may hold what its load has committed, and not where it was",
        "return 0",
        kinds="messages",
    ),
    "fencing": Mutation(
        "only the registered attempt of a job binds",
        (
            "(not intent.compares_state or is_unchanged(began, state, exclusive=intent.depends()))\n"
            "and intent.may_bind(state, began)"
        ),
    ),
    "bind-over-pending": Mutation(
        "nothing binds while something is pending",
        'successions: ClassVar[Successions] = dict.fromkeys(ANYWHERE, ("prepared", "intended"))',
    ),
    "committed-unchanged": Mutation(
        "an exclusive load binds only to the table it registered with",
        "return True",
    ),
    "recover-first": Mutation(
        "what is pending is recovered before an attempt registers",
        "pass",
        more={"recover-first/2": "successions: ClassVar[Successions] = ANYWHERE"},
    ),
    "register-sees-reports": Mutation(
        "an attempt does not register when a load was committed after it looked for its report",
        "if earlier != self.seen.running.get(self.job_id):",
    ),
    "registers-knowingly": Mutation(
        "an attempt looks for the uploads of one that registered after it had looked at the state",
        "if state.committed != self.seen.committed:",
        held_by="tests/commit/test_attempt.py -k meanwhile",
    ),
    "latest-registers": Mutation(
        "the latest attempt of a job takes over from the one before it",
        "return set_fields(state, running={self.job_id: entry} | others, **named)",
    ),
    "abort-while-registered": Mutation(
        "uploads that were listed are aborted by the registered attempt only",
        "if uploads:",
    ),
    "shared-uploads": Mutation(
        "an upload that another pipeline's load may have staged is not aborted",
        "return [*bad_rows, *uploads]",
        kinds="files,glue",
    ),
    "alike-uploads": Mutation(
        "nor one that another load of the table may have staged, which began at the same time",
        "return control.has_namesake(job_id)",
        kinds="airbyte",
    ),
    "state-before-abort": Mutation(
        "an attempt that gives up replaces the state before it aborts what it staged",
        "if False:",
    ),
    "look-before-abort": Mutation(
        "an attempt that gives up aborts nothing when it turns out to be bound",
        "if False and (report is not None and report.attempt == attempt.id):",
    ),
    "completion-if-none-match": Mutation(
        "an upload is completed only if no object has its key",
        "condition: dict[str, str] = {}",
    ),
    "state-if-match": Mutation(
        "a state is replaced only if it is the one that was read",
        "return self._put(key, body, {})",
    ),
    "state-if-none-match": Mutation(
        "a control object is created only if there is none",
        "return self._put(key, body, {})",
    ),
    "refused-is-looked-at": Mutation(
        "a refused completion counts as done if an earlier try succeeded",
        "if answer is Completion.GONE and (stored.load, stored.size) == (intent.load, receipt.size):",
    ),
    "refused-is-another's": Mutation(
        "a refused completion counts as done only if the object is this load's",
        "if stored.size:",
    ),
    "gone-is-looked-at": Mutation(
        "a completion whose upload is gone counts as done only if its object exists",
        "if answer is Completion.GONE:\n    return True, None\nstored = store.find(receipt.key)",
    ),
    "unclear-is-no-answer": Mutation(
        "a completion without an answer is retried",
        "answer, unclear = Completion.DONE, error",
    ),
    "abort-before-delete": Mutation(
        "a withdrawn load's uploads are aborted before its objects are deleted",
        "pass",
    ),
    "own-objects-only": Mutation(
        "a withdrawn load deletes only what it wrote",
        "if stored is not None:",
    ),
    "delete-by-etag": Mutation(
        "an object is deleted only if it is the one that was read",
        "store.delete(key)",
    ),
    "write-grows": Mutation(
        "every state differs from all before it",
        "return set_fields(state, write=before)",
    ),
    "unclear-is-not-written": Mutation(
        "a control object whose creation had no answer is created again",
        ("try:\n    create()\nexcept Unclear:\n    return"),
    ),
    "complete-before-publish": Mutation(
        "the catalog gets a load only when all of its files are complete",
        (
            "number = control.state.recall().committed + 1\n"
            "open_catalog_writer(intent, open_clients(intent.access)).publish(intent, number)\n"
            "failure = complete_all(store, intent, control.pause)"
        ),
        kinds="glue,iceberg",
    ),
    "retire-after-complete": Mutation(
        "a full refresh deletes nothing before its own files are there",
        (
            "if intent.sync is not None:\n"
            "    delete_all(control, intent.sync.retire)\n"
            "failure = complete_all(store, intent, control.pause)"
        ),
        kinds="airbyte",
    ),
    "retire-at-all": Mutation(
        "a full refresh deletes what it replaces",
        "pass",
        kinds="airbyte",
    ),
    "report-before-close": Mutation(
        "a table's report is there before its state is closed",
        (
            "move_pending(control, Close(intent, control.find_time(), pending, False, report.health))\n"
            "control.write_once(key, report.model_dump_json(indent=1), keep=True, remember=True)"
        ),
        statements=2,
    ),
    "move-own-pending": Mutation(
        "a recovery changes only the intent and the phase that it has read",
        "if False:",
        more={"move-own-pending/2": "if False:"},
    ),
    "counter-closed": Mutation(
        "the counter of keys moves on with a load",
        '"counter": state.counter',
        kinds="estuary,batches",
    ),
    "cursor-closed": Mutation(
        "the cursor moves on with a load",
        '"cursor": state.cursor',
    ),
    "batch-closed": Mutation(
        "a batch that was committed is not loaded again",
        '"batch": state.batch',
        kinds="batches",
    ),
    "batch-digest": Mutation(
        "a batch that another copy of the checkpoint has planned is not taken for done",
        "if False:",
        kinds="batches",
    ),
    "batch-overtaken": Mutation(
        "nor where that copy has committed it meanwhile",
        "pass",
        kinds="batches",
    ),
    "times-grow": Mutation(
        "a load begins after the last commit of its table",
        "if True:",
    ),
    "sweep-spares-named": Mutation(
        "what a state names is not cleared away",
        "if load.list_tables() <= states.keys():",
    ),
    "abandon-by-phase": Mutation(
        "a load whose files are published is not undone",
        'elif pending.phase == "none":',
    ),
    "iceberg-property": Mutation(
        "a load looks for its number in the table before it appends",
        "return bool(appended)",
        kinds="iceberg",
        more={
            "iceberg-property/2": (
                "appended = list[None]()\n"
                "self._table.change(table, done, lambda seen: appended.append(commit(seen, intent, effects, number)))"
            )
        },
    ),
    "iceberg-on-what-was-read": Mutation(
        "an Iceberg commit that was overtaken is refused",
        "return super().commit_table(table, (), updates)",
        kinds="iceberg",
    ),
    "iceberg-unclear-files": Mutation(
        "the files of a commit without an answer stay until it is too late for it",
        "[table.io.delete(name) for name in self._written]",
        kinds="iceberg",
    ),
    "glue-version": Mutation(
        "a Glue table is replaced only on the version that was read",
        "",
        kinds="glue",
    ),
    "answers-have-fields": Mutation(
        "a 200 without the fields of its call is no answer",
        '"s3.CompleteMultipartUpload": ()',
    ),
    "part-digest": Mutation(
        "a part of receipts is gone by only if it is as the load wrote it",
        "if not body:",
    ),
    "part-of-the-rest": Mutation(
        "every receipt that tasks have returned is in a part that the intent names",
        "pass",
    ),
    "parts-of-tasks": Mutation(
        "parts that tasks have written are named by the intent",
        "kept_parts: list[ReceiptPart] = []",
    ),
    "part-before-intent": Mutation(
        "a part is written before it is named",
        "pass",
    ),
    "one-owner": Mutation(
        "a directory that one pipeline refreshes takes no other's objects",
        "if True:",
        kinds="airbyte",
    ),
    **UNDO_MUTATIONS,
    **REFRESH_MUTATIONS,
    **MERGE_MUTATIONS,
    **QUARANTINE_MUTATIONS,
    **SHARED_MUTATIONS,
    **EDGE_MUTATIONS,
    **RECORD_MUTATIONS,
    **EXPIRY_MUTATIONS,
    **LATE_MUTATIONS,
}


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, edits: Sequence[Edit]) -> None:
        super().__init__(name, path)
        self._edits = edits

    def get_code(self, fullname: str) -> CodeType | None:
        """The module's own text with the edits in it; what is compiled of it is kept nowhere."""
        text = self.get_data(self.path).decode()
        code: CodeType = self.source_to_code(change(text, self._edits).encode(), self.path)
        return code


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name: str, mutation: Mutation) -> None:
        self._edits = {f"lakewriter.{module}": edits for module, edits in list_edits(name, mutation).items()}

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> Any:
        """Of the modules that are changed."""
        if fullname not in self._edits:
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if found is None or found.origin is None:
            raise LookupError(f"{fullname} is not there")
        found.loader = _Loader(fullname, found.origin, self._edits[fullname])
        return found


def mutate(name: str) -> Mutation:
    """Take the rule out of the product, which is not imported yet."""
    if loaded := [module for module in sys.modules if module.startswith("lakewriter.")]:
        raise RuntimeError(f"{loaded[0]} is imported already")
    mutation = MUTATIONS[name]
    sys.meta_path.insert(0, _Finder(name, mutation))
    return mutation
