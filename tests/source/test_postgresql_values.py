"""The SQL by which PostgreSQL names values that would be changed, and the rows that come of it."""

import re

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    StringType,
    StructField,
    TimestampNTZType,
    TimestampType,
)

from lakewriter.errors import from_text
from lakewriter.source.failures import Origin
from lakewriter.source.postgresql_values import guard_source, is_postgresql, refuse_changed

URLS = [
    ("jdbc:postgresql://h:5432/d", True),
    ("JDBC:PostgreSQL:d", True),
    ("jdbc:mysql://h/postgresql:", False),
    ("jdbc:derby:memory:jdbc:postgresql:", False),
    ("", False),
]


@pytest.mark.parametrize(("url", "expected"), URLS)
def test_database_by_url(url, expected):
    assert is_postgresql(url) is expected


TIME = "(\"c\" IN ('infinity', '-infinity') OR \"c\" >= '1582-10-05' AND \"c\" < '1582-10-15')"
TIME_TEXT = "::text ~ '^(-?infinity$|1582-10-(0[5-9]|1[0-4])(?!.*BC))'"
NAMED = "'VALUE_UNREPRESENTABLE' || ': table ''t'', column ''c'': ' || left(\"c\"::text, 200)"


def ended(decimal):
    reason = f", which Spark would change: it reads the column as {decimal}."
    remedy = " Leave the row out in a query, or cast the column to text there.\n"
    return f"CAST(CAST({NAMED} || '{reason}{remedy}' AS integer) AS text)"


def items(condition):
    return f'EXISTS (SELECT 1 FROM unnest("c") AS items (item) WHERE {condition})'


CASES: list[tuple[DataType, bool, str]] = [
    # Spark's type of column c, whether a user declared it: the case. The database compares its own types without a
    # text of each value; what else may be behind a type is compared as text.
    (TimestampType(), False, f"WHEN {TIME} THEN {NAMED}"),
    (TimestampNTZType(), False, f"WHEN {TIME} THEN {NAMED}"),
    (DateType(), False, f"WHEN {TIME} THEN {NAMED}"),
    (DateType(), True, f'WHEN "c"{TIME_TEXT} THEN {NAMED}'),
    (ArrayType(TimestampType()), False, f"WHEN {items(f'item{TIME_TEXT}')} THEN {NAMED}"),
    (ArrayType(ArrayType(DateType())), False, f"WHEN {items(f'item{TIME_TEXT}')} THEN {NAMED}"),
    (
        DecimalType(10, 2),
        False,
        f'WHEN ("c" <> trunc("c", 2) OR abs("c") >= 1e8) THEN {ended("decimal(10,2)")}',
    ),
    (
        DecimalType(38, 18),
        True,
        f'WHEN ("c"::text::numeric <> trunc("c"::text::numeric, 18) OR abs("c"::text::numeric) >= 1e20) '
        f"THEN {ended('decimal(38,18)')}",
    ),
    (
        # An oid, or a numeric(20, 0).
        DecimalType(20, 0),
        False,
        f'WHEN ("c"::text::numeric <> trunc("c"::text::numeric, 0) OR abs("c"::text::numeric) >= 1e20) '
        f"THEN {ended('decimal(20,0)')}",
    ),
    (
        ArrayType(DecimalType(38, 0)),
        False,
        f"WHEN {items('(item::text::numeric <> trunc(item::text::numeric, 0) OR abs(item::text::numeric) >= 1e38)')} "
        f"THEN {ended('decimal(38,0)')}",
    ),
]


@pytest.mark.parametrize(("kind", "as_declared", "case"), CASES)
def test_case_of_a_type(kind, as_declared, case):
    assert from_text(case) is None
    expected = f'(SELECT *, CASE {case} END AS "__lakewriter_refused" FROM public.t) lakewriter_guarded'
    assert guard_source("public.t", "t", [StructField("c", kind)], as_declared=as_declared) == expected


UNCHANGED: list[DataType] = [
    IntegerType(),
    DoubleType(),
    StringType(),
    ArrayType(IntegerType()),
    ArrayType(StringType()),
]


def test_types_of_which_no_value_changes():
    fields = [StructField(f"c{place}", kind) for place, kind in enumerate(UNCHANGED)]
    assert guard_source("t", "t", fields, as_declared=False) is None
    assert guard_source("t", "t", [], as_declared=True) is None


def test_numbers_come_before_times():
    """The driver fails at NaN in a row whose timestamp is named: the server has to end the read before."""
    fields = [StructField("a", TimestampType()), StructField("n", DecimalType(10, 2)), StructField("z", DateType())]
    sql = guard_source("t", "t", fields, as_declared=False)
    assert sql is not None
    assert re.findall(r"column ''(\w)''", sql) == ["n", "a", "z"]


def test_names_are_quoted():
    sql = guard_source("t", "o'hara", [StructField("a\"b'c", DateType())], as_declared=False)
    assert sql is not None
    assert "|| ': table \"o''hara\", column ''a\"b" in sql
    assert "\"a\"\"b'c\" IN ('infinity', '-infinity')" in sql
    assert 'left("a""b\'c"::text, 200)' in sql


DERBY = {"url": "jdbc:derby:memory:guarded;create=true", "driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"}


def read_rows(spark, refused):
    """The rows of a database that adds the column itself; the second row is good."""
    rows = "(VALUES (1, 'a', CAST({} AS VARCHAR(99))), (2, 'b', CAST(NULL AS VARCHAR(99))))"
    table = f'{rows.format(refused)} AS t ("n", "c", "__lakewriter_refused")'
    return spark.read.format("jdbc").options(**DERBY, dbtable=f"(SELECT * FROM {table}) AS s").load()


USES = [
    # what is made of the rows, of which Spark would need no or other columns
    lambda frame: frame.count(),
    lambda frame: frame.select("n").collect(),
    lambda frame: frame.groupBy("c").count().collect(),
    lambda frame: frame.where("n = 1").select("c").collect(),
    lambda frame: frame.selectExpr("1").collect(),
]


@pytest.mark.spark
@pytest.mark.parametrize("use", USES)
def test_refused_row_ends_each_use(spark, use):
    frame = refuse_changed(read_rows(spark, "'VALUE_UNREPRESENTABLE: table ''t'', column ''c'': infinity'"))
    with pytest.raises(PySparkException) as caught:
        use(frame)
    assert str(Origin("t", "jdbc").make_error(caught.value)) == (
        "VALUE_UNREPRESENTABLE: table 't', column 'c': infinity, which Spark would change: it has no infinity, and "
        "Java's calendar has no days from 1582-10-05 to 1582-10-14. Leave the row out in a query, or cast "
        "the column to text there."
    )


@pytest.mark.spark
def test_rows_of_a_guarded_source(spark):
    rows = read_rows(spark, "NULL")
    frame = refuse_changed(rows)
    assert frame.schema == rows.drop("__lakewriter_refused").schema
    assert [tuple(row) for row in frame.collect()] == [(1, "a"), (2, "b")]
    assert frame.count() == 2


@pytest.mark.spark
def test_predicates_go_to_the_database(spark):
    """A row that the database leaves out is not read, so it is not refused."""
    frame = refuse_changed(read_rows(spark, "'VALUE_UNREPRESENTABLE: first'")).where("n > 1")
    assert [tuple(row) for row in frame.collect()] == [(2, "b")]
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "PushedFilters: [*IsNotNull(n), *GreaterThan(n,1)]" in plan
