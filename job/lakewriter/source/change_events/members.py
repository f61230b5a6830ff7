"""Read the members of events, and tell what is wrong with them; each function is for all events of a batch."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.cast.typed_cast import cast_values, is_castable
from lakewriter.column_types import can_hold, is_list_like, is_void, name_type

WHOLE: Final = pa.decimal128(38, 0)
_TEXT: Final = pa.string()
NO_EVENT: Final = pa.schema([pa.field("op", _TEXT)])
"""The columns of a source of which no row has an event: nothing but tombstones."""


@dataclass(frozen=True)
class Unfolded:
    """The rows of a batch of events.

    Args:
        events: The number of each row's event. Every event has a row, which is null if it changes none.
        columns: The columns of the rows.
        deleted: True for a row that deletes the row of its key.
        reasons: Why an event cannot be taken, by event; null for one that can.
        skipped: What an event is that changes no row, by event; null for others.
        floors: The floor that there is instead of a row, as JSON; null for rows. None if there is none.
        unchanged: Which values an event leaves out, by event, as ``naming.UNCHANGED`` says.
    """

    events: pa.Array
    columns: Sequence[pa.Array]
    deleted: pa.Array
    reasons: pa.Array
    skipped: pa.Array
    floors: pa.Array | None = None
    unchanged: pa.Array | None = None

    def add_floors(self, floors: pa.Array, op: pa.Array) -> "Unfolded":
        """Return the rows with the floors of their events: a truncate has no row, and the end of a snapshot has one."""
        if floors.null_count == len(floors):
            return self
        ends = pc.indices_nonzero(pc.and_(floors.is_valid(), pc.equal(op, "r")))
        numbers = pa.concat_arrays([self.events, ends.cast(pa.int64())])
        of_rows = pc.if_else(pc.equal(op, "r"), pa.scalar(None, _TEXT), floors)
        return replace(
            self,
            events=self.events.take(numbers),
            columns=[values.take(numbers) for values in self.columns],
            deleted=self.deleted.take(numbers),
            floors=pa.concat_arrays([of_rows, floors.take(ends)]),
        )


class Reasons:
    """The first reason against each event."""

    def __init__(self, count: int) -> None:
        self.texts: pa.Array = pa.nulls(count, _TEXT)

    def add(self, applies: pa.Array, reason: str | pa.Array) -> None:
        """Add a reason for the events to which it applies; null is false."""
        added = pc.if_else(pc.fill_null(applies, False), reason, pa.scalar(None, _TEXT))
        self.texts = pc.coalesce(self.texts, added)


def find_type(schema: Mapping[str, pa.DataType] | pa.DataType | None, *path: str) -> pa.DataType | None:
    """Return the type of a member; None for one that no event has a value of."""
    for name in path:
        if schema is None or (isinstance(schema, pa.DataType) and not pt.is_struct(schema)):
            return None
        inner = {field.name: field.type for field in schema} if isinstance(schema, pa.DataType) else schema
        schema = inner.get(name)
    return schema if isinstance(schema, pa.DataType) and not is_void(schema) else None


def get_member(value: pa.Array | None, name: str) -> pa.Array | None:
    """Return a member of objects; None if no object has one."""
    if value is None or not pt.is_struct(value.type) or (index := value.type.get_field_index(name)) < 0:
        return None
    member = pc.struct_field(value, [index])
    return None if is_void(member.type) else member


def read_texts(value: pa.Array | None, count: int) -> pa.Array:
    """Return the texts of a member."""
    if value is None or not is_castable(value.type, _TEXT):
        return pa.nulls(count, _TEXT)
    return cast_values(value, _TEXT).values


def read_whole(value: pa.Array | None, count: int) -> pa.Array:
    """Return the whole numbers of a member, which may be numbers or text; null for anything else."""
    texts = read_texts(value, count)
    is_whole = pc.fill_null(pc.match_substring_regex(texts, r"^[0-9]{1,38}$"), False)
    return pc.if_else(is_whole, texts, pa.scalar(None, _TEXT)).cast(WHOLE)


def is_present(value: pa.Array | None, count: int) -> pa.Array:
    """Return where a member has a value."""
    return pa.repeat(False, count) if value is None else value.is_valid()


def any_of(conditions: Sequence[pa.Array], count: int) -> pa.Array:
    """Return where a condition is true; null is false."""
    filled = (pc.fill_null(condition, False) for condition in conditions)
    return reduce(pc.or_, filled, pa.repeat(False, count))


def join_types(name: str, one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return the type that holds the values of both; raise ``ValueError`` if there is none."""
    if one.equals(other) or is_void(other):
        return one
    if is_void(one):
        return other
    if pt.is_struct(one) and pt.is_struct(other):
        others = {field.name: field.type for field in other}
        fields = [pa.field(f.name, join_types(f"{name}.{f.name}", f.type, others.pop(f.name, f.type))) for f in one]
        return pa.struct([*fields, *(pa.field(key, kind) for key, kind in others.items())])
    if is_list_like(one) and is_list_like(other):
        return pa.list_(join_types(f"{name}.element", one.value_type, other.value_type))
    for wide, narrow in ((one, other), (other, one)):
        # Whole numbers of one image may be without a fraction by chance: each is checked where it becomes a double.
        by_chance = "." not in name and pt.is_float64(wide) and pt.is_integer(narrow)
        if by_chance or can_hold(wide, narrow):
            return wide
    raise ValueError(f"{name!r} is {name_type(one)} in 'after' and {name_type(other)} in 'before'")


