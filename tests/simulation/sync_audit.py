"""Whether the syncs of a connector bring each row of its source once, by what readers see and by its states."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.simulation.books import Book, Place, is_undo
from tests.simulation.connectors import Given
from tests.simulation.readers import Readers
from tests.simulation.source import Sources


@dataclass
class SyncAuditor:
    """Of all streams that connectors bring; ``find`` takes what is not as it should be."""

    sources: Sources
    places: Sequence[Place]
    books: Mapping[str, Book]
    readers: Readers
    find: Callable[[str], None]

    def judge(self, place: Place, seen: Counter[tuple[int, int]]) -> None:
        """Each row of the source up to the last that was brought, once; in a stream that is replaced too."""
        book, name = self.books[place.state], f"{place.pipeline}/{place.table}"
        last = book.commits[-1][0] if book.commits else ""
        if place.overwrites and ".s" in last:
            # A refresh that has not ended lies beside what it will replace.
            return
        if book.resets or book.given_up:
            return
        rows = _count_rows(seen)
        if twice := sorted(number for number, times in rows.items() if times > 1):
            self.find(f"{name}: rows {twice} are there twice after load {last}")
        if lost := sorted(set(range(max(rows, default=-1))) - rows.keys()):
            self.find(f"{name}: rows {lost} are not there after load {last}, and later ones are")
        newest = max((nonce for nonce, _ in seen), default=0)
        if (
            newest
            and ".s" not in last
            and not is_undo(last)
            and not self._has_caught_up(place)
            and (lost := sorted(set(self.sources.readings[newest].ids) - rows.keys()))
        ):
            self.find(f"{name}: rows {lost} of the last run are not there after load {last}")

    def _has_caught_up(self, place: Place) -> bool:
        """Whether the last load only follows a table that had it before: both end at a state that the source has sent
        since for all streams, and what comes after that state is the next sync's."""
        jobs = [job for job, _ in self.books[place.state].commits]
        part, last = jobs[-2:] if len(jobs) > 1 else ("", "")
        others = [self.books[other.state] for other in self.places if other.pipeline == place.pipeline]
        return part.startswith(f"{last}.s") and any(
            {last, part} <= (order := {job: number for number, (job, _) in enumerate(book.commits)}).keys()
            and order[last] < order[part]
            for book in others
        )

    def given(self, pipeline: str, given: Given, streams: Sequence[str]) -> None:
        """The state that a connector is given says no more than what readers see, and is of one kind."""
        if len(set(given.kinds)) > 1 or (len(given.kinds) > 1 and given.kinds[0] != "STREAM"):
            self.find(f"{pipeline}: its connector is given states {given.kinds}")
        visible = self.readers.list_visible()
        for place in self.places:
            name, book = place.table.rpartition(".")[2], self.books[place.state]
            if place.pipeline != pipeline or name not in streams or book.resets or book.given_up or book.undone:
                continue
            most = max(_count_rows(visible[place.state]), default=-1) + 1
            if given.cursors.get(name, 0) > most:
                self.find(
                    f"{place.pipeline}/{name}: its connector is to go on from {given.cursors[name]} of {most} rows"
                )


def _count_rows(seen: Counter[tuple[int, int]]) -> Counter[int]:
    rows = Counter[int]()
    for (_, number), times in seen.items():
        rows[number] += times
    return rows
