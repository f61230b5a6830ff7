"""Fit the types of a load's values to those that earlier loads have given a table's columns.

The type of a column is the one that all its values would have had in one load. Where readers cannot take the older
files in that type, the older one stays, and values that do not fit it are refused.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.cast.sql_types import parse_type
from lakewriter.column_types import can_widen, is_void, make_list, name_type, note_type, read_noted_type
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.receipt import InferredType
from lakewriter.source.files.json_shapes import NOTHING, Numbers, Shape
from lakewriter.source.text_types import write_columns_line
from lakewriter.spec.table_spec import ColumnType, KnownTypes

_LONG: Final = Numbers(whole=19, is_double=False)
_SHORT: Final = Numbers(whole=16)
"""Whole numbers of 64 bits, and those of them that a double holds."""
_DOUBLE: Final = Numbers(whole=39, is_integer=False, is_long=False)
"""Doubles, which may have more digits than any decimal."""
_SHAPES: Final[Mapping[str, Shape]] = {
    "boolean": Shape(frozenset(["boolean"])),
    "float": Shape(numbers=_DOUBLE),
    "double": Shape(numbers=_DOUBLE),
    "string": Shape(frozenset(["text", "boolean"])),
}


@dataclass(frozen=True)
class TypeFit:
    """The types that a source's columns have had, and what becomes of values that do not fit them.

    ``declared`` are the columns that the table declares. With ``aside`` rows with such a value are bad; else it is an
    error.
    """

    table: str = ""
    learnt: KnownTypes = KnownTypes()  # noqa: RUF009 - it is frozen
    declared: Mapping[str, ColumnType] | None = None
    aside: bool = False

    def find(self, name: str) -> InferredType | None:
        """Return the type that a column has had; None for a declared column, and for a new one."""
        if name.lower() in {column.lower() for column in self.declared or ()}:
            return None
        return _find(self.learnt.columns, name)

    def fit(self, name: str, before: InferredType, joint: pa.DataType) -> tuple[pa.DataType, bool]:
        """Return the type to read a column in, and whether it has values that do not fit it.

        Args:
            name: The column.
            before: The type that it has had.
            joint: The type that holds the values of earlier loads and of this one.

        Raises:
            SchemaIncompatibleError: There are such values, and bad rows are not set aside.
        """
        misfits: list[tuple[str, pa.DataType, pa.DataType]] = []
        kind = self._fit(name, read_noted_type(before), joint, misfits)
        if misfits and not self.aside:
            raise self._make_error(name, joint, *misfits[0])
        return kind, bool(misfits)

    def _fit(
        self, path: str, before: pa.DataType, joint: pa.DataType, misfits: list[tuple[str, pa.DataType, pa.DataType]]
    ) -> pa.DataType:
        if pt.is_struct(before) and pt.is_struct(joint):
            members = {field.name.lower(): field.type for field in before} | {
                field.name: field.type for field in before
            }
            return pa.struct(
                [self._fit_member(path, field, members, misfits) for field in joint],
            )
        if pt.is_list(before) and pt.is_list(joint):
            return make_list(self._fit(f"{path}.element", before.value_type, joint.value_type, misfits))
        if before.equals(joint) or is_void(joint):
            return before
        grows = pt.is_decimal(before) and pt.is_decimal(joint) and before.scale == joint.scale
        if can_widen(before, joint) or (grows and self.learnt.grows_decimals):
            return joint
        misfits.append((path, before, joint))
        return before

    def _fit_member(
        self,
        path: str,
        field: pa.Field,
        members: Mapping[str, pa.DataType],
        misfits: list[tuple[str, pa.DataType, pa.DataType]],
    ) -> pa.Field:
        before = members.get(field.name, members.get(field.name.lower()))
        return (
            field if before is None else field.with_type(self._fit(f"{path}.{field.name}", before, field.type, misfits))
        )

    def _make_error(
        self, name: str, whole: pa.DataType, path: str, before: pa.DataType, joint: pa.DataType
    ) -> SchemaIncompatibleError:
        declared = name_type(fill_void(whole))
        try:
            parse_type(declared)
        except ValueError:
            declared = "string"
        line = write_columns_line(self.declared or {}, {name: declared})
        return SchemaIncompatibleError(
            f"table {self.table!r}: column {path!r} is {name_type(before)} in the table's files, and the values of "
            f"this load make it {name_type(fill_void(joint))}: not every reader would read the older files so.",
            remedy=f"Load them into a new table with {line}, and the sources of this table's files as well, which stay "
            "as they are. Or keep rows apart whose values do not fit: on_bad_row: quarantine.",
        )


def _find(columns: Iterable[InferredType], name: str) -> InferredType | None:
    """Return the column of a name, or else the only one that has it in another case."""
    there = [column for column in columns if column.name.lower() == name.lower()]
    exact = [column for column in there if column.name == name]
    return exact[0] if exact else there[0] if len(there) == 1 else None


def join_shapes(members: Mapping[str, Shape], fit: TypeFit) -> dict[str, Shape]:
    """Return the shapes of columns with those of the values that they have had."""
    joined = {}
    for name, shape in members.items():
        before = fit.find(name)
        joined[name] = shape if before is None else shape.merge(_make_shape(before, shape))
    return joined


def _make_shape(before: InferredType, beside: Shape) -> Shape:
    """Return the shape of the values that a known type holds, with the members' names as ``beside`` spells them."""
    if before.type == "struct":
        spelled = {name.lower(): name for name in beside.members or {}} | {name: name for name in beside.members or {}}
        members = {}
        for field in before.fields:
            name = spelled.get(field.name, spelled.get(field.name.lower(), field.name))
            members[name] = _make_shape(field, (beside.members or {}).get(name, NOTHING))
        return Shape(members=members)
    if before.type == "array":
        return Shape(items=_make_shape(before.fields[0], beside.items or NOTHING))
    kind = read_noted_type(before)
    if pt.is_integer(kind):
        return Shape(numbers=_LONG if before.beyond_double else _SHORT)
    if pt.is_decimal(kind):
        whole = Numbers(kind.precision - kind.scale, kind.scale, not kind.scale, is_long=False, is_double=False)
        return Shape(numbers=whole)
    return _SHAPES.get(before.type, _SHAPES["string"])


