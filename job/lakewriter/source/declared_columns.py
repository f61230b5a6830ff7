"""Plan the casts of columns to the types that a table declares, and cast them in the tasks or in Spark's plan.

Tasks cast the batches that they load, which costs a tenth of a second per million values. If Spark itself has to see
the types, in conditions and where it repartitions rows, the same cast is part of Spark's plan.
"""

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import DataType, StructType

from lakewriter.cast.exact_text import TextForm
from lakewriter.cast.sql_types import parse_type
from lakewriter.cast.strict_cast import explain_misfit
from lakewriter.cast.typed_cast import cast_values, is_castable, is_text
from lakewriter.column_types import can_hold, name_type
from lakewriter.documents.nesting import cut
from lakewriter.errors import SpecInvalidError, ValueUnrepresentableError
from lakewriter.source.arrow_types import make_nullable
from lakewriter.source.bad_rows import FIELDS, KEEP_APART, Marked, join_marks, note_cut, read_cut
from lakewriter.source.marked_rows import add_misfits, is_marked
from lakewriter.spec.table_spec import ColumnType, TableSpec

_SHOWN: Final = 200
_MISFIT_PARTS: Final = ("column", "value", "reason")
_MISFIT_KIND: Final = pa.struct([(part, pa.string()) for part in _MISFIT_PARTS])


@dataclass(frozen=True)
class ColumnCast:
    """The cast of the column ``name`` at ``index`` from ``source``, None if Arrow has no such type, to ``kind``.

    Texts that match ``unlike`` do not fit, although they convert.
    """

    index: int
    name: str
    source: pa.DataType | None
    kind: pa.DataType
    form: TextForm
    unlike: str | None = None

    @property
    def is_exact(self) -> bool:
        """True if no value can be lost: numbers become wider, or anything becomes text."""
        if self.source is None:
            return bool(pt.is_string(self.kind))
        widens = pt.is_string(self.kind) or pt.is_null(self.source) or can_hold(self.kind, self.source)
        return bool(widens and not is_text(self.source))

    @property
    def type_name(self) -> str:
        """The declared type in SQL's words."""
        return name_type(self.kind)


def plan_casts(names: Sequence[str], kinds: Sequence[pa.DataType | None], table: TableSpec) -> tuple[ColumnCast, ...]:
    """Return the casts of the columns that are not of their declared type yet.

    Args:
        names: The source's columns, of which several may have one name.
        kinds: Their types; None for one that Arrow has not.
        table: Its ``columns`` are looked up by exact name, else in whatever case they are spelled.

    Raises:
        SpecInvalidError: A declared column is not there, or its type is not one that converts.
    """
    casts = []
    for declared, column in table.columns.items():
        name = _find_column(declared, names, table)
        kind = parse_type(column.type)
        form = make_form(column, table)
        for index in (index for index, other in enumerate(names) if other == name):
            source = kinds[index]
            cast = ColumnCast(index, name, source, kind, form)
            if not cast.is_exact and (source is None or not is_castable(source, kind, form)):
                raise _make_type_error(table, cast)
            if source is None or not source.equals(kind):
                _require_order(cast, table)
                casts.append(cast)
    return tuple(casts)


def _require_order(cast: ColumnCast, table: TableSpec) -> None:
    """Raise ``SPEC_INVALID`` if rows would be compared by the texts of numbers."""
    keys = {"cursor": [table.cursor or ""], "order_by": table.order_by}
    key = next((key for key, names in keys.items() if cast.name.lower() in map(str.lower, names)), None)
    source = cast.source
    is_number = source is not None and (pt.is_integer(source) or pt.is_floating(source) or pt.is_decimal(source))
    if key is not None and is_number and pt.is_string(cast.kind):
        raise SpecInvalidError(
            f"tables.{table.id}.{key} names {cast.name!r}, which has numbers ({name_type(source)}) and is declared as "
            "string: as texts, '10' comes before '9', and rows would be left out.",
            remedy=f"Leave {cast.name!r} out of columns:, or have its text in another column by an sql: read.",
        )


