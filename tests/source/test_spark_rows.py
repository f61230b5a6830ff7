import os
import signal

import pyarrow as pa
import pytest

from lakewriter.errors import (
    SchemaIncompatibleError,
    SourceFailedError,
    SpecInvalidError,
    ValueUnrepresentableError,
    WorkerDiedError,
)
from lakewriter.naming import DELETED
from lakewriter.source.feed import open_feed
from lakewriter.source.request import RowsRequest
from lakewriter.spec.access import SecretText
from lakewriter.spec.table_spec import ColumnType, IndexKind
from tests.source.tables import partitions, rows, table

pytestmark = pytest.mark.spark

DERBY = "jdbc:derby:memory:rows;create=true"


def opened(spark, **fields):
    condition, prefer = fields.pop("condition", None), fields.pop("prefer", "auto")
    return open_feed(RowsRequest(lambda: spark, table(**fields), condition=condition), prefer=prefer)


def query(spark, sql, **fields):
    return opened(spark, sql=sql, **fields)


@pytest.fixture(scope="module")
def data(spark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    (folder / "a.csv").write_text("id,name\n1,x\n2,\n", "utf-8")
    (folder / "a.json").write_text('{"id":1,"name":"x"}\n{"id":2}\n', "utf-8")
    frame = spark.createDataFrame([(1, "x"), (2, None)], "id bigint, name string").coalesce(1)
    frame.write.parquet(str(folder / "parquet"))
    frame.write.orc(str(folder / "orc"))
    frame.write.format("jdbc").options(url=DERBY, dbtable="t").save()
    return folder


FORMATS = [
    # format, path, options, expected rows: CSV without a schema is text
    ("csv", "a.csv", {"header": "true"}, [["1", "x"], ["2", None]]),
    ("csv", "a.csv", {"header": "true", "inferSchema": "true"}, [[1, "x"], [2, None]]),
    ("json", "a.json", {}, [[1, "x"], [2, None]]),
    ("parquet", "parquet", {}, [[1, "x"], [2, None]]),
    ("parquet", "parquet", {"mergeSchema": "true"}, [[1, "x"], [2, None]]),
    ("orc", "orc", {}, [[1, "x"], [2, None]]),
    ("jdbc", None, {"url": DERBY, "dbtable": "t"}, [[1, "x"], [2, None]]),
    ("jdbc", None, {"url": SecretText("${env:DERBY_URL}"), "dbtable": "t"}, [[1, "x"], [2, None]]),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("form", "path", "options", "expected"), FORMATS)
def test_formats(spark, data, monkeypatch, form, path, options, expected):
    monkeypatch.setenv("DERBY_URL", DERBY)
    feed = opened(spark, format=form, path=path and str(data / path), options=options)
    assert (feed.schema.names[0].lower(), sorted(rows(feed))) == ("id", expected)


SHAPED = [
    # query, declared types, deleted, condition, expected fields, expected rows
    ("select 1 id, 2 id, 3 ID", {}, None, None, [("id", "int32"), ("id", "int32"), ("ID", "int32")], [[1, 2, 3]]),
    ("select '7' n, 1 `a.b`", {"n": "bigint"}, None, None, [("n", "int64"), ("a.b", "int32")], [[7, 1]]),
    ("select '7' n", {"N": "decimal(4,1)"}, None, None, [("n", "decimal128(4, 1)")], [["7.0"]]),
    ("select 'abcd' n", {"n": "varchar(2)"}, None, None, [("n", "string")], [["abcd"]]),
    (
        "values ('D'), ('U'), (null) as t(op)",
        {},
        "op = 'D'",
        None,
        [("op", "string"), (DELETED, "bool")],
        [["D", True], ["U", False], [None, False]],
    ),
    ("select * from values (1), (2), (null) as t(c)", {}, None, "c > 1", [("c", "int32")], [[2]]),
    ("select * from values ('9'), ('10') as t(c)", {"c": "int"}, None, "`c` > 9", [("c", "int32")], [[10]]),
    # Spark's variables are not SQL's: https://spark.apache.org/docs/latest/configuration.html, variable.substitute.
    (
        "select '${x}' t, '${env:HOME} ${system:user.name}' h",
        {},
        "t = '${x}'",
        "h LIKE '${env:HOME} %'",
        [("t", "string"), ("h", "string"), (DELETED, "bool")],
        [["${x}", "${env:HOME} ${system:user.name}", True]],
    ),
    ("select interval '1' day i", {}, None, None, [("i", "string")], [["\"INTERVAL '1' DAY\""]]),
    ("select interval '3' year i", {}, None, None, [("i", "string")], [["\"INTERVAL '3' YEAR\""]]),
    ("select make_interval(1, 2) i", {}, None, None, [("i", "string")], [['"1 years 2 months"']]),
    ("select cast(null as interval day) i", {}, None, None, [("i", "string")], [[None]]),
    ("select parse_json('{\"a\": [1]}') v", {}, None, None, [("v", "string")], [['{"a":[1]}']]),
    (
        "select named_struct('v', parse_json('3'), 'n', cast(null as int)) s",
        {},
        None,
        None,
        [("s", "string")],
        [['{"v":3,"n":null}']],
    ),
    ("select null v, 1 n", {}, None, None, [("v", "null"), ("n", "int32")], [[None, 1]]),
    (
        "select timestamp'2020-01-02 03:04:05' a, timestamp_ntz'2020-01-02 03:04:05' b",
        {},
        None,
        None,
        [("a", "timestamp[us, tz=UTC]"), ("b", "timestamp[us]")],
        [["2020-01-02 03:04:05+00:00", "2020-01-02 03:04:05"]],
    ),
    (
        "select array(struct(1 a)) l, map('k', 1Y) m",
        {},
        None,
        None,
        [("l", "list<element: struct<a: int32>>"), ("m", "map<string, int8>")],
        [[[{"a": 1}], [["k", 1]]]],
    ),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("sql", "columns", "deleted", "condition", "fields", "expected"), SHAPED)
def test_shape(spark, sql, columns, deleted, condition, fields, expected):
    feed = query(spark, sql, columns=columns, deleted=deleted, condition=condition)
    assert [(field.name, str(field.type)) for field in feed.schema] == fields
    assert rows(feed) == expected


REFUSED = [
    # query, declared types, deleted, error, what its text has
    ("select 1 amount", {"amuont": "int"}, None, SpecInvalidError, "The nearest is 'amount'"),
    ("select 1 a", {}, "b = 1", SpecInvalidError, "[UNRESOLVED_COLUMN.WITH_SUGGESTION]"),
    ("select 1 a", {}, "a +", SpecInvalidError, "[PARSE_SYNTAX_ERROR]"),
    ("select 1 a", {}, "a + 1", SpecInvalidError, "'a + 1'"),
    ("selec 1", {}, None, SourceFailedError, "table 's.t' cannot be read from SQL over no view: [PARSE_SYNTAX_ERROR]"),
    ("select * from nowhere", {}, None, SourceFailedError, "[TABLE_OR_VIEW_NOT_FOUND]"),
    ("select time'10:00:00' t", {}, None, SchemaIncompatibleError, "column 't' has the type time(6)"),
    ("select struct(time'10:00:00' t) s", {}, None, SchemaIncompatibleError, "columns: {s: string}"),
    ("select named_struct('a', 1, 'a', 2) s", {}, None, SchemaIncompatibleError, "two fields of one name"),
]


@pytest.mark.parametrize(("sql", "columns", "deleted", "kind", "text"), REFUSED)
def test_refused(spark, sql, columns, deleted, kind, text):
    with pytest.raises(kind) as caught:
        query(spark, sql, columns=columns, deleted=deleted)
    assert text in str(caught.value)


def test_value_that_does_not_cast(spark, tmp_path):
    (tmp_path / "a.csv").write_text("1\nx\n", "utf-8")
    said = (
        f"VALUE_UNREPRESENTABLE: table 's.t': '{tmp_path}/a.csv', line 2, offset 2, column '_c0': it does not convert "
        "to int: it is not a whole number of digits 0 to 9: 'x'."
    )
    read = {"format": "csv", "path": str(tmp_path / "a.csv"), "columns": {"_c0": "int"}}
    for more in ({}, {"deleted": "_c0 = 1"}):
        with pytest.raises(ValueUnrepresentableError) as error:
            rows(opened(spark, **read, **more))
        assert str(error.value).startswith(said)


def test_conditions_see_the_declared_types(spark, tmp_path):
    """As text 9 is above 10, and no text is a time."""
    (tmp_path / "a.csv").write_text("9,1704448800000\n10,1704448800001\n11,\n", "utf-8")
    types = {"_c0": "int", "_c1": ColumnType(type="timestamp", unit="epoch_ms")}
    read = {"format": "csv", "path": str(tmp_path / "a.csv"), "columns": types}
    feed = opened(spark, **read, cursor="_c0", condition="_c0 > 9", deleted="_c1 > timestamp'2024-01-05 10:00:00'")
    assert feed.schema.types == [pa.int32(), pa.timestamp("us", "UTC"), pa.bool_()]
    assert rows(feed) == [[10, "2024-01-05 10:00:00.001000+00:00", True], [11, None, False]]


TYPED = [
    # a query, its columns, the rows, or what is said of the one that does not convert
    ("select 1 a, cast(1.5 as float) b, 1.20bd c", {"a": "bigint", "b": "double", "c": "decimal(10,4)"},
     [[1, 1.5, "1.2000"]]),
    ("select 300L a", {"a": "tinyint"}, "'300' in column 'a' does not convert to tinyint: it is outside the range"),
    ("select 1.239bd a", {"a": "decimal(10,2)"},
     "'1.239' in column 'a' does not convert to decimal(10,2): it has 3 dec"),
    ("select timestamp'2024-01-05 10:00:00' a", {"a": "date"}, "'2024-01-05 10:00:00' in column 'a' does not convert"),
    ("select date'2024-01-05' a, timestamp'2024-01-05 00:00:00' b", {"a": "timestamp", "b": "date"},
     [["2024-01-05 00:00:00+00:00", "2024-01-05"]]),
    ("select interval '1' day a, 1.0e10d b, named_struct('x', 1) c, null d, X'61' e",
     {"a": "string", "b": "string", "c": "string", "d": "date", "e": "string"},
     [["INTERVAL '1' DAY", "1.0E10", "{1}", None, "a"]]),
    ("select array(1, 2) a, named_struct('x', 5L) b, map('k', 1.50bd) c",
     {"a": "array<bigint>", "b": "struct<x:int>", "c": "map<string,decimal(3,1)>"},
     [[[1, 2], {"x": 5}, [["k", "1.5"]]]]),
    ("select array(1, 3000000000) a", {"a": "array<int>"},
     "'[1, 3000000000]' in column 'a' does not convert to array<int>"),
    ("select '[1, 2]' a", {"a": "array<int>"}, [[[1, 2]]]),
    ("select 1 id, '7' id", {"id": "int"}, [[1, 7]]),
]  # fmt: skip


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("sql", "columns", "expected"), TYPED)
@pytest.mark.parametrize("more", [{}, {"deleted": "false"}], ids=["in the tasks", "in Spark's plan"])
def test_typed_columns_are_cast_where_nothing_is_lost(spark, sql, columns, expected, more):
    feed = query(spark, sql, columns=columns, **more)
    if isinstance(expected, str):
        with pytest.raises(ValueUnrepresentableError) as error:
            rows(feed)
        assert expected in str(error.value)
    else:
        assert [row[: len(expected[0])] for row in rows(feed)] == expected


