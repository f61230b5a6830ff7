"""The page of all tables, whatever their names are, and however many there are."""

from datetime import UTC, datetime, timedelta

import pytest

from lakewriter.operate.catalogue import list_statements
from lakewriter.operate.sql_text import Engine, Query
from lakewriter.pages.catalogue_page import (
    CatalogueColumn,
    CatalogueTable,
    Statement,
    describe_rows,
    render_catalogue,
)
from lakewriter.pages.load_record import LoadedTable, LoadRecord
from tests.pages.parsed_page import HOSTILE, SHOWN, Page, require_self_contained

NOW = datetime(2026, 1, 31, 6, tzinfo=UTC)


def make_table(name, **fields):
    known = {
        "id": name,
        "location": f"s3://acme-lake/{name}",
        "source": name,
        "committed": 2,
        "last_commit": NOW - timedelta(hours=3),
        "last_job": "a",
        "cursor": name,
        "columns": (CatalogueColumn(name, "bigint", name),),
        "files": 2,
        "bytes": 1500,
        "statements": (Statement(name, "DuckDB", name),),
    }
    return CatalogueTable(**(known | fields))


def render(*tables, loads=()):
    return render_catalogue("shop", tables, (), loads, NOW)


@pytest.mark.parametrize(("text", "shown"), list(zip(HOSTILE, SHOWN, strict=True)))
def test_hostile_names_are_only_text(text, shown):
    page, plain = require_self_contained(render(make_table(text))), Page(render(make_table("plain")))
    assert page.names == plain.names
    assert "".join(page.text).count(shown) == "".join(plain.text).count("plain") > 5


def test_what_the_page_says():
    load = LoadRecord(pipeline="shop", job_id="a", attempt="b", status="done", finished=NOW, seconds=3)
    text = " ".join("".join(Page(render(make_table("shop.orders"), loads=[load])).text).split())
    for expected in (
        "shop.orders 2026-01-31 03:00:00 UTC 1.5 KB",
        "location s3://acme-lake/shop.orders".replace(" s3", "s3"),
        "loads2, the last a at 2026-01-31 03:00:00 UTC",
        "files2 files, 1.5 KB",
        "shop.ordersbigintshop.orders",
        "adone2026-01-31 06:00:0000 B3.0 s",
    ):
        assert expected in text


def test_table_whose_columns_are_not_known_says_why():
    page = render(CatalogueTable("t", "s3://b/t", "t", why="ACCESS_DENIED: no."))
    require_self_contained(page)
    assert "ACCESS_DENIED: no." in page
    assert "never loaded" in page


def test_thousand_tables_are_searched_by_name_and_column():
    html = render(*(make_table(f"t{number:04}") for number in range(1000)))
    page = require_self_contained(html)
    assert page.names.count("details") == 1000
    assert ("data-words", "t0999 t0999 t0999 ") in page.attributes
    assert len(html) < 2_000_000


QUERIES = [
    Query("all", "Set up", "A", Engine.DUCKDB),
    Query("all", "Attach", "B", Engine.DUCKDB),
    Query("t", "Query a table", "C", Engine.DUCKDB),
    Query("t", "Read the rows of the last load", "D", Engine.DUCKDB),
    Query("t", "Query a table", "E", Engine.SPARK),
]


@pytest.mark.parametrize(("brief", "titles"), [(False, ["C", "D", "E"]), (True, ["C", "E"])])
def test_statements_by_table(brief, titles):
    statements = list_statements(QUERIES, brief=brief)
    assert [one.sql for one in statements["t"]] == titles
    assert [one.sql for one in statements["all"]] == ["A", "B"]


ROWS = [
    # the rows of a table's loads and what became of them, how many were committed, whether each replaces all, the rows
    ([], 0, False, ""),
    ([(3, "done"), (4, "done")], 2, False, "7"),
    ([(3, "done"), (4, "undone"), (5, "failed")], 2, False, "3"),
    ([(3000, "done"), (4, "done")], 5, False, "3,004 in the last 2 of 5 loads"),
    ([(2, "failed"), (3, "done"), (4, "done")], 9, True, "3"),
]


@pytest.mark.parametrize(("loads", "committed", "is_replaced", "rows"), ROWS)
def test_rows_of_a_table(loads, committed, is_replaced, rows):
    records = [
        LoadRecord(
            pipeline="shop", job_id=f"j{number}", attempt="b", status="done", finished=NOW,
            tables=(LoadedTable(schema_name="s", table="t", status=status, rows=count),),
        )
        for number, (count, status) in enumerate(loads)
    ]  # fmt: skip
    table = make_table("s.t", committed=committed, is_replaced=is_replaced)
    assert describe_rows(table, records) == rows
