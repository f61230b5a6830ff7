"""The control objects of one table in one pipeline: read, written once, never replaced (but for the state)."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from lakewriter.commit.backoff import write
from lakewriter.commit.intent import Intent
from lakewriter.commit.state import StateFile
from lakewriter.commit.store import Store, Unclear
from lakewriter.commit.traces import find_trace
from lakewriter.control_object import decode, parse
from lakewriter.errors import (
    KeyExistsError,
    LakeError,
    PendingUnrecoverableError,
    SpecInvalidError,
)
from lakewriter.naming import ControlKeys
from lakewriter.report import TableReport
from lakewriter.spec.catalogs import IcebergCatalog
from lakewriter.spec.layout import Layout
from lakewriter.spec.specification import Spec, TableSpec


def open_control(spec: Spec, table: TableSpec, store: Store) -> "Control":
    """The control objects of one table of a pipeline."""
    is_elsewhere = isinstance(spec.catalog, IcebergCatalog) and spec.catalog.service.chooses_location
    keys = ControlKeys(spec.access.prefix, spec.pipeline)
    return Control(store, keys, table.id, layout=None if is_elsewhere else table.layout)


class Control:
    """``layout`` is that of the table's objects, None where its catalog decides where they are.

    ``pause`` is ``time.sleep``, or what a test puts in its place.
    """

    def __init__(
        self,
        store: Store,
        keys: ControlKeys,
        table_id: str,
        *,
        layout: Layout | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.store = store
        self.keys = keys
        self.table_id = table_id
        self.layout = layout
        self.pause = pause
        self.left: list[str] = []
        """What could not be cleared up, in words: the table's report tells."""
        find = partial(find_trace, store, keys, table_id, layout)
        self.state = StateFile(store, keys.state(table_id), pause=pause, find_trace=find)

    @contextmanager
    def note_failed_cleanup(self, what: str) -> Iterator[None]:
        """What cannot be cleared up only takes room: it is noted, and decides nothing."""
        try:
            yield
        except LakeError as error:
            self.left.append(f"{what} of {self.table_id} were not cleared up, and take room only: {error}")

    def write_once(self, key: str, content: Mapping[str, Any] | str, *, keep: bool = False) -> None:
        """Create the object. ``KEY_EXISTS`` where one with another content is there: this one may be there already,
        since an earlier call whose answer was lost wrote it. With ``keep`` whatever is there stays, without an error.
        """
        body = (content if isinstance(content, str) else json.dumps(content, indent=1)).encode()

        def create() -> bool | None:
            return self.store.create(key, body) is not None or keep or self._is_there(key, body) or None

        write(key, create, self.pause)

    def _is_there(self, key: str, body: bytes) -> bool:
        content = self.store.get(key)
        if content is not None and content[0] != body:
            raise KeyExistsError(
                f"control object {key} is there already with another content than table {self.table_id} gives "
                "it; it was left as it is.",
                remedy="Run the load again under another job id.",
            )
        return content is not None

    def require_conditions(self, key: str, content: Mapping[str, Any]) -> None:
        """``SPEC_INVALID`` from a store that writes the object at ``key`` once more although it is there."""
        try:
            written = self.store.create(key, json.dumps(content, indent=1).encode())
        except Unclear:
            return
        if written is not None:
            raise SpecInvalidError(
                "the store ignores If-None-Match, so nothing would keep two loads from writing over each other.",
                remedy="Set single_writer: true, which promises that one load runs at a time; or use another store.",
            )

    def has_namesake(self, job_id: str) -> bool:
        """Whether another pipeline, whose control objects lie beside these, has a load of the same job id."""
        folders = [folder for folder in self.store.list_folders(self.keys.pipelines) if folder != f"{self.keys.root}/"]
        return any(any(self.store.list_entries(self.keys.load_of(folder, job_id), limit=1)) for folder in folders)

    def read_json(self, key: str) -> dict[str, Any] | None:
        """The object's content, None when it is not there."""
        content = self.store.get(key)
        return None if content is None else decode(key, content[0])

    def read_report(self, job_id: str) -> dict[str, Any] | None:
        """The table's report under this job id: it is there when the table is done."""
        key = self.keys.report(job_id, self.table_id)
        content = self.store.get(key)
        return None if content is None else parse(TableReport, key, content[0]).model_dump(mode="json")

    def read_intent(self, job_id: str, attempt: str) -> Intent:
        """The intent that the state names."""
        intent = self.find_intent(job_id, attempt)
        if intent is None:
            key = self.keys.intent(job_id, attempt, self.table_id)
            raise PendingUnrecoverableError(
                f"{key} is named as pending by the state of {self.table_id}, and is not there.",
                remedy="Restore the object from its bucket's versions; or end the load without it: "
                f"lakewriter abandon LAKE {job_id} --intent-lost --reason TEXT",
            )
        return intent

    def find_intent(self, job_id: str, attempt: str) -> Intent | None:
        """The intent of an attempt, None where there is none; one that release 0.1.0 left is under its own key."""
        for name in (self.keys.intent, self.keys.first_intent):
            key = name(job_id, attempt, self.table_id)
            content = self.store.get(key)
            if content is not None:
                return Intent.parse(key, content[0])
        return None
