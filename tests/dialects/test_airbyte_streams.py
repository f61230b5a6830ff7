"""Airbyte's streams and tables: what a configured catalog says of them, their names, and what has no place."""

import json

import pytest

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import NameCollisionError, SpecInvalidError
from lakewriter.spec.table_spec import Mode
from tests.dialects.airbyte_lakes import TABLE, lake
from tests.support.narrow import need

TABLES = [
    # what a table has that this destination has no place for, the problem
    ({"sort_by": ["at"]}, "sort_by: table 'users' has sort_by, and this destination keeps the order of the source."),
    ({"partition_by": ["day(at)"]}, "partition_by: table 'users' has partition_by, which only Iceberg tables have."),
    ({"deleted": "gone"}, "deleted: table 'users' has 'deleted', and this destination has no column for it."),
    (
        {"mode": "overwrite", "cursor": "at"},
        "cursor: table 'users' has a cursor and 'mode: overwrite': the rows below",
    ),
]


@pytest.mark.parametrize(("fields", "message"), TABLES)
def test_table_with_what_has_no_place(tmp_path, fields, message):
    with pytest.raises(SpecInvalidError) as caught:
        load_spec(lake(tmp_path, {}, tables=[TABLE | fields]))
    place, _, what = caught.value.message.partition(": tables.0.")
    # Keys are in the order of the alphabet; the source takes three lines.
    assert (place, what[: len(message)]) == (f"lake.yaml:{14 if 'sort_by' in fields else 10}", message)


def test_package_of_a_connector(tmp_path):
    source = {"package": "airbyte-source-faker", "catalog": {"streams": [{"stream": {"name": "users"}}]}}
    with pytest.raises(SpecInvalidError, match="no load installs a connector, so there is no 'package'; install it"):
        load_spec(lake(tmp_path, {}, source=source))


def test_two_streams_in_one_place(tmp_path):
    tables = [TABLE, TABLE | {"schema": "crm"}]
    with pytest.raises(NameCollisionError, match="would lie at the same keys"):
        load_spec(lake(tmp_path, {"s3_path_format": "${STREAM_NAME}/"}, tables=tables))


def ids(folder, *names):
    """The ids of streams by namespace and name."""
    streams = [{"stream": {"namespace": namespace, "name": name}} for namespace, name in names]
    spec = load_spec(lake(folder, {}, source={"messages": "-", "catalog": {"streams": streams}}))
    return [table.id for table in spec.tables]


IDS = [
    # namespaces and names whose dots stand in different places, their ids; the codes are sha256 of the name in parts
    ([(None, "public.users"), ("public", "users")], ["public_users_14447575", "public.users"]),
    ([("a", "b.c"), ("a.b", "c")], ["a.b_c_b476cc5a", "a_b_2e7336dc.c"]),
]


@pytest.mark.parametrize(("streams", "expected"), IDS)
def test_ids_of_streams_with_dots(tmp_path, streams, expected):
    assert ids(tmp_path, *streams) == expected


def test_two_streams_with_one_id(tmp_path):
    with pytest.raises(NameCollisionError, match="would both be known as 'a_b_2e7336dc'"):
        ids(tmp_path, (None, "a.b"), (None, "a_b_2e7336dc"))


CATALOG = {
    "streams": [
        {
            "stream": {"name": "users", "namespace": "public", "json_schema": {"type": "object"}, "future": 1},
            "sync_mode": "incremental",
            "destination_sync_mode": "append",
            "primary_key": [["id"], ["a", "b"]],
            "cursor_field": ["updated_at"],
            "generation_id": 11,
            "minimum_generation_id": 11,
            "sync_id": 10111,
        },
        {"stream": {"name": "orders"}, "destination_sync_mode": "overwrite", "primary_key": None},
    ]
}


