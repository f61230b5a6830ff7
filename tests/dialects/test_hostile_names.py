"""Names that would leave their folder: each place that a key is made of, with the key that it gives or what is said.

The rule is docs/guide-lakewriter.md, "Names in keys": no segment is ``.`` or ``..`` in whatever width, holds a control
character, or begins with the control folder's name. What a vendor's document replaces is replaced first.
"""

import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import LakeError, SpecInvalidError
from lakewriter.naming import CONTROL_DIRECTORY, describe_unfit_segment
from lakewriter.spec.trust import Party

AT = datetime(2024, 1, 15, 10, 30, tzinfo=UTC)
READ = {"format": "csv", "path": "a.csv"}
AIRBYTE = {
    "type": "airbyte-s3", "s3_bucket_name": "lake", "s3_bucket_path": "b", "s3_bucket_region": "us-east-1",
    "s3_path_format": "${NAMESPACE}/${STREAM_NAME}/", "format": {"format_type": "CSV"},
}  # fmt: skip
SUPAFLOW = {
    "type": "supaflow-s3-data-lake", "s3_bucket_name": "lake", "bucket_region": "us-east-1", "s3_path_prefix": "b",
    "partition_strategy": "NONE",
}  # fmt: skip
ICEBERG = {
    "type": "supaflow-s3-data-lake", "s3_bucket_name": "lake", "bucket_region": "us-east-1", "s3_path_prefix": "b",
    "table_format": "ICEBERG",
}  # fmt: skip
PLAIN = {"type": "lakewriter-s3", "location": "s3://lake/b", "region": "us-east-1", "partition_strategy": "none"}
ESTUARY = {"type": "estuary-s3-parquet", "bucket": "lake", "region": "us-east-1"}
FLOW = ESTUARY | {"uploadIntervalInSeconds": 60}
KEYS = {"auth_type": "AWSAccessKey", "awsAccessKeyId": "A", "awsSecretAccessKey": "${env:S}"}
FILESINK = ESTUARY | {"credentials": KEYS, "uploadInterval": "5m"}


def table(name: str = "t", schema: str = "s", **more: Any) -> dict[str, Any]:
    return {"tables": [{"table": name, "schema": schema, "read": READ} | more]}


def catalog(name: str = "t", namespace: str = "s", **source: Any) -> dict[str, Any]:
    stream = {"stream": {"name": name, "namespace": namespace}}
    return {"source": {"messages": "-", "catalog": {"streams": [stream]}, **source}}


def binding(**resource: str) -> dict[str, Any]:
    return {"tables": [{"source": "a/b", "primary_key": ["id"], "read": READ, "resource": resource}]}


PLACES: dict[str, Callable[[str], tuple[dict[str, Any], dict[str, Any]]]] = {
    # a file's destination and the rest of it, with a name in this place
    "airbyte stream": lambda name: (AIRBYTE, catalog(name)),
    "airbyte namespace": lambda name: (AIRBYTE, catalog(namespace=name)),
    "airbyte table": lambda name: (AIRBYTE, table(name)),
    "airbyte schema": lambda name: (AIRBYTE, table(schema=name)),
    "airbyte prefix": lambda name: (AIRBYTE, catalog(prefix=name)),
    "airbyte namespace_format": lambda name: (
        AIRBYTE, catalog(namespace_definition="customformat", namespace_format=name)
    ),
    "heropixel stream": lambda name: (AIRBYTE | {"type": "heropixel-s3"}, catalog(name)),
    "s3_bucket_path": lambda name: (AIRBYTE | {"s3_bucket_path": name}, table()),
    "s3_path_format": lambda name: (AIRBYTE | {"s3_path_format": f"{name}/${{STREAM_NAME}}/"}, table()),
    "file_name_pattern": lambda name: (AIRBYTE | {"file_name_pattern": f"{name}/{{part_number}}"}, table()),
    "s3_path_prefix": lambda name: (SUPAFLOW | {"s3_path_prefix": name}, table()),
    "destination_prefix": lambda name: (SUPAFLOW | {"destination_prefix": name}, table()),
    "supaflow schema": lambda name: (SUPAFLOW, table(schema=name)),
    "supaflow table": lambda name: (SUPAFLOW, table(name)),
    "iceberg table": lambda name: (ICEBERG, table(name)),
    "location": lambda name: (PLAIN | {"location": f"s3://lake/{name}"}, table()),
    "lakewriter schema": lambda name: (PLAIN, table(schema=name)),
    "lakewriter table": lambda name: (PLAIN, table(name)),
    "pathPrefix": lambda name: (FLOW, binding(pathPrefix=f"/{name}")),
    "path": lambda name: (FILESINK, binding(path=f"{name}/%Y")),
    "estuary prefix": lambda name: (FILESINK | {"prefix": name}, binding(path="t")),
}  # fmt: skip


