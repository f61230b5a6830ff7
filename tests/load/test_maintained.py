"""``lakewriter maintain``: what it does by ``maintenance``, which objects are orphans, what readers see then."""

import json
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest
import yaml
from click.testing import CliRunner
from moto.s3.models import s3_backends

from lakewriter.cli.main import main
from lakewriter.commit.control import Control
from lakewriter.errors import SpecInvalidError
from lakewriter.naming import ControlKeys
from lakewriter.operate.upkeep import TableMaintenance
from tests.iceberg.test_readers import extension
from tests.load.lakes import BUCKET
from tests.load.refreshed import Refreshed
from tests.load.test_expired import list_named, list_stored
from tests.load.test_merged import load, make, rows
from tests.operate.tampered import ACCOUNT
from tests.support.narrow import need

FOLDER = "data/crm/users"
RULES = {"by": "command", "compact": True, "expire_snapshots_days": 5, "delete_orphans_days": 31}


def write(users, **rules):
    users.rules["maintenance"] = rules
    users.write()


def age(days, *, ends=""):
    """Let the bucket's objects be older."""
    backend = s3_backends[ACCOUNT]["global"]
    for key in backend.buckets[BUCKET].keys.values():
        if key.name.endswith(ends):
            object.__setattr__(key, "last_modified", key.last_modified - timedelta(days=days))


def let_time_pass(monkeypatch, days):
    """Let the store's clock and this machine's be later."""
    require_time = Control.require_time
    monkeypatch.setattr(Control, "require_time", lambda self: require_time(self) + timedelta(days=days))


def call(users, *more):
    done = CliRunner().invoke(main, ["maintain", str(users.folder / "lake.yaml"), *more, "--json"])
    return done.exit_code, json.loads(done.stdout)


def put(users, *keys):
    for key in keys:
        users.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"x")


def test_all_parts(tmp_path, aws, bucket, monkeypatch):
    """A plan, the work, nothing left; then DuckDB and PyIceberg read the table, and each snapshot that is kept."""
    users = make(tmp_path, aws)
    write(users, **RULES)
    for number in range(6):
        load(users, f"job-{number}", (1, number, "a"), (10 + number, 1, "b"))
    expected = rows(users)
    put(users, f"{FOLDER}/data/left.parquet", f"{FOLDER}/metadata/left.avro")
    let_time_pass(monkeypatch, 40)
    stored = set(aws.objects(BUCKET))
    code, planned = call(users, "--plan")
    (of_table,) = planned["tables"]
    assert (code, of_table["table"], of_table["status"]) == (0, "crm.users", "planned")
    assert (of_table["compaction"]["files"], of_table["expiry"]["snapshots"]) == (6, 4)
    assert of_table["expiry"]["undos"] == ["job-4", "job-3", "job-2", "job-1", "job-0"]
    assert (of_table["orphans"]["files"], of_table["orphans"]["others"]) == (2, 0)
    assert set(aws.objects(BUCKET)) == stored
    code, done = call(users, "crm.users")
    (of_table,) = done["tables"]
    assert (code, of_table["status"], of_table["expiry"]["snapshots"]) == (0, "done", 4)
    assert of_table["orphans"]["files"] == 2
    assert list_stored(users) == list_named(users.iceberg())
    assert users.differences() == []
    code, again = call(users)
    assert (code, [table["status"] for table in again["tables"]]) == (0, ["nothing"])
    table = users.iceberg()
    assert rows(users) == expected
    copy = tmp_path / "copy"
    for key, body in aws.objects(BUCKET).items():
        if key.startswith(f"{FOLDER}/"):
            (copy / key).parent.mkdir(parents=True, exist_ok=True)
            (copy / key).write_bytes(body)
    version = Path(table.metadata_location).name.removesuffix(".metadata.json")
    with duckdb.connect() as connection:
        for needed in ("avro", "iceberg"):
            connection.execute(f"LOAD '{extension(needed)}'")
        for snapshot in table.snapshots():
            scan = (
                f"iceberg_scan('{copy / FOLDER}', version = '{version}', allow_moved_paths = true, "
                f"snapshot_from_id = {snapshot.snapshot_id})"
            )
            by_duckdb = sorted(connection.sql(f'SELECT id, "at", v FROM {scan}').fetchall())
            seen = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().select(["id", "at", "v"]).to_pylist()
            assert by_duckdb == sorted(tuple(row.values()) for row in seen)
    users.undo("job-5").run()
    assert rows(users)[0] == (1, 4, "a")


def find(users):
    """The orphans, by their keys below the table's folder."""
    maintenance = TableMaintenance(users.pipeline, 2**30)
    orphans = need(maintenance.plan(users.spec.tables[0]).orphans)
    return [entry.key.removeprefix(f"{FOLDER}/") for entry in orphans.entries], orphans.others


def make_old(tmp_path, aws, monkeypatch, **destination):
    users = Refreshed(tmp_path, aws, "iceberg", mode="append", destination=destination)
    write(users, by="command", delete_orphans_days=31)
    users.load("a", id=[1])
    users.load("b", id=[2])
    let_time_pass(monkeypatch, 40)
    return users


