"""Write DuckDB's settings and names for a pipeline's tables; pure text."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from lakewriter.operate.rest_sign_in import (
    DUCKDB_S3_SECRET,
    DUCKDB_SECRET,
    describe_unsigned_by_duckdb,
    find_sign_in,
)
from lakewriter.operate.sql_text import Engine, name_views, quote_name, quote_text, write_secret
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

READERS: Final = {"parquet": "read_parquet", "avro": "read_avro", "csv": "read_csv", "jsonl": "read_json"}
"""DuckDB's functions by file format."""
_OPTIONS: Final = {
    # Backfills lie side by side, and files of one table may differ in columns.
    "parquet": ("union_by_name = true",),
    "avro": (),
    # The field "" is an empty string, and an empty field is null.
    "csv": ("header = true", "allow_quoted_nulls = false", "union_by_name = true"),
    "jsonl": ("format = 'newline_delimited'", "union_by_name = true"),
}
_AVRO_CODECS: Final = ("null", "deflate", "snappy")
"""Of DuckDB's extension avro; files with another codec are refused as "unknown codec"."""
S3_SECRET: Final = "Let DuckDB read the bucket"
"""The title of the statement with the credentials for the bucket."""
_CATALOG: Final = "lake"


def write_setup(spec: Spec, account: str) -> list[tuple[str, str]]:
    """Return titles and statements to run once: credentials for the bucket, and the Iceberg catalog."""
    statements = [(S3_SECRET, _write_s3_secret(spec))]
    if (service := spec.rest_service) and not describe_unsigned_by_duckdb(service, spec.access.region):
        secret, attached = find_sign_in(service).list_duckdb_options()
        if secret:
            sign_in = _write_statement(f"CREATE OR REPLACE SECRET {DUCKDB_SECRET}", secret)
            statements.append(("Let DuckDB sign in to the catalog", sign_in))
        attach = _write_statement(f"ATTACH {_text(service.warehouse)} AS {_CATALOG}", ["TYPE iceberg", *attached])
        statements.append(("Attach the catalog", attach))
    elif spec.iceberg and not service:
        attach = f"ATTACH {_text(account)} AS {_CATALOG} (\n    TYPE iceberg,\n    ENDPOINT_TYPE glue\n);"
        statements.append(("Attach the Glue Data Catalog", attach))
    return statements


def write_views(spec: Spec) -> list[tuple[str, str]]:
    """Return for each table a title and the statement that makes a view of its files; both are blank in a catalog."""
    if spec.iceberg:
        return [("", "") for _ in spec.tables]
    names = zip(spec.tables, name_views(spec), strict=True)
    return [_write_view(spec, table, quote_name(Engine.DUCKDB, name)) for table, name in names]


def describe_unread(spec: Spec, table: TableSpec) -> str:
    """Return why DuckDB cannot read the table's files, and what can; blank if it can."""
    if spec.rest_service and (reason := describe_unsigned_by_duckdb(spec.rest_service, spec.access.region)):
        return reason
    encoding = table.encoding or spec.encoding
    if encoding.kind != "avro" or encoding.codec in _AVRO_CODECS:
        return ""
    return (
        f"DuckDB reads no Avro files with the codec {encoding.codec!r}, which {table.id} has. Spark reads them; for "
        f"DuckDB set one of these before the first load: {', '.join(_AVRO_CODECS)}"
    )


def _write_view(spec: Spec, table: TableSpec, name: str) -> tuple[str, str]:
    query = f"SELECT *\nFROM {write_source(spec, table)};"
    if table.latest is None:
        return "Make a view of the files", f"CREATE OR REPLACE VIEW {name} AS\n{query}"
    latest = _text(f"s3://{spec.access.bucket}/{table.latest}")
    variable = quote_name(Engine.DUCKDB, _name_variable(table))
    return (
        "Make a view of the files of the last full refresh; run it again after the next one",
        f"SET VARIABLE {variable} = (\n    SELECT files FROM read_json({latest})\n);\n"
        f"CREATE OR REPLACE TEMPORARY VIEW {name} AS\n{query}",
    )


def _name_variable(table: TableSpec) -> str:
    # The id stays as it is, so that the tables ``a.b_c`` and ``a_b.c`` get different variables.
    return f"{table.id}_files"


def write_source(spec: Spec, table: TableSpec) -> str:
    """Return the text behind FROM: the files of all loads, or the Iceberg table."""
    if spec.iceberg:
        return ".".join(quote_name(Engine.DUCKDB, part) for part in (_CATALOG, table.schema_name, table.name))
    if table.latest is not None:
        return _write_reader(spec, table, f"getvariable({_text(_name_variable(table))})")
    return _write_reader(spec, table, _text(f"s3://{spec.access.bucket}/{table.layout.pattern}"))


def write_files_source(spec: Spec, table: TableSpec, keys: Sequence[str]) -> str:
    """Return the text behind FROM for exactly these files."""
    listed = ",\n    ".join(_text(f"s3://{spec.access.bucket}/{key}") for key in keys)
    return _write_reader(spec, table, f"[\n    {listed}\n]")


def _write_reader(spec: Spec, table: TableSpec, files: str) -> str:
    kind = (table.encoding or spec.encoding).kind
    hive = () if kind == "avro" else (f"hive_partitioning = {str(bool(spec.folder_keys)).lower()}",)
    return f"{READERS[kind]}({', '.join((files, *_OPTIONS[kind], *hive))})"


def write_s3_keys(spec: Spec, key_id: str, secret: str, token: str | None) -> str:
    """Return the statement with these keys for the bucket; their values are in it."""
    options = [f"KEY_ID {_text(key_id)}", f"SECRET {_text(secret)}"]
    return _write_s3_options(spec, options + ([f"SESSION_TOKEN {_text(token)}"] if token else []))


def _write_s3_secret(spec: Spec) -> str:
    access = spec.access
    if access.access_key_id is None or access.secret_access_key is None:
        return _write_s3_options(spec, ["PROVIDER credential_chain"])
    key_id, secret = (_text(write_secret(key)) for key in (access.access_key_id, access.secret_access_key))
    return _write_s3_options(spec, [f"KEY_ID {key_id}", f"SECRET {secret}"])


def _write_s3_options(spec: Spec, credentials: list[str]) -> str:
    """Write the secret for the bucket; each table of a table bucket lies in a bucket of its own."""
    access, options = spec.access, ["TYPE s3", *credentials]
    if access.region:
        options.append(f"REGION {_text(access.region)}")
    if access.endpoint:
        url = urlsplit(access.endpoint)
        secure = str(url.scheme == "https").lower()
        options += [f"ENDPOINT {_text(url.netloc + url.path.rstrip('/'))}", "URL_STYLE 'path'", f"USE_SSL {secure}"]
    if not spec.table_bucket:
        options.append(f"SCOPE {_text(f's3://{access.bucket}')}")
    return _write_statement(f"CREATE OR REPLACE SECRET {DUCKDB_S3_SECRET}", options)


def _write_statement(beginning: str, options: list[str]) -> str:
    return f"{beginning} (\n    " + ",\n    ".join(options) + "\n);"


def _text(text: str) -> str:
    return quote_text(Engine.DUCKDB, text)
