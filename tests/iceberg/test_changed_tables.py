"""Tables that others have changed: what a load does about it before it stages, and once its files are there.

Each change is made as another engine would leave it: in the metadata file that the catalog names.
"""

import json
import uuid
from unittest.mock import Mock

import pyarrow as pa
import pytest

from lakewriter.commit.iceberg import obstacles
from lakewriter.commit.iceberg.schema_evolution import IcebergTargetTable
from lakewriter.errors import LakeError, SchemaIncompatibleError
from lakewriter.records.state import Pending, TableState
from tests.iceberg.commits import AT, Table
from tests.load.lakes import BUCKET


def rows(job):
    return pa.table({"id": [1, 2], "job": [job] * 2})


def change(aws, edit):
    """The table's metadata as ``edit`` leaves it, in a new file."""
    glue, s3 = aws.client("glue"), aws.client("s3")
    found = glue.get_table(DatabaseName="db", Name="t")["Table"]
    key = found["Parameters"]["metadata_location"].removeprefix(f"s3://{BUCKET}/")
    metadata = json.loads(s3.get_object(Bucket=BUCKET, Key=key)["Body"].read())
    edit(metadata)
    key = f"{key.rpartition('/')[0]}/99999-{uuid.uuid4()}.metadata.json"
    s3.put_object(Bucket=BUCKET, Key=key, Body=json.dumps(metadata).encode())
    parameters = found["Parameters"] | {"metadata_location": f"s3://{BUCKET}/{key}"}
    kept = {"Name": "t", "TableType": "EXTERNAL_TABLE", "StorageDescriptor": found["StorageDescriptor"]}
    glue.update_table(DatabaseName="db", TableInput=kept | {"Parameters": parameters})


def setting(name, value):
    return lambda metadata: metadata["properties"].update({name: value})


def version(number):
    return lambda metadata: metadata.update({"format-version": number, "next-row-id": 0})


def columns(edit):
    """A new schema, made of the current one."""

    def apply(metadata):
        current = next(s for s in metadata["schemas"] if s["schema-id"] == metadata["current-schema-id"])
        schema = json.loads(json.dumps(current)) | {"schema-id": 9}
        edit(schema)
        metadata["schemas"].append(schema)
        metadata["current-schema-id"] = 9
        metadata["last-column-id"] = 50

    return apply


def another(name, kind, *, required=False):
    return lambda schema: schema["fields"].append({"id": 50, "name": name, "required": required, "type": kind})


def defaulted(*, initial, write):
    def apply(schema):
        another("more", "int")(schema)
        schema["fields"][-1] |= {"initial-default": initial, "write-default": write}

    return apply


def identify(schema):
    schema["fields"][0]["required"] = True
    schema["identifier-field-ids"] = [1]


def anew(schema):
    schema["fields"][1] = {"id": 50, "name": "job", "required": False, "type": "string"}


def require(schema):
    schema["fields"][0]["required"] = True


def spec(transform, *, default=True):
    def apply(metadata):
        field = {"source-id": 1, "field-id": 1000, "name": "p", "transform": transform}
        metadata["partition-specs"].append({"spec-id": 7, "fields": [field]})
        metadata["last-partition-id"] = 1000
        if default:
            metadata["default-spec-id"] = 7

    return apply


