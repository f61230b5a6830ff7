"""The page of a load: what a browser would make of it, by the standard library's parser."""

import runpy
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakewriter.pages.load_page import (
    Bar,
    Phase,
    Point,
    SchemaChange,
    describe_cost,
    list_checks,
    list_next_steps,
    list_schema_changes,
    make_chart,
    render_load,
    sum_phases,
)
from lakewriter.pages.load_record import FileSizes, LoadedTable, LoadRecord
from lakewriter.pages.prices import format_dollars, price_requests
from lakewriter.pages.render import format_seconds, show_text
from lakewriter.receipt import ChangedValues, SetAside, Verdict
from tests.pages.parsed_page import HOSTILE, SHOWN, Page, require_self_contained


def make_table(name="orders", **fields):
    known = {"schema_name": "shop", "table": name, "status": "done", "rows": 2, "files": 1, "bytes": 1500}
    return LoadedTable(**(known | fields))


def make_record(*tables, **fields):
    known = {"pipeline": "shop", "job_id": "a", "attempt": "b", "status": "done"}
    return LoadRecord(**(known | {"tables": tables, "finished": datetime(2026, 1, 31, 6, tzinfo=UTC)} | fields))


def judged(check="not_null.id", outcome="passed", **fields):
    known = {"kind": "null_share", "holds": outcome == "passed", "found": "0 nulls in 2 rows", "expected": "no nulls"}
    return Verdict(**(known | {"check": check, "outcome": outcome} | fields))


def make_hostile(text):
    """A load in which every text is this one."""
    table = make_table(
        text,
        message=text,
        code="SOURCE_FAILED",
        remedy=text,
        notes=(text,),
        changes=1,
        change_samples=(text,),
        changed=(ChangedValues(field=text, change=text, reason=text, values=1),),
        undeclared={text: 1},
        set_aside=SetAside(rows=1, keys=(text,), samples=(text,)),
        columns=((text, text),),
        expectations=(judged(text, "accepted", found=text, expected=text, samples=(text,), by=text, reason=text),),
    )
    return make_record(table, status="failed", message=text, notes=(text,))


@pytest.mark.parametrize(("text", "shown"), list(zip(HOSTILE, SHOWN, strict=True)))
def test_hostile_text_is_only_text(text, shown):
    before = make_record(make_table(text, columns=(("id", "int"),)))
    html = render_load(make_hostile(text), [before])
    plain = render_load(make_hostile("plain"), [make_record(make_table("plain", columns=(("id", "int"),)))])
    page = require_self_contained(html)
    assert page.names == Page(plain).names
    assert "".join(page.text).count(shown) == "".join(Page(plain).text).count("plain") > 10
    assert not set(html) & set("\x00\x1b\u202e")


@pytest.mark.parametrize(
    "record",
    [
        make_record(),
        make_record(make_table(rows=0, files=0, bytes=0), status="unfinished", finished=None),
        make_record(*(make_table(f"t{n}") for n in range(1500)), requests={"GET": 1}),
    ],
    ids=["no table", "no row", "1500 tables"],
)
def test_loads_of_any_size(record):
    html = render_load(record, [])
    require_self_contained(html)
    assert len(html) < 600_000


def test_long_values_are_cut():
    assert show_text("x" * 5000) == "x" * 2000 + "…"


def test_what_the_page_says():
    table = make_table(
        sizes=FileSizes(smallest=1000, median=1500, largest=2_000_000), files=3, seconds=61.0, phases={"writing": 40.0}
    )
    html = render_load(make_record(table, seconds=75.2, requests={"GET": 10, "PUT": 4}), [])
    text = " ".join("".join(Page(html).text).split())
    for expected in (
        "done ended 2026-01-31 06:00:00 UTC after 1 min 15 s",
        "shop.orders done 2 3 1.5 KB 1.0 KB to 2.0 MB, median 1.5 KB 1 min 01 s",
        "write files40.0 s",
        "The last 1 load",
        "these requests$0.000024 to $0.00007",
        "By the list prices of us-east-1 for S3 Standard, as of 2024",
        "lakewriter verify LAKE a",
    ):
        assert expected in text


def test_expectations_with_their_last_results():
    bad = judged(outcome="failed", found="1 null in 2 rows (50.00%)")
    now = make_record(make_table(expectations=(judged("rows"), bad)), job_id="c", status="failed")
    loads = [
        make_record(make_table(expectations=(judged("rows"), judged())), job_id="b"),
        make_record(make_table(expectations=(judged("rows", "warned"),)), make_table("other"), job_id="a"),
    ]
    checks = list_checks(now, loads)
    assert [(check.verdict.check, "".join(mark.sign for mark in check.marks)) for check in checks] == [
        ("not_null.id", "✓✗"),
        ("rows", "!✓✓"),
    ]
    assert checks[0].marks[1].title == "c, 2026-01-31 06:00:00, failed: 1 null in 2 rows (50.00%)"
    html = render_load(now, loads)
    require_self_contained(html)
    text = " ".join("".join(Page(html).text).split())
    assert "shop.orders not_null.id failed 1 null in 2 rows (50.00%) no nulls ✓✗" in text
    # Thirty loads are shown, this one with them.
    assert len(list_checks(now, loads[:1] * 40)[0].marks) == 30


