"""A Parquet file of one column that is taken apart while pyarrow writes it."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.encode.column_file import ColumnFile, find_start, read_indexes

ROWS = 30_000
TEXT = pa.table({"text": [f"{number:040d}" for number in range(ROWS)]})
NESTED = pa.table({"of": [{"few": n % 3, "list": [str(n)] * (n % 4)} for n in range(ROWS)]})
NONE = pa.table({"none": pa.nulls(10, pa.string())})


def write(table, file, **options):
    options = {"compression": "none", "store_schema": False, "write_page_index": True} | options
    with pq.ParquetWriter(file, table.schema, data_page_size=10_000, **options) as writer:
        writer.write_table(table, row_group_size=table.num_rows)


def take_apart(data, sizes):
    """The pages that come of ``data`` in pieces of ``sizes`` in turn, the row group, and what follows the pages."""
    taken, place, turn = [], 0, 0
    file = ColumnFile(lambda begin, header, page: taken.append((begin, len(header.encode()), header.type, page)))
    while place < len(data):
        step = sizes[turn % len(sizes)]
        assert file.write(data[place : place + step]) == len(data[place : place + step])
        place, turn = place + step, turn + 1
    assert file.tell() == len(data)
    return taken, *file.finish()


@pytest.mark.parametrize("sizes", [[1 << 30], [1000], [7, 1, 30_000], [4, 20_000], [5, 12_345]], ids=str)
@pytest.mark.parametrize("table", [TEXT, NESTED, NONE], ids=["text", "nested", "none"])
def test_pages_whatever_the_pieces(table, sizes):
    whole = io.BytesIO()
    write(table, whole)
    data = whole.getvalue()
    taken, group, tail = take_apart(data, sizes)
    # The pages follow each other without a gap, and what they hold is the file's.
    assert taken[0][0] == 4
    for (begin, size, _, page), following in zip(taken, [*(each[0] for each in taken[1:]), None], strict=True):
        assert data[begin + size : begin + size + len(page)] == page
        assert following in (begin + size + len(page), None)
    assert bytes(tail) == data[-len(tail) :]
    for chunk in group.columns:
        _, offsets = read_indexes(tail, len(data), chunk)
        assert offsets is not None
        end = find_start(chunk) + chunk.meta_data.total_compressed_size
        own = [begin for begin, _, kind, _ in taken if find_start(chunk) <= begin < end and kind == 0]
        assert own == [location.offset for location in offsets.page_locations]


def test_hold_one_page():
    """Of a column without a dictionary, whose pages pyarrow writes as it makes them."""
    held = []
    file = ColumnFile(lambda *_: held.append(len(file._held)))
    write(TEXT, file, use_dictionary=False)
    assert len(held) > 20
    assert max(held) == 0


def test_what_the_taker_raises_comes_as_it_is():
    class RefusedError(Exception):
        pass

    calls = []

    def refuse(*page):
        calls.append(page)
        if len(calls) == 3:
            raise RefusedError("by the sink")

    file = ColumnFile(refuse)
    write(TEXT, file, use_dictionary=False)
    with pytest.raises(RefusedError, match="by the sink"):
        file.finish()
    assert len(calls) == 3


def test_pages_that_the_footer_does_not_know():
    whole = io.BytesIO()
    write(TEXT, whole, use_dictionary=False)
    first, *_ = take_apart(whole.getvalue(), [1 << 30])[0]
    begin, size, _, page = first
    doubled = whole.getvalue()[: begin + size + len(page)] + whole.getvalue()[4:]
    with pytest.raises(ValueError, match=r"pages of \d+ bytes: expected \d+, which were written"):
        take_apart(doubled, [1 << 30])