def sort(metadata):
    field = {"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}
    metadata["sort-orders"].append({"order-id": 1, "fields": [field]})
    metadata["default-sort-order-id"] = 1


def branch(metadata):
    current = metadata["current-snapshot-id"]
    metadata["refs"] |= {"audit": {"snapshot-id": current, "type": "branch"}}
    metadata["refs"] |= {"v1": {"snapshot-id": current, "type": "tag"}}


FINE = None
CHANGED = [
    # what others did; what a load that begins then says, what one says whose files are there already (None: committed)
    ("nothing", lambda metadata: None, FINE, FINE),
    ("version 3", version(3), FINE, FINE),
    ("version 3, no row ids", lambda metadata: metadata.update({"format-version": 3}), "without next-row-id",
     "without next-row-id"),
    ("a column with a default", columns(defaulted(initial=5, write=5)), FINE, FINE),
    ("a column with a default for new rows", columns(defaulted(initial=None, write=5)),
     "has column 'more', which the load does not write: new rows must have its default 5", FINE),
    ("version 4", version(4), "PyIceberg cannot load table db.t", "PyIceberg cannot load table db.t"),
    ("a branch and a tag", branch, FINE, FINE),
    ("a sort order", sort, FINE, FINE),
    ("identifier fields", columns(identify), "has identifier fields (id)", FINE),
    ("a required column more", columns(another("must", "int", required=True)), "requires column 'must'",
     "requires column 'must', and load 'a' did not write it"),
    ("a column more", columns(another("more", "int")), FINE, FINE),
    ("a column required", columns(require), FINE, FINE),
    ("a column renamed", columns(lambda s: s["fields"][1].update(name="other")), FINE, FINE),
    ("a column dropped", columns(lambda s: s["fields"].pop(1)), FINE, FINE),
    ("a column dropped and made anew", columns(anew), FINE, "has another column of the name 'job' (field id 50)"),
    ("a column of type uuid", columns(another("odd", "uuid")), FINE, FINE),
    ("a column of type variant", columns(another("odd", "variant")), "PyIceberg cannot load", "PyIceberg cannot load"),
    ("partitioned", spec("identity"), "is partitioned by identity of id", "was partitioned in another way"),
    ("partitioned, unknown", spec("zorder"), "is partitioned by unknown of id", "was partitioned in another way"),
    ("partitioned once, unknown", spec("zorder", default=False), FINE, FINE),
    ("partitioned, void", spec("void"), "is partitioned by void of id", "was partitioned in another way"),
    ("encrypted", setting("encryption.key-id", "k"), "is encrypted with key 'k'", "is encrypted with key 'k'"),
    ("data elsewhere", setting("write.data.path", "s3://other/data"), FINE, FINE),
    ("metadata elsewhere", setting("write.metadata.path", "s3://other/meta"), "keeps its metadata in 's3://other/meta/'",
     "keeps its metadata in 's3://other/meta/'"),
    ("code for locations", setting("write.py-location-provider.impl", "a.b.C"), "wants Python code, 'a.b.C'",
     "wants Python code, 'a.b.C'"),
    ("code for files", setting("py-io-impl", "pyiceberg.io.pyarrow.PyArrowFileIO"), FINE, FINE),
    ("no retries", setting("commit.retry.num-retries", "0"), FINE, FINE),
    ("a number of retries that is none", setting("commit.retry.num-retries", "x"), "commit.retry.num-retries",
     "commit.retry.num-retries"),
    ("a number of manifests that is none", setting("commit.manifest.min-count-to-merge", "x"), "min-count-to-merge",
     "min-count-to-merge"),
    ("a number of versions that is none", setting("write.metadata.previous-versions-max", "x"), "previous-versions-max",
     "previous-versions-max"),
    ("a codec unknown", setting("write.avro.compression-codec", "lzma"), "Unsupported codec: lzma",
     "Unsupported codec: lzma"),
    ("a limit that is none", setting("write.summary.partition-limit", "x"),
     "write.summary.partition-limit to an integer: x", "write.summary.partition-limit to an integer: x"),
    ("a name mapping", setting("schema.name-mapping.default", '[{"field-id": 1, "names": ["id"]}]'), FINE, FINE),
    ("a name mapping that is none", setting("schema.name-mapping.default", "x"), "schema.name-mapping.default", FINE),
    ("the count lost", setting("lakewriter.p", "x"), "property 'lakewriter.p' = 'x'", "property 'lakewriter.p' = 'x'"),
    ("another format", setting("write.format.default", "orc"), FINE, FINE),
    ("written, audited, published", setting("write.wap.enabled", "true"), FINE, FINE),
]  # fmt: skip
BEGINS = [pytest.param(edit, said, id=name) for name, edit, said, _ in CHANGED]
STAGED = [pytest.param(edit, said, id=name) for name, edit, _, said in CHANGED]


@pytest.fixture
def table(aws, bucket):
    """A table with one load in it."""
    aws.hide_missing = False
    table = Table(aws)
    table.publish(table.intent("z", rows("z")), 1)
    return table


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("edit", "said"), BEGINS)
def test_a_load_that_begins(aws, table, edit, said):
    """It is refused before anything is written, or it is committed."""
    change(aws, edit)
    before = aws.objects(BUCKET)
    if said is FINE:
        table.publish(table.intent("a", rows("a"), committed=1), 2)
        assert len(table.seen.snapshots()) == 2
        assert table.seen.scan().to_arrow().num_rows == 4
        return
    with pytest.raises(SchemaIncompatibleError) as caught:
        table.ready("a", rows("a").schema, committed=1)
    assert said in caught.value.message
    assert caught.value.remedy
    assert aws.objects(BUCKET) == before


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("edit", "said"), STAGED)
def test_a_load_whose_files_are_there(aws, table, edit, said):
    """It is committed, or refused with a way out; the table takes it once it is changed back."""
    staged = table.intent("a", rows("a"), committed=1)
    parameters = aws.client("glue").get_table(DatabaseName="db", Name="t")["Table"]
    change(aws, edit)
    before = aws.objects(BUCKET)
    if said is FINE:
        table.publish(staged, 2)
        return
    with pytest.raises(LakeError) as caught:
        table.publish(staged, 2)
    assert caught.value.code in ("PENDING_UNRECOVERABLE", "SCHEMA_INCOMPATIBLE")
    assert said in caught.value.message
    assert caught.value.remedy
    assert aws.objects(BUCKET) == before
    kept = {name: parameters[name] for name in ("Name", "TableType", "Parameters", "StorageDescriptor")}
    aws.client("glue").update_table(DatabaseName="db", TableInput=kept)
    table.publish(staged, 2)
    assert table.seen.scan().to_arrow().num_rows == 4


