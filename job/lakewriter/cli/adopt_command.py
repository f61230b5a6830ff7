"""``lakewriter adopt``: go on from the files that another writer has left in the bucket."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lakewriter.cli.shared import JSON, LAKE, LOCAL, OUT, STAGE, TABLES, open_context, print_json, report_errors
from lakewriter.errors import SpecInvalidError
from lakewriter.exit_codes import EXIT_OK

if TYPE_CHECKING:
    from lakewriter.operate.adoption import LeftFiles
    from lakewriter.receipt import Cursor

_MOST_NAMED = 5


@click.command()
@LAKE
@click.option("--write", "writes", is_flag=True, help="Change the states. Without it they are only described.")
@click.option(
    "--cursor",
    "cursors",
    multiple=True,
    metavar="[TABLE=]VALUE",
    help="How far the other writer has read: the next load reads rows above it. Repeatable, for several tables.",
)
@click.option("--type", "kind", default="string", show_default=True, help="The cursor's type: int64, string, ...")
@click.option("--from-start", is_flag=True, help="The next loads of tables without --cursor read all rows.")
@click.option("--stopped", is_flag=True, help="Say that the other writer is stopped, and stays so.")
@click.option("--reason", default="lakewriter adopt", help="The reason, kept in the tables' states.")
@TABLES
@STAGE
@LOCAL
@JSON
@report_errors
def adopt(lake: Path, stage: str | None, writes: bool, as_json: bool, **options: Any) -> int:
    """Go on from the files that a vendor's connector, or a lost pipeline, has left in the bucket.

    Nothing of them is changed or loaded again. The bucket does not show how far the source was read: say it by --cursor
    or --from-start.
    """
    from lakewriter.operate.adoption import adopt_found, find_files

    context = open_context(lake, stage)
    tables = find_files(context.spec, context.clients)
    done: dict[str, bool] = {}
    if writes:
        if not options["stopped"]:
            raise SpecInvalidError(
                "--write needs --stopped: a connector that still runs writes at the numbers that the next load takes.",
                remedy="Stop the vendor's task first, then say so by --stopped.",
            )
        cursors = _read_cursors(tables, options["cursors"], options["kind"], from_start=options["from_start"])
        done = adopt_found(context.spec, context.clients, tables, cursors, options["reason"])
    if as_json:
        from lakewriter.cli.printed import AdoptReport

        print_json(AdoptReport(tables=tables, states=done))
        return EXIT_OK
    for left in tables:
        _say(_describe(left))
    if any(left.is_adoptable for left in tables):
        _say(_conclude(tables, writes=writes))
    return EXIT_OK


def _read_cursors(
    tables: "Sequence[LeftFiles]", given: Sequence[str], kind: str, *, from_start: bool
) -> "dict[str, Cursor | None]":
    """Read how far each table with files is read; ``SPEC_INVALID`` for one of which nothing says it."""
    from lakewriter.report import join_first
    from lakewriter.shape.cursor import parse_cursor

    asked = [left.table for left in tables if left.asks_where]
    values: dict[str, Cursor | None] = {}
    for text in given:
        table, is_named, value = text.partition("=")
        if is_named and table in asked:
            values[table] = parse_cursor(kind, value)
        elif len(asked) == 1:
            values[asked[0]] = parse_cursor(kind, text)
        else:
            raise SpecInvalidError(
                f"--cursor {text!r} names no table that was found, expected TABLE=VALUE.",
                remedy=f"The tables are {join_first(asked, _MOST_NAMED) or 'none'}.",
            )
    missing = [table for table in asked if table not in values]
    if missing and not from_start:
        raise SpecInvalidError(
            f"nothing says how far {join_first(missing, _MOST_NAMED)} was read: the bucket does not show that.",
            remedy="Give --cursor TABLE=VALUE, the highest value that the other writer has written; or --from-start to "
            "load all rows again, behind those that are there.",
        )
    return values | dict.fromkeys(missing)


def _describe(left: "LeftFiles") -> str:
    writers = left.describe_writers()
    if not left.is_adoptable:
        return f"{left.table}: nothing to go on from{f' ({writers})' if writers else ''}"
    numbers = ""
    if left.counter:
        numbers = f", the next file is number {left.counter} of backfill {left.backfill}"
    elif left.generation_id or left.sync_id:
        numbers = f", generation {left.generation_id}, sync {left.sync_id}"
    return f"{left.table}: {writers}, the newest {left.last}{numbers}"


def _conclude(tables: "Sequence[LeftFiles]", *, writes: bool) -> str:
    numbered = any(left.counter for left in tables)
    last = " The last files may be uncommitted: the connector overwrites them if it starts again." if numbered else ""
    if writes:
        return f"The next load goes on from there.{last}"
    return f"Nothing is written; --write --stopped with --cursor or --from-start goes on from there.{last}"


def _say(line: str) -> None:
    OUT.print(line, markup=False, soft_wrap=True)
