"""Types proposed for columns of text, held to Python's reading of the values and to the cast of a load."""

import random
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakewriter.cast.sql_types import parse_type
from lakewriter.cast.strict_cast import cast_text
from lakewriter.source.text_types import Proposal, propose_type
from tests.support.sample import fifth_of

OTHER_DATE = "is not a date as it is taken (2026-01-31); its spelling can be named by format:"

TYPES: list[tuple[list[str | None], str | None, str]] = [
    # values, the type proposed, why
    (["1", "-20", None], "bigint", "all values (2) are whole numbers, from -20 to 1"),
    (["5", "+5"], "bigint", "all values (2) are whole numbers, from 5 to 5"),
    ([" 5 ", "+5"], None, "1 of 2 values are numbers, but ' 5 ' has blanks around it"),
    (["-0", "0"], "bigint", "all values (2) are whole numbers, from 0 to 0"),
    (["9223372036854775807"], "bigint", "all values (1) are whole numbers, from 9223372036854775807 to "
     "9223372036854775807"),
    (["1700000000", "1700000060"], "bigint", "all values (2) are whole numbers, from 1700000000 to 1700000060; they "
     "could be seconds since 1970"),
    (["9223372036854775808"], "decimal(38,0)", "all values (1) are numbers, and '9223372036854775808' has more digits "
     "than a double"),
    (["1", "12345678901234567.25"], "decimal(38,2)", "all values (2) are numbers, and '12345678901234567.25' has more "
     "digits than a double"),
    (["9" * 41], None, "'9999999999999999999999999999999999999...' is a number that neither a double nor a decimal "
     "holds beside the others"),
    (["12.50", "3"], "double", "all values (2) are numbers, such as '12.50'"),
    (["1e5", ".5", "5."], "double", "all values (3) are numbers, such as '1e5'"),
    (["NaN", "-Infinity", "1.5"], "double", "all values (3) are numbers, such as '1.5'"),
    (["NaN"], None, "all values (1) are NaN or Infinity, and none is a number"),
    (["1e400"], None, "'1e400' is beyond the range of double"),
    (["1e-400", "2"], None, "1 of 2 values are numbers, but '1e-400' is closer to zero than any double"),
    (["1e5", "12345678901234567"], "decimal(38,0)", "all values (2) are numbers, and '12345678901234567' has more "
     "digits than a double"),
    (["1e50", "12345678901234567"], None, "'12345678901234567' is a number that neither a double nor a decimal holds "
     "beside the others"),
    (["4.9e-324"], None, "'4.9e-324' is a number that neither a double nor a decimal holds beside the others"),
    (["1_000"], None, "'1_000' is not a number as it is taken (1234.5)"),
    (["1,5", "2,5"], None, "'1,5' is not a number as it is taken (1234.5)"),
    (["1.234,56"], None, "'1.234,56' is not a number as it is taken (1234.5)"),
    (["0x1F"], None, "'0x1F' is text"),
    (["0x1p3"], None, "'0x1p3' is text"),
    (["1d", "2"], None, "1 of 2 values are numbers, but '1d' is text"),
    (["01234", "10115"], None, "1 of 2 values are numbers, but '01234' has a leading zero, as codes have"),
    (["00.5"], None, "'00.5' has a leading zero, as codes have"),
    (["+491701234567", "5"], None, "'+491701234567' begins with a plus sign, as phone numbers do"),
    (["\u0665"], None, "'\u0665' is text"),
    (["TRUE", "false"], "boolean", "all values (2) are true or false"),
    (["yes", "no", "no"], "boolean", "all values (3) are 'no' or 'yes'"),
    (["NO", "NO"], None, "'NO' is taken as true or false only beside its opposite"),
    (["Y", "f"], None, "'Y' is taken as true or false only beside its opposite"),
    (["true", "1"], None, "1 of 2 values are numbers, but 'true' is not"),
    (["2026-01-05", "2026-01-31"], "date", "all values (2) are dates, such as '2026-01-05'"),
    (["2026-01-05", "2026-1-5"], None, f"1 of 2 values are dates or times, but '2026-1-5' {OTHER_DATE}"),
    (["2026-02-30"], None, "'2026-02-30' is not a date of the calendar"),
    (["2026-01"], None, f"'2026-01' {OTHER_DATE}"),
    (["05.01.2026"], None, f"'05.01.2026' {OTHER_DATE}"),
    (["01/05/2026"], None, f"'01/05/2026' {OTHER_DATE}"),
    (["20260105"], "bigint", "all values (1) are whole numbers, from 20260105 to 20260105"),
    (["2026-01-05T10:00:00Z"], "timestamp", "all values (1) are times, such as '2026-01-05T10:00:00Z'"),
    (["2026-01-05", "2026-01-05 10:00"], "timestamp", "all values (2) are times, such as '2026-01-05 10:00'; taken as "
     "UTC where they name no zone"),
    (["2026-01-05 10:00:00.1234567"], None, "'2026-01-05 10:00:00.1234567' is finer than the microseconds of a "
     "timestamp; nanoseconds: truncate would cut it"),
    (["2026-01-05 10:00:00.1234560Z"], "timestamp", "all values (1) are times, such as "
     "'2026-01-05 10:00:00.1234560Z'"),
    (["2026-01-05T24:00:00"], None, "'2026-01-05T24:00:00' is not a time as it is taken (2026-01-31 10:00:00)"),
    (["10:00", "T10:00:00"], None, "'10:00' is a time of day without a date"),
    (["2026-01-05", "soon"], None, "1 of 2 values are dates or times, but 'soon' is text; if it means null, a CSV "
     "source can have options: {nullValue: \"soon\"}"),
    (["1", "2", "NULL"], None, "2 of 3 values are numbers, but 'NULL' is text; if it means null, a CSV source can "
     "have options: {nullValue: \"NULL\"}"),
    (["1", "N/A", "?"], None, "1 of 3 values are numbers, but 'N/A' is text"),
    (["", "1"], None, "1 of 2 values are numbers, but '' is blank, and only null converts"),
    ([" "], None, "' ' is blank, and only null converts"),
    (["Ada", "Bob"], None, "'Ada' is text"),
    ([None], None, "no value but null was looked at"),
    ([], None, "no value but null was looked at"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "expected", "reason"), TYPES)
