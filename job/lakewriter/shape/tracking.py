"""The columns the job adds; row ids among them, the digests of the key columns' texts."""

from collections.abc import Sequence
from datetime import datetime
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.column_types import UTC_MICROS
from lakewriter.documents.values_to_text import render_text
from lakewriter.shape.digest import compute_digests
from lakewriter.spec.specification import Tracking

TRACKING_TYPES: Final = {
    Tracking.SYNCED: UTC_MICROS,
    Tracking.DELETED: pa.bool_(),
    Tracking.INDEX: pa.int64(),
    Tracking.ID: pa.string(),
    Tracking.JOB_ID: pa.string(),
}

NULL: Final = "\\N"
SEPARATOR: Final = "|"
ESCAPE: Final = "\\"


def compute_row_ids(columns: Sequence[pa.Array]) -> pa.Array:
    """Return the lower-case hex SHA-256 of ``write_key_texts``; ``columns`` hold the values as written."""
    return compute_digests(write_key_texts(columns))


def write_key_texts(columns: Sequence[pa.Array]) -> pa.Array:
    r"""Return the texts whose digests are the ids: one column's text as it is, several joined by ``|``.

    In joined texts ``\`` and ``|`` are escaped by ``\``, so no two rows with different keys have one text. Null is
    ``\N``, in one column alone too.
    """
    if len(columns) == 1:
        return pc.fill_null(render_text(columns[0]), NULL)
    escaped = [_escape_text(column) for column in columns]
    return pc.binary_join_element_wise(*escaped, SEPARATOR, null_handling="replace", null_replacement=NULL)


def _escape_text(column: pa.Array) -> pa.Array:
    plain = render_text(column)
    if not (pt.is_string(column.type) or pt.is_nested(column.type)):
        return plain
    return reduce(_escape, (ESCAPE, SEPARATOR), plain)


def _escape(array: pa.Array, character: str) -> pa.Array:
    if not pc.any(pc.match_substring(array, character)).as_py():
        return array
    return pc.replace_substring(array, character, ESCAPE + character)


class TrackingValues:
    """Tracking columns of one attempt's rows, batch by batch."""

    def __init__(self, *, job_id: str, start: datetime) -> None:
        self._constants = {Tracking.SYNCED: start, Tracking.DELETED: False, Tracking.JOB_ID: job_id}
        self._longest: dict[Tracking, pa.Array] = {}

    def make_column(
        self, holds: Tracking, first_index: int, rows: int, keys: Sequence[pa.Array], deleted: pa.Array | None
    ) -> pa.Array:
        """Return ``rows`` values of one kind; ``deleted`` is the feed's column, null counting as false."""
        if holds is Tracking.INDEX:
            return pa.arange(first_index, first_index + rows)
        if holds is Tracking.ID:
            return compute_row_ids(keys)
        if holds is Tracking.DELETED and deleted is not None:
            return pc.fill_null(deleted, False)
        return self._repeat_constant(holds, rows)

    def _repeat_constant(self, holds: Tracking, rows: int) -> pa.Array:
        longest = self._longest.get(holds)
        if longest is None or len(longest) < rows:
            longest = pa.repeat(pa.scalar(self._constants[holds], TRACKING_TYPES[holds]), rows)
            self._longest[holds] = longest
        return longest.slice(0, rows)
