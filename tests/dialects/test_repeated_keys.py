"""``read.files`` and ``repeated``: what tables get, and what is refused."""

from typing import Any

import pytest
import yaml

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.repetition import REPEATED, Fail, Way
from lakewriter.spec.table_spec import Mode

NEW = {"format": "csv", "path": "in", "files": "new"}
ALL = {"format": "csv", "path": "in"}


AIRBYTE = {
    "type": "airbyte-s3", "s3_bucket_name": "acme-lake", "s3_bucket_path": "data", "s3_bucket_region": "us-east-1",
    "format": {"format_type": "JSONL"},
}  # fmt: skip


def read_tables(folder, *tables, iceberg=False, airbyte=False, **top):
    destination = {"type": "lakewriter-s3", "location": "s3://acme-lake/lake", "region": "us-east-1"}
    if iceberg:
        destination["catalog"] = "iceberg"
    entries = [{"table": f"t{number}", "schema": "s", **entry} for number, entry in enumerate(tables)]
    path = folder / "lake.yaml"
    path.write_text(
        yaml.safe_dump({"pipeline": "p", "destination": AIRBYTE if airbyte else destination, "tables": entries, **top}),
        "utf-8",
    )
    return load_spec(path).tables


JDBC = {"format": "jdbc", "options": {"url": "jdbc:postgresql://h/d", "dbtable": "t"}}
FAIL: dict[str, Any] = {"repeated": "fail"}
MERGED: dict[str, Any] = {"mode": "merge", "primary_key": ["id"], "order_by": ["at"]}

SETTLED = [
    # the table's entry, the key at the top, what is settled
    ({"read": ALL}, {}, "warn"),
    ({"read": NEW}, {}, "fail"),
    ({"read": {"sql": "SELECT * FROM v", "views": {"v": NEW}}}, {}, "fail"),
    ({"read": NEW}, {"repeated": "warn"}, "warn"),
    ({"read": ALL, "repeated": "allow"}, {"repeated": "fail"}, "allow"),
    ({"read": ALL}, {"repeated": "fail"}, "fail"),
    # A whole file's key is about the tables to which rows are appended again.
    ({"read": ALL, "cursor": "at"}, FAIL, "warn"),
    ({"read": ALL, "mode": "refresh"}, FAIL, "warn"),
    ({"read": JDBC, "cursor": "at"}, FAIL, "warn"),
    ({"read": JDBC, "mode": "refresh"}, FAIL, "warn"),
    ({}, FAIL, "warn"),
    ({"read": JDBC, "repeated": "warn"}, FAIL, "warn"),
    ({"read": JDBC}, {"repeated": "warn"}, "warn"),
    ({"read": {"format": "kafka", "options": {"subscribe": "t"}}}, FAIL | {"checkpoint": "cp"}, "warn"),
]
MERGES = [
    ({"read": NEW} | MERGED, {}, "fail"),
    ({"read": ALL} | MERGED, FAIL, "warn"),
    ({"read": ALL} | MERGED | FAIL, {}, "fail"),
    ({"read": ALL, "cursor": "at"} | MERGED, FAIL, "warn"),
    ({"read": JDBC} | MERGED, FAIL, "warn"),
]


@pytest.mark.parametrize(("entry", "top", "expected"), SETTLED)
def test_what_is_settled(tmp_path, entry, top, expected):
    (table,) = read_tables(tmp_path, entry, **top)
    assert table.repeated == expected


@pytest.mark.parametrize(("entry", "top", "expected"), MERGES)
def test_what_is_settled_of_merges(tmp_path, entry, top, expected):
    (table,) = read_tables(tmp_path, entry, iceberg=True, **top)
    assert table.repeated == expected


REFUSED = [
    # the table's entry, what the message has
    (
        {"read": {"format": "jdbc", "options": {"url": "jdbc:x"}, "files": "new"}},
        "'files: new' is for a 'path' of av",
    ),
    ({"read": {"format": "delta", "path": "in", "files": "new"}}, "'files: new' is for a 'path' of av"),
    ({"read": NEW, "cursor": "at"}, "has 'files: new' and a cursor, and both say what later loads read"),
    ({"read": NEW, "mode": "refresh"}, "'mode: refresh', which replaces rows"),
    ({"read": ALL, "repeated": "never"}, "repeated"),
    ({"read": ALL | {"files": "old"}}, "files"),
]


@pytest.mark.parametrize(("entry", "text"), REFUSED)
def test_what_is_refused(tmp_path, entry, text):
    with pytest.raises(SpecInvalidError) as refused:
        read_tables(tmp_path, entry)
    assert text in str(refused.value)


VAIN = [
    # the table's entry, whether it is an Iceberg table, what the message has
    ({"read": ALL, "cursor": "at"}, False, "for the rows above the cursor: it would refuse no load. Leave it out."),
    ({"read": ALL, "mode": "refresh"}, False, "each load replaces the rows, so that none comes again"),
    ({"read": ALL, "mode": "replace_partitions", "partition_by": ["at"]}, True, "each load replaces the rows"),
    ({"read": ALL, "cursor": "at"} | MERGED, True, "for the rows above the cursor"),
    ({"read": JDBC} | MERGED, True, "a merge adds no row twice"),
    ({}, False, "a program gives its rows"),
    ({"read": JDBC}, False, "table 't0': its source has no files that could be compared"),
    ({"read": {"format": "delta", "path": "in"}}, False, "its source has no files"),
    ({"read": {"sql": "SELECT * FROM v", "views": {"v": JDBC}}}, False, "its source has no files"),
    ({"read": {"sql": "SELECT 1 AS one"}}, False, "its source has no files"),
]


