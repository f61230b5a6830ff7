"""Merge the schemas of files that differ: columns match by name, types widen if no value is lost."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.column_types import can_hold, find_common_type, make_list, name_type
from lakewriter.errors import SchemaIncompatibleError
from lakewriter.nested_arrays import compute_flat_offsets, list_map_entries

_MOST_NOTES: Final = 20


@dataclass(frozen=True)
class Merged:
    """The columns of all files, and notes on columns that not every file has.

    With ``is_exact`` the case of names matters, because one file has two names that differ by it alone.
    """

    schema: pa.Schema
    notes: tuple[str, ...] = ()
    is_exact: bool = False


@dataclass(frozen=True)
class _Seen:
    """A type that ``files`` files have; ``file`` is the first of them."""

    kind: pa.DataType
    file: str
    files: int

    def enter(self, kind: pa.DataType) -> "_Seen":
        return _Seen(kind, self.file, self.files)


def merge_columns(table: str, schemas: Sequence[tuple[str, pa.Schema]]) -> Merged:
    """Return the schema of all files, which are given by their paths.

    Raise ``SCHEMA_INCOMPATIBLE`` for two files whose types have no common type, and for a file with two columns of one
    name if others have other columns.
    """
    variants: dict[pa.Schema, _Seen] = {}
    for path, schema in schemas:
        seen = variants.get(schema)
        first = seen.file if seen else path
        variants[schema] = _Seen(pa.struct(list(schema)), first, seen.files + 1 if seen else 1)
    distinct = list(variants.values())
    if len(distinct) < 2:
        return Merged(schemas[0][1] if schemas else pa.schema([]), is_exact=any(map(_has_twins, distinct)))
    for one in distinct:
        _require_single_names(table, one, distinct)
    merging = _Merging(table, distinct)
    whole = merging.merge_structs("", distinct)
    more = len(merging.notes) - _MOST_NOTES
    notes = merging.notes if more <= 0 else [*merging.notes[:_MOST_NOTES], f"{more} more columns differ between files"]
    return Merged(pa.schema(list(whole)), tuple(notes), any(map(_has_twins, distinct)))


def _require_single_names(table: str, one: _Seen, distinct: Sequence[_Seen]) -> None:
    names = [field.name for field in one.kind]
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        other = next(seen for seen in distinct if seen is not one)
        raise SchemaIncompatibleError(
            f"table {table!r}: {one.file!r} has several columns {twice!r}, and {other.file!r} has other columns than "
            "it: columns of different files are matched by their names.",
            remedy="Load the files as two tables, or rename the columns in the file.",
        )


class _Merging:
    """The results of a walk through the columns."""

    def __init__(self, table: str, variants: Sequence[_Seen]) -> None:
        self.notes: list[str] = []
        self._table = table
        self._total = sum(variant.files for variant in variants)

    def merge_structs(self, path: str, seen: Sequence[_Seen]) -> pa.StructType:
        """Return fields in the first file's order, then those that later files add."""
        fields: dict[str, list[tuple[str, _Seen]]] = {}
        exact = any(map(_has_twins, seen))
        for one in seen:
            for field in one.kind:
                key = field.name if exact else field.name.lower()
                fields.setdefault(key, []).append((field.name, one.enter(field.type)))
        return pa.struct([self._merge_fields(path, occurrences, seen) for occurrences in fields.values()])

    def _merge_fields(self, path: str, occurrences: Sequence[tuple[str, _Seen]], seen: Sequence[_Seen]) -> pa.Field:
        name = occurrences[0][0]
        full = f"{path}.{name}" if path else name
        having = [one for _, one in occurrences]
        files = {(one.file, one.files) for one in having}
        without = [one for one in seen if (one.file, one.files) not in files]
        if without:
            self.notes.append(
                f"column {full!r} is not in {sum(one.files for one in without)} of {self._total} files, such "
                f"as {without[0].file!r}: null in their rows"
            )
        return pa.field(name, self.find_common_type(full, having))

    def find_common_type(self, path: str, seen: Sequence[_Seen]) -> pa.DataType:
        """Return the type that holds the values of all. Add a note if the types differ."""
        typed = [one for one in seen if not pt.is_null(one.kind)] or list(seen)
        kinds = [one.kind for one in typed]
        if all(map(pt.is_struct, kinds)):
            return self.merge_structs(path, typed)
        if all(map(pt.is_list, kinds)):
            inside = [one.enter(one.kind.value_type) for one in typed]
            return make_list(self.find_common_type(f"{path}.element", inside))
        if all(map(pt.is_map, kinds)):
            key = self.find_common_type(f"{path}.key", [one.enter(one.kind.key_type) for one in typed])
            item = self.find_common_type(f"{path}.value", [one.enter(one.kind.item_type) for one in typed])
            return pa.map_(key, pa.field("value", item))
        return self._choose_widest(path, typed)

    def _choose_widest(self, path: str, seen: Sequence[_Seen]) -> pa.DataType:
        distinct = list({one.kind: one for one in reversed(seen)}.values())[::-1]
        common = find_common_type([one.kind for one in distinct])
        if common is not None:
            if len(distinct) > 1:
                kinds = ", ".join(f"{name_type(variant.kind)} in {variant.file!r}" for variant in distinct)
                self.notes.append(f"column {path!r} is {kinds}: read as {name_type(common)}")
            return common
        raise self._make_conflict_error(path, distinct)

    def _make_conflict_error(self, path: str, distinct: Sequence[_Seen]) -> SchemaIncompatibleError:
        apart = (pair for pair in itertools.combinations(distinct, 2) if not can_hold(pair[0].kind, pair[1].kind))
        one, other = next((pair for pair in apart if not can_hold(pair[1].kind, pair[0].kind)),
                          (distinct[0], distinct[-1]))  # fmt: skip
        return SchemaIncompatibleError(
            f"table {self._table!r}: column {path!r} is {name_type(one.kind)} in {one.file!r} and "
            f"{name_type(other.kind)} in {other.file!r}, and no type holds all values of both.",
            remedy="Load the files as two tables, or read each as a view of an sql: read that casts the column.",
        )


