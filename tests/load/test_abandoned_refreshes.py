"""A refresh that is given up while it is being published: readers see its rows or those before it, and say which."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from lakewriter.commit.glue import GlueTables
from lakewriter.commit.recover import recover
from lakewriter.errors import LakeError
from lakewriter.operate import repair
from lakewriter.operate.rebuild import ask_catalog
from lakewriter.operate.repair import abandon
from lakewriter.records.fold.by_hand import Note
from lakewriter.records.state import TableState
from tests.load.lakes import BUCKET
from tests.load.refreshed import FOLDER, Refreshed
from tests.support.call import Call

OLD, NEW = f"{FOLDER}g0000000001/part-a-00000.parquet", f"{FOLDER}g0000000002/part-b-00000.parquet"
SHOWN = {
    "glue": lambda call: call.action == "glue:UpdateTable",
    "iceberg": lambda call: call.action == "glue:UpdateTable",
    "none": lambda call: call.method == "PUT" and call.key.endswith("_latest/files.json"),
}
"""What makes readers see a refresh."""


def is_report(call):
    return call.method == "PUT" and call.key.endswith("/crm.users.report.json")


def cut_off(users, at, job="b", /, **columns):
    """Refuse the call and all that come after it."""
    aws, seen = users.aws, list[Call]()

    def refuse(call, proceed):
        if seen or at(call):
            seen.append(call)
            return call.denied()
        return proceed(call)

    aws.interceptors.append(refuse)
    try:
        assert users.try_load(job, **columns).status == "failed"
    except LakeError:
        # Its outcome could not be written either.
        pass
    finally:
        aws.interceptors.remove(refuse)
    assert seen
    assert users.state.pending.phase == "uploaded"


def give_up(users, job="b"):
    pipeline = users.pipeline
    return abandon(pipeline.controls, job, "a drill", pipeline.clients)["crm.users"]


ABANDONED = [
    # The catalog, whether readers see the refresh already, what is said first, the rows that they see then, the number
    # of changes that count, the full refreshes whose files are kept.
    ("glue", False, "undone: nothing of its 1 file is visible", [1], 2, ["a"]),
    ("glue", True, "closed as it is: 1 object with 1 row visible under crm.users", [2], 2, ["a", "b"]),
    ("none", False, "closed as it is: 1 object with 1 row visible under crm.users", [2], 2, ["a", "b"]),
    ("none", True, "closed as it is: 1 object with 1 row visible under crm.users", [2], 2, ["a", "b"]),
    ("iceberg", False, "closed as it is: 1 object with 1 row left at crm.users", [1], 2, ["a"]),
    ("iceberg", True, "closed as it is: 1 object with 1 row visible under crm.users", [2], 2, ["a", "b"]),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("catalog", "is_seen", "said", "ids", "committed", "kept"), ABANDONED)
def test_abandoned(tmp_path, aws, bucket, catalog, is_seen, said, ids, committed, kept):
    users = Refreshed(tmp_path, aws, catalog, keep_days=0)
    users.load("a", id=[1])
    cut_off(users, is_report if is_seen else SHOWN[catalog], id=[2])
    assert give_up(users).startswith(said)
    assert users.ids() == ids
    state = users.state
    assert (state.pending, state.committed, [each.job_id for each in state.generations]) == (None, committed, kept)
    # An undone one may run again under its own job id.
    job = "b" if said.startswith("undone") else "c"
    assert users.load(job, id=[3]).tables[0].status == "done"
    assert users.ids() == [3]
    users.load("d", id=[4])
    assert users.ids() == [4]
    if catalog != "iceberg":
        assert [key.split("/")[0][-1] for key in sorted(users.keys())] == ["3", "4"]


@pytest.mark.parametrize("job", ["b", "c"])
def test_refresh_that_is_being_shown_when_it_is_given_up(tmp_path, aws, bucket, monkeypatch, job):
    """A process that has read the table in Glue, and sleeps, cannot show what another one has withdrawn meanwhile."""
    users = Refreshed(tmp_path, aws, "glue", keep_days=0)
    users.load("a", id=[1])
    said: list[str] = []
    update = GlueTables._update

    def sleep(glue, *arguments):
        if not said:
            said.append("")
            said[0] = give_up(users)
        return update(glue, *arguments)

    monkeypatch.setattr(GlueTables, "_update", sleep)
    (table,) = users.try_load("b", id=[2]).tables
    assert said == ["undone: nothing of its 1 file is visible, the cursor is as it was"]
    assert table.status == "failed"
    assert users.ids() == [1]
    assert users.keys() == ["g0000000001/part-a-00000.parquet"]
    counted = ask_catalog(users.spec, users.spec.tables[0], users.pipeline.clients)
    assert (counted.committed, counted.loads, len(counted.given_up)) == (2, frozenset(), 1)
    users.load(job, id=[3])
    assert users.ids() == [3]
    assert users.differences() == []


@pytest.mark.one_in(3)
@pytest.mark.parametrize("catalog", ["none", "glue", "iceberg"])
def test_refresh_that_another_process_ends_while_it_is_given_up(tmp_path, aws, bucket, monkeypatch, catalog):
    """It was shown again under the next change's number, so that the next refresh counted as shown."""
    users = Refreshed(tmp_path, aws, catalog, keep_days=0)
    users.load("a", id=[1])
    cut_off(users, is_report, id=[2])

    ended: list[TableState] = []

    def end(*arguments):
        if not ended:
            ended.append(recover(users.pipeline.first_control, users.pipeline.open_clients))
        return Note(*arguments)

    monkeypatch.setattr(repair, "Note", end)
    assert give_up(users) == "nothing: another process brought it to its end meanwhile, with 1 row"
    assert (users.ids(), users.state.committed) == ([2], 2)
    for number in (3, 4):
        users.load(f"c{number}", id=[number])
        assert users.ids() == [number]
    assert users.differences() == []


