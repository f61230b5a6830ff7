"""Files whose pages were compressed apart: byte for byte what pyarrow reads back, and nothing else is ever read."""

import io
import random
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.encode.parquet_pages import Column, PageWriter
from lakewriter.encode.parquet_structures import FileMetaData, OffsetIndex, PageHeader
from lakewriter.spec.encodings import ParquetEncoding
from tests.encode.files import MemorySink, numbers, opened, written
from tests.encode.test_parquet import FLAT, FLAT_BATCH, NESTED, NESTED_BATCH

MIXED = pa.RecordBatch.from_pydict(
    {
        "id": pa.array(range(5000), pa.int64()),
        "few": pa.array([f"n{n % 5}" for n in range(5000)]),
        "none": pa.nulls(5000, pa.string()),
        "list": pa.array([list(range(n % 4)) for n in range(5000)]),
        "wide": pa.array([f"{n * n % 977:050d}" for n in range(5000)]),
    }
)
SOURCES = {"flat": (FLAT, FLAT_BATCH), "nested": (NESTED, NESTED_BATCH), "mixed": (MIXED.schema, MIXED)}


def footer_of(data):
    size = int.from_bytes(data[-8:-4], "little")
    return FileMetaData.decode(data[-8 - size : -8])[0]


def pages_of(data, chunk):
    meta = chunk.meta_data
    place = meta.data_page_offset if meta.dictionary_page_offset is None else meta.dictionary_page_offset
    end = place + meta.total_compressed_size
    while place < end:
        header, size = PageHeader.decode(data[place : place + 100_000])
        yield place, size, header, data[place + size : place + size + header.compressed_page_size]
        place += size + header.compressed_page_size
    assert place == end


@pytest.mark.parametrize("source", SOURCES)
def test_structures_lose_nothing(source):
    """A footer and the page indexes of pyarrow's writer, decoded and encoded, are the same bytes."""
    schema, batch = SOURCES[source]
    sink = io.BytesIO()
    table = pa.Table.from_batches([batch], schema=schema)
    pq.write_table(table, sink, write_page_index=True, write_page_checksum=True, row_group_size=2)
    data = sink.getvalue()
    footer = footer_of(data)
    content = footer.encode()
    assert data[-8 - len(content) : -8] == content
    for group in footer.row_groups[:3]:
        for chunk in group.columns:
            place, size = chunk.offset_index_offset, chunk.offset_index_length
            assert OffsetIndex.decode(data[place : place + size])[0].encode() == data[place : place + size]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "zstd", "uncompressed"])
@pytest.mark.parametrize("source", SOURCES)
def test_sizes_offsets_and_checksums(source, codec):
    """As parquet-format has them: thrift's PageHeader, ColumnMetaData, RowGroup and PageLocation."""
    schema, batch = SOURCES[source]
    data = written(ParquetEncoding(codec=codec, page_bytes=4096), schema, [batch, batch], batch.num_rows)
    footer = footer_of(data)
    assert (footer.num_rows, len(footer.row_groups)) == (2 * batch.num_rows, 2)
    for number, group in enumerate(footer.row_groups):
        first = footer.row_groups[number].columns[0].meta_data
        start = min(filter(None, (first.dictionary_page_offset, first.data_page_offset)))
        assert (group.ordinal, group.file_offset, group.num_rows) == (number, start, batch.num_rows)
        assert group.total_compressed_size == sum(c.meta_data.total_compressed_size for c in group.columns)
        assert group.total_byte_size == sum(c.meta_data.total_uncompressed_size for c in group.columns)
        for chunk in group.columns:
            found = list(pages_of(data, chunk))
            for _, _, header, page in found:
                assert header.crc & 0xFFFFFFFF == zlib.crc32(page)
                plain = zlib.decompress(page, 31) if codec == "gzip" else page
                assert codec in ("snappy", "zstd") or header.uncompressed_page_size == len(plain)
            assert chunk.meta_data.total_uncompressed_size == sum(
                size + header.uncompressed_page_size for _, size, header, _ in found
            )
            place, length = chunk.offset_index_offset, chunk.offset_index_length
            locations = OffsetIndex.decode(data[place : place + length])[0].page_locations
            assert [(each.offset, each.compressed_page_size) for each in locations] == [
                (place, size + len(page)) for place, size, header, page in found if header.type == 0
            ]
    assert opened(data).read().to_pylist() == 2 * batch.to_pylist()


def test_no_page_of_another_codec():
    found = {
        header.type
        for chunk in footer_of(gzipped()).row_groups[0].columns
        for _, _, header, _ in pages_of(gzipped(), chunk)
    }
    assert found == {0, 2}
    assert all(
        page[:3] == b"\x1f\x8b\x08"
        for group in footer_of(gzipped()).row_groups
        for chunk in group.columns
        for *_, page in pages_of(gzipped(), chunk)
    )


def gzipped():
    return written(ParquetEncoding(page_bytes=4096), MIXED.schema, [MIXED, MIXED], 5000)


@pytest.mark.parametrize("seed", range(40))
def test_flipped_bytes_are_refused_and_never_misread(seed, tmp_path):
    """By a reader that verifies the pages' checksums."""
    data, draw = bytearray(gzipped()), random.Random(seed)
    footer = footer_of(data)
    pages = [each for group in footer.row_groups for chunk in group.columns for each in pages_of(bytes(data), chunk)]
    place, size, _, page = draw.choice(pages)
    data[place + size + draw.randrange(10, len(page))] ^= 1 << draw.randrange(8)
    file = tmp_path / "file.parquet"
    file.write_bytes(data)
    with pytest.raises(OSError, match="CRC checksum verification failed"):
        pq.read_table(file, page_checksum_verification=True)


def test_more_row_groups_than_an_ordinal_counts(monkeypatch):
    monkeypatch.setattr("lakewriter.encode.parquet_pages._MOST_ORDINALS", 2)
    data = written(ParquetEncoding(), numbers(1).schema, [numbers(10, n) for n in range(4)], 10)
    assert [group.ordinal for group in footer_of(data).row_groups] == [0, 1, None, None]
    assert opened(data).read().num_rows == 40


def test_pages_with_long_headers():
    """Bounds of a page are in its header where there is no page index: here they are longer than what is read first."""
    sink, out = io.BytesIO(), MemorySink()
    table = pa.table({"text": ["a" * 2000, "b" * 2000]})
    pq.write_table(table, sink, compression="none", store_schema=False, write_page_index=False)
    pages = PageWriter(out, memoryview(sink.getvalue()), gzip=True)
    pages.add(2, [Column(lambda file: file.write(sink.getvalue()), nested=False)])
    pages.finish()
    assert opened(out.getvalue()).read().equals(table)
