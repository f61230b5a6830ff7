"""A pipeline of one Iceberg table of 100 columns in many files, and of some small ones, read back by DuckDB."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from lakewriter.aws import Clients
from lakewriter.commit.control import Control
from lakewriter.operate.verification import verify
from tests.iceberg.tables import SCHEMA, IcebergLake
from tests.iceberg.test_readers import extension
from tests.load.lakes import BUCKET, table

WIDE: Final = "wide"
COLUMNS: Final = 99
"""Beside the id."""
SHUFFLED_ROWS: Final = 200


@dataclass(frozen=True)
class Size:
    """The wide table has ``files`` partitions of a row, spread over ``tasks`` tasks: each writes a file for each of its
    partitions. All tasks together return 128 MiB of receipts at most, 8,000 files have more: tasks put theirs into
    parts. Each of ``shuffled`` tables is spread over 8 tasks.
    """

    tasks: int
    files: int
    shuffled: int


class WidePipeline:
    """Its sources are written at once; ``audit`` compares what a load of all tables has left with them."""

    def __init__(self, lake: IcebergLake, size: Size) -> None:
        self.lake, self.size = lake, size
        (lake.folder / WIDE).mkdir()
        step = size.files // size.tasks
        for first in range(0, size.files, step):
            rows = make_rows(range(first, min(first + step, size.files)))
            pq.write_table(rows, lake.folder / WIDE / f"{first:05}.parquet")
        entry = {"table": WIDE, "schema": "public", "read": {"format": "parquet", "path": WIDE}}
        entries = [entry | {"partition_by": ["id"]}, *map(self._write_shuffled, self.shuffled)]
        lake.write(*entries)

    @property
    def shuffled(self) -> list[str]:
        """The small tables: Spark moves their rows to other tasks before these write them."""
        return [f"shuffled_{number}" for number in range(self.size.shuffled)]

    @cached_property
    def controls(self) -> dict[str, Control]:
        """The control objects of each table, by its id."""
        return {f"{SCHEMA}.{name}": self.lake.control(f"{SCHEMA}.{name}") for name in (WIDE, *self.shuffled)}

    def _write_shuffled(self, name: str) -> dict[str, Any]:
        text = "id,text\n" + "".join(f"{number},{name} {number}\n" for number in range(SHUFFLED_ROWS))
        view = table(name, self.lake.csv(f"{name}.csv", text))["read"]
        read = {"sql": "SELECT /*+ REPARTITION(8) */ * FROM source", "views": {"source": view}}
        return {"table": name, "schema": "public", "read": read, "partition_by": ["bucket(8, id)"]}

    def audit(self, job_id: str) -> dict[str, int]:
        """Check every table: each row once, for readers of the table and of its objects, and no upload left.

        Returns the number of files by table.
        """
        self._copy()
        files = {name: self._check(name) for name in (WIDE, *self.shuffled)}
        assert files[WIDE] == self.size.files
        assert self.lake.aws.uploads(BUCKET) == []
        assert [name for name, control in self.controls.items() if control.state.read().pending] == []
        verified = verify(self.controls, job_id, Clients(self.lake.spec.access))
        assert (verified.differences, verified.missing) == ((), ())
        assert verified.files == sum(files.values())
        return files

    def _check(self, name: str) -> int:
        """The number of objects under the table. One that is not of its snapshot would have rows twice."""
        folder = self.lake.folder / "bucket" / f"{SCHEMA}/{name}"
        version = self.lake.table(name).metadata_location.rpartition("/")[2].removesuffix(".metadata.json")
        rows = self.size.files if name == WIDE else SHUFFLED_ROWS
        with duckdb.connect() as connection:
            for needed in ("avro", "iceberg"):
                connection.execute(f"LOAD '{extension(needed)}'")
            for source in (
                f"iceberg_scan('{folder}', version = '{version}', allow_moved_paths = true)",
                f"read_parquet('{folder}/data/**/*.parquet')",
            ):
                counted = connection.execute(f"SELECT count(*), count(DISTINCT id), min(id), max(id) FROM {source}")
                assert counted.fetchall() == [(rows, rows, 0, rows - 1)], source
        return len(list(folder.glob("data/**/*.parquet")))

    def _copy(self) -> None:
        for key, body in self.lake.data().items():
            file = self.lake.folder / "bucket" / key
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)


def make_rows(ids: Sequence[int]) -> pa.Table:
    """Rows with these ids, and columns of numbers and text that differ from row to row."""
    columns: dict[str, list[Any]] = {"id": list(ids)}
    for number in range(COLUMNS):
        values = [seed * (number + 1) % 1_000_003 for seed in ids]
        name = f"measured_value_of_the_instrument_with_the_number_{number:02}"
        columns[name] = [f"value {value:09}" for value in values] if number % 3 else values
    return pa.table(columns)
