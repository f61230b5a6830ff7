"""Describe a pipeline of records beyond its tables: their envelope, their stream, the origin of their messages."""

from collections.abc import Mapping
from typing import Any, Literal

from lakewriter.spec.model import Model

StreamKey = tuple[str | None, str]
"""Namespace and name, as ``stream_key`` gives them."""


def stream_key(namespace: str | None, name: str) -> StreamKey:
    """Return a stream's identity: sources without namespaces leave it out, say null, or give the empty string."""
    return namespace or None, name


class Envelope(Model):
    """The columns put before a record's own, by name; None for one that is not written.

    ``data`` holds the whole record as JSON text, and then there are no columns of its own. ``typed`` says that the
    columns have types, otherwise every value is JSON text. ``additional`` takes what the schema does not declare, also
    of objects inside the record, and the members of properties that are called as one of ``lifted``.
    """

    raw_id: str
    extracted_at: str
    meta: str | None = None
    generation: str | None = None
    data: str | None = None
    additional: str | None = None
    lifted: tuple[str, ...] = ()
    typed: bool = True
    record_undeclared: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Every column's name, in order."""
        every = (self.raw_id, self.extracted_at, self.meta, self.generation, self.data, self.additional)
        return tuple(name for name in every if name)


class LogProperties(Model):
    """The properties by which records say where in a database's log a change lies, None for those that they lack: the
    connector's own ``cursor``; a ``file`` of the log, and the position ``in_file``; an ``lsn``."""

    cursor: str | None = None
    file: str | None = None
    in_file: str | None = None
    lsn: str | None = None

    @property
    def numbers(self) -> tuple[str, ...]:
        """Those that are numbers, however they are spelled."""
        return tuple(name for name in (self.cursor, self.in_file, self.lsn) if name is not None)


class Stream(Model):
    """A stream of a configured catalog; ``name`` and ``namespace`` are those its messages carry.

    None for a generation that the catalog does not give: it is counted then. With ``overwrites`` each sync replaces the
    rows of those before it, unless the generations say otherwise. ``at_once`` is for a destination that replaces them
    in one step: a generation that replaces others is loaded whole, or nothing of it.
    """

    name: str
    namespace: str | None = None
    json_schema: Mapping[str, Any] = {}
    sync_mode: Literal["full_refresh", "incremental"] = "full_refresh"
    generation_id: int | None = None
    minimum_generation_id: int | None = None
    sync_id: int | None = None
    file_path: str | None = None
    """The property that says where a record's file was copied to; None where records have no files."""
    overwrites: bool = False
    at_once: bool = False
    log: LogProperties | None = None
    """The properties by which records of a key are newer than others; None where a cursor says so, or their arrival,
    and for streams that are not merged."""
    deleted_at: str | None = None
    """The property that has a value where a record deletes the row of its key."""
    paths: tuple[tuple[str, ...], ...] = ()
    """Properties inside objects that become columns of their own, since rows are merged by them."""

    @property
    def key(self) -> StreamKey:
        """Return the identity that the stream's messages have, and no others."""
        return stream_key(self.namespace, self.name)


class MessageSource(Model):
    """The origin of messages: files or ``-`` for standard input, or a connector that the job runs.

    ``statuses`` is ``none`` where the user says that the source never reports a stream's status. ``environment`` names
    the variables that the connector gets beside those that any program needs.
    """

    paths: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    folder: str = "."
    statuses: Literal["reported", "none"] = "reported"
    environment: tuple[str, ...] = ()
