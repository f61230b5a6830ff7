"""Write the statements by which Redshift's external schemas show the tables of the Data Catalog; pure text."""

from typing import Final

from lakewriter.operate.sql_text import Engine, quote_name, quote_text
from lakewriter.spec.deployment import Deployment, name_destination_stack
from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.readers import READERS
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

SERVICE: Final = "redshift"
"""The service of ``deployment.trust`` that gets a role for warehouses."""
_NESTED: Final = """\
-- A struct, array or map of a Parquet table is selected as JSON text after this; without it SELECT * fails
-- where a table has one. At most 65,535 bytes of it are shown, and 100 levels.
SET json_serialization_enable TO true;"""
"""https://docs.aws.amazon.com/redshift/latest/dg/serializing-complex-JSON.html,
https://docs.aws.amazon.com/redshift/latest/dg/nested-data-restrictions.html
"""
_ICEBERG: Final = """\
-- Structs, lists and maps are SUPER. Texts are cut at 16,384 characters, binary values are varbyte(64000); columns of
-- the types uuid, fixed and time are not read. A table that another engine has upgraded to format version 3 is read by
-- RG nodes and Serverless alone, without its structs, lists and maps, and not if it has equality deletes.
"""
"""https://docs.aws.amazon.com/redshift/latest/dg/querying-iceberg-supported-data-types.html,
https://docs.aws.amazon.com/redshift/latest/dg/iceberg-v3-features.html
"""


def write_setup(spec: Spec, deployment: Deployment, stage: str | None) -> list[tuple[str, str]]:
    """Return titles and statements that make the databases of the tables known as external schemas, in the order to run
    them.
    """
    role, note = _find_role(spec, deployment, stage)
    databases = dict.fromkeys(table.schema_name for table in spec.tables)
    schemas = "\n".join(_write_schema(spec, database, role) for database in databases)
    limits = f"{_ICEBERG}{_note_codec(spec)}" if spec.iceberg else _note_codec(spec)
    nested = [] if spec.iceberg else [("Read nested columns", _NESTED)]
    return [("Make the databases known as external schemas", f"{note}{limits}{schemas}"), *nested]


def write_source(table: TableSpec) -> str:
    """Return the text behind FROM: the table in the external schema of its database."""
    return ".".join(quote_name(Engine.REDSHIFT, name) for name in (table.schema_name, table.name))


def refuse_version(job_id: str, snapshot_id: int) -> str:
    """Return the comment in place of a query of one snapshot: no page of Redshift's has a syntax for it."""
    return (
        f"-- Redshift reads the newest snapshot alone. Athena, DuckDB, Spark and Trino read load {job_id}, snapshot "
        f"{snapshot_id}."
    )


def _write_schema(spec: Spec, database: str, role: str) -> str:
    # https://docs.aws.amazon.com/redshift/latest/dg/r_CREATE_EXTERNAL_SCHEMA.html
    region = f"\nREGION {_quote(spec.access.region)}" if spec.access.region else ""
    # https://docs.aws.amazon.com/redshift/latest/dg/querying-iceberg-s3-tables.html
    catalog = ""
    if spec.service and spec.table_bucket:
        there = f"{spec.table_bucket.split(':')[4]}:{spec.service.federated_catalog}"
        catalog = f"\nCATALOG_ID {_quote(there)}"
    chain = ""
    if account := spec.access.catalog_account:
        there = f"<a role of account {account} that reads its catalog and trusts the first>"
        chain = f"\nCATALOG_ROLE {_quote(f'{role},{there}')}"
    return (
        f"CREATE EXTERNAL SCHEMA IF NOT EXISTS {quote_name(Engine.REDSHIFT, database)}\n"
        f"FROM DATA CATALOG\nDATABASE {_quote(database)}{catalog}{region}\nIAM_ROLE {_quote(role)}{chain};"
    )


def _find_role(spec: Spec, deployment: Deployment, stage: str | None) -> tuple[str, str]:
    """Return the role that the warehouse takes, or a placeholder, and the comment that says where to find it."""
    entry = next((entry for entry in deployment.trust if entry.service == SERVICE), None)
    bucket = f"-- Attach the role to the warehouse, which is in the region of bucket {spec.access.bucket}.\n"
    if entry is None:
        return "<role>", (
            "-- <role> is one that the warehouse takes and that reads the tables. The stacks make it with\n"
            f"-- deployment: {{trust: [{{service: {SERVICE}, access: read}}]}}.\n{bucket}"
        )
    stack = name_destination_stack(spec.pipeline, stage or "<stage>")
    label = f"IAM Role ARN ({entry.role})"
    return f"<{label}>", (
        f"-- <{label}> is an output of the stack {stack}:\n"
        f"-- aws cloudformation describe-stacks --region {spec.access.region} --stack-name {stack} \\\n"
        f"--   --output text --query \"Stacks[0].Outputs[?Description=='{label}'].OutputValue\"\n{bucket}"
    )


def _note_codec(spec: Spec) -> str:
    """Return a comment on files of a codec that no page says Redshift reads."""
    encodings = [table.encoding or spec.encoding for table in spec.tables] or [spec.encoding]
    codecs = [encoding.codec for encoding in encodings if isinstance(encoding, ParquetEncoding)]
    other = next((codec for codec in codecs if codec not in READERS[SERVICE].codecs), None)
    if other is None:
        return ""
    return (
        f"-- The files are compressed with {other}, and no page says that Redshift reads it: try it first, or set\n"
        f"-- readers: [{SERVICE}], which refuses it.\n"
    )


def _quote(text: str) -> str:
    return quote_text(Engine.REDSHIFT, text)
