"""Refuse folders of table formats: only a table's metadata says which of the Parquet and ORC files are its data."""

from lakewriter.errors import SpecInvalidError
from lakewriter.source.storage import detect_table_format
from lakewriter.spec.table_spec import Read


def refuse_table_folders(read: Read, table: str) -> None:
    """Raise ``SPEC_INVALID`` for files of a table format: only its metadata says which of them to read."""
    for view in read.views.values():
        refuse_table_folders(view, table)
    if read.kind.types != "stored":
        return
    for path in read.paths:
        kind = detect_table_format(path)
        if kind is not None:
            raise SpecInvalidError(
                f"table {table!r}: {path!r} is the folder of a table in the {kind} format; read as "
                f"{read.format}, rows that it has deleted or replaced would come back.",
                remedy=f"Read it with format: {kind}, with its package in spark.jars.packages.",
            )
