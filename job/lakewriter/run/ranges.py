"""Load the rows of a range again: into a merged table, or into the partitions of one whose partitions are replaced."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Final

from lakewriter.errors import SpecInvalidError
from lakewriter.run.replay import is_of_single_rows
from lakewriter.shape.cursor import parse_cursor, write_spark_literal
from lakewriter.source.column_names import quote_column
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import Between, Bound, Mode, PartitionField, TableSpec

_WHOLE: Final = re.compile(r"-?\d+")

_UNITS: Final[Mapping[str, Callable[[datetime], datetime]]] = {
    "hour": lambda moment: moment.replace(minute=0, second=0, microsecond=0),
    "day": lambda moment: moment.replace(hour=0, minute=0, second=0, microsecond=0),
    "month": lambda moment: moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0),
    "year": lambda moment: moment.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0),
}
"""The beginning of the unit that a moment is in, by the transform of a partition."""


@dataclass(frozen=True)
class Bounds:
    """The rows from ``first`` on, and below ``end``, as a person has typed both; ``column`` is None for the table's
    own."""

    first: str
    end: str
    column: str | None = None


def choose_range(spec: Spec, bounds: Bounds, cursor_type: str | None) -> Spec:
    """Return the pipeline whose one table, and its history, bring the rows of the range alone; ``cursor_type`` is the
    type of the cursor that its state has. ``SPEC_INVALID`` for a range that it cannot bring.

    Checks of a whole load do not apply to a part of the rows.
    """
    if len(spec.named_tables) != 1:
        raise SpecInvalidError(
            f"--from and --to are for one table, and {len(spec.named_tables)} are to be loaded.",
            remedy="Name it: --table TABLE.",
        )
    (table,) = spec.named_tables
    _require_replaceable(spec, table)
    field = _find_partition(table, bounds.column) if table.mode is Mode.REPLACE_PARTITIONS else None
    column = field.column if field is not None else bounds.column or table.cursor
    if column is None:
        raise SpecInvalidError(
            f"table {table.id} has no cursor, so nothing says of which column --from and --to are.",
            remedy="Name it: --by COLUMN.",
        )
    is_cursor = table.cursor is not None and column.lower() == table.cursor.lower()
    kind = (cursor_type if is_cursor else None) or _guess_type(bounds.first, bounds.end)
    first, end = _Value.parse("--from", bounds.first, kind), _Value.parse("--to", bounds.end, kind)
    if not first.is_below(end):
        raise SpecInvalidError(
            f"--from {bounds.first!r} is not below --to {bounds.end!r}: the first is loaded, the second is not."
        )
    _require_whole_partitions("--from", first, field)
    _require_whole_partitions("--to", end, field)
    name = quote_column(column)
    between = Between(
        column=column,
        kind=kind,
        first=Bound(text=first.text, moment=first.moment),
        end=Bound(text=end.text, moment=end.moment),
        sql=f"{name} >= {first.literal} AND {name} < {end.literal}",
    )
    tables = []
    for of_range in spec.tables:
        checks = tuple(expectation for expectation in of_range.expect if is_of_single_rows(expectation))
        tables.append(of_range.model_copy(update={"between": between, "expect": checks}))
    return spec.model_copy(update={"tables": tuple(tables)})


def _require_replaceable(spec: Spec, table: TableSpec) -> None:
    """Raise ``SPEC_INVALID`` for a table in which rows that come again would be there twice, or in place of others."""
    why = ""
    remedy = "Undo the loads that brought the rows, and load them again: lakewriter undo LAKE JOB --reason WHY."
    if spec.source is not None:
        why = "its rows come as messages"
        remedy = "Let the source send them again: lakewriter reset LAKE TABLE --no-cursor."
    elif table.envelope is not None:
        why = "its rows come as change events, of which a range of rows is no part"
        remedy = "Read the events again, from the first one that matters: a row that is as new changes nothing."
    elif table.read.new_files:
        why = "'files: new' says which rows are read"
        remedy = "Say which files are to be read again: lakewriter reset LAKE TABLE with --files-unread."
    elif table.mode is Mode.APPEND:
        why = "mode 'append' would add its rows to the same ones"
    elif table.mode not in {Mode.MERGE, Mode.REPLACE_PARTITIONS}:
        why = f"mode '{table.mode.value}' would leave these rows alone in the table"
        remedy = "Load the whole table: leave --from and --to out."
    if why:
        raise SpecInvalidError(f"table {table.id} cannot be loaded by --from and --to: {why}.", remedy=remedy)


def _find_partition(table: TableSpec, column: str | None) -> PartitionField:
    """Return the field of the partition whose values the range is of: a range of another column has parts of
    partitions."""
    fields = [field for field in table.partition_by if field.kind == "identity" or field.of_time]
    chosen = [field for field in fields if column is None or field.column.lower() == column.lower()]
    if not chosen:
        named = "its partition_by" if column is None else f"column {column!r}"
        raise SpecInvalidError(
            f"table {table.id} replaces whole partitions, and a range of {named} may have parts of some.",
            remedy=f"Give --by a column of partition_by as it is, or by time: {_name_columns(fields)}.",
        )
    return chosen[0]


def _name_columns(fields: list[PartitionField]) -> str:
    return ", ".join(field.column for field in fields) or "the table has none"


@dataclass(frozen=True)
class _Value:
    """A bound of the type ``kind``; ``moment`` is None where it is no time."""

    text: str
    kind: str
    literal: str
    moment: datetime | None = None

    @classmethod
    def parse(cls, option: str, text: str, kind: str) -> "_Value":
        """Parse what a person has typed; ``SPEC_INVALID`` where it is not of the type."""
        moment, shown = parse_moment(text), text
        if moment is not None and kind.startswith("date"):
            shown = f"{moment:%Y-%m-%d}"
        elif moment is not None and kind.startswith("timestamp"):
            shown = f"{moment:%Y-%m-%dT%H:%M:%S.%f}{'Z' if 'tz=' in kind else ''}"
        try:
            literal = write_spark_literal(parse_cursor(kind, shown))
        except SpecInvalidError as error:
            raise SpecInvalidError(f"{option} {text!r} is not of type {kind!r}, as the cursor is.") from error
        return cls(text, kind, literal, None if kind == "string" else moment)

    def is_below(self, other: "_Value") -> bool:
        """Return whether it is below another one of its type."""
        if self.moment is not None and other.moment is not None:
            return self.moment < other.moment
        return self.text < other.text if self.kind == "string" else Decimal(self.text) < Decimal(other.text)


def _require_whole_partitions(option: str, value: _Value, field: PartitionField | None) -> None:
    """Raise ``SPEC_INVALID`` for a bound amid a partition: the load would take the partition's other rows away."""
    if field is None or not field.of_time:
        return
    if value.moment is None or _UNITS[field.kind](value.moment) != value.moment:
        raise SpecInvalidError(
            f"{option} {value.text!r} is amid a partition of {field}, whose other rows would be lost.",
            remedy=f"Give the beginning of a {field.kind}, in UTC.",
        )


def parse_moment(text: str) -> datetime | None:
    """Return the moment that a text spells, in UTC where it names no zone; None for any other text."""
    if _WHOLE.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _guess_type(*texts: str) -> str:
    """Return the type that all texts look like: dates, times, whole numbers, or texts."""
    if all(parse_moment(text) is not None for text in texts):
        return "date32[day]" if all(map(_is_date, texts)) else "timestamp[us, tz=UTC]"
    return "int64" if all(map(_WHOLE.fullmatch, texts)) else "string"


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
