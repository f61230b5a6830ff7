"""Readers of files beside Spark's and DuckDB's: one file, the same bytes cut, and tiny files."""

import json
import os
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pyarrow.types as pt
from pyspark.sql import SparkSession

from bench.data import sources
from bench.measure import medians, worker_peak
from bench.outside import look_at
from bench.outside_ways import CORES
from bench.reader_ways import NAMES, TYPED, ReaderPlan
from bench.sinks import null_sink, real_server
from bench.turns import Resident, Turn
from bench.ways import lake_file_of

ROOT: Final = Path(__file__).resolve().parents[1]
WAYS: Final = {"Spark's reader and writer": "spark", "Lakewriter": "lakewriter", "DuckDB `COPY`": "duckdb"}
TRACKED: Final = {"Spark, with tracking columns": "spark", "Lakewriter, with tracking columns": "lakewriter"}
BY_SQL: Final = {"Lakewriter, `sql:`": "lakewriter_sql"}
"""Of formats with types, which a statement reads through the same readers."""
FORMS: Final = {
    # what is written: Spark's format, DuckDB's settings, blank for what it does not write, the end of the name
    "CSV": ("csv", "FORMAT csv, HEADER true", "csv"),
    "CSV in gzip": ("csv", "FORMAT csv, HEADER true, COMPRESSION gzip", "csv.gz"),
    "JSON Lines": ("json", "FORMAT json", "json"),
    "Parquet": ("parquet", "FORMAT parquet", "parquet"),
    "ORC": ("orc", "", "orc"),
    "Avro": ("avro", "", "avro"),
}
MIXED: Final = ("CSV", "CSV in gzip", "JSON Lines", "Parquet", "ORC", "Avro")
"""The formats of fifteen files in turn, of some thousand rows each."""
SMALL_FILES: Final = 100
TINY_FILES: Final = 40
MIXED_FILES: Final = 15
HEAD: Final = """\
{rows:,} rows of 21 columns ({sizes}) on the local disk, the same declared columns for all where files do not say their
types, written as gzip Parquet by each one's own level. Rows "with tracking columns" have the five of the section
"Writers" beside them; Spark counts the rows first for their index. Ratios are to Spark's row. Each way is a process of
its own that has its Spark session. CPU is that of all its processes, Java's included and the server's not. MiB is the
most that one Python worker has held since it began. A file in gzip is read by one task in each of the ways; Spark
writes S3 over the local disk."""


def compare(_: Callable[[], SparkSession], folder: Path, copies: int, rounds: int) -> list[str]:
    """Each format beside the others, then the same bytes in one file and in many, then tiny files."""
    rows = sources(folder / "flights", copies)
    files = {name: _write_source(folder, name) for name in FORMS}
    sizes = ", ".join(f"{name} {file.stat().st_size / 1e6:,.0f} MB" for name, file in files.items())
    lines = HEAD.format(rows=rows, sizes=sizes).splitlines()
    with real_server(folder / "server") as server:
        lines += ["", "To SeaweedFS on the same machine:", ""]
        lines += _compare_ways(folder, server, files, rounds, rows)
    with null_sink() as server:
        lines += ["", "To a server that discards the data; the files of Spark and DuckDB stay on the local disk:", ""]
        lines += _compare_ways(folder, server, files, rounds, None)
        lines += ["", "The same bytes otherwise cut, to that server:", ""]
        lines += _compare_cuts(folder, server, files, rounds)
        lines += ["", f"{TINY_FILES} CSV files of two rows, from the command to its end, without the seconds of an"]
        lines += ["empty Spark session; and a first load of fifteen files of six formats, a table each:", ""]
        lines += _load_small(folder, server, rounds)
    return lines


def _write_source(folder: Path, name: str) -> Path:
    _, settings, ending = FORMS[name]
    file = folder / f"one.{ending}"
    if settings:
        _copy(folder, file, settings, f"SELECT {', '.join(NAMES)}")
    else:
        _write_typed(file, pq.read_table(folder / "flights", columns=list(NAMES)))
    return file


