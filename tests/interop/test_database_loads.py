"""Loads from PostgreSQL and MariaDB beside writers: cursors, edges, snapshots, and agreement with the server."""

import itertools
import json
import subprocess
import sys
import textwrap
import threading

import pytest

from tests.interop import mariadb, postgresql
from tests.interop.maven import jars
from tests.interop.test_database_types import make_environment
from tests.load.lakes import ROOT

pytestmark = pytest.mark.timeout(900)

HEAD = """
import json, sys, threading, time
from pathlib import Path
import pyarrow as pa
from lakewriter.receipt import Cursor
from lakewriter.errors import LakeError
from lakewriter.source.databases.cursors import CursorCondition
from lakewriter.source.databases.database_connection import open_connection
from lakewriter.source.databases.database_rows import complete_options
from lakewriter.source.databases.servers import find_server
from lakewriter.source.feed import open_feed
from lakewriter.source.request import RowsRequest
from lakewriter.source.session import open_spark_session
from lakewriter.shape.cursor import find_highest
from lakewriter.spec.table_spec import JdbcPartition, JdbcRules
from tests.interop.read_databases import show
from tests.source.tables import table

spark = open_spark_session("interop", tasks=4)
given = json.load(sys.stdin)


def load(found, since, meanwhile=lambda: None):
    condition = None if since is None else CursorCondition("false", since)
    feed = open_feed(RowsRequest(lambda: spark, found, condition=condition))
    meanwhile()
    rows = [json.loads(text) for text in feed.run(show)]
    feed.reconcile()
    place = feed.schema.names.index(found.cursor) if found.cursor else None
    feed.close()
    after = since
    if rows and place is not None:
        kind = feed.schema.types[place]
        from lakewriter.cast.strict_cast import cast_text
        values = cast_text(pa.array([row[place] for row in rows]), kind).values
        after = find_highest(values, found.cursor, 0)
    if after is not None and feed.edge is not None:
        after = feed.edge.mark(after)
    return rows, after, feed.notes


def connect(options):
    return open_connection(spark, complete_options(options, find_server(options["url"])))


def execute(options, *statements):
    java = connect(options)
    for sql in statements:
        java.createStatement().execute(sql)
    java.close()
"""


def run(script, given, *packages):
    """What a script prints, in a process that has the drivers' jars."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + textwrap.dedent(script)],
        input=json.dumps(given), env=make_environment(jars(packages), "UTC"), cwd=ROOT, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module", params=["postgresql", "mariadb", "connector-j"])
def served(request):
    """The options of a server, the driver's jar, and the server."""
    if request.param == "postgresql":
        with postgresql.serving() as running:
            running.execute(COLLATIONS_MADE)
            yield {"url": running.url, "user": postgresql.USER, "password": "-"}, postgresql.DRIVER, running
        return
    scheme, package = ("mariadb", mariadb.DRIVER) if request.param == "mariadb" else ("mysql", mariadb.CONNECTOR_J)
    with mariadb.serving() as running:
        options = {"url": running.make_url(scheme), "user": mariadb.USER, "password": mariadb.PASSWORD}
        yield options, package, running


COLLATIONS_MADE = "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
COLLATIONS = {
    # Of each server one that is not by letters' numbers, and one that takes letters of both cases for equal.
    postgresql.DRIVER: ['COLLATE "und-x-icu"', "COLLATE blind"],
    mariadb.DRIVER: ["COLLATE utf8mb4_unicode_ci", "CHARACTER SET latin1 COLLATE latin1_german2_ci"],
    mariadb.CONNECTOR_J: ["COLLATE utf8mb4_unicode_ci", "CHARACTER SET latin1 COLLATE latin1_german2_ci"],
}


CURSORS = """
options = given["options"]
one, two = given["collations"]
kinds = {"at": "timestamp", "n": "decimal(9, 2)", "day": "date", "t": f"varchar(20) {one}", "u": f"varchar(20) {two}"}
values = {
    "at": ["2024-03-10 02:30:00", "2024-03-10 02:30:00", "2024-03-10 02:31:00"],
    "t": ["Z99", "a1", "b"], "u": ["A", "a", "ä"],
    "n": ["1.50", "1.50", "10.00"], "day": ["2024-01-01", "2024-01-01", "2024-01-02"],
}
found = {}
for name, kind in kinds.items():
    one, two, three = values[name]
    null = " NULL DEFAULT NULL" if kind == "timestamp" else ""
    execute(options, f"CREATE TABLE by_{name} (id int PRIMARY KEY, {name} {kind}{null})",
            f"INSERT INTO by_{name} VALUES (1, '{one}'), (2, NULL)")
    spec = table(format="jdbc", options={**options, "dbtable": f"by_{name}"}, cursor=name, primary_key=("id",))
    seen, since = [], None
    # Rows that come while a load reads, and one that has the highest value itself.
    arrivals = [f"(3, '{two}')", f"(4, '{three}')", "", f"(5, '{three}')"] + [
        f"({10 + n}, '{three}')" for n in range(5)
    ] + [""]
    for values_ in arrivals:
        sql = [f"INSERT INTO by_{name} VALUES {values_}"] if values_ else []
        rows, since, notes = load(spec, since, lambda: execute(options, *sql))
        seen.append(sorted(int(row[0]) for row in rows))
    found[name] = seen
print(json.dumps(found))
"""


