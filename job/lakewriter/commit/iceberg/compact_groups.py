"""Choose the files of an Iceberg table that are worth replacing, and read their rows without those that are deleted."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.conversions import to_json
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
from pyiceberg.manifest import DataFile, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, PrimitiveType

from lakewriter import aws
from lakewriter.commit.iceberg.deletion_vectors import LiveFile, plan_files
from lakewriter.commit.iceberg.format3 import VERSION
from lakewriter.commit.iceberg.iceberg_columns import FIELD_ID, shorten_offsets
from lakewriter.commit.iceberg.merge import require_mergeable
from lakewriter.commit.iceberg.merge_keys import AppliedDeletes
from lakewriter.commit.iceberg.row_lineage import fill_lineage, make_fields
from lakewriter.commit.iceberg.schema_evolution import open_changeable
from lakewriter.records.actions import IcebergAction
from lakewriter.records.facets import CompactedGroup
from lakewriter.records.state import TableState
from lakewriter.shape.partitions import Values

FULL: Final = 0.75
"""A file of at least this fraction of the target size is not small. Iceberg's own procedure has the same bound:
https://iceberg.apache.org/docs/latest/spark-procedures/#rewrite_data_files"""

FEW: Final = 5
"""So many small files are replaced even if they do not fill one file, as in Iceberg's procedure. Fewer would be
replaced again and again by a file that is hardly larger."""

MOST_FILES: Final = 1_000
"""One change replaces at most so many files: its intent names each."""


