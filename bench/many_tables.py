"""Time ``status`` and ``verify`` of a pipeline of many tables against an S3 in this process that takes 20 ms a call.

PYTHONPATH=job:. python -m bench.many_tables --tables 10000
"""

import argparse
import hashlib
import io
import json
import sys
import tempfile
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq
from botocore.awsrequest import AWSResponse

from bench.many_calls import Body
from lakewriter.aws import Clients
from lakewriter.cli.status_view import read_states
from lakewriter.commit.pipeline import Pipeline
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.operate.verification import verify
from lakewriter.receipt import Part, Receipt
from lakewriter.records.actions import FilesAction
from lakewriter.records.changes import Load
from lakewriter.records.state import TableState
from lakewriter.spec.specification import Spec

PAGE: Final = 1000
"""Keys in a page of a listing, as S3 has them."""
_LOAD: Final = "p/j/a"
_PART: Final = "0" * 32
_ETAG: Final = f'"{hashlib.md5(bytes.fromhex(_PART), usedforsecurity=False).hexdigest()}-1"'
"""The etag of an upload of one part with the etag ``_PART``, as S3 makes it."""


class StoredS3:
    """Answers reads of the objects that it holds, each call after ``seconds``."""

    def __init__(self, objects: dict[str, bytes], seconds: float) -> None:
        self._objects, self._keys, self._seconds = objects, sorted(objects), seconds
        self.answers: Counter[str] = Counter()

    def answer(self, request: Any, **_: Any) -> AWSResponse:
        """Answer one request; botocore sends none then."""
        time.sleep(self._seconds)
        url = urlsplit(request.url)
        query = {name: values[-1] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        if "list-type" in query:
            self.answers["LIST"] += 1
            return self._reply(request, 200, self._list(query))
        self.answers[request.method] += 1
        body = self._objects.get(unquote(url.path[1:]))
        if body is None:
            return self._reply(request, 404, b"<Error><Code>NoSuchKey</Code></Error>")
        return self._reply_object(request, body)

    def _reply_object(self, request: Any, body: bytes) -> AWSResponse:
        asked = request.headers.get("Range")
        if not asked:
            return self._reply(request, 200, body)
        text = asked.decode() if isinstance(asked, bytes) else asked
        first, _, last = text.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(body) - int(last))
        end = min(len(body), int(last) + 1) if first and last else len(body)
        headers = {"Content-Range": f"bytes {start}-{end - 1}/{len(body)}"}
        return self._reply(request, 206, body[start:end], headers)

    def _list(self, query: dict[str, str]) -> bytes:
        prefix, first = query.get("prefix", ""), int(query.get("continuation-token", "0"))
        most = min(PAGE, int(query.get("max-keys", PAGE)))
        start = bisect_left(self._keys, prefix) + first
        page = [key for key in self._keys[start : start + most] if key.startswith(prefix)]
        following = self._keys[start + most : start + most + 1]
        more = bool(following) and following[0].startswith(prefix)
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2027-01-04T06:30:00.000Z</LastModified>"
            f"<ETag>&quot;e&quot;</ETag><Size>{len(self._objects[key])}</Size></Contents>"
            for key in page
        )
        token = f"<NextContinuationToken>{first + most}</NextContinuationToken>" if more else ""
        end = f"<IsTruncated>{str(more).lower()}</IsTruncated>{token}<Name>b</Name><KeyCount>{len(page)}</KeyCount>"
        return f"<ListBucketResult>{end}{contents}</ListBucketResult>".encode()

    def _reply(self, request: Any, status: int, body: bytes, more: dict[str, str] | None = None) -> AWSResponse:
        headers: Any = {"ETag": _ETAG, "Content-Length": str(len(body)), "x-amz-meta-lakewriter-load": _LOAD}
        sent = b"" if request.method == "HEAD" else body
        return AWSResponse(request.url, status, headers | (more or {}), Body(sent))


def make_lake(folder: Path, tables: int) -> Spec:
    """A pipeline of so many tables of files."""
    content = {
        "pipeline": "p",
        "destination": {
            "type": "lakewriter-s3", "location": "s3://lake/data", "region": "us-east-1", "access_key_id": "k",
            "secret_access_key": "s",
        },
        "tables": [
            {"table": f"t{number:05d}", "schema": "s", "read": {"format": "parquet", "path": "s3://lake/source"}}
            for number in range(tables)
        ],
    }  # fmt: skip
    (folder / "lake.yaml").write_text(json.dumps(content), "utf-8")
    return load_spec(folder / "lake.yaml")


def make_objects(spec: Spec) -> dict[str, bytes]:
    """What one load of all tables has left: a file, an intent and a report of each, and the states."""
    file, now, objects = io.BytesIO(), datetime.now(UTC), dict[str, bytes]()
    pq.write_table(pa.table({"id": [1, 2, 3]}), file)
    pipeline = Pipeline.open(spec, Clients(spec.access))
    for table in spec.tables:
        keys, key = pipeline.keys, f"{table.path}/part-j-00000.parquet"
        receipt = Receipt(
            bucket="lake", key=key, upload_id="u", parts=(Part(1, _PART),), checksum_algorithm=None,
            size=file.tell(), rows=3, row_groups=1, partition=0, seq=0, first_index=0, engine="pyarrow", requests={},
        )  # fmt: skip
        intent = Load(
            pipeline="p", job_id="j", attempt="a", table_id=table.id, schema_name="s", table=table.name, started=now,
            access=spec.access, catalog=FilesAction(), receipts=(receipt,), cursor_before=None, cursor_after=None,
            feed="splits", staged_seconds=0,
        )  # fmt: skip
        state = TableState(write=4, committed=1, last_job="j", last_commit=now)
        objects[key] = file.getvalue()
        objects[keys.intent("j", "a", table.id)] = intent.model_dump_json().encode()
        objects[keys.report("j", table.id)] = intent.make_report().model_dump_json().encode()
        objects[keys.state(table.id)] = state.model_dump_json().encode()
    return objects


def main() -> None:
    """Print seconds and calls of each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--milliseconds", type=float, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spec = make_lake(Path(folder), given.tables)
    objects = make_objects(spec)
    ways: dict[str, Callable[[Pipeline], object]] = {
        "status": lambda pipeline: read_states(pipeline.controls),
        "verify": lambda pipeline: verify(pipeline.controls, "j", pipeline.clients),
    }
    for name, way in ways.items():
        clients, fake = Clients(spec.access), StoredS3(objects, given.milliseconds / 1000)
        clients.s3.meta.events.register_last("before-send.s3", fake.answer)
        began, busy = time.monotonic(), time.process_time()
        answer = way(Pipeline.open(spec, clients))
        seconds, cpu = time.monotonic() - began, time.process_time() - busy
        found = len(getattr(answer, "differences", ()))
        sys.stdout.write(
            f"{name:7} {given.tables:,} tables in {seconds:.1f} s, {cpu:.1f} s of CPU, {dict(fake.answers)}, "
            f"{found} differences\n"
        )


if __name__ == "__main__":
    main()
