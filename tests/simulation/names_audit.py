"""Whether each column of a source keeps its column of the table: by texts in the objects, which name their source."""

import io
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache

import pyarrow.parquet as pq

from tests.simulation.books import LOAD, QUARANTINE, is_control
from tests.simulation.bucket import Bucket, Change, Stored
from tests.simulation.source import MARK, Sources


@dataclass
class NamesAuditor:
    """Of all tables; ``find`` takes what is not as it should be.

    ``lost_intents`` are keys of intents that are gone: with one goes which names its load gave.
    """

    bucket: Bucket
    sources: Sources
    find: Callable[[str], None]
    lost_intents: Set[str]

    def changed(self, change: Change) -> None:
        """A new object has every column of its source, where the objects that are there have it."""
        if change.after is None or not _is_data(change.key):
            return
        nonce, written = read_columns(change.after.body)
        if not nonce or not (hostile := self._list_hostile(nonce)):
            return
        table = self._name_table(nonce)
        if lost := sorted({*hostile, "name"} - written.keys()):
            self.find(f"{table}: columns {lost} of the source are not in {change.key}")
        for key, stored in self.bucket.objects.items():
            if key == change.key or not _is_data(key) or self._is_unnamed(stored):
                continue
            other, before = read_columns(stored.body)
            if other and self._name_table(other) == table:
                self._compare(table, key, before, written)

    def _is_unnamed(self, stored: Stored) -> bool:
        _, _, load = stored.metadata.get(LOAD, "").partition("/")
        return any(f"/loads/{load}/tables/" in key for key in self.lost_intents)

    def _compare(self, table: str, key: str, before: Mapping[str, str], written: Mapping[str, str]) -> None:
        by_name = {name: source for source, name in before.items()}
        for source, name in written.items():
            if before.get(source, name) != name:
                self.find(f"{table}: column {source!r} is {name!r} in a new object, and {before[source]!r} in {key}")
            if by_name.get(name, source) != source:
                self.find(
                    f"{table}: column {name!r} is from {source!r} in a new object, from {by_name[name]!r} in {key}"
                )

    def _list_hostile(self, nonce: int) -> list[str]:
        return [own for own in self.sources.readings[nonce].columns if not own.startswith("more_")]

    def _name_table(self, nonce: int) -> str:
        reading = self.sources.readings[nonce]
        return f"{reading.pipeline}/{reading.table}"


def _is_data(key: str) -> bool:
    is_deletes = "/deletes-" in key
    return key.endswith(".parquet") and not is_control(key) and f"{QUARANTINE}/" not in key and not is_deletes


@lru_cache(maxsize=4096)
def read_columns(body: bytes) -> tuple[int, Mapping[str, str]]:
    """The reading of an object's rows, 0 without any; and the written name of each column of the source whose texts
    are in it."""
    if body[:4] != b"PAR1":
        return 0, {}
    rows = pq.ParquetFile(io.BytesIO(body)).read(use_threads=False)
    if not len(rows):
        return 0, {}
    first = {name: rows.column(name)[0].as_py() for name in rows.column_names}
    texts = {name: text for name, text in first.items() if isinstance(text, str) and MARK in text}
    return first["nonce"], {text.partition(MARK)[0]: name for name, text in texts.items()}
