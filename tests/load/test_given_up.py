"""Every change that can be bound can be finished or given up, whatever happens to its table in between."""

import json
import uuid
from typing import Any, Final

import pytest

from lakewriter.commit.recover import recover
from lakewriter.errors import LakeError, SchemaIncompatibleError, SpecInvalidError
from lakewriter.operate.compaction import Compaction
from lakewriter.operate.lost_intent import abandon_without_intent
from lakewriter.operate.repair import abandon
from tests.load.lakes import BUCKET
from tests.load.refreshed import Refreshed
from tests.operate.test_undo_again import binds, cut_off
from tests.support.narrow import need

# How each kind of change is begun on a table that has two loads, and its job id.
LOADS: Final[dict[str, dict[str, Any]]] = {
    "append": {"mode": "append"},
    "merge": {"mode": "merge", "primary_key": ["id"], "order_by": ["at"]},
    "refresh": {"mode": "refresh"},
}
KINDS: Final = {
    "none": ("refresh", "undo of a refresh"),
    "glue": ("append", "refresh", "undo of an append", "undo of a refresh"),
    "iceberg": ("append", "merge", "refresh", "compact", "undo of an append", "undo of a merge", "undo of a refresh"),
}


def make(folder, aws, catalog, kind) -> Refreshed:
    """A table with two loads, of the kind that is undone or loaded."""
    mode = next(mode for mode in LOADS if kind.endswith(mode) or (kind == "compact" and mode == "append"))
    users = Refreshed(folder, aws, catalog, **LOADS[mode])
    for number in range(6 if kind == "compact" else 2):
        users.load(f"job-{number}", id=[1, number], at=[number, number])
    return users


def act(users: Refreshed, kind: str) -> str:
    """Do the change; return its job id."""
    if kind == "compact":
        (table,) = users.spec.tables
        Compaction(users.pipeline, table, 2**30).run()
    elif kind.startswith("undo"):
        users.undo("job-1").run()
    elif users.try_load("late", id=[1, 9], at=[9, 9]).status == "failed":
        raise SpecInvalidError("the load failed")
    return ""


def edit_metadata(users, edit):
    """Another engine leaves the table's metadata in a new file."""
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
        field = {"source-id": 1, "field-id": 1000, "name": "p", "transform": "identity"}
        metadata["partition-specs"].append({"spec-id": 7, "fields": [field]})
        metadata.update({"last-partition-id": 1000, "default-spec-id": 7})

    edit_metadata(users, edit)


def drop(users):
    users.aws.client("glue").delete_table(DatabaseName="crm", Name="users")


def make_anew(users):
    if users.catalog == "iceberg":
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
    for action in ("glue:GetTable", "glue:UpdateTable", "glue:CreateTable"):
        users.aws.deny(action)


def forbid_objects(users):
    users.aws.deny("s3:DeleteObject")
    users.aws.deny("s3:AbortMultipartUpload")


REASONS: Final = {
    # what happens to the table once the change is bound, in which catalogs
    "upgraded": (upgrade, ("iceberg",)),
    "other partition fields": (divide, ("iceberg",)),
    "dropped": (drop, ("iceberg", "glue")),
    "made anew": (make_anew, ("iceberg", "glue")),
    "no permission in the catalog": (forbid_catalog, ("iceberg", "glue")),
    "no permission for objects": (forbid_objects, ("none", "glue", "iceberg")),
}


def uploads(call):
    return call.method == "PUT" and call.key.endswith("/state.json") and b'"uploaded"' in call.body


def is_report(call):
    return call.method == "PUT" and call.key.endswith("/crm.users.report.json")


MOMENTS: Final = {"intended": binds, "uploaded": uploads, "seen": is_report}
WAYS: Final = [
    (catalog, kind, phase, reason)
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


@pytest.mark.one_in(9)
@pytest.mark.parametrize(("catalog", "kind", "phase", "reason"), WAYS)
def test_a_way_out(tmp_path, aws, bucket, catalog, kind, phase, reason):
    users = make(tmp_path, aws, catalog, kind)
    cut_off(aws, lambda: act(users, kind), MOMENTS[phase])
    job = users.state.pending.job_id
    REASONS[reason][0](users)
    said = finish(users)
    if said:
        assert "abandon" in said or "permission" in said.lower() or "denied" in said.lower(), said
        ended = give_up(users, job)
        # What takes objects away, or aborts uploads, needs the permission for that.
        if reason == "no permission for objects" and users.state.pending is not None:
            aws.allow_everything()
            ended = give_up(users, job) if finish(users) else ""
        assert users.state.pending is None, (said, ended)
    aws.allow_everything()
    # The state is in use again: the next load is done, or refused by what has happened to the table.
    (table,) = users.try_load("next", id=[1, 7], at=[20, 20]).tables
    assert users.state.pending is None
    assert table.status == "done" or table.code in EXPECTED[reason], (said, table.code, table.message)


EXPECTED: Final = {
    "upgraded": ("SCHEMA_INCOMPATIBLE",),
    "other partition fields": ("SCHEMA_INCOMPATIBLE",),
    "made anew": ("SCHEMA_INCOMPATIBLE", "NAME_COLLISION", "STATE_LOST"),
    "dropped": (),
    "no permission in the catalog": (),
    "no permission for objects": (),
}


@pytest.mark.parametrize("kind", ["undo of an append", "undo of a merge", "undo of a refresh", "compact"])
def test_what_could_not_be_finished_is_not_begun(tmp_path, aws, bucket, kind):
    """What a load asks of its table before it stages, every change asks before it is bound."""
    users = make(tmp_path, aws, "iceberg", kind)
    upgrade(users)
    before = users.state
    with pytest.raises(SchemaIncompatibleError) as refused:
        act(users, kind)
    assert "has format version 3, expected at most 2" in refused.value.message
    assert "A version never goes back: copy the table" in refused.value.remedy
    assert users.state.model_dump(exclude={"write", "running"}) == before.model_dump(exclude={"write", "running"})
    assert users.state.pending is None


@pytest.mark.parametrize("lose", [drop, make_anew])
def test_a_load_of_a_table_that_is_gone_is_not_undone(tmp_path, aws, bucket, lose):
    users = make(tmp_path, aws, "iceberg", "undo of an append")
    lose(users)
    with pytest.raises(
        SpecInvalidError, match=r"load 'job-1' of crm\.users cannot be undone: Iceberg table crm\.users "
    ):
        users.undo("job-1").run()
    assert users.state.pending is None


@pytest.mark.parametrize("kind", ["append", "undo of an append"])
def test_a_process_that_comes_late(tmp_path, aws, bucket, kind):
    """It has read the pending change before it was given up, and commits nothing."""
    users = make(tmp_path, aws, "iceberg", kind)
    cut_off(aws, lambda: act(users, kind), uploads)
    late = users.pipeline.first_control
    job = need(late.state.read().pending).job_id
    assert give_up(users, job).startswith(("undone: ", "given up: "))
    before = users.ids()
    recover(late, users.pipeline.open_clients)
    assert (users.ids(), users.state.pending, users.pipeline.first_control.read_report(job)) == (before, None, None)
    act(users, kind)
    assert users.differences() == []
