"""A load of more files than one manifest holds: one snapshot, read back by PyIceberg, DuckDB and an Avro reader."""

import io
import struct
from datetime import UTC, date, datetime
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
import pytest

from lakewriter.control_object import RECEIPT_PARTS
from lakewriter.receipt import ReceiptPart
from lakewriter.receipts.parts import PartWriter
from tests.iceberg.commits import Table, intent, strays
from tests.iceberg.test_readers import extension
from tests.load.lakes import BUCKET
from tests.receipts.files import Objects
from tests.support.narrow import need

DAYS = [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 3)]
FILES = 600
"""200 of each day, with 1, 2 and 3 rows: 1,200 rows."""


def rows(day: date) -> pa.Table:
    """As many rows as the day's number."""
    at = pa.array([datetime(day.year, day.month, day.day, 12, tzinfo=UTC)] * day.day, pa.timestamp("us", "UTC"))
    return pa.table({"id": pa.array(range(day.day), pa.int64()), "at": at})


@pytest.fixture
def table(aws, bucket):
    """A table by day, whose manifests are full with the first look at their size: after 250 entries."""
    return Table(aws)


def make_intent(table, objects, *, has_objects=True):
    """A load of 600 files, 200 for each day, whose receipts are in parts of 200."""
    first = table.partitioned("a", pa.concat_tables(map(rows, DAYS)), "day(at)")
    by_day, receipts = dict(zip(DAYS, first.receipts, strict=True)), []
    s3 = table.aws.client("s3")
    table.aws.hide_missing = False
    with table.seen.transaction() as transaction:
        transaction.set_properties({"commit.manifest.target-size-bytes": "1"})
    for seq in range(FILES):
        staged = by_day[DAYS[seq // 200]]
        key = staged.key.replace("part-a-", f"part-{seq:03}-")
        if has_objects:
            s3.copy_object(Bucket=BUCKET, Key=key, CopySource={"Bucket": BUCKET, "Key": staged.key})
        receipts.append(staged.model_copy(update={"key": key, "seq": seq}))
    for staged in first.receipts:
        s3.delete_object(Bucket=BUCKET, Key=staged.key)
    writer = PartWriter("c/", 10**9, objects.write)
    parts: list[ReceiptPart] = []
    for start in range(0, FILES, 200):
        for receipt in receipts[start : start + 200]:
            parts += writer.add(receipt)
        parts += writer.flush()
    loaded = intent("a", first.catalog).model_copy(update={"parts": tuple(parts), "needs": (RECEIPT_PARTS,)})
    return loaded, receipts


def list_records(body: bytes) -> list[dict[str, Any]]:
    """The records of an Avro file, by a reader that knows nothing of Iceberg."""
    return [record for record in fastavro.reader(io.BytesIO(body)) if isinstance(record, dict)]


def day_number(day):
    """A bound of a partition as a manifest list has it: the days since 1970 in four bytes."""
    return struct.pack("<i", (day - date(1970, 1, 1)).days)


@pytest.mark.exhaustive
def test_many_files_are_one_snapshot_of_several_manifests(aws, table, tmp_path):
    objects, seen = Objects(), []
    loaded, receipts = make_intent(table, objects)

    def read(key):
        manifests = sum(key.endswith(".avro") for key in aws.objects(BUCKET))
        seen.append(manifests)
        return objects.read(key)

    table.publish(loaded.reading_by(read), 1)
    # Parts are read as entries are written; what follows reads the load back, beside three manifests and their list.
    assert seen == [0, 0, 1, 4, 4, 4]
    found = table.seen
    (snapshot,) = found.snapshots()
    bodies = {f"s3://{BUCKET}/{key}": body for key, body in aws.objects(BUCKET).items()}
    listed = list_records(bodies[snapshot.manifest_list])
    assert [
        (each["added_files_count"], each["added_rows_count"], each["existing_files_count"], each["partitions"])
        for each in listed
    ] == [
        (files, number, 0, [{"contains_null": False, "contains_nan": False, "lower_bound": low, "upper_bound": high}])
        for files, number, low, high in (
            (250, 200 * 1 + 50 * 2, day_number(DAYS[0]), day_number(DAYS[1])),
            (250, 150 * 2 + 100 * 3, day_number(DAYS[1]), day_number(DAYS[2])),
            (100, 100 * 3, day_number(DAYS[2]), day_number(DAYS[2])),
        )
    ]
    assert [each["manifest_length"] for each in listed] == [len(bodies[each["manifest_path"]]) for each in listed]
    entries = [entry for each in listed for entry in list_records(bodies[each["manifest_path"]])]
    assert [(entry["data_file"]["file_path"], entry["data_file"]["record_count"]) for entry in entries] == [
        (f"s3://{BUCKET}/{receipt.key}", receipt.rows) for receipt in receipts
    ]
    size = sum(receipt.size for receipt in receipts)
    summary = need(snapshot.summary).additional_properties
    assert {name: value for name, value in summary.items() if not name.startswith("lakewriter")} == {
        "added-data-files": "600", "added-records": "1200", "added-files-size": str(size),
        "changed-partition-count": "3", "total-data-files": "600", "total-records": "1200",
        "total-files-size": str(size), "total-delete-files": "0", "total-position-deletes": "0",
        "total-equality-deletes": "0",
    }  # fmt: skip
    assert found.scan().to_arrow().num_rows == 1200
    assert count_by_duckdb(tmp_path, bodies, found) == [(day, 200 * day.day, 200 * sum(range(day.day))) for day in DAYS]
    assert strays(aws, found) == set()


def count_by_duckdb(folder, bodies, found):
    """Rows and the sum of ``id`` of each day, by DuckDB's own reader of Iceberg."""
    root = found.location()
    for location, body in bodies.items():
        if location.startswith(root):
            file = folder / "t" / location.removeprefix(f"{root}/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)
    version = found.metadata_location.rpartition("/")[2].removesuffix(".metadata.json")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for needed in ("avro", "iceberg"):
            connection.execute(f"LOAD '{extension(needed)}'")
        scan = f"iceberg_scan('{folder / 't'}', version='{version}', allow_moved_paths=true)"
        return connection.sql(f'SELECT "at"::DATE, count(*), sum(id)::INT FROM {scan} GROUP BY 1 ORDER BY 1').fetchall()


def test_full_manifests_stay_beside_later_loads(table):
    objects = Objects()
    loaded, _ = make_intent(table, objects, has_objects=False)
    later = table.partitioned("b", rows(DAYS[0]), "day(at)")
    table.publish(loaded.reading_by(objects.read), 1)
    before = need(table.seen.current_snapshot()).manifests(table.seen.io)
    table.publish(later, 2)
    after = need(table.seen.current_snapshot()).manifests(table.seen.io)
    assert len(after) == 4
    assert {each.manifest_path for each in before} < {each.manifest_path for each in after}
    assert need(need(table.seen.current_snapshot()).summary)["total-records"] == "1201"
