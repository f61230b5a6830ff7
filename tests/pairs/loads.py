"""Two loads of a table by its choices, with a change by somebody else between them, and what must then be in it."""

import csv
import gzip
import json
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from pyiceberg.catalog import load_catalog

import lakewriter
from lakewriter.spec.pairs import NEW_FILES
from lakewriter.spec.specification import Tracking
from tests.load.lakes import BUCKET
from tests.load.materializations import UnderPrefix
from tests.pairs.choices import AXES, DESTINATIONS, find_on_axis, make_entry

DAYS: Final = (
    ((1, 1, "b", "I", "x", 1), (2, 1, "a", "I", "y", 2), (3, 1, "c", "I", "x", 3)),
    ((2, 5, "e", "I", "y", 4), (4, 6, "d", "I", "z", 5), (1, 7, "b", "D", "x", 6)),
)
"""Rows of ``id, at, v, op, p, n``: the second day changes 2, adds 4 and deletes 1; 3 is deleted by another engine."""
COLUMNS: Final = ("id", "at", "v", "op", "p", "n")
BAD: Final = (9, 1, "z", "I", "x", "many")
TIME: Final = "2026-01-01T00:00:00.123456789"

Row = tuple[Any, ...]


@dataclass
class Kept:
    """A row of the table: of which day's load, what it is, whether it is flagged as deleted."""

    load: int
    row: Row
    is_deleted: bool


class PairedLake(UnderPrefix):
    """The pipeline of one set of choices."""

    def __init__(self, choices: frozenset[str], *parts: Any) -> None:
        super().__init__(*parts)
        self.choices = choices
        self.destination, self.mode, self.feed = (find_on_axis(choices, axis) for axis in AXES)
        self.name = "people" if "written_as" in choices else "users"

    @property
    def reads_text(self) -> bool:
        return self.feed != "feed: program"

    @property
    def has_bad_rows(self) -> bool:
        return "on_bad_row" in self.choices and self.reads_text

    @property
    def has_time(self) -> bool:
        return "nanoseconds" in self.choices and self.reads_text

    def describe(self) -> None:
        """The lake.yaml."""
        entry = make_entry(self.choices)
        csv_files: dict[str, Any] = {
            "format": "csv",
            "path": "in",
            "options": {"header": "true", "inferSchema": "true"},
        }
        if NEW_FILES in self.choices:
            csv_files["files"] = "new"
        if self.feed == "feed: sql":
            entry["read"] = {"sql": "SELECT * FROM days", "views": {"days": csv_files}}
        elif self.reads_text:
            entry["read"] = csv_files
        if self.has_time:
            entry["columns"] = entry["columns"] | {"ts": "timestamp"}
        if self.destination == "estuary-s3-parquet":
            entry |= {"source": "acme/users", "resource": {"pathPrefix": "users"}}
            entry |= {} if "primary_key" in self.choices else {"collection": {"key": ["/id"]}}
        else:
            entry |= {"table": "users", "schema": "crm"}
        interval = {} if self.destination == "estuary-s3-parquet" else {"interval_seconds": 1}
        top = {"checkpoint": "checkpoint"} | interval if self.feed == "feed: continuous" else {}
        content = {"pipeline": "p", "destination": DESTINATIONS[self.destination], "tables": [entry]}
        self.file.write_text(yaml.safe_dump(content | top), "utf-8")

    def bring(self, day: int) -> None:
        """Load a day's rows, after those that are there."""
        header, rows = list(COLUMNS), [list(row) for row in DAYS[day]]
        if self.reads_text:
            rows += [list(BAD)] if self.has_bad_rows else []
            if self.has_time:
                header, rows = [*header, "ts"], [[*row, TIME] for row in rows]
            if "contract" in self.choices and day == 1:
                header, rows = [*header, "extra"], [[*row, "new"] for row in rows]
            self._drop(f"{day}.csv", [header, *rows])
        if self.feed == "feed: continuous":
            with self.running() as run:
                try:
                    self.until(day, self.spec.tables[0].id, seconds=60)
                except AssertionError:
                    raise AssertionError(run.steps) from None
        elif self.feed == "feed: program":
            names = [*COLUMNS, *(["extra"] if "contract" in self.choices and day == 1 else [])]
            frame = self._spark.createDataFrame([(*row, "new")[: len(names)] for row in DAYS[day]], names)
            lakewriter.write(frame, lake=self.file, table=self.spec.tables[0].source_table, job_id=f"j{day}")
        else:
            report = self.load(f"j{day}")
            assert report.status == "done", [(table.code, table.message) for table in report.tables]

    def _drop(self, name: str, rows: list[list[Any]]) -> None:
        folder = self.folder / "in"
        folder.mkdir(exist_ok=True)
        hidden = folder / f".{name}"
        with hidden.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
        hidden.rename(folder / name)

    def iceberg(self, number: int = 0) -> Any:
        settings = {"s3.endpoint": self.aws.url, "s3.region": "us-east-1", "client.region": "us-east-1"}
        table = self.spec.tables[number]
        return load_catalog("own", type="glue", **settings).load_table((table.schema_name, table.name))

    @property
    def is_iceberg(self) -> bool:
        return self.spec.catalog.kind == "iceberg"

    def change_by_another(self) -> None:
        """Somebody else deletes 3, or, of files that no catalog knows row by row, a file of the first load."""
        if self.is_iceberg:
            self.aws.hide_missing = False
            self.iceberg().delete("id == 3")
            self.aws.hide_missing = True
            return
        for key in self.files():
            self.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)

    def files(self) -> list[str]:
        """The keys of the table's files that a reader reads."""
        spec = self.spec
        table = spec.tables[0]
        objects = self.aws.objects(BUCKET)
        ours = [
            key
            for key in objects
            if key.startswith(f"{table.path}/") and "/_" not in key and key.endswith((".parquet", ".jsonl.gz"))
        ]
        if self.mode == "mode: refresh" and spec.catalog.in_glue and not self.is_iceberg:
            found = self.aws.client("glue").get_table(DatabaseName=table.schema_name, Name=table.name)["Table"]
            start = found["StorageDescriptor"]["Location"].removeprefix(f"s3://{BUCKET}/") + "/"
            return [key for key in ours if key.startswith(start)]
        if self.mode == "mode: refresh":
            named = json.loads(objects[table.latest or ""])["files"]
            return [key for key in ours if f"s3://{BUCKET}/{key}" in named]
        return ours

    def tables(self) -> list[pa.Table]:
        """The rows of each file, or of the Iceberg table."""
        if self.is_iceberg:
            return [self.iceberg().scan().to_arrow()]
        objects = self.aws.objects(BUCKET)
        return [_read(key, objects[key]) for key in self.files()]

    def find_tracking_column(self, holds: Tracking) -> str | None:
        """The name of a tracking column."""
        return next((column.name for column in self.spec.tracking if column.holds is holds), None)


