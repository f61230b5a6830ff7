"""Every change that can be bound can be finished or given up, whatever happens to its table in between."""

import json
import uuid
from contextlib import suppress
from functools import partial
from typing import Any, Final
from unittest.mock import patch

import botocore.client
import pytest
from pyiceberg.table import StaticTable
from pyiceberg.table.metadata import TableMetadataUtil
from werkzeug.wrappers import Response

from lakewriter.aws import Clients
from lakewriter.commit.control import Control
from lakewriter.commit.recover import recover, withdraw_intent
from lakewriter.commit.uploads import withdraw
from lakewriter.errors import LakeError, SchemaIncompatibleError, SpecInvalidError
from lakewriter.operate import repair
from lakewriter.operate.compaction import Compaction
from lakewriter.operate.lost_intent import abandon_without_intent
from lakewriter.operate.rebuild import ask_catalog, conclude
from lakewriter.operate.rebuild_records import read_leftovers
from lakewriter.operate.repair import abandon, reset_files
from lakewriter.run.loader import load
from lakewriter.run.replay import Chosen, Replay, find_files
from tests.load.lakes import BUCKET
from tests.load.refreshed import Refreshed
from tests.load.test_merged import CALL, Killed
from tests.operate.test_undo_again import binds, cut_off
from tests.support.narrow import need
from tests.support.open_catalog import CLIENT_ID, CLIENT_SECRET, OpenCatalog, read_metadata

JSON: Final = "application/json"

# How each kind of change is begun on a table that has two loads, and its job id.
LOADS: Final[dict[str, dict[str, Any]]] = {
    "append": {"mode": "append"},
    "merge": {"mode": "merge", "primary_key": ["id"], "order_by": ["at"]},
    "refresh": {"mode": "refresh"},
    "replace_partitions": {"mode": "replace_partitions", "partition_by": ["id"]},
    "replay": {
        "mode": "append",
        "on_bad_row": {"action": "quarantine", "at_most": 1.0},
        "expect": [{"range": {"column": "at", "at_least": 1}, "on_violation": "quarantine"}],
    },
    "compact": {"mode": "append"},
}
ICEBERG: Final = (
    "append", "merge", "refresh", "replace_partitions", "replay", "compact",
    "undo of an append", "undo of a merge", "undo of a refresh", "undo of a replace_partitions",
)  # fmt: skip
"""A replay is not undone: its rows have left the quarantine."""
KINDS: Final = {
    "none": ("refresh", "replay", "undo of a refresh"),
    "glue": ("append", "refresh", "replay", "undo of an append", "undo of a refresh"),
    "iceberg": ICEBERG,
    "open_catalog": ICEBERG,
}


class Users(Refreshed):
    """The table, and the REST catalog that lists it where it is one's."""

    rest: OpenCatalog | None = None

    def iceberg(self):
        """The table, in whichever catalog it is."""
        if self.rest is None:
            return super().iceberg()
        settings = {"s3.endpoint": self.aws.url, "s3.region": "us-east-1"}
        return StaticTable.from_metadata(self.rest.tables["crm", "users"].location, settings)

    def ids(self):
        """As readers of the table see them."""
        return sorted(self.iceberg().scan().to_arrow()["id"].to_pylist()) if self.rest else super().ids()


@pytest.fixture
def begin(tmp_path, aws, bucket, request, monkeypatch):
    """Make a table with two loads, of the kind that is undone or loaded."""
    with OpenCatalog(aws, BUCKET) as rest:

        def make(catalog, kind, loads=2) -> Users:
            mode = kind.rpartition(" ")[2]
            spark = request.getfixturevalue("spark") if mode in OF_SPARK else None
            destination = {}
            if catalog == "open_catalog":
                monkeypatch.setenv("OPEN_CATALOG_SECRET", CLIENT_SECRET)
                destination = REST | {"catalog_endpoint": rest.url}
            users = Users(tmp_path, aws, catalog, destination=destination, spark=spark, **LOADS[mode])
            users.rest = rest if catalog == "open_catalog" else None
            for number in range(6 if kind == "compact" else loads):
                users.load(f"job-{number}", id=[1, number], at=[number, number])
            if kind == "replay":
                users.write(expect=[])
            return users

        yield make


