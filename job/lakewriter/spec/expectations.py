"""Define what a table's load is expected to be, judged once its files are staged and before anybody sees them."""

from typing import Literal

from lakewriter.spec.model import Model

OnViolation = Literal["fail", "warn", "quarantine"]
Limit = int | float | str


class _Expectation(Model):
    """``name`` is unique among those of a table."""

    name: str
    on_violation: OnViolation = "fail"


class RowCount(_Expectation):
    """The number of rows of a load."""

    kind: Literal["rows"] = "rows"
    column: None = None
    at_least: int | None = None
    at_most: int | None = None


class RowsOfLastLoads(_Expectation):
    """The number of rows of a load, as shares of the median of the last ``loads`` that committed."""

    kind: Literal["rows_of_last_loads"] = "rows_of_last_loads"
    column: None = None
    loads: int
    least: float
    most: float


class NullShare(_Expectation):
    """The share of a column's values that may be null; 0 for a column that has no nulls."""

    kind: Literal["null_share"] = "null_share"
    column: str
    at_most: float


class Range(_Expectation):
    """The bounds that each value of a column keeps; nulls have none."""

    kind: Literal["range"] = "range"
    column: str
    at_least: Limit | None = None
    at_most: Limit | None = None


class Fresh(_Expectation):
    """The greatest age of a column's newest value when the load runs."""

    kind: Literal["fresh"] = "fresh"
    column: str
    seconds: float
    within: str


class AcceptedValues(_Expectation):
    """The values that a column may have; null is none."""

    kind: Literal["accepted_values"] = "accepted_values"
    column: str
    values: tuple[bool | int | float | str, ...]


class Unique(_Expectation):
    """Columns that have no values twice in one load; rows with a null among them are not looked at."""

    kind: Literal["unique"] = "unique"
    columns: tuple[str, ...]

    @property
    def column(self) -> str | None:
        """The one column, None where there are several."""
        return self.columns[0] if len(self.columns) == 1 else None


class Condition(_Expectation):
    """A condition in Spark's SQL over the source's columns that must not be false for any row; null is not false."""

    kind: Literal["sql"] = "sql"
    column: None = None
    sql: str


Expectation = RowCount | RowsOfLastLoads | NullShare | Range | Fresh | AcceptedValues | Unique | Condition


class Acceptance(Model):
    """Expectations that one load need not meet, by name or by ``TABLE:NAME``; who accepts that, and why."""

    checks: tuple[str, ...]
    reason: str
    by: str = ""

    def covers(self, table_id: str, name: str) -> bool:
        """Return whether these expectations include one of a table."""
        return name in self.checks or f"{table_id}:{name}" in self.checks
