"""The keys ``expect`` and ``on_violation``: for a table, and for several or all tables of a pipeline."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, model_validator

from lakewriter.dialects.common.faults import FaultError
from lakewriter.dialects.common.source_files import Location
from lakewriter.spec.expectations import (
    AcceptedValues,
    Column,
    ColumnAge,
    ColumnNulls,
    ColumnRange,
    ColumnValues,
    Condition,
    Expectation,
    Fresh,
    NullShare,
    OnViolation,
    Range,
    Ratio,
    RowCount,
    RowsOfLastLoads,
    Unique,
    require_order,
)
from lakewriter.spec.model import FileModel
from lakewriter.spec.quarantine_names import ON_BAD_ROW
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import Mode, TableSpec

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


def _check_name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("expected letters, digits, '.', '_' and '-', at most 100, a letter, digit or '_' first")
    return value


Name = Annotated[str, AfterValidator(_check_name)]


class RowsEntry(FileModel):
    """How many rows a load has: as numbers, or against the loads before it."""

    at_least: int | None = Field(None, ge=0)
    """The fewest rows that a load has."""
    at_most: int | None = Field(None, ge=0)
    """The most rows that a load has."""
    of_last_loads: int | None = Field(None, ge=1, le=100)
    """The number of earlier committed loads. The load is compared with the median of their rows."""
    between: tuple[Ratio, ...] | None = Field(None, min_length=2, max_length=2)
    """For ``of_last_loads``: the fewest and the most rows as percentages of that median, such as ``[50%, 200%]``."""

    @model_validator(mode="after")
    def _one_way(self) -> "RowsEntry":
        if (self.of_last_loads is None) != (self.between is None):
            raise ValueError("'of_last_loads' and 'between' belong together")
        numbers = (self.at_least, self.at_most)
        if (numbers == (None, None)) == (self.between is None):
            raise ValueError("expected 'at_least' or 'at_most', or 'of_last_loads' with 'between'")
        require_order(*numbers)
        if self.between is not None:
            least, most = self.between
            require_order(least, most, keys="the numbers of 'between'")
        return self


class ExpectEntry(FileModel):
    """One expectation: exactly one of the checks, and what is done where it does not hold."""

    name: Name | None = None
    """What messages, reports and ``run --accept`` call it. By default the check and its column, such as
    ``range.distance``."""
    on_violation: OnViolation | None = None
    """``fail`` publishes nothing of the load where the expectation does not hold; ``warn`` publishes it and says so;
    ``quarantine`` keeps the rows that do not conform in the table's quarantine, for ``not_null``, ``range``,
    ``accepted_values`` and ``sql``. By default the table's ``on_violation``."""
    rows: RowsEntry | None = None
    """How many rows a load has."""
    not_null: Column | Annotated[tuple[Column, ...], Field(min_length=1)] | None = None
    """A column that has no nulls, or a list of such columns."""
    null_share: ColumnNulls | None = None
    """How many nulls a column has."""
    range: ColumnRange | None = None
    """The bounds of a column's values."""
    fresh: ColumnAge | None = None
    """How old the newest value of a column is."""
    accepted_values: ColumnValues | None = None
    """The values that a column may have."""
    unique: Column | Annotated[tuple[Column, ...], Field(min_length=1)] | None = None
    """A column that has no value twice in one load, or a list of columns that have none together. Spark reads the rows
    a second time for it."""
    sql: Annotated[str, Field(min_length=1)] | None = None
    """A condition in Spark's SQL over the source's columns, such as ``arr_time >= dep_time``, that must not be false
    for any row. It needs a ``name``."""

    @model_validator(mode="after")
    def _one_check(self) -> "ExpectEntry":
        given = [key for key in CHECKS if getattr(self, key) is not None]
        if len(given) != 1:
            shown = f", got {' and '.join(map(repr, given))}" if given else ""
            raise ValueError(f"expected one of {', '.join(map(repr, CHECKS))}{shown}")
        if self.sql is not None and self.name is None:
            raise ValueError("'sql' needs 'name' beside it, which messages call it")
        if self.on_violation == "quarantine" and given[0] not in ROW_CHECKS:
            raise ValueError(
                f"'on_violation: quarantine' is for {', '.join(map(repr, ROW_CHECKS))}, which tell one row apart from "
                "another"
            )
        if self.name == ON_BAD_ROW:
            raise ValueError(f"'name' {ON_BAD_ROW!r} is that of rows which cannot be loaded")
        return self

    def list_expectations(self, default: OnViolation) -> Iterator[Expectation]:
        """Yield the neutral form: a list of columns is an expectation for each."""
        tells_rows = any(getattr(self, key) is not None for key in ROW_CHECKS)
        inherited: OnViolation = "fail" if default == "quarantine" and not tells_rows else default
        rule: dict[str, Any] = {"on_violation": self.on_violation or inherited}
        if self.not_null is not None:
            columns = (self.not_null,) if isinstance(self.not_null, str) else self.not_null
            for column in columns:
                name = self.name if len(columns) == 1 else self.name and f"{self.name}.{column}"
                yield NullShare(name=name or f"not_null.{column}", column=column, at_most=0, **rule)
        elif self.rows is not None:
            yield self._make_rows(self.rows, rule)
        elif self.unique is not None:
            columns = (self.unique,) if isinstance(self.unique, str) else self.unique
            yield Unique(name=self.name or f"unique.{'.'.join(columns)}", columns=columns, **rule)
        elif self.sql is not None:
            yield Condition(name=self.name or "sql", sql=self.sql, **rule)
        else:
            checks = {
                "null_share": self.null_share,
                "range": self.range,
                "fresh": self.fresh,
                "accepted_values": self.accepted_values,
            }
            key, check = next((key, check) for key, check in checks.items() if check is not None)
            name = self.name or f"{key}.{check.column}"
            yield _OF_COLUMN[key](name=name, **check.model_dump(), **rule)

    def _make_rows(self, rows: RowsEntry, rule: dict[str, Any]) -> Expectation:
        if rows.of_last_loads is None or rows.between is None:
            return RowCount(name=self.name or "rows", at_least=rows.at_least, at_most=rows.at_most, **rule)
        least, most = rows.between
        name = self.name or "rows.of_last_loads"
        return RowsOfLastLoads(name=name, loads=rows.of_last_loads, least=least, most=most, **rule)


