"""The document's endpoint and binding keys, and its example as it stands."""

from datetime import UTC, datetime

import jsonschema
import pytest
import yaml

from lakewriter.dialects.lake_yaml import LakeFile, load, load_spec
from lakewriter.errors import NameCollisionError, SpecInvalidError, TlsRequiredError
from lakewriter.spec.access import SecretText
from lakewriter.spec.catalogs import NoCatalog
from lakewriter.spec.collection import Kind, Location
from tests.dialects.files import lake
from tests.dialects.flows import BINDING, DOCUMENTED, TABLE, bindings, flow
from tests.support.narrow import need

AT = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
SECOND = BINDING | {"source": "acmeCo/orders", "resource": {"pathPrefix": "orders/", "compressionType": "zstd"}}


def keyed(table, seq=0, backfill=0, first=0):
    names = table.layout.bind(job_id="j", attempt="x", start=AT)
    return names.number(backfill, first).object_key(seq)


def test_documented_example_unchanged(tmp_path):
    spec = load_spec(flow(tmp_path))
    (table,) = spec.tables
    assert (spec.access.bucket, spec.access.region, spec.access.prefix) == ("my-bucket", "", "")
    assert spec.access.access_key_id == SecretText("AKIAIOSFODNN7EXAMPLE")
    assert (spec.interval_seconds, spec.catalog, spec.tracking) == (300, NoCatalog(), ())
    assert (table.path, need(table.encoding).codec, need(table.collection).keys) == ("my-prefix", "snappy", ("id",))
    assert spec.warnings == (
        "flow.yaml:8: materializations.PREFIX/mat_name.endpoint.connector.config.awsSecretAccessKey is "
        "written out; a reference such as "
        "${env:NAME} keeps it out of the file.",
        "region is not given; bucket 'my-bucket' is asked for it.",
    )


def test_key(tmp_path):
    first, second = load_spec(bindings(tmp_path, BINDING, SECOND)).tables
    assert keyed(first) == "my-prefix/v0000000000/00000000000000000000.parquet"
    assert keyed(second, seq=2, backfill=3, first=40) == "orders/v0000000003/00000000000000000042.parquet"
    assert [table.id for table in (first, second)] == ["my-prefix", "orders"]


def test_compression_of_the_endpoint_is_a_default(tmp_path):
    tables = load_spec(bindings(tmp_path, BINDING, SECOND, compressionType="lz4")).tables
    assert [need(table.encoding).codec for table in tables] == ["lz4", "zstd"]


def test_advanced_endpoint(tmp_path):
    access = load_spec(bindings(tmp_path, advanced={"endpoint": "https://s3.example.com"})).access
    assert (access.endpoint, access.checksum_algorithm) == ("https://s3.example.com", None)
    with pytest.raises(TlsRequiredError):
        load_spec(bindings(tmp_path, advanced={"endpoint": "http://s3.example.com"}))


def test_form(tmp_path):
    labels = [field.label for field in load(bindings(tmp_path)).form]
    assert labels == ["Access Key ID", "Secret Access Key", "Bucket", "Region", "Upload Interval in Seconds"]


def test_flow_collection_gives_keys_schema_and_projections(tmp_path):
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    collection = {"key": ["/id"], "schema": "s.schema.yaml", "projections": {"number": "/id"}, "derive": {}}
    (tmp_path / "s.schema.yaml").write_text(yaml.safe_dump(schema), "utf-8")
    text = DOCUMENTED + yaml.safe_dump({"collections": {"PREFIX/source_collection": collection}})
    table = {key: value for key, value in TABLE.items() if key != "primary_key"}
    found = need(load_spec(flow(tmp_path, text, table)).tables[0].collection)
    assert (found.keys, found.locations) == (("/id",), (Location(("id",), Kind.INTEGER),))
    assert found.selection.projections == (("number", "/id"),)


def test_flow_config_in_a_file_of_its_own(tmp_path):
    data = yaml.safe_load(DOCUMENTED)
    connector = data["materializations"]["PREFIX/mat_name"]["endpoint"]["connector"]
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(connector["config"] | {"credentials_title": "x"}), "utf-8")
    connector["config"] = "c.yaml"
    assert load_spec(flow(tmp_path, yaml.safe_dump(data))).access.bucket == "my-bucket"
    (tmp_path / "c.yaml").write_text(yaml.safe_dump({"bucket": "b-b", "buckets": "x"}), "utf-8")
    with pytest.raises(SpecInvalidError, match=r"c\.yaml:2: buckets: the connector's configuration has no such key"):
        load_spec(flow(tmp_path, yaml.safe_dump(data)))


