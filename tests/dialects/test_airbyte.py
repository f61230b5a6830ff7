"""Airbyte's and Hero Pixel's configuration: every documented field, default and variable, and what is refused."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from job.dialects.lake_yaml import load, load_spec
from job.errors import NameCollisionError, SpecInvalidError, TlsRequiredError
from job.layout import file_uuid
from job.spec import MIB, Encoding, Mode
from job.stream import AvroEncoding, TextEncoding

START = datetime(2021, 1, 1, 2, 3, 4, 56789, UTC)
BASE: dict[str, Any] = {
    "s3_bucket_name": "testing_bucket",
    "s3_bucket_path": "data_output_path",
    "s3_bucket_region": "us-east-1",
    "format": {"format_type": "CSV"},
}
TABLE = {"table": "users", "schema": "public", "read": {"format": "csv", "path": "a.csv"}}


def lake(folder: Path, over: dict[str, Any], *, kind: str = "airbyte-s3", **top: Any) -> Path:
    """A lake.yaml whose destination is the base with ``over`` laid over it."""
    destination = {key: value for key, value in ({"type": kind} | BASE | over).items() if value is not None}
    tables = {} if "source" in top else {"tables": [TABLE]}
    path = folder / "lake.yaml"
    path.write_text(yaml.safe_dump({"pipeline": "p", "destination": destination} | tables | top), "utf-8")
    return path


def key(file: Path, seq: int = 0) -> str:
    """The key of a file of the first table, for an attempt ``a`` that starts at ``START``."""
    return load_spec(file).tables[0].layout.bind(job_id="j", attempt="a", start=START).object_key(seq)


UUID = str(file_uuid("a", 0))
KEYS = [
    # path format, file name pattern, key behind the bucket path; the first is the documents' example
    (None, None, "public/users/2021_01_01_1609466584056_0.csv.gz"),
    ("${NAMESPACE}/${STREAM_NAME}/", None, "public/users/0.csv.gz"),
    # concatenated, not joined
    ("${STREAM_NAME}/foo/", "{part_number}{format_extension}", "users/foo/0.csv.gz"),
    ("${STREAM_NAME}/foo", "{part_number}{format_extension}", "users/foo0.csv.gz"),
    ("${HOUR}-${MINUTE}-${SECOND}-${MILLISECOND}/", None, "02-03-04-0056/0.csv.gz"),
    ("//a///${EPOCH}//", None, "a/1609466584056/0.csv.gz"),
    ("${UUID}/", None, f"{UUID}/0.csv.gz"),
    ("${SYNC_ID}/", None, "0/0.csv.gz"),
    ("a/", "{date}_{part_number}{format_extension}", "a/2021_01_01_0.csv.gz"),
    ("a/", "{date:yyyy_MM}_{part_number}{format_extension}", "a/2021_01_0.csv.gz"),
    ("a/", "{date:yyyy-MM-dd-HH-mm-ss}_{part_number}", "a/2021-01-01-02-03-04_0"),
    ("a/", "{timestamp}_{part_number}", "a/1609466584056_0"),
    ("a/", "{timestamp:millis}_{part_number}", "a/1609466584056_0"),
    ("a/", "{timestamp:micros}_{part_number}", "a/1609466584056789_0"),
    ("a/", "{timestamp:micro}_{part_number}", "a/1609466584056789_0"),
    ("a/", "{sync_id}_{part_number}{format_extension}", "a/0_0.csv.gz"),
    ("${EPOCH}/", "one{format_extension}", "1609466584056/one.csv.gz"),
]


@pytest.mark.parametrize(("path", "file", "expected"), KEYS)
def test_key(tmp_path, path, file, expected):
    found = key(lake(tmp_path, {"s3_path_format": path, "file_name_pattern": file}))
    assert found == f"data_output_path/{expected}"


def test_variables_work_in_the_bucket_path_and_the_constant_part_holds_the_control_objects(tmp_path):
    file = lake(tmp_path, {"s3_bucket_path": "/data/${YEAR}/x", "s3_path_format": "${STREAM_NAME}/"})
    assert key(file, 7) == "data/2021/x/users/7.csv.gz"
    assert load_spec(file).access.prefix == "data"


NAMES = [
    # namespace and stream of the source, the directory; NFKD without marks, then what S3 holds safe
    ("", "users", "users"),
    ("crème brûlée", "a b", "creme_brulee/a_b"),
    ("日本", "x#y%z", "__/x_y_z"),
    ("n", "a/b!_.*')(&$@=;:+,?-c", "n/a/b!_.*')(&$@=;:+,?-c"),
    ("ﬁ", "½", "fi/1_2"),
]


@pytest.mark.parametrize(("namespace", "stream", "expected"), NAMES)
def test_names_in_paths(tmp_path, namespace, stream, expected):
    file = lake(
        tmp_path,
        {"s3_path_format": "${NAMESPACE}/${STREAM_NAME}/"},
        tables=[TABLE | {"schema": namespace, "table": stream}],
    )
    assert key(file) == f"data_output_path/{expected}/0.csv.gz"


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
     Encoding(codec="uncompressed", level=0, page_bytes=MIB, dictionary_page_bytes=MIB, dictionary=True), ".parquet"),
    ({"format_type": "Parquet", "compression_codec": "ZSTD", "page_size_kb": 8, "dictionary_page_size_kb": 16,
      "dictionary_encoding": False},
     Encoding(codec="zstd", level=3, page_bytes=8192, dictionary_page_bytes=16384, dictionary=False), ".parquet"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "encoding", "extension"), FORMATS)
def test_format(tmp_path, form, encoding, extension):
    file = lake(tmp_path, {"format": form, "s3_path_format": "a/"})
    assert load_spec(file).encoding == encoding
    assert key(file) == f"data_output_path/a/0{extension}"


def test_block_size_is_the_row_group(tmp_path):
    assert load_spec(lake(tmp_path, {"format": {"format_type": "Parquet"}})).limits.row_group_bytes == 128 * MIB
    own = {"format_type": "Parquet", "block_size_mb": 7, "max_padding_size_mb": 4}
    spec = load_spec(lake(tmp_path, {"format": own}))
    assert spec.limits.row_group_bytes == 7 * MIB
    assert spec.warnings == ("max_padding_size_mb has no effect on S3, where row groups need no alignment.",)


KNOWN = "${NAMESPACE}, ${STREAM_NAME}, ${YEAR}, ${MONTH}, ${DAY}, ${HOUR}, ${MINUTE}, ${SECOND}, ${MILLISECOND}, "
PROBLEMS = [
    # what is laid over the base, its problem
    ({"s3_path_format": "${FOOBAR}/"}, "destination.s3_path_format: '${FOOBAR}/': '${FOOBAR}' is no variable; known: "
     + KNOWN + "${EPOCH}, ${UUID}, ${SYNC_ID}."),
    ({"s3_path_format": "${STREAMNAME}/"}, "destination.s3_path_format: '${STREAMNAME}/': '${STREAMNAME}' is no "
     "variable; known: " + KNOWN + "${EPOCH}, ${UUID}, ${SYNC_ID}; did you mean 'STREAM_NAME'?"),
    ({"file_name_pattern": "a b{part_number}"}, "destination.file_name_pattern: 'a b{part_number}': a file name "
     "pattern has no spaces."),
    ({"file_name_pattern": "{partnumber}"}, "destination.file_name_pattern: '{partnumber}': '{partnumber}' is no "
     "variable; known: {date}, {date:yyyy_MM}, {timestamp}, {timestamp:millis}, {timestamp:micros}, {part_number}, "
     "{sync_id}, {format_extension}; did you mean '{part_number}'?"),
    ({"format": {"format_type": "Parquet", "compression_codec": "LZO"}}, "destination.format.compression_codec: "
     "'LZO': no Parquet writer or reader here has LZO; take 'SNAPPY' or 'LZ4' for speed, or 'ZSTD'."),
    ({"format": {"format_type": "Parquet", "compression_codec": "LZ5"}}, "destination.format.compression_codec: 'LZ5' "
     "is not allowed; expected 'UNCOMPRESSED', 'SNAPPY', 'GZIP', 'BROTLI', 'LZ4' or 'ZSTD'; did you mean 'LZ4'?"),
    ({"format": {"format_type": "XML"}}, "destination.format: a mapping: input tag 'XML' found using 'format_type' "
     "does not match any of the expected tags: 'CSV', 'JSONL', 'Avro', 'Parquet'."),
    ({"format": {"format_type": "CSV", "flatening": "x"}}, "destination.format.flatening: unknown key, with value "
     "'x'; did you mean 'flattening'?"),
    ({"format": {"format_type": "CSV", "flattening": "Deep"}}, "destination.format.flattening: 'Deep' is not allowed; "
     "expected 'No flattening' or 'Root level flattening'."),
    ({"format": {"format_type": "Avro", "compression_codec": {"codec": "xz", "compression_level": 10}}},
     "destination.format.compression_codec.compression_level: 10: input should be less than or equal to 9."),
    ({"format": {"format_type": "Avro", "compression_codec": {"codec": "zstandard", "compression_level": -6}}},
     "destination.format.compression_codec.compression_level: -6: input should be greater than or equal to -5."),
    ({"format": {"format_type": "Avro", "compression_codec": "SNAPPY"}}, "destination.format.compression_codec: "
     "'SNAPPY': expected a mapping."),
    ({"s3_bucket_region": None}, "destination.s3_bucket_region: is required."),
    ({"format": None}, "destination.format: is required."),
    ({"s3_bucket_nam": "x"}, "destination.s3_bucket_nam: unknown key, with value 'x'; did you mean 's3_bucket_name'?"),
    ({"purge_first": True}, "destination.purge_first: unknown key, with value True; known keys: access_key_id, "
     "allow_insecure, external_id, file_name_pattern, format, record_undeclared, role_arn, role_wait_seconds, "
     "s3_bucket_name, s3_bucket_path, s3_bucket_region, s3_endpoint, s3_path_format, secret_access_key, "
     "single_writer, type, upload_parallelism."),
]  # fmt: skip


@pytest.mark.parametrize(("over", "expected"), PROBLEMS)
def test_problem(tmp_path, over, expected):
    with pytest.raises(SpecInvalidError) as caught:
        load_spec(lake(tmp_path, over))
    assert [problem.split(": ", 1)[1] for problem in caught.value.problems] == [expected]


def test_vendor_file_unchanged(tmp_path):
    config = BASE | {
        "access_key_id": "",
        "role_arn": "",
        "s3_endpoint": "",
        "s3_bucket_region": "eu-new-9",
        "future": 1,
        "format": {"format_type": "JSONL", "schema": "x", "compression": {"compression_type": "GZIP", "level": 9}},
    }
    (tmp_path / "s3.json").write_text(json.dumps(config), "utf-8")
    file = tmp_path / "lake.yaml"
    destination = {"type": "airbyte-s3", "config_file": "s3.json"}
    file.write_text(yaml.safe_dump({"pipeline": "p", "destination": destination, "tables": [TABLE]}), "utf-8")
    found = load(file)
    assert (found.spec.access.region, found.spec.access.role_arn) == ("eu-new-9", None)
    unknown = ("future", "format.schema", "format.compression.level")
    assert found.spec.warnings == tuple(f"s3.json: {name} is not known here and has no effect." for name in unknown)
    assert "config_file" not in found.data["destination"]


def test_one_name_for_every_file(tmp_path):
    with pytest.raises(SpecInvalidError, match=r"Add \{part_number\} to it"):
        load_spec(lake(tmp_path, {"file_name_pattern": "one", "s3_path_format": "${YEAR}/"}))
    assert load_spec(lake(tmp_path, {"file_name_pattern": "one"})).tables[0].layout.single_file


TABLES = [
    # what a table has that this destination has no place for, the problem
    ({"partition_by": ["day(at)"]}, "table 'users' has partition_by, which only Iceberg tables have."),
    ({"deleted": "gone"}, "table 'users' has 'deleted', and this destination has no column for it."),
    ({"mode": "overwrite", "cursor": "at"}, "table 'users' is overwritten and has a cursor: rows before it would be"),
]


@pytest.mark.parametrize(("fields", "message"), TABLES)
def test_table_with_what_has_no_place(tmp_path, fields, message):
    with pytest.raises(SpecInvalidError) as caught:
        load_spec(lake(tmp_path, {}, tables=[TABLE | fields]))
    assert caught.value.message.startswith(message)


def test_package_of_a_connector(tmp_path):
    source = {"package": "airbyte-source-faker", "catalog": {"streams": [{"stream": {"name": "users"}}]}}
    with pytest.raises(SpecInvalidError, match="no load installs a connector, so there is no 'package'; install it"):
        load_spec(lake(tmp_path, {}, source=source))


def test_two_streams_in_one_place(tmp_path):
    tables = [TABLE, TABLE | {"schema": "crm"}]
    with pytest.raises(NameCollisionError, match="would lie at the same keys"):
        load_spec(lake(tmp_path, {"s3_path_format": "${STREAM_NAME}/"}, tables=tables))


def test_endpoint_without_tls(tmp_path):
    with pytest.raises(TlsRequiredError):
        load_spec(lake(tmp_path, {"s3_endpoint": "http://minio.example.com"}))
    found = load_spec(lake(tmp_path, {"s3_endpoint": "http://localhost:9000", "s3_bucket_region": ""}))
    assert found.access.region == "us-east-1"


def test_external_id_of_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_ASSUME_ROLE_EXTERNAL_ID", "abc")
    spec = load_spec(lake(tmp_path, {"role_arn": "arn:aws:iam::123456789012:role/L"}))
    assert repr(spec.access.external_id) == "SecretText(${env:AWS_ASSUME_ROLE_EXTERNAL_ID})"


CATALOG = {
    "streams": [
        {
            "stream": {"name": "users", "namespace": "public", "json_schema": {"type": "object"}, "future": 1},
            "sync_mode": "incremental",
            "destination_sync_mode": "append",
            "primary_key": [["id"], ["a", "b"]],
            "cursor_field": ["updated_at"],
            "generation_id": 11,
            "minimum_generation_id": 11,
            "sync_id": 10111,
        },
        {"stream": {"name": "orders"}, "destination_sync_mode": "overwrite", "primary_key": None},
    ]
}


def test_configured_catalog(tmp_path):
    (tmp_path / "catalog.json").write_text(json.dumps(CATALOG), "utf-8")
    spec = load_spec(lake(tmp_path, {}, source={"messages": "m.jsonl", "catalog": "catalog.json"}))
    users, orders = spec.tables
    assert (users.id, users.mode, users.primary_key) == ("public.users", Mode.APPEND, ("id", "a.b"))
    assert (users.stream.generation_id, users.stream.minimum_generation_id, users.stream.sync_id) == (11, 11, 10111)
    assert (orders.id, orders.mode, orders.stream.generation_id) == ("orders", Mode.OVERWRITE, None)
    assert spec.source.paths == (str(tmp_path / "m.jsonl"),)


NAMESPACES = [
    # settings of the connection, the namespace in the path
    ({}, "public"),
    ({"namespace_definition": "destination"}, ""),
    ({"namespace_definition": "customformat", "namespace_format": "raw_${SOURCE_NAMESPACE}"}, "raw_public"),
]


@pytest.mark.parametrize(("settings", "expected"), NAMESPACES)
def test_namespace_and_prefix(tmp_path, settings, expected):
    source = {"messages": "-", "catalog": CATALOG, "prefix": "crm_"} | settings
    table = load_spec(lake(tmp_path, {}, source=source)).tables[0]
    assert (table.source_schema, table.source_table, table.stream.name) == (expected, "crm_users", "users")


@pytest.mark.parametrize("mode", ["append_dedup", "overwrite_dedup", "update"])
def test_other_sync_modes_are_refused(tmp_path, mode):
    catalog = {"streams": [{"stream": {"name": "users"}, "destination_sync_mode": mode}]}
    with pytest.raises(SpecInvalidError, match="expected 'append' or 'overwrite'"):
        load_spec(lake(tmp_path, {}, source={"messages": "-", "catalog": catalog}))


def test_hero_pixel(tmp_path):
    spec = load_spec(lake(tmp_path, {"purge_first": True}, kind="heropixel-s3"))
    assert spec.envelope.names == ("_airbyte_ab_id", "_airbyte_emitted_at", "_airbyte_data")
    assert spec.purge_first


def test_keys_of_other_loads_are_known_by_the_template(tmp_path):
    layout = load_spec(lake(tmp_path, {})).tables[0].layout
    prefix = "data_output_path/public/users/"
    assert layout.prefix == prefix
    known = ["2021_01_01_1234567890_0.csv.gz", "2021_01_01_1_12.csv.gz-3", f"2021_01_01_1_{UUID}.csv.gz"]
    assert [bool(layout.matcher().fullmatch(prefix + name)) for name in known] == [True] * 3
    strange = ["notes.txt", "2021_01_01_1234567890_0.csv", "x/2021_01_01_1234567890_0.csv.gz"]
    assert not any(layout.matcher().fullmatch(prefix + name) for name in strange)


PARTS = [
    # keys that are there, the next part
    ([], "0"),
    (["data_output_path/a/0.csv.gz", "data_output_path/a/7.csv.gz", "data_output_path/a/x.csv.gz"], "8"),
    (["data_output_path/a/3.csv.gz-2"], "4"),
    ([f"data_output_path/a/{n}.csv.gz" for n in range(10_001)], UUID),
]


@pytest.mark.parametrize(("keys", "part"), PARTS)
def test_part_number_goes_on_from_what_is_there(tmp_path, keys, part):
    layout = load_spec(lake(tmp_path, {"s3_path_format": "a/"})).tables[0].layout
    names = layout.bind(job_id="j", attempt="a", start=START)
    assert names.prefix == "data_output_path/a/"
    assert names.numbered(keys).object_key(0) == f"data_output_path/a/{part}.csv.gz"
