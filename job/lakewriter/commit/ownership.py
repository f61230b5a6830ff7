"""Record which pipelines write into one directory of objects, and which write one table.

A full refresh deletes older objects, so a directory that one pipeline refreshes must not hold another's objects.
Pipelines that only append may share a directory. A pipeline without a state for a table, such as a renamed one, would
load rows again that another one has loaded: it joins the table's record before it registers.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, Literal

from pydantic import Field

from lakewriter.commit.backoff import write
from lakewriter.commit.control import Control
from lakewriter.control_object import ControlObject, parse
from lakewriter.errors import NameCollisionError, PendingUnrecoverableError, S3AccessDeniedError
from lakewriter.naming import CONTROL_DIRECTORY, join_key
from lakewriter.spec.layout import Layout

NEW: Final = timedelta(days=1)
"""For how long a pipeline that has joined a table's record counts without a state: its first load may be waiting."""


class Writer(ControlObject):
    """A pipeline that writes into the directory."""

    refreshes: bool
    since: datetime


class OwnershipRecord(ControlObject):
    """The pipelines that write into one directory, by name."""

    version: Literal[1] = 1
    directory: str
    writers: Mapping[str, Writer]


class Ownership:
    """The record of the directory of a layout's keys; the directory's name keeps its variables."""

    def __init__(self, control: Control, pipeline: str, layout: Layout) -> None:
        self._control, self._pipeline = control, pipeline
        self.directory = layout.glob.rpartition("/")[0]
        name = hashlib.sha256(self.directory.encode()).hexdigest()[:32]
        self.key = join_key(layout.prefix.rpartition("/")[0], CONTROL_DIRECTORY, "owners", f"{name}.json")

    def check(self, *, refreshes: bool) -> None:
        """Raise ``NAME_COLLISION`` where another pipeline writes here and one of the two refreshes the directory."""
        content = self._control.store.get(self.key)
        self._require_no_rival(self._read_writers(content), refreshes=refreshes)

    def join(self, since: datetime, *, refreshes: bool) -> None:
        """Add this pipeline to the record; ``NAME_COLLISION`` where another one is there that it cannot share with."""

        def add() -> bool | None:
            content = self._control.store.get(self.key)
            writers = self._read_writers(content)
            self._require_no_rival(writers, refreshes=refreshes)
            writer = writers.get(self._pipeline)
            # Rule refreshes-said
            if writer is not None and writer.refreshes >= refreshes:
                return True
            mine = Writer(refreshes=refreshes, since=since)
            record = self._parse_record(content).model_copy(update={"writers": {**writers, self._pipeline: mine}})
            return self._write(record.model_dump_json(indent=1).encode(), content[1] if content else None)

        write(self.key, add, self._control.pause)

    def _write(self, body: bytes, etag: str | None) -> bool | None:
        store = self._control.store
        written = store.create(self.key, body) if etag is None else store.replace(self.key, body, etag)
        return written is not None or None

    def _read_writers(self, content: tuple[bytes, str] | None) -> Mapping[str, Writer]:
        return self._parse_record(content).writers

    def _parse_record(self, content: tuple[bytes, str] | None) -> OwnershipRecord:
        if content is None:
            return OwnershipRecord(directory=self.directory, writers={})
        try:
            return parse(OwnershipRecord, self.key, content[0])
        except PendingUnrecoverableError as error:
            raise NameCollisionError(
                f"{self.key}, which says whose objects lie in {self.directory!r}, cannot be read: {error.message}",
                remedy="Run the release that wrote it, or restore it from its bucket's versions; a damaged one may be "
                "deleted, the next load writes it anew.",
            ) from error

    def _require_no_rival(self, writers: Mapping[str, Writer], *, refreshes: bool) -> None:
        others = [
            name for name, writer in writers.items() if name != self._pipeline and (refreshes or writer.refreshes)
        ]
        # Rule one-owner
        if not others:
            return
        why = "a full refresh replaces the whole table" if refreshes else "which refreshes it as a whole"
        raise NameCollisionError(
            f"table {self._control.table_id}: pipeline {others[0]!r} writes into {self.directory!r} too, and {why}.",
            remedy="Give this pipeline a path of its own. To hand the directory over, stop that pipeline, delete "
            f"{self.key}, and set shares_tables: true in this one's file for its first load.",
        )


class TableWriter(ControlObject):
    """A pipeline that writes the table, and when it began to."""

    since: datetime


class WritersRecord(ControlObject):
    """The pipelines that write one table, by name."""

    version: Literal[1] = 1
    table: str
    location: str
    writers: Mapping[str, TableWriter] = Field(default_factory=dict)


class TableWriters:
    """The record of one table at one ``location``, an ``s3://`` URI, among the control objects of its prefix."""

    def __init__(self, control: Control, location: str) -> None:
        self._control, self._location = control, location
        name = hashlib.sha256(f"{control.table_id} {location}".encode()).hexdigest()[:32]
        self.key = f"{control.keys.writers}{name}.json"

    def find_others(self) -> tuple[str, ...] | None:
        """Return the other pipelines that write the table; None for a pipeline that is in the record."""
        record = self._read()[0]
        return None if self._control.keys.pipeline in record.writers else self._select_others(record)

    def join(self, *, shares: bool) -> tuple[str, ...]:
        """Add this pipeline to the record; with others, which are returned, only if it ``shares`` the table."""

        def add() -> tuple[str, ...] | None:
            record, etag = self._read()
            name = self._control.keys.pipeline
            if name in record.writers:
                return ()
            others = self._select_others(record)
            if others and not shares:
                return others
            mine = {name: TableWriter(since=self._control.find_time())}
            body = record.model_copy(update={"writers": {**record.writers, **mine}}).model_dump_json(indent=1).encode()
            store = self._control.store
            written = store.create(self.key, body) if etag is None else store.replace(self.key, body, etag)
            return others if written is not None else None

        return write(self.key, add, self._control.pause)

    def _read(self) -> tuple[WritersRecord, str | None]:
        content = self._control.store.get(self.key)
        if content is None:
            return WritersRecord(table=self._control.table_id, location=self._location), None
        return parse(WritersRecord, self.key, content[0]), content[1]

    def _select_others(self, record: WritersRecord) -> tuple[str, ...]:
        return tuple(name for name, writer in record.writers.items() if self._may_write(name, writer))

    def _may_write(self, name: str, writer: TableWriter) -> bool:
        """Return whether the pipeline has a state for the table, or began so lately that it may soon have one."""
        if self._control.find_time() - writer.since < NEW:
            return True
        keys = self._control.keys
        state = keys.state_of(f"{keys.pipelines}{name}/", self._control.table_id)
        try:
            return any(self._control.store.list_entries(state, limit=1))
        except S3AccessDeniedError:
            # A role that writes under other prefixes may not look at another pipeline's control objects.
            return True