def test_a_type_is_proposed_for_what_converts_whole(
    values: list[str | None], expected: str | None, reason: str
) -> None:
    found = propose_type(pa.array(values, pa.string()))

    assert (found.type, found.reason) == (expected, reason)
    assert (found.looked_at, found.nulls) == (len(values), values.count(None))


ARRAYS = [
    pa.chunked_array([["1"], ["2", None]]),
    pa.array(["1", "2", None], pa.large_string()),
    pa.array(["1", "2", None]).dictionary_encode(),
    pa.array(["1", "2", None]).cast(pa.string_view()),
]


@pytest.mark.parametrize("values", ARRAYS, ids=lambda values: str(values.type))
def test_every_kind_of_text_array_is_taken(values: pa.Array | pa.ChunkedArray) -> None:
    reason = "all values (2) are whole numbers, from 1 to 2"
    expected = Proposal(type="bigint", looked_at=3, nulls=1, reason=reason, examples=("1", "2"))
    assert propose_type(values) == expected


def test_a_column_that_is_not_text_has_no_proposal() -> None:
    assert propose_type(pa.array([1, None])) == Proposal(
        type=None, looked_at=2, nulls=1, reason="it is int64, not text"
    )


SEEDS = [
    "0", "-0", "+5", "12", " 5\t", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "1.5", "-.5",
    "5.", "12345678901234567.25", "1e5", "-2.5E-7", "1.7976931348623157e308", "4.9e-324", "NaN", "inf", "-Infinity",
    "true", "FALSE", "2026-01-05", "2026-1-5", "0001-01-01", "9999-12-31", "2024-02-29", "2026-01-05T10:00:00Z",
    "2026-01-05 1:2:3", "2026-01-05T10", "2026-01-05 10:00:00.123456", "2026-01-05 10:00:00.5", "1582-10-10 00:00",
    "2026-01-05 10:00:00+0100", "2026-01-05 10:00:00 -05:30", "2026-01-05T23:59:59.9 UTC", "2026-01-05T10:00+14",
    "0001-01-01 00:00:00Z", "2026-01-05 10:00-17:59",
]  # fmt: skip


def test_what_is_proposed_is_taken_by_the_cast() -> None:
    """Seeds with one or two characters changed, each as a column of its own."""
    texts = list(dict.fromkeys([*SEEDS, *_mutate(SEEDS, fifth_of(6000))]))
    kinds = {text: kind for text in texts if (kind := propose_type(pa.array([text])).type)}
    assert len(kinds) > fifth_of(500)
    values = {text: cast_text(pa.array([text]), parse_type(kind)).values[0].as_py() for text, kind in kinds.items()}
    assert [
        (text, kinds[text], value) for text, value in values.items() if not _is_same(text, kinds[text], value)
    ] == []


def _mutate(seeds: Sequence[str], count: int) -> list[str]:
    chance = random.Random(5)
    texts = []
    for _ in range(count):
        text = list(chance.choice(seeds))
        for _ in range(chance.randint(1, 2)):
            place = chance.randrange(len(text) + 1)
            text[place : place + chance.randint(0, 1)] = chance.choice([*"0123456789-+.:eETZ _dxf,", ""])
        texts.append("".join(text))
    return texts


def _is_same(text: str, kind: str, value: Any) -> bool:
    """Compare with Python's reading of the text."""
    bare = text.strip()
    if kind == "bigint":
        return bool(value == int(bare))
    if kind == "double":
        return value == float(bare) or (value != value and bare.lower() == "nan")
    if kind.startswith("decimal"):
        return bool(value == Decimal(bare))
    if kind == "boolean":
        return value is (bare.lower() == "true")
    if kind == "date":
        return bool(value == date(*map(int, bare.split("-"))))
    return value is not None
