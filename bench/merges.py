"""Rows merged by key into an Iceberg table of one REST catalog, in turns in one run: ours, DuckDB's and Spark's MERGE,
PyIceberg's ``upsert``.

Each way has a table of its own with the same rows, in the same embedded bucket, and merges the same keys, half of which
are new. Keys that grow are merged where they are newest; random ones all over the table. What readers see afterwards is
compared. Bucket and catalog are served by a process of their own; CPU is that of all other processes, from the call
until the snapshot can be read. A cold start is the same merge in a process that begins with it. Spark takes part where
``--jars`` names the Iceberg runtime for Spark and its AWS bundle.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from werkzeug.wrappers import Request, Response

from bench.iceberg import _point_at
from bench.merge_ways import DATABASE, WAYS, MergeWays
from bench.processes import measure_family
from bench.sinks import BUCKET
from tests.support.open_catalog import OpenCatalog
from tests.support.server import StrictAws

FILES: Final = 8
UPSERT_ROWS: Final = 1_000_000
"""PyIceberg's upsert takes part up to this size of the table: it takes minutes beyond."""
COLD_ROWS: Final = 1_000_000
"""A cold start is measured with the tables up to this size, since it does not depend on it."""
PRIME: Final = 2**31 - 1
FACTOR: Final = 48_271
"""Multiplied by it modulo the prime, each number becomes another one: random keys, each once."""


class Taken(NamedTuple):
    """What a merge took: seconds by the clock, and seconds of CPU."""

    seconds: float
    cpu: float


class Cell(NamedTuple):
    """One comparison: the rows of the table, its keys, and the share of them that is merged."""

    rows: int
    keys: str
    share: float

    def describe(self) -> str:
        """Return the first columns of its lines."""
        return f"{self.rows:,} | {self.keys} | {self.share:.0%}"


Measured = dict[Cell, dict[str, list[Taken]]]


class AnyClientsCatalog(OpenCatalog):
    """A catalog that takes commits as DuckDB sends them, in a transaction of one table, and as Java does, without the
    table's identifier."""

    def _routed(self, request: Request, path: list[str]) -> Response:
        match request.method, path:
            case _, ["transactions", "commit"]:
                (change,) = json.loads(request.get_data())["table-changes"]
                self._commit_change(change)
                return Response(status=204)
            case "POST", ["namespaces", namespace, "tables", name]:
                identifier = {"namespace": [namespace], "name": name}
                return self._commit_change({"identifier": identifier} | json.loads(request.get_data()))
        return super()._routed(request, path)

    def _commit_change(self, change: dict[str, Any]) -> Response:
        named = change["identifier"]
        given = Request.from_values(data=json.dumps(change), content_type="application/json", method="POST")
        (namespace,) = named["namespace"]
        return self._commit(namespace, named["name"], given)


class Servers:
    """The bucket and the catalog, in a process of their own."""

    def __init__(self) -> None:
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "bench.merges", "--serve"]
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdout is not None
        given = json.loads(self._process.stdout.readline())
        self.bucket: str = given["bucket"]
        self.options: dict[str, Any] = given["options"]
        self.settings: dict[str, Any] = given["settings"]
        os.environ.update(given["environment"])

    def measure_others(self) -> float:
        """Return the seconds of CPU of this process and all that it has begun, without the servers."""
        return measure_family(os.getpid()) - measure_family(self._process.pid)

    def close(self) -> None:
        """End them."""
        self._process.communicate("")


def _serve() -> None:
    with StrictAws() as aws, AnyClientsCatalog(aws, BUCKET) as catalog:
        _point_at(aws)
        name, secret = catalog.secret
        names = [name for name in os.environ if name.startswith("AWS_")]
        environment = {name: os.environ[name] for name in names} | {name: secret}
        given = {"bucket": aws.url, "options": catalog.make_options(), "settings": catalog.make_settings()}
        print(json.dumps(given | {"environment": environment}), flush=True)  # noqa: T201
        sys.stdin.read()


