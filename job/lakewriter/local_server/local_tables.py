"""Answer the calls of the Iceberg REST catalog of ``--local``.

A SQLite file lists the tables, and their metadata lie in the bucket. See
https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml.
"""

import base64
import binascii
import hashlib
import hmac
import json
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, unquote

import pydantic
from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.exceptions import CommitFailedException, ValidationError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, TableMetadataV1, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import AssertCreate, update_table_metadata

from lakewriter.naming import join_key

_VERSION: Final = "v1"
_SECONDS: Final = 30.0
"""How long a call waits for another one's write to the SQLite file."""
_DDL: Final = """
CREATE TABLE IF NOT EXISTS namespaces (
    warehouse TEXT, name TEXT, properties TEXT NOT NULL, PRIMARY KEY (warehouse, name));
CREATE TABLE IF NOT EXISTS tables (
    warehouse TEXT, namespace TEXT, name TEXT, metadata TEXT NOT NULL, PRIMARY KEY (warehouse, namespace, name));
"""
_ENDPOINTS: Final = [
    f"{method} /{_VERSION}/{{prefix}}/namespaces{path}"
    for path, methods in (
        ("", "GET POST"),
        ("/{namespace}", "GET HEAD DELETE"),
        ("/{namespace}/tables", "GET POST"),
        ("/{namespace}/tables/{table}", "GET HEAD POST DELETE"),
    )
    for method in methods.split()
]
_NOTHING: Final = {"location": "", "last-column-id": -1, "schema": Schema()}
"""The metadata before a table's first commit."""
_PURGE: Final = "purgeRequested"


class Objects(Protocol):
    """The S3 server, as far as the catalog needs it. Locations are ``s3://`` URIs."""

    def read(self, location: str) -> bytes:
        """Return the content of an object."""

    def create(self, location: str, content: bytes) -> None:
        """Create an object."""

    def delete(self, location: str) -> None:
        """Delete an object."""

    def list_properties(self) -> dict[str, str]:
        """Return the properties with which a client reaches the server; they contain its keys."""


@dataclass(frozen=True)
class Call:
    """An HTTP request."""

    method: str
    path: str
    query: str = ""
    authorization: str = ""
    """The header of this name."""
    body: bytes = b""
    is_delegating: bool = False
    """Whether the client asks for the keys of the S3 server, with ``X-Iceberg-Access-Delegation``."""


Answer = tuple[int, Mapping[str, Any] | None]
"""The status, and the JSON object of the body."""


