"""Translate conditions in SQL to expressions that tasks evaluate with Arrow, where both mean the same.

Spark analyses a condition, so that types, names and casts are its own. The result is translated as far as null logic,
order and equality are alike. Texts compare by their bytes in both. Floats do not: to Spark NaN is equal to itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from lakewriter.column_types import UTC_MICROS
from lakewriter.source.spark_failures import SPARK_ERRORS

_COMPARED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "EqualTo": pc.equal,
    "LessThan": pc.less,
    "LessThanOrEqual": pc.less_equal,
    "GreaterThan": pc.greater,
    "GreaterThanOrEqual": pc.greater_equal,
}
_JOINED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {"And": pc.and_kleene, "Or": pc.or_kleene}
_ASKED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "Not": pc.invert,
    "IsNull": pc.is_null,
    "IsNotNull": pc.is_valid,
}
_TRANSLATED: Final = frozenset({*_COMPARED, *_JOINED, *_ASKED, "EqualNullSafe", "In"})
"""Nodes of Spark's plans; of what it parses also ``Between``, which its plans do not have any more."""
_COLUMN: Final = "UnresolvedAttribute"
_TYPES: Final = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": UTC_MICROS,
    "timestamp_ntz": pa.timestamp("us"),
}
"""Types, by Spark's names, whose values compare alike; decimals of one type do as well."""


class _NotAlikeError(Exception):
    """Arrow would mean something else by an expression, or nothing at all."""


@dataclass(frozen=True)
class Expression:
    """An operation on a batch's columns; picklable."""

    name: str
    parts: tuple["Expression", ...] = ()
    index: int = -1
    value: pa.Scalar | None = None

    def evaluate(self, batch: pa.RecordBatch) -> Any:
        """Return an array of one value per row, or a scalar if the value depends on no column."""
        if self.index >= 0:
            return batch.column(self.index)
        if self.value is not None:
            return self.value
        values = [part.evaluate(batch) for part in self.parts]
        if self.name == "EqualNullSafe":
            one, other = values
            both_null = pc.and_(pc.is_null(one), pc.is_null(other))
            return pc.or_(pc.fill_null(pc.equal(one, other), False), both_null)
        if self.name == "In":
            is_member = pc.equal(values[0], values[1])
            for item in values[2:]:
                is_member = pc.or_kleene(is_member, pc.equal(values[0], item))
            return is_member
        if self.name in _ASKED:
            return _ASKED[self.name](values[0])
        return (_COMPARED.get(self.name) or _JOINED[self.name])(*values)

    def find_true(self, batch: pa.RecordBatch) -> pa.Array:
        """Return an array that is true where the condition holds, and false for null."""
        values = pc.fill_null(self.evaluate(batch), False)
        return pa.repeat(values, batch.num_rows) if isinstance(values, pa.Scalar) else values


def may_translate(session: SparkSession, sql: str) -> bool:
    """Return False if Arrow cannot evaluate a condition, judged without the columns' types."""
    try:
        return _may_translate(session._jsparkSession.sessionState().sqlParser().parseExpression(sql))
    except SPARK_ERRORS:
        return False


def _may_translate(node: Any) -> bool:
    name, parts = str(node.getClass().getSimpleName()), list_elements(node.children())
    is_known = name in _TRANSLATED or name == "Between"
    return name == _COLUMN or not _has_column(node) or (is_known and all(map(_may_translate, parts)))


def _has_column(node: Any) -> bool:
    return str(node.getClass().getSimpleName()) == _COLUMN or any(map(_has_column, list_elements(node.children())))


def translate(session: SparkSession, sql: str, schema: pa.Schema) -> Expression | None:
    """Translate a condition over columns. Return None if only Spark can evaluate it, or if it is wrong."""
    try:
        empty = session.createDataFrame([], from_arrow_schema(schema, prefer_timestamp_ntz=True))
        plan = empty.select(F.expr(sql)).alias("c")._jdf.queryExecution().optimizedPlan()
        [node] = list_elements(plan.projectList())
        [child] = list_elements(plan.children())
        indexes = {column.exprId().id(): index for index, column in enumerate(list_elements(child.output()))}
        expression, kind = _translate(node, indexes, schema)
    except (*SPARK_ERRORS, _NotAlikeError, ValueError):
        return None
    return expression if pt.is_boolean(kind) else None


def _translate(node: Any, indexes: Mapping[int, int], schema: pa.Schema) -> tuple[Expression, pa.DataType]:
    """Return the expression of a node of Spark's plan, and its type."""
    name = str(node.getClass().getSimpleName())
    if name == "Alias":
        return _translate(node.child(), indexes, schema)
    if name == "AttributeReference":
        index = indexes[node.exprId().id()]
        return Expression(name, index=index), _require_type(node, schema.field(index).type)
    if name == "Literal":
        kind = _require_type(node)
        return Expression(name, value=_read_literal(node, kind)), kind
    if name in ("IsNull", "IsNotNull") and node.child().getClass().getSimpleName() == "AttributeReference":
        # Of columns of any type.
        return Expression(name, (Expression("", index=indexes[node.child().exprId().id()]),)), pa.bool_()
    parts, kinds = zip(*(_translate(part, indexes, schema) for part in list_elements(node.children())), strict=True)
    is_logic = name in _JOINED or name == "Not"
    if name not in _TRANSLATED or len(set(kinds)) > 1 or (is_logic and not pt.is_boolean(kinds[0])):
        raise _NotAlikeError(name)
    return Expression(name, parts), pa.bool_()


def _require_type(node: Any, arrow: pa.DataType | None = None) -> pa.DataType:
    name = str(node.dataType().simpleString())
    kind = _TYPES.get(name)
    if name.startswith("decimal("):
        precision, scale = name.removeprefix("decimal(").removesuffix(")").split(",")
        kind = pa.decimal128(int(precision), int(scale))
    if kind is None or (arrow is not None and arrow != kind):
        raise _NotAlikeError(name)
    return kind


def _read_literal(node: Any, kind: pa.DataType) -> pa.Scalar:
    value = node.value()
    if value is None:
        return pa.scalar(None, kind)
    if pt.is_string(kind):
        return pa.scalar(str(value.toString()), kind)
    if pt.is_decimal(kind):
        return pa.scalar(Decimal(str(value.toJavaBigDecimal())), kind)
    return pa.scalar(value, kind)


def list_elements(sequence: Any) -> list[Any]:
    """Return the elements of a Scala sequence."""
    return [sequence.apply(index) for index in range(sequence.size())]
