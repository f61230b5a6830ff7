"""The work of ``lakewriter airbyte adopt``: what the vendor's connector has left, and how to go on from it."""

from pathlib import Path

from lakewriter.aws import Clients
from lakewriter.cli.shared import OUT, print_json, warn
from lakewriter.dialects.airbyte.connector import read_connection, read_form
from lakewriter.dialects.airbyte.misplaced import Adviser, find_extension
from lakewriter.dialects.airbyte.translate import name_extension
from lakewriter.exit_codes import EXIT_OK
from lakewriter.operate.adoption import Adoption, MissedObjects, OwnedObjects, adopt_streams, find_adoptable
from lakewriter.report import format_count

_SHOWN = 3
"""Keys of a group that are printed; --json has them all."""


def list_objects(config: Path, catalog: Path, *, writes: bool, as_json: bool) -> int:
    """List what the vendor's connector wrote, and with ``writes`` create the states that go on from it."""
    spec = read_connection(config, catalog)
    for warning in spec.warnings:
        warn(warning)
    form, position = read_form(config)
    adviser = Adviser(form, position, [(table.source_schema, table.source_table) for table in spec.tables])
    clients = Clients(spec.access)
    adoption = find_adoptable(spec, clients, adviser.advise_key, find_extension)
    written = adopt_streams(spec, clients, adoption) if writes else {}
    if as_json:
        print_json(adoption.model_dump() | {"states": written})
    else:
        _show(adoption, adviser, name_extension(form), written, writes=writes)
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
            done = (
                "the next sync goes on from there" if written[stream.stream] else "its state has these numbers already"
            )
            _say(f"  {done}")
    for missed in adoption.missed:
        _show_missed(missed)
    if not writes and any(stream.keys for stream in adoption.streams):
        _say("Nothing is written; --write creates the states that go on from there.")


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
