"""Names, texts and moments as each engine writes them in SQL; pure text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from lakewriter.naming import AS_IN_SOURCE, NORMALISED, cut, make_unique
from lakewriter.spec.access import SecretText
from lakewriter.spec.change_events import CHANGE_OP, CHANGE_SOURCE, CHANGE_TIME, SNAPSHOT_END, TRUNCATE
from lakewriter.spec.specification import Spec, Tracking
from lakewriter.spec.table_spec import TableSpec

_RESERVED: Final = re.compile(
    r"alter|and|as|auto|between|by|case|cast|constraint|create|cross|cube|current_catalog|current_date|"
    r"current_path|current_role|current_schema|current_time|current_timestamp|current_user|deallocate|delete|"
    r"describe|distinct|drop|else|end|escape|except|execute|exists|extract|false|for|from|full|group|grouping|"
    r"having|in|inner|insert|intersect|into|is|join|json_array|json_exists|json_object|json_query|json_table|"
    r"json_value|left|like|listagg|localtime|localtimestamp|natural|normalize|not|null|on|or|order|outer|prepare|"
    r"recursive|right|rollup|select|skip|table|then|trim|true|uescape|union|unnest|using|values|when|where|with"
)
"""Words that Trino accepts as names only in quotes."""
_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE)


class Engine(StrEnum):
    """A query engine that reads the tables."""

    ATHENA = "athena"
    DUCKDB = "duckdb"
    REDSHIFT = "redshift"
    SPARK = "spark"
    TRINO = "trino"
    SNOWFLAKE = "snowflake"

    @property
    def label(self) -> str:
        """The name as the vendor writes it."""
        return {"duckdb": "DuckDB"}.get(self.value, self.value.capitalize())


HISTORY: Final = "Read each row with the time in which it was valid"
"""The title of the query of the versions of a table's rows."""


@dataclass(frozen=True)
class Query:
    """One statement for one table, or for ``all``."""

    table: str
    title: str
    sql: str
    engine: Engine


def name_views(spec: Spec) -> list[str]:
    """Return the names of the views of all tables: a temporary view has no schema, so that its name contains it."""
    return make_unique(cut("_".join(filter(None, (table.schema_name, table.name)))) for table in spec.tables)


def name_history_views(spec: Spec) -> list[str]:
    """Return the names of the views with the versions of the rows of all tables."""
    names = name_views(spec)
    ends = ["versions" if table.history_of is not None else "history" for table in spec.tables]
    versions = (cut(f"{name}_{end}") for name, end in zip(names, ends, strict=True))
    return make_unique([*names, *versions])[len(names) :]


def quote_name(engine: Engine, name: str) -> str:
    """Return the name of a table or a column. For Athena and Trino it has quotes only where it needs them, as on the
    vendors' pages.
    """
    if engine is Engine.SPARK:
        return f"`{name.replace('`', '``')}`"
    if (
        engine not in {Engine.DUCKDB, Engine.REDSHIFT}
        and _PLAIN.fullmatch(name)
        and not _RESERVED.fullmatch(name.lower())
    ):
        return name
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def quote_text(engine: Engine, text: str) -> str:
    """Return a text in quotes. In Spark, Snowflake and Redshift a backslash begins an escape; elsewhere it stands for
    itself.
    """
    if engine is Engine.SPARK:
        escaped = _escape(text).replace("'", "\\'")
    elif engine in {Engine.SNOWFLAKE, Engine.REDSHIFT}:
        # https://docs.snowflake.com/en/sql-reference/data-types-text#single-quoted-string-constants
        # https://docs.aws.amazon.com/redshift/latest/dg/r_patternmatching_condition_like.html
        escaped = _escape(text).replace("'", "''")
    else:
        escaped = text.replace("'", "''")
    return f"'{escaped}'"


def _escape(text: str) -> str:
    """Return a text with escapes for backslashes, and for what terminals and editors change."""
    for character, escape in {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}.items():
        text = text.replace(character, escape)
    return text


def write_time_travel(engine: Engine, source: str, at: datetime | None) -> str:
    """Write a query of ``source`` as it was at a moment; without one, at a placeholder."""
    # A second later, so that the table is as that load left it.
    text = f"{at.astimezone(UTC) + timedelta(seconds=1):%Y-%m-%d %H:%M:%S}" if at else "2025-03-15 10:00:00"
    if engine is Engine.DUCKDB:
        return f"SELECT *\nFROM {source} AT (TIMESTAMP => TIMESTAMPTZ '{text}+00');"
    if engine is Engine.SPARK:
        return f"SELECT *\nFROM {source}\nTIMESTAMP AS OF TIMESTAMP '{text} UTC';"
    return f"SELECT *\nFROM {source}\nFOR TIMESTAMP AS OF TIMESTAMP '{text} UTC';"


