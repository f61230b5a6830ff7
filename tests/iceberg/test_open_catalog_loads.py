"""Whole loads into Open Catalog: its own choice of location, and recovery after a kill."""

from datetime import timedelta

import pytest
import yaml
from pyiceberg.catalog import load_catalog

from lakewriter.aws import Clients
from lakewriter.commit.pipeline import Pipeline
from lakewriter.operate.compaction import Compaction
from lakewriter.operate.queries import write_queries
from lakewriter.operate.repair import abandon
from lakewriter.operate.sql_text import Engine
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.operate.verification import verify
from lakewriter.policy.role_documents import Who, make_documents
from lakewriter.spec.deployment import Deployment
from tests.iceberg.commits import rest_options, stores
from tests.iceberg.tables import SCHEMA
from tests.load.lakes import BUCKET, completes, table, uploads_part
from tests.policy.lakes import ARNS
from tests.support.iam import Policies, Request, simulate
from tests.support.narrow import need
from tests.support.open_catalog import CLIENT_ID, CLIENT_SECRET, OpenCatalog

pytestmark = pytest.mark.spark

EVENTS = "id,at\n1,5\n2,7\n"
SETTINGS = {
    "iceberg_catalog": "SNOWFLAKE_OPEN_CATALOG",
    "catalog_name": "lake",
    "client_id": CLIENT_ID,
    "client_secret": "${env:OPEN_CATALOG_SECRET}",
    "glue_database_prefix": "supaflow",
}


@pytest.fixture
def open_catalog(lake, monkeypatch):
    """A pipeline on Open Catalog, and the catalog."""
    monkeypatch.setenv("OPEN_CATALOG_SECRET", CLIENT_SECRET)
    with OpenCatalog(lake.aws, BUCKET) as catalog:
        lake.write(
            table("events", lake.csv("events.csv", EVENTS), cursor="at"), **SETTINGS, catalog_endpoint=catalog.url
        )
        yield catalog


def events(catalog: OpenCatalog):
    """The table as PyIceberg finds it."""
    return load_catalog("own", **rest_options(catalog), **stores(catalog.aws)).load_table((SCHEMA, "events"))


def vend(lake, catalog: OpenCatalog, **settings):
    """The catalog gives out credentials; its secret is where tasks find it too."""
    lake.aws.client("ssm").put_parameter(Name="/lake/catalog", Value=CLIENT_SECRET, Type="SecureString")
    text = lake.file.read_text("utf-8").replace("${env:OPEN_CATALOG_SECRET}", "${ssm:/lake/catalog}")
    lake.file.write_text(text, "utf-8")
    return catalog.vend(**settings)


def events_of(catalog: OpenCatalog):
    """The table's metadata as the catalog has it."""
    return catalog.tables[SCHEMA, "events"].metadata


def test_two_loads(lake, open_catalog):
    (first,) = lake.load("a").tables
    assert (first.message, first.keys) == (None, (f"open/{SCHEMA}/events/data/part-a-00000.parquet",))
    lake.csv("events.csv", EVENTS + "3,9\n")
    assert lake.load("b").tables[0].rows == 1
    rows = events(open_catalog).scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["_supa_job_id"]) for row in rows) == [(1, "a"), (2, "a"), (3, "b")]
    assert not [action for action, _, _ in lake.aws.calls if action.startswith("glue:")]


TABLE = "/v1/lake/namespaces/public/tables/people"
MERGES = [
    # what each merge of a process asks the catalog: one signs in once, and its clients of the table's files once
    [
        ("POST", "/v1/oauth/tokens"), ("GET", "/v1/config"), ("GET", TABLE), ("GET", TABLE), ("GET", TABLE),
        ("GET", "/v1/lake/namespaces/public"), ("POST", "/v1/lake/namespaces"),
        ("POST", "/v1/lake/namespaces/public/tables"), ("POST", "/v1/oauth/tokens"), ("GET", "/v1/config"),
        ("GET", TABLE), ("GET", TABLE), ("POST", TABLE), ("GET", TABLE), ("GET", TABLE),
    ],
    # The table to plan by, to make ready, to commit to, as it is after the commit, and to compare.
    [("GET", TABLE), ("GET", TABLE), ("GET", TABLE), ("POST", TABLE), ("GET", TABLE), ("GET", TABLE)],
]  # fmt: skip


