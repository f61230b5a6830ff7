"""Which pipelines write into one directory of objects: a record beside the data that each joins before it stages there.

A full refresh deletes what is older than itself, so a directory that one pipeline refreshes takes no other's objects.
Pipelines that only append may share one.
"""

import hashlib
import json
from datetime import datetime
from typing import Any, Final

from lakewriter.commit.backoff import write
from lakewriter.commit.control import Control
from lakewriter.errors import NameCollisionError
from lakewriter.naming import CONTROL_DIRECTORY, join_key
from lakewriter.spec.key_layout import KeyLayout

VERSION: Final = 1


class Ownership:
    """The record of the directory that the keys of ``layout`` lie in, variables in its name included."""

    def __init__(self, control: Control, pipeline: str, layout: KeyLayout) -> None:
        self._control, self._pipeline = control, pipeline
        self.directory = layout.glob.rpartition("/")[0]
        name = hashlib.sha256(self.directory.encode()).hexdigest()[:32]
        self.key = join_key(layout.prefix.rpartition("/")[0], CONTROL_DIRECTORY, "owners", f"{name}.json")

    def check(self, *, refreshes: bool) -> None:
        """``NAME_COLLISION`` where another pipeline is there that this one may not join."""
        found = self._control.store.get(self.key)
        self._require_place(self._writers(found), refreshes=refreshes)

    def join(self, since: datetime, *, refreshes: bool) -> None:
        """Have the record name this pipeline; ``NAME_COLLISION`` where another one came first."""

        def add() -> bool | None:
            found = self._control.store.get(self.key)
            writers = self._writers(found)
            self._require_place(writers, refreshes=refreshes)
            own = writers.get(self._pipeline)
            if own is not None and own["refreshes"] >= refreshes:
                return True
            writers[self._pipeline] = {"refreshes": refreshes, "since": since.isoformat()}
            record = {"version": VERSION, "directory": self.directory, "writers": writers}
            return self._write(json.dumps(record, indent=1).encode(), found[1] if found else None)

        write(self.key, add, self._control.pause)

    def _write(self, body: bytes, etag: str | None) -> bool | None:
        store = self._control.store
        written = store.create(self.key, body) if etag is None else store.replace(self.key, body, etag)
        return written is not None or None

    def _writers(self, found: tuple[bytes, str] | None) -> dict[str, Any]:
        if found is None:
            return {}
        try:
            return dict(json.loads(found[0])["writers"])
        except (ValueError, KeyError, TypeError) as error:
            raise NameCollisionError(
                f"{self.key}, which says whose objects lie in {self.directory!r}, cannot be read ({error}).",
                remedy="Restore it from its bucket's versions, or delete it: the next load writes it anew.",
            ) from error

    def _require_place(self, writers: dict[str, Any], *, refreshes: bool) -> None:
        others = [name for name, own in writers.items() if name != self._pipeline and (refreshes or own["refreshes"])]
        if not others:
            return
        why = "a full refresh replaces all of it" if refreshes else "which refreshes it as a whole"
        raise NameCollisionError(
            f"table {self._control.table_id}: pipeline {others[0]!r} writes into {self.directory!r} too, and {why}.",
            remedy="Give this pipeline a path of its own. To hand the directory over, stop that pipeline and delete "
            f"{self.key}.",
        )
