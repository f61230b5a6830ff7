"""The footer is found in the last bytes alone."""

import pyarrow as pa
import pytest

from lakewriter.encode.parquet_footer import Tail, list_leaf_columns, read_column_statistics
from lakewriter.spec.encodings import ParquetEncoding
from tests.encode.files import written

ROWS = pa.RecordBatch.from_pydict({"n": list(range(20_000))})
DATA = written(ParquetEncoding(), ROWS.schema, [ROWS], 20_000)


@pytest.mark.parametrize("piece", [1, 100, 8192, len(DATA)])
def test_tail_metadata(piece: int) -> None:
    tail = Tail(limit=2000)
    for start in range(0, len(DATA), piece):
        tail.write(DATA[start : start + piece])
    metadata = tail.metadata()
    assert metadata is not None
    assert (metadata.num_rows, metadata.num_row_groups) == (20_000, 1)


def test_tail_too_short_for_the_footer() -> None:
    tail = Tail(limit=50)
    for start in range(0, len(DATA), 10):
        tail.write(DATA[start : start + 10])
    assert tail.metadata() is None


def test_leaf_columns_are_those_of_a_file() -> None:
    items = [{"sku": "a", "count": 1}]
    rows = pa.RecordBatch.from_pydict({"n": [1], "at": [{"x": 1.5, "y": {"z": True}}], "items": [items]})
    footer = Tail()
    footer.write(written(ParquetEncoding(), rows.schema, [rows], 1))
    metadata = footer.metadata()
    assert metadata is not None
    assert list_leaf_columns(rows.schema) == tuple(read_column_statistics(metadata))
    assert list_leaf_columns(rows.schema)[:3] == ("n", "at.x", "at.y.z")


def test_leaf_columns_of_a_schema_that_pyarrow_cannot_write() -> None:
    assert list_leaf_columns(pa.schema({"n": pa.int64(), "span": pa.month_day_nano_interval()})) == ()