def note_shape(name: str, kind: pa.DataType, shape: Shape) -> InferredType | None:
    """Return the type of a column, of values that have a ``shape``, as the table's state keeps it."""
    if pt.is_struct(kind):
        noted = (note_shape(field.name, field.type, (shape.members or {}).get(field.name, NOTHING)) for field in kind)
        fields = tuple(field for field in noted if field is not None)
        return InferredType(name=name, type="struct", fields=fields) if fields else None
    if pt.is_list(kind):
        item = note_shape("element", kind.value_type, shape.items or NOTHING)
        return None if item is None else InferredType(name=name, type="array", fields=(item,))
    return note_type(name, kind, beyond_double=shape.numbers is None or not shape.numbers.is_double)


def fill_void(kind: pa.DataType) -> pa.DataType:
    """Return a type with text for its parts without values."""
    if pt.is_list(kind):
        return make_list(fill_void(kind.value_type))
    if pt.is_struct(kind) and kind.num_fields:
        return pa.struct([field.with_type(fill_void(field.type)) for field in kind])
    return pa.string() if pt.is_null(kind) or pt.is_struct(kind) else kind


def take_void(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return values that were read as ``fill_void(kind)`` in the type ``kind``, which has parts without values.

    An empty object is an empty list here, since no array of Arrow without members has nulls.
    """
    if pt.is_null(kind):
        return pa.nulls(len(array))
    if pt.is_struct(kind) and not kind.num_fields:
        return pa.array([None if value is None else [] for value in array.to_pylist()], EMPTY)
    if pt.is_struct(kind):
        members = [take_void(array.field(index), field.type) for index, field in enumerate(kind)]
        fields = [field.with_type(member.type) for field, member in zip(kind, members, strict=True)]
        return pa.StructArray.from_arrays(members, fields=fields, mask=array.is_null())
    if pt.is_list(kind):
        items = take_void(array.values, kind.value_type)
        return pa.ListArray.from_arrays(array.offsets, items, type=make_list(items.type), mask=array.is_null())
    return array


EMPTY: Final = make_list(pa.null())
"""The type of values that are all empty lists, or empty objects."""


def name_void(kind: pa.DataType) -> pa.DataType:
    """Return the type that ``take_void`` gives values."""
    return take_void(pa.nulls(0, fill_void(kind)), kind).type
