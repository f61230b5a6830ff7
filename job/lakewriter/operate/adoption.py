"""Find what another writer of the same configuration has left in the bucket, and go on from there.

Airbyte's own connector keeps no records: only the objects show what its streams have.
"""

import csv
import io
import json
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, BinaryIO, Final, cast

import pyarrow.parquet as pq
from pydantic import Field

from lakewriter.avro.avro_rows import read_first_long
from lakewriter.aws import Clients
from lakewriter.aws.object_files import READ_BYTES, ObjectFile, open_object, open_text
from lakewriter.commit.at_once import call_all
from lakewriter.commit.control import Control
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.store import Entry, StoredObject
from lakewriter.commit.stream_generations import StreamObject, find_highest_generation, find_stream_objects
from lakewriter.commit.table_objects import MOST_LISTED, find_last_numbers, is_hidden, list_newest
from lakewriter.errors import S3AccessDeniedError
from lakewriter.naming import CONTROL_DIRECTORY
from lakewriter.operate.repair import adopt_files, adopt_objects
from lakewriter.policy.prefixes import list_table_prefixes
from lakewriter.receipt import Cursor
from lakewriter.records.state import Numbers, TableState
from lakewriter.report import format_count
from lakewriter.run.sync import make_ownership
from lakewriter.spec.beside import list_layouts_beside
from lakewriter.spec.key_template import UUID
from lakewriter.spec.layout import Layout
from lakewriter.spec.model import Model
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

LOG: Final = logging.getLogger(__name__)
REASON: Final = "lakewriter airbyte adopt"
_SHAPE: Final = re.compile(rf"{UUID}|\d")


class OwnedObjects(Model):
    """The objects of a stream: their number by extension, how many of them loads of this pipeline wrote, and the
    highest generation and sync found (0 for none)."""

    stream: str
    keys: tuple[str, ...]
    formats: dict[str, int]
    own_objects: int
    generation_id: int
    sync_id: int
    foreign: tuple[str, ...] = ()
    """Keys that match the stream's template, but whose objects belong to another pipeline or stream."""


class MissedObjects(Model):
    """Objects of no stream, and what to change so that they belong to one."""

    advice: str
    keys: tuple[str, ...]


class Adoption(Model):
    """The objects in the bucket under a connection's path."""

    bucket: str
    streams: tuple[OwnedObjects, ...]
    missed: tuple[MissedObjects, ...]


class LeftFiles(Model):
    """The files of a table by their writers, and the numbers that the next load goes on from.

    ``files`` are those of another writer, ``own_files`` those of loads of this pipeline, ``pipelines`` has the number
    of those of each other pipeline: an object's metadata say which load wrote it. ``is_adoptable`` says that the
    table's state does not account for all of them, so that its loads can be made to go on from them. ``asks_where``
    says that nothing in the bucket shows how far the source was read.
    """

    table: str
    files: int = 0
    own_files: int = 0
    pipelines: dict[str, int] = Field(default_factory=dict)
    is_adoptable: bool = False
    last: str = ""
    """The newest file's key: of another writer, if there is one."""
    backfill: int = 0
    counter: int = 0
    generation_id: int = 0
    sync_id: int = 0
    asks_where: bool = False

    def describe_writers(self) -> str:
        """Say how many files each writer has left; blank without files."""
        counts = {"another writer": self.files}
        counts |= {f"pipeline {name!r}": count for name, count in self.pipelines.items()}
        counts["its own loads"] = self.own_files
        return ", ".join(f"{format_count(count, 'file')} of {name}" for name, count in counts.items() if count)


def find_adoptable(
    spec: Spec, clients: Clients, advise: Callable[[str], str], find_extension: Callable[[str], str]
) -> Adoption:
    """List the objects under the pipeline's path by stream; ``advise`` says what to change for a key of no stream."""
    pipeline = Pipeline.open(spec, clients)
    listed = {
        entry.key: entry.modified
        for prefix in list_table_prefixes(spec)
        for entry in pipeline.store.list_entries(prefix)
        if CONTROL_DIRECTORY not in entry.key.split("/") and not entry.key.endswith("/")
    }
    left = set(listed)
    streams = []
    for table in spec.tables:
        control, others = pipeline.controls[table.id], list_layouts_beside(spec, table)
        objects = find_stream_objects(control, table.layout, control.state.read().sync, others)
        rule = table.layout.make_replacement_rule(others)
        own_keys = sorted(stream_object.key for stream_object in objects)
        foreign = sorted(key for key in left.difference(own_keys) if rule(key))
        left.difference_update(own_keys, foreign)
        streams.append(
            OwnedObjects(
                stream=table.id,
                keys=tuple(own_keys),
                formats=dict(Counter(map(find_extension, own_keys))),
                own_objects=sum(stream_object.is_own for stream_object in objects),
                generation_id=find_highest_generation(objects),
                sync_id=_find_highest_sync(table, spec, objects, listed, clients),
                foreign=tuple(foreign),
            )
        )
    return Adoption(bucket=spec.access.bucket, streams=tuple(streams), missed=_group_missed(left, advise))


