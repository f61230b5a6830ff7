"""The statements of the document's section on Snowflake, filled in."""

import json

import pytest
import yaml

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SpecInvalidError
from lakewriter.operate.queries import list_engines, write_queries
from lakewriter.operate.snowflake import write_statements
from lakewriter.operate.sql_text import Engine
from lakewriter.spec.catalogs import IcebergCatalog, PolarisService
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.trust import Snowflake
from tests.dialects.files import READ, lake
from tests.support.narrow import expect

OPEN_CATALOG = {
    "table_format": "ICEBERG",
    "iceberg_catalog": "SNOWFLAKE_OPEN_CATALOG",
    "catalog_endpoint": "https://acme-lake.snowflakecomputing.com/polaris/api/catalog",
    "catalog_name": "lake",
    "client_id": "abc",
    "client_secret": "${env:S}",
    "glue_database_prefix": "supaflow",
    "destination_prefix": "postgres",
    "s3_path_prefix": "/data/production/",
    "iam_role_arn": "arn:aws:iam::123456789012:role/SupaflowS3Access",
    "external_id": "my-company-supaflow-2024",
}
EXPECTED = [
    """-- <SnowflakeSTORAGEAWSROLEARN> is an output of the stack lakewriter-supaflow-prod-destination:
-- aws cloudformation describe-stacks --region us-east-1 --stack-name lakewriter-supaflow-prod-destination \\
--   --output text --query "Stacks[0].Outputs[?OutputKey=='SnowflakeSTORAGEAWSROLEARN'].OutputValue"
CREATE OR REPLACE EXTERNAL VOLUME supaflow_iceberg_volume
STORAGE_LOCATIONS =
(
(
NAME = 'supaflow-s3'
STORAGE_PROVIDER = 'S3'
STORAGE_BASE_URL = 's3://my-bucket/data/production/'
STORAGE_AWS_ROLE_ARN = '<SnowflakeSTORAGEAWSROLEARN>'
STORAGE_AWS_EXTERNAL_ID = 'lakewriter'
)
)
ALLOW_WRITES = FALSE;""",
    "DESC EXTERNAL VOLUME supaflow_iceberg_volume;",
    "SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME('supaflow_iceberg_volume');",
    """CREATE OR REPLACE CATALOG INTEGRATION supaflow_open_catalog_int
CATALOG_SOURCE = POLARIS
TABLE_FORMAT = ICEBERG
CATALOG_NAMESPACE = 'supaflow_postgres_public'
REST_CONFIG = (
CATALOG_URI = 'https://acme-lake.snowflakecomputing.com/polaris/api/catalog'
CATALOG_NAME = 'lake'
)
REST_AUTHENTICATION = (
TYPE = OAUTH
OAUTH_CLIENT_ID = 'abc'
OAUTH_CLIENT_SECRET = '<value of ${env:S}>'
OAUTH_ALLOWED_SCOPES = ('PRINCIPAL_ROLE:ALL')
)
ENABLED = TRUE;""",
    """-- SYSTEM$LIST_NAMESPACES_FROM_CATALOG may find none in Open Catalog even where there are some.
SELECT SYSTEM$LIST_ICEBERG_TABLES_FROM_CATALOG('supaflow_open_catalog_int');""",
    """CREATE ICEBERG TABLE supaflow_accounts
CATALOG = 'supaflow_open_catalog_int'
EXTERNAL_VOLUME = 'supaflow_iceberg_volume'
CATALOG_TABLE_NAME = 'accounts';""",
    """CREATE ICEBERG TABLE supaflow_accounts
CATALOG = 'supaflow_open_catalog_int'
EXTERNAL_VOLUME = 'supaflow_iceberg_volume'
CATALOG_TABLE_NAME = 'accounts'
CATALOG_NAMESPACE = 'supaflow_postgres_public';""",
    "ALTER ICEBERG TABLE supaflow_accounts SET AUTO_REFRESH = TRUE;",
    "SELECT *\nFROM supaflow_accounts\nLIMIT 100;",
    "SELECT *\nFROM supaflow_accounts\nWHERE _supa_deleted = false\nORDER BY _supa_synced DESC;",
    "SELECT *\nFROM supaflow_accounts a\nJOIN my_database.my_schema.my_table o ON a.Id = o.Id;",
]


def printed(file, **snowflake):
    """The statements of the file's tables, with ``snowflake`` as ``deployment.snowflake``."""
    spec = load_spec(file).model_copy(update={"pipeline": "supaflow"})
    deployment = Deployment.model_validate({"snowflake": snowflake} if snowflake else {})
    service = expect(PolarisService, expect(IcebergCatalog, spec.catalog).service)
    return [query.sql for query in write_statements(spec, deployment, service, "prod")]