def test_what_a_merge_asks_the_catalog(lake, open_catalog):
    entry = table("people", lake.csv("people.csv", EVENTS)) | {
        "mode": "merge", "primary_key": ["id"], "order_by": ["at"],
    }  # fmt: skip
    destination = {
        "type": "lakewriter-s3", "location": f"s3://{BUCKET}/own", "region": "us-east-1",
        **open_catalog.make_settings(),
    }  # fmt: skip
    lake.file.write_text(yaml.safe_dump({"pipeline": "own", "destination": destination, "tables": [entry]}), "utf-8")
    clients, asked = Clients(lake.spec.access), []
    for job in "ab":
        open_catalog.calls.clear()
        lake.load(job, clients=clients)
        asked.append([(method, path) for method, path, _ in open_catalog.calls])
    assert asked == MERGES


WALK = [
    # the catalog's default base location, the file's line for it, the location of the volume: the document has
    # "the catalog manages the storage location automatically", and s3://<your-bucket>/ for the volume
    ("data", {}, "data/"),
    ("open", {"catalog_base_location": f"s3://{BUCKET}/open/"}, "open/"),
    ("open/a b", {"catalog_base_location": f"s3://{BUCKET}/open/a b"}, "open/a b/"),
    ("open", {"catalog_base_location": f"s3://{BUCKET}"}, ""),
]


@pytest.mark.parametrize(("base", "settings", "volume"), WALK)
def test_snowflake_reaches_what_a_load_has_written(lake, open_catalog, base, settings, volume):
    """From the load over the stack's two roles to the statement of the volume."""
    open_catalog.base = base
    lake.write(table("events", lake.csv("events.csv", EVENTS)), **SETTINGS, **settings,
               catalog_endpoint=open_catalog.url, s3_path_prefix="data")  # fmt: skip
    (result,) = lake.load("a").tables
    assert events(open_catalog).location() == f"s3://{BUCKET}/{base}/{SCHEMA}/events/"
    (text,) = (query.sql for query in write_queries(lake.spec, [Engine.SNOWFLAKE]) if "EXTERNAL VOLUME" in query.sql
               and query.sql.startswith("--"))  # fmt: skip
    assert f"STORAGE_BASE_URL = 's3://{BUCKET}/{volume}'" in text.splitlines()
    assert result.keys[0].startswith(volume)
    deployment, bucket = Deployment(encryption="SSE-S3"), f"arn:aws:s3:::{BUCKET}"
    reads = [Request("s3:GetObject", f"{bucket}/{result.keys[0]}"),
             Request("s3:ListBucket", bucket, {"s3:prefix": volume})]  # fmt: skip
    writes = Request("s3:PutObject", f"{bucket}/{base}/{SCHEMA}/events/metadata/00000.json")
    for who, requests in ((Who.READER, reads), (Who.CATALOG, [*reads, writes]), (Who.JOB, [*reads[:1], writes])):
        policies = Policies(make_documents(lake.spec, deployment, who, ARNS))
        assert [decision.allowed for decision in simulate(requests, policies)] == [True] * len(requests), who
    reader = Policies(make_documents(lake.spec, deployment, Who.READER, ARNS))
    (elsewhere,) = simulate([Request("s3:GetObject", f"{bucket}/elsewhere/x.parquet")], reader)
    assert elsewhere.allowed is (volume == "")


def test_a_refresh_and_its_undo(lake, open_catalog):
    """By ``lakewriter-s3``, in the same catalog: one snapshot each, and the rows before it come back."""
    settings = {"catalog_endpoint": open_catalog.url, "catalog_name": "lake", "client_id": CLIENT_ID}
    destination = {"type": "lakewriter-s3", "location": f"s3://{BUCKET}/data", "region": "us-east-1"}
    destination |= settings | {"catalog": "open_catalog", "client_secret": "${env:OPEN_CATALOG_SECRET}"}
    entry = table("events", lake.csv("events.csv", EVENTS)) | {"mode": "refresh"}
    content = {"pipeline": "flights", "destination": destination, "tables": [entry]}
    lake.file.write_text(yaml.safe_dump(content), "utf-8")

    def ids():
        found = load_catalog("own", **rest_options(open_catalog), **stores(lake.aws)).load_table(("public", "events"))
        return sorted(found.scan().to_arrow()["id"].to_pylist())

    lake.load("a")
    lake.csv("events.csv", "id,at\n7,9\n")
    open_catalog.drop_commits = 1
    assert lake.load("b").status == "done"
    assert ids() == [7]
    clients = Clients(lake.spec.access)
    Undo(Pipeline.open(lake.spec, clients), "b", Choices("a drill")).run()
    assert ids() == [1, 2]
    lake.load("b.r2")
    assert ids() == [7]
    controls = Pipeline.open(lake.spec, clients).controls
    assert [each.message for each in verify(controls, "b.r2", clients).differences] == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize("is_vended", [False, True])
