"""What the platform is told of a sync: rows, files and bytes, what is deleted, changed and left out."""

from typing import Any

import pytest

from lakewriter.cli.airbyte.statistics import SyncStatistics
from lakewriter.receipt import ChangedValues
from lakewriter.report import TableResult
from tests.cli.platform import Platform
from tests.load.syncs import BUCKET, record, state, stream

KEY = ("public", "users")
NULLED = ChangedValues(field="score", change="NULLED", reason="DESTINATION_SERIALIZATION_ERROR", values=2)
ONE = ChangedValues(field="tags.[].k", change="NULLED", reason="DESTINATION_FIELD_SIZE_LIMITATION", values=1)
CUT = ChangedValues(field="at", change="TRUNCATED", reason="to the microsecond", values=1200)


def commit(**fields: Any) -> TableResult:
    return TableResult.model_validate({"schema_name": "public", "table": "users", "status": "done"} | fields)


def test_what_is_said_of_a_stream():
    statistics = SyncStatistics()
    first = statistics.add(KEY, commit(rows=1200, files=2, bytes=34567, changed=(NULLED, CUT), undeclared={"x.y": 3}))
    last = statistics.add(KEY, commit(rows=1, files=1, bytes=1, retired=2, changed=(NULLED, ONE)))
    assert (first, last) == (
        "public.users: done, 1,200 rows in 2 files, 34,567 bytes",
        "public.users: done, 1 row in 1 file, 1 byte, 2 objects of older generations deleted",
    )
    assert list(statistics.summarise()) == [
        ("INFO", "public.users: 1,201 rows in 3 files, 34,568 bytes, 2 objects of older generations deleted in all"),
        ("WARN", "public.users: 1,200 values of 'at' cut off (to the microsecond)"),
        ("WARN", "public.users: 4 values of 'score' are null (DESTINATION_SERIALIZATION_ERROR)"),
        ("WARN", "public.users: 1 value of 'tags.[].k' is null (DESTINATION_FIELD_SIZE_LIMITATION)"),
        ("WARN", "public.users: 3 values of undeclared property 'x.y' left out"),
    ]


def test_a_key_twice_is_said():
    statistics = SyncStatistics()
    twice = ChangedValues(field="a", change="TRUNCATED", reason="SOURCE_SERIALIZATION_ERROR", values=2)
    statistics.add(KEY, commit(rows=1, files=1, bytes=1, changed=(twice,)))
    said = "public.users: 2 values of 'a' left out, since the key comes again (SOURCE_SERIALIZATION_ERROR)"
    assert ("WARN", said) in list(statistics.summarise())


def test_many_fields_are_summed_up():
    statistics = SyncStatistics()
    statistics.add(KEY, commit(undeclared={f"p{number:02}": 1 for number in range(50)}))
    assert [text for _, text in statistics.summarise()][-1] == "public.users: 30 more undeclared properties"


def test_what_states_tell_since_the_one_before():
    """By stream, and for states of all streams."""
    statistics = SyncStatistics()
    statistics.add(KEY, commit(changed=(NULLED, CUT), undeclared={"x": 3}))
    assert statistics.take_counts(KEY) == {
        "nulledValueCount": 2, "truncatedValueCount": 1200, "undeclaredValueCount": 3,
    }  # fmt: skip
    assert statistics.take_counts(KEY) == {}
    statistics.add(("public", "orders"), commit(retired=4))
    assert statistics.take_counts(KEY) == {}
    assert statistics.take_counts(None)["retiredObjectCount"] == 4


SCHEMA = {"properties": {"user_id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}}
USERS = stream("users", SCHEMA, generation_id=3, minimum_generation_id=3)


@pytest.mark.spark
def test_a_sync_tells_what_became_of_its_values(tmp_path, aws, bucket, spark):
    platform = Platform(tmp_path, aws, spark)
    old = {"Bucket": BUCKET, "Key": "data/public/users/2021_01_01_1_0.csv", "Metadata": {"ab-generation-id": "2"}}
    aws.client("s3").put_object(Body=b"x", **old)
    rows = [{"user_id": 1, "at": "then", "more": 1}, {"user_id": "x", "at": "2021-01-01T00:00:00.123456789Z"}]
    said, error = platform.sync(*(record("users", row) for row in rows), state("users", 1), streams=(USERS,),
                                format={"format_type": "Avro"})  # fmt: skip
    assert error is None
    log, back = said
    (size,) = [len(body) for key, body in platform.data().items() if key.endswith(".avro")]
    assert log["log"]["message"] == (
        f"public.users: done, 2 rows in 1 file, {size:,} bytes, 1 object of older generations deleted"
    )
    assert back["state"]["destinationStats"] == {
        "recordCount": 2,
        "additionalStats": {
            "nulledValueCount": 2,
            "truncatedValueCount": 1,
            "undeclaredValueCount": 1,
            "retiredObjectCount": 1,
        },
    }
