"""Decode Kafka's messages in Avro into JSON, by the schemas of a registry or by that of a file.

https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format
https://docs.confluent.io/platform/current/schema-registry/develop/api.html
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from io import BytesIO
from typing import Any, Final

import fastavro
import pyarrow as pa
import requests
from fastavro.schema import SchemaParseException, UnknownType
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from lakewriter.aws import BotoCoreError, ClientError, require_trusted
from lakewriter.errors import SourceFailedError, SourceUnreachableError
from lakewriter.source.bad_rows import BAD, FIELDS, join_marks, mark_schema
from lakewriter.source.change_events.connect_schemas import describe_avro
from lakewriter.source.storage import NotListable, find_store
from lakewriter.spec.access import SecretText
from lakewriter.spec.table_spec import AvroValues

_HEADER_BYTES: Final = 5
"""A zero, and the id of a schema in four bytes."""
_NO_HEADER: Final = (
    "expected Avro with its schema's id before it, as Confluent's converter writes it: a zero byte first"
)
_OF_GLUE: Final = f"{_NO_HEADER}. Values of the AWS Glue Schema Registry, with a 3 first, are not read"
_MOST_IDS: Final = 1000
_UNKNOWN_ID: Final = 40403
"""The registry's code of an id that it does not have. Any server answers 404 for a path that it does not have."""
_WAITS: Final = (10.0, 30.0)
"""Seconds to connect, and to wait for an answer."""
_BUSY: Final = (429, 500, 502, 503, 504)
"""The answers of a registry that may give the schema later."""
_RETRIES: Final = Retry(
    3,
    backoff_factor=0.5,
    status_forcelist=_BUSY,
    # A registry may ask for hours in Retry-After.
    retry_after_max=10,
    raise_on_status=False,
)
_NO_SCHEMA: Final = (KeyError, TypeError, ValueError, RecursionError, SchemaParseException, UnknownType)
_NO_VALUE: Final = (EOFError, IndexError, KeyError, OverflowError, RecursionError, TypeError, ValueError)
"""The errors of fastavro for bytes that a schema did not write."""


@dataclass(frozen=True)
class AvroSchema:
    """A schema of values: what fastavro reads them by, and what Connect's JSON converter would write of it.

    ``reason`` is why its values cannot be read; blank if they can.
    """

    name: str
    content: Any = None
    described: str = ""
    reason: str = ""


Schemas = Mapping[bytes, AvroSchema]
"""The schemas by what stands before the values of each: nothing if all are of one."""


