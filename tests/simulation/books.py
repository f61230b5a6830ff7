"""The tables that are watched, what was seen of each, and how what lies in the bucket is read."""

import gzip
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import pyarrow.parquet as pq

from tests.simulation.bucket import Stored

CONTROL: Final = "_lakewriter"
"""The folder of control objects, wherever it lies."""
QUARANTINE: Final = "__quarantine"
FLOOR: Final = 0
"""The reading of rows of a history that stand for a floor: they have the place of their order alone."""
GRADE: Final = "grade"
"""The column that checks keep rows out by: 0 in those that fit from the beginning."""
LOAD: Final = "lakewriter-load"
"""The metadata that names the load of an object or an upload."""


@dataclass(frozen=True)
class MergeRule:
    """How the rows of a merged table take each other's place; deleted ones that are not kept keep older rows out for
    ``deleted_seconds``. With ``is_stream`` syncs bring them: of the same order the row that comes later stays.
    With ``has_floors`` truncates and the ends of snapshots take older rows of all keys out. A table that ``is_history``
    has a row of each key for each order, and one for each floor."""

    order_by: tuple[str, ...]
    has_deletes: bool
    keeps_deleted: bool
    deleted_seconds: float
    is_stream: bool = False
    has_floors: bool = False
    is_history: bool = False


@dataclass(frozen=True)
class Place:
    """One table of one pipeline; one that ``overwrites`` is to hold the last load alone, one that ``goes_on`` each row
    once. One that ``refreshes`` holds it at any moment; one that ``is_synced`` is brought by a connector. One that
    ``has_cursor`` is read from there on; of one that ``has_new_files`` each load reads the files that no other has. The
    folder of its ``quarantine`` is blank without one. Its changes are those of the table ``history_of``, where there
    is one."""

    pipeline: str
    root: str
    table: str
    path: str
    catalog: str
    names: tuple[str, str]
    overwrites: bool = False
    goes_on: bool = False
    has_cursor: bool = False
    has_new_files: bool = False
    partitioned: bool = False
    exclusive: bool = False
    refreshes: bool = False
    is_synced: bool = False
    quarantine: str = ""
    in_glue: bool = False
    merges: MergeRule | None = None
    history_of: str | None = None

    @property
    def source(self) -> str:
        """The name of what it is read from."""
        return f"{self.pipeline}/{self.history_of or self.table}"

    @property
    def latest(self) -> str:
        """The object that names the files of the last full refresh."""
        return f"{self.path}/_latest/files.json"

    @property
    def state(self) -> str:
        """Where its state lies."""
        return f"{self.root}/tables/{self.table}/state.json"


@dataclass
class Book:
    """What was seen of one table."""

    commits: list[tuple[str, str]] = field(default_factory=list)
    bound: set[tuple[str, str]] = field(default_factory=set)
    registered: dict[tuple[str, str], int] = field(default_factory=dict)
    partitions: set[str] = field(default_factory=set)
    resets: int = 0
    given_up: set[str] = field(default_factory=set)
    blind: set[str] = field(default_factory=set)
    """Those that were closed without their intent."""
    undone: set[str] = field(default_factory=set)
    lost: dict[str, Any] | None = None
    """The state that somebody has deleted, until there is one again."""


def is_control(key: str) -> bool:
    """Whether an object is one of the control objects."""
    return CONTROL in key.split("/")


def is_undo(job: str) -> bool:
    """Whether a job id is an undo's own."""
    return job.startswith("undo.")


def is_compaction(job: str) -> bool:
    """Whether a job id is that of an upkeep, which changes no rows: of a compaction or an expiry."""
    return job.startswith(("compact.", "expire."))


def is_replay(job: str) -> bool:
    """Whether a job id is a replay's own."""
    return job.startswith("replay.")


def chain_of(job: str) -> list[str]:
    """The loads that the job stands for, itself the last: ``J.r3`` repeats ``J.r2``, which repeats ``J``."""
    base, mark, number = job.rpartition(".r")
    if not mark or not number.isdecimal():
        return [job]
    return [base, *(f"{base}.r{each}" for each in range(2, int(number) + 1))]


def parsed(stored: Stored) -> dict[str, Any]:
    return dict(json.loads(stored.body))


