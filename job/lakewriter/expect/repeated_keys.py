"""Count the rows whose primary key another row of the load has, while its files are staged.

A task compares its own rows. In a load of several tasks, each also returns a hash of every key, and the driver compares
the hashes. Memory bounds the number of rows compared; ``expect: unique`` lets Spark compare all.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakewriter.documents.nesting import cut
from lakewriter.documents.values_to_text import render_text
from lakewriter.receipt import MOST_BAD_ROWS_SHOWN, Violations
from lakewriter.spec.model import Model

MOST_ROWS: Final = 1_000_000
"""The keys of at most so many rows of a table are compared: 8 bytes of each reach the driver."""

_HASH_BYTES: Final = 8


class TaskKeys(Model):
    """The keys that a task has compared.

    ``rows`` were looked at, ``repeated`` of them have the key of another row of the task. ``once`` and ``often`` are
    hashes of all keys, in base64: those that occur once, and the others.
    """

    rows: int
    repeated: Violations
    once: str = ""
    often: str = ""
    is_cut: bool = False


@dataclass(frozen=True)
class RepeatedKeys:
    """The keys that all tasks have compared; ``is_cut`` says that there are more rows than the ``rows`` looked at."""

    violations: Violations
    rows: int
    is_cut: bool


class KeyCounter:
    """Compares the keys of the first rows of one task out of ``tasks``; ``columns`` are the written names."""

    def __init__(self, columns: Sequence[str], tasks: int) -> None:
        self._columns = list(columns)
        self._is_one = tasks == 1
        self._most = MOST_ROWS // max(tasks, 1)
        self._held: list[pa.RecordBatch] = []
        self._rows = 0
        self._is_cut = False

    def add(self, typed: pa.RecordBatch) -> None:
        """Take the keys of rows that go into the files."""
        keys = typed.select(self._columns).slice(0, self._most - self._rows)
        self._is_cut = self._is_cut or keys.num_rows < typed.num_rows
        self._rows += keys.num_rows
        if keys.num_rows:
            self._held.append(keys.replace_schema_metadata())

    def finish(self) -> TaskKeys | None:
        """Compare the keys that were taken; None if no row was looked at. A key with a null does not count."""
        if not self._held:
            return None
        keys = pa.Table.from_batches(self._held)
        counted = keys.filter(reduce(pc.and_, map(pc.is_valid, keys.columns))).group_by(self._columns)
        counts = counted.aggregate([([], "count_all")])
        is_often = pc.greater(counts["count_all"], 1)
        often, once = counts.filter(is_often), counts.filter(pc.invert(is_often))
        shown = often.sort_by([("count_all", "descending")]).slice(0, MOST_BAD_ROWS_SHOWN)
        samples = (f"{cut(', '.join(key))} ({times} times)" for *key, times in _list_texts(shown))
        return TaskKeys(
            rows=self._rows,
            repeated=Violations(rows=pc.sum(often["count_all"]).as_py() or 0, samples=tuple(samples)),
            once="" if self._is_one else _hash(once.select(self._columns)),
            often="" if self._is_one else _hash(often.select(self._columns)),
            is_cut=self._is_cut,
        )


def _list_texts(table: pa.Table) -> list[tuple[str, ...]]:
    return list(zip(*(render_text(column.combine_chunks()).to_pylist() for column in table.columns), strict=True))


def _hash(keys: pa.Table) -> str:
    # Lengths tell ("a", "bc") apart from ("ab", "c").
    texts = ("\0".join(f"{len(text)}:{text}" for text in key) for key in _list_texts(keys))
    hashes = (hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES) for text in texts)
    return base64.b64encode(b"".join(key_hash.digest() for key_hash in hashes)).decode()


def add_keys(tasks: Sequence[TaskKeys]) -> RepeatedKeys | None:
    """Compare the keys of all tasks; None if no row was looked at."""
    if not tasks:
        return None
    inside = reduce(Violations.__add__, (task.repeated for task in tasks))
    once, often = (_join([getattr(task, name) for task in tasks]) for name in ("once", "often"))
    hashes, counts = np.unique(np.concatenate([once, often]), return_counts=True)
    between = int(np.isin(once, hashes[counts > 1]).sum())
    seen = Violations(rows=inside.rows + between, samples=inside.samples)
    return RepeatedKeys(seen, sum(task.rows for task in tasks), any(task.is_cut for task in tasks))


def _join(texts: Sequence[str]) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    return np.frombuffer(b"".join(map(base64.b64decode, texts)), np.uint64)
