"""Write Spark's settings and names for a pipeline's tables; pure text."""

import re
from collections.abc import Sequence
from typing import Final

from lakewriter.naming import join_key
from lakewriter.operate.rest_sign_in import find_sign_in
from lakewriter.operate.sql_text import Engine, name_views, quote_name, quote_text
from lakewriter.spec.catalogs import AnyRestService
from lakewriter.spec.source_formats import find_format
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

_SOURCES: Final = {"parquet": "parquet", "avro": "avro", "csv": "csv", "jsonl": "json"}
"""Spark's data sources by file format."""
_OPTIONS: Final = {
    # Files of one table may differ in columns.
    "parquet": {"mergeSchema": "true"},
    "avro": {},
    # https://datatracker.ietf.org/doc/html/rfc4180: quotes are doubled, and a line may end inside them.
    "csv": {"header": "true", "quote": '"', "escape": '"', "multiLine": "true", "inferSchema": "true"},
    "jsonl": {},
}
_GLOB: Final = re.compile(r"[\\{}\[\],*?]")
"""Characters that have a meaning in Hadoop's path patterns."""
"""Packages that Spark does not include, by file format."""
_CATALOG: Final = "lake"
_ICEBERG: Final = f"spark.sql.catalog.{_CATALOG}"


def write_setup(spec: Spec) -> list[tuple[str, str]]:
    """Return titles and statements to run once: the store, and the Iceberg catalog."""
    statements = []
    if spec.access.endpoint and not spec.iceberg:
        statements.append(("Let Spark find the store", _write_store(spec.access.endpoint)))
    if spec.rest_service:
        statements.append(("Let Spark find the catalog", _write_catalog(_list_rest_settings(spec, spec.rest_service))))
    elif spec.iceberg:
        settings = {"type": "glue", "client.region": spec.access.region}
        settings |= {"glue.id": account} if (account := spec.access.catalog_account) else {}
        statements.append(("Let Spark find the Glue Data Catalog", _write_catalog(settings)))
    elif account := spec.access.catalog_account:
        # https://docs.aws.amazon.com/emr/latest/ReleaseGuide/emr-spark-glue.html
        started = f"spark-sql --conf spark.hadoop.hive.metastore.glue.catalogid={account}"
        statements.append(("Let Spark find the Glue Data Catalog", f"-- of EMR: {started}\nSHOW DATABASES;"))
    return statements


def write_views(spec: Spec) -> list[tuple[str, str]]:
    """Return for each table a title and the statement that makes its view; both are blank in a catalog."""
    if spec.catalog.lists_tables:
        return [("", "") for _ in spec.tables]
    names = zip(spec.tables, name_views(spec), strict=True)
    return [_write_table_view(spec, table, _name(name)) for table, name in names]


def _write_table_view(spec: Spec, table: TableSpec, name: str) -> tuple[str, str]:
    if table.latest is None:
        return "Make a view of the files", _write_view(spec, table, name, _join(spec, table.layout.pattern))
    title = "Make a view of the files of the last full refresh; run it again after the next one"
    return title, _write_refreshed_view(spec, table, name)


def _write_refreshed_view(spec: Spec, table: TableSpec, name: str) -> str:
    """Return the view of one generation's files: its number is read from the object that names the last one.

    https://spark.apache.org/docs/latest/sql-ref-syntax-aux-exec-imm.html
    """
    mark, latest = "{generation}", _join(spec, str(table.latest))
    path = _join(spec, table.layout.pattern.replace("/g*/", f"/g{mark}/"))
    comment, _, view = _write_view(spec, table, name, path).partition("\n")
    text = quote_text(Engine.SPARK, view.removesuffix(";"))
    return (
        f"{comment}\nDECLARE OR REPLACE VARIABLE lakewriter_view STRING;\n"
        f"SET VAR lakewriter_view = (\n    SELECT replace(\n        {text},\n        '{mark}',\n"
        f"        lpad(CAST(generation AS STRING), 10, '0'))\n    FROM json.`{latest}`\n);\n"
        "EXECUTE IMMEDIATE lakewriter_view;"
    )


def write_files_view(spec: Spec, table: TableSpec, name: str, keys: Sequence[str]) -> str:
    """Return the view ``name``, quoted, of exactly these files: a temporary view hides which file a row is in."""
    # https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-common/filesystem/filesystem.html, globStatus
    escaped = ",".join(_GLOB.sub(r"\\\g<0>", key) for key in keys)
    return _write_view(spec, table, name, _join(spec, f"{{{escaped}}}"))


def list_sources(spec: Spec) -> list[str]:
    """Return for each table its name in FROM: that of the table in the catalog, or of the view of its files."""
    if spec.catalog.lists_tables:
        first = (_CATALOG,) if spec.iceberg else ()
        return [".".join(map(_name, (*first, table.schema_name, table.name))) for table in spec.tables]
    return list(map(_name, name_views(spec)))


def _join(spec: Spec, pattern: str) -> str:
    return f"s3a://{spec.access.bucket}/{pattern}"


def _write_view(spec: Spec, table: TableSpec, name: str, path: str) -> str:
    kind = (table.encoding or spec.encoding).kind
    options = {"path": path, **_OPTIONS[kind]}
    if spec.folder_keys:
        options["basePath"] = f"s3a://{join_key(spec.access.bucket, table.layout.directory)}"
    listed = ",\n    ".join(f"{key} {quote_text(Engine.SPARK, value)}" for key, value in options.items())
    packages = filter(None, ["org.apache.hadoop:hadoop-aws:3.4.2", find_format(kind).package])
    return (
        f"-- spark-sql --packages {','.join(packages)}, where they are not there\n"
        f"CREATE OR REPLACE TEMPORARY VIEW {name}\nUSING {_SOURCES[kind]}\nOPTIONS (\n    {listed}\n);"
    )


def _write_store(endpoint: str) -> str:
    return "\n".join([_set("fs.s3a.endpoint", endpoint), _set("fs.s3a.path.style.access", "true")])


def _list_rest_settings(spec: Spec, service: AnyRestService) -> dict[str, str]:
    return {
        "type": "rest",
        "uri": service.uri,
        **({"warehouse": service.warehouse} if service.warehouse else {}),
        **find_sign_in(service).list_spark_settings(spec.access.region),
        # https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-tables-integrating-open-source.html
        **({"rest-metrics-reporting-enabled": "false"} if service.table_bucket else {}),
        **({"header.X-Iceberg-Access-Delegation": "vended-credentials"} if service.vends_credentials else {}),
    }


def _write_catalog(settings: dict[str, str]) -> str:
    lines = [_set(_ICEBERG, "org.apache.iceberg.spark.SparkCatalog")]
    lines += [_set(f"{_ICEBERG}.{key}", value) for key, value in settings.items()]
    return "-- spark-sql with the Iceberg runtime for Spark 4 and iceberg-aws-bundle\n" + "\n".join(lines)


def _set(key: str, value: str) -> str:
    return f"SET {_name(key)} = {_name(value)};"


def _name(name: str) -> str:
    return quote_name(Engine.SPARK, name)
