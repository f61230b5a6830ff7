"""Events of Debezium in the values of a Kafka topic become rows, typed by the schemas beside them."""

import json
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, Final

import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.naming import DELETED
from lakewriter.source.bad_rows import BAD, SKIPPED
from lakewriter.source.request import RowsRequest
from lakewriter.source.table_frames import Loaded, unfold_events
from lakewriter.spec.change_events import CHANGE_ORDER, CHANGE_SOURCE, ChangeEvents
from lakewriter.spec.table_spec import ColumnType, Read
from tests.source.test_change_events import make_table

pytestmark = pytest.mark.spark

# The schema of Kafka Connect's JSON converter: postgresql.html#postgresql-create-events of Debezium's pages.
NAMES: Final = [{"type": "string", "optional": True, "field": name} for name in ("db", "schema", "table")]
SOURCE: Final = [{"type": "string", "field": "connector"}, {"type": "int64", "field": "ts_ms"},
                 {"type": "int64", "optional": True, "field": "lsn"}, *NAMES]  # fmt: skip
ID: Final = {"type": "int32", "optional": False, "field": "id"}
NAME: Final = {"type": "string", "optional": True, "field": "name"}
TAGS: Final = {"type": "array", "items": {"type": "string"}, "optional": True, "field": "tags"}


def wrap(op: str, lsn: int, after: object, before: object = None, *columns: dict[str, Any]) -> str:
    images = [{"type": "struct", "fields": list(columns), "optional": True, "field": name} for name in IMAGES]
    source = {"type": "struct", "fields": SOURCE, "field": "source"}
    schema = {"type": "struct", "fields": [*images, source, {"type": "string", "field": "op"}]}
    return json.dumps({"schema": schema, "payload": make_event(op, lsn, after, before)})


def make_event(op: str, lsn: int, after: object, before: object = None) -> dict[str, object]:
    source = {"connector": "postgresql", "ts_ms": 5, "lsn": lsn}
    return {"before": before, "after": after, "source": source, "op": op}


IMAGES: Final = ("before", "after")


@pytest.fixture
def unfold(spark):
    def unfold(*values: str | None, first: int | None = None, keys: Sequence[str] = (), **source: Any):
        """Return the rows, and the types that the events give."""
        texts = zip_longest(values, keys)
        frame = spark.createDataFrame(
            [tuple(None if text is None else text.encode() for text in pair) for pair in texts],
            "value BINARY, key BINARY",
        )
        events = ChangeEvents(form="debezium")
        table = make_table(events, read=Read(format="kafka"), **source)
        loaded = unfold_events(Loaded(frame), RowsRequest(lambda: spark, table, first=first))
        rows = [row.asDict(recursive=True) for row in loaded.frame.collect()]
        return [describe(row) for row in rows], {name: kind.type for name, kind in loaded.declared.items()}

    return unfold


def describe(row: dict[str, Any]) -> object:
    mark, is_deleted, _ = row.pop(BAD), row.pop(DELETED), row.pop(CHANGE_SOURCE)
    order = tuple(int(value) for name in CHANGE_ORDER if (value := row.pop(name)) is not None)
    if mark["reason"] is not None:
        return mark["reason"] if mark["column"] == SKIPPED else (mark["reason"], mark["value"])
    return ("delete" if is_deleted else "upsert", row, order)


def test_events_beside_their_schemas(unfold):
    rows, declared = unfold(
        wrap("c", 1, {"id": 1, "name": "Anne"}, None, ID, NAME),
        # A column is added, and an identifier becomes longer, while the run goes on.
        wrap("u", 2, {"id": 2**40, "name": "Bob", "tags": ["a"]}, None, ID | {"type": "int64"}, NAME, TAGS),
        wrap("d", 3, None, {"id": 1}, ID, NAME),
        None,
        "null",
    )
    assert declared == {"id": "bigint", "name": "string"}
    assert rows == [
        ("upsert", {"id": 1, "name": "Anne", "tags": None}, (0, 1, 1, 0)),
        ("upsert", {"id": 2**40, "name": "Bob", "tags": ["a"]}, (0, 1, 2, 0)),
        ("delete", {"id": 1, "name": None, "tags": None}, (0, 1, 3, 0)),
        "tombstone",
        "tombstone",
    ]


def test_only_tombstones(unfold):
    """As at the beginning of a compacted topic: the key has no type yet, so that no table is made."""
    assert unfold(None, "null") == (["tombstone", "tombstone"], {})


