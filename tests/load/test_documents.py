"""Materializations of documents: the vendor's example, its objects and arrays, and the counter in keys."""

import io
import json
from datetime import UTC, time, timedelta
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from lakewriter.commit.resets import begin_backfill
from lakewriter.dialects.estuary.settings import Compression
from tests.dialects.flows import DOCUMENTED
from tests.load.lakes import BUCKET, completes, uploads_part
from tests.load.materializations import DESTINATION, Materialization, binding
from tests.shape.collections import CHANGE, RECENTCHANGE

pytestmark = pytest.mark.spark

COMPRESSIONS = get_args(Compression)
FIRST = "v0000000000/00000000000000000000.parquet"
SCHEMA = {"key": ["/meta/id"], "schema": RECENTCHANGE}
CHANGES = [CHANGE | {"id": number, "meta": CHANGE["meta"] | {"id": f"m-{number}"}} for number in range(3)]


@pytest.fixture
def wiki(tmp_path, aws, bucket, spark):
    lake = Materialization(tmp_path, aws, spark)
    lake.documents("changes.jsonl", CHANGES)
    return lake


def test_documented_example_in_each_codec(wiki):
    """Its one binding, and one for each codec; the bucket is the embedded server's, the region is asked of it."""
    data = yaml.safe_load(DOCUMENTED.replace("my-bucket", BUCKET))
    (flow,) = data["materializations"].values()
    for codec in COMPRESSIONS:
        resource = {"pathPrefix": f"/{codec}", "compressionType": codec}
        flow["bindings"].append({"resource": resource, "source": f"PREFIX/{codec}"})
    (wiki.folder / "flow.yaml").write_text(yaml.safe_dump(data), "utf-8")
    sources = [each["source"] for each in flow["bindings"]]
    own = {"read": {"format": "text", "path": "changes.jsonl"}, "documents": "value", "collection": SCHEMA}
    destination = DESTINATION | {"config_file": "flow.yaml"}
    for key in ("bucket", "uploadIntervalInSeconds"):
        destination.pop(key)
    wiki.write(*({"source": source} | own for source in sources), destination=destination)
    assert wiki.load("a").status == "done"
    names = ["my-prefix", *COMPRESSIONS]
    assert sorted(wiki.data()) == sorted(f"{name}/{FIRST}" for name in names)
    found = {name: pq.ParquetFile(io.BytesIO(wiki.data()[f"{name}/{FIRST}"])).metadata for name in names}
    used = {name: each.row_group(0).column(0).compression for name, each in found.items()}
    assert used == {"my-prefix": "SNAPPY", "snappy": "SNAPPY", "gzip": "GZIP", "lz4": "LZ4", "zstd": "ZSTD"}
    for name in names:
        assert wiki.rows('SELECT "meta/id", "length/new" FROM t ORDER BY 1', name) == [
            (f"m-{number}", 120) for number in range(3)
        ]


FIELDS = [
    # what is read, the binding's fields, a query, its first row
    ("text", {"include": {"length": {}, "revision": {}}, "recommended": True}, "length, revision",
     ('{"new":120,"old":118}', '{"new":9,"old":8}')),
    ("json", {"include": {"length": {}, "revision": {}}, "recommended": True}, "length, revision",
     ('{"new":120,"old":118}', '{"new":9,"old":8}')),
    ("json", {}, '"length/new", "revision/old", "meta/id"', (120, 8, "m-0")),
    ("json", {"include": {"tags": {}}, "recommended": False}, 'tags, "meta/id"', ('["mobile"]', "m-0")),
]  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("kind", "fields", "columns", "row"), FIELDS)
def test_recentchange(wiki, kind, fields, columns, row):
    entry = binding("changes", "changes.jsonl", fields=fields, primary_key=["/meta/id"])
    if kind == "json":
        entry["read"] = entry["read"] | {"format": "json"}
        del entry["documents"]
    wiki.write(entry)
    (result,) = wiki.load("a").tables
    assert (result.status, result.rows, result.files, result.small_files) == ("done", 3, 1, 1)
    assert wiki.rows(f'SELECT {columns} FROM t ORDER BY "meta/id"', "changes")[0] == row
    assert ("left out: tags (array)" in result.notes) == ("tags" not in fields.get("include", {}))


