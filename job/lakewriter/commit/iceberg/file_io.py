"""Read and write Iceberg's metadata files with the destination's own clients, which renew their credentials."""

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, TypeVar, cast

from pyiceberg.avro.decoder import new_decoder
from pyiceberg.avro.file import META_SCHEMA, AvroFile, AvroFileHeader
from pyiceberg.avro.reader import Reader
from pyiceberg.avro.resolver import construct_reader, resolve_reader
from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.schema import Schema
from pyiceberg.typedef import StructProtocol
from pyiceberg.utils.schema_conversion import AvroSchemaConversion

from lakewriter import aws
from lakewriter.aws.clients import LastingObjects
from lakewriter.aws.object_files import ObjectFile, write_range
from lakewriter.errors import LoadGoneError
from lakewriter.naming import LOAD_METADATA

CLIENTS: Final = ":lakewriter.clients"
"""The catalog property that carries the ``Clients`` to the ``ClientsFileIO`` that the library makes.

A table's properties are merged over the catalog's, so the name is one that no pipeline's property can have.
"""

WRITTEN: Final = ":lakewriter.written"
"""The catalog property with the list to which the location of every written file is added."""

_METADATA: Final = re.compile(r"\.(metadata\.json|avro)$")
"""Matches metadata files, manifest lists and manifests: each load asks for the same ones several times, and none is
ever replaced."""

LOAD: Final = ":lakewriter.load"
"""The catalog property with the load for the objects' metadata, ``{pipeline}/{job_id}/{attempt}``."""

PRECONDITION_FAILED: Final = 412

_SMALL_BYTES: Final = 256 * 1024
"""A file of at most so many bytes is read whole: a request takes longer than bytes that nobody asks for. A part of
at most so many is held."""

T = TypeVar("T")
Record = TypeVar("Record", bound=StructProtocol)


class ClientsFileIO(FileIO):
    """Reads and writes whole objects in memory: manifests and metadata are small. No object is ever overwritten."""

    def __init__(self, properties: dict[str, Any]) -> None:
        super().__init__(properties)
        self._clients: aws.Clients = properties[CLIENTS]
        self._written: list[str] = properties[WRITTEN]
        self._load: str = properties[LOAD]

    def new_input(self, location: str) -> "S3Input":
        """See ``FileIO``."""
        return S3Input(location, self._clients, self._clients.metadata if _METADATA.search(location) else None)

    def new_output(self, location: str) -> "S3Output":
        """See ``FileIO``."""
        return S3Output(location, self._clients, self._load, self._written.append)

    def open_parts(self, location: str, size: int) -> ObjectFile:
        """Open an object of ``size`` bytes to read parts of it, such as single columns of a data file."""
        whole = S3Input(location, self._clients)

        def fetch(start: int, end: int) -> bytes:
            first, last = (0, size) if size <= _SMALL_BYTES else (start, end)
            header = write_range(first, last)
            held = self._clients.parts if last - first <= _SMALL_BYTES else LastingObjects()
            part = held.get(f"{location} {size} {header}", lambda _: whole.fetch(Range=header))
            return part[start - first : end - first]

        return ObjectFile(location, fetch, lambda: size)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """See ``FileIO``; an object that is not there counts as deleted, and one that cannot be deleted stays."""
        if not self._clients.abilities.deletes:
            return
        name = location if isinstance(location, str) else location.location
        bucket, key = split(name)
        _ask("s3:DeleteObject", name, self._clients, lambda s3: s3.delete_object(Bucket=bucket, Key=key))


@dataclass(frozen=True, eq=False)
class RecordKind:
    """The schema by which records of manifests or of lists of them are read, and the classes that they become."""

    schema: Schema
    types: Mapping[int, Callable[..., StructProtocol]]
    enums: Mapping[int, Callable[..., Enum]]


class MetadataFile(AvroFile[Record]):
    """A manifest, or a list of manifests. The reader of each schema is made once, since that takes longer than to read
    the records of a small file."""

    def __init__(self, input_file: InputFile, kind: RecordKind) -> None:
        super().__init__(input_file, kind.schema, dict(kind.types), dict(kind.enums))
        self._kind = kind

    def __enter__(self) -> "MetadataFile[Record]":
        with self.input_file.open() as stream:
            self.decoder = new_decoder(stream.read())
        self.header = _make_header_reader().read(self.decoder)
        self.reader = _make_reader(self.header.meta["avro.schema"], self._kind)
        return self


@lru_cache(maxsize=1)
def _make_header_reader() -> Reader:
    return construct_reader(META_SCHEMA, {-1: AvroFileHeader})


@lru_cache(maxsize=256)
def _make_reader(written: str, kind: RecordKind) -> Reader:
    schema = AvroSchemaConversion().avro_to_iceberg(json.loads(written))
    return resolve_reader(schema, kind.schema, dict(kind.types), dict(kind.enums))


