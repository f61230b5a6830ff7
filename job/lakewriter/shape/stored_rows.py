"""Rows that a table has already, which are written again as they are."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lakewriter.receipt import Cursor, Findings
from lakewriter.shape.table import Shaped

if TYPE_CHECKING:
    from lakewriter.shape.partitions import Values


@dataclass(frozen=True)
class StoredRowsPlan:
    """The schema that the rows already have."""

    schema: pa.Schema
    notes: tuple[str, ...] = ()


class StoredRowsShaper:
    """Gives rows back: see ``AnyShaper``."""

    def shape(self, batch: pa.RecordBatch) -> Shaped:
        """Return ``batch``."""
        return Shaped(batch, batch)

    def take_cursor(self) -> tuple[Cursor | None, int]:
        """Return no cursor."""
        return None, 0

    def read_cursor(self, batch: pa.RecordBatch) -> Cursor | None:
        """Return no cursor."""
        return None

    def take_findings(self) -> Findings:
        """Return no findings."""
        return Findings()


@dataclass(frozen=True)
class OnePartition:
    """The partition of all rows, in place of the transforms that give each row its own."""

    values: "Values"
    directory: str

    def split_by_partition(self, batch: pa.RecordBatch) -> "Iterator[tuple[Values, pa.RecordBatch]]":
        """Yield the partition with the batch."""
        yield self.values, batch

    def name_directory(self, partition: "Values") -> str:
        """Return the partition's directory under the table's data."""
        return self.directory
