"""Place each binding's files: ``{prefix}/{path}/v{backfill}/{counter}.parquet``."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from lakewriter.dialects.common.faults import FaultError
from lakewriter.dialects.estuary.settings import BindingEntry
from lakewriter.errors import NameCollisionError
from lakewriter.naming import join_key
from lakewriter.spec.key_template import Part, Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.table_spec import TableSpec

FILE: Final = Template.parse("v{backfill}/{counter}.parquet")
"""``v0000000000/00000000000000000000.parquet`` is the first file: the layout pads both numbers."""
_PATTERN: Final = re.compile("%[YmdHMSZz]")
_ZONES: Final = {"%Z": "UTC", "%z": "+0000"}
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")


class BindingPlace(NamedTuple):
    """Where a binding's files go: their layout, the path as the file gives it, its part that never changes, and
    the binding's name among control objects."""

    layout: Layout
    path: str
    root: str
    name: str


def place_binding(entry: BindingEntry, common_prefix: str = "") -> BindingPlace:
    """Place a binding below ``common_prefix``.

    Date patterns are those of the present configuration: a ``pathPrefix`` is literal.
    """
    resource = entry.resource
    path = join_key(common_prefix, resource.path or resource.pathPrefix or "")
    # Paths are any text and names of control objects are not: what is replaced lives on as a code.
    name = _UNSAFE.sub(lambda match: "." if match[0] == "/" else f"%{ord(match[0]):02x}", path)
    parts = parse_date_patterns(resource.path) if resource.path else (resource.pathPrefix or "",)
    directory = Template.of(*parse_date_patterns(common_prefix), "/", *parts)
    if not directory.variables:
        path = directory.start.strip("/")
        return BindingPlace(Layout(path, FILE), path, path, name)
    layout = Layout("", Template.of(*directory.parts, "/", *FILE.parts))
    return BindingPlace(layout, path, directory.start.rpartition("/")[0], name)


def parse_date_patterns(text: str) -> Iterator[Part]:
    """Return ``text`` with a variable for each of the connector's date patterns, which are of the load's start, in
    UTC."""
    end = 0
    for match in _PATTERN.finditer(text):
        yield text[end : match.start()]
        letters = match[0]
        # The zone is always the same.
        yield _ZONES.get(letters, ("date", letters))
        end = match.end()
    yield text[end:]


def warn_of_nested(tables: Sequence[TableSpec]) -> list[str]:
    """Warn of bindings inside others: a reader of the outer path sees the inner one's files as its own."""
    numbers = {table.path: number for number, table in enumerate(tables)}
    nested = sorted(
        (numbers[folder], inner.path)
        for inner in tables
        for folder in accumulate(inner.path.split("/")[:-1], "{}/{}".format)
        if folder in numbers
    )
    return [
        f"binding at {inner!r} lies under that at {tables[outer].path!r}: read them by v*/*.parquet, not by folder."
        for outer, inner in nested
    ]


def refuse_twins(tables: Sequence[TableSpec], bindings: Sequence[BindingEntry]) -> None:
    """Raise ``NAME_COLLISION`` for two bindings of one path."""
    seen: set[str] = set()
    for number, (table, binding) in enumerate(zip(tables, bindings, strict=True)):
        if table.id in seen:
            key = binding.resource.key
            raise FaultError(
                ("tables", number, "resource", key),
                f"two bindings have the {key} {table.path!r}.",
                remedy="Give each binding a path of its own.",
                kind=NameCollisionError,
            )
        seen.add(table.id)
