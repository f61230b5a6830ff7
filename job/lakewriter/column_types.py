"""Types of the source, of the files and of Glue, and how one becomes another; pure, no values are touched here."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from lakewriter.errors import SchemaIncompatibleError
from lakewriter.receipt import InferredType

UTC_MICROS: Final = pa.timestamp("us", tz="UTC")

_GLUE: Final = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
}
_ARROW: Final = {text: t for t, text in _GLUE.items()} | {
    "integer": pa.int32(),
    "char": pa.string(),
    "varchar": pa.string(),
}
_STORED: Final = {t: t for t in _GLUE} | {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}
_DIGITS: Final = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_EXACT_IN_FLOAT: Final = {pa.float32(): 5, pa.float64(): 10}
"""Decimal digits of the widest integer type whose every value the float holds."""
_MAX_PRECISION: Final = 38
_MOST_LEVELS: Final = 99
"""Levels of a Parquet schema below its root that Arrow reads, which gives up at 100."""
_LEVELS: Final = {"element": 2, "key": 2, "value": 2}
"""Levels that a step of a path takes, where it takes more than one."""

Path = tuple[str, ...]


def to_glue_type(t: pa.DataType) -> str:
    """Return the Glue (Hive) text of a file's type; names of struct fields are in lower case, as Glue folds them."""
    if t in _GLUE:
        return _GLUE[t]
    if pt.is_timestamp(t):
        return "timestamp"
    if pt.is_decimal128(t):
        return f"decimal({t.precision},{t.scale})"
    if pt.is_list(t):
        return f"array<{to_glue_type(t.value_type)}>"
    if pt.is_map(t):
        return f"map<{to_glue_type(t.key_type)},{to_glue_type(t.item_type)}>"
    if pt.is_struct(t):
        return f"struct<{','.join(f'{field.name.lower()}:{to_glue_type(field.type)}' for field in t)}>"
    raise SchemaIncompatibleError(f"Arrow type {str(t)!r} has no Glue type.")


def name_type(t: pa.DataType, *, is_exact: bool = True) -> str:
    """Return a type in SQL's words; catalogs' words do not tell local timestamps apart from those in UTC."""
    if is_exact and pt.is_timestamp(t) and t.tz is None:
        return "timestamp_ntz"
    try:
        return to_glue_type(t)
    except SchemaIncompatibleError:
        return str(t)


def to_arrow_type(glue: str, *, timestamp: pa.DataType = UTC_MICROS) -> pa.DataType:
    """Return the file's type for a Glue text; ``timestamp`` is what Glue's timestamp means, as its text has no zone."""
    return parse(glue, _ARROW, timestamp)


def note_type(name: str, t: pa.DataType, *, beyond_double: bool = True) -> InferredType | None:
    """Return a type as a table's state keeps it; None for one without values.

    ``beyond_double`` says whether a double may not hold one of its whole numbers.
    """
    parts: list[tuple[str, pa.DataType]] = []
    if is_void(t):
        return None
    if pt.is_struct(t):
        parts = [(field.name, field.type) for field in t]
    elif is_list_like(t):
        parts = [("element", t.value_type)]
    elif pt.is_map(t):
        parts = [("key", t.key_type), ("value", t.item_type)]
    kind = "struct" if pt.is_struct(t) else "array" if is_list_like(t) else "map" if pt.is_map(t) else name_type(t)
    noted = (note_type(part, inner, beyond_double=beyond_double) for part, inner in parts)
    fields = tuple(field for field in noted if field is not None)
    return InferredType(name=name, type=kind, fields=fields, beyond_double=pt.is_integer(t) and beyond_double)


def read_noted_type(column: InferredType) -> pa.DataType:
    """Return the Arrow type of a type that a table's state keeps."""
    inner = [read_noted_type(field) for field in column.fields]
    if column.type == "struct":
        return pa.struct([pa.field(field.name, t) for field, t in zip(column.fields, inner, strict=True)])
    if column.type == "array":
        return make_list(inner[0])
    if column.type == "map":
        return pa.map_(inner[0], inner[1])
    return pa.timestamp("us") if column.type == "timestamp_ntz" else to_arrow_type(column.type)


