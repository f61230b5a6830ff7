"""Start a load of whatever kind: of tables alone, or of a sync, whose numbers and input are settled before its tables
run."""

import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final

from lakewriter.aws import Clients
from lakewriter.commit.at_once import call_all
from lakewriter.commit.control import Control
from lakewriter.commit.decisions import Decision, read_sync_decision
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.recover import recover
from lakewriter.commit.repeated_loads import find_done, read_repeats
from lakewriter.documents.schema import make_record_type
from lakewriter.errors import (
    ConcurrentLoadError,
    LakeError,
    LoadUndoneError,
    SchemaIncompatibleError,
    SourceFailedError,
    SpecInvalidError,
)
from lakewriter.records.state import TableState
from lakewriter.records.sync_records import SourceState
from lakewriter.report import RunReport, TableResult, format_count
from lakewriter.run.kinds import Ending, Kind, MicroBatch, Plain, Sync, TablePart
from lakewriter.run.load import run
from lakewriter.run.load_together import load_tables_together
from lakewriter.run.results import make_failed
from lakewriter.run.resumption import Resumption, plan_resumption
from lakewriter.run.staged_table import Progress
from lakewriter.run.stop import Stop
from lakewriter.run.stream_completion import Input, Verdict
from lakewriter.run.stream_judging import (
    Judged,
    StreamJudge,
    join_partial_job_ids,
    make_partial_job_id,
    require_stream,
)
from lakewriter.run.sync import TableNumbers, claim_number, find_known_number, find_next_number
from lakewriter.source.file_listing import list_inputs
from lakewriter.source.messages.message_input import Messages, look_through
from lakewriter.source.messages.splits import END, Stretch, list_message_files
from lakewriter.source.messages.spool import run_connector, spool
from lakewriter.source.request import SparkFactory
from lakewriter.spec.given import require_reads
from lakewriter.spec.listed_files import ListedFile
from lakewriter.spec.load_ids import is_next_job_id
from lakewriter.spec.specification import Spec
from lakewriter.spec.stream import MessageSource
from lakewriter.spec.table_spec import Read, TableSpec

_STDIN: Final = ("-",)