def pending_of(objects: Mapping[str, Stored], place: Place) -> dict[str, Any]:
    """What is pending now; empty where nothing is."""
    state = objects.get(place.state)
    return (parsed(state)["pending"] or {}) if state is not None else {}


def receipts_of(objects: Mapping[str, Stored], place: Place, pending: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Those of a pending load's intent, bad rows included, by its own text; None where the intent is gone."""
    root = f"{place.root}/loads/{pending['job_id']}/{pending['attempt']}/"
    for key, stored in objects.items():
        if not key.startswith(root) or not key.endswith(".json"):
            continue
        if (own := parsed(stored)).get("table_id") == place.table and "receipts" in own:
            return [receipt for files in (own, own.get("quarantine") or {}) for receipt in _read_all(objects, files)]
    return None


def taken_of(objects: Mapping[str, Stored], place: Place, job: str, attempt: str) -> list[str]:
    """The keys that a replay's intent takes out of the quarantine."""
    stored = objects.get(f"{place.root}/loads/{job}/{attempt}/tables/{place.table}.json")
    files = (parsed(stored).get("quarantine") or {}) if stored is not None else {}
    return [removal["key"] for removal in files.get("takes", ())]


def keys_of(objects: Mapping[str, Stored], report: Mapping[str, Any]) -> list[str]:
    """The files that a report tells of."""
    return [*report["keys"], *(own["key"] for own in _read_parts(objects, report.get("parts", ())))]


def _read_all(objects: Mapping[str, Stored], files: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [*files.get("receipts", ()), *_read_parts(objects, files.get("parts", ()))]


def _read_parts(objects: Mapping[str, Stored], parts: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Receipts in the parts that are there and are as the intent names them."""
    for part in parts:
        stored = objects.get(part["key"])
        if stored is not None and hashlib.sha256(stored.body).hexdigest() == part["sha256"]:
            yield from map(json.loads, gzip.decompress(stored.body).splitlines())


def ended_together(objects: Mapping[str, Stored], place: Place, *states: Mapping[str, Any]) -> bool:
    """Whether S3, which counts seconds, does not tell apart when the states' last loads were closed."""
    found = {f"{place.root}/loads/{state['last_job']}/{place.table}.report.json" for state in states}
    return len({objects[key].modified for key in found if key in objects}) == 1


@lru_cache(maxsize=4096)
def rows_of(body: bytes) -> tuple[tuple[int, int], ...]:
    """Number and reading of every row in a Parquet file; for a floor the number of its order, and ``FLOOR``."""
    table = pq.ParquetFile(io.BytesIO(body)).read(["id", "nonce"], use_threads=False)
    rows = list(zip(table.column("id").to_pylist(), table.column("nonce").to_pylist(), strict=True))
    if table.column("nonce").null_count:
        orders = pq.ParquetFile(io.BytesIO(body)).read([f"_change_{name}" for name in ("epoch", "log", "position")])
        for place, order in enumerate(orders.to_pylist()):
            if rows[place][1] is None:
                rows[place] = (number_floor([int(part) for part in order.values()]), FLOOR)
    return tuple(rows)


def number_floor(order: Sequence[int]) -> int:
    """Return a number for the order of a floor, which is as much as is known of it."""
    epoch, log, position = order[:3]
    return -1 - (2 * epoch + log) * 1_000_000 - position


@lru_cache(maxsize=4096)
def flags_of(body: bytes) -> dict[tuple[int, int], bool]:
    """Return whether each row in a Parquet file is flagged as deleted, by its number and reading; none without a
    flag."""
    if "_deleted" not in pq.ParquetFile(io.BytesIO(body)).schema_arrow.names:
        return {}
    flags = pq.ParquetFile(io.BytesIO(body)).read(["_deleted"], use_threads=False).column("_deleted").to_pylist()
    return dict(zip(rows_of(body), flags, strict=True))


@lru_cache(maxsize=4096)
def kept_rows_of(body: bytes) -> tuple[tuple[int, int, dict[str, Any]], ...]:
    """Number, reading and content of every row in a file of a quarantine, the row as the source had it."""
    table = pq.ParquetFile(io.BytesIO(body)).read(["_lake_row", "_lake_line"], use_threads=False)
    rows = [json.loads(row["_lake_row"] or row["_lake_line"]) for row in table.to_pylist()]
    return tuple((row["id"], row["nonce"], row) for row in rows)
