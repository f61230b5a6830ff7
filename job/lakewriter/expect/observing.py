"""Look at the columns that expectations name while a task stages its files: nulls, and the lowest and highest value."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from lakewriter.documents.nesting import cut
from lakewriter.documents.values_to_text import render_text
from lakewriter.encode.parquet_footer import read_bounds
from lakewriter.expect.watching import Watch, Watched
from lakewriter.receipt import MOST_BAD_ROWS_SHOWN, Cursor, Observed, Violations
from lakewriter.shape.cursor import choose_higher, choose_lower


class Observer:
    """Counts over the typed rows of one task that the footers of its files do not have."""

    def __init__(self, watched: Watched) -> None:
        # One column may be named twice, in different case: the last entry stays, which wants the most.
        by_name = {watch.name: watch for watch in sorted(watched.columns.values(), key=lambda watch: watch.bounds)}
        valued = [watch for watch in by_name.values() if not pt.is_null(watch.type)]
        self._watched = watched
        self._in_footer = [watch for watch in valued if watch.in_footer]
        self._counted = [watch for watch in valued if not watch.in_footer]
        self._rules = (*(check.name for check in watched.values), *watched.conditions)
        self._clear()

    def _clear(self) -> None:
        self._observed: dict[str, Observed] = {}
        self._violations = {name: Violations(rows=0) for name in self._rules}

    def observe(self, typed: pa.RecordBatch, checks: pa.Array | None = None) -> None:
        """Count rows that go into the files; ``checks`` are the results of the conditions in SQL for each."""
        for watch in self._counted:
            observed = _observe_values(typed.column(watch.name), bounds=watch.bounds)
            before = self._observed.get(watch.name)
            self._observed[watch.name] = observed if before is None else add_observed(before, observed)
        for check in self._watched.values:
            self._violations[check.name] += _find_unaccepted(typed.column(check.column), check.values)
        for position, name in enumerate(self._watched.conditions):
            assert checks is not None
            is_false = pc.invert(checks.field(position))
            self._violations[name] = add_rows(self._violations[name], typed, is_false, self._watched.keys)

    def take(self, rows: int, footer: pq.FileMetaData | None) -> tuple[dict[str, Observed], dict[str, Violations]]:
        """Return the counts since the last call, with those of the footer of a file of ``rows`` rows."""
        observed, violations = self._observed, self._violations
        self._clear()
        for watch in self._in_footer:
            observed[watch.name] = _read_footer(watch, rows, footer)
        return observed, violations


def _find_unaccepted(array: pa.Array, values: pa.Array) -> Violations:
    is_other = pc.and_(array.is_valid(), pc.invert(pc.is_in(array, value_set=values)))
    rows = pc.sum(is_other).as_py() or 0
    if not rows:
        return Violations(rows=0)
    first = pc.unique(array.filter(is_other)).slice(0, MOST_BAD_ROWS_SHOWN)
    return Violations(rows=rows, samples=tuple(cut(repr(text)) for text in render_text(first).to_pylist()))


def add_rows(
    before: Violations, typed: pa.RecordBatch, is_false: pa.Array, keys: Sequence[str], first: str | None = None
) -> Violations:
    """Add the rows of the batch that are marked to ``before``: their number, and samples while more are shown.

    A sample is a row's ``keys``, or the whole row with the ``first`` column in front, cut if it is long.
    """
    rows = pc.sum(is_false).as_py() or 0
    if not rows or len(before.samples) >= MOST_BAD_ROWS_SHOWN:
        return before + Violations(rows=rows)
    columns = list(keys) or sorted(typed.schema.names, key=lambda name: name != first)
    shown = typed.select(columns)
    bad = shown.take(pc.indices_nonzero(is_false).slice(0, MOST_BAD_ROWS_SHOWN))
    texts = [render_text(column).to_pylist() for column in bad.columns]
    samples = (
        ", ".join(f"{name}={'null' if value is None else value}" for name, value in zip(columns, row, strict=True))
        for row in zip(*texts, strict=True)
    )
    return before + Violations(rows=rows, samples=tuple(f"({cut(sample)})" for sample in samples))


def add_observed(a: Observed, b: Observed) -> Observed:
    """Add two observations; a figure that one of them lacks is unknown in the sum."""
    nulls = None if a.nulls is None or b.nulls is None else a.nulls + b.nulls
    bounded = [part for part in (a, b) if part.has_values]
    whole = {"rows": a.rows + b.rows, "nulls": nulls, "nans": a.nans + b.nans}
    if any(part.lower is None or part.upper is None for part in bounded):
        return Observed(**whole)
    lower = choose_lower(a.lower, b.lower)
    return Observed(**whole, lower=lower, upper=choose_higher(a.upper, b.upper))


def _observe_values(array: pa.Array, *, bounds: bool) -> Observed:
    # Of the array as it is given: the filter below leaves nulls out too.
    rows, nulls, nans = len(array), array.null_count, 0
    if not bounds:
        return Observed(rows=rows, nulls=nulls)
    if pt.is_floating(array.type):
        is_nan = pc.is_nan(array)
        nans = pc.sum(is_nan).as_py() or 0
        array = array.filter(pc.invert(is_nan)) if nans else array
    ends = pc.min_max(array)
    return Observed(rows=rows, nulls=nulls, nans=nans, lower=_make_bound(ends["min"]), upper=_make_bound(ends["max"]))


def _make_bound(value: pa.Scalar) -> Cursor | None:
    if not value.is_valid:
        return None
    return Cursor(type=str(value.type), text=render_text(pa.repeat(value, 1))[0].as_py())


def _read_footer(watch: Watch, rows: int, footer: pq.FileMetaData | None) -> Observed:
    bounds = read_bounds(footer, watch.name) if footer is not None else None
    if bounds is None:
        return Observed(rows=rows)
    if not watch.bounds:
        return Observed(rows=rows, nulls=bounds.nulls)
    lower, upper = (_make_bound(pa.scalar(value, watch.type)) for value in (bounds.lower, bounds.upper))
    return Observed(rows=rows, nulls=bounds.nulls, lower=lower, upper=upper)