def make_form(column: ColumnType, table: TableSpec) -> TextForm:
    """Return the spelling of a declared column's texts."""
    return TextForm(column.format, column.format, column.unit, table.truncates_nanoseconds)


def _find_column(name: str, names: Sequence[str], table: TableSpec) -> str:
    for candidate in (name, *[other for other in names if other.lower() == name.lower()]):
        if candidate in names:
            return candidate
    nearest = difflib.get_close_matches(name, names, 1, 0.0)
    raise SpecInvalidError(
        f"tables.{table.id}.columns names {name!r}, which the source does not have.",
        remedy=f"The nearest is {nearest[0]!r}." if nearest else "The source has no columns.",
    )


def _make_type_error(table: TableSpec, cast: ColumnCast) -> SpecInvalidError:
    source, name = cast.source, cast.name
    is_count = source is not None and pt.is_integer(source) and pt.is_timestamp(cast.kind)
    unit = f"; or name the unit: columns: {{{name}: {{type: {cast.type_name}, from: epoch_ms}}}}" if is_count else ""
    return SpecInvalidError(
        f"tables.{table.id}.columns declares {name!r} as {cast.type_name}, and the source has "
        f"{'a type that Arrow has not' if source is None else name_type(source)}, which does not convert to it.",
        remedy=f"Convert it in an sql: read, or declare another type{unit}.",
    )


def apply_declared_types(
    source: DataFrame, table: TableSpec, *, in_spark: bool, kinds: Mapping[int, pa.DataType] | None = None
) -> tuple[DataFrame, tuple[ColumnCast, ...]]:
    """Return the source with the types that the table declares, and the casts that are left to the tasks.

    ``kinds`` are the source's types for columns that come as text, by index.

    Spark itself does the casts that lose nothing: it widens numbers and writes texts. The other casts are part of its
    plan only ``in_spark``. If bad rows are marked, a value that does not convert marks its row.
    """
    if not (table.columns or kinds):
        return source, ()
    count = len(source.columns) - is_marked(source)
    casts = (
        *plan_source_casts(source, kinds or {}, truncates_nanoseconds=table.truncates_nanoseconds),
        *plan_casts(source.columns[:count], list_arrow_types(source)[:count], table),
    )
    casts_in_plan = [cast for cast in casts if in_spark or cast.is_exact]
    frame = _cast_in_plan(source, casts_in_plan, table) if casts_in_plan else source
    return frame, tuple(cast for cast in casts if cast not in casts_in_plan)


def plan_source_casts(
    source: DataFrame, kinds: Mapping[int, pa.DataType], *, truncates_nanoseconds: bool = False
) -> tuple[ColumnCast, ...]:
    """Return the casts of a frame's columns whose types, by index, are not those that Spark has for them."""
    types, form = list_arrow_types(source), TextForm(truncates_nanoseconds=truncates_nanoseconds)
    casts = (ColumnCast(index, source.columns[index], types[index], kind, form) for index, kind in kinds.items())
    return tuple(cast for cast in casts if cast.source is None or not cast.source.equals(cast.kind))


def cast_in_spark(source: DataFrame, kinds: Mapping[int, pa.DataType], table: TableSpec) -> DataFrame:
    """Return a frame whose columns have the types of ``kinds``, by index, for Spark's SQL."""
    casts = plan_source_casts(source, kinds)
    return _cast_in_plan(source, casts, table) if casts else source


def list_arrow_types(source: DataFrame) -> list[pa.DataType | None]:
    """Return the types of a frame's columns, None for one that Arrow has not."""
    return [_find_arrow_type(field.dataType) for field in source.schema]


def _find_arrow_type(kind: DataType) -> pa.DataType | None:
    try:
        return make_nullable(to_arrow_type(kind))
    except PySparkException:
        return None


