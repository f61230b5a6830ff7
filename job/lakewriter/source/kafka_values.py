"""Read Debezium's events from the values of a Kafka topic, as Kafka Connect's JSON converter or Avro writes them.

https://debezium.io/documentation/reference/3.2/connectors/postgresql.html#postgresql-events
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as st
from pyspark.sql.pandas.types import to_arrow_type

from lakewriter.errors import SpecInvalidError
from lakewriter.source.bad_rows import BAD
from lakewriter.source.change_events.connect_schemas import read_row_types
from lakewriter.source.change_events.members import NO_EVENT
from lakewriter.source.change_events.mongodb import MESSAGE_KEY, is_of_documents
from lakewriter.source.kafka_avro import AvroDecoder, list_described
from lakewriter.source.marked_rows import add_fault
from lakewriter.source.request import RowsRequest
from lakewriter.spec.table_spec import ColumnType

_UNREAD: Final = "__lakewriter_unread"
_EVENT: Final = "__lakewriter_event"
_NO_JSON: Final = "expected an event of Debezium as JSON"
_IMAGES: Final = ("before", "after")
_MESSAGE: Final = ("value", "key")
"""The parts of a message that are read."""
_PLAIN: Final[Mapping[str, st.DataType]] = {
    "boolean": st.BooleanType(),
    **dict.fromkeys(("int8", "int16", "int32", "int64"), st.LongType()),
    **dict.fromkeys(("float", "float32", "double", "float64"), st.DoubleType()),
}
"""The types of Connect that JSON has; the others, bytes among them, are texts there."""


@dataclass(frozen=True)
class KafkaEvents:
    """The events of a topic's messages, marked.

    ``declared`` are the types of columns that their schemas give.
    """

    frame: DataFrame
    declared: Mapping[str, ColumnType] = field(default_factory=dict)


def read_values(marked: DataFrame, request: RowsRequest) -> KafkaEvents:
    """Return the events in the column ``value``, of which a null is a tombstone.

    A value that is none is a bad row. The request's ``first`` rows are looked at for schemas.

    Raises:
        SpecInvalidError: The values have no schema, and a column of their rows is not declared.
        SourceFailedError: The schemas of values in Avro cannot be had.
    """
    table, first = request.table, request.first
    if table.read.values is not None:
        return _read_avro(marked, AvroDecoder(table.read.values, request.secrets, table.id, first))
    names = [name for name in _MESSAGE if name in marked.columns]
    texts = marked.select(*(F.col(name).cast("string").alias(name) for name in names), F.col(BAD))
    looked_at = texts if first is None else texts.limit(first)
    wrapped = F.from_json("value", "schema STRING, payload STRING")
    schemas = [
        row[0]
        for row in looked_at.select(wrapped["schema"].alias("schema")).where("schema IS NOT NULL").distinct().collect()
    ]
    if schemas:
        wrapped_kind = st.StructType().add("payload", _join_types(schemas))
        return KafkaEvents(_parse(texts, wrapped_kind), read_row_types(schemas, table.id))
    kind = _find_members(looked_at)
    if not kind.fields:
        return _make_no_events(texts)
    row_names = {name for image in _IMAGES for name in _list_columns(kind, image)}
    declared_names = {name.lower() for name in table.columns}
    if missing := sorted(name for name in row_names if name.lower() not in declared_names):
        raise SpecInvalidError(
            f"tables.{table.id}.columns does not declare {', '.join(map(repr, missing))}: the events have no schema, "
            "which would say what the values are.",
            remedy="Set value.converter.schemas.enable: true for the connector; or declare each column, such as "
            f"columns: {{{missing[0]}: string}}.",
        )
    return KafkaEvents(_parse(texts, kind))


def _read_avro(marked: DataFrame, decoder: AvroDecoder) -> KafkaEvents:
    schemas = decoder.find_schemas(marked, "value")
    described = list_described(schemas)
    if not described:
        return _make_no_events(decoder.decode(marked, schemas, None))
    kind = _join_types(described)
    # Each of them is a record.
    assert isinstance(kind, st.StructType)
    has_key = _is_of_documents(kind) and "key" in marked.columns
    texts = decoder.decode(marked, schemas, decoder.find_schemas(marked, "key") if has_key else None)
    return KafkaEvents(_parse(texts, kind), read_row_types(described, decoder.table))


def _make_no_events(texts: DataFrame) -> KafkaEvents:
    nothing = (F.lit(None).cast("string").alias(name) for name in NO_EVENT.names)
    return KafkaEvents(texts.select(*nothing, BAD))


def _join_types(schemas: Iterable[str]) -> st.DataType:
    return reduce(_join, (_make_type(json.loads(text)) for text in sorted(schemas)))


def _find_members(texts: DataFrame) -> st.StructType:
    """Return the type of the events themselves, with each value but objects and lists as text."""
    session: SparkSession = texts.sparkSession
    jvm, options = session._jvm, session.read.option("primitivesAsString", True).option("mode", "DROPMALFORMED")
    assert jvm is not None
    # PySpark's own reader takes texts only as an RDD of Python objects.
    rows = getattr(texts.select("value").where("value IS NOT NULL")._jdf, "as")(
        jvm.org.apache.spark.sql.Encoders.STRING()
    )
    kind = st.StructType.fromJson(json.loads(options._jreader.json(rows).schema().json()))
    inner = kind["payload"].dataType if "payload" in kind.names else None
    event = inner if isinstance(inner, st.StructType) else kind
    names = [name for name in _IMAGES if name in event.names]
    if names and not any(isinstance(event[name].dataType, st.StructType) for name in names):
        # The type of a member that is always null, as in truncates, is that of a text.
        images = ", ".join(f"{name} STRING" for name in names)
        read = F.from_json("value", images if event is kind else f"payload STRUCT<{images}>")
        member = read if event is kind else read["payload"]
        if texts.where(F.coalesce(*(member[name] for name in names)).isNotNull()).isEmpty():
            event = st.StructType([f for f in event if f.name not in names])
    filled = _fill_images(event)
    return st.StructType().add("payload", filled) if isinstance(inner, st.StructType) else filled


def _fill_images(event: st.StructType) -> st.StructType:
    """Return the type of events whose images have the same columns: one that is null in all events has none."""
    rows = [event[name].dataType for name in _IMAGES if name in event.names]
    row = next((kind for kind in rows if isinstance(kind, st.StructType)), None)
    fields = [
        st.StructField(
            f.name,
            row if row is not None and f.name in _IMAGES and not isinstance(f.dataType, st.StructType) else f.dataType,
        )
        for f in event
    ]
    return st.StructType(fields)


def _list_columns(kind: st.StructType, image: str) -> list[str]:
    event = kind["payload"].dataType if "payload" in kind.names else kind
    image_type = event[image].dataType if isinstance(event, st.StructType) and image in event.names else None
    return image_type.names if isinstance(image_type, st.StructType) else []


def _parse(texts: DataFrame, kind: st.StructType) -> DataFrame:
    """Return the events of texts, with the columns of ``kind`` or of its payload, and their marks."""
    whole = st.StructType([*kind.fields, st.StructField(_UNREAD, st.StringType())])
    parsed = F.from_json("value", whole, {"columnNameOfCorruptRecord": _UNREAD, "mode": "PERMISSIVE"})
    event = kind["payload"].dataType if "payload" in kind.names else kind
    keys = [_read_key().alias(MESSAGE_KEY)] if "key" in texts.columns and _is_of_documents(event) else []
    events = texts.select("value", parsed.alias(_EVENT), *keys, F.col(BAD))
    # Spark takes an empty text for null; the JSON null is a tombstone.
    is_empty = F.col("value").rlike(r"^\s*$")
    unread = F.coalesce(F.col(_EVENT)[_UNREAD], F.when(is_empty, F.col("value")))
    marks = add_fault(F.col(BAD), unread, _NO_JSON)
    inner = f"{_EVENT}.payload" if "payload" in kind.names else _EVENT
    return events.select(f"{inner}.*", *([MESSAGE_KEY] if keys else []), marks.alias(BAD)).drop(_UNREAD)


def _read_key() -> Column:
    """Return the ``id`` in the key of a message, with or without its schema; null where there is none."""
    key = F.from_json("key", "id STRING, payload STRUCT<id: STRING>")
    return F.coalesce(key["payload"]["id"], key["id"])


def _is_of_documents(event: st.DataType) -> bool:
    """Return True for events of documents, of which a delete may be known by its message's key alone."""
    return isinstance(event, st.StructType) and is_of_documents(to_arrow_type(event))


def _make_type(schema: Mapping[str, Any]) -> st.DataType:
    """Return the type with which Spark reads what a schema of Connect describes."""
    kind = schema.get("type")
    if kind == "struct":
        fields = ((str(member.get("field")), _make_type(member)) for member in schema.get("fields") or ())
        return st.StructType([st.StructField(name, inner) for name, inner in fields])
    if kind == "array":
        return st.ArrayType(_make_type(schema.get("items") or {}))
    if kind == "map":
        return st.MapType(st.StringType(), _make_type(schema.get("values") or {}))
    return _PLAIN.get(str(kind), st.StringType())


def _join(one: st.DataType, other: st.DataType) -> st.DataType:
    """Return the type that has the members of both; where these are of two types their text is read."""
    if isinstance(one, st.StructType) and isinstance(other, st.StructType):
        others = {member.name: member.dataType for member in other}
        members = {m.name: _join(m.dataType, others.pop(m.name, m.dataType)) for m in one} | others
        return st.StructType([st.StructField(name, kind) for name, kind in members.items()])
    if isinstance(one, st.ArrayType) and isinstance(other, st.ArrayType):
        return st.ArrayType(_join(one.elementType, other.elementType))
    return one if one == other else st.StringType()
