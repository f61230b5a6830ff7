"""Write Trino's settings, and Trino's and Athena's names of a pipeline's tables; pure text."""

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
    """Return a title and the command that registers another account's catalog in Athena; none for Athena's account.

    https://docs.aws.amazon.com/athena/latest/ug/data-sources-glue-cross-account.html
    """
    account = spec.access.catalog_account
    if account is None or not spec.in_glue:
        return []
    command = (
        f"aws athena create-data-catalog --region {spec.access.region} --name {_CATALOG} --type GLUE "
        f"--parameters catalog-id={account}"
    )
    return [("Register the catalog", f"-- once, in a shell, since no statement does it:\n-- {command}")]


def write_source(engine: Engine, spec: Spec, table: TableSpec) -> str:
    """Return the text behind FROM: the table; in Athena with the name of the catalog if that is another account's."""
    first = (_CATALOG,) if engine is Engine.TRINO or spec.access.catalog_account else ()
    names = filter(None, (*first, table.schema_name, table.name))
    return ".".join(quote_name(engine, name) for name in names)


def _list_rest_settings(service: AnyRestService) -> dict[str, str]:
    return {
        "iceberg.catalog.type": "rest",
        "iceberg.rest-catalog.uri": service.uri,
        **({"iceberg.rest-catalog.warehouse": service.warehouse} if service.warehouse else {}),
        **find_sign_in(service).list_trino_settings(),
        **({"iceberg.rest-catalog.vended-credentials-enabled": "true"} if service.vends_credentials else {}),
    }


def _list_store_settings(access: Access) -> dict[str, str]:
    store = {"fs.native-s3.enabled": "true"} | ({"s3.region": access.region} if access.region else {})
    return store | ({"s3.endpoint": access.endpoint, "s3.path-style-access": "true"} if access.endpoint else {})


def _quote(key: str) -> str:
    return f'"{key}"'