@pytest.mark.parametrize(("entry", "iceberg", "text"), VAIN)
def test_a_fail_that_no_load_would_keep(tmp_path, entry, iceberg, text):
    with pytest.raises(SpecInvalidError) as refused:
        read_tables(tmp_path, entry | FAIL, iceberg=iceberg)
    assert "tables.0.repeated" in str(refused.value)
    assert text in str(refused.value)


def test_a_fail_of_the_file_that_one_table_cannot_keep(tmp_path):
    with pytest.raises(SpecInvalidError) as refused:
        read_tables(tmp_path, {"read": ALL}, {"read": JDBC}, **FAIL)
    assert "repeated: fail cannot be kept for table 't1': its source has no files" in str(refused.value)
    assert "Give table 't1' a cursor, or a mode that replaces rows; or set repeated: warn for table 't1'" in str(
        refused.value
    )


def test_every_mode_and_way_has_a_cell():
    """The table is the product's own: whatever mode or way is added is decided there."""
    assert {mode: set(cells) for mode, cells in REPEATED.items()} == {mode: set(Way) for mode in Mode}
    for cells in REPEATED.values():
        assert all(bool(cell.why) == (cell.fail is not Fail.COMPARED) for cell in cells.values())


WAYS: dict[Way, tuple[dict[str, Any], dict[str, Any]]] = {
    # the table's entry, keys at the top
    Way.NEW_FILES: ({"read": NEW}, {}),
    Way.CURSOR: ({"read": ALL, "cursor": "at"}, {}),
    Way.FILES: ({"read": ALL}, {}),
    Way.ROWS: ({"read": JDBC}, {}),
    Way.CHECKPOINT: ({"read": JDBC}, {"checkpoint": "cp"}),
    Way.PROGRAM: ({}, {}),
}
MODES: dict[Mode, dict[str, Any]] = {
    Mode.REPLACE_PARTITIONS: {"mode": "replace_partitions", "partition_by": ["at"]},
    Mode.MERGE: MERGED,
}
DESTINATIONS: dict[Mode, dict[str, Any]] = {
    Mode.REPLACE_PARTITIONS: {"iceberg": True},
    Mode.MERGE: {"iceberg": True},
    Mode.OVERWRITE: {"airbyte": True},
}
OF_STREAMS = {Way.MESSAGES, Way.CONNECTOR}


def settle(folder, mode, entry, **top):
    """What the table's ``repeated`` is settled as; None where the file is refused."""
    try:
        (table,) = read_tables(folder, {**entry, **MODES.get(mode, {"mode": mode.value})}, **top)
    except SpecInvalidError:
        return None
    return table.repeated


@pytest.mark.parametrize("way", [way for way in Way if way not in OF_STREAMS])
@pytest.mark.parametrize("mode", list(Mode))
def test_every_cell_is_what_the_product_does(tmp_path, mode, way):
    entry, top = WAYS[way]
    kind = DESTINATIONS.get(mode, {})
    if settle(tmp_path, mode, entry, **top, **kind) is None:
        # Other keys of it do not go together, whatever is repeated.
        assert way is not Way.FILES
        assert REPEATED[mode][way].fail in (Fail.IMPOSSIBLE, Fail.NONE_AGAIN)
        return
    own, whole = {
        Fail.COMPARED: ("fail", "fail"),
        Fail.ASKED: ("fail", "warn"),
        Fail.NONE_AGAIN: (None, "warn"),
        Fail.UNKNOWN: (None, None),
    }[REPEATED[mode][way].fail]
    assert settle(tmp_path, mode, {**entry, **FAIL}, **top, **kind) == own
    assert settle(tmp_path, mode, entry, **top, **kind, **FAIL) == whole


CATALOG = {"streams": [{"stream": {"name": "users", "json_schema": {}, "supported_sync_modes": ["full_refresh"]},
                        "sync_mode": "full_refresh", "destination_sync_mode": "append"}]}  # fmt: skip
SOURCES = [
    # the source, what its stream's repeated is settled as
    ({"messages": "m.jsonl"}, "fail"),
    ({"messages": "-"}, None),
    ({"command": ["source-faker", "read"]}, None),
]


@pytest.mark.parametrize(("source", "expected"), SOURCES)
def test_streams(tmp_path, source, expected):
    path = tmp_path / "lake.yaml"
    content: dict[str, Any] = {"pipeline": "p", "destination": AIRBYTE, "source": {**source, "catalog": CATALOG}}
    path.write_text(yaml.safe_dump(content), "utf-8")
    assert load_spec(path).tables[0].repeated == "warn"
    path.write_text(yaml.safe_dump(content | FAIL), "utf-8")
    if expected is not None:
        assert load_spec(path).tables[0].repeated == expected
        return
    with pytest.raises(SpecInvalidError) as refused:
        load_spec(path)
    assert str(refused.value).endswith("with those of earlier loads. Leave repeated out.")
