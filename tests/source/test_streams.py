"""What a stream's options are where the source names none."""

import pytest

from lakewriter.source.streams import _load, add_stream_options
from lakewriter.spec.table_spec import Read

FILES = {"maxBytesPerTrigger": "268435456", "maxFileAge": "36500d"}
OPTIONS = [
    # format, the options given, those that are added; the guide's table, and Spark's pages of both sources
    ("json", {}, FILES),
    ("csv", {"maxfilespertrigger": "5"}, {"maxFileAge": "36500d"}),
    ("csv", {"header": "True"}, FILES | {"enforceSchema": "false"}),
    ("csv", {"header": "true", "EnforceSchema": "true"}, FILES),
    ("text", {"MAXFILEAGE": "7d", "maxBytesPerTrigger": "10m"}, {}),
    ("kafka", {}, {"maxOffsetsPerTrigger": "1000000"}),
    ("kafka", {"maxOffsetsPerTrigger": "5", "minOffsetsPerTrigger": "2"}, {}),
    ("kafka", {"minOffsetsPerTrigger": "500"}, {"maxOffsetsPerTrigger": "1000000"}),
    ("kafka", {"minOffsetsPerTrigger": "3000000"}, {"maxOffsetsPerTrigger": "3000000"}),
    ("rate", {"rowsPerSecond": "5"}, {}),
]


@pytest.mark.parametrize(("kind", "given", "added"), OPTIONS)
def test_options(kind, given, added):
    assert add_stream_options(kind, given) == given | added


COLUMNS = [
    # Spark's name in another case, the options, the columns of a stream that Spark reads; its pages of both sources
    ("CSV", {"header": "true"}, ["id", "name"]),
    ("Text", {}, ["value"]),
    ("binaryFile", {}, ["path", "modificationTime", "length", "content"]),
]


@pytest.mark.spark
@pytest.mark.parametrize(("kind", "options", "columns"), COLUMNS)
def test_columns(spark, tmp_path, kind, options, columns):
    (tmp_path / "1.csv").write_text("id,name\n1,a\n")
    read = Read(format=kind, engine="spark", path=(str(tmp_path),), options=options)
    assert _load(spark, read, {}).columns == columns
