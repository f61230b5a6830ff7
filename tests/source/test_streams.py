"""What a stream's options are where the source names none."""

import pytest

from lakewriter.source.streams import add_stream_options

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