@pytest.mark.parametrize("again", [False, True])
def test_given_up_twice(tmp_path, aws, bucket, again):
    """The first one dies when Glue has its mark: no process shows the refresh, and the second one or a load ends it."""
    users = Refreshed(tmp_path, aws, "glue")
    users.load("a", id=[1])
    cut_off(users, SHOWN["glue"], id=[2])
    seen = []

    def die(call, proceed):
        seen.append(call)
        return proceed(call) if not any(map(SHOWN["glue"], seen[:-1])) else call.denied()

    aws.interceptors.append(die)
    with pytest.raises(LakeError):
        give_up(users)
    aws.interceptors.clear()
    if again:
        assert give_up(users).startswith("undone: ")
    users.load("c", id=[3])
    assert users.ids() == [3]


@pytest.mark.parametrize("shown", [False, True])
def test_catalog_that_does_not_answer(tmp_path, aws, bucket, shown):
    """Nobody knows what readers see: both are named, both stay, and the next refresh deletes both."""
    users = Refreshed(tmp_path, aws, "glue", keep_days=0)
    users.load("a", id=[1])
    cut_off(users, is_report if shown else SHOWN["glue"], id=[2])
    aws.deny("glue:GetTable")
    said = give_up(users)
    assert said.startswith("closed as it is: 1 object with 1 row left visible under crm.users")
    assert "cannot be known (GLUE_ACCESS_DENIED: " in said
    assert said.endswith(f"Its files: {NEW}. Those of before: {OLD}. The next refresh deletes both")
    aws.allow_everything()
    assert users.ids() == ([2] if shown else [1])
    assert users.keys() == [OLD.removeprefix(FOLDER), NEW.removeprefix(FOLDER)]
    users.load("c", id=[3])
    users.load("d", id=[4])
    assert users.keys() == ["g0000000003/part-c-00000.parquet", "g0000000004/part-d-00000.parquet"]
    assert (users.ids(), BUCKET) == ([4], bucket)