def _cast_in_plan(source: DataFrame, casts: Sequence[ColumnCast], table: TableSpec) -> DataFrame:
    """Return the source with the casts in Spark's plan. Several columns may have one name."""
    numbered = source.toDF(*number_columns(source.columns))
    columns = [F.col(name) for name in numbered.columns]
    misfits = []
    for cast in casts:
        target = from_arrow_type(cast.kind, prefer_timestamp_ntz=True)
        if cast.is_exact:
            columns[cast.index] = columns[cast.index].cast(target)
            continue
        result = StructType().add("value", target).add("misfit", from_arrow_type(_MISFIT_KIND))
        convert = _make_spark_cast(cast, table.id, marks=is_marked(source))
        # PySpark reads the function's annotations, which its stubs do not know.
        converted = arrow_udf(convert, result)(columns[cast.index])  # type: ignore[call-overload]
        columns[cast.index] = converted.getField("value")
        misfits.append(converted.getField("misfit"))
    if misfits and is_marked(source):
        columns[-1] = add_misfits(columns[-1], misfits)
    return numbered.select(*columns).toDF(*source.columns)


def _make_spark_cast(cast: ColumnCast, table: str, *, marks: bool) -> Callable[[pa.Array], pa.Array]:
    """Return a function of values that returns them cast, and the reason of each misfit.

    If rows have no ``marks``, it raises the first misfit.
    """

    # PySpark reads these annotations, which a partial function has not.
    def convert(values: pa.Array) -> pa.Array:
        result = cast_values(values, cast.kind, cast.form)
        misfits = pa.nulls(len(values), _MISFIT_KIND)
        if result.misfits is not None:
            if not marks:
                number = pc.index(result.misfits, True).as_py()
                raise make_misfit_error(table, "a row", cast, values[number : number + 1])
            reasons = [
                _describe_misfit(cast, values[number : number + 1]) if is_misfit else None
                for number, is_misfit in enumerate(result.misfits.to_pylist())
            ]
            misfits = pa.array(reasons, _MISFIT_KIND)
        return pa.StructArray.from_arrays([result.values, misfits], ["value", "misfit"])

    return convert


def declare_schema(schema: pa.Schema, casts: Sequence[ColumnCast]) -> pa.Schema:
    """Return the schema with the types that the casts give."""
    for cast in casts:
        schema = schema.set(cast.index, pa.field(schema.field(cast.index).name, cast.kind))
    return schema


def cast_batch(
    batch: pa.RecordBatch, casts: Sequence[ColumnCast], table: str, where: str, first: int = 0
) -> pa.RecordBatch:
    """Return the batch with its columns cast.

    A row with a misfit is marked if the rows have marks, and its value becomes null. Otherwise the first misfit
    is raised. For the message, ``where`` names the rows' partition and ``first`` is the number of the first row in it.
    """
    columns = list(batch.columns)
    misfits: list[tuple[ColumnCast, pa.Array]] = []
    cuts: dict[str, int] = {}
    for cast in casts:
        result = cast_values(batch.column(cast.index), cast.kind, cast.form)
        cuts[cast.name] = result.cut
        values, mask = _exclude_unlike(cast, batch.column(cast.index), result.values, result.misfits)
        columns[cast.index] = values
        if mask is not None:
            misfits.append((cast, mask))
    marked = Marked.find(batch) if misfits else None
    if misfits and marked is None:
        cast, mask = misfits[0]
        number = pc.index(mask, True).as_py()
        raise make_misfit_error(
            table, f"{where}, row {first + number}", cast, batch.column(cast.index)[number : number + 1]
        )
    if marked is not None:
        columns[-1] = _mark_misfits(marked, misfits)
    schema = declare_schema(batch.schema, casts)
    return pa.RecordBatch.from_arrays(columns, schema=note_cut(schema, {**read_cut(batch.schema), **cuts}))


def _exclude_unlike(
    cast: ColumnCast, texts: pa.Array, values: pa.Array, misfits: pa.Array | None
) -> tuple[pa.Array, pa.Array | None]:
    """Return the values of a cast and its misfits, with those texts among them that do not look like the type."""
    if cast.unlike is None:
        return values, misfits
    unlike = pc.fill_null(pc.match_substring_regex(texts, cast.unlike), False)
    if not pc.any(unlike).as_py():
        return values, misfits
    return pc.if_else(unlike, None, values), unlike if misfits is None else pc.or_(pc.fill_null(misfits, False), unlike)