FLOWS = [
    # the Flow file, tables, what is said
    ("materializations: {}", [], "flow.yaml:1: there are no 'materializations'"),
    (DOCUMENTED + "  b/c: {}\n", [], "flow.yaml:2: materializations: there are 2: 'PREFIX/mat_name', 'b/c'"),
    (DOCUMENTED, [TABLE | {"source": "other"}], "bindings.0: collection 'PREFIX/source_collection' has "
     "no source of documents; tables has: 'other'"),
    (DOCUMENTED, [TABLE, TABLE | {"source": "more"}], "'more' is the source of no binding of flow.yaml"),
    (DOCUMENTED, [TABLE | {"primary_key": []}], "the collection has no key"),
    ("a: [", [], "flow.yaml:1: a .*before the end of this line has no end"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tables", "message"), FLOWS)
def test_flow_problems(tmp_path, text, tables, message):
    with pytest.raises(SpecInvalidError, match=message):
        load_spec(flow(tmp_path, text, *tables))


PROBLEMS = [
    # laid over the binding, over the destination; what is said
    ({"resource": {"pathPrefix": "/"}}, {}, "tables.0.resource.pathPrefix: '/': expected a path inside the bucket"),
    ({"resource": {"pathprefix": "a"}}, {}, "did you mean 'pathPrefix'"),
    ({"resource": {"pathPrefix": "a", "compressionType": "lzo"}}, {}, "expected 'snappy', 'gzip', 'lz4' or 'zstd'"),
    ({"fields": {"include": {"a": {}}, "exclude": ["a"]}}, {}, "'a' is included and excluded"),
    ({"collection": {"schema": {"type": "objekt"}}}, {}, "type 'objekt' at the root"),
    ({"mode": "overwrite"}, {}, "only appends delta updates"),
    ({"deleted": "true"}, {}, "has 'deleted'"),
    ({"partition_by": ["day(c)"]}, {}, "has 'partition_by'"),
    ({"sort_by": ["c"]}, {}, "has 'sort_by'"),
    ({"fields": {"includ": {}}}, {}, "did you mean 'include'"),
    ({}, {"uploadIntervalInSeconds": None}, "destination.uploadIntervalInSeconds: is required"),
    ({}, {"uploadIntervalInSecond": 1}, "did you mean 'uploadIntervalInSeconds'"),
    ({}, {"awsAccessKeyId": "a"}, "'awsAccessKeyId' and 'awsSecretAccessKey' are given both or not at all"),
]


@pytest.mark.parametrize(("binding", "destination", "message"), PROBLEMS)
def test_problems(tmp_path, binding, destination, message):
    with pytest.raises(SpecInvalidError, match=message):
        load_spec(bindings(tmp_path, BINDING | binding, **destination))


def test_bindings_at_one_path(tmp_path):
    with pytest.raises(NameCollisionError, match="two bindings have the pathPrefix 'my-prefix'"):
        load_spec(bindings(tmp_path, BINDING, BINDING | {"source": "other"}))


def test_binding_under_another(tmp_path):
    inner = BINDING | {"source": "other", "resource": {"pathPrefix": "my-prefix/inner"}}
    assert "lies under that at 'my-prefix'" in load_spec(bindings(tmp_path, BINDING, inner)).warnings[0]


def test_bindings_inside_others_are_told_outer_by_outer(tmp_path):
    paths = ("b/c", "a", "a/x/y", "b", "a/x", "ab/x")
    entries = [BINDING | {"source": path, "resource": {"pathPrefix": path}} for path in paths]
    told = [warning for warning in load_spec(bindings(tmp_path, *entries)).warnings if "lies under" in warning]
    assert told == [
        f"binding at {inner!r} lies under that at {outer!r}: read them by v*/*.parquet, not by folder."
        for outer, inner in [("a", "a/x"), ("a", "a/x/y"), ("b", "b/c"), ("a/x", "a/x/y")]
    ]


def test_binding_keys_belong_to_this_destination(tmp_path):
    with pytest.raises(SpecInvalidError, match="'source' is only for the destination 'estuary-s3-parquet'"):
        load_spec(lake(tmp_path, tables=[BINDING]))
    with pytest.raises(SpecInvalidError, match="has no binding's keys"):
        load_spec(bindings(tmp_path, {"table": "a", "read": {"format": "csv", "path": "a.csv"}}))


def test_interval_and_checkpoint(tmp_path):
    spec = load_spec(lake(tmp_path, top={"checkpoint": "cp", "interval_seconds": 5}))
    assert (spec.interval_seconds, spec.checkpoint) == (5, str(tmp_path / "cp"))
    with pytest.raises(SpecInvalidError, match="uploadIntervalInSeconds"):
        load_spec(bindings(tmp_path, top={"interval_seconds": 5}))


INTERVALS = [
    # the key, the destination's own interval; the least and the most seconds
    (None, 300, (300, None)),
    ("adaptive", 300, (300, 3000)),
    ("adaptive", 600, (600, 3600)),
    ("adaptive", 7200, (7200, 7200)),
    ({"least_seconds": 30}, 300, (30, 300)),
    ({"most_seconds": 900}, 300, (300, 900)),
    ({"least_seconds": 1, "most_seconds": 1}, 300, (1, 1)),
]


@pytest.mark.parametrize(("interval", "seconds", "bounds"), INTERVALS)
def test_interval_that_adapts(tmp_path, interval, seconds, bounds):
    top = {} if interval is None else {"interval": interval}
    spec = load_spec(bindings(tmp_path, top=top, uploadIntervalInSeconds=seconds))
    assert (spec.interval_seconds, spec.most_interval_seconds) == bounds


def test_interval_without_room(tmp_path):
    with pytest.raises(
        SpecInvalidError, match=r"lake\.yaml:\d+: interval\.most_seconds: it is 60, and the least .* is 300"
    ):
        load_spec(bindings(tmp_path, top={"interval": {"most_seconds": 60}}))


@pytest.mark.parametrize("written", [bindings, flow])
def test_schema_for_editors_takes_it(tmp_path, written):
    content = yaml.safe_load(written(tmp_path).read_text("utf-8"))
    jsonschema.validate(content, LakeFile.model_json_schema())
