"""Any table of texts comes back from the CSV that Python, pandas, DuckDB, Arrow, Spark and this product write."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakewriter.encode.csv_and_jsonl import join_texts, make_csv_header, make_csv_lines
from lakewriter.source.files.csv_rows import LINE_END
from tests.source.files.reading import Outcome, read_csv
from tests.support.sample import fifth_of

HEADED = {"header": "true"}
TEXTS = st.text(
    st.one_of(st.sampled_from(" ,;\t\"'\\\n\r#aé😀\0"), st.characters(exclude_categories=["Cs"])), max_size=12
)
ROW = st.tuples(st.one_of(st.none(), TEXTS), st.one_of(st.none(), TEXTS), TEXTS)
TABLES = st.lists(ROW, max_size=8)
NAMES = ["a", "b", "c"]
ODD: list[tuple[str | None, str | None, str]] = [
    ('say "hi"', "a\r\nb", "c\nd"), ("\\", '\\"', '"'), (None, "", " "), ("", None, "\r"), ("#x", ",", "\ufeff"),
]  # fmt: skip

Table = Sequence[tuple[str | None, ...]]


def given_tables(test: Any) -> Any:
    """Try a test on tables at random, and on one of all that is odd."""
    return settings(max_examples=fifth_of(120), deadline=None)(example(ODD)(given(TABLES)(test)))


def require_equal(outcome: Outcome, rows: Table) -> None:
    assert (outcome.names, outcome.good, outcome.bad) == (NAMES, list(rows), [])


def empty_for_null(rows: Table) -> Table:
    """What a writer makes of rows that does not tell an empty text from a null."""
    return [tuple(value or None for value in row) for row in rows]


@given_tables
def test_python(rows):
    require_equal(read_csv(write_by_python(rows, "\r\n").encode(), options=HEADED), empty_for_null(rows))
    require_equal_or_told(read_csv(write_by_python(rows, "\n").encode(), options=HEADED), rows)


def write_by_python(rows: Table, end: str) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator=end)
    writer.writerow(NAMES)
    writer.writerows(rows)
    return file.getvalue()


def require_equal_or_told(outcome: Outcome, rows: Table) -> None:
    """Where lines end with LF Python writes a CR without quotes: such rows are told, the others equal."""
    bare = [any("\r" in (value or "") and not set(value or "") & set(',"\n') for value in row) for row in rows]
    assert outcome.good == empty_for_null([row for row, is_bare in zip(rows, bare, strict=True) if not is_bare])
    assert [reason for _, reason, _ in outcome.bad] == [LINE_END] * sum(bare)


@given_tables
def test_python_that_quotes_all_but_nulls(rows):
    # Since Python 3.12 a constant of the module; here a field that is no text stands without quotes.
    file = io.StringIO()
    file.write("a,b,c\r\n")
    for row in rows:
        file.write(",".join("" if value is None else '"' + value.replace('"', '""') + '"' for value in row) + "\r\n")
    require_equal(read_csv(file.getvalue().encode(), options=HEADED), rows)


@given_tables
def test_pandas(rows):
    frame = pd.DataFrame(list(rows), columns=NAMES, dtype=object)
    require_equal_or_told(read_csv(frame.to_csv(index=False).encode(), options=HEADED), rows)
    quoted = frame.to_csv(index=False, quoting=csv.QUOTE_ALL)
    require_equal(read_csv(quoted.encode(), options=HEADED | {"nullValue": ""}), empty_for_null(rows))


@given_tables
def test_arrow(rows):
    table = pa.table({name: pa.array([row[place] for row in rows], pa.string()) for place, name in enumerate(NAMES)})
    sink = pa.BufferOutputStream()
    pa_csv.write_csv(table, sink)
    require_equal(read_csv(sink.getvalue().to_pybytes(), options=HEADED), rows)


@given_tables
def test_the_products_own(rows):
    schema = pa.schema([pa.field(name, pa.string()) for name in NAMES])
    columns = [pa.array([row[place] for row in rows], pa.string()) for place in range(3)]
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    data = make_csv_header(schema) + join_texts(make_csv_lines(batch))
    require_equal(read_csv(data, options=HEADED), rows)


def test_duckdb(tmp_path: Path):
    """It quotes an empty text where nulls are empty, and line breaks of both kinds."""
    table = pa.table({name: pa.array([row[place] for row in ODD], pa.string()) for place, name in enumerate(NAMES)})
    connection = duckdb.connect()
    connection.register("t", table)
    connection.execute(f"COPY t TO '{tmp_path}/a.csv' (HEADER, FORCE_QUOTE (c))")
    require_equal(read_csv((tmp_path / "a.csv").read_bytes(), options=HEADED), ODD)


@pytest.mark.spark
def test_spark(spark, tmp_path):
    """With its ``escape`` given, a backslash, and empty texts quoted."""
    rows = [row for row in ODD if "\r" not in row[2]]
    frame = spark.createDataFrame([tuple(row) for row in rows], "a string, b string, c string").coalesce(1)
    options = {
        "header": "true",
        "escape": "\\",
        "ignoreLeadingWhiteSpace": "false",
        "ignoreTrailingWhiteSpace": "false",
    }
    frame.write.options(**options).csv(str(tmp_path / "out"))
    [file] = (tmp_path / "out").glob("*.csv")
    require_equal(read_csv(file.read_bytes(), options=HEADED | {"escape": "\\"}), rows)
