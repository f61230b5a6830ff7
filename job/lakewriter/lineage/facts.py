"""Hold a load's runs, inputs and outputs as plain values, from which events are made later."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

EventType = Literal["START", "RUNNING", "COMPLETE", "FAIL", "ABORT"]


@dataclass(frozen=True)
class Dataset:
    """A dataset by OpenLineage's naming: https://openlineage.io/docs/spec/naming."""

    namespace: str
    name: str


@dataclass(frozen=True)
class Column:
    """A column with its type as it is written. ``sources`` are the input's fields that its values come from, and
    ``is_identity`` says that they are its values as they are; without sources its origin is not known."""

    name: str
    type: str | None
    sources: tuple[str, ...] = ()
    is_identity: bool = True


@dataclass(frozen=True)
class Output:
    """A table: where its files lie, and its facts so far.

    ``find_symlink`` finds its name in its catalog: it may ask AWS, and returns None where the name is not known.
    """

    dataset: Dataset
    find_symlink: Callable[[], Dataset | None] | None = None
    columns: tuple[Column, ...] = ()
    is_iceberg: bool = False
    is_replaced: bool = False
    version: str | None = None


@dataclass(frozen=True)
class Statistics:
    """Figures of what was written."""

    rows: int
    size: int
    files: int


@dataclass(frozen=True)
class Run:
    """A run of a job. Two runs have one id where ``started`` and ``identity`` are the same.

    ``kind`` is ``LOAD`` for a whole load, ``TABLE`` for one of its tables.
    """

    started: datetime
    identity: str
    namespace: str
    job: str
    kind: Literal["LOAD", "TABLE"]
    is_streaming: bool = False
    parent: "Run | None" = None
    nominal_time: datetime | None = None


@dataclass(frozen=True)
class Moment:
    """One event: the state of a run at a time. ``fields`` are the columns of the inputs, where these have one set."""

    type: EventType
    at: datetime
    run: Run
    inputs: tuple[Dataset, ...] = ()
    fields: tuple[Column, ...] = ()
    output: Output | None = None
    statistics: Statistics | None = None
    error: str | None = None
