"""Texts that do not sort as what they spell are no cursor, and the type that sorts is named."""

import pyarrow as pa
import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.receipt import Cursor
from lakewriter.shape.cursor import find_highest
from lakewriter.source.text_order import require_sorted_texts
from lakewriter.spec.table_spec import ColumnType
from tests.source.tables import table

TABLE = table(format="csv", path="t.csv", cursor="changed")


def judge(values, table=TABLE, before=None):
    cursor = find_highest(pa.array(values, pa.string()), "changed", 0)
    require_sorted_texts(table, cursor or before, before)


SORTED = [
    ["2026-01-31", "2026-02-01", None],
    ["2026-01-31", "2026-01-31T10:00:00"],
    ["2026-01-31T10:00:00Z", "2026-02-01T09:00:00Z"],
    ["2026-01-31T10:00:00.5", "2026-01-31T10:00:00"],
    ["2026-01-31T10:00:00+01:00", "2026-02-01T10:00:00+01:00"],
    ["2026-01-31 10:00:00.123456", "2026-01-31 10:00:00.123457"],
    ["20260131T100000Z"],
    ["20260131", "20260201"],
    ["20260131100000"],
    ["2026/01/31", "2026/02/01"],
    ["2026-01", "2026-02"],
    ["1769817600", "1769817601"],
    ["1769817600123"],
    ["0009", "0010"],
    ["007.5", "010.25"],
    ["INV-0009", "INV-0010"],
    ["abc", "B", "Zz"],
    ["a1", "Z99", "a10"],
    ["01HZX5", "01HZY2"],
    ["52ab6e1e-cea9-4ef6", "da5c9125-7772-4fa2", "12345678-1234-1234"],
    [f"{number:x}-{number * 7919:x}{letter}{number}" for number in range(90) for letter in ("q", "rs")],
    ["", "2026-01-31"],
    ["2026-W05", "2026-W06"],
    ["n/a"],
    [None],
]


@pytest.mark.parametrize("values", SORTED, ids=lambda values: str(values[0]))
def test_texts_that_sort(values):
    if any(values):
        judge(values)


DATE = "columns: {changed: {type: date, format: %s}}."
TIME = "columns: {changed: {type: timestamp, format: %s}}."
UNSORTED = [
    # values, what the remedy ends with
    (["31.01.2026", "01.02.2026"], DATE % "dd.MM.yyyy"),
    (["31.01.2026"], DATE % "dd.MM.yyyy"),
    (["1.2.2026", "31.1.2026"], DATE % "d.M.yyyy"),
    (["31/01/2026", "n/a"], DATE % "dd/MM/yyyy"),
    (["01/31/2026"], DATE % "MM/dd/yyyy"),
    (["01/02/2026"], f"{DATE[:-1] % 'dd/MM/yyyy'} or {DATE % 'MM/dd/yyyy'}"),
    (["31-01-2026"], DATE % "dd-MM-yyyy"),
    (["31-Jan-2026"], DATE % "dd-MMM-yyyy"),
    (["Jan 31, 2026"], DATE % '"MMM d, yyyy"'),
    (["2026-1-5", "2026-1-15"], DATE % "yyyy-M-d"),
    (["31.01.2026 10:00"], TIME % '"dd.MM.yyyy HH:mm"'),
    (["1/31/2026 1:05 PM"], TIME % '"M/d/yyyy h:mm a"'),
    (["2026-01-31 9:05", "2026-01-31 10:05"], TIME % '"yyyy-M-d H:mm"'),
    (["Sat, 31 Jan 2026 10:00:00 GMT"], TIME % '"EEE, d MMM yyyy HH:mm:ss VV"'),
    (["31.01.26"], "an sql: read can make one of the text."),
    (["2026-31-01"], "an sql: read can make one of the text."),
    (["2026-01-31T10:00:00Z", "2026-01-31T10:00:00.5Z"], "columns: {changed: timestamp}."),
    (["2026-03-28T10:00:00+01:00", "2026-03-29T10:00:00+02:00"], "columns: {changed: timestamp}."),
    (["2026-01-31 10:00:00", "2026-01-31T10:00:00"], "columns: {changed: timestamp}."),
    (["2026-01-31", "pending"], "columns: {changed: date}."),
    (["9", "10"], "columns: {changed: bigint}."),
    (["100", "999"], "columns: {changed: bigint}."),
    (["9", None, "n/a"], "columns: {changed: bigint}."),
    (["-1", "1"], "columns: {changed: bigint}."),
    (["1.5", "10.25"], "columns: {changed: double}."),
    ([str(number / 7) for number in range(2000)], "columns: {changed: double}."),
    (["1,234.50"], "an sql: read can make one of the text."),
    (["00012", "none"], "columns: {changed: bigint}."),
    (["1.9.0", "1.10.0"], "an sql: read can make one of the text."),
    (["v1.2"], "an sql: read can make one of the text."),
    (["10.0.0.9"], "an sql: read can make one of the text."),
    (["order-9", "order-10"], "an sql: read can make one of the text."),
    (["9 kg", "10 kg"], "an sql: read can make one of the text."),
]  # fmt: skip


@pytest.mark.parametrize(("values", "remedy"), UNSORTED, ids=lambda value: str(value)[:40])
def test_texts_that_do_not_sort(values, remedy):
    with pytest.raises(SpecInvalidError) as refused:
        judge(values)
    assert "cursor 'changed' is text, which is compared letter by letter: it " in refused.value.message
    assert refused.value.remedy.endswith(remedy)


def test_a_cursor_from_which_no_row_was_read():
    """The rows of 1 February are below it: none is read, and none shows the order."""
    with pytest.raises(SpecInvalidError, match=r"'31\.01\.2026'") as refused:
        judge([], before=Cursor("string", "31.01.2026"))
    assert f"lakewriter reset LAKE {TABLE.id} --cursor VALUE --type TYPE --reason WHY" in refused.value.remedy


def test_a_cursor_whose_later_values_have_another_spelling():
    with pytest.raises(SpecInvalidError, match="in several ways"):
        judge(["2026-03-29T10:00:00+02:00"], before=Cursor("string", "2026-03-28T10:00:00+01:00"))


def test_the_line_keeps_what_is_declared():
    typed = TABLE.model_copy(
        update={"columns": {"id": ColumnType(type="bigint"), "changed": ColumnType(type="string")}}
    )
    with pytest.raises(SpecInvalidError) as refused:
        judge(["31.01.2026"], typed)
    assert "columns: {id: bigint, changed: {type: date, format: dd.MM.yyyy}}." in refused.value.remedy