def adopt_streams(spec: Spec, clients: Clients, adoption: Adoption) -> dict[str, bool]:
    """Create or raise the states of streams that have objects; return whether each was below what was found."""
    controls = Pipeline.open(spec, clients).controls
    return {
        stream.stream: adopt_objects(
            controls[stream.stream],
            format_count(len(stream.keys), "object"),
            stream.generation_id,
            stream.sync_id,
            REASON,
        )
        for stream in adoption.streams
        if stream.keys
    }


def find_files(spec: Spec, clients: Clients) -> tuple[LeftFiles, ...]:
    """Look for the files of each table, and who has written them. Streams of messages have numbers."""
    pipeline, left_files = Pipeline.open(spec, clients), list[LeftFiles]()
    streams = {table.id for table in spec.tables if table.stream is not None and not table.stream.at_once}
    owned = find_adoptable(spec, clients, lambda _: "", lambda _: "").streams if streams else ()
    for stream in owned:
        if stream.stream in streams:
            left_files.append(_describe_stream(stream, pipeline.controls[stream.stream]))
    for table in spec.tables:
        if table.id not in streams:
            left_files.append(_find_files(spec, table, pipeline.controls[table.id]))
    return tuple(left_files)


def _describe_stream(stream: OwnedObjects, control: Control) -> LeftFiles:
    others = len(stream.keys) - stream.own_objects
    sync = control.state.read().sync
    return LeftFiles(
        table=stream.stream,
        files=others,
        own_files=stream.own_objects,
        pipelines=_count_pipelines(control, call_all(partial(_look, control), stream.foreign)),
        is_adoptable=bool(others) or stream.generation_id > sync.generation_id or stream.sync_id > sync.sync_id,
        last=stream.keys[-1] if stream.keys else "",
        generation_id=stream.generation_id,
        sync_id=stream.sync_id,
    )


def _find_files(spec: Spec, table: TableSpec, control: Control) -> LeftFiles:
    state, layout = control.state.read(), table.layout
    prefixes = {other.prefix for other in list_layouts_beside(spec, table)} - {layout.prefix}
    inside = tuple(prefix for prefix in prefixes if prefix.startswith(layout.prefix))
    # All of them: a file with the highest number may be older than others.
    entries = [
        entry
        for entry in list_newest(control.store, layout, MOST_LISTED)
        if not entry.key.startswith(inside) and not is_hidden(entry.key.removeprefix(layout.prefix))
    ]
    numbers = find_last_numbers(layout, (entry.key for entry in entries))
    if "counter" in layout.template.variables:
        entries = [entry for entry in entries if find_last_numbers(layout, [entry.key]).counter]
    stored = dict(zip(entries, call_all(partial(_look, control), [entry.key for entry in entries]), strict=True))
    entries = [entry for entry in entries if stored[entry].table in ("", table.id)]
    others = [entry for entry in entries if not stored[entry].load]
    pipelines = _count_pipelines(control, [stored[entry] for entry in entries])
    left = LeftFiles(
        table=table.id,
        files=len(others),
        own_files=len(entries) - len(others) - sum(pipelines.values()),
        pipelines=pipelines,
        last=next((entry.key for entry in (*others, *entries)), ""),
    )
    # Rule adopt-beyond
    if not _is_beyond(state, layout, entries):
        return left
    beyond = {"backfill": numbers.backfill, "counter": numbers.counter, "is_adoptable": True, "asks_where": True}
    return left.model_copy(update=beyond)


def _is_beyond(state: TableState, layout: Layout, entries: Sequence[Entry]) -> bool:
    """Return whether the table's state does not account for all of the files."""
    if "counter" in layout.template.variables:
        numbers = find_last_numbers(layout, (entry.key for entry in entries))
        return (numbers.backfill, numbers.counter) > (state.backfill, state.counter)
    return not state.is_loaded and any(state.adopted is None or entry.modified > state.adopted for entry in entries)


