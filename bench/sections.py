"""The measurements, each a section of the page: what is measured, the table, and what it takes to repeat it."""

import json
import os
import resource
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from bench import databases, frames, messages, outside, readers, streamed
from bench.data import KEYS, ROWS_A_FILE, make_small_files, sources
from bench.measure import Timed, medians, table, timed, worker_peak
from bench.outside_ways import CORES
from bench.sinks import null_sink, real_server, slow_source
from bench.ways import Way, lake_file, lake_file_of, lakewriter, load_file, spark_native
from lakewriter.source.class_archive import VARIABLE, choose_archive
from lakewriter.source.java import find_java

SparkFactory = Callable[[], SparkSession]
Section = Callable[[SparkFactory, Path, int, int], list[str]]

ROWS_FEED: Final = {"mergeSchema": "false"}
"""A reader option that the splits feed does not know, and that changes nothing for these files."""
ROOT: Final = Path(__file__).resolve().parents[1]
MAVEN: Final = ROOT / "build" / "maven"


def writers(spark: SparkFactory, folder: Path, copies: int, rounds: int) -> list[str]:
    """Spark's own writer and both feeds, to a server and to nowhere."""
    rows = sources(folder / "flights", copies)
    native = spark_native(spark(), folder)
    lines = [f"{rows:,} rows of 21 columns and the five tracking columns, as gzip Parquet, to local SeaweedFS:", ""]
    with real_server(folder / "server") as server:
        lines += table(medians(_inside(spark(), folder, server, native, upload=True), rounds))
    lines += ["", "To a server that discards the data; Spark's files stay on the local disk:", ""]
    with null_sink() as server:
        lines += table(medians(_inside(spark(), folder, server, native, upload=False), rounds))
    return lines


def _inside(spark: SparkSession, folder: Path, server: str, native: Way, *, upload: bool) -> dict[str, Timed]:
    return {
        "Spark's own writer": timed(lambda: native(server if upload else None)),
        "Lakewriter, rows feed": timed(lambda: _bytes(spark, folder, server, ROWS_FEED)),
        "Lakewriter, splits feed": timed(lambda: _bytes(spark, folder, server, {})),
        "the same, `delta_encodings`": timed(lambda: _bytes(spark, folder, server, {}, delta=True)),
    }


def _bytes(spark: SparkSession, folder: Path, server: str, options: dict[str, str], *, delta: bool = False) -> int:
    return lakewriter(spark, folder, server, delta=delta, **options).tables[0].bytes


def requests(spark: SparkFactory, folder: Path, copies: int, rounds: int) -> list[str]:
    """Every S3 request of one load, tasks and driver, control objects included."""
    sources(folder / "flights", copies)
    with null_sink() as server:
        report = lakewriter(spark(), folder, server)
    done = report.tables[0]
    lines = [f"Requests of one load, which wrote {done.files} files of {done.bytes / 1e6:.0f} MB in total:", ""]
    lines += ["| request | times |", "|---|---|"]
    return lines + [f"| {name} | {times} |" for name, times in sorted(report.requests.items())]


