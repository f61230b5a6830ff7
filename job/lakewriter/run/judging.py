"""Judge a table's staged files by its expectations, before anything of them is bound."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from typing import Final

from lakewriter.commit.attempt import Attempt
from lakewriter.commit.committed_loads import LastLoads
from lakewriter.documents.nesting import cut
from lakewriter.errors import ExpectationFailedError, SourceFailedError, SpecInvalidError
from lakewriter.expect.repeated_keys import RepeatedKeys
from lakewriter.expect.verdicts import Facts, judge
from lakewriter.expect.watching import Watched, find_watched
from lakewriter.receipt import MOST_BAD_ROWS_SHOWN, SetAside, Totals, Verdict, Violations
from lakewriter.records.state import TableState
from lakewriter.report import RunReport, format_count
from lakewriter.shape.cursor import choose_higher
from lakewriter.shape.shapers import AnyPlan
from lakewriter.source.request import Feed
from lakewriter.source.spark_rows import RowsFeed
from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.expectations import Acceptance
from lakewriter.spec.load_ids import REPLAY
from lakewriter.spec.quarantine_names import ON_BAD_ROW
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec


def plan_watched(spec: Spec, table: TableSpec, shape: AnyPlan) -> Watched:
    """Return the columns that a table's expectations ask about; ``SPEC_INVALID`` for one that its loads do not
    write."""
    table = _settle(table, spec.acceptance)
    return find_watched(table, shape, is_parquet=isinstance(table.encoding or spec.encoding, ParquetEncoding))


def _settle(table: TableSpec, acceptance: Acceptance | None) -> TableSpec:
    """Return the table with accepted checks that keep no rows out: their rows are loaded as they are."""
    if acceptance is None:
        return table
    accepted = tuple(
        expectation.model_copy(update={"on_violation": "fail"})
        if expectation.on_violation == "quarantine" and acceptance.covers(table.id, expectation.name)
        else expectation
        for expectation in table.expect
    )
    return table.model_copy(update={"expect": accepted})


def look_for_repeated(watched: Watched, feed: Feed) -> dict[str, Violations]:
    """Count, by check, the rows of the feed that repeat values which should be unique."""
    if not watched.unique:
        return {}
    assert isinstance(feed, RowsFeed)
    repeated = {}
    for check in watched.unique:
        rows, first = feed.find_repeated(check.positions, MOST_BAD_ROWS_SHOWN)
        samples = (", ".join(map(str, values[:-1])) + f" ({values[-1]} times)" for values in first)
        repeated[check.name] = Violations(rows=rows, samples=tuple(map(cut, samples)))
    return repeated


@dataclass(frozen=True)
class StagedRows:
    """A table's staged files, and the state that their attempt began with. ``kept_out`` are the totals of the files
    with rows that were kept out. ``allowed`` such rows are accepted whatever their share. ``is_batch`` is true for a
    micro-batch."""

    table: TableSpec
    attempt: Attempt
    began: TableState
    watched: Watched
    totals: Totals
    repeated: Mapping[str, Violations]
    keys: RepeatedKeys | None
    kept_out: Totals
    allowed: int
    is_batch: bool


def judge_staged(staged: StagedRows, spec: Spec, last_loads: LastLoads) -> tuple[Verdict, ...]:
    """Return the verdicts on what a load has staged; ``EXPECTATION_FAILED`` where one of them keeps it from being
    bound."""
    table, attempt, began, totals = _settle(staged.table, spec.acceptance), staged.attempt, staged.began, staged.totals
    of_keys = _judge_keys(table, staged.keys)
    if not table.expect:
        return of_keys
    highest = choose_higher(began.cursor, totals.cursor) if table.cursor else None
    facts = Facts(
        totals=totals.model_copy(update={"violations": {**totals.violations, **staged.repeated}}),
        watched=staged.watched,
        at=spec.scheduled_at or attempt.started,
        last_rows=partial(last_loads.read_rows, table.id, began),
        cursors={table.cursor: highest} if table.cursor and highest is not None else {},
        kept_out=staged.kept_out.violations,
        most_kept_out=_find_excess(staged),
    )
    verdicts = judge(table.id, table.expect, facts, spec.acceptance)
    if failed := [verdict for verdict in verdicts if verdict.outcome == "failed"]:
        raise _make_error(staged, failed, verdicts, spec)
    return verdicts + of_keys


def _judge_keys(table: TableSpec, keys: RepeatedKeys | None) -> tuple[Verdict, ...]:
    """Return the warning that rows share a primary key; none where each has its own."""
    if keys is None or not keys.violations.rows:
        return ()
    first = "first " if keys.is_cut else ""
    return (
        Verdict(
            check="primary_key",
            kind="unique",
            column=table.primary_key[0] if len(table.primary_key) == 1 else None,
            holds=False,
            outcome="warned",
            found=f"{keys.violations.rows:,} of the {first}{format_count(keys.rows, 'row')} with the key of another",
            expected=f"each {', '.join(table.primary_key)} once",
            samples=keys.violations.samples,
        ),
    )


def _find_excess(staged: StagedRows) -> str | None:
    """Name the rule that is broken because too many rows are kept out of the table; None if no rule is broken."""
    kept_out, rule = staged.kept_out.rows, staged.table.on_bad_row
    if rule is None or kept_out <= max(staged.allowed, rule.at_most * (kept_out + staged.totals.rows)):
        return None
    return f"at most {rule.at_most:.2%} of all rows (on_bad_row.at_most)"


def _make_error(
    staged: StagedRows, failed: Sequence[Verdict], verdicts: Sequence[Verdict], spec: Spec
) -> ExpectationFailedError:
    unmet = "; ".join(describe_verdict(verdict) for verdict in failed)
    return ExpectationFailedError(
        f"table {staged.table.id!r}: {len(failed)} of {format_count(len(verdicts), 'expectation')} not met: {unmet}. "
        "Nothing of the load was published, what was staged is gone, and the cursor has not moved.",
        remedy=_write_remedy(staged, [verdict.check for verdict in failed], spec),
        verdicts=verdicts,
    )


def _write_remedy(staged: StagedRows, checks: Sequence[str], spec: Spec) -> str:
    """Say how to load again, as it is done for this kind of load."""
    table, job_id = staged.table, staged.attempt.job_id
    accept = " ".join(f"--accept {shlex.quote(check)}" for check in checks)
    if job_id.startswith(REPLAY):
        return (
            f"The rows are still in the quarantine. Change the check, or give it on_violation: quarantine; then run "
            f"lakewriter replay LAKE {table.id} again."
        )
    if table.is_given and staged.is_batch:
        return "Correct what gives the rows, or change the check in the file; the query then gives the batch again."
    if table.is_given:
        reasons = ", ".join(f"{check!r}: 'why'" for check in checks)
        return (
            f"Write corrected rows under job id {job_id}; or load them as they are: lakewriter.write(..., "
            f"job_id={job_id!r}, accept={{{reasons}}})"
        )
    if staged.is_batch:
        return (
            "Correct the source, and start the run again; or load the batch as it is: lakewriter run LAKE --continuous "
            f"{accept} --reason TEXT"
        )
    # A scheduled load is judged by its time, which its job id does not have.
    time = spec.scheduled_at
    which = (
        f"--scheduled-at {time.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        if time is not None
        else f"--job-id {shlex.quote(job_id)}"
    )
    return (
        f"Correct the source, and run the load again: lakewriter run LAKE {which}; or load it as it is, with {accept} "
        "--reason TEXT behind it"
    )


def describe_verdict(verdict: Verdict) -> str:
    """Return a verdict in words."""
    samples = f", such as {', '.join(verdict.samples)}" if verdict.samples else ""
    return f"{verdict.check} found {verdict.found}{samples}, expected {verdict.expected}"


def list_departures(report: RunReport) -> Iterator[str]:
    """Yield the expectations that a load's tables do not meet, or are not known to meet, although they were
    published."""
    for result in report.tables:
        name = result.id
        for verdict in result.expectations:
            if verdict.outcome == "accepted":
                by = f" by {verdict.by}" if verdict.by else ""
                yield f"{name}: {describe_verdict(verdict)}; accepted{by}: {verdict.reason}"
            elif verdict.outcome == "set_aside":
                yield f"{name}: {describe_verdict(verdict)}; these rows are in the quarantine"
            elif verdict.outcome == "warned":
                is_known = "not met" if verdict.holds is False else "not known to be met"
                yield f"{name}: {describe_verdict(verdict)}; it is {is_known}"


def accept(spec: Spec, acceptance: Acceptance) -> Spec:
    """Return the pipeline for a load whose expectations need not all be met; ``SPEC_INVALID`` for a name that none
    has."""
    names_by_table = [(table.id, expectation.name) for table in spec.tables for expectation in table.expect]
    for check in acceptance.checks:
        if not any(check in (name, f"{table}:{name}") for table, name in names_by_table):
            names = sorted({name for _, name in names_by_table})
            raise SpecInvalidError(
                f"--accept {check!r}: no table has an expectation of this name.",
                remedy=f"The file has {', '.join(names)}." if names else "The file has no expectations.",
            )
    return spec.model_copy(update={"acceptance": acceptance})


MOST_OF_A_BATCH: Final = 10
"""Rows that a micro-batch may set aside whatever their share: one bad row of a few is a large share."""


def require_few_bad_rows(
    table: TableSpec, set_aside: SetAside | None, rows: int, allowed: int, kept_out: Totals
) -> None:
    """Raise ``SOURCE_FAILED`` where the rows that cannot be loaded are more than the table accepts, and more than
    ``allowed``; nothing is bound then. Rows that a check kept out are in ``kept_out`` too; they are judged with that
    check."""
    if set_aside is None or table.on_bad_row is None:
        return
    unloadable = kept_out.violations.get(ON_BAD_ROW, Violations(rows=0))
    bad, total, most = unloadable.rows, set_aside.rows + rows, table.on_bad_row.at_most
    if bad > max(allowed, most * total):
        shown = "".join(f" {sample}." for sample in set_aside.samples)
        raise SourceFailedError(
            f"table {table.id!r}: {bad:,} of {format_count(total, 'row')} cannot be loaded, {bad / total:.2%}, and "
            f"on_bad_row takes at most {most:.2%} into the quarantine. The first of them:{shown}",
            remedy="Correct the source, or raise on_bad_row.at_most.",
        )