def render(folder: Path, place: str, name: str) -> str:
    """The key of the first table's first file."""
    destination, rest = PLACES[place](name)
    path = folder / "lake.yaml"
    path.write_text(yaml.safe_dump({"pipeline": "p", "destination": destination, **rest}), "utf-8")
    (written,) = load_spec(path).tables
    return written.layout.bind(job_id="j", attempt="a", start=AT).object_key(0)


OWN_FOLDER = "names no folder of its own"
RESERVED = "and what begins with '_lakewriter' is for control objects"
HOSTILE = [
    # a name, the segment that is named where the name goes into keys as it is, what is said of it
    ("..", "'..'", OWN_FOLDER),
    (".", "'.'", OWN_FOLDER),
    ("a/../b", "'..'", OWN_FOLDER),
    ("../../x", "'..'", OWN_FOLDER),
    ("x/.", "'.'", OWN_FOLDER),
    ("\uff0e\uff0e", "'\uff0e\uff0e'", OWN_FOLDER),
    ("a\uff0f\uff0e\uff0e\uff0fb", "'a\uff0f\uff0e\uff0e\uff0fb'", OWN_FOLDER),
    ("\u2025", "'\u2025'", OWN_FOLDER),
    (".\u0301.", "'.\u0301.'", OWN_FOLDER),
    ("x/\uff0f", "'\uff0f'", OWN_FOLDER),
    ("_lakewriter", "'_lakewriter'", RESERVED),
    ("_lakewriter2/y", "'_lakewriter2'", RESERVED),
    ("\uff3flakewriter", "'\uff3flakewriter'", RESERVED),
    ("a\x07b", "U+0007", "control character"),
    ("a\u2028b", "U+2028", "control character"),
    ("a\uffffb", "U+FFFF", "control character"),
]
AS_THEY_ARE = {
    # places whose text goes into keys as it is, and the key of the file that the message names
    "s3_bucket_path": "destination.s3_bucket_path",
    "s3_path_format": "destination.s3_path_format",
    "file_name_pattern": "destination.file_name_pattern",
    "s3_path_prefix": "destination.s3_path_prefix",
    "location": "destination.location",
    "pathPrefix": "tables.0.resource.pathPrefix",
    "path": "tables.0.resource.path",
    "estuary prefix": "destination.prefix",
}


@pytest.mark.parametrize(("name", "segment", "clause"), HOSTILE)
@pytest.mark.parametrize("place", AS_THEY_ARE)
def test_text_that_goes_into_keys_as_it_is(tmp_path, place, name, segment, clause):
    with pytest.raises(LakeError) as caught:
        render(tmp_path, place, name)
    said = str(caught.value)
    assert said.startswith("SPEC_INVALID: lake.yaml")
    assert clause in said
    if place != "file_name_pattern":
        assert f"{AS_THEY_ARE[place]}: " in said
        assert segment in said


