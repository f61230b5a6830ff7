"""Loads from a real PostgreSQL as users run them: by the command, its Java and Python in several time zones."""

import json
import os
import re
import subprocess
import sys

import pytest
import yaml

from tests.interop.maven import jars
from tests.interop.postgresql import DRIVER, USER, serving
from tests.load.lakes import ROOT, Lake

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

GUIDE = ROOT / "docs" / "guide-supaflow.md"
SCHEMA = "supaflow_nyc_public"

TYPES = [
    # SQL type, literal, DuckDB's text of what was written, None where it is PostgreSQL's own text
    ("smallint", "-32768", None),
    ("integer", "-2147483648", None),
    ("bigint", "9223372036854775807", None),
    ("decimal(10, 2)", "12345678.90", None),
    ("numeric", "1.5", "1.500000000000000000"),
    ("numeric", "-12345678901234567890.1234567890123456780", "-12345678901234567890.123456789012345678"),
    ("numeric(38, 0)", "99999999999999999999999999999999999999", None),
    ("real", "1.5", None),
    ("double precision", "0.1", None),
    ("money", "'12.34'", None),
    ("boolean", "true", None),
    ("char(5)", "'ab'", "ab   "),
    ("varchar(5)", "'a b'", None),
    ("text", "'žluť €'", None),
    ('"char"', "'x'", None),
    ("name", "'n'", None),
    ("bytea", "'\\xdeadbeef'", "\\xDE\\xAD\\xBE\\xEF"),
    ("date", "'1850-01-01'", None),
    # Java's calendar has no such day.
    ("date", "'1582-10-10'", None),
    ("timestamp(0)", "'2024-03-10 02:30:00'", "2024-03-10 02:30:00+00"),
    ("timestamp(3)", "'1969-12-31 23:59:59.999'", "1969-12-31 23:59:59.999+00"),
    ("timestamp", "'1850-01-01 00:00:00'", "1850-01-01 00:00:00+00"),
    ("timestamptz", "'1850-01-01 00:00:00+00'", None),
    ("time", "'12:34:56.789012'", "1970-01-01 12:34:56.789012+00"),
    ("timetz", "'12:34:56.5+05:30'", None),
    ("interval", "'1 year 2 days 03:04:05'", None),
    ("json", "'{\"a\": [1, 2]}'", None),
    ("jsonb", "'{\"a\": [1, 2]}'", None),
    ("xml", "'<a/>'", None),
    ("uuid", "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", None),
    ("inet", "'192.168.0.1/24'", None),
    ("cidr", "'10.0.0.0/8'", None),
    ("macaddr", "'08:00:2b:01:02:03'", None),
    ("macaddr8", "'08:00:2b:01:02:03:04:05'", None),
    ("bit(1)", "B'1'", "true"),
    ("bit(3)", "B'101'", None),
    ("varbit(5)", "B'1011'", None),
    ("point", "'(1,2)'", None),
    ("line", "'{1,2,3}'", None),
    ("lseg", "'((1,2),(3,4))'", None),
    ("box", "'((1,2),(3,4))'", None),
    ("path", "'((1,2),(3,4))'", None),
    ("polygon", "'((1,2),(3,4))'", None),
    ("circle", "'<(1,2),3>'", None),
    ("tsvector", "'a b'", None),
    ("tsquery", "'a & b'", None),
    ("int4range", "'[1,5)'", None),
    ("tsrange", "'[2024-01-01,2024-01-02)'", None),
    ("daterange", "'[2024-01-01,2024-01-02)'", None),
    ("integer[]", "'{1,NULL,3}'", "[1, NULL, 3]"),
    ("numeric(9, 2)[]", "'{1.50}'", "[1.50]"),
    ("boolean[]", "'{t,f}'", "[true, false]"),
    ("pg_lsn", "'16/B374D848'", None),
    ("oid", "4294967295", None),
    ("regclass", "'pg_class'", None),
    ("jsonpath", "'$.a'", None),
    ("mood", "'sad'", None),
    ("positive", "5", None),
]