def test_plan_shows_the_fields(wiki):
    wiki.write(binding("changes", "changes.jsonl", collection=SCHEMA, fields={"include": {"length": {}}}))
    (planned,) = wiki.planned()
    assert planned.key == f"s3://{BUCKET}/changes/{FIRST}"
    shown = [("bot", "bot", "bool"), ("id", "id", "int64"), ("length", "length", "string")]
    assert [(c.source, c.name, c.type) for c in planned.columns[:3]] == shown
    assert planned.warnings == (
        "left out: tags (array)",
        "no cursor: each load after this one appends all rows of the source again",
        "A cursor, read: {files: new}, or a mode that replaces rows keeps them from coming again.",
    )


def test_counter_goes_on(wiki):
    wiki.write(binding("changes", "changes.jsonl", collection=SCHEMA))
    for job in ("a", "b", "b"):
        wiki.load(job)
    assert [key[-11:] for key in wiki.data()] == ["000.parquet", "001.parquet"]
    assert wiki.control("changes").state.read().counter == 2
    assert wiki.planned()[0].key.endswith("/00000000000000000002.parquet")


@pytest.mark.exhaustive
@pytest.mark.parametrize(("match", "files"), [(uploads_part, 1), (completes, 2)])
def test_counter_after_a_kill(wiki, match, files):
    """What was only staged leaves no gap; what was bound is completed first."""
    wiki.write(binding("changes", "changes.jsonl", collection=SCHEMA))
    wiki.killed("a", match)
    assert wiki.load("b").status == "done"
    assert [key[-11:] for key in wiki.data()] == ["000.parquet", "001.parquet"][:files]
    wiki.load("a")
    assert [key[-11:] for key in wiki.data()] == ["000.parquet", "001.parquet"]
    assert not wiki.aws.uploads(BUCKET)


def test_without_a_schema_every_batch_is_taken(wiki):
    """Batches of one table that have ``length``, have none, have null, and have no document."""
    entry = binding("log", "in", primary_key=["id"], fields={"include": {"length": {}}})
    entry["read"] |= {"options": {"maxFilesPerTrigger": "1"}}
    wiki.write(entry, checkpoint="checkpoint")
    batches = [
        [{"id": 1, "length": {"new": 9}}],
        [{"id": 2, "type": "log"}],
        [{"id": 3, "length": None}],
        [],
        [{"id": 4}],
    ]
    for number, documents in enumerate(batches):
        wiki.documents(f"in/{number}.jsonl", documents)
    with wiki.running():
        wiki.until(len(batches) - 1, "log")
    assert wiki.rows("SELECT id, length FROM t ORDER BY id", "log") == [
        ("1", '{"new":9}'),
        ("2", None),
        ("3", None),
        ("4", None),
    ]
    assert len(wiki.data()) == 4


def test_what_was_inferred_is_the_tables(wiki):
    """It is kept with the state, and a new backfill, whose files lie by themselves, begins anew."""
    wiki.write(binding("log", "log.jsonl", primary_key=["id"]))
    batches = [
        ("a", [{"id": 1, "v": "a"}]),
        ("b", [{"n": {"x": 2.5}, "id": "2", "v": 123456789012345678}]),
        ("c", [{"id": 3}]),
    ]
    for job, documents in batches:
        wiki.documents("log.jsonl", documents)
        assert wiki.load(job).status == "done"
    rows = [('"2"', "123456789012345678", "2.5"), ("1", '"a"', None), ("3", None, None)]
    assert wiki.rows('SELECT id, v, "n/x" FROM t ORDER BY id', "log") == rows
    state = wiki.control("log").state.read()
    assert [(column.name, column.path, column.kind) for column in state.inferred or ()] == [
        ("id", ("id",), "value"),
        ("v", ("v",), "value"),
        ("n/x", ("n", "x"), "value"),
    ]
    assert state.needs == ("inferred",)
    assert begin_backfill(wiki.control("log"), "anew").inferred is None


