"""Airbyte's file formats: every documented setting and default, what is blank, and what is refused."""

import pytest

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.spec.encodings import AvroEncoding, ParquetEncoding, TextEncoding
from lakewriter.spec.specification import MIB
from tests.dialects.airbyte_lakes import from_vendor, key, lake, problems
from tests.support.narrow import expect

FORMATS = [
    # the vendor's format, what it means here, the extension
    ({"format_type": "CSV"}, TextEncoding(kind="csv", gzip=True), ".csv.gz"),
    ({"format_type": "CSV", "compression": {"compression_type": "No Compression"}},
     TextEncoding(kind="csv", gzip=False), ".csv"),
    ({"format_type": "JSONL"}, TextEncoding(kind="jsonl", gzip=True), ".jsonl.gz"),
    ({"format_type": "JSONL", "compression": {"compression_type": "GZIP"}}, TextEncoding(kind="jsonl", gzip=True),
     ".jsonl.gz"),
    ({"format_type": "JSONL", "compression": {"compression_type": "No Compression"}},
     TextEncoding(kind="jsonl", gzip=False), ".jsonl"),
    ({"format_type": "Avro"}, AvroEncoding(codec="null"), ".avro"),
    ({"format_type": "Avro", "compression_codec": {"codec": "no compression"}}, AvroEncoding(codec="null"), ".avro"),
    ({"format_type": "Avro", "compression_codec": {"codec": "Deflate"}}, AvroEncoding(codec="deflate", level=0),
     ".avro"),
    ({"format_type": "Avro", "compression_codec": {"codec": "bzip2"}}, AvroEncoding(codec="bzip2"), ".avro"),
    ({"format_type": "Avro", "compression_codec": {"codec": "xz"}}, AvroEncoding(codec="xz", level=6), ".avro"),
    ({"format_type": "Avro", "compression_codec": {"codec": "zstandard"}}, AvroEncoding(codec="zstandard", level=3),
     ".avro"),
    ({"format_type": "Avro", "compression_codec": {"codec": "zstandard", "compression_level": -5,
                                                   "include_checksum": True}},
     AvroEncoding(codec="zstandard", level=-5, checksum=True), ".avro"),
    ({"format_type": "Avro", "compression_codec": {"codec": "snappy"}}, AvroEncoding(codec="snappy"), ".avro"),
    ({"format_type": "Parquet"},
     ParquetEncoding(codec="uncompressed", page_bytes=MIB, dictionary_page_bytes=MIB, dictionary=True), ".parquet"),
    ({"format_type": "Parquet", "compression_codec": "ZSTD", "page_size_kb": 8, "dictionary_page_size_kb": 16,
      "dictionary_encoding": False},
     ParquetEncoding(codec="zstd", level=3, page_bytes=8192, dictionary_page_bytes=16384, dictionary=False),
     ".parquet"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "encoding", "extension"), FORMATS)
@pytest.mark.parametrize("kind", ["airbyte-s3", "heropixel-s3"])
def test_format(tmp_path, kind, form, encoding, extension):
    file = lake(tmp_path, {"format": form, "s3_path_format": "a/"}, kind=kind)
    assert load_spec(file).encoding == encoding
    assert key(file) == f"data_output_path/a/0{extension}"


def test_block_size_is_the_row_group(tmp_path):
    assert load_spec(lake(tmp_path, {"format": {"format_type": "Parquet"}})).limits.row_group_bytes == 128 * MIB
    own = {"format_type": "Parquet", "block_size_mb": 7, "max_padding_size_mb": 4}
    spec = load_spec(lake(tmp_path, {"format": own}))
    assert spec.limits.row_group_bytes == 7 * MIB
    assert spec.warnings == ("max_padding_size_mb has no effect on S3, where row groups need no alignment.",)


BLANK = [
    # a format with what counts as absent, the same without it
    ({"format_type": "CSV", "flattening": "", "compression": None}, {"format_type": "CSV"}),
    ({"format_type": "JSONL", "compression": {}}, {"format_type": "JSONL"}),
    ({"format_type": "JSONL", "compression": {"compression_type": ""}}, {"format_type": "JSONL"}),
    ({"format_type": "Avro", "compression_codec": {}}, {"format_type": "Avro"}),
    ({"format_type": "Avro", "compression_codec": ""}, {"format_type": "Avro"}),
    ({"format_type": "Avro", "compression_codec": {"codec": "xz", "compression_level": None}},
     {"format_type": "Avro", "compression_codec": {"codec": "xz"}}),
    ({"format_type": "Parquet", "compression_codec": "", "block_size_mb": None, "page_size_kb": ""},
     {"format_type": "Parquet"}),
]  # fmt: skip


