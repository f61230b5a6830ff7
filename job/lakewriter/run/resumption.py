"""Build the source's ``--state`` from the last committed STATE messages, without streams that will be replaced."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from lakewriter.commit.decisions import Decision
from lakewriter.errors import SourceFailedError
from lakewriter.records.state import TableState
from lakewriter.records.sync_records import SourceState, SyncState
from lakewriter.report import join_first
from lakewriter.source.messages.lines import StreamState, is_object
from lakewriter.spec.stream import Stream, StreamKey
from lakewriter.spec.table_spec import TableSpec

_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
MOST_NAMED: Final = 3
"""A message names at most so many tables."""
_ORDER: Final = (
    "Let the stream begin anew, which appends all of its rows again: "
    "lakewriter reset LAKE {table} --no-cursor --reason WHY"
)

_NOTHING: Final = SourceState(kind="global", text="", digest="", job_id="")
"""The beginning, where a sync was not committed in all tables and there was none before it."""

ReadDecision = Callable[[str, SourceState], Decision | None]
"""Reads the decision that keeps a table's state, by the table's id; None for a state that the table keeps itself."""


@dataclass(frozen=True)
class Resumption:
    """The file that a source takes as its state, None for none; ``given`` has the state of each table, by its id.

    ``before`` is the digest of the state for all streams that is handed over, None where none is.
    """

    text: str | None = None
    given: Mapping[str, SourceState] = field(default_factory=dict)
    before: str | None = None


def keeps_rows(table: TableSpec, state: SyncState, *, continues: bool) -> bool:
    """Return True if the committed rows stay when the next load completes. ``continues`` says that this load resumes
    the last one."""
    stream = table.stream
    if stream is not None and stream.generation_id is not None:
        reached = state.shown_generation if stream.at_once else state.generation_id
        return (stream.minimum_generation_id or 0) <= reached
    return not table.overwrites or (state.unfinished and continues)


def goes_on(table: TableSpec, state: SyncState, *, continues: bool) -> bool:
    """Return whether the source is to continue the stream after what is committed of it. This holds for incremental
    streams, and for streams whose last sync did not end."""
    stream = table.stream
    is_resumed = stream is not None and (stream.sync_mode == "incremental" or state.unfinished)
    return is_resumed and keeps_rows(table, state, continues=continues)


def plan_resumption(
    tables: Iterable[TableSpec], states: Mapping[str, TableState], *, continues: bool, read: ReadDecision
) -> Resumption:
    """Plan what the source is given: the states of all streams that continue after what is committed.

    A state for all streams is handed over only if it is that of every such stream. Streams that begin anew are removed
    from it. ``SOURCE_FAILED`` where the streams have no state in common, or where one would append again what it has.
    """
    streams = [table for table in tables if table.stream is not None]
    sources = {
        table.id: source
        for table in streams
        if (source := states[table.id].sync.source) and goes_on(table, states[table.id].sync, continues=continues)
    }
    decisions = {name: read(name, state) for name, state in sources.items() if state.is_shared}
    if not decisions:
        return Resumption(_join(state.text for state in sources.values()), sources)
    for table in streams:
        if table.id not in sources:
            _require_order(table, states[table.id].sync)
    if len(decisions) < len(sources):
        return Resumption(_join(_split(streams, sources, decisions)), sources)
    _require_exact(states, sources)
    return _hand_over(streams, states, sources, decisions)


def _split(
    tables: Iterable[TableSpec], sources: Mapping[str, SourceState], decisions: Mapping[str, Decision | None]
) -> Iterator[str]:
    """Yield a state for each stream, where the source sends such states now, and some streams had nothing new since its
    last state for all streams."""
    for table in tables:
        state = sources.get(table.id)
        if state is not None and table.stream is not None:
            yield split_state(table.stream, state, decisions[table.id]).text if state.is_shared else state.text


def _hand_over(
    tables: Sequence[TableSpec],
    states: Mapping[str, TableState],
    sources: Mapping[str, SourceState],
    decisions: Mapping[str, Decision | None],
) -> Resumption:
    """Return the state for all streams that they have in common, without those that begin anew."""
    # Rule replaced-begins
    sources = _drop_replaced(tables, states, sources)
    fresh = [table for table in tables if table.id not in sources]
    common = _find_common(sources, decisions, {table.id for table in fresh if _is_new(table, states[table.id].sync)})
    if common is None:
        return Resumption(None, dict.fromkeys(sources, _NOTHING))
    text = read_text(sources[common], decisions[common])
    for table in fresh:
        _require_removed(table, states[table.id].sync, sources[common], text)
    # Rule fresh-taken-out
    handed = _remove_streams(sources[common].kind, text, {table.stream.key for table in fresh if table.stream})
    return Resumption(handed, dict.fromkeys(sources, sources[common]), sources[common].digest)


def _drop_replaced(
    tables: Iterable[TableSpec], states: Mapping[str, TableState], sources: Mapping[str, SourceState]
) -> Mapping[str, SourceState]:
    """Leave out full refreshes that did not end, where the others are at another state: they begin anew, and replace
    what the tables have."""
    replaced = {table.id for table in tables if not keeps_rows(table, states[table.id].sync, continues=False)}
    digests = {state.digest for name, state in sources.items() if name not in replaced}
    if not digests:
        return sources
    return {name: state for name, state in sources.items() if name not in replaced or {state.digest} == digests}


def read_text(state: SourceState, decision: Decision | None) -> str:
    """Return the state as the source said it; ``decision`` keeps it, None where it keeps its text itself."""
    return state.text if decision is None or decision.source is None else decision.source.text


def split_state(stream: Stream, state: SourceState, decision: Decision | None) -> SourceState:
    """Return one stream's part of a state for all streams; ``SOURCE_FAILED`` where it has none.

    Only a LEGACY state can be split: by convention it is an object by the streams' names, and Airbyte's own library for
    sources takes it apart in this way. A GLOBAL state has a part that belongs to no single stream.
    """
    name = ".".join(part for part in stream.key if part)
    if state.kind == "legacy":
        member_states = _decode_members(_take_legacy_data(read_text(state, decision))).get(stream.name)
        if member_states is not None and is_object(member_states):
            descriptor = {"name": stream.name} | ({"namespace": stream.namespace} if stream.namespace else {})
            content = {"type": "STREAM", "stream": {"stream_descriptor": descriptor, "stream_state": member_states}}
            text = msgspec.json.encode(content).decode()
            digest = hashlib.sha256(text.encode()).hexdigest()
            return SourceState(kind="stream", text=text, digest=digest, job_id=state.job_id)
    raise SourceFailedError(
        f"the source sends a state for each stream now, and has sent none for stream {name!r}, which is at a "
        f"{state.kind.upper()} state for all streams: no state can be given to it for both.",
        remedy=_ORDER.format(table=name),
    )


def _require_order(table: TableSpec, state: SyncState) -> None:
    """Raise ``SOURCE_FAILED`` where the source would send again what the stream has, and nobody has ordered it."""
    stream = table.stream
    may_repeat = stream is not None and stream.sync_mode == "incremental" and keeps_rows(table, state, continues=True)
    # Rule read-again-by-order
    if may_repeat and state.live and state.source is None and not state.begins_anew:
        raise SourceFailedError(
            f"table {table.id} has rows of earlier syncs and no state of the source, which is given one state for all "
            "streams: the source would send all of its rows again.",
            remedy=_ORDER.format(table=table.id),
        )


def _require_exact(states: Mapping[str, TableState], sources: Mapping[str, SourceState]) -> None:
    """Raise ``SOURCE_FAILED`` where an earlier release has ended one of the streams alone: its rows go beyond its
    state."""
    alone = [name for name, state in sources.items() if state.record is None]
    ended = [name for name in alone if not states[name].sync.unfinished]
    # Rule exact-states
    if ended and len(ended) < len(alone):
        raise SourceFailedError(
            f"table {ended[0]} ended in a sync of an earlier release in which others did not end, and may "
            f"have more rows than the state for all streams says, that of load {sources[ended[0]].job_id!r}: from "
            "there records would be loaded twice.",
            remedy="Undo that load in all tables, and load its rows again: lakewriter undo LAKE "
            f"{sources[ended[0]].job_id} --reason WHY; or: {_ORDER.format(table=ended[0])}",
        )


def _is_new(table: TableSpec, state: SyncState) -> bool:
    """Return whether nothing of an incremental stream is committed, and nobody has ordered it to begin anew."""
    is_incremental = table.stream is not None and table.stream.sync_mode == "incremental"
    return is_incremental and keeps_rows(table, state, continues=True) and not state.begins_anew


def _require_removed(table: TableSpec, state: SyncState, common: SourceState, text: str) -> None:
    """Raise ``SOURCE_FAILED`` where a stream is ordered to begin anew, and the state cannot leave it out."""
    if not state.begins_anew or common.kind != "legacy" or table.stream is None:
        return
    if table.stream.name not in _decode_members(_take_legacy_data(text)):
        raise SourceFailedError(
            f"table {table.id} is to begin anew, and the state of the source is one for all streams in which the "
            "stream has no part: the source cannot be asked to send this one alone again.",
            remedy="Let all streams begin anew: lakewriter reset LAKE TABLE --no-cursor --reason WHY for each of them.",
        )


def _find_common(
    sources: Mapping[str, SourceState], decisions: Mapping[str, Decision | None], new: Collection[str]
) -> str | None:
    """Return a table whose state all tables have reached, None where that is the beginning; some tables may have gone
    beyond it.

    A table has gone beyond the state that its sync began with if that sync was not committed in all of its tables.
    ``new`` are those of which nothing is committed.
    """

    def is_complete(decision: Decision | None) -> bool:
        return decision is None or new_ones.isdisjoint(decision.tables)

    def has_passed(name: str, digest: str | None) -> bool:
        decision = decisions[name]
        if decision is None or decision.before != digest:
            return False
        others = new_ones if digest is None else {key for key, state in sources.items() if state.digest == digest}
        return not others.isdisjoint(decision.tables)

    new_ones = set(new)
    for name, state in sources.items():
        is_common = all(
            is_complete(decisions[key]) if other.digest == state.digest else has_passed(key, state.digest)
            for key, other in sources.items()
        )
        # Rule common-state
        if is_common:
            return name
    if all(has_passed(name, None) for name in sources):
        return None
    jobs = {state.digest: state.job_id for state in sources.values()}
    shown = [
        f"{join_first([name for name, other in sources.items() if other.digest == digest], MOST_NAMED)} at that of "
        f"load {job!r}"
        for digest, job in jobs.items()
    ]
    raise SourceFailedError(
        "the source has one state for all streams, and the streams are not at the same one: "
        f"{'; '.join(shown)}. From either of them records would be loaded twice, or left out.",
        remedy="Undo the later load in the tables that have it, so that all are at the same state: lakewriter undo "
        f"LAKE JOB --table TABLE --reason WHY; or: {_ORDER.format(table='TABLE')}",
    )


def _join(texts: Iterable[str]) -> str | None:
    joined = ",".join(texts)
    return f"[{joined}]" if joined else None


def _remove_streams(kind: str, text: str, fresh: Collection[StreamKey]) -> str:
    """Return a state for all streams without those in ``fresh``; the rest keeps the source's own text."""
    if kind == "legacy":
        return _remove_members(_take_legacy_data(text), {name for _, name in fresh})
    content = _MEMBERS.decode(text)
    inner, streams = _MEMBERS.decode(content.get("global", msgspec.Raw(b"{}"))), _list_parts(content)
    left = [stream for stream in streams if _read_key(stream) not in fresh]
    if len(left) == len(streams):
        return f"[{text}]"
    changed = inner | {"stream_states": msgspec.Raw(msgspec.json.encode(left))}
    return msgspec.json.encode([content | {"global": msgspec.Raw(msgspec.json.encode(changed))}]).decode()


