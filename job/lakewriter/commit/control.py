"""Read and write the control objects of one table: each is written once, and only the state is ever replaced."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from lakewriter.commit.backoff import write
from lakewriter.commit.earlier_attempts import BeginRecords
from lakewriter.commit.history import History
from lakewriter.commit.state_file import StateFile
from lakewriter.commit.store import Store, TellsTime, Unclear
from lakewriter.control_object import decode, parse
from lakewriter.errors import (
    KeyExistsError,
    LakeError,
    NoAnswerError,
    PendingUnrecoverableError,
    SpecInvalidError,
)
from lakewriter.naming import CONTROL_DIRECTORY, ControlKeys
from lakewriter.receipts.parts import Receipts
from lakewriter.records.changes import Intent, parse_intent
from lakewriter.records.state import TableState
from lakewriter.report import TableReport
from lakewriter.spec.access import KeyNames
from lakewriter.spec.catalogs import EVERYTHING
from lakewriter.spec.layout import Layout
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

_NO_KEY_NAMES: Final = KeyNames()
MOST_APART: Final = timedelta(days=1)
"""The greatest difference between this machine's clock and the store's with which objects are deleted by their age. AWS
refuses requests from 15 minutes on; other stores accept them."""


@dataclass(frozen=True)
class Shared:
    """Listings that all tables of a pipeline share: begin records, and which tables have records at all."""

    begun: BeginRecords
    history: History

    @classmethod
    def open(cls, store: Store, keys: ControlKeys) -> "Shared":
        """Make the listings' readers; nothing is asked of the store yet."""
        history = History(store, keys)
        return cls(BeginRecords(store, keys, history), history)


def open_control(spec: Spec, table: TableSpec, store: Store, shared: Shared | None = None) -> "Control":
    """Open the control objects of one table of a pipeline; nothing is asked of the store yet."""
    is_elsewhere = spec.service is not None and spec.service.chooses_location
    keys = ControlKeys(spec.access.prefix, spec.pipeline)
    layout = None if is_elsewhere else table.layout
    control = Control(store, keys, table.id, layout=layout, key_names=spec.access.key_names, shared=shared)
    control.quarantine = table.quarantine or ""
    control.latest, control.shares_tables = table.latest, spec.shares_tables
    control.abilities = spec.service.abilities if spec.service is not None else EVERYTHING
    return control


