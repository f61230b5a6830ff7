"""The recentchange collection of the vendor's document: its schema, its documents, and tables of them."""

import json
from typing import Any

import pyarrow as pa

from lakewriter.dialects.estuary.collection_schema import read_schema
from lakewriter.shape.flatten_plan import FlattenPlan, plan_flatten
from lakewriter.shape.flattening import Flattener
from lakewriter.spec.collection import Collection, Selection
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.table_spec import IndexKind, Read, TableSpec

_PAIR = {"type": "object", "properties": {"new": {"type": "integer"}, "old": {"type": "integer"}}}
RECENTCHANGE: dict[str, Any] = {
    "type": "object",
    "required": ["meta"],
    "properties": {
        "id": {"type": ["integer", "null"]},
        "bot": {"type": "boolean"},
        "length": _PAIR,
        "log_params": {"type": ["object", "array", "string"]},
        "meta": {
            "type": "object",
            "properties": {"id": {"type": "string"}, "dt": {"type": "string", "format": "date-time"}},
        },
        "revision": _PAIR,
        "tags": {"type": "array", "items": {"type": "string"}},
        "title": {"type": "string"},
    },
}
CHANGE: dict[str, Any] = {
    "id": 7,
    "bot": False,
    "length": {"new": 120, "old": 118},
    "log_params": {"a": [1, 2]},
    "meta": {"id": "m-1", "dt": "2024-01-15T10:30:00Z"},
    "revision": {"new": 9, "old": 8},
    "tags": ["mobile"],
    "title": 'Main "Page"',
}


def collection_table(
    *, keys: tuple[str, ...] = ("/meta/id",), schema: Any = None, column: str | None = None, **selection: Any
) -> TableSpec:
    """A table of documents."""
    return TableSpec(
        source_table="recentchange",
        schema_name="",
        name="recentchanges",
        read=Read(format="json", path="a.json"),
        index=IndexKind.SPARSE,
        layout=Layout("recentchanges", Template.parse("v{backfill}/{counter}.parquet")),
        path="recentchanges",
        collection=Collection(
            keys=keys,
            column=column,
            locations=None if schema is None else read_schema(schema).locations,
            selection=Selection(**selection),
        ),
    )


def planned(schema: Any = RECENTCHANGE, keys: tuple[str, ...] = ("/meta/id",), **selection: Any) -> FlattenPlan:
    """The plan of JSON documents in a column ``value``."""
    table = collection_table(keys=keys, schema=schema, column="value", **selection)
    return plan_flatten(pa.schema([("value", pa.string())]), table)


def flattened(plan: FlattenPlan, *documents: Any) -> list[dict[str, Any]]:
    """The rows of JSON documents; a text is one as it is."""
    texts = [each if isinstance(each, str) else json.dumps(each) for each in documents]
    batch = pa.record_batch([pa.array(texts)], names=["value"])
    return list(Flattener(plan).shape(batch).rows.to_pylist())
