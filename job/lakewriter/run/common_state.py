"""Judge the streams of a sync together, if their source has one state for all of them.

Such a state does not describe a single stream. So the streams are committed up to the same state, all of them or none,
and no stream is done before the others are.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from lakewriter.errors import SourceFailedError
from lakewriter.records.sync_records import SourceState
from lakewriter.run.resumption import is_covered
from lakewriter.run.stream_completion import Input, StreamVerdict, make_source_state
from lakewriter.source.messages.contents import Event
from lakewriter.source.messages.splits import END, Stretch
from lakewriter.spec.stream import StreamKey

_DONE_AHEAD: Final = (
    "Run the same job id again: it ends where the connector says that STATE. If the connector never does, take the "
    "load out of the tables that have it: lakewriter undo LAKE {job} --reason WHY"
)


@dataclass(frozen=True)
class SyncStream:
    """A stream of the sync: the ``verdict`` on it alone, and whether the next sync ``goes_on`` from its state.

    ``before`` is the state with which its last load ended.
    """

    table_id: str
    stream: StreamKey
    verdict: StreamVerdict
    before: SourceState | None
    goes_on: bool

    @property
    def start(self) -> int:
        """The place from which its records are loaded."""
        return self.verdict.stretch.start if self.verdict.stretch is not None else self.verdict.reached + 1

    @property
    def name(self) -> str:
        """The stream's name, as messages say it."""
        return repr(self.stream[1])

    def refuse(self, error: str, remedy: str = "") -> StreamVerdict:
        """Return the verdict that nothing of the stream is loaded; its own error precedes the ``error`` of others."""
        return StreamVerdict(None, self.before, False, self.verdict.error or error, self.verdict.remedy or remedy)


def has_common_state(seen: Input, sources: Iterable[SourceState | None]) -> bool:
    """Return whether the source has one state for all streams: in the input, or in what is committed."""
    said = any(event.kind == "state" and event.stream is None for event in seen.events)
    return said or any(source is not None and source.is_shared for source in sources)


def judge_together(
    seen: Input,
    members: Sequence[SyncStream],
    job_id: str,
    *,
    ended: SyncStream | None = None,
    split: Callable[[SyncStream], SourceState],
) -> dict[str, StreamVerdict]:
    """Judge the members as one: all complete, or all up to the last state for all streams, or nothing of any.

    Args:
        seen: The input.
        members: The streams that are not done under this job id.
        job_id: The load.
        ended: A stream of the sync that is done under this job id; its table is at the state ``before``, None where
            nothing shows how far it came. A state of that stream alone is no state of the others.
        split: Returns the state of one stream out of its state before; ``SOURCE_FAILED`` where it has none.
    """
    lost = [member for member in members if member.verdict.stretch is None and member.verdict.reached == END]
    # Rule lost-stops-all
    if lost:
        why = _explain(f"stream {lost[0].name} cannot go on: {lost[0].verdict.error}")
        return {member.table_id: member.refuse(why, lost[0].verdict.remedy) for member in members}
    if ended is not None:
        return _end_as(seen, members, job_id, ended)
    failed = [member for member in members if not member.verdict.complete]
    if not failed:
        return _complete(members, split)
    why = _explain(f"stream {failed[0].name} is not complete")
    cuts = _cut(seen, members)
    # Rule ends-together
    return {member.table_id: _load_up_to(seen, member, job_id, cuts.get(member.table_id), why) for member in members}


def list_unsure(seen: Input, members: Sequence[SyncStream]) -> list[SyncStream]:
    """Return the streams that have no state, where it is not known yet whether the source has one state for all
    streams.

    The source's next state may be one for all streams. It would be handed back to the source for these streams, too.
    """
    return [
        member for member in members if member.goes_on and member.before is None and not seen.list_states(member.stream)
    ]


def hold_unsure(seen: Input, members: Sequence[SyncStream]) -> dict[str, StreamVerdict]:
    """Return the verdicts for such a source: while another stream is incomplete, no incremental stream without a state
    is ended."""
    verdicts = {member.table_id: member.verdict for member in members}
    failed = next((member for member in members if not member.verdict.complete), None)
    # Rule unsure-waits
    if failed is None:
        return verdicts
    why = (
        f"the source has sent no state for it, and stream {failed.name} is not complete: the next state may be one for "
        "all streams"
    )
    return verdicts | {
        ending.table_id: ending.refuse(why) for ending in list_unsure(seen, members) if ending.verdict.complete
    }


def _explain(why: str) -> str:
    return f"the source has one state for all streams, so they are committed together, and {why}"


def _complete(members: Sequence[SyncStream], split: Callable[[SyncStream], SourceState]) -> dict[str, StreamVerdict]:
    """Return verdicts that load all members to their ends. Where the source has changed to a state for each stream, a
    stream that had nothing new since then takes its part out of the state for all."""
    sources = {member.table_id: member.verdict.source for member in members if member.goes_on and member.verdict.source}
    shared = {name for name, source in sources.items() if source.is_shared}
    verdicts = {member.table_id: member.verdict for member in members}
    if not shared:
        return verdicts
    try:
        if len(shared) < len(sources):
            verdicts_apart = {member.table_id: split(member) for member in members if member.table_id in shared}
            return verdicts | {name: replace(verdicts[name], source=source) for name, source in verdicts_apart.items()}
        # Rule one-digest
        if len({sources[name].digest for name in shared}) > 1:
            raise SourceFailedError("the connector has sent no state that all streams have reached.")
    except SourceFailedError as error:
        return {member.table_id: member.refuse(error.message, error.remedy) for member in members}
    return verdicts


