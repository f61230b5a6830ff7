"""The condition of the rows that a load reads by its cursor, and what the server is asked for it."""

import pyarrow as pa
import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.receipt import Cursor
from lakewriter.run.ranges import parse_moment
from lakewriter.source.databases.cursors import MOST_KEYS, Bounds, CursorQuery, Edge, spell
from lakewriter.source.databases.database_server import Column
from lakewriter.source.databases.servers import find_server
from lakewriter.spec.table_spec import Between, Bound
from tests.source.tables import table

MICROS = pa.timestamp("us", tz="UTC")
COLUMNS = [
    Column("id", "int8"),
    Column("at", "timestamptz"),
    Column("t", "text"),
    Column("b", "bool"),
    Column("f", "float8"),
    Column("x", "xid8"),
    Column("e", "enum"),
    Column("z", "timetz"),
    Column("u", "uuid"),
    Column("d", "date"),
]
AT = Cursor("timestamp[us, tz=UTC]", "2024-01-15T10:30:00.000000Z")


class Answers:
    """A connection that gives answers in turn, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def read_rows(self, sql, most=0):
        self.asked.append(sql)
        return self.answers.pop(0)


def plan(cursor, scheme="postgresql", **fields):
    found = table(format="jdbc", cursor=cursor, **fields)
    query = CursorQuery.plan(find_server(f"jdbc:{scheme}:d"), COLUMNS, "public.t", "", found)
    assert isinstance(query, CursorQuery), query
    return query


def test_first_load_reads_up_to_the_highest_value_and_nulls():
    connection = Answers([("2024-01-15 10:30:00",)])
    bounds = plan("at").fix(connection, None, in_snapshot=False)
    value = "CAST('2024-01-15 10:30:00+00' AS timestamptz)"
    assert bounds == Bounds(
        f'("at" <= {value} OR "at" IS NULL)', Edge("2024-01-15 10:30:00", MICROS, None), is_fixed=True
    )
    assert connection.asked == [
        ' SELECT ("highest" AT TIME ZONE \'UTC\')::text FROM (SELECT MAX("at") AS "highest" FROM public.t) '
        "lakewriter_highest"
    ]


def test_rows_at_the_edge_are_known_by_their_keys():
    connection = Answers([("2024-01-15 10:30:00",)], [("2",), ("1",)])
    bounds = plan("at", primary_key=("id",)).fix(connection, None, in_snapshot=False)
    value = "CAST('2024-01-15 10:30:00+00' AS timestamptz)"
    keys = '(("id"::text COLLATE "C" = \'1\' COLLATE "C") OR ("id"::text COLLATE "C" = \'2\' COLLATE "C"))'
    assert bounds.condition == f'(("at" < {value} OR ("at" = {value} AND {keys})) OR "at" IS NULL)'
    assert bounds.edge.keys == ('["1"]', '["2"]')
    assert connection.asked[1] == f' SELECT "id"::text FROM public.t WHERE "at" = {value}'


def test_next_load_reads_others_at_the_edge():
    since = Cursor(AT.type, AT.text, edge=('["1"]',))
    lower = plan("at", primary_key=("id",)).write_lower(since)
    value = "CAST('2024-01-15 10:30:00.000000+00' AS timestamptz)"
    known = '(("id"::text COLLATE "C" = \'1\' COLLATE "C"))'
    assert lower == f'("at" > {value} OR ("at" = {value} AND CASE WHEN {known} THEN 1 ELSE 0 END = 0))'


def test_in_a_snapshot_no_row_arrives():
    connection = Answers([("2024-01-15 10:30:00",)], [("1",)])
    bounds = plan("at", primary_key=("id",)).fix(connection, None, in_snapshot=True)
    assert bounds.condition == '("at" <= CAST(\'2024-01-15 10:30:00+00\' AS timestamptz) OR "at" IS NULL)'
    assert bounds.edge.keys == ('["1"]',)


def test_more_rows_at_the_edge_than_are_kept():
    connection = Answers([("2024-01-15 10:30:00",)], [(str(n),) for n in range(MOST_KEYS + 1)])
    bounds = plan("at", primary_key=("id",)).fix(connection, None, in_snapshot=False)
    assert bounds.edge.keys is None
    assert "\"at\" <= CAST('2024-01-15 10:30:00+00' AS timestamptz)" in bounds.condition


def test_nothing_new():
    assert plan("at").fix(Answers([(None,)]), AT, in_snapshot=False) == Bounds("1 = 0", is_fixed=True)
    assert plan("at").fix(Answers([(None,)]), None, in_snapshot=False) == Bounds(is_fixed=True)


LOWER = [
    # cursor, scheme, the value before, the lag: the condition
    ("at", "postgresql", AT, None, "\"at\" > CAST('2024-01-15 10:30:00.000000+00' AS timestamptz)"),
    ("at", "postgresql", AT, "10 minutes", "\"at\" > CAST('2024-01-15 10:20:00.000000+00' AS timestamptz)"),
    ("id", "postgresql", Cursor("int64", "42"), "2.5", "\"id\" > CAST('39' AS int8)"),
    ("t", "postgresql", Cursor("string", "Z99"), None, '("t"::text) COLLATE "C" > \'Z99\''),
]


@pytest.mark.parametrize(("cursor", "scheme", "since", "lag", "condition"), LOWER)
def test_condition_above_the_cursor(cursor, scheme, since, lag, condition):
    assert plan(cursor, scheme, cursor_lag=lag).write_lower(since) == condition


BY_SPARK = [
    # cursor, scheme, fields: why Spark compares the values
    ("b", "postgresql", {}, "PostgreSQL does not order bool as the values are ordered"),
    ("y", "postgresql", None, "the source has no column 'y'"),
    ("at", "postgresql", pa.date32(), "its type is declared"),
    ("x", "postgresql", pa.int64(), "its type is declared"),
    ("t", "oracle", None, "Oracle does not order varchar2 as the values are ordered"),
]


@pytest.mark.parametrize(("cursor", "scheme", "declared", "why"), BY_SPARK)
def test_cursor_that_the_server_does_not_compare(cursor, scheme, declared, why):
    found = table(format="jdbc", cursor=cursor)
    columns = [Column("t", "varchar2")] if scheme == "oracle" else COLUMNS
    assert CursorQuery.plan(find_server(f"jdbc:{scheme}:d"), columns, "t", "", found, declared) == why


def test_highest_value_by_the_order_of_the_type():
    connection = Answers([("10",)], [("3",)])
    bounds = plan("x", primary_key=("id",)).fix(connection, Cursor("string", "9"), in_snapshot=True)
    assert bounds.condition == "\"x\" > '9' AND \"x\" <= '10'"
    assert connection.asked == [
        ' SELECT "highest"::text FROM (SELECT "x" AS "highest" FROM public.t WHERE "x" IS NOT NULL AND "x" > \'9\' '
        'ORDER BY "x" DESC LIMIT 1) lakewriter_highest',
        ' SELECT "id"::text FROM public.t WHERE "x" = \'10\'',
    ]
    # The highest text of the rows is 9.
    assert bounds.edge.mark(Cursor("string", "9")) == Cursor("string", "10", edge=('["3"]',))


def test_no_value_of_an_order_of_its_own():
    edge = Edge("a", pa.string(), (), is_text_of_value=True)
    bounds = plan("e").fix(Answers([]), Cursor("string", "a"), in_snapshot=False)
    assert bounds == Bounds("1 = 0", edge, is_fixed=True)
    # The next load knows that nobody has compared the letters of the cursor, and begins where this one did.
    assert edge.mark(Cursor("string", "a")) == Cursor("string", "a")
    assert plan("e").fix(Answers([]), None, in_snapshot=False) == Bounds(is_fixed=True)


REFUSED = [
    # URL's scheme, the column's type, the type that is declared, part of the remedy
    ("postgresql", "timetz", None, 'query: SELECT ..., (\'1970-01-01 \' || "v")::timestamptz AS "v_order" FROM'),
    ("postgresql", "timetz", pa.string(), "query: SELECT ..., "),
    ("postgresql", "jsonb", None, "query: SELECT ..., (\"v\"->>'updated_at')::timestamptz"),
    ("postgresql", "int4range", None, 'query: SELECT ..., lower("v")'),
    ("postgresql", "pair", None, "Name a column that is a number, a date, a timestamp or a text"),
    ("postgresql", "int8", pa.string(), "Leave its type out of columns: and customSchema."),
    ("postgresql", "date", pa.string(), "Leave its type out of columns: and customSchema."),
    ("mysql", "enum", None, "query: SELECT ..., `v` + 0 AS `v_order` FROM"),
    ("mariadb", "set", None, "query: SELECT ..., `v` + 0 AS `v_order` FROM"),
    ("mysql", "char, enum or set", None, "query: SELECT ..., CAST(`v` AS CHAR)"),
    ("mysql", "json", None, "JSON_VALUE(`v`, '$.updated_at')"),
    ("sqlserver", "uniqueidentifier", None, "Name a column"),
    ("oracle", "rowid", None, "Name a column"),
    ("h2", "enum", None, "Name a column"),
    ("h2", "time with time zone", None, "Name a column"),
]


@pytest.mark.parametrize(("scheme", "kind", "declared", "remedy"), REFUSED)
def test_texts_that_do_not_sort_as_the_values_do(scheme, kind, declared, remedy):
    found = table(format="jdbc", cursor="v")
    with pytest.raises(SpecInvalidError, match="texts do not compare as its values do") as raised:
        CursorQuery.plan(find_server(f"jdbc:{scheme}:d"), [Column("v", kind)], "t", "", found, declared)
    assert remedy in raised.value.remedy


ORDERED = [
    # a column's type that a merge may compare by its text, and those that it may not
    ("postgresql", "uuid", True),
    ("postgresql", "text", True),
    ("postgresql", "citext", True),
    ("postgresql", '"public"."citext"', True),
    ("postgresql", "int8", True),
    ("postgresql", "xid8", False),
    ("postgresql", "money", False),
    ("mariadb", "uuid", False),
    ("mariadb", "inet6", False),
    ("mysql", "char", True),
    ("mysql", "enum", False),
]


@pytest.mark.parametrize(("scheme", "kind", "is_ordered"), ORDERED)
def test_order_of_a_merge(scheme, kind, is_ordered):
    server = find_server(f"jdbc:{scheme}:d")
    assert server.loses_order(Column("v", kind)) is not is_ordered


def test_cursor_of_another_type():
    why = plan("at").fix(Answers(), Cursor("string", "x"), in_snapshot=False)
    assert why == "the cursor has type string, and the column timestamp[us, tz=UTC]"


SPELLED = [
    (Cursor("date32[day]", "2024-01-15"), pa.date32(), "2 hours", "2024-01-14"),
    (Cursor("date32[day]", "2024-01-15"), pa.date32(), "1 day", "2024-01-14"),
    (Cursor("date32[day]", "0001-01-01"), pa.date32(), "1 day", "0001-01-01"),
    (Cursor("decimal128(10, 2)", "1.50"), pa.decimal128(10, 2), "0.5", "1.00"),
    (Cursor("float", "0.1"), pa.float32(), None, "0.10000000149011612"),
]


@pytest.mark.parametrize(("cursor", "kind", "lag", "text"), SPELLED)
def test_value_less_the_lag(cursor, kind, lag, text):
    assert spell(cursor, kind, lag) == text


MARKED = [
    # the text of the edge, the cursor's text: whether its keys are kept with it
    ("2024-01-15 10:30:00", AT.text, True),
    ("2024-01-15 10:30:00.000001", AT.text, False),
    ("infinity", AT.text, False),
]


@pytest.mark.parametrize(("text", "cursor", "is_marked"), MARKED)
def test_keys_belong_to_the_edge(text, cursor, is_marked):
    marked = Edge(text, MICROS, ('["1"]',)).mark(Cursor(AT.type, cursor))
    assert marked.edge == (('["1"]',) if is_marked else ())


JULY, NOON = "2026-07-01", "2026-07-01T12:00+02:00"
RANGES = [
    # the column, the range as it is typed and its type, the server's condition or why Spark compares
    (
        ("at", JULY, NOON, "timestamp[us, tz=UTC]"),
        "\"at\" >= CAST('2026-07-01 00:00:00.000000+00' AS timestamptz) AND "
        "\"at\" < CAST('2026-07-01 10:00:00.000000+00' AS timestamptz)",
    ),
    (
        ("at", JULY, "2026-07-02", "date32[day]"),
        "\"at\" >= CAST('2026-07-01 00:00:00.000000+00' AS timestamptz) AND "
        "\"at\" < CAST('2026-07-02 00:00:00.000000+00' AS timestamptz)",
    ),
    (("d", JULY, NOON, "timestamp[us, tz=UTC]"), "the range has times within a day, and the column dates"),
    (
        ("d", JULY, "2026-07-02", "date32[day]"),
        "\"d\" >= CAST('2026-07-01' AS date) AND \"d\" < CAST('2026-07-02' AS date)",
    ),
    (("id", "5", "7", "int64"), "\"id\" >= CAST('5' AS int8) AND \"id\" < CAST('7' AS int8)"),
    (("id", "a", "b", "string"), "the range is of type string, and the column int64"),
    (("t", "5", "7", "int64"), "the range is of type int64, and the column string"),
    (
        ("t", "a", "b'", "string"),
        '("t"::text) COLLATE "C" >= \'a\' AND ("t"::text) COLLATE "C" < \'b\'\'\'',
    ),
    (("f", "1.5", "2", "double"), "\"f\" >= CAST('1.5' AS float8) AND \"f\" < CAST('2.0' AS float8)"),
    (("id", "1.5", "2", "decimal128(2, 1)"), "expected a value of type int64, got '1.5'"),
]


@pytest.mark.parametrize(("given", "said"), RANGES)
def test_rows_of_a_range(given, said):
    column, first, end, kind = given
    bounds = [Bound(text=text, moment=parse_moment(text)) for text in (first, end)]
    between = Between(column=column, kind=kind, first=bounds[0], end=bounds[1], sql="")
    found = plan(column).fix_range(between)
    assert (found.condition if isinstance(found, Bounds) else found) == said