def _look(control: Control, key: str) -> StoredObject:
    """Return what HEAD shows of an object; one that this pipeline may not read is another writer's."""
    try:
        stored = control.store.head(key)
    except S3AccessDeniedError:
        stored = None
    return stored or StoredObject(0, "", "")


def _count_pipelines(control: Control, objects: Iterable[StoredObject]) -> dict[str, int]:
    """Count the objects of each other pipeline."""
    loads = (stored.load for stored in objects if stored.is_of_another(control.keys.pipeline))
    return dict(sorted(Counter(load.partition("/")[0] for load in loads).items()))


def adopt_found(
    spec: Spec, clients: Clients, left_files: Sequence[LeftFiles], cursors: Mapping[str, Cursor | None], reason: str
) -> dict[str, bool]:
    """Let the loads of each table continue from what was found. ``cursors`` says how far each table was read; None
    reads it from the start. Return which states were changed.

    ``NAME_COLLISION`` for a table that another pipeline refreshes."""
    refreshed = [table for table in spec.tables if table.latest is not None]
    controls = Pipeline.open(spec, clients).controls
    for table in refreshed:
        # Rule adopt-asks-owner
        make_ownership(spec, table, controls[table.id]).check(refreshes=True)
    changed = {}
    for left in left_files:
        control = controls[left.table]
        if not left.is_adoptable:
            continue
        writers = left.describe_writers()
        if left.asks_where:
            numbers = Numbers(left.backfill, left.counter)
            adopt_files(control, writers, numbers, cursors[left.table], reason)
            changed[left.table] = True
        else:
            changed[left.table] = adopt_objects(control, writers, left.generation_id, left.sync_id, reason)
    return changed


def _group_missed(keys: Iterable[str], advise: Callable[[str], str]) -> tuple[MissedObjects, ...]:
    """Group the keys by the advice on them; ask once about keys that differ only in digits."""
    advices: dict[str, str] = {}
    groups: dict[str, list[str]] = defaultdict(list)
    for key in sorted(keys):
        shape = _SHAPE.sub("0", key)
        if shape not in advices:
            advices[shape] = advise(key)
        groups[advices[shape]].append(key)
    return tuple(MissedObjects(advice=advice, keys=tuple(group)) for advice, group in groups.items())


def _find_highest_sync(
    table: TableSpec, spec: Spec, objects: Sequence[StreamObject], listed: dict[str, datetime], clients: Clients
) -> int:
    """Return the highest sync number: from the keys if they have it, otherwise from the newest object's first row."""
    if "sync_id" in table.layout.template.variables:
        return max((_read_key(table.layout, stream_object.key) for stream_object in objects), default=0)
    listed_keys = [stream_object.key for stream_object in objects if stream_object.key in listed]
    meta = spec.envelope.meta if spec.envelope else None
    if not listed_keys or meta is None:
        return 0
    newest = max(listed_keys, key=lambda key: (listed[key], key))
    try:
        return _read_first_row(open_object(spec.access.bucket, newest, clients), newest, meta)
    except Exception:
        # Another program wrote it, so a library may raise any error. The number then stays unknown: no sync needs it.
        LOG.info("The sync of %s is not known: it cannot be read.", newest, exc_info=True)
        return 0


def _read_key(layout: Layout, key: str) -> int:
    templates = (layout.template, *layout.variants)
    matches = (re.match(template.match_text({"sync_id": r"(\d+)"}), key) for template in templates)
    return next((int(match[1]) for match in matches if match), 0)


def _read_first_row(file: ObjectFile, key: str, meta: str) -> int:
    """Return the sync of the first row of an object; 0 where its format or its columns do not say."""
    if ".parquet" in key:
        batch = next(pq.ParquetFile(file).iter_batches(1, columns=[meta]), None)
        value: Any = batch.column(0)[0].as_py() if batch is not None and batch.num_columns else None
    elif ".avro" in key:
        number = read_first_long(cast(BinaryIO, io.BufferedReader(file, READ_BYTES)), (meta, "sync_id"))
        return number or 0
    else:
        text = open_text(io.BufferedReader(file, READ_BYTES))
        row = next(csv.DictReader(text), {}) if ".csv" in key else json.loads(text.readline() or "{}")
        value = row.get(meta)
    content = json.loads(value) if isinstance(value, str) else value
    number = content.get("sync_id") if isinstance(content, dict) else None
    return number if isinstance(number, int) else 0
