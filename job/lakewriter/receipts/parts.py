"""Keep the receipts of a load: few of them at hand, many in parts, which are read one at a time.

A part is an object among the load's control objects: gzip of JSON lines, a receipt each. Its key has its digest, and
the object that names it keeps the whole digest, so a changed part is noticed before anything uses it.
"""

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from lakewriter.errors import PendingUnrecoverableError
from lakewriter.expect.observing import add_observed
from lakewriter.receipt import (
    COPIED,
    Absent,
    ChangedValues,
    Cursor,
    Observed,
    Receipt,
    ReceiptPart,
    TextShapes,
    Totals,
    Violations,
)
from lakewriter.report import SMALL_FILE_BYTES
from lakewriter.shape.cursor import choose_higher
from lakewriter.shape.text_shapes import join_shapes
from lakewriter.spec.specification import MIB

MOST_SAMPLES: Final = 100
"""A table's report describes so many changes of values; it counts all of them."""
_LEVEL: Final = 3
"""Receipts repeat themselves: a higher level takes twice the time and saves a tenth."""


@dataclass(frozen=True)
class Bounds:
    """Limits on the bytes of receipts, as JSON, that are held together.

    part     in a part, and in an intent that has them itself
    results  in what all tasks of a table return to the driver: Spark allows 1 GiB, which Python holds a second time
    parts    how many parts an intent names before small ones are joined
    """

    part: int = 8 * MIB
    results: int = 128 * MIB
    parts: int = 200


BOUNDS: Final = Bounds()

Read = Callable[[str], bytes | None]
"""Read a control object; None if it is not there."""
Write = Callable[[str, bytes], None]
"""Create a control object, unless it is there."""


class Sum:
    """Totals of files, added receipt by receipt."""

    def __init__(self) -> None:
        self._numbers = Counter[str]()
        self._last_seq = -1
        self._cursor: Cursor | None = None
        self._engines: set[str] = set()
        self._samples: list[str] = []
        self._undeclared, self._requests, self._skipped = Counter[str](), Counter[str](), Counter[str]()
        self._unchanged = Counter[str]()
        self._changed = Counter[tuple[str, str, str]]()
        self._is_repeated = False
        self._observed: dict[str, Observed] = {}
        self._violations: dict[str, Violations] = {}
        self._orders: dict[str, TextShapes] = {}
        self._absent: Absent | None = None

    def add(self, receipt: Receipt) -> None:
        """Add a file."""
        is_small = receipt.size < SMALL_FILE_BYTES and receipt.engine != COPIED
        self._numbers.update(
            files=1, rows=receipt.rows, bytes=receipt.size, small_files=is_small,
            cursor_nulls=receipt.cursor_nulls, changes=receipt.changes, blank_lines=receipt.blank_lines,
        )  # fmt: skip
        self._engines.add(receipt.engine)
        self._add_rest(receipt, receipt.seq, receipt.cursor)
        # A creation that was sent again may have left a second upload.
        self._is_repeated |= bool(receipt.task_attempt) or receipt.requests.get("POST", 0) > 1

    def add_all(self, totals: Totals) -> None:
        """Add several files."""
        self._numbers.update(
            files=totals.files, rows=totals.rows, bytes=totals.bytes, small_files=totals.small_files,
            cursor_nulls=totals.cursor_nulls, changes=totals.changes, blank_lines=totals.blank_lines,
        )  # fmt: skip
        self._engines.update(totals.engines)
        self._add_rest(totals, totals.last_seq, totals.cursor)
        self._is_repeated |= totals.is_repeated

    def _add_rest(self, more: Receipt | Totals, seq: int, cursor: Cursor | None) -> None:
        self._last_seq = max(self._last_seq, seq)
        self._cursor = choose_higher(self._cursor, cursor)
        self._samples += more.change_samples[: MOST_SAMPLES - len(self._samples)]
        self._undeclared.update(more.undeclared)
        self._requests.update(more.requests)
        self._skipped.update(more.skipped)
        self._unchanged.update(more.unchanged)
        self._absent = Absent.join([self._absent, more.absent])
        for values in more.changed:
            self._changed[values.field, values.change, values.reason] += values.values
        for column, observed in more.observed.items():
            before = self._observed.get(column)
            self._observed[column] = observed if before is None else add_observed(before, observed)
        for column, shapes in more.orders.items():
            self._orders[column] = join_shapes(self._orders.get(column), shapes) or shapes
        for check, violations in more.violations.items():
            self._violations[check] = self._violations.get(check, Violations(rows=0)) + violations

    def make(self) -> Totals:
        """Return the sum."""
        changed = (
            ChangedValues(field=field, change=change, reason=reason, values=count)
            for (field, change, reason), count in self._changed.most_common()
        )
        return Totals(
            **self._numbers,
            last_seq=self._last_seq,
            engines=tuple(sorted(self._engines)),
            cursor=self._cursor,
            change_samples=tuple(self._samples),
            undeclared=dict(self._undeclared),
            changed=tuple(changed),
            requests=dict(self._requests),
            is_repeated=self._is_repeated,
            skipped=dict(self._skipped),
            observed=self._observed,
            violations=self._violations,
            absent=self._absent,
            unchanged=dict(self._unchanged),
            orders=self._orders,
        )


