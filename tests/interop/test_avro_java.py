"""What a platform's sync leaves in Avro, read by the Avro project's own Java library, which is among Spark's jars."""

import json
from typing import Any

import pytest

from tests.cli.connection import Connection, send_scenarios
from tests.cli.platform import Platform
from tests.cli.scenarios import SCENARIOS

pytestmark = pytest.mark.spark

RAW = {"d": 18650, "t": 45296789000, "tz": 82800000000, "ts": 1611365025678901, "tstz": 1611361425000000}
"""The first row of the types, as the library gives dates and times without conversions: since 1970 and since midnight,
in days and microseconds. 2021-01-23 is 1611360000 s after 1970."""


def read_by_java(spark: Any, folder: Any, body: bytes) -> list[dict[str, Any]]:
    (folder / "a.avro").write_bytes(body)
    avro, file = spark._jvm.org.apache.avro, spark._jvm.java.io.File(str(folder / "a.avro"))
    reader = avro.file.DataFileReader.openReader(file, avro.generic.GenericDatumReader())
    rows = []
    while reader.hasNext():
        rows.append(json.loads(reader.next().toString()))
    return rows


@pytest.mark.exhaustive
def test_java_reads_what_a_sync_left(tmp_path, aws, bucket, spark, capfd):
    platform = Platform(tmp_path, aws, spark)
    code, _ = Connection(platform, spark, "avro", capfd).write(*send_scenarios())
    assert code == 0
    for scenario in SCENARIOS:
        bodies = [body for key, body in platform.data().items() if key.startswith(scenario.find_folder())]
        rows = [row for body in bodies for row in read_by_java(spark, tmp_path, body)]
        own = [{key: value for key, value in row.items() if not key.startswith("_airbyte_")} for row in rows]
        expected = scenario.list_rows("avro")
        if scenario.name == "values":
            assert {key: own[0][key] for key in RAW} == RAW
            own, expected = ([{key: row[key] for key in row if key not in RAW} for row in each]
                             for each in (own, expected))  # fmt: skip
        assert own == expected, scenario.name