def _write_typed(file: Path, rows: pa.Table) -> None:
    """Write ORC by Arrow, or Avro by fastavro; both compress by zlib."""
    if file.suffix == ".orc":
        # Spark reads no timestamp with a zone from ORC.
        plain = [field.with_type(pa.timestamp("us")) if pt.is_timestamp(field.type) else field for field in rows.schema]
        orc.write_table(rows.cast(pa.schema(plain)), file, compression="zlib")
        return
    kinds = {"int64": "long", "string": "string", "large_string": "string"}
    instant = {"type": "long", "logicalType": "timestamp-micros"}
    fields = [
        {"name": field.name, "type": ["null", kinds.get(str(field.type), instant)], "default": None}
        for field in rows.schema
    ]
    with file.open("wb") as out:
        schema = {"type": "record", "name": "flight", "fields": fields}
        records = (record for batch in rows.to_batches(10_000) for record in batch.to_pylist())
        fastavro.writer(out, schema, records, codec="deflate")


def _copy(folder: Path, target: Path, settings: str, select: str, where: str = "") -> None:
    """Write rows of the Parquet source in their order; times in text have an offset, which all readers take."""
    if "parquet" not in settings:
        select = select.replace("time_hour", "strftime(time_hour, '%Y-%m-%dT%H:%M:%SZ') AS time_hour")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"COPY ({select} FROM '{folder}/flights/*.parquet' {where}) TO '{target}' ({settings})")


def _compare_ways(folder: Path, server: str, files: Mapping[str, Path], rounds: int, rows: int | None) -> list[str]:
    """A table of formats and ways; ``rows`` are counted where the server keeps what is written."""
    lines = ["| source | way | seconds | time | CPU | CPU ratio | MiB |", "|---|---|---|---|---|---|---|"]
    for source, file in files.items():
        plan = ReaderPlan(FORMS[source][0], str(file), str(folder), server, discards=rows is None)
        ways = _choose_ways(plan.form)
        plans = {name: (way, plan) for name, way in ways.items()}
        if plan.form != "avro":
            plans |= {name: (way, replace(plan, tracks=True)) for name, way in TRACKED.items()}
        taken = _take_turns(folder, plans, rounds, rows)
        for name, (seconds, cpu, peak) in taken.items():
            base = taken[next(iter(TRACKED if name in TRACKED else ways))]
            ratios = f"{seconds / base[0]:.2f} | {cpu:.1f} | {cpu / base[1]:.2f}"
            lines.append(f"| {source} | {name} | {seconds:.2f} | {ratios} | {f'{peak:.0f}' if peak else ''} |")
    return lines


def _choose_ways(form: str) -> dict[str, str]:
    """Return the ways that read a format: Spark needs a package for Avro, and DuckDB an extension for it and ORC."""
    ways = WAYS | (BY_SQL if form in TYPED else {})
    lacking = {"avro": {"spark", "duckdb"}, "orc": {"duckdb"}}.get(form, set())
    return {name: way for name, way in ways.items() if way not in lacking}


def _compare_cuts(folder: Path, server: str, files: Mapping[str, Path], rounds: int) -> list[str]:
    lines = ["| source | files | seconds | time | CPU | CPU ratio | MiB |", "|---|---|---|---|---|---|---|"]
    for source, file in files.items():
        form, settings, ending = FORMS[source]
        if file.suffix == ".gz" or not settings:
            continue
        plans = {}
        for count in (4 * CORES, 1, SMALL_FILES):
            cut = folder / f"{ending}-{count}"
            cut.mkdir()
            for number in range(count):
                condition = f"WHERE row_id % {count} = {number}"
                _copy(folder, cut / f"{number:03}.{ending}", settings, f"SELECT {', '.join(NAMES)}", condition)
            plans[str(count)] = ("lakewriter", ReaderPlan(form, str(cut), str(folder), server, discards=True))
        taken = _take_turns(folder, plans, rounds, None)
        base = next(iter(taken.values()))
        for count_text, (seconds, cpu, peak) in taken.items():
            ratios = f"{seconds / base[0]:.2f} | {cpu:.1f} | {cpu / base[1]:.2f}"
            lines.append(f"| {source} | {count_text} | {seconds:.2f} | {ratios} | {peak:.0f} |")
    return lines