def memory(spark: SparkFactory, folder: Path, copies: int, rounds: int) -> list[str]:
    """One partition, and ones that are 4 and 16 times as long; the worker's own high-water mark."""
    lines = ["| rows in the partition | feed | peak MiB |", "|---|---|---|"]
    for options, feed in ((ROWS_FEED, "rows"), ({}, "splits")):
        for times in (1, 4, 16):
            lines.append(_one_partition(folder / f"{feed}-{times}", times * max(copies // 4, 1), feed, options))
    return lines


def _one_partition(folder: Path, copies: int, feed: str, options: dict[str, str]) -> str:
    rows = sources(folder / "flights", copies)
    script = "import json, sys; from bench.sections import one_partition; one_partition(*map(json.loads, sys.argv[1:]))"
    arguments = [json.dumps(str(folder)), json.dumps(options)]
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return f"| {rows:,} | {feed} | {float(done.stdout.split()[-1]):.0f} |"


def one_partition(folder: str, options: dict[str, Any]) -> None:
    """In a process of its own, so that the workers are new; prints the peak in MiB."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.master("local[1]").config("spark.sql.files.maxPartitionBytes", "64g")
    spark = spark.config("spark.sql.files.minPartitionNum", "1").config("spark.ui.enabled", "false")
    with null_sink() as server, worker_peak() as peak:
        report = lakewriter(spark.getOrCreate(), Path(folder), server, **options)
    assert report.status == "done"
    print(peak.mib)  # noqa: T201


def growth(spark: SparkFactory, folder: Path, copies: int, rounds: int) -> list[str]:
    """A thousand rows, and 1, 3 and 12 times so many files: what a load costs whatever its rows are, and each row."""
    # As many files as there are cores, or a multiple, so that no core waits for another.
    steps = [CORES * max(copies // (4 * CORES), 1) * times for times in (1, 3, 12)]
    for step in steps:
        sources(folder / str(step) / "flights", step)
    make_small_files(folder / "few" / "flights", files=1, rows=1000)
    with null_sink() as server:
        ways: dict[str, Timed] = {
            "a job of Spark that does nothing": timed(lambda: spark().sparkContext.parallelize([0], 1).count()),
            "a load of 1,000 rows": timed(lambda: _bytes(spark(), folder / "few", server, {})),
        }
        for step in steps:
            ways[f"{step * ROWS_A_FILE:,}"] = timed(partial(_load_step, spark, folder / str(step), server))
        found = {name: seconds for name, (seconds, _) in medians(ways, rounds).items()}
    (_, nothing), (_, fixed), *loads = found.items()
    lines = [
        "To a server that discards the data, splits feed, as many files as cores or a multiple.", "",
        f"A load of 1,000 rows takes {fixed:.2f} s; a job of Spark that does nothing takes {nothing:.2f} of them.", "",
        "| rows | seconds | a million rows | a million, without the time of the 1,000 |", "|---|---|---|---|",
    ]  # fmt: skip
    for name, seconds in loads:
        millions = int(name.replace(",", "")) / 1e6
        lines.append(f"| {name} | {seconds:.2f} | {seconds / millions:.2f} | {(seconds - fixed) / millions:.2f} |")
    return lines


def _load_step(spark: SparkFactory, folder: Path, server: str) -> int:
    return _bytes(spark(), folder, server, {})


def small_files(spark: SparkFactory, folder: Path, copies: int, rounds: int) -> list[str]:
    """Many small files in S3 whose every answer takes 20 ms, and the same files on the local disk."""
    files, rows = 100 * max(copies // 4, 1), 5000
    make_small_files(folder / "flights", files=files, rows=rows)
    with null_sink() as server, slow_source(folder / "flights") as source, _endpoint(source):
        places = {"on the local disk": str(folder / "flights"), "in S3, 20 ms a request": "s3://source/flights"}
        ways = {name: timed(partial(_load_from, spark, folder, server, path)) for name, path in places.items()}
        found = medians(ways, rounds)
    local = found["on the local disk"][0]
    lines = [f"{files} files of {rows:,} rows each, to a server that discards the data, splits feed.", ""]
    lines += ["| the files are | seconds | time |", "|---|---|---|"]
    return lines + [f"| {name} | {seconds:.1f} | {seconds / local:.2f} |" for name, (seconds, _) in found.items()]


def _load_from(spark: SparkFactory, folder: Path, server: str, path: str) -> int:
    table = {"table": "flights", "read": {"format": "parquet", "path": path}, "primary_key": list(KEYS)}
    return load_file(spark(), lake_file_of(folder, server, table)).tables[0].bytes


@contextmanager
def _endpoint(url: str) -> Iterator[None]:
    """Have sources in S3 read from ``url``; the destination has an endpoint of its own."""
    os.environ["AWS_ENDPOINT_URL_S3"] = url
    try:
        yield
    finally:
        del os.environ["AWS_ENDPOINT_URL_S3"]


def start(spark: SparkFactory, folder: Path, copies: int, rounds: int) -> list[str]:
    """From the command to the first byte of data, Python, Java and Spark started anew each time."""
    sources(folder / "flights", 1)
    with_archive = os.environ | {VARIABLE: str(_make_archive(folder / "java"))}
    without = os.environ | {VARIABLE: "off"}
    ways: dict[str, Timed] = {}
    for name, environment in (
        ("with the archive of classes", with_archive),
        ("without it, as the first time", without),
    ):
        ways[f"the first byte of data at the server, {name}"] = partial(_first_byte, folder, environment)
        ways[f"an empty Spark session, nothing more, {name}"] = partial(_session, environment)
    lines = ["| from the command to | seconds |", "|---|---|"]
    return lines + [f"| {name} | {seconds:.1f} |" for name, (seconds, _) in medians(ways, rounds).items()]


def repeated(spark: SparkFactory, folder: Path, copies: int, rounds: int) -> list[str]:
    """A run that finds nothing to do, since its job id is done: it starts no Spark."""
    sources(folder / "flights", 1)
    used: list[float] = []
    with null_sink() as server:
        command = _make_command(lake_file(folder, server, {}))
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        seconds = medians({"a run whose job id is done": partial(_run_again, command, used)}, rounds)
    lines = ["| from the command to its end | seconds | seconds of the processor |", "|---|---|---|"]
    wall = next(iter(seconds.values()))[0]
    return [*lines, f"| a run whose job id is done | {wall:.2f} | {statistics.median(used[1:]):.2f} |"]


def _run_again(command: list[str], used: list[float]) -> tuple[float, int]:
    before, clock = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    seconds, after = time.monotonic() - clock, resource.getrusage(resource.RUSAGE_CHILDREN)
    used.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return seconds, 0


def _make_archive(folder: Path) -> Path:
    """The archive that a first run leaves behind, made before what is timed."""
    archive = choose_archive(find_java(os.environ), os.environ | {VARIABLE: str(folder)})
    if archive is not None:
        command = [sys.executable, "-m", "lakewriter.source.archive_maker", str(folder), archive.key]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def _make_command(lake: Path) -> list[str]:
    return [sys.executable, "-m", "lakewriter", "run", str(lake), "--job-id", "a"]


def _first_byte(folder: Path, environment: dict[str, str]) -> tuple[float, int]:
    with null_sink() as server:
        lake, clock = lake_file(folder, server, {}), time.time()
        subprocess.run(_make_command(lake), cwd=ROOT, env=environment, check=True, capture_output=True)
        with urllib.request.urlopen(f"{server}/_first") as answer:
            return float(answer.read()) - clock, 0


def _session(environment: dict[str, str]) -> tuple[float, int]:
    script = "from lakewriter.source.session import open_spark_session; open_spark_session('bench')"
    clock = time.monotonic()
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment, check=True, capture_output=True)
    return time.monotonic() - clock, 0


def iceberg(spark: SparkFactory, folder: Path, copies: int, rounds: int) -> list[str]:
    """In a process of its own, whose Spark has Iceberg's jars where the tests have fetched them."""
    return _run_with_iceberg("bench.iceberg", "--copies", str(max(copies // 4, 1)), "--rounds", str(rounds))


def merges(spark: SparkFactory, folder: Path, copies: int, rounds: int) -> list[str]:
    """Tables of one and ten million rows, whatever ``copies`` says, in a process of its own as ``iceberg`` is."""
    return _run_with_iceberg("bench.merges", "--rounds", str(rounds))


def _run_with_iceberg(module: str, *given: str) -> list[str]:
    jars = [*MAVEN.glob("iceberg-spark-runtime-*.jar"), *MAVEN.glob("iceberg-aws-bundle-*.jar")]
    command = [sys.executable, "-m", module, *given]
    command += ["--jars", ",".join(map(str, jars))] if len(jars) == 2 else []
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


SECTIONS: Final[dict[str, Section]] = {
    "writers": writers,
    "dataframes": frames.writing,
    "others": outside.compare,
    "readers": readers.compare,
    "requests": requests,
    "memory": memory,
    "growth": growth,
    "small-files": small_files,
    "start": start,
    "repeated": repeated,
    "iceberg": iceberg,
    "merges": merges,
    "messages": messages.formats,
    "long-messages": messages.lengths,
    "streamed": streamed.streaming,
    "databases": databases.reading,
}
