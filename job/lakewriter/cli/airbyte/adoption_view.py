"""The work of ``lakewriter airbyte adopt``: what the vendor's connector has left, and how to go on from it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lakewriter.aws import Clients
from lakewriter.cli.shared import OUT, open_context, print_json, warn
from lakewriter.dialects.airbyte.connector import read_connection, read_form
from lakewriter.dialects.airbyte.misplaced import Adviser, find_extension
from lakewriter.dialects.airbyte.settings import AirbyteS3, HeroPixelS3
from lakewriter.dialects.airbyte.translate import AirbyteForm, name_extension
from lakewriter.dialects.lake_yaml import load_destination
from lakewriter.errors import SpecInvalidError
from lakewriter.exit_codes import EXIT_OK
from lakewriter.operate.adoption import Adoption, MissedObjects, OwnedObjects, adopt_streams, find_adoptable
from lakewriter.report import format_count
from lakewriter.spec.specification import Spec

_NOT_OF_LAKE: Final = " A lake.yaml has a pipeline of its own: lakewriter airbyte adopt LAKE."
_SHOWN = 3
"""Keys of a group that are printed; --json has them all."""


@dataclass(frozen=True)
class Connection:
    """A pipeline of Airbyte's messages; ``describe_key`` says where a key of its destination is."""

    spec: Spec
    clients: Clients
    form: AirbyteForm
    describe_key: Callable[..., str]
    goes_on: str
    """The command that goes on from what was adopted."""
    note: str = ""


def open_lake(lake: Path, stage: str | None) -> Connection:
    """Open the pipeline of a lake.yaml; ``SPEC_INVALID`` for one that reads no messages."""
    context = open_context(lake, stage)
    form, describe_key = load_destination(lake, stage=stage)
    if not isinstance(form, AirbyteS3 | HeroPixelS3) or all(table.stream is None for table in context.spec.tables):
        raise SpecInvalidError(
            f"{lake} reads no messages of Airbyte's protocol.", remedy=f"For its tables: lakewriter adopt {lake}."
        )
    return Connection(context.spec, context.clients, form, describe_key, f"lakewriter run {lake}")


def open_configuration(config: Path, catalog: Path) -> Connection:
    """Open the connection that ``lakewriter airbyte write`` loads."""
    spec = read_connection(config, catalog)
    for warning in spec.warnings:
        warn(warning)
    form, position = read_form(config)

    def describe_key(*keys: str) -> str:
        return str(position.get_child(*keys))

    return Connection(spec, Clients(spec.access), form, describe_key, "lakewriter airbyte write", _NOT_OF_LAKE)


def list_objects(connection: Connection, *, writes: bool, as_json: bool) -> int:
    """List what the vendor's connector wrote, and with ``writes`` create the states that go on from it."""
    spec, clients, form = connection.spec, connection.clients, connection.form
    streams = [(table.source_schema, table.source_table) for table in spec.tables]
    adviser = Adviser(form, connection.describe_key, streams)
    adoption = find_adoptable(spec, clients, adviser.advise_key, find_extension)
    written = adopt_streams(spec, clients, adoption) if writes else {}
    if as_json:
        print_json(adoption.model_dump() | {"states": written})
    else:
        _show(adoption, adviser, name_extension(form), written, writes=writes)
        if any(stream.keys for stream in adoption.streams):
            _say(_conclude(connection, writes=writes))
    return EXIT_OK


def _show(adoption: Adoption, adviser: Adviser, extension: str, written: dict[str, bool], *, writes: bool) -> None:
    for stream in adoption.streams:
        _say(_describe(stream))
        for other, count in stream.formats.items():
            if other and other != extension:
                _say(f"  {format_count(count, 'object')} in {other}, the next ones in {extension}: "
                     f"{adviser.advise_format(other)}")  # fmt: skip
        if stream.foreign:
            objects = format_count(len(stream.foreign), "object")
            _say(f"  {objects} at its keys of another pipeline or stream, which stay:")
            _say_keys(stream.foreign)
        if writes and stream.keys:
            _say("  its state has these numbers now" if written[stream.stream] else "  its state had them already")
    for missed in adoption.missed:
        _show_missed(missed)


def _conclude(connection: Connection, *, writes: bool) -> str:
    pipeline = f"pipeline {connection.spec.pipeline!r}"
    if writes:
        return f"{connection.goes_on} goes on from there, as {pipeline}.{connection.note}"
    return (
        f"Nothing is written; --write creates the state of {pipeline}, from which {connection.goes_on} goes on."
        f"{connection.note}"
    )


def _describe(stream: OwnedObjects) -> str:
    if not stream.keys:
        return f"{stream.stream}: no objects"
    formats = ", ".join(f"{count:,} {extension or 'of no known format'}" for extension, count in stream.formats.items())
    sync = f"sync {stream.sync_id}" if stream.sync_id else "no sync id found"
    objects = format_count(len(stream.keys), "object")
    by_loads = f", {stream.own_objects:,} of them of its own loads" if stream.own_objects else ""
    return f"{stream.stream}: {objects} ({formats}){by_loads}, generation {stream.generation_id}, {sync}"


def _show_missed(missed: MissedObjects) -> None:
    _say(f"missed: {format_count(len(missed.keys), 'object')}; {missed.advice}:")
    _say_keys(missed.keys)


def _say_keys(keys: tuple[str, ...]) -> None:
    for key in keys[:_SHOWN]:
        _say(f"    {key}")
    if keys[_SHOWN:]:
        _say(f"    and {len(keys) - _SHOWN:,} more")


def _say(line: str) -> None:
    OUT.print(line, markup=False, soft_wrap=True)