def cast_batches(
    batches: Iterable[pa.RecordBatch], casts: Sequence[ColumnCast], table: str, where: str
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of one partition with their columns cast; see ``cast_batch``."""
    first = 0
    for batch in batches:
        yield cast_batch(batch, casts, table, where, first) if casts else batch
        first += batch.num_rows


def make_misfit_error(table: str, where: str, cast: ColumnCast, value: pa.Array) -> ValueUnrepresentableError:
    """Return the error for the one ``value`` of an array, which does not fit."""
    return ValueUnrepresentableError(
        f"table {table!r}, {where}: {cut(_write(value), _SHOWN)!r} in column {cast.name!r} {explain(cast, value)}.",
        remedy="Correct the value; or declare another type or spelling under columns:; or keep such rows apart, up to "
        f"a share of all: {KEEP_APART}.",
        column=cast.name,
    )


def explain(cast: ColumnCast, value: pa.Array) -> str:
    """Return the reason why the one value of an array does not fit, as ``does not convert to int: it is ...``."""
    reason = "" if pt.is_nested(value.type) else explain_misfit(_write(value), cast.kind, cast.form)
    return f"does not convert to {cast.type_name}: {reason or 'a part of the value would be lost'}"


def _write(value: pa.Array) -> str:
    if is_castable(value.type, pa.string()):
        text = cast_values(value, pa.string()).values[0].as_py()
        return value[0].as_py().hex() if text is None else str(text)
    return json.dumps(value[0].as_py(), default=str, ensure_ascii=False)


def _mark_misfits(marked: Marked, misfits: Sequence[tuple[ColumnCast, pa.Array]]) -> pa.Array:
    """Return the marks of rows with those of the misfits added.

    A row is marked with its first misfit, unless a fault other than a misfit marks it already. If several values do not
    fit, ``row`` holds the texts of all.
    """
    marks = dict(zip(FIELDS, marked.marks.flatten(), strict=True))
    may_have_more = pc.or_(marks["reason"].is_null(), marks["column"].is_valid())
    rows: dict[int, list[dict[str, str]]] = {}
    for cast, mask in misfits:
        for number in pc.indices_nonzero(pc.and_(mask, may_have_more)).to_pylist():
            row_misfits = rows.setdefault(number, _list_misfits({name: marks[name][number].as_py() for name in FIELDS}))
            row_misfits.append(_describe_misfit(cast, marked.batch.column(cast.index)[number : number + 1]))
    misfits_by_row = [rows[number] for number in sorted(rows)]
    is_misfit = pa.array([number in rows for number in range(marked.batch.num_rows)])
    texts: dict[str, list[str | None]] = {part: [first[part] for first, *_ in misfits_by_row] for part in _MISFIT_PARTS}
    texts["row"] = [_write_all(items) if len(items) > 1 else None for items in misfits_by_row]
    for name, values in texts.items():
        marks[name] = pc.replace_with_mask(marks[name], is_misfit, pa.array(values, pa.string()))
    return join_marks(marks)


def _list_misfits(mark: dict[str, str | None]) -> list[dict[str, str]]:
    """Return the misfits with which earlier casts marked a row."""
    column, value, reason = mark["column"], mark["value"], mark["reason"]
    if column is None or value is None or reason is None:
        return []
    texts: dict[str, str] = json.loads(mark["row"]) if mark["row"] else {column: value}
    return [{"column": name, "value": text, "reason": reason} for name, text in texts.items()]


def _describe_misfit(cast: ColumnCast, value: pa.Array) -> dict[str, str]:
    return {"column": cast.name, "value": _write(value), "reason": f"it {explain(cast, value)}"}


def _write_all(misfits: Sequence[dict[str, str]]) -> str:
    texts = {misfit["column"]: misfit["value"] for misfit in misfits}
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))


def number_fields(fields: Iterable[pa.Field]) -> list[pa.Field]:
    """Return the fields under the names of ``number_columns``."""
    return [field.with_name(f"c{index}") for index, field in enumerate(fields)]


def number_columns(names: Sequence[str]) -> list[str]:
    """Return a unique name for each column, made from its index: several columns may have one name."""
    return [f"c{index}" for index in range(len(names))]