PLANNED = [
    # what others change once the load is planned, the schema that it comes to have, how often an append is rehearsed
    (None, rows("a").schema, 1),
    (setting("x", "y"), rows("a").schema, 2),
    (None, rows("a").schema.append(pa.field("more", pa.int64())), 2),
]


@pytest.mark.parametrize(("edit", "schema", "rehearsed"), PLANNED)
def test_what_the_plan_has_found_is_asked_again_of_another_version(aws, table, monkeypatch, edit, schema, rehearsed):
    rehearse = Mock(wraps=obstacles._rehearse_append)
    monkeypatch.setattr(obstacles, "_rehearse_append", rehearse)
    planned = table._before("a")
    planned.describe_changes(rows("a").schema)
    if edit:
        change(aws, edit)
    planned.prepare(schema, TableState(committed=1))
    assert rehearse.call_count == rehearsed


def test_a_table_made_anew_under_the_name_does_not_get_the_files(aws, table):
    """Its field ids are others, whatever its columns are called."""
    staged = table.intent("a", rows("a"), committed=1)
    aws.client("glue").delete_table(DatabaseName="db", Name="t")
    Table(aws).ready("z", rows("z").schema)
    before = aws.objects(BUCKET)
    with pytest.raises(LakeError) as caught:
        table.publish(staged, 2)
    assert (caught.value.code, bool(caught.value.remedy)) == ("PENDING_UNRECOVERABLE", True)
    assert aws.objects(BUCKET) == before
    assert table.seen.scan().to_arrow().num_rows == 0


def test_nulls_in_a_column_that_became_required(aws, table):
    staged = table.intent("a", pa.table({"id": [1, None], "job": ["a"] * 2}), committed=1)
    change(aws, columns(require))
    with pytest.raises(SchemaIncompatibleError, match="requires column 'id', and load 'a' has 1 nulls in it"):
        table.publish(staged, 2)


def test_required_within_a_struct(aws, bucket):
    aws.hide_missing = False
    table = Table(aws)
    nested = pa.table({"s": [{"a": 1}]})
    table.publish(table.intent("z", nested), 1)

    def more(schema):
        schema["fields"][0]["type"]["fields"].append({"id": 50, "name": "b", "required": True, "type": "int"})

    change(aws, columns(more))
    with pytest.raises(SchemaIncompatibleError, match=r"requires column 's\.b', which the load does not write"):
        table.ready("a", nested.schema, committed=1)
    # A load that brings no such struct at all leaves it null.
    table.ready("a", pa.schema([pa.field("x", pa.int64())]), committed=1)


OVERLAPS = [
    # loads that the state knows of when the load is about to stage, whether one is pending, whether it goes on
    (1, False, True),
    (0, True, True),
    (0, False, False),
]


@pytest.mark.parametrize(("committed", "pending", "goes_on"), OVERLAPS)
def test_another_load_of_the_pipeline_committed_meanwhile(table, committed, pending, goes_on):
    """The table has one load; this one registered before there was any."""
    before = IcebergTargetTable(table.action, table.clients, "p/b/b1")
    now = Pending(job_id="z", attempt="z1", phase="uploaded", since=AT) if pending else None
    latest = TableState(committed=committed, pending=now)
    if goes_on:
        before.prepare(rows("b").schema, TableState(), latest=lambda: latest)
    else:
        with pytest.raises(LakeError, match=r"has 1 loads of pipeline 'p'.*the state knows of 0"):
            before.prepare(rows("b").schema, TableState(), latest=lambda: latest)
