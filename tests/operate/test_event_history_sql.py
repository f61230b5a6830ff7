"""The versions that ``queries`` prints of the history of Debezium's events, run by DuckDB and Spark beside a rule that
looks at each moment by itself."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
import sqlglot

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.operate.queries import LastLoads, write_queries, write_views
from lakewriter.operate.sql_text import HISTORY, Engine, write_history
from lakewriter.spec.specification import Spec
from tests.dialects.files import READ, lake
from tests.operate.test_history_sql import DESTINATION, ask_duckdb, ask_spark

Row = tuple[Any, ...]
EVENTS = {
    "table": "users",
    "schema": "s",
    "read": READ,
    "mode": "merge",
    "primary_key": ["id"],
    "envelope": "debezium",
    "history": True,
}
START = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("v", pa.string()),
        ("_change_epoch", pa.int64()),
        ("_change_log", pa.int64()),
        ("_change_position", pa.decimal128(38, 0)),
        ("_change_row", pa.decimal128(38, 0)),
        ("_change_source", pa.string()),
        ("_change_op", pa.string()),
        ("_change_time", pa.timestamp("us", "UTC")),
        ("_change_unchanged", pa.string()),
        ("_deleted", pa.bool_()),
    ]
)


def make_spec(folder: Any, **destination: Any) -> Spec:
    return load_spec(lake(folder, tables=[EVENTS], **DESTINATION | {"catalog": "iceberg"} | destination))


def make_changes(rows: list[Row]) -> pa.Table:
    """Changes as (operation, id, epoch, position, minute, value), of the table ``a`` where they name no other."""
    columns = []
    for op, key, epoch, position, minute, value, *source in rows:
        order = (epoch, 0 if op in "rs" else 1, position, 0, *(source or ["a"]))
        columns.append((key, value, *order, op, START + timedelta(minutes=minute), None, op in "dts"))
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in columns], SCHEMA)


CASES: dict[str, tuple[list[Row], list[Row]]] = {
    # changes, versions as (id, value, from minute, to minute)
    "changed": ([("c", 1, 0, 5, 1, "a"), ("u", 1, 0, 6, 4, "b")], [(1, "a", 1, 4), (1, "b", 4, None)]),
    "deleted": ([("c", 1, 0, 5, 1, "a"), ("d", 1, 0, 6, 4, None)], [(1, "a", 1, 4)]),
    "key changed": (
        [("c", 1, 0, 5, 1, "a"), ("d", 1, 0, 6, 4, None), ("c", 2, 0, 6, 4, "a")],
        [(1, "a", 1, 4), (2, "a", 4, None)],
    ),
    "truncated": (
        [("c", 1, 0, 5, 1, "a"), ("c", 2, 0, 6, 2, "b"), ("t", None, 0, 7, 3, None), ("c", 2, 0, 8, 4, "c")],
        [(1, "a", 1, 3), (2, "b", 2, 3), (2, "c", 4, None)],
    ),
    "truncated twice": (
        [("c", 1, 0, 5, 1, "a"), ("t", None, 0, 7, 3, None), ("t", None, 0, 9, 6, None)],
        [(1, "a", 1, 3)],
    ),
    "another table truncated": (
        [("c", 1, 0, 5, 1, "a"), ("c", 2, 0, 6, 2, "b", "b"), ("t", None, 0, 7, 3, None, "b")],
        [(1, "a", 1, None), (2, "b", 2, 3)],
    ),
    "a new snapshot": (
        [("c", 1, 0, 5, 1, "a"), ("c", 2, 0, 6, 2, "b"), ("r", 2, 1, 50, 9, "b"), ("s", None, 1, 0, 9, None)],
        [(1, "a", 1, 9), (2, "b", 2, 9), (2, "b", 9, None)],
    ),
    "a snapshot's read, then a change": (
        [("r", 1, 0, 50, 3, "a"), ("u", 1, 0, 7, 5, "b")],
        [(1, "a", 3, 5), (1, "b", 5, None)],
    ),
    "deleted before a truncate": (
        [("c", 1, 0, 5, 1, "a"), ("d", 1, 0, 6, 2, None), ("t", None, 0, 7, 3, None)],
        [(1, "a", 1, 2)],
    ),
    "no time": ([("c", 1, 0, 5, 1, "a"), ("u", 1, 0, 6, 1, "b")], [(1, "b", 1, None)]),
}


def make_random(seed: int) -> list[Row]:
    """Changes of two tables, each later than the one before."""
    rng, changes = random.Random(seed), list[Row]()
    for number in range(60):
        source = rng.choice("ab")
        op = rng.choices("cudt", (5, 5, 3, 1))[0]
        key = None if op == "t" else rng.randrange(3) + (10 if source == "b" else 0)
        changes.append((op, key, 0, number, number, None if op in "dt" else f"v{number}", source))
    rng.shuffle(changes)
    return changes


def check_moments(rows: list[Row], versions: list[Row]) -> None:
    """At each moment a key has the row of its last change until then, unless its table was truncated since."""
    for key in (0, 1, 2, 10, 11, 12):
        source = "b" if key >= 10 else "a"
        for moment in range(61):
            until = [row for row in rows if row[6] == source and row[1] in (None, key) and row[4] <= moment]
            last = max(until, key=lambda row: row[3], default=None)
            expected = [] if last is None or last[0] in "dt" else [last[5]]
            seen = [v for found, v, begin, end in versions if found == key and begin <= moment < (end or 99)]
            assert seen == expected, (key, moment)


def check(spec: Spec, engine: Engine, run: Callable[[str, pa.Table], list[dict[str, Any]]]) -> None:
    history = spec.tables[1]
    sql = write_history(engine, spec, history, "changes")

    def count_minutes(at: datetime | None) -> int | None:
        return None if at is None else (at.replace(tzinfo=UTC) - START) // timedelta(minutes=1)

    def ask(rows: list[Row]) -> list[Row]:
        found = run(sql.removesuffix(";"), make_changes(rows))
        times = ((row, count_minutes(row["_valid_from"]), count_minutes(row["_valid_to"])) for row in found)
        return sorted(((row["id"], row["v"], begin, end) for row, begin, end in times), key=str)

    for name, (rows, expected) in CASES.items():
        assert ask(rows) == sorted(expected, key=str), name
    for seed in range(4):
        rows = make_random(seed)
        check_moments(rows, ask(rows))


def test_duckdb(tmp_path):
    check(make_spec(tmp_path), Engine.DUCKDB, ask_duckdb)


@pytest.mark.spark
def test_spark(tmp_path, spark):
    check(make_spec(tmp_path), Engine.SPARK, partial(ask_spark, spark))


EXPECTED = """SELECT *
FROM (
    SELECT *, _change_time AS _valid_from, LEAST(COALESCE(MIN(_change_time) OVER (
        PARTITION BY id
        ORDER BY _change_epoch NULLS FIRST, _change_log NULLS FIRST, _change_position NULLS FIRST, """


@pytest.mark.parametrize("engine", ["athena", "redshift", "trino", "spark", "duckdb"])
def test_every_engine_has_it(tmp_path, engine):
    (query,) = [query for query in write_queries(make_spec(tmp_path), [Engine(engine)]) if query.title == HISTORY]
    assert query.table == "s.users_history"
    assert query.sql.startswith(EXPECTED) or engine != "athena"
    (parsed,) = sqlglot.parse(query.sql, dialect=engine)
    assert parsed is not None
    assert len(list(parsed.find_all(sqlglot.exp.Window))) == 4


def test_views(tmp_path):
    views = [query.sql.splitlines()[0] for query in write_views(make_spec(tmp_path), Engine.DUCKDB, LastLoads())]
    assert [view for view in views if "VIEW" in view] == [
        'CREATE OR REPLACE VIEW "s_users" AS',
        'CREATE OR REPLACE VIEW "s_users_history" AS',
        'CREATE OR REPLACE VIEW "s_users_history_versions" AS',
    ]
