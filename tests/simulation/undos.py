"""Loads that are taken back while others run, and loaded again."""

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tests.simulation.books import chain_of
from tests.simulation.lakes import Lake

if TYPE_CHECKING:
    from tests.simulation.history import History


class Undos:
    """Those of one history; chance of their own leaves the histories without any what they were."""

    def __init__(self, history: "History", seed: int) -> None:
        self.history, self.rng = history, random.Random(f"undos of {seed}")
        self.are_some = self.rng.random() < 0.25 and "undo" not in history.options.without

    def spawn(self, lakes: list[Lake], jobs: list[str], spread: float) -> None:
        """A few, at some time within ``spread`` seconds."""
        for _ in range(self.rng.randint(1, 4)):
            lake = self.rng.choice(lakes)
            if lake.kind != "messages" and not lake.is_streamed:
                undo = self.history.hands.draw_undo(self.rng, lake, self.rng.choice(jobs))
                self.history.spawn(partial(self._take_back_one, lake, undo), self.rng.random() * spread, lake)

    def spawn_compactions(self, lakes: list[Lake], spread: float) -> None:
        """Compact tables that are merged, by chance of its own: other histories stay what they were."""
        rng = random.Random(f"compactions of {self.history.seed}")
        merged = [lake for lake in lakes if lake.is_merged]
        if merged and rng.random() < 0.6:
            for _ in range(rng.randint(2, 6)):
                lake = rng.choice(merged)
                # Most come when there is a load.
                delay = max(1.0, spread) * rng.random() * 2
                self.history.spawn(self.history.hands.draw_compaction(lake), delay, lake)

    def spawn_upkeep(self, lakes: list[Lake], spread: float) -> None:
        """Expire snapshots and delete orphans, by chance of its own as well."""
        rng = random.Random(f"upkeep of {self.history.seed}")
        lakes = [lake for lake in lakes if lake.spec.iceberg]
        if lakes and rng.random() < 0.5 and "upkeep" not in self.history.options.without:
            for _ in range(rng.randint(1, 4)):
                lake = rng.choice(lakes)
                delay = max(1.0, spread) * rng.random() * 2
                self.history.spawn(self.history.hands.draw_upkeep(lake), delay, lake)

    def compact_among_loads(self) -> None:
        """Compact tables that have loads while others load."""
        history, rng = self.history, random.Random(f"late compactions of {self.history.seed}")
        merged = [lake for lake in history.lakes if lake.is_merged]
        if not merged or rng.random() < 0.5:
            return
        self.spawn_compactions(merged, 0.5)
        self.spawn_upkeep(merged, 0.5)
        for number in range(rng.randint(0, 2)):
            lake, job = rng.choice(merged), f"L{number}"
            if lake.is_streamed:
                history.spawn(partial(history.stream, lake, 2), rng.random(), lake)
                continue
            history.jobs[lake.pipeline].append(job)
            history.spawn(partial(history.attempt, lake, job), rng.random(), lake)
        history.simulation.scheduler.run()
        for lake in merged:
            for job in list(history.jobs[lake.pipeline]):
                history.calm.finish(lake, job)

    def _take_back_one(self, lake: Lake, undo: Callable[[], None]) -> None:
        """Undo, unless another pipeline may yet begin its first load into a partition that is dropped with a grace."""
        rules, history = lake.spec.undo, self.history
        if lake.is_shared and rules.drop_partitions and rules.grace_minutes:
            states = {place.state for place in history.auditor.places if place.pipeline != lake.pipeline}
            if not states <= history.bucket.objects.keys():
                return
        undo()

    def note(self, lake: Lake, job: str) -> None:
        """A load is refused as undone: the one that stands for it is to be loaded."""
        base, _, number = job.rpartition(".r")
        following = f"{job}.r2" if len(chain_of(job)) == 1 else f"{base}.r{int(number) + 1}"
        if following not in self.history.jobs[lake.pipeline]:
            self.history.jobs[lake.pipeline].append(following)

    def finish_repeats(self, lake: Lake) -> None:
        """Load whatever stands for an undone load, until nothing more is refused as undone."""
        done: set[str] = set()
        while todo := [job for job in self.history.jobs[lake.pipeline] if len(chain_of(job)) > 1 and job not in done]:
            done.add(todo[0])
            self.history.calm.finish(lake, todo[0])

    def take_back(self) -> None:
        """Loads that are all done are undone, by several at once, and loaded again."""
        history = self.history
        jobs = [job for lake in history.lakes for job in history.jobs[lake.pipeline] if len(chain_of(job)) == 1]
        if not jobs:
            return
        self.spawn(history.lakes, jobs, 0.1)
        history.simulation.scheduler.run()
        for lake in history.lakes:
            for job in [job for job in history.jobs[lake.pipeline] if len(chain_of(job)) == 1]:
                if not history.auditor.is_forgotten(lake.pipeline, job):
                    history.alone(partial(history.attempt, lake, job), lake)
            self.finish_repeats(lake)
