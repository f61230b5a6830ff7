"""Peak memory and seconds of the driver for a load of many files of 100 columns, without Spark and without S3.

PYTHONPATH=job:. python -m bench.many_files --files 100000 --a-task 100
"""

import argparse
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from lakewriter.aws import Clients
from lakewriter.commit import attempt as attempts
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.control import Control
from lakewriter.commit.kept_receipts import keep_receipts
from lakewriter.commit.recover import recover
from lakewriter.commit.store import Completion, Entry, StoredObject, Upload
from lakewriter.control_object import RECEIPT_PARTS
from lakewriter.naming import ControlKeys
from lakewriter.receipt import ColumnStatistics, Part, Receipt
from lakewriter.receipts.parts import Receipts
from lakewriter.records.actions import FilesAction
from lakewriter.records.changes import Load
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import EVERYTHING
from lakewriter.staging.returned import Packer, Returned, plan_spill

PREFIX = "data/receipts/"


class MemoryStore:
    """A store that keeps control objects, and counts what is asked for data objects."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.calls: Counter[str] = Counter()
        self.abilities = EVERYTHING

    def get(self, key: str) -> tuple[bytes, str] | None:
        self.calls["get"] += 1
        body = self.bodies.get(key)
        return None if body is None else (body, str(hash(body)))

    def create(self, key: str, body: bytes) -> str | None:
        self.calls["create"] += 1
        return str(hash(body)) if self.bodies.setdefault(key, body) is body else None

    def replace(self, key: str, body: bytes, etag: str) -> str | None:
        if str(hash(self.bodies[key])) != etag:
            return None
        self.bodies[key] = body
        return str(hash(body))

    def list_entries(self, prefix: str, limit: int | None = None) -> Iterator[Entry]:
        return iter(())

    def list_folders(self, prefix: str) -> Iterator[str]:
        return iter(())

    def find(self, key: str, *, checksum: bool = False) -> StoredObject | None:
        return None

    def head(self, key: str) -> StoredObject | None:
        return None

    def complete(self, receipt: Receipt) -> Completion:
        self.calls["complete"] += 1
        return Completion.DONE

    def abort(self, key: str, upload_id: str, bucket: str = "") -> None:
        self.calls["abort"] += 1

    def delete(self, key: str, etag: str | None = None) -> None:
        self.calls["delete"] += 1

    def delete_all(self, keys: Sequence[str]) -> None:
        self.calls["delete"] += len(keys)

    def list_uploads(self, prefix: str) -> Iterator[Upload]:
        return iter(())


def make_receipts(files: range, columns: int) -> Iterator[Receipt]:
    """Receipts as a task makes them; bounds differ from file to file."""
    for seq in files:
        day = f"2024-01-{seq % 28 + 1:02d}T10:{seq % 60:02d}:00.{seq % 1_000_000:06d}+00:00"
        statistics = {
            f"column_number_{number}": ColumnStatistics(100_000, seq % 97, 123_456 + seq * number, day, day)
            for number in range(columns)
        }
        yield Receipt(
            bucket="acme-lake", key=f"data/production/public/flights/data/part-4f6a1b2c3d4e-{seq:06d}.parquet",
            upload_id=f"{seq:0128x}", parts=(Part(1, f'"{seq:032x}"', "abcdefg="),), checksum_algorithm="CRC32",
            size=134_217_728, rows=100_000, partition=seq // 100, seq=seq, first_index=1, engine="pyarrow",
            row_groups=1, requests={"POST": 1, "PUT": 1}, columns=statistics,
        )  # fmt: skip


def say(step: str, began: float) -> None:
    """Print the seconds of a step and the peak so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(f"{step:28} {time.monotonic() - began:7.1f} s   peak {peak:7,.0f} MiB\n")
    sys.stdout.flush()


def main() -> None:
    """Print what each step takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--a-task", type=int, default=100)
    parser.add_argument("--columns", type=int, default=100)
    given = parser.parse_args()
    store, access = (
        MemoryStore(),
        Access(bucket="acme-lake", region="us-east-1", access_key_id="k", secret_access_key="s"),
    )
    control = Control(store, ControlKeys("data", "flights"), "public.flights", pause=lambda _: None)
    own = Attempt("flights", "j", "A1", datetime.now(UTC), timedelta(days=30))
    steps: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
        ("stage (all tasks)", lambda at: at.update(outputs=stage(store, given.files, given.a_task, given.columns))),
        ("register", lambda at: at.update(began=attempts.register(control, own, lambda _: Clients(access)))),
        ("gather", lambda at: at.update(kept=gather(control, at.pop("outputs")))),
        ("bind", lambda at: bind(control, own, at, access)),
        ("complete, publish, settle", lambda at: attempts.settle(control, own, lambda _: Clients(access))),
        ("recover: nothing is pending", lambda _: recover(control, lambda _: Clients(access))),
        ("read with statistics", lambda at: sum(len(receipt.columns) for receipt in at["kept"])),
    ]
    at: dict[str, Any] = {}
    for name, step in steps:
        began = time.monotonic()
        step(at)
        say(name, began)
    largest = max(store.bodies.items(), key=lambda item: len(item[1]))
    sys.stdout.write(f"{len(at['kept'].parts)} parts, largest object {len(largest[1]):,} bytes, {dict(store.calls)}\n")


def stage(store: MemoryStore, files: int, a_task: int, columns: int) -> list[str]:
    """What all tasks return."""
    tasks = -(-files // a_task)
    spill, outputs = plan_spill(PREFIX, tasks), list[str]()
    for task in range(tasks):
        packer = Packer(spill, lambda key, body: store.bodies.update({key: body}))
        outputs += packer.pack(make_receipts(range(task * a_task, min(files, (task + 1) * a_task)), columns))
    return outputs


def gather(control: Control, outputs: list[str]) -> Receipts:
    """The receipts as the intent names them."""
    returned = Returned.parse(outputs)
    outputs.clear()
    return keep_receipts(control, PREFIX, returned.texts, returned.parts)


def bind(control: Control, own: Attempt, at: dict[str, Any], access: Access) -> None:
    """The point of no return."""
    kept: Receipts = at["kept"]
    intent = Load(
        pipeline="flights", job_id="j", attempt="A1", table_id="public.flights", schema_name="public", table="flights",
        started=own.started, access=access, catalog=FilesAction(), receipts=tuple(kept.at_hand),
        parts=tuple(kept.parts), cursor_before=None, cursor_after=None, feed="rows", staged_seconds=0,
        needs=(RECEIPT_PARTS,) if kept.parts else (),
    ).reading_by(control.read_body)  # fmt: skip
    attempts.bind(control, own, intent, at["began"], lambda _: Clients(access))


if __name__ == "__main__":
    main()
