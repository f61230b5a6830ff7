"""A load whose tasks Spark's own writer runs: each of its processes dies by itself, and what passes between them is
pickled."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar, cast

import pyarrow as pa

from lakewriter.errors import LakeError, WorkerDiedError
from lakewriter.report import RunReport
from lakewriter.run.given_load import OpenWrite, abandon_write, begin_write, end_write, explain_unwritable
from lakewriter.source.request import RowsRequest
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import IndexKind
from tests.simulation.lakes import Lake
from tests.simulation.scheduler import Killed, Process
from tests.simulation.simulated import SimulatedClients, Simulation
from tests.simulation.source import Feed, Session, open_feed
from tests.simulation.stand_ins import Fibers, run_tries

Answer = TypeVar("Answer")


def make_writable(lake: Lake) -> Lake | None:
    """The pipeline with the tables that Spark's writer can write, if there are any."""
    if lake.kind not in {"files", "glue", "iceberg"}:
        return None
    sparse = (table.model_copy(update={"index": IndexKind.SPARSE}) for table in lake.spec.tables)
    # A table that is written to has no files of its own to read.
    tables = tuple(table for table in sparse if explain_unwritable(table) is None and not table.read.new_files)
    return replace(lake, spec=lake.spec.model_copy(update={"tables": tables})) if tables else None


@dataclass(frozen=True)
class Writer:
    """What Spark does around the product's three steps, for one attempt at one table."""

    simulation: Simulation
    spec: Spec
    job: str
    session: Session

    def write(self) -> RunReport:
        """The report; a ``LakeError`` where a process died."""
        feeds: list[Feed] = []

        def open_given(request: RowsRequest) -> Feed:
            feeds.append(open_feed(replace(request, spark=cast("Any", self.session))))
            return feeds[-1]

        begun = self._apart("planner", partial(self._begin, open_given))
        if isinstance(begun, RunReport):
            return begun
        (feed,) = feeds
        outputs: dict[int, list[str]] = {}
        try:
            list(Fibers().map(partial(self._stage, begun, feed, outputs), range(feed.partitions)))
            return self._apart("commit", lambda: end_write(self._take(begun), self._connect(), _flat(outputs), _quiet))
        except LakeError:
            self._apart("abort", lambda: abandon_write(self._take(begun), self._connect(), _flat(outputs), _quiet))
            raise

    def _begin(self, opener: Any) -> OpenWrite | RunReport:
        return begin_write(self.spec, job_id=self.job, clients=self._connect(), opener=opener, progress=_quiet)

    def _stage(self, begun: OpenWrite, feed: Feed, outputs: dict[int, list[str]], partition: int) -> None:
        batches: list[pa.RecordBatch] = list(feed.batches(partition))
        outputs[partition] = run_tries(self.simulation, self._take(begun).plan, partition, batches)

    def _connect(self) -> SimulatedClients:
        return SimulatedClients(self.spec.access, self.simulation)

    def _take(self, begun: OpenWrite) -> OpenWrite:
        taken = pickle.loads(pickle.dumps(begun))
        assert isinstance(taken, OpenWrite)
        return taken

    def _apart(self, name: str, work: Callable[[], Answer]) -> Answer:
        """In a process of its own, which may die while Spark lives."""
        simulation, answers = self.simulation, list[Answer]()
        driver = simulation.process
        fiber = simulation.scheduler.spawn(
            Process(f"{driver.name}/{name}", driver.skew, parent=driver), lambda: answers.append(work())
        )
        simulation.scheduler.join((fiber,))
        if driver.dead:
            raise Killed
        if isinstance(fiber.error, LakeError):
            raise fiber.error
        if fiber.error is not None:
            raise WorkerDiedError(f"the {name} process died")
        return answers[0]


def _flat(outputs: dict[int, list[str]]) -> list[str]:
    return [text for _, own in sorted(outputs.items()) for text in own]


def _quiet(*_: object) -> None:
    """No progress is shown."""
