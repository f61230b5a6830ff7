"""States and intents that somebody deletes, while loads run or afterwards: people have a state rebuilt, and end a load
without its intent."""

import random
from functools import partial
from typing import TYPE_CHECKING

from lakewriter.spec.table_spec import TableSpec
from tests.simulation.books import Place, parsed, pending_of
from tests.simulation.lakes import Lake

if TYPE_CHECKING:
    from tests.simulation.history import History


class Losses:
    """Those of one history."""

    def __init__(self, history: "History", seed: int) -> None:
        self.history, self.rng = history, random.Random(f"losses of {seed}")
        self._intents = random.Random(f"lost intents of {seed}")

    def spawn(self, lakes: list[Lake], spread: float) -> None:
        """Perhaps one in the storm, and a person who has the state rebuilt a while later, whatever runs by then."""
        if self._intents.random() < 0.15 and "lost-intent" not in self.history.options.without:
            lake = self._intents.choice(lakes)
            for _ in range(self._intents.randint(1, 3)):
                self.history.spawn(partial(self._lose_intent_between, lake), self._intents.random() * spread * 2, lake)
        if self.rng.random() > 0.08 or "lost-state" in self.history.options.without:
            return
        lake = self.rng.choice(lakes)
        table, at = self.rng.choice(lake.spec.tables), self.rng.random() * spread
        self.history.spawn(partial(self._lose_between, lake, table), at, lake)
        for _ in range(self.rng.randint(1, 3)):
            self.history.spawn(partial(self._rebuild, lake, table), at + self.rng.random() * spread, lake)

    def _lose_intent_between(self, lake: Lake) -> None:
        """Delete an intent when no load runs that knows it by heart, and end its load without it."""
        scheduler = self.history.simulation.scheduler
        for _ in range(20):
            if not scheduler.list_running() and not self.history.network.late and self._lose_intents(lake):
                scheduler.sleep(self._intents.choice([0, 1, 60]))
                self._end_without(lake)
                return
            scheduler.sleep(self._intents.choice([0.5, 5.0, 60.0]))

    def lose_intents(self) -> None:
        """Perhaps those of all that is pending once the storm is over."""
        if self._intents.random() > 0.15 or "lost-intent" in self.history.options.without:
            return
        for lake in self.history.lakes:
            self._lose_intents(lake)

    def _lose_intents(self, lake: Lake) -> bool:
        """Whether one was deleted."""
        history, is_any, tables = self.history, False, lake.spec.tables
        if lake.kind == "history" and self._intents.random() < 0.5:
            # That of a table or of its history alone.
            tables = (self._intents.choice(tables),)
        for table in tables:
            place = self._find_place(lake, table)
            pending = pending_of(history.bucket.objects, place)
            key = f"{place.root}/loads/{pending.get('job_id')}/{pending.get('attempt')}/tables/{place.table}.json"
            if key not in history.bucket.objects:
                continue
            history.world.met["lost-intent"] += 1
            history.network.note(f"world: lost-intent {key} ({pending['phase']})")
            # What it had staged is known by nobody any more.
            history.auditor.lost_uploads, is_any = True, True
            history.auditor.lost_intents.add(key)
            history.bucket.delete(key)
        return is_any

    def _end_without(self, lake: Lake) -> None:
        """End what is pending without an intent; a load of several tables may have that of another one still."""
        history = self.history
        for table in lake.spec.tables:
            pending = pending_of(history.bucket.objects, self._find_place(lake, table))
            if pending and not self._has_intent(lake, table):
                history.hands.draw_end(lake, pending["job_id"])()

    def _has_intent(self, lake: Lake, table: TableSpec) -> bool:
        place = self._find_place(lake, table)
        pending = pending_of(self.history.bucket.objects, place)
        key = f"{place.root}/loads/{pending['job_id']}/{pending['attempt']}/tables/{place.table}.json"
        return key in self.history.bucket.objects

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
        """Rebuild what is lost still, and end what has no intent."""
        self.lose_intents()
        for lake in self.history.lakes:
            # A load is ended once every table has a state: without one, what a table has is not known.
            for table in lake.spec.tables:
                self.history.alone(partial(self._rebuild, lake, table), lake)
            if self.history.world.met["lost-intent"]:
                self.history.alone(partial(self._end_without, lake), lake)

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

        Not where people had a hand in it, or records are gone: what they did is not concluded from any record.
        """
        history, place = self.history, self._find_place(lake, table)
        state = history.bucket.objects.get(place.state)
        met = history.world.met
        if state is None or met["hands"] or met["lost-intent"] or history.auditor.swept:
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
