"""Read the number of a pipeline's last change from a table in a catalog. The number is committed together with the
change, so a late process finds that its change, or a later one, is done."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lakewriter.commit.state_file import REBUILD
from lakewriter.errors import SchemaIncompatibleError, StateLostError
from lakewriter.naming import PIPELINE
from lakewriter.records.state import TableState


class CountedChanges(NamedTuple):
    """The changes of a pipeline that a table in a catalog counts.

    ``number`` is that of the last one, ``loads`` are those that the table names. ``given_up`` are the last of those
    that are none: their numbers were used up when they were given up.
    """

    number: int = 0
    loads: frozenset[str] = frozenset()
    given_up: frozenset[str] = frozenset()


def name_count_property(pipeline: str) -> str:
    """Name the property of an Iceberg table, or the parameter of a Glue table, that holds the number."""
    return f"lakewriter.{pipeline}"


def list_pipelines(properties: Mapping[str, Any]) -> tuple[str, ...]:
    """List the pipelines whose numbers a table has."""
    begin = name_count_property("")
    names = (name.removeprefix(begin) for name in properties if name.startswith(begin))
    return tuple(sorted(name for name in names if PIPELINE.fullmatch(name)))


def read_count(properties: Mapping[str, Any], pipeline: str, table: str) -> int:
    """Return the number, 0 where there is none; ``SCHEMA_INCOMPATIBLE`` where it is not a number."""
    key = name_count_property(pipeline)
    text = str(properties.get(key, "0"))
    if not text.isdecimal():
        raise SchemaIncompatibleError(
            f"{table} has property {key!r} = {text!r}, expected the number of the pipeline's last load.",
            remedy="Set the property to the number that it had; lakewriter status shows how many loads are committed.",
        )
    return int(text)


def require_counted(
    table: str, pipeline: str, number: int, began: TableState, latest: Callable[[], TableState]
) -> None:
    """Raise ``STATE_LOST`` where the table's ``number`` is above the changes that the pipeline's state knows of: the
    next change would count as done.

    Others may have committed since the state ``began``, so ``latest`` reads it again, after the table was read.
    """
    if number <= began.committed:
        return
    state = latest()
    # A change that is pending may be in the table already.
    counted = state.committed + (state.pending is not None)
    if number > counted:
        raise StateLostError(
            f"{table} has {number} loads of pipeline {pipeline!r} by its property "
            f"{name_count_property(pipeline)!r}, and the state knows of {counted}.",
            remedy=f"{REBUILD} Or give the pipeline another name: two cannot share one.",
        )
