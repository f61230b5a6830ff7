"""Records that do not fit their columns as Spark reads them: an error, unless the options say otherwise."""

import pytest

from lakewriter.errors import SourceFailedError
from lakewriter.source.feed import open_feed
from lakewriter.source.request import RowsRequest
from lakewriter.source.streams import TableStream
from tests.source.tables import partitions, rows, table

pytestmark = pytest.mark.spark

STRUCT = '{"id": 1, "customer": {"name": "x"}}\n{"id": 2, "customer": "oops"}\n'
CUT = '{"id": 1}\n{"id": \n'
REFUSED = [
    # format, the file's text, the columns that are declared, options
    ("json", STRUCT, "id BIGINT, customer STRUCT<name: STRING>", {}),
    ("json", '{"id": "7"}\n', "id BIGINT", {}),
    ("json", CUT, "id BIGINT", {"MODE": "failfast"}),
    ("json", CUT, None, {}),
    ("csv", "1,x\none,y\n", "id BIGINT, name STRING", {}),
    ("csv", "1,x\n2\n", "id BIGINT, name STRING", {}),
    ("xml", "<t><r><id>1</id></r><r><id>x</id></r></t>", "id BIGINT", {"rowTag": "r"}),
]


def read(folder, kind, text, columns, options):
    folder.mkdir(exist_ok=True)
    (folder / f"a.{kind}").write_text(text, "utf-8")
    engine = None if kind == "xml" else "spark"
    source = table(format=kind, path=(str(folder),), engine=engine, options=options)
    return source.model_copy(update={"read": source.read.model_copy(update={"columns": columns})})


def opened(spark, source):
    return open_feed(RowsRequest(lambda: spark, source))


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("kind", "text", "columns", "options"), REFUSED)
def test_a_record_that_does_not_fit_is_an_error(spark, tmp_path, kind, text, columns, options):
    with pytest.raises(SourceFailedError, match="does not fit the columns: correct it"):
        partitions(opened(spark, read(tmp_path, kind, text, columns, options)))


PERMISSIVE = {"mode": "PERMISSIVE"}
KEPT = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "bad"}
LET_IN = [
    # format, the file's text, the columns that are declared, options, the rows
    ("json", CUT, "id BIGINT", PERMISSIVE, [[1], [None]]),
    ("json", CUT, "id BIGINT", {"Mode": "DROPMALFORMED"}, [[1]]),
    ("json", CUT, "id BIGINT, bad STRING", KEPT, [[1, None], [None, '{"id": ']]),
    ("json", CUT, None, PERMISSIVE, [[None, 1], ['{"id": ', None]]),
    ("csv", "1,x\none\n", "id BIGINT, name STRING", PERMISSIVE, [[1, "x"], [None, None]]),
    # A value that is absent or empty is none that does not fit.
    ("csv", "1,\n,x\n", "id BIGINT, name STRING", {}, [[1, None], [None, "x"]]),
    ("json", '{"id": null}\n{}\n{"more": 1}\n', "id BIGINT", {}, [[None], [None], [None]]),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("kind", "text", "columns", "options", "expected"), LET_IN)
def test_what_the_options_let_in(spark, tmp_path, kind, text, columns, options, expected):
    assert rows(opened(spark, read(tmp_path, kind, text, columns, options))) == expected


def test_a_stream_does_the_same(spark, tmp_path):
    table = read(tmp_path / "in", "json", STRUCT, "id BIGINT, customer STRUCT<name: STRING>", {})
    stream = TableStream(spark, table, str(tmp_path / "checkpoint"))
    failed = []

    def each(frame, number):
        plan = stream.read_plan(number)
        with pytest.raises(SourceFailedError, match="does not fit the columns: correct it") as found:
            partitions(stream.open_feed(frame, plan, RowsRequest(lambda: spark, table, single=True), least=1))
        failed.append((number, found.value.code, len(plan.digest)))

    writer = stream.frame.writeStream.foreachBatch(each).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert failed == [(0, "SOURCE_FAILED", 64)]