def is_list_like(t: pa.DataType) -> bool:
    """Any of Arrow's list layouts."""
    return any(
        f(t) for f in (pt.is_list, pt.is_large_list, pt.is_fixed_size_list, pt.is_list_view, pt.is_large_list_view)
    )


def is_wrapped(t: pa.DataType) -> bool:
    """Return whether a type is dictionary or run-end encoded, and encodes its ``value_type``."""
    return bool(pt.is_dictionary(t) or pt.is_run_end_encoded(t))


def is_void(t: pa.DataType) -> bool:
    """Return whether a type has no values: null, and whatever is made of nothing else."""
    if is_list_like(t) or is_wrapped(t):
        return is_void(t.value_type)
    if pt.is_map(t):
        return is_void(t.key_type) or is_void(t.item_type)
    if pt.is_struct(t):
        return all(is_void(field.type) for field in t)
    return bool(pt.is_null(t))


Rename = Callable[[Sequence[str]], list[str]]
"""Makes the names of one struct fit for a file, and distinct."""
ELEMENT: Final = "[]"
KEY: Final = "key"
VALUE: Final = "value"
"""Steps of a path from a list or a map to what is in it; from a struct it is the name of a field."""


class NamesByPath(ABC):
    """A ``Rename`` of which the path of a struct decides too, and not its names alone."""

    @abstractmethod
    def __call__(self, names: Sequence[str]) -> list[str]:
        """See ``Rename``."""

    @abstractmethod
    def inside(self, step: str) -> "NamesByPath":
        """Return what names the struct at ``step``."""


def enter(rename: Rename, step: str) -> Rename:
    """Return what names the struct at ``step`` of one that ``rename`` names."""
    return rename.inside(step) if isinstance(rename, NamesByPath) else rename


def rebuild_type(t: pa.DataType, rename: Rename) -> pa.DataType:
    """Return ``t`` with every struct's names renamed, all fields nullable, lists of one layout, no metadata."""
    if is_wrapped(t):
        return rebuild_type(t.value_type, rename)
    if is_list_like(t):
        return make_list(rebuild_type(t.value_type, enter(rename, ELEMENT)))
    if pt.is_map(t):
        key, item = enter(rename, KEY), enter(rename, VALUE)
        return pa.map_(rebuild_type(t.key_type, key), rebuild_type(t.item_type, item))
    if pt.is_struct(t):
        names = rename([field.name for field in t])
        return pa.struct(
            [
                pa.field(name, rebuild_type(field.type, enter(rename, field.name)))
                for name, field in zip(names, t, strict=True)
            ]
        )
    return t


def to_stored_type(name: str, t: pa.DataType) -> pa.DataType:
    """Return the type a file gets for column ``name``; void fields of structs are left out.

    ``SchemaIncompatibleError`` for a type that no file can store: times, durations, intervals, unions, void,
    extension types, decimals beyond 38 digits or with a scale outside their precision.
    """
    return _to_stored((name,), t)


def reconcile(column: str, source: pa.DataType, existing: pa.DataType) -> pa.DataType:
    """Return the type to write where the table has ``existing``; the table must have it too.

    The existing type where the source's converts to it without loss; the source's where the existing one widens to
    it (a longer integer, float to double). Structs are matched by name without regard to case, a field of one side
    only stays. Glue's text does not tell zoned timestamps apart from local ones, so the source decides.
    """
    whole = to_stored_type(column, existing)
    try:
        return _reconcile((column,), to_stored_type(column, source), whole)
    except _ConflictError as exc:
        path, actual, expected = exc.args
        raise SchemaIncompatibleError(
            f"column {path!r} is {actual!r} in the source and {expected!r} in the table, and neither converts to the"
            " other without loss.",
            remedy=f"Load into a new table; or, where every value fits the table's type, declare it: "
            f'columns: {{{column}: "{to_glue_type(whole)}"}}.',
        ) from exc


