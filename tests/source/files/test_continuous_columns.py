"""Columns that are known before files are looked at: their order, names and types, and what is new."""

import pyarrow as pa
import pytest

from lakewriter.source.files.file_source import join_columns

INT, LONG, TEXT, DOUBLE = pa.int32(), pa.int64(), pa.string(), pa.float64()


def fields(**kinds: pa.DataType) -> pa.Schema:
    return pa.schema(list(kinds.items()))


JOINED = [
    # found, known, whether types follow from values, all columns, their places
    (fields(a=TEXT), fields(a=TEXT), True, fields(a=TEXT), (0,)),
    (fields(c=TEXT, b=TEXT), fields(a=TEXT, b=TEXT), True, fields(a=TEXT, b=TEXT, c=TEXT), (-1, 1, 0)),
    (fields(a=LONG), fields(a=DOUBLE), True, fields(a=DOUBLE), (0,)),
    (fields(a=TEXT), fields(a=LONG), True, fields(a=LONG), (0,)),
    (fields(a=INT), fields(a=LONG), False, fields(a=LONG), (0,)),
    (fields(a=LONG), fields(a=INT), False, fields(a=LONG), (0,)),
    # Headers whose names differ by case, unless a file has two of them.
    (fields(ID=TEXT), fields(id=TEXT), True, fields(id=TEXT), (0,)),
    (fields(ID=TEXT, id=TEXT), fields(id=TEXT), True, fields(id=TEXT, ID=TEXT), (1, 0)),
    (fields(ID=TEXT), fields(id=TEXT, Id=TEXT), True, fields(id=TEXT, Id=TEXT, ID=TEXT), (-1, -1, 0)),
    # Inside of structs and lists.
    (fields(s=pa.struct({"x": LONG, "y": TEXT})), fields(s=pa.struct({"x": DOUBLE, "z": TEXT})), True,
     fields(s=pa.struct({"x": DOUBLE, "z": TEXT, "y": TEXT})), (0,)),
    (fields(l=pa.list_(pa.field("element", LONG))), fields(l=pa.list_(pa.field("element", DOUBLE))), True,
     fields(l=pa.list_(pa.field("element", DOUBLE))), (0,)),
    (fields(), fields(a=LONG), True, fields(a=LONG), (-1,)),
]  # fmt: skip


@pytest.mark.parametrize(("found", "known", "by_values", "expected", "places"), JOINED)
def test_known_columns_come_first(found, known, by_values, expected, places):
    joined = join_columns(found, known, by_values=by_values)
    assert (joined.schema, joined.indexes) == (expected, places)
