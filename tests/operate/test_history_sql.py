"""The history that ``queries`` prints of an appended table, run by DuckDB and Spark beside a rule that looks at each
moment by itself."""

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SpecInvalidError
from lakewriter.operate.queries import LastLoads, write_queries, write_views
from lakewriter.operate.sql_text import HISTORY, Engine, write_history
from lakewriter.spec.specification import Spec
from tests.dialects.files import READ, lake

Row = tuple[Any, ...]
ENTRY = {
    "table": "Accounts",
    "schema": "s",
    "read": READ,
    "primary_key": ["Account Id"],
    "order_by": ["at", "seq"],
    "deleted": "op = 'D'",
}
DESTINATION = {
    "type": "lakewriter-s3",
    "location": "s3://my-bucket/data",
    "region": "us-east-1",
    "tracking": ["loaded_at", "load_id", "deleted"],
    "s3_bucket_name": None,
    "bucket_region": None,
}
SCHEMA = pa.schema(
    [
        ("Account_Id", pa.int64()),
        ("at", pa.int64()),
        ("seq", pa.int64()),
        ("v", pa.string()),
        ("_deleted", pa.bool_()),
        ("_loaded_at", pa.int64()),
        ("_load_id", pa.string()),
        # A source may have such columns of its own, as prices and contracts do.
        ("valid_from", pa.int64()),
        ("valid_to", pa.int64()),
    ]
)


def make_spec(folder: Any, destination: dict[str, Any] | None = None, **entry: Any) -> Spec:
    return load_spec(lake(folder, tables=[ENTRY | entry], **DESTINATION | (destination or {})))


def make_changes(rows: list[Row]) -> pa.Table:
    """Changes as (id, at, seq, v, deleted), each of a load of its own."""
    columns = [[*row, load, f"load-{load}", 1, 0] for load, row in enumerate(rows)]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in columns], SCHEMA)


CASES: dict[str, tuple[list[Row], list[Row]]] = {
    # changes in the order of their arrival, versions as (id, v, valid from, valid to)
    "one row": ([(1, 5, 0, "a", False)], [(1, "a", 5, None)]),
    "changed, late": ([(1, 9, 0, "b", False), (1, 5, 0, "a", False)], [(1, "a", 5, 9), (1, "b", 9, None)]),
    "delivered again": ([(1, 5, 0, "a", False)] * 3, [(1, "a", 5, None)]),
    "other rows of one order": ([(1, 5, 0, "a", False), (1, 5, 0, "b", False)], [(1, "a", 5, None)]),
    "deleted": ([(1, 5, 0, "a", False), (1, 7, 0, None, True)], [(1, "a", 5, 7)]),
    "deleted and back": (
        [(1, 5, 0, "a", False), (1, 7, 0, None, True), (1, 9, 0, "b", False)],
        [(1, "a", 5, 7), (1, "b", 9, None)],
    ),
    "twice in one moment": (
        [(1, 5, 0, "a", False), (1, 5, 1, "b", False), (1, 8, 0, "c", False)],
        [(1, "b", 5, 8), (1, "c", 8, None)],
    ),
    "a key changes in one moment": (
        [(1, 5, 0, "a", False), (1, 7, 1, None, True), (2, 7, 1, "a", False)],
        [(1, "a", 5, 7), (2, "a", 7, None)],
    ),
    "made and deleted in one moment": ([(1, 5, 0, "a", False), (1, 5, 0, None, True)], []),
    "without an order": (
        [(1, None, 1, "a", False), (1, None, 2, "b", False), (1, 5, 0, "c", False)],
        [(1, "a", None, 5), (1, "b", None, 5), (1, "c", 5, None)],
    ),
}


def make_random(seed: int) -> list[Row]:
    """Changes that come late, twice and in bunches; no two of one key and order differ."""
    rng = random.Random(seed)
    changes: dict[Any, Row] = {}
    for number in range(40):
        key, at, seq = rng.randrange(4), rng.randrange(12), rng.randrange(3)
        changes.setdefault((key, at, seq), (key, at, seq, f"v{number}", rng.random() < 0.3))
    rows = list(changes.values())
    return rng.sample(rows, len(rows)) + rng.sample(rows, 10)


def check_moments(rows: list[Row], versions: list[Row]) -> None:
    """At each moment a key has the row of its last change until then, and no two."""
    for key in range(4):
        for moment in range(13):
            until = [row for row in rows if row[0] == key and row[1] <= moment]
            last = max(until, key=lambda row: (row[1], row[2]), default=None)
            expected = [] if last is None or last[4] else [last[3]]
            seen = [v for found, v, begin, end in versions if found == key and begin <= moment < (end or 99)]
            assert seen == expected, (key, moment)


