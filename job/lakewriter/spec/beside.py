"""Find the few tables whose keys may begin like those of a given table, quickly for each of ten thousand tables."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Generic, TypeVar

from lakewriter.spec.layout import Layout
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

Item = TypeVar("Item")


class Starts(Generic[Item]):
    """Items by the beginning of a text."""

    def __init__(self, items: Iterable[tuple[str, Item]]) -> None:
        self._items = sorted(items, key=lambda item: item[0])
        self._starts = [start for start, _ in self._items]

    def list_from(self, prefix: str) -> Iterator[Item]:
        """Yield the items that begin with ``prefix``."""
        following = map(self._items.__getitem__, range(bisect_left(self._starts, prefix), len(self._items)))
        return (item for _, item in takewhile(lambda pair: pair[0].startswith(prefix), following))

    def list_above(self, prefix: str) -> Iterator[Item]:
        """Yield the items whose beginning is a shorter beginning of ``prefix``."""
        for end in range(len(prefix)):
            index = bisect_left(self._starts, prefix[:end])
            while index < len(self._starts) and self._starts[index] == prefix[:end]:
                yield self._items[index][1]
                index += 1


_last: tuple[tuple[TableSpec, ...], Starts[TableSpec]] | None = None
"""The tables that were asked about last, which are those of the pipeline that this process works on."""


def list_layouts_beside(spec: Spec, table: TableSpec) -> list[Layout]:
    """Return the layouts of the pipeline's other tables that a full refresh of this table has to leave alone."""
    global _last
    last = _last
    if last is None or last[0] is not spec.tables:
        last = _last = spec.tables, Starts((start, table) for table in spec.tables for start in table.layout.starts)
    prefix = table.layout.replaced_prefix
    tables_beside = {
        id(table_beside): table_beside
        for starts in (last[1].list_from, last[1].list_above)
        for table_beside in starts(prefix)
    }
    return [table_beside.layout for table_beside in tables_beside.values() if table_beside is not table]
