"""A cursor of texts that do not sort as the dates they spell: refused before a row is bound, and right once typed."""

import json
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.aws import Clients
from lakewriter.errors import SpecInvalidError
from lakewriter.operate.planning import plan
from lakewriter.receipt import Cursor, TextShapes
from lakewriter.run.prepare import Prepared, require_sorted_cursor, require_sorted_sample
from lakewriter.source.databases.cursors import Edge
from tests.commit.edits import Edit
from tests.load.lakes import Lake, read_quarantine
from tests.source.tables import table
from tests.support.local_tasks import local_session

DAYS = "supaflow_nyc_public/days"
ID = "supaflow_nyc_public.days"
JANUARY, FEBRUARY = (1, "31.01.2026"), (2, "01.02.2026")
TYPED = {"changed": {"type": "date", "format": "dd.MM.yyyy"}}


@pytest.fixture
def local(tmp_path, aws, bucket) -> Lake:
    return Lake(tmp_path, aws, local_session(2))


def put(lake: Lake, kind: str, *rows: tuple[Any, Any], **fields: Any) -> None:
    path = lake.folder / f"days.{kind}"
    if kind == "csv":
        path.write_text("id,changed\n" + "".join(f"{number},{day or ''}\n" for number, day in rows), "utf-8")
    elif kind == "json":
        path.write_text("".join(json.dumps({"id": number, "changed": day}) + "\n" for number, day in rows), "utf-8")
    else:
        ids, days = zip(*rows, strict=True)
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), "changed": pa.array(days, pa.string())}), path)
    read = {"format": kind, "path": path.name} | ({"options": {"header": "true"}} if kind == "csv" else {})
    lake.write({"table": "days", "schema": "public", "read": read, "cursor": "changed"} | fields)


def load(lake: Lake, job_id: str):
    (result,) = lake.load(job_id).tables
    return result


def read_ids(lake: Lake) -> list[int]:
    return [int(row[0]) for row in lake.rows("SELECT id FROM t ORDER BY id", DAYS)]


KINDS = ["csv", "json", "parquet"]


@pytest.mark.parametrize("kind", KINDS)
def test_dates_as_text_are_refused(local, kind):
    put(local, kind, JANUARY)
    result = load(local, "a")
    assert (result.status, result.code) == ("failed", "SPEC_INVALID")
    assert "columns: {changed: {type: date, format: dd.MM.yyyy}}" in result.remedy
    assert local.data() == {}
    spec, controls = local.spec, {ID: local.control(ID)}
    (planned,) = plan(spec, job_id=None, clients=Clients(spec.access), spark=lambda: local._spark, controls=controls)
    assert planned.failure is not None
    assert planned.failure.code == "SPEC_INVALID"


@pytest.mark.spark
@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", KINDS)
def test_typed_dates_are_all_loaded(lake, kind):
    for job_id, rows in (("a", [JANUARY]), ("b", [JANUARY, FEBRUARY])):
        put(lake, kind, *rows, columns=TYPED)
        assert load(lake, job_id).code is None
    assert read_ids(lake) == [1, 2]


@pytest.mark.spark
@pytest.mark.parametrize("kind", KINDS)
def test_iso_texts_are_loaded_without_a_word(lake, kind):
    for job_id, rows in (("a", [(1, "2026-01-31")]), ("b", [(1, "2026-01-31"), (2, "2026-02-01")])):
        put(lake, kind, *rows)
        result = load(lake, job_id)
        assert (result.code, result.rows, result.notes) == (None, 1, ())
    assert read_ids(lake) == [1, 2]
    state = lake.control(ID).state.read()
    assert state.cursor == Cursor("string", "2026-02-01")
    assert not any(b'"shapes"' in body for body in lake.aws.objects("acme-lake").values())


