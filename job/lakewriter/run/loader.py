"""Start a load of whatever kind: of tables alone, or of a sync, whose numbers and input are settled before its tables
run."""

import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
from lakewriter.run.load_together import load_groups, load_tables_together
from lakewriter.run.results import make_failed
from lakewriter.run.resumption import Resumption, plan_resumption
from lakewriter.run.staged_table import Progress
from lakewriter.run.stop import Stop
from lakewriter.run.stream_completion import Input, StreamVerdict
from lakewriter.run.stream_judging import (
    JudgedStreams,
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
    """An attempt at load ``job_id`` of a pipeline: it begins a sync, and runs loads of the pipeline's tables."""

    def __init__(
        self,
        spec: Spec,
        job_id: str,
        clients: Clients,
        spark: SparkFactory,
        progress: Progress,
        stop: Stop | None = None,
    ) -> None:
        self.spec, self.job_id, self.spark, self.stop = spec, job_id, spark, stop or Stop()
        self._progress = progress
        self.pipeline = Pipeline.open(spec, clients)
        self.controls = self.pipeline.controls

    def run(self, kind: Kind, *, job_id: str | None = None) -> RunReport:
        """Load the tables of a sync."""
        decision = kind.together if isinstance(kind, Sync) else None
        return run(
            self.spec,
            job_id=job_id or self.job_id,
            clients=self.pipeline.clients,
            spark=self.spark,
            progress=self._progress,
            kind=kind,
            stop=self.stop,
            way=None if decision is None else partial(load_tables_together, decision=decision),
        )

    def begin(self, given: int | None, *, counted_alone: bool = False) -> "BegunSync":
        """Finish what earlier loads left pending, and number the sync.

        A stream whose types cannot be stored fails here, before the first of the others is committed. A counted number
        is claimed, so that no two loads have the same. ``counted_alone`` skips the claim, for a load of one table
        during which no other load of the table can commit.
        """
        _check_types(self.spec)
        self._require_near_tasks()
        states, broken = dict[str, TableState](), dict[str, LakeError]()
        for name, answer in zip(self.controls, call_all(self._recover, self.controls.values()), strict=True):
            if isinstance(answer, TableState):
                states[name] = answer
                continue
            broken[name] = answer
            if self.spec.on_failure == "stop":
                raise answer
        if not states:
            raise next(iter(broken.values()))
        reports = call_all(lambda control: control.read_report(self.job_id), self.controls.values())
        done = {name for name, report in zip(self.controls, reports, strict=True) if report is not None}
        if is_next_job_id(self.job_id):
            done |= self._list_repeated(states)
        number = find_known_number(self.spec, (report.sync_id for report in reports if report is not None), given)
        if number is None:
            number = self._count_sync(states, is_claimed=not counted_alone)
        return BegunSync(self, number, states, broken, frozenset(done))

    def _count_sync(self, states: Mapping[str, TableState], *, is_claimed: bool) -> int:
        # Rule numbers-claimed
        if not is_claimed:
            return find_next_number(states.values())
        numbers = TableNumbers.of(self.controls)
        return claim_number(numbers.control, self.job_id, numbers.find_highest)

    def _require_near_tasks(self) -> None:
        """Raise ``SPEC_INVALID`` for records with files where tasks run on other machines than the source."""
        names = [table.source_table for table in self.spec.tables if table.stream and table.stream.file_path]
        if names and not str(self.spark().sparkContext.master).startswith("local"):
            raise SpecInvalidError(
                f"stream {names[0]!r} includes files, which its source puts on this machine, and the tasks that would "
                "copy them run on others.",
                remedy="Run the load with a local master, where the source runs; or turn include_files off.",
            )

    def _list_repeated(self, states: Mapping[str, TableState]) -> set[str]:
        """Return the tables in which a load that this one repeats is done: no part of their streams is loaded again."""
        repeats = read_repeats(self.pipeline.first_control, self.job_id)

        def is_done(name: str) -> bool:
            try:
                return find_done(self.controls[name], states[name], self.job_id, repeats) is not None
            except LoadUndoneError:
                # The table says so when it registers.
                return True

        names = list(states)
        return {name for name, done in zip(names, call_all(is_done, names), strict=True) if done}

    def _recover(self, control: Control) -> TableState | LakeError:
        try:
            return recover(control, self.pipeline.open_clients)
        except LakeError as error:
            return error


class BegunSync:
    """A sync whose number is known and whose tables are settled.

    ``states`` are the tables' states at its start, with nothing pending; ``broken`` has the errors of the tables whose
    state could not be read. These fail, and the others are loaded. ``done`` are the tables that are loaded under this
    job id already.
    """

    def __init__(
        self,
        loader: Loader,
        number: int,
        states: dict[str, TableState],
        broken: Mapping[str, LakeError],
        done: frozenset[str],
    ) -> None:
        self.number, self.states, self.broken, self.done = number, states, broken, done
        self.sound_tables = tuple(table for table in loader.spec.tables if table.id in states)
        self._loader = loader

    @property
    def failures(self) -> tuple[tuple[TableResult, LakeError], ...]:
        """The results of the tables whose state could not be read."""
        tables = (table for table in self._loader.spec.tables if table.id in self.broken)
        return tuple((make_failed(table, error := self.broken[table.id], 0.0), error) for table in tables)

    @property
    def is_done(self) -> bool:
        """True if the job id is loaded, and no table is left."""
        return not self.broken and self.done >= {table.id for table in self._loader.spec.tables}

    def plan_tables(self, kind: Plain | MicroBatch) -> Sync | MicroBatch:
        """Plan the sync of tables that Spark reads; each is complete when it is loaded."""
        is_batch = isinstance(kind, MicroBatch)
        # The number of a batch is counted by the one table's state, which therefore has to be as it was.
        ending = None if kind.takes else Ending()
        parts = {t.id: TablePart(ending, read=self.states[t.id] if is_batch else None) for t in self.sound_tables}
        sync = Sync(self.number, parts, self.failures, kind.opener, kind.takes)
        return replace(kind, sync=sync) if isinstance(kind, MicroBatch) else sync

    def load_messages(self, source: MessageSource) -> RunReport:
        """Load the streams of an input of messages."""
        loader = self._loader
        if self.is_done and source.paths != _STDIN:
            # No look at the input, which takes a Spark session. Standard input is read in any case, for its writer.
            return loader.run(Sync(self.number, {table.id: TablePart() for table in loader.spec.tables}))
        with self._open_input(source) as opened:
            return _SyncOfMessages(loader, self, opened).load(source)

    @contextmanager
    def _open_input(self, source: MessageSource) -> Iterator["_OpenInput"]:
        loader, spark = self._loader, self._loader.spark()
        if not source.command and source.paths != _STDIN:
            message_files = list_message_files(source.paths)
            listed, _ = list_inputs(Read(format="text", path=source.paths), "messages", loader.spark)
            yield _OpenInput(look_through(spark, message_files, ""), listed=listed)
            return
        key = f"{loader.pipeline.keys.load(loader.job_id)}/{uuid.uuid4().hex}/messages.jsonl"
        with spool(spark, loader.pipeline.clients, key) as spooled:
            if source.command:
                resumed = _plan_resumption(loader.controls, self.sound_tables, self.states, continues=True)
                if self.broken and resumed.before is not None:
                    # A state for all streams would have the source go on behind rows that may not be loaded.
                    raise next(iter(self.broken.values()))
                with loader.stop.waiting():
                    files, failure, mask = run_connector(source, resumed.text, spooled)
                yield _OpenInput(look_through(spark, files, failure).masked(mask), resumed)
                return
            with loader.stop.waiting():
                files = spooled.put(sys.stdin.buffer)
            yield _OpenInput(look_through(spark, files, ""))

    def take_over(self, table_id: str, job_id: str) -> None:
        """Continue from the state that load ``job_id`` of this very sync has left, and from no other load's."""
        state = self._loader.controls[table_id].state.read()
        if state.last_job == job_id:
            self.states[table_id] = state

    def require_unchanged(self) -> None:
        """Raise ``CONCURRENT_LOAD`` where another attempt has continued the sync since this one began: which tables are
        done was then read at different moments."""
        states = call_all(lambda name: self._loader.controls[name].state.read(), list(self.states))
        for name, state in zip(self.states, states, strict=True):
            if (state.committed, state.sync) != (self.states[name].committed, self.states[name].sync):
                raise ConcurrentLoadError(
                    f"table {name}: another load committed while the source was read; nothing is published.",
                    remedy="Run the same job id again.",
                )


@dataclass(frozen=True)
class _OpenInput:
    """Messages that can be read: ``resumed`` is what a connector was given, ``listed`` are the files that have them;
    None where no connector was run, and where no files were listed."""

    messages: Messages
    resumed: Resumption | None = None
    listed: tuple[ListedFile, ...] | None = None


class _SyncOfMessages:
    """The loads of one sync's streams, by what its input holds."""

    def __init__(self, loader: Loader, begun: BegunSync, opened: _OpenInput) -> None:
        self._loader, self._begun, self._opened = loader, begun, opened

    def load(self, source: MessageSource) -> RunReport:
        """Load each stream as far as its input and the others let it."""
        loader, begun, messages = self._loader, self._begun, self._opened.messages
        tables = loader.spec.tables
        seen = Input.of(messages, source, [require_stream(table).key for table in tables if table.sets_aside])
        judge = StreamJudge(begun.sound_tables, loader.controls, begun.states, loader.job_id, self._opened.resumed)
        judged = judge.judge(seen, done=begun.done)
        if begun.broken and (judged.together or judged.is_open):
            # None of the others may go beyond the state that these are at.
            raise next(iter(begun.broken.values()))
        if judged.together and begun.done:
            begun.require_unchanged()
        verdicts = self._catch_up(judged)
        complete = {table.id: self._plan_part(table, verdicts[table.id]) for table in self._filter(verdicts, True)}
        partial = self._load_partial_streams(verdicts, judged)
        failures = tuple(_make_failure(t, verdicts[t.id], partial.get(t.id)) for t in self._filter(verdicts, False))
        parts = {name: part for name, part in complete.items() if name in judged.going_on}
        decision = _make_decision(parts, judged.before) if judged.together and parts else None
        report = loader.run(Sync(begun.number, complete, (*begun.failures, *failures), together=decision))
        keys = [require_stream(table).key for table in tables]
        return report.model_copy(update={"notes": (*messages.describe(keys), *report.notes)})

    def _filter(self, verdicts: Mapping[str, StreamVerdict], complete: bool) -> list[TableSpec]:
        return [t for t in self._begun.sound_tables if t.id in verdicts and verdicts[t.id].complete is complete]

    def _plan_part(self, table: TableSpec, verdict: StreamVerdict) -> TablePart:
        if verdict.stretch is None:
            raise ValueError(f"nothing of {table.id} may be loaded")
        resumed, state = self._opened.resumed, self._begun.states[table.id]
        continues = verdict.stretch.start > 0 or (resumed is not None and table.id in resumed.given)
        ending = Ending(verdict.complete, state.sync.unfinished and continues, verdict.source)
        feed = self._opened.messages.open_feed(self._loader.spark(), verdict.stretch, table)
        # Files that are read in part count as read once the rest is loaded.
        listed = self._opened.listed if verdict.complete and not verdict.stretch.start else None
        return TablePart(ending, feed, state, listed)

    def _catch_up(self, judged: JudgedStreams) -> Mapping[str, StreamVerdict]:
        """Load what has to be first, and return the verdicts after that: tables brought to the state for all streams
        are done."""
        if not judged.first:
            return judged.verdicts
        self._load_partial_streams(judged.first, judged)
        verdicts = dict(judged.verdicts)
        for table in self._begun.sound_tables:
            if table.id not in judged.first or table.id in self._begun.done:
                continue
            state = self._loader.controls[table.id].state.read()
            digest = judged.first[table.id].source
            if state.sync.source is not None and digest is not None and state.sync.source.digest == digest.digest:
                self._begun.states[table.id] = state
                nothing = Stretch(require_stream(table).key, END, END)
                verdicts[table.id] = StreamVerdict(nothing, state.sync.source, complete=True)
        return verdicts

    def _load_partial_streams(
        self, verdicts: Mapping[str, StreamVerdict], judged: JudgedStreams
    ) -> Mapping[str, TableResult]:
        """Load incomplete streams up to their last state, each in a load of its own or all together in one. The job ids
        of these loads follow from the state."""
        loader, number = self._loader, self._begun.number
        parts, ids = dict[str, TablePart](), dict[str, str]()
        for table in self._filter(verdicts, False):
            verdict = verdicts[table.id]
            if verdict.stretch is not None and verdict.source is not None:
                parts[table.id] = self._plan_part(table, verdict)
                ids[table.id] = make_partial_job_id(
                    loader.job_id, verdict.source, self._begun.states[table.id].committed
                )
        if judged.together and parts:
            sync = Sync(number, parts, together=_make_decision(parts, judged.before))
            report = loader.run(sync, job_id=join_partial_job_ids(loader.job_id, ids))
            return dict(
                zip((table.id for table in loader.spec.tables if table.id in parts), report.tables, strict=True)
            )
        return {
            name: loader.run(Sync(number, {name: part}), job_id=ids[name]).tables[0] for name, part in parts.items()
        }


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
    if not spec.has_syncs:
        return run(
            spec,
            job_id=job_id,
            clients=clients,
            spark=spark,
            progress=progress,
            kind=kind,
            stop=stop,
            way=load_groups,
        )
    loader = Loader(spec, job_id, clients, spark, progress, stop)
    try:
        begun = loader.begin(sync_id, counted_alone=isinstance(kind, MicroBatch))
        if spec.source and kind.opener is None:
            return begun.load_messages(spec.source)
        return loader.run(begun.plan_tables(kind))
    except Exception as error:
        # Whatever it failed with: Spark's jobs are cancelled.
        stop.check(cause=error)
        raise


def plan_kind(
    spec: Spec, job_id: str, clients: Clients, spark: SparkFactory, kind: Plain, sync_id: int | None
) -> Plain | Sync:
    """Return the kind of a load of tables: where the destination numbers its syncs, a sync with its number."""
    if not spec.has_syncs:
        return kind
    loader = Loader(spec, job_id, clients, spark, lambda *_: None)
    planned = loader.begin(sync_id).plan_tables(kind)
    assert isinstance(planned, Sync)
    return planned


def with_messages(spec: Spec, path: str) -> Spec:
    """Return the same pipeline with its messages read from elsewhere."""
    if spec.source is None:
        raise SpecInvalidError("this pipeline reads no messages.", remedy="Give it a 'source' with a catalog.")
    return spec.model_copy(update={"source": spec.source.model_copy(update={"paths": (path,), "command": ()})})


def read_saved_state(spec: Spec, clients: Clients) -> str | None:
    """Return the state for a source that is run by hand; a load cannot know that its input starts there."""
    controls = Pipeline.open(spec, clients).controls
    states = zip(controls, call_all(lambda control: control.state.read(), controls.values()), strict=True)
    return _plan_resumption(controls, spec.tables, dict(states), continues=False).text


def _plan_resumption(
    controls: Mapping[str, Control], tables: Sequence[TableSpec], states: Mapping[str, TableState], *, continues: bool
) -> Resumption:
    def read(name: str, state: SourceState) -> Decision | None:
        return read_sync_decision(controls[name], state)

    return plan_resumption(tables, states, continues=continues, read=read)


def _make_failure(
    table: TableSpec, verdict: StreamVerdict, partial: TableResult | None
) -> tuple[TableResult, LakeError]:
    result = partial or TableResult(schema_name=table.schema_name, table=table.name, status="failed")
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


def _make_decision(parts: Mapping[str, TablePart], before: str | None) -> Decision:
    """Return the decision that binds the tables of a sync together, with the state for all streams after it."""
    sources = [part.ending.source for part in parts.values() if part.ending is not None]
    source = next((said for said in sources if said is not None and said.is_shared and said.record is None), None)
    common_source = None if source is None else source.model_copy(update={"first": None})
    return Decision(bound=True, tables=tuple(parts), source=common_source, before=before)


def _check_types(spec: Spec) -> None:
    if not spec.has_syncs or (spec.envelope is not None and not spec.envelope.typed):
        return
    for table in spec.tables:
        try:
            make_record_type(table.stream.json_schema if table.stream else {})
        except SchemaIncompatibleError as error:
            raise SchemaIncompatibleError(f"{table.id}: {error.message}", remedy=error.remedy) from error
