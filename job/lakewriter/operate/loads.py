"""Read the records of loads from the control objects of a pipeline, the newest load first."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from lakewriter.commit.at_once import call_all
from lakewriter.commit.control import Control
from lakewriter.commit.history import LoadObject, PastLoad, group_loads
from lakewriter.control_object import Parsed, parse
from lakewriter.errors import PendingUnrecoverableError, SpecInvalidError
from lakewriter.pages.load_record import AttemptEnd, LoadedTable, LoadRecord
from lakewriter.report import TableReport
from lakewriter.spec.load_ids import make_undo_job_id

_UNFINISHED: Final = datetime.max.replace(tzinfo=UTC)
"""A load that has not finished is newer than those that have."""
MOST_READ: Final = 200
"""The most table reports that are read for a load that has left no record."""
LEFT_OUT: Final = "It is left out."
"""Ends the note on an object that cannot be used."""
MOST_EARLIER: Final = 20
"""The most earlier attempts of a load that are read, the last ones: each is a request."""


class Loads:
    """The loads of one pipeline whose control objects are kept."""

    def __init__(self, controls: Mapping[str, Control]) -> None:
        self._controls = controls
        self._first = next(iter(controls.values()))

    def list_loads(self, most: int | None = None) -> list[PastLoad]:
        """List all loads, the last one to write first; a page that was made anew does not count. Return none if they
        have more than ``most`` objects: only a full listing shows which loads are the last."""
        items = list(islice(self._first.history.list_objects(), None if most is None else most + 1))
        if most is not None and len(items) > most:
            return []
        loads = {load.job_id: load for load in group_loads(item for item in items if item.kind != "page")}

        def add_undone(load: PastLoad) -> PastLoad:
            undo = loads.get(make_undo_job_id(load.job_id))
            return load if undo is None else replace(load, undone=undo.list_tables({"report"}))

        return sorted(map(add_undone, loads.values()), key=lambda load: (load.at, load.job_id), reverse=True)

    def read_last(self, limit: int, table_id: str | None = None) -> list[LoadRecord]:
        """Return the last ``limit`` loads, the newest first; with a table only those that have it."""
        records: list[LoadRecord] = []
        waiting: Sequence[PastLoad] = self.list_loads()
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
        loads = self.list_loads(most)
        positions = [position for position, load in enumerate(loads) if load.job_id == record.job_id]
        after = loads[positions[0] + 1 :] if positions else loads
        earlier = self._read_in_order(after[:limit])
        if not positions:
            return record, earlier
        load = loads[positions[0]]
        attempts = self._read_earlier(load, record.attempt, [])
        return self._add_tables(record, load, []).model_copy(update={"earlier": attempts}), earlier

    def read_one(self, job_id: str | None) -> LoadRecord:
        """Read one load, the last one without an id; ``SPEC_INVALID`` where there is none."""
        loads = self.list_loads()
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

    def _read_in_order(self, loads: Sequence[PastLoad]) -> list[LoadRecord]:
        """Read the records of loads, the newest first.

        S3 keeps times to the second. The records decide the order of loads that wrote in the same second.
        """
        records = list(zip(loads, call_all(self.read_record, loads), strict=True))
        records.sort(key=lambda pair: (pair[0].at, pair[1].finished or _UNFINISHED), reverse=True)
        return [record for _, record in records]

    def read_record(self, load: PastLoad) -> LoadRecord:
        """Read the load's record, with the tables in which it was undone since."""
        record = self._read_record(load)
        if not load.undone:
            return record
        tables = tuple(
            table.model_copy(update={"status": "undone"}) if table.id in load.undone else table
            for table in record.tables
        )
        is_whole = all(table.status == "undone" for table in tables)
        return record.model_copy(update={"tables": tables, "status": "undone" if is_whole else record.status})

    def _read_record(self, load: PastLoad) -> LoadRecord:
        """Return the record of the load's last attempt, or else one made from its tables' reports and its outcome."""
        outcomes, records, damage = load.list_newest("outcome"), list[LoadRecord](), list[str]()
        ended = {item.attempt for item in outcomes}
        for item in load.list_newest("record"):
            if not ended or item.attempt in ended:
                records += self._read(LoadRecord, item.entry.key, damage)
        if records:
            record = self._add_tables(max(records, key=lambda record: record.finished or _UNFINISHED), load, damage)
        else:
            record = self._conclude(load, outcomes[0] if outcomes else None, damage)
        earlier = self._read_earlier(load, record.attempt, damage)
        return record.model_copy(update={"notes": (*record.notes, *damage), "earlier": earlier})

    def _read_earlier(self, load: PastLoad, last: str, damage: list[str]) -> tuple[AttemptEnd, ...]:
        """Return how the attempts before the ``last`` one ended: by their records, or else by their outcomes."""
        ends = {item.attempt: item for item in (*load.select("outcome"), *load.select("record"))}
        items = sorted((item for item in ends.values() if item.attempt != last), key=lambda item: item.entry.modified)
        earlier = list[AttemptEnd]()
        for item in items[-MOST_EARLIER:]:
            for end in self._read(AttemptEnd, item.entry.key, damage):
                fields = {name: getattr(end, name) for name in AttemptEnd.model_fields}
                earlier.append(AttemptEnd.model_validate(fields | {"attempt": item.attempt}))
        return tuple(earlier)

    def _read(self, model: type[Parsed], key: str, damage: list[str]) -> list[Parsed]:
        """Return the object at the key, none where it is gone or cannot be used: then ``damage`` says so. One damaged
        object does not hide other loads."""
        content = self._first.store.get(key)
        try:
            return [parse(model, key, content[0])] if content is not None else []
        except PendingUnrecoverableError as error:
            damage.append(f"{error.message} {LEFT_OUT}")
            return []

    def _conclude(self, load: PastLoad, outcome: LoadObject | None, damage: list[str]) -> LoadRecord:
        ends = self._read(AttemptEnd, outcome.entry.key, damage) if outcome is not None else []
        reports = list(self._read_reports(load, damage))
        without_outcome = AttemptEnd(status="done" if reports else "unfinished", finished=load.at if reports else None)
        end = ends[0] if ends else without_outcome
        return LoadRecord(
            pipeline=self._first.keys.pipeline,
            job_id=load.job_id,
            attempt=outcome.attempt if outcome else (reports[0].attempt if reports else ""),
            status=end.status,
            started=min((report.started for report in reports), default=None),
            finished=end.finished or without_outcome.finished,
            code=end.code,
            message=end.message,
            tables=tuple(describe_table(report) for report in reports),
        )

    def _add_tables(self, record: LoadRecord, load: PastLoad, damage: list[str]) -> LoadRecord:
        """Return the record with the tables that other attempts of the load committed: a program that writes DataFrames
        makes one for each table.
        """
        others = tuple(map(describe_table, self._read_reports(load, damage, {table.id for table in record.tables})))
        return record.model_copy(update={"tables": (*record.tables, *others)})

    def _read_reports(self, load: PastLoad, damage: list[str], without: Collection[str] = ()) -> Iterator[TableReport]:
        """Yield the reports of the load's tables ``without`` some."""
        reports = [item for item in load.select("report") if item.table_id not in without]
        for item in reports[:MOST_READ]:
            yield from self._read(TableReport, item.entry.key, damage)


def _cut_between_seconds(loads: Sequence[PastLoad], most: int) -> tuple[Sequence[PastLoad], Sequence[PastLoad]]:
    """Return the first ``most`` loads, with those that wrote in the same second as the last of them, and the rest."""
    end = most
    while end < len(loads) and loads[end].at == loads[most - 1].at:
        end += 1
    return loads[:end], loads[end:]


def describe_table(report: TableReport) -> LoadedTable:
    """Return the facts that a committed table's report has."""
    return LoadedTable.of(report, status="done", phases={"writing": report.staged_seconds})