@dataclass(frozen=True)
class Group:
    """Files of one partition that are replaced by about one file.

    ``values`` is the partition in Iceberg's JSON, ``directory`` where its files lie below the table's data.
    """

    tasks: tuple[LiveFile, ...]
    values: Values
    directory: str

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The data files."""
        return tuple(task.file for task in self.tasks)

    @property
    def bytes(self) -> int:
        """The size of the data files."""
        return sum(file.file_size_in_bytes for file in self.files)

    @property
    def deletes(self) -> tuple[str, ...]:
        """The URIs of the files whose deletes apply to them."""
        return tuple(sorted({delete.file_path for task in self.tasks for delete in task.deletes}))

    def make_intent(self) -> CompactedGroup:
        """Return the group as an intent has it."""
        return CompactedGroup(removes=tuple(file.file_path for file in self.files), deletes=self.deletes)


@dataclass(frozen=True)
class Choice:
    """The groups that fit into a budget. ``waiting`` is the number of groups beyond it. ``foreign`` is the number of
    files that are left as they are, since they have an earlier partition spec or are not Parquet."""

    groups: tuple[Group, ...]
    waiting: int = 0
    foreign: int = 0


def choose_groups(table: Table, target: int, budget: int) -> Choice:
    """Choose groups of files for replacement, of ``budget`` bytes in all: those with deletes first, then those of the
    smallest files. One group is chosen even where it is larger.

    ``SCHEMA_INCOMPATIBLE`` for a table whose deletes do not name positions.
    """
    require_mergeable(table, "files are replaced")
    tasks = plan_files(table)
    spec_id = table.spec().spec_id
    current = [task for task in tasks if task.file.spec_id == spec_id and task.file.file_format == FileFormat.PARQUET]
    by_partition = defaultdict[Record, list[LiveFile]](list)
    for task in current:
        if task.deletes or task.file.file_size_in_bytes < FULL * target:
            by_partition[task.file.partition].append(task)
    groups = [
        _make_group(table, partition, packed)
        for partition, candidates in by_partition.items()
        for packed in _pack(candidates, target)
        if _is_worthwhile(packed, target)
    ]
    groups.sort(key=lambda group: (not group.deletes, group.bytes / len(group.tasks)))
    chosen = _take_within(groups, budget)
    return Choice(tuple(chosen), len(groups) - len(chosen), len(tasks) - len(current))


def _pack(tasks: list[LiveFile], target: int) -> Iterator[list[LiveFile]]:
    """Yield lists of files that have about the target size together, in the order of their names, which keeps files of
    one load together."""
    tasks.sort(key=lambda task: task.file.file_path)
    packed, size = list[LiveFile](), 0
    for task in tasks:
        if packed and (size + task.file.file_size_in_bytes > target or len(packed) == MOST_FILES):
            yield packed
            packed, size = [], 0
        packed.append(task)
        size += task.file.file_size_in_bytes
    if packed:
        yield packed


def _is_worthwhile(tasks: Sequence[LiveFile], target: int) -> bool:
    if any(task.deletes for task in tasks) or len(tasks) >= FEW:
        return True
    return len(tasks) > 1 and sum(task.file.file_size_in_bytes for task in tasks) >= FULL * target


def _take_within(groups: Sequence[Group], budget: int) -> list[Group]:
    taken, size, files = list[Group](), 0, 0
    for group in groups:
        if taken and (size + group.bytes > budget or files + len(group.tasks) > MOST_FILES):
            break
        taken.append(group)
        size, files = size + group.bytes, files + len(group.tasks)
    return taken


def _make_group(table: Table, partition: Record, tasks: Sequence[LiveFile]) -> Group:
    spec, schema = table.spec(), table.schema()
    types = [field.field_type for field in spec.partition_type(schema).fields]
    values = tuple(_to_json(partition[position], t) for position, t in enumerate(types))
    directory = "" if spec.is_unpartitioned() else spec.partition_to_path(partition, schema)
    return Group(tuple(tasks), values, directory)


def _to_json(value: Any, t: Any) -> Any:
    assert isinstance(t, PrimitiveType)
    return None if value is None else to_json(t, value)


def _shorten(field: pa.Field) -> pa.Field:
    return field.with_type(shorten_offsets(field.type)).with_metadata({FIELD_ID: field.metadata[FIELD_ID]})


class Compactable:
    """A table before a compaction, with the ``choice`` of files that are worth replacing; ``action`` is the present
    one."""

    def __init__(self, table: Table, action: IcebergAction, choice: Choice) -> None:
        snapshot = table.current_snapshot()
        self._table, self.choice = table, choice
        self.snapshot = snapshot.snapshot_id if snapshot is not None else 0
        self.sequence = (snapshot.sequence_number if snapshot is not None else None) or 0
        columns = [_shorten(field) for field in schema_to_pyarrow(table.schema())]
        # Rule compacted-with-ids
        self._keeps_ids = table.format_version >= VERSION
        lineage = make_fields([field.name for field in columns]) if self._keeps_ids else ()
        self.schema = pa.schema([*columns, *lineage])
        self._gone = AppliedDeletes()
        self.action = action

    def read_rows(self, group: Group) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a group that no file with deletes deletes, file after file, with the table's columns.

        The library's own reader finds columns by their field ids, and fills those that a file lacks. In format version
        3 rows have their ids, and the number of the snapshot that has changed them last.
        """
        table, schema = self._table, self.schema
        lineage = [
            NestedField(int(field.metadata[FIELD_ID]), field.name, LongType(), required=False)
            for field in list(schema)[len(table.schema().fields) :]
        ]
        scan = ArrowScan(table.metadata, table.io, Schema(*table.schema().fields, *lineage), AlwaysTrue())
        for task in group.tasks:
            gone, start = self._gone.find(table.io, task), 0
            for batch in scan.to_record_batches([FileScanTask(task.file)]):
                positions = pa.array(range(start, start + len(batch)), pa.int64())
                start += len(batch)
                columns = [column.cast(to.type) for column, to in zip(batch.columns, schema, strict=True)]
                if self._keeps_ids:
                    columns[-2:] = fill_lineage(columns[-2], columns[-1], task, positions)
                # Rule compacted-without-deleted
                stays = pc.invert(pc.is_in(positions, value_set=gone))
                rows = pa.RecordBatch.from_arrays(columns, schema=schema).filter(stays)
                if len(rows):
                    yield rows


def find_groups(
    action: IcebergAction,
    clients: aws.Clients,
    pipeline: str,
    read_state: Callable[[], TableState],
    target: int,
    budget: int,
) -> Compactable | None:
    """Find the groups of a table's files that are worth replacing, as ``choose_groups`` has it; None without a table.

    ``STATE_LOST`` where the table has more changes of the pipeline than its state.
    """
    opened = open_changeable(action, clients, f"{pipeline}/compact/compact", read_state)
    if opened is None:
        return None
    table, present = opened
    return Compactable(table, present, choose_groups(table, target, budget))
