"""Rows merged by key into an Iceberg table of one REST catalog, in turns in one run: ours, DuckDB's and Spark's MERGE,
PyIceberg's ``upsert``.

Each way has a table of its own with the same rows, in the same embedded bucket, and merges the same keys, half of which
are new. What readers see afterwards is compared. Bucket and catalog are served by a process of their own; CPU is that
of all other processes, from the call until the snapshot can be read. Spark takes part where ``--jars`` names the
Iceberg runtime for Spark and its AWS bundle.
"""

import argparse
import importlib.util
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode
from urllib.request import urlopen

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml
from pyiceberg.catalog import Catalog, load_catalog
from pyspark.sql import SparkSession
from werkzeug.wrappers import Request, Response

from bench.iceberg import DATABASE, _point_at
from bench.processes import measure_family
from bench.sinks import BUCKET
from lakewriter.aws import Clients
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.run.load import run
from lakewriter.source.session import open_spark_session
from tests.support.open_catalog import CLIENT_ID, CLIENT_SECRET, OpenCatalog
from tests.support.server import StrictAws

FILES = 8


NAMES: Final = {
    "Lakewriter": "ours", "DuckDB's MERGE": "duckdb", "Spark's MERGE": "spark", "PyIceberg's upsert": "pyiceberg",
}  # fmt: skip


class Taken(NamedTuple):
    """What a merge took: seconds by the clock, and seconds of CPU."""

    seconds: float
    cpu: float


class Transactions(OpenCatalog):
    """A catalog that takes a transaction of one table, which is how DuckDB commits."""

    def _routed(self, request: Request, path: list[str]) -> Response:
        if path != ["transactions", "commit"]:
            return super()._routed(request, path)
        (change,) = json.loads(request.get_data())["table-changes"]
        named = change["identifier"]
        given = Request.from_values(data=json.dumps(change), content_type="application/json", method="POST")
        (namespace,) = named["namespace"]
        self._commit(namespace, named["name"], given)
        return Response(status=204)


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
    with StrictAws() as aws, Transactions(aws, BUCKET) as catalog:
        _point_at(aws)
        name, secret = catalog.secret
        names = [name for name in os.environ if name.startswith("AWS_")]
        environment = {name: os.environ[name] for name in names} | {name: secret}
        given = {"bucket": aws.url, "options": catalog.make_options(), "settings": catalog.make_settings()}
        print(json.dumps(given | {"environment": environment}), flush=True)  # noqa: T201
        sys.stdin.read()


def _parse_arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=1_000_000, help="of the table")
    arguments.add_argument("--share", type=float, default=0.1, help="of keys that are merged, half of them new")
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--jars", default="", help="Iceberg's runtime for Spark and its AWS bundle, by commas")
    arguments.add_argument("--without-upsert", action="store_true", help="leave PyIceberg out, which takes minutes")
    arguments.add_argument("--serve", action="store_true", help="serve the bucket and the catalog")
    return arguments.parse_args()


def main() -> None:
    """Print a Markdown table of medians and ratios."""
    given = _parse_arguments()
    if given.serve:
        _serve()
        return
    folder = Path(tempfile.mkdtemp(prefix="lakewriter-bench-"))
    if given.jars:
        extension = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        os.environ["PYSPARK_SUBMIT_ARGS"] = (
            f"--jars {given.jars} --conf spark.sql.extensions={extension} --driver-memory 4g pyspark-shell"
        )
    servers = Servers()
    try:
        bench = _Bench(servers, open_spark_session("bench"), folder, given.rows, given.share)
        cases: dict[str, Callable[[int], None]] = {"Lakewriter": bench.load, "DuckDB's MERGE": bench.merge_with_duckdb}
        if given.jars:
            cases["Spark's MERGE"] = bench.merge_with_spark
        if not given.without_upsert:
            cases["PyIceberg's upsert"] = bench.upsert
        bench.make_tables(cases)
        taken = bench.measure(cases, given.rounds)
    finally:
        servers.close()
    _print_table(taken, given)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nThis process had {peak:.0f} MiB at most.")  # noqa: T201
    shutil.rmtree(folder, ignore_errors=True)


