"""What the processes of one history share, and their clients."""

import random
import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from lakewriter.aws import Clients, required_fields
from lakewriter.aws.clients import LastingObjects
from lakewriter.aws.request_hooks import ServiceClock
from lakewriter.receipts.parts import Bounds
from lakewriter.spec.access import Access
from tests.simulation.bucket import S3, Bucket
from tests.simulation.glue import Catalog, Glue
from tests.simulation.scheduler import Process, Scheduler
from tests.simulation.weather import Network, refused

BOUNDS: Final = (
    Bounds(),
    # Tasks return a file or two, and write parts of more; tasks write all, and the driver joins it; the driver alone.
    Bounds(part=1000, results=6000),
    Bounds(part=32_000, results=0, parts=0),
    Bounds(part=1000, results=1_000_000),
)
"""How many receipts are held in one place; the product's own bounds are beyond any history."""


class Simulation:
    """What one history's processes share."""

    def __init__(self, seed: int, scheduler: Scheduler, network: Network, bucket: Bucket, catalog: Catalog) -> None:
        self.scheduler, self.network, self.bucket, self.catalog = scheduler, network, bucket, catalog
        network.accept = accept
        self.ids = random.Random(f"ids of {seed}")
        self.task_tries = 1
        # A stream of chance of its own for what tables share.
        self.rng = random.Random(f"shared tasks of {seed}")
        self.is_speculative = self.rng.random() < 0.3
        self.bounds = random.Random(f"bounds of {seed}").choice(BOUNDS)
        self.serial = 0
        # By pipeline, of those that run one.
        self.connectors: dict[str, Any] = {}
        # Of a job that tables share: how late a thread may come to it, in seconds, and how many tasks it has.
        self.lateness: Sequence[float] = (0.0, 0.5, 3.0)
        self.slots: Sequence[int] = (1, 1, 2)

    @property
    def process(self) -> Process:
        """Whose turn it is."""
        fiber = self.scheduler.current
        assert fiber is not None
        return fiber.process


TRIES: Final = threading.local()
"""Of the thread of a task: how often it was tried before, as Spark tells it."""


class SimulatedTaskContext:
    """Spark's, of a task of which no stage is told."""

    @classmethod
    def get(cls) -> "SimulatedTaskContext":
        """That of the task whose thread asks."""
        return cls()

    def attemptNumber(self) -> int:  # noqa: N802 - Spark's name
        """How often the task was tried before."""
        return int(TRIES.attempt)

    def stageId(self) -> None:  # noqa: N802 - Spark's name
        """No stage runs again."""


class Here:
    """The simulation that runs in this Python process, if one does."""

    now: Simulation | None = None

    @classmethod
    def mine(cls) -> Simulation | None:
        """The simulation, where the caller is one of its fibers."""
        return cls.now if cls.now is not None and cls.now.scheduler.is_mine() else None


class SimulatedClients(Clients):
    """A process's clients; nothing of boto3's is made."""

    def __init__(self, access: Access, simulation: Simulation) -> None:
        self.access = access
        self.reached = {"s3", "sts", "glue"}
        self.requests: Counter[str] = Counter()
        self.clock = ServiceClock()
        self.lasting, self.metadata, self.parts = LastingObjects(), LastingObjects(), LastingObjects()
        self._s3 = S3(simulation.bucket, simulation.network, self.requests, self.clock.note)
        self._glue = Glue(simulation.catalog, simulation.network, self.requests)

    @property
    def s3(self) -> Any:
        """The simulated bucket."""
        return self._s3

    @property
    def glue(self) -> Any:
        """The simulated catalog."""
        return self._glue


def share_clients(access: Access, _vendor: object = None) -> SimulatedClients:
    """Those of a worker, whose turn it is."""
    simulation = Here.mine()
    assert simulation is not None
    return SimulatedClients(access, simulation)


def accept(answer: dict[str, Any], operation: str) -> dict[str, Any]:
    """An answer of 200 as the SDK hands it on: by the product's own table of what each must carry."""
    for service in ("s3", "glue"):
        for path in required_fields.REQUIRED.get(f"{service}.{operation}", ()):
            if answer.get(path.partition(".")[0].partition("[")[0]) is None:
                raise refused(operation, 500, required_fields.FOREIGN)
    return answer
