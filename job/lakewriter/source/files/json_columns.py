"""Build columns of documents that are parsed one by one. A value that does not fit its column makes its row bad."""

import math
import re
from base64 import b64decode
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.cast.exact_text import DEFAULT, TextForm, explain_undeclared
from lakewriter.cast.json_text import NumberText, describe_value, write_text
from lakewriter.cast.strict_cast import cast_text, explain_misfit
from lakewriter.column_types import name_type
from lakewriter.documents.exact import ColumnBuilder, Locate, Objects, locate_below, locate_rows
from lakewriter.documents.nesting import write_json_pointer
from lakewriter.documents.types import DocumentType, Record, make_document_type
from lakewriter.source.text_types import EXACT_DIGITS


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
    arrays = [builder.build_column(column, documents) for column in columns.schema]
    builder.note_other_spellings(columns.declared, documents, locate_rows(range(len(documents))))
    for index, name in enumerate(columns.schema.names):
        if any(name in of_row for of_row in builder.misfits.values()):
            row_numbers = [None if name in builder.misfits.get(row, ()) else row for row in range(len(documents))]
            arrays[index] = arrays[index].take(pa.array(row_numbers, pa.int64()))
    return Built(arrays, builder.misfits, builder.others)


class _Builder(ColumnBuilder[Any]):
    """A builder of columns; ``misfits`` and ``others`` have the first reason of each."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.misfits: dict[int, dict[str, str]] = {}
        self.others: dict[int, str] = {}
        self._is_declared = False

    def build_column(self, column: pa.Field, documents: Sequence[Mapping[str, Any]]) -> pa.Array:
        """Return the values that documents have in a column."""
        self._is_declared = column.name in self.columns.declared
        values = [document.get(column.name) for document in documents]
        locate = locate_below(locate_rows(range(len(documents))), column.name)
        return self.build(make_document_type(column.type), column.type, values, locate)

    def note_other_spellings(self, names: Collection[str], objects: Objects[Any], locate: Locate) -> None:
        """Record keys that differ from a column by case alone, if their object has no key of the column's name."""
        folded = {name.lower(): name for name in sorted(names)}
        for position, value in enumerate(objects):
            for key in (value or {}).keys() - names:
                name = folded.get(key.lower())
                if value is None or name is None or name in value:
                    continue
                row, steps = locate(position)
                if steps or key not in self.columns.schema.names:
                    column = ".".join([*_write_steps(steps), name])
                    self.others.setdefault(row, f"its key {key!r} differs by case from the column {column!r}")

    def note_members(self, record: Record, kind: pa.StructType, objects: Objects[Any], locate: Locate) -> None:
        """See ``ColumnBuilder``."""
        if not self._is_declared:
            return
        names = {name for name, _ in record.fields}
        self.note_other_spellings(names, objects, locate)
        for position, value in enumerate(objects):
            if value is not None and (unknown := value.keys() - names):
                what = f"does not fit {name_type(kind)}: {explain_undeclared(unknown)}"
                self._add(locate, position, value, what)

    def open_values(self, expected: type, kind: pa.DataType, values: Sequence[Any], locate: Locate) -> Sequence[Any]:
        """See ``ColumnBuilder``."""
        for position, value in enumerate(values):
            if not (value is None or isinstance(value, expected)):
                self._add(locate, position, value, f"does not fit {name_type(kind)}")
        return [value if isinstance(value, expected) else None for value in values]

    def _add(self, locate: Locate, position: int, value: Any, what: str) -> None:
        """Record why a value does not fit. An inner value is named by its path."""
        row, (column, *inner) = locate(position)
        subject = f"in {write_json_pointer(_write_steps(inner))} {describe_value(value)}" if inner else "it"
        self.misfits.setdefault(row, {}).setdefault(str(column), f"{subject} {what}")

    def build_leaves(self, t: DocumentType, kind: pa.DataType, values: Sequence[Any], locate: Locate) -> pa.Array:
        """See ``ColumnBuilder``."""
        if pt.is_string(kind):
            return pa.array(
                [value if value is None or type(value) is str else write_text(value) for value in values], kind
            )
        form = self.columns.form
        texts = [self._take_text(value, kind, position, locate) for position, value in enumerate(values)]
        if pt.is_binary(kind):
            return pa.array([self._decode(text, position, locate) for position, text in enumerate(texts)], kind)
        cast = cast_text(pa.array(texts, pa.string()), kind, form)
        if cast.misfits is not None:
            for index in cast.misfits.fill_null(False).to_numpy(zero_copy_only=False).nonzero()[0].tolist():
                why = explain_misfit(str(texts[index]), kind, form)
                self._add(locate, index, values[index], f"does not fit {name_type(kind)}: {why}")
        if pt.is_float64(kind) and not self._is_declared:
            for position, text in enumerate(texts):
                if text is not None and len(text) > EXACT_DIGITS and not keeps_digits(text):
                    self._add(locate, position, NumberText(text), "has more digits than a double")
        return cast.values

    def _take_text(self, value: Any, kind: pa.DataType, position: int, locate: Locate) -> str | None:
        """Return the text to be cast; None if the value is of another kind than the column."""
        if value is None:
            return None
        if isinstance(value, NumberText):
            fits = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind)
        elif isinstance(value, bool):
            fits = pt.is_boolean(kind)
        else:
            fits = isinstance(value, str) and (pt.is_temporal(kind) or pt.is_binary(kind))
        if self._is_declared and not pt.is_binary(kind):
            # The cast accepts the text of values of any kind.
            fits = not isinstance(value, dict | list)
        if not fits:
            self._add(locate, position, value, f"does not fit {name_type(kind)}")
            return None
        return write_text(value) if isinstance(value, bool) else str(value)

    def _decode(self, text: str | None, position: int, locate: Locate) -> bytes | None:
        try:
            return None if text is None else b64decode(text, validate=True)
        except ValueError:
            self._add(locate, position, text, "does not fit binary: it is not base64")
            return None


def keeps_digits(text: str) -> bool:
    """Return True if a double keeps all digits of a number, which its shortest text then shows."""
    number = float(text)
    if math.isinf(number) or not number:
        return not number and not re.search("[1-9]", text.lower().partition("e")[0])
    return Decimal(repr(number)) == Decimal(text)


def _write_steps(steps: Iterable[str | int]) -> tuple[str, ...]:
    """Return a path with ``*`` for what is inside a list or a map, so that reasons do not multiply with the data."""
    return tuple(step if isinstance(step, str) else "*" for step in steps)