NAMES = [
    # a stream's name or namespace, and the directory that the vendor's own replacement makes of it; or what is said
    ("..", None, "has the segment '..', which names no folder of its own"),
    (".", None, "has the segment '.', which names no folder of its own"),
    ("a/../b", None, "has the segment '..', which names no folder of its own"),
    ("../../x", None, "has the segment '..', which names no folder of its own"),
    ("\uff0e\uff0e", None, "has the segment '..', which names no folder of its own"),
    ("a\uff0f\uff0e\uff0e\uff0fb", None, "has the segment '..', which names no folder of its own"),
    ("\u2025", None, "has the segment '..', which names no folder of its own"),
    (".\u0301.", None, "has the segment '..', which names no folder of its own"),
    ("_lakewriter", None, "has the segment '_lakewriter', and what begins with '_lakewriter' is for control objects"),
    ("x/_lakewriter2", None, "has the segment '_lakewriter2', and what begins with '_lakewriter' is for control"),
    ("\uff3flakewriter", None, "has the segment '_lakewriter', and what begins with '_lakewriter' is for control"),
    ("/", None, "in a key: slashes collapse, and accents are dropped."),
    ("\u0301", None, "in a key: slashes collapse, and accents are dropped."),
    ("a\x07b", "a_b", None),
    ("a\u2028b", "a_b", None),
    ("a\uffffb", "a_b", None),
    ("a//b/", "a/b", None),
    ("/a", "a", None),
    ("a\uff0fb", "a/b", None),
    ("...", "...", None),
    (".a", ".a", None),
    ("x_lakewriter", "x_lakewriter", None),
]
AIRBYTE_PLACES = [
    # the place, the key with # for the directory, the place that the message names
    ("airbyte stream", "b/s/#/0.csv.gz", "source.catalog.streams.0: "),
    ("heropixel stream", "b/s/#/0.csv.gz", "source.catalog.streams.0: "),
    ("airbyte namespace", "b/#/t/0.csv.gz", "source.catalog.streams.0: "),
    ("airbyte namespace_format", "b/#/t/0.csv.gz", "source.catalog.streams.0: "),
    ("airbyte table", "b/s/#/0.csv.gz", "tables.0: "),
    ("airbyte schema", "b/#/t/0.csv.gz", "tables.0: "),
]


@pytest.mark.parametrize(("name", "directory", "said"), NAMES)
@pytest.mark.parametrize(("place", "key", "where"), AIRBYTE_PLACES)
def test_names_of_streams(tmp_path, place, key, where, name, directory, said):
    if directory is not None:
        assert render(tmp_path, place, name) == key.replace("#", directory)
        return
    with pytest.raises(LakeError, match=r"^SPEC_INVALID: ") as caught:
        render(tmp_path, place, name)
    assert where in str(caught.value)
    assert said in str(caught.value)


NORMALISED = [
    # a name, and what its table, schema or prefix becomes: docs/guide-supaflow.md, "Names"; None where it is refused
    ("..", "_"),
    (".", "_"),
    ("a/../b", "a_b"),
    ("../../x", "_x"),
    ("\uff0e\uff0e", "_"),
    ("a\uff0fb", "a_b"),
    ("a\x07b", "a_b"),
    ("/", "_"),
    ("x_lakewriter", "x_lakewriter"),
    ("_lakewriter", None),
    ("_LakeWriter2", None),
    ("\uff3flakewriter", None),
    ("/lakewriter", None),
]
NORMALISED_PLACES = [
    ("supaflow table", "b/s/#/part-j-00000.gzip.parquet"),
    ("supaflow schema", "b/#/t/part-j-00000.gzip.parquet"),
    ("destination_prefix", "b/#_s/t/part-j-00000.gzip.parquet"),
    ("iceberg table", "b/supaflow_s/#/data/part-j-00000.parquet"),
    ("lakewriter table", "b/s/#/part-j-00000.parquet"),
    ("lakewriter schema", "b/#/t/part-j-00000.parquet"),
]


