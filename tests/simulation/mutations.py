"""One rule taken out at a time: each as a change of the product's own text, made while Python imports it.

A text that is no longer in its module is an error: the rule has moved, and the entry has to follow it.
"""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Mapping, Sequence
from types import CodeType, ModuleType
from typing import Any, Final

from tests.simulation.edge_mutations import EDGE_MUTATIONS
from tests.simulation.merge_mutations import MERGE_MUTATIONS
from tests.simulation.mutation import Mutation, change, leave_out
from tests.simulation.quarantine_mutations import QUARANTINE_MUTATIONS
from tests.simulation.record_mutations import RECORD_MUTATIONS
from tests.simulation.refresh_mutations import REFRESH_MUTATIONS
from tests.simulation.shared_mutations import SHARED_MUTATIONS
from tests.simulation.undo_mutations import UNDO_MUTATIONS

MUTATIONS: Final[Mapping[str, Mutation]] = {
    "committed-part": leave_out(
        "nothing of an input is loaded that may hold what its load has committed, and not where it was",
        "run.stream_completion:Input._find_start",
        "        return 0 if part.place is None or self._is_another(stream, part, part.place, error) else None\n",
        "        return 0\n",
        "messages",
    ),
    "fencing": leave_out(
        "only the registered attempt of a job binds",
        "commit.attempt:_may_bind",
        "        state.is_registered(attempt.job_id, attempt.id)\n        and (not change",
        "        (not change",
    ),
    "bind-over-pending": leave_out(
        "nothing binds while something is pending",
        "commit.attempt:bind",
        "if state.pending is not None or not _may_bind(",
        "if not _may_bind(",
    ),
    "committed-unchanged": leave_out(
        "an exclusive load binds only to the table it registered with",
        "commit.attempt:is_unchanged",
        "    return all(getattr(before, name) == getattr(now, name) for name in _COMPARED_FIELDS)",
        "    return True",
    ),
    "recover-first": Mutation(
        "what is pending is recovered before an attempt registers",
        {
            "commit.attempt:register": (
                ("        recover(control, open_clients)\n        is_undo", "        is_undo"),
            ),
            "commit.attempt:_add_running": (
                ("if state.pending is not None or state.committed != seen.committed or is_overtaken:", "if False:"),
            ),
        },
    ),
    "register-sees-reports": leave_out(
        "an attempt does not register when a load was committed after it looked for its report",
        "commit.attempt:_add_running",
        "if state.pending is not None or state.committed != seen.committed or is_overtaken:",
        "if state.pending is not None or is_overtaken:",
    ),
    "registers-knowingly": leave_out(
        "an attempt looks for the uploads of one that registered after it had looked at the state",
        "commit.attempt:_add_running",
        "state.committed != seen.committed or is_overtaken:",
        "state.committed != seen.committed:",
        held_by="tests/commit/test_attempt.py -k meanwhile",
    ),
    "latest-registers": leave_out(
        "the latest attempt of a job takes over from the one before it",
        "commit.attempt:_add_running",
        "running=others | {attempt.job_id: running_entry})",
        "running={attempt.job_id: running_entry} | others)",
    ),
    "abort-while-registered": leave_out(
        "uploads that were listed are aborted by the registered attempt only",
        "commit.attempt:_abort_while_registered",
        "    if uploads and control.state.read().is_registered(attempt.job_id, attempt.id):\n",
        "    if uploads:\n",
    ),
    "shared-uploads": leave_out(
        "an upload that another pipeline's load may have staged is not aborted",
        "commit.attempt:_find_own_uploads",
        "    return bad_rows if _has_rival(control, job_id, files, own_uuid) else [*bad_rows, *uploads]\n",
        "    return [*bad_rows, *uploads]\n",
        "files,glue",
    ),
    "alike-uploads": leave_out(
        "nor one that another load of the table may have staged, which began at the same time",
        "commit.attempt:_has_rival",
        "    return any(is_alike(other, entry.attempt) for other, entry in others.items()) or control",
        "    return control",
        "airbyte",
    ),
    "state-before-abort": leave_out(
        "an attempt that gives up replaces the state before it aborts what it staged",
        "commit.attempt:give_up",
        "    if not _try_move(control, lambda state: _require_unbound(state, attempt)):\n",
        "    if False:\n",
    ),
    "look-before-abort": leave_out(
        "an attempt that gives up aborts nothing when it turns out to be bound",
        "commit.attempt:give_up",
        "    if _is_bound(control.state.recall(), attempt) or (report",
        "    if False and (report",
    ),
    "completion-if-none-match": leave_out(
        "an upload is completed only if no object has its key",
        "commit.conditional_writes:S3Store.complete",
        '        condition = {"IfNoneMatch": "*"} if self._conditional else {}\n',
        "        condition: dict[str, str] = {}\n",
    ),
    "state-if-match": leave_out(
        "a state is replaced only if it is the one that was read",
        "commit.conditional_writes:S3Store.replace",
        '        return self._put(key, body, {"IfMatch": etag})',
        "        return self._put(key, body, {})",
    ),
    "state-if-none-match": leave_out(
        "a control object is created only if there is none",
        "commit.conditional_writes:S3Store.create",
        '        return self._put(key, body, {"IfNoneMatch": "*"})',
        "        return self._put(key, body, {})",
    ),
    "refused-is-looked-at": leave_out(
        "a refused completion counts as done if an earlier try succeeded",
        "commit.uploads:_judge_answer",
        "    if (stored.load, stored.size) == (intent.load, receipt.size):\n        return True, None\n",
        "    if answer is Completion.GONE and (stored.load, stored.size) == (intent.load, receipt.size):\n"
        "        return True, None\n",
    ),
    "refused-is-another's": leave_out(
        "a refused completion counts as done only if the object is this load's",
        "commit.uploads:_judge_answer",
        "    if (stored.load, stored.size) == (intent.load, receipt.size):\n        return True, None\n",
        "    if stored.size:\n        return True, None\n",
    ),
    "gone-is-looked-at": leave_out(
        "a completion whose upload is gone counts as done only if its object exists",
        "commit.uploads:_judge_answer",
        "    if answer is Completion.CONFLICT:\n        return False, None\n",
        "    if answer is Completion.CONFLICT:\n        return False, None\n"
        "    if answer is Completion.GONE:\n        return True, None\n",
    ),
    "unclear-is-no-answer": leave_out(
        "a completion without an answer is retried",
        "commit.uploads:_complete",
        "            answer, unclear = Completion.CONFLICT, error\n",
        "            answer, unclear = Completion.DONE, error\n",
    ),
    "abort-before-delete": leave_out(
        "a withdrawn load's uploads are aborted before its objects are deleted",
        "commit.uploads:withdraw",
        "    abort_all(store, ((receipt.key, receipt.upload_id) for receipt in intent.files.without_statistics()))\n"
        "    delete_own(",
        "    delete_own(",
    ),
    "own-objects-only": leave_out(
        "a withdrawn load deletes only what it wrote",
        "commit.uploads:delete_own",
        "    if stored is not None and stored.load == intent.load:\n",
        "    if stored is not None:\n",
    ),
    "delete-by-etag": leave_out(
        "an object is deleted only if it is the one that was read",
        "commit.uploads:delete_own",
        "        store.delete(key, stored.etag)\n",
        "        store.delete(key)\n",
    ),
    "write-grows": leave_out(
        "every state differs from all before it",
        "commit.state:StateFile._try_move",
        ".replace(write=seen.write + 1)",
        ".replace(write=seen.write)",
    ),
    "unclear-is-not-written": leave_out(
        "a control object whose creation had no answer is created again",
        "commit.control:Control.write_once",
        "        write(key, create, self.pause)\n",
        "        try:\n            create()\n        except Unclear:\n            return\n",
    ),
    "complete-before-publish": leave_out(
        "the catalog gets a load only when all of its files are complete",
        "commit.recover:complete_files",
        "    failure = complete_all(store, intent, control.pause)\n",
        "    number = control.state.recall().committed + 1\n"
        "    open_catalog_writer(intent, open_clients(intent.access)).publish(intent, number)\n"
        "    failure = complete_all(store, intent, control.pause)\n",
        "glue,iceberg",
    ),
    "retire-after-complete": leave_out(
        "a full refresh deletes nothing before its own files are there",
        "commit.recover:complete_files",
        "    failure = complete_all(store, intent, control.pause)\n",
        "    if intent.sync is not None:\n        delete_all(control, intent.sync.retire)\n"
        "    failure = complete_all(store, intent, control.pause)\n",
        "airbyte",
    ),
    "retire-at-all": leave_out(
        "a full refresh deletes what it replaces",
        "commit.recover:_publish",
        "    delete_all(control, effects.deletes)\n",
        "",
        "airbyte",
    ),
    "report-before-close": leave_out(
        "a table's report is there before its state is closed",
        "commit.recover:close",
        "    control.write_once(key, report.model_dump_json(indent=1), keep=True, remember=True)\n"
        "    move_pending(control, pending, close_with)\n",
        "    move_pending(control, pending, close_with)\n"
        "    control.write_once(key, report.model_dump_json(indent=1), keep=True, remember=True)\n",
    ),
    "move-own-pending": leave_out(
        "a recovery changes only the intent and the phase that it has read",
        "commit.recover:move_pending",
        "        if state.pending != old:\n            raise Lost\n        return change(state)\n",
        "        return change(state)\n",
    ),
    "counter-closed": leave_out(
        "the counter of keys moves on with a load",
        "commit.changes:Append.list_state_changes",
        '            "counter": max(state.counter, intent.counter_after or 0),\n',
        '            "counter": state.counter,\n',
        "estuary,batches",
    ),
    "cursor-closed": leave_out(
        "the cursor moves on with a load",
        "commit.changes:Append.list_state_changes",
        '        "cursor": intent.cursor_after or state.cursor,\n',
        '        "cursor": state.cursor,\n',
    ),
    "batch-closed": leave_out(
        "a batch that was committed is not loaded again",
        "commit.changes:Append.list_state_changes",
        '        "batch": intent.batch or _follow_replay(state, intent),\n',
        '        "batch": state.batch,\n',
        "batches",
    ),
    "batch-digest": leave_out(
        "a batch that another copy of the checkpoint has planned is not taken for done",
        "commit.batches:is_next",
        "    if batch.number == last.number and last.offsets is not None and batch.offsets != last.offsets:\n",
        "    if False:\n",
        "batches",
    ),
    "batch-overtaken": leave_out(
        "nor where that copy has committed it meanwhile",
        "run.load:report_done",
        "        _require_own_batch(load, table)\n",
        "",
        "batches",
    ),
    "times-grow": leave_out(
        "a load begins after the last commit of its table",
        "run.load:_date_after",
        "    if last is None or last < load.attempt.started:\n",
        "    if True:\n",
    ),
    "sweep-spares-named": leave_out(
        "what a state names is not cleared away",
        "commit.retention:sweep",
        "        if job not in named and not _is_of_lost_state(",
        "        if not _is_of_lost_state(",
    ),
    "abandon-by-phase": leave_out(
        "a load whose files are published is not undone",
        "operate.repair:_abandon",
        '        elif pending.phase == "uploaded":\n',
        '        elif pending.phase == "none":\n',
    ),
    "iceberg-property": Mutation(
        "a load looks for its number in the table before it appends",
        {
            "commit.iceberg.append:IcebergTables.publish": (
                (
                    "            return _count_committed(_require_same_table(seen, intent), intent) >= number\n",
                    "            return bool(appended)\n",
                ),
                (
                    "        self._table.change(table, done, lambda seen: commit(seen, intent, effects, number))\n",
                    "        appended = list[None]()\n"
                    "        self._table.change(table, done, lambda seen: "
                    "appended.append(commit(seen, intent, effects, number)))\n",
                ),
            )
        },
        "iceberg",
    ),
    "iceberg-on-what-was-read": leave_out(
        "an Iceberg commit that was overtaken is refused",
        "commit.iceberg.iceberg_catalogs:_Glue.commit_table",
        "            return super().commit_table(table, requirements, updates)\n",
        "            return super().commit_table(table, (), updates)\n",
        "iceberg",
    ),
    "iceberg-unclear-files": leave_out(
        "the files of a commit without an answer stay until it is too late for it",
        "commit.iceberg.iceberg_tables:IcebergTable.change",
        "                unclear.append(list(self._written))\n",
        "                [table.io.delete(name) for name in self._written]\n",
        "iceberg",
    ),
    "glue-version": leave_out(
        "a Glue table is replaced only on the version that was read",
        "commit.glue:GlueTables._update",
        '            VersionId=table["VersionId"],\n',
        "",
        "glue",
    ),
    "answers-have-fields": leave_out(
        "a 200 without the fields of its call is no answer",
        "aws.required_fields:REQUIRED",
        '    "s3.CompleteMultipartUpload": ("Key", "ETag"),\n',
        '    "s3.CompleteMultipartUpload": (),\n',
    ),
    "part-digest": leave_out(
        "a part of receipts is gone by only if it is as the load wrote it",
        "receipts.parts:Receipts._read_body",
        "        if hashlib.sha256(body).hexdigest() != part.sha256:\n",
        "        if not body:\n",
    ),
    "part-of-the-rest": leave_out(
        "every receipt that tasks have returned is in a part that the intent names",
        "commit.kept_receipts:keep_receipts",
        "    kept_parts += writer.flush()\n",
        "",
    ),
    "parts-of-tasks": leave_out(
        "parts that tasks have written are named by the intent",
        "commit.kept_receipts:keep_receipts",
        "    kept_parts = [part for part, small in zip(parts, is_small, strict=True) if not small]\n",
        "    kept_parts: list[ReceiptPart] = []\n",
    ),
    "part-before-intent": leave_out(
        "a part is written before it is named",
        "receipts.parts:PartWriter.flush",
        "        self._write(part.key, body)\n",
        "",
    ),
    "one-owner": leave_out(
        "a directory that one pipeline refreshes takes no other's objects",
        "commit.ownership:Ownership._require_no_rival",
        "        if not others:\n            return\n",
        "        return\n",
        "airbyte",
    ),
    **UNDO_MUTATIONS,
    **REFRESH_MUTATIONS,
    **MERGE_MUTATIONS,
    **QUARANTINE_MUTATIONS,
    **SHARED_MUTATIONS,
    **EDGE_MUTATIONS,
    **RECORD_MUTATIONS,
}


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, edits: Sequence[tuple[str, str, str]]) -> None:
        super().__init__(name, path)
        self._edits = edits

    def get_code(self, fullname: str) -> CodeType | None:
        """The module's own text with the edits in it; what is compiled of it is kept nowhere."""
        text = self.get_data(self.path).decode()
        for name, old, new in self._edits:
            text = change(text, name, old, new)
        code: CodeType = self.source_to_code(text.encode(), self.path)
        return code


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mutation: Mutation) -> None:
        self._edits = {f"lakewriter.{name}": edits for name, edits in mutation.list_modules().items()}

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
    sys.meta_path.insert(0, _Finder(mutation))
    return mutation
