"""JSON loaded whole: by the splits feed, through Spark, with bad rows, and from a quarantine."""

from typing import Any

import pytest

from tests.load.lakes import Lake
from tests.load.test_quarantine import RULE
from tests.load.test_replay import bad, replay

pytestmark = pytest.mark.spark

PLACE = "supaflow_nyc_public/sums"
LINES = b"""{"id": 1, "Id": 9, "amount": 1.10, "big": 12345678901234567890, "s": {"X": 1, "x": [1.5, null]}, "t": "a"}
{"id": 2, "amount": 2, "big": 1, "t": {"b": 1.50}}

[{"id": 3, "t": 1.10}, {"id": 4, "t": null}]
"""


def write_sums(lake: Lake, content: bytes, read: dict[str, Any] | None = None, **fields: Any) -> None:
    lake.folder.joinpath("sums.json").write_bytes(content)
    bare = {"format": "json", "path": "sums.json"}
    own = read if read and "sql" in read else bare | (read or {})
    lake.write({"table": "sums", "schema": "public", "read": own, "primary_key": ["id"]} | fields)


WAYS = [
    # keys of the table, its feed
    ({}, "splits"),
    ({"deleted": "id = 3"}, "splits"),
    ({"deleted": "id + 1 = 4"}, "rows"),
    ({"read": {"sql": "SELECT * FROM v", "views": {"v": {"format": "json", "path": "sums.json"}}}}, "rows"),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("fields", "feed"), WAYS, ids=["splits", "deleted", "deleted by Spark", "sql"])
def test_values_are_the_same_in_every_way(lake, fields, feed):
    write_sums(lake, LINES, **fields)
    [result] = lake.load("a").tables
    assert (result.code, result.rows, result.feed) == (None, 4, feed), result.message
    assert lake.rows('SELECT id, "Id_1", amount, big::VARCHAR, s.x_1::VARCHAR, t FROM t ORDER BY 1', PLACE) == [
        (1, 9, 1.1, "12345678901234567890", "[1.5, NULL]", "a"),
        (2, None, 2.0, "1", None, '{"b":1.50}'),
        (3, None, None, None, None, "1.10"),
        (4, None, None, None, None, None),
    ]


def test_names_that_collide_are_numbered_as_the_file_has_them(lake):
    """As those of a CSV file. Later loads keep the names, whatever order the keys have."""
    for job_id, content in (
        ("a", b'{"id": 1, "a_b": 2}\n{"a b": 3, "id": 2}\n'),
        ("b", b'{"a b": 5, "a_b": 4, "id": 3}\n'),
    ):
        write_sums(lake, content)
        [result] = lake.load(job_id).tables
        assert result.code is None, result.message
    assert lake.rows("SELECT id, a_b, a_b_1 FROM t ORDER BY id", PLACE) == [(1, 2, None), (2, None, 3), (3, 4, 5)]


def test_bad_row_fails_the_load_with_its_place(lake):
    write_sums(lake, b'{"id": 1}\n{"id": 2}{"id": 3}\n')
    [result] = lake.load("a").tables
    assert (result.status, result.code) == ("failed", "SOURCE_FAILED")
    assert result.message == (
        f"table 'supaflow_nyc_public.sums': '{lake.folder}/sums.json', line 2, offset 10: behind the document, at "
        'character 10, is \'{"id": 3}\': \'{"id": 2}{"id": 3}\'. Correct the file, or keep such rows apart, '
        "up to a share of all: on_bad_row: {action: quarantine, at_most: 0.01}."
    )


def test_value_that_does_not_fit_fails_the_load(lake):
    write_sums(lake, b'{"id": 1, "amount": 1.239}\n', columns={"amount": "decimal(10,2)"})
    [result] = lake.load("a").tables
    assert (result.status, result.code) == ("failed", "VALUE_UNREPRESENTABLE")
    assert "line 1, offset 0, column 'amount': it does not fit decimal(10,2): it has 3 decimal places" in result.message


def test_bad_rows_are_kept_and_loaded_from_the_quarantine(lake):
    content = b'{"id": 1, "amount": 5}\n{"id": 2, "amount": "x"}\n{"id": 3, "amount": 7\n{"id": 4}{"id": 5}\n'
    rule = {"on_bad_row": RULE | {"at_most": 0.9}}
    write_sums(lake, content, {"columns": "id INT, amount INT"}, **rule)
    [result] = lake.load("a").tables
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 1, 3), result.message
    assert bad(lake) == [
        ("on_bad_row", '{"id": 3, "amount": 7'),
        ("on_bad_row", '{"id": 4}{"id": 5}'),
        ("on_bad_row", '{"id":2,"amount":"x"}'),
    ]
    # Nothing has changed: what is bad is bad still.
    result = replay(lake)
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 0, 3), result.message
    # The column that a value did not fit is not read any more; the lines are still no documents.
    write_sums(lake, content, {"columns": "id INT"}, **rule)
    result = replay(lake)
    assert (result.status, result.rows, result.set_aside.rows) == ("done", 1, 2), result.message
    assert lake.rows("SELECT id, amount FROM t ORDER BY id", PLACE) == [(1, 5), (2, None)]


def test_later_loads_read_what_is_above_the_cursor(lake):
    first = b'{"id": 1, "at": "2024-01-05T10:00:00Z"}\n'
    fields: dict[str, Any] = {"cursor": "at", "columns": {"at": "timestamp"}}
    write_sums(lake, first, **fields)
    assert lake.load("a").tables[0].rows == 1
    write_sums(lake, first + b'{"id": 2, "at": "2024-01-05T10:00:01Z"}\n', **fields)
    assert lake.load("b").tables[0].rows == 1
    assert lake.rows("SELECT id FROM t ORDER BY id", PLACE) == [(1,), (2,)]


def test_files_in_pieces_and_folders_are_one_table(lake, monkeypatch):
    monkeypatch.setattr("lakewriter.source.file_splits.PIECE_BYTES", 50)
    folder = lake.folder / "in" / "day=2024-01-05"
    folder.mkdir(parents=True)
    for name in ("a.json", "b.jsonl"):
        (folder / name).write_bytes(b"".join(b'{"id": %d}\n' % number for number in range(100)))
    lake.write({"table": "sums", "schema": "public", "read": {"format": "json", "path": "in"}})
    [result] = lake.load("a").tables
    assert (result.code, result.rows) == (None, 200), result.message
    assert lake.rows("SELECT count(*), count(DISTINCT id), min(day) FROM t", PLACE) == [(200, 100, "2024-01-05")]
    assert lake.rows("SELECT min(_supa_index), max(_supa_index), count(DISTINCT _supa_index) FROM t", PLACE) == [
        (1, 200, 200)
    ]
