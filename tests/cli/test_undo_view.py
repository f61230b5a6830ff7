"""What undo prints, and its JSON."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from lakewriter.cli.printed import UndoneTable, UndoReport
from lakewriter.cli.undo_view import show_undo

ORDERS = UndoneTable(
    table="shop.orders",
    job_id="n31",
    status="planned",
    next="n31.r2",
    view="partition",
    rows=8_000_000,
    files=2,
    requests=24,
    kept_minutes=15,
    cursor_before="41",
    cursor_after="17",
    notes=("gone already: 1 file of it, such as k",),
)
USERS = UndoneTable(table="shop.users", job_id="n31", status="already_undone", next="n31.r2")
FINISHED = USERS.model_copy(update={"status": "finished"})
PENDING = USERS.model_copy(update={"status": "pending", "notes": ("n32 is pending (uploaded)",)})
DONE = ORDERS.model_copy(
    update={"status": "undone", "view": "files", "kept_minutes": 0, "cursor_after": None, "notes": ()}
)
EMPTY = DONE.model_copy(update={"rows": 0, "files": 0, "cursor_after": "41"})

PRINTED = [
    (
        True,
        (ORDERS, USERS),
        [
            "shop.orders: load n31 would be undone: 8,000,000 rows in 2 files",
            "  readers see it go at once, with its partition",
            "  its files stay 15 minutes for queries that began before; then the table's next load deletes them",
            "  cursor: 41 back to 17",
            "  gone already: 1 file of it, such as k",
            "  about 24 requests",
            "shop.users: load n31 is undone already",
            "Nothing was changed: without --plan it is done.",
        ],
    ),
    (
        False,
        (DONE, EMPTY),
        [
            "shop.orders: load n31 is undone: 8,000,000 rows in 2 files",
            "  cursor: 41 back to none",
            "shop.orders: load n31 is undone: 0 rows in 0 files",
            "Load its rows again: lakewriter run 'a lake.yaml' --stage prod --job-id n31.r2",
            "A start for the same scheduled time takes this id by itself.",
        ],
    ),
    (False, (USERS,), ["shop.users: load n31 is undone already"]),
    (
        False,
        (FINISHED,),
        [
            "shop.users: load n31 is undone: its undo, which was pending, is finished",
            "Load its rows again: lakewriter run 'a lake.yaml' --stage prod --job-id n31.r2",
            "A start for the same scheduled time takes this id by itself.",
        ],
    ),
    (
        True,
        (PENDING,),
        [
            "shop.users: load n31 has no plan yet, since a change is pending",
            "  n32 is pending (uploaded)",
            "Nothing was changed: without --plan it is done.",
        ],
    ),
]


@pytest.mark.parametrize(("planned", "tables", "lines"), PRINTED)
def test_what_people_read(planned, tables, lines):
    out = Console(file=io.StringIO(), width=60, legacy_windows=False)
    report = UndoReport(job_id="n31", planned=planned, next="n31.r2", tables=tables)
    show_undo(out, report, Path("a lake.yaml"), ("--stage", "prod"))
    assert isinstance(out.file, io.StringIO)
    assert out.file.getvalue().splitlines() == lines
