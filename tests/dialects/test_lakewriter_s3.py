"""``lakewriter-s3``: what its settings mean, and what is said of settings that do not go together.

The keys and names are this project's own: docs/guide-lakewriter.md is where the expectations come from.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from lakewriter.dialects.common.form import FormField, Provided
from lakewriter.dialects.lake_yaml import LakeFile, load, load_spec
from lakewriter.errors import LakeError, SpecInvalidError
from lakewriter.operate.queries import list_engines, write_queries
from lakewriter.operate.sql_text import Engine
from lakewriter.run.placement import plan_glue_action, plan_iceberg_action
from lakewriter.run.replay import require_replayable
from lakewriter.spec.access import SecretText
from lakewriter.spec.catalogs import (
    AnyRestService,
    GlueRestService,
    OAuthService,
    OpenService,
    S3TablesService,
    SignedService,
    TokenService,
)
from lakewriter.spec.encodings import AvroEncoding, ParquetEncoding, TextEncoding
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import IndexKind

EXAMPLES = Path(__file__).parents[2] / "examples"
BASE = {"type": "lakewriter-s3", "location": "s3://acme-lake/production", "region": "us-east-1"}
TABLE = {"table": "Orders", "schema": "public", "read": {"format": "csv", "path": "a.csv"}}
ROLE = "arn:aws:iam::123456789012:role/Lake"
OPEN_CATALOG = {
    "catalog": "open_catalog", "catalog_endpoint": "https://polaris.example/api/catalog", "catalog_name": "lake",
    "client_id": "me", "client_secret": "${env:SECRET}",
}  # fmt: skip
REST = {"catalog": "rest", "uri": "https://catalog.example/iceberg/"}
S3_TABLES = {"catalog": "s3_tables", "table_bucket_arn": "arn:aws:s3tables:us-east-1:123456789012:bucket/lake"}
GLUE_REST = {
    "catalog": "rest", "auth": "sigv4", "uri": "https://glue.us-east-1.amazonaws.com/iceberg",
    "warehouse": "123456789012",
}  # fmt: skip
ALL = ["loaded_at", "load_id", "row_number", "row_id", "deleted"]


def lake(folder: Path, *tables: dict[str, Any], top: Any = None, **destination: Any) -> Path:
    own = {key: value for key, value in (BASE | destination).items() if value is not None}
    content = {"pipeline": "orders", "destination": own, "tables": list(tables or [TABLE]), **(top or {})}
    path = folder / "lake.yaml"
    path.write_text(yaml.safe_dump(content), "utf-8")
    return path


def key(spec: Spec, seq: int = 0) -> str:
    names = spec.tables[0].layout.bind(job_id="j1", attempt="a", start=datetime(2027, 1, 4, 6, 30, tzinfo=UTC))
    return names.object_key(seq)


KEYS: list[tuple[dict[str, Any], str]] = [
    # settings, and the key of the second file of load j1 that started on 4 January 2027 at 6:30
    ({}, "production/public/orders/load_date=2027-01-04/part-j1-00001.parquet"),
    ({"location": "s3://acme-lake"}, "public/orders/load_date=2027-01-04/part-j1-00001.parquet"),
    ({"location": "s3://acme-lake//a//b/"}, "a/b/public/orders/load_date=2027-01-04/part-j1-00001.parquet"),
    ({"partition_strategy": "hour"}, "production/public/orders/load_hour=2027-01-04-06/part-j1-00001.parquet"),
    ({"partition_strategy": "load"}, "production/public/orders/load_id=j1/part-j1-00001.parquet"),
    ({"partition_strategy": "none"}, "production/public/orders/part-j1-00001.parquet"),
    ({"format": "csv"}, "production/public/orders/load_date=2027-01-04/part-j1-00001.csv.gz"),
    ({"format": "csv", "compression": "none"}, "production/public/orders/load_date=2027-01-04/part-j1-00001.csv"),
    ({"format": "jsonl"}, "production/public/orders/load_date=2027-01-04/part-j1-00001.jsonl.gz"),
    ({"format": "avro"}, "production/public/orders/load_date=2027-01-04/part-j1-00001.avro"),
    ({"compression": "gzip"}, "production/public/orders/load_date=2027-01-04/part-j1-00001.parquet"),
    ({"catalog": "glue"}, "production/public/orders/load_date=2027-01-04/part-j1-00001.parquet"),
    ({"catalog": "glue", "database": "Sales"},
     "production/sales_public/orders/load_date=2027-01-04/part-j1-00001.parquet"),
    ({"catalog": "iceberg"}, "production/public/orders/data/part-j1-00001.parquet"),
    (OPEN_CATALOG, "production/public/orders/data/part-j1-00001.parquet"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "expected"), KEYS)
def test_key(tmp_path, settings, expected):
    assert key(load_spec(lake(tmp_path, **settings)), 1) == expected


REFRESHED: list[tuple[dict[str, Any], str]] = [
    # a full refresh has a folder of its own in place of those by time; an Iceberg table's snapshots tell its files
    ({}, "production/public/orders/g0000000007/part-j1-00001.parquet"),
    ({"partition_strategy": "hour", "format": "csv"}, "production/public/orders/g0000000007/part-j1-00001.csv.gz"),
    ({"catalog": "glue", "database": "Sales"}, "production/sales_public/orders/g0000000007/part-j1-00001.parquet"),
    ({"catalog": "iceberg"}, "production/public/orders/data/part-j1-00001.parquet"),
]


@pytest.mark.parametrize(("settings", "expected"), REFRESHED)
def test_key_of_a_refresh(tmp_path, settings, expected):
    (table,) = load_spec(lake(tmp_path, TABLE | {"mode": "refresh"}, **settings)).tables
    names = table.layout.bind(job_id="j1", attempt="a", start=datetime(2027, 1, 4, tzinfo=UTC)).number(0, 0, 7)
    assert names.object_key(1) == expected
    assert names.pattern().fullmatch(expected)


ENCODINGS: list[tuple[dict[str, Any], Any]] = [
    ({}, ParquetEncoding(codec="zstd", level=3)),
    ({"compression": "zstd", "compression_level": 9}, ParquetEncoding(codec="zstd", level=9)),
    ({"compression": "gzip"}, ParquetEncoding(codec="gzip")),
    ({"compression": "brotli"}, ParquetEncoding(codec="brotli", level=5)),
    ({"compression": "snappy"}, ParquetEncoding(codec="snappy")),
    ({"compression": "lz4"}, ParquetEncoding(codec="lz4")),
    ({"compression": "none"}, ParquetEncoding(codec="uncompressed")),
    ({"format": "avro"}, AvroEncoding(codec="deflate", level=6)),
    ({"format": "avro", "compression": "deflate", "compression_level": 0}, AvroEncoding(codec="deflate", level=0)),
    ({"format": "avro", "compression": "zstd"}, AvroEncoding(codec="zstandard", level=3)),
    ({"format": "avro", "compression": "xz"}, AvroEncoding(codec="xz", level=6)),
    ({"format": "avro", "compression": "bzip2"}, AvroEncoding(codec="bzip2")),
    ({"format": "avro", "compression": "snappy"}, AvroEncoding(codec="snappy")),
    ({"format": "avro", "compression": "none"}, AvroEncoding(codec="null")),
    ({"format": "csv"}, TextEncoding(kind="csv", gzip=True)),
    ({"format": "csv", "compression": "none"}, TextEncoding(kind="csv", gzip=False)),
    ({"format": "jsonl", "compression": "gzip"}, TextEncoding(kind="jsonl", gzip=True)),
]


@pytest.mark.parametrize(("settings", "expected"), ENCODINGS)
def test_encoding(tmp_path, settings, expected):
    assert load_spec(lake(tmp_path, **settings)).encoding == expected


TRACKING: list[tuple[Any, dict[str, str], IndexKind]] = [
    # the setting, what columns hold by their names, and whether rows are counted before a load
    (None, {"_loaded_at": "synced", "_load_id": "job_id"}, IndexKind.SPARSE),
    ([], {}, IndexKind.SPARSE),
    (["row_id"], {"_row_id": "id"}, IndexKind.SPARSE),
    (ALL, {"_loaded_at": "synced", "_load_id": "job_id", "_row_number": "index", "_row_id": "id",
           "_deleted": "deleted"}, IndexKind.CONTIGUOUS),
    ({"loaded_at": "synced_at"}, {"synced_at": "synced"}, IndexKind.SPARSE),
]  # fmt: skip


@pytest.mark.parametrize(("setting", "expected", "index"), TRACKING)
def test_tracking(tmp_path, setting, expected, index):
    spec = load_spec(lake(tmp_path, tracking=setting))
    assert {column.name: str(column.holds) for column in spec.tracking} == expected
    assert spec.tables[0].index is index


CATALOGS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    # settings, the neutral catalog, and what databases of others the vendors' policies begin with
    ({}, {"kind": "none", "by_hand": False}, ""),
    ({"catalog": "glue"}, {"kind": "glue", "partition_key": "load_date", "strategy": "day", "projection": None}, ""),
    ({"catalog": "glue", "database": "Sales"},
     {"kind": "glue", "partition_key": "load_date", "strategy": "day", "projection": None}, "sales"),
    ({"catalog": "glue", "partition_strategy": "none"},
     {"kind": "glue", "partition_key": None, "strategy": "none", "projection": None}, ""),
    ({"catalog": "iceberg", "database": "Sales"},
     {"kind": "iceberg", "service": {"kind": "glue"}, "format_version": 2}, "sales"),
    (OPEN_CATALOG | {"principal_role": "WRITER"},
     {"kind": "iceberg", "service": {
         "kind": "rest", "uri": "https://polaris.example/api/catalog", "warehouse": "lake", "client_id": "me",
         "client_secret": "${env:SECRET}", "scope": "PRINCIPAL_ROLE:WRITER"}, "format_version": 2}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "catalog", "prefix"), CATALOGS)
def test_catalog(tmp_path, settings, catalog, prefix):
    spec = load_spec(lake(tmp_path, **settings))
    assert (spec.catalog.model_dump(mode="json"), spec.database_prefix) == (catalog, prefix)


def test_iceberg_partitions_by_columns(tmp_path):
    table = TABLE | {"partition_by": ["region", "day(ordered_at)"]}
    (own,) = load_spec(lake(tmp_path, table, catalog="iceberg")).tables
    assert [str(field) for field in own.partition_by] == ["region", "day(ordered_at)"]
    names = own.layout.bind(job_id="j1", attempt="a", start=datetime(2027, 1, 4, tzinfo=UTC))
    assert names.object_key(0, "region=EU/ordered_at_day=2027-01-04").startswith(
        "production/public/orders/data/region=EU/ordered_at_day=2027-01-04/part-j1-00000-"
    )


def test_folders_reserve_their_columns_name(tmp_path):
    spec = load_spec(lake(tmp_path, partition_strategy="hour"))
    assert spec.reserved_columns == ("_loaded_at", "_load_id", "load_hour")
    assert load_spec(lake(tmp_path, catalog="iceberg")).reserved_columns == ("_loaded_at", "_load_id")


def test_access_and_form(tmp_path):
    whole = load(lake(tmp_path, role_arn=ROLE, external_id="acme-1"))
    access = whole.spec.access
    assert (access.bucket, access.prefix, access.role_arn) == ("acme-lake", "production", ROLE)
    assert (access.key_names.bucket, access.key_names.region) == ("location", "region")
    assert whole.form == (
        FormField("Location", "s3://acme-lake/production"),
        FormField("Region", "us-east-1"),
        FormField("Role ARN", Provided.ROLE_ARN),
    )
    assert whole.principal is None


UNFIT: list[tuple[dict[str, Any], str]] = [
    # settings, and what is said behind ``lake.yaml:N: destination.``
    ({"location": "acme-lake/production"}, "location: 'acme-lake/production': expected s3://bucket/prefix, such as "
     "'s3://acme-lake/production'."),
    ({"location": "s3://Acme/x"}, "location: 's3://Acme/x': expected a bucket name: 3 to 63 lower-case letters, "
     "digits, '.' and '-'."),
    ({"location": None, "bucket": "acme-lake"}, "bucket: unknown key, with value 'acme-lake'; did you mean "
     "'location'?"),
    ({"compresion": "gzip"}, "compresion: unknown key, with value 'gzip'; did you mean 'compression'?"),
    ({"format": "orc"}, "format: 'orc' is not allowed; expected 'parquet', 'avro', 'csv' or 'jsonl'."),
    ({"compression": "deflate"}, "compression: 'compression' 'deflate' is not for 'format: parquet'; expected 'zstd', "
     "'gzip', 'brotli', 'snappy', 'lz4' or 'none'."),
    ({"format": "csv", "compression": "zstd"}, "compression: 'compression' 'zstd' is not for 'format: csv'; expected "
     "'gzip' or 'none'."),
    ({"compression_level": 40}, "compression_level: 'compression_level' 40 is not for 'zstd'; expected 1 to 22, or "
     "leave it out for 3."),
    ({"compression": "snappy", "compression_level": 1}, "compression_level: 'compression_level' is for codecs with "
     "levels, and 'snappy' of 'parquet' has none."),
    ({"format": "csv", "catalog": "glue"}, "catalog: 'catalog' 'glue' has tables of Parquet files; expected 'format: "
     "parquet', or 'catalog: none' for csv files."),
    ({"column_names": "kept", "catalog": "glue"}, "column_names: 'column_names' can be kept in files without a "
     "catalog, but not in Avro; here is a catalog."),
    ({"column_names": "kept", "format": "avro"}, "column_names: 'column_names' can be kept in files without a "
     "catalog, but not in Avro; here is Avro."),
    ({"catalog": "iceberg", "partition_strategy": "day"}, "partition_strategy: 'partition_strategy' is for files; "
     "Iceberg tables have 'partition_by' in their entry."),
    ({"database": "sales"}, "database: 'database' is only for a 'catalog'; files lie under the table's 'schema'."),
    ({"catalog": "iceberg", "catalog_name": "x"}, "catalog_name: 'catalog_name' is only for 'catalog: open_catalog'."),
    ({"catalog": "open_catalog", "catalog_name": "x"}, "catalog: 'catalog' 'open_catalog' needs "
     "'catalog_endpoint', 'client_id', 'client_secret'."),
    ({"catalog": "rest"}, "catalog: 'catalog' 'rest' needs 'uri' and 'auth': expected 'oauth', 'sigv4', 'token' or "
     "'none'."),
    (REST | {"auth": "oauth"}, "auth: 'auth' 'oauth' needs 'client_id', 'client_secret'."),
    (REST | {"auth": "token"}, "auth: 'auth' 'token' needs 'token'."),
    ({"catalog": "rest", "auth": "none"}, "auth: 'auth' 'none' needs 'uri'."),
    (REST | {"auth": "token", "token": "hush"}, "token: (not shown): expected a reference: ${env:NAME}"),
    (REST | {"auth": "none", "signing_name": "glue"}, "signing_name: 'signing_name' is only for 'auth: sigv4'."),
    (REST | {"auth": "none", "client_id": "me"}, "client_id: 'client_id' is only for 'catalog: open_catalog' and "
     "'auth: oauth'."),
    (REST | {"auth": "none", "principal_role": "x"}, "principal_role: 'principal_role' is only for 'catalog: "
     "open_catalog'."),
    ({"catalog": "iceberg", "warehouse": "x"}, "warehouse: 'warehouse' is only for 'catalog: rest'."),
    (OPEN_CATALOG | {"uri": "https://a.example"}, "uri: 'uri' is only for 'catalog: s3_tables' and 'catalog: rest'."),
    ({"catalog": "s3_tables"}, "catalog: 'catalog' 's3_tables' needs 'table_bucket_arn'."),
    (S3_TABLES | {"table_bucket_arn": "lake"}, "table_bucket_arn: 'lake': expected "
     "'arn:aws:s3tables:us-east-1:123456789012:bucket/NAME'."),
    (S3_TABLES | {"region": "eu-west-1"}, "table_bucket_arn: it is in 'us-east-1', and region is 'eu-west-1'."),
    (S3_TABLES | {"endpoint": "http://localhost:9000"}, "endpoint: it is another store's, and the tables of "),
    (S3_TABLES | {"uri": "http://catalog.example"}, "uri: 'http://catalog.example' has no TLS"),
    (S3_TABLES | {"warehouse": "x"}, "warehouse: 'warehouse' is only for 'catalog: rest'."),
    (S3_TABLES | {"auth": "sigv4"}, "auth: 'auth' is only for 'catalog: rest'."),
    (GLUE_REST | {"table_bucket_arn": S3_TABLES["table_bucket_arn"]}, "table_bucket_arn: 'table_bucket_arn' is only "
     "for 'catalog: s3_tables'."),
    ({"catalog": "glue", "catalog_base_location": "s3://acme-lake/open"}, "catalog_base_location: "
     "'catalog_base_location' is only for 'catalog: open_catalog' and 'catalog: rest'."),
    (REST | {"uri": "http://catalog.example", "auth": "none"}, "uri: 'http://catalog.example' has no TLS"),
    (REST | {"auth": "sigv4"}, "uri: 'https://catalog.example/iceberg' does not say which service its requests are "
     "signed for. Set signing_name"),
    (GLUE_REST | {"region": "eu-west-1"}, "uri: its requests are signed for 'eu-west-1', and it is in 'us-east-1'."),
    (GLUE_REST | {"warehouse": "123456789012:s3tablescatalog/lake"}, "warehouse: '123456789012:s3tablescatalog/lake' "
     "is no account of a Glue Data Catalog"),
    (GLUE_REST | {"catalog_base_location": "s3://acme-lake/x"}, "catalog_base_location: tables of the Glue Data "
     "Catalog lie where 'location' says."),
    (GLUE_REST | {"uri": "https://s3tables.us-east-1.amazonaws.com/iceberg"}, "uri: it is Amazon S3 Tables, whose "
     "objects can be neither listed nor deleted. Set 'catalog: s3_tables' and table_bucket_arn."),
    (OPEN_CATALOG | {"client_secret": "hush"}, "client_secret: (not shown): expected a reference: ${env:NAME}, "
     "${secret:ARN[:json-key]} or ${ssm:NAME}."),
    ({"tracking": ["loaded"]}, "tracking: a list: 'loaded' is not known; expected 'loaded_at', 'load_id', "
     "'row_number', 'row_id' or 'deleted'; did you mean 'loaded_at'?"),
    ({"tracking": {"load_id": "1st"}}, "tracking: '1st' is no column's name; expected letters, digits and '_', no "
     "digit first."),
    ({"tracking": {"load_id": "a", "row_id": "A"}}, "tracking: two tracking columns have one name."),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "said"), UNFIT)
def test_unfit_settings(tmp_path, settings, said):
    with pytest.raises(LakeError) as caught:
        load_spec(lake(tmp_path, **settings))
    assert f"destination.{said}" in str(caught.value)


EVENTS = {"mode": "merge", "primary_key": ["id"], "envelope": "debezium"}
MERGED = {"catalog": "iceberg", "tracking": ["deleted"]}
UNFIT_TABLES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    # https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-tables-buckets-naming.html
    ({"schema": "aws_events"}, S3_TABLES, "tables.0: the schema would be 'aws_events', and 'catalog: s3_tables' takes"),
    ({"table": "Orders_"}, S3_TABLES, "tables.0: the table would be 'orders_', and 'catalog: s3_tables' takes"),
    ({"mode": "replace_partitions"}, {}, "tables.0.mode: table 'Orders' has mode 'replace_partitions', and is "
     "no Iceberg table: files have no such partitions. Set catalog: iceberg and partition_by, or mode: refresh."),
    ({"mode": "replace_partitions"}, {"catalog": "iceberg"}, "tables.0.mode: table 'Orders' has mode "
     "'replace_partitions', and no partition_by: it has no partitions. Set partition_by, or mode: refresh."),
    ({"mode": "merge", "primary_key": ["id"], "order_by": ["at"]}, {}, "tables.0.mode: table 'Orders' has mode "
     "'merge', and is no Iceberg table: plain files have no deletes of single rows. Set catalog: iceberg; or append, "
     "and read the newest rows by a query of lakewriter queries."),
    ({"mode": "merge", "primary_key": ["id"]}, {"catalog": "iceberg"}, "tables.0.mode: table 'Orders' has mode "
     "'merge', and no order_by. Name the columns that identify a row by primary_key, and by order_by those that say "
     "which of two rows of one key is newer, such as [updated_at]."),
    ({"order_by": ["at"]}, {}, "tables.0.order_by: table 'Orders' has order_by, which orders the rows of one key, and "
     "no primary_key. Name the key's columns."),
    ({"mode": "overwrite"}, {}, "tables.0.mode: table 'Orders' has mode 'overwrite'; expected 'append', 'refresh', "
     "'replace_partitions' or 'merge'. "
     "Set mode: refresh: readers see the old rows until they see all new ones."),
    ({"mode": "refresh", "cursor": "at"}, {}, "tables.0.cursor: table 'Orders' has a cursor and 'mode: refresh': the "
     "rows below the cursor would be lost. Leave the cursor out, or append."),
    ({"partition_by": ["region"]}, {}, "tables.0.partition_by: table 'Orders' has partition_by, which only Iceberg "
     "tables have. Set catalog: iceberg, or leave partition_by out; files have partition_strategy."),
    ({"sort_by": ["at"]}, {"format": "jsonl"}, "tables.0.sort_by: table 'Orders' has sort_by, and only Parquet files "
     "have row groups to sort. Set format: parquet, or leave sort_by out."),
    ({"deleted": "op = 'D'"}, {}, "tables.0.deleted: table 'Orders' has 'deleted', and no column for it. Add "
     "'deleted' to destination.tracking, or leave it out."),
    (EVENTS | {"mode": "append"}, MERGED, "tables.0.envelope: table 'Orders' has envelope without 'mode: merge': a "
     "change is carried out where a table has one row of each key. Set mode: merge and primary_key; or leave it out, "
     "and the events are appended as they are."),
    (EVENTS, MERGED | {"tracking": []}, "tables.0.envelope: table 'Orders' has envelope, whose events delete rows, and "
     "no column that says so. Add 'deleted' to destination.tracking."),
    (EVENTS | {"deleted": "op = 'd'"}, MERGED, "tables.0.deleted: table 'Orders' has deleted, and envelope, whose "
     "events say themselves which rows are."),
    (EVENTS | {"cursor": "at"}, MERGED, "tables.0.cursor: table 'Orders' has a cursor, and envelope: rows are made of "
     "events once these are read. Leave the cursor out, and set files: new in read."),
    (EVENTS | {"order_by": ["at"]}, MERGED, "'order_by' is given by the events of 'envelope: debezium'; "
     "leave it out"),
    (EVENTS | {"envelope": {"type": "dms"}}, MERGED, "tables.0.mode: table 'Orders' has mode 'merge', and no "
     "order_by."),
    (EVENTS | {"envelope": {"type": "dms"}, "order_by": ["a", "b"]}, MERGED, "'order_by' is one column with "
     "'envelope: dms': the one with AR_H_CHANGE_SEQ"),
    (EVENTS | {"envelope": {"type": "debezium", "before": "BI_"}}, MERGED, "'before' is only for 'type: dms'"),
    (EVENTS | {"envelope": {"type": "dms", "epoch": 1}}, MERGED, "'epoch' is only for 'type: debezium'"),
    (EVENTS | {"envelope": "maxwell"}, MERGED, "expected 'debezium' or 'dms'"),
    ({"schema": ""}, {"catalog": "glue"}, "tables.0: table 'Orders' has no schema, and the catalog needs a database. "
     "Give destination.database, or the table's schema."),
]  # fmt: skip


@pytest.mark.parametrize(("entry", "settings", "said"), UNFIT_TABLES)
def test_unfit_tables(tmp_path, entry, settings, said):
    with pytest.raises(LakeError) as caught:
        load_spec(lake(tmp_path, TABLE | entry, **settings))
    assert said in str(caught.value)


BLIND: list[tuple[list[str], tuple[str, ...]]] = [
    (["athena", "duckdb", "spark4"], ()),
    (
        ["athena", "pyarrow"],
        (
            "readers: pyarrow: they read Parquet files by themselves, and see rows that merges have deleted from "
            "public.orders. Read the Iceberg table instead, by PyIceberg or DuckDB.",
        ),
    ),
]


@pytest.mark.parametrize(("readers", "warnings"), BLIND)
def test_readers_that_see_deleted_rows(tmp_path, readers, warnings):
    entry = TABLE | {"mode": "merge", "primary_key": ["id"], "order_by": ["at"]}
    assert load_spec(lake(tmp_path, entry, top={"readers": readers}, catalog="iceberg")).warnings == warnings


def test_change_events(tmp_path):
    (table,) = load_spec(lake(tmp_path, TABLE | EVENTS, **MERGED)).tables
    assert table.order_by == ("_change_epoch", "_change_log", "_change_position", "_change_row")
    envelope = {"type": "dms", "full_load": "LOAD*"}
    changes = TABLE | EVENTS | {"order_by": ["seq"]}
    spec = load_spec(lake(tmp_path, changes | {"envelope": envelope}, **MERGED))
    assert spec.tables[0].order_by == ("seq",)
    # The same file with the columns that say which key a row had.
    (warning,) = spec.warnings
    assert "has no 'before': a row whose key changes leaves its old row in the table." in warning
    changes["envelope"] = envelope | {"before": "BI_"}
    spec = load_spec(lake(tmp_path, changes | {"on_bad_row": "quarantine"}, **MERGED))
    assert spec.warnings == ()
    with pytest.raises(SpecInvalidError, match=r"cannot be replayed: its rows are made of change events"):
        require_replayable(spec, spec.tables[0])


def test_two_tables_at_one_place(tmp_path):
    with pytest.raises(
        LakeError,
        match=r"NAME_COLLISION: .*tables.1: .* at 'production/public/orders', where table 'orders' \(tables.0\) lies",
    ):
        load_spec(lake(tmp_path, TABLE | {"table": "orders"}, TABLE))


def test_keys_of_other_destinations(tmp_path):
    with pytest.raises(LakeError, match="'delta_encodings' is only for the destinations '"):
        load_spec(lake(tmp_path, top={"delta_encodings": True}))


def test_a_file_for_a_continuous_run_says_what_that_refuses(tmp_path):
    """Every command that reads the file says so, ``check`` and ``plan`` too; single loads take it."""
    entry = TABLE | {"cursor": "at"}
    (warning,) = load_spec(lake(tmp_path, entry, top={"checkpoint": "cp"})).warnings
    assert "has a cursor; a continuous run uses its checkpoint. Leave cursor out" in warning
    assert load_spec(lake(tmp_path, entry)).warnings == ()


SQL: list[tuple[dict[str, Any], str, list[str]]] = [
    # settings, engine, the statements for the table
    ({}, "duckdb", [
        'CREATE OR REPLACE VIEW "public_orders" AS\nSELECT *\nFROM FILES;',
        "SELECT *\nFROM FILES\nLIMIT 100;",
        "SELECT *\nFROM FILES\nWHERE \"_load_id\" = 'latest-job-id'\nLIMIT 100;",
        "SELECT \"_load_id\", COUNT(*) as record_count, MIN(\"_loaded_at\") as load_time\nFROM FILES\n"
        "GROUP BY \"_load_id\"\nORDER BY load_time DESC;"]),
    ({"format": "jsonl", "tracking": []}, "duckdb", [
        'CREATE OR REPLACE VIEW "public_orders" AS\nSELECT *\nFROM '
        "read_json('s3://acme-lake/production/public/orders/load_date=*/part-*-*.jsonl.gz', "
        "format = 'newline_delimited', union_by_name = true, hive_partitioning = true);",
        "SELECT *\nFROM read_json('s3://acme-lake/production/public/orders/load_date=*/part-*-*.jsonl.gz', "
        "format = 'newline_delimited', union_by_name = true, hive_partitioning = true)\nLIMIT 100;"]),
    ({"catalog": "glue", "tracking": []}, "athena", ["SELECT *\nFROM public.orders\nLIMIT 100;"]),
    ({"catalog": "glue"}, "athena", [
        "SELECT *\nFROM public.orders\nLIMIT 100;",
        "SELECT *\nFROM public.orders\nWHERE _load_id = 'latest-job-id'\nLIMIT 100;",
        "SELECT _load_id, COUNT(*) as record_count, MIN(_loaded_at) as load_time\nFROM public.orders\n"
        "GROUP BY _load_id\nORDER BY load_time DESC;"]),
    ({"catalog": "iceberg", "tracking": ["row_id", "row_number", "loaded_at"]}, "athena", [
        "SELECT *\nFROM public.orders\nLIMIT 100;",
        "SELECT * FROM (\nSELECT *, ROW_NUMBER() OVER (PARTITION BY _row_id ORDER BY _loaded_at DESC, _row_number "
        "DESC) as rn\nFROM public.orders\n) WHERE rn = 1;",
        "SELECT *\nFROM public.orders\nFOR TIMESTAMP AS OF TIMESTAMP '2025-03-15 10:00:00 UTC';"]),
]  # fmt: skip
FILES = (
    "read_parquet('s3://acme-lake/production/public/orders/load_date=*/part-*-*.parquet', union_by_name = true, "
    "hive_partitioning = true)"
)


@pytest.mark.parametrize(("settings", "engine", "expected"), SQL)
def test_queries(tmp_path, settings, engine, expected):
    written = write_queries(load_spec(lake(tmp_path, **settings)), [Engine(engine)])
    assert [query.sql for query in written if query.table != "all"] == [sql.replace("FILES", FILES) for sql in expected]


def test_example(tmp_path):
    path = EXAMPLES / "lakewriter-s3.yaml"
    spec = load_spec(path)
    assert (spec.dialect, [table.id for table in spec.tables]) == ("lakewriter-s3", ["shop_public.orders"])
    jsonschema.validate(yaml.safe_load(path.read_text("utf-8")), LakeFile.model_json_schema())


SERVICES: list[tuple[dict[str, Any], AnyRestService]] = [
    # The endpoints are those of the catalogs' own pages.
    (GLUE_REST, GlueRestService(uri="https://glue.us-east-1.amazonaws.com/iceberg", warehouse="123456789012")),
    (GLUE_REST | {"uri": "https://vpce-1-a.glue.us-east-1.vpce.amazonaws.com/iceberg"}, GlueRestService(
        uri="https://vpce-1-a.glue.us-east-1.vpce.amazonaws.com/iceberg", warehouse="123456789012")),
    (REST | {"auth": "sigv4", "uri": "https://abc.execute-api.us-east-1.amazonaws.com/v"}, SignedService(
        uri="https://abc.execute-api.us-east-1.amazonaws.com/v", warehouse="", signing_name="execute-api")),
    (REST | {"auth": "sigv4", "signing_name": "s3tables", "warehouse": "w"}, SignedService(
        uri="https://catalog.example/iceberg", warehouse="w", signing_name="s3tables")),
    (S3_TABLES, S3TablesService(
        uri="https://s3tables.us-east-1.amazonaws.com/iceberg", warehouse=S3_TABLES["table_bucket_arn"])),
    (S3_TABLES | {"region": "cn-north-1", "table_bucket_arn": "arn:aws-cn:s3tables:cn-north-1:123456789012:bucket/l-1"},
     S3TablesService(uri="https://s3tables.cn-north-1.amazonaws.com.cn/iceberg",
                     warehouse="arn:aws-cn:s3tables:cn-north-1:123456789012:bucket/l-1")),
    (S3_TABLES | {"uri": "https://vpce-1-a.s3tables.us-east-1.vpce.amazonaws.com/iceberg"}, S3TablesService(
        uri="https://vpce-1-a.s3tables.us-east-1.vpce.amazonaws.com/iceberg", warehouse=S3_TABLES["table_bucket_arn"])),
    (REST | {"auth": "none"}, OpenService(uri="https://catalog.example/iceberg", warehouse="")),
    (REST | {"auth": "token", "token": "${env:T}"}, TokenService(
        uri="https://catalog.example/iceberg", warehouse="", token=SecretText("${env:T}"))),
    (REST | {"auth": "oauth", "client_id": "me", "client_secret": "${env:S}"}, OAuthService(
        uri="https://catalog.example/iceberg", warehouse="", client_id="me", client_secret=SecretText("${env:S}"),
        scope="catalog")),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "service"), SERVICES)
def test_rest_catalogs(tmp_path, settings, service):
    spec = load_spec(lake(tmp_path, database="shop", **settings))
    assert (spec.service, spec.in_glue) == (service, isinstance(service, GlueRestService))
    # A secret that is sent as it is makes its server one that the deployed job trusts.
    servers = {"token": "https://catalog.example/iceberg", "oauth": "https://catalog.example/iceberg/v1/oauth/tokens"}
    assert spec.servers == tuple(filter(None, [servers.get(service.kind)]))


def test_one_account_of_a_catalog_in_glue(tmp_path):
    spec = load_spec(lake(tmp_path, top={"catalog_account": "123456789012"}, **GLUE_REST))
    assert spec.access.catalog_account == "123456789012"
    with pytest.raises(LakeError, match=r"catalog_account: it is 999999999999, .* is '123456789012'"):
        load_spec(lake(tmp_path, top={"catalog_account": "999999999999"}, **GLUE_REST))


def test_format_version(tmp_path):
    iceberg = {"catalog": "iceberg", "database": "shop"}
    spec = load_spec(lake(tmp_path, top={"format_version": 3, "readers": ["trino"]}, **iceberg))
    assert plan_iceberg_action(spec, spec.tables[0]).format_version == 3
    assert Engine.ATHENA not in list_engines(spec)
    with pytest.raises(LakeError, match="format_version: Athena reads no tables of format version 3, and 'readers'"):
        load_spec(lake(tmp_path, top={"format_version": 3, "readers": ["athena"]}, **iceberg))
    with pytest.raises(LakeError, match="format_version: it is for Iceberg tables, and these are files"):
        load_spec(lake(tmp_path, top={"format_version": 2}))


GLUE = {"catalog": "glue", "database": "shop"}
PROJECTED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    # the destination, the file's keys beside it, and what is wrong
    ({}, {"projection": True}, "projection: it is for partitions of Hive tables in Glue"),
    ({"catalog": "iceberg", "database": "shop"}, {"projection": True}, "projection: it is for partitions"),
    (GLUE | {"partition_strategy": "none"}, {"projection": True}, "projection: it is for partitions"),
    (GLUE | {"partition_strategy": "load"}, {"projection": True}, "projection: each partition is a load's"),
    (GLUE, {"projection": "only", "readers": ["athena", "trino"]}, "'readers' names trino"),
    (GLUE, {"projection": True, "undo": {"drop_partitions": True}}, "undo.drop_partitions: Athena computes"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "top", "said"), PROJECTED)
def test_unfit_projection(tmp_path, settings, top, said):
    with pytest.raises(LakeError) as caught:
        load_spec(lake(tmp_path, top=top, **settings))
    assert said in str(caught.value)


FORMATS = [
    # the strategy, the projection, and what Athena computes: the letters are Java's
    ("day", True, ("2027-01-04", "yyyy-MM-dd", "DAYS", "load_date=${load_date}/"), "2027-01-04"),
    ("hour", True, ("2027-01-04-06", "yyyy-MM-dd-HH", "HOURS", "load_hour=${load_hour}/"), "2027-01-04-06"),
    ("day", "only", ("2027-01-04", "yyyy-MM-dd", "DAYS", "load_date=${load_date}/"), None),
]


@pytest.mark.parametrize(("strategy", "projection", "expected", "entry"), FORMATS)
def test_projected_partitions(tmp_path, strategy, projection, expected, entry):
    top = {"projection": projection, "readers": ["athena"]}
    spec = load_spec(lake(tmp_path, top=top, **GLUE, partition_strategy=strategy))
    names = spec.tables[0].layout.bind(job_id="j1", attempt="a", start=datetime(2027, 1, 4, 6, 30, tzinfo=UTC))
    action = plan_glue_action(spec, spec.tables[0], names)
    found = action.projection
    assert found is not None
    root = "s3://acme-lake/production/shop_public/orders/"
    assert (found.value, found.format, found.unit, found.template.removeprefix(root)) == expected
    assert action.partition == entry
    assert spec.warnings[-1].startswith("projection: Athena sees a file as soon as it is complete")
    engines = ("athena", "duckdb", "redshift", "spark", "trino") if entry else ("athena", "duckdb")
    assert list_engines(spec) == engines
