"""``lakewriter abandon``, ``reset`` and ``rebuild``: what a person does to a table's state, with the reason kept."""

from pathlib import Path
from typing import Any

import click

from lakewriter.cli.completing import complete_table
from lakewriter.cli.shared import JSON, LAKE, LOCAL, STAGE, report_errors
from lakewriter.errors import SpecInvalidError
from lakewriter.operate import job_ids

REASON = click.option("--reason", required=True, help="The reason, kept in the table's state.")


@click.command()
@LAKE
@click.argument("job")
@click.option(
    "--intent-lost", is_flag=True, help="End a load whose intent, the record of what it was to commit, is gone."
)
@REASON
@STAGE
@LOCAL
@JSON
@report_errors
def abandon(lake: Path, job: str, intent_lost: bool, reason: str, stage: str | None, as_json: bool) -> int:
    """Give up a pending load that cannot be finished. This acts on every table in which it is pending.

    JOB is the load's job id, as status shows it.
    """
    from lakewriter.cli import repairs

    done = repairs.abandon(lake, stage, job_ids.require_job_id(job), reason, intent_lost=intent_lost)
    return repairs.show(done, as_json=as_json)


@click.command()
@LAKE
@click.argument("table", shell_complete=complete_table)
@click.option("--cursor", help="The next load reads rows above this value.")
@click.option("--type", "kind", help="The cursor's type, if the table has none yet: int64, string, date32[day], ...")
@click.option("--no-cursor", "way", flag_value="no-cursor", help="The next load reads everything.")
@click.option(
    "--backfill", "way", flag_value="backfill", help="Raise the backfill number; the next load reads everything."
)
@click.option("--files-read", "way", flag_value="files-read", help="All files that are there now count as read.")
@click.option("--files-unread", "way", flag_value="files-unread", help="No file counts as read.")
@click.option("--files-noted", "way", flag_value="files-noted", help="The noted files are all that were read.")
@click.option("--go-on", "way", flag_value="go-on", help="Let a continuous run follow single loads, or the reverse.")
@REASON
@STAGE
@LOCAL
@JSON
@report_errors
def reset(
    lake: Path, table: str, cursor: str | None, kind: str | None, way: str | None, as_json: bool, **options: Any
) -> int:
    """Move a table's cursor, or load the table anew. Or change between single loads and a continuous run.

    TABLE is the name of a table as status shows it. Nothing that is loaded is deleted.
    """
    if (cursor is None) == (way is None):
        raise SpecInvalidError(
            "expected one of --cursor VALUE, --no-cursor, --backfill, --files-read, --files-unread, --files-noted and "
            "--go-on."
        )
    from lakewriter.cli import repairs

    stage, reason = options["stage"], options["reason"]
    if way is not None and way.startswith("files-"):
        done = repairs.reset_files(lake, stage, table, way, reason)
    elif way in ("backfill", "go-on"):
        done = repairs.change_loads(lake, stage, table, way, reason)
    else:
        done = repairs.move_cursor(lake, stage, table, cursor, kind, reason)
    return repairs.show(done, as_json=as_json)


@click.command()
@LAKE
@click.argument("table", shell_complete=complete_table)
@click.option("--cursor", help="The highest value read so far, if no record of a load has it.")
@click.option("--type", "kind", help="The cursor's type: int64, string, date32[day], ...")
@click.option("--no-cursor", "from_start", is_flag=True, help="If no record has one, the next load reads everything.")
@REASON
@STAGE
@LOCAL
@JSON
@report_errors
def rebuild(
    lake: Path, table: str, cursor: str | None, kind: str | None, from_start: bool, as_json: bool, **options: Any
) -> int:
    """Create a table's missing state from its loads. Their records and objects are read.

    TABLE is the name of a table of the file. Its state is the object that says what is committed.
    """
    if (cursor is None) != (kind is None) or (cursor is not None and from_start):
        raise SpecInvalidError("expected --cursor VALUE with --type TYPE, or --no-cursor, or neither.")
    from lakewriter.cli import repairs

    typed_cursor = None if cursor is None or kind is None else (kind, cursor)
    done = repairs.rebuild(lake, options["stage"], table, typed_cursor, options["reason"], from_start=from_start)
    return repairs.show(done, as_json=as_json)