def test_numbers_are_no_timestamps_without_a_unit(spark):
    with pytest.raises(SpecInvalidError) as error:
        query(spark, "select 1704448800000 a", columns={"a": "timestamp"})
    assert str(error.value) == (
        "SPEC_INVALID: tables.s.t.columns declares 'a' as timestamp, and the source has bigint, which does not convert "
        "to it. Convert it in an sql: read, or declare another type; or name the unit: columns: {a: {type: timestamp, "
        "from: epoch_ms}}."
    )


def test_lag_of_a_text_cursor_is_refused_before_a_row_is_read(spark):
    read = "select string(raise_error('it was read')) at from range(0, 9, 1, 3)"
    with pytest.raises(SpecInvalidError, match="cursor_lag is '1 hour', which goes with a date or a timestamp"):
        query(spark, read, cursor="at", cursor_lag="1 hour", condition="`at` > '2024'")


UNREADABLE = [
    # format, path, options, what the message has
    ("csv", "/no/such/file", {}, "table 's.t': there is no '/no/such/file'"),
    ("xml", "/no/such/file", {"rowTag": "r"}, "xml '/no/such/file': [PATH_NOT_FOUND]"),
    ("parquet", "/no/such/file", {}, "table 's.t': there is no '/no/such/file'"),
    ("nosuch", "/", {}, "[DATA_SOURCE_NOT_FOUND]"),
    ("xml", "s3a://bucket/key", {"rowTag": "r"}, "org.apache.hadoop:hadoop-aws:3.4.2"),
    ("xml", "s3://bucket/key", {"rowTag": "r"}, "org.apache.hadoop:hadoop-aws:3.4.2"),
    ("jdbc", None, {"url": "jdbc:postgresql://h/d", "dbtable": "t"}, "org.postgresql:postgresql:"),
    ("jdbc", None, {"url": "jdbc:oracle:thin:@h", "dbtable": "t"}, "com.oracle.database.jdbc:ojdbc11"),
]


