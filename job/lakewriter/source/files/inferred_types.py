"""Infer types for columns of text if every value fits, as the option inferSchema asks."""

from collections.abc import Sequence, Set
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.cast.strict_cast import cast_text
from lakewriter.column_types import UTC_MICROS
from lakewriter.source.files.file_reader import FileReader, Piece, Spread

_LADDER: Final = (pa.int32(), pa.int64(), pa.float64(), pa.date32(), UTC_MICROS, pa.bool_())
"""The first type that all values of a column have is chosen."""
_FIRST_ROWS: Final = 100
_UNLIKE: Final = {
    # Codes and numbers beyond a double's digits would be others, and 1 and yes are no booleans unless declared so.
    pa.int32(): r"^[+-]?0[0-9]|^\+",
    pa.int64(): r"^[+-]?0[0-9]|^\+",
    pa.float64(): r"^[+-]?0[0-9]|^\+|(?:[0-9]\.?){16}",
    pa.bool_(): r"^(?i:t|f|yes|no|y|n|1|0)$",
}
"""Texts that would convert to a type but do not count as its values."""

Candidates = tuple[tuple[int, ...], ...]
"""For each column the indexes in the ladder of the types that it may have."""


def infer_types(
    reader: FileReader, schema: pa.Schema, pieces: Sequence[Piece], declared: Set[str], spread: Spread
) -> pa.Schema:
    """Return the schema with a type for each column of text that is not ``declared``."""
    asked = tuple(field.name.lower() not in declared and pa.types.is_string(field.type) for field in schema)
    every = tuple(range(len(_LADDER)))
    results: list[tuple[Candidates, tuple[bool, ...]]] = spread(partial(_infer, reader, schema, asked), pieces)
    fields = list(schema)
    for index, field in enumerate(schema):
        has_values = any(filled[index] for _, filled in results)
        fitting = [number for number in every if all(number in candidates[index] for candidates, _ in results)]
        if asked[index] and has_values and fitting:
            fields[index] = field.with_type(_LADDER[fitting[0]])
    return pa.schema(fields)


def _infer(
    reader: FileReader, schema: pa.Schema, asked: Sequence[bool], piece: Piece
) -> tuple[Candidates, tuple[bool, ...]]:
    """Return the candidates of the columns of one piece, and a flag for each that is true if it has a value."""
    candidates = [tuple(range(len(_LADDER))) if is_asked else () for is_asked in asked]
    filled = [False] * len(asked)
    for batch in reader.read(piece, schema):
        for index, numbers in enumerate(candidates):
            values = batch.column(index)
            filled[index] |= values.null_count < len(values)
            candidates[index] = tuple(number for number in numbers if _is_all(values, _LADDER[number]))
    return tuple(candidates), tuple(filled)


def _is_all(values: pa.Array, kind: pa.DataType) -> bool:
    return all(_is_fitting(part, kind) for part in (values[:_FIRST_ROWS], values))


def _is_fitting(values: pa.Array, kind: pa.DataType) -> bool:
    pattern = _UNLIKE.get(kind)
    if pattern is not None and pc.any(pc.match_substring_regex(values, pattern)).as_py():
        return False
    return cast_text(values, kind).misfits is None
