"""Start a load of whatever kind: of tables alone, or of a sync, whose numbers and input are settled before its tables
run."""

import hashlib
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from lakewriter.aws import Clients
from lakewriter.commit.at_once import call_all
from lakewriter.commit.control import Control
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.recover import recover
from lakewriter.commit.repeats import find_done, read_repeats
from lakewriter.commit.state import TableState
from lakewriter.commit.sync_records import SourceState
from lakewriter.documents.schema import make_record_type
from lakewriter.errors import LakeError, LoadUndoneError, SchemaIncompatibleError, SourceFailedError, SpecInvalidError
from lakewriter.naming import is_next_job_id
from lakewriter.report import RunReport, TableResult, format_count
from lakewriter.run.kinds import Ending, Kind, MicroBatch, Plain, Sync, TablePart
from lakewriter.run.load import run
from lakewriter.run.prepare import SparkFactory
from lakewriter.run.results import make_failed
from lakewriter.run.resumption import keeps_rows, plan_resumption
from lakewriter.run.staged_table import Progress
from lakewriter.run.stop import Stop
from lakewriter.run.stream_completion import Input, Verdict, describe_place, hold_back
from lakewriter.run.sync import claim_number, find_known_number, find_next_number
from lakewriter.source.file_listing import list_inputs
from lakewriter.source.messages.message_input import Messages, look_through
from lakewriter.source.messages.splits import Stretch, list_message_files
from lakewriter.source.messages.spool import run_connector, spool
from lakewriter.spec.given import require_reads
from lakewriter.spec.listed_files import ListedFile
from lakewriter.spec.specification import Mode, Read, Spec, TableSpec
from lakewriter.spec.stream import MessageSource, Stream

_STDIN: Final = ("-",)