class _Refusal(Exception):  # noqa: N818 - an answer
    """An answer that is no success; ``kind`` is the specification's name for it."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.answer: Answer = (status, {"error": {"message": message, "type": kind, "code": status}})


@dataclass(frozen=True)
class LocalTables:
    """The catalog whose tables ``file`` lists.

    A warehouse is ``bucket`` or ``bucket/prefix``, and a table lies in the folder ``namespace/table`` below it.
    """

    file: Path
    objects: Objects
    key_id: str
    secret: str
    """The S3 server's keys, which are the client id and the client secret here."""

    def answer(self, call: Call) -> Answer:
        """Carry a call out."""
        try:
            return self._route(call)
        except _Refusal as refusal:
            return refusal.answer
        # PyIceberg raises ValueError for an update that contradicts the metadata.
        except (pydantic.ValidationError, ValidationError, ValueError, KeyError, NotImplementedError) as error:
            return _Refusal(HTTPStatus.BAD_REQUEST, "BadRequestException", f"{type(error).__name__}: {error}").answer

    def _route(self, call: Call) -> Answer:
        match [unquote(part) for part in call.path.strip("/").split("/")]:
            case [version, "oauth", "tokens"] if version == _VERSION:
                return self._sign_in(call)
            case [version, *rest] if version == _VERSION:
                self._require_token(call)
                return _configure(call) if rest == ["config"] else self._route_in_warehouse(call, rest)
        raise _no_such_call(call)

    def _route_in_warehouse(self, call: Call, path: list[str]) -> Answer:
        with self._open() as database:
            match path:
                case [prefix, "namespaces"]:
                    return _Namespaces(database, _read_prefix(prefix)).answer(call)
                case [prefix, "namespaces", name]:
                    return _Namespaces(database, _read_prefix(prefix)).answer_one(call, name)
                case [prefix, "namespaces", namespace, "tables"]:
                    return self._find_tables(database, prefix, namespace).answer(call)
                case [prefix, "namespaces", namespace, "tables", name]:
                    return self._find_tables(database, prefix, namespace).answer_one(call, name)
        raise _no_such_call(call)

    def _find_tables(self, database: sqlite3.Connection, prefix: str, namespace: str) -> "_Tables":
        warehouse = _read_prefix(prefix)
        _Namespaces(database, warehouse).require(namespace)
        return _Tables(database, self.objects, warehouse, namespace)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        # Without an isolation level each statement is a transaction.
        with closing(sqlite3.connect(self.file, timeout=_SECONDS, isolation_level=None)) as database:
            database.executescript(_DDL)
            yield database

    @property
    def _token(self) -> str:
        return hmac.new(self.secret.encode(), self.key_id.encode(), hashlib.sha256).hexdigest()

    def _sign_in(self, call: Call) -> Answer:
        given = _read_credentials(call)
        if call.method != "POST" or not hmac.compare_digest(given.encode(), f"{self.key_id}:{self.secret}".encode()):
            description = "client_id and client_secret are the keys that 'lakewriter local start' prints"
            return HTTPStatus.UNAUTHORIZED, {"error": "invalid_client", "error_description": description}
        return HTTPStatus.OK, {"access_token": self._token, "token_type": "bearer", "expires_in": 86400}

    def _require_token(self, call: Call) -> None:
        if not hmac.compare_digest(call.authorization.encode(), f"Bearer {self._token}".encode()):
            message = "the token is not this server's; sign in with the keys that 'lakewriter local start' prints"
            raise _Refusal(HTTPStatus.UNAUTHORIZED, "NotAuthorizedException", message)


@dataclass(frozen=True)
class _Namespaces:
    """The namespaces of a warehouse, all at its top."""

    database: sqlite3.Connection
    warehouse: str

    def answer(self, call: Call) -> Answer:
        if call.method == "GET":
            sql = "SELECT name FROM namespaces WHERE warehouse = ? ORDER BY name"
            # No namespace has others below it.
            names = (
                [] if parse_qs(call.query).get("parent") else self.database.execute(sql, [self.warehouse]).fetchall()
            )
            return HTTPStatus.OK, {"namespaces": [[name] for (name,) in names]}
        if call.method != "POST":
            raise _no_such_call(call)
        wanted = json.loads(call.body)
        (name,), properties = wanted["namespace"], wanted.get("properties") or {}
        sql = "INSERT OR IGNORE INTO namespaces VALUES (?, ?, ?)"
        if not self.database.execute(sql, [self.warehouse, name, json.dumps(properties)]).rowcount:
            raise _Refusal(HTTPStatus.CONFLICT, "AlreadyExistsException", f"Namespace already exists: {name}")
        return HTTPStatus.OK, {"namespace": [name], "properties": properties}

    def answer_one(self, call: Call, name: str) -> Answer:
        properties = self.require(name)
        match call.method:
            case "GET":
                return HTTPStatus.OK, {"namespace": [name], "properties": properties}
            case "HEAD":
                return HTTPStatus.NO_CONTENT, None
            case "DELETE":
                # One statement, so that no table is created between the question and the answer.
                sql = (
                    "DELETE FROM namespaces WHERE warehouse = ?1 AND name = ?2 AND NOT EXISTS "
                    "(SELECT 1 FROM tables WHERE warehouse = ?1 AND namespace = ?2)"
                )
                if self.database.execute(sql, [self.warehouse, name]).rowcount:
                    return HTTPStatus.NO_CONTENT, None
                raise _Refusal(HTTPStatus.CONFLICT, "NamespaceNotEmptyException", f"Namespace {name} has tables")
        raise _no_such_call(call)

    def require(self, name: str) -> Any:
        """Return the properties of a namespace; refuse one that is not there."""
        sql = "SELECT properties FROM namespaces WHERE warehouse = ? AND name = ?"
        row = self.database.execute(sql, [self.warehouse, name]).fetchone()
        if row is None:
            raise _Refusal(HTTPStatus.NOT_FOUND, "NoSuchNamespaceException", f"Namespace does not exist: {name}")
        return json.loads(row[0])