def _print_table(taken: dict[str, list[Taken]], given: argparse.Namespace) -> None:
    base = _find_middle(taken["Lakewriter"])
    print(f"{given.rows:,} rows in {FILES} files, {given.share:.0%} of keys, {os.cpu_count()} cores\n")  # noqa: T201
    print("| way | first | seconds | time | CPU seconds | CPU |\n|---|---|---|---|---|---|")  # noqa: T201
    for name, rounds in taken.items():
        middle = _find_middle(rounds)
        print(  # noqa: T201
            f"| {name} | {rounds[0].seconds:.1f} | {middle.seconds:.1f} | {middle.seconds / base.seconds:.1f} | "
            f"{middle.cpu:.2f} | {middle.cpu / base.cpu:.2f} |"
        )


def _find_middle(rounds: list[Taken]) -> Taken:
    """Return the medians of the rounds behind the first one."""
    return Taken(*(statistics.median(column) for column in zip(*(rounds[1:] or rounds), strict=True)))


class _Bench:
    """The tables and what is merged into them; ``at`` grows from round to round."""

    def __init__(self, servers: Servers, spark: SparkSession, folder: Path, rows: int, share: float) -> None:
        self.servers, self.spark, self.folder, self.rows = servers, spark, folder, rows
        self.duckdb: duckdb.DuckDBPyConnection | None = None
        self.clients: Clients | None = None
        self.merged = int(rows * share)
        self.keys = set[int](range(rows))

    def make_tables(self, cases: dict[str, Any]) -> None:
        """Make a table for each way; ours by its first load."""
        per_file = self.rows // FILES
        (self.folder / "source").mkdir()
        for number in range(FILES):
            rows = self._make_rows(np.arange(number * per_file, (number + 1) * per_file), 0)
            pq.write_table(rows, self.folder / "source" / f"{number}.parquet")
        self.rows = per_file * FILES
        self.load(0)
        catalog = self._open_catalog()
        schema = pq.read_schema(self.folder / "source" / "0.parquet")
        for case in cases.keys() - {"Lakewriter"}:
            table = catalog.create_table((DATABASE, NAMES[case]), schema, f"s3://{BUCKET}/{DATABASE}/{NAMES[case]}")
            for file in sorted((self.folder / "source").iterdir()):
                table.append(pq.read_table(file))

    def _open_catalog(self) -> Catalog:
        stores = {"s3.endpoint": self.servers.bucket, "s3.region": "us-east-1", "client.region": "us-east-1"}
        return load_catalog("own", **self.servers.options, **stores)

    def _make_rows(self, ids: Any, at: int) -> pa.Table:
        return pa.table(
            {
                "id": pa.array(ids, pa.int64()),
                "at": pa.array(np.full(len(ids), at), pa.int64()),
                "name": pa.array([f"name-{number}" for number in ids]),
                "x": pa.array(ids * 0.5),
            }
        )

    def give(self, number: int) -> None:
        """Write what the round merges: keys all over the table, and as many new ones."""
        half = self.merged // 2
        old = np.random.default_rng(number).choice(self.rows, half, replace=False)
        first = self.rows + (number - 1) * half
        shutil.rmtree(self.folder / "source")
        (self.folder / "source").mkdir()
        rows = self._make_rows(np.concatenate([np.sort(old), np.arange(first, first + half)]), number)
        pq.write_table(rows, self.folder / "source" / "0.parquet")

    def load(self, _: int) -> None:
        """Load by the product."""
        content = {
            "pipeline": "bench",
            "destination": {
                "type": "lakewriter-s3", "location": f"s3://{BUCKET}/ours", "region": "us-east-1",
                "database": DATABASE, **self.servers.settings,
            },
            "tables": [
                {
                    "table": "ours", "read": {"format": "parquet", "path": str(self.folder / "source")},
                    "mode": "merge", "primary_key": ["id"], "order_by": ["at"],
                }
            ],
        }  # fmt: skip
        file = self.folder / "lake.yaml"
        file.write_text(yaml.safe_dump(content), "utf-8")
        spec = load_spec(file)
        self.clients = self.clients or Clients(spec.access)
        report = run(spec, job_id=str(uuid.uuid4()), clients=self.clients, spark=lambda: self.spark)
        if report.status != "done":
            raise SystemExit(report.tables[0].message)

    def merge_with_duckdb(self, _: int) -> None:
        """Merge on read, in this process and as many threads as there are cores."""
        if self.duckdb is None:
            self.duckdb = self._attach()
        source = f"read_parquet('{self.folder}/source/*.parquet')"
        self.duckdb.execute(
            f"MERGE INTO lake.{DATABASE}.duckdb t USING {source} s ON t.id = s.id "
            'WHEN MATCHED AND s."at" > t."at" THEN UPDATE WHEN NOT MATCHED THEN INSERT'
        )

    def _attach(self) -> duckdb.DuckDBPyConnection:
        connection, options = duckdb.connect(config={"allow_unsigned_extensions": "true"}), self.servers.options
        for name in ("httpfs", "avro", "iceberg"):
            package = importlib.util.find_spec(f"duckdb_extension_{name}")
            assert package is not None
            assert package.origin is not None
            (file,) = Path(package.origin).parent.rglob(f"v{duckdb.__version__}/{name}.duckdb_extension")
            connection.load_extension(str(file))
        connection.execute(
            "CREATE SECRET (TYPE s3, KEY_ID 'bench', SECRET 'bench', REGION 'us-east-1', URL_STYLE 'path', "
            f"USE_SSL false, ENDPOINT '{self.servers.bucket.removeprefix('http://')}')"
        )
        form = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "scope": options["scope"]}
        with urlopen(options["oauth2-server-uri"], urlencode(form).encode()) as answer:
            token = json.load(answer)["access_token"]
        connection.execute(f"CREATE SECRET lake (TYPE iceberg, TOKEN '{token}')")
        connection.execute(
            f"ATTACH '{options['warehouse']}' AS lake (TYPE iceberg, ENDPOINT '{options['uri']}', SECRET lake, "
            "ACCESS_DELEGATION_MODE 'none')"
        )
        return connection

    def merge_with_spark(self, _: int) -> None:
        """Merge on read, as Iceberg's own runtime does it."""
        options = self.servers.options
        for key, value in {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "rest",
            ".uri": options["uri"],
            ".warehouse": options["warehouse"],
            ".credential": options["credential"],
            ".scope": options["scope"],
            ".oauth2-server-uri": options["oauth2-server-uri"],
            ".io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            ".s3.endpoint": self.servers.bucket,
            ".s3.path-style-access": "true",
            ".client.region": "us-east-1",
        }.items():
            self.spark.conf.set(f"spark.sql.catalog.rest{key}", value)
        self.spark.read.parquet(str(self.folder / "source")).createOrReplaceTempView("changes")
        self.spark.sql(f"ALTER TABLE rest.{DATABASE}.spark SET TBLPROPERTIES ('write.merge.mode'='merge-on-read')")
        self.spark.sql(
            f"MERGE INTO rest.{DATABASE}.spark t USING changes s ON t.id = s.id "
            "WHEN MATCHED AND s.at > t.at THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def upsert(self, _: int) -> None:
        """Merge by PyIceberg, which compares all columns instead of an order."""
        table = self._open_catalog().load_table((DATABASE, "pyiceberg"))
        table.upsert(pq.read_table(self.folder / "source"), join_cols=["id"])

    def measure(self, cases: dict[str, Callable[[int], None]], rounds: int) -> dict[str, list[Taken]]:
        """Measure in turns; the first round is a session's first merge of each way."""
        taken: dict[str, list[Taken]] = {name: [] for name in cases}
        for number in range(1, rounds + 2):
            self.give(number)
            for name, case in cases.items():
                clock, cpu = time.monotonic(), self.servers.measure_others()
                case(number)
                taken[name].append(Taken(time.monotonic() - clock, self.servers.measure_others() - cpu))
            seen = {name: self._sum(NAMES[name]) for name in cases}
            if len(set(seen.values())) != 1:
                raise SystemExit(f"round {number}: the tables differ: {seen}")
        return taken

    def _sum(self, name: str) -> tuple[int, int, int]:
        """Rows of a table, and the sums of its keys and orders."""
        rows = self._open_catalog().load_table((DATABASE, name)).scan(selected_fields=("id", "at")).to_arrow()
        return len(rows), pc.sum(rows["id"]).as_py(), pc.sum(rows["at"]).as_py()


if __name__ == "__main__":
    main()
