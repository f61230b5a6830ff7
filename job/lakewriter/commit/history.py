"""Read what the loads of a pipeline have left below ``loads/``: which objects, of which attempts and tables."""

import re
import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Final, Literal

from lakewriter.commit.store import Entry, Store
from lakewriter.commit.table_objects import find_own_objects
from lakewriter.naming import ControlKeys
from lakewriter.spec.layout import Layout

FRESH_SECONDS: Final = 60.0
"""For how long one listing of the pipeline's tables with traces is used. A state that other processes create and lose
within that time counts as never created."""

Kind = Literal["report", "intent", "failure", "begin", "outcome", "record", "page", "other"]
_NAMES: Final[Mapping[Kind, str]] = {
    "report": r"TABLE\.report\.json",
    "intent": r"ATTEMPT/tables/TABLE\.json",
    "failure": r"ATTEMPT/failed/TABLE\.json",
    "begin": r"ATTEMPT/begin(?:|/TABLE)\.json",
    "outcome": r"ATTEMPT/outcome\.json",
    "record": r"ATTEMPT/run/record\.json",
    "page": r"report\.html",
}
"""The names that ``ControlKeys`` gives to the objects of a load, below its directory."""
_PATTERNS: Final = {
    kind: re.compile(name.replace("ATTEMPT", "(?P<attempt>[^/]+)").replace("TABLE", "(?P<table>[^/]+)"))
    for kind, name in _NAMES.items()
}
_TRACES: Final = frozenset[Kind]({"report", "intent", "failure"})
"""Records of a table that exist only if it had a state."""


@dataclass(frozen=True)
class LoadObject:
    """A control object of a load; ``attempt`` and ``table_id`` are blank where it belongs to none."""

    job_id: str
    kind: Kind
    attempt: str
    table_id: str
    entry: Entry

    @classmethod
    def parse(cls, job_id: str, name: str, entry: Entry) -> "LoadObject":
        """Return the object whose key below the load's directory is ``name``."""
        for kind, pattern in _PATTERNS.items():
            if (match := pattern.fullmatch(name)) is not None:
                parts = match.groupdict()
                return cls(job_id, kind, parts.get("attempt") or "", parts.get("table") or "", entry)
        return cls(job_id, "other", "", "", entry)


@dataclass(frozen=True)
class PastLoad:
    """The control objects of one load as a listing has them, those of every attempt, whether it ended or not.

    ``undone`` are the ids of the tables in which the load is undone, where the listing has all loads.
    """

    job_id: str
    items: Sequence[LoadObject]
    undone: frozenset[str] = frozenset()

    @property
    def at(self) -> datetime:
        """The time when the last of them was written."""
        return max(item.entry.modified for item in self.items)

    def list_tables(self, kinds: Container[Kind] = _TRACES) -> frozenset[str]:
        """List the ids of the tables that have an object of one of the ``kinds``, by default of those that exist only
        if the table had a state."""
        return frozenset(item.table_id for item in self.items if item.kind in kinds)

    def select(self, kind: Kind, table_id: str | None = None) -> list[LoadObject]:
        """List the objects of a kind; with ``table_id`` those of that table."""
        return [item for item in self.items if item.kind == kind and table_id in (None, item.table_id)]

    def list_newest(self, kind: Kind) -> list[LoadObject]:
        """List the newest objects of a kind: several if they were written within one second."""
        items = self.select(kind)
        newest = max((item.entry.modified for item in items), default=None)
        return [item for item in items if item.entry.modified == newest]

    def list_intents(self, table_id: str) -> list[LoadObject]:
        """List the table's intents that were not withdrawn: attempts that lost a race have intents, too."""
        withdrawn = {item.attempt for item in self.select("failure", table_id)}
        return [item for item in self.select("intent", table_id) if item.attempt not in withdrawn]


class History:
    """The loads of a pipeline whose control objects exist.

    One listing finds the tables that have traces: at the first load of thousands of tables, each would otherwise list
    the records of all others.
    """

    def __init__(self, store: Store, keys: ControlKeys) -> None:
        self._store, self._keys = store, keys
        self._root = f"{keys.root}/loads/"
        self._listed: tuple[float, Mapping[str, str]] | None = None

    def list_objects(self, start: str = "") -> Iterator[LoadObject]:
        """Yield the control objects of the loads whose job ids begin with ``start``, those of one load after the
        other."""
        for entry in self._store.list_entries(f"{self._root}{start}"):
            job_id, _, name = entry.key.removeprefix(self._root).partition("/")
            yield LoadObject.parse(job_id, name, entry)

    def list_loads(self, start: str = "") -> Iterator[PastLoad]:
        """Yield the loads whose job ids begin with ``start``."""
        return group_loads(self.list_objects(start))

    def list_load(self, job_id: str) -> PastLoad:
        """List the control objects of one load."""
        return PastLoad(job_id, tuple(self.list_objects(f"{job_id}/")))

    def list_reports(self, start: str = "") -> dict[str, dict[str, Entry]]:
        """List the reports of the loads whose job ids begin with ``start``: entries by table id and job id."""
        reports: dict[str, dict[str, Entry]] = {}
        for item in self.list_objects(start):
            if item.kind == "report":
                reports.setdefault(item.table_id, {})[item.job_id] = item.entry
        return reports

    def find_trace(self, table_id: str, layout: Layout | None, *, anew: bool) -> str | None:
        """Return a key that exists only if the table had a state: a record's or an object's; None where there is none.

        ``anew`` asks for a fresh listing.
        """
        if (key := self._list_tables(anew).get(table_id)) is not None:
            return key
        if layout is None:
            return None
        return next((key for key, _ in find_own_objects(self._store, self._keys, table_id, layout)), None)

    def _list_tables(self, anew: bool) -> Mapping[str, str]:
        # Tables that load in parallel may each list here, which costs less than waiting for one another.
        if anew or self._listed is None or time.monotonic() - self._listed[0] > FRESH_SECONDS:
            began, keys = time.monotonic(), dict[str, str]()
            for item in self.list_objects():
                if item.kind in _TRACES:
                    keys.setdefault(item.table_id, item.entry.key)
            self._listed = began, keys
        return self._listed[1]


def group_loads(items: Iterable[LoadObject]) -> Iterator[PastLoad]:
    """Yield the loads of control objects that are listed load by load."""
    for job_id, objects in groupby(items, lambda item: item.job_id):
        yield PastLoad(job_id, tuple(objects))