def _to_stored(path: Path, t: pa.DataType) -> pa.DataType:
    if t in _STORED:
        return _STORED[t]
    if pt.is_fixed_size_binary(t):
        return pa.binary()
    if pt.is_timestamp(t):
        return UTC_MICROS if t.tz else pa.timestamp("us")
    if pt.is_decimal(t) and t.precision <= _MAX_PRECISION and 0 <= t.scale <= t.precision:
        return pa.decimal128(t.precision, t.scale)
    if is_void(t):
        raise _make_unstorable_error(path, t)
    return _to_stored_nested(path, t)


def _to_stored_nested(path: Path, t: pa.DataType) -> pa.DataType:
    if sum(_LEVELS.get(step, 1) for step in path) >= _MOST_LEVELS:
        raise SchemaIncompatibleError(
            f"column {path[0]!r} nests deeper than the {_MOST_LEVELS} levels of a schema that readers of Parquet take.",
            remedy=f"Declare it as text, which then holds JSON: columns: {{{path[0]}: string}}; or leave it out.",
        )
    if is_wrapped(t):
        return _to_stored(path, t.value_type)
    if is_list_like(t):
        return make_list(_to_stored((*path, "element"), t.value_type))
    if pt.is_map(t):
        return pa.map_(_to_stored((*path, "key"), t.key_type), _to_stored((*path, "value"), t.item_type))
    if pt.is_struct(t):
        fields = [field for field in t if not is_void(field.type)]
        return pa.struct([pa.field(field.name, _to_stored((*path, field.name), field.type)) for field in fields])
    raise _make_unstorable_error(path, t)


def _make_unstorable_error(path: Path, t: pa.DataType) -> SchemaIncompatibleError:
    return SchemaIncompatibleError(
        f"column {'.'.join(path)!r} has type {str(t)!r}, which no file can store.",
        remedy=f"Declare another type, for example columns: {{{path[0]}: string}}.",
    )


class _ConflictError(Exception):
    """Two types that do not meet: path, source's and table's."""


def _reconcile(path: Path, source: pa.DataType, existing: pa.DataType) -> pa.DataType:
    if source.equals(existing) or (pt.is_timestamp(source) and pt.is_timestamp(existing)):
        return source
    if pt.is_list(source) and pt.is_list(existing):
        return make_list(_reconcile((*path, "element"), source.value_type, existing.value_type))
    if pt.is_map(source) and pt.is_map(existing):
        key = _reconcile((*path, "key"), source.key_type, existing.key_type)
        return pa.map_(key, _reconcile((*path, "value"), source.item_type, existing.item_type))
    if pt.is_struct(source) and pt.is_struct(existing):
        return _reconcile_structs(path, source, existing)
    if can_hold(existing, source):
        return existing
    if can_widen(existing, source):
        return source
    raise _ConflictError(".".join(path), str(source), str(existing))


def _reconcile_structs(path: Path, source: pa.DataType, existing: pa.DataType) -> pa.DataType:
    source_fields = {field.name.lower(): field for field in source}
    fields = []
    for field in existing:
        source_field = source_fields.pop(field.name.lower(), None)
        fields.append(
            pa.field(source_field.name, _reconcile((*path, source_field.name), source_field.type, field.type))
            if source_field
            else field
        )
    return pa.struct([*fields, *source_fields.values()])


def can_hold(target: pa.DataType, source: pa.DataType) -> bool:
    """Return True if every value of ``source`` is a value of ``target``."""
    if source in _DIGITS:
        if pt.is_decimal(target):
            return bool(target.precision - target.scale >= _DIGITS[source])
        return _DIGITS[source] <= (_DIGITS | _EXACT_IN_FLOAT).get(target, 0)
    if pt.is_decimal(source) and pt.is_decimal(target):
        whole = target.precision - target.scale >= source.precision - source.scale
        return bool(whole and target.scale >= source.scale)
    return bool(source == pa.float32() and target == pa.float64())