def _parse_arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000], help="of the tables")
    arguments.add_argument("--keys", nargs="+", choices=("growing", "random"), default=["growing", "random"])
    arguments.add_argument("--shares", type=float, nargs="+", default=[0.01, 0.1], help="of keys that are merged")
    arguments.add_argument("--rounds", type=int, default=2, help="behind the first one, which is not counted")
    arguments.add_argument("--jars", default="", help="Iceberg's runtime for Spark and its AWS bundle, by commas")
    arguments.add_argument("--without-upsert", action="store_true", help="leave PyIceberg out")
    arguments.add_argument("--serve", action="store_true", help="serve the bucket and the catalog")
    return arguments.parse_args()


def main() -> None:
    """Print Markdown tables of medians and ratios."""
    given = _parse_arguments()
    if given.serve:
        _serve()
        return
    if given.jars:
        extension = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        os.environ["PYSPARK_SUBMIT_ARGS"] = (
            f"--jars {given.jars} --conf spark.sql.extensions={extension} --driver-memory 4g pyspark-shell"
        )
    folder = Path(tempfile.mkdtemp(prefix="lakewriter-bench-"))
    servers, measured, cold = Servers(), Measured(), Measured()
    try:
        for rows in given.rows:
            ways = _list_ways(rows, given)
            for keys in given.keys:
                bench = _Bench(servers, folder / f"{rows}{keys}", rows, keys)
                bench.make_tables(ways)
                for share in given.shares:
                    cell = Cell(rows, keys, share)
                    measured[cell] = bench.measure(cell, ways, given.rounds)
                if rows <= COLD_ROWS and keys == given.keys[0]:
                    cold[cell] = bench.measure_cold(cell, ways)
    finally:
        servers.close()
        shutil.rmtree(folder, ignore_errors=True)
    _print_tables(measured, cold)


def _list_ways(rows: int, given: argparse.Namespace) -> list[str]:
    left_out = set[str]()
    if not given.jars:
        left_out.add("Spark's MERGE")
    if given.without_upsert or rows > UPSERT_ROWS:
        left_out.add("PyIceberg's upsert")
    return [way for way in WAYS if way not in left_out]


def _print_tables(measured: Measured, cold: Measured) -> None:
    print(f"In a session that runs, DuckDB {duckdb.__version__}, tables of {FILES} files, {os.cpu_count()} cores.")  # noqa: T201
    print("The process of the bucket and the catalog is not counted. DuckDB keeps no job id, late rows, deleted")  # noqa: T201
    print("keys or undo.\n")  # noqa: T201
    print("| rows | keys | merged | way | seconds | time | CPU seconds | CPU |\n|---|---|---|---|---|---|---|---|")  # noqa: T201
    _print_lines(measured)
    print("\nThe same merge in a process that begins with it, once:\n")  # noqa: T201
    print("| rows | keys | merged | way | seconds | time | CPU seconds | CPU |\n|---|---|---|---|---|---|---|---|")  # noqa: T201
    _print_lines(cold)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nThe process of all ways but Java had {peak:.0f} MiB at most.")  # noqa: T201


def _print_lines(measured: Measured) -> None:
    for cell, taken in measured.items():
        base = _find_middle(taken["Lakewriter"])
        for way, rounds in taken.items():
            middle = _find_middle(rounds)
            print(  # noqa: T201
                f"| {cell.describe()} | {way} | {middle.seconds:.2f} | {middle.seconds / base.seconds:.2f} | "
                f"{middle.cpu:.2f} | {middle.cpu / base.cpu:.2f} |"
            )


def _find_middle(rounds: list[Taken]) -> Taken:
    """Return the medians of the rounds behind the first one."""
    return Taken(*(statistics.median(column) for column in zip(*(rounds[1:] or rounds), strict=True)))


