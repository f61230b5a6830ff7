"""Say in words what a table is expected to be."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from lakewriter.spec.expectations import (
    AcceptedValues,
    Condition,
    Expectation,
    Fresh,
    NullShare,
    Range,
    RowCount,
    RowsOfLastLoads,
    Unique,
)

_MOST_VALUES: Final = 10
"""Messages show so many values of a list."""


def describe_expectation(expectation: Expectation) -> str:
    """Return one expectation as a plan shows it: its name, and what it asks."""
    return f"{expectation.name}: {write_expected(expectation)}{_AFTERWARDS[expectation.on_violation]}"


def write_expected(expectation: Expectation) -> str:
    """Write what one expectation asks."""
    return _WORDS[type(expectation)](expectation)


def _describe_last(expectation: RowsOfLastLoads) -> str:
    last = "the rows of the last load" if expectation.loads == 1 else f"the median of {expectation.loads} loads"
    return f"{write_shares(expectation)} of {last}"


def write_row_limits(expectation: RowCount) -> str:
    """Write ``5 to 1,000 rows``."""
    least, most = expectation.at_least, expectation.at_most
    noun = "row" if 1 in (least, most) and None in (least, most) else "rows"
    return f"{write_limits(least, most)} {noun}"


def write_shares(expectation: RowsOfLastLoads) -> str:
    """Write ``50% to 200%``."""
    return f"{_write_share(expectation.least)} to {_write_share(expectation.most)}"


def write_null_share(expectation: NullShare) -> str:
    """Write ``at most 5% nulls``."""
    return f"at most {_write_share(expectation.at_most)} nulls" if expectation.at_most else "no nulls"


def write_rule_for_rows(expectation: AcceptedValues | Unique | Condition) -> str:
    """Write what each row must be."""
    if isinstance(expectation, Condition):
        return f"none of which {expectation.sql} is false"
    if isinstance(expectation, Unique):
        return f"each {', '.join(expectation.columns)} once"
    shown = [repr(value) for value in expectation.values[:_MOST_VALUES]]
    more = len(expectation.values) - len(shown)
    last = f"{more} more" if more else shown.pop()
    return " or ".join(part for part in (", ".join(shown), last) if part)


def write_limits(least: object, most: object) -> str:
    """Write ``at least 5``, ``at most 5`` or ``1 to 5``."""
    if least is None or most is None:
        return f"at most {_write_limit(most)}" if least is None else f"at least {_write_limit(least)}"
    return f"{_write_limit(least)} to {_write_limit(most)}"


def _write_limit(limit: object) -> str:
    return f"{limit:,}" if isinstance(limit, int) else str(limit)


def _write_share(share: float) -> str:
    return f"{(Decimal(str(share)) * 100).normalize():f}%"


_AFTERWARDS: Final = {"fail": "", "warn": " (warns)", "quarantine": " (keeps rows out)"}

_WORDS: Final[dict[type, Callable[[Any], str]]] = {
    RowCount: write_row_limits,
    RowsOfLastLoads: _describe_last,
    NullShare: lambda rule: f"{write_null_share(rule)} in {rule.column}",
    Range: lambda rule: f"{rule.column} {write_limits(rule.at_least, rule.at_most)}",
    Fresh: lambda rule: f"the newest {rule.column} is at most {rule.within} old",
    AcceptedValues: lambda rule: f"{rule.column} is {write_rule_for_rows(rule)}",
    Unique: write_rule_for_rows,
    Condition: lambda rule: f"no row of which {rule.sql} is false",
}
