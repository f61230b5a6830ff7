"""A change of a table that stops at one moment, what a person does then, and what becomes of it."""

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from lakewriter.cli.replay_view import WantedReplay, plan_replay
from lakewriter.commit.control import Control
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.recover import recover
from lakewriter.errors import LakeError
from lakewriter.operate import rebuild as rebuilding
from lakewriter.operate import repair
from lakewriter.operate.compaction import Compaction
from lakewriter.operate.expiry import Expiry
from lakewriter.operate.lost_intent import abandon_without_intent
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.operate.verification import verify_all
from lakewriter.records.state import TableState
from lakewriter.run import prepare as preparing
from lakewriter.run.loader import load
from lakewriter.spec.expectations import Range
from lakewriter.spec.load_ids import make_compaction_job_id, make_expiry_job_id
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec
from tests.simulation.bucket import Bucket
from tests.simulation.connectors import Connector
from tests.simulation.events import Events
from tests.simulation.glue import Catalog
from tests.simulation.kept_rows import Defect, Marks
from tests.simulation.lakes import BUCKET, COLUMNS, EVENTS, GRADED, PROPERTIES, Lake, make_lake
from tests.simulation.places import places_of
from tests.simulation.readers import Readers
from tests.simulation.replays import Context
from tests.simulation.scheduler import Killed, Process, Scheduler
from tests.simulation.simulated import SimulatedClients, Simulation
from tests.simulation.source import Session, Sources
from tests.simulation.stand_ins import running
from tests.simulation.streams import Stream
from tests.simulation.weather import Network, Weather

Act = Callable[[SimulatedClients], Any]
Call = tuple[str, str]
REASON: Final = "a drill"


def _supaflow(**more: Any) -> dict[str, Any]:
    place = {"s3_bucket_name": BUCKET, "bucket_region": "us-east-1", "s3_path_prefix": "data"}
    return {"type": "supaflow-s3-data-lake", **place, "partition_strategy": "SYNC_ID", **more}


def _read(columns: str = COLUMNS) -> dict[str, Any]:
    return {"format": "csv", "path": "users.csv", "columns": columns}


def _make(destination: dict[str, Any], table: dict[str, Any], kind: str = "files", **top: Any) -> Lake:
    entry = {"table": "users", "schema": "public", "read": _read()} | table
    return make_lake(kind, "flights", destination, [entry], **top)


_OWN: Final = {"type": "lakewriter-s3", "location": f"s3://{BUCKET}/data", "region": "us-east-1"}
_AIRBYTE: Final = {
    "type": "airbyte-s3", "s3_bucket_name": BUCKET, "s3_bucket_path": "data", "s3_bucket_region": "us-east-1",
    "s3_path_format": "${NAMESPACE}/${STREAM_NAME}/", "format": {"format_type": "Parquet"},
}  # fmt: skip
_PATH: Final = "${NAMESPACE}/${STREAM_NAME}/${EPOCH}_"
_ESTUARY: Final = {
    "type": "estuary-s3-parquet",
    "bucket": BUCKET,
    "region": "us-east-1",
    "uploadIntervalInSeconds": 300,
}
_BINDING: Final = {
    "table": "orders", "source": "acme/orders", "resource": {"pathPrefix": "data/orders"}, "primary_key": ["id"],
    "read": {"format": "json", "path": "orders", "columns": COLUMNS},
}  # fmt: skip
_QUARANTINE: Final = {
    "read": _read(GRADED), "on_bad_row": {"action": "quarantine", "at_most": 1.0},
    "expect": [{"range": {"column": "grade", "at_most": 0}, "on_violation": "quarantine"}],
}  # fmt: skip


def _make_merged() -> Lake:
    table = {"mode": "merge", "read": _read(EVENTS), "primary_key": ["key"], "order_by": ["at"]}
    return _make(_OWN | {"catalog": "iceberg"}, table, "merged")


