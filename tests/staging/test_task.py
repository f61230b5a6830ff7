"""A task from batches to receipts, against the embedded AWS; files are read back after the test completes them."""

import io
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewriter.errors import S3AccessDeniedError, SourceFailedError
from lakewriter.receipt import ColumnStatistics, Cursor, Receipt
from lakewriter.spec.specification import Limits
from tests.staging.plans import source_rows, source_table, task_plan, write_partition
from tests.support.server import StrictAws

KEY = "lake/crm/accounts/2024/01/15/part-j1-{:05d}.parquet"
ROLLS = Limits(part_bytes=5 * 1024 * 1024, row_group_bytes=512 * 1024, target_file_bytes=1)


def _completed(aws: StrictAws, receipts: list[Receipt]) -> dict[str, bytes]:
    for receipt in receipts:
        parts = [{"PartNumber": p.number, "ETag": p.etag, "ChecksumCRC32": p.checksum} for p in receipt.parts]
        aws.client("s3").complete_multipart_upload(
            Bucket=receipt.bucket, Key=receipt.key, UploadId=receipt.upload_id, MultipartUpload={"Parts": parts}
        )
    return aws.objects("acme-lake")


def _rows(files: dict[str, bytes]) -> pa.Table:
    return pa.concat_tables([pq.read_table(io.BytesIO(data)) for data in files.values()])


def test_write_partition(aws: StrictAws, bucket: str) -> None:
    plan = task_plan(first_indexes=(1, 1001), counts=(1000, 12_345))
    receipts = list(write_partition(plan, 1, source_rows(12_345)))
    (receipt,) = receipts
    files = _completed(aws, receipts)
    assert list(files) == [KEY.format(1)] == [receipt.key]
    assert Receipt.model_validate(receipt.model_dump(mode="json")) == receipt
    assert {name: getattr(receipt, name) for name in FACTS} == {
        **FACTS,
        "engine": "pyarrow",
        "size": len(files[KEY.format(1)]),
    }
    added = {"_index": pa.array(range(1001, 13_346)), "_job_id": pa.array(["j1"] * 12_345)}
    expected = source_table(12_345)
    for name, values in added.items():
        expected = expected.append_column(pa.field(name, values.type, nullable=False), values)
    assert _rows(files).equals(expected)


FACTS: dict[str, Any] = {
    "checksum_algorithm": "CRC32",
    "size": 0,
    "rows": 12_345,
    "partition": 1,
    "seq": 1,
    "first_index": 1001,
    "engine": "",
    "row_groups": 1,
    "requests": {"POST": 1, "PUT": 1},
    "cursor": Cursor("timestamp[us, tz=UTC]", "1970-01-01T03:25:45.000000Z"),
    "cursor_nulls": 1234,
    "changes": 0,
}


def test_write_partition_statistics(aws: StrictAws, bucket: str) -> None:
    (receipt,) = write_partition(task_plan(), 0, source_rows(100))
    sizes = {name: found.compressed_bytes for name, found in receipt.columns.items()}
    assert all(0 < size < receipt.size for size in sizes.values())
    assert receipt.columns == {
        "id": ColumnStatistics(100, 0, sizes["id"], "0", "99"),
        "name": ColumnStatistics(100, 0, sizes["name"], "name-0", "name-96"),
        "changed": ColumnStatistics(
            100, 10, sizes["changed"], "1970-01-01T00:00:01+00:00", "1970-01-01T00:01:39+00:00"
        ),
        "_index": ColumnStatistics(100, 0, sizes["_index"], "1", "100"),
        "_job_id": ColumnStatistics(100, 0, sizes["_job_id"], "j1", "j1"),
    }


def test_write_partition_without_statistics(aws: StrictAws, bucket: str) -> None:
    (receipt,) = write_partition(replace(task_plan(), statistics=False), 0, source_rows(100))
    # The cursor is the rows' own, not the footer's.
    assert (receipt.columns, receipt.rows, receipt.cursor_nulls) == ({}, 100, 10)
    assert receipt.cursor == Cursor("timestamp[us, tz=UTC]", "1970-01-01T00:01:39.000000Z")


