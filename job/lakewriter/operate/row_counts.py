"""Count the rows of a load in its files, and the row ids that occur more than once."""

import csv
import io
import json
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, BinaryIO, Final, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewriter import aws
from lakewriter.avro.avro_rows import read_first_fields
from lakewriter.aws.object_files import READ_BYTES, ObjectFile, open_object, open_text
from lakewriter.commit.mismatch import Kind, Mismatch
from lakewriter.errors import LakeError, PendingUnrecoverableError
from lakewriter.receipt import COPIED
from lakewriter.records.changes import Intent
from lakewriter.spec.model import Model
from lakewriter.spec.specification import Spec, Tracking

_PARQUET_ENGINES: Final = ("arro3", "pyarrow")
_BROKEN: Final = (pa.ArrowException, OSError, ValueError, EOFError, LookupError, zlib.error, csv.Error)


class RowCount(Model):
    """The rows of a load in a table, counted in its files.

    expected      rows by the receipts of the files that the table still has
    row_id        the column of row ids, None where rows have none
    repeated_ids  rows whose id an earlier row of the load has, too; an id made of a key is the same for the same key
    """

    table: str
    rows: int
    expected: int
    row_id: str | None
    repeated_ids: int | None


class CountedFile(NamedTuple):
    """A file as its receipt has it."""

    key: str
    rows: int
    engine: str


@dataclass(frozen=True)
class Counting:
    """How rows are counted: ``row_id`` is the column of row ids, ``is_unique`` whether no two rows may share one."""

    row_id: str | None
    is_unique: bool = False

    @classmethod
    def of(cls, spec: Spec) -> "Counting":
        """Return how a pipeline's rows are counted."""
        if spec.envelope is not None:
            return cls(spec.envelope.raw_id, is_unique=True)
        return cls(next((column.name for column in spec.tracking if column.holds is Tracking.ID), None))


class _Ids:
    """Counts rows and repeated ids; each id is kept as 64 bits of its hash."""

    def __init__(self) -> None:
        self._hashes: list[pa.Array] = []
        self.rows = 0

    def add(self, rows: int, ids: Iterable[str | None]) -> None:
        self.rows += rows
        hashes = [hash(row_id) for row_id in ids if row_id is not None]
        if hashes:
            self._hashes.append(pa.array(hashes, pa.int64()))

    @property
    def repeated(self) -> int:
        every = pa.chunked_array(self._hashes, pa.int64())
        return len(every) - int(pc.count_distinct(every).as_py())


def count_rows(
    intent: Intent,
    files: Sequence[CountedFile],
    copies: Sequence[str],
    counting: Counting,
    clients: aws.Clients,
    of_table: int,
) -> tuple[RowCount, list[Mismatch]]:
    """Count the rows of the load's ``files``, and of ``copies`` of them, which queries also read.

    ``of_table`` is the number of rows by the receipts, including files that cannot be read. Returns the count and a
    mismatch for each file that cannot be read, and for rows that are missing, added or repeated.
    """
    ids, wrong, expected = _Ids(), [], 0
    engine = next((name for name in intent.files.totals.engines if name != COPIED), "")
    # Files that belong to records have no rows.
    own_files = [(file.key, file.rows, file.engine) for file in files if file.engine != COPIED]
    for key, rows, kind in own_files + [(key, 0, engine) for key in copies]:
        where = f"s3://{clients.access.bucket}/{key}"
        try:
            for count, row_ids in _read_rows(open_object(clients.access.bucket, key, clients), kind, counting.row_id):
                ids.add(count, row_ids)
        except LakeError as error:
            wrong.append(Mismatch(Kind.NOT_COMPARED, error.message, key, error.code))
        except _BROKEN as error:
            why = (str(error) or type(error).__name__).splitlines()[0]
            wrong.append(Mismatch(Kind.OBJECT_CHANGED, f"{where}: its rows cannot be read ({why}).", key))
        else:
            expected += rows
    if not wrong and ids.rows != expected:
        what = f"{intent.table_id} has {ids.rows} rows of load {intent.job_id!r} in its files, expected {expected}."
        wrong.append(Mismatch(Kind.ROWS_DIFFER, what))
    repeated = ids.repeated if counting.row_id else None
    if repeated and counting.is_unique:
        what = (
            f"{repeated} rows of load {intent.job_id!r} in {intent.table_id} have a {counting.row_id} of another row."
        )
        wrong.append(Mismatch(Kind.IDS_REPEATED, what))
    row_count = RowCount(
        table=intent.table_id, rows=ids.rows, expected=of_table, row_id=counting.row_id, repeated_ids=repeated
    )
    return row_count, wrong


def _read_rows(file: ObjectFile, engine: str, row_id: str | None) -> Iterator[tuple[int, Iterable[str | None]]]:
    """Yield the file's rows in pieces: how many, and their ids."""
    buffered = io.BufferedReader(file, READ_BYTES)
    if engine == "avro":
        yield from read_first_fields(cast(BinaryIO, buffered), row_id)
    elif engine == "csv":
        yield from _read_csv(open_text(buffered), row_id)
    elif engine == "jsonl":
        for line in open_text(buffered):
            yield 1, (json.loads(line).get(row_id),)
    elif engine in _PARQUET_ENGINES:
        yield from _read_parquet(file, row_id)
    else:
        engines = ", ".join(("avro", "csv", "jsonl", *_PARQUET_ENGINES))
        raise PendingUnrecoverableError(
            f"{file.name}: its rows cannot be counted: its receipt says that {engine!r} wrote it; expected {engines}.",
            remedy="Run verify with the release that loaded it, or a later one.",
        )


def _read_parquet(file: ObjectFile, row_id: str | None) -> Iterator[tuple[int, Iterable[str | None]]]:
    parquet = pq.ParquetFile(file)
    names = parquet.schema_arrow.names
    has_ids = row_id in names
    for batch in parquet.iter_batches(columns=[row_id] if has_ids else names[:1]):
        yield batch.num_rows, batch.column(0).to_pylist() if has_ids else ()


def _read_csv(text: IO[str], row_id: str | None) -> Iterator[tuple[int, Iterable[str | None]]]:
    csv.field_size_limit(sys.maxsize)
    rows = csv.reader(text)
    names = next(rows, [])
    id_index = names.index(row_id) if row_id in names else None
    for row in rows:
        yield 1, () if id_index is None else (row[id_index],)
