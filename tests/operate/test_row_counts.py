"""``verify --rows`` of CSV and Avro: rows and ids as the files have them. Other tests verify Parquet and JSONL."""

import gzip
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakewriter.aws import Clients
from lakewriter.commit.attempt import Attempt
from lakewriter.operate.row_counts import CountedFile, Counting, count_rows
from lakewriter.receipt import Part, Receipt
from lakewriter.spec.access import Access
from tests.commit.intents import intent
from tests.load.lakes import BUCKET
from tests.load.syncs import SyncLake, catalog, record, state, stream
from tests.operate.tampered import Loaded
from tests.support.local_tasks import local_session

GZIP, PLAIN = {"compression_type": "GZIP"}, {"compression_type": "No Compression"}
NAMES = ["plain", 'two\r\nlines, "quoted"', ""]
FORMS: list[tuple[str, dict[str, Any]]] = [
    # the files' extension, the format
    (".csv.gz", {"format_type": "CSV", "compression": GZIP}),
    (".csv", {"format_type": "CSV", "compression": PLAIN, "flattening": "Root level flattening"}),
    (".avro", {"format_type": "Avro"}),
    (".avro", {"format_type": "Avro", "compression_codec": {"codec": "zstandard", "compression_level": 3}}),
]


@pytest.mark.parametrize(("end", "form"), FORMS, ids=[f"{end} {number}" for number, (end, _) in enumerate(FORMS)])
def test_rows_are_counted(tmp_path, aws, bucket, end, form):
    lake = SyncLake(tmp_path, aws, local_session(1))
    records = [record("users", {"user_id": n, "name": {"first": name}}) for n, name in enumerate(NAMES)]
    path = lake.messages(*records, state("users", 3))
    source = {"messages": path, "catalog": catalog(stream("users"))}
    lake.write({"format": form, "s3_bucket_path": "messages"}, source=source)
    loaded = Loaded(aws, lake)
    assert loaded.file.endswith(end)
    found = loaded.verify(rows=True)
    (count,) = found.counted
    assert (found.differences, count.rows, count.expected, count.repeated_ids) == ((), 3, 3, 0)

    body = aws.objects(BUCKET)[loaded.file]
    copy = f"{loaded.file.rpartition('/')[0]}/2022_01_01_0_9{end}"
    loaded.put(copy, body, load=loaded.load_of_a)
    found = loaded.verify(rows=True)
    (count,) = found.counted
    assert (count.rows, count.expected, count.repeated_ids) == (6, 3, 3)
    assert {each.kind for each in found.differences} == {"object_copied", "rows_differ", "ids_repeated"}

    # A copy that is cut off cannot be counted, and that is said.
    loaded.put(copy, cut_off(body, end), load=loaded.load_of_a)
    kinds = {each.kind for each in loaded.verify(rows=True).differences}
    assert {"object_copied"} < kinds


def test_engine_of_a_later_release_is_not_taken_for_parquet():
    receipt = Receipt(
        bucket="b", key="t/1.lance", upload_id="u", parts=(Part(1, "e"),), checksum_algorithm=None, size=3, rows=1,
        row_groups=1, partition=0, seq=0, first_index=0, engine="lance", requests={},
    )  # fmt: skip
    own = Attempt("p", "a", "A1", datetime(2024, 1, 15, tzinfo=UTC), timedelta(days=30))
    clients = Clients(Access(bucket="b", region="us-east-1"))
    files = (CountedFile(receipt.key, 1, "lance"),)
    count, (wrong,) = count_rows(intent(own, (receipt,)), files, (), Counting("_id"), clients, 1)
    assert (count.rows, wrong.kind, wrong.key, wrong.code) == (0, "not_compared", "t/1.lance", "PENDING_UNRECOVERABLE")
    assert wrong.message == (
        "s3://b/t/1.lance: its rows cannot be counted: its receipt says that 'lance' wrote it; expected avro, csv, "
        "jsonl, arro3, pyarrow."
    )


def cut_off(body: bytes, end: str) -> bytes:
    """Without the second half; text that is not compressed loses whole rows."""
    return body[: len(body) // 2] if end != ".csv.gz" else gzip.compress(b"x")[:-9]
