"""``lakewriter airbyte adopt``: what a connection's bucket has, which line of the configuration misses it, and the
states that go on from there."""

import gzip
import io
import json
from pathlib import Path
from typing import Any, cast

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from lakewriter.cli.main import main
from lakewriter.dialects.airbyte.connector import read_connection
from tests.cli.platform import Platform, user
from tests.load.syncs import BUCKET, stream

USERS = stream("users", destination_sync_mode="overwrite", sync_mode="full_refresh")
ORDERS = stream("orders")
GZIP: dict[str, Any] = {"format_type": "JSONL", "compression": {"compression_type": "GZIP"}}


@pytest.fixture
def platform(tmp_path, aws, bucket):
    return Platform(tmp_path, aws, cast(SparkSession, None))


def put(platform, key: str, generation: int | None = None, body: bytes = b"{}\n", **metadata: str) -> None:
    """An object as the vendor's connector writes it."""
    own = {} if generation is None else {"ab-generation-id": str(generation)}
    platform.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body, Metadata=own | metadata)


def adopt(platform, *options: str, streams=(USERS, ORDERS), **config: Any) -> Any:
    """What the command says: text, or with --json the object."""
    given = platform.given(*streams, **config)
    files = ["--config", str(given[0]), "--catalog", str(given[1])]
    done = CliRunner().invoke(main, ["airbyte", "adopt", *files, *options])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout) if "--json" in options else done.stdout


AT = "2021_01_01_1609459200000_"
MISSED = [
    # a key under the bucket path, what of the configuration it differs in; the formats are those of the documents
    (f"data/public/clicks/{AT}0.jsonl", "the catalog has no stream 'clicks' in namespace 'public': name it there if it "
     "is this connection's"),
    (f"data/crm/users/{AT}0.jsonl", "the catalog has no stream 'users' in namespace 'crm': name it there if it is this "
     "connection's"),
    (f"data/users/{AT}0.jsonl", "the catalog has no stream 'users' without a namespace: name it there if it is this "
     "connection's"),
    (f"data/users_{AT}0.csv.gz", "config.json: s3_path_format "
     "'${STREAM_NAME}_${YEAR}_${MONTH}_${DAY}_${EPOCH}_' would make it one of stream 'users'"),
    ("data/public/users/2021/01/02/03_04_7.avro", "config.json: s3_path_format "
     "'${NAMESPACE}/${STREAM_NAME}/${YEAR}/${MONTH}/${DAY}/${HOUR}_${MINUTE}_' would make it one of stream 'users'"),
    ("data/public/orders/dt=20210102/1c9e6679-7425-40de-944b-e07fc1f90ae7.parquet", "config.json: s3_path_format "
     "'${NAMESPACE}/${STREAM_NAME}/dt=${YEAR}${MONTH}${DAY}/' would make it one of stream 'orders'"),
    ("data/public/orders/all.csv", "config.json: s3_path_format '${NAMESPACE}/${STREAM_NAME}/all' and config.json: "
     "file_name_pattern '{format_extension}' would make it one of stream 'orders'"),
    ("data/public/orders/notes.txt", "no setting gives a stream of the catalog such a key: it stays as it is"),
]  # fmt: skip


def test_missed_objects_and_the_line_to_change(platform):
    for key, _ in MISSED:
        put(platform, key)
    found = {key: each["advice"] for each in adopt(platform, "--json")["missed"] for key in each["keys"]}
    assert {key: advice.replace("config.json:1: ", "config.json: ") for key, advice in found.items()} == dict(MISSED)


def test_a_configuration_that_is_changed_as_advised_owns_the_objects(platform):
    put(platform, f"data/users_{AT}0.csv.gz")
    (advice,) = [each["advice"] for each in adopt(platform, "--json")["missed"]]
    found = adopt(platform, "--json", s3_path_format=advice.split("'")[1])
    assert (found["missed"], [len(each["keys"]) for each in found["streams"]]) == ([], [1, 0])


def parquet(sync_id: int) -> bytes:
    """A row as the vendor's connector writes it."""
    out = io.BytesIO()
    pq.write_table(pa.table({"_airbyte_meta": [{"sync_id": sync_id, "changes": []}]}), out)
    return out.getvalue()


def avro(meta: Any, codec: str = "null") -> bytes:
    """A row as the vendor's connector writes it; ``meta`` is None in releases that had no such column."""
    text = {"name": "_airbyte_raw_id", "type": "string"}
    change = {"type": "record", "name": "change", "fields": [{"name": "field", "type": "string"}]}
    fields = [{"name": "changes", "type": {"type": "array", "items": change}}, {"name": "sync_id", "type": "long"}]
    own = {"name": "_airbyte_meta", "type": ["null", {"type": "record", "name": "meta", "fields": fields}]}
    out = io.BytesIO()
    schema = {"type": "record", "name": "users", "fields": [text, *([own] if meta else [])]}
    fastavro.writer(out, schema, [{"_airbyte_raw_id": "a", "_airbyte_meta": meta}], codec)
    return out.getvalue()


