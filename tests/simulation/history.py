"""One history: pipelines that several processes work on at once, the storm, the calm after it, the audit."""

import contextlib
import random
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from lakewriter.errors import LakeError
from lakewriter.report import RunReport
from lakewriter.run.loader import load
from tests.simulation.audit import Auditor
from tests.simulation.bucket import Bucket
from tests.simulation.calm import Calm
from tests.simulation.changes import Changes
from tests.simulation.connectors import Connector
from tests.simulation.deduped import DedupedInputs
from tests.simulation.events import Events
from tests.simulation.failures import Failures
from tests.simulation.foreign_engine import ForeignEngine
from tests.simulation.given import Writer, make_writable
from tests.simulation.glue import Catalog
from tests.simulation.handovers import HandOvers
from tests.simulation.hands import Hands
from tests.simulation.kept_rows import Marks
from tests.simulation.kinds import KINDS
from tests.simulation.lakes import Lake, draw
from tests.simulation.losses import Losses
from tests.simulation.messages import Inputs
from tests.simulation.names_audit import NamesAuditor
from tests.simulation.places import places_of
from tests.simulation.replays import Replays
from tests.simulation.scheduler import Killed, Process, Scheduler, Stuck
from tests.simulation.simulated import Here, SimulatedClients, Simulation
from tests.simulation.source import Session, Sources
from tests.simulation.stand_ins import running
from tests.simulation.stores import AWS, draw_store
from tests.simulation.streams import Stream
from tests.simulation.undos import Undos
from tests.simulation.upload_audit import UploadAuditor, list_uploads_left
from tests.simulation.weather import Network, Weather
from tests.simulation.world import World

MOST_COPIES: Final = 3
"""Checkpoints of one stream, each of which goes on by itself."""


@dataclass(frozen=True)
class Options:
    """What may happen. ``kinds`` are of tables, ``without`` are faults and acts that are left out."""

    kinds: tuple[str, ...] = KINDS
    without: frozenset[str] = frozenset()
    story: bool = False


@dataclass
class Told:
    """What a history came to."""

    seed: int
    kind: str
    digest: str
    findings: list[str]
    story: list[str]
    met: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    uploads_left: int = 0


