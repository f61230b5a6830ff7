"""List and parse the control objects that the loads of a pipeline have left below ``loads/``."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal

from lakewriter.commit.store import Entry, Store
from lakewriter.commit.table_objects import find_own_objects
from lakewriter.naming import ControlKeys
from lakewriter.spec.layout import Layout

FRESH_SECONDS: Final = 60.0
"""For how long one listing of the pipeline's tables with traces is used. A state that other processes create and lose
within that time counts as never created."""

Kind = Literal["report", "intent", "failure"]
_REPORT: Final = re.compile(r"(?P<table>[^/]+)\.report\.json")
_RECORD: Final = re.compile(r"(?P<attempt>[^/]+)/(?P<folder>tables|failed)/(?P<table>[^/]+)\.json")


@dataclass(frozen=True)
class Trace:
    """A record that a load has left for one table; ``attempt`` is blank for a report."""

    kind: Kind
    job_id: str
    attempt: str
    table_id: str
    entry: Entry


@dataclass(frozen=True)
class LoadObject:
    """A control object of a load; ``name`` is its key below the load's directory."""

    job_id: str
    name: str
    entry: Entry

    @property
    def attempt(self) -> str:
        """Return the first part of the name: the attempt that wrote it, for objects of attempts."""
        return self.name.partition("/")[0]

    def parse(self) -> Trace | None:
        """Return the object as a record of one table; None for a record that belongs to no table."""
        if (report := _REPORT.fullmatch(self.name)) is not None:
            return Trace("report", self.job_id, "", report["table"], self.entry)
        if (record := _RECORD.fullmatch(self.name)) is not None:
            kind: Kind = "intent" if record["folder"] == "tables" else "failure"
            return Trace(kind, self.job_id, record["attempt"], record["table"], self.entry)
        return None


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
            yield LoadObject(job_id, name, entry)

    def list_objects_of(self, job_id: str) -> Iterator[LoadObject]:
        """Yield the control objects of one load."""
        return self.list_objects(f"{job_id}/")

    def list_by_load(self) -> Iterator[tuple[str, Iterator[LoadObject]]]:
        """Yield the job id of each load and its control objects, which are read before the next load is asked for."""
        return groupby(self.list_objects(), lambda item: item.job_id)

    def list_reports(self) -> dict[str, dict[str, Entry]]:
        """List the reports of all tables of the pipeline: entries by table id and job id."""
        reports: dict[str, dict[str, Entry]] = {}
        for trace in parse_reports(self.list_objects()):
            reports.setdefault(trace.table_id, {})[trace.job_id] = trace.entry
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
            for trace in parse_all(self.list_objects()):
                keys.setdefault(trace.table_id, trace.entry.key)
            self._listed = began, keys
        return self._listed[1]


def parse_all(items: Iterable[LoadObject], table_id: str | None = None) -> Iterator[Trace]:
    """Yield the records of single tables among the control objects; with ``table_id`` those of that table."""
    for item in items:
        trace = item.parse()
        if trace is not None and table_id in (None, trace.table_id):
            yield trace


def parse_reports(items: Iterable[LoadObject], table_id: str | None = None) -> Iterator[Trace]:
    """Yield the reports of tables among the control objects; with ``table_id`` those of that table."""
    return (trace for trace in parse_all(items, table_id) if trace.kind == "report")