_OF_COLUMN: Final[Mapping[str, type[NullShare | Range | Fresh | AcceptedValues]]] = {
    "null_share": NullShare,
    "range": Range,
    "fresh": Fresh,
    "accepted_values": AcceptedValues,
}
CHECKS: Final = ("rows", "not_null", "null_share", "range", "fresh", "accepted_values", "unique", "sql")
ROW_CHECKS: Final = ("not_null", "range", "accepted_values", "sql")
"""The checks that each row by itself meets or fails."""


class SharedExpectEntry(ExpectEntry):
    """An expectation of several tables or streams."""

    tables: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """The tables or streams that it is for, by their names in the source, or ``schema.table``. By default all."""


OfTables = Sequence[tuple[Sequence[ExpectEntry], OnViolation | None]]
"""Holds for each entry in ``tables`` its expectations, and its ``on_violation``."""


def apply_expectations(
    spec: Spec, given: OfTables, shared: Sequence[SharedExpectEntry], on_violation: OnViolation | None
) -> Spec:
    """Return the spec whose tables have their own expectations and the pipeline's; the first ones are those of
    ``given``."""
    spec = spec.model_copy(update={"tables": tuple(map(_require_keys, spec.tables))})
    if not shared and not any(entries for entries, _ in given):
        return spec
    _refuse_unknown_tables(spec, shared)
    tables = []
    for number, table in enumerate(spec.tables):
        if table.history_of is not None:
            # It has all changes of the table's rows, also those that the table's checks keep out.
            tables.append(table)
            continue
        entries, rule = given[number] if number < len(given) else ((), None)
        default = rule or on_violation or "fail"
        located: list[tuple[Location, ExpectEntry]] = [
            (("tables", number, "expect", index), entry) for index, entry in enumerate(entries)
        ]
        located += [(("expect", index), entry) for index, entry in enumerate(shared) if _is_for(entry, table)]
        tables.append(table.model_copy(update={"expect": (*table.expect, *_list_all(table, located, default))}))
    return spec.model_copy(update={"tables": tuple(tables)})


def _require_keys(table: TableSpec) -> TableSpec:
    """Return the table; if its rows are merged, with a check that each key column has no null."""
    has_floors = table.history_of is not None and table.envelope is not None and table.envelope.has_rows_inside
    if table.mode is not Mode.MERGE or has_floors:
        return table
    rule: OnViolation = "quarantine" if table.quarantine is not None else "fail"
    checks = (
        NullShare(name=f"{key} of primary_key", column=key, at_most=0, on_violation=rule) for key in table.primary_key
    )
    return table.model_copy(update={"expect": tuple(checks)})


def _list_all(
    table: TableSpec, located: Sequence[tuple[Location, ExpectEntry]], default: OnViolation
) -> Iterator[Expectation]:
    names: dict[str, Location] = {}
    for location, entry in located:
        for expectation in entry.list_expectations(default):
            if expectation.name in names:
                raise FaultError(
                    location,
                    f"table {table.source_table!r} has two expectations named {expectation.name!r}.",
                    remedy="Give one of them a 'name' of its own.",
                )
            if table.stream is not None and isinstance(expectation, Unique | Condition):
                raise FaultError(
                    location,
                    f"stream {table.source_table!r} has {expectation.kind}, which Spark looks at, and messages do not "
                    "pass through it.",
                    remedy="Leave it out for streams; all other checks are for them too.",
                )
            if expectation.on_violation == "quarantine" and table.quarantine is None:
                raise FaultError(
                    location,
                    f"table {table.source_table!r} keeps rows out by {expectation.name!r}, and has no quarantine for "
                    "them.",
                    remedy="Set on_bad_row: quarantine; its at_most bounds the share of rows that are kept out.",
                )
            names[expectation.name] = location
            yield expectation


def _is_for(entry: SharedExpectEntry, table: TableSpec) -> bool:
    return entry.tables is None or any(_is_named(table, name) for name in entry.tables)


def _is_named(table: TableSpec, name: str) -> bool:
    full = f"{table.source_schema}.{table.source_table}" if table.source_schema else table.source_table
    return name in (table.source_table, full)


def _refuse_unknown_tables(spec: Spec, shared: Sequence[SharedExpectEntry]) -> None:
    for number, entry in enumerate(shared):
        for name in entry.tables or ():
            if not any(_is_named(table, name) for table in spec.tables):
                names = ", ".join(repr(table.source_table) for table in spec.tables[:10])
                raise FaultError(
                    ("expect", number, "tables"), f"{name!r} is no table or stream of this file.",
                    remedy=f"It has {names}{' and others' if spec.tables[10:] else ''}.",
                )  # fmt: skip
