"""Each documented kind of source, loaded whole: CSV, JSON, Parquet, ORC, JDBC, and SQL over them."""

import pytest

from tests.load.lakes import Lake

pytestmark = pytest.mark.spark

SCHEMA = "supaflow_nyc_public"
DERBY = "jdbc:derby:memory:sources;create=true"


@pytest.fixture
def people(lake: Lake, spark):
    """Two rows in every format."""
    frame = spark.createDataFrame([(1, "Ann"), (2, "Ben")], "id int, name string").coalesce(1)
    for kind in ("json", "parquet", "orc"):
        frame.write.format(kind).save(str(lake.folder / kind))
    frame.write.format("csv").option("header", "true").save(str(lake.folder / "csv"))
    frame.write.format("jdbc").mode("overwrite").options(url=DERBY, dbtable="people").save()
    return lake


READS = [
    ({"format": "csv", "path": "csv", "options": {"header": "true"}, "columns": "id INT, name STRING"}, "splits"),
    ({"format": "json", "path": "json", "columns": "id INT, name STRING"}, "splits"),
    ({"format": "parquet", "path": "parquet"}, "splits"),
    ({"format": "orc", "path": "orc"}, "splits"),
    ({"format": "jdbc", "options": {"url": DERBY, "dbtable": "people"}}, "rows"),
    ({"sql": "SELECT a.* FROM a JOIN b USING (id)", "views": {"a": {"format": "orc", "path": "orc"}, "b": {
        "format": "parquet", "path": "parquet"}}}, "rows"),
]  # fmt: skip


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("read", "feed"), READS, ids=["csv", "json", "parquet", "orc", "jdbc", "sql"])
def test_source(people, read, feed):
    people.write({"table": "people", "schema": "public", "read": read, "primary_key": ["id"]})
    (result,) = people.load("a").tables
    assert (result.code, result.rows, result.feed) == (None, 2, feed)
    assert sorted(people.rows("SELECT * EXCLUDE filename FROM t", f"{SCHEMA}/people"))[0][:2] == (1, "Ann")


TYPES = """
SELECT 1Y AS b, 2S AS s, 3 AS i, 4L AS l, 1.5F AS f, 2.5D AS d, 1.50BD AS n, 'x' AS t, X'AB' AS y, true AS o,
    DATE '2024-01-15' AS dt, TIMESTAMP '2024-01-15 10:30:00Z' AS ts, TIMESTAMP_NTZ '2024-01-15 10:30:00' AS ntz,
    array(1, 2) AS a, map('k', 1) AS m, named_struct('first name', 1, 'first-name', 2) AS st,
    INTERVAL '1' DAY AS iv, NULL AS v FROM x
"""
GLUE = [
    *("tinyint", "smallint", "int", "bigint", "float", "double", "decimal(3,2)", "string", "binary", "boolean"),
    *("date", "timestamp", "timestamp", "array<int>", "map<string,int>"),
    *("struct<first_name:int,first_name_1:int>", "string"),
]


def test_types(lake):
    views = {"x": {"format": "csv", "path": lake.csv("x.csv", "1\n")}}
    lake.write({"table": "types", "schema": "public", "read": {"sql": TYPES, "views": views}})
    (result,) = lake.load("a").tables
    assert result.code is None
    found = lake.aws.client("glue").get_table(DatabaseName=SCHEMA, Name="types")["Table"]["StorageDescriptor"]
    assert [column["Type"] for column in found["Columns"]][:-5] == GLUE
    (row,) = lake.rows("SELECT st.first_name_1, ts::VARCHAR, ntz::VARCHAR, n::VARCHAR FROM t", f"{SCHEMA}/types")
    assert row == (2, "2024-01-15 10:30:00+00", "2024-01-15 10:30:00", "1.50")


def test_sql_is_run_as_it_is_written(lake):
    """Spark replaces variables in statements unless told otherwise: ``'${b}'`` would be ``''``, below every cursor."""
    read = {"sql": "SELECT id, at, '${x}' AS x FROM v", "views": {"v": {
        "format": "csv", "path": "v.csv", "options": {"header": "true"}, "columns": "id INT, at STRING"}}}  # fmt: skip
    expect = [{"sql": "x = '${x}'", "name": "written"}]
    lake.write(
        {"table": "t", "schema": "public", "read": read, "cursor": "at", "deleted": "x <> '${x}'", "expect": expect}
    )
    lake.csv("v.csv", "id,at\n1,${a}\n2,${b}\n")
    assert [(table.code, table.rows) for table in lake.load("a").tables] == [(None, 2)]
    lake.csv("v.csv", "id,at\n1,${a}\n2,${b}\n3,${c}\n")
    assert [(table.code, table.rows) for table in lake.load("b").tables] == [(None, 1)]
    assert lake.rows("SELECT id, x, _supa_deleted FROM t ORDER BY id", f"{SCHEMA}/t") == [
        (1, "${x}", False),
        (2, "${x}", False),
        (3, "${x}", False),
    ]


