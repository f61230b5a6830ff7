"""Build columns of documents that are parsed one by one. A value that does not fit its column makes its row bad."""

import math
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.cast.exact_text import DEFAULT, TextForm, explain_undeclared
from lakewriter.cast.json_text import NumberText, describe_value, write_text
from lakewriter.cast.strict_cast import cast_text, explain_misfit
from lakewriter.column_types import name_type
from lakewriter.documents.nesting import write_json_pointer

Path = tuple[str, ...]
EXACT_DIGITS: Final = 15
"""A double stores every number of up to so many digits. https://en.cppreference.com/w/cpp/types/numeric_limits/digits10"""


@dataclass(frozen=True)
class Columns:
    """The columns into which documents are read.

    Columns ``declared`` by a user accept texts for numbers and truth values too. Keys that differ from them by case
    alone are faults, and so are members that the struct of such a column has not. With ``is_sampled`` the types of the
    others are those of some documents only. ``form`` is the spelling of dates and times.
    """

    schema: pa.Schema
    declared: frozenset[str] = frozenset()
    is_sampled: bool = False
    form: TextForm = DEFAULT
    shown: Mapping[str, str] = field(default_factory=dict)
    """The common names of columns that one file spells otherwise."""


@dataclass(frozen=True)
class Built:
    """The columns of documents.

    ``misfits`` has for each row, by column, the reasons why values do not fit, which are null; ``others`` has the
    reasons why a row does not fit the columns at all.
    """

    arrays: list[pa.Array]
    misfits: dict[int, dict[str, str]]
    others: dict[int, str]


def build_columns(columns: Columns, documents: Sequence[Mapping[str, Any]]) -> Built:
    """Return the columns of documents."""
    builder = _Builder(columns)
    rows = range(len(documents))
    arrays = [
        builder.build(column.type, [document.get(column.name) for document in documents], rows, (column.name,))
        for column in columns.schema
    ]
    builder.tell_other_spellings(sorted(columns.declared), documents, rows, ())
    for index, name in enumerate(columns.schema.names):
        if any(name in of_row for of_row in builder.misfits.values()):
            row_numbers = [None if name in builder.misfits.get(row, ()) else row for row in rows]
            arrays[index] = arrays[index].take(pa.array(row_numbers, pa.int64()))
    return Built(arrays, builder.misfits, builder.others)