@pytest.mark.parametrize("has_schema", [True, False])
def test_nothing_but_a_truncate(unfold, has_schema):
    """It has no row: without a schema both images are null in all values."""
    source = {"connector": "postgresql", "lsn": 7, "db": "shop", "schema": "public", "table": "users"}
    event: dict[str, Any] = make_event("t", 7, None, None) | {"source": source}
    if has_schema:
        event = json.loads(wrap("t", 7, None, None, ID)) | {"payload": event}
    rows, _ = unfold(json.dumps(event), columns={"id": ColumnType(type="int")})
    assert [json.loads(value) for _, value in rows] == [{"source": "shop.public.users", "order": ["0", "1", "7", "0"]}]


BAD_VALUES: Final = ["<xml/>", '{"payload": {"op": "c"', "[1]", '"text"', "5", "", "  "]


@pytest.mark.parametrize("has_schema", [True, False])
def test_values_that_are_no_events(unfold, has_schema):
    """None of them may pass for a tombstone, which is counted and skipped."""
    event = wrap("c", 1, {"id": 1}, None, ID) if has_schema else json.dumps(make_event("c", 1, {"id": 1}))
    rows, _ = unfold(event, *BAD_VALUES, columns={"id": ColumnType(type="int")})
    assert [row[0] for row in rows] == ["upsert", *["expected an event of Debezium as JSON"] * len(BAD_VALUES)]
    assert [row[1] for row in rows[1:]] == BAD_VALUES


@pytest.mark.parametrize("wraps", [True, False])
def test_events_without_a_schema(unfold, wraps):
    """Their values are texts, which the declared types cast: no digit is lost."""
    event = make_event("c", 2**60 + 1, {"id": 2**60 + 1, "name": "Anne", "amount": 0.1}, None)
    text = json.dumps({"payload": event, "schema": None} if wraps else event)
    columns = {name: ColumnType(type="string") for name in ("ID", "name", "amount")}
    rows, declared = unfold(text, None, columns=columns)
    assert (declared, rows[1]) == ({}, "tombstone")
    assert rows[0] == ("upsert", {"amount": "0.1", "id": str(2**60 + 1), "name": "Anne"}, (0, 1, 2**60 + 1, 0))
    with pytest.raises(SpecInvalidError) as caught:
        unfold(text, columns={"id": ColumnType(type="bigint")})
    assert caught.value.message == (
        "tables.t.columns does not declare 'amount', 'name': the events have no schema, which would say what the "
        "values are."
    )


# mongodb.html#mongodb-create-events and #mongodb-change-events-key
TEXT: Final = {"type": "string", "optional": True}
OF_MONGODB: Final = {"type": "struct", "fields": [
    *({"field": name, "name": "io.debezium.data.Json", "version": 1} | TEXT for name in IMAGES),
    {"type": "struct", "field": "source", "name": "io.debezium.connector.mongo.Source", "fields": [
        {"type": "string", "field": "connector"}, {"type": "int64", "field": "ts_ms"},
        {"type": "int32", "field": "ord"}, {"type": "int64", "optional": True, "field": "wallTime"}]},
    {"field": "op"} | TEXT]}  # fmt: skip


@pytest.mark.parametrize("has_schema", [True, False])
def test_documents_and_the_keys_of_their_messages(unfold, has_schema):
    def make(op: str, ord_: int, after: str | None = None) -> str:
        source = {"connector": "mongodb", "ts_ms": 1558965508000, "ord": ord_, "wallTime": None}
        event = {"before": None, "after": after, "source": source, "op": op}
        return json.dumps({"schema": OF_MONGODB, "payload": event} if has_schema else event)

    def make_key(text: str) -> str:
        key = {"id": text}
        schema = {"type": "struct", "fields": [{"field": "id", "type": "string"}]}
        return json.dumps({"schema": schema, "payload": key} if has_schema else key)

    ids = ["1004", '{"$oid" : "596e275826f08b2730779e1f"}', '"1234"', "1004"]
    columns = {"_id": ColumnType(type="string"), "name": ColumnType(type="string")}
    anne = make("c", 1, '{"_id" : {"$numberLong" : "1004"}, "name": "Anne", "other": {}}')
    deletes = [make("d", number) for number in (2, 3, 4)]
    keys = [*map(make_key, [ids[0], *ids]), "Struct{id=1004}"]
    rows, declared = unfold(anne, *deletes, None, make("d", 5), keys=keys, columns=columns, primary_key=("_id",))
    assert declared == {}
    assert rows[0] == ("upsert", {"_id": "1004", "name": "Anne"}, (0, 1, 1558965508000, 10**10))
    assert [row[1]["_id"] for row in rows[1:4]] == ["1004", "596e275826f08b2730779e1f", "1234"]
    assert [row[0] for row in rows[1:4]] == ["delete"] * 3
    assert rows[4] == "tombstone"
    assert rows[5][0].startswith("it deletes a document and has no 'before', and its message has no key")