@pytest.mark.parametrize(("name", "expected"), NORMALISED)
@pytest.mark.parametrize(("place", "key"), NORMALISED_PLACES)
def test_names_that_are_normalised(tmp_path, place, key, name, expected):
    if expected is not None:
        assert render(tmp_path, place, name) == key.replace("#", expected).replace("__s/", "_s/")
        return
    with pytest.raises(LakeError, match=r"^SPEC_INVALID: lake\.yaml:\d+: tables\.0: .* is for control objects\."):
        render(tmp_path, place, name)


TOGETHER = [
    # a path format, a file name pattern and a stream, each of which is fit alone; the key that they give together
    ("${STREAM_NAME}/.", "./{part_number}", "t", "b/t/../0"),
    ("${STREAM_NAME}/", "{date:..}/{part_number}", "t", "b/t/../0"),
    ("${STREAM_NAME}/", "{date:_}lakewriter/{part_number}", "t", "b/t/_lakewriter/0"),
    ("_lake${STREAM_NAME}/", "{part_number}", "writer", "b/_lakewriter/0"),
    (".${STREAM_NAME}/", "{part_number}", ".", "b/../0"),
    ("${STREAM_NAME}${NAMESPACE}/", "{part_number}", "_lakewriter", "b/_lakewriters/0"),
    ("${STREAM_NAME}/", "_lakewriter{part_number}", "t", "b/t/_lakewriter0"),
]


@pytest.mark.parametrize(("path", "file", "stream", "key"), TOGETHER)
def test_parts_of_a_key_that_are_fit_alone(tmp_path, path, file, stream, key):
    destination = AIRBYTE | {"s3_path_format": path, "file_name_pattern": file}
    content = {"pipeline": "p", "destination": destination, **table(stream)}
    (tmp_path / "lake.yaml").write_text(yaml.safe_dump(content), "utf-8")
    with pytest.raises(LakeError, match=r"^SPEC_INVALID: ") as caught:
        load_spec(tmp_path / "lake.yaml")
    assert f"tables.0: table {stream!r} would lie at {key!r}: the key has the segment " in str(caught.value)


LAST = [
    # a path format whose last text begins the file's name
    ("${STREAM_NAME}/.", "b/t/.0.csv.gz"),
    ("${STREAM_NAME}/..", "b/t/..0.csv.gz"),
    ("${STREAM_NAME}/..${EPOCH}", "b/t/..17053146000000.csv.gz"),
]


@pytest.mark.parametrize(("path", "key"), LAST)
def test_last_text_of_a_path_format_begins_a_name(tmp_path, path, key):
    content = {"pipeline": "p", "destination": AIRBYTE | {"s3_path_format": path}, **table()}
    (tmp_path / "lake.yaml").write_text(yaml.safe_dump(content), "utf-8")
    (written,) = load_spec(tmp_path / "lake.yaml").tables
    assert written.layout.bind(job_id="j", attempt="a", start=AT).object_key(0) == key


@pytest.mark.parametrize("path", ["a/../b", ".", "\uff0e\uff0e", "_lakewriter", "a/_lakewriter2", "a//b", "a\x07"])
def test_folders_of_parties(path):
    with pytest.raises(ValueError, match="expected a folder of the party's own"):
        Party(paths=(path,))


PIECES = [".", "..", "/", "\uff0e", "\uff0f", "\u2025", "\u2024", "\u0301", "_lakewriter", "_lake", "writer", "_", "a"]
PIECES += ["\x00", "\n", "\u2028", "\ufffe", "\u200b", " ", "s3:", "%", "~", "-"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("place", PLACES)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join))
def test_every_key_stays_in_its_folder(place, name):
    with tempfile.TemporaryDirectory() as folder:
        try:
            key = render(Path(folder), place, name)
        except SpecInvalidError:
            return
    segments = key.split("/")
    assert not {"", ".", ".."} & set(segments)
    assert not [segment for segment in segments if segment.startswith(CONTROL_DIRECTORY)]
    assert not [character for character in key if ord(character) < 32 or character in "\u2028\ufffe"]
    assert describe_unfit_segment(key) is None
    if place not in AS_THEY_ARE:
        assert segments[0] == "b"