LAKES: Final[Mapping[str, Callable[[], Lake]]] = {
    "append": lambda: _make(_supaflow(update_aws_glue_catalog=True), {"cursor": "id"}),
    "overwrite": lambda: _make(_AIRBYTE, {"mode": "overwrite"}),
    "refresh": lambda: _make(_OWN | {"catalog": "glue"}, {"mode": "refresh"}),
    "replace partitions": lambda: _make(
        _OWN | {"catalog": "iceberg"}, {"mode": "replace_partitions", "partition_by": ["id"]}
    ),
    "undo": lambda: _make(_supaflow(update_aws_glue_catalog=True), {"cursor": "id"}),
    "undo of a refresh": lambda: _make(_OWN | {"catalog": "glue"}, {"mode": "refresh"}),
    "replay": lambda: _make(_supaflow(), _QUARANTINE),
    "merge": _make_merged,
    "compaction": _make_merged,
    "expiry": _make_merged,
    "micro-batch": lambda: make_lake("batches", "flights", _ESTUARY, [_BINDING], checkpoint="checkpoint"),
}
"""A pipeline of one table for each kind of change."""
TOGETHER: Final = "streams together"
"""A sync of two streams whose connector has one state for both."""


def _make_streams() -> Lake:
    streams = [
        {"stream": {"name": name, "namespace": "public", "json_schema": {"type": "object", "properties": PROPERTIES}}}
        | {"destination_sync_mode": "append", "sync_mode": "incremental"}
        for name in ("orders", "users")
    ]
    source = {"streams": streams, "command": ["source-simulated", "flights", "orders,users"]}
    return make_lake("connector", "flights", _AIRBYTE | {"s3_path_format": _PATH}, [], source=source)


def _is_state_write(call: Call) -> bool:
    return call[0] == "PutObject" and call[1].endswith("state.json")


def is_before_write(number: int) -> Callable[[list[Call]], bool]:
    """Whether the state is about to be replaced for the ``number``-th time by a process."""
    return lambda calls: _is_state_write(calls[-1]) and sum(map(_is_state_write, calls)) == number


def is_behind_write(number: int) -> Callable[[list[Call]], bool]:
    """Whether the state was replaced ``number`` times."""
    return lambda calls: sum(map(_is_state_write, calls[:-1])) == number


def is_before_report(calls: list[Call]) -> bool:
    """Whether the table's report is about to be written."""
    return calls[-1][0] == "PutObject" and calls[-1][1].endswith("report.json")