def check(spec: Spec, engine: Engine, run: Callable[[str, pa.Table], list[dict[str, Any]]]) -> None:
    (table,) = spec.tables
    sql = write_history(engine, spec, table, "changes")

    def ask(rows: list[Row]) -> list[Row]:
        found = run(sql.removesuffix(";"), make_changes(rows))
        versions = [(row["Account_Id"], row["v"], row["_valid_from"], row["_valid_to"]) for row in found]
        return sorted(versions, key=str)

    for rows, expected in CASES.values():
        assert ask(rows) == sorted(expected, key=str)
    for seed in range(4):
        rows = make_random(seed)
        check_moments(rows, ask(rows))


def ask_duckdb(sql: str, changes: pa.Table) -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone='UTC'")
        connection.register("changes", changes)
        return list(connection.sql(sql).to_arrow_table().to_pylist())


def ask_spark(spark: Any, sql: str, changes: pa.Table) -> list[dict[str, Any]]:
    spark.createDataFrame(changes).createOrReplaceTempView("changes")
    return [row.asDict() for row in spark.sql(sql).collect()]


def test_duckdb(tmp_path):
    check(make_spec(tmp_path), Engine.DUCKDB, ask_duckdb)


@pytest.mark.spark
def test_spark(tmp_path, spark):
    check(make_spec(tmp_path), Engine.SPARK, partial(ask_spark, spark))


EXPECTED = """SELECT *
FROM (
    SELECT *, at AS _valid_from, MIN(at) OVER (
        PARTITION BY Account_Id
        ORDER BY at NULLS FIRST, seq NULLS FIRST, _deleted, _loaded_at DESC, _load_id DESC
        ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
    ) AS _valid_to
    FROM s.accounts
) AS versions
WHERE _deleted = false AND COALESCE(_valid_from < _valid_to, true);"""


@pytest.mark.parametrize("engine", ["athena", "redshift", "trino", "spark", "duckdb"])
def test_every_engine_has_it(tmp_path, engine):
    spec = make_spec(tmp_path, {"catalog": "glue"})
    (query,) = [query for query in write_queries(spec, [Engine(engine)]) if query.title == HISTORY]
    assert query.sql == EXPECTED or engine != "athena"
    (parsed,) = sqlglot.parse(query.sql, dialect=engine)
    assert parsed is not None
    assert len(list(parsed.find_all(sqlglot.exp.Window))) == 1


def test_snowflake(tmp_path):
    rest = {
        "catalog": "open_catalog",
        "catalog_endpoint": "https://a.example.com/polaris/api/catalog",
        "catalog_name": "lake",
        "client_id": "me",
        "client_secret": "${env:CATALOG_SECRET}",
    }
    spec = make_spec(tmp_path, rest)
    (query,) = [query for query in write_queries(spec, [Engine.SNOWFLAKE]) if query.title == HISTORY]
    sqlglot.parse(query.sql, dialect="snowflake")
    assert "MIN(at) OVER" in query.sql


def test_a_view_of_its_own(tmp_path):
    """Beside the table's; a table may have its name."""
    other = {"table": "accounts_history", "schema": "s", "read": READ}
    spec = load_spec(lake(tmp_path, tables=[ENTRY, other], **DESTINATION))
    views = [
        query.sql.splitlines()[0] for query in write_views(spec, Engine.DUCKDB, LastLoads()) if "VIEW" in query.sql
    ]
    assert views == [
        'CREATE OR REPLACE VIEW "s_accounts" AS',
        'CREATE OR REPLACE VIEW "s_accounts_history_1" AS',
        'CREATE OR REPLACE VIEW "s_accounts_history" AS',
    ]


def test_beside_the_merged_table(tmp_path):
    """As docs/merge.md has it: one source, two entries."""
    entries = [ENTRY | {"mode": "merge"}, ENTRY | {"written_as": "accounts_history"}]
    spec = load_spec(lake(tmp_path, tables=entries, **DESTINATION | {"catalog": "iceberg"}))
    assert [table.id for table in spec.tables] == ["s.accounts", "s.accounts_history"]
    (query,) = [query for query in write_queries(spec, [Engine.TRINO]) if query.title == HISTORY]
    assert "FROM lake.s.accounts_history\n" in query.sql


def test_tables_without_it(tmp_path):
    entries: list[dict[str, Any]] = [{"order_by": []}, {"mode": "merge"}]
    for entry in entries:
        spec = make_spec(tmp_path, {"catalog": "iceberg"}, **entry)
        assert [query for query in write_queries(spec, [Engine.DUCKDB]) if query.title == HISTORY] == []


REFUSED = [
    # the entry, words of the message
    ({"primary_key": []}, "has order_by, which orders the rows of one key, and no primary_key"),
    ({"mode": "refresh"}, "has order_by and 'mode: refresh', which replaces rows and compares none of them"),
]


@pytest.mark.parametrize(("entry", "said"), REFUSED)
def test_refused(tmp_path, entry, said):
    with pytest.raises(SpecInvalidError, match=said):
        make_spec(tmp_path, **entry)