def convert_member(value: pa.Array | None, kind: pa.DataType, count: int) -> pa.Array:
    """Return a member as the type that its column has."""
    if value is None:
        return pa.nulls(count, kind)
    if value.type.equals(kind):
        return value
    if pt.is_struct(kind):
        members = [convert_member(get_member(value, field.name), field.type, count) for field in kind]
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=value.is_null())
    if is_list_like(kind):
        # An offset of a null would be null.
        flat = convert_member(value.flatten(), kind.value_type, len(value.flatten()))
        lengths = pc.fill_null(pc.list_value_length(value), 0)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
        return pa.ListArray.from_arrays(offsets, flat, type=kind, mask=value.is_null())
    return cast_values(value, kind).values


def is_placeholder(values: pa.Array, text: str) -> pa.Array:
    """Return where values are nothing but the placeholder: in lists of texts it is the only element."""
    kind, count = values.type, len(values)
    if pt.is_string(kind):
        encoded = base64.b64encode(text.encode()).decode()
        as_object = json.dumps({text: text}, separators=(",", ":"))
        return any_of([pc.is_in(values, value_set=pa.array([text, encoded, as_object]))], count)
    if is_list_like(kind) and not pt.is_integer(kind.value_type):
        is_single = pc.fill_null(pc.equal(pc.list_value_length(values), 1), False)
        is_text = (
            is_placeholder(pc.list_element(values.filter(is_single), 0), text) if pc.any(is_single).as_py() else []
        )
        return pc.replace_with_mask(pa.repeat(False, count), is_single, pa.array(is_text, pa.bool_()))
    return pa.repeat(False, count) if pt.is_struct(kind) else find_placeholder(values, text)


def find_placeholder(values: pa.Array, text: str) -> pa.Array:
    """Return where values are, or contain, the placeholder for a value that is not known.

    It stands as text, as base64 where the column has bytes, and as its bytes' numbers where it has a list of numbers.
    https://debezium.io/documentation/reference/3.2/connectors/postgresql.html#postgresql-toasted-values
    """
    count, kind = len(values), values.type
    if pt.is_string(kind):
        encoded = base64.b64encode(text.encode()).decode()
        return any_of([pc.match_substring(values, text), pc.equal(values, encoded)], count)
    if pt.is_binary(kind):
        return any_of([pc.equal(values, text.encode())], count)
    if pt.is_struct(kind):
        members = (pc.struct_field(values, [index]) for index in range(kind.num_fields))
        return any_of([find_placeholder(member, text) for member in members], count)
    if is_list_like(kind) and pt.is_integer(kind.value_type):
        numbers = list(text.encode())
        candidates = pc.equal(pc.list_value_length(values), len(numbers))
        if not pc.any(candidates).as_py():
            return pa.repeat(False, count)
        return pa.array([value == numbers for value in values.to_pylist()])
    if is_list_like(kind):
        parents = pc.list_parent_indices(values)
        placeholders = pc.filter(parents, find_placeholder(values.flatten(), text))
        return pc.is_in(pa.arange(0, count), value_set=placeholders.cast(pa.int64()))
    return pa.repeat(False, count)
