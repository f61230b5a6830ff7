"""Lakewriter beside what a user would pick, in turns: one codec and level for all, and each one's own defaults."""

import json
import statistics
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Final

import boto3
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.sql import SparkSession

from bench.data import TRACKED, sources
from bench.outside_ways import Plan
from bench.sinks import BUCKET, real_server
from bench.turns import Resident, Turn
from tests.support.server import StrictAws

ROOT: Final = Path(__file__).resolve().parents[1]
APART: Final = {way: ROOT / "bench" / f"requirements-{way}.txt" for way in ("awswrangler", "dlt")}
"""The packages of the ways that have an environment of their own, and a program ``bench.<way>_way``."""
OURS: Final = "Lakewriter"
FIXED: Final = {
    OURS: "lakewriter",
    "Spark's own writer, then boto3": "spark",
    "pyarrow, one file": "pyarrow_one_file",
    "pyarrow, a thread for each file": "pyarrow",
    "awswrangler, `use_threads`": "awswrangler",
    "PyIceberg `append`": "pyiceberg",
    "DuckDB `COPY`": "duckdb",
    "dlt, `workers`": "dlt",
}
DEFAULTS: Final = {
    "Lakewriter, zstd 3": "lakewriter",
    "Lakewriter with snappy": "lakewriter snappy",
    "Spark's own writer, then boto3, snappy": "spark",
    "pyarrow, snappy": "pyarrow_one_file",
    "awswrangler, snappy": "awswrangler",
    "PyIceberg `append`, zstd": "pyiceberg",
    "DuckDB `COPY`, snappy": "duckdb",
    "dlt, snappy": "dlt",
}
NOT_CHOSEN: Final = {
    "gzip": {"duckdb": "its only level", "dlt": "level 9, which cannot be chosen"},
    "zstd": {"dlt": "level 1, which cannot be chosen"},
}
HEAD: Final = """\
{rows:,} rows of 21 columns in {files} Parquet files on the local disk, and five tracking columns that each way adds;
DuckDB makes them for those that are not Spark or Lakewriter. Parquet to SeaweedFS on the same machine; each way is a
process that has started before. CPU is that of all processes, the server's left out; MiB the most that they held at
one time, shared pages counted in each. Versions: {versions}.

Lakewriter stages uploads, completes them on condition and keeps records; PyIceberg commits to a catalog on this
machine; the others put objects. Spark's files go over the local disk."""


@dataclass(frozen=True)
class Taken:
    """Medians of a way's turns, and what its last turn wrote."""

    seconds: float
    cpu: float
    peak: float
    size: int
    files: int


def compare(_: Callable[[], SparkSession], folder: Path, copies: int, rounds: int) -> list[str]:
    """Three tables: gzip 4, zstd 3, and defaults."""
    rows = sources(folder / "flights", copies)
    lines = HEAD.format(rows=rows, files=copies, versions=", ".join(list_versions())).splitlines()
    with real_server(folder / "server") as server, StrictAws() as aws:
        # PyIceberg looks for objects by HEAD, and takes 403 for an error.
        aws.hide_missing = False
        plan = Plan(str(folder), server, aws.url)
        bench = Bench(folder, server, rows, rounds)
        for codec, level in (("gzip", 4), ("zstd", 3)):
            head = f"{codec} at level {level}, and as many files as there are cores, where a library lets it be chosen:"
            lines += ["", head, ""]
            chosen = replace(plan, codec=codec, level=level)
            names = {_note(name, way, codec): way for name, way in FIXED.items()}
            lines += make_table(bench.measure({name: _command(way, chosen) for name, way in names.items()}))
        lines += ["", "With nothing chosen; Lakewriter with the codec that most of them have beside its own:", ""]
        lines += make_table(bench.measure({name: _command(way, plan) for name, way in DEFAULTS.items()}))
    return lines


def list_versions() -> Iterator[str]:
    """The libraries that are compared, with their versions."""
    for name in ("pyspark", "pyarrow", "pyiceberg", "duckdb"):
        yield f"{name} {version(name)}"
    for way, requirements in APART.items():
        for line in requirements.read_text("utf-8").splitlines():
            if line.startswith((f"{way}==", "duckdb==")):
                yield f"{line.split()[0].replace('==', ' ')}{f' for {way}' * line.startswith('duckdb')}"