@pytest.mark.exhaustive
def test_ten_loads_beside_a_writer_read_each_row_once(served):
    options, package, _ = served
    found = run(CURSORS, {"options": options, "collations": COLLATIONS[package]}, package)
    expected = [[1, 2], [3], [4], [], [5], [10], [11], [12], [13], [14]]
    assert found == dict.fromkeys(("at", "n", "day", "t", "u"), expected)


RANGES = """
from lakewriter.source.databases.cursors import RangeCondition
from lakewriter.spec.table_spec import Between, Bound
from lakewriter.run.ranges import parse_moment
options = given["options"]
execute(options, "CREATE TABLE ranged (id int PRIMARY KEY, day timestamp NULL, t varchar(20))",
        "INSERT INTO ranged VALUES (1, '2024-03-10 00:00:00', 'a'), (2, '2024-03-10 23:59:59', 'B'), "
        "(3, '2024-03-11 00:00:00', 'b'), (4, NULL, NULL), (5, '2024-03-12 00:00:00', 'c')")
spec = table(format="jdbc", options={**options, "dbtable": "ranged"}, primary_key=("id",))
found = {}
for column, kind, first, end in given["ranges"]:
    bounds = [Bound(text=text, moment=parse_moment(text)) for text in (first, end)]
    condition = RangeCondition(Between(column=column, kind=kind, first=bounds[0], end=bounds[1], sql="false"))
    feed = open_feed(RowsRequest(lambda: spark, spec, condition=condition))
    found[column] = sorted(int(json.loads(text)[0]) for text in feed.run(show))
    feed.reconcile()
    feed.close()
print(json.dumps(found))
"""


@pytest.mark.exhaustive
def test_server_selects_the_rows_of_a_range(served):
    """Spark's own condition is false, so that it would select none."""
    options, package, _ = served
    ranges = [
        ("id", "int64", "2", "4"),
        ("day", "timestamp[us, tz=UTC]", "2024-03-10", "2024-03-11"),
        ("t", "string", "B", "b"),
    ]
    expected = {"id": [2, 3], "day": [1, 2], "t": [1, 2]}
    assert run(RANGES, {"options": options, "ranges": ranges}, package) == expected


ARRIVING = """
spec = table(format="jdbc", options={**given["options"], "dbtable": "arriving"}, cursor="n", primary_key=("id",))
folder, seen, since = Path(given["folder"]), [], None
for number in range(10):
    if number == 9:
        (folder / "stop").touch()
        while not (folder / "stopped").exists():
            time.sleep(0.1)
    rows, since, _ = load(spec, since)
    seen.append(sorted(int(row[0]) for row in rows))
print(json.dumps(seen))
"""


@pytest.mark.exhaustive
def test_ten_loads_beside_a_process_that_writes(served, tmp_path):
    """Three rows have each value of the cursor, so that loads end between rows of one value."""
    options, package, running = served
    running.execute("CREATE TABLE arriving (id int PRIMARY KEY, n bigint);")
    written = itertools.count()

    def write():
        while not (tmp_path / "stop").exists():
            number = next(written)
            running.execute(f"INSERT INTO arriving VALUES ({number}, {number // 3});")
        (tmp_path / "stopped").touch()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    seen = run(ARRIVING, {"options": options, "folder": str(tmp_path)}, package)
    writer.join()
    assert sorted(itertools.chain(*seen)) == list(range(next(written)))
    assert sum(map(bool, seen)) > 2


DIFFERENT = """
from lakewriter.source.databases.figures import Meter
options = given["options"]
execute(options, "CREATE TABLE kept (id int PRIMARY KEY, t varchar(9))", "INSERT INTO kept VALUES (1, 'a'), (2, 'b')")
found = {}
for depth in ("counts", "columns"):
    spec = table(format="jdbc", options={**options, "dbtable": "kept"}, jdbc=JdbcRules(reconcile=depth))
    feed = open_feed(RowsRequest(lambda: spark, spec))
    feed.run(show)
    for column in feed._reconciliation.read.columns:
        column.values, column.upper = column.values - (depth == "counts"), "0"
    try:
        feed.reconcile()
    except LakeError as error:
        found[depth] = str(error)
    feed.close()
print(json.dumps(found))
"""


@pytest.mark.exhaustive
def test_difference_ends_the_load(served):
    options, package, _ = served
    found = run(DIFFERENT, {"options": options}, package)
    assert found["counts"].startswith("SOURCE_DISAGREES: table 's.t': the count of values of column 'id' is '2' in ")
    assert found["columns"].startswith("SOURCE_DISAGREES: table 's.t': the maximum of column 'id' is '2' in ")
