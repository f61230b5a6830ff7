"""Build the source's ``--state`` from the last committed STATE messages, without streams that will be replaced."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import msgspec

from lakewriter.commit.state import TableState
from lakewriter.commit.sync_records import SourceState, SyncState
from lakewriter.source.messages.lines import StreamState
from lakewriter.spec.specification import Mode, TableSpec
from lakewriter.spec.stream import StreamKey

_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Resumption:
    """The file that a source takes as its state, None for none; ``given`` is by table the state that stands for it."""

    text: str | None = None
    given: Mapping[str, SourceState] = field(default_factory=dict)


def keeps_rows(table: TableSpec, state: SyncState, *, continues: bool) -> bool:
    """True if the committed rows stay when the next load completes. ``continues`` says that it resumes the last one."""
    stream = table.stream
    if stream is not None and stream.generation_id is not None:
        return (stream.minimum_generation_id or 0) <= state.generation_id
    return table.mode is not Mode.OVERWRITE or (state.unfinished and continues)


def plan_resumption(tables: Iterable[TableSpec], states: Mapping[str, TableState], *, continues: bool) -> Resumption:
    """The states of incremental streams, and of streams whose last sync did not end.

    Of several states for all streams the oldest is returned, since every stream has its records only up to there.
    Streams that begin anew are removed from it.
    """
    kept: dict[str, SourceState] = {}
    fresh: set[StreamKey] = set()
    for table in tables:
        sync, stream = states[table.id].sync, table.stream
        if stream is None:
            continue
        goes_on = stream.sync_mode == "incremental" or sync.unfinished
        if sync.source is not None and goes_on and keeps_rows(table, sync, continues=continues):
            kept[table.id] = sync.source
        else:
            fresh.add(stream.key)
    whole = [name for name, state in kept.items() if state.kind != "stream"]
    if whole:
        oldest = kept[min(whole, key=lambda name: states[name].last_commit or _NEVER)]
        return Resumption(_remove_streams(oldest, fresh), dict.fromkeys(whole, oldest))
    return Resumption(f"[{','.join(state.text for state in kept.values())}]" if kept else None, kept)


def _remove_streams(state: SourceState, fresh: Collection[StreamKey]) -> str:
    """A state for all streams without those in ``fresh``; the rest keeps the source's own text."""
    content = _MEMBERS.decode(state.text)
    if state.kind == "legacy":
        # By convention an object by the streams' names.
        data = content.get("data", msgspec.Raw(state.text.encode()))
        return _remove_members(data, {name for _, name in fresh})
    inner = _MEMBERS.decode(content.get("global", msgspec.Raw(b"{}")))
    streams = msgspec.json.decode(inner.get("stream_states", b"[]"), type=list[msgspec.Raw] | None) or []
    left = [own for own in streams if _read_key(own) not in fresh]
    if len(left) == len(streams):
        return f"[{state.text}]"
    changed = inner | {"stream_states": msgspec.Raw(msgspec.json.encode(left))}
    return msgspec.json.encode([content | {"global": msgspec.Raw(msgspec.json.encode(changed))}]).decode()


def _remove_members(data: msgspec.Raw, names: Collection[str]) -> str:
    try:
        members = _MEMBERS.decode(data)
    except msgspec.MsgspecError:
        return bytes(data).decode()
    if members.keys().isdisjoint(names):
        return bytes(data).decode()
    return msgspec.json.encode({name: own for name, own in members.items() if name not in names}).decode()


def _read_key(state: msgspec.Raw) -> StreamKey | None:
    try:
        return msgspec.json.decode(state, type=StreamState).stream_descriptor.key
    except msgspec.MsgspecError:
        return None
