"""JSON decoded by Lakewriter, DuckDB and Spark, of files and of records; and records with and without Arrow's parser.

Run ``python -m bench.json_decoding``: it prints core-seconds on one core and their ratios as two tables. The ways of
the first are processes of their own that take turns, warm before the first turn that counts; nothing is written. The
two of the second take turns batch by batch, so that any other load on the machine affects both.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import from_json

from bench.message_ways import PROPERTIES
from bench.messages import make_user
from bench.turns import Resident, serve
from lakewriter.cast.sql_types import parse_columns
from lakewriter.documents import decoding
from lakewriter.documents.decoding import Documents
from lakewriter.documents.schema import make_record_type
from lakewriter.documents.types import make_arrow_field
from lakewriter.naming import name_avro_fields
from lakewriter.source.files.json_reader import JsonReader
from lakewriter.source.files.stored_files import StoredFile
from lakewriter.source.storage import pin_local

DOCUMENTS: Final = 300_000
RECORDS: Final = 60_000
BATCH: Final = 8192
ROUNDS: Final = 5
RECORD: Final = make_record_type({"properties": PROPERTIES})
FIELDS: Final = [make_arrow_field(name, t, name_avro_fields, name) for name, t in RECORD.fields]
COLUMNS: Final = (
    "id bigint, email string, score double, active boolean, created_at timestamp, "
    "address struct<street:string,city:string>, tags array<string>"
)
DUCKDB_COLUMNS: Final = {
    "id": "BIGINT",
    "email": "VARCHAR",
    "score": "DOUBLE",
    "active": "BOOLEAN",
    "created_at": "TIMESTAMPTZ",
    "address": {"street": "VARCHAR", "city": "VARCHAR"},
    "tags": ["VARCHAR"],
}
ODD: Final[dict[str, dict[str, Any]]] = {
    "clean": {},
    "a text in a column of integers": {"id": "x"},
    "a fraction in a column of integers": {"id": 0.5},
    "an undeclared property": {"extra": 1},
    "an undeclared property that is null": {"extra": None},
    "an undeclared property of an object": {"address": {"zip": 1}},
}
"""What one record in a thousand has."""
COMPARED: Final = ("clean", "a text in a column of integers", "an undeclared property")
Decode = Callable[[], object]


def make_text(number: int, odd: dict[str, Any]) -> str:
    """Return the JSON of one record."""
    data = make_user(number)
    return json.dumps(data | odd if number % 1000 == 500 else data, separators=(",", ":"))


def list_batches(file: Path) -> list[pa.Array]:
    """Return the lines of a file as texts, a batch at a time."""
    texts = file.read_text("utf-8").splitlines()
    return [pa.array(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]


def read_file_with_lakewriter(file: Path) -> Decode:
    """Return what reads a file by the reader of files; a row with a misfit is bad."""
    size, version = pin_local(file)
    stored, reader = StoredFile(str(file), size, version), JsonReader(columns=parse_columns(COLUMNS))

    def read() -> int:
        look = reader.look([stored], "t", lambda work, items: [work(item) for item in items])
        pieces = reader.cut(look, 1 << 30, lambda work, items: [work(item) for item in items])
        return sum(batch.num_rows for piece in pieces for batch in reader.read(piece, look.schema))

    return read


def decode_with_lakewriter(file: Path) -> Decode:
    """Return what decodes records in memory; what does not fit is null, and a change."""
    batches = list_batches(file)
    return lambda: [Documents(batch).build_columns(RECORD, FIELDS) for batch in batches]


def _open_duckdb() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def read_file_with_duckdb(file: Path) -> Decode:
    """Return what reads a file by ``read_json``, which leaves out rows that do not fit."""
    connection = _open_duckdb()
    columns = {name: write_duckdb_type(kind) for name, kind in DUCKDB_COLUMNS.items()}
    query = f"FROM read_json('{file}', format = 'newline_delimited', columns = {columns}, ignore_errors = true)"
    return lambda: _exhaust(connection.sql(query).to_arrow_reader(65_536))


def decode_with_duckdb(file: Path) -> Decode:
    """Return what decodes texts in memory by ``from_json``; what does not fit is null."""
    connection = _open_duckdb()
    texts = pa.table({"text": pa.concat_arrays(list_batches(file))})
    connection.sql("CREATE TABLE texts AS FROM texts")
    assert len(texts) == DOCUMENTS
    query = f"SELECT unnest(from_json(text, '{json.dumps(DUCKDB_COLUMNS)}')) FROM texts"
    return lambda: _exhaust(connection.sql(query).to_arrow_reader(65_536))


def write_duckdb_type(kind: Any) -> str:
    """Return a type as a column of ``read_json`` has it."""
    if isinstance(kind, dict):
        return f"STRUCT({', '.join(f'{name} {inner}' for name, inner in kind.items())})"
    return f"{kind[0]}[]" if isinstance(kind, list) else str(kind)


def _exhaust(batches: Iterator[Any]) -> int:
    return sum(batch.num_rows for batch in batches)


def _open_spark() -> SparkSession:
    builder = SparkSession.builder.master("local[1]").config("spark.sql.session.timeZone", "UTC")
    return builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "3g").getOrCreate()


def read_file_with_spark(file: Path) -> Decode:
    """Return what reads a file by Spark's reader; what does not fit is null."""
    rows = _open_spark().read.schema(COLUMNS).json(str(file))
    return lambda: rows.write.format("noop").mode("overwrite").save()