def test_write_partition_rolls(aws: StrictAws, bucket: str) -> None:
    # A row takes about 50 bytes, so a row group of 512 KiB is one batch of 8192, and each is a file.
    plan = task_plan(limits=ROLLS, first_indexes=(1, 1, 501))
    receipts = list(write_partition(plan, 2, source_rows(20_000)))
    assert [(r.key, r.seq, r.rows, r.first_index) for r in receipts] == [
        (KEY.format(2), 2, 8192, 501),
        (KEY.format(5), 5, 8192, 8693),
        (KEY.format(8), 8, 3616, 16_885),
    ]
    assert sum(r.cursor_nulls for r in receipts) == 2000
    assert _rows(_completed(aws, receipts))["id"].to_pylist() == list(range(20_000))


@pytest.mark.parametrize("limits", [Limits(), ROLLS], ids=["one file", "rolled"])
def test_write_partition_same_bytes_from_every_feed(aws: StrictAws, bucket: str, limits: Limits) -> None:
    found = []
    for batch in (10_000, 65_536, 777):
        plan = task_plan(limits=limits)
        found.append(_completed(aws, list(write_partition(plan, 0, source_rows(30_000, batch)))))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("batches", [[], [source_table(0).to_batches()]], ids=["no batch", "an empty batch"])
def test_write_partition_without_rows(aws: StrictAws, batches: list[Any]) -> None:
    assert list(write_partition(task_plan(counts=(0,)), 0, iter(batches and batches[0]))) == []
    assert aws.calls == []


@pytest.mark.parametrize(
    ("counted", "said"), [(20_001, "20001 rows when they were counted and 20000"), (19_999, "and at least 20000 when")]
)
def test_write_partition_count_differs(aws: StrictAws, bucket: str, counted: int, said: str) -> None:
    with pytest.raises(SourceFailedError) as caught:
        list(write_partition(task_plan(limits=ROLLS, counts=(counted,)), 0, source_rows(20_000)))
    assert said in caught.value.message
    assert (aws.uploads(bucket), aws.objects(bucket)) == ([], {})


def test_write_partition_second_file_fails(aws: StrictAws, bucket: str) -> None:
    denied: dict[str, Any] = {"status": 403, "code": "AccessDenied", "message": "no"}
    aws.fail(lambda call: call.key == KEY.format(1) and "partNumber" in call.query, **denied)
    receipts = write_partition(task_plan(limits=ROLLS), 0, source_rows(20_000))
    first = next(receipts)
    assert aws.uploads(bucket) == [(KEY.format(0), first.upload_id)]
    with pytest.raises(S3AccessDeniedError):
        list(receipts)
    assert aws.uploads(bucket) == []


@pytest.mark.parametrize("error", [OSError("disk"), KeyboardInterrupt()], ids=repr)
def test_write_partition_source_fails(aws: StrictAws, bucket: str, error: BaseException) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from source_rows(20_000)
        raise error

    with pytest.raises(type(error)) as caught:
        list(write_partition(task_plan(limits=ROLLS), 0, batches()))
    assert caught.value is error
    assert aws.uploads(bucket) == []
    assert ("s3:AbortMultipartUpload", 204) in [(action, status) for action, _, status in aws.calls]


def test_write_partition_closed(aws: StrictAws, bucket: str) -> None:
    receipts = write_partition(task_plan(limits=ROLLS), 0, source_rows(20_000))
    next(receipts)
    receipts.close()  # type: ignore[attr-defined]
    assert aws.uploads(bucket) == []


def test_task_plan_pickles() -> None:
    plan = task_plan(counts=(5,))
    assert pickle.loads(pickle.dumps(plan)) == plan
