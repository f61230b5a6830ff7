"""Airbyte's directory and file name variables: the keys they give, and what is no variable."""

from pathlib import Path

import pytest

from lakewriter.dialects.airbyte.paths import find_stream_directory
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.layout import Layout, file_uuid
from tests.dialects.airbyte_lakes import START, TABLE, key, lake, problems

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
    # a dollar that begins no variable is a character as any other
    ("cost$/a$b/$YEARS/", None, "cost$/a$b/$YEARS/0.csv.gz"),
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
    # Transformations.kt drops all of \\p{M}, variation selectors and vowel signs included
    ("love \u2764\ufe0f", "a  b", "love__/a__b"),
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


KNOWN = "${NAMESPACE}, ${STREAM_NAME}, ${YEAR}, ${MONTH}, ${DAY}, ${HOUR}, ${MINUTE}, ${SECOND}, ${MILLISECOND}, "
KNOWN += "${EPOCH}, ${UUID}, ${SYNC_ID}"
DIRECTORIES = [
    # a path format that the vendor writes as it stands, what is said of it
    ("${FOOBAR}/", f"'${{FOOBAR}}' is no variable; known: {KNOWN}."),
    ("${STREAMNAME}/", f"'${{STREAMNAME}}' is no variable; known: {KNOWN}; did you mean 'STREAM_NAME'?"),
    ("${NAMESPACE}/{date}/", f"'{{date}}' is no variable of a directory; known: {KNOWN}."),
    ("{STREAM_NAME}/", f"'{{STREAM_NAME}}' is no variable of a directory; known: {KNOWN}; did you mean 'STREAM_NAME'?"),
    ("$YEAR/", f"'$YEAR' is no variable of a directory; known: {KNOWN}; did you mean 'YEAR'?"),
    ("${YEAR}_$MONTH_", f"'$MONTH' is no variable of a directory; known: {KNOWN}; did you mean 'MONTH'?"),
    ("a}/", f"'}}' is no variable of a directory; known: {KNOWN}."),
    ("a/${YEAR", "'a/${YEAR' has a variable that does not end; expected ${NAME}."),
]


@pytest.mark.parametrize(("path", "expected"), DIRECTORIES)
@pytest.mark.parametrize("field", ["s3_path_format", "s3_bucket_path"])
def test_no_variable_of_a_directory(tmp_path, field, path, expected):
    assert problems(lake(tmp_path, {field: path})) == [f"destination.{field}: {path!r}: {expected}"]


FILES = [
    ("a b{part_number}", "a file name pattern has no spaces."),
    ("{partnumber}", "'{partnumber}' is no variable; known: {date}, {date:yyyy_MM}, {timestamp}, {timestamp:millis}, "
     "{timestamp:micros}, {part_number}, {sync_id}, {format_extension}; did you mean '{part_number}'?"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), FILES)
def test_no_variable_of_a_file_name(tmp_path, name, expected):
    found = problems(lake(tmp_path, {"file_name_pattern": name}))
    assert found == [f"destination.file_name_pattern: {name!r}: {expected}"]


def the_layout(file: Path) -> Layout:
    """That of the file's first table."""
    return load_spec(file).tables[0].layout


def test_one_name_for_every_file(tmp_path):
    with pytest.raises(SpecInvalidError, match=r"Add \{part_number\} to it"):
        load_spec(lake(tmp_path, {"file_name_pattern": "one", "s3_path_format": "${YEAR}/"}))
    assert the_layout(lake(tmp_path, {"file_name_pattern": "one"})).single_file


def test_keys_of_other_loads_are_known_by_the_template(tmp_path):
    layout = the_layout(lake(tmp_path, {}))
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
    layout = the_layout(lake(tmp_path, {"s3_path_format": "a/"}))
    names = layout.bind(job_id="j", attempt="a", start=START)
    assert names.prefix == "data_output_path/a/"
    assert names.after(keys).object_key(0) == f"data_output_path/a/{part}.csv.gz"


def test_part_number_goes_on_from_other_syncs(tmp_path):
    pattern = "{part_number}_{sync_id}{format_extension}"
    layout = the_layout(lake(tmp_path, {"s3_path_format": "a/", "file_name_pattern": pattern}))
    names = layout.bind(job_id="j", attempt="a", start=START, sync_id=9)
    # The directory's highest is another sync's.
    assert names.after(["data_output_path/a/3_8.csv.gz"]).object_key(0) == "data_output_path/a/4_9.csv.gz"


OWN_DIRECTORIES = [
    # bucket path, path format, namespace and stream, the directory that is the stream's own
    ("data", "${NAMESPACE}/${STREAM_NAME}/${YEAR}_${EPOCH}_", ("public", "users"), "data/public/users"),
    ("data", "${NAMESPACE}/${STREAM_NAME}/${YEAR}_${EPOCH}_", ("", "users"), "data/users"),
    ("/data//lake/", "${STREAM_NAME}/part_${EPOCH}_", ("", "users"), "data/lake/users"),
    ("data", "${STREAM_NAME}/${YEAR}/${MONTH}/", ("", "users"), "data/users"),
    ("data", "raw-${STREAM_NAME}/v1/${EPOCH}_", ("", "users"), "data/raw-users"),
    ("data/${STREAM_NAME}", "${EPOCH}_", ("", "users"), "data/users"),
    ("data", "${STREAM_NAME}/x/${STREAM_NAME}/${EPOCH}_", ("", "a b"), "data/a_b/x/a_b"),
    # no directory of its own: in the file's name, behind a variable, shared by namespaces, without a name
    ("data", "${NAMESPACE}/${STREAM_NAME}_${EPOCH}_", ("public", "users"), ""),
    ("data", "${YEAR}/${STREAM_NAME}/${EPOCH}_", ("", "users"), ""),
    ("data", "${STREAM_NAME}/${NAMESPACE}_${EPOCH}_", ("public", "users"), ""),
    ("data", "${STREAM_NAME}/${NAMESPACE}/${EPOCH}_", ("public", "users"), ""),
    ("data", "${NAMESPACE}/${STREAM_NAME}/${EPOCH}_", ("public", "\u0301"), ""),
    ("data", "all/${EPOCH}_", ("", "users"), ""),
]  # fmt: skip


@pytest.mark.parametrize(("bucket_path", "path_format", "names", "expected"), OWN_DIRECTORIES)
def test_directory_of_a_stream(bucket_path, path_format, names, expected):
    assert find_stream_directory(bucket_path, path_format, names) == expected
