"""The work of ``lakewriter sql``."""

import math
from pathlib import Path
from typing import Any, Final

from rich.table import Column, Table
from rich.text import Text

from lakewriter.cli.printed import SqlColumn, SqlReport
from lakewriter.cli.shared import ERR, OUT, open_context, print_json
from lakewriter.commit.at_once import call_all
from lakewriter.exit_codes import EXIT_OK
from lakewriter.operate.read_tables import find_missing, run_statement

_MOST_ROWS: Final = 200
"""The most rows that are printed; ``--json`` prints all."""


def print_rows(lake: Path, stage: str | None, statement: str, *, as_json: bool) -> int:
    """Run the statement over the tables of the file at ``lake``, and print its rows."""
    context = open_context(lake, stage)
    controls = context.controls()
    states = dict(zip(controls, call_all(lambda control: control.state.read(), controls.values()), strict=True))
    missing = find_missing(context.spec, controls, states)
    result = run_statement(context.spec, context.deployment, stage, missing, statement, context.clients)
    if as_json:
        columns = tuple(SqlColumn(name=field.name, type=str(field.type)) for field in result.rows.schema)
        print_json(SqlReport(engine=result.engine, columns=columns, rows=tuple(_list_rows(result.rows, _make_plain))))
        return EXIT_OK
    ERR.print(f"read by {result.engine}", markup=False)
    headers = (Column(Text(name)) for name in result.rows.column_names)
    shown = Table(*headers, box=None, header_style="bold", pad_edge=False)
    for row in _list_rows(result.rows.slice(0, _MOST_ROWS), lambda value: "null" if value is None else str(value)):
        shown.add_row(*map(Text, row))
    OUT.print(shown)
    if result.rows.num_rows > _MOST_ROWS:
        ERR.print(
            f"the first {_MOST_ROWS} of {result.rows.num_rows:,} rows; --json prints all, LIMIT reads fewer",
            markup=False,
        )
    return EXIT_OK


def _list_rows(rows: Any, convert: Any) -> list[tuple[Any, ...]]:
    columns = [[convert(value) for value in column.to_pylist()] for column in rows.columns]
    return list(zip(*columns, strict=True))


def _make_plain(value: Any) -> Any:
    """Return a value that JSON has: texts stand for dates, decimals and other values that it has not."""
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, dict):
        return {str(name): _make_plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_make_plain(part) for part in value]
    return value.hex() if isinstance(value, bytes) else str(value)
