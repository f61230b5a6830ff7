"""Cursors of every type of PostgreSQL and MariaDB over several loads: each row is read once, or the type is refused."""

import pytest

from tests.interop import mariadb, postgresql
from tests.interop.test_database_loads import run

pytestmark = [pytest.mark.timeout(900), pytest.mark.exhaustive]

MADE = "CREATE TYPE mood AS ENUM ('z', 'm', 'a'); CREATE DOMAIN feeling AS mood; CREATE TYPE pair AS (a int, b text);"
POSTGRESQL = {
    # A type, and three literals in its order, which is mostly not that of their texts.
    "xid8": ("'8'", "'9'", "'10'"),
    "pg_lsn": ("'8/0'", "'9/0'", "'10/0'"),
    "money": ("8", "9", "10"),
    "interval": ("'8 days'", "'9 days'", "'10 days'"),
    "inet": ("'8.0.0.1'", "'9.0.0.1/24'", "'10.0.0.1'"),
    "cidr": ("'8.0.0.0/8'", "'9.0.0.0/8'", "'10.0.0.0/8'"),
    "macaddr": ("'08:00:2b:01:02:03'", "'08:00:2b:01:02:04'", "'0a:00:2b:01:02:04'"),
    "macaddr8": ("'08:00:2b:01:02:03:04:05'", "'08:00:2b:01:02:03:04:06'", "'0a:00:2b:01:02:03:04:06'"),
    "uuid": (
        "'00000000-0000-4000-8000-000000000009'",
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
        "'ffffffff-0000-4000-8000-000000000000'",
    ),
    "bit(4)": ("B'0001'", "B'0010'", "B'1000'"),
    "varbit(8)": ("B'0001'", "B'0010'", "B'1'"),
    "mood": ("'z'", "'m'", "'a'"),
    "smallint": ("8", "9", "10"),
    "integer": ("8", "9", "10"),
    "bigint": ("8", "9", "10"),
    "numeric(9, 2)": ("8", "9.5", "10"),
    "numeric": ("8", "9.5", "10"),
    "real": ("0.1", "9.5", "10"),
    "double precision": ("0.1", "9.5", "10"),
    "oid": ("8", "9", "10"),
    "date": ("'0900-01-01'", "'1582-10-10'", "'2024-01-01'"),
    "timestamp": ("'0900-01-01'", "'1582-10-10'", "'2024-01-01 00:00:00.000001'"),
    "timestamptz": ("'0900-01-01'", "'2024-01-01 00:00+00'", "'2024-01-01 00:00-01'"),
    "text": ("'Z9'", "'a'", "'ä'"),
    "varchar(5)": ("'Z9'", "'a'", "'ä'"),
    "char(5)": ("'Z9'", "'a'", "'ä'"),
    "name": ("'Z9'", "'a'", "'ä'"),
    '"char"': ("'A'", "'Z'", "'a'"),
}
POSTGRESQL_REFUSED = {
    "timetz": "'23:30:00-08'",
    "json": '\'{"updated_at": "2024-01-01"}\'',
    "jsonb": '\'{"updated_at": "2024-01-01"}\'',
    "xml": "'<a/>'",
    "point": "'(1,2)'",
    "circle": "'<(1,2),3>'",
    "tsvector": "'a'",
    "int4range": "'[1,5)'",
    "datemultirange": "'{[2024-01-01,2024-01-02)}'",
    "pair": "'(1,b)'",
    "xid": "'9'",
    "tid": "'(0,9)'",
    "regclass": "'pg_class'",
    "jsonpath": "'$.a'",
    "feeling": "'z'",
}
MARIADB = {
    # MariaDB compares the last group of digits first.
    "uuid": (
        "'ffffffff-0000-1000-8000-000000000001'",
        "'a0000000-0000-1000-8000-000000000002'",
        "'00000000-0000-1000-8000-000000000003'",
    ),
    "inet6": ("'::8'", "'::9'", "'::10'"),
    "inet4": ("'8.0.0.1'", "'9.0.0.1'", "'10.0.0.1'"),
    "tinyint": ("8", "9", "10"),
    "smallint unsigned": ("8", "9", "10"),
    "int": ("8", "9", "10"),
    "bigint": ("8", "9", "10"),
    "bigint unsigned": ("8", "9", "18446744073709551615"),
    "bit(5)": ("8", "9", "10"),
    "bit(64)": ("8", "9", "10"),
    "decimal(9, 2)": ("8", "9.5", "10"),
    "decimal(65, 30)": ("8", "9.5", "10"),
    "float": ("0.1", "9.5", "10"),
    "double": ("0.1", "9.5", "10"),
    "year": ("1901", "2000", "2155"),
    "date": ("'0900-01-01'", "'1582-10-10'", "'2024-01-01'"),
    "datetime(6)": ("'0900-01-01'", "'1582-10-10'", "'2024-01-01 00:00:00.000001'"),
    "timestamp(6) null": ("'2024-01-01'", "'2024-02-01'", "'2024-03-01 00:00:00.000001'"),
    "char(5)": ("'Z9'", "'a'", "'ä'"),
    "varchar(5)": ("'Z9'", "'a'", "'ä'"),
    "text": ("'Z9'", "'a'", "'ä'"),
}
MARIADB_REFUSED = {
    "enum('z', 'm', 'a')": "'z'",
    "set('z', 'm', 'a')": "'z'",
}