class ReceiptTexts(Collection[Receipt]):
    """Receipts as the JSON text that tasks return, a tenth of the size of parsed receipts; ``size`` is in bytes."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self.size = sum(map(len, texts))

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[Receipt]:
        return (Receipt.model_validate_json(text) for text in self._texts)

    def __contains__(self, receipt: object) -> bool:
        return any(receipt == other for other in self)


class PartWriter:
    """Writer of receipts into parts under ``prefix``, each of about ``size`` bytes of JSON."""

    def __init__(self, prefix: str, size: int, write: Write) -> None:
        self._prefix, self._most, self._write = prefix, size, write
        self._clear()

    def _clear(self) -> None:
        self._lines: list[bytes] = []
        self._sum = Sum()
        self.size = 0
        """Bytes that are held."""

    def add(self, receipt: Receipt) -> Iterator[ReceiptPart]:
        """Add a receipt; yield the part that it fills."""
        line = receipt.for_intent().model_dump_json().encode()
        self._lines.append(line)
        self._sum.add(receipt)
        self.size += len(line) + 1
        if self.size >= self._most:
            yield from self.flush()

    def add_part(self, lines: Sequence[bytes], totals: Totals) -> Iterator[ReceiptPart]:
        """Add the receipts of another part; yield the part that they fill."""
        self._lines += lines
        self._sum.add_all(totals)
        self.size += sum(map(len, lines)) + len(lines)
        if self.size >= self._most:
            yield from self.flush()

    def flush(self) -> Iterator[ReceiptPart]:
        """Write what is held; yield its part."""
        if not self._lines:
            return
        body = gzip.compress(b"\n".join(self._lines), _LEVEL, mtime=0)
        digest = hashlib.sha256(body).hexdigest()
        part = ReceiptPart(
            key=f"{self._prefix}{digest[:32]}.jsonl.gz", sha256=digest, length=len(body), totals=self._sum.make()
        )
        # Rule part-before-intent
        self._write(part.key, body)
        self._clear()
        yield part


class Receipts:
    """The receipts of a table in one load: those at hand, then those of the parts, in the order of the parts.

    Each iteration reads the parts anew. ``PENDING_UNRECOVERABLE``, with ``remedy``, for a part that is gone or changed.
    """

    def __init__(
        self, at_hand: Collection[Receipt] = (), parts: Sequence[ReceiptPart] = (), read: Read | None = None,
        remedy: str = "",
    ) -> None:  # fmt: skip
        self.at_hand, self.parts = at_hand, parts
        self._read, self._remedy = read, remedy

    def __len__(self) -> int:
        return len(self.at_hand) + sum(part.totals.files for part in self.parts)

    def __iter__(self) -> Iterator[Receipt]:
        yield from self.at_hand
        for part in self.parts:
            yield from self._read_part(part, statistics=True)

    def without_statistics(self) -> Iterator[Receipt]:
        """Yield the receipts. Those of parts lack the columns' statistics, which are most of a receipt."""
        yield from self.at_hand
        for part in self.parts:
            yield from self._read_part(part, statistics=False)

    def list_keys(self) -> Iterator[str]:
        """Yield the files' keys."""
        yield from (receipt.key for receipt in self.at_hand)
        for part in self.parts:
            yield from (str(json.loads(line)["key"]) for line in self.read_lines(part))

    def _read_part(self, part: ReceiptPart, *, statistics: bool) -> Iterator[Receipt]:
        try:
            for line in self.read_lines(part):
                yield _parse_line(line, statistics)
        except (TypeError, ValueError) as error:
            raise self._make_error(part, f"cannot be used by this release: {error}") from error

    def require_parts(self) -> None:
        """Read every part, so that one that is gone or changed is found before anything is done by the others."""
        for part in self.parts:
            self._read_body(part)

    @cached_property
    def totals(self) -> Totals:
        """Return the totals of all files, without reading the parts."""
        total = Sum()
        for receipt in self.at_hand:
            total.add(receipt)
        for part in self.parts:
            total.add_all(part.totals)
        return total.make()

    def read_lines(self, part: ReceiptPart) -> list[bytes]:
        """Read the receipts of one part as JSON."""
        return gzip.decompress(self._read_body(part)).split(b"\n")

    def _read_body(self, part: ReceiptPart) -> bytes:
        assert self._read is not None
        body = self._read(part.key)
        if body is None:
            raise self._make_error(part, "is not there")
        # Rule part-digest
        if hashlib.sha256(body).hexdigest() != part.sha256:
            raise self._make_error(part, "is not as the load wrote it: its SHA-256 differs")
        return body

    def _make_error(self, part: ReceiptPart, why: str) -> PendingUnrecoverableError:
        files = f"{part.totals.files:,} file{'s'[: part.totals.files != 1]}"
        return PendingUnrecoverableError(
            f"{part.key}, which has the receipts of {files}, {why}.",
            remedy=f"Restore the object from its bucket's versions{self._remedy}.",
        )


def _parse_line(line: bytes, statistics: bool) -> Receipt:
    content: Any = json.loads(line)
    if not statistics:
        content.pop("columns", None)
    return Receipt.model_validate(content)