@dataclass(frozen=True)
class _Tables:
    """The tables of a namespace. A row of the SQLite file names the object with a table's present metadata."""

    database: sqlite3.Connection
    objects: Objects
    warehouse: str
    namespace: str

    def answer(self, call: Call) -> Answer:
        if call.method == "GET":
            sql = "SELECT name FROM tables WHERE warehouse = ? AND namespace = ? ORDER BY name"
            names = self.database.execute(sql, [self.warehouse, self.namespace]).fetchall()
            return HTTPStatus.OK, {"identifiers": [{"namespace": [self.namespace], "name": name} for (name,) in names]}
        if call.method != "POST":
            raise _no_such_call(call)
        unsaid = {"location": None, "partition-spec": None, "write-order": None}
        wanted = CreateTableRequest.model_validate(unsaid | json.loads(call.body))
        if self._find(wanted.name) is not None:
            raise self._is_there(wanted.name)
        metadata = new_table_metadata(
            schema=wanted.table_schema,
            partition_spec=wanted.partition_spec or UNPARTITIONED_PARTITION_SPEC,
            sort_order=wanted.write_order or UNSORTED_SORT_ORDER,
            location=wanted.location or f"s3://{join_key(self.warehouse, self.namespace, wanted.name)}",
            properties=dict(wanted.properties),
        )
        if wanted.stage_create:
            return self._show(call, metadata, None)
        return self._show(call, metadata, self._replace(wanted.name, metadata, None))

    def answer_one(self, call: Call, name: str) -> Answer:
        if call.method == "POST":
            return self._commit(call, name)
        location = self._find(name)
        if location is None:
            raise self._is_missing(name)
        match call.method:
            case "GET":
                return self._show(call, self._read(location), location)
            case "HEAD":
                return HTTPStatus.NO_CONTENT, None
            case "DELETE":
                if parse_qs(call.query).get(_PURGE) == ["true"]:
                    message = "this catalog deletes no files; drop the table without purge, then delete its folder"
                    raise _Refusal(HTTPStatus.NOT_ACCEPTABLE, "UnsupportedOperationException", message)
                sql = "DELETE FROM tables WHERE warehouse = ? AND namespace = ? AND name = ?"
                self.database.execute(sql, [self.warehouse, self.namespace, name])
                return HTTPStatus.NO_CONTENT, None
        raise _no_such_call(call)

    def _commit(self, call: Call, name: str) -> Answer:
        # The path names the table; a client may leave it out of the body.
        named = {"identifier": {"namespace": [self.namespace], "name": name}}
        wanted = CommitTableRequest.model_validate(json.loads(call.body) | named)
        location = self._find(name)
        is_new = any(isinstance(requirement, AssertCreate) for requirement in wanted.requirements)
        if location is None and not is_new:
            raise self._is_missing(name)
        base = None if location is None else self._read(location)
        try:
            for requirement in wanted.requirements:
                requirement.validate(base)
        except CommitFailedException as error:
            raise _Refusal(HTTPStatus.CONFLICT, "CommitFailedException", str(error)) from error
        before = base or TableMetadataV1.model_validate(_NOTHING)
        metadata = update_table_metadata(before, wanted.updates, base is None, metadata_location=location)
        return self._show(call, metadata, self._replace(name, metadata, location))

    def _replace(self, name: str, metadata: TableMetadata, before: str | None) -> str:
        """Write the metadata, and name their object in place of ``before``; refuse where another commit came first."""
        number = 0 if before is None else int(before.rpartition("/")[2].partition("-")[0]) + 1
        file = f"{metadata.location.rstrip('/')}/metadata/{number:05}-{uuid.uuid4()}.metadata.json"
        self.objects.create(file, metadata.model_dump_json().encode())
        key = [self.warehouse, self.namespace, name]
        if before is None:
            # The namespace may have been dropped meanwhile.
            sql = (
                "INSERT OR IGNORE INTO tables SELECT warehouse, name, ?3, ?4 FROM namespaces "
                "WHERE warehouse = ?1 AND name = ?2"
            )
            changed = self.database.execute(sql, [*key, file]).rowcount
        else:
            sql = "UPDATE tables SET metadata = ? WHERE warehouse = ? AND namespace = ? AND name = ? AND metadata = ?"
            changed = self.database.execute(sql, [file, *key, before]).rowcount
        if changed:
            return file
        self.objects.delete(file)
        if before is None:
            raise self._is_there(name)
        message = f"Requirement failed: {self.namespace}.{name} is no longer at {before}"
        raise _Refusal(HTTPStatus.CONFLICT, "CommitFailedException", message)

    def _find(self, name: str) -> str | None:
        sql = "SELECT metadata FROM tables WHERE warehouse = ? AND namespace = ? AND name = ?"
        row = self.database.execute(sql, [self.warehouse, self.namespace, name]).fetchone()
        return None if row is None else str(row[0])

    def _read(self, location: str) -> TableMetadata:
        return TableMetadataUtil.parse_raw(self.objects.read(location).decode())

    def _show(self, call: Call, metadata: TableMetadata, location: str | None) -> Answer:
        config = self.objects.list_properties() if call.is_delegating else {}
        shown = {"metadata": json.loads(metadata.model_dump_json()), "config": config}
        return HTTPStatus.OK, shown if location is None else {"metadata-location": location, **shown}

    def _is_missing(self, name: str) -> _Refusal:
        message = f"Table does not exist: {self.namespace}.{name}"
        return _Refusal(HTTPStatus.NOT_FOUND, "NoSuchTableException", message)

    def _is_there(self, name: str) -> _Refusal:
        message = f"Table already exists: {self.namespace}.{name}"
        return _Refusal(HTTPStatus.CONFLICT, "AlreadyExistsException", message)


