"""Find the records and objects that loads of a table have left.

They distinguish a table whose state is lost from one that was never loaded.
"""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal, NamedTuple

from lakewriter.commit.store import Entry, Store, StoredObject
from lakewriter.errors import CODES, LakeError
from lakewriter.naming import CONTROL_DIRECTORY, ControlKeys
from lakewriter.spec.layout import Layout

MOST_LISTED: Final = 50_000
"""How many objects of a table are listed at most: a table that others have filled is not listed for minutes."""
MOST_ASKED: Final = 64
"""Of how many of those, the newest first, HEAD reads which load wrote them."""

FRESH_SECONDS: Final = 60.0
"""How long one listing says of every table of a pipeline which have traces: a state that is created and lost within
that time, by other processes, is taken for one that never was."""

_NUMBERS: Final = {name: rf"(?P<{name}>\d+)" for name in ("backfill", "counter", "generation")}

Kind = Literal["report", "intent", "failure"]
_REPORT: Final = re.compile(r"(?P<table>[^/]+)\.report\.json")
_RECORD: Final = re.compile(r"(?P<attempt>[^/]+)/(?P<folder>tables|failed)/(?P<table>[^/]+)\.json")
_FIRST: Final = re.compile(
    r"(?P<attempt>[^/]+)/(?!(?:begin|outcome)\.json)(?P<table>[^/]+?)(?P<failed>\.failed)?\.json"
)
"""How release 0.1.0 named intents and failures."""


@dataclass(frozen=True)
class Trace:
    """A record that a load has left for one table; ``attempt`` is blank for a report.

    ``is_early`` is true for a key as release 0.1.0 named it, which another record of an attempt may have today.
    """

    kind: Kind
    job_id: str
    attempt: str
    table_id: str
    entry: Entry
    is_early: bool = False


def parse_trace(keys: ControlKeys, entry: Entry) -> Trace | None:
    """Parse a key below ``loads/``; None for a record that belongs to no table."""
    job_id, _, name = entry.key.removeprefix(f"{keys.root}/loads/").partition("/")
    if (report := _REPORT.fullmatch(name)) is not None:
        return Trace("report", job_id, "", report["table"], entry)
    if (record := _RECORD.fullmatch(name)) is not None:
        kind: Kind = "intent" if record["folder"] == "tables" else "failure"
        return Trace(kind, job_id, record["attempt"], record["table"], entry)
    if (first := _FIRST.fullmatch(name)) is not None:
        kind = "failure" if first["failed"] else "intent"
        return Trace(kind, job_id, first["attempt"], first["table"], entry, is_early=True)
    return None


def find_traces(store: Store, keys: ControlKeys, table_id: str) -> Iterator[Trace]:
    """Yield the records of one table, of all loads whose control objects are kept."""
    traces = (parse_trace(keys, entry) for entry in store.list_entries(f"{keys.root}/loads/"))
    return (trace for trace in traces if trace is not None and trace.table_id == table_id)


def list_reports(store: Store, keys: ControlKeys) -> dict[str, dict[str, Entry]]:
    """List the reports that are kept of all tables of the pipeline: entries by table id and job id."""
    reports: dict[str, dict[str, Entry]] = {}
    for entry in store.list_entries(f"{keys.root}/loads/"):
        trace = parse_trace(keys, entry)
        if trace is not None and trace.kind == "report":
            reports.setdefault(trace.table_id, {})[trace.job_id] = entry
    return reports


class Traces:
    """The tables of a pipeline that have records of loads, listed for all of them at once: at the first load of
    thousands of tables each would list the records of all others."""

    def __init__(self, store: Store, keys: ControlKeys) -> None:
        self._store, self._keys = store, keys
        self._listed: tuple[float, Mapping[str, str]] | None = None

    def find(self, table_id: str, layout: Layout | None, *, anew: bool) -> str | None:
        """Return a key that exists only if the table had a state: a record's or an object's; None where there is none.

        ``anew`` asks for a listing of now.
        """
        if (key := self._list(anew).get(table_id)) is not None:
            return key
        if layout is None:
            return None
        return next((key for key, _ in find_own_objects(self._store, self._keys, table_id, layout)), None)

    def _list(self, anew: bool) -> Mapping[str, str]:
        # Tables that are loaded side by side may each list here, which costs less than waiting for one another.
        if anew or self._listed is None or time.monotonic() - self._listed[0] > FRESH_SECONDS:
            began, keys = time.monotonic(), dict[str, str]()
            for entry in self._store.list_entries(f"{self._keys.root}/loads/"):
                if (trace := parse_trace(self._keys, entry)) is not None:
                    keys.setdefault(trace.table_id, entry.key)
            self._listed = began, keys
        return self._listed[1]