def decode_with_spark(file: Path) -> Decode:
    """Return what decodes texts in Spark's memory by ``from_json``; what does not fit is null."""
    texts = _open_spark().read.text(str(file)).coalesce(1).cache()
    texts.count()
    rows = texts.select(from_json("value", COLUMNS).alias("row")).select("row.*")
    return lambda: rows.write.format("noop").mode("overwrite").save()


WAYS: Final[dict[str, dict[str, Callable[[Path], Decode]]]] = {
    "a file": {
        "Spark's reader": read_file_with_spark,
        "DuckDB, `read_json`": read_file_with_duckdb,
        "Lakewriter": read_file_with_lakewriter,
    },
    "records": {
        "Spark, `from_json`": decode_with_spark,
        "DuckDB, `from_json`": decode_with_duckdb,
        "Lakewriter": decode_with_lakewriter,
    },
}


def compare_readers(folder: Path) -> None:
    """Print a table of the ways; ratios are to Spark's."""
    say("| source | way | " + " | ".join(f"{name}, s | ratio" for name in COMPARED) + " |")
    say("|---|---|" + "---|---|" * len(COMPARED))
    files = {}
    for number, name in enumerate(COMPARED):
        files[name] = folder / f"{number}.jsonl"
        lines = (make_text(row, ODD[name]) + "\n" for row in range(DOCUMENTS))
        files[name].write_text("".join(lines), "utf-8")
    for source, ways in WAYS.items():
        figures: dict[str, list[str]] = {way: [] for way in ways}
        for name in COMPARED:
            taken = take_turns(folder, source, files[name])
            first = next(iter(taken.values()))
            for way, cpu in taken.items():
                figures[way].append(f"{cpu:.2f} | {cpu / first:.2f}")
        for way, cells in figures.items():
            say(f"| {source} | {way} | {' | '.join(cells)} |")


def take_turns(folder: Path, source: str, file: Path) -> dict[str, float]:
    """Return the median core-seconds of each way; its first two turns warm it up."""
    with ExitStack() as stack:
        residents = {}
        for number, way in enumerate(WAYS[source]):
            command = [sys.executable, "-m", "bench.json_decoding", source, way, str(file)]
            place = folder / f"{source}-{number}-{file.stem}"
            residents[way] = stack.enter_context(Resident(command, place, {"PYTHONPATH": os.pathsep.join(sys.path)}))
        turns: dict[str, list[float]] = {way: [] for way in residents}
        for _ in range(ROUNDS + 2):
            for way, resident in residents.items():
                turns[way].append(resident.take_turn("").cpu)
    return {way: statistics.median(taken[2:]) for way, taken in turns.items()}


def compare_with_levels() -> None:
    """Print a table of records with Arrow's parser in front, and level by level alone."""
    say("| one record in a thousand has | level by level, s | Arrow in front, s | ratio |")
    say("|---|---|---|---|")
    for name, odd in ODD.items():
        texts = [make_text(number, odd) for number in range(RECORDS)]
        batches = [pa.array(texts[start : start + BATCH]) for start in range(0, RECORDS, BATCH)]
        pairs = []
        for _ in range(ROUNDS):
            fast = exact = 0.0
            for batch in batches:
                fast += decode(batch)
                with patch.object(decoding, "find_parsed_type", lambda _: None):
                    exact += decode(batch)
            pairs.append((exact, fast, exact / fast))
        exact, fast, ratio = (statistics.median(column) for column in zip(*pairs[1:], strict=True))
        say(f"| {name} | {exact:.2f} | {fast:.2f} | {ratio:.1f} |")


def decode(texts: pa.Array) -> float:
    """Return the core-seconds of one batch."""
    clock = time.process_time()
    Documents(texts).build_columns(RECORD, FIELDS)
    return time.process_time() - clock


say = partial(print, flush=True)


def main() -> None:
    """Print the tables, or be one way in a process of its own."""
    if len(sys.argv) > 1:
        _, source, way, file = sys.argv
        read = WAYS[source][way](Path(file))
        serve(lambda _: read())
        return
    with tempfile.TemporaryDirectory() as folder:
        compare_readers(Path(folder))
    compare_with_levels()


if __name__ == "__main__":
    main()