def _has_twins(seen: _Seen) -> bool:
    """Return True if one struct has two fields whose names differ in case only."""
    return len({field.name.lower() for field in seen.kind}) < len({field.name for field in seen.kind})


def find_index(names: Sequence[str], name: str, *, is_exact: bool) -> int | None:
    """Return the index of a name among those of a file; None if it is not there."""
    if name in names:
        return names.index(name)
    lower = name.lower()
    return None if is_exact else next((index for index, other in enumerate(names) if other.lower() == lower), None)


def widen(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert values of one file to the type of all files."""
    if values.type.equals(kind):
        return values
    if pt.is_struct(kind):
        names = [field.name for field in values.type]
        is_exact = len({field.name.lower() for field in kind}) < kind.num_fields
        flat = values.flatten()
        indexes = [find_index(names, field.name, is_exact=is_exact) for field in kind]
        members = [
            pa.nulls(len(values), field.type) if index is None else widen(flat[index], field.type)
            for field, index in zip(kind, indexes, strict=True)
        ]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=values.is_null())
    if pt.is_list(kind):
        item = widen(values.flatten(), kind.value_type)
        return pa.ListArray.from_arrays(compute_flat_offsets(values), item, type=kind, mask=values.is_null())
    if pt.is_map(kind):
        entries = list_map_entries(values)
        key, item = entries.flatten().flatten()
        parts = (widen(key, kind.key_type), widen(item, kind.item_type))
        return pa.MapArray.from_arrays(compute_flat_offsets(entries), *parts, type=kind, mask=values.is_null())
    return values.cast(kind)
