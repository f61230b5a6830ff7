"""``readers`` of a lake.yaml: the encodings that follow, and what is said of readers that do not fit."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.encodings import ParquetEncoding

D, L, P, F = "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"
OURS = {"type": "lakewriter-s3", "location": "s3://acme-lake/production", "region": "us-east-1"}
SUPAFLOW = {"type": "supaflow-s3", "s3_bucket_name": "acme-lake", "bucket_region": "us-east-1"}
AIRBYTE = {"type": "airbyte-s3", "s3_bucket_name": "acme-lake", "s3_bucket_path": "a", "s3_bucket_region": "us-east-1"}


def read(folder: Path, destination: dict[str, Any], **top: Any) -> Any:
    table = {"table": "orders", "schema": "public", "read": {"format": "csv", "path": "a.csv"}}
    content = {"pipeline": "orders", "destination": destination, "tables": [table], **top}
    path = folder / "lake.yaml"
    path.write_text(yaml.safe_dump(content), "utf-8")
    return load_spec(path).encoding


ENCODINGS: list[tuple[dict[str, Any], dict[str, Any], set[str]]] = [
    # destination, keys at the top, encodings besides dictionary and plain
    (OURS, {}, set()),
    (OURS, {"readers": []}, set()),
    (OURS, {"readers": ["athena", "spark3", "duckdb"]}, {D, P}),
    (OURS, {"readers": ["pyarrow", "trino"]}, {D, L, P, F}),
    (OURS, {"readers": ["athena", "snowflake"]}, set()),
    (OURS | {"compression": "none"}, {"readers": ["athena", "spark4"]}, {D}),
    (OURS | {"catalog": "iceberg"}, {"readers": ["athena", "spark4"]}, set()),
    (OURS | {"catalog": "iceberg"}, {"readers": ["athena", "trino"]}, {D, P}),
    (OURS | {"catalog": "glue"}, {"readers": ["athena", "spark4"]}, {D, P}),
    # What the vendor writes, until readers are named.
    (SUPAFLOW, {}, set()),
    (SUPAFLOW, {"delta_encodings": True}, {D, L}),
    (SUPAFLOW, {"readers": ["redshift", "hive"]}, set()),
    (SUPAFLOW, {"readers": ["spark4", "athena"]}, {D, P}),
    (AIRBYTE | {"format": {"format_type": "Parquet"}}, {}, set()),
    (AIRBYTE | {"format": {"format_type": "Parquet"}}, {"readers": ["trino"]}, {D, L, P, F}),
]


@pytest.mark.parametrize(("destination", "top", "encodings"), ENCODINGS)
def test_encodings(tmp_path, destination, top, encodings):
    encoding = read(tmp_path, destination, **top)
    assert isinstance(encoding, ParquetEncoding)
    assert encoding.value_encodings == encodings


REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    # destination, keys at the top, what is said
    (OURS, {"readers": ["duckdb", "redshift"]},
     "readers: 'redshift' is not known to read Parquet files with zstd; expected one of gzip, snappy, uncompressed. "
     "Set the compression under destination to one of these, or leave redshift out."),
    (OURS | {"compression": "lz4"}, {"readers": ["trino"]},
     "readers: 'trino' is not known to read Parquet files with lz4; expected one of gzip, snappy, "),
    (OURS | {"format": "csv"}, {"readers": ["athena"]},
     "readers: is for Parquet files, and this destination writes csv."),
    (AIRBYTE | {"format": {"format_type": "Avro"}}, {"readers": ["athena"]},
     "readers: is for Parquet files, and this destination writes avro."),
    (SUPAFLOW, {"readers": ["athena"], "delta_encodings": True},
     "'delta_encodings' and 'readers' both choose encodings; expected one of them"),
    (OURS, {"readers": ["presto"]}, "readers.0: 'presto' is not allowed; expected 'athena', 'bigquery', "),
]  # fmt: skip


@pytest.mark.parametrize(("destination", "top", "said"), REFUSED)
def test_readers_that_do_not_fit(tmp_path, destination, top, said):
    with pytest.raises(SpecInvalidError) as caught:
        read(tmp_path, destination, **top)
    assert said in str(caught.value)
