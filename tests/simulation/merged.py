"""Tables that are merged by key: the events of their sources, and the rows that their readers are to see."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from tests.simulation.books import (
    FLOOR,
    LOAD,
    Book,
    MergeRule,
    Place,
    flags_of,
    is_compaction,
    is_control,
    is_undo,
    number_floor,
    parsed,
    rows_of,
)
from tests.simulation.bucket import Bucket, Stored
from tests.simulation.events import Event, make_stream_order
from tests.simulation.foreign_engine import ForeignEngine
from tests.simulation.glue import Catalog
from tests.simulation.iceberg import current_files, list_ancestors, metadata_of
from tests.simulation.source import Generation, Sources

MADE: Final = ("/deletes-", "/moved-", "/metadata/")
"""In the keys of what a load writes when it is committed: none of it has rows that its own files have not."""


_Key = int | tuple[int, ...]
"""That of a row; of a history with its order."""


@dataclass(frozen=True)
class _Row:
    """A row by its number and reading; ``weight`` decides between rows of the same ``order``."""

    order: tuple[int, ...]
    weight: int
    row: tuple[int, int]
    is_delete: bool = False


@dataclass
class _Content:
    """The rows of a table by their key, and the keys that were deleted, with the time until which each keeps older rows
    out; ``counts`` are how many rows of each reading were merged."""

    rows: dict[_Key, list[_Row]] = field(default_factory=dict)
    deleted: dict[_Key, tuple[_Row, datetime]] = field(default_factory=dict)
    live: tuple[int, ...] = ()
    """The generations of the loads that the rows are of, where syncs bring them."""
    counts: Counter[int] = field(default_factory=Counter)
    floors: tuple[tuple[tuple[int, ...], datetime], ...] = ()
    """Orders below which rows stay out until a time."""

    def begin(self, generation: Generation, *, has_rows: bool) -> bool:
        """Begin a load of a sync; return whether it is the first one of a generation that replaces those before it."""
        shown = max(self.live, default=0)
        number = shown + generation.lowest if generation.number is None else generation.number
        lowest = number if generation.number is None and generation.lowest else generation.lowest
        self.live = (*(one for one in self.live if one >= lowest), *([number] if has_rows else []))
        if lowest > shown:
            self.rows, self.deleted = {}, {}
        return lowest > shown

    def drop_below(self, floors: Collection[tuple[int, ...]], stays: Callable[[_Row], bool]) -> None:
        """Drop the rows that are older than one of the floors, but for those that stay."""
        self.rows = {
            key: [row for row in rows if all(row.order >= floor for floor in floors) or stays(row)]
            for key, rows in self.rows.items()
        }


def _find_newest(rows: Sequence[_Row]) -> _Row:
    return max(rows, key=lambda row: (row.order, row.weight))


@dataclass
class MergedAuditor:
    """Judges what readers see of merged tables: each snapshot's change, one after the other, by the documentation."""

    bucket: Bucket
    catalog: Catalog
    sources: Sources
    books: Mapping[str, Book]
    find: Callable[[str], None]
    engine: ForeignEngine | None = None
    starts: dict[str, datetime] = field(default_factory=dict)
    snapshots: dict[int, dict[str, Any]] = field(default_factory=dict)
    """All that metadata ever had, as they were first written."""
    expired: dict[str, Stored] = field(default_factory=dict)
    """The data files of committed loads that were deleted."""

    def judge(self, place: Place, seen: Counter[tuple[int, int]]) -> None:
        """Judge the rows that readers see now."""
        name, rule = f"{place.pipeline}/{place.table}", place.merges
        assert rule is not None
        content, jobs, before = _Content(), list[str](), dict[str, _Content]()
        for snapshot in list_ancestors(self.catalog, self.bucket, place.names, self.snapshots):
            summary, load = snapshot["summary"], snapshot["summary"].get("lakewriter.load")
            for key, at, row in self.engine.rows.get(snapshot["snapshot-id"], ()) if self.engine else ():
                order = _make_order(rule, {"at": at, "id": row[1]})
                content.rows.setdefault(_make_key(rule, key, order), []).append(_Row(order, 1, row))
            if load is not None and (undone := summary.get("lakewriter.undoes")) in jobs:
                # The table's first load leaves with its files; behind others the snapshot before it is shown again.
                jobs.remove(undone)
                left = {
                    key: [row for row in rows if row.row[0] != FLOOR and self._find_job(row) != undone]
                    for key, rows in content.rows.items()
                }
                content = replace(before[undone], rows=left)
            elif load is not None and undone is None and summary["operation"] != "replace":
                jobs.append(load.split("/")[1])
                before[jobs[-1]] = replace(
                    content, rows={}, deleted=dict(content.deleted), counts=Counter(content.counts)
                )
                self._merge(name, place, content, load)
        expected = Counter(row.row for rows in content.rows.values() for row in rows)
        # A load that was ended without its intent keeps older rows of its deleted keys out, although no snapshot is its
        # own.
        may_lack = self.books[place.state].blind - set(jobs)
        if (seen - expected) or ((expected - seen) and not may_lack):
            self.find(
                f"{name}: readers see {sorted((seen - expected).items())} too many after {jobs}, and do not see "
                f"{sorted((expected - seen).items())}"
            )
        self._judge_jobs(name, place, jobs)
        if rule.is_history:
            self._judge_flags(place)

    def _judge_flags(self, place: Place) -> None:
        """Each row says whether its change deletes; what stands for a floor deletes."""
        for key, stored in self.bucket.objects.items():
            if not key.startswith(f"{place.path}/") or not stored.body.startswith(b"PAR1"):
                continue
            for (number, nonce), flag in flags_of(stored.body).items():
                if nonce != FLOOR and not self.sources.readings[nonce].job:
                    continue
                if flag != (nonce == FLOOR or self.sources.events.list(place.source, number + 1)[number].is_delete):
                    self.find(f"{place.source}: the row of change {number} is flagged {flag} in {key}")

    def judge_compaction(
        self, place: Place, before: Mapping[str, Any], after: Mapping[str, Any], seen: Counter[tuple[int, int]]
    ) -> None:
        """Judge a compaction or an expiry that was committed: it changes no rows, and nothing that a load depends on;
        the snapshots of the last load and before it, which its undo needs, are there."""
        changed = [name for name in ("cursor", "last_job", "sync", "undone") if before.get(name) != after.get(name)]
        counted = after.get("compactions", 0) - before.get("compactions", 0)
        if changed or counted != 1:
            self.find(f"state of {place.table}: a compaction has changed {changed}, and counts as {counted}")
        if place.merges is not None:
            self.judge(place, seen)
        there = {own["snapshot-id"] for own in (metadata_of(self.catalog, self.bucket, place.names) or {})["snapshots"]}
        if missing := self._list_promised(place) - there:
            self.find(f"{place.pipeline}/{place.table}: the undo of the last load needs snapshots {sorted(missing)}")

    def _list_promised(self, place: Place) -> set[int]:
        """The snapshots of the last load that is not undone, and before it."""
        undone = set[str]()
        for own in reversed(list_ancestors(self.catalog, self.bucket, place.names, self.snapshots)):
            summary = own["summary"]
            pipeline, _, rest = summary.get("lakewriter.load", "").partition("/")
            if pipeline != place.pipeline or summary["operation"] == "replace":
                continue
            undoes = summary.get("lakewriter.undoes")
            if undoes is not None:
                undone.add(undoes)
            elif rest.partition("/")[0] not in undone:
                parent = own.get("parent-snapshot-id")
                return {own["snapshot-id"], *(() if parent is None else (parent,))}
        return set()

    def judge_deleted(self, places: Sequence[Place], key: str, before: Stored) -> None:
        """Judge an object that is deleted: no file of a compaction is one that readers see."""
        pipeline, job, _ = before.metadata.get(LOAD, "//").split("/")
        for place in places if is_compaction(job) else ():
            if place.pipeline == pipeline and key in current_files(self.catalog, self.bucket, place.names):
                self.find(f"{place.pipeline}/{place.table}: file of {job} deleted that readers see: {key}")

    def _find_job(self, row: _Row) -> str:
        return self.sources.readings[row.row[0]].job

    def _merge(self, name: str, place: Place, content: "_Content", load: str) -> None:
        rule, readings, generation = place.merges, self._find_readings(place, load), self._find_generation(place, load)
        assert rule is not None
        replaces = generation is not None and content.begin(generation, has_rows=bool(readings))
        if replaces and not readings:
            # The source has no rows in this generation.
            return
        floors_there = readings.pop(FLOOR, [])
        if not readings and (nonce := self._find_truncating(place, load, floors_there)) is not None:
            readings = {nonce: []}
        if len(readings) != 1:
            self.find(f"{name}: load {load} has rows of readings {sorted(readings)}")
            return
        ((nonce, numbers),) = readings.items()
        numbers.sort()
        brought = self._list_floors(place.source, rule, nonce) if not rule.is_history else {}
        is_part = generation is not None and not replaces
        # How far a part has read that was ended without its intent is not known: the sync begins behind those before.
        job = load.split("/")[1].partition(".s")[0]
        if any(blind.partition(".s")[0] == job for blind in self.books[place.state].blind) and 0 in numbers:
            content.counts[nonce] = 0
        self._judge_numbers(
            name, load, content, nonce, numbers, self._list_rows(place.source, rule, nonce), is_part=is_part
        )
        started = self._find_start(place, load)
        lasting = [(floor, until) for floor, until in content.floors if until > started]
        by_key = self._read_events(place.source, rule, nonce, numbers)
        content.drop_below(brought.values(), self._is_foreign)
        floors = [*brought.values(), *(floor for floor, _ in lasting)]
        by_key = {key: [row for row in rows if all(row.order >= one for one in floors)] for key, rows in by_key.items()}
        by_key = {key: rows for key, rows in by_key.items() if rows}
        deleted = {key: kept for key, kept in content.deleted.items() if kept[1] > started}
        after = dict(deleted)
        for key, rows in by_key.items():
            noted = [deleted[key][0]] if key in deleted else []
            newest = _find_newest([*rows, *content.rows.get(key, []), *noted])
            is_kept = rule.keeps_deleted or not newest.is_delete
            # Of rows with the same order that of the table stays.
            weight = 3 if newest.is_delete else 1
            content.rows[key] = [_Row(newest.order, weight, newest.row, newest.is_delete)] if is_kept else []
            # Whether the table has newer rows is not asked: these keep older ones out themselves.
            last = _find_newest([*rows, *noted])
            after.pop(key, None)
            if last.is_delete:
                until = started + timedelta(seconds=rule.deleted_seconds)
                after[key] = deleted[key] if last in noted else (_Row(last.order, 3, last.row, True), until)
        if load.split("/")[1] not in self.books[place.state].given_up:
            until = started + timedelta(seconds=rule.deleted_seconds)
            content.deleted = after if rule.deleted_seconds else {}
            content.floors = (*lasting, *((floor, until) for floor in brought.values())) if rule.deleted_seconds else ()

    def _is_foreign(self, row: _Row) -> bool:
        """Whether nobody knows of which source table the row is."""
        return not self._find_job(row)

    def _list_floors(self, name: str, rule: MergeRule, nonce: int) -> dict[int, tuple[int, ...]]:
        """Return the orders below which a load leaves no rows, by the number of their event."""
        reading, floors = self.sources.readings[nonce], dict[int, tuple[int, ...]]()
        events, epoch = self.sources.events.list(name, max(reading.ids, default=-1) + 1), self.sources.epochs.get(nonce)
        for number in reading.ids if rule.has_floors and epoch is not None else ():
            if events[number].is_truncate:
                floors[number] = _make_order(rule, self._order(events[number], number, nonce))
            elif events[number].is_end and epoch:
                floors[number] = (epoch, 0, 0, 0)
        return floors

    def _find_truncating(self, place: Place, load: str, there: Collection[int]) -> int | None:
        """Find the reading of a load all of whose events are truncates: by the epoch of its intent's floors, or in a
        history by the numbers of the floors that are ``there``."""
        _, job, attempt = load.split("/")
        stored = self.bucket.objects.get(f"{place.root}/loads/{job}/{attempt}/tables/{place.table}.json")
        floors = (parsed(stored).get("merge") or {}).get("floors", ()) if stored is not None else ()
        epochs = {int(floor["order"][0]) for floor in floors}
        readings = [
            reading.nonce
            for reading in self.sources.readings.values()
            if (reading.pipeline, reading.table, reading.job) == (place.pipeline, place.table, job)
            and (not epochs or self.sources.epochs.get(reading.nonce) in epochs)
        ]
        if place.merges is not None and place.merges.is_history:
            readings = [nonce for nonce in readings if self._number_floors(place, nonce) == set(there)]
        return readings[-1] if place.merges is not None and place.merges.has_floors and readings else None

    def _number_floors(self, place: Place, nonce: int) -> set[int]:
        assert place.merges is not None
        return {number_floor(floor) for floor in self._list_floors(place.source, place.merges, nonce).values()}

    def _read_events(self, name: str, rule: MergeRule, nonce: int, numbers: list[int]) -> dict[_Key, list[_Row]]:
        """Return a load's rows by key, a history's with those of its floors; of rows with the same order the last one,
        which a stream's stays before the table's, too."""
        events, by_key = (
            self.sources.events.list(name, max(numbers, default=-1) + 1),
            dict[_Key, dict[tuple[int, ...], _Row]](),
        )
        for number in numbers:
            event, is_delete = events[number], rule.has_deletes and events[number].is_delete
            said = make_stream_order(event, number) if rule.is_stream else self._order(event, number, nonce)
            order, weight = _make_order(rule, said), 5 * rule.is_stream + 2 * is_delete
            by_key.setdefault(_make_key(rule, event.key, order), {})[order] = _Row(
                order, weight, (nonce, number), is_delete
            )
        for floor in self._list_floors(name, rule, nonce).values() if rule.is_history else ():
            by_key[floor] = {floor: _Row(floor, 2, (FLOOR, number_floor(floor)), is_delete=True)}
        return {key: list(rows.values()) for key, rows in by_key.items()}

    def _order(self, event: Event, number: int, nonce: int) -> Mapping[str, int | None]:
        said = {"at": event.at, "id": number, "_change_epoch": self.sources.epochs.get(nonce)}
        return said | {"_change_log": 0 if event.is_read else 1, "_change_position": event.at, "_change_row": 0}

    def _find_generation(self, place: Place, load: str) -> Generation | None:
        """Find what a sync was asked for; None for loads of others."""
        return self.sources.generations.get((place.pipeline, place.table, load.split("/")[1].partition(".s")[0]))

    def _list_rows(self, name: str, rule: MergeRule, nonce: int) -> list[int]:
        """Return the numbers of the events of a reading that are rows."""
        ids = self.sources.readings[nonce].ids
        events = self.sources.events.list(name, max(ids, default=-1) + 1)
        return [number for number in ids if not (rule.has_floors and events[number].is_truncate)]

    def _judge_numbers(
        self,
        name: str,
        load: str,
        content: "_Content",
        nonce: int,
        numbers: list[int],
        ids: list[int],
        *,
        is_part: bool,
    ) -> None:
        """A load has all rows of its reading; the parts of a sync that merges have them one after the other."""
        first = content.counts[nonce] if is_part else 0
        content.counts[nonce] = first + len(numbers)
        last = content.counts[nonce] if is_part and ".s" in load.split("/")[1] else len(ids)
        if numbers != ids[first:last]:
            self.find(f"{name}: load {load} has rows {numbers}, expected {ids[first:last]} of {ids}")

    def _find_start(self, place: Place, load: str) -> datetime:
        """Find when a load began, by its intent or its report, one of which was there when it was looked for first."""
        if load not in self.starts:
            _, job, attempt = load.split("/")
            keys = (
                f"{place.root}/loads/{job}/{attempt}/tables/{place.table}.json",
                f"{place.root}/loads/{job}/{place.table}.report.json",
                f"{place.root}/loads/{job}/{attempt}/begin.json",
            )
            stored = next(self.bucket.objects[key] for key in keys if key in self.bucket.objects)
            self.starts[load] = datetime.fromisoformat(parsed(stored)["started"])
        return self.starts[load]

    def _find_readings(self, place: Place, load: str) -> dict[int, list[int]]:
        """Find what an attempt's files have, by reading."""
        readings = dict[int, list[int]]()
        for key, stored in (self.expired | self.bucket.objects).items():
            is_file = key.startswith(f"{place.path}/") and not any(part in key for part in MADE)
            if stored.metadata.get(LOAD) == load and is_file and not is_control(key):
                for number, nonce in rows_of(stored.body):
                    readings.setdefault(nonce, []).append(number)
        return readings

    def _judge_jobs(self, name: str, place: Place, jobs: list[str]) -> None:
        """Each load that is done, and has files, has one snapshot among those that readers go by; others have none."""
        book = self.books[place.state]
        if len(set(jobs)) < len(jobs):
            self.find(f"{name}: loads {jobs} are merged, one of them twice")
        parts = {job: attempt for job, attempt in book.commits if not is_undo(job)}
        for job in set(jobs) - parts.keys() - book.given_up:
            self.find(f"{name}: load {job} is merged and not done")
        for job in book.undone.intersection(jobs) - book.given_up:
            self.find(f"{name}: load {job} is merged and undone")
        for job in parts.keys() - set(jobs) - book.undone - book.given_up:
            if self._find_readings(place, f"{place.pipeline}/{job}/{parts[job]}"):
                self.find(f"{name}: load {job} is done and not merged")


def _make_key(rule: MergeRule, key: int, order: tuple[int, ...]) -> _Key:
    """Return the key of which a table keeps one row."""
    return (key, *order) if rule.is_history else key


def _make_order(rule: MergeRule, said: Mapping[str, int | None]) -> tuple[int, ...]:
    """Return the order of a row; one that says nothing is older than those that do."""
    return tuple(-1 if (value := said.get(column)) is None else value for column in rule.order_by)
