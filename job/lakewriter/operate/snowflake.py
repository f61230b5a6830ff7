"""Write the statements by which Snowflake reads the tables of an Iceberg REST catalog; pure text.

It reads Open Catalog's files by an external volume with a role, other catalogs' by credentials that the catalog vends.
"""

import json
from collections.abc import Sequence
from functools import partial
from typing import Final

from lakewriter.naming import cut, join_key, make_unique, normalise
from lakewriter.operate.sql_text import HISTORY, Engine, Query, quote_text, write_history, write_secret, write_value
from lakewriter.policy.arns import find_partition
from lakewriter.spec.catalogs import OAuthService, PolarisService, S3TablesService, TokenService
from lakewriter.spec.deployment import Deployment, name_destination_stack
from lakewriter.spec.specification import Spec, Tracking
from lakewriter.spec.table_spec import TableSpec
from lakewriter.spec.trust import Snowflake

_ROLE: Final = "SnowflakeSTORAGEAWSROLEARN"
"""The output with the role of Snowflake's compute, whose name CloudFormation chooses."""

_DOTS: Final = "Snowflake takes no bucket whose name has dots for an external volume: take another bucket."
"""https://docs.snowflake.com/en/sql-reference/sql/create-external-volume"""

_ENTRY: Final = "snowflake"
"""The entry of ``deployment.trust`` whose role signs for Snowflake."""

Readable = PolarisService | OAuthService | TokenService | S3TablesService
"""The catalogs whose class says that Snowflake reads them."""

_query = partial(Query, engine=Engine.SNOWFLAKE)


def write_statements(
    spec: Spec, deployment: Deployment, service: Readable, stage: str | None = None
) -> tuple[Query, ...]:
    """Write the statements for integration, tables and refresh, in the order to run them, after those of a volume."""
    namespaces = list(dict.fromkeys(table.schema_name for table in spec.tables))
    only = namespaces[0] if len(namespaces) == 1 else None
    volume = _write_volume_statements(spec, deployment, stage) if service.takes_roles else ()
    note = "-- SYSTEM$LIST_NAMESPACES_FROM_CATALOG may find none in Open Catalog even where there are some.\n"
    setting_up = [
        _query("all", "Create a catalog integration", _write_integration(spec, service, only)),
        *_write_sign_in_statements(spec, service),
        _query(
            "all",
            "List the catalog's tables",
            f"{note if service.takes_roles else ''}"
            f"SELECT SYSTEM$LIST_ICEBERG_TABLES_FROM_CATALOG('{_name_integration(service, spec)}');",
        ),
    ]
    named = zip(spec.tables, _name_snowflake_tables(spec, only), strict=True)
    of_tables = (query for table, name in named for query in _write_table(spec, service, table, name, only))
    return (*volume, *setting_up, *of_tables)


def _write_sign_in_statements(spec: Spec, service: Readable) -> tuple[Query, ...]:
    """Write what the role that signs for Snowflake has to trust.

    https://docs.snowflake.com/en/user-guide/tables-iceberg-configure-catalog-integration-rest-s3tables
    """
    if not isinstance(service, S3TablesService):
        return ()
    name = f"DESCRIBE CATALOG INTEGRATION {_name_integration(service, spec)};"
    title = (
        f"See whom the role has to trust: have deployment.trust say {{name: {_ENTRY}, access: read, principal: "
        "AWS_IAM_USER_ARN, external_id: AWS_EXTERNAL_ID}, and deploy"
    )
    return (_query("all", title, name),)


def _write_volume_statements(spec: Spec, deployment: Deployment, stage: str | None) -> tuple[Query, ...]:
    """Write the statements for volume and trust.

    If the file has a role and an external id, and no ``deployment.snowflake``, the volume has these, as in the vendor's
    document. Otherwise it has those that the stacks of ``stage`` make for Snowflake's compute. Secrets and that role's
    ARN, which no file of the pipeline contains, are in angle brackets, with where to find them.
    """
    compute = (deployment.snowflake or Snowflake()).compute
    of_file = deployment.snowflake is None and spec.access.role_arn is not None
    external_ids: Sequence[str] | None = compute.external_ids
    if of_file:
        # Without one Snowflake makes an id of its own.
        external_ids = None if spec.access.external_id is None else [write_value(spec.access.external_id)]
    return (
        _query("all", "Create an external volume", _write_volume(spec, external_ids, stage, of_file=of_file)),
        _query("all", "See which user Snowflake takes the role as", f"DESC EXTERNAL VOLUME {_name_volume(spec)};"),
        _query(
            "all",
            "Have the volume's role trust that user: set deployment.snowflake.compute.iam_user_arn and deploy, or, "
            "where no stack made the role, add this to its trust policy, beside Open Catalog's own entry",
            _write_trust(compute.iam_user_arn, external_ids),
        ),
        _query("all", "Verify the volume", f"SELECT SYSTEM$VERIFY_EXTERNAL_VOLUME('{_name_volume(spec)}');"),
    )