@dataclass(frozen=True)
class AvroDecoder:
    """The decoding of a topic's messages. ``first`` is the number of rows that are looked at, None for all."""

    values: AvroValues
    secrets: Mapping[SecretText, str]
    table: str
    first: int | None

    def find_schemas(self, messages: DataFrame, column: str) -> Schemas:
        """Return the schemas of a column of messages.

        Raises:
            SourceFailedError: The registry or the file gives no schema, for a reason that holds for every value.
            SourceUnreachableError: The registry does not answer, or is busy.
        """
        if self.values.schema_path is not None:
            return {b"": self._read_file(self.values.schema_path)} if column == "value" else {}
        looked_at = messages if self.first is None else messages.limit(self.first)
        header = F.substring(F.col(column), 1, _HEADER_BYTES)
        has_header = (F.length(header) == _HEADER_BYTES) & (F.hex(F.substring(header, 1, 1)) == "00")
        rows = looked_at.where(has_header).select(header.alias("header")).distinct().limit(_MOST_IDS + 1).collect()
        if len(rows) > _MOST_IDS:
            raise SourceFailedError(
                f"table {self.table!r}: the messages name more than {_MOST_IDS} schemas in the bytes before their "
                f"{column}s, expected ids of the registry {self.values.registry!r}.",
                remedy="Set read.values only for a topic whose values Confluent's Avro converter has written.",
            )
        return {bytes(row[0]): self._find_registered(int.from_bytes(row[0][1:], "big")) for row in rows}

    def _read_file(self, path: str) -> AvroSchema:
        try:
            store, location = find_store(path)
            with store.open().open_input_stream(location) as file:
                schema = _make_schema("the schema", file.read())
        except (NotListable, OSError, BotoCoreError, ClientError) as error:
            raise SourceFailedError(
                f"table {self.table!r}: the schema of its values, {path!r}, cannot be read: {error}",
                remedy="Check read.values.schema, and that the file may be read.",
            ) from error
        if schema.reason:
            raise SourceFailedError(
                f"table {self.table!r}: {path!r} has no schema of its values: {schema.reason}.",
                remedy="Set read.values.schema to a file with the Avro schema of the values, a record.",
            )
        return schema

    def _find_registered(self, number: int) -> AvroSchema:
        registry = str(self.values.registry)
        for name, secret in (("user", self.values.user), ("password", self.values.password)):
            if secret is not None:
                require_trusted(secret, f"tables.{self.table}.read.values.{name}", registry)
        login = tuple(self.secrets[secret] for secret in self.values.secrets)
        try:
            return _ask_registry(registry, login, number)
        except _UnknownIdError:
            return AvroSchema(str(number), reason=f"the schema registry has no schema {number}")
        except _RefusedError as error:
            raise SourceFailedError(
                f"table {self.table!r}: the schema registry {registry!r} {error}, asked for schema {number}.",
                remedy="Check registry, user and password under read.values: a registry with Confluent's API is "
                "expected, which asks for a user and a password or for nothing.",
            ) from error
        except (_BusyError, requests.RequestException) as error:
            said = error if isinstance(error, _BusyError) else f"does not answer: {type(error).__name__}"
            raise SourceUnreachableError(
                f"table {self.table!r}: the schema registry {registry!r} {said}, asked for schema {number}.",
                remedy="Check that it is up, and the network path to it.",
            ) from error

    def decode(self, messages: DataFrame, schemas: Schemas, keys: Schemas | None) -> DataFrame:
        """Return messages whose ``value`` is JSON, and their ``key`` if ``keys`` are its schemas.

        A null stays null. A value that none of the schemas has written is a bad row. A key that has no schema before
        it is its text.
        """
        columns = ["value", *([] if keys is None else ["key"]), BAD]
        kind = from_arrow_schema(mark_schema([pa.field(name, pa.string()) for name in columns[:-1]]))
        is_of_one = self.values.schema_path is not None
        decode = partial(_decode_batches, schemas, keys or {}, has_header=not is_of_one)
        return messages.select(*columns).mapInArrow(decode, kind)


class _UnknownIdError(Exception):
    """The registry does not have the id."""


class _RefusedError(Exception):
    """The registry's answer holds no schema; the text completes "the schema registry "."""


class _BusyError(Exception):
    """The registry gives no schema now; the text is as that of ``_RefusedError``."""


@lru_cache(maxsize=10_000)
def _ask_registry(registry: str, login: tuple[str, ...], number: int) -> AvroSchema:
    """Ask for a schema, once in a process: an id names the same schema for ever. Failures are asked again."""
    with requests.Session() as session:
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(max_retries=_RETRIES))
        answer = session.get(
            f"{registry}/schemas/ids/{number}",
            auth=(login[0], login[1]) if login else None,
            headers={"Accept": "application/vnd.schemaregistry.v1+json, application/json"},
            timeout=_WAITS,
            allow_redirects=False,
        )
    said = f"answers {answer.status_code} {answer.reason}".rstrip()
    if answer.status_code in _BUSY:
        raise _BusyError(said)
    try:
        content = answer.json()
    except ValueError:
        content = None
    content = content if isinstance(content, dict) else {}
    if answer.status_code == requests.codes.not_found and content.get("error_code") == _UNKNOWN_ID:
        raise _UnknownIdError
    if answer.status_code != requests.codes.ok or not isinstance(content.get("schema"), str):
        raise _RefusedError(said)
    name, kind = f"schema {number}", content.get("schemaType") or "AVRO"
    if kind != "AVRO":
        return AvroSchema(name, reason=f"{name} of the schema registry is of type {kind}, expected AVRO")
    if content.get("references"):
        return AvroSchema(name, reason=f"{name} of the schema registry refers to other schemas, which is not read")
    return _make_schema(name, content["schema"].encode())


def _make_schema(name: str, text: bytes) -> AvroSchema:
    try:
        given = json.loads(text)
        described, content = json.dumps(describe_avro(given)), _take_out_meanings(given)
        fastavro.parse_schema(content)
        return AvroSchema(name, content, described)
    except _NO_SCHEMA as error:
        why = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        return AvroSchema(name, reason=f"{name} cannot be read: {why}")


