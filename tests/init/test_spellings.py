"""The lines that type texts in another country's spelling, and that Spark makes of them what they say."""

from decimal import Decimal

import pyarrow as pa
import pytest

from lakewriter.init.draft import write_draft
from lakewriter.init.proposals import describe_columns
from lakewriter.init.spellings import find_spellings, write_statement
from lakewriter.init.start import Wishes, make_draft

ENTRIES = [
    # values, entries of columns: that are proposed
    (["31.01.2026", "01.02.2026"], [{"type": "date", "format": "dd.MM.yyyy"}]),
    (["1.2.2026", "31.1.2026"], [{"type": "date", "format": "d.M.yyyy"}]),
    (["31/01/2026", "01/02/2026"], [{"type": "date", "format": "dd/MM/yyyy"}]),
    (["01/31/2026", "01/02/2026"], [{"type": "date", "format": "MM/dd/yyyy"}]),
    # Nobody can tell these: both are named.
    (["01/02/2026"], [{"type": "date", "format": "dd/MM/yyyy"}, {"type": "date", "format": "MM/dd/yyyy"}]),
    (["31.01.2026 10:00", None], [{"type": "timestamp", "format": "dd.MM.yyyy HH:mm"}]),
    (["31.01.2026", "later"], []),
    # The load's own spelling needs no line.
    (["2026-01-31"], []),
    (["10:30"], []),
]  # fmt: skip


@pytest.mark.parametrize(("values", "entries"), ENTRIES)
def test_dates(values, entries):
    rows = pa.table({"day": pa.array(values, pa.string())})
    assert [spelling.entry for spelling in find_spellings(rows, describe_columns(rows))] == entries


EXPRESSIONS = [
    # values, what SQL makes of the column
    (["1.234,50", "-3,5"], "CAST(replace(replace(`a`, '.', ''), ',', '.') AS DECIMAL(18,2))"),
    (["1,50", "0"], "CAST(replace(`a`, ',', '.') AS DECIMAL(18,2))"),
    (["1 234,5"], "CAST(replace(replace(`a`, ' ', ''), ',', '.') AS DECIMAL(18,1))"),
    (["1,234.50"], "CAST(replace(`a`, ',', '') AS DECIMAL(18,2))"),
    (["1'234.5"], "CAST(replace(`a`, '\\'', '') AS DECIMAL(18,1))"),
    # A thousand, or one and a bit.
    (["1,234"], None),
    # Codes, and versions.
    (["01,5"], None),
    (["1.2.3"], None),
    (["Ja", "Nein", "ja"],
     "CASE lower(`a`) WHEN 'ja' THEN true WHEN 'nein' THEN false ELSE CAST(`a` AS BOOLEAN) END"),
    (["Ja", "Ja"], None),
    (["Ja", "Nein", "vielleicht"], None),
]  # fmt: skip


@pytest.mark.parametrize(("values", "expression"), EXPRESSIONS)
def test_numbers_and_answers(values, expression):
    rows = pa.table({"a": values})
    found = [spelling.expression for spelling in find_spellings(rows, describe_columns(rows))]
    assert found == ([] if expression is None else [expression])


CSV = """order_id;betrag;gebucht;be`zahlt
1;1.234,50;31.01.2026;Ja
2;-3,5;01.02.2026;Nein
3;;;
"""


def test_lines_of_the_draft(tmp_path):
    (tmp_path / "orders.csv").write_text(CSV, "utf-8")
    lines = write_draft(make_draft([str(tmp_path / "orders.csv")], Wishes(tmp_path)).draft, "init").splitlines()
    assert "      # gebucht: {type: date, format: dd.MM.yyyy}  # text; all values are such as '31.01.2026'" in lines
    (read,) = [line for line in lines if line.startswith("    # read: {sql: ")]
    assert "views: {files: {format: csv, path: orders.csv, options: {header: true, sep: ;}}}" in read


@pytest.mark.spark
def test_statement_types_the_columns(spark):
    texts = {"id": ["1", "2", "3"], "betrag": ["1.234,50", "-3,5", None], "be`zahlt": ["Ja", "Nein", None]}
    rows = pa.table({name: pa.array(values, pa.string()) for name, values in texts.items()})
    spellings = find_spellings(rows, describe_columns(rows))
    spark.createDataFrame(list(zip(*texts.values(), strict=True)), list(texts)).createOrReplaceTempView("files")
    typed = spark.sql(write_statement(spellings, "files")).orderBy("id").collect()
    assert [tuple(row) for row in typed] == [
        ("1", Decimal("1234.50"), True), ("2", Decimal("-3.50"), False), ("3", None, None)
    ]  # fmt: skip