def test_configured_catalog(tmp_path):
    (tmp_path / "catalog.json").write_text(json.dumps(CATALOG), "utf-8")
    spec = load_spec(lake(tmp_path, {}, source={"messages": "m.jsonl", "catalog": "catalog.json"}))
    users, orders = spec.tables
    own = need(users.stream)
    assert (users.id, users.mode, users.primary_key) == ("public.users", Mode.APPEND, ("id", "a.b"))
    assert (own.generation_id, own.minimum_generation_id, own.sync_id) == (11, 11, 10111)
    assert (orders.id, orders.mode, need(orders.stream).generation_id) == ("orders", Mode.OVERWRITE, None)
    assert need(spec.source).paths == (str(tmp_path / "m.jsonl"),)


NAMESPACES = [
    # settings of the connection, the namespace in the path
    ({}, "public"),
    ({"namespace_definition": "destination"}, ""),
    ({"namespace_definition": "customformat", "namespace_format": "raw_${SOURCE_NAMESPACE}"}, "raw_public"),
]


@pytest.mark.parametrize(("settings", "expected"), NAMESPACES)
def test_namespace_and_prefix(tmp_path, settings, expected):
    source = {"messages": "-", "catalog": CATALOG, "prefix": "crm_"} | settings
    table = load_spec(lake(tmp_path, {}, source=source)).tables[0]
    assert (table.source_schema, table.source_table, need(table.stream).name) == (expected, "crm_users", "users")


STATUSES = [
    # what the file says of statuses, what the load goes by
    ({}, "reported"),
    ({"statuses": "reported"}, "reported"),
    ({"statuses": "none"}, "none"),
]


@pytest.mark.parametrize(("settings", "expected"), STATUSES)
def test_statuses(tmp_path, settings, expected):
    file = lake(tmp_path, {}, source={"messages": "-", "catalog": CATALOG} | settings)
    assert need(load_spec(file).source).statuses == expected


@pytest.mark.parametrize("statuses", ["never", None, False])
def test_no_statuses_are_said_by_their_word(tmp_path, statuses):
    """An empty key, or no, might be a slip, and an overwrite would delete by it."""
    source = {"messages": "-", "catalog": CATALOG, "statuses": statuses}
    with pytest.raises(SpecInvalidError, match=r"source\.statuses.*'reported' or 'none'"):
        load_spec(lake(tmp_path, {}, source=source))


OTHER_MODES = [
    # the mode and its streams, which words the one message has; the modes are those of DestinationSyncMode in
    # Airbyte's protocol, and PyAirbyte's write_strategy "auto" asks for append_dedup (airbyte/strategies.py)
    ({"users": "append_dedup"},
     ["destination_sync_mode 'append_dedup' of 'users': expected 'append' or 'overwrite'", "Ask for 'append'",
      "'Incremental | Append'", "write_strategy='append'"]),
    ({"users": "overwrite_dedup"}, ["'overwrite_dedup' of 'users'", "Ask for 'overwrite'", "write_strategy='replace'"]),
    ({"users": "update"}, ["'update' of 'users': expected 'append' or 'overwrite'; this destination has no other"]),
    ({"users": "append_dedup", "orders": "append", "items": "append_dedup"}, ["'append_dedup' of 'users', 'items': "]),
    ({f"s{n}": "append_dedup" for n in range(30)}, ["of 's0', 's1', 's2', 's3', 's4' and 25 more: "]),
    ({"users": "append_dedup", "orders": "soft_delete"}, ["'append_dedup' of 'users'", "'soft_delete' of 'orders'"]),
]  # fmt: skip


@pytest.mark.parametrize(("modes", "expected"), OTHER_MODES)
def test_other_sync_modes_are_one_message_with_the_mode_to_ask_for(tmp_path, modes, expected):
    streams = [{"stream": {"name": name}, "destination_sync_mode": mode} for name, mode in modes.items()]
    with pytest.raises(SpecInvalidError) as raised:
        load_spec(lake(tmp_path, {}, source={"messages": "-", "catalog": {"streams": streams}}))
    found = str(raised.value)
    assert "source.catalog: destination_sync_mode" in found
    assert [words for words in expected if words not in found] == []
