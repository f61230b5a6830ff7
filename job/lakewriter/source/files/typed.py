"""Columns of text as the types that are declared for them; a value that does not fit makes its row a bad one."""

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.declared.exact_text import TextForm
from lakewriter.source.bad_rows import BAD_FIELD
from lakewriter.source.declared_columns import ColumnCast, cast_batch
from lakewriter.source.files.options import Options

_BATCH_ROWS: Final = 65_536


def make_form(options: Options) -> TextForm:
    """Return how dates and times are spelled by a reader's options."""
    dates, times = options.get("dateFormat"), options.get("timestampFormat", "timestampNTZFormat")
    return TextForm(date_format=dates, timestamp_format=times, zone=options.get("timeZone") or "UTC")


def make_batches(
    columns: Sequence[pa.Array], schema: pa.Schema, marks: pa.StructArray, form: TextForm
) -> Iterator[pa.RecordBatch]:
    """Yield columns of text in the types of ``schema``, with their marks behind them, 65,536 rows at a time at most."""
    texts = pa.schema([*(field.with_type(pa.string()) for field in schema), BAD_FIELD])
    whole = pa.RecordBatch.from_arrays([*columns, marks], schema=texts)
    casts = [
        ColumnCast(place, field.name, pa.string(), field.type, form)
        for place, field in enumerate(schema)
        if not pt.is_string(field.type)
    ]
    for start in range(0, whole.num_rows, _BATCH_ROWS):
        batch = whole.slice(start, _BATCH_ROWS)
        # Marked rows need no place for messages.
        yield cast_batch(batch, casts, "", "") if casts else batch
