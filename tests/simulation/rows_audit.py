"""Whether a table's readers see each row of each load that is done, once, and none of others."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.books import Book, Place, chain_of, is_replay, is_undo
from tests.simulation.merged import MergedAuditor
from tests.simulation.quarantine_audit import QuarantineAuditor
from tests.simulation.source import Reading, Sources
from tests.simulation.sync_audit import SyncAuditor


@dataclass
class RowsAuditor:
    """Of all tables; ``find`` takes what is wrong."""

    sources: Sources
    books: Mapping[str, Book]
    quarantines: QuarantineAuditor
    syncs: SyncAuditor
    merged: MergedAuditor
    find: Callable[[str], None]
    numbers: dict[tuple[str, int], str] = field(default_factory=dict)

    def judge_number(self, place: Place, job: str, number: int | None) -> None:
        """No two loads of a pipeline have one sync number, and no load has two."""
        if number is None or is_undo(job) or is_replay(job):
            return
        whose = self.numbers.setdefault((place.pipeline, number), job.partition(".s")[0])
        if whose != job.partition(".s")[0]:
            self.find(f"{place.pipeline}/{place.table}: sync {number} is {job}, and was {whose}")

    def judge(self, place: Place, seen: Counter[tuple[int, int]]) -> None:
        """Each row of each load that is done, once, and none of others."""
        book, name = self.books[place.state], f"{place.pipeline}/{place.table}"
        parts = [job for job, _ in book.commits]
        if len(set(parts)) < len(parts):
            self.find(f"{name}: a load was committed twice: {parts}")
        # What is committed of a sync that has not ended goes by a job id of its own, ``{job}.s{digest}``.
        parts = [job for job in parts if not is_undo(job) and not is_replay(job) and job not in book.undone]
        for job in parts:
            if repeated := set(chain_of(job)[:-1]).intersection(parts):
                self.find(f"{name}: load {job} is done, and so is {sorted(repeated)}, whose rows it is to load again")
        if place.merges is not None or place.is_synced:
            (self.syncs if place.merges is None else self.merged).judge(place, seen)
            return
        jobs = [job.partition(".s")[0] for job in parts]
        if parts and place.overwrites and parts[-1] != jobs[-1]:
            # A refresh that has not ended lies beside what it will replace.
            return
        if jobs and self._is_undecided(place, book, jobs[-1]):
            return
        kept = [job for job in (jobs[-1:] if place.overwrites else jobs) if job not in book.given_up]
        if place.quarantine:
            self.quarantines.judge_lines(place, kept, seen)
        # Of a replay that was closed as it is, rows are in the table and in the quarantine. Where a part of a load was
        # closed without its intent, nothing tells how far it came, and the load brings its rows again.
        repeats = any(is_replay(job) or ".s" in job for job in book.given_up)
        by_job = self._judge_readings(name, {*kept, *book.given_up}, seen, repeats=repeats)
        whole = [job for job in kept if job in parts]
        order = {job: by_job[job][0] if by_job.get(job) else None for job in whole}
        self._judge_rows(place, book, order, seen)

    def _is_undecided(self, place: Place, book: Book, job: str) -> bool:
        """Whether readers may see the rows before a refresh too: its catalog did not agree when it was closed, or its
        intent was gone, which alone names the objects that it was to replace."""
        return (place.refreshes and job in book.given_up) or (place.overwrites and job in book.blind)

    def judge_start(
        self, place: Place, job: str, cursor: Mapping[str, Any] | None, seen: Collection[tuple[int, int]]
    ) -> None:
        """A load that goes on from a cursor reads what comes right after it, whoever has set it there."""
        if is_undo(job) or is_replay(job):
            return
        first = int(cursor["text"]) + 1 if cursor else 0
        for own in {nonce: self.sources.readings[nonce] for nonce, _ in seen}.values():
            if own.job == job and (started := min(own.ids, default=first)) != first:
                self.find(f"{place.pipeline}/{place.table}: load {job} reads from {started}, not from {first}")

    def _judge_readings(
        self, name: str, kept: Collection[str], seen: Counter[tuple[int, int]], *, repeats: bool
    ) -> Mapping[str, list[Reading]]:
        """By load what it has read and shows; only what is ``kept``, each row once and of one reading."""
        by_job: dict[str, list[Reading]] = defaultdict(list)
        # A line that nobody could read has no load's reading.
        rows = {row: times for row, times in seen.items() if self.sources.readings[row[0]].job and times}
        for nonce in sorted({nonce for nonce, _ in rows}):
            by_job[self.sources.readings[nonce].job].append(self.sources.readings[nonce])
        for row, times in sorted(rows.items()):
            if times > 1 and not repeats:
                self.find(f"{name}: row {row[1]} of reading {row[0]} is there {times} times")
        for job, readings in by_job.items():
            if job not in kept:
                self.find(f"{name}: rows of load {job} are there, which is retired or not done")
            if len(readings) > 1:
                self.find(f"{name}: load {job} shows {len(readings)} readings of its source")
        return by_job

    def _judge_rows(
        self, place: Place, book: Book, order: Mapping[str, Reading | None], seen: Counter[tuple[int, int]]
    ) -> None:
        name = f"{place.pipeline}/{place.table}"
        for job, reading in order.items():
            if reading is None:
                given = [own for own in self.sources.readings.values() if self._is_of(own, place, job)]
                if all(own.ids for own in given) and job not in book.given_up:
                    self.find(f"{name}: nothing of load {job} is there, which is done")
                continue
            missing = [number for number in reading.ids if not seen[reading.nonce, number]]
            if missing and job not in book.given_up:
                self.find(f"{name}: rows {missing} of load {job} are lost")
        # The next load brings the files of one that was undone.
        is_between = place.has_new_files and bool(book.commits) and is_undo(book.commits[-1][0])
        if place.goes_on and not book.resets and not book.given_up and not is_between:
            rows = [number for reading in order.values() if reading is not None for number in reading.ids]
            if place.has_new_files:
                # Files have no order, and those of a load that was undone come with the next one.
                rows.sort()
            read = (own for own in self.sources.readings.values() if self._is_of(own, place, own.job))
            lines = {number for own in read for number in own.lines}
            if rows != [number for number in range(max(rows, default=-1) + 1) if number in rows or number not in lines]:
                self.find(f"{name}: rows of all loads in their order are {rows}")

    def _is_of(self, reading: Reading, place: Place, job: str) -> bool:
        return (reading.pipeline, reading.table, reading.job) == (place.pipeline, place.table, job)