def test_a_release_before_this_one_has_typed_the_columns(wiki):
    """Its state says nothing of them: its files do."""
    wiki.documents("log.jsonl", [{"id": 1, "v": "a"}])
    wiki.write(binding("log", "log.jsonl", primary_key=["id"]))
    wiki.load("a")
    file = io.BytesIO()
    pq.write_table(pa.table({"id": [1], "v": ["a"], "n/x": [0.5]}), file)
    s3 = wiki.aws.client("s3")
    s3.put_object(Bucket=BUCKET, Key=f"log/{FIRST}", Body=file.getvalue())
    state = wiki.control("log").state.read()
    body = state.model_copy(update={"inferred": None, "needs": ()}).model_dump_json()
    assert "inferred" not in body
    s3.put_object(Bucket=BUCKET, Key="_lakewriter/wiki/tables/log/state.json", Body=body.encode())
    wiki.documents("log.jsonl", [{"id": 2, "v": "b", "n": {"x": 1, "y": 1}}])
    (planned,) = wiki.planned()
    assert [(column.name, column.type) for column in planned.columns] == [
        ("id", "int64"), ("v", "string"), ("n/x", "double"), ("n/y", "string")
    ]  # fmt: skip
    assert wiki.load("b").status == "done"
    assert wiki.rows('SELECT id, v, "n/x", "n/y" FROM t ORDER BY id', "log") == [
        (1, "a", 0.5, None),
        (2, "b", 1.0, "1"),
    ]
    wiki.documents("log.jsonl", [{"id": "3"}])
    (failed,) = wiki.load("c").tables
    assert failed.code == "VALUE_UNREPRESENTABLE"
    assert "field 'id', row 0: value \"3\" cannot be written as integer" in (failed.message or "")


def test_a_deep_document_is_a_bad_row(wiki):
    """Where no schema names it, and at once: no other attempt would fare better."""
    deep = {"id": 2, "unknown": json.loads("[" * 995 + "]" * 995)}
    wiki.documents("log.jsonl", [{"id": 1}, deep])
    for more in ({}, {"collection": {"schema": {"properties": {"id": {"type": "integer"}}}}}):
        wiki.write(binding("log", "log.jsonl", primary_key=["id"], **more))
        (failed,) = wiki.load("a").tables
        assert (failed.status, failed.code) == ("failed", "VALUE_UNREPRESENTABLE")
        assert "row 1: " in (failed.message or "")
        assert "it nests more than 994 levels deep" in (failed.message or "")


def test_a_source_without_documents_is_an_empty_load(wiki):
    wiki.documents("none.jsonl", [])
    wiki.write(binding("none", "none.jsonl", primary_key=["id"], fields={"include": {"length": {}}}))
    (result,) = wiki.load("a").tables
    assert (result.status, result.rows, result.files, wiki.data()) == ("done", 0, 0, {})


def test_types_as_the_connector_of_today_writes_them(wiki):
    types = {"tags": {"type": "array"}, "span": {"type": "string", "format": "duration"},
             "hour": {"type": "string", "format": "time"}, "id": {"type": "integer"}}  # fmt: skip
    # The UUID is RFC 9562's example of version 1, A.1: 2022-02-22T19:22:22Z.
    document = {"id": 1, "tags": [1], "span": "P1DT2H", "hour": "10:00:00+02:00",
                "_meta": {"uuid": "C232AB00-9414-11EC-B3C8-9F6BDECED846"}}  # fmt: skip
    wiki.documents("changes.jsonl", [document])
    fields: dict[str, Any] = {"include": {"tags": {}, "flow_published_at": {}}}
    own = {"collection": {"key": ["/id"], "schema": {"properties": types}}, "fields": fields, "documents": "value"}
    wiki.write(
        binding("changes", "changes.jsonl") | own, destination=DESTINATION | {"logical_types": ["json", "interval"]}
    )
    assert wiki.load("a").status == "done"
    (row,) = wiki.rows(
        "SELECT tags->0, span, hour, epoch_us(flow_published_at), typeof(tags), typeof(span) FROM t", "changes"
    )
    assert row == ("1", timedelta(days=1, hours=2), time(8, tzinfo=UTC), 1_645_557_742_000_000, "JSON", "INTERVAL")
