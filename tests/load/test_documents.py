"""Materializations of documents: the vendor's example, its objects and arrays, and the counter in keys."""

import io
from typing import get_args

import pyarrow.parquet as pq
import pytest
import yaml

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
    )


def test_counter_goes_on(wiki):
    wiki.write(binding("changes", "changes.jsonl", collection=SCHEMA))
    for job in ("a", "b", "b"):
        wiki.load(job)
    assert [key[-11:] for key in wiki.data()] == ["000.parquet", "001.parquet"]
    assert wiki.control("changes").state.read().counter == 2
    assert wiki.planned()[0].key.endswith("/00000000000000000002.parquet")


@pytest.mark.parametrize(
    ("match", "files"), [pytest.param(uploads_part, 1, marks=pytest.mark.exhaustive), (completes, 2)]
)
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
        (1, '{"new":9}'),
        (2, None),
        (3, None),
        (4, None),
    ]
    assert len(wiki.data()) == 4


def test_a_source_without_documents_is_an_empty_load(wiki):
    wiki.documents("none.jsonl", [])
    wiki.write(binding("none", "none.jsonl", primary_key=["id"], fields={"include": {"length": {}}}))
    (result,) = wiki.load("a").tables
    assert (result.status, result.rows, result.files, wiki.data()) == ("done", 0, 0, {})