def _name_snowflake_tables(spec: Spec, only: str | None) -> list[str]:
    """Name the tables in Snowflake as the vendor's document does; with several namespaces the name contains its own."""
    parts = ([_name_pipeline(spec), "" if only else table.schema_name, table.name] for table in spec.tables)
    return make_unique(cut("_".join(filter(None, part))) for part in parts)


def _write_table(spec: Spec, service: Readable, table: TableSpec, name: str, only: str | None) -> list[Query]:
    tracking = {column.holds: column.name for column in spec.tracking}
    created = (
        [_query(table.id, "Create an externally managed table", _write_create_table(spec, service, table, name))]
        if only
        else []
    )
    title = "The same where the integration names no namespace" if only else "Create an externally managed table"
    keys = [table.names.get(key) or normalise(key) for key in table.primary_key or table.unique_key] or [
        "<a column of both>"
    ]
    history = write_history(Engine.SNOWFLAKE, spec, table, name)
    return [
        *created,
        _query(table.id, title, _write_create_table(spec, service, table, name, table.schema_name)),
        _query(table.id, "Keep the metadata in sync", f"ALTER ICEBERG TABLE {name} SET AUTO_REFRESH = TRUE;"),
        _query(table.id, "Query synced data", f"SELECT *\nFROM {name}\nLIMIT 100;"),
        *(
            [
                _query(
                    table.id,
                    "Filter by tracking columns",
                    f"SELECT *\nFROM {name}\nWHERE {tracking[Tracking.DELETED]} = false\n"
                    f"ORDER BY {tracking[Tracking.SYNCED]} DESC;",
                )
            ]
            if {Tracking.DELETED, Tracking.SYNCED} <= tracking.keys()
            else []
        ),
        *([_query(table.id, HISTORY, history)] if history else []),
        _query(
            table.id,
            "Join with other Snowflake tables",
            f"SELECT *\nFROM {name} a\nJOIN my_database.my_schema.my_table o ON "
            f"{' AND '.join(f'a.{key} = o.{key}' for key in keys)};",
        ),
    ]


def _write_volume(spec: Spec, external_ids: Sequence[str] | None, stage: str | None, *, of_file: bool) -> str:
    stack = name_destination_stack(spec.pipeline, stage or "<stage>")
    role = spec.access.role_arn if of_file else None
    # https://docs.snowflake.com/en/sql-reference/sql/create-external-volume
    provider = "S3GOV" if find_partition(spec.access.region or "") == "aws-us-gov" else "S3"
    external_id = "" if external_ids is None else f"STORAGE_AWS_EXTERNAL_ID = {_quote(external_ids[0])}\n"
    dots = f"-- {_DOTS}\n" if "." in spec.access.bucket else ""
    note = f"""-- <{_ROLE}> is an output of the stack {stack}:
-- aws cloudformation describe-stacks --region {spec.access.region} --stack-name {stack} \\
--   --output text --query "Stacks[0].Outputs[?OutputKey=='{_ROLE}'].OutputValue"
"""
    return f"""{dots}{"" if role else note}CREATE OR REPLACE EXTERNAL VOLUME {_name_volume(spec)}
STORAGE_LOCATIONS =
(
(
NAME = '{_name_pipeline(spec)}-s3'
STORAGE_PROVIDER = '{provider}'
STORAGE_BASE_URL = {_quote(f"{provider.lower()}://{join_key(spec.access.bucket, spec.base)}/")}
STORAGE_AWS_ROLE_ARN = {_quote(role or f"<{_ROLE}>")}
{external_id})
)
ALLOW_WRITES = FALSE;"""


