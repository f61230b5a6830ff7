"""DataFrames as a table asks for them: read, their types declared, deleted rows marked, values as Arrow takes them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType, StructType

from lakewriter.aws import resolve
from lakewriter.errors import SourceFailedError, SpecInvalidError
from lakewriter.source.arrow_types import make_arrow_schema, to_delivered
from lakewriter.source.bad_rows import BAD
from lakewriter.source.byte_checks import TEXTS, ByteCheck, plan_byte_check
from lakewriter.source.column_names import apply_header_names, load_by_case, quote_column
from lakewriter.source.columnar_files import COLUMNAR, load_merged
from lakewriter.source.csv_headers import Headers, read_headers, require_names, select_header_columns
from lakewriter.source.declared_columns import name_places
from lakewriter.source.failures import SPARK_ERRORS, Origin, find_useful_line
from lakewriter.source.file_listing import add_base_path, list_load_paths
from lakewriter.source.int96 import NanosecondCheck
from lakewriter.source.jdbc import add_driver, is_jdbc, load_from_database
from lakewriter.source.marked_lines import LENIENT, read_marked_lines
from lakewriter.source.marks import add_marks, is_marked
from lakewriter.source.merged_schema import find_variants, merge
from lakewriter.spec.access import SecretText
from lakewriter.spec.row_rules import LINES
from lakewriter.spec.specification import Read, TableSpec

_STRICT: Final = ("csv", "json", "xml")
"""Formats whose readers make null of whatever does not fit a column, and do not say so."""
_CHARACTERS: Final = re.compile(r"\b(?:var)?char\s*\(\s*\d+\s*\)", re.IGNORECASE)


def make_origin(table: TableSpec, secrets: Mapping[SecretText, str]) -> Origin:
    """The table's source, for messages."""
    return Origin(table.id, _describe_source(table.read), tuple(secrets.values()))


@dataclass(frozen=True)
class Loaded:
    """What is read; ``checks`` are of the files that have to be looked at before the frame's rows are used.

    ``files`` are those of a source of text.
    """

    frame: DataFrame
    notes: tuple[str, ...] = ()
    checks: tuple[ByteCheck | NanosecondCheck, ...] = ()
    files: tuple[str, ...] = ()


def load_source(
    session: SparkSession,
    read: Read,
    secrets: dict[SecretText, str],
    table: str,
    *,
    aside: bool = False,
    cursor: str | None = None,
) -> Loaded:
    """What there is to read now, under the source's own names; views get theirs in the session.

    The columns of a view have the names that Spark gives them, which a statement can tell apart. With ``aside`` bad
    rows come too, marked in a column behind the others. ``cursor`` is a column that a database compares.
    """
    if is_jdbc(read) and read.columns is None:
        native = [cursor] if cursor else []
        options = make_reader_options(read, secrets)
        frame = load_by_case(session, lambda: load_from_database(session, options, read.partition, native, table=table))
        return Loaded(add_marks(frame) if aside else frame)
    named = _load_named(session, read, secrets, table, aside=aside)
    return _take_none(read, _load_by_header(session, read, secrets, table, named, aside=aside))


def _take_none(read: Read, loaded: Loaded) -> Loaded:
    """Return what is loaded, without a row where no file is to be read."""
    return replace(loaded, frame=loaded.frame.limit(0), checks=()) if read.is_empty else loaded


def _load_by_header(
    session: SparkSession, read: Read, secrets: dict[SecretText, str], table: str, found: Loaded, *, aside: bool = False
) -> Loaded:
    """What was found, with its checks; read anew where it is of CSV files whose headers differ."""
    files = found.files if str(read.format).lower() == "csv" else ()
    headers = read_headers(files, make_reader_options(read, secrets))
    if headers.groups:
        return _union_by_name(session, read, secrets, table, headers, aside=aside)
    checked = _plan_checks(found, read)
    return replace(checked, notes=(*checked.notes, *headers.notes))


