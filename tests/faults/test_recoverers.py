"""Two recoverers of one pending intent: one stands still at a call that changes something, the other goes on."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakewriter.aws import Clients
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.control import Control
from lakewriter.commit.data_store import reuse_clients
from lakewriter.commit.recover import recover
from lakewriter.naming import ControlKeys
from lakewriter.spec.specification import Spec
from tests.faults.books import EVENTS, SCHEMA
from tests.faults.gate import Gate
from tests.load.lakes import BUCKET, PREFIX, Lake, completes
from tests.load.syncs import SyncLake
from tests.support.call import Call

pytestmark = pytest.mark.spark

TABLE = f"{SCHEMA}.{EVENTS}"
FORWARD = ["complete", "complete", "uploaded", "database", "table", "partition", "report", "closed"]
BACKWARD = ["abort", "abort", "delete", "reason", "withdrawn"]


def changes(call: Call) -> bool:
    """Everything a recoverer does but look."""
    looks = call.method in ("GET", "HEAD") or call.action.startswith("glue:Get")
    return not looks


def cases(steps: list[str], *sample: int) -> list[object]:
    """Each step, come late or applied; those of ``sample`` in CI."""
    return [
        pytest.param(number, applied, id=f"{number} {step} {'applied' if applied else 'late'}",
                     marks=() if number in sample and not applied else pytest.mark.exhaustive)
        for number, step in enumerate(steps)
        for applied in (False, True)
    ]  # fmt: skip


class Recoverer:
    """A process's view of a table, through a gate of its own."""

    def __init__(self, spec: Spec, table_id: str, gate: Gate, environment: pytest.MonkeyPatch) -> None:
        own_endpoint = {"endpoint": gate.url} if spec.access.endpoint else {}
        clients = Clients(spec.access.model_copy(update=own_endpoint))
        with environment.context() as own:
            own.setenv("AWS_ENDPOINT_URL", gate.url)
            # Made here, since the environment is read when they are.
            assert clients.s3
            assert clients.glue
        self._control = Control(S3Store(clients), ControlKeys(spec.access.prefix, spec.pipeline), table_id)
        self._reach = reuse_clients(clients)

    def recover(self) -> None:
        """Leave nothing pending."""
        assert recover(self._control, self._reach).pending is None


def overtaken(
    lake: Lake | SyncLake, table_id: str, monkeypatch: pytest.MonkeyPatch, number: int, applied: bool
) -> None:
    """One recoverer stands still at its change of this number until another has ended."""
    stalled, overtook = threading.Event(), threading.Event()

    def stall() -> None:
        stalled.set()
        overtook.wait()

    with Gate(lake.aws.url) as gate, Gate(lake.aws.url) as other, ThreadPoolExecutor(1) as pool:
        gate.at(changes, stall, after=number, applied=applied)
        first, second = (Recoverer(lake.spec, table_id, each, monkeypatch) for each in (gate, other))
        ended = pool.submit(first.recover)
        try:
            assert stalled.wait(60)
            second.recover()
        finally:
            overtook.set()
        ended.result()


@pytest.mark.exhaustive
@pytest.mark.one_in(3)
@pytest.mark.parametrize(("number", "applied"), cases(FORWARD, 0, 2, 5))
def test_overtaken_while_publishing(events, monkeypatch, number, applied):
    events.lake.cut_off("a", completes)
    overtaken(events.lake, TABLE, monkeypatch, number, applied)
    assert events.audit(again=["a"]).left_uploads == {}


@pytest.mark.exhaustive
@pytest.mark.parametrize(("number", "applied"), cases(BACKWARD, 2))
def test_overtaken_while_withdrawing(events, monkeypatch, number, applied):
    events.lake.cut_off("a", completes, after=1)
    ((key, _),) = events.lake.aws.uploads(BUCKET)
    events.lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"a stranger's")
    events.lake.cut_off("a", lambda call: call.action == "s3:AbortMultipartUpload")
    overtaken(events.lake, TABLE, monkeypatch, number, applied)
    assert [f"{PREFIX}/{name}" for name in events.lake.data()] == [key]
    events.lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    assert events.lake.load("a").status == "done"
    events.audit(again=["a"])


@pytest.mark.parametrize("loads", [("a", "b"), pytest.param(("b", "b"), marks=pytest.mark.exhaustive)])
def test_two_loads_meet_a_pending_one(events, loads):
    events.lake.cut_off("a", completes, after=1)
    events.grow()
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(events.lake.load, loads))
    codes = {result.code for report in reports for result in report.tables}
    assert codes <= {None, "CONCURRENT_LOAD"}
    for job in loads:
        assert events.lake.load(job).status == "done"
    events.audit(again={"a", *loads}, fenced={"b"} if loads == ("b", "b") else ())
