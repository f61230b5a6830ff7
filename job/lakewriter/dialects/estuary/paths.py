"""Place each binding's files: ``{pathPrefix}/v{backfill}/{counter}.parquet``."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from lakewriter.dialects.common.faults import FaultError
from lakewriter.dialects.estuary.settings import BindingEntry
from lakewriter.errors import NameCollisionError
from lakewriter.naming import CONTROL_DIRECTORY, join_key
from lakewriter.spec.layout import Template
from lakewriter.spec.specification import TableSpec

FILE: Final = Template.parse("v{backfill}/{counter}.parquet")
"""``v0000000000/00000000000000000000.parquet`` is the first file: the layout pads both numbers."""
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_-]")


class BindingPlace(NamedTuple):
    """A binding's path below the bucket, and its name among control objects."""

    path: str
    name: str


def place_binding(number: int, entry: BindingEntry) -> BindingPlace:
    """Place a binding; ``NAME_COLLISION`` for a path among the control objects."""
    path = join_key(entry.resource.pathPrefix)
    if f"{path}/".startswith(f"{CONTROL_DIRECTORY}/"):
        raise FaultError(
            ("tables", number, "resource", "pathPrefix"),
            f"binding {entry.source!r} would lie at {path!r}, where the job's own records lie.",
            remedy="Give it another pathPrefix.",
            kind=NameCollisionError,
        )
    # Paths are any text and names of control objects are not: what is replaced lives on as a code.
    name = _UNSAFE.sub(lambda found: "." if found[0] == "/" else f"%{ord(found[0]):02x}", path)
    return BindingPlace(path, name)


def warn_of_nested(tables: Sequence[TableSpec]) -> list[str]:
    """Tell bindings inside others: a reader of the outer path sees the inner one's files as its own."""
    return [
        f"binding at {inner.path!r} lies under that at {outer.path!r}: read them by v*/*.parquet, not by folder."
        for outer in tables
        for inner in tables
        if inner is not outer and inner.path.startswith(f"{outer.path}/")
    ]


def refuse_twins(tables: Sequence[TableSpec]) -> None:
    """Raise ``NAME_COLLISION`` for two bindings of one path."""
    seen: set[str] = set()
    for number, table in enumerate(tables):
        if table.id in seen:
            raise FaultError(
                ("tables", number, "resource", "pathPrefix"),
                f"two bindings have the pathPrefix {table.path!r}.",
                remedy="Give each binding a path of its own.",
                kind=NameCollisionError,
            )
        seen.add(table.id)
