"""What people do by hand while loads run."""

import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control, open_control
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.resets import begin_backfill
from lakewriter.commit.retention import sweep
from lakewriter.errors import LakeError
from lakewriter.naming import ControlKeys
from lakewriter.operate import rebuild as rebuilding
from lakewriter.operate import repair
from lakewriter.operate.compaction import Compaction
from lakewriter.operate.expiry import Expiry
from lakewriter.operate.lost_intent import abandon_without_intent
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.operate.upkeep import TableMaintenance
from lakewriter.operate.verification import verify
from lakewriter.shape.cursor import parse_cursor
from lakewriter.spec.maintenance import Maintenance
from lakewriter.spec.table_spec import TableSpec
from tests.simulation.audit import ORPHANED
from tests.simulation.books import Place, parsed
from tests.simulation.lakes import Lake
from tests.simulation.simulated import SimulatedClients, Simulation
from tests.simulation.world import World


class Hands:
    """Abandon, reset, backfill, adopt, rebuild, verify, files that count as read, and an early sweep."""

    def __init__(self, simulation: Simulation, world: World, seed: int) -> None:
        self.simulation, self.world = simulation, world
        self._chance = random.Random(f"twice of {seed}")

    def draw(self, rng: random.Random, lake: Lake, job: str) -> Callable[[], None]:
        """One of them."""
        acts = [lambda: self._abandon(lake, job), lambda: self._abandon(lake, job), lambda: self._sweep(lake)]
        if any(table.cursor for table in lake.spec.tables):
            # Back, forward, or beyond all rows; how far is chosen when it is done.
            acts += [lambda: self._reset(lake), lambda: self._reset(lake, rng.randint(-1, 8))]
        if any(table.read.new_files for table in lake.spec.tables):
            acts += [lambda: self._note_files(lake, rng.choice(["noted", "read", "unread"]))] * 2
        if lake.kind == "estuary":
            acts.append(lambda: self._backfill(lake))
        if self.world.has_months:
            acts += [lambda: self._sweep(lake)] * 4
        return self._carefully(rng.choice(acts))

    def draw_abandon(self, lake: Lake, job: str) -> Callable[[], None]:
        """Give one load up."""
        return self._carefully(lambda: self._abandon(lake, job))

    def draw_end(self, lake: Lake, job: str) -> Callable[[], None]:
        """End a load without its intent."""
        return self._carefully(lambda: self._end_lost(lake, job))

    def draw_adoption(self, lake: Lake) -> Callable[[], None]:
        """Let batches and loads of their own follow one another."""
        return lambda: self.adopt(lake)

    def draw_undo(self, rng: random.Random, lake: Lake, job: str) -> Callable[[], None]:
        """Take a load back, one that stands for it or one after it with it."""
        job = rng.choice([job, job, f"{job}.r2"])
        keep, through = rng.random() < 0.2, rng.random() < 0.3
        tables = [table.id for table in lake.spec.tables]
        chosen = (rng.choice(tables),) if len(tables) > 1 and rng.random() < 0.5 else ()
        return self._carefully(lambda: self._undo(lake, job, chosen, keep_cursor=keep, through=through))

    def draw_compaction(self, lake: Lake) -> Callable[[], None]:
        """Compact each table."""
        return self._carefully(lambda: self._compact(lake))

    def draw_upkeep(self, lake: Lake) -> Callable[[], None]:
        """Expire the snapshots of each table, however young, and delete its orphans."""
        return self._carefully(lambda: self._keep_up(lake))

    def _carefully(self, act: Callable[[], Any]) -> Callable[[], None]:
        """Do it, and now and then once more, as a person does who has not seen how it ended."""

        def carefully() -> None:
            for _ in range(2 if self._chance.random() < 0.3 else 1):
                try:
                    act()
                except LakeError as error:
                    self.simulation.network.note(f"{self.simulation.process} ends: {error}")

        return carefully

    def _controls(self, lake: Lake) -> tuple[dict[str, Control], SimulatedClients]:
        clients = SimulatedClients(lake.spec.access, self.simulation)
        store, keys = S3Store(clients), ControlKeys(lake.spec.access.prefix, lake.pipeline)
        controls = {table.id: Control(store, keys, table.id) for table in lake.spec.tables}
        for table in lake.spec.tables:
            controls[table.id].latest = table.latest
        return controls, clients

    def _abandon(self, lake: Lake, job: str) -> None:
        controls, clients = self._controls(lake)
        told = repair.abandon(controls, job, "a drill", clients)
        self.simulation.network.note(f"{self.simulation.process} abandoned {job}: {told}")
        for table_id in told:
            self._believe(
                lake, table_id, f"{job} is not pending", lambda state: (state["pending"] or {}).get("job_id") != job
            )

    def _end_lost(self, lake: Lake, job: str) -> None:
        """End a load whose intent is gone in a table; the others go on by what theirs say."""
        clients = SimulatedClients(lake.spec.access, self.simulation)
        told = abandon_without_intent(Pipeline.open(lake.spec, clients).controls, job, "a drill")
        self.world.met["intent-lost"] += 1
        self.simulation.network.note(f"{self.simulation.process} ended {job} without its intent: {told}")

    def _undo(self, lake: Lake, job: str, tables: Sequence[str], *, keep_cursor: bool, through: bool) -> None:
        """Of the load and, where it goes through, of later ones; each of them is asked for again under its next id.
        In all its tables, or in those chosen."""
        clients = SimulatedClients(lake.spec.access, self.simulation)
        pipeline = Pipeline.open(lake.spec, clients)
        self.world.met["undo"] += 1
        self.world.met["undo of one table"] += bool(tables)
        if keep_cursor:
            for table in lake.spec.tables:
                self.world.auditor.allow_gap(lake.pipeline, table.id)
        choices = Choices("a drill", keep_cursor=keep_cursor)
        for undoing in Undo(pipeline, job, choices, tables=tables, through=through).run():
            what = undoing.plan.view if undoing.plan is not None else "undone already"
            self.world.met[f"undo: {what}"] += 1
            self.simulation.network.note(
                f"{self.simulation.process} undid {undoing.job_id} of {undoing.table_id}: {what}"
            )
            self._believe_undone(lake, undoing.table_id, undoing.job_id)

    def _believe_undone(self, lake: Lake, table_id: str, job: str) -> None:
        """A person who was told that a load is undone takes it for that."""
        place = self._find_place(lake, table_id)
        report = f"{place.root}/loads/undo.{job}/{table_id}.report.json"
        self._believe(
            lake,
            table_id,
            f"{job} is undone",
            lambda state: (
                job in {load["job_id"] for load in state.get("undone", ())}
                or report in self.world.bucket.objects
                or report in self.world.auditor.swept
            ),
        )

    def _find_place(self, lake: Lake, table_id: str) -> Place:
        places = self.world.auditor.places
        return next(place for place in places if (place.pipeline, place.table) == (lake.pipeline, table_id))

    def _believe(self, lake: Lake, table_id: str, what: str, is_so: Callable[[dict[str, Any]], bool]) -> None:
        """Compare the state with what a command has said by its exit code, in the moment in which it ends."""
        stored = self.world.bucket.objects.get(self._find_place(lake, table_id).state)
        if stored is not None and not is_so(parsed(stored)):
            self.world.auditor.find(f"{lake.pipeline}/{table_id}: a command has said that {what}, and it is not so")

    def _compact(self, lake: Lake) -> None:
        clients = SimulatedClients(lake.spec.access, self.simulation)
        for table in lake.spec.tables:
            report = Compaction(Pipeline.open(lake.spec, clients), table, budget=2**30).run()
            if report is not None and report.compacted is not None:
                self.world.met["compacted"] += 1
                self.world.met["compacted: dropped"] += bool(report.compacted.dropped)
                self.simulation.network.note(f"{self.simulation.process} compacted: {report.compacted.describe()}")

    def _keep_up(self, lake: Lake) -> None:
        clients, rules = (
            SimulatedClients(lake.spec.access, self.simulation),
            Maintenance(delete_orphans_days=ORPHANED.days),
        )
        pipeline = Pipeline.open(lake.spec.model_copy(update={"maintenance": rules}), clients)
        for table in lake.spec.tables:
            report = Expiry(pipeline, table, days=-1, keep=self._chance.choice([1, 1, 2])).run()
            if report is not None and report.expired is not None:
                self.world.met["expired"] += 1
                self.world.met["expired: files"] += bool(report.expired.files)
                self.simulation.network.note(f"{self.simulation.process} expired: {report.expired.describe()}")
            orphans = TableMaintenance(pipeline, 2**30).run(table).orphans
            self.world.met["orphans"] += bool(orphans and orphans.entries)

    def _reset(self, lake: Lake, value: int | None = None) -> None:
        """Take the cursors away, or set them to a value."""
        controls, _ = self._controls(lake)
        cursor = None if value is None else parse_cursor("int64", str(value))
        for table in lake.spec.tables:
            if table.cursor is not None:
                self.world.met["reset"] += 1
                repair.reset_cursor(controls[table.id], cursor, "a drill")

    def _note_files(self, lake: Lake, which: str) -> None:
        """Say which files of a folder count as read: those that are noted, all that are there, or none."""
        controls, _ = self._controls(lake)
        for table in lake.spec.tables:
            if table.read.new_files:
                sources = self.world.auditor.sources
                there = sources.find_folder(lake.pipeline, table.id).list_files(is_calm=sources.is_calm)
                self.world.met[f"files {which}"] += 1
                files = {"noted": None, "read": there, "unread": ()}[which]
                repair.reset_files(controls[table.id], files, "a drill")

    def note_files(self, lake: Lake) -> None:
        """Do what a load that does not know which files were read has asked for."""
        self._carefully(lambda: self._note_files(lake, "unread"))()

    def begin_anew(self, lake: Lake) -> None:
        """Have every stream of a connector read from its beginning."""
        controls, _ = self._controls(lake)
        self.world.met["begun anew"] += 1
        for control in controls.values():
            self._carefully(partial(repair.reset_cursor, control, None, "a drill"))()

    def adopt(self, lake: Lake) -> None:
        """Let batches and loads of their own follow one another."""
        controls, _ = self._controls(lake)
        self.world.met["adopt"] += 1
        for control in controls.values():
            # One table may have no loads yet, and be refused, before the next has some.
            self._carefully(partial(repair.change_over, control, "a drill"))()

    def _backfill(self, lake: Lake) -> None:
        controls, _ = self._controls(lake)
        for control in controls.values():
            begin_backfill(control, "a drill")

    def rebuild(self, lake: Lake, table: TableSpec, *, from_start: bool) -> None:
        """Of a state that is gone; who lost it of a table without a record that tells the cursor says so."""
        clients = SimulatedClients(lake.spec.access, self.simulation)
        control = open_control(lake.spec, table, S3Store(clients))
        catalog = rebuilding.ask_catalog(lake.spec, table, clients)
        rebuilding.rebuild(control, table, catalog, "a drill", None, from_start=from_start)
        self.simulation.network.note(f"{self.simulation.process} rebuilt the state of {table.id}")

    def verify(self, lake: Lake, job: str) -> list[str]:
        """What the product finds of a load that is not as it left it."""
        controls, clients = self._controls(lake)
        return [f"{own.table}: {own.code}: {own.message}" for own in verify(controls, job, clients).differences]

    def _sweep(self, lake: Lake) -> None:
        """As at the end of a run, of what is a moment old: only what no state names may go."""
        controls, _ = self._controls(lake)
        self.world.auditor.is_swept_early = True
        sweep(next(iter(controls.values())), self.simulation.scheduler.now, timedelta(days=30))
