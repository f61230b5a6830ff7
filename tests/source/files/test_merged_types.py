"""Columns whose types differ between Parquet files: one type that holds the values of all, or a refusal."""

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.errors import SchemaIncompatibleError
from lakewriter.source.files.file_source import open_files
from lakewriter.spec.table_spec import Read
from tests.source.files.reading import in_turn
from tests.source.tables import table

D, NUMBERS = pa.decimal128, pa.list_
MERGED = [
    # the types in the files, the type of all, a value of each file, the values
    ([D(10, 1), D(10, 3)], D(12, 3), [Decimal("123456789.1"), Decimal("1.234")], ["123456789.100", "1.234"]),
    ([pa.int32(), pa.float32()], pa.float64(), [2147483647, 0.5], ["2147483647.0", "0.5"]),
    ([pa.int64(), D(4, 2)], D(21, 2), [2**62, Decimal("1.25")], ["4611686018427387904.00", "1.25"]),
    ([D(4, 2), pa.int32(), D(3, 0)], D(12, 2), [Decimal("1.25"), 7, Decimal(9)], ["1.25", "7.00", "9.00"]),
    ([pa.int8(), pa.int64()], pa.int64(), [1, 2**40], ["1", str(2**40)]),
    ([NUMBERS(pa.int32()), NUMBERS(pa.float32())], pa.list_(pa.field("element", pa.float64())), [[1], [0.5]],
     ["[1.0]", "[0.5]"]),
]  # fmt: skip
REFUSED = [
    # no decimal has so many digits; no double holds every bigint; text is no number
    ([D(38, 0), D(38, 3)], "decimal(38,0) in .* and decimal(38,3) in .*, and no type holds all values of both"),
    ([pa.int64(), pa.float64()], "bigint in .* and double in .*, and no type holds all values of both"),
    ([D(10, 2), pa.float64()], "decimal(10,2) in .* and double in"),
    ([pa.int32(), pa.string()], "int in .* and string in"),
]


def open_all(folder, kinds, values):
    for number, (kind, value) in enumerate(zip(kinds, values, strict=True)):
        pq.write_table(pa.table({"v": pa.array([value], kind)}), folder / f"{number}.parquet")
    return open_files(table(), Read(format="parquet", path=str(folder)), {}, in_turn, aside=False)


@pytest.mark.parametrize(("kinds", "expected", "values", "texts"), MERGED)
def test_one_type_holds_all(tmp_path, kinds, expected, values, texts):
    opened = open_all(tmp_path, kinds, values)
    assert opened.look.schema.field("v").type == expected
    batches = opened.source.read_all(opened.cut(1 << 30, in_turn))
    assert [str(value) for batch in batches for value in batch.column(0).to_pylist()] == texts
    assert any("column 'v" in note and ": read as " in note for note in opened.notes)


@pytest.mark.parametrize(("kinds", "message"), REFUSED)
def test_no_type_holds_all(tmp_path, kinds, message):
    pattern = message.replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(SchemaIncompatibleError, match=pattern):
        open_all(tmp_path, kinds, [None] * len(kinds))
