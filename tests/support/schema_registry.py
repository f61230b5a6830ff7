"""A schema registry on this machine, with the part of Confluent's API that loads use.

https://docs.confluent.io/platform/current/schema-registry/develop/api.html#get--schemas-ids-int-%20id
"""

import base64
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any

import fastavro


class Registry:
    """Schemas by their ids, and the paths that were asked for. ``broken`` is a status that it answers instead, and
    ``wait`` the seconds that it then asks for."""

    def __init__(self) -> None:
        self.schemas: dict[int, Mapping[str, Any]] = {}
        self.asked: list[str] = []
        self.login: str | None = None
        self.broken: int | None = None
        self.wait = 0
        self.url = ""

    def add(self, number: int, schema: Any, **more: Any) -> None:
        """Register a schema. Avro is not named as a type, as in the real registry's answers."""
        self.schemas[number] = {"schema": json.dumps(schema), **more}

    def answer(self, path: str, login: str | None) -> tuple[int, Any]:
        """Return the status and the body for a GET."""
        self.asked.append(path)
        if self.broken is not None:
            return self.broken, {"error_code": 50001, "message": "Error in the backend data store"}
        if self.login is not None and login != "Basic " + base64.b64encode(self.login.encode()).decode():
            return 401, {"error_code": 401, "message": "Unauthorized"}
        number = path.rpartition("/schemas/ids/")[2]
        if not number.isdecimal():
            return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}
        if int(number) not in self.schemas:
            return 404, {"error_code": 40403, "message": f"Schema {number} not found"}
        return 200, self.schemas[int(number)]


@contextmanager
def serve_registry() -> Iterator[Registry]:
    """Serve a registry on a port of its own."""
    registry = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = registry.answer(self.path, self.headers.get("Authorization"))
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(raw)))
            if registry.wait:
                self.send_header("Retry-After", str(registry.wait))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *args: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    registry.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write_avro(schema: Any, value: Any) -> bytes:
    """Return a value as Avro, with nothing before it."""
    body = BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema), value)
    return body.getvalue()


def write_registered(number: int, schema: Any, value: Any) -> bytes:
    """Return a value as Confluent's serializer writes it, with its schema's id."""
    return b"\0" + number.to_bytes(4, "big") + write_avro(schema, value)
