"""Names that differ by case alone, or not at all, as the guide's table has them."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.errors import SchemaIncompatibleError
from lakewriter.naming import DELETED
from lakewriter.source.feed import open_feed
from lakewriter.source.request import RowsRequest
from tests.source.tables import rows, table

pytestmark = pytest.mark.spark

CSV = [
    # header, options, the names
    ("Name,name,name", {}, ["Name", "name", "name"]),
    ("Name,name,ID", {"deleted": "Name = 'x'"}, ["Name", "name", "ID", DELETED]),
    ("a0,a1,a", {}, ["a0", "a1", "a"]),
    ("a,,a", {}, ["a", "_c1", "a"]),
]


@pytest.mark.parametrize(("header", "fields", "names"), CSV)
def test_csv(spark, tmp_path, header, fields, names):
    (tmp_path / "a.csv").write_text(f"{header}\n1,2,3\n", "utf-8")
    read = table(format="csv", path=str(tmp_path / "a.csv"), options={"header": "true"}, **fields)
    feed = open_feed(RowsRequest(lambda: spark, read))
    assert (feed.schema.names, rows(feed)[0][:3]) == (names, ["1", "2", "3"])


@pytest.mark.parametrize("form", ["json", "parquet", "orc"])
def test_names_that_differ_by_case(spark, tmp_path, form):
    path = tmp_path / f"a.{form}"
    if form == "json":
        path.write_text('{"Name": 1, "name": 2}\n', "utf-8")
    elif form == "parquet":
        pq.write_table(pa.table({"Name": [1], "name": [2]}), path)
    else:
        orc = pytest.importorskip("pyarrow.orc")
        orc.write_table(pa.table({"Name": [1], "name": [2]}), path)
    feed = open_feed(RowsRequest(lambda: spark, table(format=form, path=str(path), deleted="name = 2")))
    assert (feed.schema.names, rows(feed)) == (["Name", "name", DELETED], [[1, 2, True]])
    assert spark.conf.get("spark.sql.caseSensitive") == "false"


PARQUET = [["Name", "name", "name"], ["name", "x", "name"], ["Name", "name"]]


def with_names(path, names, start=1):
    columns = [pa.array([start + place]) for place in range(len(names))]
    pq.write_table(pa.Table.from_arrays(columns, names=names), path)


@pytest.mark.parametrize("names", PARQUET)
def test_columns_of_one_name_in_parquet(spark, tmp_path, names):
    with_names(tmp_path / "a.parquet", names)
    read = table(format="parquet", path=str(tmp_path))
    feed = open_feed(RowsRequest(lambda: spark, read))
    values = list(range(1, len(names) + 1))
    assert (feed.kind, feed.schema.names, rows(feed)) == ("splits", names, [values])
    feed = open_feed(RowsRequest(lambda: spark, read), prefer="rows")
    assert (feed.schema.names, rows(feed)) == (names, [values])


def test_columns_of_one_name_are_not_merged(spark, tmp_path):
    with_names(tmp_path / "a.parquet", ["name", "name"])
    with_names(tmp_path / "b.parquet", ["name", "x"])
    with pytest.raises(SchemaIncompatibleError, match=r"a\.parquet' has several columns 'name', and .*b\.parquet' has"):
        open_feed(RowsRequest(lambda: spark, table(format="parquet", path=str(tmp_path))))