@pytest.mark.spark
@pytest.mark.parametrize("rows", [[FEBRUARY], []], ids=["a row below it", "no row"])
def test_a_cursor_that_an_earlier_release_has_left(lake, rows):
    """None of the rows is above it: their order is not seen in what is read."""
    put(lake, "csv", (1, "2026-01-31"))
    assert load(lake, "a").code is None
    control = lake.control(ID)

    control.state.move(Edit(cursor=Cursor("string", "31.01.2026")))
    put(lake, "csv", *rows)
    result = load(lake, "b")
    assert (result.status, result.code) == ("failed", "SPEC_INVALID")
    assert "--cursor VALUE --type TYPE" in result.remedy
    assert control.state.read().cursor.text == "31.01.2026"


def test_a_cursor_in_the_future_is_told(local):
    """A row that is valid for ever, or a client whose clock is wrong, leaves out all rows of today."""
    put(local, "parquet", (1, "2026-01-31"), (2, "9999-12-31"), (3, None))
    result = load(local, "a")
    assert result.status == "done"
    nulls, note = result.notes
    assert nulls == "cursor 'changed' is null in 1 row: only a load that reads everything reads such rows"
    assert note.startswith("cursor 'changed' is at 9999-12-31, in the future")
    assert f"lakewriter reset LAKE {ID} --cursor VALUE" in note


def test_one_odd_value_in_many_files_is_seen(local):
    """Tasks see the spellings of their own rows, and the load those of all."""
    for number, day in enumerate(["2026-03-28T10:00:00+01:00", "2026-03-29T10:00:00+02:00"]):
        path = local.folder / "in" / f"{number}.csv"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"id,changed\n{number},{day}\n", "utf-8")
    read = {"format": "csv", "path": "in", "options": {"header": "true"}}
    local.write({"table": "days", "schema": "public", "read": read, "cursor": "changed"})
    result = load(local, "a")
    assert (result.code, local.data()) == ("SPEC_INVALID", {})
    assert "columns: {changed: timestamp}" in result.remedy


def test_rows_of_the_quarantine_count(local):
    """The cursor passes them, too."""
    rule = {"on_bad_row": {"action": "quarantine", "at_most": 0.9}, "columns": {"id": "int"}}
    put(local, "csv", (1, "2026-01-31"), ("x", "31.01.2026"), **rule)
    assert load(local, "a").code == "SPEC_INVALID"
    assert read_quarantine(local.aws) == []


@pytest.mark.spark
def test_texts_of_a_database(lake, spark):
    """Its server, or Spark, compares their bytes."""
    url = "jdbc:derby:memory:text_cursors;create=true"
    spark.createDataFrame([JANUARY], "id int, changed string").write.format("jdbc").options(
        url=url, dbtable="days"
    ).save()
    read = {"format": "jdbc", "options": {"url": url, "dbtable": "days"}}
    lake.write({"table": "days", "schema": "public", "read": read, "cursor": "CHANGED"})
    result = load(lake, "a")
    assert (result.code, lake.data()) == ("SPEC_INVALID", {}), result.message
    assert "{type: date, format: dd.MM.yyyy}" in result.remedy


def test_texts_of_values_that_a_server_orders():
    """As those of xid8: nobody compares their letters."""
    texts = Cursor("string", "9", shapes=TextShapes(ends={"9": ("9", "9"), "99": ("10", "10")}))
    days = table(format="jdbc", cursor="changed")
    require_sorted_cursor(days, texts, edge=Edge("10", pa.string(), None, is_text_of_value=True))
    with pytest.raises(SpecInvalidError):
        require_sorted_cursor(days, texts, edge=Edge("9", pa.string(), None))


def test_a_sample_with_two_such_columns():
    """Nothing is refused by it: the load itself says that the column is not clear."""
    prepared = Prepared(*[cast(Any, None)] * 6)
    rows = pa.table([["10"], ["9"]], names=["changed", "CHANGED"])
    require_sorted_sample(table(format="csv", cursor="changed"), prepared, rows)
