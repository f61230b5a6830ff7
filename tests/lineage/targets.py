"""Servers that take events: one that does, and those that do not."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class Target:
    """A server on this machine. It answers with ``status``, or not at all while it ``hangs``."""

    def __init__(self, status: int = 201, *, hangs: bool = False, location: str = "") -> None:
        self.status, self.location = status, location
        self.events: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str, str | None]] = []
        self.free = threading.Event()
        if not hangs:
            self.free.set()
        handler = type("Handler", (_Handler,), {"target": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.free.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    target: Target

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.target.requests.append(("POST", self.path, self.headers["Authorization"]))
        self.target.free.wait(30)
        if self.target.status < 300:
            self.target.events.append(json.loads(body))
        self._answer()

    def do_GET(self) -> None:
        self.target.requests.append(("GET", self.path, self.headers["Authorization"]))
        self.target.free.wait(30)
        self._answer()

    def _answer(self) -> None:
        self.send_response(self.target.status)
        if self.target.location:
            self.send_header("Location", self.target.location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def closed_port() -> Iterator[str]:
    """The URL of a port that nobody listens on."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    url = f"http://127.0.0.1:{server.server_address[1]}"
    server.server_close()
    yield url