class _Builder:
    """A builder of columns; ``misfits`` and ``others`` have the first reason of each."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.misfits: dict[int, dict[str, str]] = {}
        self.others: dict[int, str] = {}

    def build(self, kind: pa.DataType, values: Sequence[Any], rows: Sequence[int], path: Path) -> pa.Array:
        """Return the array of ``values``, which are those of ``rows``."""
        if pt.is_struct(kind):
            return self._build_structs(kind, values, rows, path)
        if pt.is_map(kind):
            return self._build_maps(kind, values, rows, path)
        if pt.is_list(kind):
            return self._build_lists(kind, values, rows, path)
        return self._build_scalars(kind, values, rows, path)

    def tell_other_spellings(
        self, names: Sequence[str], objects: Sequence[Mapping[str, Any] | None], rows: Sequence[int], path: Path
    ) -> None:
        """Record keys that differ from a column by case alone, if their object has no key of the column's name."""
        folded = {name.lower(): name for name in names}
        column_names = {*names, *self.columns.schema.names} if not path else set(names)
        for value, row in zip(objects, rows, strict=True):
            for key in (value or {}).keys() - column_names:
                name = folded.get(key.lower())
                if value is not None and name is not None and name not in value:
                    reason = f"its key {key!r} differs by case from the column {'.'.join((*path, name))!r}"
                    self.others.setdefault(row, reason)

    def _add(self, row: int, path: Path, value: Any, what: str) -> None:
        """Record why a value does not fit. An inner value is named by its path."""
        inside = f"in {write_json_pointer(path[1:])} {describe_value(value)}" if path[1:] else "it"
        self.misfits.setdefault(row, {}).setdefault(path[0], f"{inside} {what}")

    def _build_structs(self, kind: pa.DataType, values: Sequence[Any], rows: Sequence[int], path: Path) -> pa.Array:
        objects = [self._require(value, dict, kind, row, path) for value, row in zip(values, rows, strict=True)]
        if path[0] in self.columns.declared:
            names = {member.name for member in kind}
            self.tell_other_spellings(sorted(names), objects, rows, path)
            for value, row in zip(objects, rows, strict=True):
                if value is not None and (unknown := value.keys() - names):
                    self._add(row, path, value, f"does not fit {name_type(kind)}: {explain_undeclared(unknown)}")
        members = [
            self.build(
                member.type,
                [None if value is None else value.get(member.name) for value in objects],
                rows,
                (*path, member.name),
            )
            for member in kind
        ]
        is_null = pa.array([value is None for value in objects], pa.bool_())
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=is_null)

    def _build_lists(self, kind: pa.DataType, values: Sequence[Any], rows: Sequence[int], path: Path) -> pa.Array:
        lists = [self._require(value, list, kind, row, path) for value, row in zip(values, rows, strict=True)]
        inner = [item for value in lists for item in value or ()]
        of_inner = [row for value, row in zip(lists, rows, strict=True) for _ in value or ()]
        items = self.build(kind.value_type, inner, of_inner, (*path, "*"))
        return pa.ListArray.from_arrays(_count_offsets(lists), items, type=kind)

    def _build_maps(self, kind: pa.DataType, values: Sequence[Any], rows: Sequence[int], path: Path) -> pa.Array:
        maps = [self._require(value, dict, kind, row, path) for value, row in zip(values, rows, strict=True)]
        of_inner = [row for value, row in zip(maps, rows, strict=True) for _ in value or ()]
        keys = pa.array([key for value in maps for key in value or ()], kind.key_type)
        inner = [item for value in maps for item in (value or {}).values()]
        items = self.build(kind.item_type, inner, of_inner, (*path, "*"))
        return pa.MapArray.from_arrays(_count_offsets(maps), keys, items, type=kind)

    def _require(self, value: Any, expected: type, kind: pa.DataType, row: int, path: Path) -> Any:
        if value is None or isinstance(value, expected):
            return value
        self._add(row, path, value, f"does not fit {name_type(kind)}")
        return None

    def _build_scalars(self, kind: pa.DataType, values: Sequence[Any], rows: Sequence[int], path: Path) -> pa.Array:
        if pt.is_string(kind):
            return pa.array(
                [value if value is None or type(value) is str else write_text(value) for value in values], kind
            )
        form = self.columns.form
        texts = [self._take_text(value, kind, row, path) for value, row in zip(values, rows, strict=True)]
        if pt.is_binary(kind):
            return pa.array([self._decode(text, row, path) for text, row in zip(texts, rows, strict=True)], kind)
        cast = cast_text(pa.array(texts, pa.string()), kind, form)
        if cast.misfits is not None:
            for index in cast.misfits.fill_null(False).to_numpy(zero_copy_only=False).nonzero()[0].tolist():
                why = explain_misfit(str(texts[index]), kind, form)
                self._add(rows[index], path, values[index], f"does not fit {name_type(kind)}: {why}")
        if pt.is_float64(kind) and path[0] not in self.columns.declared:
            for text, row in zip(texts, rows, strict=True):
                if text is not None and len(text) > EXACT_DIGITS and not keeps_digits(text):
                    self._add(row, path, NumberText(text), "has more digits than a double")
        return cast.values

    def _take_text(self, value: Any, kind: pa.DataType, row: int, path: Path) -> str | None:
        """Return the text to be cast; None if the value is of another kind than the column."""
        if value is None:
            return None
        if isinstance(value, NumberText):
            fits = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind)
        elif isinstance(value, bool):
            fits = pt.is_boolean(kind)
        else:
            fits = isinstance(value, str) and (pt.is_temporal(kind) or pt.is_binary(kind))
        if path[0] in self.columns.declared and not pt.is_binary(kind):
            # The cast accepts the text of values of any kind.
            fits = not isinstance(value, dict | list)
        if not fits:
            self._add(row, path, value, f"does not fit {name_type(kind)}")
            return None
        return write_text(value) if isinstance(value, bool) else str(value)

    def _decode(self, text: str | None, row: int, path: Path) -> bytes | None:
        try:
            return None if text is None else b64decode(text, validate=True)
        except ValueError:
            self._add(row, path, text, "does not fit binary: it is not base64")
            return None


def keeps_digits(text: str) -> bool:
    """Return True if a double keeps all digits of a number, which its shortest text then shows."""
    number = float(text)
    if math.isinf(number) or not number:
        return not number and not re.search("[1-9]", text.lower().partition("e")[0])
    return Decimal(repr(number)) == Decimal(text)


def _count_offsets(values: Sequence[Any]) -> pa.Array:
    """Return the start of each list among all items; null for a list that is null."""
    offsets: list[int | None] = []
    end = 0
    for value in values:
        offsets.append(None if value is None else end)
        end += 0 if value is None else len(value)
    return pa.array([*offsets, end], pa.int32())