def test_blank_lines_are_told(lake):
    read = {"format": "csv", "path": lake.csv("x.csv", "id,name\n1,a\n\n2,b\n   \n"), "options": {"header": "true"}}
    lake.write({"table": "x", "schema": "nyc", "read": read})
    [result] = lake.load("a").tables
    assert (result.rows, result.notes[-1:]) == (2, ("2 blank lines of its files skipped",))


DECLARED = "id bigint, Nmae string, other bigint"
ABSENT = [
    # the documents of each file, the note
    ((['{"id":1,"name":"x"}', '{"id":2}'],),
     "read.columns has 'Nmae', 'other', without a value in any of 2 documents: correct the spelling there, or take out "
     "what the documents do not have"),
    ((['{"id":1,"name":"x","other":3}'], ['{"id":2,"name":"x"}']),
     "read.columns has 'Nmae', without a value in any of 2 documents: correct the spelling there, or take out what the "
     "documents do not have"),
    ((['{"id":1,"inner":{"Nmae":"x"},"other":null}'], [], ["{}"]),
     "read.columns has 'Nmae', without a value in any of 2 documents: correct the spelling there, or take out what the "
     "documents do not have"),
    ((['{"id":1,"Nmae":"x"}'], ['{"id":1,"other":null}']), None),
    # A bad row has its keys too.
    ((['{"id":1}', '{"id":2,"Nmae":"x","other":"x"}'],), None),
    ((['{"id":1,"id":2}'],), None),
    (([],), None),
]  # fmt: skip


def test_declared_columns_that_no_document_has_are_told(lake):
    tables = []
    for index, (files, _) in enumerate(ABSENT):
        folder = lake.folder / f"docs{index}"
        folder.mkdir()
        for number, lines in enumerate(files):
            (folder / f"{number}.json").write_text("".join(f"{line}\n" for line in lines), "utf-8")
        read = {"format": "json", "path": folder.name, "columns": DECLARED}
        aside = {"on_bad_row": {"action": "quarantine", "at_most": 1}}
        tables.append({"table": folder.name, "schema": "nyc", "read": read} | aside)
    lake.write(*tables)
    told = [(table.code, [note for note in table.notes if "a value" in note]) for table in lake.load("a").tables]
    assert told == [(None, [] if note is None else [note]) for _, note in ABSENT]


MALFORMED = """<?xml version="1.0"?>
<catalog>
   <book id="Malformed attribute with " caracter "><title>Paradox Lost</title></book>
</catalog>
"""
REPORTED_XML = [
    # where it is reported, the text, the element that is a row, the rows; None if that is refused
    ("databricks/spark-xml#428", '<x><ylist><y Id="1" Type="Person">SomeValue</y></ylist></x>', "y",
     [{"_Id": 1, "_Type": "Person", "_VALUE": "SomeValue"}]),
    ("databricks/spark-xml#532", "<x>" + "<y><a>1</a></y>" * 10 + "</x>", "y>", None),
    ("databricks/spark-xml#436", MALFORMED, "book", None),
    ("databricks/spark-xml#373",
     '<p><q ID="1"><q ID="1.1"><c>C1</c></q><c>C2</c></q><q ID="2"><q ID="2.1"><c>C3</c></q><c>C4</c></q></p>', "q",
     [{"_ID": 1, "c": "C2"}, {"_ID": 2, "c": "C4"}]),
]  # fmt: skip


def test_xml_that_other_tools_are_reported_to_read_wrongly(lake):
    tables = []
    for index, (_, text, row, _) in enumerate(REPORTED_XML):
        (lake.folder / f"{index}.xml").write_text(text, "utf-8")
        read = {"format": "xml", "path": f"{index}.xml", "options": {"rowTag": row}}
        tables.append({"table": f"x{index}", "schema": "nyc", "read": read})
    lake.write(*tables)
    for (where, _, _, rows), result in zip(REPORTED_XML, lake.load("a").tables, strict=True):
        if rows is None:
            assert result.code == "SOURCE_FAILED", where
            continue
        columns = ", ".join(sorted(rows[0]))
        assert lake.rows(f"SELECT {columns} FROM t ORDER BY 1", f"supaflow_nyc_nyc/{result.table}") == [
            tuple(row[name] for name in sorted(row)) for row in rows
        ], where
