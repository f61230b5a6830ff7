"""Define what a table's load is expected to be, judged once its files are staged and before anybody sees them."""

import re
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from lakewriter.spec.model import FileModel, Model

OnViolation = Literal["fail", "warn", "quarantine"]
Limit = int | float | str

_PERCENTAGE: Final = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?%")
_DURATION: Final = re.compile(r"(\d{1,6}) (second|minute|hour|day|week)s?")
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}


def _to_number(value: Any) -> float | None:
    """Return the number that a share or a percentage stands for; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    match = _PERCENTAGE.fullmatch(value.strip()) if isinstance(value, str) else None
    # By way of decimals, 33.3% is the number nearest to 333 of 1,000.
    return float(Decimal(match[1]) / 100) if match else None


def _read_share(value: Any) -> float:
    share = _to_number(value)
    if share is None or not 0 <= share <= 1:
        raise ValueError("expected a share from 0 to 1, or a percentage such as 5%")
    return share


def _read_ratio(value: Any) -> float:
    ratio = _to_number(value)
    if ratio is None or not ratio >= 0:
        raise ValueError("expected a percentage such as 50%, or a number such as 0.5")
    return ratio


def _check_duration(value: str) -> str:
    if not _DURATION.fullmatch(value):
        raise ValueError("expected a time such as '26 hours'")
    return value


def to_seconds(duration: str) -> int:
    """Return the seconds of a ``Duration``."""
    number, unit = duration.rstrip("s").split(" ")
    return int(number) * _SECONDS[unit]


def _to_text(value: Any) -> Any:
    """Return the text of a date or a time: YAML makes them of what looks like one."""
    return value.isoformat() if isinstance(value, date) else value


def require_order(least: Any, most: Any, keys: str = "'at_least' and 'at_most'") -> None:
    """Raise ``ValueError`` if the first of two bounds is above the second."""
    if least is not None and most is not None and least > most:
        raise ValueError(f"expected {keys} in order, the smaller one first")


Share = Annotated[float, BeforeValidator(_read_share, json_schema_input_type=float | str)]
Ratio = Annotated[float, BeforeValidator(_read_ratio, json_schema_input_type=float | str)]
Duration = Annotated[str, AfterValidator(_check_duration)]
Column = Annotated[str, Field(min_length=1)]


class ColumnNulls(FileModel):
    """How many nulls a column has."""

    column: Column
    """The column, by its name in the source."""
    at_most: Share
    """The largest share of nulls among all rows of the load, such as ``5%`` or 0.05."""


class ColumnRange(FileModel):
    """The bounds of a column's values; nulls are not looked at."""

    column: Column
    """The column, by its name in the source: of numbers, dates, timestamps or text."""
    at_least: Limit | None = None
    """The smallest value: a number, or text such as ``2020-01-01`` or ``2020-01-01T00:00:00Z``."""
    at_most: Limit | None = None
    """The largest value."""

    @field_validator("at_least", "at_most", mode="before")
    @classmethod
    def _write_time(cls, value: Any) -> Any:
        return _to_text(value)

    @model_validator(mode="after")
    def _some_bound(self) -> "ColumnRange":
        if self.at_least is None and self.at_most is None:
            raise ValueError("expected 'at_least' or 'at_most', or both")
        if isinstance(self.at_least, str) == isinstance(self.at_most, str):
            require_order(self.at_least, self.at_most)
        return self


class ColumnAge(FileModel):
    """How old the newest value of a column is when the load runs, or at the time that it is scheduled for."""

    column: Column
    """The column, by its name in the source: of dates or timestamps. Those without a zone are taken for UTC."""
    within: Duration
    """The greatest age, such as ``26 hours``."""


class ColumnValues(FileModel):
    """The values that a column may have; nulls are not looked at."""

    column: Column
    """The column, by its name in the source."""
    values: Annotated[tuple[bool | int | float | str, ...], Field(min_length=1, max_length=1000)]
    """All values that are accepted."""

    @field_validator("values", mode="before")
    @classmethod
    def _write_times(cls, values: Any) -> Any:
        return [_to_text(value) for value in values] if isinstance(values, list | tuple) else values


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


class NullShare(ColumnNulls, _Expectation):
    """The share of a column's values that may be null; 0 for a column that has no nulls."""

    kind: Literal["null_share"] = "null_share"


class Range(ColumnRange, _Expectation):
    """The bounds that each value of a column keeps; nulls have none."""

    kind: Literal["range"] = "range"


class Fresh(ColumnAge, _Expectation):
    """The greatest age of a column's newest value when the load runs."""

    kind: Literal["fresh"] = "fresh"

    @property
    def seconds(self) -> int:
        """The greatest age in seconds."""
        return to_seconds(self.within)


class AcceptedValues(ColumnValues, _Expectation):
    """The values that a column may have; null is none."""

    kind: Literal["accepted_values"] = "accepted_values"


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
