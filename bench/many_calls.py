"""Complete, withdraw and give up uploads against an S3 in this process that takes 20 ms a call and has a limit.

PYTHONPATH=job:. python -m bench.many_calls --files 10000 --rate 3500
"""

import argparse
import io
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from botocore.awsrequest import AWSResponse

from lakewriter.aws import Clients
from lakewriter.commit.conditional_writes import S3Store
from lakewriter.commit.uploads import abort_all, complete_all, withdraw
from lakewriter.receipt import Part, Receipt
from lakewriter.records.actions import FilesAction
from lakewriter.records.changes import Load
from lakewriter.spec.access import Access

_SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
_COMPLETED = b"<CompleteMultipartUploadResult><Key>k</Key><ETag>e</ETag></CompleteMultipartUploadResult>"


class Body(io.BytesIO):
    """The body of an answer."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.getvalue()


class FakeS3:
    """Answers every call after ``seconds``, with 503 beyond ``rate`` a second; those of a second may come at once."""

    def __init__(self, seconds: float, rate: int) -> None:
        self._seconds, self._rate = seconds, rate
        self._lock = threading.Lock()
        self._left, self._seen = float(rate), time.monotonic()
        self.answers: Counter[str] = Counter()

    def answer(self, request: Any, **_: Any) -> AWSResponse:
        """Answer one request; botocore sends none then."""
        time.sleep(self._seconds)
        with self._lock:
            now = time.monotonic()
            self._left = min(self._rate, self._left + self._rate * (now - self._seen))
            self._seen = now
            is_over = self._left < 1
            self._left -= not is_over
            self.answers["503" if is_over else request.method] += 1
        headers: Any = {"ETag": '"e"', "Content-Length": "3", "x-amz-meta-lakewriter-load": "p/j/a"}
        if is_over:
            return AWSResponse(request.url, 503, headers, Body(_SLOW_DOWN))
        status = 204 if request.method == "DELETE" else 200
        return AWSResponse(request.url, status, headers, Body(_COMPLETED if request.method == "POST" else b""))


def make_receipts(files: int) -> tuple[Receipt, ...]:
    """Receipts of uploads in one part each."""
    return tuple(
        Receipt(
            bucket="b", key=f"t/{seq:06d}.parquet", upload_id=f"u{seq}", parts=(Part(1, "e"),), checksum_algorithm=None,
            size=3, rows=1, row_groups=1, partition=0, seq=seq, first_index=0, engine="arro3", requests={},
        )
        for seq in range(files)
    )  # fmt: skip


def main() -> None:
    """Print seconds, calls and refusals of each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--milliseconds", type=float, default=20)
    parser.add_argument("--rate", type=int, default=3500)
    given = parser.parse_args()
    access = Access(bucket="b", region="us-east-1", access_key_id="k", secret_access_key="s")
    intent = Load(
        pipeline="p", job_id="j", attempt="a", table_id="t", schema_name="", table="t", started=datetime.now(UTC),
        access=access, catalog=FilesAction(), receipts=make_receipts(given.files), cursor_before=None,
        cursor_after=None, feed="rows", staged_seconds=0,
    )  # fmt: skip
    ways: dict[str, Callable[[S3Store], object]] = {
        "complete": lambda store: complete_all(store, intent, time.sleep),
        "withdraw": lambda store: withdraw(store, intent),
        "give up": lambda store: abort_all(store, intent.files),
    }
    for name, way in ways.items():
        clients, fake = Clients(access), FakeS3(given.milliseconds / 1000, given.rate)
        clients.s3.meta.events.register_last("before-send.s3", fake.answer)
        began = time.monotonic()
        way(S3Store(clients))
        seconds = time.monotonic() - began
        speed = f"{given.files:,} files in {seconds:.1f} s, {given.files / seconds:,.0f} a second"
        sys.stdout.write(f"{name:10} {speed}, {dict(fake.answers)}\n")


if __name__ == "__main__":
    main()