def test_first_refresh(tmp_path, aws, bucket):
    """Nothing keeps a process that comes late from creating the table."""
    users = Refreshed(tmp_path, aws, "glue", keep_days=0)
    cut_off(users, lambda call: call.action == "glue:CreateTable", "a", id=[1])
    said = give_up(users, "a")
    assert said.endswith(f"cannot be known. Its files: {OLD}. Those of before: none. The next refresh deletes both")
    for job, number in (("b", 2), ("c", 3)):
        users.load(job, id=[number])
    assert users.ids() == [3]
    assert users.keys() == ["g0000000002/part-b-00000.parquet", "g0000000003/part-c-00000.parquet"]


def test_iceberg_table_that_is_gone(tmp_path, aws, bucket):
    users = Refreshed(tmp_path, aws, "iceberg")
    users.load("a", id=[1])
    cut_off(users, SHOWN["iceberg"], id=[2])
    aws.client("glue").delete_table(DatabaseName="crm", Name="users")
    assert give_up(users).startswith("undone: nothing of its 1 file is visible")
    users.load("b", id=[3])
    assert users.ids() == [3]


class Overwritten(Refreshed):
    """A stream in Airbyte's layout, each of whose loads replaces the objects of the one before it."""

    def write(self, **changes):
        destination = {
            "type": "airbyte-s3",
            "s3_bucket_name": BUCKET,
            "s3_bucket_path": "data",
            "s3_bucket_region": "us-east-1",
            "s3_path_format": "${NAMESPACE}/${STREAM_NAME}/",
            "format": {"format_type": "Parquet"},
        }
        read = {"format": "parquet", "path": "users"}
        table = {"table": "users", "schema": "crm", "read": read, "mode": "overwrite"}
        content = {"pipeline": "crm", "destination": destination, "tables": [table | changes]}
        (self.folder / "lake.yaml").write_text(yaml.safe_dump(content), "utf-8")

    def ids(self):
        objects = self.aws.objects(BUCKET)
        tables = [pq.read_table(pa.BufferReader(objects[f"{FOLDER}{key}"])) for key in self.keys()]
        return sorted(value for table in tables for value in table["id"].to_pylist())


def deletes(call):
    return call.method == "DELETE" and "/_lakewriter/" not in call.key and "uploadId" not in call.query


@pytest.mark.parametrize("at", [deletes, is_report], ids=["before", "after"])
def test_older_objects_of_a_stream(tmp_path, aws, bucket, at):
    users = Overwritten(tmp_path, aws, None)
    users.load("a", id=[1])
    cut_off(users, at, id=[2])
    said = give_up(users)
    shown = "closed as it is: 1 object with 1 row visible under crm.users, and 1 object that they replace deleted"
    assert said == shown
    assert users.ids() == [2]
    assert users.differences() == []
    assert users.load("b", id=[9]).tables[0].status == "already_done"
    users.load("c", id=[3])
    assert users.ids() == [3]


def test_older_objects_of_a_stream_that_may_not_be_deleted(tmp_path, aws, bucket):
    """The way out stays open: both are named, and the next refresh deletes both."""
    users = Overwritten(tmp_path, aws, None)
    users.load("a", id=[1])
    (old,) = users.keys()
    aws.deny("s3:DeleteObject")
    assert users.try_load("b", id=[2]).status == "failed"
    said = give_up(users)
    (new,) = set(users.keys()) - {old}
    assert said.startswith("closed as it is: 1 object with 1 row left visible under crm.users")
    assert said.endswith(f"Its files: {FOLDER}{new}. Those of before: {FOLDER}{old}. The next refresh deletes both")
    aws.allow_everything()
    users.load("c", id=[3])
    assert users.ids() == [3]
    assert users.state.pending is None
