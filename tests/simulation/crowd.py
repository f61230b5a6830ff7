"""A pipeline of many small tables in the simulation, and how many requests each act on all of them takes."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final
from unittest.mock import patch

from lakewriter.cli.status_view import read_states
from lakewriter.commit import attempt as attempts
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.retention import sweep
from lakewriter.errors import StagedLostError
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.operate.verification import verify
from lakewriter.report import RunReport
from lakewriter.run.loader import load
from tests.simulation.bucket import Bucket
from tests.simulation.glue import Catalog
from tests.simulation.lakes import make_crowd
from tests.simulation.scheduler import Process, Scheduler
from tests.simulation.simulated import SimulatedClients, Simulation
from tests.simulation.source import Session, Sources
from tests.simulation.stand_ins import running
from tests.simulation.weather import Network, Weather

PAGE: Final = 10
"""Keys in a page of a listing: a hundred tables are then as many pages as ten thousand are in S3."""


class Crowd:
    """A pipeline of ``tables`` tables in a bucket of its own."""

    def __init__(self, tables: int, *, glue: bool = False) -> None:
        rng = random.Random(0)
        self.spec = make_crowd(tables, glue=glue).spec
        self.scheduler = Scheduler(rng, 0)
        self.network, self.sources = Network(self.scheduler, Weather()), Sources(rng)
        self.bucket = Bucket(lambda: self.scheduler.now, PAGE)
        self.simulation = Simulation(0, self.scheduler, self.network, self.bucket, Catalog())
        # One file a task, whose receipt it returns itself.
        self.simulation.bounds = type(self.simulation.bounds)()
        self._processes = 0

    def load(self, job_id: str) -> Counter[str]:
        """Load every table."""

        def act(pipeline: Pipeline) -> None:
            session = Session(self.sources, "crowd", job_id, "p")
            report: RunReport = load(self.spec, job_id=job_id, clients=pipeline.clients, spark=session)  # type: ignore[arg-type]
            assert {table.status for table in report.tables} == {"done"}, report.tables[0]

        return self.count(act)

    def load_in_vain(self, job_id: str, skew: timedelta = timedelta(0)) -> None:
        """An attempt that stages every table and is gone before any of them is bound."""

        def act(pipeline: Pipeline) -> None:
            session = Session(self.sources, "crowd", job_id, "p")
            with (
                patch.object(attempts, "bind", side_effect=StagedLostError("a drill")),
                patch.object(attempts, "give_up"),
            ):
                load(self.spec, job_id=job_id, clients=pipeline.clients, spark=session)  # type: ignore[arg-type]

        self.count(act, skew)

    def read_states(self) -> Counter[str]:
        """What ``lakewriter status`` reads."""
        return self.count(lambda pipeline: read_states(pipeline.controls))

    def verify(self, job_id: str) -> Counter[str]:
        """Verify one load, in which nothing may differ."""

        def act(pipeline: Pipeline) -> None:
            assert not verify(pipeline.controls, job_id, pipeline.clients).differences

        return self.count(act)

    def wait(self, time: timedelta) -> None:
        """Let time pass."""
        self.scheduler.now_us += time // timedelta(microseconds=1)

    def sweep(self) -> Counter[str]:
        """Delete the records of all loads, once these are old."""
        self.wait(timedelta(days=40))
        return self.count(lambda pipeline: sweep(pipeline.first_control, self.scheduler.now, timedelta(days=30)))

    def undo(self, job_id: str) -> Counter[str]:
        """Take a load back in every table."""
        return self.count(lambda pipeline: Undo(pipeline, job_id, Choices("a drill")).run())

    def count(self, act: Callable[[Pipeline], Any], skew: timedelta = timedelta(0)) -> Counter[str]:
        """The requests that a process of its own makes for an act, by operation; its clock is wrong by ``skew``."""
        self._processes += 1
        process, made = Process(f"crowd#{self._processes}", skew), Counter[str]()
        call = self.network.call

        def counting(operation: str, what: str, apply: Callable[[], Any], count: Callable[[str], None]) -> Any:
            made[operation] += 1
            return call(operation, what, apply, count)

        with running(self.simulation), patch.object(self.network, "call", counting):
            clients = SimulatedClients(self.spec.access, self.simulation)
            fiber = self.scheduler.spawn(process, lambda: act(Pipeline.open(self.spec, clients)))
            self.scheduler.run()
        if fiber.error is not None:
            raise fiber.error
        return made
