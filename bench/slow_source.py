"""An S3 server for a folder of files, each of whose answers takes 20 ms, as S3's do; its address is its first line.

Enough of S3 to read a source: a listing, the size of an object, ranges of it.
"""

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

SECONDS = 0.02


class SlowSource(ThreadingHTTPServer):
    """The bucket ``source`` with the folder's files."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files = {
            f"{folder.name}/{file.name}": file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: SlowSource

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_HEAD(self) -> None:
        time.sleep(SECONDS)
        body = self.server.files.get(self._key())
        if body is None:
            about = {"Content-Length": "0", "x-amz-bucket-region": "us-east-1"}
            return self._answer(404 if self._key() else 200, about)
        return self._answer(200, {"Content-Length": str(len(body))})

    def do_GET(self) -> None:
        time.sleep(SECONDS)
        query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        if "list-type" in query:
            body = self._list(query.get("prefix", [""])[0])
            return self._answer(200, {"Content-Length": str(len(body))}, body)
        content = self.server.files.get(self._key())
        if content is None:
            return self._answer(404, {"Content-Length": "0"})
        first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        start, end = int(first), min(int(last or len(content)) + 1, len(content))
        where = {"Content-Length": str(end - start), "Content-Range": f"bytes {start}-{end - 1}/{len(content)}"}
        return self._answer(206, where, content[start:end])

    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).removeprefix("/source").strip("/")

    def _list(self, prefix: str) -> bytes:
        items = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(body)}</Size><ETag>{len(body)}</ETag>"
            "<LastModified>2026-01-01T00:00:00Z</LastModified></Contents>"
            for key, body in self.server.files.items()
            if key.startswith(prefix)
        )
        return (
            f"<ListBucketResult><Name>source</Name><IsTruncated>false</IsTruncated>{items}</ListBucketResult>".encode()
        )

    def _answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    source = SlowSource(Path(sys.argv[1]))
    print(f"http://127.0.0.1:{source.server_port}", flush=True)  # noqa: T201
    source.serve_forever()
