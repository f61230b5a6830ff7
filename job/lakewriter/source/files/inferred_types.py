"""Infer types for columns of text if every value fits, as the option inferSchema asks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.cast.exact_text import TextForm
from lakewriter.cast.strict_cast import cast_text
from lakewriter.column_types import UTC_MICROS, note_type, read_noted_type
from lakewriter.receipt import InferredType
from lakewriter.source.bad_rows import Marked
from lakewriter.source.declared_columns import ColumnCast
from lakewriter.source.files.file_reader import FileReader, Piece, Spread
from lakewriter.source.files.known_types import TypeFit

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

_HOLDS: Final[Mapping[str, frozenset[int]]] = {
    "tinyint": frozenset({0, 1, 2}),
    "smallint": frozenset({0, 1, 2}),
    "int": frozenset({0, 1, 2}),
    "bigint": frozenset({1, 2}),
    "double": frozenset({2}),
    # A date is the midnight of a timestamp.
    "date": frozenset({3, 4}),
    "timestamp": frozenset({4}),
    "boolean": frozenset({5}),
}
"""The types of the ladder that hold all values of a type, by their indexes; a double not always those of bigint."""
_DOUBLE: Final = 2

Candidates = tuple[tuple[int, ...], ...]
"""For each column the indexes of the types that it may have, in the ladder or behind it."""


@dataclass(frozen=True)
class Inferred:
    """The types of columns of text.

    ``noted`` are those that the table's state keeps. The columns of ``casts`` are read as text and cast then, since
    they have values that do not fit the types of earlier loads.
    """

    schema: pa.Schema
    noted: tuple[InferredType, ...]
    casts: tuple[ColumnCast, ...]
    has_rows: bool


def infer_types(
    reader: FileReader, schema: pa.Schema, pieces: Sequence[Piece], fit: TypeFit, spread: Spread
) -> Inferred:
    """Return the types of the columns of text that are not declared; null for one without a value."""
    declared = {name.lower() for name in fit.declared or ()}
    asked = [field.name.lower() not in declared and pa.types.is_string(field.type) for field in schema]
    before = [fit.find(field.name) if is_asked else None for field, is_asked in zip(schema, asked, strict=True)]
    kinds = tuple(_list_kinds(one) if is_asked else () for one, is_asked in zip(before, asked, strict=True))
    results: list[tuple[Candidates, tuple[bool, ...], bool]] = spread(partial(_infer, reader, schema, kinds), pieces)
    fields, casts, noted = list(schema), [], []
    for index, field in enumerate(schema):
        if not asked[index]:
            continue
        one, has_values = before[index], any(filled[index] for _, filled, _ in results)
        every = range(len(kinds[index]))
        fitting = [number for number in every if all(number in candidates[index] for candidates, *_ in results)]
        kind = _choose_type(one, kinds[index], fitting) if has_values else pa.null()
        if one is not None:
            kind, has_misfits = fit.fit(field.name, one, kind)
            if has_misfits:
                casts.append(ColumnCast(index, field.name, field.type, kind, TextForm(), _UNLIKE.get(kind)))
        fields[index] = field if any(cast.index == index for cast in casts) else field.with_type(kind)
        is_beyond = _DOUBLE not in fitting or (one is not None and one.beyond_double)
        note = note_type(field.name, kind, beyond_double=is_beyond)
        noted += [note] if note is not None and (has_values or one is not None) else []
    return Inferred(pa.schema(fields), tuple(noted), tuple(casts), any(has_rows for *_, has_rows in results))


def _list_kinds(before: InferredType | None) -> tuple[pa.DataType, ...]:
    """Return the types that a column may have: those of the ladder, and the one that it has had."""
    kind = None if before is None else read_noted_type(before)
    return _LADDER if kind is None or kind in _LADDER or pa.types.is_nested(kind) else (*_LADDER, kind)


def _choose_type(before: InferredType | None, kinds: Sequence[pa.DataType], fitting: Sequence[int]) -> pa.DataType:
    """Return the type of a column's values and of those that it has had."""
    if before is None:
        return kinds[fitting[0]] if fitting else pa.string()
    kind = read_noted_type(before)
    if kind in [kinds[number] for number in fitting]:
        return kind
    held = _HOLDS.get(before.type, frozenset()) - ({_DOUBLE} if before.beyond_double else set())
    return next((_LADDER[number] for number in fitting if number in held), pa.string())


def _infer(
    reader: FileReader, schema: pa.Schema, kinds: Sequence[Sequence[pa.DataType]], piece: Piece
) -> tuple[Candidates, tuple[bool, ...], bool]:
    """Return the candidates of the columns of one piece, a flag for each that is true if it has a value, and one that
    is true if the piece has a row without a fault."""
    candidates = [tuple(range(len(of_column))) for of_column in kinds]
    filled, has_rows = [False] * len(kinds), False
    for batch in reader.read(piece, schema):
        has_rows |= Marked(batch).marks.field("reason").null_count > 0
        for index, numbers in enumerate(candidates):
            values = batch.column(index)
            filled[index] |= values.null_count < len(values)
            candidates[index] = tuple(number for number in numbers if _is_all(values, kinds[index][number]))
    return tuple(candidates), tuple(filled), has_rows


def _is_all(values: pa.Array, kind: pa.DataType) -> bool:
    return all(_is_fitting(part, kind) for part in (values[:_FIRST_ROWS], values))


def _is_fitting(values: pa.Array, kind: pa.DataType) -> bool:
    pattern = _UNLIKE.get(kind)
    if pattern is not None and pc.any(pc.match_substring_regex(values, pattern)).as_py():
        return False
    return cast_text(values, kind).misfits is None