ROW = b'{"_airbyte_raw_id":"a","_airbyte_meta":{"changes":[],"sync_id":31}}\n'
NEWEST = [
    # the newest object of a stream, the sync that it is of
    ("jsonl", ROW, 31),
    ("jsonl.gz", gzip.compress(ROW), 31),
    ("csv", b'_airbyte_raw_id,_airbyte_meta\r\na,"{""changes"":[],""sync_id"":32}"\r\n', 32),
    ("parquet", parquet(33), 33),
    ("avro", avro({"changes": [{"field": "a"}], "sync_id": 34}), 34),
    ("avro", avro({"changes": [], "sync_id": 300}, "deflate"), 300),
    ("avro", avro(None), 0),
    ("avro", b"Obj", 0),
    # of release 0.x of the connector, which has no such column, and what is no file of its format
    ("jsonl", b'{"_airbyte_ab_id":"a"}\n', 0),
    ("jsonl", b"", 0),
    ("parquet", b"PAR", 0),
]


@pytest.mark.parametrize(("extension", "body", "expected"), NEWEST, ids=range(len(NEWEST)))
def test_highest_generation_and_sync(platform, extension, body, expected):
    put(platform, f"data/public/users/{AT}0.csv", 7)
    put(platform, f"data/public/users/2021_01_02_1609545600000_0.{extension}", 5, body)
    users, orders = adopt(platform, "--json")["streams"]
    assert (users["generation_id"], users["sync_id"], len(users["keys"])) == (7, expected, 2)
    assert (orders["generation_id"], orders["sync_id"], orders["keys"]) == (0, 0, [])


def test_highest_sync_in_the_names(platform):
    for name in ("9_0.jsonl", "41_0.csv", "40_1.jsonl"):
        put(platform, f"data/public/users/{name}")
    settings = {"s3_path_format": "${NAMESPACE}/${STREAM_NAME}/", "file_name_pattern": "{sync_id}_{part_number}"
                "{format_extension}"}  # fmt: skip
    assert adopt(platform, "--json", **settings)["streams"][0]["sync_id"] == 41


def test_what_is_said(platform):
    put(platform, f"data/public/users/{AT}0.jsonl.gz", 7, gzip.compress(ROW))
    put(platform, f"data/public/users/{AT}1.jsonl", 7, ROW)
    put(platform, f"data/public/orders/{AT}0.jsonl", 7, ROW, **{"lakewriter-load": "other/j/a"})
    put(platform, "data/public/orders/notes.txt")
    lines = adopt(platform).splitlines()
    assert lines == [
        "public.users: 2 objects (1 .jsonl.gz, 1 .jsonl), generation 7, sync 31",
        "  1 object in .jsonl.gz, the next ones in .jsonl: config.json:1: format.compression.compression_type 'GZIP' "
        "writes .jsonl.gz",
        "public.orders: no objects",
        "  1 object at its keys of another pipeline or stream, which stay:",
        f"    data/public/orders/{AT}0.jsonl",
        "missed: 1 object; no setting gives a stream of the catalog such a key: it stays as it is:",
        "    data/public/orders/notes.txt",
        "Nothing is written; --write creates the state of pipeline 'airbyte', from which lakewriter airbyte write goes "
        "on. A lake.yaml has a pipeline of its own: lakewriter airbyte adopt LAKE.",
    ]
    assert not [key for key in platform.aws.objects(BUCKET) if "_lakewriter" in key]


@pytest.mark.spark
def test_written_states_go_on_from_there(tmp_path, aws, bucket, spark):
    """A refresh without generation ids takes the next ones, and retires what the connector wrote in any format."""
    platform = Platform(tmp_path, aws, spark)
    old = [f"data/public/users/{AT}0.csv.gz", f"data/public/users/{AT}1.jsonl"]
    for key in old:
        put(platform, key, 7, ROW)
    assert adopt(platform, "--json", "--write")["states"] == {"public.users": True}
    assert adopt(platform, "--json", "--write")["states"] == {"public.users": False}
    _, error = platform.sync(user(1), streams=(USERS, ORDERS), format=GZIP)
    assert error is None
    said = adopt(platform, streams=(USERS, ORDERS), format=GZIP).splitlines()
    assert said[0].startswith("public.users: 1 object (1 .jsonl.gz), 1 of them of its own loads, generation ")
    (row,) = platform.rows()
    assert (row["_airbyte_generation_id"], row["_airbyte_meta"]["sync_id"], row["_airbyte_data"]) == (
        8, 32, {"user_id": 1},
    )  # fmt: skip
    assert [key for key in platform.data() if key in old] == []