OF_SPARK: Final = ("replace_partitions", "replay")
REST: Final = {
    "catalog_name": "lake",
    "catalog_base_location": f"s3://{BUCKET}/open/",
    "client_id": CLIENT_ID,
    "client_secret": "${env:OPEN_CATALOG_SECRET}",
}


def replay(users: Users) -> None:
    """Load the rows of the quarantine."""
    spec, chosen = users.spec, Chosen()
    (table,) = spec.tables
    replayed = Replay(spec, table, find_files(users.pipeline.first_control, table, chosen), chosen)
    spec, kind = replayed.make_spec(), replayed.make_kind(users.pipeline.first_control)
    report = load(spec, job_id=replayed.job_id, clients=Clients(spec.access), spark=lambda: users.spark, kind=kind)
    if report.status == "failed":
        raise SpecInvalidError("the replay failed")


def act(users: Users, kind: str) -> str:
    """Do the change; return its job id."""
    if kind == "compact":
        (table,) = users.spec.tables
        Compaction(users.pipeline, table, 2**30).run()
    elif kind.startswith("undo"):
        users.undo("job-1").run()
    elif kind == "replay":
        replay(users)
    elif users.try_load("late", id=[1, 9], at=[9, 9]).status == "failed":
        raise SpecInvalidError("the load failed")
    return ""


def edit_metadata(users, edit):
    """Another engine leaves the table's metadata in a new file."""
    if users.rest is not None:
        entry = users.rest.tables["crm", "users"]
        metadata = read_metadata(entry.metadata)
        edit(metadata)
        entry.metadata = TableMetadataUtil.parse_obj(metadata)
        return
    aws, glue, s3 = users.aws, users.aws.client("glue"), users.aws.client("s3")
    table = glue.get_table(DatabaseName="crm", Name="users")["Table"]
    key = table["Parameters"]["metadata_location"].removeprefix(f"s3://{BUCKET}/")
    metadata = json.loads(aws.objects(BUCKET)[key])
    edit(metadata)
    key = f"{key.rpartition('/')[0]}/99999-{uuid.uuid4()}.metadata.json"
    s3.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(metadata).encode())
    parameters = table["Parameters"] | {"metadata_location": f"s3://{BUCKET}/{key}"}
    kept = {"Name": "users", "TableType": "EXTERNAL_TABLE", "StorageDescriptor": table["StorageDescriptor"]}
    glue.update_table(DatabaseName="crm", TableInput=kept | {"Parameters": parameters})


def upgrade(users):
    edit_metadata(users, lambda metadata: metadata.update({"format-version": 3, "next-row-id": 0}))


def divide(users):
    def edit(metadata):
        field = {"source-id": 2, "field-id": 1009, "name": "p", "transform": "identity"}
        metadata["partition-specs"].append({"spec-id": 7, "fields": [field]})
        metadata.update({"last-partition-id": 1009, "default-spec-id": 7})

    edit_metadata(users, edit)


def drop(users):
    if users.rest is not None:
        del users.rest.tables["crm", "users"]
        return
    users.aws.client("glue").delete_table(DatabaseName="crm", Name="users")


def make_anew(users):
    if users.catalog in ("iceberg", "open_catalog"):
        empty = {"snapshots": [], "snapshot-log": [], "refs": {}, "current-snapshot-id": -1, "properties": {}}
        edit_metadata(users, lambda metadata: metadata.update(empty | {"table-uuid": str(uuid.uuid4())}))
        return
    table = users.glue_table()
    drop(users)
    kept = {name: table[name] for name in ("Name", "TableType", "StorageDescriptor", "PartitionKeys", "Parameters")}
    columns = [{"Name": "other", "Type": "string"}]
    kept["StorageDescriptor"] = table["StorageDescriptor"] | {"Columns": columns}
    users.aws.client("glue").create_table(DatabaseName="crm", TableInput=kept)


def forbid_catalog(users):
    if users.rest is not None:
        body = {"error": {"message": "not authorized", "type": "ForbiddenException", "code": 403}}
        for method in ("GET", "POST"):
            users.rest.failing[method, "/tables/users"] = Response(json.dumps(body), 403, content_type=JSON)
    for action in ("glue:GetTable", "glue:UpdateTable", "glue:CreateTable"):
        users.aws.deny(action)


