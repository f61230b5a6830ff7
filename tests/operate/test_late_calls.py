"""A call that drops or adds a partition has no condition: what one changes that comes late is corrected."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import botocore.client
import pytest
from click.testing import CliRunner

from lakewriter.aws import Clients
from lakewriter.cli.main import main
from lakewriter.commit.recover import recover
from lakewriter.doctor.doctor import run_checks
from lakewriter.operate.rebuild import ask_catalog, rebuild
from lakewriter.operate.verification import verify
from tests.load.refreshed import Refreshed
from tests.operate.shop import BY_DAY, Shop

CALL = "_make_api_call"
UNDO = {"drop_partitions": True, "grace_minutes": 15}


class Killed(BaseException):
    """The process is gone."""


def hold(operation: str, run: Callable[[], object]) -> Callable[[], object]:
    """Run until the first call of the operation, and kill the process; return the call, which is still to arrive."""
    held, original = list[Callable[[], object]](), getattr(botocore.client.BaseClient, CALL)

    def call(client: Any, name: str, parameters: Any) -> Any:
        if held or name == operation:
            held.append(lambda: original(client, name, parameters))
            raise Killed
        return original(client, name, parameters)

    with patch.object(botocore.client.BaseClient, CALL, call), suppress(Killed):
        run()
    return held[0]


class Held(threading.Thread):
    """A process that is held up before its first call of an operation, until ``go_on``."""

    def __init__(self, operation: str, run: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.operation, self.work, self.result = operation, run, None
        self.came, self.may_go = threading.Event(), threading.Event()
        self.original = getattr(botocore.client.BaseClient, CALL)

    def run(self) -> None:
        self.result = self.work()

    def hold(self) -> "Held":
        def call(client: Any, name: str, parameters: Any) -> Any:
            if threading.current_thread() is self and name == self.operation and not self.came.is_set():
                self.came.set()
                assert self.may_go.wait(60)
            return self.original(client, name, parameters)

        self.patch = patch.object(botocore.client.BaseClient, CALL, call)
        self.patch.start()
        self.start()
        assert self.came.wait(60)
        return self

    def go_on(self) -> Any:
        self.may_go.set()
        self.join(60)
        self.patch.stop()
        return self.result


def load_again(shop: Shop) -> None:
    """Undo load a with a DeletePartition that is held up, and load its partition again."""
    recover(shop.control, shop.pipeline.open_clients)
    shop.load("a.r2")


def undo(shop: Shop) -> None:
    recover(shop.control, shop.pipeline.open_clients)
    shop.undo("a").run()


# The call that is held up, of what, what comes before it arrives, and how many partitions are due after it
CALLS = {
    "a drop, after a load into the partition": ("DeletePartition", lambda shop: shop.undo("a").run(), load_again, 1),
    "an add, after the undo": ("BatchCreatePartition", lambda shop: shop.load("a"), undo, 0),
}


LOOKS = {
    "the next load": lambda shop: shop.load("b"),
    "verify of one load": lambda shop: verify(shop.pipeline.controls, "a", shop.pipeline.clients),
    "verify of all": lambda shop: shop.differences(),
    "check": lambda shop: run_checks(shop.lake.spec, Clients(shop.lake.spec.access)),
    "recovery": lambda shop: recover(shop.control, shop.pipeline.open_clients),
}


def make(tmp_path, aws, spark) -> Shop:
    return Shop(tmp_path, aws, spark, BY_DAY, undo=UNDO)


@pytest.mark.usefixtures("bucket")
@pytest.mark.one_in(5)
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("case", CALLS)
def test_a_call_that_arrives_after_its_caller_has_died(tmp_path, aws, spark, case, look):
    shop, (operation, begin, between, due) = make(tmp_path, aws, spark), CALLS[case]
    if operation == "DeletePartition":
        shop.load("a")
    arrive = hold(operation, lambda: begin(shop))
    between(shop)
    assert len(shop.partitions()) == due
    arrive()
    assert len(shop.partitions()) == 1 - due
    LOOKS[look](shop)
    assert len(shop.partitions()) == (1 if look == "the next load" else due)
    assert shop.differences() == []


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize("case", CALLS)
def test_a_call_that_arrives_after_its_state_was_rebuilt(tmp_path, aws, spark, case):
    shop, (operation, begin, between, due) = make(tmp_path, aws, spark), CALLS[case]
    if operation == "DeletePartition":
        shop.load("a")
    arrive = hold(operation, lambda: begin(shop))
    between(shop)
    control, (table,) = shop.control, shop.lake.spec.tables
    before = [entry.model_dump(exclude={"until"}) for entry in control.state.read().partitions]
    assert before
    aws.client("s3").delete_object(Bucket=shop.lake.spec.access.bucket, Key=control.keys.state(table.id))
    catalog = ask_catalog(shop.lake.spec, table, shop.pipeline.clients)
    rebuilt = rebuild(shop.control, table, catalog, "a drill", None, from_start=True)
    assert [entry.model_dump(exclude={"until"}) for entry in rebuilt.state.partitions] == before
    arrive()
    assert len(shop.partitions()) == 1 - due
    recover(shop.control, shop.pipeline.open_clients)
    assert len(shop.partitions()) == due


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize("case", CALLS)
def test_a_process_that_was_held_up_at_its_call_looks_again(tmp_path, aws, spark, case):
    shop, (operation, begin, between, due) = make(tmp_path, aws, spark), CALLS[case]
    if operation == "DeletePartition":
        shop.load("a")
        held = Held(operation, lambda: begin(shop)).hold()
    else:
        held = Held(operation, lambda: shop.try_load("a")).hold()
    between(shop)
    result = held.go_on()
    assert len(shop.partitions()) == due
    if operation == "BatchCreatePartition":
        assert (result.status, result.tables[0].code) == ("failed", "LOAD_UNDONE")
    assert shop.differences() == []


@pytest.mark.usefixtures("bucket")
def test_verify_says_what_it_has_corrected(tmp_path, aws, spark):
    shop = make(tmp_path, aws, spark)
    arrive = hold("BatchCreatePartition", lambda: shop.load("a"))
    undo(shop)
    arrive()
    done = CliRunner().invoke(main, ["verify", str(shop.lake.file), "--all"])
    assert done.exit_code == 0, done.output
    assert (
        "was there after its undo, and was dropped again: a call of a process that was held up came late"
        in " ".join(done.stdout.split())
    )
    assert shop.partitions() == []


@pytest.mark.usefixtures("bucket")
def test_a_partition_with_files_of_others_stays(tmp_path, aws, spark):
    """Somebody has added it for files of their own since the undo."""
    shop = make(tmp_path, aws, spark)
    arrive = hold("BatchCreatePartition", lambda: shop.load("a"))
    undo(shop)
    arrive()
    (entry,) = shop.control.state.read().partitions
    key = f"{entry.location.split('/', 3)[3]}/theirs.parquet"
    aws.client("s3").put_object(Bucket=shop.lake.spec.access.bucket, Key=key, Body=b"PAR1")
    recover(shop.control, shop.pipeline.open_clients)
    assert len(shop.partitions()) == 1


@pytest.mark.usefixtures("bucket")
def test_a_partition_whose_last_change_is_not_known_stays(tmp_path, aws, spark):
    """Its intent names the files that may lie in it."""
    shop = make(tmp_path, aws, spark)
    arrive = hold("BatchCreatePartition", lambda: shop.load("a"))
    undo(shop)
    arrive()
    control = shop.control
    (entry,) = control.state.read().partitions
    control.store.delete(control.keys.intent(entry.job_id, entry.attempt, control.table_id))
    recover(control, shop.pipeline.open_clients)
    assert len(shop.partitions()) == 1


def test_a_switch_that_arrives_late_is_refused(tmp_path, aws, bucket):
    """It names the version of the table that it has read."""
    users = Refreshed(tmp_path, aws, "glue")
    users.load("a", id=[1])
    arrive = hold("UpdateTable", lambda: users.load("b", id=[2]))
    recover(users.pipeline.first_control, users.pipeline.open_clients)
    users.load("c", id=[3])
    with pytest.raises(botocore.client.ClientError, match="concurrent modifications"):
        arrive()
    assert users.ids() == [3]
    assert users.differences() == []