def test_what_is_no_orphan(tmp_path, aws, bucket, monkeypatch):
    """What metadata name, control objects, other tables and their folders, sources and quarantines that lie within."""
    users = make_old(tmp_path, aws, monkeypatch)
    assert find(users) == ([], 0)
    put(users, f"{FOLDER}/data/a.parquet", f"{FOLDER}/metadata/version-hint.text", f"{FOLDER}/_lakewriter/x/state.json")
    assert find(users) == (["data/a.parquet"], 0)
    # A plain table of Glue, and an Iceberg table that no catalog lists here.
    glue = aws.client("glue")
    location = {"Location": f"s3://{BUCKET}/{FOLDER}/plain"}
    glue.create_table(DatabaseName="crm", TableInput={"Name": "plain", "StorageDescriptor": location})
    put(
        users,
        f"{FOLDER}/plain/x.parquet",
        f"{FOLDER}/inner/metadata/0-a.metadata.json",
        f"{FOLDER}/inner/data/y.parquet",
    )
    assert find(users) == (["data/a.parquet"], 3)
    document = yaml.safe_load((tmp_path / "lake.yaml").read_text("utf-8"))
    document["tables"].append(
        {"table": "orders", "schema": "crm", "read": {"format": "csv", "path": f"s3://{BUCKET}/{FOLDER}/in/"}}
    )
    (tmp_path / "lake.yaml").write_text(yaml.safe_dump(document), "utf-8")
    put(users, f"{FOLDER}/in/rows.csv")
    assert find(users) == (["data/a.parquet"], 4)


def test_young_objects_are_no_orphans(tmp_path, aws, bucket):
    users = Refreshed(tmp_path, aws, "iceberg", mode="append")
    write(users, by="command", delete_orphans_days=31)
    users.load("a", id=[1])
    put(users, f"{FOLDER}/data/a.parquet", f"{FOLDER}/data/b.parquet")
    age(32, ends="a.parquet")
    assert find(users) == (["data/a.parquet"], 0)


def test_what_another_pipelines_pending_intent_names_is_no_orphan(tmp_path, aws, bucket, monkeypatch):
    users = make_old(tmp_path, aws, monkeypatch)
    put(users, f"{FOLDER}/data/a.parquet", f"{FOLDER}/data/b.parquet")
    control = users.pipeline.first_control
    report = control.read_report("b")
    intent = json.loads(control.store.get(control.keys.intent("b", report.attempt, "crm.users"))[0])
    intent["receipts"][0]["key"] = f"{FOLDER}/data/a.parquet"
    state = json.loads(control.store.get(control.keys.state("crm.users"))[0])
    state["pending"] = {"job_id": "b", "attempt": report.attempt, "phase": "uploaded", "since": state["last_commit"]}
    other = ControlKeys("data", "other")
    s3 = aws.client("s3")
    for key, content in (
        (other.state("crm.users"), state),
        (other.intent("b", report.attempt, "crm.users"), intent),
    ):
        s3.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(content).encode())
    assert find(users) == (["data/b.parquet"], 0)


def test_a_folder_that_two_tables_share(tmp_path, aws, bucket, monkeypatch):
    users = make_old(tmp_path, aws, monkeypatch)
    body = json.dumps({"format-version": 2, "table-uuid": "another"}).encode()
    aws.client("s3").put_object(Bucket=BUCKET, Key=f"{FOLDER}/metadata/0-b.metadata.json", Body=body)
    with pytest.raises(SpecInvalidError, match="shares its folder with another table"):
        find(users)


# The rules of the file, and what is refused.
REFUSED = [
    (None, "the file has no 'maintenance'"),
    ({"by": "command"}, "it names nothing to do"),
    ({"expire_snapshots_days": 5, "optimizer_role": "nyc"}, "Glue's optimizers do it"),
]


@pytest.mark.parametrize(("rules", "message"), REFUSED)
def test_refusals(tmp_path, aws, bucket, rules, message):
    users = Refreshed(tmp_path, aws, "iceberg", mode="append")
    if rules is not None:
        write(users, **rules)
    code, told = call(users)
    assert (code, told["error"]["code"]) == (2, "SPEC_INVALID")
    assert message in told["error"]["message"]


def test_a_table_without_loads_and_one_that_fails(tmp_path, aws, bucket):
    """Each is told, the others are kept up, and the first error ends the command."""
    users = make(tmp_path, aws)
    write(users, by="command", compact=True)
    for more in ((), ("--plan",)):
        assert [table["status"] for table in call(users, *more)[1]["tables"]] == ["nothing"]
    load(users, "a", (1, 1, "a"))
    assert [table["status"] for table in call(users)[1]["tables"]] == ["nothing"]
    aws.client("glue").delete_table(DatabaseName="crm", Name="users")
    write(users, by="command", delete_orphans_days=31)
    assert [table["status"] for table in call(users)[1]["tables"]] == ["nothing"]
    write(users, by="command", compact=True)
    code, told = call(users)
    (of_table,) = told["tables"]
    assert (code, of_table["status"], of_table["code"], told["error"]["code"]) == (
        2,
        "failed",
        "SPEC_INVALID",
        "SPEC_INVALID",
    )
