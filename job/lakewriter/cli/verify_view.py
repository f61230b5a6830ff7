"""The work of ``lakewriter verify``."""

from pathlib import Path

from lakewriter.cli import console
from lakewriter.cli.exit_reasons import find_verify_error
from lakewriter.cli.printed import VerifiedLoads
from lakewriter.cli.shared import OUT, open_context, print_json
from lakewriter.exit_codes import EXIT_OK
from lakewriter.operate.row_counts import Counting
from lakewriter.operate.verification import Verified, choose_exit_code, verify, verify_all


def verify_one(lake: Path, stage: str | None, job_id: str, *, rows: bool, as_json: bool) -> int:
    """Compare one load, and print what differs."""
    context = open_context(lake, stage)
    verified = verify(context.controls(), job_id, context.clients, Counting.of(context.spec) if rows else None)
    if as_json:
        print_json(verified, find_verify_error([verified]))
    else:
        console.show_verified(OUT, verified)
    return verified.exit_code


def verify_every(lake: Path, stage: str | None, *, rows: bool, as_json: bool) -> int:
    """Compare every load whose records are kept, and print what differs."""
    context = open_context(lake, stage)
    loads: list[Verified] = []
    for verified in verify_all(context.controls(), context.clients, Counting.of(context.spec) if rows else None):
        loads.append(verified)
        if not as_json:
            console.show_verified(OUT, verified)
    if as_json:
        print_json(VerifiedLoads(loads=tuple(loads)), find_verify_error(loads))
    elif not loads:
        OUT.print("no load has records that are kept")
    return choose_exit_code(loads) if loads else EXIT_OK
