"""Encode as JSON what a task returns to the driver: few receipts as they are, many as the parts that it has written
them to."""

import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lakewriter.aws import BotoCoreError, ClientError, Clients, explain, read_status
from lakewriter.expect.repeated_keys import TaskKeys
from lakewriter.receipt import Floor, Receipt, ReceiptPart, SetAside
from lakewriter.receipts import parts as receipt_parts
from lakewriter.receipts.parts import PartWriter, Read, Receipts, ReceiptTexts, Write

MOST_TASKS: Final = 100_000
"""More partitions than a load has tasks with rows."""
_TRIES: Final = 5
_PAUSE: Final = 0.2


@dataclass(frozen=True)
class Spill:
    """The limits for a task's receipts: if they have more than ``most_bytes`` as JSON, they go into parts of
    ``part_bytes`` under ``prefix``."""

    prefix: str
    part_bytes: int
    most_bytes: int


def plan_spill(prefix: str, partitions: int) -> Spill:
    """Give every task its share of what all of them may return; of very many partitions most are taken for empty."""
    bounds = receipt_parts.BOUNDS
    return Spill(prefix, bounds.part, min(bounds.part, bounds.results // min(max(partitions, 1), MOST_TASKS)))


def make_object_writer(clients: Clients) -> Callable[[str, bytes], None]:
    """Make the function that creates parts beside the load's control objects."""
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


class Packer:
    """Packs the receipts of one run of a task; ``attempt`` says how often it ran before, ``stage`` is Spark's id.

    ``tell`` is called with each receipt.
    """

    def __init__(
        self, spill: Spill | None, write: Write | None, *, attempt: int = 0, stage: int | None = None,
        tell: Callable[[Receipt], None] | None = None,
    ) -> None:  # fmt: skip
        self._spill, self._write, self._attempt, self._stage, self._tell = spill, write, attempt, stage, tell

    def pack(self, receipts: Iterator[Receipt]) -> Iterator[str]:
        """Yield the receipts, or parts of them where they are many."""
        counted = (self._count(receipt) for receipt in receipts)
        if self._spill is None or self._write is None:
            yield from (self._dump(receipt=receipt) for receipt in counted)
            return
        held, size, writer = list[Receipt](), 0, PartWriter(self._spill.prefix, self._spill.part_bytes, self._write)
        for receipt in counted:
            held.append(receipt)
            size += len(receipt.model_dump_json())
            if size > self._spill.most_bytes:
                yield from self._move(held, writer)
        if size <= self._spill.most_bytes:
            yield from (self._dump(receipt=receipt) for receipt in held)
            return
        for part in writer.flush():
            yield self._dump(part=part)

    def _count(self, receipt: Receipt) -> Receipt:
        if self._tell is not None:
            self._tell(receipt)
        return receipt.model_copy(update={"task_attempt": self._attempt})

    def _move(self, held: list[Receipt], writer: PartWriter) -> Iterator[str]:
        for receipt in held:
            for part in writer.add(receipt):
                yield self._dump(part=part)
        held.clear()

    def _dump(self, **content: Receipt | ReceiptPart) -> str:
        dumped = {name: value.model_dump(mode="json") for name, value in content.items()}
        return json.dumps({"stage": self._stage} | dumped)


def dump_set_aside(
    set_aside: SetAside, quarantined: Sequence[Receipt], *, attempt: int = 0, stage: int | None = None
) -> str:
    """Return as text what a task has set aside, with the receipts of its files in the quarantine; ``attempt`` and
    ``stage`` are as those of a ``Packer``, since a task may have no rows but bad ones."""
    tried = (receipt.model_copy(update={"task_attempt": attempt}) for receipt in quarantined)
    receipts = [receipt.model_dump(mode="json") for receipt in tried]
    return json.dumps({"stage": stage, "set_aside": set_aside.model_dump(mode="json"), "quarantined": receipts})


def dump_keys(keys: TaskKeys) -> str:
    """Return as text what a task has seen of the primary keys of its rows."""
    return json.dumps({"keys": keys.model_dump(mode="json")})


def dump_floors(floors: Sequence[Floor]) -> str:
    """Return as text the floors that were among the rows of a task, which may have had no others."""
    return json.dumps({"floors": [floor.model_dump(mode="json") for floor in floors]})


@dataclass(frozen=True)
class Returned:
    """The answers of all tasks of a table: ``stages`` are Spark's ids of those that wrote files, ``quarantined``
    the receipts of files with bad rows, ``keys`` what was seen of primary keys, ``floors`` the highest one of each
    source table."""

    texts: ReceiptTexts
    parts: tuple[ReceiptPart, ...]
    set_aside: SetAside | None
    stages: frozenset[int | None]
    quarantined: ReceiptTexts
    keys: tuple[TaskKeys, ...] = ()
    floors: tuple[Floor, ...] = ()

    @property
    def is_of_spark(self) -> bool:
        """True if tasks of Spark have written files."""
        return any(stage is not None for stage in self.stages)

    def open(self, read: Read) -> Receipts:
        """Return the receipts, those of the parts read by ``read``."""
        return Receipts(self.texts, self.parts, read)

    @classmethod
    def parse(cls, outputs: Sequence[str]) -> "Returned":
        """Parse what the tasks have yielded."""
        texts, parts, aside, stages = list[str](), list[ReceiptPart](), list[SetAside](), set[int | None]()
        quarantined, keys, floors = list[str](), list[TaskKeys](), list[Floor]()
        for output in map(json.loads, outputs):
            if "keys" in output:
                keys.append(TaskKeys.model_validate(output["keys"]))
                continue
            if "floors" in output:
                floors += map(Floor.model_validate, output["floors"])
                continue
            if "set_aside" in output:
                aside.append(SetAside.model_validate(output["set_aside"]))
                quarantined += map(json.dumps, output["quarantined"])
                stages |= {output["stage"]} if output["quarantined"] else set()
                continue
            stages.add(output["stage"])
            if "part" in output:
                parts.append(ReceiptPart.model_validate(output["part"]))
            else:
                texts.append(json.dumps(output["receipt"]))
        whole = SetAside.of(aside)
        staged = ReceiptTexts(texts), tuple(parts), whole, frozenset(stages), ReceiptTexts(quarantined)
        return cls(*staged, tuple(keys), Floor.join(floors))
