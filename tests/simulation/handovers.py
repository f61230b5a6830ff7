"""A directory that one pipeline has refreshed is handed over to another one, and perhaps back, as the message of
``NAME_COLLISION`` says: readers see what the last load has brought, from the first load on."""

import json
import random
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from lakewriter.errors import LakeError
from lakewriter.run.loader import load
from tests.simulation.books import Place
from tests.simulation.lakes import Lake, read_lake
from tests.simulation.places import places_of
from tests.simulation.readers import Readers
from tests.simulation.scheduler import Killed
from tests.simulation.simulated import SimulatedClients
from tests.simulation.source import Session
from tests.simulation.weather import Weather

if TYPE_CHECKING:
    from tests.simulation.history import History

HEIR: Final = "heirs"
TRIES: Final = 12


class HandOvers:
    """Those of one history, by chance of its own. They come last: the auditor knows one pipeline of each table."""

    def __init__(self, history: "History", seed: int) -> None:
        self.history, self.rng = history, random.Random(f"hand-overs of {seed}")
        self.are_some = self.rng.random() < 0.5 and "hand-over" not in history.options.without

    def play(self) -> None:
        """Hand one pipeline's tables over."""
        lakes = [lake for lake in self.history.lakes if lake.kind == "refresh"]
        if not lakes or not self.are_some:
            return
        lake = self.rng.choice(lakes)
        heir = rename_pipeline(lake, HEIR)
        self.history.bucket.watch.clear()
        self.history.bucket.watch_abort = lambda *_: None
        self.history.catalog.watch = lambda _: None
        self.history.world.met["hand-over"] += 1
        for number in range(self.rng.randint(1, 3)):
            self._hand_over(heir if number % 2 == 0 else lake, [lake, heir])

    def _hand_over(self, to: Lake, both: list[Lake]) -> None:
        """Delete the record of the owner, and load a few times; what is not done is run again, as a person does who
        believes the exit code."""
        objects = self.history.bucket.objects
        for key in [key for key in objects if "/owners/" in key]:
            self.history.bucket.delete(key)
        shares = replace(to, spec=to.spec.model_copy(update={"shares_tables": True}))
        for number in range(self.rng.randint(1, 3)):
            job = f"{HEIR}-{self.history.number}-{number}"
            # The first load alone needs the permission.
            is_done = self._load(shares if number == 0 else to, job)
            if not is_done:
                self.history.auditor.find(f"load {job} of {to.pipeline} is not done after a hand-over")
                return
            self._judge(to, job, both)

    def _load(self, lake: Lake, job: str) -> bool:
        ends, faults = list[str](), {"kill": 0.01, "killed": 0.01, "lost": 0.01, "late": 0.005}

        def run() -> None:
            clients = SimulatedClients(lake.spec.access, self.history.simulation)
            session: Any = Session(self.history.sources, lake.pipeline, job, self.history.simulation.process.name)
            try:
                report = load(lake.spec, job_id=job, clients=clients, spark=session)
            except (LakeError, Killed) as error:
                ends.append(str(error))
                raise
            ends.append(next((f"{table.code} {table.message}" for table in report.tables if table.code), "done"))

        for number in range(TRIES):
            self.history.network.weather = Weather(faults if number < TRIES // 2 else {})
            self.history.alone(partial(run), lake)
            if ends and ends[-1] == "done":
                return True
            self.history.network.note(f"{job} of {lake.pipeline}: {ends[-1] if ends else 'killed'}")
        return False

    def _judge(self, lake: Lake, job: str, both: list[Lake]) -> None:
        """Readers see each row of the last load once, and no other."""
        places = [place for own in both for place in places_of(own)]
        history = self.history
        every = [*{place.state: place for place in [*history.auditor.places, *places]}.values()]
        readers = Readers(history.bucket, history.catalog, history.sources, every, (), history.auditor.find)
        visible = readers.list_visible()
        seen = sum((visible[place.state] for place in places), Counter[tuple[int, int]]())
        for key in (key for place in _distinct(places) for key in readers.list_latest(place)):
            if key not in history.bucket.objects:
                history.auditor.find(f"_latest names a file that is not there after a hand-over: {key}")
        readings = [own for own in history.sources.readings.values() if (own.pipeline, own.job) == (lake.pipeline, job)]
        allowed = [Counter((own.nonce, row) for row in own.ids) for own in readings]
        if seen not in allowed:
            history.auditor.find(f"readers do not see load {job} of {lake.pipeline} after a hand-over: {dict(seen)}")


def _distinct(places: list[Place]) -> list[Place]:
    return list({place.latest: place for place in places}.values())


def rename_pipeline(lake: Lake, name: str) -> Lake:
    """The same tables of another pipeline."""
    text = json.dumps(json.loads(lake.text) | {"pipeline": name})
    spec = read_lake(text)
    return replace(lake, spec=spec.model_copy(update={"access": lake.spec.access}), text=text)
