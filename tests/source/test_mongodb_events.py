"""Events of Debezium's MongoDB connector become rows: documents in each form of extended JSON, their order, their keys.

The events are those of https://debezium.io/documentation/reference/3.2/connectors/mongodb.html#mongodb-events without
the fields that nothing here reads.
"""

from typing import Any, Final

import pytest

from lakewriter.cast.json_text import parse_document
from lakewriter.cast.sql_types import parse_type
from lakewriter.errors import SpecInvalidError
from lakewriter.source.change_events.mongodb import MESSAGE_KEY, write_value
from lakewriter.spec.change_events import ChangeEvents
from lakewriter.spec.table_spec import ColumnType
from tests.source.test_change_events import unfold

COLUMNS: Final = {
    "_id": ColumnType(type="bigint"),
    "first_name": ColumnType(type="string"),
    "email": ColumnType(type="string"),
}
AFTER: Final = (
    '{"_id" : {"$numberLong" : "1004"},"first_name" : "Anne","last_name" : "Kretchmar","email" : "annek@noanswer.org"}'
)
MARIE: Final = (
    '{"_id": {"$numberLong": "1004"},"first_name": "Anne Marie","last_name": "Kretchmar","email": "annek@noanswer.org"}'
)
ANNE: Final = {"_id": "1004", "first_name": "Anne", "email": "annek@noanswer.org"}
KEY_ALONE: Final = {"_id": "1004", "first_name": None, "email": None}
CREATED: Final = {
    "version": "3.2.0.Final",
    "connector": "mongodb",
    "name": "fulfillment",
    "ts_ms": 1558965508000,
    "snapshot": "false",
    "db": "inventory",
    "rs": "rs0",
    "collection": "customers",
    "ord": 31,
    "lsid": None,
    "txnNumber": None,
    "wallTime": None,
}
UPDATED: Final = CREATED | {
    "ord": 1,
    "lsid": '{"id": {"$binary": "FA7YEzXgQXSX9OxmzllH2w==","$type": "04"}}',
    "txnNumber": 1,
}
DELETED: Final = CREATED | {"ord": 6}
PLACE: Final = {"id": "1462833718356672513", "total_order": "1", "data_collection_order": "1"}
LONE: Final = {"removedFields": None, "updatedFields": '{"first_name": "Anne Marie"}', "truncatedArrays": None}
NO_CLOCK: Final = (
    "bad: its order is not known: source.ts_ms is the server's wall clock, as it is since Debezium 3.4, which may "
    "stand still or go back. Set wall_clock: true under envelope to take it all the same"
)
SECOND: Final = 1558965508000


def event(op: str, source: object, after: str | None = None, before: str | None = None, **more: Any) -> dict[str, Any]:
    return {"before": before, "after": after, "source": source, "op": op, "ts_ms": 1558965515240} | more