def _write_trust(user: str | None, external_ids: Sequence[str] | None) -> str:
    ids = external_ids or ["<STORAGE_AWS_EXTERNAL_ID that DESC EXTERNAL VOLUME prints>"]
    entry = {
        "Effect": "Allow",
        "Principal": {"AWS": user or "<STORAGE_AWS_IAM_USER_ARN that DESC EXTERNAL VOLUME prints>"},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"sts:ExternalId": ids if len(ids) > 1 else ids[0]}},
    }
    return json.dumps(entry, indent=2)


def _write_integration(spec: Spec, service: Readable, namespace: str | None) -> str:
    vended = "" if service.takes_roles else "ACCESS_DELEGATION_MODE = VENDED_CREDENTIALS"
    name = f"CATALOG_NAME = {_quote(service.warehouse)}" if service.warehouse else ""
    signed = isinstance(service, S3TablesService)
    note = "-- The catalog has to vend credentials for its tables' files.\n" if vended and not signed else ""
    if signed:
        note = f"-- <role> is the output 'IAM Role ARN ({_ENTRY})' of the destination's stack.\n"
    return note + "\n".join(
        [
            f"CREATE OR REPLACE CATALOG INTEGRATION {_name_integration(service, spec)}",
            f"CATALOG_SOURCE = {'POLARIS' if service.takes_roles else 'ICEBERG_REST'}",
            "TABLE_FORMAT = ICEBERG",
            *([f"CATALOG_NAMESPACE = {_quote(namespace)}"] if namespace else []),
            "REST_CONFIG = (",
            f"CATALOG_URI = {_quote(service.uri)}",
            *(["CATALOG_API_TYPE = AWS_S3TABLES"] if signed else []),
            *filter(None, (name, vended)),
            ")",
            "REST_AUTHENTICATION = (",
            *_list_sign_in_options(service, spec),
            ")",
            "ENABLED = TRUE;",
        ]
    )


def _list_sign_in_options(service: Readable, spec: Spec) -> list[str]:
    """Return the options: https://docs.snowflake.com/en/sql-reference/sql/create-catalog-integration-rest"""
    if isinstance(service, S3TablesService):
        return ["TYPE = SIGV4", "SIGV4_IAM_ROLE = '<role>'", f"SIGV4_SIGNING_REGION = {_quote(spec.access.region)}"]
    if isinstance(service, TokenService):
        return ["TYPE = BEARER", f"BEARER_TOKEN = {_quote(write_secret(service.token))}"]
    server = [] if service.takes_roles else [f"OAUTH_TOKEN_URI = {_quote(service.token_server)}"]
    return [
        "TYPE = OAUTH",
        *server,
        f"OAUTH_CLIENT_ID = {_quote(write_value(service.client_id))}",
        f"OAUTH_CLIENT_SECRET = {_quote(write_value(service.client_secret))}",
        f"OAUTH_ALLOWED_SCOPES = ({_quote(service.scope)})",
    ]


def _write_create_table(
    spec: Spec, service: Readable, table: TableSpec, name: str, namespace: str | None = None
) -> str:
    lines = [
        f"CREATE ICEBERG TABLE {name}",
        f"CATALOG = '{_name_integration(service, spec)}'",
        *([f"EXTERNAL_VOLUME = '{_name_volume(spec)}'"] if service.takes_roles else []),
        f"CATALOG_TABLE_NAME = {_quote(table.name)}",
        *([f"CATALOG_NAMESPACE = {_quote(namespace)}"] if namespace else []),
    ]
    return "\n".join(lines) + ";"


def _quote(text: str) -> str:
    return quote_text(Engine.SNOWFLAKE, text)


def _name_pipeline(spec: Spec) -> str:
    """Return the pipeline's name as an identifier that Snowflake takes without quotes."""
    name = spec.pipeline.replace("-", "_")
    return f"_{name}" if name[0].isdigit() else name


def _name_volume(spec: Spec) -> str:
    return f"{_name_pipeline(spec)}_iceberg_volume"


def _name_integration(service: Readable, spec: Spec) -> str:
    return f"{_name_pipeline(spec)}_{'open' if service.takes_roles else 'rest'}_catalog_int"