def test_statements(tmp_path):
    table = {"table": "accounts", "schema": "public", "read": READ, "primary_key": ["Id"]}
    found = printed(lake(tmp_path, tables=[table], **OPEN_CATALOG), compute={"external_id": "lakewriter"})
    trust = json.loads(found.pop(2))
    assert trust["Principal"] == {"AWS": "<STORAGE_AWS_IAM_USER_ARN that DESC EXTERNAL VOLUME prints>"}
    assert trust["Condition"] == {"StringEquals": {"sts:ExternalId": "lakewriter"}}
    assert found == EXPECTED


def test_volume_with_the_role_of_the_file(tmp_path):
    """Replaced "with the same values from your Supaflow destination configuration", where no stack has another role."""
    table = {"table": "accounts", "schema": "public", "read": READ}
    volume, _, trust, *_ = printed(lake(tmp_path, tables=[table], **OPEN_CATALOG))
    assert "STORAGE_AWS_ROLE_ARN = 'arn:aws:iam::123456789012:role/SupaflowS3Access'" in volume
    assert "STORAGE_AWS_EXTERNAL_ID = 'my-company-supaflow-2024'" in volume
    assert volume.startswith("CREATE OR REPLACE EXTERNAL VOLUME")
    assert json.loads(trust)["Condition"] == {"StringEquals": {"sts:ExternalId": "my-company-supaflow-2024"}}
    given = OPEN_CATALOG | {"external_id": "${env:ID}"}
    volume, *_ = printed(lake(tmp_path, tables=[table], **given))
    assert "STORAGE_AWS_EXTERNAL_ID = '<value of ${env:ID}>'" in volume


def test_role_of_the_file_without_an_external_id(tmp_path):
    """Snowflake makes an id of its own, which DESC EXTERNAL VOLUME prints:
    https://docs.snowflake.com/en/sql-reference/sql/create-external-volume"""
    table = {"table": "accounts", "schema": "public", "read": READ}
    given = {key: value for key, value in OPEN_CATALOG.items() if key != "external_id"}
    volume, _, trust, *_ = printed(lake(tmp_path, tables=[table], **given))
    assert "STORAGE_AWS_EXTERNAL_ID" not in volume
    assert volume.endswith("role/SupaflowS3Access'\n)\n)\nALLOW_WRITES = FALSE;")
    condition = {"StringEquals": {"sts:ExternalId": "<STORAGE_AWS_EXTERNAL_ID that DESC EXTERNAL VOLUME prints>"}}
    assert json.loads(trust)["Condition"] == condition


def test_bucket_with_dots_is_told(tmp_path):
    """ "Snowflake can't support external volumes with S3 bucket names that contain dots", says the same page."""
    table = {"table": "accounts", "schema": "public", "read": READ}
    volume, *_ = printed(lake(tmp_path, tables=[table], **OPEN_CATALOG | {"s3_bucket_name": "my.bucket"}))
    assert volume.startswith("-- Snowflake takes no bucket whose name has dots for an external volume: take another")


BASES = [
    # catalog_base_location, what is said
    (
        "s3://other/open/",
        r"catalog_base_location: it is in bucket 'other', and the destination's bucket is 'my-bucket'",
    ),
    ("open/", r"catalog_base_location: 'open/': expected s3://bucket/folder, such as 's3://acme-lake/open/'"),
    ("gs://my-bucket/open", r"catalog_base_location: 'gs://my-bucket/open': expected s3://bucket/folder"),
]


@pytest.mark.parametrize(("base", "message"), BASES)
def test_no_base_location(tmp_path, base, message):
    table = {"table": "accounts", "schema": "public", "read": READ}
    with pytest.raises(SpecInvalidError, match=message):
        load_spec(lake(tmp_path, tables=[table], **OPEN_CATALOG | {"catalog_base_location": base}))


def test_external_id_and_user_of_the_deployment(tmp_path):
    user = "arn:aws:iam::111122223333:user/k7m2-s"
    table = {"table": "accounts", "schema": "public", "read": READ}
    compute = {"external_id": "acme-volume", "iam_user_arn": user}
    volume, _, trust, *_ = printed(lake(tmp_path, tables=[table], **OPEN_CATALOG), compute=compute)
    assert "STORAGE_AWS_EXTERNAL_ID = 'acme-volume'" in volume
    assert json.loads(trust)["Principal"] == {"AWS": user}
    assert json.loads(trust)["Condition"] == {"StringEquals": {"sts:ExternalId": "acme-volume"}}


