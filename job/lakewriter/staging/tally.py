"""Count what tasks stage, for people who wait: what is committed is decided by the receipts alone.

On one machine each task sends the driver a datagram from time to time. One that is lost, or that nobody reads, changes
nothing, and no task waits for it.
"""

import json
import secrets
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass
from typing import Final, Protocol

import pyarrow as pa

from lakewriter.receipt import Receipt

_HOST: Final = "127.0.0.1"
_PERIOD: Final = 0.5
_MOST_BYTES: Final = 1024


@dataclass(frozen=True)
class Staged:
    """Work that tasks have done: ``tasks`` that have ended, rows that were read, files and bytes that were uploaded."""

    tasks: int = 0
    rows: int = 0
    files: int = 0
    bytes: int = 0

    def __add__(self, other: "Staged") -> "Staged":
        return Staged(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))


class TaskTally(ABC):
    """Work that one task has done so far."""

    def __init__(self) -> None:
        self.staged = Staged()

    def count(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the same batches, their rows counted as they are read."""
        for batch in batches:
            self.staged += Staged(rows=batch.num_rows)
            self.tell()
            yield batch

    def add_file(self, receipt: Receipt) -> None:
        """Count a file that is uploaded."""
        self.staged += Staged(files=1, bytes=receipt.size)

    def end(self) -> None:
        """Count the task as ended."""
        self.staged += Staged(tasks=1)
        self.tell(at_end=True)

    @abstractmethod
    def tell(self, *, at_end: bool = False) -> None:
        """Let the driver know, if it is time."""


class Teller(Protocol):
    """The part of a tally that a task takes with it; picklable."""

    def begin(self, partition: int) -> TaskTally:
        """Begin the tally of a task."""


class Tally(Protocol):
    """The driver's side."""

    @property
    def teller(self) -> Teller:
        """The object that tasks take with them."""

    def read(self) -> Staged:
        """Return what is known to be done by now."""

    def close(self) -> None:
        """Stop reading."""


class _DatagramTally(TaskTally):
    def __init__(self, port: int, token: str, partition: int) -> None:
        super().__init__()
        self._port, self._token, self._partition = port, token, partition
        self._reported_at = 0.0

    def tell(self, *, at_end: bool = False) -> None:
        now = time.monotonic()
        if not at_end and now - self._reported_at < _PERIOD:
            return
        self._reported_at = now
        content = {"token": self._token, "partition": self._partition, "staged": asdict(self.staged)}
        with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setblocking(False)
            sender.sendto(json.dumps(content).encode(), (_HOST, self._port))


@dataclass(frozen=True)
class DatagramTeller:
    """The address at which the driver listens, and the word by which it knows its own tasks."""

    port: int
    token: str

    def begin(self, partition: int) -> TaskTally:
        """Begin the tally of a task."""
        return _DatagramTally(self.port, self.token, partition)


class DatagramListener:
    """Hears the tasks of one table on this machine."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((_HOST, 0))
        self._socket.setblocking(False)
        self.teller = DatagramTeller(self._socket.getsockname()[1], secrets.token_hex(8))
        self._heard: dict[int, Staged] = {}

    def read(self) -> Staged:
        """Return what is known to be done by now."""
        with suppress(BlockingIOError):
            while True:
                self._take(self._socket.recv(_MOST_BYTES))
        return sum(self._heard.values(), Staged())

    def _take(self, body: bytes) -> None:
        with suppress(ValueError, KeyError, TypeError):
            content = json.loads(body)
            if content["token"] == self.teller.token:
                self._heard[content["partition"]] = Staged(**content["staged"])

    def close(self) -> None:
        """Leave the port."""
        self._socket.close()