def _cut(seen: Input, members: Sequence[SyncStream]) -> dict[str, Event]:
    """Return the state up to which each member is loaded; empty where they have no common state after what is
    committed.

    A stream without a state is sent again from its beginning: no row of such a stream is loaded yet. A source that has
    changed to a state for each stream has no common one: each stream is loaded up to its own, if all have one.
    """
    end = min((fault.position for member in members for fault in seen.list_faults(member.stream)), default=END)
    said = [event for event in seen.events if event.kind == "state" and event.position < end]
    common = [event for event in said if event.stream is None]
    if common:
        last = common[-1]
        # Rule streams-of-state
        covered = [member for member in members if is_covered(last.text, member.stream, needs_part=not member.goes_on)]
        starts = [covered_member.start for covered_member in covered]
        left = [member for member in members if member not in covered and member.before is not None]
        # Rule common-is-new
        is_new = bool(starts) and max(starts) <= last.position + 1 and min(starts) <= last.position
        return {covered_member.table_id: last for covered_member in covered} if is_new and not left else {}
    last_states = {event.stream: event for event in said}
    needed = [member for member in members if member.goes_on]
    if any(
        needed_member.stream not in last_states or last_states[needed_member.stream].position < needed_member.start
        for needed_member in needed
    ):
        return {}
    return {needed_member.table_id: last_states[needed_member.stream] for needed_member in needed}


def _load_up_to(seen: Input, member: SyncStream, job_id: str, state: Event | None, why: str) -> StreamVerdict:
    if state is None:
        return member.refuse(why)
    source = make_source_state(state, job_id, seen.find_first(member.stream))
    stretch = Stretch(member.stream, member.start, max(state.position, member.start))
    error = member.verdict.error or why
    return StreamVerdict(stretch, source, complete=False, error=error, remedy=member.verdict.remedy)


def catch_up(seen: Input, members: Sequence[SyncStream], job_id: str) -> dict[str, StreamVerdict]:
    """Bring all members, of which some are done under this job id, to the last state for all streams; empty where there
    is none after what is committed. The members that are not done yet are done by that."""
    digests = {member.before.digest if member.before is not None else "" for member in members}
    lost = any(member.verdict.stretch is None and member.verdict.reached == END for member in members)
    if (
        lost
        or len(digests) == 1
        or any(member.before is not None and not _is_exact(member.before) for member in members)
    ):
        return {}
    cuts = _cut(seen, members)
    if len(cuts) < len(members) or any(state.stream is not None for state in cuts.values()):
        return {}
    return {member.table_id: _load_up_to(seen, member, job_id, cuts[member.table_id], "") for member in members}


def _is_exact(source: SourceState) -> bool:
    """Return whether the rows of a table end at its state: earlier releases let a single stream end beyond a state for
    all."""
    return not source.is_shared or source.record is not None


def _end_as(seen: Input, members: Sequence[SyncStream], job_id: str, ended: SyncStream) -> dict[str, StreamVerdict]:
    """Return verdicts for the rest of a load that is done in other tables: exactly up to the state of those tables."""
    verdicts = {member.table_id: member.verdict if member.verdict.complete else member.refuse("") for member in members}
    # A full refresh is read from its beginning by every sync, and has to be whole.
    left = [member for member in members if member.goes_on]
    why, remedy = _explain_ended(ended, job_id)
    if why or ended.before is None:
        return verdicts | {ending.table_id: ending.refuse(_explain(why), remedy) for ending in left}
    states = [event for event in seen.events if event.kind == "state" and event.digest == ended.before.digest]
    position = next(
        (event.position for event in states if event.position + 1 >= max(left_member.start for left_member in left)),
        None,
    )
    for behind in left:
        if behind.before is not None and behind.before.digest == ended.before.digest:
            stretch = Stretch(behind.stream, behind.start, behind.start)
            verdicts[behind.table_id] = StreamVerdict(stretch, ended.before, complete=True)
        elif position is not None:
            stretch = Stretch(behind.stream, behind.start, max(position, behind.start))
            verdicts[behind.table_id] = StreamVerdict(stretch, ended.before, complete=True)
        else:
            why = f"table {ended.table_id} is done under this job id up to a STATE that the connector has not reached"
            verdicts[behind.table_id] = behind.refuse(_explain(why), _DONE_AHEAD.format(job=job_id))
    return verdicts


def _explain_ended(ended: SyncStream, job_id: str) -> tuple[str, str]:
    """Explain why nothing can be committed after a table is done under this job id, and what to do; blank where it
    can."""
    # Rule ended-exactly
    if ended.before is None or not _is_exact(ended.before):
        return (
            f"table {ended.table_id} is done under this job id, and nothing shows up to which state",
            f"Undo the load in all tables, and load its rows again: lakewriter undo LAKE {job_id} --reason WHY",
        )
    if not ended.before.is_shared:
        return (
            f"table {ended.table_id} is done under this job id, up to a STATE of its stream alone",
            "Run the load under another job id: all streams go on together then.",
        )
    return "", ""
