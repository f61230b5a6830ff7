"""DataFrames as a table asks for them: read, their types declared, deleted rows marked, values as Arrow takes them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType

from lakewriter.errors import LakeError, SourceFailedError, SpecInvalidError
from lakewriter.source.arrow_types import make_arrow_schema, to_delivered
from lakewriter.source.bad_rows import BAD
from lakewriter.source.byte_checks import TEXTS, ByteCheck, plan_byte_check
from lakewriter.source.column_names import load_by_case
from lakewriter.source.databases.database_connection import Connection
from lakewriter.source.databases.database_rows import DatabaseRows, is_jdbc, read_database
from lakewriter.source.databases.moments import LockedMoment
from lakewriter.source.declared_columns import cast_in_spark, name_places
from lakewriter.source.failures import SPARK_ERRORS, find_useful_line
from lakewriter.source.file_frames import FileRows, open_file_rows
from lakewriter.source.file_listing import add_base_path, list_load_paths
from lakewriter.source.files.source import has_reader
from lakewriter.source.marks import add_marks, is_marked
from lakewriter.source.reads import make_origin, make_reader_options
from lakewriter.source.sql_statements import run_statement
from lakewriter.spec.access import SecretText
from lakewriter.spec.specification import Read, TableSpec

_CHARACTERS: Final = re.compile(r"\b(?:var)?char\s*\(\s*\d+\s*\)", re.IGNORECASE)


@dataclass(frozen=True)
class Loaded:
    """What is read; ``checks`` are of the files that have to be looked at before the frame's rows are used.

    ``database`` is what is known of the table's own rows in a database, ``held`` are the connections that have to be
    open until the rows are read.
    """

    frame: DataFrame
    notes: tuple[str, ...] = ()
    checks: tuple[ByteCheck | LockedMoment, ...] = ()
    database: DatabaseRows | None = None
    held: tuple[Connection | LockedMoment, ...] = ()

    @property
    def kinds(self) -> Mapping[int, pa.DataType]:
        """The types of the columns that come as text, by place."""
        return {} if self.database is None else self.database.kinds

    @property
    def is_bounded(self) -> bool:
        """True where the source has compared the cursor."""
        return self.database is not None and self.database.is_bounded

    @property
    def reasons(self) -> tuple[Callable[[str], LakeError | None], ...]:
        """What tells whether a lock has failed."""
        return tuple(check.explain for check in self.checks if isinstance(check, LockedMoment))

    def count_rows_alone(self) -> "Loaded":
        """Return the same, of which no values are compared with the source's."""
        if self.database is None or self.database.reconciliation is None:
            return self
        rows_alone = self.database.reconciliation.count_rows_alone()
        return replace(self, database=replace(self.database, reconciliation=rows_alone))

    def close(self) -> None:
        """Close what is held."""
        for connection in self.held:
            connection.close()


def load_source(
    session: SparkSession,
    read: Read,
    secrets: dict[SecretText, str],
    table: TableSpec,
    *,
    aside: bool = False,
    is_sample: bool = False,
    condition: str | None = None,
) -> Loaded:
    """What there is to read now, under the source's own names; views get theirs in the session.

    A database is asked for the rows of ``condition`` alone, where it compares the cursor itself.

    The columns of a view have the names that Spark gives them, which a statement can tell apart. With ``aside`` bad
    rows come too, marked in a column behind the others. Of ``is_sample`` the first rows alone are read.
    """
    if has_reader(read):
        rows = _open_rows(session, read, secrets, table, aside=aside)
        return Loaded(rows.make_frame(), rows.opened.notes)

    def load() -> Loaded:
        return _load(session, read, secrets, table, condition, aside=aside, is_sample=is_sample)

    loaded = load_by_case(session, load)
    marked = replace(loaded, frame=add_marks(loaded.frame)) if aside and not is_marked(loaded.frame) else loaded
    return _take_none(read, marked)


def _open_rows(
    session: SparkSession, read: Read, secrets: dict[SecretText, str], table: TableSpec, *, aside: bool
) -> FileRows:
    """Look at files that the tasks read; the table's types are those of its own columns, and not of a view's."""
    options, origin = make_reader_options(read, secrets), make_origin(table, secrets)
    typed = table if read is table.read else table.model_copy(update={"columns": {}})
    return open_file_rows(session, read, options, typed, origin, aside=aside)


def _take_none(read: Read, loaded: Loaded) -> Loaded:
    """Return what is loaded, without a row where no file is to be read."""
    return replace(loaded, frame=loaded.frame.limit(0), checks=()) if read.is_empty else loaded


def _load(
    session: SparkSession,
    read: Read,
    secrets: dict[SecretText, str],
    table: TableSpec,
    condition: str | None,
    *,
    aside: bool,
    is_sample: bool,
) -> Loaded:
    if read.sql is not None:
        return _load_statement(session, read, secrets, table, aside=aside, is_sample=is_sample)
    options = add_base_path(read, make_reader_options(read, secrets))
    if is_jdbc(read) and read.columns is None:
        rows = read_database(session, options, read, table, condition, is_sample=is_sample)
        if read is table.read:
            return Loaded(rows.frame, rows.notes, rows.locks, database=rows, held=rows.held)
        return Loaded(cast_in_spark(rows.frame, rows.kinds, table), rows.notes, rows.locks, held=rows.held)
    reader = session.read.options(**options)
    if read.format is not None:
        reader = reader.format(read.format)
    if read.columns is not None:
        reader = reader.schema(replace_char_types(read.columns))
    frame = reader.load(list_load_paths(read)) if read.paths else reader.load()
    if not read.paths or str(read.format).lower() not in TEXTS:
        return Loaded(frame)
    byte_check, unseen = plan_byte_check(frame.inputFiles(), read)
    return Loaded(frame, unseen, () if byte_check is None else (byte_check,))


def _load_statement(
    session: SparkSession,
    read: Read,
    secrets: dict[SecretText, str],
    table: TableSpec,
    *,
    aside: bool,
    is_sample: bool,
) -> Loaded:
    notes: list[str] = []
    checks: list[ByteCheck | LockedMoment] = []
    files: dict[str, FileRows] = {}
    others: dict[str, DataFrame] = {}
    held: list[Connection | LockedMoment] = []
    for name, view in read.views.items():
        if has_reader(view):
            files[name] = _open_rows(session, view, secrets, table, aside=aside)
            noted = files[name].opened.notes
        else:
            set_aside = aside and view.sql is not None
            found = load_source(session, view, secrets, table, aside=set_aside, is_sample=is_sample)
            others[name] = found.frame
            noted = found.notes
            checks += found.checks
            held += found.held
        notes += (f"view {name!r}: {note}" for note in noted)
    frame = run_statement(session, str(read.sql), files, others, table.id)
    return Loaded(frame, tuple(notes), tuple(checks), held=tuple(held))


def replace_char_types(columns: str) -> str:
    """DDL without ``char`` and ``varchar``, which the readers do not take."""
    return _CHARACTERS.sub("string", columns)


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