class Loader:
    """One load of one pipeline.

    ``states`` are the tables' states at its start, with nothing pending; ``broken`` has the errors of the tables whose
    state could not be read. These fail, and the others are loaded.
    """

    def __init__(
        self,
        spec: Spec,
        job_id: str,
        clients: Clients,
        spark: SparkFactory,
        progress: Progress,
        stop: Stop | None = None,
    ) -> None:
        self.spec, self.job_id, self.stop = spec, job_id, stop or Stop()
        self._spark, self._progress = spark, progress
        self._pipeline = Pipeline.open(spec, clients)
        self.controls = self._pipeline.controls
        self.states: dict[str, TableState] = {}
        self.broken: dict[str, LakeError] = {}
        self._done: set[str] = set()
        self._resumed: Resumption | None = None
        self._listed: tuple[ListedFile, ...] | None = None

    def plan_tables(self, sync_id: int | None, kind: Plain | MicroBatch) -> Sync | MicroBatch:
        """Plan the sync of tables that Spark reads; each is complete when it is loaded."""
        is_batch = isinstance(kind, MicroBatch)
        number = self.begin(sync_id, counted_alone=is_batch)
        # The number of a batch is counted by the one table's state, which therefore has to be as it was.
        ending = None if kind.takes else Ending()
        parts = {
            t.id: TablePart(ending, read=self.states[t.id] if is_batch else None) for t in self._list_sound_tables()
        }
        sync = Sync(number, parts, self._list_broken_tables(), kind.opener, kind.takes)
        return replace(kind, sync=sync) if isinstance(kind, MicroBatch) else sync

    def messages(self, source: MessageSource, sync_id: int | None) -> RunReport:
        """Load the streams of an input of messages."""
        number = self.begin(sync_id)
        if self._is_done() and source.paths != _STDIN:
            # No look at the input, which takes a Spark session. Standard input is read in any case, for its writer.
            return self.run(Sync(number, {table.id: TablePart() for table in self.spec.tables}))
        with self._open_messages(source) as messages:
            seen = Input.of(
                messages, source, [require_stream(table).key for table in self.spec.tables if table.sets_aside]
            )
            judge = StreamJudge(self._list_sound_tables(), self.controls, self.states, self.job_id, self._resumed)
            judged = judge.judge(seen, done=self._done)
            if self.broken and (judged.together or judged.is_open):
                # None of the others may go beyond the state that these are at.
                raise next(iter(self.broken.values()))
            if judged.together and self._done:
                self._require_unchanged()
            verdicts = self._catch_up(number, judged, messages)
            complete = {t.id: self._plan_part(t, verdicts[t.id], messages) for t in self._filter_tables(verdicts, True)}
            partial = self._load_partial_streams(number, verdicts, judged, messages)
            failures = tuple(
                self._make_failure(table, verdicts[table.id], partial) for table in self._filter_tables(verdicts, False)
            )
            parts = {name: part for name, part in complete.items() if name in judged.going_on}
            decision = _make_decision(parts, judged.before) if judged.together and parts else None
            report = self.run(Sync(number, complete, (*self._list_broken_tables(), *failures), together=decision))
        keys = [require_stream(table).key for table in self.spec.tables]
        return report.model_copy(update={"notes": (*messages.describe(keys), *report.notes)})

    def run(self, kind: Kind, *, job_id: str | None = None) -> RunReport:
        """Load the tables of a sync."""
        decision = kind.together if isinstance(kind, Sync) else None
        return run(
            self.spec,
            job_id=job_id or self.job_id,
            clients=self._pipeline.clients,
            spark=self._spark,
            progress=self._progress,
            kind=kind,
            stop=self.stop,
            way=None if decision is None else partial(load_tables_together, decision=decision),
        )

    def begin(self, given: int | None, *, counted_alone: bool = False) -> int:
        """Finish what earlier loads left pending, and return the sync's number.

        A stream whose types cannot be stored fails here, before the first of the others is committed. A counted number
        is claimed, so that no two loads have the same. ``counted_alone`` skips the claim, for a load of one table
        during which no other load of the table can commit.
        """
        _check_types(self.spec)
        self._require_near_tasks()
        for name, answer in zip(self.controls, call_all(self._recover, self.controls.values()), strict=True):
            if isinstance(answer, TableState):
                self.states[name] = answer
                continue
            self.broken[name] = answer
            if self.spec.on_failure == "stop":
                raise answer
        if not self.states:
            raise next(iter(self.broken.values()))
        reports = call_all(lambda control: control.read_report(self.job_id), self.controls.values())
        self._done = {name for name, report in zip(self.controls, reports, strict=True) if report is not None}
        if is_next_job_id(self.job_id):
            self._done |= self._list_repeated()
        number = find_known_number(self.spec, (report.sync_id for report in reports if report is not None), given)
        if number is not None:
            return number
        # Rule numbers-claimed
        if counted_alone:
            return find_next_number(self.states.values())
        numbers = TableNumbers.of(self.controls)
        return claim_number(numbers.control, self.job_id, numbers.find_highest)

    def _require_near_tasks(self) -> None:
        """Raise ``SPEC_INVALID`` for records with files where tasks run on other machines than the source."""
        names = [table.source_table for table in self.spec.tables if table.stream and table.stream.file_path]
        if names and not str(self._spark().sparkContext.master).startswith("local"):
            raise SpecInvalidError(
                f"stream {names[0]!r} includes files, which its source puts on this machine, and the tasks that would "
                "copy them run on others.",
                remedy="Run the load with a local master, where the source runs; or turn include_files off.",
            )

    def _list_repeated(self) -> set[str]:
        """Return the tables in which a load that this one repeats is done: no part of their streams is loaded again."""
        repeats = read_repeats(self._pipeline.first_control, self.job_id)

        def is_done(name: str) -> bool:
            try:
                return find_done(self.controls[name], self.states[name], self.job_id, repeats) is not None
            except LoadUndoneError:
                # The table says so when it registers.
                return True

        names = list(self.states)
        return {name for name, done in zip(names, call_all(is_done, names), strict=True) if done}

    def _is_done(self) -> bool:
        """Return whether this job id is loaded, and no table is left."""
        return not self.broken and self._done >= {table.id for table in self.spec.tables}

    def _recover(self, control: Control) -> TableState | LakeError:
        try:
            return recover(control, self._pipeline.open_clients)
        except LakeError as error:
            return error

    def take_over(self, table_id: str, job_id: str) -> None:
        """Continue from the state that load ``job_id`` of this very sync has left, and from no other load's."""
        state = self.controls[table_id].state.read()
        if state.last_job == job_id:
            self.states[table_id] = state

    @contextmanager
    def _open_messages(self, source: MessageSource) -> Iterator[Messages]:
        spark = self._spark()
        if not source.command and source.paths != _STDIN:
            message_files = list_message_files(source.paths)
            self._listed, _ = list_inputs(Read(format="text", path=source.paths), "messages", self._spark)
            yield look_through(spark, message_files, "")
            return
        key = f"{self._pipeline.keys.load(self.job_id)}/{uuid.uuid4().hex}/messages.jsonl"
        with spool(spark, self._pipeline.clients, key) as spooled:
            if source.command:
                self._resumed = self._plan_resumption(self._list_sound_tables(), self.states, continues=True)
                if self.broken and self._resumed.before is not None:
                    # A state for all streams would have the source go on behind rows that may not be loaded.
                    raise next(iter(self.broken.values()))
                with self.stop.waiting():
                    files, failure, mask = run_connector(source, self._resumed.text, spooled)
                yield look_through(spark, files, failure).masked(mask)
                return
            with self.stop.waiting():
                files = spooled.put(sys.stdin.buffer)
            yield look_through(spark, files, "")

    def read_saved_state(self) -> str | None:
        """Return the state for a source that is run by hand; a load cannot know that its input starts there."""
        states = zip(self.controls, call_all(lambda control: control.state.read(), self.controls.values()), strict=True)
        return self._plan_resumption(self.spec.tables, dict(states), continues=False).text

    def _plan_resumption(
        self, tables: Sequence[TableSpec], states: Mapping[str, TableState], *, continues: bool
    ) -> Resumption:
        def read(name: str, state: SourceState) -> Decision | None:
            return read_sync_decision(self.controls[name], state)

        return plan_resumption(tables, states, continues=continues, read=read)

    def _list_sound_tables(self) -> tuple[TableSpec, ...]:
        return tuple(table for table in self.spec.tables if table.id in self.states)

    def _list_broken_tables(self) -> tuple[tuple[TableResult, LakeError], ...]:
        tables = (table for table in self.spec.tables if table.id in self.broken)
        return tuple((make_failed(table, error := self.broken[table.id], 0.0), error) for table in tables)

    def _filter_tables(self, verdicts: Mapping[str, Verdict], complete: bool) -> list[TableSpec]:
        return [t for t in self._list_sound_tables() if t.id in verdicts and verdicts[t.id].complete is complete]

    def _plan_part(self, table: TableSpec, verdict: Verdict, messages: Messages) -> TablePart:
        if verdict.stretch is None:
            raise ValueError(f"nothing of {table.id} may be loaded")
        continues = verdict.stretch.start > 0 or (self._resumed is not None and table.id in self._resumed.given)
        ending = Ending(verdict.complete, self.states[table.id].sync.unfinished and continues, verdict.source)
        feed = messages.open_feed(self._spark(), verdict.stretch, table)
        # Files that are read in part count as read once the rest is loaded.
        listed = self._listed if verdict.complete and not verdict.stretch.start else None
        return TablePart(ending, feed, self.states[table.id], listed)

    def _require_unchanged(self) -> None:
        """Raise ``CONCURRENT_LOAD`` where another attempt has continued the sync since this one began: which tables are
        done was then read at different moments."""
        states = call_all(lambda name: self.controls[name].state.read(), list(self.states))
        for name, state in zip(self.states, states, strict=True):
            if (state.committed, state.sync) != (self.states[name].committed, self.states[name].sync):
                raise ConcurrentLoadError(
                    f"table {name}: another load committed while the source was read; nothing is published.",
                    remedy="Run the same job id again.",
                )

    def _catch_up(self, number: int, judged: Judged, messages: Messages) -> Mapping[str, Verdict]:
        """Load what has to be first, and return the verdicts after that: tables brought to the state for all streams
        are done."""
        if not judged.first:
            return judged.verdicts
        self._load_partial_streams(number, judged.first, judged, messages)
        verdicts = dict(judged.verdicts)
        for table in self._list_sound_tables():
            if table.id not in judged.first or table.id in self._done:
                continue
            state = self.controls[table.id].state.read()
            digest = judged.first[table.id].source
            if state.sync.source is not None and digest is not None and state.sync.source.digest == digest.digest:
                self.states[table.id] = state
                nothing = Stretch(require_stream(table).key, END, END)
                verdicts[table.id] = Verdict(nothing, state.sync.source, complete=True)
        return verdicts

    def _load_partial_streams(
        self, number: int, verdicts: Mapping[str, Verdict], judged: Judged, messages: Messages
    ) -> Mapping[str, TableResult]:
        """Load incomplete streams up to their last state, each in a load of its own or all together in one. The job ids
        of these loads follow from the state."""
        parts, ids = dict[str, TablePart](), dict[str, str]()
        for table in self._filter_tables(verdicts, False):
            verdict = verdicts[table.id]
            if verdict.stretch is not None and verdict.source is not None:
                parts[table.id] = self._plan_part(table, verdict, messages)
                ids[table.id] = make_partial_job_id(self.job_id, verdict.source, self.states[table.id].committed)
        if judged.together and parts:
            sync = Sync(number, parts, together=_make_decision(parts, judged.before))
            report = self.run(sync, job_id=join_partial_job_ids(self.job_id, ids))
            return dict(zip((table.id for table in self.spec.tables if table.id in parts), report.tables, strict=True))
        return {name: self.run(Sync(number, {name: part}), job_id=ids[name]).tables[0] for name, part in parts.items()}

    def _make_failure(
        self, table: TableSpec, verdict: Verdict, partial: Mapping[str, TableResult]
    ) -> tuple[TableResult, LakeError]:
        result = partial.get(table.id) or TableResult(schema_name=table.schema_name, table=table.name, status="failed")
        notes = (
            f"{format_count(result.rows, 'row')} before its last STATE {'is' if result.rows == 1 else 'are'} committed."
            if result.keys
            else "No more of its rows are committed."
        )
        reason = verdict.error.rstrip().removesuffix(".")
        text = f"stream {table.source_table!r} is not complete: {reason}. {notes}"
        if result.code:
            text = f"{text} Its load failed too: {result.code}: {result.message}"
        error = SourceFailedError(text, remedy=verdict.remedy)
        message = f"{error.message} {error.remedy}".strip()
        end = {"status": "failed", "code": error.code, "message": message, "remedy": error.remedy or None}
        return result.model_copy(update=end), error


