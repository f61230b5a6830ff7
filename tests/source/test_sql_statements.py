"""SQL over files that the tasks read: bad rows, columns that a statement needs, what it cannot ask, sizes of joins."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.errors import LakeError, SpecInvalidError
from lakewriter.source.feed import open_feed
from lakewriter.source.file_frames import FileRows, pack_rows
from lakewriter.source.file_splits import spread_locally
from lakewriter.source.files import file_source as files_source
from lakewriter.source.files.file_reader import Look, Piece, make_marks
from lakewriter.source.files.spark_options import Options
from lakewriter.source.request import RowsRequest
from lakewriter.spec.row_rules import BadRows
from lakewriter.spec.table_spec import Read
from tests.source.tables import rows, table
from tests.source.test_marked_lines import split

pytestmark = pytest.mark.spark

HEADED = {"options": {"header": "true"}}


def csv(folder: Path, name: str, text: str) -> Read:
    (folder / name).write_text(text, "utf-8")
    return Read(format="csv", path=str(folder / name), **HEADED)


def open_sql(spark, sql, views, **fields):
    return open_feed(RowsRequest(lambda: spark, table(sql=sql, views=views, **fields)))


def test_bad_rows_of_views_come_behind_the_statements_own(spark, tmp_path):
    """Each once, however often a statement reads its view, and whatever it filters."""
    views = {
        "a": csv(tmp_path, "a.csv", "id,t\n1,x\n2\n3,y\n"),
        "b": csv(tmp_path, "b.csv", "id,n\n1,10\n3,30,9\n"),
    }
    sql = "SELECT a.id, b.n FROM a LEFT JOIN b USING (id) WHERE a.id IN (SELECT id FROM a) AND a.t <> 'y'"
    kept, marked, files = split(open_sql(spark, sql, views, on_bad_row=BadRows(action="quarantine")))
    assert kept == [["1", "10"]]
    assert marked == [(10, None, "3,30,9", "it has 3 fields, exp"), (9, None, "2", "it has 1 field, expe")]
    assert files == {str(tmp_path / "a.csv"), str(tmp_path / "b.csv")}


def test_bad_row_of_a_view_fails_the_load(spark, tmp_path):
    views = {"a": csv(tmp_path, "a.csv", "id,t\n1,x\n2\n")}
    feed = open_sql(spark, "SELECT id FROM a WHERE id = '1'", views)
    with pytest.raises(LakeError, match=r"a\.csv', line 3, offset 9: it has 1 field, expected 2: '2'"):
        rows(feed)


REFUSED = [
    # a statement, what it cannot ask for
    ("SELECT *, input_file_name() AS f FROM a", "input_file_name()"),
    ("SELECT * FROM a WHERE INPUT_FILE_BLOCK_START () > 0", "INPUT_FILE_BLOCK_START()"),
    ("SELECT (SELECT input_file_name() FROM a LIMIT 1) AS f", "input_file_name()"),
    ("SELECT _metadata.file_path FROM a", "_metadata"),
    ("SELECT a.`_metadata` FROM a", "_metadata"),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("sql", "what"), REFUSED)
def test_name_of_a_rows_file_is_refused(spark, tmp_path, sql, what):
    with pytest.raises(SpecInvalidError) as found:
        open_sql(spark, sql, {"a": csv(tmp_path, "a.csv", "id,t\n1,x\n")})
    assert f"its sql: uses {what}, which would be empty" in str(found.value)


def test_texts_and_columns_of_these_names_are_taken(spark, tmp_path):
    read = csv(tmp_path, "a.csv", "_metadata,t\n1,x\n")
    sql = "SELECT _metadata, 'input_file_name()' AS f FROM a -- input_file_name()"
    assert rows(open_sql(spark, sql, {"a": read})) == [["1", "input_file_name()"]]


def test_sparks_own_views_know_their_files(spark, tmp_path):
    read = csv(tmp_path, "a.csv", "id,t\n1,x\n").model_copy(update={"engine": "spark"})
    [[name]] = rows(open_sql(spark, "SELECT input_file_name() FROM a", {"a": read}))
    assert name.endswith("a.csv")


@dataclass(frozen=True)
class WideReader:
    """A format whose columns lie apart: Parquet files, of which it notes what it was asked for."""

    has_lines: ClassVar[bool] = False

    def look(self, files: Any, table: str, spread: Any) -> Look:
        del table, spread
        return Look(pq.read_schema(files[0].path), tuple((file, None) for file in files))

    def cut(self, look: Look, size: int, spread: Any) -> list[Piece]:
        del size, spread
        return [Piece(file, 0, file.size, layout, is_whole=True) for file, layout in look.files]

    def count(self, piece: Piece) -> int:
        return int(pq.read_metadata(piece.file.path).num_rows)

    def read(self, piece: Piece, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with Path(f"{piece.file.path}.asked").open("a", encoding="utf-8") as asked:
            asked.write(json.dumps(schema.names) + "\n")
        data = pq.read_table(piece.file.path).select(schema.names)
        marks = make_marks(piece.file.path, np.arange(data.num_rows), {})
        arrays = [column.combine_chunks() for column in data.columns]
        fields = [*schema, pa.field("__lakewriter_bad", marks.type)]
        yield pa.RecordBatch.from_arrays([*arrays, marks], schema=pa.schema(fields))

    def find_line(self, piece: Piece, offset: int) -> int | None:
        del piece, offset
        return None


NEEDED = [
    # a statement over v(a, b, c, d) and w(a, e), the columns of v that are read, what it gives
    ("SELECT a FROM v", ["a"], [[1], [2]]),
    ("SELECT a FROM v WHERE b > 15", ["a", "b"], [[2]]),
    ("SELECT count(*) FROM v", [], [[2]]),
    ("SELECT max(c) FROM v GROUP BY b ORDER BY 1", ["b", "c"], [["x"], ["y"]]),
    ("SELECT * FROM v", ["a", "b", "c", "d"], [[1, 10, "x", 0.5], [2, 20, "y", 1.5]]),
    # By its place, of columns of which not all are read.
    ("SELECT d FROM (SELECT * FROM v ORDER BY 2 DESC LIMIT 1)", ["b", "d"], [[1.5]]),
    ("SELECT v.d, w.e FROM v JOIN w ON v.a = w.a", ["a", "d"], [[0.5, "p"]]),
    ("SELECT d FROM v NATURAL JOIN w", ["a", "d"], [[0.5]]),
    ("SELECT e FROM w WHERE a = (SELECT min(a) FROM v WHERE b = 10)", ["a", "b"], [["p"]]),
    ("SELECT e FROM w WHERE EXISTS (SELECT * FROM v WHERE v.a = w.a)", ["a"], [["p"]]),
    # Used twice, with other columns each time.
    ("SELECT x.a, y.d FROM v x JOIN v y ON x.b = y.b WHERE x.c = 'x'", ["a", "b", "c", "d"], [[1, 0.5]]),
    ("SELECT a FROM v UNION ALL SELECT b FROM v ORDER BY 1", ["a", "b"], [[1], [2], [10], [20]]),
    ("WITH t AS (SELECT * FROM v) SELECT t.a, u.b FROM t JOIN t u ON t.a = u.a ORDER BY 1", ["a", "b"],
     [[1, 10], [2, 20]]),
    ("SELECT sum(a) OVER (ORDER BY b) FROM v", ["a", "b"], [[1], [3]]),
    ("SELECT a, row_number() OVER (PARTITION BY c ORDER BY a) FROM v ORDER BY 1", ["a", "c"], [[1, 1], [2, 1]]),
    ("SELECT struct(*).b FROM v ORDER BY 1", ["b"], [[10], [20]]),
]  # fmt: skip


@pytest.fixture
def wide(tmp_path, monkeypatch):
    reader = WideReader()
    monkeypatch.setitem(files_source._MAKE, "parquet", lambda options, columns: reader)
    monkeypatch.setattr(files_source, "take_options", lambda form, options, table: Options({}, table))
    data = pa.table({"a": [1, 2], "b": [10, 20], "c": ["x", "y"], "d": [0.5, 1.5]})
    pq.write_table(data, tmp_path / "v.parquet")
    pq.write_table(pa.table({"a": [1, 3], "e": ["p", "q"]}), tmp_path / "w.parquet")
    return {name: Read(format="parquet", path=str(tmp_path / f"{name}.parquet")) for name in "vw"}


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("sql", "columns", "expected"), NEEDED)
def test_only_columns_that_a_statement_needs_are_read(spark, tmp_path, wide, sql, columns, expected):
    assert sorted(rows(open_sql(spark, sql, wide))) == sorted(expected)
    asked = {tuple(json.loads(line)) for line in (tmp_path / "v.parquet.asked").read_text("utf-8").splitlines()}
    assert asked == {tuple(columns)}


def make_rows(spark, folder: Path, counts: Sequence[int]) -> list[FileRows]:
    found = []
    for number, count in enumerate(counts):
        read = csv(folder, f"{number}.csv", "id,t\n" + "".join(f"{id_},{'x' * 100}\n" for id_ in range(count)))
        asked = table(**{name: getattr(read, name) for name in ("format", "path", "options")})
        opened = files_source.open_files(asked, read, {"header": "true"}, spread_locally, aside=False)
        found.append(pack_rows(spark, opened, spread_locally))
    return found


def test_a_view_is_as_large_to_spark_as_its_files(spark, tmp_path):
    """It would send a large one to every task otherwise."""
    [small, large] = make_rows(spark, tmp_path, [10, 200_000])
    sizes = [
        int(each.make_frame()._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()) for each in (small, large)
    ]
    assert sizes[0] < 10_000
    assert 20_000_000 < sizes[1] < 80_000_000
    frame = large.make_frame()
    assert (frame.count(), frame.select("id").distinct().count()) == (200_000, 200_000)