def test_failed_load_says_what_to_do():
    table = make_table(status="failed", code="SOURCE_FAILED", message="no file. Give one.", remedy="Give one.")
    assert list(list_next_steps(make_record(table, status="failed", code="SOURCE_FAILED", message="no file."))) == [
        ("shop.orders failed with SOURCE_FAILED. Give one.", ""),
        ("There is more on it:", "lakewriter docs SOURCE_FAILED"),
        (
            "Once that is mended, run the load again under its own job id: what is committed is not loaded twice.",
            "lakewriter run LAKE --job-id a",
        ),
    ]


def test_one_cause_is_said_once_and_commands_can_be_pasted():
    tables = [make_table(f"t{n}", status="failed", code="NAME_COLLISION", remedy="Rename.") for n in range(7)]
    record = make_record(*tables, status="failed", code="NAME_COLLISION", given=("my lake.yaml", "--local"))
    assert list(list_next_steps(record)) == [
        ("shop.t0, shop.t1, shop.t2, shop.t3, shop.t4 and 2 more failed with NAME_COLLISION. Rename.", ""),
        ("There is more on it:", "lakewriter docs NAME_COLLISION"),
        (
            "Once that is mended, run the load again under its own job id: what is committed is not loaded twice.",
            "lakewriter run 'my lake.yaml' --local --job-id a",
        ),
    ]
    assert list(list_next_steps(record, ("other.yaml",)))[-1][1] == "lakewriter run other.yaml --job-id a"


def test_schema_changes_are_those_since_the_last_load_whose_columns_are_known():
    now = make_record(make_table(columns=(("id", "bigint"), ("at", "date"))))
    loads = [make_record(make_table()), make_record(make_table(columns=(("id", "int"), ("old", "string"))))]
    assert list_schema_changes(now, loads) == [
        SchemaChange("shop.orders", "type", "id", "int", "bigint"),
        SchemaChange("shop.orders", "added", "at", "", "date"),
        SchemaChange("shop.orders", "gone", "old", "string", ""),
    ]
    assert list_schema_changes(now, loads[:1]) == []


def test_phases_are_sums_of_the_tables():
    tables = [make_table(phases={"writing": 3.0, "committing": 1.0}), make_table(phases={"writing": 1.0})]
    assert sum_phases(tables) == [Phase("write files", 4.0, 100.0), Phase("commit", 1.0, 25.0)]


def test_chart_draws_to_the_scale_of_the_greatest():
    chart = make_chart("rows", "4", [Point(0, "a", "done"), Point(4, "b", "failed")], 30)
    assert chart.bars == (Bar(0, 58.5, 8.0, 1.5, "a", "done"), Bar(10, 2, 8.0, 58.0, "b", "failed"))


PRICES = [
    # requests, the least and the most in dollars: $0.005 for 1000 PUT, POST or LIST, $0.0004 for 1000 GET or HEAD
    ({"PUT": 1000}, (0.005, 0.005)),
    ({"GET": 1000}, (0.0004, 0.005)),
    ({"HEAD": 1000, "POST": 1000, "DELETE": 5000}, (0.0054, 0.0054)),
    ({}, (0, 0)),
]


@pytest.mark.parametrize(("requests", "cost"), PRICES)
def test_requests_cost(requests, cost):
    assert price_requests(requests) == pytest.approx(cost)


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "$0.00"), (12.5, "$12.50"), (0.0054, "$0.0054"), (0.00000012, "less than $0.000001"), (0.000001, "$0.000001")],
)
def test_dollars(amount, text):
    assert format_dollars(amount) == text


def test_cost_is_unknown_without_requests():
    assert describe_cost(make_record()) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, ""), (0, "0.0 s"), (59.94, "59.9 s"), (59.96, "1 min 00 s"), (61, "1 min 01 s"), (7322, "2 h 02 min")],
)
def test_durations(seconds, text):
    assert format_seconds(seconds) == text


def offer(usage, *tiers):
    """A product of AWS's price list, abridged: its prices from a number of units on.

    https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/reading-service-price-list-file-for-services.html
    """
    dimensions = {begin: {"beginRange": begin, "pricePerUnit": {"USD": price}} for begin, price in tiers}
    return {"attributes": {"usagetype": usage}}, {f"{usage}.t": {"priceDimensions": dimensions}}


LISTED = {
    "w": offer("Requests-Tier1", ("0", "0.0000050000")),
    "r": offer("Requests-Tier2", ("0", "0.0000004000")),
    "m": offer("TimedStorage-ByteHrs", ("0", "0.0230000000"), ("51200", "0.0220000000")),
    "o": offer("EUC1-Requests-Tier1", ("0", "0.0000054000")),
}


def test_prices_are_read_from_the_price_list():
    script = runpy.run_path(str(Path(__file__).parents[2] / "scripts/prices"))
    products, terms = ({sku: each[part] for sku, each in LISTED.items()} for part in (0, 1))
    listed = {"products": products, "terms": {"OnDemand": terms}}
    assert script["make_file"](listed, "2027-01-31") == {
        "source": "https://aws.amazon.com/s3/pricing/",
        "read": "2027-01-31",
        "region": "us-east-1",
        "currency": "USD",
        "thousand_writes": 0.005,
        "thousand_reads": 0.0004,
        "gigabyte_month": 0.023,
    }
    with pytest.raises(SystemExit, match="expected one"):
        script["find_price"](listed, "Requests-Tier9")
