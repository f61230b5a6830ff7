"""Intents of loads that were staged by nobody."""

from typing import Any

from lakewriter.commit.actions import FilesAction
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.intent import Intent
from lakewriter.receipt import Cursor, Receipt
from lakewriter.spec.access import Access


def intent(
    own: Attempt,
    receipts: tuple[Receipt, ...] = (),
    before: Cursor | None = None,
    after: Cursor | None = None,
    **fields: Any,
) -> Intent:
    """That of an attempt at table ``s.t`` without a catalog, but for ``fields``."""
    plain = {
        "table_id": "s.t",
        "schema_name": "s",
        "table": "t",
        "access": Access(bucket="b", region="us-east-1"),
        "catalog": FilesAction(),
    }
    return Intent(
        pipeline=own.pipeline,
        job_id=own.job_id,
        attempt=own.id,
        started=own.started,
        receipts=receipts,
        cursor_before=before,
        cursor_after=after,
        feed="rows",
        staged_seconds=0,
        **plain | fields,
    )