def _take_turns(
    folder: Path, ways: Mapping[str, tuple[str, ReaderPlan]], rounds: int, rows: int | None
) -> dict[str, tuple[float, float, float]]:
    """Return by way the medians of seconds and CPU seconds, and the MiB of a worker; the first round warms up."""
    turns: dict[str, list[Turn]] = {name: [] for name in ways}
    peaks: dict[str, float] = dict.fromkeys(ways, 0.0)
    with ExitStack() as stack:
        residents = {
            name: stack.enter_context(
                Resident(_make_command(*way), folder / uuid.uuid4().hex, {"PYTHONPATH": str(ROOT)})
            )
            for name, way in ways.items()
        }
        for number in range(rounds + 1):
            for name, resident in residents.items():
                prefix = f"bench/{uuid.uuid4()}"
                with worker_peak(resident.pid) as peak:
                    turn = resident.take_turn(prefix)
                if rows is not None and (written := look_at(ways[name][1].server, prefix)).rows != rows:
                    raise SystemExit(f"{name}: {written.rows} rows under {prefix}, expected {rows}")
                peaks[name] = max(peaks[name], peak.mib)
                turns[name] += [turn] if number else []
                said = f"  {number}/{rounds} {name}: {turn.seconds:.2f} s, {turn.cpu:.1f} s of CPU, {peak.mib:.0f} MiB"
                print(said, file=sys.stderr, flush=True)  # noqa: T201
    return {
        name: (statistics.median(t.seconds for t in taken), statistics.median(t.cpu for t in taken), peaks[name])
        for name, taken in turns.items()
    }


def _make_command(way: str, plan: ReaderPlan) -> list[str]:
    return [sys.executable, "-m", "bench.reader_ways", way, json.dumps(asdict(plan))]


def _make_mixed(folder: Path) -> list[dict[str, Any]]:
    """Write fifteen files of mixed formats and return their tables."""
    mixed = folder / "mixed"
    mixed.mkdir()
    tables = []
    for number in range(MIXED_FILES):
        form, settings, ending = FORMS[MIXED[number % len(MIXED)]]
        file = mixed / f"{number:02}.{ending}"
        where = f"WHERE row_id < {1000 * (number + 1)}"
        if settings:
            _copy(folder, file, settings, f"SELECT {', '.join(NAMES)}", where)
        else:
            limit = [("row_id", "<", 1000 * (number + 1))]
            _write_typed(file, pq.read_table(folder / "flights", columns=list(NAMES), filters=limit))
        options = {"options": {"header": True}} if form == "csv" else {}
        tables.append({"table": f"m{number:02}", "read": {"format": form, "path": str(file)} | options})
    return tables


def _load_small(folder: Path, server: str, rounds: int) -> list[str]:
    """Forty files of one table, forty tables of a file each, fifteen mixed ones; a process of its own each time."""
    tiny = folder / "tiny"
    tiny.mkdir()
    for number in range(TINY_FILES):
        (tiny / f"{number:02}.csv").write_text(f"id,name\n{number},a\n{number + TINY_FILES},b\n", "utf-8")
    read: dict[str, Any] = {"format": "csv", "options": {"header": True}}
    mixed = _make_mixed(folder)
    one = [{"table": "tiny", "read": read | {"path": str(tiny)}}]
    each = [{"table": f"t{n:02}", "read": read | {"path": str(tiny / f"{n:02}.csv")}} for n in range(TINY_FILES)]

    def load(tables: list[dict[str, Any]]) -> tuple[float, int]:
        # Records in the server say which pipeline has a table.
        schema = {"schema": f"s{uuid.uuid4().hex[:8]}"}
        lake = lake_file_of(folder, server, {}, tables=[table | schema for table in tables])
        return _run([sys.executable, "-m", "lakewriter", "run", str(lake), "--job-id", "a"]), 0

    session = "from lakewriter.source.session import open_spark_session; open_spark_session('bench')"
    ways = {
        "session": lambda: (_run([sys.executable, "-c", session]), 0),
        "files of one table": lambda: load(one),
        "tables of a file each": lambda: load(each),
        "fifteen mixed files": lambda: load(mixed),
    }
    (empty, _), *others = medians(ways, rounds).values()
    lines = ["| load | seconds |", "|---|---|"]
    names = list(ways)[1:]
    return lines + [f"| {name} | {found[0] - empty:.1f} |" for name, found in zip(names, others, strict=True)]


def _run(command: list[str]) -> float:
    clock = time.monotonic()
    subprocess.run(command, cwd=ROOT, env=os.environ, check=True, capture_output=True)
    return time.monotonic() - clock
