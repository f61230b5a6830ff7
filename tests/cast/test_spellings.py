"""Each text as each spelling reads it: the table beside this file.

A line has a text and its values by spelling and type, "-" for a text that nothing takes. They were printed by the
functions that the files' casts and the records of vendors had each for itself, before one table replaced them; only
numbers closer to zero than any double were zero in records, and are beyond it now, as files have it.
"""

from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakewriter.cast.exact_text import convert_text
from lakewriter.cast.kind_values import ARROW, parse_text
from lakewriter.cast.spelling_table import LENIENT, RFC_3339, MisfitError
from lakewriter.cast.sql_types import parse_type
from lakewriter.documents.value_changes import NULLED
from lakewriter.documents.values import decode_texts
from lakewriter.spec.collection import Kind

DECLARED = ["boolean", "bigint", "double", "decimal(20,4)", "date", "timestamp", "timestamp_ntz"]
KINDS = [Kind.BOOLEAN, Kind.TEXT_INTEGER, Kind.TEXT_NUMBER, Kind.DATE, Kind.TIMESTAMP, Kind.LOCAL_TIMESTAMP, Kind.TIME,
         Kind.LOCAL_TIME]  # fmt: skip
COLUMNS = [("STRICT", kind) for kind in DECLARED]
COLUMNS += [(spelling, kind.value) for spelling in ("RFC_3339", "LENIENT") for kind in KINDS]


def read_table() -> dict[str, dict[tuple[str, str], str]]:
    table: dict[str, dict[tuple[str, str], str]] = {}
    for line in Path(__file__).with_name("spellings.tsv").read_text().split("\n")[:-1]:
        text, *groups = line.split("\t")
        split = (group.split(": ", 1) for group in groups if group != "-")
        cells = [(spelling, *cell.split("=", 1)) for spelling, cells in split for cell in cells.split(", ")]
        table[text] = {(spelling, kind): value for spelling, kind, value in cells}
    return table


TABLE = read_table()


def read(spelling: str, kind: str, text: str) -> Any:
    if spelling == "STRICT":
        return convert_text(text, parse_type(kind))[0]
    return parse_text(Kind(kind), text, LENIENT if spelling == "LENIENT" else RFC_3339)


def show(value: Any) -> str:
    if isinstance(value, tuple):
        return show(value[0]) + (" cut" if value[1] else "")
    if isinstance(value, datetime):
        return value.isoformat()
    return repr(value) if isinstance(value, float) else str(value)


@pytest.mark.parametrize(("spelling", "kind"), COLUMNS)
def test_texts(spelling: str, kind: str) -> None:
    different = {}
    for text, cells in TABLE.items():
        try:
            value = show(read(spelling, kind, text))
        except MisfitError as misfit:
            # The types of ``columns:`` make no difference between the two.
            value = "beyond" if misfit.is_beyond and spelling != "STRICT" else "-"
        if value != cells.get((spelling, kind), "-"):
            different[text] = value
    assert different == {}


ZONES = ("", "Z", "+01:30", "+18:00", "+18:30", "-18:59")
USUAL = [f"{day}{clock}{zone}" for day in ("1000-01-01", "2021-02-30", "9999-12-31")
         for clock in ("", "T03:04:05", " 23:59:59.999999", "T24:00:00", "T23:59:60") for zone in ZONES]  # fmt: skip
_BITS = dict.fromkeys((Kind.TIMESTAMP, Kind.LOCAL_TIMESTAMP, Kind.TIME, Kind.LOCAL_TIME), pa.int64())
_BITS[Kind.DATE] = pa.int32()
IN_COLUMNS = [(spelling, kind) for spelling in ("LENIENT", "RFC_3339") for kind in KINDS
              if (spelling, kind) != ("RFC_3339", Kind.LOCAL_TIMESTAMP)]  # fmt: skip


@pytest.mark.parametrize(("spelling", "kind"), IN_COLUMNS)
def test_a_text_in_a_column_is_read_as_alone(spelling: str, kind: Kind) -> None:
    """Arrow casts the texts of usual forms, wherever they are; no collection has local timestamps."""
    texts = [*TABLE, *USUAL, "03:04:05", "23:59:59.5Z", "5", "+5", "1e400", "1e-400", "+Infinity", "NaN"]
    alone, reasons = list[Any](), dict[int, str]()
    for number, text in enumerate(texts):
        try:
            alone.append(parse_text(kind, text, LENIENT if spelling == "LENIENT" else RFC_3339)[0])
        except MisfitError as misfit:
            alone.append(None)
            reasons[number] = str(misfit)
    decoded = decode_texts(kind, pa.array(texts), LENIENT if spelling == "LENIENT" else RFC_3339)
    # As text, since nothing equals NaN; Python has no days before the year 1.
    whole = [pa.array(alone, ARROW[kind]), decoded.array]
    shown = [[str(value) for value in array.view(_BITS.get(kind, array.type)).to_pylist()] for array in whole]
    assert shown[0] == shown[1]
    assert {fault.position: fault.message for fault in decoded.faults if fault.change == NULLED} == reasons


def test_the_table_has_values_of_every_column() -> None:
    taken = {column: sum(column in cells for cells in TABLE.values()) for column in COLUMNS}
    assert [column for column in COLUMNS if taken[column] < (2 if "boolean" in column else 5)] == []
    assert len(TABLE) == 559


def test_digits_that_python_does_not_convert() -> None:
    zeros = "0" * 5000
    assert read("STRICT", "decimal(20,4)", f"{zeros}1.5{zeros}") == Decimal("1.5")
    for spelling, kind in (("STRICT", "bigint"), ("RFC_3339", "text_integer"), ("LENIENT", "text_integer")):
        assert show(read(spelling, kind, f"{zeros}7")) == "7"
        with pytest.raises(MisfitError) as raised:
            read(spelling, kind, "9" * 5000)
        assert raised.value.is_beyond