LAKE_YAML = """\
pipeline: shop
destination: {type: airbyte-s3, config_file: config.json}
source: {messages: messages.jsonl, catalog: catalog.json}
"""


def write_lake(platform, *streams, **config: Any) -> str:
    """A lake.yaml over the connection's own files."""
    settings, catalog = platform.given(*streams, **config)
    lake = settings.parent / "lake.yaml"
    lake.write_text(LAKE_YAML.replace("config.json", settings.name).replace("catalog.json", catalog.name), "utf-8")
    return str(lake)


def test_the_state_is_that_of_the_pipeline_in_lake_yaml(platform):
    lake = write_lake(platform, USERS, ORDERS)
    put(platform, f"data/public/users/{AT}0.jsonl.gz", 7, gzip.compress(ROW))
    said = CliRunner().invoke(main, ["airbyte", "adopt", lake])
    assert said.stdout.splitlines() == [
        "public.users: 1 object (1 .jsonl.gz), generation 7, sync 31",
        "  1 object in .jsonl.gz, the next ones in .jsonl: config.json:1: format.compression.compression_type 'GZIP' "
        "writes .jsonl.gz",
        "public.orders: no objects",
        f"Nothing is written; --write creates the state of pipeline 'shop', from which lakewriter run {lake} goes on.",
    ]
    said = CliRunner().invoke(main, ["airbyte", "adopt", lake, "--write"])
    assert said.stdout.splitlines()[2:] == [
        "  its state has these numbers now", "public.orders: no objects",
        f"lakewriter run {lake} goes on from there, as pipeline 'shop'.",
    ]  # fmt: skip
    states = [key for key in platform.aws.objects(BUCKET) if key.endswith("state.json")]
    assert states == ["data/_lakewriter/shop/tables/public.users/state.json"]
    said = CliRunner().invoke(main, ["airbyte", "adopt", lake, "--write"])
    assert said.stdout.splitlines()[2] == "  its state had them already"


def test_a_key_of_lake_yaml_is_named_by_its_line(platform):
    lake = Path(write_lake(platform, USERS))
    lake.write_text(lake.read_text("utf-8").replace("config.json}", "config.json,\n  s3_path_format: x/}"), "utf-8")
    put(platform, f"data/public/users/{AT}0.jsonl", 7, ROW)
    (missed,) = json.loads(CliRunner().invoke(main, ["airbyte", "adopt", str(lake), "--json"]).stdout)["missed"]
    assert missed["advice"].startswith("lake.yaml:3: destination.s3_path_format '${NAMESPACE}/${STREAM_NAME}/${YEAR}")


TABLES = """\
pipeline: shop
destination: {type: airbyte-s3, s3_bucket_name: acme, s3_bucket_path: a, s3_bucket_region: us-east-1,
              format: {format_type: Parquet}}
tables: [{table: users, read: {format: parquet, path: users}}]
"""
REFUSED = [
    (["LAKE", "--config", "c.json"], "SPEC_INVALID: expected either LAKE or --config and --catalog. For loads by "
     "`lakewriter run`: lakewriter airbyte adopt LAKE."),
    (["--config", "c.json"], "SPEC_INVALID: expected either LAKE or --config and --catalog. For loads by "
     "`lakewriter run`: lakewriter airbyte adopt LAKE."),
    (["LAKE"], "SPEC_INVALID: LAKE reads no messages of Airbyte's protocol. For its tables: lakewriter adopt LAKE."),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_cannot_be_adopted(tmp_path, arguments, message):
    lake = tmp_path / "lake.yaml"
    lake.write_text(TABLES, "utf-8")
    done = CliRunner().invoke(main, ["airbyte", "adopt", *[text.replace("LAKE", str(lake)) for text in arguments]])
    assert (done.exit_code, done.stderr.replace(str(lake), "LAKE").strip()) == (2, message)


def test_exported_configuration_and_masked_secrets(platform):
    config, _ = platform.given(USERS)
    own = json.loads(config.read_text("utf-8")) | {"destinationType": "s3"}
    for wrapper in ("configuration", "connectionConfiguration"):
        config.write_text(json.dumps({"name": "S3", wrapper: own}), "utf-8")
        assert (read_connection(config, None).access.prefix, read_connection(config, None).warnings) == ("data", ())
    masked = own | {"access_key_id": "**********", "secret_access_key": "**********"}
    config.write_text(json.dumps({"name": "S3", "configuration": masked}, indent=1), "utf-8")
    done = CliRunner().invoke(main, ["airbyte", "adopt", "--config", str(config), "--catalog", str(config)])
    assert done.exit_code == 2
    assert (
        "config.json:15: configuration.access_key_id: (not shown): Airbyte's API shows asterisks in place of a secret; "
        "give the secret itself or a reference such as ${env:NAME}." in done.stderr
    )
