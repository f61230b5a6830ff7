"""What becomes of rows that are kept out: none is lost, none is twice, and none is taken but for a table."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lakewriter.spec.load_ids import REPLAY
from tests.simulation.books import (
    GRADE,
    LOAD,
    QUARANTINE,
    Book,
    Place,
    is_replay,
    is_undo,
    kept_rows_of,
    parsed,
    taken_of,
)
from tests.simulation.bucket import Bucket, Stored
from tests.simulation.readers import Readers
from tests.simulation.source import Reading, Sources


@dataclass
class QuarantineAuditor:
    """Of all tables with a quarantine; ``find`` takes what is not as it should be.

    ``taken`` are the loads, by table, attempt included, whose files a replay has taken; ``calm`` the registrations,
    by table, after which an upload of the same load that began before is to be gone; ``ended`` the attempts whose
    process has lived to their end.
    """

    bucket: Bucket
    sources: Sources
    places: Sequence[Place]
    books: Mapping[str, Book]
    readers: Readers
    find: Callable[[str], None]
    taken: dict[str, set[str]] = field(default_factory=dict)
    calm: set[tuple[str, str, str]] = field(default_factory=set)
    ended: set[tuple[str, str, str]] = field(default_factory=set)
    is_calm: bool = False

    def deleted(self, place: Place, key: str, before: Stored) -> None:
        """Whoever deletes a committed load's bad rows has shown them elsewhere before."""
        seen = self.readers.list_all()[place.state]
        for number, nonce, _ in kept_rows_of(before.body):
            if not seen[nonce, number]:
                self.find(f"{place.pipeline}/{place.table}: row {number} of reading {nonce} left {key} for no table")

    def registered(self, place: Place, job: str, attempt: str, others: Mapping[str, Any]) -> None:
        """An attempt that begins when nothing fails any more, after one that was cut off. Of one that gave up, a call
        may have come late that nobody looks for."""
        if self.is_calm and job in others:
            self.calm.add((place.state, job, attempt))

    def committed(self, place: Place, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """A load, a replay or an undo, the moment its state is closed."""
        job = after["last_job"]
        if is_undo(job):
            self._undone(place, before, after)
        elif is_replay(job):
            self._replayed(place, job, before, after)

    def _undone(self, place: Place, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        known = [own["job_id"] for own in before.get("undone", ())]
        gone = [f"{place.pipeline}/{own['job_id']}/" for own in after["undone"] if own["job_id"] not in known]
        taken = self.taken.get(place.state, ())
        if wrong := sorted(load for load in taken if load.startswith(tuple(gone))):
            self.find(f"{place.pipeline}/{place.table}: {wrong} are undone, of which a replay has taken rows")

    def _replayed(self, place: Place, job: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        name, taken = f"{place.pipeline}/{place.table}", self.taken.setdefault(place.state, set())
        # Of a state that was lost and rebuilt nobody knows where the cursor was before.
        cursor = before.get("cursor", after["cursor"])
        if after["cursor"] != cursor and not self._is_of_line(place, cursor, after["cursor"]):
            self.find(f"{name}: {job} moves the cursor from {cursor} to {after['cursor']}")
        keys = taken_of(self.bucket.objects, place, job, before["pending"]["attempt"])
        if job not in self.books[place.state].given_up and (left := [k for k in keys if k in self.bucket.objects]):
            self.find(f"{name}: {job} is done and left {left}")
        root = f"{place.root}/loads/"
        for key, stored in self.bucket.objects.items():
            if key.startswith(root) and "/tables/" in key and (own := parsed(stored)).get("table_id") == place.table:
                staged = {receipt["key"] for receipt in (own.get("quarantine") or {}).get("receipts", ())}
                if staged.intersection(keys):
                    taken.add(f"{place.pipeline}/{own['job_id']}/{own['attempt']}")

    def _is_of_line(self, place: Place, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> bool:
        """A replay moves a cursor that is there to a line beyond it, which no load could read, or to a row of a load
        that was closed without its intent, which has moved no cursor."""
        own = [each for each in self.sources.readings.values() if self._is_of(each, place)]
        given_up = self.books[place.state].given_up
        beyond = {n for each in own for n in (*each.lines, *(each.ids if each.job in given_up else ()))}
        return before is not None and int(after["text"]) in beyond and int(after["text"]) > int(before["text"])

    def judge_lines(self, place: Place, kept: Sequence[str], seen: Counter[tuple[int, int]]) -> None:
        """A line without a cursor is kept by each load that reads it: it is there, and no more often than that."""
        book, name = self.books[place.state], f"{place.pipeline}/{place.table}"
        if book.given_up:
            return
        own = [each for each in self.sources.readings.values() if self._is_of(each, place)]
        for line in [each for each in own if not each.job]:
            (number,) = line.ids
            held = [each for each in own if number in each.lines and each.job in kept]
            times, shown = seen[line.nonce, number], {nonce for nonce, _ in seen}
            if times > len({each.job for each in held}):
                self.find(f"{name}: line {number} is there {times} times")
            if not times and any(each.nonce in shown for each in held):
                self.find(f"{name}: line {number} is lost")

    def judge_replayed(self, place: Place, level: int) -> None:
        """After a replay of all: what fits by now is in the table. Of a replay that was ended without its intent a
        person decides which of its files go."""
        if any(job.startswith(REPLAY) for job in self.books[place.state].blind):
            return
        for key, stored in self.bucket.objects.items():
            load = stored.metadata.get(LOAD, "")
            if not key.startswith(f"{place.quarantine}/") or not load.startswith(f"{place.pipeline}/"):
                continue
            for number, nonce, row in kept_rows_of(stored.body):
                is_own = self._is_of(self.sources.readings[nonce], place)
                if is_own and int(str(row[GRADE]).removeprefix("level ")) <= level:
                    self.find(f"{place.pipeline}/{place.table}: row {number} fits and is still in {key}")

    def judge_uploads(self, gone: Collection[str], *, is_answered: bool) -> None:
        """No upload of bad rows is left of a load that was begun again in the calm, nor of one that has come to its
        end; where a call failed, what was to be aborted may be left. One whose attempt's record or receipts are
        ``gone``, swept away or a person's doing, is left to the bucket's lifecycle rule."""
        for name, upload in self.bucket.uploads.items():
            if f"{QUARANTINE}/" not in upload.key:
                continue
            pipeline, job, attempt = upload.metadata.get(LOAD, "//").split("/")
            records = (f"/loads/{job}/{attempt}/begin", f"/loads/{job}/{attempt}/receipts/")
            if any(record in key for key in gone for record in records):
                continue
            for place in self.places:
                later = {own for state, of, own in self.calm if (state, of) == (place.state, job)}
                is_own = place.pipeline == pipeline and upload.key.startswith(f"{place.quarantine}/")
                has_ended = (place.state, job, attempt) in self.ended
                is_over = is_answered and (has_ended or (job, attempt) in self.books[place.state].commits)
                if is_own and (later - {attempt} or is_over):
                    self.find(f"upload {name} of {job}/{attempt} is left: {upload.key}")

    def _is_of(self, reading: Reading, place: Place) -> bool:
        return (reading.pipeline, reading.table) == (place.pipeline, place.table)