class Loader:
    """One load of one pipeline.

    ``states`` are the tables' at its start, with nothing pending; ``broken`` says of the others why they have none:
    they fail, and the rest goes on.
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
        self._given: Mapping[str, SourceState] = {}
        self._listed: tuple[ListedFile, ...] | None = None

    def plan_tables(self, sync_id: int | None, kind: Plain | MicroBatch) -> Sync | MicroBatch:
        """The sync of tables that are read by Spark; each is complete when it is loaded."""
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
        """The streams of an input of messages."""
        number = self.begin(sync_id)
        if self._is_done() and source.paths != _STDIN:
            # No look at the input, which takes a Spark session. Whoever writes to standard input has its records taken.
            return self.run(Sync(number, {table.id: TablePart() for table in self.spec.tables}))
        with self._open_messages(source) as messages:
            seen = Input.of(
                messages, source, [_require_stream(table).key for table in self.spec.tables if table.sets_aside]
            )
            verdicts = hold_back({table.id: self._judge_stream(table, seen) for table in self._list_sound_tables()})
            complete = {t.id: self._plan_part(t, verdicts[t.id], messages) for t in self._filter_tables(verdicts, True)}
            partial = self._load_partial_streams(number, verdicts, messages)
            failures = tuple(
                self._make_failure(table, verdicts[table.id], partial) for table in self._filter_tables(verdicts, False)
            )
            report = self.run(Sync(number, complete, (*self._list_broken_tables(), *failures)))
        known = [_require_stream(table).key for table in self.spec.tables]
        return report.model_copy(update={"notes": (*messages.describe(known), *report.notes)})

    def run(self, kind: Kind, *, job_id: str | None = None) -> RunReport:
        """The tables of a sync."""
        return run(
            self.spec,
            job_id=job_id or self.job_id,
            clients=self._pipeline.clients,
            spark=self._spark,
            progress=self._progress,
            kind=kind,
            stop=self.stop,
        )

    def begin(self, given: int | None, *, counted_alone: bool = False) -> int:
        """Finish what earlier loads left pending, and return the sync's number.

        A stream whose types cannot be stored fails here, before the first of the others is committed. A number that is
        counted is claimed, so that no two loads have the same; ``counted_alone`` is for a load of one table that no
        other load of that table can come between.
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
        number = find_known_number(self.spec, ((report or {}).get("sync_id") for report in reports), given)
        if number is not None:
            return number
        number = find_next_number(self.states.values())
        return number if counted_alone else claim_number(next(iter(self.controls.values())), self.job_id, number)

    def _require_near_tasks(self) -> None:
        """``SPEC_INVALID`` for records with files where tasks run on other machines than the source."""
        names = [table.source_table for table in self.spec.tables if table.stream and table.stream.file_path]
        if names and not str(self._spark().sparkContext.master).startswith("local"):
            raise SpecInvalidError(
                f"stream {names[0]!r} includes files, which its source puts on this machine, and the tasks that would "
                "copy them run on others.",
                remedy="Run the load with a local master, where the source runs; or turn include_files off.",
            )

    def _list_repeated(self) -> set[str]:
        """The tables in which a load is done that this one repeats: no part of their streams is loaded again."""
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
        """Whether this job id is loaded, and no table is left."""
        return not self.broken and self._done >= {table.id for table in self.spec.tables}

    def _recover(self, control: Control) -> TableState | LakeError:
        try:
            return recover(control, self._pipeline.open_clients)
        except LakeError as error:
            return error

    def take_over(self, table_id: str, job_id: str) -> None:
        """Go on from the state that load ``job_id`` of this very sync has left; from no other load's."""
        state = self.controls[table_id].state.read()
        if state.last_job == job_id:
            self.states[table_id] = state

    @contextmanager
    def _open_messages(self, source: MessageSource) -> Iterator[Messages]:
        spark = self._spark()
        if not source.command and source.paths != _STDIN:
            found = list_message_files(source.paths)
            self._listed, _ = list_inputs(Read(format="text", path=source.paths), "messages", self._spark)
            yield look_through(spark, found, "")
            return
        key = f"{self._pipeline.keys.load(self.job_id)}/{uuid.uuid4().hex}/messages.jsonl"
        with spool(spark, self._pipeline.clients, key) as place:
            if source.command:
                resumed = plan_resumption(self._list_sound_tables(), self.states, continues=True)
                self._given = resumed.given
                with self.stop.waiting():
                    files, failure, mask = run_connector(source, resumed.text, place)
                yield look_through(spark, files, failure).masked(mask)
                return
            with self.stop.waiting():
                files = place.put(sys.stdin.buffer)
            yield look_through(spark, files, "")

    def read_saved_state(self) -> str | None:
        """The state for a source that is run by hand; a load cannot tell that its input goes on from it."""
        states = call_all(lambda control: control.state.read(), self.controls.values())
        return plan_resumption(self.spec.tables, dict(zip(self.controls, states, strict=True)), continues=False).text

    def _judge_stream(self, table: TableSpec, seen: Input) -> Verdict:
        stream, given = _require_stream(table), self._given.get(table.id)
        if table.id in self._done:
            # A table that is done says so when it registers, whatever the input holds by now.
            return Verdict(Stretch(stream.key, 0), self.states[table.id].sync.source, complete=True)
        why = self._explain_overtaking(table) if given is None else ""
        state = self.states[table.id].sync
        if why:
            return Verdict(None, state.source, complete=False, error=why)
        stays = keeps_rows(table, state, continues=given is not None)
        # Of a generation that goes, nothing is left out, wherever the input has its state.
        before = state.source if keeps_rows(table, state, continues=True) else None
        verdict = seen.judge(stream.key, self.job_id, before, given, stays=stays)
        refreshed = verdict.source is before and not stays
        if refreshed or (verdict.complete and stream.sync_mode == "full_refresh"):
            return replace(verdict, source=None)
        return verdict

    def _explain_overtaking(self, table: TableSpec) -> str:
        """Why the rest of an input cannot follow the part of it that this job committed; blank if it can.

        The table tells only of its last load how far that came. Once another one has followed, the records of the part
        would be loaded again. A part that another attempt of this job has just committed is gone on from.
        """
        state = self.states[table.id].sync
        replaced = table.mode is Mode.OVERWRITE or _require_stream(table).minimum_generation_id
        if replaced or (state.source is not None and state.source.job_id == self.job_id):
            return ""
        control = self.controls[table.id]
        root = f"{control.keys.root}/loads/"
        for entry in control.store.list_entries(f"{root}{make_partial_prefix(self.job_id)}"):
            job = entry.key.removeprefix(root).split("/")[0]
            if entry.key != control.keys.report(job, table.id):
                continue
            sync = control.read_intent(job, (control.read_report(job) or {})["attempt"]).sync
            if sync is not None and sync.source is not None and sync.source.job_id == self.job_id:
                now = control.state.read()
                if now.sync.source is not None and now.sync.source.job_id == self.job_id:
                    self.states[table.id] = now
                    return ""
                return (
                    f"load {now.last_job!r} has committed since this one did, up to its STATE at "
                    f"{describe_place(sync.source.place or 0)}; give what follows that to a load of its own"
                )
        return ""

    def _list_sound_tables(self) -> tuple[TableSpec, ...]:
        return tuple(table for table in self.spec.tables if table.id in self.states)

    def _list_broken_tables(self) -> tuple[tuple[TableResult, LakeError], ...]:
        tables = (table for table in self.spec.tables if table.id in self.broken)
        return tuple((make_failed(table, error := self.broken[table.id], 0.0), error) for table in tables)

    def _filter_tables(self, verdicts: Mapping[str, Verdict], complete: bool) -> list[TableSpec]:
        return [table for table in self._list_sound_tables() if verdicts[table.id].complete is complete]

    def _plan_part(self, table: TableSpec, verdict: Verdict, messages: Messages) -> TablePart:
        if verdict.stretch is None:
            raise ValueError(f"nothing of {table.id} may be loaded")
        goes_on = table.id in self._given or verdict.stretch.start > 0
        ending = Ending(verdict.complete, self.states[table.id].sync.unfinished and goes_on, verdict.source)
        feed = messages.open_feed(self._spark(), verdict.stretch, table)
        # What is read in part is counted when the rest follows.
        listed = self._listed if verdict.complete and not verdict.stretch.start else None
        return TablePart(ending, feed, self.states[table.id], listed)

    def _load_partial_streams(
        self, number: int, verdicts: Mapping[str, Verdict], messages: Messages
    ) -> Mapping[str, TableResult]:
        """Streams that did not end, loaded up to their last state, under job ids that follow from that state.

        The earlier state is committed first: of states for all streams, a connector is given the one that was.
        """
        results = {}
        partial = [(verdicts[table.id], table) for table in self._filter_tables(verdicts, False)]
        for verdict, table in sorted(partial, key=lambda item: item[0].stretch.end if item[0].stretch else 0):
            if verdict.stretch is not None and verdict.source is not None:
                part = self._plan_part(table, verdict, messages)
                partial_id = make_partial_job_id(self.job_id, verdict.source, self.states[table.id].committed)
                report = self.run(Sync(number, {table.id: part}), job_id=partial_id)
                results[table.id] = report.tables[0]
        return results

    def _make_failure(
        self, table: TableSpec, verdict: Verdict, partial: Mapping[str, TableResult]
    ) -> tuple[TableResult, LakeError]:
        result = partial.get(table.id) or TableResult(schema_=table.schema_name, table=table.name, status="failed")
        kept = (
            f"{format_count(result.rows, 'row')} before its last STATE {'is' if result.rows == 1 else 'are'} committed."
            if result.keys
            else "No more of its rows are committed."
        )
        reason = verdict.error.rstrip().removesuffix(".")
        text = f"stream {table.source_table!r} is not complete: {reason}. {kept}"
        if result.code:
            text = f"{text} Its load failed too: {result.code}: {result.message}"
        error = SourceFailedError(text, remedy=verdict.remedy)
        message, remedy = f"{error.message} {error.remedy}".strip(), error.remedy or None
        end = {"status": "failed", "code": error.code, "message": message, "remedy": remedy}
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
    """What a load of tables is: where the destination numbers its syncs, a sync with its number."""
    if spec.envelope is None:
        return kind
    loader = Loader(spec, job_id, clients, spark, lambda *_: None)
    planned = loader.plan_tables(sync_id, kind)
    assert isinstance(planned, Sync)
    return planned