def _take_out_meanings(kind: Any) -> Any:
    """Return a schema of the same bytes whose values are plain: numbers and bytes in place of dates and decimals."""
    if isinstance(kind, list):
        return [_take_out_meanings(branch) for branch in kind]
    if not isinstance(kind, dict):
        return kind
    nested = ("type", "items", "values", "fields")
    left_out = ("logicalType", "default")
    return {
        name: _take_out_meanings(value) if name in nested else value
        for name, value in kind.items()
        if name not in left_out
    }


def _decode_batches(
    schemas: Schemas, keys: Schemas, batches: Iterable[pa.RecordBatch], *, has_header: bool
) -> Iterator[pa.RecordBatch]:
    value_reader, key_reader = _Reader(schemas, has_header=has_header), _Reader(keys, has_header=has_header)
    for batch in batches:
        marks = batch.column(batch.num_columns - 1)
        texts, faults = value_reader.read_all(batch.column(0))
        columns = [texts]
        if batch.num_columns > 2:
            columns.append(pa.array(map(key_reader.read_key, batch.column(1).to_pylist()), pa.string()))
        names = [*batch.schema.names[:-1], BAD]
        yield pa.RecordBatch.from_arrays([*columns, _add_faults(marks, faults)], names=names)


def _add_faults(marks: pa.StructArray, faults: Mapping[int, tuple[str, str]]) -> pa.StructArray:
    """Return marks with the value and the reason of each row that is at fault."""
    parts = {name: marks.field(name).to_pylist() for name in FIELDS}
    for row, (value, reason) in faults.items():
        if parts["reason"][row] is None:
            parts["value"][row], parts["row"][row], parts["reason"][row] = value, value, reason
    kinds = {name: pa.int64() if name == "offset" else pa.string() for name in FIELDS}
    return join_marks({name: pa.array(values, kinds[name]) for name, values in parts.items()})


class _Reader:
    """Reads values by their schemas."""

    def __init__(self, schemas: Schemas, *, has_header: bool) -> None:
        self._schemas, self._has_header = schemas, has_header
        self._parsed = {header: fastavro.parse_schema(s.content) for header, s in schemas.items() if not s.reason}

    def read_all(self, values: pa.Array) -> tuple[pa.Array, dict[int, tuple[str, str]]]:
        """Return the values as JSON, and the text and the reason of those that none of the schemas has written."""
        texts, faults = list[str | None](), dict[int, tuple[str, str]]()
        for row, value in enumerate(values.to_pylist()):
            try:
                texts.append(None if value is None else self._read(value))
            except _FaultError as error:
                texts.append(None)
                faults[row] = base64.b64encode(value).decode(), str(error)
        return pa.array(texts, pa.string()), faults

    def read_key(self, key: bytes | None) -> str | None:
        """Return a key as text; null for one that is neither Avro of a schema nor text."""
        try:
            if key is None or (self._has_header and key.startswith(b"\0")):
                return None if key is None else self._read(key)
            return key.decode()
        except ValueError:
            return None

    def _read(self, value: bytes) -> str:
        header = value[:_HEADER_BYTES] if self._has_header else b""
        if self._has_header and (len(header) < _HEADER_BYTES or header[0]):
            raise _FaultError(_OF_GLUE if header.startswith(b"\3") else _NO_HEADER)
        number = int.from_bytes(header[1:], "big")
        schema = self._schemas.get(header, AvroSchema("", reason=f"schema {number} was not asked for"))
        if schema.reason:
            raise _FaultError(schema.reason)
        body = BytesIO(value[len(header) :])
        try:
            read: Any = fastavro.schemaless_reader(body, self._parsed[header], None)
        except _NO_VALUE as error:
            raise _FaultError(f"its bytes are no value of {schema.name}") from error
        if body.read(1):
            raise _FaultError(f"it has bytes behind its value of {schema.name}")
        return json.dumps(read, ensure_ascii=False, default=_write_bytes)


class _FaultError(ValueError):
    """A value that none of the schemas has written; the text is the reason."""


def _write_bytes(value: bytes) -> str:
    """Return bytes as Connect's JSON converter writes them."""
    return base64.b64encode(value).decode()


def list_described(schemas: Schemas) -> Sequence[str]:
    """Return the schemas that values can be read by, as Connect's JSON converter would write them."""
    return sorted({schema.described for schema in schemas.values() if not schema.reason})
