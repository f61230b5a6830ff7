"""Tables with a quarantine: corrected while loads run, and replayed by several at once."""

import random
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from lakewriter.cli.replay_view import WantedReplay, plan_replay
from lakewriter.commit.pipeline import Pipeline
from lakewriter.errors import LakeError
from lakewriter.run.loader import load
from lakewriter.spec.expectations import Range
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec
from tests.simulation.books import is_undo
from tests.simulation.kept_rows import level_of
from tests.simulation.lakes import Lake
from tests.simulation.simulated import SimulatedClients
from tests.simulation.source import Session

if TYPE_CHECKING:
    from tests.simulation.history import History

CHECKS: Final = ("on_bad_row", "range.grade")
MOST_CORRECTIONS: Final = 2
"""Rows of the level after it fit no table."""
TRIES: Final = 6


@dataclass(frozen=True)
class Context:
    """What the command's context has of a pipeline."""

    spec: Spec
    clients: SimulatedClients

    def require_table(self, table_id: str) -> None:
        """The simulation names tables that are there."""


class Replays:
    """Those of one history; ``jobs`` are the job ids of replays by pipeline."""

    def __init__(self, history: "History", seed: int) -> None:
        self.history, self.rng = history, random.Random(f"replays of {seed}")
        self.are_some = history.lakes[0].kind == "quarantine"
        self.jobs: dict[str, list[str]] = {lake.pipeline: [] for lake in history.lakes}
        self._level = 0
        self._is_tolerant = False

    def correct(self, lake: Lake) -> Lake:
        """The pipeline as its file says it by now."""
        if not self.are_some:
            return lake
        tables = tuple(self._correct_table(table) for table in lake.spec.tables)
        return replace(lake, spec=lake.spec.model_copy(update={"tables": tables}))

    def _correct_table(self, table: TableSpec) -> TableSpec:
        assert table.on_bad_row is not None
        expect = tuple(
            each.model_copy(update={"at_most": str(self._level)}) if isinstance(each, Range) else each
            for each in table.expect
        )
        most = 1.0 if self._is_tolerant else table.on_bad_row.at_most
        rule = table.on_bad_row.model_copy(update={"at_most": most})
        return table.model_copy(update={"expect": expect, "on_bad_row": rule})

    def is_excess(self, code: str, message: str) -> bool:
        """Whether a load ends with more bad rows than its table takes, which a person then lets it have."""
        if not self.are_some or self._is_tolerant:
            return False
        is_so = "on_bad_row" in message and code in {"SOURCE_FAILED", "EXPECTATION_FAILED"}
        self.history.world.met["excess"] += is_so
        return is_so

    def spawn(self, lakes: list[Lake], spread: float) -> None:
        """A few replays and corrections, at some time within ``spread`` seconds."""
        if not self.are_some:
            return
        for _ in range(self.rng.choice([0, 1, 1, 2])):
            self.history.spawn(self._mend, self.rng.random() * spread, lakes[0])
        if self.rng.random() < 0.2 and "hands" not in self.history.options.without:
            for _ in range(self.rng.randint(1, 4)):
                lake = self.rng.choice(lakes)
                self.history.spawn(partial(self._abandon, lake), self.rng.random() * spread, lake)
        # Where none is replayed, loads are undone.
        for _ in range(self.rng.choice([0, 0, 1, 2, 4])):
            lake = self.rng.choice(lakes)
            table = self.rng.choice(lake.spec.tables)
            # Several begin at the same moment, as people who look at one page do.
            times, at = self.rng.choice([1, 1, 2, 3]), self.rng.random() * spread
            for _ in range(times):
                self.history.spawn(partial(self._replay, lake, table.id), at, lake)

    def _mend(self) -> None:
        if self._level < MOST_CORRECTIONS:
            self._level += 1
            self.history.world.met["correction"] += 1

    def _abandon(self, lake: Lake) -> None:
        """Give up a replay that is under way, if one is."""
        if jobs := self.jobs[lake.pipeline]:
            self.history.world.met["hands"] += 1
            self.history.hands.draw_abandon(lake, self.rng.choice(jobs[-2:]))()

    def _replay(self, lake: Lake, table_id: str, *, whole: bool = False) -> bool:
        """Whether it is done."""
        history, spec = self.history, self.correct(lake).spec
        check = self.rng.choice(CHECKS) if not whole and self.rng.random() < 0.5 else None
        since = self._choose_load(lake, table_id) if not whole and self.rng.random() < 0.3 else None
        clients = SimulatedClients(spec.access, history.simulation)
        process, context = history.simulation.process, Context(spec, clients)
        try:
            replay = plan_replay(context, WantedReplay(table_id, check, since))  # type: ignore[arg-type]
            if not replay.files:
                return True
            job = replay.job_id
            if job not in self.jobs[lake.pipeline]:
                self.jobs[lake.pipeline].append(job)
            history.world.met["replay"] += 1
            history.network.note(f"{process} begins {job}: {check} {since} at {level_of(replay.table)}")
            control = Pipeline.open(spec, clients).controls[table_id]
            session: Any = Session(history.sources, lake.pipeline, job, process.name)
            report = load(
                replay.make_spec(), job_id=job, clients=clients, spark=session, kind=replay.make_kind(control)
            )
        except LakeError as error:
            history.network.note(f"{process} ends its replay: {error}")
            history.failures.judge(lake, "its replay", error.code, error.message)
            return False
        history.reported(lake, job, report)
        history.world.met[f"replay: {report.status}"] += 1
        return report.status == "done"

    def _choose_load(self, lake: Lake, table_id: str) -> str | None:
        """One that is done, by its report."""
        place = self._find_place(lake, table_id)
        done = [job for job, _ in self.history.auditor.books[place.state].commits if not is_undo(job)]
        kept = [job for job in done if not any(f"/loads/{job}/" in key for key in self.history.auditor.swept)]
        return self.rng.choice(kept) if kept else None

    def _find_place(self, lake: Lake, table_id: str) -> Any:
        return next(
            own for own in self.history.auditor.places if (own.pipeline, own.table) == (lake.pipeline, table_id)
        )

    def begin_calm(self) -> None:
        """From now on a load may have as many bad rows as there are."""
        self._is_tolerant = self.history.auditor.quarantines.is_calm = True

    def finish(self, *, perhaps: bool = False) -> None:
        """Replay all that every table has kept, perhaps corrected once more; what fits is then in the table.

        Where that is done only ``perhaps``, it is one time in three: what was replayed is not undone any more.
        """
        if not self.are_some or (perhaps and self.rng.random() > 1 / 3):
            return
        if self.rng.random() < 0.5:
            self._mend()
        for lake in self.history.lakes:
            for table in lake.spec.tables:
                self._finish_table(lake, table.id)

    def _finish_table(self, lake: Lake, table_id: str) -> None:
        done: list[bool] = []
        for _ in range(TRIES):
            self.history.alone(lambda: done.append(self._replay(lake, table_id, whole=True)), lake)
            if done[-1:] == [True]:
                self.history.auditor.quarantines.judge_replayed(self._find_place(lake, table_id), self._level)
                return
        self.history.auditor.find(f"{lake.pipeline}/{table_id} is not replayed after {TRIES} calm tries")