def find_common_type(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """Return a type that holds every value of all ``kinds``: one of them, else a double or a longer decimal; None if
    there is none.
    """
    wider = [pa.float64()]
    numbers = [kind for kind in kinds if pt.is_decimal(kind) or kind in _DIGITS]
    if len(numbers) == len(kinds):
        scale = max(kind.scale if pt.is_decimal(kind) else 0 for kind in kinds)
        whole = max(kind.precision - kind.scale if pt.is_decimal(kind) else _DIGITS[kind] for kind in kinds)
        wider = [pa.decimal128(whole + scale, scale)] if whole + scale <= _MAX_PRECISION else []
    holds_all = (kind for kind in (*kinds, *wider) if all(other == kind or can_hold(kind, other) for other in kinds))
    return next(holds_all, None)


def can_widen(existing: pa.DataType, source: pa.DataType) -> bool:
    """Return whether the table's column can become ``source``: readers take older files of shorter integers as longer
    ones, and float as double."""
    if existing in _DIGITS and source in _DIGITS:
        return _DIGITS[existing] < _DIGITS[source]
    return bool(existing == pa.float32() and source == pa.float64())


_TOKEN: Final = re.compile(r"[^<>,:()\s]+|[<>,:()]")
_DEFAULT_DECIMAL: Final = (10, 0)
"""Hive's meaning of a decimal without arguments."""


def make_list(t: pa.DataType) -> pa.DataType:
    """Return a list whose element has the name the Parquet standard gives it."""
    return pa.list_(pa.field("element", t))


def parse(glue: str, scalars: Mapping[str, pa.DataType], timestamp: pa.DataType) -> pa.DataType:
    """Return the Arrow type of ``glue``; ``scalars`` are the types by name that take no arguments that matter."""
    tokens = _TOKEN.findall(glue.lower())[::-1]
    try:
        t = _parse(tokens, scalars, timestamp)
        if tokens:
            raise ValueError(f"unexpected {tokens[-1]!r} after the type's end")
    except (IndexError, KeyError, ValueError, TypeError) as exc:
        raise SchemaIncompatibleError(f"Glue type {glue!r} is not one that can be written.") from exc
    return t


def _parse(tokens: list[str], scalars: Mapping[str, pa.DataType], timestamp: pa.DataType) -> pa.DataType:
    kind = tokens.pop()
    if kind == "timestamp":
        return timestamp
    if kind == "decimal":
        return pa.decimal128(*_parse_arguments(tokens, default=_DEFAULT_DECIMAL))
    if kind in ("array", "map", "struct"):
        return _parse_nested(kind, tokens, scalars, timestamp)
    if kind in ("char", "varchar"):
        _parse_arguments(tokens, default=())
    return scalars[kind]


def _parse_nested(
    kind: str, tokens: list[str], scalars: Mapping[str, pa.DataType], timestamp: pa.DataType
) -> pa.DataType:
    _expect(tokens, "<")
    fields: list[pa.Field] = []
    while not fields or tokens[-1] == ",":
        if fields:
            _expect(tokens, ",")
        name = ""
        if kind == "struct":
            name = tokens.pop()
            _expect(tokens, ":")
        fields.append(pa.field(name, _parse(tokens, scalars, timestamp)))
    _expect(tokens, ">")
    if kind == "struct":
        return pa.struct(fields)
    if kind == "array":
        (element,) = fields
        return make_list(element.type)
    key, value = fields
    return pa.map_(key.type, value.type)


def _parse_arguments(tokens: list[str], *, default: tuple[int, ...]) -> tuple[int, ...]:
    if not tokens or tokens[-1] != "(":
        return default
    tokens.pop()
    numbers = [int(tokens.pop())]
    while tokens[-1] == ",":
        tokens.pop()
        numbers.append(int(tokens.pop()))
    _expect(tokens, ")")
    return tuple(numbers)


def _expect(tokens: list[str], mark: str) -> None:
    if tokens.pop() != mark:
        raise ValueError(mark)


def is_same_type(one: pa.DataType, other: pa.DataType) -> bool:
    """Return True for types with one name, however their values are encoded."""
    plain = one.value_type if is_wrapped(one) else one
    return name_type(plain) == name_type(other)
