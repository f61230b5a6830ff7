"""An S3 server that keeps control objects in memory and lets the bytes of uploads go; its address is its first line.

Enough of S3 for a load: conditional puts by etag, multipart uploads, gets, and HEAD of what was uploaded. ``GET
/_first`` tells when the first part began to arrive, as seconds since the epoch.
"""

import hashlib
import threading
import time
import uuid
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

CHUNK = 1 << 20
UPLOADS = (
    b"<ListMultipartUploadsResult><Bucket>acme-lake</Bucket><MaxUploads>1000</MaxUploads>"
    b"<IsTruncated>false</IsTruncated></ListMultipartUploadsResult>"
)
KEYS = b"<ListBucketResult><Name>acme-lake</Name><IsTruncated>false</IsTruncated></ListBucketResult>"
"""Nothing is there, with the fields that the writer asks of every listing."""


@dataclass
class Uploaded:
    """An upload, or the object that it is once it is completed: its size, and its headers of metadata."""

    headers: dict[str, str]
    size: int = 0


class NullSink(ThreadingHTTPServer):
    """Objects by path; of uploads there is no more than their sizes and metadata, by their ids and then their paths."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.uploads: dict[str, Uploaded] = {}
        self.uploaded: dict[str, Uploaded] = {}
        self.lock = threading.Lock()
        self.first_part = 0.0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: NullSink

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_PUT(self) -> None:
        path, query = self._asked()
        if "partNumber" in query:
            self.server.first_part = self.server.first_part or time.time()
            size = self._drain()
            with self.server.lock:
                self.server.uploads[query["uploadId"][0]].size += size
            return self._answer(200, etag=uuid.uuid4().hex)
        body = self._body()
        with self.server.lock:
            if not self._may_write(self.server.objects.get(path)):
                return self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            self.server.objects[path] = body
        return self._answer(200, etag=_etag(body))

    def do_POST(self) -> None:
        path, query = self._asked()
        self._body()
        if "uploads" in query:
            upload = uuid.uuid4().hex
            headers = {name: value for name, value in self.headers.items() if name.lower().startswith("x-amz-meta-")}
            self.server.uploads[upload] = Uploaded(headers)
            text = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            return self._answer(200, text.encode())
        self.server.uploaded[path] = self.server.uploads.pop(query["uploadId"][0])
        text = f"<CompleteMultipartUploadResult><Key>{path}</Key><ETag>done</ETag></CompleteMultipartUploadResult>"
        return self._answer(200, text.encode())

    def do_GET(self) -> None:
        path, query = self._asked()
        if path == "/_first":
            return self._answer(200, repr(self.server.first_part).encode())
        if "uploads" in query or "list-type" in query:
            return self._answer(200, UPLOADS if "uploads" in query else KEYS)
        body = self.server.objects.get(path)
        if body is None:
            return self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        return self._answer(200, body, etag=_etag(body))

    def do_HEAD(self) -> None:
        path, _ = self._asked()
        uploaded = self.server.uploaded.get(path)
        self.send_response(404 if uploaded is None else 200)
        uploaded = uploaded or Uploaded({})
        headers = {"ETag": '"done"', "Content-Length": str(uploaded.size), "Last-Modified": self.date_time_string()}
        for name, value in (headers | uploaded.headers).items():
            self.send_header(name, value)
        self.end_headers()

    def do_DELETE(self) -> None:
        path, _ = self._asked()
        self.server.objects.pop(path, None)
        self._answer(204)

    def _asked(self) -> tuple[str, dict[str, list[str]]]:
        parts = urlsplit(self.path)
        return parts.path, parse_qs(parts.query, keep_blank_values=True)

    def _may_write(self, there: bytes | None) -> bool:
        if self.headers.get("If-None-Match") == "*":
            return there is None
        wanted = self.headers.get("If-Match")
        return wanted is None or (there is not None and wanted.strip('"') == _etag(there))

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _drain(self) -> int:
        size = left = int(self.headers.get("Content-Length", 0))
        while left:
            left -= len(self.rfile.read(min(left, CHUNK)))
        return size

    def _answer(self, status: int, body: bytes = b"", *, etag: str = "") -> None:
        self.send_response(status)
        if etag:
            self.send_header("ETag", f'"{etag}"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _etag(body: bytes) -> str:
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


if __name__ == "__main__":
    sink = NullSink()
    print(f"http://127.0.0.1:{sink.server_port}", flush=True)  # noqa: T201
    sink.serve_forever()
