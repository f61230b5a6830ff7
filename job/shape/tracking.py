"""The columns the job adds, without computing a constant twice."""

from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from job.shape.ids import row_ids
from job.shape.plan import TRACKING_TYPES
from job.spec import Tracking


class TrackingValues:
    """Tracking columns of one attempt's rows, batch by batch."""

    def __init__(self, *, job_id: str, start: datetime) -> None:
        self._constants = {Tracking.SYNCED: start, Tracking.DELETED: False, Tracking.JOB_ID: job_id}
        self._longest: dict[Tracking, pa.Array] = {}

    def column(
        self, holds: Tracking, first_index: int, rows: int, keys: Sequence[pa.Array], deleted: pa.Array | None
    ) -> pa.Array:
        """``rows`` values of one kind; ``deleted`` is the feed's own column, null counting as false."""
        if holds is Tracking.INDEX:
            return pa.arange(first_index, first_index + rows)
        if holds is Tracking.ID:
            return row_ids(keys)
        if holds is Tracking.DELETED and deleted is not None:
            return pc.fill_null(deleted, False)
        return self._constant(holds, rows)

    def _constant(self, holds: Tracking, rows: int) -> pa.Array:
        known = self._longest.get(holds)
        if known is None or len(known) < rows:
            known = pa.repeat(pa.scalar(self._constants[holds], TRACKING_TYPES[holds]), rows)
            self._longest[holds] = known
        return known.slice(0, rows)
