"""Keep the bad rows of a task apart: as JSON lines beside the load's control objects. Knows nothing of Spark."""

import base64
import gzip
import itertools
import json
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from lakewriter.aws import BotoCoreError, ClientError, Clients, explain, read_status
from lakewriter.errors import ValueUnrepresentableError
from lakewriter.receipt import MOST_BAD_ROWS_SHOWN, Cursor, SetAside
from lakewriter.source.bad_rows import BAD, CHECKS

_SHOWN: Final = 200
_OBJECT_BYTES: Final = 8 * 1024 * 1024
"""Bytes of JSON in an object, before it is compressed."""
_TRIES: Final = 5
_PAUSE: Final = 0.2


@dataclass(frozen=True)
class Rows:
    """Rows of a partition; ``places`` are their numbers in it, from 0, ``marks`` say where each begins in its file,
    ``checks`` what the table's conditions are of each."""

    batch: pa.RecordBatch
    places: pa.Int64Array
    marks: pa.Array | None = None
    checks: pa.Array | None = None

    @classmethod
    def of(cls, batch: pa.RecordBatch, first: int) -> "Rows":
        """Make rows of a feed's batch, whose last columns may be the rows' checks and marks; ``first`` is the place of
        the first one."""
        hidden: dict[str, pa.Array] = {}
        for name in (BAD, CHECKS):
            if batch.num_columns and batch.schema.names[-1] == name:
                last = batch.num_columns - 1
                hidden[name] = batch.column(last)
                batch = batch.select(range(last))
        places = pa.arange(first, first + batch.num_rows)
        return cls(batch, places, hidden.get(BAD), hidden.get(CHECKS))

    def split(self) -> tuple["Rows", "Rows"]:
        """Split the rows into halves."""
        middle = self.batch.num_rows // 2
        return self._slice(slice(0, middle)), self._slice(slice(middle, None))

    def take_one(self, number: int) -> "Rows":
        """Return one row."""
        return self._slice(slice(number, number + 1))

    def take(self, numbers: pa.Array) -> "Rows":
        """Return the rows with these numbers."""
        marks, checks = (None if each is None else each.take(numbers) for each in (self.marks, self.checks))
        return Rows(self.batch.take(numbers), self.places.take(numbers), marks, checks)

    def _slice(self, part: slice) -> "Rows":
        marks = None if self.marks is None else self.marks[part]
        start, stop, _ = part.indices(self.batch.num_rows)
        checks = None if self.checks is None else self.checks[part]
        return Rows(self.batch.slice(start, stop - start), self.places[part], marks, checks)

    @property
    def mark(self) -> dict[str, Any]:
        """The mark of the first row; empty where rows have none."""
        return (self.marks[0].as_py() if self.marks is not None else None) or {}


