"""Snowflake's statements to read the tables of an Iceberg REST catalog, filled in from a specification; pure text."""

import json

from job.access import SecretText
from job.catalogs import RestService
from job.queries import Query
from job.spec import Spec, TableSpec, Tracking


def statements(spec: Spec, service: RestService) -> tuple[Query, ...]:
    """Volume, trust, integration, tables and refresh, in the order to run them; secrets are placeholders."""
    namespaces = list(dict.fromkeys(table.schema_name for table in spec.tables))
    only = namespaces[0] if len(namespaces) == 1 else None
    setting_up = [
        Query("all", "Create an external volume", _volume(spec)),
        Query("all", "See whom Snowflake will come as", f"DESC EXTERNAL VOLUME {_volume_name(spec)};"),
        Query("all", "Add to the trust policy of the volume's role, beside Open Catalog's own entry", _trust()),
        Query("all", "Verify the volume", f"SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME('{_volume_name(spec)}');"),
        Query("all", "Create a catalog integration", _integration(spec, service, only)),
        Query(
            "all",
            "List the catalog's tables",
            f"SELECT SYSTEM$LIST_ICEBERG_TABLES_FROM_CATALOG('{_integration_name(spec)}');",
        ),
    ]
    return (*setting_up, *(query for table in spec.tables for query in _table(spec, table, only)))


def _table(spec: Spec, table: TableSpec, only: str | None) -> list[Query]:
    name = f"{_base(spec)}_{table.name}"
    tracking = {column.holds: column.name for column in spec.tracking}
    created = [Query(table.id, "Create an externally managed table", _create(spec, table, name, None))] if only else []
    title = "The same where the integration names no namespace" if only else "Create an externally managed table"
    return [
        *created,
        Query(table.id, title, _create(spec, table, name, table.schema_name)),
        Query(table.id, "Keep the metadata in sync", f"ALTER ICEBERG TABLE {name} SET AUTO_REFRESH = TRUE;"),
        Query(table.id, "Query synced data", f"SELECT *\nFROM {name}\nLIMIT 100;"),
        Query(
            table.id,
            "Filter by tracking columns",
            f"SELECT *\nFROM {name}\nWHERE {tracking[Tracking.DELETED]} = false\n"
            f"ORDER BY {tracking[Tracking.SYNCED]} DESC;",
        ),
    ]


def _volume(spec: Spec) -> str:
    return f"""CREATE OR REPLACE EXTERNAL VOLUME {_volume_name(spec)}
STORAGE_LOCATIONS =
(
(
NAME = '{_base(spec)}-s3'
STORAGE_PROVIDER = 'S3'
STORAGE_BASE_URL = 's3://{spec.access.bucket}/'
STORAGE_AWS_ROLE_ARN = '{spec.access.role_arn or "<arn of a role that may read the bucket>"}'
STORAGE_AWS_EXTERNAL_ID = '<your-external-id>'
)
)
ALLOW_WRITES = FALSE;"""


def _trust() -> str:
    entry = {
        "Effect": "Allow",
        "Principal": {"AWS": "<STORAGE_AWS_IAM_USER_ARN from above>"},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"sts:ExternalId": "<STORAGE_AWS_EXTERNAL_ID from above>"}},
    }
    return json.dumps(entry, indent=2)


def _integration(spec: Spec, service: RestService, namespace: str | None) -> str:
    known = SecretText.parse(service.client_id).reference is None
    return "\n".join(
        [
            f"CREATE OR REPLACE CATALOG INTEGRATION {_integration_name(spec)}",
            "CATALOG_SOURCE = POLARIS",
            "TABLE_FORMAT = ICEBERG",
            *([f"CATALOG_NAMESPACE = '{namespace}'"] if namespace else []),
            "REST_CONFIG = (",
            f"CATALOG_URI = '{service.uri}'",
            f"CATALOG_NAME = '{service.warehouse}'",
            ")",
            "REST_AUTHENTICATION = (",
            "TYPE = OAUTH",
            f"OAUTH_CLIENT_ID = '{service.client_id if known else '<your-client-id>'}'",
            "OAUTH_CLIENT_SECRET = '<your-client-secret>'",
            f"OAUTH_ALLOWED_SCOPES = ('{service.scope}')",
            ")",
            "ENABLED = TRUE;",
        ]
    )


def _create(spec: Spec, table: TableSpec, name: str, namespace: str | None) -> str:
    lines = [
        f"CREATE ICEBERG TABLE {name}",
        f"CATALOG = '{_integration_name(spec)}'",
        f"EXTERNAL_VOLUME = '{_volume_name(spec)}'",
        f"CATALOG_TABLE_NAME = '{table.name}'",
        *([f"CATALOG_NAMESPACE = '{namespace}'"] if namespace else []),
    ]
    return "\n".join(lines) + ";"


def _base(spec: Spec) -> str:
    """The pipeline's name as one that Snowflake takes without quotes."""
    name = spec.pipeline.replace("-", "_")
    return f"_{name}" if name[0].isdigit() else name


def _volume_name(spec: Spec) -> str:
    return f"{_base(spec)}_iceberg_volume"


def _integration_name(spec: Spec) -> str:
    return f"{_base(spec)}_open_catalog_int"