def find_own_objects(
    store: Store, keys: ControlKeys, table_id: str, layout: Layout, *, most: int = MOST_ASKED
) -> Iterator[tuple[str, StoredObject]]:
    """Yield the objects that loads of this pipeline wrote for the table, the newest first; HEAD reads at most
    ``most``."""
    for entry in list_newest(store, layout, most):
        try:
            stored = store.head(entry.key)
        except LakeError as error:
            if CODES[error.code].transient:
                # Nobody knows whose it is.
                raise
            # An object that this pipeline may not read is not its own.
            continue
        if stored is None or not stored.load.startswith(f"{keys.pipeline}/"):
            continue
        if stored.table == table_id or (not stored.table and _may_be_of(store, keys, table_id, stored.load)):
            yield entry.key, stored


def list_newest(store: Store, layout: Layout, most: int = MOST_ASKED) -> list[Entry]:
    """List at most so many of the objects that match the table's layout, the newest first."""
    return sorted(list_objects(store, layout), key=lambda entry: entry.modified, reverse=True)[:most]


def list_objects(store: Store, layout: Layout) -> list[Entry]:
    """List the objects that match the table's layout, without control objects."""
    pattern, entries = layout.matcher(), islice(store.list_entries(layout.prefix), MOST_LISTED)
    return [
        entry for entry in entries if pattern.fullmatch(entry.key) and f"/{CONTROL_DIRECTORY}/" not in f"/{entry.key}"
    ]


def _may_be_of(store: Store, keys: ControlKeys, table_id: str, load: str) -> bool:
    """False where the attempt's begin record, if it is still kept, does not name the table: the directory of a table
    without a schema may hold another table's."""
    _, _, attempt = load.partition("/")
    job_id, _, name = attempt.rpartition("/")
    record = store.get(keys.begin(job_id, name))
    return record is None or f'"{table_id}"'.encode() in record[0]


class Numbers(NamedTuple):
    """The highest numbers that keys have: backfill and full refresh, and the counter of the next file; 0 for none."""

    backfill: int = 0
    counter: int = 0
    generation: int = 0


def find_highest_numbers(layout: Layout | None, keys: Iterable[str]) -> Numbers:
    """Return the highest numbers in the keys."""
    numbers = _read_numbers(layout, keys)
    return Numbers(
        backfill=max((each.backfill for each in numbers), default=0),
        counter=max((each.counter for each in numbers), default=0),
        generation=max((each.generation for each in numbers), default=0),
    )


def find_last_numbers(layout: Layout, keys: Iterable[str]) -> Numbers:
    """Return the highest backfill in the keys, and the counter of the next file in it.

    Keys of a table inside this one's directory do not count.
    """
    return max(_read_numbers(layout, keys, re.escape(layout.prefix) if layout.directory else ""), default=Numbers())


def _read_numbers(layout: Layout | None, keys: Iterable[str], start: str = r"(?:.*/)?") -> Sequence[Numbers]:
    """Read the numbers of the keys that have all of their layout's behind ``start``, a regular expression."""
    if layout is None or not layout.template.variables & _NUMBERS.keys():
        return ()
    pattern = re.compile(f"{start}{layout.template.match_text(_NUMBERS)}")
    groups = [match.groupdict() for key in keys if (match := pattern.fullmatch(key)) is not None]
    return [
        Numbers(
            backfill=int(each.get("backfill", 0)),
            counter=int(each["counter"]) + 1 if "counter" in each else 0,
            generation=int(each.get("generation", 0)),
        )
        for each in groups
    ]


def describe_left(store: Store, layout: Layout, backfill: int, counter: int) -> str:
    """Say what lies at keys that a table's next files would have, or beyond them; blank for nothing.

    ``backfill`` and ``counter`` are the next file's. Without a counter no key of another writer is in the way.
    """
    if "counter" not in layout.template.variables:
        return ""
    keys = [entry.key for entry in list_objects(store, layout)]
    last = find_last_numbers(layout, keys)
    if not last.counter or (last.backfill, last.counter) <= (backfill, counter):
        return ""
    files = sum(1 for key in keys if find_last_numbers(layout, [key]).counter)
    return (
        f"{files:,} files of another writer lie under {layout.prefix}, the last one number {last.counter - 1} of "
        f"backfill {last.backfill}"
    )