class Control:
    """The control objects of one table.

    ``layout`` is the layout of the table's data objects, None where the catalog chooses their location. ``key_names``
    are those of today's lake.yaml, for messages: intents do not store key names. ``pause`` is ``time.sleep``, or what a
    test puts in its place. ``shared`` is what the tables of a pipeline share.
    """

    def __init__(
        self,
        store: Store,
        keys: ControlKeys,
        table_id: str,
        *,
        layout: Layout | None = None,
        key_names: KeyNames = _NO_KEY_NAMES,
        pause: Callable[[float], None] = time.sleep,
        shared: Shared | None = None,
    ) -> None:
        self.store = store
        self.keys = keys
        self.table_id = table_id
        self.layout = layout
        self.quarantine = ""
        """The folder of the table's bad rows; blank where it has none, or none was set."""
        self.latest: str | None = None
        """The key of the object that names the files of the table's last full refresh; None where there is none."""
        self.shares_tables = False
        """Whether the file says that other pipelines may have written the table."""
        self.abilities = EVERYTHING
        """The abilities of the bucket of the table's files."""
        self.key_names = key_names
        self.pause = pause
        shared = shared or Shared.open(store, keys)
        self.begun = shared.begun
        self.history = shared.history
        self._written: dict[str, bytes] = {}
        self.left: list[str] = []
        """A sentence for each thing that could not be deleted or aborted, for the table's report."""
        self.versions: dict[str, str] = {}
        """The version of the table that each load made which this process published, by the load's metadata."""
        self.state = StateFile(
            store, keys.state(table_id), pause=pause, find_trace=partial(shared.history.find_trace, table_id, layout)
        )

    @contextmanager
    def note_failed_cleanup(self, what: str) -> Iterator[None]:
        """Note a failed clean-up in ``left`` and continue: objects that stay take storage and change no result."""
        try:
            yield
        except LakeError as error:
            self.left.append(f"{what} of {self.table_id} were not cleared up, and take room only: {error}")

    def find_time(self) -> datetime:
        """Return the time by the store's clock, or by this machine's where the store gives none."""
        there = self.store.read_time() if isinstance(self.store, TellsTime) else None
        return there if there is not None else datetime.now(UTC)

    def require_time(self) -> datetime:
        """Return the time by the store's clock, for what is deleted or forgotten because of its age: this machine's
        clock may be wrong, and other machines have written the times that it is compared with.

        ``TIMEOUT`` where the store gives no time, or both clocks are more than ``MOST_APART`` apart, so that one of
        them is wrong.
        """
        here = datetime.now(UTC)
        if not isinstance(self.store, TellsTime):
            return here
        there = self.store.read_time()
        if there is not None and abs(there - here) <= MOST_APART:
            return there
        said = f"the store says {there:%Y-%m-%d %H:%M} UTC" if there is not None else "the store's answers have no Date"
        raise NoAnswerError(
            f"this machine's clock says {here:%Y-%m-%d %H:%M} UTC, and {said}: nothing is deleted because of its age.",
            remedy="Synchronise the clock (NTP).",
        )

    def write_once(
        self, key: str, content: Mapping[str, Any] | str | bytes, *, keep: bool = False, remember: bool = False
    ) -> None:
        """Create the object; do nothing where it exists with this content, which an earlier try may have written.

        ``remember`` keeps the content in memory, for an object that this process reads next.

        ``KEY_EXISTS`` where it exists with other content, unless ``keep`` says to leave it as it is. ``COMMIT_UNKNOWN``
        where S3 gives no clear answer.
        """
        body = _encode(content)

        def create() -> bool | None:
            if self.store.create(key, body) is None:
                return keep or self._is_there(key, body) or None
            if remember:
                self._written[key] = body
            return True

        # Rule unclear-is-not-written
        write(key, create, self.pause)

    def _get_once_written(self, key: str, *, again: bool = False) -> bytes | None:
        """Return an object that is never replaced: from memory if this process has written it, else from the store.

        An object that is not read ``again`` leaves the memory: an intent is as large as its load.
        """
        written = self._written.get(key) if again else self._written.pop(key, None)
        if written is not None:
            return written
        content = self.store.get(key)
        return None if content is None else content[0]

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
        """Raise ``SPEC_INVALID`` where the store, in spite of ``If-None-Match: *``, overwrites the existing object at
        ``key``."""
        body = json.dumps(content, indent=1).encode()
        try:
            # The object is gone if this process slept for as long as records are kept.
            is_overwritten = all(self.store.create(key, body) is not None for _ in range(2))
        except Unclear:
            return
        if is_overwritten:
            raise SpecInvalidError(
                "the store ignores If-None-Match, so nothing would keep two loads from writing over each other.",
                remedy="Set single_writer: true, which promises that one load runs at a time; or use another store.",
            )

    def read_patterns(self, job_id: str, attempt: str) -> list[str]:
        """Read the patterns of the keys of the table's files from an attempt's records."""
        keys = (self.keys.table_begin(job_id, attempt, self.table_id), self.keys.begin(job_id, attempt))
        tables = [(self.read_json(key) or {}).get("tables", {}) for key in keys]
        return [table[self.table_id]["pattern"] for table in tables if self.table_id in table]

    def has_namesake(self, job_id: str) -> bool:
        """Return whether another pipeline, whose control objects lie beside these, has a load of the same job id."""
        return self._is_in_another_pipeline(lambda folder: self.keys.load_of(folder, job_id))

    def has_other_writer(self) -> bool:
        """Return whether another pipeline, whose control objects lie beside these, has begun a load of this table."""
        return self._is_in_another_pipeline(lambda folder: self.keys.state_of(folder, self.table_id))

    def list_pending(self) -> Iterator[Intent]:
        """Yield the table's pending intents: of this pipeline, and of others whose control objects lie beside these;
        ``PENDING_UNRECOVERABLE`` where one is gone."""
        prefix = self.keys.pipelines.removesuffix(f"{CONTROL_DIRECTORY}/").rstrip("/")
        for folder in (f"{self.keys.root}/", *self._list_other_pipelines()):
            keys = ControlKeys(prefix, folder.removeprefix(self.keys.pipelines).rstrip("/"))
            content = self.store.get(keys.state(self.table_id))
            pending = parse(TableState, keys.state(self.table_id), content[0]).pending if content is not None else None
            if pending is not None:
                yield Control(self.store, keys, self.table_id).read_intent(pending.job_id, pending.attempt)

    def _is_in_another_pipeline(self, make_prefix: Callable[[str], str]) -> bool:
        folders = self._list_other_pipelines()
        return any(any(self.store.list_entries(make_prefix(folder), limit=1)) for folder in folders)

    def _list_other_pipelines(self) -> list[str]:
        own_prefixes = (f"{self.keys.root}/", self.keys.writers)
        return [folder for folder in self.store.list_folders(self.keys.pipelines) if folder not in own_prefixes]

    def read_json(self, key: str) -> dict[str, Any] | None:
        """Return the object's JSON content, None where it is not there."""
        content = self.store.get(key)
        return None if content is None else decode(key, content[0])

    def read_report(self, job_id: str) -> TableReport | None:
        """Return the table's report of this job id, None while the load is not committed in this table."""
        key = self.keys.report(job_id, self.table_id)
        content = self._get_once_written(key, again=True)
        return None if content is None else parse(TableReport, key, content)

    def delete_report(self, job_id: str) -> bytes | None:
        """Delete the table's report of this job id, if it has one: the job counts as not committed from then on."""
        key = self.keys.report(job_id, self.table_id)
        self._written.pop(key, None)
        body = self.read_body(key)
        if body is not None:
            self.store.delete(key)
        return body

    def read_body(self, key: str) -> bytes | None:
        """Return the object's content, None where it is not there."""
        content = self.store.get(key)
        return None if content is None else content[0]

    def list_written_keys(self, report: TableReport) -> Iterator[str]:
        """Yield the keys of all files that a table's report names."""
        yield from report.keys
        yield from Receipts((), report.parts, self.read_body).list_keys()

    def read_intent(self, job_id: str, attempt: str) -> Intent:
        """Return the intent that the state names; ``PENDING_UNRECOVERABLE`` where it is not there."""
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
        """Return the intent of an attempt, None where there is none."""
        key = self.keys.intent(job_id, attempt, self.table_id)
        content = self._get_once_written(key)
        if content is None:
            return None
        return parse_intent(key, content).with_key_names(self.key_names).reading_by(self.read_body)


def _encode(content: Mapping[str, Any] | str | bytes) -> bytes:
    if isinstance(content, bytes):
        return content
    return (content if isinstance(content, str) else json.dumps(content, indent=1)).encode()
