"""Requests, seconds and memory of the undo of a load of many files, without S3; each call takes as long as there.

PYTHONPATH=job:. python -m bench.many_undone --files 10000 --milliseconds 20
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.many_files import MemoryStore, bind, gather, say, stage
from lakewriter.aws import Clients
from lakewriter.commit import attempt as attempts
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.committed_loads import LastLoads
from lakewriter.commit.control import Control
from lakewriter.commit.pipeline import Pipeline
from lakewriter.commit.store import Entry, StoredObject
from lakewriter.naming import ControlKeys
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import NoCatalog
from lakewriter.spec.specification import Spec


class SlowStore(MemoryStore):
    """The same store; every call takes ``seconds``, and data objects are those of one load."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = 0.0
        self.wanted, self.requests = seconds, Counter[str]()

    def wait(self, call: str) -> None:
        self.requests[call] += 1
        time.sleep(self.seconds)

    def get(self, key: str) -> tuple[bytes, str] | None:
        self.wait("GET")
        return super().get(key)

    def create(self, key: str, body: bytes) -> str | None:
        self.wait("PUT")
        return super().create(key, body)

    def replace(self, key: str, body: bytes, etag: str) -> str | None:
        self.wait("PUT")
        return super().replace(key, body, etag)

    def list_entries(self, prefix: str, limit: int | None = None) -> Iterator[Entry]:
        self.wait("LIST")
        now = datetime.now(UTC)
        return iter([Entry(key, now) for key in sorted(self.bodies) if key.startswith(prefix)])

    def find(self, key: str, *, checksum: bool = False) -> StoredObject | None:
        self.wait("HEAD")
        return StoredObject(1, "flights/j/A1", '"e"')

    def delete(self, key: str, etag: str | None = None) -> None:
        self.wait("DELETE")
        super().delete(key, etag)


def main() -> None:
    """Print what each step takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--milliseconds", type=float, default=20)
    given = parser.parse_args()
    access = Access(bucket="acme-lake", region="us-east-1", access_key_id="k", secret_access_key="s")
    store = SlowStore(given.milliseconds / 1000)
    control = Control(store, ControlKeys("data", "flights"), "public.flights")
    load(store, control, access, given.files)
    store.seconds = store.wanted
    spec = Spec(pipeline="flights", dialect="lakewriter-s3", access=access, catalog=NoCatalog(), tracking=(), tables=())
    clients = Clients(access)
    pipeline = Pipeline(
        spec,
        clients,
        store,  # type: ignore[arg-type]
        control.keys,
        {control.table_id: control},
        lambda _: clients,
        LastLoads({control.table_id: control}),
    )
    steps: list[tuple[str, Callable[[], Any]]] = [
        ("plan", lambda: Undo(pipeline, "j", Choices("a drill")).plan()),
        ("plan and undo", lambda: Undo(pipeline, "j", Choices("a drill")).run()),
    ]
    for name, step in steps:
        store.requests.clear()
        began = time.monotonic()
        step()
        say(name, began)
        sys.stdout.write(f"  {dict(store.requests)}\n")


def load(store: SlowStore, control: Control, access: Access, files: int) -> None:
    """A committed load, with receipts of plain Parquet files."""
    own = Attempt("flights", "j", "A1", datetime.now(UTC), timedelta(days=30))
    at: dict[str, Any] = {"outputs": stage(store, files, 100, 0)}
    at["began"] = attempts.register(control, own, lambda _: Clients(access))
    at["kept"] = gather(control, at.pop("outputs"))
    bind(control, own, at, access)
    attempts.settle(control, own, lambda _: Clients(access))


if __name__ == "__main__":
    main()
