"""SQL for each engine: the statements of the documents' section on Athena, and the same for every other engine."""

from pathlib import Path
from typing import Any, get_args

import pytest
import sqlglot
import yaml
from sqlglot import exp

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.operate.duckdb_sql import READERS
from lakewriter.operate.queries import LastLoads, list_engines, write_queries
from lakewriter.operate.sql_text import Engine, quote_name, quote_text
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.encodings import FileEncoding
from tests.dialects.files import READ, lake

EXAMPLES = Path(__file__).parents[2] / "examples"
SUPAFLOW = {"update_aws_glue_catalog": True, "destination_prefix": "postgres"}
ICEBERG = {"table_format": "ICEBERG", "destination_prefix": "postgres"}
OPEN_CATALOG = ICEBERG | {
    "iceberg_catalog": "SNOWFLAKE_OPEN_CATALOG",
    "catalog_endpoint": "https://a.example.com/polaris/api/catalog",
    "catalog_name": "lake",
    "client_id": "me",
    "client_secret": "${env:CATALOG_SECRET}",
}
TABLES = [{"table": "accounts", "schema": "public", "read": READ}]


def write(folder, engine, *, tables=None, jobs=None, **destination):
    spec = load_spec(lake(folder, tables=tables or TABLES, **destination))
    last = LastLoads(jobs=jobs or {})
    return [query for query in write_queries(spec, [Engine(engine)], last) if query.table != "all"]


EXPECTED = [
    """SELECT *
FROM supaflow_postgres_public.accounts
LIMIT 100;""",
    """SELECT *
FROM supaflow_postgres_public.accounts
WHERE _supa_job_id = 'latest-job-id'
LIMIT 100;""",
    """SELECT _supa_job_id, COUNT(*) as record_count, MIN(_supa_synced) as sync_time
FROM supaflow_postgres_public.accounts
GROUP BY _supa_job_id
ORDER BY sync_time DESC;""",
    # Within one load all rows have one _supa_synced, so _supa_index is added to the documented order.
    """SELECT * FROM (
SELECT *, ROW_NUMBER() OVER (PARTITION BY _supa_id ORDER BY _supa_synced DESC, _supa_index DESC) as rn
FROM supaflow_postgres_public.accounts
) WHERE rn = 1 AND _supa_deleted = false;""",
]


def test_athena(tmp_path):
    written = write(tmp_path, "athena", **SUPAFLOW)
    assert [query.sql for query in written] == EXPECTED
    assert [query.table for query in written] == ["supaflow_postgres_public.accounts"] * 4
    latest = write(tmp_path, "athena", jobs={"supaflow_postgres_public.accounts": "abc123"}, **SUPAFLOW)[1]
    assert latest.sql == EXPECTED[1].replace("latest-job-id", "abc123")


SOURCES: list[tuple[str, dict[str, Any], str]] = [
    # engine, destination, what it selects from: a name in the engine's quotes, or the files
    ("trino", SUPAFLOW, "lake.supaflow_postgres_public.accounts"),
    ("redshift", SUPAFLOW, '"supaflow_postgres_public"."accounts"'),
    ("redshift", ICEBERG, '"supaflow_postgres_public"."accounts"'),
    ("spark", SUPAFLOW, "`supaflow_postgres_public`.`accounts`"),
    # a folder for each of year, month, day and hour
    ("duckdb", SUPAFLOW, "read_parquet('s3://my-bucket/supaflow_postgres_public/accounts/*/*/*/*/part-*-*.gzip.parquet'"
     ", union_by_name = true, hive_partitioning = false)"),
    ("trino", ICEBERG, "lake.supaflow_postgres_public.accounts"),
    ("spark", ICEBERG, "`lake`.`supaflow_postgres_public`.`accounts`"),
    ("duckdb", ICEBERG, '"lake"."supaflow_postgres_public"."accounts"'),
    ("spark", {}, "`public_accounts`"),
    ("duckdb", OPEN_CATALOG, '"lake"."postgres_public"."accounts"'),
]  # fmt: skip