ORDERS = (
    "CREATE TABLE orders AS SELECT n AS order_id, timestamp '2024-03-10 02:00' + n * interval '1 min' AS at FROM {};"
)


@pytest.fixture(scope="module")
def database():
    with serving() as running:
        columns = ", ".join(f"c{place} {kind}" for place, (kind, _, _) in enumerate(TYPES))
        running.execute("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE DOMAIN positive AS int CHECK (VALUE > 0);")
        running.execute(f"CREATE TABLE types (n int, {columns});")
        running.execute(f"INSERT INTO types VALUES (1, {', '.join(literal for _, literal, _ in TYPES)});")
        running.execute("INSERT INTO types (n) VALUES (2);")
        yield running


@pytest.fixture
def lake(tmp_path, aws, bucket):
    return Lake(tmp_path, aws, None)  # type: ignore[arg-type]


def read(database, table):
    # Whoever connects is trusted; the driver asks for a password all the same.
    return {"format": "jdbc", "options": {"url": database.url, "user": USER, "password": "-", "dbtable": table}}


def run(lake, command, code=0, **environment):
    variables = {"AWS_ENDPOINT_URL": lake.aws.url, "PYTHONPATH": str(ROOT / "job"), "DB_USER": USER, **environment}
    path = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"  # noqa: PTH120
    done = subprocess.run(
        command,
        env=os.environ | variables | {"PATH": path},
        cwd=lake.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout[-2000:] + done.stderr[-3000:]
    return done


@pytest.mark.exhaustive
@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_types_partitions_and_increments(lake, database, zone):
    (jar,) = jars([DRIVER])
    database.execute("DROP TABLE IF EXISTS orders;" + ORDERS.format("generate_series(1, 100) n"))
    orders = {"table": "orders", "schema": "public", "cursor": "at", "primary_key": ["order_id"]}
    orders["read"] = read(database, "orders") | {"partition": {"column": "order_id", "count": 4}}
    lake.write({"table": "types", "schema": "public", "read": read(database, "types")}, orders)
    command = [sys.executable, "-m", "lakewriter", "run", "lake.yaml", "--job-id"]
    environment = {"TZ": zone, "PYSPARK_SUBMIT_ARGS": f"--jars {jar} pyspark-shell"}
    run(lake, [*command, "a"], **environment)
    database.execute("INSERT INTO orders VALUES (101, '2024-03-10 05:00'), (102, '2024-03-10 01:00');")
    run(lake, [*command, "b"], **environment)

    names = [f"c{place}" for place in range(len(TYPES))]
    own = database.execute(
        f"SET timezone = 'UTC'; SELECT {', '.join(f'{n}::text' for n in names)} FROM types WHERE n = 1"
    )
    expected = [text or shown for (_, _, text), shown in zip(TYPES, own.split("|"), strict=True)]
    texts = ", ".join(f"{name}::VARCHAR" for name in names)
    found = lake.rows(f"SELECT {texts} FROM t WHERE n = 1 LIMIT 1", f"{SCHEMA}/types")[0]
    literals = [f"{kind} {literal}" for kind, literal, _ in TYPES]
    assert dict(zip(literals, found, strict=True)) == dict(zip(literals, expected, strict=True))
    assert set(lake.rows(f"SELECT {', '.join(names)} FROM t WHERE n = 2", f"{SCHEMA}/types")[0]) == {None}
    written = lake.rows('SELECT order_id, "at"::VARCHAR FROM t ORDER BY order_id', f"{SCHEMA}/orders")
    # What is above the cursor was read again, once; 102 is below it.
    assert [row[0] for row in written] == [*range(1, 101), 101]
    assert written[29] == (30, "2024-03-10 02:30:00+00")


@pytest.mark.exhaustive
def test_cursors_that_are_read_as_text(lake, database):
    """Values that the server orders are loaded as they come, also if nothing has; texts of numbers are refused."""
    (jar,) = jars([DRIVER])
    command = [sys.executable, "-m", "lakewriter", "run", "lake.yaml", "--job-id"]
    environment = {"PYSPARK_SUBMIT_ARGS": f"--jars {jar} pyspark-shell"}
    database.execute("DROP TABLE IF EXISTS moves; CREATE TABLE moves (id int, v xid8, t text);")
    moves = {"table": "moves", "schema": "public", "read": read(database, "moves")}
    lake.write(moves | {"cursor": "v"})
    for job_id, values in (("a", "(1, '8', '8'), (2, '9', '9')"), ("b", "(3, '10', '10')"), ("c", "")):
        if values:
            database.execute(f"INSERT INTO moves VALUES {values};")
        run(lake, [*command, job_id], **environment)
    assert lake.rows("SELECT id FROM t ORDER BY id", f"{SCHEMA}/moves") == [(1,), (2,), (3,)]
    lake.write(moves | {"cursor": "t", "table": "texts"})
    said = run(lake, [*command, "d"], 2, **environment)
    assert "columns: {t: bigint}" in said.stdout + said.stderr


CHANGED = {
    # SQL type and literal of a value that Spark or Java would change: in the message
    "a": ("numeric", "0.1234567890123456789", "'0.1234567890123456789' in column 'c'"),
    "b": ("numeric", "'NaN'", "'NaN' in column 'c'"),
    "d": ("date", "'infinity'", "'infinity' in column 'c'"),
    "e": ("date", "'-infinity'", "'-infinity' in column 'c'"),
}


@pytest.mark.exhaustive
def test_values_that_would_be_changed_are_refused(lake, database):
    (jar,) = jars([DRIVER])
    for name, (kind, literal, _) in CHANGED.items():
        database.execute(f"CREATE TABLE {name} (c {kind}); INSERT INTO {name} VALUES ({literal});")
    lake.write(*({"table": name, "schema": "public", "read": read(database, name)} for name in CHANGED))
    command = [sys.executable, "-m", "lakewriter", "run", "lake.yaml", "--json"]
    done = run(lake, command, code=1, PYSPARK_SUBMIT_ARGS=f"--jars {jar} pyspark-shell")
    report = {table["table"]: table for table in json.loads(done.stdout)["tables"]}
    for name, (_, _, message) in CHANGED.items():
        assert report[name]["code"] == "VALUE_UNREPRESENTABLE", report[name]
        assert message in report[name]["message"]


UNTOLD = {
    # SQL type and literal, how the table is read: in the message. Spark would have read the value as the one behind it.
    "t1": ("timestamp", "'infinity'", "plain", "'infinity'"),  # 9999-12-31 23:59:59.999
    "t2": ("timestamptz", "'-infinity'", "plain", "'-infinity'"),  # 0001-01-03
    "t4": ("timestamp[]", "'{NULL,infinity}'", "plain", '[null, "infinity"]'),
    "t6": ("numeric[]", "'{0.1234567890123456789}'", "plain", '["0.1234567890123456789"]'),
    "t7": (
        "numeric(50, 40)",
        "0.12345678901234567890123456789",
        "plain",
        "'0.1234567890123456789012345678900000000000'",
    ),
    "t8": ("numeric(10, 2)", "'NaN'", "plain", "'NaN'"),  # an error of the driver
    "t9": ("numeric[]", "'{-Infinity}'", "plain", '["-Infinity"]'),  # an error of the driver
    "c1": ("timestamp", "'infinity'", "cursor", "'infinity'"),
    "c2": ("date", "'-infinity'", "cursor", "'-infinity'"),
    "c3": ("numeric", "0.1234567890123456789", "cursor", "'0.1234567890123456789'"),
    "c4": ("numeric", "'NaN'", "cursor", "'NaN'"),
    "p2": ("numeric(10, 2)", "'NaN'", "partition", "'NaN'"),
    "v1": ("date", "'infinity'", "view", "'infinity'"),
    "v2": ("numeric", "0.1234567890123456789", "view", "'0.1234567890123456789'"),
    "d1": ("timestamp", "'infinity'", "declared", "'infinity'"),
}
EXACT = {
    # a cursor's SQL type, the values next to those that are refused, DuckDB's texts of them
    "e1": (
        "timestamp",
        ("'9999-12-31 23:59:59.999'", "'1582-10-04 23:59:59.999999'", "'1582-10-10'"),
        ("9999-12-31 23:59:59.999+00", "1582-10-04 23:59:59.999999+00", "1582-10-10 00:00:00+00"),
    ),
    "e2": (
        "date",
        ("'1582-10-04'", "'1582-10-10'", "'9999-12-31'", "'0001-01-01'"),
        ("1582-10-04", "1582-10-10", "9999-12-31", "0001-01-01"),
    ),
    "e3": (
        "numeric",
        ("-0.500000000000000000000", "99999999999999999999.123456789012345678"),
        ("-0.500000000000000000", "99999999999999999999.123456789012345678"),
    ),
    "e4": ("numeric(38, 0)", ("9" * 38, "-1"), ("9" * 38, "-1")),
}


def read_untold(database, name, way):
    source = read(database, name)
    if way == "view":
        source = {"sql": "SELECT * FROM v", "views": {"v": source}}
    if way == "partition":
        source["partition"] = {"column": "c", "count": 2}
    if way == "declared":
        source["options"]["customSchema"] = "t TIMESTAMP"
    return {"table": name, "schema": "public", "read": source} | ({"cursor": "c"} if way == "cursor" else {})


@pytest.mark.exhaustive
def test_values_that_nothing_tells_from_others_are_refused(lake, database):
    (jar,) = jars([DRIVER])
    tables = []
    for name, (kind, literal, way, _) in UNTOLD.items():
        database.execute(f"CREATE TABLE {name} (t time, c {kind}); INSERT INTO {name} VALUES ('12:00', {literal});")
        tables.append(read_untold(database, name, way))
    for name, (kind, literals, _) in EXACT.items():
        rows = ", ".join(f"({literal})" for literal in literals)
        database.execute(f"CREATE TABLE {name} (c {kind}); INSERT INTO {name} VALUES {rows}, (NULL);")
        tables.append(read_untold(database, name, "cursor"))
    lake.write(*tables)
    command = [sys.executable, "-m", "lakewriter", "run", "lake.yaml", "--json"]
    done = run(lake, command, code=1, PYSPARK_SUBMIT_ARGS=f"--jars {jar} pyspark-shell")
    report = {table["table"]: table for table in json.loads(done.stdout)["tables"]}
    assert {name: report[name].get("code") for name in UNTOLD} == dict.fromkeys(UNTOLD, "VALUE_UNREPRESENTABLE"), report
    for name, (_, _, _, value) in UNTOLD.items():
        assert value in report[name]["message"]
        assert f"table '{SCHEMA}.{name}'" in report[name]["message"]
        assert "in column 'c'" in report[name]["message"]
    assert [key for key in lake.data() if any(f"/{name}/" in key for name in UNTOLD)] == []
    for name, (_, _, expected) in EXACT.items():
        texts = [row[0] for row in lake.rows("SELECT c::VARCHAR FROM t", f"{SCHEMA}/{name}")]
        assert sorted(texts, key=str) == sorted([*expected, None], key=str), report[name]


@pytest.mark.exhaustive
def test_recipe_of_the_guide(lake, database):
    """The YAML and the commands of the guide as they are printed, but for the database's address and password."""
    jars([DRIVER])
    text = GUIDE.read_text("utf-8")
    section = text[text.index("### JDBC") : text.index("### SQL")]
    entry, script = (re.search(rf"```{kind}\n(.*?)```", section, re.DOTALL)[1] for kind in ("yaml", "sh"))  # type: ignore[index]
    printed = yaml.safe_load(entry)["read"]
    assert printed["options"]["url"].startswith("jdbc:postgresql://")
    printed["options"] |= {"url": database.url, "password": "-"}
    database.execute("DROP TABLE IF EXISTS orders;" + ORDERS.format("generate_series(1, 7) n"))
    lake.write({"table": "orders", "schema": "public", "read": printed})
    run(lake, ["bash", "-e", "-c", script])
    assert lake.rows("SELECT count(*) FROM t", f"{SCHEMA}/orders") == [(7,)]
