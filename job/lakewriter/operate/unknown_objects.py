"""Find objects under a table's path that none of its loads wrote there: copies of its files, and files of others."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Final

from lakewriter.commit.at_once import call_all
from lakewriter.commit.control import Control
from lakewriter.commit.mismatch import Kind, Mismatch
from lakewriter.commit.store import Entry, StoredObject
from lakewriter.commit.table_objects import MOST_LISTED, is_hidden
from lakewriter.errors import LakeError, S3AccessDeniedError
from lakewriter.naming import CONTROL_DIRECTORY
from lakewriter.operate.load_records import TableRecords
from lakewriter.records.changes import Intent
from lakewriter.records.state import TableState
from lakewriter.report import format_count
from lakewriter.spec.beside import Starts
from lakewriter.spec.layout import Layout

MOST_ASKED: Final = 1000
"""The most objects, the newest first, for which HEAD reads which load wrote them."""
SLACK: Final = timedelta(minutes=1)
"""How far the clocks of a loading machine and of S3 may differ."""


@dataclass(frozen=True)
class Stranger:
    """An object that is in no report of its table; ``stored`` is what HEAD returns."""

    entry: Entry
    stored: StoredObject


class Neighbours:
    """The layouts of a pipeline's tables by the beginning of their keys: a table finds the few of ten thousand whose
    keys may lie among its own."""

    def __init__(self, controls: Mapping[str, Control]) -> None:
        layouts = ((name, control.layout) for name, control in controls.items() if control.layout is not None)
        self._starts = Starts((layout.prefix, (name, layout)) for name, layout in layouts)

    def list_under(self, prefix: str, without: str) -> list[Layout]:
        """Return the layouts of other tables that a key with ``prefix`` may match."""
        above = (item for item in self._starts.list_above(prefix) if not item[1].directory)
        return [layout for name, layout in chain(self._starts.list_from(prefix), above) if name != without]


class TablePath:
    """The objects that a table's readers see; ``neighbours`` are the layouts of all tables of the pipeline.

    With ``since``, only objects that are at least as new are compared.
    """

    def __init__(
        self, records: TableRecords, neighbours: Neighbours, intent: Intent, since: datetime | None = None
    ) -> None:
        self._records, self._control, self._intent = records, records.control, intent
        self._since = since
        prefix, layout = self._prefix, records.control.layout
        self._pattern = layout.matcher() if layout is not None and not layout.directory else None
        """Matches the table's keys; None where every object in its directory is its own."""
        others = [] if prefix is None else neighbours.list_under(prefix, records.control.table_id)
        self._other_patterns = [other.matcher() for other in others]
        """Match the keys of other tables, which may lie under this one's path."""
        self._strangers: tuple[Stranger, ...] | None = None
        self.is_cut_off = False
        """Whether there are more objects than are compared."""

    def compare(self, intent: Intent) -> tuple[list[Mismatch], list[str]]:
        """Return a mismatch for each stranger that is newer than the load or a copy of a file, and notes on others."""
        written = set(intent.files.list_keys())
        if self._strangers is None:
            self._strangers = self._find_strangers()
        mismatches, noted = [], Counter[str]()
        for stranger in self._strangers:
            if stranger.entry.key in written:
                continue
            if self._is_adopted(stranger):
                noted["adopted"] += 1
            elif _is_older(stranger, intent):
                noted["older"] += 1
            elif (mismatch := self._tell(stranger)) is not None:
                mismatches.append(mismatch)
        return mismatches, self._describe(noted["adopted"], noted["older"])

    def _describe(self, adopted: int, older: int) -> list[str]:
        notes, under = [], f"under the path of {self._control.table_id}"
        if adopted:
            notes.append(f"{format_count(adopted, 'file')} of another writer {under}, which were adopted")
        if older:
            notes.append(f"{older} objects {under} are older than the load, and no load wrote them")
        if self.is_cut_off:
            notes.append(
                f"there are so many objects {under} that only the newest {MOST_ASKED:,} of those in no report were "
                "looked at"
            )
        return notes

    def _is_adopted(self, stranger: Stranger) -> bool:
        """Return whether the object was there when a person took over what another writer had left."""
        state = self._records.state
        adopted = state.adopted if isinstance(state, TableState) else None
        return adopted is not None and not stranger.stored.load and stranger.entry.modified <= adopted

    def _tell(self, stranger: Stranger) -> Mismatch | None:
        key, stored = stranger.entry.key, stranger.stored
        where = f"s3://{self._intent.access.bucket}/{key}"
        under = f"lies under the path of {self._control.table_id}, so queries read it"
        if not stored.load:
            return Mismatch(Kind.OBJECT_FOREIGN, f"{where} {under}, and no load wrote it.", key)
        pipeline, _, rest = stored.load.partition("/")
        job_id = rest.rpartition("/")[0]
        if pipeline != self._intent.pipeline or job_id not in self._records.entries:
            # Another pipeline's, one that is about to be committed, or one so old that its records are cleared away.
            return None
        return Mismatch(Kind.OBJECT_COPIED, f"{where} {under}, and it is a copy of a file of load {job_id!r}.",
                        key, load=stored.load)  # fmt: skip

    def _find_strangers(self) -> tuple[Stranger, ...]:
        """Return the objects that are in no report, the newest first, with what HEAD shows of them."""
        seen = [entry for entry in self._list() if self._is_new(entry) and self._is_read(entry.key)]
        reported: set[str] = set()
        if seen:
            for job_id, report in self._records.entries.items():
                # A report is younger than the files that it names.
                if self._is_new(report):
                    reported.update(self._read_keys(job_id))
        unknown = sorted((entry for entry in seen if entry.key not in reported), key=_order_by_time, reverse=True)
        self.is_cut_off = self.is_cut_off or len(unknown) > MOST_ASKED
        pairs = list(zip(unknown, call_all(self._look, unknown[:MOST_ASKED]), strict=False))
        table_id = self._control.table_id
        return tuple(
            Stranger(entry, stored) for entry, stored in pairs if stored is not None and stored.table in ("", table_id)
        )

    def _is_new(self, entry: Entry) -> bool:
        return self._since is None or entry.modified >= self._since

    def _look(self, entry: Entry) -> StoredObject | None:
        try:
            return self._control.store.head(entry.key)
        except S3AccessDeniedError:
            # An object that this pipeline may not read is not its own.
            return StoredObject(0, "", entry.etag)

    def _read_keys(self, job_id: str) -> Iterable[str]:
        try:
            report = self._records.read(job_id)
            return list(self._control.list_written_keys(report)) if report else ()
        except LakeError:
            # Verifying that load reports the error.
            return ()

    def _list(self) -> Iterable[Entry]:
        prefix = self._prefix
        if prefix is None:
            return ()
        listed = list(islice(self._control.store.list_entries(prefix), MOST_LISTED))
        self.is_cut_off = len(listed) == MOST_LISTED
        return listed

    @property
    def _prefix(self) -> str | None:
        """The prefix of the keys that the table's readers see; None where a catalog names every file."""
        catalog, layout = self._intent.catalog, self._control.layout
        return catalog.find_listed_prefix(self._intent.access.bucket, layout.prefix if layout is not None else None)

    def _is_read(self, key: str) -> bool:
        """Return whether a reader of the table reads the object as one of its files."""
        if is_hidden(key.removeprefix(self._prefix or "")) or CONTROL_DIRECTORY in key.split("/"):
            return False
        if self._pattern is not None and self._pattern.fullmatch(key) is None:
            return False
        return not any(pattern.fullmatch(key) for pattern in self._other_patterns)


def _is_older(stranger: Stranger, intent: Intent) -> bool:
    return not stranger.stored.load and stranger.entry.modified < intent.started - SLACK


def _order_by_time(entry: Entry) -> tuple[object, str]:
    return entry.modified, entry.key
