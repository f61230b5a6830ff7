"""A load and its undo leave the state as it was before them: each field by its class."""

import gzip
import json
import random
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.aws import Clients
from lakewriter.commit.control import Control
from lakewriter.errors import SpecInvalidError
from lakewriter.operate.compaction import Compaction
from lakewriter.operate.lost_intent import abandon_without_intent
from lakewriter.operate.repair import reset_cursor
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.records.state import FIELDS, TableState
from lakewriter.records.sync_records import SyncState
from lakewriter.run.loader import load as load_pipeline
from tests.load.lakes import BUCKET
from tests.load.refreshed import Refreshed
from tests.load.syncs import SyncLake, record, state, stream
from tests.load.test_abandoned_refreshes import cut_off, give_up, is_report
from tests.load.test_merged import DELETED, load, make, rows
from tests.operate.shop import FILES, ICEBERG, Shop
from tests.operate.test_undo import load_messages
from tests.operate.test_undo_again import commits
from tests.support.local_tasks import local_session
from tests.support.narrow import need


def test_each_field_has_a_class():
    fields = {name for name in TableState.model_fields if name != "sync"}
    assert fields | {f"sync.{name}" for name in SyncState.model_fields} == set(FIELDS)


def read_field(state: TableState, name: str) -> Any:
    value: Any = state
    for part in name.split("."):
        value = getattr(value, part)
    return value


def grows(before: Any, after: Any) -> bool:
    """Whether a value is at least another one: a number, a time, a tuple of entries, or a name."""
    if before is None or isinstance(before, str):
        return True
    if isinstance(before, tuple):
        return set(map(str, before)) <= set(map(str, after))
    return bool(before <= after)


def judge(control: Control, before: TableState, after: TableState, now: TableState) -> None:
    """Compare a state after a load and its undo with those before and between."""
    for name, follows in FIELDS.items():
        old, mid, new = (read_field(state, name) for state in (before, after, now))
        match follows:
            case "grows":
                assert grows(mid, new), (name, mid, new)
            case "stays":
                assert mid == new, (name, mid, new)
            case _:
                if name == "retiring":
                    # What was undone is deleted once it is due.
                    gone = {load for undone in now.undone for load in (undone.job_id, undone.by)}
                    old, new = (tuple(entry for entry in value if entry.job_id not in gone) for value in (old, new))
                if name == "inputs":
                    old, new = list_counted(control, before), list_counted(control, now)
                assert old == new, (name, old, new)


def list_counted(control: Control, state: TableState) -> Any:
    """The files that count as read, and whether the record is whole."""
    if state.inputs is None:
        # Where nothing was loaded yet, a record of no files says the same.
        return None if state.committed else (True, [])
    files, job = set[str](), ""
    for part in state.inputs.parts:
        for line in gzip.decompress(need(control.read_body(part.key))).splitlines():
            content = json.loads(line)
            if isinstance(content, str):
                job = content
            elif job not in state.inputs.without:
                files.add(content[0].rpartition("/users/")[2])
    return state.knows_inputs, sorted(files)


class Changing(Refreshed):
    """A table in Iceberg that is changed in every way that there is; each load reads a folder of its own."""

    def __init__(self, folder, aws, spark, seed):
        self.rng, self.jobs, self.is_divided = random.Random(seed), 0, bool(seed % 2)
        super().__init__(folder, aws, "iceberg", spark=spark, destination={"tracking": ["deleted"]})

    def change(self, kind: str) -> str | None:
        """Do a change; return its job id, None where there was nothing to do."""
        self.jobs += 1
        if kind == "compact":
            (table,) = self.spec.tables
            done = Compaction(self.pipeline, table, 2**30).run()
            return done.job_id if done is not None else None
        rules: dict[str, Any] = {"mode": kind, "read": {"format": "parquet", "path": f"users/{self.jobs}"}}
        if kind == "merge":
            rules |= {"primary_key": ["id"], "order_by": ["at"]}
        if self.is_divided:
            rules |= {"partition_by": ["part"]}
        self.table = rules | {"deleted": "v = 'D'"}
        self.write()
        given = [
            {"id": self.rng.randrange(6), "at": self.rng.randrange(40), "v": self.rng.choice("abD"), "part": "p"}
            for _ in range(4)
        ]
        (self.folder / "users" / str(self.jobs)).mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(given), self.folder / "users" / str(self.jobs) / "0.parquet")
        job = f"job-{self.jobs}"
        report = load_pipeline(self.spec, job_id=job, clients=Clients(self.spec.access), spark=lambda: self.spark)
        assert report.status == "done", report.tables
        return job


KINDS: Final = ("append", "append", "merge", "merge", "refresh", "replace_partitions", "compact")


@pytest.mark.spark
@pytest.mark.one_in(6)
@pytest.mark.parametrize("seed", range(6))
def test_random_changes_of_a_table(tmp_path, aws, bucket, spark, seed):
    """Some are undone at once, some behind a compaction, and several together."""
    users, undone = Changing(tmp_path, aws, spark, seed), 0
    for _ in range(10):
        kind = users.rng.choice([kind for kind in KINDS if users.is_divided or kind != "replace_partitions"])
        before = users.state
        job = users.change(kind)
        after = users.state
        if job is None or kind == "compact" or users.rng.random() < 0.3:
            continue
        if users.rng.random() < 0.3:
            users.change("compact")
            after = users.state
        with suppress(SpecInvalidError):
            users.undo(job).run()
            undone += 1
            judge(users.pipeline.first_control, before, after, users.state)
        assert users.differences() == []
    assert undone


