"""Databases: drivers by URL, and tables read by several tasks; Derby comes with Spark."""

import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.source.databases.database_connection import open_parts
from lakewriter.source.feed import open_feed
from lakewriter.source.request import RowsRequest
from lakewriter.spec.table_spec import JdbcPartition
from tests.source.tables import partitions, table

DERBY = "jdbc:derby:memory:partitions;create=true"
ROWS = 40


@pytest.fixture(scope="module")
def database(spark):
    """Rows whose columns have nulls, gaps, negative numbers and one value."""
    rows = f"""
        select id, if(id = 7, null, id * 1000 - 20000) gaps, cast(id / 3 as decimal(9, 3)) d, cast(id as double) f,
            date_add(date'1960-01-01', cast(id * 400 as int)) day, string('x') t, 5 same, int(null) nothing,
            timestamp'1890-01-01 12:00:00' + make_dt_interval(cast(id * 900 as int)) at
        from range({ROWS})
    """
    frame = spark.sql(rows).withColumnRenamed("gaps", "a b")
    options = {"url": DERBY, "driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"}
    frame.write.format("jdbc").options(**options, dbtable="numbers").save()
    frame.limit(0).write.format("jdbc").options(**options, dbtable="empty").save()
    return spark


def read(spark, column, count=4, **options):
    source = options or {"dbtable": "numbers"}
    partition = JdbcPartition(column=column, count=count)
    found = table(format="jdbc", options={"url": DERBY, **source}, partition=partition)
    return open_feed(RowsRequest(lambda: spark, found))


PARTITIONED = [
    # column, options, the least number of tasks that have rows
    ("id", {}, 4),
    ("ID", {}, 4),
    ("a b", {}, 4),
    ("d", {}, 4),
    ("f", {}, 4),
    ("day", {}, 4),
    ("at", {}, 4),
    ("same", {}, 1),
    ("nothing", {}, 1),
    ("id", {"query": "SELECT * FROM numbers"}, 4),
    ("id", {"dbtable": "(SELECT * FROM numbers) AS n"}, 4),
]


@pytest.mark.one_in(2)
@pytest.mark.spark
@pytest.mark.one_in(2)
@pytest.mark.parametrize(("column", "options", "tasks"), PARTITIONED)
def test_every_row_is_read_once(database, column, options, tasks):
    feed = read(database, column, **options)
    found = partitions(feed)
    assert sorted(row[0] for rows in found.values() for row in rows) == list(range(ROWS))
    assert len(found) == tasks


@pytest.mark.spark
def test_partitions_of_no_row(database):
    assert partitions(read(database, "id", dbtable="empty")) == {}


REFUSED = [
    ("idd", "read.partition names column 'idd', which the source does not have. The nearest is 'id'."),
    ("t", "read.partition names column 't' of type clob, expected a number, a date or a timestamp."),
]


@pytest.mark.spark
@pytest.mark.parametrize(("column", "text"), REFUSED)
def test_column_that_gives_no_ranges(database, column, text):
    with pytest.raises(SpecInvalidError) as caught:
        read(database, column)
    assert text in str(caught.value)


@pytest.mark.spark
def test_names_of_a_drivers_properties_are_kept(database):
    """MySQL's driver knows no ``sslmode``; https://dev.mysql.com/doc/connector-j/en/connector-j-reference.html."""
    options = {"url": DERBY, "driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver", "dbtable": "numbers"}
    frame = open_parts(database, {**options, "sslMode": "REQUIRED"}, ['"id" < 30', '"id" >= 30'])
    given = frame._jdf.queryExecution().analyzed().relation().jdbcOptions().asConnectionProperties()
    assert (given.getProperty("sslMode"), given.getProperty("sslmode")) == ("REQUIRED", None)
    assert [len(rows) for rows in frame.rdd.glom().collect()] == [30, 10]
