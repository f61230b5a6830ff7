"""Show the platform what became of a sync's records: rows, files and bytes, what was deleted, changed and left out.

The platform has no other way to see it: a load's report is a control object in the bucket.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from lakewriter.documents.value_changes import KEY_TWICE, NULLED
from lakewriter.report import TableResult, format_count
from lakewriter.spec.stream import StreamKey

_SHOWN: Final = 20
"""The most fields, and the most undeclared properties, of a stream that are logged one by one."""
_NULLED, _TRUNCATED = "nulledValueCount", "truncatedValueCount"
"""Airbyte's own connectors use these keys in a STATE's ``additionalStats``."""

K = TypeVar("K")
Change = tuple[str, str, str]
"""A field, what was done to its values, and why."""


@dataclass
class StreamStatistics:
    """Figures of what one stream committed in this sync."""

    name: str = ""
    rows: int = 0
    files: int = 0
    bytes: int = 0
    retired: int = 0
    changed: Counter[Change] = field(default_factory=Counter)
    undeclared: Counter[str] = field(default_factory=Counter)

    def add(self, result: TableResult) -> None:
        """Add one commit."""
        self.name = result.id
        self.rows += result.rows
        self.files += result.files
        self.bytes += result.bytes
        self.retired += result.retired
        self.changed.update({(change.field, change.change, change.reason): change.values for change in result.changed})
        self.undeclared.update(result.undeclared)

    def describe(self) -> str:
        """Return one line for the whole sync."""
        retired = f", {format_count(self.retired, 'object')} of older generations deleted" if self.retired else ""
        return (
            f"{format_count(self.rows, 'row')} in {format_count(self.files, 'file')}, "
            f"{format_count(self.bytes, 'byte')}{retired}"
        )

    def list_losses(self) -> Iterator[str]:
        """Yield a line for each field of which values are not as the source gave them, and for each property left
        out."""
        yield from _list_most(self.changed, _describe_change, "fields with changed values")
        yield from _list_most(self.undeclared, _describe_undeclared, "undeclared properties")


class SyncStatistics:
    """Figures of what each stream of a sync committed."""

    def __init__(self) -> None:
        self._streams: dict[StreamKey, StreamStatistics] = defaultdict(StreamStatistics)
        self._untold: dict[StreamKey | None, Counter[str]] = defaultdict(Counter)

    def add(self, key: StreamKey, result: TableResult) -> str:
        """Add one commit of a stream; return a line about that commit."""
        commit = StreamStatistics()
        commit.add(result)
        self._streams[key].add(result)
        counts = _count_for_state(commit)
        for counted_key in (key, None):
            self._untold[counted_key].update(counts)
        return f"{commit.name}: {result.status}, {commit.describe()}"

    def take_counts(self, key: StreamKey | None) -> dict[str, int]:
        """Take the counts that a STATE of this stream, or of all streams, reports: those of commits since the last
        STATE."""
        return {name: count for name, count in self._untold.pop(key, Counter[str]()).items() if count}

    def summarise(self) -> Iterator[tuple[str, str]]:
        """Yield the level and the text of a LOG for each stream, and for each loss in it."""
        for stream in self._streams.values():
            yield "INFO", f"{stream.name}: {stream.describe()} in all"
            for loss in stream.list_losses():
                yield "WARN", f"{stream.name}: {loss}"


def _count_for_state(commit: StreamStatistics) -> dict[str, int]:
    counts = Counter[str]()
    for (_, change, _), values in commit.changed.items():
        counts[_NULLED if change == NULLED else _TRUNCATED] += values
    undeclared = sum(commit.undeclared.values())
    return {**counts, "undeclaredValueCount": undeclared, "retiredObjectCount": commit.retired}


def _list_most(counts: Counter[K], describe: Callable[[K, int], str], what: str) -> Iterator[str]:
    for key, count in counts.most_common(_SHOWN):
        yield describe(key, count)
    if len(counts) > _SHOWN:
        yield f"{len(counts) - _SHOWN:,} more {what}"


def _describe_change(key: Change, values: int) -> str:
    path, change, reason = key
    done = ("is null" if values == 1 else "are null") if change == NULLED else "cut off"
    if reason == KEY_TWICE:
        done = "left out, since the key comes again"
    return f"{format_count(values, 'value')} of {path!r} {done} ({reason})"


def _describe_undeclared(path: str, values: int) -> str:
    return f"{format_count(values, 'value')} of undeclared property {path!r} left out"
