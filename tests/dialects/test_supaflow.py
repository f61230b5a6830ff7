"""The two connectors' documented examples, as literals."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import LakeError, NameCollisionError, SpecInvalidError
from lakewriter.spec.catalogs import GlueCatalog, IcebergCatalog, NoCatalog, PolarisService
from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.layout import Layout
from tests.dialects.files import READ, TABLE, lake
from tests.support.narrow import expect, need

AT = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
SWITCH = {"supaflow-s3": "sync_schema_with_aws_glue_catalog", "supaflow-s3-data-lake": "update_aws_glue_catalog"}


def keyed(spec, job_id="abc123", seq=0, at=AT):
    names = spec.tables[0].layout.bind(job_id=job_id, attempt="x", start=at)
    return names.object_key(seq)


SCHEMAS = [
    # glue on, glue prefix, destination prefix, source schema, resulting schema: the naming section's table
    (True, "supaflow", "postgres", "public", "supaflow_postgres_public"),
    (True, "supaflow", "salesforce", "", "supaflow_salesforce"),
    (True, "supaflow", "", "public", "supaflow_public"),
    (True, "supaflow", "", "", "supaflow"),
    (True, "", "postgres", "public", "postgres_public"),
    (True, "mycompany_", "postgres", "public", "mycompany_postgres_public"),
    (True, "mycompany_", "", "", "mycompany_"),
    # the glue prefix counts only when Glue is on; a blank schema is then left out of the path
    (False, "supaflow", "postgres", "public", "postgres_public"),
    (False, "supaflow", "", "", ""),
]


@pytest.mark.parametrize("kind", SWITCH)
@pytest.mark.parametrize(("glue", "glue_prefix", "prefix", "schema", "expected"), SCHEMAS)
def test_schema(tmp_path, kind, glue, glue_prefix, prefix, schema, expected):
    settings = {"type": kind, SWITCH[kind]: glue, "glue_database_prefix": glue_prefix, "destination_prefix": prefix}
    file = lake(tmp_path, tables=[{"table": "accounts", "schema": schema, "read": READ}], **settings)
    assert load_spec(file).tables[0].schema_name == expected


NO_LITERALS = [
    # a key, its value: "use the literal prefix (for example, mycompany) without the *", as the document's Step 2 says,
    # and the path of its policy (data/supaflow/*)
    ("glue_database_prefix", "mycompany_*"),
    ("glue_database_prefix", "supaflow*"),
    ("destination_prefix", "postgres*"),
    ("s3_path_prefix", "data/supaflow/*"),
]


@pytest.mark.parametrize("kind", SWITCH)
@pytest.mark.parametrize(("key", "value"), NO_LITERALS)
def test_prefix_of_a_policy(tmp_path, kind, key, value):
    message = rf"destination\.{key}: '{re.escape(value)}': expected the prefix itself, without the '\*'"
    with pytest.raises(SpecInvalidError, match=message):
        load_spec(lake(tmp_path, type=kind, **{key: value}))


def test_blank_schema_with_glue(tmp_path):
    with pytest.raises(SpecInvalidError, match="has no schema, and Glue needs a database"):
        load_spec(lake(tmp_path, update_aws_glue_catalog=True, glue_database_prefix=""))


KEYS = [
    # settings, source schema, table, start, job id, seq, key: the path layout section's examples
    (
        {"destination_prefix": "postgres"}, "public", "accounts", AT, "abc123", 0,
        "data/supaflow_postgres_public/accounts/2024/01/15/10/part-abc123-00000.gzip.parquet",
    ),
    (
        {"destination_prefix": "salesforce", "partition_strategy": "DAY"}, "", "Contact", AT, "def456", 0,
        "data/supaflow_salesforce/contact/2024/01/15/part-def456-00000.gzip.parquet",
    ),
    (
        {"destination_prefix": "postgres"}, "public", "tenants", datetime(2025, 12, 31, 0, 5, tzinfo=UTC), "j", 0,
        "data/supaflow_postgres_public/tenants/2025/12/31/00/part-j-00000.gzip.parquet",
    ),
    (
        {"destination_prefix": "salesforce"}, "", "Contact", datetime(2025, 12, 31, 0, 5, tzinfo=UTC), "j", 0,
        "data/supaflow_salesforce/contact/2025/12/31/00/part-j-00000.gzip.parquet",
    ),
    (
        {"destination_prefix": "postgres"}, "public", "accounts", datetime(2025, 12, 31, 0, 5, tzinfo=UTC), "j", 1,
        "data/supaflow_postgres_public/accounts/2025/12/31/00/part-j-00001.gzip.parquet",
    ),
    (
        {"destination_prefix": "s3"}, "", "ext_contacts", datetime(2025, 12, 31, 0, 5, tzinfo=UTC), "j", 0,
        "data/supaflow_s3/ext_contacts/2025/12/31/00/part-j-00000.gzip.parquet",
    ),
    (
        {"destination_prefix": "postgres", "partition_strategy": "SYNC_ID"}, "public", "accounts", AT, "abc123", 0,
        "data/supaflow_postgres_public/accounts/abc123/part-abc123-00000.gzip.parquet",
    ),
    (
        {"destination_prefix": "postgres", "partition_strategy": "NONE"}, "public", "accounts", AT, "abc123", 0,
        "data/supaflow_postgres_public/accounts/part-abc123-00000.gzip.parquet",
    ),
    (
        {"glue": False}, "", "accounts", AT, "abc123", 123456,
        "data/accounts/2024/01/15/10/part-abc123-123456.gzip.parquet",
    ),
    (
        {"file_name_pattern": "{date}_{timestamp}_{supa_job_id}_{seq}", "s3_path_prefix": "/a//b/"}, "public", "t", AT,
        "j", 7, "a/b/supaflow_public/t/2024/01/15/10/20240115_20240115103000_j_00007.gzip.parquet",
    ),
]  # fmt: skip


@pytest.mark.parametrize("kind", SWITCH)
@pytest.mark.parametrize(("settings", "schema", "table", "at", "job_id", "seq", "expected"), KEYS)
def test_key(tmp_path, kind, settings, schema, table, at, job_id, seq, expected):
    tables = [{"table": table, "schema": schema, "read": READ}]
    glue = {SWITCH[kind]: settings.get("glue", True)}
    given = {key: value for key, value in settings.items() if key != "glue"}
    file = lake(tmp_path, tables=tables, **({"type": kind, "s3_path_prefix": "data"} | glue | given))
    assert keyed(load_spec(file), job_id, seq, at) == expected


def test_uuid_pattern(tmp_path):
    spec = load_spec(lake(tmp_path, file_name_pattern="{uuid}", partition_strategy="NONE"))
    first, second = keyed(spec, seq=0), keyed(spec, seq=1)
    assert first != second
    assert first == keyed(spec, seq=0)


@pytest.mark.parametrize("kind", SWITCH)
def test_defaults(tmp_path, kind):
    spec = load_spec(lake(tmp_path, type=kind))
    (table,) = spec.tables
    assert isinstance(spec.catalog, NoCatalog)
    assert keyed(spec) == "accounts/2024/01/15/10/part-abc123-00000.gzip.parquet"
    assert (spec.limits.upload_parallelism, table.must_be_empty) == (5, False)
    assert (spec.access.prefix, spec.access.endpoint, spec.access.role_arn) == ("", None, None)
    assert [column.name for column in spec.tracking] == [
        "_supa_synced",
        "_supa_deleted",
        "_supa_index",
        "_supa_id",
        "_supa_job_id",
    ]


PARTITION_KEYS = [
    ("HOUR", "_supa_partition"),
    ("DAY", "_supa_partition"),
    ("SYNC_ID", "_supa_partition"),
    ("NONE", None),
]


@pytest.mark.parametrize("kind", SWITCH)
@pytest.mark.parametrize(("strategy", "key"), PARTITION_KEYS)
def test_glue(tmp_path, kind, strategy, key):
    settings = {"type": kind, SWITCH[kind]: True, "partition_strategy": strategy}
    spec = load_spec(lake(tmp_path, **settings))
    assert spec.catalog == GlueCatalog(partition_key=key, strategy=strategy)
    assert spec.tables[0].schema_name == "supaflow"


def test_first_run_check(tmp_path):
    assert load_spec(lake(tmp_path, destination_table_handling="FAIL")).tables[0].must_be_empty


def test_table_names_that_collide(tmp_path):
    tables = [{"table": name, "read": READ} for name in ("crème", "Creme", "creme_1")]
    spec = load_spec(lake(tmp_path, tables=tables))
    assert [table.name for table in spec.tables] == ["creme", "creme_1", "creme_1_1"]
    assert spec.warnings == (
        "table 'Creme' becomes 'creme_1': 'creme' is taken in ''.",
        "table 'creme_1' becomes 'creme_1_1': 'creme_1' is taken in ''.",
    )


def test_tables_of_two_schemas_that_normalise_to_one(tmp_path):
    tables = [{"table": "t", "schema": schema, "read": READ} for schema in ("sales", "Sales", "other")]
    spec = load_spec(lake(tmp_path, tables=tables))
    assert [table.id for table in spec.tables] == ["sales.t", "sales.t_1", "other.t"]
    assert spec.warnings == ("table 't' becomes 't_1': 't' is taken in 'sales'.",)


NAMES = [
    # source table, path: the section on table and column normalization
    ("crème", "creme"),
    ("123abc", "_123abc"),
    ("Order Items (2024)", "order_items_2024_"),
    ("日本語", "_"),
    ("Δ__x", "_x"),
]


@pytest.mark.parametrize(("table", "expected"), NAMES)
def test_table_name(tmp_path, table, expected):
    assert load_spec(lake(tmp_path, tables=[{"table": table, "read": READ}])).tables[0].path == expected


NESTED = [
    [{"table": "t", "read": READ}, {"table": "t", "read": READ}],
    [{"table": "a", "read": READ}, {"table": "t", "schema": "a", "read": READ}],
]


@pytest.mark.parametrize("tables", NESTED)
def test_places_that_are_taken(tmp_path, tables):
    with pytest.raises(NameCollisionError):
        load_spec(lake(tmp_path, tables=tables))


OPEN_CATALOG: dict[str, Any] = {
    "iceberg_catalog": "SNOWFLAKE_OPEN_CATALOG",
    "catalog_endpoint": "https://org-account.snowflakecomputing.com/polaris/api/catalog/",
    "catalog_name": "lake",
    "client_id": "abc",
    "client_secret": "${env:S}",
}
ICEBERG_SCHEMAS = [
    # settings, source schema, schema: the glue prefix counts with Glue, or where it is written down
    ({}, "public", "supaflow_public"),
    (OPEN_CATALOG, "public", "public"),
    (OPEN_CATALOG | {"glue_database_prefix": "supaflow"}, "public", "supaflow_public"),
    (OPEN_CATALOG | {"destination_prefix": "postgres"}, "", "postgres"),
]


@pytest.mark.parametrize(("settings", "schema", "expected"), ICEBERG_SCHEMAS)
def test_iceberg(tmp_path, settings, schema, expected):
    tables = [{"table": "Accounts", "schema": schema, "read": READ}]
    spec = load_spec(lake(tmp_path, tables=tables, table_format="ICEBERG", s3_path_prefix="data", **settings))
    assert spec.tables[0].schema_name == expected
    assert keyed(spec) == f"data/{expected}/accounts/data/part-abc123-00000.parquet"
    assert expect(ParquetEncoding, spec.encoding).codec == "zstd"


def test_open_catalog(tmp_path):
    spec = load_spec(lake(tmp_path, table_format="ICEBERG", destination_prefix="a", **OPEN_CATALOG))
    service = expect(PolarisService, expect(IcebergCatalog, spec.catalog).service)
    assert (service.uri, service.warehouse, service.scope) == (
        "https://org-account.snowflakecomputing.com/polaris/api/catalog",
        "lake",
        "PRINCIPAL_ROLE:ALL",
    )
    assert need(service.client_secret).reference == ("env", "S")


ICEBERG_PROBLEMS = [
    ({"partition_strategy": "DAY"}, "'partition_strategy' is only for 'table_format: PARQUET'"),
    ({"update_aws_glue_catalog": True}, "'update_aws_glue_catalog' is only for 'table_format: PARQUET'"),
    (
        {"catalog_name": "x", "client_id": "y"},
        "'catalog_name', 'client_id' are only for 'iceberg_catalog: SNOWFLAKE_OPEN",
    ),
    ({"iceberg_catalog": "REST"}, "'type: lakewriter-s3' has 'catalog: rest' for others"),
    (OPEN_CATALOG | {"catalog_name": None}, "SNOWFLAKE_OPEN_CATALOG needs 'catalog_name'"),
    (OPEN_CATALOG | {"client_secret": "hush"}, "(not shown): expected a reference: ${env:NAME}"),
    (OPEN_CATALOG | {"catalog_endpoint": "http://example.com/x", "destination_prefix": "a"}, "has no TLS"),
    (OPEN_CATALOG | {"catalog_endpoint": "org-account"}, "expected a URL such as"),
    (OPEN_CATALOG, "the catalog needs a namespace"),
    ({"glue_database_prefix": ""}, "Glue needs a database"),
    ({"table_format": "PARQUET", "iceberg_catalog": "GLUE"}, "'iceberg_catalog' is only for 'table_format: ICEBERG'"),
]


@pytest.mark.parametrize(("settings", "expected"), ICEBERG_PROBLEMS)
def test_iceberg_problem(tmp_path, settings, expected):
    with pytest.raises(LakeError) as caught:
        load_spec(lake(tmp_path, **{"table_format": "ICEBERG"} | settings))
    assert expected in str(caught.value)
    assert "hush" not in str(caught.value)


PARTITIONS = {
    # entry of partition_by: column, transform in Iceberg's spelling, name of the field
    "region": ("region", "identity", "region"),
    "Full Name": ("Full Name", "identity", "Full Name"),
    "year(at)": ("at", "year", "at_year"),
    "month(at)": ("at", "month", "at_month"),
    "day( at )": ("at", "day", "at_day"),
    "hour(Booked At)": ("Booked At", "hour", "Booked At_hour"),
    "bucket(16, id)": ("id", "bucket[16]", "id_bucket"),
    "truncate(4,name)": ("name", "truncate[4]", "name_trunc"),
}


def test_partition_by(tmp_path):
    entry = TABLE | {"partition_by": list(PARTITIONS)}
    (table,) = load_spec(lake(tmp_path, tables=[entry], table_format="ICEBERG")).tables
    assert [(each.column, each.transform, each.name) for each in table.partition_by] == list(PARTITIONS.values())
    assert expect(Layout, table.layout).depth == len(PARTITIONS)


@pytest.mark.parametrize("kind", ["supaflow-s3", "supaflow-s3-data-lake"])
def test_partition_by_of_parquet_tables(tmp_path, kind):
    with pytest.raises(SpecInvalidError, match="partition_by, which only Iceberg tables have"):
        load_spec(lake(tmp_path, tables=[TABLE | {"partition_by": ["id"]}], type=kind))