def _plan_checks(found: Loaded, read: Read) -> Loaded:
    """What was found, with the check of its files; marked lines are looked at as they are read."""
    if not found.files or is_marked(found.frame):
        return found
    check, notes = plan_byte_check(found.files, found.frame.schema, read)
    return replace(found, notes=(*found.notes, *notes), checks=() if check is None else (check,))


def _load_named(
    session: SparkSession, read: Read, secrets: dict[SecretText, str], table: str, *, aside: bool
) -> Loaded:
    """What is read where all files have the columns of the first."""
    lines = aside and str(read.format).lower() in LINES
    asked = read.model_copy(update={"options": {**read.options, **LENIENT}}) if lines else read
    loaded = load_by_case(session, lambda: _load(session, asked, secrets, table))
    options = make_reader_options(asked, secrets)

    def load(changed: Mapping[str, str]) -> DataFrame:
        return session.read.options(**changed).format("csv").load(list_load_paths(read))

    if str(read.format).lower() == "csv" and read.columns is None:
        loaded = replace(loaded, frame=apply_header_names(session, loaded.frame, options, load))
    if lines:
        return Loaded(read_marked_lines(session, loaded.frame.schema, read, table, options), files=loaded.files)
    return replace(loaded, frame=add_marks(loaded.frame)) if aside else loaded


def _union_by_name(
    session: SparkSession, read: Read, secrets: dict[SecretText, str], table: str, headers: Headers, *, aside: bool
) -> Loaded:
    """CSV files whose headers differ, by the names of their columns; null where a file has none of a name."""
    declared = None if read.columns is None else _parse_columns(read.columns)
    require_names(table, headers, declared)
    schemas: dict[str, StructType] = {}
    for header, files in headers.groups.items():
        part_read = read.model_copy(update={"path": files, "listed": None})
        schema = (
            _load_named(session, part_read, secrets, table, aside=False).frame.schema if declared is None else declared
        )
        schemas |= dict.fromkeys(files, select_header_columns(header, schema))
    merged = merge(table, find_variants(schemas))
    whole = declared or merged.schema
    parts: list[Loaded] = []
    for header, files in headers.groups.items():
        columns = ", ".join(
            f"{quote_column(f.name)} {f.dataType.simpleString()}" for f in select_header_columns(header, whole)
        )
        part_read = read.model_copy(update={"path": files, "listed": None, "columns": columns})
        part = _plan_checks(_load_named(session, part_read, secrets, table, aside=aside), part_read)
        parts.append(replace(part, frame=_order_columns(part.frame, whole)))
    frame = reduce(DataFrame.unionAll, (part.frame for part in parts))
    notes = (*(note for part in parts for note in part.notes), *merged.notes)
    return Loaded(frame, tuple(dict.fromkeys(notes)), tuple(check for part in parts for check in part.checks))


def _parse_columns(columns: str) -> StructType:
    # Not of an empty createDataFrame: that makes its session the active one, and a caller's own data sources unknown.
    schema = StructType.fromDDL(replace_char_types(columns))
    return schema if isinstance(schema, StructType) else StructType().add("value", schema)


def _order_columns(frame: DataFrame, schema: StructType) -> DataFrame:
    """The frame's columns in the schema's order; marks stay the last."""
    names = {name.lower(): name for name in frame.columns}
    missing = F.lit(None)
    kept = [
        (F.col(quote_column(names[f.name.lower()])) if f.name.lower() in names else missing.cast(f.dataType)).alias(
            f.name
        )
        for f in schema
    ]
    return frame.select(*kept, *([BAD] if is_marked(frame) else []))


