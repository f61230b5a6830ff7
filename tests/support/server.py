"""An AWS inside the test process, stricter than moto is: it answers as S3, Glue and STS do."""

import io
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import cache
from typing import Any, Self, cast

import boto3
from botocore.client import Config
from moto.moto_api._internal.models import moto_api_backend
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import BaseWSGIServer, make_server
from werkzeug.test import run_wsgi_app

from tests.support import glue_rules, s3_rules
from tests.support.call import BYPASS, Answer, Call, read_call
from tests.support.denials import Denials, outcomes
from tests.support.faults import ConnectionDroppedError, Rule, Times, chain, drop
from tests.support.quick_moto import ask_directly, ask_quickly
from tests.support.sts_rules import Role, Sts
from tests.support.table_upkeep import TableUpkeep


class _Dispatcher(DomainDispatcherApplication):
    """moto's, which lists the folder of its modules for every request."""

    get_backend_for_host = cache(DomainDispatcherApplication.get_backend_for_host)


class StrictAws:
    """moto behind rules; every switch may be turned in a test, ``reset`` turns all back."""

    def __init__(self) -> None:
        self._moto = _Dispatcher(create_backend_app)
        # moto's models take no locks, and a conditional write must look and write at once.
        self._one_at_a_time = threading.Lock()
        self._server: BaseWSGIServer | None = None
        self._own = boto3.Session("testing", "testing")
        self._own_clients: dict[tuple[str, str], Any] = {}
        self.observers: list[Callable[[Call, Answer], None]] = []
        self.reset()

    def reset(self) -> None:
        """No buckets, no roles, no faults, every correction on; whoever observes goes on."""
        moto_api_backend.reset()
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)
        self.skew = timedelta(0)
        self.hide_missing = self.keep_regions = self.fold_names = True
        self.conditional_writes = True
        self.calls: list[tuple[str, str, int]] = []
        self.history: list[tuple[Call, int]] = []
        self.interceptors: list[Rule] = []
        self._denials = Denials()
        self._payers = s3_rules.RequesterPays()
        self._uploads = s3_rules.UploadTimes(self.now)
        self._sts = Sts(self.now)
        self.optimizers = glue_rules.Optimizers()
        self.table_upkeep = TableUpkeep()

    def now(self) -> datetime:
        """The server's time, its skew included."""
        return self.clock() + self.skew

    def __enter__(self) -> Self:
        self._server = make_server("127.0.0.1", 0, self, threaded=True, request_handler=_Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    @property
    def url(self) -> str:
        """The endpoint of every service."""
        if self._server is None:
            raise RuntimeError("the server is not running; enter it with `with` first")
        return f"http://127.0.0.1:{self._server.port}"

    def deny(self, action: str, resource: str = "*", *, message: str | None = None) -> None:
        """Refuse ``action`` on ``resource``; both may have ``*``."""
        self._denials.rules.append((action, resource, message))

    def allow_everything(self) -> None:
        """Take every refusal back."""
        self._denials.rules.clear()

    def role(self, arn: str, external_id: str | None = None, principal: str | None = None) -> None:
        """Let there be a role; no other can be assumed."""
        self._sts.roles[arn] = Role(external_id, principal)

    @property
    def sessions(self) -> set[str]:
        """The access keys that were handed out for roles."""
        return self._sts.keys

    def find_secret(self, key: str) -> tuple[str, str] | None:
        """The secret and the token behind an access key, as a service knows them; None for one that is not valid."""
        return self._sts.find_secret(key)

    def session_seconds(self, seconds: int) -> None:
        """Let the credentials of every role assumed from now on expire so soon."""
        self._sts.session_seconds = seconds

    def requester_pays(self, bucket: str) -> None:
        """Let the bucket refuse whoever does not offer to pay."""
        self._payers.buckets.add(bucket)

    def fail(
        self,
        match: Callable[[Call], bool],
        *,
        status: int = 503,
        code: str = "SlowDown",
        message: str = "Please reduce your request rate.",
        times: int = 1,
    ) -> None:
        """Answer the next ``times`` matching calls with an error; they are not applied."""
        self.interceptors.append(Times(match, times, lambda call, _proceed: call.error(status, code, message)))

    def drop_answer(self, match: Callable[[Call], bool], *, times: int = 1) -> None:
        """Apply the next ``times`` matching calls, then close the connection without an answer."""
        self.interceptors.append(Times(match, times, drop))

    def client(self, service: Any, region: str = "us-east-1") -> Any:
        """A client for the test's own use: not corrected, not denied, not recorded."""
        if (service, region) not in self._own_clients:
            config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
            where: dict[str, Any] = {"region_name": region, "endpoint_url": self.url, "config": config}
            client = self._own.client(service, **where)
            client.meta.events.register("before-send", _mark)
            self._own_clients[service, region] = client
        return self._own_clients[service, region]

    def objects(self, bucket: str) -> dict[str, bytes]:
        """Everything in the bucket, by key."""
        found = s3_rules.moto_bucket(bucket)
        return {key: found.keys[key].value for key in sorted(found.keys)} if found else {}

    def uploads(self, bucket: str) -> list[tuple[str, str]]:
        """``(key, upload id)`` of the uploads neither completed nor aborted."""
        found = s3_rules.moto_bucket(bucket)
        return sorted((upload.key_name, upload.id) for upload in found.multiparts.values()) if found else []

    def _rules(self) -> Iterable[Rule]:
        yield from self.interceptors
        yield self._sts.expire
        if self.keep_regions:
            yield s3_rules.keep_regions
        yield self._denials
        yield self._payers
        if self.hide_missing:
            yield s3_rules.hide_missing
        if not self.conditional_writes:
            yield s3_rules.ignore_conditions
        yield s3_rules.finish_gone_uploads
        yield self._uploads
        yield glue_rules.limit_lists
        if self.fold_names:
            yield glue_rules.fold_names
        yield glue_rules.check_versions
        yield glue_rules.get_catalog
        yield self.optimizers
        yield self.table_upkeep
        yield self._sts.assume

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """The WSGI application."""
        call = read_call(environ)
        try:
            with self._one_at_a_time:
                answer = self._answer(environ, call)
        except ConnectionDroppedError:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise
        start_response(f"{answer.status} _", list(answer.headers))
        return [answer.body]

    def judge(self, call: Call) -> Answer:
        """Say whether IAM allows a call to another server, such as Glue's REST endpoint, and record it."""
        answer = self._denials(call, lambda _: Answer(200))
        self._record(call, answer)
        return answer

    def _answer(self, environ: dict[str, Any], call: Call) -> Answer:
        def moto(asked: Call) -> Answer:
            return self._ask_moto(environ, asked)

        if BYPASS in call.headers:
            return moto(call)
        try:
            answer = chain(list(self._rules()), moto)(call)
        except ConnectionDroppedError:
            self._record(call, Answer(0))
            raise
        self._record(call, answer)
        return answer

    def _record(self, call: Call, answer: Answer) -> None:
        self.history.append((replace(call, body=b""), answer.status))
        self.calls.extend(outcomes(call, answer))
        for observe in self.observers:
            observe(call, answer)

    def _ask_moto(self, environ: dict[str, Any], call: Call) -> Answer:
        return ask_quickly(call) or self.ask_slowly(environ, call)

    def ask_slowly(self, environ: dict[str, Any], call: Call) -> Answer:
        """Return moto's own answer."""
        kept = {name: value for name, value in environ.items() if not name.startswith("HTTP_")}
        headers = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in call.headers.items()}
        kept.pop("wsgi.input_terminated", None)
        headers.pop("HTTP_TRANSFER_ENCODING", None)
        body = {"CONTENT_LENGTH": str(len(call.body)), "wsgi.input": io.BytesIO(call.body)}
        environ = {**kept, **headers, **body}
        if answer := ask_directly(call, environ):
            return answer
        parts, status, answered = run_wsgi_app(self._moto, environ, buffered=True)
        return Answer(int(status.split()[0]), tuple(answered), b"".join(parts))


class _Handler(MotoRequestHandler):
    disable_nagle_algorithm = True

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The ``Date`` header: the time as the server has it."""
        return format_datetime(cast(StrictAws, self.server.app).now(), usegmt=True)

    def log(self, *_: Any, **__: Any) -> None:
        """Keep the tests' output free of an access log."""


def _mark(request: Any, **_: Any) -> None:
    request.headers[BYPASS] = "1"
