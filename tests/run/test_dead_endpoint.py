"""A continuous run waits for an endpoint that does not answer, on a clock that only waiting moves."""

import random
import threading
from math import inf
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from lakewriter.aws import Clients
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import EndpointUnreachableError, LakeError, SourceFailedError
from lakewriter.operate.upkeep import BETWEEN_BATCHES
from lakewriter.run.continuous import run_continuously
from tests.commit.memory import Memory, World
from tests.load.materializations import DESTINATION, binding


class Clock:
    """Stands in for the event that stops the run; it is set when ``end`` is reached."""

    def __init__(self, end: float) -> None:
        self.now, self.end = 0.0, end

    def is_set(self) -> bool:
        return self.now >= self.end

    def set(self) -> None:
        self.end = self.now

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return self.is_set()


class Dead(Memory):
    """A store that does not answer before ``back`` what is asked of keys that end with ``key``."""

    def __init__(self, clock: Clock, key: str, back: float) -> None:
        super().__init__(World(), lambda: None, random.Random(0), 0)
        self.clock, self.key, self.back = clock, key, back
        self.tries: list[float] = []

    def get(self, key: str) -> tuple[bytes, str] | None:
        if key.endswith(self.key) and self.clock.now < self.back:
            self.tries.append(self.clock.now)
            raise EndpointUnreachableError("https://store.example has not answered once.")
        return super().get(key)


class Silent:
    def step(self, *_: Any) -> None:
        """Not looked at."""

    batch = minute = step


DEAD = [
    # what is not answered, until when, when the run is told to stop; when it is asked, the code of the end
    ("continuous.json", 5, inf, [0, 1, 3], "SOURCE_FAILED"),
    ("continuous.json", 63, inf, [0, 1, 3, 7, 15, 31], "SOURCE_FAILED"),
    ("continuous.json", 200, inf, [0, 1, 3, 7, 15, 31, 63, 123, 183], "SOURCE_FAILED"),
    ("continuous.json", inf, 200, [0, 1, 3, 7, 15, 31, 63, 123, 183], "ENDPOINT_UNREACHABLE"),
    ("continuous.json", inf, 5, [0, 1, 3], "ENDPOINT_UNREACHABLE"),
    ("state.json", 5, inf, [0, 1, 3], "SOURCE_FAILED"),
    ("state.json", 200, inf, [0, 1, 3, 7, 15, 31, 63, 123, 183], "SOURCE_FAILED"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "back", "end", "tries", "code"), DEAD)
def test_a_dead_endpoint_is_waited_for(tmp_path, monkeypatch, key, back, end, tries, code):
    """The pauses double from a second to a minute; the run waits until it is told to stop."""
    content = {"pipeline": "wiki", "destination": DESTINATION, "tables": [binding("a", "in", primary_key=["id"])]}
    (tmp_path / "lake.yaml").write_text(yaml.safe_dump(content | {"checkpoint": "checkpoint"}), "utf-8")
    spec, clock = load_spec(tmp_path / "lake.yaml"), Clock(end)
    store = Dead(clock, key, back)
    monkeypatch.setattr("lakewriter.commit.pipeline.S3Store", lambda _: store)
    monkeypatch.setattr("lakewriter.run.continuous_table.time", SimpleNamespace(monotonic=lambda: clock.now))

    def spark() -> Any:
        raise SourceFailedError("the endpoint answers")

    ended: LakeError | None
    try:
        ended = run_continuously(
            spec,
            clients=Clients(spec.access),
            spark=spark,
            watch=Silent(),
            stop=cast(threading.Event, clock),
            upkeep=BETWEEN_BATCHES,
        )[1]
    except EndpointUnreachableError as error:
        ended = error
    assert ended is not None
    assert (ended.code, ended.exit_code) == (code, 1)
    assert store.tries == tries