def _read(key: str, body: bytes) -> pa.Table:
    if key.endswith(".parquet"):
        return pq.read_table(pa.BufferReader(body))
    return pa.Table.from_pylist([json.loads(line) for line in gzip.decompress(body).splitlines()])


def find_kept(choices: frozenset[str]) -> list[Kept]:
    """What the table has after both loads, by the words of the reference."""
    mode, feed = (find_on_axis(choices, axis) for axis in AXES[1:])
    reads_all = feed in ("feed: files", "feed: sql") and NEW_FILES not in choices
    if reads_all and "cursor" in choices and "cursor_lag" not in choices:
        reads_all = False
    second = [(1, row) for day in (DAYS if reads_all else DAYS[1:]) for row in day]
    kept = _keep([], [(0, row) for row in DAYS[0]], mode, choices)
    is_iceberg = find_on_axis(choices, AXES[0]).lower().endswith("iceberg")
    kept = [each for each in kept if is_iceberg and each.row[0] != 3]
    return _keep(kept, second, mode, choices)


def _keep(kept: list[Kept], loaded: list[tuple[int, Row]], mode: str, choices: frozenset[str]) -> list[Kept]:
    flagged = [Kept(load, row, "deleted" in choices and row[3] == "D") for load, row in loaded]
    if mode == "mode: append":
        return [*kept, *flagged]
    if mode == "mode: replace_partitions":
        return [*(each for each in kept if each.row[4] not in {row[4] for _, row in loaded}), *flagged]
    if mode != "mode: merge":
        return flagged
    newest = {each.row[0]: each for each in kept}
    for each in flagged:
        before = newest.get(each.row[0])
        if before is None or each.row[1] > before.row[1]:
            newest[each.row[0]] = each
    return [each for each in newest.values() if "keep_deleted" in choices or not each.is_deleted]