class History:
    """The history that the seed gives."""

    def __init__(self, seed: int, options: Options) -> None:
        self.seed, self.options = seed, options
        self.rng = rng = random.Random(seed)
        self.lakes = draw(rng, options.kinds)
        scheduler = Scheduler(rng, rng.choice([0.1, 0.3, 0.5, 0.8]))
        # Loads that are withdrawn while others wait at the same point: too rare where nobody sees to it.
        self.is_quarrel = self.lakes[0].kind in {"files", "glue"} and rng.random() < 0.15
        self.is_quarrel = self.is_quarrel and "quarrel" not in options.without
        weather = Weather.drawn(rng, options.without)
        self.network = Network(scheduler, replace(weather, sore=Weather.sore_of(rng)) if self.is_quarrel else weather)
        self.network.story = [] if options.story else None
        store = draw_store(seed) if "stores" not in options.without else AWS
        self.bucket = Bucket(lambda: scheduler.now, rng.choice([1, 2, 5, 1000]), store)
        if store is not AWS:
            self.lakes = [lake.put_on("http://store") for lake in self.lakes]
        self.catalog = Catalog()
        self.sources = Sources(rng, Marks(random.Random(f"marks of {seed}")), Events(seed), seed)
        self.simulation = Simulation(seed, scheduler, self.network, self.bucket, self.catalog)
        self.simulation.task_tries = rng.choice([1, 4])
        self.auditor = Auditor(
            self.bucket, self.catalog, self.sources, [p for lake in self.lakes for p in places_of(lake)]
        )
        uploads = UploadAuditor(self.bucket, self.auditor.places, self.auditor.find)
        self.bucket.watch += [self.auditor.changed, uploads.changed]
        names = random.Random(f"names of {seed}")
        if names.random() < 0.2 and "names" not in options.without:
            self.sources.names = names
            self.bucket.watch.append(
                NamesAuditor(self.bucket, self.sources, self.auditor.find, self.auditor.lost_intents).changed
            )
        self.bucket.watch_abort = uploads.aborted
        self.catalog.watch = self.auditor.published
        acts = frozenset({"vanish", "stranger"}) - options.without if self.is_quarrel else frozenset()
        self.world = World(rng, self.network, self.bucket, self.catalog, self.auditor, options.without, acts)
        scheduler.on_step = self.world.act
        # The library writes no tables of format version 3.
        merged = {
            (own.schema_name, own.name): f"{lake.pipeline}/{own.id}"
            for lake in self.lakes
            if lake.is_merged and getattr(lake.spec.catalog, "format_version", 2) == 2
            for own in lake.spec.tables
        }
        if merged and "engine" not in options.without:
            self.world.engine = ForeignEngine(seed, self.bucket, self.catalog, self.sources, merged)
            self.auditor.merged.engine = self.world.engine
        self.streams = {
            lake.pipeline: [Stream(lake.narrow(own), self.sources) for own in lake.spec.named_tables]
            for lake in self.lakes
            if lake.is_streamed
        }
        # Two machines with one checkpoint, or one that was put back from a backup and one that was not.
        self.has_copies = rng.random() < 0.5 and "copies" not in options.without
        self.folder = tempfile.TemporaryDirectory()
        self.place = Path(self.folder.name)
        self.inputs = {
            lake.pipeline: Inputs(lake, self.sources, self.place, seed)
            for lake in self.lakes
            if lake.kind == "messages"
        }
        for lake in self.lakes:
            if lake.kind == "deduped":
                self.inputs[lake.pipeline] = DedupedInputs(lake, self.sources, self.place, seed, bucket=self.bucket)
        for lake in self.lakes:
            if lake.kind == "connector":
                connector = Connector(lake, self.sources, seed, self.world.met)
                connector.check = partial(self.auditor.syncs.given, lake.pipeline)
                self.simulation.connectors[lake.pipeline] = connector
        self.changes = Changes(self.lakes, seed, self.world.met, options.without)
        self.hands = Hands(self.simulation, self.world, seed)
        self.jobs: dict[str, list[str]] = {lake.pipeline: [] for lake in self.lakes}
        self.failures = Failures(self)
        self.number = 0
        # As a continuous run does, or a person who has taken a table out of the file for a while.
        self.is_narrow = rng.random() < 0.3 and "narrow" not in options.without
        # A stream of chance of its own: the histories without writers stay what they were.
        self.writers = random.Random(f"writers of {seed}")
        self.has_writers = self.writers.random() < 0.2 and "writers" not in options.without
        self.is_adopting = not self.has_copies and self.writers.random() < 0.4 and "adopt" not in options.without
        self.losses = Losses(self, seed)
        self.epochs = random.Random(f"epochs of {seed}")
        self.jumps = random.Random(f"jumps of {seed}")
        self.undos, self.replays = Undos(self, seed), Replays(self, seed)
        self.hand_overs = HandOvers(self, seed)
        self.is_calm, self.calm = False, Calm(self)

    def play(self) -> Told:
        """The storm, the calm, the audit."""
        with self.folder, contextlib.chdir(self.place), running(self.simulation):
            try:
                self._storm()
                self.calm.play()
                self.auditor.judge(is_answered=self.network.is_answered)
                self.hand_overs.play()
            except Stuck as error:
                self.auditor.find(f"stuck: {error}")
            except Exception as error:  # noqa: BLE001 - the seed is told, and the others are played
                self.auditor.find(f"the simulation fails: {type(error).__name__}: {error} {_where(error)}")
        for text in self.auditor.findings:
            self.network.note(text)
        return Told(
            seed=self.seed,
            kind=self.lakes[0].kind,
            digest=self.network.digest,
            findings=self.auditor.findings,
            story=self.network.story or [],
            met=self.network.met + self.world.met,
            calls=self.network.calls,
            uploads_left=len(list(list_uploads_left(self.bucket, self.auditor.places, self.auditor.books))),
        )

    # -- the storm

    def _storm(self) -> None:
        rng, spread = self.rng, self.rng.choice([0.1, 0.5, 1.5, 4.0, 60.0])
        if len(self.network.weather.stalls) > len(Weather.stalls) and rng.random() < 0.5:
            spread = self.network.weather.stalls[-1]
        # Some histories are those of a scheduler that starts one load again and again.
        is_crowd = self.is_quarrel or rng.random() < 0.25
        names = [f"J{number}" for number in range(1 if is_crowd else rng.randint(1, 3))]
        lakes = [rng.choice(self.lakes)] if is_crowd else self.lakes
        for _ in range(rng.randint(4, 8) if is_crowd else rng.randint(2, 6)):
            lake = rng.choice(lakes)
            self.spawn(self._chosen(lake, rng.choice(names)), rng.random() * spread, lake)
        if self.undos.are_some:
            self.undos.spawn(lakes, names, spread * 2)
        self.undos.spawn_compactions(lakes, spread * 2)
        self.undos.spawn_upkeep(lakes, spread * 2)
        self.replays.spawn(lakes, spread * 2)
        self.losses.spawn(lakes, spread * 2)
        self.simulation.scheduler.run()

    def _chosen(self, lake: Lake, job: str) -> Callable[[], None]:
        rng = self.rng
        if rng.random() < 0.2 and "hands" not in self.options.without:
            self.world.met["hands"] += 1
            return self.hands.draw(rng, lake, job)
        if lake.is_streamed:
            if self.is_adopting and self.writers.random() < 0.5:
                return self._draw_adoption(lake)
            return lambda: self.stream(lake, rng.randint(1, 3))
        if job not in self.jobs[lake.pipeline]:
            self.jobs[lake.pipeline].append(job)
        own = self._narrowed(lake)
        return lambda: self.attempt(own, job)

    def _draw_adoption(self, lake: Lake) -> Callable[[], None]:
        """A load of its own on a table that batches are loaded into, or a person's word that it may be."""
        if self.writers.random() < 0.5:
            self.world.met["hands"] += 1
            return self.hands.draw_adoption(lake)
        return lambda: self.attempt(lake, f"alone-{self.number}")

    def _narrowed(self, lake: Lake) -> Lake:
        """The pipeline with one of its tables only, sometimes."""
        tables = lake.spec.named_tables
        if not self.is_narrow or lake.kind == "connector" or len(tables) == 1 or self.rng.random() < 0.4:
            return lake
        return lake.narrow(self.rng.choice(tables))

    def spawn(self, body: Callable[[], object], delay: float, lake: Lake) -> None:
        self.number += 1
        skewed = "skew" not in self.options.without and self.rng.random() < 0.2
        skew = timedelta(seconds=self.rng.uniform(-30, 30)) if skewed else timedelta(0)
        skew += self._jump()
        process = Process(f"{lake.pipeline}#{self.number}", skew)

        def carefully() -> None:
            try:
                body()
            except (LakeError, Killed, Stuck):
                raise
            except Exception as error:  # noqa: BLE001 - that is a finding
                self.auditor.find(f"crash of {lake.kind}: {type(error).__name__}: {error} {_where(error)}")

        self.simulation.scheduler.spawn(process, carefully, delay)

    def _jump(self) -> timedelta:
        """How far a machine's clock has jumped; a store of Amazon's does not serve a machine whose clock is off."""
        is_apart = self.bucket.store.is_lenient and "jump" not in self.options.without and not self.is_calm
        if not is_apart or self.jumps.random() > 0.15:
            return timedelta(0)
        self.world.met["jump"] += 1
        return timedelta(days=self.jumps.choice([-400, -40, -2, -0.1, 0.1, 2, 29, 40, 400]))

    def attempt(self, lake: Lake, job: str) -> None:
        lake = self.changes.choose_streams(self.replays.correct(lake), job)
        self.world.met["new files"] += any(table.read.new_files for table in lake.spec.tables)
        writable = make_writable(lake) if self.has_writers and self.writers.random() < 0.6 else None
        if writable is not None:
            for table in writable.spec.tables:
                self._write(writable.narrow(table), job)
            written = {table.id for table in writable.spec.tables}
            for table in lake.spec.tables:
                if table.id not in written:
                    self._load(lake.narrow(table), job)
            return
        if lake.pipeline not in self.inputs:
            self._load(self._in_epoch(lake), job)
            return
        spec, ways = self.inputs[lake.pipeline].spec_for(job, self.rng, whole=self.is_calm)
        self.world.met.update(ways)
        self._load(replace(lake, spec=spec), job)

    def _load(self, lake: Lake, job: str, **options: Any) -> RunReport | None:
        process = self.simulation.process
        process.job = job
        clients = SimulatedClients(lake.spec.access, self.simulation)
        session = Session(self.sources, lake.pipeline, job, process.name)
        self.network.note(f"{process} begins {job}")
        try:
            report = load(lake.spec, job_id=job, clients=clients, spark=session, **options)  # type: ignore[arg-type]
        except Killed:
            self.network.note(f"{process} was killed")
            raise
        except LakeError as error:
            self.network.note(f"{process} ends {job}: {error}")
            self.failures.judge(lake, job, error.code, error.message)
            return None
        self.reported(lake, job, report)
        return report

    def _write(self, lake: Lake, job: str) -> None:
        """A load whose tasks Spark's writer runs."""
        self.world.met["writers"] += 1
        session = Session(self.sources, lake.pipeline, job, self.simulation.process.name)
        self.network.note(f"{self.simulation.process} begins to write {job}")
        try:
            report = Writer(self.simulation, lake.spec, job, session).write()
        except LakeError as error:
            self.network.note(f"{self.simulation.process} ends {job}: {error}")
            self.failures.judge(lake, job, error.code, error.message)
            return
        self.reported(lake, job, report)

    def reported(self, lake: Lake, job: str, report: RunReport) -> None:
        self.network.note(f"{self.simulation.process} ends {job}: {report.status}")
        for result in report.tables:
            name = result.id
            place = next(own for own in self.auditor.places if (own.pipeline, own.table) == (lake.pipeline, name))
            self.auditor.attempt_ended(place, job, report.attempt, result.status)
            if result.code is not None:
                self.network.note(f"{self.simulation.process} {name}: {result.code} {result.message}")
                self.failures.judge(lake, job, result.code, result.message or "", name)

    def stream(self, lake: Lake, batches: int, stream: Stream | None = None) -> None:
        clients = SimulatedClients(lake.spec.access, self.simulation)
        process, streams = self.simulation.process, self.streams[lake.pipeline]
        if stream is None:
            stream = self.rng.choice(streams)
            same = [own for own in streams if own.table.id == stream.table.id]
            if self.has_copies and len(same) < MOST_COPIES and self.rng.random() < 0.3:
                self.world.met["copies"] += 1
                streams.append(stream.copy())
                stream = self.rng.choice([*same, streams[-1]])
        if stream.is_lost:
            return
        found = lake if self.is_calm else self.changes.choose_file(lake)
        (table,) = (own for own in found.spec.tables if own.id == stream.table.id)
        own = self._in_epoch(found.narrow(table), " stream")
        stream.go(
            clients,
            batches,
            process.name,
            lambda job, micro: self._load(own, job, kind=micro),
        )

    def _in_epoch(self, lake: Lake, suffix: str = "") -> Lake:
        """The pipeline with the epoch that a person gave its change events when the last snapshot was begun; some
        processes have the file of before."""
        tables, epochs = [], dict[str, int]()
        for table in lake.spec.tables:
            if table.envelope is not None:
                name = f"{lake.pipeline}/{table.history_of or table.id}"
                if name not in epochs:
                    is_late = self.epochs.random() < 0.2
                    epoch = self.sources.events.find_epoch(name, self.sources.rows.get(f"{name}{suffix}", 0) + 1)
                    epochs[name] = max(0, epoch - is_late)
                events = table.envelope.model_copy(update={"epoch": epochs[name]})
                table = table.model_copy(update={"envelope": events})
            tables.append(table)
        return replace(lake, spec=lake.spec.model_copy(update={"tables": tuple(tables)}))

    def alone(self, body: Callable[[], None], lake: Lake) -> None:
        self.network.scheduler.now_us += int(self.rng.random() * 5e6)
        self.spawn(body, 0, lake)
        self.simulation.scheduler.run()


def _where(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/lakewriter/" in frame.filename]
    return f"at {frames[-1].name}" if frames else ""


def play(seed: int, options: Options) -> Told:
    """One whole history."""
    assert Here.now is None
    return History(seed, options).play()