def keep_rows(batch: pa.RecordBatch, is_kept: pa.Array) -> pa.RecordBatch:
    """The rows that stay. Numbers without nulls are taken by their places, a third of what filtering them takes."""
    places = pc.indices_nonzero(is_kept)
    columns = [
        column.filter(is_kept) if column.null_count or not pt.is_primitive(column.type) else column.take(places)
        for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


@dataclass(frozen=True)
class Aside:
    """Where a load's bad rows are written: under ``prefix``; ``keys`` are the source's columns that identify a row."""

    prefix: str
    keys: tuple[str, ...] = ()


class BadRowKeeper(ABC):
    """Keeps the bad rows of one partition apart, and counts them. ``read_cursor`` gives the highest cursor of rows."""

    def __init__(self) -> None:
        self.read_cursor: Callable[[pa.RecordBatch], Cursor | None] = lambda _: None
        self._rows = 0
        self._keys: list[str] = []
        self._samples: list[str] = []

    def take_marked(self, rows: Rows) -> Rows:
        """Keep the rows that are marked as bad; return the others."""
        if rows.marks is None:
            return rows
        is_bad = pc.struct_field(rows.marks, "reason").is_valid()
        bad = pc.indices_nonzero(is_bad)
        if not len(bad):
            return rows
        self._keep_marked(rows.take(bad))
        return rows.take(pc.indices_nonzero(pc.invert(is_bad)))

    @abstractmethod
    def _keep_marked(self, rows: Rows) -> None:
        """Keep rows that are marked as bad."""

    @abstractmethod
    def refuse(self, row: Rows, error: ValueUnrepresentableError) -> None:
        """Keep a row that cannot be written, with all its columns and the error."""

    @abstractmethod
    def close(self) -> SetAside | None:
        """Write what is left, and return what was kept; None where nothing was."""

    @abstractmethod
    def abandon(self, cause: BaseException) -> None:
        """Withdraw what is staged, after the ``cause``."""

    def _count(self, rows: int, samples: Sequence[str]) -> None:
        self._rows += rows
        self._samples += samples[: MOST_BAD_ROWS_SHOWN - len(self._samples)]

    @property
    def is_sampled(self) -> bool:
        """Whether no more rows are shown."""
        return len(self._samples) >= MOST_BAD_ROWS_SHOWN

    def _describe(self) -> SetAside | None:
        return SetAside(rows=self._rows, keys=tuple(self._keys), samples=tuple(self._samples)) if self._rows else None


class BadRowWriter(BadRowKeeper):
    """Writes them as soon as they are many; ``write`` creates an object from key and content."""

    def __init__(self, aside: Aside, partition: int, write: Callable[[str, bytes], None]) -> None:
        super().__init__()
        self._aside, self._partition, self._write = aside, partition, write
        self._held: list[bytes] = []
        self._size = 0

    def _keep_marked(self, rows: Rows) -> None:
        for number in range(rows.batch.num_rows):
            self._add(rows.take_one(number), {})

    def refuse(self, row: Rows, error: ValueUnrepresentableError) -> None:
        """See ``BadRowKeeper``."""
        names = row.batch.schema.names
        value = {name: to_json_value(column) for name, column in zip(names, row.batch.columns, strict=True)}
        self._add(row, {"column": error.column, "value": value, "reason": error.message})

    def _add(self, row: Rows, found: dict[str, Any]) -> None:
        names = row.batch.schema.names
        known = [name for name in self._aside.keys if names.count(name) == 1]
        key = {name: to_json_value(row.batch.column(names.index(name))) for name in known}
        content = row.mark | found | {"key": {name: value for name, value in key.items() if value is not None} or None}
        if content.get("file") is None:
            content |= {"partition": self._partition, "offset": row.places[0].as_py()}
        content = {name: value for name, value in content.items() if value is not None}
        line = json.dumps(content, ensure_ascii=False).encode(errors="backslashreplace") + b"\n"
        self._count(1, () if self.is_sampled else (describe_bad_row(content),))
        self._held.append(line)
        self._size += len(line)
        if self._size >= _OBJECT_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._held:
            # A task that runs twice writes twice: only keys that the run returned to Spark belong to the load.
            key = f"{self._aside.prefix}{self._partition:05d}-{len(self._keys):05d}-{uuid.uuid4().hex[:12]}.jsonl.gz"
            self._write(key, gzip.compress(b"".join(self._held), mtime=0))
            self._keys.append(key)
            self._held, self._size = [], 0

    def close(self) -> SetAside | None:
        """See ``BadRowKeeper``."""
        self._flush()
        return self._describe()

    def abandon(self, cause: BaseException) -> None:
        """Do nothing: what is written belongs to no load until the driver is told of it."""


def to_json_value(array: pa.Array) -> Any:
    """Return an array's one value for JSON: binary as base64, and what JSON does not have as Arrow's own text."""
    try:
        value = array[0].as_py()
        return json.loads(json.dumps(value, allow_nan=False, default=_to_text))
    except (ValueError, OverflowError, TypeError, RecursionError):
        return " ".join(array.to_string().split()).removeprefix("[ ").removesuffix(" ]")


def _to_text(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def describe_bad_row(content: dict[str, Any]) -> str:
    """Where a row stands, and what is wrong with it, for people."""
    where = content.get("file") or f"partition {content['partition']}"
    offset = f", offset {content['offset']}" if "offset" in content else ""
    column = f", column {content['column']!r}" if "column" in content else ""
    value = content.get("value", "")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
    return f"{where}{offset}{column}: {content.get('reason')}: {text}"


def make_object_writer(clients: Clients) -> Callable[[str, bytes], None]:
    """Make the function that creates objects beside the load's control objects."""
    access = clients.access

    def write(key: str, content: bytes) -> None:
        condition = {} if access.single_writer else {"IfNoneMatch": "*"}
        checksum = {"ChecksumAlgorithm": access.checksum_algorithm} if access.checksum_algorithm else {}
        for number in itertools.count(1):
            try:
                clients.s3.put_object(Bucket=access.bucket, Key=key, Body=content, **condition, **checksum)
            except (BotoCoreError, ClientError) as error:
                status = read_status(error) if isinstance(error, ClientError) else 0
                if status == 412:
                    # No other writer has this name: an earlier try of this call succeeded.
                    return
                if status == 409 and number < _TRIES:
                    # An earlier try of this call is still under way.
                    time.sleep(_PAUSE * number)
                    continue
                raise explain(error, doing=f"s3:PutObject on s3://{access.bucket}/{key}", access=access) from error
            return

    return write