def write_version(engine: Engine, source: str, snapshot_id: int) -> str:
    """Write a query of one snapshot of ``source``, an Iceberg table."""
    if engine is Engine.DUCKDB:
        return f"SELECT *\nFROM {source} AT (VERSION => {snapshot_id});"
    words = "VERSION AS OF" if engine is Engine.SPARK else "FOR VERSION AS OF"
    return f"SELECT *\nFROM {source}\n{words} {snapshot_id};"


def write_history(engine: Engine, spec: Spec, table: TableSpec, source: str) -> str:
    """Write a query of the versions of each row of an appended table, or of a history, with the time in which each was
    the row: from its own order, or the time of its change, to the lowest one of those after it. Blank for other tables.

    A version whose time is empty is left out, as of a row that its transaction has changed again, or of a change that
    came twice. A deletion ends a version and is none. Of two rows of one order the one that came first is the row. A
    row of a history that stands for a floor ends the versions of its source table.
    """
    if not table.has_history or not table.order_by or spec.envelope is not None:
        return ""
    rule = AS_IN_SOURCE if spec.column_names == "kept" else NORMALISED

    def name(column: str) -> str:
        return quote_name(engine, table.names.get(column) or rule.make(column))

    keys, orders = ", ".join(map(name, table.primary_key)), [*map(name, table.order_by)]
    tracking = {column.holds: quote_name(engine, column.name) for column in spec.tracking}
    deleted = [tracking[Tracking.DELETED]] if table.marks_deleted and Tracking.DELETED in tracking else []
    arrived = [tracking[held] for held in (Tracking.SYNCED, Tracking.JOB_ID, Tracking.INDEX) if held in tracking]
    ordered = [f"{order} NULLS FIRST" for order in orders]
    has_floors = table.envelope is not None and table.envelope.has_rows_inside
    moment = name(CHANGE_TIME) if has_floors else orders[0]
    tied = [] if has_floors else [*deleted, *(f"{column} DESC" for column in arrived)]

    def write_next(value: str, by: str, order: Sequence[str]) -> str:
        return (
            f"MIN({value}) OVER (\n        PARTITION BY {by}\n        ORDER BY {', '.join(order)}\n"
            "        ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING\n    )"
        )

    ends = write_next(moment, keys, [*ordered, *tied])
    if has_floors:
        is_floor = f"{name(CHANGE_OP)} IN ('{TRUNCATE}', '{SNAPSHOT_END}')"
        floor = write_next(f"CASE WHEN {is_floor} THEN {moment} END", name(CHANGE_SOURCE), ordered)
        # LEAST has a null for a null in some engines, in others not.
        ends = f"LEAST(COALESCE({ends}, {floor}), COALESCE({floor}, {ends}))"
    there = "".join(f"{flag} = false AND " for flag in deleted)
    return (
        f"SELECT *\nFROM (\n    SELECT *, {moment} AS _valid_from, {ends} AS _valid_to\n    FROM {source}\n"
        f") AS versions\nWHERE {there}COALESCE(_valid_from < _valid_to, true);"
    )


def write_files(engine: Engine, source: str, bucket: str, keys: Sequence[str]) -> str:
    """Write a query of exactly these files of ``source``, by the engine's column with the file's name."""
    paths = [f"s3://{bucket}/{key}" for key in keys]
    column = '"$path"'
    if engine is Engine.SPARK:
        # Spark's name of the file begins with the scheme that the table was made with.
        paths = list(keys)
        column = f"substring_index(_metadata.file_path, {quote_text(engine, f'://{bucket}/')}, -1)"
    listed = ",\n    ".join(quote_text(engine, path) for path in paths)
    return f"SELECT *\nFROM {source}\nWHERE {column} IN (\n    {listed}\n);"


def write_value(text: SecretText | str) -> str:
    """Write what lake.yaml contains, or the reference by which the value is found."""
    parsed = SecretText.parse(text)
    return f"<value of {parsed.text}>" if parsed.reference else parsed.text


def write_secret(secret: SecretText | str) -> str:
    """Return the text to write instead of a secret: the reference to its value, or that the file has it."""
    parsed = SecretText.parse(secret)
    return f"<value of {parsed.text}>" if parsed.reference else "<the secret of the file>"