def _read_credentials(call: Call) -> str:
    """Return the client id and the client secret: from the header, or else from the form, as RFC 6749 has it in 2.3.1.

    The keys of ``--local`` have no characters that a form encodes.
    """
    kind, _, encoded = call.authorization.partition(" ")
    if kind == "Basic":
        return base64.b64decode(encoded).decode()
    form = {name: values[0] for name, values in parse_qs(call.body.decode()).items()}
    return f"{form.get('client_id')}:{form.get('client_secret')}"


def _configure(call: Call) -> Answer:
    """Return the prefix of the calls for the warehouse that is asked for: the warehouse, in characters of a path."""
    (warehouse,) = parse_qs(call.query).get("warehouse") or [""]
    if not warehouse.strip("/"):
        raise _Refusal(HTTPStatus.BAD_REQUEST, "BadRequestException", "Please specify a warehouse: bucket/prefix")
    prefix = base64.urlsafe_b64encode(warehouse.strip("/").encode()).decode().rstrip("=")
    return HTTPStatus.OK, {"defaults": {}, "overrides": {"prefix": prefix}, "endpoints": _ENDPOINTS}


def _read_prefix(prefix: str) -> str:
    try:
        return base64.b64decode(prefix + "=" * (-len(prefix) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        message = f"Unable to find warehouse {prefix}"
        raise _Refusal(HTTPStatus.NOT_FOUND, "NotFoundException", message) from error


def _no_such_call(call: Call) -> _Refusal:
    return _Refusal(HTTPStatus.NOT_FOUND, "NotFoundException", f"No call {call.method} {call.path}")
