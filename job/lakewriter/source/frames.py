"""DataFrames as a table asks for them: read, their types declared, deleted rows marked, values as Arrow takes them."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType

from lakewriter.aws import resolve
from lakewriter.errors import SourceFailedError, SpecInvalidError
from lakewriter.source.arrow_types import arrow_schema, delivered
from lakewriter.source.byte_checks import ByteCheck, byte_check
from lakewriter.source.column_names import load_by_case, with_names_of_header
from lakewriter.source.columnar_files import COLUMNAR, load_merged
from lakewriter.source.failures import SPARK_ERRORS, Origin, useful_line
from lakewriter.source.jdbc import from_database, is_jdbc, with_driver
from lakewriter.spec.access import SecretText
from lakewriter.spec.specification import Read, TableSpec

_STRICT: Final = ("csv", "json", "xml")
"""Formats whose readers make null of whatever does not fit a column, and do not say so."""
_CHARACTERS: Final = re.compile(r"\b(?:var)?char\s*\(\s*\d+\s*\)", re.IGNORECASE)


def origin_of(table: TableSpec, secrets: Mapping[SecretText, str]) -> Origin:
    """The table's source, for messages."""
    return Origin(table.id, _what(table.read), tuple(secrets.values()))


@dataclass(frozen=True)
class Loaded:
    """What is read; ``checks`` are of the files that have to be looked at before the frame's rows are used."""

    frame: DataFrame
    notes: tuple[str, ...] = ()
    checks: tuple[ByteCheck, ...] = ()


def loaded(session: SparkSession, read: Read, secrets: dict[SecretText, str], table: str) -> Loaded:
    """What there is to read now, under the source's own names; views get theirs in the session.

    The columns of a view have the names that Spark gives them, which a statement can tell apart.
    """
    found = load_by_case(session, lambda: _loaded(session, read, secrets, table))
    if str(read.format).lower() != "csv" or read.columns is not None:
        return found
    options = reader_options(read, secrets)

    def load(changed: Mapping[str, str]) -> DataFrame:
        return session.read.options(**changed).format("csv").load(list(read.paths))

    return replace(found, frame=with_names_of_header(session, found.frame, options, load))


def _loaded(session: SparkSession, read: Read, secrets: dict[SecretText, str], table: str) -> Loaded:
    if read.sql is not None:
        notes: list[str] = []
        checks: list[ByteCheck] = []
        for name, view in read.views.items():
            found = _loaded(session, view, secrets, table)
            found.frame.createOrReplaceTempView(name)
            notes += (f"view {name!r}: {note}" for note in found.notes)
            checks += found.checks
        return Loaded(session.sql(read.sql), tuple(notes), tuple(checks))
    options = reader_options(read, secrets)
    if is_jdbc(read) and read.columns is None:
        return Loaded(from_database(session, options, read.partition))
    reader = session.read.options(**options)
    if read.format is not None:
        reader = reader.format(read.format)
    if read.columns is not None:
        reader = reader.schema(plain_columns(read.columns))
    if read.paths and str(read.format).lower() in COLUMNAR:
        return Loaded(*load_merged(session, reader, read, table))
    frame = reader.load(list(read.paths)) if read.paths else reader.load()
    check, remarks = byte_check(frame, read)
    return Loaded(frame, remarks, () if check is None else (check,))


def reader_options(read: Read, secrets: Mapping[SecretText, str]) -> dict[str, str]:
    """The source's options, with its secrets; a record that does not fit is an error where they name no ``mode``."""
    options = {key: secrets[value] if isinstance(value, SecretText) else value for key, value in read.options.items()}
    if str(read.format).lower() in _STRICT and "mode" not in map(str.lower, options):
        options["mode"] = "FAILFAST"
    return with_driver(options) if is_jdbc(read) else options


def plain_columns(columns: str) -> str:
    """DDL without ``char`` and ``varchar``, which the readers do not take."""
    return _CHARACTERS.sub("string", columns)


def secrets_of(read: Read) -> dict[SecretText, str]:
    """The values of the secrets in a source's options."""
    found = {value: resolve(value) for value in read.options.values() if isinstance(value, SecretText)}
    for view in read.views.values():
        found.update(secrets_of(view))
    return found


def _what(read: Read) -> str:
    if read.sql is not None:
        return f"SQL over {', '.join(map(repr, read.views)) or 'no view'}"
    place = ", ".join(map(repr, read.paths)) or read.options.get("dbtable") or read.options.get("query")
    return f"{read.format} {place}" if place else str(read.format)


def declared(source: DataFrame, table: TableSpec) -> DataFrame:
    """The source with the types that the table declares; positions stand for names, which may occur twice."""
    if not table.columns:
        return source
    names = source.columns
    types = {_known(name, names, table): _CHARACTERS.sub("string", kind) for name, kind in table.columns.items()}
    places = source.toDF(*_places(names))
    casts = [
        F.col(place).cast(types[name]) if name in types else F.col(place)
        for place, name in zip(places.columns, names, strict=True)
    ]
    return places.select(*casts).toDF(*names)


def _known(name: str, names: list[str], table: TableSpec) -> str:
    for found in (name, *[other for other in names if other.lower() == name.lower()]):
        if found in names:
            return found
    nearest = difflib.get_close_matches(name, names, 1, 0.0)
    raise SpecInvalidError(
        f"tables.{table.id}.columns names {name!r}, which the source does not have.",
        remedy=f"The nearest is {nearest[0]!r}." if nearest else "The source has no columns.",
    )


def with_deleted(source: DataFrame, table: TableSpec, deleted_column: str) -> DataFrame:
    """The source, and behind it whether each row is deleted where the table has an expression for it."""
    if table.deleted is None:
        return source
    try:
        marked = source.select("*", F.coalesce(F.expr(table.deleted), F.lit(False)).alias(deleted_column))
        kind = marked.schema[-1].dataType
    except SPARK_ERRORS as error:
        reason = useful_line(str(error))
        raise _bad_expression(table, reason) from error
    if not isinstance(kind, BooleanType):
        raise _bad_expression(table, f"it gives {kind.simpleString()}, expected boolean")
    return marked


def _bad_expression(table: TableSpec, reason: str) -> SpecInvalidError:
    return SpecInvalidError(
        f"tables.{table.id}.deleted is {table.deleted!r}, which cannot be used: {reason}",
        remedy="Give a boolean SQL expression over the source's columns, such as \"op = 'D'\".",
    )


def as_delivered(source: DataFrame) -> tuple[DataFrame, pa.Schema]:
    """The source as it goes to Arrow, and the schema with its own names there."""
    names = source.columns
    if not names:
        raise SourceFailedError("the source has no columns.", remedy="Check its path and options.")
    places = source.toDF(*_places(names))
    columns = [
        delivered(name, F.col(field.name), field.dataType).alias(field.name)
        for name, field in zip(names, places.schema, strict=True)
    ]
    frame = places.select(*columns)
    return frame, arrow_schema(names, frame.schema)


def _places(names: list[str]) -> list[str]:
    return [f"c{index}" for index in range(len(names))]
