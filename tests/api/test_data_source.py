"""``df.write.format("lakewriter")`` writes once under a job id, whatever its tasks do."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lakewriter
from lakewriter.errors import LakeError
from pyspark_lakewriter import DefaultSource
from tests.lineage.conftest import read_events
from tests.lineage.events import shorten
from tests.load.lakes import completes, uploads_part
from tests.support.call import Call

GIVEN = {"table": "flights", "schema": "public", "primary_key": ["id"], "index": "sparse"}
PATH = "supaflow_nyc_public/flights"


@pytest.fixture(autouse=True)
def register_source(spark):
    lakewriter.register(spark)


def save(lake, df, job_id="j1", mode="append", **options):
    given = {"lake": str(lake.file), "table": "flights", "job_id": job_id} | options
    writer = df.write.format("lakewriter").mode(mode)
    writer.options(**{key: value for key, value in given.items() if value is not None}).save()


def test_a_dataframe_is_saved_once_under_its_job_id(lake, spark):
    lake.write(GIVEN)
    rows = spark.range(0, 10, 1, 3)
    save(lake, rows)
    save(lake, rows)
    assert lake.rows("SELECT count(*), count(DISTINCT id), min(id), max(id) FROM t", PATH) == [(10, 10, 0, 9)]
    # The second save finds the load done, and begins no attempt.
    begun = [key for key in lake.aws.objects("acme-lake") if key.endswith("/begin.json")]
    assert len(begun) == 1
    # Each partition numbers its rows from 2**33 times its number.
    assert lake.rows("SELECT _supa_index FROM t WHERE id IN (0, 1, 3, 6) ORDER BY id", PATH) == [
        (1,), (2,), (1 + (1 << 33),), (1 + (2 << 33),),
    ]  # fmt: skip
    assert lakewriter.verify(lake.file, "j1", rows=True).differences == ()


def test_a_dataframe_is_saved_while_another_session_is_active(lake, spark):
    lake.write(GIVEN)
    classes = spark._jvm.org.apache.spark.sql.classic.SparkSession
    other = spark.newSession()
    classes.setActiveSession(other._jsparkSession)
    try:
        lakewriter.register(spark)
        save(lake, spark.range(3))
    finally:
        classes.setActiveSession(spark._jsparkSession)
    assert lake.rows("SELECT id FROM t ORDER BY id", PATH) == [(0,), (1,), (2,)]


def test_the_format_may_be_registered_again(lake, spark):
    """A session that Spark copies, as it does for a stream, takes a registered format for one that nobody replaces."""
    lake.write(GIVEN)
    copy = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    lakewriter.register(copy)
    lakewriter.register(copy)
    save(lake, spark.range(3))
    # The thread's active session has the format.
    save(lake, lakewriter.open_spark().range(3), "j2")
    save(lake, lakewriter.open_spark().range(3), "j3")
    assert lake.rows("SELECT count(*) FROM t", PATH) == [(9,)]


def test_spark_would_find_the_format_by_itself():
    """``lookup_data_sources`` of PySpark takes ``DefaultSource`` of packages whose names begin with ``pyspark_``."""
    assert DefaultSource.name() == "lakewriter"


def test_values_are_those_of_the_function(lake, spark):
    values = spark.sql(
        "SELECT 1 AS id, timestamp'2024-01-01 09:00:00' AS noted, map('a', 1) AS m, CAST(1.5 AS DECIMAL(5, 2)) AS d,"
        " array(named_struct('x', 2)) AS n, X'00FF' AS b, CAST(NULL AS STRING) AS name, 2 AS X, 3 AS x"
    )
    lake.write(GIVEN, GIVEN | {"table": "twin"})
    save(lake, values)
    lakewriter.write(values, lake=lake.file, table="twin", job_id="j1")
    columns = "SELECT noted, m, d, n, b, name, x, x_1, _supa_id, _supa_index FROM t"
    assert lake.rows(columns, PATH) == lake.rows(columns, "supaflow_nyc_public/twin")
    assert lake.rows("SELECT x, x_1, epoch(noted) FROM t", PATH) == [(2, 3, 1704099600.0)]


def test_a_task_that_dies_leaves_nothing(lake, spark):
    lake.write(GIVEN)
    dies = spark.range(0, 40, 1, 2).selectExpr("id", "IF(id = 39, raise_error('broken'), id) AS v")
    with pytest.raises(PySparkException, match="broken"):
        save(lake, dies)
    assert lake.data() == {}
    assert lake.aws.uploads("acme-lake") == []
    # The table is free, and the job id may be used again.
    save(lake, spark.range(0, 10, 1, 2))
    assert lake.rows("SELECT count(*) FROM t", PATH) == [(10,)]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("after", [0, 1])
def test_a_commit_that_is_cut_off_after_binding_is_finished_by_the_same_job_id(lake, spark, after):
    """Of two uploads ``after`` are completed."""
    lake.write(GIVEN)
    seen: list[Call] = []

    def refuse(call, proceed):
        if len(seen) <= after and completes(call):
            seen.append(call)
        return proceed(call) if len(seen) <= after else call.denied()

    lake.aws.interceptors.append(refuse)
    rows = spark.range(0, 10, 1, 2)
    with pytest.raises(PySparkException, match="S3_ACCESS_DENIED: s3:"):
        save(lake, rows)
    lake.aws.interceptors.remove(refuse)
    calls: list[Call] = []

    def note(call, proceed):
        calls.append(call)
        return proceed(call)

    lake.aws.interceptors.append(note)
    save(lake, rows)
    assert not any(map(uploads_part, calls))
    assert lake.rows("SELECT count(*), count(DISTINCT id) FROM t", PATH) == [(10, 10)]


def test_an_empty_dataframe_is_a_load_without_files(lake, spark):
    lake.write(GIVEN)
    save(lake, spark.range(0))
    assert lake.data() == {}
    assert lakewriter.verify(lake.file, "j1").differences == ()


REFUSED = [
    # the table's keys, the DataFrame, how it is saved, and what Spark's error ends with
    ({}, "SELECT 1 AS id", {"mode": "overwrite"},
     "SPEC_INVALID: mode('overwrite') is not for a table of a lake.yaml: its own mode there says what is replaced. Use "
     "mode('append')."),
    ({}, "SELECT 1 AS id", {"table": None}, "SPEC_INVALID: option 'table' is missing. Add .option('table', ...)."),
    ({}, "SELECT 1 AS id", {"path": "s3://b/k"},
     "SPEC_INVALID: option 'path' is not known. Expected lake, table, job_id, stage, sync_id, local."),
    ({}, "SELECT 1 AS id", {"sync_id": "1.5"}, "SPEC_INVALID: option 'sync_id': '1.5': expected a whole number."),
    ({}, "SELECT 1 AS id", {"table": "nope"},
     "SPEC_INVALID: table 'nope' names no table of the file. Expected one of 'public.flights'."),
    ({}, "SELECT 1 AS id, interval '1' day AS took", {},
     "SCHEMA_INCOMPATIBLE: column 'took' has the type interval day, which Spark's writer does not hand on as JSON "
     "text. Convert it by to_json, or cast it; or use lakewriter.write(df, ...)."),
    ({}, "SELECT 1 AS other", {},
     "SPEC_INVALID: primary_key of 'supaflow_nyc_public.flights': the source has no column 'id'."),
    ({"index": "contiguous"}, "SELECT 1 AS id", {},
     "SPEC_INVALID: table 'flights': index: contiguous counts the rows before they are written, which "
     'df.write.format("lakewriter") cannot do. Use lakewriter.write(df, ...), or set index: sparse.'),
    ({"cursor": "id"}, "SELECT 1 AS id", {},
     "SPEC_INVALID: table 'flights': cursor leaves out rows by a filter of Spark's, which "
     'df.write.format("lakewriter") cannot do. Use lakewriter.write(df, ...).'),
    ({"columns": {"id": "string"}}, "SELECT 1 AS id", {},
     "SPEC_INVALID: table 'flights': columns casts values by Spark's rules, which "
     'df.write.format("lakewriter") cannot do. Use lakewriter.write(df, ...).'),
    ({"expect": [{"sql": "id > 0", "name": "n"}]}, "SELECT 1 AS id", {},
     "SPEC_INVALID: table 'flights': expect: sql is an expression of Spark's SQL, which "
     'df.write.format("lakewriter") cannot do. Use lakewriter.write(df, ...).'),
    ({"expect": [{"unique": "id"}]}, "SELECT 1 AS id", {},
     "SPEC_INVALID: table 'flights': expect: unique reads the rows a second time, which "
     'df.write.format("lakewriter") cannot do. Use lakewriter.write(df, ...).'),
    # judged when all tasks are done
    ({"expect": [{"range": {"column": "id", "at_least": 2}}]}, "SELECT 1 AS id", {},
     "EXPECTATION_FAILED: table 'supaflow_nyc_public.flights': 1 of 1 expectation not met: range.id found 1 as the "
     "lowest value, expected at least 2."),
]  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("keys", "sql", "how", "message"), REFUSED)
def test_what_cannot_be_written_is_refused_before_a_task_starts(lake, spark, keys, sql, how, message):
    lake.write(GIVEN | keys)
    with pytest.raises(PySparkException) as raised:
        save(lake, spark.sql(sql), **how)
    assert message in str(raised.value)
    assert lake.data() == {}
    assert lake.aws.uploads("acme-lake") == []


def test_a_table_that_cannot_be_loaded_says_so_in_its_outcome(lake, spark):
    lake.write(GIVEN)
    save(lake, spark.range(3))
    with pytest.raises(PySparkException, match="SCHEMA_INCOMPATIBLE"):
        save(lake, spark.sql("SELECT 'a' AS id"), "j2")
    with pytest.raises(LakeError):
        lakewriter.verify(lake.file, "j2")


def test_lineage_is_one_run_in_all_processes(lake, spark):
    lake.write(GIVEN)
    with lake.file.open("a", encoding="utf-8") as file:
        file.write("lineage: {to: events.jsonl}\n")
    save(lake, spark.range(0, 10, 1, 2))
    events = read_events(lake.folder)
    assert [(event["eventType"], event["job"]["name"]) for event in events] == [
        ("START", "flights"),
        ("START", "flights.supaflow_nyc_public.flights"),
        ("COMPLETE", "flights.supaflow_nyc_public.flights"),
        ("COMPLETE", "flights"),
    ]
    runs = [event["run"]["runId"] for event in events]
    assert (runs[0], runs[1]) == (runs[3], runs[2])
    done = shorten(events[2])
    # Nobody knows where a DataFrame comes from.
    assert (done["in"], done["rows"], done["columns"]["id"]) == ([], 10, "bigint")
    assert "from" not in done
    save(lake, spark.range(0, 10, 1, 2))
    assert len(read_events(lake.folder)) == 4


def test_lineage_of_a_write_that_fails(lake, spark):
    lake.write(GIVEN)
    with lake.file.open("a", encoding="utf-8") as file:
        file.write("lineage: {to: events.jsonl}\n")
    with pytest.raises(PySparkException, match="broken"):
        save(lake, spark.range(0, 4, 1, 2).selectExpr("id", "IF(id = 3, raise_error('broken'), id) AS v"))
    ends = [shorten(event) for event in read_events(lake.folder) if event["eventType"] != "START"]
    assert [end["type"] for end in ends] == ["FAIL", "FAIL"]
    assert "SOURCE_FAILED: table 'supaflow_nyc_public.flights': Spark ended the write" in ends[0]["error"]