class S3Input(InputFile):
    """One object, fetched when it is first read, unless ``contents`` has it already."""

    def __init__(self, location: str, clients: aws.Clients, contents: LastingObjects | None = None) -> None:
        super().__init__(location)
        self._clients = clients
        self._contents = LastingObjects() if contents is None else contents

    def _read(self) -> bytes:
        return self._contents.get(self.location, lambda _: self.fetch())

    def fetch(self, **options: Any) -> bytes:
        """Fetch the object, or the part that ``options`` ask for; ``LOAD_GONE`` where it is not there."""
        bucket, key = split(self.location)

        def fetch(s3: Any) -> bytes:
            try:
                return aws.read_object(s3, Bucket=bucket, Key=key, **options)[0]
            except aws.ClientError as error:
                if (
                    aws.read_status(error) in (403, 404)
                    and aws.read_error_code(error) != "NoSuchBucket"
                    and not self.exists()
                ):
                    raise LoadGoneError(
                        f"{self.location} is gone, and the table's metadata name it, so nobody can read the table.",
                        remedy="Restore the object from its bucket's versions.",
                    ) from error
                raise

        return _ask("s3:GetObject", self.location, self._clients, fetch)

    def __len__(self) -> int:
        return len(self._read())

    def exists(self) -> bool:
        """Return whether a listing has the key: to a role for one prefix, S3 answers HEAD of a missing object with
        403. A bucket that lists nothing answers 404."""
        bucket, key = split(self.location)

        def look(s3: Any) -> bool:
            if not self._clients.abilities.lists_objects:
                return _is_there(s3, bucket, key)
            entries = s3.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1).get("Contents", [])
            return [entry["Key"] for entry in entries] == [key]

        return _ask("s3:ListBucket", self.location, self._clients, look)

    def open(self, seekable: bool = True) -> InputStream:
        """See ``InputFile``."""
        return cast(InputStream, io.BytesIO(self._read()))


def _is_there(s3: Any, bucket: str, key: str) -> bool:
    try:
        s3.head_object(Bucket=bucket, Key=key)
    except aws.ClientError as error:
        if aws.read_status(error) == HTTPStatus.NOT_FOUND:
            return False
        raise
    return True


class S3Output(OutputFile):
    """One object, put when its stream is closed."""

    def __init__(self, location: str, clients: aws.Clients, load: str, note: Callable[[str], None]) -> None:
        super().__init__(location)
        self._clients = clients
        self._load = load
        self._note = note
        self._length: int | None = None

    def __len__(self) -> int:
        return len(self.to_input_file()) if self._length is None else self._length

    def exists(self) -> bool:
        """See ``S3Input``."""
        return self.to_input_file().exists()

    def to_input_file(self) -> S3Input:
        """See ``OutputFile``."""
        return S3Input(self.location, self._clients)

    def create(self, overwrite: bool = False) -> OutputStream:
        """See ``OutputFile``. Every name has a UUID in it, so nothing needs ``overwrite``."""
        return cast(OutputStream, _Buffer(self.put))

    def put(self, content: bytes) -> None:
        """Create the object, with its load in the metadata; one that is there already is this one, sent twice."""
        bucket, key = split(self.location)
        self._note(self.location)

        abilities = self._clients.abilities
        is_conditional = abilities.puts_if_free and not self._clients.access.single_writer
        options: dict[str, Any] = {"IfNoneMatch": "*"} if is_conditional else {}
        if abilities.keeps_metadata:
            options["Metadata"] = {LOAD_METADATA: self._load}

        def create(s3: Any) -> None:
            try:
                s3.put_object(Bucket=bucket, Key=key, Body=content, **options)
            except aws.ClientError as error:
                # The name has a UUID in it, so the object in the way is this one: the SDK has sent it twice.
                if aws.read_status(error) != PRECONDITION_FAILED:
                    raise

        _ask("s3:PutObject", self.location, self._clients, create)
        self._length = len(content)


class _Buffer(io.BytesIO):
    def __init__(self, put: Callable[[bytes], None]) -> None:
        super().__init__()
        self._put = put

    def __exit__(self, kind: Any, *rest: Any) -> None:
        if kind is not None:
            self._put = _discard
        super().__exit__(kind, *rest)

    def close(self) -> None:
        if not self.closed:
            put, self._put = self._put, _discard
            put(self.getvalue())
        super().close()


def _discard(_: bytes) -> None:
    """Do not put an object whose content was not completed."""


def find_marked(prefix: str, load: str, since: datetime, committed: Set[str], clients: aws.Clients) -> Iterator[str]:
    """Yield locations under ``prefix``, written at or after ``since`` and not ``committed``, whose metadata's load
    begins with ``load``; none in a bucket that does not list them, which clears them by itself."""
    if not clients.abilities.lists_objects:
        return
    scheme, (bucket, key) = prefix.partition(":")[0], split(prefix)

    def list_pages(s3: Any) -> list[Any]:
        return list(s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=key))

    for page in _ask("s3:ListBucket", prefix, clients, list_pages):
        for entry in page.get("Contents", ()):
            location = f"{scheme}://{bucket}/{entry['Key']}"
            if entry["LastModified"] < since or location in committed:
                continue
            if _read_mark(location, clients).startswith(load):
                yield location


def _read_mark(location: str, clients: aws.Clients) -> str:
    """Return the load in the object's metadata, blank for an object that is gone since it was listed."""
    bucket, key = split(location)

    def head(s3: Any) -> str:
        try:
            answer = s3.head_object(Bucket=bucket, Key=key)
        except aws.ClientError as error:
            # Every writer that loses a race deletes its own manifests, between the listing and this call too.
            if aws.read_status(error) in (403, 404) and not S3Input(location, clients).exists():
                return ""
            raise
        metadata = {name.lower(): value for name, value in answer.get("Metadata", {}).items()}
        return str(metadata.get(LOAD_METADATA, ""))

    return _ask("s3:GetObject", location, clients, head)


def split(location: str) -> tuple[str, str]:
    """Split an ``s3://``, ``s3a://`` or ``s3n://`` URI into bucket and key; ``ValueError`` for another one."""
    scheme, _, rest = location.partition("://")
    if scheme not in {"s3", "s3a", "s3n"}:
        raise ValueError(f"{location!r} is not in S3.")
    bucket, _, key = rest.partition("/")
    return bucket, key


def _ask(action: str, location: str, clients: aws.Clients, ask: Callable[[Any], T]) -> T:
    try:
        return ask(clients.s3)
    except (aws.ClientError, aws.BotoCoreError) as error:
        raise aws.explain(error, doing=f"{action} on {location}", access=clients.access) from error