def _note(name: str, way: str, codec: str) -> str:
    note = NOT_CHOSEN[codec].get(way)
    return f"{name}: {note}" if note else name


def _command(way: str, plan: Plan) -> list[str]:
    way, _, codec = way.partition(" ")
    plan = replace(plan, codec=codec) if codec else plan
    if way in APART:
        uv = [
            str(Path(sys.executable).parent / "uv"),
            "run",
            "--quiet",
            "--no-project",
            "--with-requirements",
            str(APART[way]),
        ]
        arguments = (TRACKED.format(files=plan.files), plan.server, BUCKET, plan.codec, str(plan.level or ""))
        return [*uv, "python", "-m", f"bench.{way}_way", *arguments]
    return [sys.executable, "-m", "bench.outside_ways", way, json.dumps(asdict(plan))]


@dataclass(frozen=True)
class Objects:
    """What a turn has written."""

    rows: int
    files: int
    size: int


class Bench:
    """Measures ways side by side."""

    def __init__(self, folder: Path, server: str, rows: int, rounds: int) -> None:
        self._folder, self._server, self._rows, self._rounds = folder, server, rows, rounds

    def measure(self, commands: Mapping[str, list[str]]) -> dict[str, Taken]:
        """By way; the first round warms up and is not counted."""
        turns: dict[str, list[tuple[Turn, Objects]]] = {name: [] for name in commands}
        with self._open(commands) as residents:
            for number in range(self._rounds + 1):
                for name, resident in residents.items():
                    turn, written = self._take(resident)
                    if number:
                        turns[name].append((turn, written))
                    said = f"  {number}/{self._rounds} {name}: {turn.seconds:.1f} s, {turn.cpu:.1f} s of CPU"
                    print(said, file=sys.stderr, flush=True)  # noqa: T201
        return {name: _summarise(found) for name, found in turns.items()}

    @contextmanager
    def _open(self, commands: Mapping[str, list[str]]) -> Iterator[dict[str, Resident]]:
        with ExitStack() as stack:
            yield {
                name: stack.enter_context(Resident(command, self._folder / uuid.uuid4().hex, {"PYTHONPATH": str(ROOT)}))
                for name, command in commands.items()
            }

    def _take(self, resident: Resident) -> tuple[Turn, Objects]:
        prefix = f"bench/{uuid.uuid4()}"
        turn = resident.take_turn(prefix)
        written = look_at(self._server, prefix)
        if written.rows != self._rows:
            raise SystemExit(f"{written.rows} rows under {prefix}, expected {self._rows}")
        return turn, written


def look_at(server: str, prefix: str) -> Objects:
    """Count what was written, and delete it."""
    client = boto3.client("s3", endpoint_url=server)
    store = fs.S3FileSystem(endpoint_override=server)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"{prefix}/")
    found = {each["Key"]: each["Size"] for page in pages for each in page.get("Contents", [])}
    files = [key for key in found if key.endswith(".parquet")]
    rows = sum(pq.read_metadata(f"{BUCKET}/{key}", filesystem=store).num_rows for key in files)
    for key in found:
        client.delete_object(Bucket=BUCKET, Key=key)
    return Objects(rows, len(files), sum(found[key] for key in files))


def _summarise(turns: list[tuple[Turn, Objects]]) -> Taken:
    seconds, cpu, peak = (
        statistics.median(getattr(turn, name) for turn, _ in turns) for name in ("seconds", "cpu", "peak")
    )
    written = turns[-1][1]
    return Taken(seconds, cpu, peak, written.size, written.files)


def make_table(found: Mapping[str, Taken]) -> list[str]:
    """Make a Markdown table with ratios to the first way."""
    base = next(iter(found.values()))
    lines = ["| way | seconds | time | CPU | MiB | MB | size | files |", "|---|---|---|---|---|---|---|---|"]
    for name, each in found.items():
        ratios = (f"{each.seconds / base.seconds:.2f}", f"{each.size / base.size:.2f}")
        lines.append(
            f"| {name} | {each.seconds:.1f} | {ratios[0]} | {each.cpu:.1f} | {each.peak / 2**20:,.0f} | "
            f"{each.size / 1e6:.1f} | {ratios[1]} | {each.files} |"
        )
    return lines
