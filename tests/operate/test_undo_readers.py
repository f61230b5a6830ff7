"""Readers that go on while loads are undone see each load whole or not at all, and never a file that is gone."""

import threading
from collections import Counter
from collections.abc import Callable
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.load.lakes import BUCKET
from tests.operate.shop import ICEBERG, Shop

PARTITIONS = {"drop_partitions": True, "grace_minutes": 15}
ROUNDS = [2, pytest.param(200, marks=[pytest.mark.exhaustive, pytest.mark.timeout(3600)])]
WHOLE = 4
"""Rows of each load, in two files."""


class Reader(threading.Thread):
    """Reads again and again; ``seen`` counts how many rows of a load one read has found."""

    def __init__(self, read: Callable[[], Counter[str]]) -> None:
        super().__init__(daemon=True)
        self.read, self.seen, self.reads = read, Counter[int](), 0
        self.error: Exception | None = None
        self.stop = threading.Event()

    def run(self) -> None:
        try:
            while not self.stop.is_set():
                self.seen.update(self.read().values())
                self.reads += 1
        except Exception as error:  # noqa: BLE001 - the test's
            self.error = error


def read_snapshot(shop: Shop) -> Counter[str]:
    """As PyIceberg does: the table, then its files."""
    return Counter(shop.iceberg().scan(selected_fields=("_supa_job_id",)).to_arrow()["_supa_job_id"].to_pylist())


def read_partitions(shop: Shop) -> Counter[str]:
    """As an engine does by Glue: first all partitions, then the files in them."""
    s3, rows = shop.aws.client("s3"), Counter[str]()
    prefixes = [
        each["StorageDescriptor"]["Location"].split("/", 3)[3].rstrip("/") + "/" for each in shop.glue_partitions()
    ]
    keys = [
        entry["Key"]
        for prefix in prefixes
        for entry in s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", ())
    ]
    for key in keys:
        body = s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        rows.update(pq.read_table(BytesIO(body))["_supa_job_id"].to_pylist())
    return rows


@pytest.mark.usefixtures("small_files_apart")
@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize(
    ("settings", "undo", "read"),
    [(ICEBERG, None, read_snapshot), ({}, PARTITIONS, read_partitions)],
    ids=["snapshot", "partition"],
)
def test_a_load_is_whole_or_gone(tmp_path, aws, bucket, spark, settings, undo, read, rounds):
    shop = Shop(tmp_path, aws, spark, settings, undo=undo)
    for half in (0, 1):
        rows = pa.table({"id": [half * 2, half * 2 + 1], "text": ["x", "y"]})
        pq.write_table(rows, tmp_path / "shots" / f"{half}.parquet")
    assert shop.try_load("first", more=False).tables[0].files == 2
    reader = Reader(lambda: read(shop))
    reader.start()
    for number in range(rounds):
        assert shop.try_load(f"n{number}", more=False).status == "done"
        (undoing,) = shop.undo(f"n{number}").run()
        assert undoing.plan.undone.files == 2
    reader.stop.set()
    reader.join(60)
    assert reader.error is None
    assert reader.seen.keys() == {WHOLE}
    assert reader.reads >= rounds
    assert read(shop) == {"first": WHOLE}