LOADS = """
options, found = given["options"], {}
for number, (kind, values) in enumerate(given["types"]):
    seen, since, name = [], None, f"t{number}"
    null = "" if "null" in kind else " NULL"
    execute(options, f"CREATE TABLE {name} (id int PRIMARY KEY, v {kind}{null})")
    spec = table(format="jdbc", options={**options, "dbtable": name}, cursor="v", primary_key=("id",))
    one, two, three = values
    try:
        for rows in (f"(1, {one}), (2, {two}), (3, NULL)", f"(4, {three})", f"(5, {three}), (6, {one})", ""):
            if rows:
                execute(options, f"INSERT INTO {name} VALUES {rows}")
            loaded, since, _ = load(spec, since)
            seen.append(sorted(int(row[0]) for row in loaded))
    except LakeError as error:
        seen = str(error)
    found[kind] = seen
print(json.dumps(found))
"""
REFUSED = """
from lakewriter.spec.table_spec import Read
options, found = given["options"], {}
def refuse(name, spec):
    try:
        found[name] = load(spec, None)[0]
    except LakeError as error:
        found[name] = error.code
        if "query: SELECT ..., " in error.remedy:
            # The query that the remedy proposes is read.
            query = error.remedy.partition("query: ")[2].removesuffix("....").replace("SELECT ...", "SELECT id")
            of_query = {**options, "query": query + spec.read.options["dbtable"]}
            ordered = spec.model_copy(update={"cursor": "v_order", "columns": {}, "mode": "append", "order_by": ()})
            ordered = ordered.model_copy(update={"read": spec.read.model_copy(update={"options": of_query})})
            load(ordered, None)
for number, (kind, value) in enumerate(given["types"]):
    name = f"r{number}"
    execute(options, f"CREATE TABLE {name} (id int, v {kind})", f"INSERT INTO {name} VALUES (1, {value})")
    there = {**options, "dbtable": name}
    refuse(kind, table(format="jdbc", options=there, cursor="v"))
    refuse(f"{kind} as order", table(format="jdbc", options=there, order_by=("v",)))
    views = {"w": Read(format="jdbc", options=there)}
    refuse(f"{kind} by SQL", table(sql="SELECT id, v FROM w", views=views, cursor="v"))
    refuse(f"{kind} as string", table(format="jdbc", options=there, cursor="v", columns={"v": "string"}))
for number, (kind, values) in enumerate(given["declared"].items()):
    name = f"d{number}"
    execute(options, f"CREATE TABLE {name} (id int, v {kind})", f"INSERT INTO {name} VALUES (1, {values[0]})")
    there = {**options, "dbtable": name}
    refuse(f"{kind} declared", table(format="jdbc", options=there, cursor="v", columns={"v": "string"}))
    custom = {**there, "customSchema": "v STRING"}
    refuse(f"{kind} by customSchema", table(format="jdbc", options=custom, cursor="v"))
for number, query in enumerate(given["queries"]):
    refuse(query, table(format="jdbc", options={**options, "dbtable": f"({query}) q"}, cursor="v"))
print(json.dumps(found))
"""


@pytest.fixture(scope="module", params=["postgresql", "mariadb", "connector-j"])
def served(request):
    """The options of a server, the driver's jar, and whether it is PostgreSQL."""
    if request.param == "postgresql":
        with postgresql.serving() as running:
            running.execute(MADE)
            yield {"url": running.url, "user": postgresql.USER, "password": "-"}, postgresql.DRIVER
        return
    scheme, package = ("mariadb", mariadb.DRIVER) if request.param == "mariadb" else ("mysql", mariadb.CONNECTOR_J)
    with mariadb.serving() as running:
        yield (
            {
                "url": running.make_url(scheme),
                "user": mariadb.USER,
                "password": mariadb.PASSWORD,
            },
            package,
        )


def test_each_row_is_read_once(served):
    options, package = served
    types = POSTGRESQL if package == postgresql.DRIVER else MARIADB
    found = run(LOADS, {"options": options, "types": list(types.items())}, package)
    assert found == {kind: [[1, 2, 3], [4], [5], []] for kind in types}


QUERIES = [
    # A query hides that its column is an ENUM.
    "SELECT id, v FROM r0",
    "SELECT id, v AS v FROM (SELECT * FROM r0) s",
    "SELECT 1 AS id, MAX(v) AS v FROM r0",
]


def test_types_without_an_order_are_refused(served):
    options, package = served
    types = POSTGRESQL_REFUSED if package == postgresql.DRIVER else MARIADB_REFUSED
    declared = {kind: types for kind, types in MARIADB.items() if kind in ("bigint", "date", "decimal(9, 2)", "float")}
    queries = [] if package == postgresql.DRIVER else QUERIES
    given = {"options": options, "types": list(types.items()), "declared": declared, "queries": queries}
    found = run(REFUSED, given, package)
    assert {kind: said for kind, said in found.items() if said != "SPEC_INVALID"} == {}