@pytest.mark.parametrize(("engine", "destination", "source"), SOURCES)
def test_what_an_engine_selects_from(tmp_path, engine, destination, source):
    plain = next(query for query in write(tmp_path, engine, **destination) if query.title == "Query a table")
    assert plain.sql == f"SELECT *\nFROM {source}\nLIMIT 100;"


MOMENTS = [
    ("athena", "FROM supaflow_postgres_public.accounts\nFOR TIMESTAMP AS OF TIMESTAMP '2025-03-15 10:00:00 UTC';"),
    ("trino", "FROM lake.supaflow_postgres_public.accounts\nFOR TIMESTAMP AS OF TIMESTAMP '2025-03-15 10:00:00 UTC';"),
    ("spark", "FROM `lake`.`supaflow_postgres_public`.`accounts`\nTIMESTAMP AS OF TIMESTAMP "
     "'2025-03-15 10:00:00 UTC';"),
    ("duckdb", 'FROM "lake"."supaflow_postgres_public"."accounts" AT (TIMESTAMP => TIMESTAMPTZ '
     "'2025-03-15 10:00:00+00');"),
]  # fmt: skip


@pytest.mark.parametrize(("engine", "expected"), MOMENTS)
def test_time_travel(tmp_path, engine, expected):
    (moment,) = [query for query in write(tmp_path, engine, **ICEBERG) if query.title.startswith("Time travel")]
    assert moment.sql == f"SELECT *\n{expected}"


NAMES = [
    # table, schema, how Athena wants it: a word that Trino reserves goes into quotes, no other name does
    ("Order", "public", 'FROM public."order"'),
    ("Group", "", 'FROM "group"'),
    ("values", "full", 'FROM "full"."values"'),
    ("orders", "sales", "FROM sales.orders"),
    ("123abc", "", "FROM _123abc"),
]


@pytest.mark.parametrize(("table", "schema", "expected"), NAMES)
def test_name(tmp_path, table, schema, expected):
    tables = [{"table": table, "schema": schema, "read": READ}]
    assert all(expected in query.sql.splitlines() for query in write(tmp_path, "athena", tables=tables))


QUOTED = [
    # engine, name, as a name; text, as a text
    (Engine.SPARK, "a`b", "`a``b`", "it's \\", r"'it\'s \\'"),
    (Engine.DUCKDB, 'a"b', '"a""b"', "it's \\", "'it''s \\'"),
    (Engine.TRINO, "Größe", '"Größe"', "it's", "'it''s'"),
    (Engine.ATHENA, "_supa_id", "_supa_id", "a", "'a'"),
    (Engine.SNOWFLAKE, "a", "a", "it's \\", r"'it''s \\'"),
    # https://docs.aws.amazon.com/redshift/latest/dg/r_pg_keywords.html: quoted, no word is reserved
    (Engine.REDSHIFT, 'tag"', '"tag"""', "it's \\", r"'it''s \\'"),
]


@pytest.mark.parametrize(("engine", "name", "as_name", "text", "as_text"), QUOTED)
def test_quotes(engine, name, as_name, text, as_text):
    assert (quote_name(engine, name), quote_text(engine, text)) == (as_name, as_text)


FILES = [
    # an example, what DuckDB reads of its first table: every load's files, by the function of their format
    ("estuary-s3-parquet", "read_parquet('s3://my-bucket/recentchanges/v*/*.parquet', union_by_name = true, "
     "hive_partitioning = false)"),
    ("airbyte-s3", "read_avro('s3://my-bucket/data_sync/test/public/users/*_*_*_*_*.avro')"),
    ("heropixel-s3", "read_csv('s3://my-bucket/data_output_path/public/users/*_*_*_*_*.csv.gz', header = true, "
     "allow_quoted_nulls = false, union_by_name = true, hive_partitioning = false)"),
]  # fmt: skip


VIEWS = {"estuary-s3-parquet": "recentchanges", "airbyte-s3": "public_users", "heropixel-s3": "public_users"}


