"""Join the columns of a continuous run's earlier files with those of its new files."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.column_types import can_hold, is_void, make_list


@dataclass(frozen=True)
class KnownColumns:
    """All columns, the earlier ones first. ``indexes`` are their indexes in the files, -1 for columns in no file."""

    schema: pa.Schema
    indexes: tuple[int, ...]

    def list_asked(self, file_columns: pa.Schema, typed: pa.Schema) -> pa.Schema:
        """Return the columns of the files with the types that ``typed`` has for all columns."""
        types = {index: typed.field(number).type for number, index in enumerate(self.indexes) if index >= 0}
        return pa.schema([field.with_type(types[index]) for index, field in enumerate(file_columns)])


def join_known(file_columns: pa.Schema, earlier: pa.Schema, *, by_values: bool) -> KnownColumns:
    """Return the earlier columns and then the other columns of the files.

    A column keeps its earlier type if the file's type follows from values, ``by_values``, or converts to it without
    loss.
    """
    named = {name: index for index, name in enumerate(file_columns.names)}
    folded = {name.strip().lower(): index for index, name in enumerate(file_columns.names)}
    earlier_names = {name.strip().lower() for name in earlier.names}
    is_exact = len(folded) < len(file_columns) or len(earlier_names) < len(earlier)
    fields, indexes = list[pa.Field](), list[int]()
    for field in earlier:
        index = named.get(field.name, -1 if is_exact else folded.get(field.name.strip().lower(), -1))
        kind = field.type if index < 0 else _join_types(file_columns.field(index).type, field.type, by_values)
        fields.append(field.with_type(kind))
        indexes.append(index)
    new = [index for index in range(len(file_columns)) if index not in indexes]
    return KnownColumns(pa.schema([*fields, *(file_columns.field(index) for index in new)]), (*indexes, *new))


def _join_types(file_type: pa.DataType, earlier: pa.DataType, by_values: bool) -> pa.DataType:
    if pt.is_struct(file_type) and pt.is_struct(earlier):
        return pa.struct(list(join_known(pa.schema(file_type), pa.schema(earlier), by_values=by_values).schema))
    if pt.is_list(file_type) and pt.is_list(earlier):
        return make_list(_join_types(file_type.value_type, earlier.value_type, by_values))
    # What has no value yet has no type.
    if is_void(earlier):
        return file_type
    return earlier if by_values or can_hold(earlier, file_type) else file_type
