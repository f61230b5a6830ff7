"""Cast columns of text to the types that are declared for them. A value that does not fit makes its row bad."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from lakewriter.cast.exact_text import TextForm
from lakewriter.source.bad_rows import mark_schema
from lakewriter.source.declared_columns import ColumnCast, cast_batch
from lakewriter.source.files.spark_options import Options

_BATCH_ROWS: Final = 65_536
_ZEROS: Final = b"0" * 300
MINUS: Final = ord("-")
LOWER: Final = 0x20
"""The bit that distinguishes small letters from capitals in ASCII."""
_IS_DIGIT: Final = np.zeros(256, np.bool_)
_IS_DIGIT[list(b"0123456789")] = True


def make_form(options: Options) -> TextForm:
    """Return the spelling of dates and times by a reader's options."""
    dates, times = options.get("dateFormat"), options.get("timestampFormat", "timestampNTZFormat")
    return TextForm(date_format=dates, timestamp_format=times, zone=options.get("timeZone") or "UTC")


def make_batches(
    columns: Sequence[pa.Array], schema: pa.Schema, marks: pa.StructArray, form: TextForm
) -> Iterator[pa.RecordBatch]:
    """Yield columns of text in the types of ``schema``, with marks as the last column, at most 65,536 rows at a time.

    Columns that have their types stay as they are.
    """
    read = [field.with_type(column.type) for field, column in zip(schema, columns, strict=True)]
    whole = pa.RecordBatch.from_arrays([*columns, marks], schema=mark_schema(read))
    casts = [
        ColumnCast(index, field.name, pa.string(), field.type, form)
        for index, field in enumerate(schema)
        if not read[index].type.equals(field.type)
    ]
    for start in range(0, whole.num_rows, _BATCH_ROWS):
        batch = whole.slice(start, _BATCH_ROWS)
        # Marked rows need no position for messages.
        yield cast_batch(batch, casts, "", "") if casts else batch


def may_write_small_numbers(data: bytes) -> bool:
    """Return True if a number may be written that is not zero but becomes zero as a double."""
    codes = np.frombuffer(data, np.uint8)
    minus = np.flatnonzero(codes == MINUS)
    minus = minus[(minus > 1) & (minus + 1 < len(codes))]
    is_exponent = ((codes[minus - 1] | LOWER) == ord("e")) & _IS_DIGIT[codes[minus + 1]]
    before = codes[minus - 2]
    return bool((is_exponent & (_IS_DIGIT[before] | (before == ord(".")))).any()) or _ZEROS in data