def allow_everything(users):
    users.aws.allow_everything()
    if users.rest is not None:
        users.rest.failing.clear()


def forbid_objects(users):
    users.aws.deny("s3:DeleteObject")
    users.aws.deny("s3:AbortMultipartUpload")


REASONS: Final = {
    # what happens to the table once the change is bound, in which catalogs
    "upgraded": (upgrade, ("iceberg", "open_catalog")),
    "other partition fields": (divide, ("iceberg", "open_catalog")),
    "dropped": (drop, ("iceberg", "open_catalog", "glue")),
    "made anew": (make_anew, ("iceberg", "open_catalog", "glue")),
    "no permission in the catalog": (forbid_catalog, ("iceberg", "open_catalog", "glue")),
    "no permission for objects": (forbid_objects, ("none", "glue", "iceberg", "open_catalog")),
}


def uploads(call):
    return call.method == "PUT" and call.key.endswith("/state.json") and b'"uploaded"' in call.body


def is_report(call):
    return call.method == "PUT" and call.key.endswith("/crm.users.report.json")


MOMENTS: Final = {"intended": binds, "uploaded": uploads, "seen": is_report}
WAYS: Final = [
    pytest.param(catalog, kind, phase, reason, marks=pytest.mark.spark if kind.endswith(OF_SPARK) else ())
    for catalog, kinds in KINDS.items()
    for kind in kinds
    for phase in MOMENTS
    for reason, (_, catalogs) in REASONS.items()
    if catalog in catalogs
]


def finish(users) -> str:
    """Finish what is pending, as each later load does first."""
    try:
        recover(users.pipeline.first_control, users.pipeline.open_clients)
    except LakeError as error:
        return f"{error.message} {error.remedy}"
    return ""


def give_up(users, job) -> str:
    """Give it up by what the error says, and by what the refusal says."""
    pipeline = users.pipeline
    try:
        return abandon(pipeline.controls, job, "a drill", pipeline.clients)["crm.users"]
    except LakeError as error:
        if "--intent-lost" not in error.remedy:
            return f"{error.code}: {error.message}"
    return abandon_without_intent(pipeline.controls, job, "a drill")["crm.users"]


@pytest.mark.one_in(27)
@pytest.mark.parametrize(("catalog", "kind", "phase", "reason"), WAYS)
def test_a_way_out(begin, aws, catalog, kind, phase, reason):
    users = begin(catalog, kind)
    cut_off(aws, lambda: act(users, kind), MOMENTS[phase])
    job = users.state.pending.job_id
    REASONS[reason][0](users)
    said = finish(users)
    if said:
        assert "abandon" in said or "permission" in said.lower() or "denied" in said.lower(), said
        ended = give_up(users, job)
        # What takes objects away, or aborts uploads, needs the permission for that.
        if reason == "no permission for objects" and users.state.pending is not None:
            allow_everything(users)
            ended = give_up(users, job) if finish(users) else ""
        assert users.state.pending is None, (said, ended)
    allow_everything(users)
    # The state is in use again: the next load is done, or refused by what has happened to the table.
    (table,) = users.try_load("next", id=[1, 7], at=[20, 20]).tables
    assert users.state.pending is None
    assert table.status == "done" or table.code in EXPECTED[reason], (said, table.code, table.message)


@pytest.mark.parametrize("catalog", ["iceberg", "open_catalog"])
@pytest.mark.parametrize("loads", [0, 2])
def test_given_up_change_is_none(begin, aws, catalog, loads):
    """Its number is used up, but the table is as it was: one without loads still has no names that no record has, and
    the record of the files that were read lacks none."""
    users = begin(catalog, "append", loads)
    users.write(read={"format": "parquet", "path": "users", "files": "new"})
    if loads:
        pipeline = users.pipeline
        reset_files(pipeline.first_control, (), "the drill's own")
    before = users.state
    cut_off(aws, lambda: users.try_load("first", id=[1], **{"a b": [1], "a.b": [2]}), uploads)
    assert give_up(users, "first").startswith("undone")
    now = users.state
    assert (now.committed, now.changes, now.is_loaded) == (loads + 1, loads, loads > 0)
    control, (entry,) = users.pipeline.first_control, users.spec.tables
    found = conclude(control, ask_catalog(users.spec, entry, users.pipeline.clients), read_leftovers(control), "lost")
    assert (found.state.committed, found.state.changes) == (loads + 1, loads)
    assert now.knows_inputs is before.knows_inputs
    (table,) = users.try_load("next", id=[1], **{"a b": [1], "a.b": [2]}).tables
    assert (table.status, table.message) == ("done", None)
    named = {name.source: name.name for name in users.state.names}
    # Beside earlier loads, the names that it has left in the catalog stay unused: two columns want the first of them.
    assert (named["a b"], named["a.b"]) == (("a_b_2", "a_b_3") if loads else ("a_b", "a_b_1"))