def _load(session: SparkSession, read: Read, secrets: dict[SecretText, str], table: str) -> Loaded:
    if read.sql is not None:
        notes: list[str] = []
        checks: list[ByteCheck | NanosecondCheck] = []
        for name, view in read.views.items():
            loaded = _load(session, view, secrets, table)
            found = _take_none(view, _load_by_header(session, view, secrets, table, loaded))
            found.frame.createOrReplaceTempView(name)
            notes += (f"view {name!r}: {note}" for note in found.notes)
            checks += found.checks
        return Loaded(session.sql(read.sql), tuple(notes), tuple(checks))
    options = make_reader_options(read, secrets)
    if is_jdbc(read) and read.columns is None:
        return Loaded(load_from_database(session, options, read.partition, table=table))
    reader = session.read.options(**options)
    if read.format is not None:
        reader = reader.format(read.format)
    if read.columns is not None:
        reader = reader.schema(replace_char_types(read.columns))
    if read.paths and str(read.format).lower() in COLUMNAR:
        frame, differences, check = load_merged(session, reader, read, table)
        return Loaded(frame, differences, () if check is None else (check,))
    frame = reader.load(list_load_paths(read)) if read.paths else reader.load()
    is_text = read.paths and str(read.format).lower() in TEXTS
    return Loaded(frame, files=tuple(frame.inputFiles()) if is_text else ())


def make_reader_options(read: Read, secrets: Mapping[SecretText, str]) -> dict[str, str]:
    """The source's options, with its secrets; a record that does not fit is an error where they name no ``mode``."""
    options = {key: secrets[value] if isinstance(value, SecretText) else value for key, value in read.options.items()}
    if str(read.format).lower() in _STRICT and "mode" not in map(str.lower, options):
        options["mode"] = "FAILFAST"
    options = add_base_path(read, options)
    return add_driver(options) if is_jdbc(read) else options


def replace_char_types(columns: str) -> str:
    """DDL without ``char`` and ``varchar``, which the readers do not take."""
    return _CHARACTERS.sub("string", columns)


def resolve_secrets(read: Read) -> dict[SecretText, str]:
    """The values of the secrets in a source's options."""
    found = {value: resolve(value) for value in read.options.values() if isinstance(value, SecretText)}
    for view in read.views.values():
        found.update(resolve_secrets(view))
    return found


def _describe_source(read: Read) -> str:
    if read.sql is not None:
        return f"SQL over {', '.join(map(repr, read.views)) or 'no view'}"
    place = ", ".join(map(repr, read.paths)) or read.options.get("dbtable") or read.options.get("query")
    return f"{read.format} {place}" if place else str(read.format)


def add_deleted_column(source: DataFrame, table: TableSpec, deleted_column: str) -> DataFrame:
    """The source, and behind it whether each row is deleted where the table has an expression for it."""
    if table.deleted is None:
        return source
    try:
        marked = source.select("*", F.coalesce(F.expr(table.deleted), F.lit(False)).alias(deleted_column))
        kind = marked.schema[-1].dataType
    except SPARK_ERRORS as error:
        reason = find_useful_line(str(error))
        raise _make_expression_error(table, reason) from error
    if not isinstance(kind, BooleanType):
        raise _make_expression_error(table, f"it gives {kind.simpleString()}, expected boolean")
    return marked


def _make_expression_error(table: TableSpec, reason: str) -> SpecInvalidError:
    return SpecInvalidError(
        f"tables.{table.id}.deleted is {table.deleted!r}, which cannot be used: {reason}",
        remedy="Give a boolean SQL expression over the source's columns, such as \"op = 'D'\".",
    )


def prepare_delivery(source: DataFrame) -> tuple[DataFrame, pa.Schema]:
    """The source as it goes to Arrow, marks behind all other columns, and the schema with its own names there."""
    names = source.columns
    if not names or names == [BAD]:
        raise SourceFailedError("the source has no columns.", remedy="Check its path and options.")
    places = source.toDF(*name_places(names))
    columns = [
        to_delivered(name, F.col(field.name), field.dataType).alias(field.name)
        for name, field in zip(names, places.schema, strict=True)
    ]
    if BAD in names:
        place = names.index(BAD)
        names = [*names[:place], *names[place + 1 :], BAD]
        columns = [*columns[:place], *columns[place + 1 :], columns[place]]
    frame = places.select(*columns)
    return frame, make_arrow_schema(names, frame.schema)