# The event, the key of its message, and what becomes of it.
EVENTS: Final[dict[str, tuple[Any, str | None, Any]]] = {
    "c": (event("c", CREATED, AFTER), None, ("upsert", ANNE, (0, 1, SECOND, 31 * 10**10))),
    "u in a transaction, with its place in it": (
        event("u", UPDATED, MARIE, AFTER, updateDescription=LONE, transaction=PLACE),
        None,
        ("upsert", ANNE | {"first_name": "Anne Marie"}, (0, 1, SECOND, 10**10 + 1)),
    ),
    # As the page has it. All changes of a transaction have one clusterTime:
    # https://www.mongodb.com/docs/manual/reference/change-events/update/
    "u in a transaction, without a place": (
        event("u", UPDATED, MARIE, AFTER, updateDescription=LONE),
        None,
        "bad: its order is not known: all changes of its transaction, source.txnNumber, have one time. Set the "
        "connector's provide.transaction.metadata: true, which gives transaction.total_order",
    ),
    "u without its document": (
        event("u", CREATED, None, updateDescription=LONE),
        None,
        "bad: it has no 'after': the connector's capture.mode gives none to updates, or the document was gone when it "
        "was looked up. Set capture.mode: change_streams_update_full and capture.mode.full.update.type: post_image",
    ),
    "d with a pre-image": (
        event("d", DELETED, None, MARIE),
        None,
        ("delete", ANNE | {"first_name": "Anne Marie"}, (0, 1, SECOND, 6 * 10**10)),
    ),
    "d by its message's key": (event("d", DELETED), "1004", ("delete", KEY_ALONE, (0, 1, SECOND, 6 * 10**10))),
    "d without either": (
        event("d", DELETED),
        None,
        "bad: it deletes a document and has no 'before', and its message has no key with the document's _id alone, so "
        "that its key is not known",
    ),
    # readEvent() of MongoDbOffsetContext.java: its time is that of the last position, or nothing's.
    "r": (event("r", CREATED | {"ord": -1}, AFTER), None, ("upsert", ANNE, (0, 0, SECOND, 0))),
    "r at no time": (event("r", CREATED | {"ts_ms": 0, "ord": -1}, AFTER), None, ("upsert", ANNE, (0, 0, 0, 0))),
    # SourceInfo.timestamp(): before 3.4 the second of the oplog's timestamp, whatever the wall clock is.
    "MongoDB 6, Debezium 3.3": (
        event("c", CREATED | {"version": "3.3.1.Final", "wallTime": SECOND + 412}, AFTER),
        None,
        ("upsert", ANNE, (0, 1, SECOND, 31 * 10**10)),
    ),
    "MongoDB 6, Debezium 3.3, both alike by chance": (
        event("c", CREATED | {"version": "2.7.4.Final", "wallTime": SECOND}, AFTER),
        None,
        ("upsert", ANNE, (0, 1, SECOND, 31 * 10**10)),
    ),
    "MongoDB 5, Debezium 3.5": (
        event("c", CREATED | {"version": "3.5.0.Final"}, AFTER),
        None,
        ("upsert", ANNE, (0, 1, SECOND, 31 * 10**10)),
    ),
    "MongoDB 6, Debezium 3.4": (
        event("c", CREATED | {"version": "3.4.0.Final", "ts_ms": SECOND + 412, "wallTime": SECOND + 412}, AFTER),
        None,
        NO_CLOCK,
    ),
    "MongoDB 6, Debezium 3.4, on the second": (
        event("c", CREATED | {"version": "3.4.0.Final", "wallTime": SECOND}, AFTER),
        None,
        NO_CLOCK,
    ),
    "MongoDB 6, Debezium 3.4, a delete": (
        event("d", CREATED | {"version": "3.10.0.Final", "ts_ms": SECOND + 1, "wallTime": SECOND + 1}, None, AFTER),
        None,
        NO_CLOCK,
    ),
    "without a time": (
        event("c", CREATED | {"ts_ms": None}, AFTER),
        None,
        "bad: its order is not known: expected numbers in source.ts_ms and source.ord",
    ),
    "without an ord": (
        event("c", CREATED | {"ord": None}, AFTER),
        None,
        "bad: its order is not known: expected numbers in source.ts_ms and source.ord",
    ),
    "of another connector": (
        event("c", CREATED | {"connector": "postgresql"}, AFTER),
        None,
        "bad: its order is not known: expected 'mongodb' in source.connector, as its source has an ord",
    ),
    "no document": (
        event("c", CREATED, '{"_id": 1'),
        None,
        "bad: its document cannot be read: it breaks off at character 10",
    ),
    "a list": (
        event("c", CREATED, "[1]"),
        None,
        "bad: its document cannot be read: it is an array, expected an object",
    ),
    "a document without its key": (
        event("c", CREATED, '{"first_name": "Anne"}'),
        None,
        "bad: its document has no '_id', which is of the table's key",
    ),
    "another operation": (event("x", CREATED, AFTER), None, "bad: its op is 'x', expected one of c, r, u, d"),
    "a truncate, which its connector sends never": (
        event("t", CREATED, None),
        None,
        "bad: its op is 't', expected one of c, r, u, d",
    ),
    "something else": ({"key": 5, "ts_ms": 1}, None, "bad: it has no 'op', and is no change event"),
    "a tombstone": (None, "1004", "skipped: tombstone"),
    "a tombstone as columns": ({"op": None}, "1004", "skipped: tombstone"),
    "a heartbeat": ({"ts_ms": 1559033904863}, None, "skipped: heartbeat"),
    # mongodb.html#mongodb-transaction-metadata
    "a transaction ends": (
        {"status": "END", "id": "1462833718356672513", "event_count": 2,
         "data_collections": [{"data_collection": "rs0.testDB.collectiona", "event_count": 1}]},
        None,
        "skipped: transaction",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrapped", [False, True])
def test_recorded_events(wrapped):
    """Events beside their keys, as from a topic; wrapped, as in files, where keys are not."""
    names = [name for name, (_, key, _) in EVENTS.items() if not (wrapped and key)]
    given = [EVENTS[name][0] for name in names]
    if wrapped:
        events = [one and {"schema": {"type": "struct"}, "payload": one} for one in given]
    else:
        events = [one and one | {MESSAGE_KEY: EVENTS[name][1]} for one, name in zip(given, names, strict=True)]
    found = unfold(events, columns=COLUMNS, primary_key=("_id",))
    assert dict(zip(names, found, strict=True)) == {name: EVENTS[name][2] for name in names}


def test_the_wall_clock_if_it_is_asked_for():
    event_of_3_4, _, _ = EVENTS["MongoDB 6, Debezium 3.4"]
    events = ChangeEvents(form="debezium", wall_clock=True)
    assert unfold([event_of_3_4], events, columns=COLUMNS, primary_key=("_id",)) == [
        ("upsert", ANNE, (0, 1, SECOND + 412, 31 * 10**10))
    ]


def test_another_key_than_the_documents_own():
    """A message's key does not say it; a pre-image does."""
    given = [event("d", DELETED, None, AFTER) | {MESSAGE_KEY: "1004"}, event("d", DELETED) | {MESSAGE_KEY: "1004"}]
    good, bad = unfold(given, columns=COLUMNS, primary_key=("email",))
    assert good[:2] == ("delete", ANNE)
    assert bad == EVENTS["d without either"][2]


def test_a_batch_of_deletes_alone():
    """No event has a document: the source alone says what they are."""
    found = unfold([event("d", DELETED) | {MESSAGE_KEY: "1004"}], columns=COLUMNS, primary_key=("_id",))
    assert found == [("delete", KEY_ALONE, (0, 1, SECOND, 6 * 10**10))]


# A value in the forms that the connector's json.serialization.mode and keys of messages have (strict, which is the
# default; canonical; relaxed), the type of its column, and its text:
# https://github.com/mongodb/specifications/blob/master/source/extended-json/extended-json.md#conversion-table
# https://www.mongodb.com/docs/manual/reference/mongodb-extended-json-v1/
VALUES: Final = [
    (['"Anne"', '{"$symbol": "Anne"}'], "string", "Anne"),
    (["true"], "boolean", "true"),
    (["null", '{"$undefined": true}'], "string", None),
    (["5", '{"$numberInt": "5"}'], "int", "5"),
    (['{"$numberLong" : "9007199254740993"}', "9007199254740993"], "bigint", "9007199254740993"),
    (["1.5", '{"$numberDouble": "1.5"}'], "double", "1.5"),
    (["5.0", '{"$numberDouble": "5.0"}'], "bigint", "5"),
    (["5.0"], "string", "5.0"),
    (["NaN", '{"$numberDouble": "NaN"}'], "double", "NaN"),
    (["-Infinity", '{"$numberDouble": "-Infinity"}'], "double", "-Infinity"),
    (['{"$numberDecimal": "12.50"}'], "decimal(12,2)", "12.50"),
    (['{"$oid": "596e275826f08b2730779e1f"}'], "string", "596e275826f08b2730779e1f"),
    (['{"$date": 1558965508000}', '{"$date": {"$numberLong": "1558965508000"}}', '{"$date": "2019-05-27T13:58:28Z"}',
      '{"$date": "2019-05-27T15:58:28.000+02:00"}'], "timestamp", "2019-05-27T13:58:28Z"),
    (['{"$date": 1558965508012}', '{"$date": "2019-05-27T13:58:28.012Z"}'], "timestamp_ntz", "2019-05-27T13:58:28.012"),
    (['{"$date": 1558915200000}'], "date", "2019-05-27"),
    (['{"$date": 1558965508000}'], "date", "2019-05-27T13:58:28Z"),
    (['{"$date": -1}'], "timestamp", "1969-12-31T23:59:59.999Z"),
    (['{"$date": 99999999999999999}', '{"$date": {"$numberLong": "99999999999999999"}}'], "string", None),
    (['{"$binary": "a2Fma2E=", "$type": "00"}', '{"$binary": {"base64": "a2Fma2E=", "subType": "00"}}'],
     "binary", "a2Fma2E="),
    (['{"$binary": "FA7YEzXgQXSX9OxmzllH2w==", "$type": "04"}', '{"$uuid": "140ed813-35e0-4174-97f4-ec66ce5947db"}'],
     "string", "140ed813-35e0-4174-97f4-ec66ce5947db"),
    (['{"hi": "kafka", "nums": [10.0, {"$numberLong": "7"}], "at": {"$date": 1558965508000}}',
      '{"hi": "kafka", "nums": [{"$numberDouble": "10.0"}, 7], "at": {"$date": "2019-05-27T13:58:28Z"}}'],
     "string", '{"hi":"kafka","nums":[10.0,7],"at":{"$date":"2019-05-27T13:58:28Z"}}'),
    (["[]"], "string", "[]"),
    (['{"$timestamp": {"t": 1565545664, "i": 1}}'], "string", '{"$timestamp":{"t":1565545664,"i":1}}'),
    (['{"$regularExpression": {"pattern": "^a", "options": "i"}}'], "string",
     '{"$regularExpression":{"pattern":"^a","options":"i"}}'),
    (['{"$minKey": 1}'], "string", '{"$minKey":1}'),
]  # fmt: skip


@pytest.mark.parametrize(("forms", "kind", "expected"), VALUES)
def test_values_of_documents(forms, kind, expected):
    found = [write_value(parse_document(form.encode(), takes_nan=True), parse_type(kind)) for form in forms]
    if expected is None and "date" in forms[0]:
        # Beyond the year 9999: no timestamp has it.
        assert found == ["99999999999999999", '{"$numberLong":"99999999999999999"}']
        return
    assert found == [expected] * len(forms)


REFUSED: Final = {
    "no columns": (
        {},
        "tables.t.columns does not declare '_id': of MongoDB's documents, which are texts, the declared columns are "
        "read.",
    ),
    "nested columns": (
        COLUMNS | {"tags": ColumnType(type="array<string>")},
        "tables.t.columns declares 'tags' as array<string>: the objects and arrays of MongoDB's documents are read as "
        "texts of JSON.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_columns(case):
    columns, message = REFUSED[case]
    with pytest.raises(SpecInvalidError) as refused:
        unfold([event("c", CREATED, AFTER)], columns=columns, primary_key=("_id",))
    assert refused.value.message == message