@pytest.mark.parametrize(("example", "expected"), FILES)
def test_files_without_tracking_columns(example, expected):
    spec = load_spec(EXAMPLES / f"{example}.yaml")
    if spec.encoding.kind == "avro":
        # DuckDB does not read the example's own codec.
        spec = spec.model_copy(update={"encoding": spec.encoding.model_copy(update={"codec": "deflate", "level": 5})})
    written = write_queries(spec, [Engine.DUCKDB])
    view, query = [query.sql for query in written if query.table != "all"][:2]
    assert view == f'CREATE OR REPLACE VIEW "{VIEWS[example]}" AS\nSELECT *\nFROM {expected};'
    assert query == f"SELECT *\nFROM {expected}\nLIMIT 100;"


KINDS = [kind for form in get_args(FileEncoding) for kind in get_args(form.model_fields["kind"].annotation)]


def test_every_format_has_a_reader():
    """Formats are known by their ``kind``, and DuckDB has a function for each."""
    assert sorted(KINDS) == sorted(READERS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_engine_reads_every_format(kind):
    """An engine that cannot read a format is not listed for it."""
    spec = load_spec(EXAMPLES / "estuary-s3-parquet.yaml")
    form = next(form for form in get_args(FileEncoding) if kind in get_args(form.model_fields["kind"].annotation))
    spec = spec.model_copy(update={"encoding": form(kind=kind)})
    engines = list_engines(spec)
    assert {query.engine for query in write_queries(spec, engines)} == set(engines)


ENGINES: list[tuple[dict[str, Any], list[str]]] = [
    (SUPAFLOW, ["athena", "duckdb", "redshift", "spark", "trino"]),
    (ICEBERG, ["athena", "duckdb", "redshift", "spark", "trino"]),
    (OPEN_CATALOG, ["snowflake", "duckdb", "spark", "trino"]),
    # the documents say how to register them by hand
    ({}, ["athena", "duckdb", "spark"]),
]


@pytest.mark.parametrize(("destination", "engines"), ENGINES)
def test_engines_by_catalog(tmp_path, destination, engines):
    """By the catalog alone: a tracking column more or less takes no engine away."""
    spec = load_spec(lake(tmp_path, tables=TABLES, **destination))
    for tracking in (spec.tracking, spec.tracking[:2]):
        assert list_engines(spec.model_copy(update={"tracking": tracking})) == tuple(engines)


SECRETS: list[tuple[dict[str, Any], list[str]]] = [
    # destination, lines of DuckDB's secret
    ({}, ["PROVIDER credential_chain", "REGION 'us-east-1'", "SCOPE 's3://my-bucket'"]),
    ({"custom_s3_endpoint": "http://localhost:9000"}, ["ENDPOINT 'localhost:9000'", "URL_STYLE 'path'",
                                                       "USE_SSL false"]),
    ({"custom_s3_endpoint": "https://s3.example.com"}, ["ENDPOINT 's3.example.com'", "USE_SSL true"]),
    ({"access_key_id": "${env:KEY_ID}", "secret_access_key": "${ssm:key}"}, ["KEY_ID '<value of ${env:KEY_ID}>'",
                                                                            "SECRET '<value of ${ssm:key}>'"]),
    ({"access_key_id": "AKIALITERAL", "secret_access_key": "hush"}, ["KEY_ID '<the secret of the file>'",
                                                                      "SECRET '<the secret of the file>'"]),
]  # fmt: skip


@pytest.mark.parametrize(("destination", "lines"), SECRETS)
def test_secret_of_the_bucket(tmp_path, destination, lines):
    spec = load_spec(lake(tmp_path, **destination))
    secret = write_queries(spec, [Engine.DUCKDB])[0].sql
    assert [line for line in lines if f"    {line}," not in f"{secret},".replace("\n)", ",\n)")] == []
    everything = "".join(query.sql for query in write_queries(spec, list(Engine)))
    assert "hush" not in everything
    assert "AKIALITERAL" not in everything


def test_account_of_glue(tmp_path):
    def attach(**destination):
        spec = load_spec(lake(tmp_path, tables=TABLES, **ICEBERG | destination))
        return write_queries(spec, [Engine.DUCKDB], None, Deployment(account=destination.pop("account", None)))[1].sql

    assert attach().startswith("ATTACH '<the AWS account''s 12 digits>' AS lake (")
    assert attach(iam_role_arn="arn:aws:iam::123456789012:role/L").startswith("ATTACH '123456789012' AS lake (")


CENTRAL = [
    # engine, destination; what to run once, as far as it names the account; what stands behind FROM
    ("athena", SUPAFLOW, "-- once, in a shell, since no statement does it:\n-- aws athena create-data-catalog --region "
     "us-east-1 --name lake --type GLUE --parameters catalog-id=999999999999",
     "lake.supaflow_postgres_public.accounts"),
    ("athena", ICEBERG, "catalog-id=999999999999", "lake.supaflow_postgres_public.accounts"),
    ("trino", SUPAFLOW, """    "hive.metastore.glue.catalogid" = '999999999999',\n""",
     "lake.supaflow_postgres_public.accounts"),
    ("trino", ICEBERG, """    "hive.metastore.glue.catalogid" = '999999999999',\n""",
     "lake.supaflow_postgres_public.accounts"),
    ("spark", SUPAFLOW, "-- of EMR: spark-sql --conf spark.hadoop.hive.metastore.glue.catalogid=999999999999\n",
     "`supaflow_postgres_public`.`accounts`"),
    ("spark", ICEBERG, "SET `spark.sql.catalog.lake.glue.id` = `999999999999`;",
     "`lake`.`supaflow_postgres_public`.`accounts`"),
    ("duckdb", ICEBERG, "ATTACH '999999999999' AS lake (", '"lake"."supaflow_postgres_public"."accounts"'),
]  # fmt: skip


@pytest.mark.parametrize(("engine", "destination", "setup", "source"), CENTRAL)
def test_a_catalog_of_another_account(tmp_path, engine, destination, setup, source):
    """https://trino.io/docs/current/object-storage/metastores.html, https://iceberg.apache.org/docs/latest/aws/"""
    file = lake(tmp_path, tables=TABLES, top={"catalog_account": "999999999999"}, **destination)
    written = write_queries(load_spec(file), [Engine(engine)], None, Deployment(account="123456789012"))
    once = [query.sql for query in written if query.table == "all"]
    assert [sql for sql in once if setup in sql] != [], once
    assert f"FROM {source}\n" in next(query.sql for query in written if query.title == "Query a table")


AWKWARD = [
    {"table": "Order", "schema": "group", "read": READ, "primary_key": ["id"]},
    {"table": "it's", "schema": "a-b c", "read": READ, "primary_key": ["id"]},
    {"table": "123", "schema": "ünï", "read": READ, "primary_key": ["id"]},
]
PARSED: list[dict[str, Any]] = [SUPAFLOW, ICEBERG, OPEN_CATALOG]


WAREHOUSE = {"service": "redshift", "access": "read"}
ROLE_OF_THE_STACK = """-- <IAM Role ARN ({0})> is an output of the stack lakewriter-p-prod-destination:
-- aws cloudformation describe-stacks --region us-east-1 --stack-name lakewriter-p-prod-destination \\
--   --output text --query "Stacks[0].Outputs[?Description=='IAM Role ARN ({0})'].OutputValue\"
-- Attach the role to the warehouse, which is in the region of bucket my-bucket.
"""
ANY_ROLE = """-- <role> is one that the warehouse takes and that reads the tables. The stacks make it with
-- deployment: {trust: [{service: redshift, access: read}]}.
-- Attach the role to the warehouse, which is in the region of bucket my-bucket.
"""
EXTERNAL_SCHEMA = """CREATE EXTERNAL SCHEMA IF NOT EXISTS "supaflow_postgres_public"
FROM DATA CATALOG
DATABASE 'supaflow_postgres_public'
REGION 'us-east-1'
IAM_ROLE '<{}>';"""
"""https://docs.aws.amazon.com/redshift/latest/dg/r_CREATE_EXTERNAL_SCHEMA.html"""
REDSHIFT: list[tuple[dict[str, Any], list[dict[str, str]], str, str, list[str]]] = [
    # destination, deployment.trust, how the first statement begins and ends, the titles of those for all tables
    (SUPAFLOW, [], ANY_ROLE, EXTERNAL_SCHEMA.format("role"), ["schemas", "nested"]),
    (SUPAFLOW, [WAREHOUSE], ROLE_OF_THE_STACK.format("redshift"),
     EXTERNAL_SCHEMA.format("IAM Role ARN (redshift)"), ["schemas", "nested"]),
    (ICEBERG, [WAREHOUSE | {"name": "bi"}], ROLE_OF_THE_STACK.format("bi") + "-- Structs, lists and maps are SUPER. ",
     EXTERNAL_SCHEMA.format("IAM Role ARN (bi)"), ["schemas"]),
]  # fmt: skip


@pytest.mark.parametrize(("destination", "trust", "begin", "end", "titles"), REDSHIFT)
def test_external_schemas_of_redshift(tmp_path, destination, trust, begin, end, titles):
    spec = load_spec(lake(tmp_path, tables=TABLES, **destination))
    about = Deployment.model_validate({"trust": trust})
    once = [query for query in write_queries(spec, [Engine.REDSHIFT], None, about, "prod") if query.table == "all"]
    assert once[0].sql.startswith(begin)
    assert once[0].sql.endswith(f"\n{end}")
    assert [word for query in once for word in ("schemas", "nested") if word in query.title] == titles


def test_redshift_is_told_of_a_codec_that_no_page_names(tmp_path):
    """https://docs.aws.amazon.com/redshift/latest/dg/c-spectrum-data-files.html lists gzip, Snappy and bzip2."""
    setups: dict[str, str] = {}
    for name, destination in (("zstd", ICEBERG), ("gzip", SUPAFLOW)):
        spec = load_spec(lake(tmp_path, tables=TABLES, **destination))
        setups[name] = write_queries(spec, [Engine.REDSHIFT])[0].sql
    assert "-- The files are compressed with zstd, and no page says that Redshift reads it" in setups["zstd"]
    assert "compressed" not in setups["gzip"]


def test_redshift_chains_to_the_account_of_the_catalog(tmp_path):
    file = lake(tmp_path, tables=TABLES, top={"catalog_account": "999999999999"}, **SUPAFLOW)
    sql = write_queries(load_spec(file), [Engine.REDSHIFT])[0].sql
    chained = "CATALOG_ROLE '<role>,<a role of account 999999999999 that reads its catalog and trusts the first>';"
    assert sql.endswith(f"IAM_ROLE '<role>'\n{chained}")


def test_redshift_has_no_time_travel(tmp_path):
    written = write(tmp_path, "redshift", **ICEBERG)
    assert not any(query.title.startswith("Time travel") for query in written)
    assert len(written) == 4


@pytest.mark.parametrize("engine", ["athena", "redshift", "trino", "snowflake"])
@pytest.mark.parametrize("destination", PARSED)
def test_statements_are_sql(tmp_path, engine, destination):
    for query in write(tmp_path, engine, tables=AWKWARD, **destination):
        if query.sql.startswith("SELECT"):
            (parsed,) = sqlglot.parse(query.sql, dialect=engine)
            assert isinstance(parsed, exp.Query), query.sql
            assert parsed.find(exp.Table)


@pytest.mark.parametrize("destination", PARSED)
def test_settings_of_trino(tmp_path, destination):
    """The parser knows no catalogs of Trino's: what it would call each property is looked at."""
    spec = load_spec(lake(tmp_path, tables=TABLES, **destination))
    (query,) = [query for query in write_queries(spec, [Engine.TRINO]) if query.table == "all"]
    connector = "hive" if destination is SUPAFLOW else "iceberg"
    assert query.sql.splitlines()[1] == f"CREATE CATALOG lake USING {connector}"
    properties = sqlglot.parse_one(
        f"CREATE TABLE t (a INT) {query.sql.partition(connector + chr(10))[2]}", dialect="trino"
    )
    assert {str(each.this.name) for each in properties.find_all(exp.Property)} >= {"fs.native-s3.enabled", "s3.region"}


TABLE_BUCKET = "arn:aws:s3tables:us-east-1:123456789012:bucket/acme-tables"
S3_TABLES = {
    "type": "lakewriter-s3", "location": "s3://acme-lake/production", "region": "us-east-1", "database": "shop",
    "catalog": "s3_tables", "table_bucket_arn": TABLE_BUCKET,
}  # fmt: skip
IN_TABLE_BUCKET: list[tuple[str, list[str], list[str]]] = [
    # engine, what it is told once, and what it selects from
    # https://docs.aws.amazon.com/glue/latest/dg/enable-s3-tables-catalog-integration.html
    ("athena", ["-- aws glue create-catalog --region us-east-1 --name s3tablescatalog --catalog-input '",
                '"Identifier": "arn:aws:s3tables:us-east-1:123456789012:bucket/*", "ConnectionName": "aws:s3tables"'],
     ['FROM "s3tablescatalog/acme-tables".shop.orders']),
    # the tables' buckets have names of the service's
    ("duckdb", ["    REGION 'us-east-1'\n);", f"ATTACH '{TABLE_BUCKET}' AS lake (\n    TYPE iceberg,\n    ENDPOINT "
                "'s3tables.us-east-1.amazonaws.com/iceberg',\n    AUTHORIZATION_TYPE 'sigv4'"],
     ['FROM "lake"."shop"."orders"']),
    ("redshift", ["DATABASE 'shop'\nCATALOG_ID '123456789012:s3tablescatalog/acme-tables'\nREGION 'us-east-1'"],
     ['FROM "shop"."orders"']),
    ("spark", ["lake.rest.signing-name` = `s3tables`", "lake.rest-metrics-reporting-enabled` = `false`",
               f"lake.warehouse` = `{TABLE_BUCKET}`"], ["FROM `lake`.`shop`.`orders`"]),
    # https://trino.io/docs/current/object-storage/metastores.html
    ("trino", ["\"iceberg.rest-catalog.view-endpoints-enabled\" = 'false'",
               f"\"iceberg.rest-catalog.warehouse\" = '{TABLE_BUCKET}'"], ["FROM lake.shop.orders"]),
    # https://docs.snowflake.com/en/user-guide/tables-iceberg-configure-catalog-integration-rest-s3tables
    ("snowflake", ["CATALOG_NAMESPACE = 'shop'\nREST_CONFIG = (\nCATALOG_URI = "
                   "'https://s3tables.us-east-1.amazonaws.com/iceberg'\nCATALOG_API_TYPE = AWS_S3TABLES\nCATALOG_NAME "
                   f"= '{TABLE_BUCKET}'\nACCESS_DELEGATION_MODE = VENDED_CREDENTIALS\n)\nREST_AUTHENTICATION = (\n"
                   "TYPE = SIGV4\nSIGV4_IAM_ROLE = '<role>'\nSIGV4_SIGNING_REGION = 'us-east-1'\n)\nENABLED = TRUE;",
                   "DESCRIBE CATALOG INTEGRATION shop_rest_catalog_int;"], ["CATALOG_TABLE_NAME = 'orders';"]),
]  # fmt: skip


@pytest.mark.parametrize(("engine", "setup", "source"), IN_TABLE_BUCKET)
def test_a_table_bucket(tmp_path, engine, setup, source):
    path = tmp_path / "lake.yaml"
    content = {"pipeline": "shop", "destination": S3_TABLES, "tables": [{"table": "orders", "read": READ}]}
    path.write_text(yaml.safe_dump(content), "utf-8")
    spec = load_spec(path)
    written = write_queries(spec, [Engine(engine)])
    once, of_table = (
        "\n".join(query.sql for query in written if (query.table == "all") is all_) for all_ in (True, False)
    )
    assert [part for part in setup if part not in once] == []
    assert [part for part in source if part not in of_table] == []
    assert "SCOPE" not in once
    assert Engine(engine) in list_engines(spec)
