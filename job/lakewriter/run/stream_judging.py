"""Judge how far each stream of an input is loaded, by what its table has and by what the connector was given."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from lakewriter.commit.control import Control
from lakewriter.commit.decisions import read_sync_decision
from lakewriter.records.changes import Load
from lakewriter.records.state import TableState
from lakewriter.records.sync_records import SourceState, SyncState, make_partial_prefix
from lakewriter.run.common_state import (
    SyncStream,
    catch_up,
    has_common_state,
    hold_unsure,
    judge_together,
    list_unsure,
)
from lakewriter.run.resumption import Resumption, goes_on, keeps_rows, split_state
from lakewriter.run.stream_completion import Input, StreamVerdict, describe_position
from lakewriter.source.messages.splits import END, Stretch
from lakewriter.spec.stream import Stream
from lakewriter.spec.table_spec import TableSpec


@dataclass(frozen=True)
class JudgedStreams:
    """The verdicts by table. ``together`` says that the streams are committed together, ``is_open`` that this is not
    known yet. ``before`` is the digest of the state for all streams that they were at, None where there is none.
    ``going_on`` are the tables that the next sync continues: it reads the others from their beginning. ``first`` is
    what has to be loaded first, for a sync that is done in some tables: also in those, so that the others can be
    done."""

    verdicts: Mapping[str, StreamVerdict]
    together: bool = False
    is_open: bool = False
    going_on: frozenset[str] = frozenset()
    first: Mapping[str, StreamVerdict] = field(default_factory=dict)
    before: str | None = None


class StreamJudge:
    """Judges the streams of one load; ``states`` are the tables', ``resumed`` what the connector was given, None where
    the job runs none."""

    def __init__(
        self,
        tables: Sequence[TableSpec],
        controls: Mapping[str, Control],
        states: dict[str, TableState],
        job_id: str,
        resumed: Resumption | None = None,
    ) -> None:
        self._tables, self._controls, self._states = tables, controls, states
        self._job_id, self._resumed = job_id, resumed

    def judge(self, seen: Input, *, done: Collection[str] = ()) -> JudgedStreams:
        """Return how far each stream is loaded; ``done`` are the tables that are loaded under this job id already."""
        verdicts = {table.id: self._judge_stream(table, seen, is_done=table.id in done) for table in self._tables}
        members = [self._make_stream(table, verdicts[table.id]) for table in self._tables]
        left = [member for member in members if member.table_id not in done]
        sources = [state.source for table, state in self._list_syncs() if goes_on(table, state, continues=True)]
        if not has_common_state(seen, sources):
            if self._resumed is None:
                return JudgedStreams(self._hold_replacing(verdicts, members))
            unsure = frozenset(member.table_id for member in list_unsure(seen, left))
            verdicts = self._hold_replacing(verdicts | hold_unsure(seen, left), members)
            return JudgedStreams(verdicts, len(unsure) > 1, bool(unsure), going_on=unsure)
        first: dict[str, StreamVerdict] = {}
        ended = next((member for member in members if member.goes_on and member.table_id in done), None)
        if not any(member.goes_on for member in left):
            ended = None
        if ended is not None:
            sound = [self._make_stream(table, self._judge_stream(table, seen, is_done=False)) for table in self._tables]
            first = catch_up(seen, [member for member in sound if member.goes_on], self._job_id)
        judged = judge_together(
            seen,
            left,
            self._job_id,
            ended=ended,
            split=self._split_state,
        )
        digests = {source.digest for source in sources if source is not None and source.is_shared}
        before = digests.pop() if len(digests) == 1 else None
        if self._resumed is not None:
            before = self._resumed.before
        going_on = frozenset(member.table_id for member in members if member.goes_on)
        whole = self._hold_replacing(verdicts | judged, members, together=left)
        return JudgedStreams(whole, together=True, before=before, going_on=going_on, first=first)

    def _hold_replacing(
        self, verdicts: dict[str, StreamVerdict], members: Sequence[SyncStream], together: Sequence[SyncStream] = ()
    ) -> dict[str, StreamVerdict]:
        """Return the verdicts with nothing of a stream that would replace its table's rows by a part of itself, nor of
        the others of those that are loaded ``together``."""
        held = [member for member in members if self._is_partial(member.table_id, verdicts[member.table_id])]
        # Rule replacing-sync-is-whole
        if not held:
            return verdicts
        why = f"stream {held[0].name} replaces the rows of its table, and is not complete"
        return verdicts | {member.table_id: member.refuse(why) for member in (*held, *together)}

    def _is_partial(self, table_id: str, verdict: StreamVerdict) -> bool:
        """Return whether a part of a stream would replace its table's rows."""
        table = next(table for table in self._tables if table.id == table_id)
        is_kept = keeps_rows(table, self._states[table_id].sync, continues=True)
        replaces = require_stream(table).at_once and not is_kept
        return replaces and verdict.stretch is not None and not verdict.complete

    def _list_syncs(self) -> list[tuple[TableSpec, SyncState]]:
        return [(table, self._states[table.id].sync) for table in self._tables]

    def _make_stream(self, table: TableSpec, verdict: StreamVerdict) -> SyncStream:
        state, stream = self._states[table.id].sync, require_stream(table)
        is_kept = stream.sync_mode == "incremental" and keeps_rows(table, state, continues=False)
        return SyncStream(table.id, stream.key, verdict, state.source, is_kept)

    def _split_state(self, member: SyncStream) -> SourceState:
        if (source := member.verdict.source) is None:
            raise ValueError(f"{member.table_id} has no state")
        stream = next(table.stream for table in self._tables if table.id == member.table_id and table.stream)
        return split_state(stream, source, read_sync_decision(self._controls[member.table_id], source))

    def _judge_stream(self, table: TableSpec, seen: Input, *, is_done: bool) -> StreamVerdict:
        stream, given = require_stream(table), self._resumed.given.get(table.id) if self._resumed else None
        if is_done:
            # A table that is done says so when it registers, whatever the input holds by now.
            return StreamVerdict(Stretch(stream.key, 0), self._states[table.id].sync.source, complete=True)
        # What a connector sends follows what it was given: a table that has changed since then is refused on binding.
        why = self._explain_overtaking(table) if self._resumed is None else ""
        state = self._states[table.id].sync
        if why:
            return StreamVerdict(None, state.source, complete=False, error=why, reached=END)
        stays = keeps_rows(table, state, continues=given is not None)
        # Rule replacing-sync-from-its-start
        # A generation that is replaced is loaded whole, wherever the input has its state.
        before = state.source if keeps_rows(table, state, continues=True) else None
        if self._resumed is not None and given is None:
            # The connector sends the stream from its beginning.
            before = None
        verdict = seen.judge(stream.key, self._job_id, before, given, stays=stays)
        refreshed = verdict.source is before and not stays
        if refreshed or (verdict.complete and stream.sync_mode == "full_refresh"):
            return replace(verdict, source=None)
        return verdict

    def _explain_overtaking(self, table: TableSpec) -> str:
        """Say why the rest of an input cannot follow the part that this job committed; blank if it can.

        The table records only how far its last load read. Once another one has followed, the records of the part
        would be loaded again. A part that another attempt of this job has just committed is continued.
        """
        state = self._states[table.id].sync
        has_generation = require_stream(table).generation_id is not None
        replaces = not keeps_rows(table, state, continues=True) if has_generation else table.overwrites
        # Rule rest-behind-another
        if replaces or (state.source is not None and state.source.job_id == self._job_id):
            return ""
        control = self._controls[table.id]
        for job in control.history.list_reports(make_partial_prefix(self._job_id)).get(table.id, ()):
            report = control.read_report(job)
            if report is not None and report.is_blind:
                # That part did not change the table's state, so the state says where to continue.
                continue
            intent = control.find_intent(job, report.attempt) if report is not None else None
            if intent is None:
                return (
                    f"load {job!r} has committed a part of this one, and its intent is gone, which says how far that "
                    "came; give what follows the part to a load of its own"
                )
            sync = intent.sync if isinstance(intent, Load) else None
            if sync is not None and sync.source is not None and sync.source.job_id == self._job_id:
                now = control.state.read()
                if now.sync.source is not None and now.sync.source.job_id == self._job_id:
                    self._states[table.id] = now
                    return ""
                return (
                    f"load {now.last_job!r} has committed since this one did, up to its STATE at "
                    f"{describe_position(sync.source.place or 0)}; give what follows that to a load of its own"
                )
        return ""


def make_partial_job_id(job_id: str, source: SourceState, committed: int) -> str:
    """Return the job id of the load that ends with this state: the same state again is the same load.

    A source may end with the same state again after new records, so the number of loads before it counts too.
    """
    # Rule same-state-again
    ending = f"{job_id} {source.digest} {committed}"
    return f"{make_partial_prefix(job_id)}{hashlib.sha256(ending.encode()).hexdigest()[:16]}"


def join_partial_job_ids(job_id: str, ids: Mapping[str, str]) -> str:
    """Return the job id of a load of several tables, made from the job ids that each would have alone."""
    if len(set(ids.values())) == 1:
        return next(iter(ids.values()))
    ending = " ".join(f"{table} {table_job_id}" for table, table_job_id in sorted(ids.items()))
    return f"{make_partial_prefix(job_id)}{hashlib.sha256(ending.encode()).hexdigest()[:16]}"


def require_stream(table: TableSpec) -> Stream:
    """Return the stream that the table is read from."""
    if table.stream is None:
        raise ValueError(f"{table.id} is not read from messages")
    return table.stream
