"""Record which pipelines write into one directory of objects: each joins the record before it stages there.

A full refresh deletes what is older than itself, so a directory that one pipeline refreshes takes no other's objects.
Pipelines that only append may share one.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from lakewriter.commit.backoff import write
from lakewriter.commit.control import Control
from lakewriter.control_object import ControlObject, parse
from lakewriter.errors import NameCollisionError, PendingUnrecoverableError
from lakewriter.naming import CONTROL_DIRECTORY, join_key
from lakewriter.spec.layout import Layout


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
        if not others:
            return
        why = "a full refresh replaces all of it" if refreshes else "which refreshes it as a whole"
        raise NameCollisionError(
            f"table {self._control.table_id}: pipeline {others[0]!r} writes into {self.directory!r} too, and {why}.",
            remedy="Give this pipeline a path of its own. To hand the directory over, stop that pipeline and delete "
            f"{self.key}.",
        )
