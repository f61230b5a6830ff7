"""``python -m lakewriter.local_server.catalog_process FOLDER PORT ID``: serve the catalog of ``--local`` over HTTP."""

import json
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from lakewriter import aws
from lakewriter.errors import LakeError
from lakewriter.local_server.catalog_server import IDENTITY
from lakewriter.local_server.local_tables import Answer, Call, LocalTables
from lakewriter.local_server.server import LocalServer, Running

_DELEGATION: Final = "X-Iceberg-Access-Delegation"


class _ServerObjects:
    """The objects of the S3 server beside the catalog."""

    def __init__(self, running: Running) -> None:
        self._access = running.make_access("", holds_keys=True)
        self._running = running
        self._s3 = aws.Clients(self._access).s3

    def read(self, location: str) -> bytes:
        bucket, _, key = location.removeprefix("s3://").partition("/")
        return aws.read_object(self._s3, Bucket=bucket, Key=key)[0]

    def create(self, location: str, content: bytes) -> None:
        bucket, _, key = location.removeprefix("s3://").partition("/")
        self._s3.put_object(Bucket=bucket, Key=key, Body=content, IfNoneMatch="*")

    def delete(self, location: str) -> None:
        bucket, _, key = location.removeprefix("s3://").partition("/")
        self._s3.delete_object(Bucket=bucket, Key=key)

    def list_properties(self) -> dict[str, str]:
        return {
            "s3.endpoint": self._running.endpoint,
            "s3.access-key-id": self._running.key_id,
            "s3.secret-access-key": self._running.secret,
            "s3.path-style-access": "true",
            "s3.region": str(self._access.region),
            "client.region": str(self._access.region),
        }


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path, port: int, identity: str) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.identity = identity
        self._folder = folder
        self._running: Running | None = None
        self._tables: LocalTables | None = None

    def answer(self, call: Call) -> Answer:
        """Carry a call out; its failures are answers too."""
        if (call.method, call.path) == ("GET", IDENTITY):
            return HTTPStatus.OK, {"id": self.identity}
        try:
            return self._open().answer(call)
        except (aws.ClientError, aws.BotoCoreError, LakeError, OSError) as error:
            message = f"{call.method} {call.path}: {error}"
            # Nothing was committed.
            status = HTTPStatus.SERVICE_UNAVAILABLE
            return status, {"error": {"message": message, "type": "ServiceUnavailableException", "code": status}}

    def _open(self) -> LocalTables:
        """Return the catalog over the S3 server as it runs now: it may have been started again at another port."""
        running = LocalServer(self._folder).read()
        if running is None:
            raise OSError(f"{self._folder} has no record of an S3 server")
        if self._tables is None or running != self._running:
            self._tables = LocalTables(
                self._folder / "catalog.db", _ServerObjects(running), running.key_id, running.secret
            )
            self._running = running
        return self._tables


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        authorization = self.headers.get("Authorization", "")
        call = Call(self.command, path, query, authorization, body, self.headers.get(_DELEGATION) is not None)
        status, content = self.server.answer(call)
        self.send_response(status)
        text = b"" if content is None else json.dumps(content).encode()
        if status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """Log nothing: a request each would fill the disk."""


def main() -> None:
    """Serve until the process is ended."""
    folder, port, identity = sys.argv[1:]
    _Server(Path(folder), int(port), identity).serve_forever()


if __name__ == "__main__":
    main()
