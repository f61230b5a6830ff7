"""An Iceberg REST catalog with OAuth2 inside the test process, which answers as Polaris does.

``tests.support.sign_ins`` has those with other ways to sign in.
"""

import json
import threading
import uuid
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self
from urllib.parse import parse_qs

from pydantic import BaseModel
from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.metadata import TableMetadata, TableMetadataV3, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata
from werkzeug.serving import BaseWSGIServer, make_server
from werkzeug.wrappers import Request, Response

from lakewriter.naming import join_key
from lakewriter.spec.access import SecretText
from lakewriter.spec.catalogs import AnyRestService, PolarisService
from tests.support.server import StrictAws, _Handler
from tests.support.vending import Vending

CLIENT_ID, CLIENT_SECRET = "client", "top:secret"


@dataclass
class Entry:
    """A table: its metadata, and the object that holds it."""

    metadata: TableMetadata
    location: str


class Refusal(Exception):  # noqa: N818 - an answer
    """An answer that is no success."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        self.response = _json({"error": {"message": message, "type": kind, "code": status}}, status)


@dataclass
class OpenCatalog:
    """One catalog named ``lake`` over a bucket; it chooses every table's location itself."""

    aws: StrictAws
    bucket: str
    region: str = "us-east-1"
    roles: tuple[str, ...] = ("ALL", "writer")
    """Principal roles that exist; ``reader`` exists too, and may not write."""
    tokens: dict[str, str] = field(default_factory=dict)
    tables: dict[tuple[str, str], Entry] = field(default_factory=dict)
    namespaces: set[str] = field(default_factory=set)
    calls: list[tuple[str, str, int]] = field(default_factory=list)
    drop_commits: int = 0
    """So many commits are applied, and their answers lost."""
    fail_commits: int = 0
    """So many commits are answered 503 and not applied."""
    foreign: list[tuple[str, str, Response]] = field(default_factory=list)
    """Method, the path's end and an answer that is given once instead of the catalog's."""
    base: str = "open"
    """The catalog's default base location in the bucket."""
    failing: dict[tuple[str, str], Response] = field(default_factory=dict)
    """Answers that are given to every call of a method and the path's end, instead of the catalog's."""
    vending: Vending | None = None
    """Who asks for them gets credentials with every table."""
    warehouse: str = "lake"
    prefix: str = "lake"
    """What stands in paths behind the version."""
    secret: ClassVar[tuple[str, str]] = ("OPEN_CATALOG_SECRET", CLIENT_SECRET)
    """The variable that has to be in the environment, and its value."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._delegated = False
        self._server: BaseWSGIServer | None = None

    def __enter__(self) -> Self:
        self._server = make_server("127.0.0.1", 0, self, threaded=True, request_handler=_Quiet)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    @property
    def url(self) -> str:
        """The endpoint, as ``catalog_endpoint`` has it."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.port}/api/catalog"

    def make_service(self, **other: str) -> AnyRestService:
        """The catalog as lake.yaml names it."""
        named = {"uri": self.url, "warehouse": self.warehouse, "client_id": CLIENT_ID, "scope": "PRINCIPAL_ROLE:ALL"}
        return PolarisService.model_validate(
            {**named, "client_secret": SecretText("${env:OPEN_CATALOG_SECRET}"), **other}
        )

    def make_settings(self) -> dict[str, str]:
        """The keys of ``lakewriter-s3``."""
        return {
            "catalog": "open_catalog",
            "catalog_endpoint": self.url,
            "catalog_name": self.warehouse,
            "client_id": CLIENT_ID,
            "client_secret": "${env:OPEN_CATALOG_SECRET}",
        }

    def make_options(self) -> dict[str, Any]:
        """The catalog as PyIceberg wants it."""
        return {
            "type": "rest",
            "uri": self.url,
            "warehouse": self.warehouse,
            "credential": f"{CLIENT_ID}:{CLIENT_SECRET}",
            "scope": "PRINCIPAL_ROLE:ALL",
            "oauth2-server-uri": f"{self.url}/v1/oauth/tokens",
        }

    def vend(self, **settings: Any) -> Vending:
        """From now on tables lie where nobody else's credentials reach."""
        self.vending = Vending(f"s3://{self.bucket}/open/", **settings)
        self.aws.interceptors.append(self.vending)
        return self.vending

    def expire_tokens(self) -> None:
        """Every token handed out so far is refused from now on."""
        self.tokens.clear()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        """The WSGI application."""
        request = Request(environ)
        with self._lock:
            self._delegated = request.headers.get("X-Iceberg-Access-Delegation") == "vended-credentials"
            try:
                response = self._foreign(request) or self._answer(request)
            except Refusal as refusal:
                response = refusal.response
        path = request.path.removeprefix("/api/catalog")
        self.calls.append((request.method, path, response.status_code))
        if request.method == "POST" and "/tables/" in path and response.status_code == 200 and self.drop_commits:
            self.drop_commits -= 1
            response = _json({"error": {"message": "lost", "type": "GatewayTimeout", "code": 504}}, 504)
        return response(environ, start_response)

    def _foreign(self, request: Request) -> Response | None:
        for (method, path), response in self.failing.items():
            if request.method == method and request.path.endswith(path):
                return response
        for given in self.foreign:
            method, path, response = given
            if request.method == method and request.path.endswith(path):
                self.foreign.remove(given)
                return response
        return None

    def _answer(self, request: Request) -> Response:
        # Proxies put a prefix before it, or a slash behind.
        path = request.path.removeprefix("/polaris").removeprefix("/api/catalog/v1/").rstrip("/")
        if path == "oauth/tokens":
            return self._token(request)
        self._admit(request)
        if path == "config":
            return self._config(request)
        return self._routed(request, path.removeprefix(f"{self.prefix}/").split("/"))

    def _admit(self, request: Request) -> None:
        role = self.tokens.get(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if role is None:
            raise Refusal(401, "NotAuthorizedException", "Credentials are required to access this resource.")
        if role == "reader" and request.method == "POST":
            raise Refusal(403, "ForbiddenException", "Principal 'client' is not authorized for op CREATE_TABLE_DIRECT")

    def _routed(self, request: Request, path: list[str]) -> Response:
        match path:
            case ["namespaces"]:
                return self._new_namespace(request)
            case ["namespaces", name]:
                return _json({"namespace": [self._known(name)], "properties": {}})
            case ["namespaces", name, "tables"]:
                return self._create(self._known(name), request)
            case ["namespaces", name, "tables", table]:
                return self._commit(name, table, request) if request.method == "POST" else self._load(name, table)
        raise Refusal(404, "NotFoundException", "/".join(path))

    def _token(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs(request.get_data(as_text=True)).items()}
        if (form.get("client_id"), form.get("client_secret")) != (CLIENT_ID, CLIENT_SECRET):
            return _json({"error": "unauthorized_client", "error_description": "The client is not authorized"}, 401)
        role = self._find_role(form.get("scope", ""))
        if role is None:
            return _json({"error": "invalid_scope", "error_description": "The scope is invalid"}, 400)
        token = uuid.uuid4().hex
        self.tokens[token] = role
        return _json({"access_token": token, "token_type": "bearer", "expires_in": 3600})

    def _find_role(self, scope: str) -> str | None:
        role = scope.removeprefix("PRINCIPAL_ROLE:")
        return role if role in (*self.roles, "reader") else None

    def _config(self, request: Request) -> Response:
        if request.args.get("warehouse", "") != self.warehouse:
            message = f"Unable to find warehouse {request.args.get('warehouse')}"
            raise Refusal(404, "NotFoundException", message)
        return _json({"defaults": {}, "overrides": {"prefix": self.prefix}})

    def _known(self, name: str) -> str:
        if name not in self.namespaces:
            raise Refusal(404, "NoSuchNamespaceException", f"Namespace does not exist: {name}")
        return name

    def _new_namespace(self, request: Request) -> Response:
        (name,) = json.loads(request.get_data())["namespace"]
        if name in self.namespaces:
            raise Refusal(409, "AlreadyExistsException", f"Namespace already exists: {name}")
        self.namespaces.add(name)
        return _json({"namespace": [name], "properties": {}})

    def _create(self, namespace: str, request: Request) -> Response:
        unsaid = {"location": None, "partition-spec": None, "write-order": None}
        wanted = CreateTableRequest.model_validate(unsaid | json.loads(request.get_data()))
        if (namespace, wanted.name) in self.tables:
            raise Refusal(409, "AlreadyExistsException", f"Table already exists: {namespace}.{wanted.name}")
        properties = dict(wanted.properties or {})
        metadata = new_table_metadata(
            schema=wanted.table_schema,
            partition_spec=wanted.partition_spec or UNPARTITIONED_PARTITION_SPEC,
            sort_order=wanted.write_order or UNSORTED_SORT_ORDER,
            location=wanted.location or self._place(namespace, wanted.name),
            properties=properties,
        )
        if isinstance(metadata, TableMetadataV3):
            metadata = metadata.model_copy(update={"next_row_id": 0})
        return self._store(namespace, wanted.name, metadata)

    def _place(self, namespace: str, name: str) -> str:
        """The location of a new table."""
        return f"s3://{join_key(self.bucket, self.base, namespace, name)}/"

    def _load(self, namespace: str, name: str) -> Response:
        entry = self.tables.get((namespace, name))
        if entry is None:
            raise Refusal(404, "NoSuchTableException", f"Table does not exist: {namespace}.{name}")
        return self._shown(entry)

    def _commit(self, namespace: str, name: str, request: Request) -> Response:
        if self.fail_commits:
            self.fail_commits -= 1
            raise Refusal(503, "ServiceUnavailable", "try again")
        self._load(namespace, name)
        entry = self.tables[namespace, name]
        wanted = CommitTableRequest.model_validate_json(request.get_data())
        try:
            for requirement in wanted.requirements:
                requirement.validate(entry.metadata)
        except CommitFailedException as error:
            raise Refusal(409, "CommitFailedException", str(error)) from error
        metadata = update_table_metadata(entry.metadata, wanted.updates, metadata_location=entry.location)
        return self._store(namespace, name, metadata)

    def _store(self, namespace: str, name: str, metadata: TableMetadata) -> Response:
        location = f"{metadata.location.rstrip('/')}/metadata/{uuid.uuid4()}.metadata.json"
        bucket, _, key = location.removeprefix("s3://").partition("/")
        body = json.dumps(read_metadata(metadata)).encode()
        self.aws.client("s3").put_object(Bucket=bucket, Key=key, Body=body)
        self.tables[namespace, name] = Entry(metadata, location)
        return self._shown(self.tables[namespace, name])

    def _shown(self, entry: Entry) -> Response:
        metadata = read_metadata(entry.metadata)
        found = {"metadata-location": entry.location, "metadata": metadata, "config": {"client.region": self.region}}
        if self.vending is not None and self._delegated:
            vended = self.vending.credentials(entry.metadata.location)
            found |= vended | {"config": found["config"] | vended.get("config", {})}
        return _json(found)


def read_metadata(metadata: TableMetadata) -> dict[str, Any]:
    """The metadata as a catalog shows it; PyIceberg's own model refuses to write that of format version 3."""
    return dict(json.loads(BaseModel.model_dump_json(metadata, by_alias=True, exclude_none=True)))


class _Quiet(_Handler):
    def date_time_string(self, timestamp: float | None = None) -> str:
        """The time as it is."""
        return str(super(_Handler, self).date_time_string(timestamp))


def _json(content: Any, status: int = 200) -> Response:
    return Response(json.dumps(content), status, content_type="application/json")
