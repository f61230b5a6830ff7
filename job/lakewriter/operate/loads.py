"""Read what loads came to from the control objects of a pipeline, the newest load first."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from lakewriter.commit.control import Control
from lakewriter.commit.store import Entry
from lakewriter.commit.traces import parse_trace
from lakewriter.control_object import parse
from lakewriter.errors import SpecInvalidError
from lakewriter.naming import make_undo_job_id
from lakewriter.pages.load_record import MOST_SAMPLES, LoadedTable, LoadRecord
from lakewriter.report import TableReport

READERS: Final = 8
"""Requests at a time: each record is a request of its own."""
_UNFINISHED: Final = datetime.max.replace(tzinfo=UTC)
"""A load that has not finished is newer than those that have."""
MOST_READ: Final = 200
"""Reports of tables that are read of a load that has left no record."""


@dataclass
class LoadKeys:
    """The control objects of one load, as a listing has them; ``undo`` are those of its undo."""

    job_id: str
    entries: list[Entry] = field(default_factory=list)
    undo: "LoadKeys | None" = None

    @property
    def at(self) -> datetime:
        """Return the time when the last of them was written."""
        return max(entry.modified for entry in self.entries)

    def list_newest(self, ending: str) -> list[Entry]:
        """List the newest objects whose key ends so: several where they were written within one second."""
        entries = [entry for entry in self.entries if entry.key.endswith(ending)]
        newest = max((entry.modified for entry in entries), default=None)
        return [entry for entry in entries if entry.modified == newest]


class Loads:
    """The loads of one pipeline whose control objects are kept."""

    def __init__(self, controls: Mapping[str, Control]) -> None:
        self._controls = controls
        self._first = next(iter(controls.values()))

    def list_keys(self, most: int | None = None) -> list[LoadKeys]:
        """All loads, the one that wrote last first; a page that was made anew does not count. Empty where they have
        more than ``most`` objects: which loads are the last is known when all are listed."""
        root, loads = f"{self._first.keys.root}/loads/", dict[str, LoadKeys]()
        for number, entry in enumerate(self._first.store.list_entries(root)):
            if number == most:
                return []
            job_id = entry.key.removeprefix(root).partition("/")[0]
            if entry.key != self._first.keys.page(job_id):
                loads.setdefault(job_id, LoadKeys(job_id)).entries.append(entry)
        for load in loads.values():
            load.undo = loads.get(make_undo_job_id(load.job_id))
        return sorted(loads.values(), key=lambda load: (load.at, load.job_id), reverse=True)

    def read_last(self, limit: int, table_id: str | None = None) -> list[LoadRecord]:
        """Return the last ``limit`` loads, the newest first; with a table only those that have it."""
        records: list[LoadRecord] = []
        waiting: Sequence[LoadKeys] = self.list_keys()
        while waiting and len(records) < limit:
            batch, waiting = _cut_between_seconds(waiting, limit)
            for record in self._read_in_order(batch):
                if table_id is None or any(table.id == table_id for table in record.tables):
                    records.append(record)
        return records[:limit]

    def read_before(
        self, record: LoadRecord, limit: int, most: int | None = None
    ) -> tuple[LoadRecord, list[LoadRecord]]:
        """Return the record with all tables of its load, and the last loads before it, the newest first; the record
        alone where all loads have more than ``most`` objects.
        """
        loads = self.list_keys(most)
        places = [place for place, load in enumerate(loads) if load.job_id == record.job_id]
        after = loads[places[0] + 1 :] if places else loads
        earlier = self._read_in_order(after[:limit])
        return (self._add_tables(record, loads[places[0]]) if places else record), earlier

    def read_one(self, job_id: str | None) -> LoadRecord:
        """One load, the last one without an id; ``SPEC_INVALID`` where there is none."""
        loads = self.list_keys()
        if loads and job_id is None:
            return self._read_in_order(_cut_between_seconds(loads, 1)[0])[0]
        for load in loads:
            if job_id == load.job_id:
                return self.read_record(load)
        pipeline = self._first.keys.pipeline
        if job_id is None:
            raise SpecInvalidError(
                f"pipeline {pipeline} has no load whose records are kept.", remedy="Load it first: lakewriter run LAKE."
            )
        raise SpecInvalidError(
            f"load {job_id!r} has no records in pipeline {pipeline}.",
            remedy="lakewriter history LAKE lists the loads whose records are kept.",
        )

    def _read_in_order(self, loads: Sequence[LoadKeys]) -> list[LoadRecord]:
        """Read the records of loads, the newest first.

        S3 tells when an object was written to the second. Of loads that wrote in the same one the records know more.
        """
        with ThreadPoolExecutor(READERS, thread_name_prefix="load") as pool:
            records = list(zip(loads, pool.map(self.read_record, loads), strict=True))
        records.sort(key=lambda pair: (pair[0].at, pair[1].finished or _UNFINISHED), reverse=True)
        return [record for _, record in records]

    def read_record(self, load: LoadKeys) -> LoadRecord:
        """Read what the load came to, and in which tables it is undone since."""
        record = self._read_record(load)
        traces = (parse_trace(self._first.keys, entry) for entry in load.undo.entries) if load.undo is not None else ()
        undone = {trace.table_id for trace in traces if trace is not None and trace.kind == "report"}
        if not undone:
            return record
        tables = tuple(
            table.model_copy(update={"status": "undone"}) if table.id in undone else table for table in record.tables
        )
        is_whole = all(table.status == "undone" for table in tables)
        return record.model_copy(update={"tables": tables, "status": "undone" if is_whole else record.status})

    def _read_record(self, load: LoadKeys) -> LoadRecord:
        """Return the record by the load's last attempt, or else by its tables' reports and its outcome."""
        outcomes, records = load.list_newest("/outcome.json"), list[LoadRecord]()
        ended = set(map(_read_attempt, outcomes))
        for entry in load.list_newest("/run/record.json"):
            content = self._first.store.get(entry.key) if not ended or _read_attempt(entry) in ended else None
            if content is not None:
                records.append(parse(LoadRecord, entry.key, content[0]))
        if records:
            return self._add_tables(max(records, key=lambda record: record.finished or _UNFINISHED), load)
        return self._conclude(load, outcomes[0] if outcomes else None)

    def _conclude(self, load: LoadKeys, outcome: Entry | None) -> LoadRecord:
        end = (self._first.read_json(outcome.key) if outcome is not None else None) or {}
        reports = list(self._read_reports(load))
        status = end.get("status") or ("done" if reports else "unfinished")
        finished = end.get("finished") or (load.at if reports else None)
        return LoadRecord.model_validate(
            {
                "pipeline": self._first.keys.pipeline,
                "job_id": load.job_id,
                "attempt": _read_attempt(outcome) if outcome else (reports[0].attempt if reports else ""),
                "status": status,
                "started": min((report.started for report in reports), default=None),
                "finished": finished,
                "code": end.get("code"),
                "message": end.get("message"),
                "tables": tuple(describe_table(report) for report in reports),
            }
        )

    def _add_tables(self, record: LoadRecord, load: LoadKeys) -> LoadRecord:
        """Return the record with the tables that other attempts of the load committed: a program that writes DataFrames
        makes one for each table.
        """
        others = tuple(map(describe_table, self._read_reports(load, {table.id for table in record.tables})))
        return record.model_copy(update={"tables": (*record.tables, *others)})

    def _read_reports(self, load: LoadKeys, without: Collection[str] = ()) -> Iterator[TableReport]:
        """Yield the reports of the load's tables ``without`` some."""
        traces = (parse_trace(self._first.keys, entry) for entry in load.entries)
        known = (trace for trace in traces if trace is not None and trace.kind == "report")
        reports = [trace for trace in known if trace.table_id not in without]
        for trace in reports[:MOST_READ]:
            content = self._first.store.get(trace.entry.key)
            if content is not None:
                yield parse(TableReport, trace.entry.key, content[0])


def _cut_between_seconds(loads: Sequence[LoadKeys], most: int) -> tuple[Sequence[LoadKeys], Sequence[LoadKeys]]:
    """Return the first ``most`` loads, with those that wrote in the same second as the last of them, and the rest."""
    end = most
    while end < len(loads) and loads[end].at == loads[most - 1].at:
        end += 1
    return loads[:end], loads[end:]


def describe_table(report: TableReport) -> LoadedTable:
    """Return the facts that a committed table's report has of it."""
    kept: dict[str, Any] = {name: getattr(report, name) for name in _KEPT}
    samples = report.change_samples[:MOST_SAMPLES]
    return LoadedTable(status="done", change_samples=samples, phases={"writing": report.staged_seconds}, **kept)


_KEPT: Final = (
    "schema_name", "table", "rows", "files", "bytes", "small_files", "changes", "undeclared", "set_aside",
    "cursor_after", "notes", "expectations",
)  # fmt: skip


def _read_attempt(entry: Entry) -> str:
    """Return the attempt in the key of one of its objects."""
    parts = entry.key.split("/loads/")[-1].split("/")
    return parts[1]
