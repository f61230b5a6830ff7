"""One schema for files whose schemas differ: columns are matched by name, types widen where no value is lost."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructField, StructType

from lakewriter.column_types import can_hold
from lakewriter.errors import SchemaIncompatibleError

_MOST_NOTES = 20


@dataclass(frozen=True)
class Variant:
    """A schema that ``files`` files have; ``file`` is the first of them."""

    schema: StructType
    file: str
    files: int


@dataclass(frozen=True)
class MergedSchema:
    """``notes`` tell what not every file has; ``folds_case`` says that files spell a name in different cases,
    ``folds_inside`` that they do inside a struct.
    """

    schema: StructType
    notes: tuple[str, ...]
    folds_case: bool
    folds_inside: bool


@dataclass(frozen=True)
class _Seen:
    kind: DataType
    variant: Variant


def merge(table: str, variants: Sequence[Variant]) -> MergedSchema:
    """The schema of all files; ``SCHEMA_INCOMPATIBLE`` names two files whose types have none in common."""
    merging = _Merging(table, variants)
    schema = merging.merge_structs("", [_Seen(variant.schema, variant) for variant in variants])
    more = len(merging.notes) - _MOST_NOTES
    notes = merging.notes if more <= 0 else [*merging.notes[:_MOST_NOTES], f"{more} more columns differ between files"]
    return MergedSchema(schema, tuple(notes), merging.folds_case, merging.folds_inside)


class _Merging:
    """What is found out on the way through the columns."""

    def __init__(self, table: str, variants: Sequence[Variant]) -> None:
        self.notes: list[str] = []
        self.folds_case = self.folds_inside = False
        self._table = table
        self._total = sum(variant.files for variant in variants)

    def merge_structs(self, path: str, seen: Sequence[_Seen]) -> StructType:
        """Fields in the first file's order, then those that later files add."""
        fields: dict[str, list[tuple[StructField, Variant]]] = {}
        exact = any(_has_twins(one.kind) for one in seen)
        for one in seen:
            for field in _require_struct(one.kind):
                fields.setdefault(field.name if exact else field.name.lower(), []).append((field, one.variant))
        return StructType([self._merge_fields(path, occurrences, seen) for occurrences in fields.values()])

    def _merge_fields(
        self, path: str, occurrences: list[tuple[StructField, Variant]], seen: Sequence[_Seen]
    ) -> StructField:
        name = occurrences[0][0].name
        full = f"{path}.{name}" if path else name
        folds = any(field.name != name for field, _ in occurrences)
        self.folds_case |= folds
        self.folds_inside |= folds and bool(path)
        having = {id(variant) for _, variant in occurrences}
        without = [one.variant for one in seen if id(one.variant) not in having]
        if without:
            self.notes.append(
                f"column {full!r} is not in {sum(variant.files for variant in without)} of {self._total} files, such "
                f"as {without[0].file!r}: null in their rows"
            )
        return StructField(
            name, self.find_common_type(full, [_Seen(field.dataType, variant) for field, variant in occurrences])
        )

    def find_common_type(self, path: str, seen: Sequence[_Seen]) -> DataType:
        """The type that holds the values of all; notes where it is not the same everywhere."""
        typed = [one for one in seen if not isinstance(one.kind, NullType)] or list(seen)
        kinds = [one.kind for one in typed]
        if all(isinstance(kind, StructType) for kind in kinds):
            return self.merge_structs(path, typed)
        if all(isinstance(kind, ArrayType) for kind in kinds):
            return ArrayType(self.find_common_type(f"{path}.element", _select_part(typed, "elementType")))
        if all(isinstance(kind, MapType) for kind in kinds):
            key = self.find_common_type(f"{path}.key", _select_part(typed, "keyType"))
            return MapType(key, self.find_common_type(f"{path}.value", _select_part(typed, "valueType")))
        return self._choose_widest(path, typed)

    def _choose_widest(self, path: str, seen: Sequence[_Seen]) -> DataType:
        distinct = list({one.kind: one for one in seen}.values())
        for one in distinct:
            if all(other is one or _can_hold(one.kind, other.kind) for other in distinct):
                if len(distinct) > 1:
                    kinds = ", ".join(f"{each.kind.simpleString()} in {each.variant.file!r}" for each in distinct)
                    self.notes.append(f"column {path!r} is {kinds}: read as {one.kind.simpleString()}")
                return one.kind
        raise self._make_conflict_error(path, distinct)

    def _make_conflict_error(self, path: str, distinct: Sequence[_Seen]) -> SchemaIncompatibleError:
        pairs = itertools.combinations(distinct, 2)
        apart = (pair for pair in pairs if not _can_hold(pair[0].kind, pair[1].kind))
        one, other = next(
            (pair for pair in apart if not _can_hold(pair[1].kind, pair[0].kind)), (distinct[0], distinct[-1])
        )
        return SchemaIncompatibleError(
            f"table {self._table!r}: column {path!r} is {one.kind.simpleString()} in {one.variant.file!r} and "
            f"{other.kind.simpleString()} in {other.variant.file!r}, and neither type holds all values of the other.",
            remedy="Load the files as two tables, or read each as a view of an sql: read that casts the column.",
        )


def _require_struct(kind: DataType) -> StructType:
    assert isinstance(kind, StructType)
    return kind


def _has_twins(kind: DataType) -> bool:
    """Whether one struct has two fields whose names differ in case only."""
    names = _require_struct(kind).fieldNames()
    return len({name.lower() for name in names}) < len(names)


def _select_part(seen: Sequence[_Seen], part: str) -> list[_Seen]:
    return [_Seen(getattr(one.kind, part), one.variant) for one in seen]


def _can_hold(target: DataType, source: DataType) -> bool:
    try:
        return can_hold(to_arrow_type(target), to_arrow_type(source))
    except PySparkException:
        return False


def find_variants(schemas: Mapping[str, StructType]) -> list[Variant]:
    """The different ones among the schemas of files, in the order of the files' names."""
    variants: dict[StructType, Variant] = {}
    for file in sorted(schemas):
        schema = _require_struct(_strip_annotations(schemas[file]))
        seen = variants.get(schema)
        variants[schema] = Variant(schema, seen.file if seen else file, seen.files + 1 if seen else 1)
    return list(variants.values())


def _strip_annotations(kind: DataType) -> DataType:
    """The type without what files of one kind may differ in: what is nullable, and notes on fields."""
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, _strip_annotations(field.dataType)) for field in kind])
    if isinstance(kind, ArrayType):
        return ArrayType(_strip_annotations(kind.elementType))
    return (
        MapType(_strip_annotations(kind.keyType), _strip_annotations(kind.valueType))
        if isinstance(kind, MapType)
        else kind
    )
