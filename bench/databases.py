"""Loads from PostgreSQL and MariaDB: what the comparison with the server costs, and what memory many rows take.

A process of its own reads each, since Java takes the drivers' jars at its start.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from bench.measure import high_water, worker_peak
from bench.processes import measure_by_kind, measure_family
from bench.sinks import null_sink
from bench.ways import lake_file_of, load_file
from lakewriter.source.session import open_spark_session
from tests.interop import mariadb, postgresql
from tests.interop.maven import jars

MILLION: Final = 1_000_000
ROOT: Final = Path(__file__).resolve().parents[1]
HEAP: Final = "512m"
"""Java's, which would not hold the rows of the largest load."""
_COLUMNS: Final = (
    "id bigint PRIMARY KEY, customer int, amount decimal(12, 2), price double precision, at {moment}, day date, "
    "status varchar(12), note varchar(60)"
)
_POSTGRESQL: Final = (
    "INSERT INTO orders SELECT n, n % 9973, n * 0.37, n / 7.0::float8, timestamp '2024-01-01' + n * interval '1 s', "
    "date '2024-01-01' + (n % 366)::int, 'status ' || n % 7, md5(n::text) FROM "
    "generate_series({first}, {last}) n"
)
_MARIADB: Final = (
    "INSERT INTO orders SELECT seq, seq % 9973, seq * 0.37, seq / 7e0, "
    "timestamp '2024-01-01 00:00:00' + interval seq second, date '2024-01-01' + interval seq % 366 day, "
    "concat('status ', seq % 7), md5(seq) FROM seq_{first}_to_{last}"
)
_DRIVERS: Final = {"PostgreSQL": postgresql.DRIVER, "MariaDB": mariadb.DRIVER}


def reading(spark: object, folder: Path, copies: int, rounds: int) -> list[str]:
    """Both servers, each with its three ways in turns, then the memory of more rows."""
    del spark
    folder.mkdir(parents=True)
    lines = [
        f"{MILLION:,} rows of 8 columns over one connection, to a server that discards the data; the comparison is "
        "`reconcile`. CPU is that of Spark, its tasks and the database:", "",
        "| server | `reconcile` | seconds | CPU seconds | time | CPU |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for server in _DRIVERS:
        found = _call(server, "compare", str(folder), str(rounds))
        seconds, cpu = found["off"]
        for way, (taken, used) in found.items():
            ratios = f"{taken / seconds:.2f} | {used / cpu:.2f}"
            lines.append(f"| {server} | `{way}` | {taken:.1f} | {used:.1f} | {ratios} |")
    lines += ["", f"With a heap of {HEAP} for Java, the highest marks of the processes:", ""]
    lines += ["| server | rows | Python's worker, MiB | Java, MiB |", "|---|---|---|---|"]
    for server in _DRIVERS:
        for millions in (1, max(copies // 4, 2)):
            worker, java = _call(server, "remember", str(folder), str(millions))["peaks"]
            lines.append(f"| {server} | {millions * MILLION:,} | {worker:.0f} | {java:.0f} |")
    return lines


def _call(server: str, what: str, *arguments: str) -> dict[str, tuple[float, float]]:
    """Return what a function of this module measures in a process that has the driver's jar."""
    os.environ.setdefault("LAKEWRITER_INTEROP", "1")
    (jar,) = jars([_DRIVERS[server]])
    submitted = f"--jars {jar} --driver-memory {HEAP if what == 'remember' else '2g'} pyspark-shell"
    done = subprocess.run(
        [sys.executable, "-m", "bench.databases", what, server, *arguments],
        cwd=ROOT, env=os.environ | {"PYSPARK_SUBMIT_ARGS": submitted}, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return dict(json.loads(done.stdout.splitlines()[-1]))


@dataclass(frozen=True)
class Served:
    """The options of a server whose table is full; ``measure`` has its CPU seconds, where it is no child of ours."""

    options: dict[str, str]
    measure: Callable[[], float]


@contextmanager
def _serving(server: str, millions: int) -> Iterator[Served]:
    if server == "PostgreSQL":
        with postgresql.serving() as running:
            _fill(running.execute, _POSTGRESQL, "timestamp", millions)
            running.execute("VACUUM ANALYZE orders;")
            leader = int(running.execute("SELECT pg_read_file('postmaster.pid')").split()[0])
            options = {"url": running.url, "user": postgresql.USER, "password": "-", "dbtable": "orders"}
            yield Served(options, partial(measure_family, leader))
        return
    with mariadb.serving() as maria:
        _fill(maria.execute, _MARIADB, "datetime", millions)
        user = {"user": mariadb.USER, "password": mariadb.PASSWORD}
        yield Served({"url": maria.make_url(), **user, "dbtable": "orders"}, lambda: 0.0)


def _fill(execute: Callable[[str], str], insert: str, moment: str, millions: int) -> None:
    execute(f"CREATE TABLE orders ({_COLUMNS.format(moment=moment)});")
    for number in range(millions):
        execute(insert.format(first=number * MILLION + 1, last=(number + 1) * MILLION) + ";")


def _load(spark: SparkSession, folder: Path, sink: str, options: dict[str, str], reconcile: str) -> None:
    read: dict[str, Any] = {"format": "jdbc", "options": options, "jdbc": {"reconcile": reconcile}}
    table = {"table": "orders", "read": read, "primary_key": ["id"]}
    load_file(spark, lake_file_of(folder, sink, table))


def compare(server: str, folder: str, rounds: str) -> dict[str, tuple[float, float]]:
    """Median seconds, and those of the processors, of a load that compares nothing, counts, and all of each column."""
    spark = open_spark_session("bench")
    taken: dict[str, list[tuple[float, float]]] = {"off": [], "counts": [], "columns": []}
    with _serving(server, 1) as served, null_sink() as sink:
        few = {**served.options, "dbtable": "(SELECT * FROM orders WHERE id <= 10000) few"}
        for way in taken:
            _load(spark, Path(folder), sink, few, way)
        for number in range(int(rounds)):
            for way, runs in taken.items():
                clock, before = time.monotonic(), _measure(served)
                _load(spark, Path(folder), sink, served.options, way)
                runs.append((time.monotonic() - clock, _measure(served) - before))
                print(f"  {number + 1}/{rounds} {server} {way}: {runs[-1]}", file=sys.stderr, flush=True)  # noqa: T201
    return {way: (_take_median(runs, 0), _take_median(runs, 1)) for way, runs in taken.items()}


def _take_median(runs: list[tuple[float, float]], place: int) -> float:
    return statistics.median(run[place] for run in runs)


def _measure(served: "Served") -> float:
    """Return the CPU seconds of this process, of those that it has started, and of the server."""
    used = measure_by_kind()
    return sum(used.values()) - used["sink"] + served.measure()


def remember(server: str, folder: str, millions: str) -> dict[str, tuple[float, float]]:
    """The most MiB of a worker and of Java in one load."""
    spark = open_spark_session("bench")
    jvm: Any = spark._jvm
    with _serving(server, int(millions)) as served, null_sink() as sink, worker_peak() as peak:
        _load(spark, Path(folder), sink, served.options, "columns")
        java = high_water(int(jvm.java.lang.ProcessHandle.current().pid()))
    return {"peaks": (peak.mib, java)}


if __name__ == "__main__":
    print(json.dumps({"compare": compare, "remember": remember}[sys.argv[1]](*sys.argv[2:])))  # noqa: T201
