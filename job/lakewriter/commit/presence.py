"""Check that a load that is done is still in its catalog."""

from lakewriter.aws import Clients
from lakewriter.commit.catalog import open_catalog_writer
from lakewriter.commit.control import Control
from lakewriter.errors import LoadGoneError
from lakewriter.records.changes import Intent, Load


def require_presence(control: Control, job_id: str, clients: Clients) -> None:
    """Raise ``LOAD_GONE`` where the table's report says that the load is done and its catalog does not have it.

    A load that was abandoned is not checked: it may never have been in the catalog.
    """
    report = control.read_report(job_id)
    if report is None or report.abandoned is not None:
        return
    intent = control.find_intent(job_id, report.attempt)
    if intent is not None and (why := open_catalog_writer(intent, clients).explain_absence(intent)):
        raise make_load_gone_error(intent, why)


def make_load_gone_error(intent: Intent, why: str) -> LoadGoneError:
    """Make the error for a load that is committed and no longer in its table."""
    reset = f"lakewriter reset LAKE {intent.table_id}"
    remedy = "Load its rows again under a new job id"
    if not isinstance(intent, Load):
        remedy = f"Make the change again: {intent.job_id!r}"
    elif intent.batch is not None:
        remedy = f"Load all again in a new stream: {reset} --backfill --reason WHY"
    elif intent.cursor_before is not None:
        remedy += f", once its cursor is back: {reset} --cursor {intent.cursor_before.text} --reason WHY"
    elif intent.cursor_after is not None:
        remedy += f", once its cursor is taken away: {reset} --no-cursor --reason WHY"
    return LoadGoneError(
        f"load {intent.job_id!r} of table {intent.table_id} was committed, and readers do not see it any more: {why}.",
        remedy=f"{remedy}. Or make the snapshot that has it the current one.",
    )
