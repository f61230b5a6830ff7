"""The statements of the document's section on Snowflake, filled in."""

import json

from job.dialects.lake_yaml import load_spec
from job.queries import time_travel
from job.snowflake import statements
from tests.dialects.files import READ, lake

OPEN_CATALOG = {
    "table_format": "ICEBERG",
    "iceberg_catalog": "SNOWFLAKE_OPEN_CATALOG",
    "catalog_endpoint": "https://acme-lake.snowflakecomputing.com/polaris/api/catalog",
    "catalog_name": "lake",
    "client_id": "abc",
    "client_secret": "${env:S}",
    "glue_database_prefix": "supaflow",
    "destination_prefix": "postgres",
    "iam_role_arn": "arn:aws:iam::123456789012:role/SupaflowS3Access",
    "external_id": "my-company-supaflow-2024",
}
EXPECTED = [
    """CREATE OR REPLACE EXTERNAL VOLUME supaflow_iceberg_volume
STORAGE_LOCATIONS =
(
(
NAME = 'supaflow-s3'
STORAGE_PROVIDER = 'S3'
STORAGE_BASE_URL = 's3://my-bucket/'
STORAGE_AWS_ROLE_ARN = 'arn:aws:iam::123456789012:role/SupaflowS3Access'
STORAGE_AWS_EXTERNAL_ID = '<your-external-id>'
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
OAUTH_CLIENT_SECRET = '<your-client-secret>'
OAUTH_ALLOWED_SCOPES = ('PRINCIPAL_ROLE:ALL')
)
ENABLED = TRUE;""",
    "SELECT SYSTEM$LIST_ICEBERG_TABLES_FROM_CATALOG('supaflow_open_catalog_int');",
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
]


def test_statements(tmp_path):
    file = lake(tmp_path, tables=[{"table": "accounts", "schema": "public", "read": READ}], **OPEN_CATALOG)
    spec = load_spec(file).model_copy(update={"pipeline": "supaflow"})
    found = [query.sql for query in statements(spec, spec.catalog.service)]
    trust = json.loads(found.pop(2))
    assert trust["Condition"] == {"StringEquals": {"sts:ExternalId": "<STORAGE_AWS_EXTERNAL_ID from above>"}}
    assert found == EXPECTED


def test_tables_of_several_namespaces(tmp_path):
    tables = [{"table": "t", "schema": schema, "read": READ} for schema in ("a", "b")]
    spec = load_spec(lake(tmp_path, tables=tables, **OPEN_CATALOG | {"client_id": "${env:ID}"}))
    text = "\n".join(query.sql for query in statements(spec, spec.catalog.service))
    assert text.count("CATALOG_NAMESPACE = ") == 2
    assert "OAUTH_CLIENT_ID = '<your-client-id>'" in text


def test_time_travel(tmp_path):
    spec = load_spec(lake(tmp_path, table_format="ICEBERG", destination_prefix="postgres"))
    assert [query.sql for query in time_travel(spec)] == [
        "SELECT *\nFROM supaflow_postgres.accounts\nLIMIT 100;",
        "SELECT *\nFROM supaflow_postgres.accounts\nFOR TIMESTAMP AS OF TIMESTAMP '2025-03-15 10:00:00 UTC';",
    ]