@pytest.mark.parametrize(("blank", "absent"), BLANK)
@pytest.mark.parametrize("in_file", [True, False])
def test_blank_is_absent(tmp_path, blank, absent, in_file):
    """In the vendor's file and in lake.yaml."""
    file = from_vendor(tmp_path, {"format": blank}) if in_file else lake(tmp_path, {"format": blank})
    found = load_spec(file)
    expected = load_spec(lake(tmp_path, {"format": absent}))
    assert (found.encoding, found.envelope, found.limits) == (expected.encoding, expected.envelope, expected.limits)


CODECS = [
    # as both documents write them, as the configuration does
    ("No compression", "null"), ("deflate", "deflate"), ("Deflate", "deflate"), ("BZIP2", "bzip2"),
]  # fmt: skip


@pytest.mark.parametrize(("codec", "expected"), CODECS)
def test_codec_in_any_case(tmp_path, codec, expected):
    form = {"format_type": "Avro", "compression_codec": {"codec": codec}}
    assert expect(AvroEncoding, load_spec(lake(tmp_path, {"format": form})).encoding).codec == expected


def test_codec_of_the_documents_in_the_vendors_file(tmp_path):
    form = {"format_type": "Avro", "compression_codec": {"codec": "deflate", "compression_level": 9, "future": 1}}
    spec = load_spec(from_vendor(tmp_path, {"format": form}))
    assert spec.encoding == AvroEncoding(codec="deflate", level=9)
    assert spec.warnings == ("s3.json:1: format.compression_codec.future is not known here and has no effect.",)


def test_compression_of_text_is_no_codec(tmp_path):
    """It is refused as LZO is; to leave it out would write another file than was asked for."""
    form = {"format_type": "Avro", "compression_codec": {"codec": "GZIP"}}
    assert problems(from_vendor(tmp_path, {"format": form})) == [
        "format.compression_codec.codec: 'GZIP' is not allowed; expected 'no compression', 'Deflate', "
        "'bzip2', 'xz', 'zstandard' or 'snappy'; did you mean 'bzip2'?"
    ]


PROBLEMS = [
    # a format, its problem
    ({"format": {"format_type": "Parquet", "compression_codec": "LZO"}}, "destination.format.compression_codec: "
     "'LZO': no Parquet writer or reader here has LZO; take 'SNAPPY' or 'LZ4' for speed, or 'ZSTD'."),
    ({"format": {"format_type": "Parquet", "compression_codec": "LZ5"}}, "destination.format.compression_codec: 'LZ5' "
     "is not allowed; expected 'UNCOMPRESSED', 'SNAPPY', 'GZIP', 'BROTLI', 'LZ4' or 'ZSTD'; did you mean 'LZ4'?"),
    ({"format": {"format_type": "XML"}}, "destination.format.format_type: 'XML' is not allowed; expected 'CSV', "
     "'JSONL', 'Avro' or 'Parquet'."),
    ({"format": {"format_type": "CSV", "flatening": "x"}}, "destination.format.flatening: unknown key, with value "
     "'x'; did you mean 'flattening'?"),
    ({"format": {"format_type": "CSV", "flattening": "Deep"}}, "destination.format.flattening: 'Deep' is not allowed; "
     "expected 'No flattening' or 'Root level flattening'."),
    ({"format": {"format_type": "Avro", "compression_codec": {"codec": "xz", "compression_level": 10}}},
     "destination.format.compression_codec.compression_level: 10: expected at most 9."),
    ({"format": {"format_type": "Avro", "compression_codec": {"codec": "zstandard", "compression_level": -6}}},
     "destination.format.compression_codec.compression_level: -6: expected at least -5."),
    ({"format": {"format_type": "Avro", "compression_codec": "SNAPPY"}}, "destination.format.compression_codec: "
     "'SNAPPY': expected a mapping."),
    ({"format": {"format_type": "Avro", "compression_codec": {"codec": "deflate", "level": 1}}},
     "destination.format.compression_codec.level: unknown key, with value 1; known keys: codec, "
     "compression_level."),
    ({"format": {"format_type": "Avro", "compression_codec": {"compression_level": 1}}},
     "destination.format.compression_codec.codec: is required; expected 'no compression', 'Deflate', 'bzip2', 'xz', "
     "'zstandard' or 'snappy'."),
]  # fmt: skip


@pytest.mark.parametrize(("over", "expected"), PROBLEMS)
def test_problem(tmp_path, over, expected):
    assert problems(lake(tmp_path, over)) == [expected]
