"""The kinds of plan, and the shaper for each."""

from datetime import datetime
from typing import Protocol

import pyarrow as pa

from lakewriter.receipt import Cursor, Findings
from lakewriter.shape.envelope import EnvelopePlan, EnvelopeShaper
from lakewriter.shape.flatten_plan import FlattenPlan
from lakewriter.shape.flattening import Flattener
from lakewriter.shape.records import RecordsPlan, RecordsShaper
from lakewriter.shape.stored_rows import StoredRowsPlan, StoredRowsShaper
from lakewriter.shape.table import Shaped, ShapePlan, Shaper
from lakewriter.shape.text_rows import TextRowsPlan, TextRowsShaper

AnyPlan = ShapePlan | TextRowsPlan | EnvelopePlan | FlattenPlan


class AnyShaper(Protocol):
    """Shaper of a task's batches, in order."""

    def shape(self, batch: pa.RecordBatch) -> Shaped:
        """Return ``batch`` with exactly the plan's schema."""

    def take_cursor(self) -> tuple[Cursor | None, int]:
        """Return the highest cursor and the number of null ones since the last call; both start anew."""

    def read_cursor(self, batch: pa.RecordBatch) -> Cursor | None:
        """Return the highest cursor of rows that do not go into the table; None where none of them has one."""

    def take_findings(self) -> Findings:
        """Return the findings since the last call."""


def make_shaper(plan: AnyPlan | StoredRowsPlan, *, job_id: str, start: datetime, first_index: int) -> AnyShaper:
    """Return the shaper of one task."""
    if isinstance(plan, StoredRowsPlan):
        return StoredRowsShaper()
    if isinstance(plan, FlattenPlan):
        return Flattener(plan)
    if isinstance(plan, EnvelopePlan):
        return EnvelopeShaper(plan, job_id=job_id, start=start, first_index=first_index)
    if isinstance(plan, TextRowsPlan):
        return TextRowsShaper(plan, job_id=job_id, start=start, first_index=first_index)
    if isinstance(plan, RecordsPlan):
        return RecordsShaper(plan, job_id=job_id, start=start, first_index=first_index)
    return Shaper(plan, job_id=job_id, start=start, first_index=first_index)