class _Bench:
    """The tables of all ways for one number of rows and one kind of keys."""

    def __init__(self, servers: Servers, folder: Path, rows: int, keys: str) -> None:
        self.servers, self.folder, self.rows, self.is_random = servers, folder, rows, keys == "random"
        (folder / "source").mkdir(parents=True)
        facts = {"bucket": servers.bucket, "options": servers.options, "settings": servers.settings}
        self.ways = MergeWays(
            facts | {"location": f"s3://{BUCKET}/ours", "folder": str(folder), "suffix": f"{keys}_{rows}"}
        )
        self.at = 0

    def make_tables(self, ways: list[str]) -> None:
        """Make a table for each way; ours by its first load."""
        per_file = self.rows // FILES
        self.rows = per_file * FILES
        for number in range(FILES):
            self._write(f"{number}.parquet", np.arange(number * per_file, (number + 1) * per_file))
        self.ways.merge("Lakewriter")
        catalog, files = self.ways.open_catalog(), sorted(self.ways.source.iterdir())
        for way in ways:
            if way == "Lakewriter":
                continue
            name = self.ways.name_table(way)
            properties = {"write.merge.mode": "merge-on-read", "format-version": "2"}
            location = f"s3://{BUCKET}/{DATABASE}/{name}"
            table = catalog.create_table((DATABASE, name), pq.read_schema(files[0]), location, properties=properties)
            for file in files:
                table.append(pq.read_table(file))

    def _write(self, name: str, numbers: Any) -> None:
        ids = (numbers + 1) * FACTOR % PRIME if self.is_random else numbers
        rows = {
            "id": pa.array(ids, pa.int64()),
            "at": pa.array(np.full(len(ids), self.at), pa.int64()),
            "name": pc.binary_join_element_wise("name", pc.cast(pa.array(ids), pa.string()), "-"),
            "x": pa.array(ids * 0.5),
        }
        pq.write_table(pa.table(rows), self.ways.source / name)

    def give(self, merged: int) -> None:
        """Write what a round merges: half of its keys are the table's, the other half are new."""
        half, self.at = merged // 2, self.at + 1
        newest = np.arange(self.rows - half, self.rows)
        old = np.random.default_rng(self.at).choice(self.rows, half, replace=False) if self.is_random else newest
        shutil.rmtree(self.ways.source)
        self.ways.source.mkdir()
        self._write("0.parquet", np.concatenate([np.sort(old), np.arange(self.rows, self.rows + half)]))
        self.rows += half

    def measure(self, cell: Cell, ways: list[str], rounds: int) -> dict[str, list[Taken]]:
        """Measure in turns; the first round is a session's first merge of each way."""
        taken: dict[str, list[Taken]] = {way: [] for way in ways}
        for _ in range(rounds + 1):
            self.give(int(cell.rows * cell.share))
            for way in ways:
                taken[way].append(self._take(partial(self.ways.merge, way)))
        self._require_equal(ways)
        return taken

    def measure_cold(self, cell: Cell, ways: list[str]) -> dict[str, list[Taken]]:
        """Measure a merge of each way in a process that begins with it."""
        self.give(int(cell.rows * cell.share))
        facts = self.folder / "facts.json"
        facts.write_text(json.dumps(self.ways.facts), "utf-8")
        taken = {}
        for way in ways:
            # Spark starts with Iceberg's jars only where its own MERGE needs them.
            left_out = () if way == "Spark's MERGE" else ("PYSPARK_SUBMIT_ARGS",)
            environment = {name: value for name, value in os.environ.items() if name not in left_out}
            command = [sys.executable, "-m", "bench.merge_ways", way, str(facts)]
            taken[way] = [self._take(partial(subprocess.run, command, env=environment, check=True))]
        self._require_equal(ways)
        return taken

    def _take(self, merge: Callable[[], object]) -> Taken:
        clock, cpu = time.monotonic(), self.servers.measure_others()
        merge()
        return Taken(time.monotonic() - clock, self.servers.measure_others() - cpu)

    def _require_equal(self, ways: list[str]) -> None:
        seen = {way: self._sum(self.ways.name_table(way)) for way in ways}
        if len(set(seen.values())) != 1:
            raise SystemExit(f"the tables differ: {seen}")

    def _sum(self, name: str) -> tuple[int, int, int]:
        """Rows of a table, and the sums of its keys and orders."""
        rows = self.ways.open_catalog().load_table((DATABASE, name)).scan(selected_fields=("id", "at")).to_arrow()
        return len(rows), pc.sum(rows["id"]).as_py(), pc.sum(rows["at"]).as_py()


if __name__ == "__main__":
    main()