def test_a_compaction(lake, open_catalog, is_vended):
    if is_vended:
        vend(lake, open_catalog)
    for number in range(5):
        assert lake.load(f"j{number}").status == "done"
        lake.csv("events.csv", f"id,at\n{number + 10},{number + 10}\n")
    (entry,) = lake.spec.tables
    before = sorted(row["id"] for row in events(open_catalog).scan().to_arrow().to_pylist())
    open_catalog.drop_commits = 1
    pipeline = Pipeline.open(lake.spec, Clients(lake.spec.access))
    report = need(Compaction(pipeline, entry, 2**30).run())
    counts = need(report.compacted)
    assert (counts.files, report.files, counts.dropped) == (5, 1, ())
    table = events(open_catalog)
    assert [task.file.record_count for task in table.scan().plan_files()] == [len(before)]
    assert sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) == before
    assert [each.message for each in verify(pipeline.controls, report.job_id, pipeline.clients).differences] == []


def test_lost_answer_to_the_commit(lake, open_catalog):
    open_catalog.drop_commits = 1
    assert lake.load("a").status == "done"
    assert len(events(open_catalog).snapshots()) == 1


def test_secret_that_is_gone_leaves_a_load_that_can_go_on(lake, open_catalog, monkeypatch):
    lake.cut_off("a", completes)
    monkeypatch.delenv("OPEN_CATALOG_SECRET")
    assert lake.load("b").tables[0].code == "PENDING_UNRECOVERABLE"
    monkeypatch.setenv("OPEN_CATALOG_SECRET", CLIENT_SECRET)
    assert lake.load("b").status == "done"
    assert len(events(open_catalog).snapshots()) == 1


def test_secret_that_is_gone_leaves_a_way_out(lake, open_catalog, monkeypatch):
    lake.cut_off("a", completes)
    monkeypatch.delenv("OPEN_CATALOG_SECRET")
    assert given_up(lake, "a").startswith("undone: nothing of its 1 file is visible")
    assert not lake.aws.uploads(BUCKET)


def given_up(lake, job):
    """What abandon says."""
    table_id = f"{SCHEMA}.events"
    return abandon({table_id: lake.control(table_id)}, job, "no more", Clients(lake.spec.access))[table_id]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("match", [uploads_part, completes], ids=["while staging", "while completing"])
def test_vended_credentials_carry_a_load_and_its_recovery(lake, open_catalog, match):
    # So near their end that each use renews them.
    vending = vend(lake, open_catalog, lifetime=timedelta(seconds=50))
    lake.cut_off("a", match)
    report = lake.load("a")
    assert (report.status, lake.aws.uploads(BUCKET)) == ("done", [])
    assert len(events_of(open_catalog).snapshots) == 1
    assert {call.action for call in vending.refused} <= {"s3:AbortMultipartUpload"}
    assert len(vending.used) > 3
    table_id = f"{SCHEMA}.events"
    assert verify({table_id: lake.control(table_id)}, "a", Clients(lake.spec.access)).differences == ()
    left = [report.model_dump_json().encode(), *lake.aws.objects(BUCKET).values()]
    left += [file.read_bytes() for file in lake.folder.rglob("*") if file.is_file()]
    assert not [secret for secret in vending.secrets if any(secret.encode() in text for text in left)]


def test_abandoned_by_vended_credentials(lake, open_catalog):
    vending = vend(lake, open_catalog)
    view = {"format": "csv", "path": "events.csv", "options": {"header": "true", "inferSchema": "true"}}
    read = {"sql": "SELECT /*+ REPARTITION(2) */ * FROM e", "views": {"e": view}}
    text = yaml.safe_load(lake.file.read_text("utf-8"))
    text["tables"][0] |= {"read": read}
    lake.file.write_text(yaml.safe_dump(text), "utf-8")
    lake.cut_off("a", completes, after=1)
    assert given_up(lake, "a").startswith("undone: nothing of its 2 files is visible")
    assert (lake.aws.uploads(BUCKET), vending.refused) == ([], [])
    assert not [key for key in lake.aws.objects(BUCKET) if key.endswith(".parquet")]


@pytest.mark.exhaustive
def test_partitions_after_a_death(lake, open_catalog):
    text = lake.file.read_text("utf-8")
    lake.file.write_text(text.replace("cursor: at\n", "cursor: at\n  partition_by: ['bucket(2, id)']\n"), "utf-8")
    lake.cut_off("a", uploads_part)
    (result,) = lake.load("a").tables
    assert not lake.aws.uploads(BUCKET)
    # Ids 1 and 2 are in one bucket.
    assert (result.message, len(result.keys)) == (None, 1)
    assert result.keys[0].startswith(f"open/{SCHEMA}/events/data/id_bucket=0/part-a-00000-")
    assert [task.file.partition[0] for task in events(open_catalog).scan().plan_files()] == [0]