def load(  # noqa: PLR0913 - four of them are options by name
    spec: Spec,
    *,
    job_id: str,
    clients: Clients,
    spark: SparkFactory,
    progress: Progress = lambda *_: None,
    sync_id: int | None = None,
    kind: Plain | MicroBatch = Plain(),  # noqa: B008 - it is frozen
    stop: Stop | None = None,
) -> RunReport:
    """Make one attempt at load ``job_id``, whatever its source and destination.

    ``SPEC_INVALID`` where a table has neither a source nor an opener of its own; ``Stopped`` where it was asked to
    ``stop`` before a table began.
    """
    stop = stop or Stop()
    if kind.opener is None:
        require_reads(spec)
    if spec.envelope is None:
        return run(spec, job_id=job_id, clients=clients, spark=spark, progress=progress, kind=kind, stop=stop)
    loader = Loader(spec, job_id, clients, spark, progress, stop)
    try:
        if spec.source and kind.opener is None:
            return loader.messages(spec.source, sync_id)
        return loader.run(loader.plan_tables(sync_id, kind))
    except Exception as error:
        # Whatever it failed with: Spark's jobs are cancelled.
        stop.check(cause=error)
        raise


def plan_kind(
    spec: Spec, job_id: str, clients: Clients, spark: SparkFactory, kind: Plain, sync_id: int | None
) -> Plain | Sync:
    """Return the kind of a load of tables: where the destination numbers its syncs, a sync with its number."""
    if spec.envelope is None:
        return kind
    loader = Loader(spec, job_id, clients, spark, lambda *_: None)
    planned = loader.plan_tables(sync_id, kind)
    assert isinstance(planned, Sync)
    return planned


def with_messages(spec: Spec, path: str) -> Spec:
    """Return the same pipeline with its messages read from elsewhere."""
    if spec.source is None:
        raise SpecInvalidError("this pipeline reads no messages.", remedy="Give it a 'source' with a catalog.")
    return spec.model_copy(update={"source": spec.source.model_copy(update={"paths": (path,), "command": ()})})


def _make_decision(parts: Mapping[str, TablePart], before: str | None) -> Decision:
    """Return the decision that binds the tables of a sync together, with the state for all streams after it."""
    sources = [part.ending.source for part in parts.values() if part.ending is not None]
    source = next((said for said in sources if said is not None and said.is_shared and said.record is None), None)
    common_source = None if source is None else source.model_copy(update={"first": None})
    return Decision(bound=True, tables=tuple(parts), source=common_source, before=before)


def _check_types(spec: Spec) -> None:
    if spec.envelope is None or not spec.envelope.typed:
        return
    for table in spec.tables:
        try:
            make_record_type(table.stream.json_schema if table.stream else {})
        except SchemaIncompatibleError as error:
            raise SchemaIncompatibleError(f"{table.id}: {error.message}", remedy=error.remedy) from error