class Drill:
    """One table with a load that is committed, and a ``kind`` of change after it."""

    def __init__(self, kind: str) -> None:
        rng = random.Random(kind)
        self.lake = _make_streams() if kind == TOGETHER else LAKES[kind]()
        self.kind, self.scheduler = kind, Scheduler(rng, 0)
        self.network = Network(self.scheduler, Weather())
        self.bucket, catalog = Bucket(lambda: self.scheduler.now, 1000), Catalog()
        marks = Marks(rng)
        self.sources = Sources(rng, marks, Events(0))
        # The first row of every reading is bad until the table is corrected.
        marks.rows = {f"flights/{self.table.id}": [Defect("check", 1), *[None] * 50]}
        self.simulation = Simulation(0, self.scheduler, self.network, self.bucket, catalog)
        self.simulation.bounds = type(self.simulation.bounds)()
        places = places_of(self.lake)
        self.place = places[0]
        if kind == TOGETHER:
            connector = Connector(self.lake, self.sources, 0, Counter(), kind="global", is_whole=True)
            connector.log = ["orders", "users", "orders"]
            self.simulation.connectors["flights"] = connector
        else:
            self.stream = Stream(self.lake, self.sources)
        self._processes, self._replayed = 0, ""
        self.faults: list[str] = []
        readers = Readers(self.bucket, catalog, self.sources, places, (), self.faults.append)
        self.list_visible = lambda: sum((readers.list_visible()[place.state] for place in places), Counter())

    @property
    def table(self) -> TableSpec:
        """The only one, or the first."""
        return self.lake.spec.tables[0]

    @property
    def job_id(self) -> str:
        """The job id of the change."""
        if self.kind == "micro-batch":
            return "stream-q1-0000000001"
        if self.kind == "replay":
            return self._replayed
        if self.kind == "compaction":
            return make_compaction_job_id(self.table.id, 3)
        if self.kind == "expiry":
            return make_expiry_job_id(self.table.id, 4)
        return "undo.b" if self.kind.startswith("undo") else "b"

    @property
    def loaded(self) -> str:
        """The load that an undo takes back."""
        if self.kind == "replay":
            return "a"
        return {"compaction": "b", "expiry": "c"}.get(self.kind) or self.job_id.removeprefix("undo.")

    def read_state(self) -> TableState | None:
        """The table's state."""
        stored = self.bucket.objects.get(self.place.state)
        return TableState.model_validate_json(stored.body) if stored is not None else None

    def prepare(self) -> None:
        """What is committed before the change."""
        self.change("a") if self.kind != "micro-batch" else self.change()
        if self.kind.startswith("undo") or self.kind in {"compaction", "expiry"}:
            self.change("b")
        if self.kind == "expiry":
            self.change("c")

    def change(self, job: str | None = None, *, kill: Callable[[list[Call]], bool] = lambda _: False) -> str:
        """Load ``job``, or without it make the change of the drill, in a process that dies before the call of which
        ``kill`` is true. Return how it ended."""
        return self.run(lambda clients: self._act(clients, job), kill=kill)

    def run(self, act: Act, *, kill: Callable[[list[Call]], bool] = lambda _: False) -> str:
        """Do something in a process of its own: what it returns as a text, ``killed``, or the code of its error."""
        self._processes += 1
        process, calls, call = Process(f"flights#{self._processes}"), list[Call](), self.network.call
        results: list[str] = []
        self.scheduler.now_us += 5_000_000
        for source in (f"flights/{self.table.id}", f"flights/{self.table.id} stream"):
            self.sources.grow(source, least=1)

        def watched(operation: str, what: str, apply: Callable[[], Any], count: Callable[[str], None]) -> Any:
            calls.append((operation, what))
            if self.simulation.process is process and kill(calls):
                process.killed = True
                raise Killed
            return call(operation, what, apply, count)

        def body() -> None:
            try:
                results.append(str(act(SimulatedClients(self.lake.spec.access, self.simulation))))
            except LakeError as error:
                results.append(error.code)

        # Rows of a partition come together: there are as many tasks as there are rows.
        clustered = patch.object(preparing, "_cluster_rows", lambda *_: None)
        with running(self.simulation), patch.object(self.network, "call", watched), clustered:
            fiber = self.scheduler.spawn(process, body)
            self.scheduler.run()
        if fiber.error is not None and not isinstance(fiber.error, Killed):
            raise fiber.error
        return results[0] if results else "killed"

    def _act(self, clients: SimulatedClients, job: str | None) -> str:
        pipeline = Pipeline.open(self.lake.spec, clients)
        if job is None and self.kind.startswith("undo"):
            Undo(pipeline, "b", Choices(REASON)).run()
            return "done"
        if job is None and self.kind == "replay":
            return self.replay(clients)
        if job is None and self.kind == "compaction":
            return self.compact(clients)
        if job is None and self.kind == "expiry":
            report = Expiry(pipeline, self.table, days=-1, keep=1).run()
            return "done" if report is not None else "nothing"
        if self.kind == "micro-batch":
            return self._stream(clients)
        return self._load(self.lake.spec, job or "b", clients)

    def _load(self, spec: Spec, job: str, clients: SimulatedClients, **options: Any) -> str:
        session: Any = Session(self.sources, "flights", job, self.simulation.process.name)
        tables = load(spec, job_id=job, clients=clients, spark=session, **options).tables
        return next((table.code for table in tables if table.code), tables[0].status)

    def _stream(self, clients: SimulatedClients) -> str:
        ends: list[str] = []

        def take(job: str, micro: Any) -> Any:
            session: Any = Session(self.sources, "flights", job, self.simulation.process.name)
            report = load(self.lake.spec, job_id=job, clients=clients, spark=session, kind=micro)
            ends.extend(table.code or table.status for table in report.tables)
            return report

        self.stream.go(clients, 1, "p", take)
        return ends[0]

    def replay(self, clients: SimulatedClients) -> str:
        """Replay the table's quarantine, once its rows fit."""
        expect = tuple(
            each.model_copy(update={"at_most": "1"}) if isinstance(each, Range) else each for each in self.table.expect
        )
        self.lake = replace(
            self.lake,
            spec=self.lake.spec.model_copy(update={"tables": (self.table.model_copy(update={"expect": expect}),)}),
        )
        context: Any = Context(self.lake.spec, clients)
        replay = plan_replay(context, WantedReplay(self.table.id, None, None))
        if not replay.files:
            return "nothing"
        self._replayed = replay.job_id
        kind = replay.make_kind(Pipeline.open(self.lake.spec, clients).controls[self.table.id])
        return self._load(replay.make_spec(), replay.job_id, clients, kind=kind)

    # -- what a person does

    def abandon(self, clients: SimulatedClients) -> str:
        """Give the change up."""
        controls = Pipeline.open(self.lake.spec, clients).controls
        return repair.abandon(controls, self.job_id, REASON, clients)[self.table.id]

    def abandon_lost(self, clients: SimulatedClients) -> str:
        """The same of one without its intent."""
        controls = Pipeline.open(self.lake.spec, clients).controls
        return abandon_without_intent(controls, self.job_id, REASON)[self.table.id]

    def reset(self, clients: SimulatedClients) -> str:
        """Take the cursor away."""
        repair.reset_cursor(self._open_settled(clients), None, REASON)
        return "done"

    def _open_settled(self, clients: SimulatedClients) -> Control:
        """The table once what is pending is finished, as the command has it."""
        pipeline = Pipeline.open(self.lake.spec, clients)
        recover(pipeline.first_control, pipeline.open_clients)
        return pipeline.first_control

    def adopt(self, clients: SimulatedClients) -> str:
        """Let another kind of load go on."""
        repair.change_over(self._open_settled(clients), REASON)
        return "done"

    def rebuild(self, clients: SimulatedClients) -> str:
        """Conclude the state."""
        control = Pipeline.open(self.lake.spec, clients).first_control
        catalog = rebuilding.ask_catalog(self.lake.spec, self.table, clients)
        rebuilding.rebuild(control, self.table, catalog, REASON, None, from_start=True)
        return "done"

    def undo(self, clients: SimulatedClients) -> str:
        """Take the load back."""
        undone = Undo(Pipeline.open(self.lake.spec, clients), self.loaded, Choices(REASON, keep_cursor=True)).run()
        return "done" if any(undoing.plan is not None for undoing in undone) else "nothing"

    def undo_again(self, clients: SimulatedClients) -> str:
        """Take the load back twice, as a person does who has not seen how it ended."""
        self.undo(clients)
        return self.undo(clients)

    def compact(self, clients: SimulatedClients) -> str:
        """Replace the table's files."""
        report = Compaction(Pipeline.open(self.lake.spec, clients), self.table, 2**30).run()
        return "done" if report is not None else "nothing"

    def verify(self) -> list[str]:
        """What differs from what the loads have left."""
        found: list[str] = []

        def act(clients: SimulatedClients) -> None:
            controls = Pipeline.open(self.lake.spec, clients).controls
            found.extend(each.message for one in verify_all(controls, clients) for each in one.differences)

        end = self.run(act)
        return found if end == "None" else [end]

    def lose(self, key: str) -> None:
        """Somebody deletes an object."""
        self.bucket.delete(key)

    def list_doubled(self) -> list[tuple[int, int]]:
        """Rows of one reading that readers see twice; of streams, rows of whatever reading."""
        seen = self.list_visible()
        if self.kind != TOGETHER:
            return [row for row, times in seen.items() if times > 1]
        rows = Counter[tuple[str, int]]()
        for (nonce, number), times in seen.items():
            rows[self.sources.readings[nonce].table, number] += times
        return [(0, number) for (_, number), times in rows.items() if times > 1]
