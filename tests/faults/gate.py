"""A proxy between one process and the embedded AWS: what can go wrong on the way, arranged by a test.

It also is the wire that is cut when the process dies: nothing of a closed gate's process reaches the server any more.
"""

import http.client
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Self
from urllib.parse import urlsplit

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import ThreadedWSGIServer

from tests.support.call import Answer, Call, read_call

_NOW: Final = struct.pack("ii", 1, 0)
"""Linger for no time: closing sends RST."""


class Fault(StrEnum):
    """What the caller meets. The first four are not applied; of the last two only the answer suffers."""

    ERROR = "500"
    SLOW_DOWN = "503"
    RESET = "reset"
    STALL = "stall"
    CUT = "cut"
    DROP = "drop"


Weather = Callable[[Call], Fault | None]
"""What befalls a call."""


def once(match: Callable[[Call], bool], fault: Fault) -> Weather:
    """The first matching call meets the fault."""
    met: list[Call] = []

    def weather(call: Call) -> Fault | None:
        if met or not match(call):
            return None
        met.append(call)
        return fault

    return weather


@dataclass
class Point:
    """A moment: the matching call after ``after`` others, before it is applied or after it was."""

    match: Callable[[Call], bool]
    do: Callable[[], object]
    after: int
    applied: bool


class Gate:
    """Use as a context manager; ``url`` is the endpoint of every service. ``calls`` are all that arrived, in order."""

    def __init__(self, upstream: str, weather: Weather = lambda _: None, *, stall_seconds: float = 0.5) -> None:
        self._upstream = urlsplit(upstream).netloc
        self.weather, self._stall_seconds = weather, stall_seconds
        self._turn = threading.RLock()
        self._idle = threading.Condition(threading.Lock())
        self._under_way = 0
        self._points: list[Point] = []
        self._server = _Server("127.0.0.1", 0, self, handler=_Handler)
        self.calls: list[Call] = []
        self.met: list[Fault] = []
        self.closed = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where the process finds AWS."""
        return f"http://127.0.0.1:{self._server.port}"

    def at(
        self, match: Callable[[Call], bool], do: Callable[[], object], *, after: int = 0, applied: bool = False
    ) -> None:
        """Let ``do`` be done once, at the matching call after ``after`` others, which waits for it.

        Before the call is applied no other call comes through until ``do`` returns; after it, others go on.
        """
        self._points.append(Point(match, do, after, applied))

    def close(self) -> None:
        """Cut the wire: what is under way ends, nothing else is applied, and no answer arrives."""
        self.closed = True
        with self._idle:
            self._idle.wait_for(lambda: self._under_way == 0, timeout=30)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """The WSGI application."""
        call = read_call(environ)
        with self._turn:
            self.calls.append(call)
            point = self._reached(call)
            if point is not None and not point.applied:
                point.do()
            if self.closed:
                return _reset(environ)
            fault = self.weather(call)
            self.met += [fault] if fault else []
            with self._idle:
                self._under_way += 1
        return self._answered(environ, call, fault, point, start_response)

    def _answered(
        self,
        environ: dict[str, Any],
        call: Call,
        fault: Fault | None,
        point: Point | None,
        start_response: Callable[..., Any],
    ) -> Iterable[bytes]:
        try:
            answer = self._forward(environ, call) if fault in _APPLIED else self._instead(call, fault)
        finally:
            with self._idle:
                self._under_way -= 1
                self._idle.notify_all()
        if answer is None or fault is Fault.DROP or (fault is Fault.CUT and not answer.body):
            return _reset(environ)
        if point is not None and point.applied:
            point.do()
        if self.closed:
            return _reset(environ)
        start_response(f"{answer.status} _", list(answer.headers))
        return _cut(environ, answer) if fault is Fault.CUT else [answer.body]

    def _reached(self, call: Call) -> Point | None:
        for point in self._points:
            if point.match(call):
                point.after -= 1
                if point.after == -1:
                    return point
        return None

    def _instead(self, call: Call, fault: Fault | None) -> Answer | None:
        if fault is Fault.STALL:
            time.sleep(self._stall_seconds)
            return None
        if fault is Fault.ERROR:
            return call.error(500, "InternalError", "We encountered an internal error. Please try again.")
        return call.error(503, "SlowDown", "Please reduce your request rate.") if fault is Fault.SLOW_DOWN else None

    def _forward(self, environ: dict[str, Any], call: Call) -> Answer:
        headers = {name: value for name, value in call.headers.items() if name not in _HOP}
        headers |= {"Content-Type": environ["CONTENT_TYPE"]} if environ.get("CONTENT_TYPE") else {}
        connection = http.client.HTTPConnection(self._upstream, timeout=120)
        try:
            connection.request(call.method, environ["REQUEST_URI"], call.body, headers)
            answer = connection.getresponse()
            kept = tuple((name, value) for name, value in answer.getheaders() if name.lower() not in _HOP)
            return Answer(answer.status, kept, answer.read())
        finally:
            connection.close()


_APPLIED: Final = (None, Fault.CUT, Fault.DROP)
_HOP: Final = {"connection", "expect", "transfer-encoding", "server"}


def _reset(environ: dict[str, Any]) -> Iterable[bytes]:
    environ["werkzeug.socket"].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NOW)
    raise ConnectionAbortedError


def _cut(environ: dict[str, Any], answer: Answer) -> Iterable[bytes]:
    yield answer.body[: len(answer.body) // 2]
    _reset(environ)


class _Server(ThreadedWSGIServer):
    daemon_threads = True

    def shutdown_request(self, request: Any) -> None:
        """Close at once what was reset; a shutdown before it would be a proper end."""
        if request.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, len(_NOW)) == _NOW:
            self.close_request(request)
        else:
            super().shutdown_request(request)


class _Handler(MotoRequestHandler):
    disable_nagle_algorithm = True

    def send_response(self, code: int, message: str | None = None) -> None:
        """Without a date of its own: the server's is among the answer's headers."""
        self.send_response_only(code, message)

    def connection_dropped(self, error: BaseException, environ: Any = None) -> None:
        """Wait for no further request on what was reset."""
        self.close_connection = True

    def log(self, *_: Any, **__: Any) -> None:
        """Keep the tests' output free of an access log."""