def test_trust_while_the_external_id_changes(tmp_path):
    table = {"table": "accounts", "schema": "public", "read": READ}
    compute = {"external_id": "acme-2027", "earlier_external_ids": ["acme-2026"]}
    volume, _, trust, *_ = printed(lake(tmp_path, tables=[table], **OPEN_CATALOG), compute=compute)
    assert "STORAGE_AWS_EXTERNAL_ID = 'acme-2027'" in volume
    assert json.loads(trust)["Condition"] == {"StringEquals": {"sts:ExternalId": ["acme-2027", "acme-2026"]}}


def test_volume_at_the_buckets_root(tmp_path):
    table = {"table": "accounts", "schema": "public", "read": READ}
    volume, *_ = printed(lake(tmp_path, tables=[table], **OPEN_CATALOG | {"s3_path_prefix": ""}))
    assert "STORAGE_BASE_URL = 's3://my-bucket/'" in volume


@pytest.mark.parametrize(("region", "provider"), [("us-gov-west-1", "S3GOV"), ("eu-west-1", "S3")])
def test_volume_of_a_partition(tmp_path, region, provider):
    table = {"table": "accounts", "schema": "public", "read": READ}
    volume, *_ = printed(lake(tmp_path, tables=[table], **OPEN_CATALOG | {"bucket_region": region}))
    assert f"STORAGE_PROVIDER = '{provider}'" in volume
    assert f"STORAGE_BASE_URL = '{provider.lower()}://my-bucket/" in volume


def test_tables_of_several_namespaces(tmp_path):
    tables = [{"table": "t", "schema": schema, "read": READ} for schema in ("a", "b")]
    text = "\n".join(printed(lake(tmp_path, tables=tables, **OPEN_CATALOG | {"client_id": "${env:ID}"})))
    assert text.count("CATALOG_NAMESPACE = ") == 2
    assert "OAUTH_CLIENT_ID = '<value of ${env:ID}>'" in text


QUOTED = [
    # what the file has, the line it becomes: a quote is doubled, a backslash too
    # https://docs.snowflake.com/en/sql-reference/data-types-text#single-quoted-string-constants
    ({"s3_path_prefix": "data/o'hara"}, "STORAGE_BASE_URL = 's3://my-bucket/data/o''hara/'"),
    ({"s3_path_prefix": "data\\x"}, "STORAGE_BASE_URL = 's3://my-bucket/data\\\\x/'"),
    ({"catalog_name": "l'ake"}, "CATALOG_NAME = 'l''ake'"),
    ({"catalog_endpoint": "https://a.example/x'y"}, "CATALOG_URI = 'https://a.example/x''y'"),
    ({"client_id": "a'b"}, "OAUTH_CLIENT_ID = 'a''b'"),
    # a tab and a line's end have escapes of their own
    ({"client_id": "a\tb"}, "OAUTH_CLIENT_ID = 'a\\tb'"),
    ({"client_id": "a\r\nb"}, "OAUTH_CLIENT_ID = 'a\\r\\nb'"),
    # the catalog's own base location, as Open Catalog shows it
    ({"catalog_base_location": "s3://my-bucket/open/"}, "STORAGE_BASE_URL = 's3://my-bucket/open/'"),
    ({"catalog_base_location": "s3://my-bucket"}, "STORAGE_BASE_URL = 's3://my-bucket/'"),
    ({"client_secret": "${secret:arn:aws:secretsmanager:us-east-1:123456789012:secret:it's}"},
     "OAUTH_CLIENT_SECRET = '<value of ${secret:arn:aws:secretsmanager:us-east-1:123456789012:secret:it''s}>'"),
    ({"principal_role": "it's"}, "OAUTH_ALLOWED_SCOPES = ('PRINCIPAL_ROLE:it''s')"),
]  # fmt: skip


@pytest.mark.parametrize(("over", "line"), QUOTED)
def test_quotes_are_escaped(tmp_path, over, line):
    table = {"table": "accounts", "schema": "public", "read": READ}
    text = "\n".join(printed(lake(tmp_path, tables=[table], **OPEN_CATALOG | over)))
    assert line in text.splitlines()