def test_attempt_that_is_bound_while_the_one_before_it_is_given_up(begin, aws, monkeypatch):
    """What is said holds for the state that is read last."""
    users = begin("iceberg", "append")
    real, again = Control.read_report, list[str]()

    def bind() -> None:
        cut_off(aws, lambda: users.try_load("late", id=[1, 9], at=[9, 9]), binds)

    def read_report(self: Control, job_id: str) -> Any:
        found = real(self, job_id)
        if not again:
            again.append(job_id)
            bind()
        return found

    bind()
    monkeypatch.setattr(Control, "read_report", read_report)
    assert give_up(users, "late").startswith("undone")
    assert (again, users.state.pending) == (["late"], None)


EXPECTED: Final = {
    "upgraded": ("SCHEMA_INCOMPATIBLE",),
    "other partition fields": ("SCHEMA_INCOMPATIBLE",),
    "made anew": ("SCHEMA_INCOMPATIBLE", "NAME_COLLISION", "STATE_LOST"),
    "dropped": (),
    "no permission in the catalog": (),
    "no permission for objects": (),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["undo of an append", "undo of a merge", "undo of a refresh", "compact"])
def test_what_could_not_be_finished_is_not_begun(begin, kind):
    """What a load asks of its table before it stages, every change asks before it is bound."""
    users = begin("iceberg", kind)
    edit_metadata(users, lambda metadata: metadata["properties"].update({"encryption.key-id": "k"}))
    before = users.state
    with pytest.raises(SchemaIncompatibleError) as refused:
        act(users, kind)
    assert "is encrypted with key 'k'" in refused.value.message
    assert "UNSET TBLPROPERTIES ('encryption.key-id')" in refused.value.remedy
    assert users.state.model_dump(exclude={"write", "running"}) == before.model_dump(exclude={"write", "running"})
    assert users.state.pending is None


@pytest.mark.parametrize("lose", [drop, make_anew])
def test_a_load_of_a_table_that_is_gone_is_not_undone(begin, lose):
    users = begin("iceberg", "undo of an append")
    lose(users)
    with pytest.raises(
        SpecInvalidError, match=r"load 'job-1' of crm\.users cannot be undone: Iceberg table crm\.users "
    ):
        users.undo("job-1").run()
    assert users.state.pending is None


@pytest.mark.parametrize("kind", ["append", "undo of an append"])
def test_a_process_that_comes_late(begin, aws, kind):
    """It has read the pending change before it was given up, and commits nothing."""
    users = begin("iceberg", kind)
    cut_off(aws, lambda: act(users, kind), uploads)
    late = users.pipeline.first_control
    job = need(late.state.read().pending).job_id
    assert give_up(users, job).startswith(("undone: ", "given up: "))
    before = users.ids()
    recover(late, users.pipeline.open_clients)
    assert (users.ids(), users.state.pending, users.pipeline.first_control.read_report(job)) == (before, None, None)
    act(users, kind)
    assert users.differences() == []


# What is held up in the midst of its commit, and how many loads the table has; one without has no snapshot.
HELD = [(catalog, kind, 2) for catalog in ("iceberg", "open_catalog") for kind in ICEBERG]
HELD += [(catalog, mode, 0) for catalog in ("iceberg", "open_catalog") for mode in ("append", "merge", "refresh")]


