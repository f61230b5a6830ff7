"""Columns of a source that are known before its files are looked at: those of the files before in a continuous run."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.column_types import can_hold, make_list


@dataclass(frozen=True)
class KnownColumns:
    """All columns, those that are known first; ``places`` are where each is in the files, -1 where it is in none."""

    schema: pa.Schema
    places: tuple[int, ...]

    def list_asked(self, found: pa.Schema, typed: pa.Schema) -> pa.Schema:
        """Return the columns ``found`` in the files with the types that ``typed`` has for all columns."""
        types = {place: typed.field(number).type for number, place in enumerate(self.places) if place >= 0}
        return pa.schema([field.with_type(types[place]) for place, field in enumerate(found)])


def join_known(found: pa.Schema, known: pa.Schema, *, by_values: bool) -> KnownColumns:
    """Return the columns that are known and those that were ``found`` in files besides.

    A column has its known type where the type found follows from values, ``by_values``, or loses nothing by it.
    """
    named = {name: place for place, name in enumerate(found.names)}
    folded = {name.strip().lower(): place for place, name in enumerate(found.names)}
    is_exact = len(folded) < len(found.names) or len({name.strip().lower() for name in known.names}) < len(known.names)
    fields, places = list[pa.Field](), list[int]()
    for field in known:
        place = named.get(field.name, -1 if is_exact else folded.get(field.name.strip().lower(), -1))
        kind = field.type if place < 0 else _join_types(found.field(place).type, field.type, by_values)
        fields.append(field.with_type(kind))
        places.append(place)
    new = [place for place in range(len(found)) if place not in places]
    return KnownColumns(pa.schema([*fields, *(found.field(place) for place in new)]), (*places, *new))


def _join_types(found: pa.DataType, known: pa.DataType, by_values: bool) -> pa.DataType:
    if pt.is_struct(found) and pt.is_struct(known):
        return pa.struct(list(join_known(pa.schema(found), pa.schema(known), by_values=by_values).schema))
    if pt.is_list(found) and pt.is_list(known):
        return make_list(_join_types(found.value_type, known.value_type, by_values))
    return known if by_values or can_hold(known, found) else found
