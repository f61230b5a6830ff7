"""Judge a load's staged rows by the expectations of its table: true, false, or not known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from statistics import median
from typing import Any, Final

import pyarrow.types as pt

from lakewriter.expect.limits import is_below, list_parts, parse_limit, read_bound
from lakewriter.expect.watching import Watch, Watched
from lakewriter.expect.words import (
    write_expected,
    write_limits,
    write_null_share,
    write_row_limits,
    write_rule_for_rows,
    write_shares,
)
from lakewriter.receipt import Cursor, Observed, Totals, Verdict, Violations
from lakewriter.report import format_count
from lakewriter.spec.expectations import (
    Acceptance,
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


@dataclass(frozen=True)
class Facts:
    """The facts that a load is judged by.

    totals     the sums over its files
    at         the time that it runs at, or is scheduled for
    last_rows  gives the rows of the last committed loads, of at most so many
    cursors    by column the highest value of this load and all before it
    kept_out   by check the rows that are in the quarantine
    most_kept_out  of all rows, in words, where more are; None where that is in order
    """

    totals: Totals
    watched: Watched
    at: datetime
    last_rows: Callable[[int], Sequence[int]]
    cursors: dict[str, Cursor]
    kept_out: Mapping[str, Violations] = field(default_factory=dict)
    most_kept_out: str | None = None

    def has_check(self, name: str) -> bool:
        """Return whether the tasks have looked at a check on values."""
        return any(check.name == name for check in self.watched.values)

    def find(self, column: str) -> tuple[Watch, Observed]:
        """Return a column with its observed figures."""
        watch, rows = self.watched.columns[column], self.totals.rows
        if pt.is_null(watch.type):
            return watch, Observed(rows=rows, nulls=rows)
        nothing = Observed(rows=rows, nulls=None if rows else 0)
        return watch, self.totals.observed.get(watch.name, nothing)


@dataclass(frozen=True)
class Finding:
    """The result of one expectation: ``holds`` is None if it is not known."""

    holds: bool | None
    observed: str
    expected: str
    samples: tuple[str, ...] = ()


def judge(
    table_id: str, expectations: Sequence[Expectation], facts: Facts, acceptance: Acceptance | None = None
) -> tuple[Verdict, ...]:
    """Return a verdict on each expectation; one that is not known to hold is a warning at least."""
    return tuple(_judge_one(table_id, expectation, facts, acceptance) for expectation in expectations)


def _judge_one(table_id: str, expectation: Expectation, facts: Facts, acceptance: Acceptance | None) -> Verdict:
    keeps_out = expectation.on_violation == "quarantine"
    finding = _count_kept_out(expectation, facts) if keeps_out else _FINDERS[type(expectation)](expectation, facts)
    verdict = Verdict(
        check=expectation.name,
        kind=expectation.kind,
        column=expectation.column,
        holds=finding.holds,
        outcome="passed" if finding.holds else "warned",
        found=finding.observed,
        expected=finding.expected,
        samples=finding.samples,
    )
    if finding.holds is not False or expectation.on_violation == "warn":
        return verdict
    if keeps_out:
        return verdict.model_copy(update={"outcome": "failed" if facts.most_kept_out else "set_aside"})
    if acceptance is None or not acceptance.covers(table_id, expectation.name):
        return verdict.model_copy(update={"outcome": "failed"})
    return verdict.model_copy(update={"outcome": "accepted", "by": acceptance.by, "reason": acceptance.reason})


def _count_kept_out(expectation: Expectation, facts: Facts) -> Finding:
    seen = facts.kept_out.get(expectation.name, Violations(rows=0))
    most = f", and {facts.most_kept_out} kept out" if seen.rows and facts.most_kept_out else ""
    return Finding(not seen.rows, format_count(seen.rows, "row"), f"{write_expected(expectation)}{most}", seen.samples)


def _count_rows(expectation: RowCount, facts: Facts) -> Finding:
    rows, least, most = facts.totals.rows, expectation.at_least, expectation.at_most
    holds = (least is None or rows >= least) and (most is None or rows <= most)
    return Finding(holds, format_count(rows, "row"), write_row_limits(expectation))


def _compare_with_last(expectation: RowsOfLastLoads, facts: Facts) -> Finding:
    rows, last = facts.totals.rows, facts.last_rows(expectation.loads)
    shares = write_shares(expectation)
    rows_seen = format_count(rows, "row")
    if not last:
        return Finding(None, f"{rows_seen}, and no load before this one", f"{shares} of the rows of earlier loads")
    middle = Decimal(str(median(last)))
    least, most = (Decimal(str(share)) * middle for share in (expectation.least, expectation.most))
    of = "the load before" if len(last) == 1 else f"the median of the last {len(last)} loads"
    return Finding(
        least <= rows <= most, rows_seen, f"{least.normalize():,f} to {most.normalize():,f} rows, {shares} of {of}"
    )


def _count_nulls(expectation: NullShare, facts: Facts) -> Finding:
    _, seen = facts.find(expectation.column)
    expected = write_null_share(expectation)
    if seen.nulls is None:
        return Finding(None, "a number of nulls that is not known", expected)
    of_all = f" ({seen.nulls / seen.rows:.2%})" if seen.nulls else ""
    nulls_seen = f"{format_count(seen.nulls, 'null')} in {format_count(seen.rows, 'row')}{of_all}"
    return Finding(Decimal(seen.nulls) <= Decimal(str(expectation.at_most)) * seen.rows, nulls_seen, expected)


def _compare_bounds(expectation: Range, facts: Facts) -> Finding:
    watch, seen = facts.find(expectation.column)
    expected = write_limits(expectation.at_least, expectation.at_most)
    limits = [(expectation.at_least, seen.lower, "lowest"), (expectation.at_most, seen.upper, "highest")]
    given = [(limit, bound, word) for limit, bound, word in limits if limit is not None]
    wrong = [
        f"{bound.text} as the {word} value"
        for limit, bound, word in given
        if bound is not None and _is_outside(watch, limit, bound, word)
    ]
    if seen.nans:
        wrong.append(f"NaN in {format_count(seen.nans, 'row')}")
    if wrong:
        return Finding(False, " and ".join(wrong), expected)
    if not seen.has_values:
        return Finding(True, "no values", expected)
    if any(bound is None for _, bound, _ in given):
        return Finding(None, "bounds that are not known", expected)
    return Finding(True, ", ".join(f"{bound.text} as the {word} value" for _, bound, word in given if bound), expected)


def _is_outside(watch: Watch, limit: Any, bound: Cursor, word: str) -> bool:
    value, parsed = read_bound(bound), parse_limit(watch.type, limit, f"column {watch.name!r}")
    return is_below(value, parsed) if word == "lowest" else is_below(parsed, value)


def _compare_age(expectation: Fresh, facts: Facts) -> Finding:
    _, seen = facts.find(expectation.column)
    oldest = list_parts(facts.at - timedelta(seconds=expectation.seconds))
    newest = facts.cursors.get(expectation.column) or seen.upper
    expected = f"a value at most {expectation.within} before {facts.at:%Y-%m-%d %H:%M:%S} UTC"
    if newest is None:
        value_seen = "a newest value that is not known" if seen.has_values else "no values"
        return Finding(None, value_seen, expected)
    value = read_bound(newest)
    assert isinstance(value, tuple)
    # A date is taken for the beginning of its day.
    moment = (*value, 0, 0, 0, 0)[: len(oldest)]
    return Finding(not is_below(moment, oldest), f"{newest.text} as the newest value", expected)


def _count_rows_that(expectation: AcceptedValues | Unique | Condition, facts: Facts) -> Finding:
    expected, rows = write_rule_for_rows(expectation), facts.totals.rows
    seen = facts.totals.violations.get(expectation.name)
    is_void = isinstance(expectation, AcceptedValues) and not facts.has_check(expectation.name)
    if seen is None and rows and not is_void:
        return Finding(None, "a number of rows that is not known", expected)
    bad = seen.rows if seen is not None else 0
    samples = seen.samples if seen is not None else ()
    return Finding(not bad, f"{bad:,} of {format_count(rows, 'row')}{_MISFITS[type(expectation)]}", expected, samples)


_MISFITS: Final = {AcceptedValues: " with other values", Unique: " with values of other rows", Condition: ""}


_FINDERS: Final[dict[type, Callable[[Any, Facts], Finding]]] = {
    RowCount: _count_rows,
    RowsOfLastLoads: _compare_with_last,
    NullShare: _count_nulls,
    Range: _compare_bounds,
    Fresh: _compare_age,
    AcceptedValues: _count_rows_that,
    Unique: _count_rows_that,
    Condition: _count_rows_that,
}