@pytest.mark.one_in(6)
@pytest.mark.parametrize("catalog", ["none", "glue", "iceberg"])
@pytest.mark.parametrize("seed", range(2))
def test_random_refreshes(tmp_path, aws, bucket, catalog, seed):
    users, rng, undone = Refreshed(tmp_path, aws, catalog), random.Random(seed), 0
    for number in range(8):
        before = users.state
        users.load(f"job-{number}", id=[number])
        after = users.state
        if rng.random() < 0.6:
            users.undo(f"job-{number}").run()
            undone += 1
            judge(users.pipeline.first_control, before, after, users.state)
            assert users.differences() == []
    assert undone


@pytest.mark.spark
@pytest.mark.one_in(3)
@pytest.mark.parametrize("settings", [FILES, {}, ICEBERG])
def test_random_loads_by_a_cursor(tmp_path, aws, bucket, spark, settings):
    """Some are undone with those after them."""
    shop = Shop(tmp_path, aws, spark, settings, cursor="id")
    rng, states = random.Random(len(settings)), list[tuple[str, TableState]]()
    for number in range(7):
        states.append((f"job-{number}", shop.control.state.read()))
        shop.load(f"job-{number}")
        if rng.random() < 0.5:
            job, before = states.pop(rng.randrange(len(states)))
            states = [(other, state) for other, state in states if state.committed < before.committed]
            after = shop.control.state.read()
            shop.undo(job, through=True).run()
            judge(shop.control, before, after, shop.control.state.read())


def test_keys_stay_deleted_after_a_refresh_that_is_undone(tmp_path, aws, bucket, spark):
    users = make(tmp_path, aws, **DELETED, spark=spark)
    load(users, "a", (1, 5, "D"), (2, 1, "x"))
    before = users.state
    users.write(mode="refresh", order_by=[])
    load(users, "b", (3, 1, "y"))
    assert users.state.deleted_keys is None
    after = users.state
    users.undo("b").run()
    judge(users.pipeline.first_control, before, after, users.state)
    users.write()
    load(users, "c", (1, 3, "old"))
    assert rows(users) == [(2, 1, "x")]


GIVEN_UP = [
    # until when the merge got, whether its catalog answers, what is said, the rows then, those after an older row came
    (is_report, True, "closed as it is: 1 object with 1 row visible under crm.users", [], []),
    (commits, True, "undone: nothing of its 1 file is visible", [(1, 1, "a")], [(1, 3, "old")]),
    (is_report, False, "closed as it is: 1 object with 1 row left at crm.users", [], []),
    # Nobody knows that the delete is in no snapshot; it is an event of the source all the same.
    (commits, False, "closed as it is: 1 object with 1 row left at crm.users", [(1, 1, "a")], []),
]


@pytest.mark.one_in(2)
@pytest.mark.spark
@pytest.mark.parametrize(("moment", "answers", "said", "shown", "expected"), GIVEN_UP)
def test_deleted_keys_of_a_merge_that_is_given_up(tmp_path, aws, bucket, spark, moment, answers, said, shown, expected):
    users = make(tmp_path, aws, **DELETED, spark=spark)
    load(users, "a", (1, 1, "a"))
    cut_off(users, moment, id=[1], at=[5], v=["D"])
    if not answers:
        aws.deny("glue:GetTable")
    assert give_up(users).startswith(said)
    aws.allow_everything()
    assert rows(users) == shown
    load(users, "c", (1, 3, "old"))
    assert rows(users) == expected
    # Its job id is done, or loads again.
    status = users.try_load("b", id=[1], at=[5], v=["D"]).tables[0].status
    assert status == ("done" if said.startswith("undone") else "already_done")


@pytest.mark.spark
def test_deleted_keys_of_a_merge_whose_intent_is_lost(tmp_path, aws, bucket, spark):
    users = make(tmp_path, aws, **DELETED, spark=spark)
    load(users, "a", (1, 1, "a"))
    cut_off(users, is_report, id=[1], at=[5], v=["D"])
    control, pending = users.pipeline.first_control, users.state.pending
    key = control.keys.intent("b", pending.attempt, control.table_id)
    aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    abandon_without_intent(users.pipeline.controls, "b", "a drill")
    load(users, "c", (1, 3, "old"))
    assert rows(users) == []


def say_state(kind: str, lsn: int) -> dict[str, Any]:
    """A STATE of the one stream, or of all."""
    if kind == "stream":
        return state("users", lsn)
    streams = [{"stream_descriptor": {"name": "users", "namespace": "public"}, "stream_state": {"lsn": lsn}}]
    content = {"shared_state": {"lsn": lsn}, "stream_states": streams}
    return {"type": "STATE", "state": {"type": "GLOBAL", "global": content}}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["stream", "global"])
@pytest.mark.parametrize("seed", range(2))
def test_random_syncs(tmp_path, aws, bucket, kind, seed):
    """A person orders now and then that a stream begins anew: after an undo it is still to do so."""
    lake, rng, undone = SyncLake(tmp_path, aws, local_session(1)), random.Random(seed), 0
    streams = [stream("users", sync_mode="incremental", destination_sync_mode="append")]
    for number in range(9):
        if rng.random() < 0.3 and number:
            reset_cursor(lake.control("public.users"), None, "a drill")
        rows = (record("users", {"user_id": number + one}) for one in range(2))
        before = lake.control("public.users").state.read() if number else TableState()
        report, pipeline = load_messages(lake, f"job-{number}", streams, *rows, say_state(kind, number))
        assert report.status == "done", report.tables
        control = pipeline.first_control
        after = control.state.read()
        if rng.random() < 0.6:
            Undo(pipeline, f"job-{number}", Choices("a drill")).run()
            undone += 1
            judge(control, before, after, lake.control("public.users").state.read())
    assert undone