@pytest.mark.parametrize(("form", "path", "options", "text"), UNREADABLE)
def test_unreadable(spark, form, path, options, text):
    with pytest.raises(SourceFailedError) as caught:
        opened(spark, format=form, path=path, options=options)
    assert text in str(caught.value)


def test_message_keeps_a_secret(spark, monkeypatch):
    monkeypatch.setenv("HIDDEN", "jdbc:h2://user:pa55word@h")
    with pytest.raises(SourceFailedError) as caught:
        opened(spark, format="jdbc", options={"url": SecretText("${env:HIDDEN}"), "dbtable": "t"})
    assert "pa55word" not in str(caught.value)


def test_truncated_orc_names_the_file(spark, tmp_path):
    (tmp_path / "bad.orc").write_bytes(b"ORC not really")
    with pytest.raises(SourceFailedError, match=r"bad\.orc"):
        opened(spark, format="orc", path=str(tmp_path / "bad.orc"))


def test_sql_over_views_of_two_tables_with_one_name(spark, data):
    views = {"v": {"format": "orc", "path": str(data / "orc")}}
    first = query(spark, "select id from v where id = 1", views=views)
    other = query(spark, "select a.id, b.id from v a join v b on a.id = b.id where a.id = 2", views=views)
    assert (rows(first), rows(other)) == ([[1]], [[2, 2]])