@pytest.mark.one_in(13)
@pytest.mark.parametrize(
    ("catalog", "kind", "loads"),
    [pytest.param(*case, marks=pytest.mark.spark if case[1].endswith(OF_SPARK) else ()) for case in HELD],
)
def test_a_process_that_has_begun_its_commit(begin, catalog, kind, loads):
    """Its change is given up after it has read the table, and it commits nothing."""
    users = begin(catalog, kind, loads)
    call, said = getattr(botocore.client.BaseClient, CALL), list[str]()
    before: list[int] = users.ids() if loads else []

    def give_up_first(client, operation, parameters):
        if operation == "PutObject" and "/snap-" in parameters["Key"] and not said:
            said.append("")
            said[0] = give_up(users, need(users.state.pending).job_id)
        return call(client, operation, parameters)

    with patch.object(botocore.client.BaseClient, CALL, give_up_first), suppress(LakeError):
        act(users, kind)
        # An undo whose plan is gone is planned and made again by the same process.
        assert kind.startswith("undo")
        before = users.ids()
    assert said[0].startswith(("undone: ", "given up: ")), said
    assert (users.ids(), users.state.pending) == (before, None)
    assert users.differences() == []
    # Nothing is left of it: the change can be made again, and what others count stands.
    act(users, kind)
    assert users.differences() == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("catalog", "kind"),
    [("iceberg", "append"), ("iceberg", "merge"), ("iceberg", "undo of an append"), ("glue", "refresh")],
)
def test_giving_up_that_died_is_finished_by_the_next_load(begin, aws, catalog, kind):
    users = begin(catalog, kind)
    cut_off(aws, lambda: act(users, kind), uploads)
    pipeline, job = users.pipeline, need(users.state.pending).job_id
    before = users.ids()
    cut_off(
        aws,
        lambda: abandon(pipeline.controls, job, "a drill", pipeline.clients),
        lambda call: call.action == "glue:UpdateTable",
    )
    assert need(users.state.pending).phase == "uploaded"
    assert (finish(users), users.state.pending, users.ids()) == ("", None, before)
    act(users, kind)
    assert users.differences() == []


@pytest.mark.spark
def test_bad_rows_stay_where_their_undo_was_given_up(begin, aws):
    """The undo deletes them once the catalog has it, which it never has."""
    users = begin("iceberg", "replay")
    users.write()
    users.load("late", id=[5, 6], at=[0, 6])
    bad = [key for key in aws.objects(BUCKET) if "__quarantine/" in key]
    assert len(bad) == 2
    cut_off(aws, lambda: users.undo("late").run(), uploads)
    pipeline, job = users.pipeline, need(users.state.pending).job_id
    give_up_to = partial(abandon, pipeline.controls, job, "a drill", pipeline.clients)
    cut_off(aws, give_up_to, lambda call: call.action == "glue:UpdateTable")
    assert (finish(users), users.state.pending, users.ids()) == ("", None, [1, 1, 6])
    assert [key for key in aws.objects(BUCKET) if "__quarantine/" in key] == bad


def withdraw_and_die(control, pending, intent, store):
    withdraw(store, intent)
    raise Killed


@pytest.mark.spark
@pytest.mark.parametrize("dies", [False, True])
def test_a_load_that_finds_a_change_withdrawn_meanwhile(tmp_path, aws, bucket, spark, dies):
    """It has read the pending merge before another process gave it up, and deleted its files; that one may have died
    before it said so."""
    rules = {"primary_key": ["id"], "order_by": ["at"], "deleted": "v = 'D'", "destination": {"tracking": ["deleted"]}}
    users = Users(tmp_path, aws, "iceberg", mode="merge", spark=spark, **rules)
    users.load("a", id=[1, 2], at=[1, 1], v=["x", "x"])
    cut_off(aws, lambda: users.try_load("late", id=[1], at=[2], v=["D"]), uploads)
    call, met = getattr(botocore.client.BaseClient, CALL), list[str]()

    def give_up_first(client, operation, parameters):
        if operation == "GetObject" and "/part-late-" in parameters["Key"] and not met:
            met.append("dead")
            with (
                suppress(Killed),
                patch.object(repair, "withdraw_intent", withdraw_and_die if dies else withdraw_intent),
            ):
                met[0] = give_up(users, "late")
        return call(client, operation, parameters)

    with patch.object(botocore.client.BaseClient, CALL, give_up_first):
        (table,) = users.try_load("next", id=[3], at=[1], v=["x"]).tables
    assert (met[0][:6], table.status, users.ids()) == ("dead" if dies else "undone", "done", [1, 2, 3])
    assert users.differences() == []
