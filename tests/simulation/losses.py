"""States that somebody deletes, while loads run or afterwards, and that a person has rebuilt."""

import random
from functools import partial
from typing import TYPE_CHECKING

from lakewriter.spec.specification import TableSpec
from tests.simulation.books import Place, parsed
from tests.simulation.lakes import Lake

if TYPE_CHECKING:
    from tests.simulation.history import History


class Losses:
    """Those of one history."""

    def __init__(self, history: "History", seed: int) -> None:
        self.history, self.rng = history, random.Random(f"losses of {seed}")

    def spawn(self, lakes: list[Lake], spread: float) -> None:
        """Perhaps one in the storm, and a person who has the state rebuilt a while later, whatever runs by then."""
        if self.rng.random() > 0.08 or "lost-state" in self.history.options.without:
            return
        lake = self.rng.choice(lakes)
        table, at = self.rng.choice(lake.spec.tables), self.rng.random() * spread
        self.history.spawn(partial(self._lose_between, lake, table), at, lake)
        for _ in range(self.rng.randint(1, 3)):
            self.history.spawn(partial(self._rebuild, lake, table), at + self.rng.random() * spread, lake)

    def lose_one(self) -> None:
        """Delete a state when nothing runs; no load goes on until a person has it rebuilt."""
        history = self.history
        lake = history.rng.choice(history.lakes)
        table = history.rng.choice(lake.spec.tables)
        if not self._lose(lake, table):
            return
        for job in history.jobs[lake.pipeline][:1]:
            history.alone(partial(history.attempt, lake, job), lake)
        history.alone(partial(self._rebuild, lake, table), lake)

    def mend_all(self) -> None:
        """Rebuild what is lost still."""
        for lake in self.history.lakes:
            for table in lake.spec.tables:
                self.history.alone(partial(self._rebuild, lake, table), lake)

    def _lose_between(self, lake: Lake, table: TableSpec) -> None:
        """Delete the state when no load runs that goes on by heart: others come while it is gone, and while it is
        rebuilt."""
        scheduler = self.history.simulation.scheduler
        for _ in range(20):
            if not scheduler.list_running() and not self.history.network.late:
                self._lose(lake, table)
                return
            scheduler.sleep(self.rng.choice([0.5, 5.0, 60.0]))

    def _lose(self, lake: Lake, table: TableSpec) -> bool:
        """Delete the state, if there is one.

        Not where people had a hand in it or records were swept away: what they did is not concluded from any record.
        """
        history, place = self.history, self._find_place(lake, table)
        state = history.bucket.objects.get(place.state)
        if state is None or history.world.met["hands"] or history.auditor.swept:
            return False
        lost = history.auditor.books[place.state].lost = parsed(state)
        history.world.met["lost-state"] += 1
        # That a load was being withdrawn is told by its state alone: it is taken up again, and some uploads are gone.
        history.auditor.lost_uploads |= (lost["pending"] or {}).get("phase") == "aborting"
        history.bucket.delete(place.state)
        return True

    def _rebuild(self, lake: Lake, table: TableSpec) -> None:
        place = self._find_place(lake, table)
        lost = self.history.auditor.books[place.state].lost
        if lost is not None and place.state not in self.history.bucket.objects:
            self.history.hands.rebuild(lake, table, from_start=lost["cursor"] is None)

    def _find_place(self, lake: Lake, table: TableSpec) -> Place:
        return next(
            own for own in self.history.auditor.places if (own.pipeline, own.table) == (lake.pipeline, table.id)
        )