@pytest.fixture
def count_held(spark):
    """How many frames Spark holds that it did not hold before the test: other files' tests share the session."""

    def held():
        return set(spark.sparkContext._jsc.getPersistentRDDs().keySet())

    before = held()
    return lambda: len(held() - before)


COUNTED = [
    # query, index, counts
    ("select id from range(0, 10, 1, 4)", IndexKind.CONTIGUOUS, (2, 3, 2, 3)),
    ("select id from range(0, 10, 1, 4) where id < 2", IndexKind.CONTIGUOUS, (2, 0, 0, 0)),
    ("select id from range(0, 10, 1, 1)", IndexKind.CONTIGUOUS, None),
    ("select id from range(0, 10, 1, 4)", IndexKind.SPARSE, None),
]


@pytest.mark.parametrize(("sql", "index", "counts"), COUNTED)
def test_counts(spark, count_held, sql, index, counts):
    feed = query(spark, sql, index=index)
    kept = count_held()
    found = {number: len(part) for number, part in partitions(feed).items()}
    assert (feed.counts, kept) == (counts, 1 if counts else 0)
    assert counts is None or found == {number: rows for number, rows in enumerate(counts) if rows}


def test_counts_of_a_bare_scan_need_no_disk(spark, count_held, tmp_path):
    spark.range(0, 10, 1, 3).write.orc(str(tmp_path / "orc"))
    feed = opened(spark, format="orc", path=str(tmp_path / "orc"), deleted="id = 3")
    assert count_held() == 0
    assert {number: len(part) for number, part in partitions(feed).items()} == dict(enumerate(feed.counts))


def test_counts_of_random_rows_are_those_of_the_load(spark):
    feed = query(spark, "select id from range(0, 1000, 1, 4) where rand() < 0.5")
    counts = feed.counts
    assert [len(part) for _, part in sorted(partitions(feed).items())] == list(counts)


def test_two_feeds_of_one_plan_close_apart(spark, count_held):
    sql = "select id from range(0, 1000, 1, 4) where rand() < 0.5"
    first, second = query(spark, sql), query(spark, sql)
    first.close()
    assert count_held() == 1
    second.close()


def test_shuffled_rows_have_no_more_partitions_than_said(spark):
    feed = query(spark, "select id % 7 k, count(*) n from range(0, 1000, 1, 4) group by 1", index=IndexKind.SPARSE)
    assert max(partitions(feed)) < feed.partitions


def failing(partition, batches):
    yield from ()
    raise ValueUnrepresentableError("column 'c', row 7: 300 is too large.")


def breaking(partition, batches):
    yield str(next(iter(batches)).column(99))


def dying(partition, batches):
    yield from ()
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (failing, ValueUnrepresentableError, "VALUE_UNREPRESENTABLE: column 'c', row 7: 300 is too large."),
        (breaking, SourceFailedError, "IndexError"),
        (dying, WorkerDiedError, "WORKER_DIED: table 's.t': an executor or its Python worker died ("),
    ],
)
@pytest.mark.parametrize("form", ["orc", "parquet"])
def test_failure_in_a_task(spark, data, form, body, kind, text):
    with pytest.raises(kind) as caught:
        opened(spark, format=form, path=str(data / form)).run(body)
    assert text in str(caught.value)


def test_schema_is_nullable_throughout(spark):
    feed = query(spark, "select array(struct(1 a)) l")
    assert feed.schema.field("l").type == pa.list_(pa.field("element", pa.struct([pa.field("a", pa.int32())])))
