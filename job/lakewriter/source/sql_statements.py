"""Run SQL over views: find the columns that a statement needs of files, refuse what it cannot use, and pass on bad
rows.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from lakewriter.errors import SpecInvalidError
from lakewriter.source.arrow_conditions import list_elements
from lakewriter.source.bad_rows import BAD
from lakewriter.source.file_frames import FileRows
from lakewriter.source.marked_rows import IS_BAD, add_marks, is_marked
from lakewriter.source.spark_failures import SPARK_ERRORS

_ASKS_FOR_FILE: Final = re.compile(r"\b(input_file_name|input_file_block_start|input_file_block_length)\s*\(", re.I)
_METADATA: Final = re.compile(r"(?<![\w`])`?_metadata\b", re.I)
_CLASSES: Final = frozenset({"InputFileName", "InputFileBlockStart", "InputFileBlockLength"})
"""Spark's classes of the functions that name a row's file."""
_OF_VIEW: Final = "files of "
_READER: Final = "MapInArrow"
_PASSES_ALL: Final = "Filter"
_CHOOSES: Final = frozenset({"Project", "Aggregate"})
"""Nodes that name every column which they or the nodes above them use."""


def run_statement(
    session: SparkSession, sql: str, files: Mapping[str, FileRows], others: Mapping[str, DataFrame], table: str
) -> DataFrame:
    """Return the result of a statement over views of ``files`` and ``others``.

    A view does not include its rows that are marked as bad. They follow the statement's rows, with null in its columns.
    """
    views = {name: rows.make_frame(_label(name)) for name, rows in files.items()}
    for name, frame in others.items():
        _register(name, frame)
    frame = _query(session, sql, views, table)
    wanted = _find_wanted(frame, {name: views[name] for name, rows in files.items() if rows.opened.may_skip_columns})
    if wanted:
        less = views | {name: files[name].make_frame(_label(name), columns) for name, columns in wanted.items()}
        pruned = _query(session, sql, less, table)
        # Checked again on the plan that runs: it may use a column that is not read.
        needed = _find_wanted(pruned, less)
        if all(name in needed and needed[name] <= columns for name, columns in wanted.items()):
            frame, views = pruned, less
        else:
            frame = _query(session, sql, views, table)
    bad = [view.where(IS_BAD) for view in [*views.values(), *others.values()] if is_marked(view)]
    if not bad:
        return frame
    marked = add_marks(frame)
    for rows in bad:
        nothing = [F.lit(None).cast(field.dataType) for field in marked.schema.fields[:-1]]
        marked = marked.union(rows.select(*nothing, F.col(BAD)))
    return marked


def _label(view: str) -> str:
    return f"{_OF_VIEW}{view}"


def _register(name: str, view: DataFrame) -> None:
    good = view.where(f"NOT ({IS_BAD})").drop(BAD) if is_marked(view) else view
    good.createOrReplaceTempView(name)


def _query(session: SparkSession, sql: str, views: Mapping[str, DataFrame], table: str) -> DataFrame:
    for name, rows in views.items():
        _register(name, rows)
    try:
        frame = session.sql(sql)
    except SPARK_ERRORS as error:
        if views and _METADATA.search(sql) and "_metadata" in str(error):
            raise _refuse(table, "_metadata", next(iter(views))) from error
        raise
    asked = _ASKS_FOR_FILE.search(sql)
    if asked is not None and _asks_for_file(frame._jdf.queryExecution().analyzed()):
        uses = _find_uses(frame._jdf.queryExecution().analyzed(), ())
        labels = [str(use.reader.functionExpr().name()) for use in uses]
        view = next((label.removeprefix(_OF_VIEW) for label in labels if label.startswith(_OF_VIEW)), None)
        if view is not None:
            raise _refuse(table, f"{asked[1]}()", view)
    return frame


def _refuse(table: str, what: str, view: str) -> SpecInvalidError:
    return SpecInvalidError(
        f"table {table!r}: its sql: uses {what}, which would be empty: Spark does not read the files of view {view!r}, "
        "the tasks do.",
        remedy="Leave it out, or give each file a view of its own; or let Spark read the view, with engine: spark.",
    )


def _asks_for_file(plan: Any) -> bool:
    """Return True if an expression of a plan names a row's file."""
    return any(map(_names_file, list_elements(plan.expressions()))) or any(
        map(_asks_for_file, [*list_elements(plan.children()), *list_elements(plan.subqueries())])
    )


def _names_file(expression: Any) -> bool:
    return expression.getClass().getSimpleName() in _CLASSES or any(
        map(_names_file, list_elements(expression.children()))
    )


@dataclass(frozen=True)
class _Use:
    """A node of a plan that reads files, and the nodes above it, up to the first that names its columns."""

    reader: Any
    above: tuple[Any, ...]


def _find_wanted(frame: DataFrame, views: Mapping[str, DataFrame]) -> dict[str, set[str]]:
    """Return the columns that a statement uses of each view of files, according to Spark's plan.

    A view is left out if the statement uses all its columns, or if the plan does not name them.
    """
    if not views:
        return {}
    plan = frame._jdf.queryExecution().optimizedPlan()
    names = {_label(name): name for name in views}
    wanted: dict[str, set[str]] = {}
    whole = set[str]()
    for use in _find_uses(plan, ()):
        name = names.get(str(use.reader.functionExpr().name()))
        if name is None:
            continue
        columns = [column for column in views[name].columns if column != BAD]
        used = _find_columns(use, columns)
        wanted[name] = wanted.get(name, set()) | set(columns if used is None else used)
        if len(wanted[name]) == len(columns):
            whole.add(name)
    return {name: columns for name, columns in wanted.items() if name not in whole}


def _find_columns(use: _Use, columns: Sequence[str]) -> set[str] | None:
    """Return the columns that the nodes above a reader use; None if they may use all."""
    if not use.above or use.above[0].getClass().getSimpleName() not in _CHOOSES:
        return None
    used = [node.references() for node in use.above]
    outputs = zip(columns, list_elements(use.reader.output()), strict=False)
    return {name for name, column in outputs if any(references.contains(column) for references in used)}


def _find_uses(node: Any, above: tuple[Any, ...]) -> Iterator[_Use]:
    kind = node.getClass().getSimpleName()
    if kind == _READER:
        yield _Use(node, above)
    # A filter passes all columns on to the node above it.
    users = (*above, node) if kind == _PASSES_ALL else (node,)
    for child in list_elements(node.children()):
        yield from _find_uses(child, users)
    for inner in list_elements(node.subqueries()):
        yield from _find_uses(inner, ())