def is_covered(text: str, stream: StreamKey, *, needs_part: bool) -> bool:
    """Return whether a source that is given this state for all streams continues a stream after it.

    It does where the state has a part of the stream, or no part of any; ``needs_part`` is for streams that are read
    from their beginning otherwise.
    """
    return stream in list_covered(text, (stream,), (stream,) if needs_part else ())


def list_covered(text: str, streams: Iterable[StreamKey], need_part: Collection[StreamKey]) -> frozenset[StreamKey]:
    """Return the streams that a source continues after this state for all streams, if it is given the state.

    See ``is_covered``; ``need_part`` are the streams that are read from their beginning otherwise.
    """
    content = _MEMBERS.decode(text)
    if "global" not in content:
        names = _decode_members(_take_legacy_data(text))
        by_name = any(is_object(value) for value in names.values())
        return frozenset(key for key in streams if key[1] in names or not (key in need_part or by_name))
    parts = {_read_key(part) for part in _list_parts(content)}
    return frozenset(key for key in streams if key in parts or not (key in need_part or parts))


def _list_parts(content: Mapping[str, msgspec.Raw]) -> list[msgspec.Raw]:
    inner = _MEMBERS.decode(content.get("global", msgspec.Raw(b"{}")))
    return msgspec.json.decode(inner.get("stream_states", b"[]"), type=list[msgspec.Raw] | None) or []


def _take_legacy_data(text: str) -> msgspec.Raw:
    """Return the content of a LEGACY state: by convention an object by the streams' names."""
    return _MEMBERS.decode(text).get("data", msgspec.Raw(text.encode()))


def _decode_members(data: msgspec.Raw) -> dict[str, msgspec.Raw]:
    try:
        return _MEMBERS.decode(data)
    except msgspec.MsgspecError:
        return {}


def _remove_members(data: msgspec.Raw, names: Collection[str]) -> str:
    members = _decode_members(data)
    if members.keys().isdisjoint(names):
        return bytes(data).decode()
    return msgspec.json.encode({name: value for name, value in members.items() if name not in names}).decode()


def _read_key(state: msgspec.Raw) -> StreamKey | None:
    try:
        return msgspec.json.decode(state, type=StreamState).stream_descriptor.key
    except msgspec.MsgspecError:
        return None