def with_messages(spec: Spec, path: str) -> Spec:
    """The same pipeline with its messages read from elsewhere."""
    if spec.source is None:
        raise SpecInvalidError("this pipeline reads no messages.", remedy="Give it a 'source' with a catalog.")
    return spec.model_copy(update={"source": spec.source.model_copy(update={"paths": (path,), "command": ()})})


def make_partial_job_id(job_id: str, source: SourceState, committed: int) -> str:
    """The job id of the load that ends with this state: the same state again is the same load.

    A source may end with the same state again after new records, so the number of loads before it counts too.
    """
    ending = f"{job_id} {source.digest} {committed}"
    return f"{make_partial_prefix(job_id)}{hashlib.sha256(ending.encode()).hexdigest()[:16]}"


def make_partial_prefix(job_id: str) -> str:
    """Begins the job ids of the parts of a load."""
    return f"{job_id[:60]}.s"


def _check_types(spec: Spec) -> None:
    if spec.envelope is None or not spec.envelope.typed:
        return
    for table in spec.tables:
        try:
            make_record_type(table.stream.json_schema if table.stream else {})
        except SchemaIncompatibleError as error:
            raise SchemaIncompatibleError(f"{table.id}: {error.message}", remedy=error.remedy) from error


def _require_stream(table: TableSpec) -> Stream:
    if table.stream is None:
        raise ValueError(f"{table.id} is not read from messages")
    return table.stream