def test_without_a_stage_the_stack_is_named_as_far_as_it_is_known(tmp_path):
    table = {"table": "accounts", "schema": "public", "read": READ}
    spec = load_spec(lake(tmp_path, tables=[table], **OPEN_CATALOG))
    service = expect(PolarisService, expect(IcebergCatalog, spec.catalog).service)
    first = write_statements(spec, Deployment(snowflake=Snowflake()), service)[0].sql.splitlines()[0]
    assert first.endswith(f"is an output of the stack lakewriter-{spec.pipeline}-<stage>-destination:")


NAMES = [
    # schema and table in the source; what Snowflake calls them. The document names a table by the pipeline and itself.
    ([("sales", "accounts"), ("sales", "orders")], ["supaflow_accounts", "supaflow_orders"]),
    (
        [("sales", "accounts"), ("support", "accounts")],
        ["supaflow_supaflow_postgres_sales_accounts", "supaflow_supaflow_postgres_support_accounts"],
    ),
    # one text of two parts
    (
        [("a", "b_c"), ("a_b", "c")],
        ["supaflow_supaflow_postgres_a_b_c", "supaflow_supaflow_postgres_a_b_c_1"],
    ),
]


@pytest.mark.parametrize(("sources", "names"), NAMES)
def test_names_in_snowflake_are_distinct(tmp_path, sources, names):
    tables = [{"table": table, "schema": schema, "read": READ} for schema, table in sources]
    found = printed(lake(tmp_path, tables=tables, **OPEN_CATALOG))
    made = [text.split()[3] for text in found if text.startswith("CREATE ICEBERG TABLE ")]
    assert list(dict.fromkeys(made)) == names
    refreshed = [text.split()[3] for text in found if text.startswith("ALTER ICEBERG TABLE ")]
    assert refreshed == names


REST = {"type": "lakewriter-s3", "location": "s3://acme-lake", "region": "us-east-1", "catalog": "rest",
        "uri": "https://acme.cloud.databricks.com/api/2.1/unity-catalog/iceberg-rest", "warehouse": "main"}  # fmt: skip
SIGN_INS = [
    # Unity Catalog's: https://docs.databricks.com/aws/en/external-access/iceberg
    (
        {"auth": "oauth", "client_id": "me", "client_secret": "${env:S}", "scope": "all-apis",
         "oauth2_server_uri": "https://acme.cloud.databricks.com/oidc/v1/token"},
        """TYPE = OAUTH
OAUTH_TOKEN_URI = 'https://acme.cloud.databricks.com/oidc/v1/token'
OAUTH_CLIENT_ID = 'me'
OAUTH_CLIENT_SECRET = '<value of ${env:S}>'
OAUTH_ALLOWED_SCOPES = ('all-apis')""",
    ),
    ({"auth": "token", "token": "${env:S}"}, "TYPE = BEARER\nBEARER_TOKEN = '<value of ${env:S}>'"),
]  # fmt: skip


@pytest.mark.parametrize(("sign_in", "options"), SIGN_INS)
def test_other_catalogs_vend_credentials(tmp_path, sign_in, options):
    """No volume and no role is needed: https://docs.snowflake.com/en/user-guide/tables-iceberg-configure-catalog-integration-vended-credentials"""
    table = {"table": "orders", "schema": "shop", "read": READ}
    (tmp_path / "lake.yaml").write_text(
        yaml.safe_dump({"pipeline": "p", "destination": REST | sign_in, "tables": [table]}), "utf-8"
    )
    spec = load_spec(tmp_path / "lake.yaml")
    integration, listed, created, *_ = [query.sql for query in write_queries(spec, [Engine.SNOWFLAKE])]
    assert (
        integration
        == f"""-- The catalog has to vend credentials for its tables' files.
CREATE OR REPLACE CATALOG INTEGRATION p_rest_catalog_int
CATALOG_SOURCE = ICEBERG_REST
TABLE_FORMAT = ICEBERG
CATALOG_NAMESPACE = 'shop'
REST_CONFIG = (
CATALOG_URI = 'https://acme.cloud.databricks.com/api/2.1/unity-catalog/iceberg-rest'
CATALOG_NAME = 'main'
ACCESS_DELEGATION_MODE = VENDED_CREDENTIALS
)
REST_AUTHENTICATION = (
{options}
)
ENABLED = TRUE;"""
    )
    assert listed == "SELECT SYSTEM$LIST_ICEBERG_TABLES_FROM_CATALOG('p_rest_catalog_int');"
    assert created == "CREATE ICEBERG TABLE p_orders\nCATALOG = 'p_rest_catalog_int'\nCATALOG_TABLE_NAME = 'orders';"
    assert list_engines(spec) == ("snowflake", "duckdb", "spark", "trino")
