"""Write Trino's settings, and Trino's and Athena's names of a pipeline's tables; pure text."""

import json
from typing import Final

from lakewriter.operate.rest_sign_in import find_sign_in
from lakewriter.operate.sql_text import Engine, quote_name, quote_text
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import AnyRestService
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

_CATALOG: Final = "lake"


def write_setup(spec: Spec) -> list[tuple[str, str]]:
    """Return a title and the statement that makes the catalog available."""
    if spec.rest_service:
        connector, settings = "iceberg", _list_rest_settings(spec.rest_service)
    elif spec.iceberg:
        connector, settings = "iceberg", {"iceberg.catalog.type": "glue"}
    else:
        connector, settings = "hive", {"hive.metastore": "glue"}
    if not spec.rest_service:
        settings["hive.metastore.glue.region"] = spec.access.region
        settings |= {"hive.metastore.glue.catalogid": account} if (account := spec.access.catalog_account) else {}
    settings |= _list_store_settings(spec.access)
    listed = ",\n".join(f"    {_quote(key)} = {quote_text(Engine.TRINO, value)}" for key, value in settings.items())
    return [
        (
            "Make the catalog known",
            f"-- Where catalogs are files: connector.name={connector} and these, in etc/catalog/{_CATALOG}.properties\n"
            f"CREATE CATALOG {_CATALOG} USING {connector}\nWITH (\n{listed}\n);",
        )
    ]


def write_registration(spec: Spec) -> list[tuple[str, str]]:
    """Return a title and the command that registers another account's catalog in Athena, or has the Data Catalog show
    the account's table buckets; none for Athena's account.

    https://docs.aws.amazon.com/athena/latest/ug/data-sources-glue-cross-account.html,
    https://docs.aws.amazon.com/glue/latest/dg/enable-s3-tables-catalog-integration.html
    """
    if spec.table_bucket:
        return [("Have the Data Catalog show the table buckets", _write_federation(spec.table_bucket))]
    account = spec.access.catalog_account
    if account is None or not spec.in_glue:
        return []
    command = (
        f"aws athena create-data-catalog --region {spec.access.region} --name {_CATALOG} --type GLUE "
        f"--parameters catalog-id={account}"
    )
    return [("Register the catalog", f"-- once, in a shell, since no statement does it:\n-- {command}")]


def _write_federation(arn: str) -> str:
    """Write the command for an account whose Lake Formation governs nothing: its IAM policies then decide."""
    everybody = [{"Principal": {"DataLakePrincipalIdentifier": "IAM_ALLOWED_PRINCIPALS"}, "Permissions": ["ALL"]}]
    content = {
        "FederatedCatalog": {"Identifier": f"{arn.rpartition('/')[0]}/*", "ConnectionName": "aws:s3tables"},
        "CreateDatabaseDefaultPermissions": everybody,
        "CreateTableDefaultPermissions": everybody,
    }
    region = arn.split(":")[3]
    return (
        "-- once for each account and region, in a shell, unless the catalog s3tablescatalog is there:\n"
        f"-- aws glue create-catalog --region {region} --name s3tablescatalog --catalog-input '{json.dumps(content)}'"
    )


def write_source(engine: Engine, spec: Spec, table: TableSpec) -> str:
    """Return the text behind FROM: the table; in Athena with the name of the catalog if that is another account's, or
    of table buckets."""
    first = spec.service.federated_catalog if spec.service else None
    if engine is Engine.TRINO or spec.access.catalog_account:
        first = _CATALOG
    names = filter(None, (first, table.schema_name, table.name))
    return ".".join(quote_name(engine, name) for name in names)


def _list_rest_settings(service: AnyRestService) -> dict[str, str]:
    return {
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": service.uri,
        **({"iceberg.rest-catalog.warehouse": service.warehouse} if service.warehouse else {}),
        **find_sign_in(service).list_trino_settings(),
        # The service has no views, and refuses to list them.
        **({"iceberg.rest-catalog.view-endpoints-enabled": "false"} if service.table_bucket else {}),
        **({"iceberg.rest-catalog.vended-credentials-enabled": "true"} if service.vends_credentials else {}),
    }


def _list_store_settings(access: Access) -> dict[str, str]:
    store = {"fs.native-s3.enabled": "true"} | ({"s3.region": access.region} if access.region else {})
    return store | ({"s3.endpoint": access.endpoint, "s3.path-style-access": "true"} if access.endpoint else {})


def _quote(key: str) -> str:
    return f'"{key}"'
