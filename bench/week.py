"""A week of a continuous run that merges a batch a minute onto a table with millions of deleted keys, and keeps it up.

Everything is the product's own (loads, intents, merges, states, upkeep) but Spark, which would plan the batches: their
rows are made here. A clock of the benchmark's own goes on by a minute a batch. Bucket and catalog are served by a
process of their own; ``--java`` takes the REST catalog of the Iceberg project's own tests.

LAKEWRITER_INTEROP=1 PYTHONPATH=job:. python -m bench.week --batches 10080 --keys 5000000 --java
"""

import argparse
import contextlib
import datetime as datetime_module
import importlib
import io
import json
import os
import pkgutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg.table.metadata
import pyiceberg.table.snapshots
import pyiceberg.table.update
import requests
import yaml

import lakewriter
from bench.iceberg import _point_at
from bench.sinks import BUCKET
from lakewriter.avro.container import read_header, read_long
from lakewriter.aws import Clients
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.naming import DELETED
from lakewriter.operate.upkeep import BETWEEN_BATCHES
from lakewriter.run import continuous_table
from lakewriter.run.continuous_table import TableRun
from lakewriter.source.request import Feed, RowsRequest
from lakewriter.source.stream_checkpoint import BatchPlan
from lakewriter.spec.specification import Spec
from tests.faults.test_soak import measure_memory
from tests.support import s3_rules
from tests.support.call import Answer, Call
from tests.support.local_tasks import local_session
from tests.support.open_catalog import OpenCatalog
from tests.support.server import StrictAws

DAY: Final = 1440
CONTROL: Final = "_lakewriter/"
COLUMNS: Final = {
    "seconds": ("seconds", 1, 2),
    "cpu": ("CPU seconds", 1, 2),
    "bucket reads": ("bucket: reads", 1, 0),
    "bucket writes": ("writes", 1, 0),
    "bucket lists": ("lists", 1, 0),
    "bucket deletes": ("deletes", 1, 0),
    "catalog": ("catalog: requests", 1, 0),
    "bytes read": ("KiB read", 1024, 0),
    "bytes written": ("KiB written", 1024, 0),
    "catalog bytes": ("KiB from the catalog", 1024, 0),
    "total-data-files": ("data files", 1, 0),
    "total-delete-files": ("delete files", 1, 0),
    "manifests": ("manifests", 1, 0),
    "manifest list": ("KiB of manifest list", 1024, 1),
    "snapshots": ("snapshots", 1, 0),
    "properties": ("table properties", 1, 0),
    "metadata": ("KiB of metadata", 1024, 0),
    "control": ("control objects", 1, 0),
    "objects": ("objects in all", 1, 0),
    "driver": ("driver, MiB", 2**20, 0),
    "jvm": ("JVM, MiB", 2**20, 0),
}
"""What is measured of a batch: its heading, unit and digits."""


class Clock:
    """Now, of every module of the product and of PyIceberg: ``ahead`` seconds after it is. It begins in the past: the
    catalog, whose clock is another, refuses what comes from the future."""

    ahead: float = 0.0

    @classmethod
    def read(cls) -> float:
        """Return the seconds since 1970."""
        return time.time() + cls.ahead

    @classmethod
    def monotonic(cls) -> float:
        """Return seconds from any beginning, above 0: those since the machine's start may be fewer than a week."""
        return cls.read()


class _Moment(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, datetime)


class AheadDatetime(datetime, metaclass=_Moment):
    """``now`` is the clock's."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        """See ``datetime``."""
        moment = datetime.fromtimestamp(Clock.read(), UTC)
        return moment.astimezone(tz) if tz is not None else moment.astimezone().replace(tzinfo=None)


class _Instead:
    """A module with some names of its own."""

    def __init__(self, module: Any, **names: Any) -> None:
        self.__dict__.update(names)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _set_clock() -> None:
    """Let the product read ``Clock``."""
    for found in pkgutil.walk_packages(lakewriter.__path__, "lakewriter."):
        if not found.name.endswith("__main__") and ".entry" not in found.name:
            importlib.import_module(found.name)
    for name, module in list(sys.modules.items()):
        if name.startswith("lakewriter.") and vars(module).get("datetime") is datetime:
            vars(module)["datetime"] = AheadDatetime
    vars(continuous_table)["time"] = _Instead(time, monotonic=Clock.monotonic, time=Clock.read)
    vars(pyiceberg.table.update)["datetime"] = AheadDatetime
    vars(pyiceberg.table.metadata)["datetime"] = _Instead(datetime_module, datetime=AheadDatetime)
    vars(pyiceberg.table.snapshots)["time"] = _Instead(time, time=Clock.read)


class Counts:
    """What the bucket was asked since it was last told of, and what lies in it."""

    def __init__(self, aws: StrictAws) -> None:
        self._aws = aws
        self.made, self._metadata = Counter[str](), ""
        aws.observers.append(self._note)

    def _note(self, call: Call, answer: Answer) -> None:
        # The lists of calls, which tests look at, would grow for a week.
        self._aws.history.clear()
        self._aws.calls.clear()
        if "java" in call.headers.get("user-agent", "").lower():
            # The catalog's own.
            self.made["by the catalog"] += 1
        elif call.action.endswith(("ListBucket", "ListBucketMultipartUploads")):
            self.made["bucket lists"] += 1
        elif "Delete" in call.action:
            self.made["bucket deletes"] += 1
        else:
            self.made["bucket reads" if call.method in ("GET", "HEAD") else "bucket writes"] += 1
            self.made["bytes read"] += len(answer.body) if call.method == "GET" else 0
            self.made["bytes written"] += len(call.body)
        if (
            (found := s3_rules.moto_bucket(BUCKET)) is not None
            and call.method in ("PUT", "POST")
            and call.key in found.keys
        ):
            object.__setattr__(found.keys[call.key], "last_modified", self._aws.now())
        if call.method == "PUT" and call.key.endswith(".metadata.json"):
            self._metadata = call.key

    def take(self) -> dict[str, float]:
        """Return the figures since the last time."""
        taken: dict[str, float] = dict(self.made)
        self.made.clear()
        if self._metadata:
            metadata = self._read(self._metadata)
            table = json.loads(metadata)
            snapshots = {one["snapshot-id"]: one for one in table.get("snapshots", ())}
            current = snapshots.get(table.get("current-snapshot-id"))
            taken |= {"metadata": len(metadata), "snapshots": len(snapshots)}
            taken["properties"] = len(table["properties"])
            if current is not None:
                taken |= {name: float(n) for name, n in current["summary"].items() if name.startswith("total-")}
                key = current["manifest-list"].partition(f"//{BUCKET}/")[2]
                body = self._read(key)
                taken |= {"manifest list": len(body), "manifests": _count_records(body)}
        return taken | self._count_objects()

    def _read(self, key: str) -> bytes:
        body: bytes = self._aws.client("s3").get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return body

    def _count_objects(self) -> dict[str, float]:
        found = s3_rules.moto_bucket(BUCKET)
        keys = list(found.keys) if found else []
        return {"objects": len(keys), "control": sum(CONTROL in key for key in keys)}


def _count_records(body: bytes) -> int:
    """Return the records of an Avro file, by the heads of its blocks."""
    file, records = io.BytesIO(body), 0
    read_header(file)
    while file.tell() < len(body):
        records += read_long(file)
        # A block ends with a mark of 16 bytes.
        file.seek(read_long(file) + 16, io.SEEK_CUR)
    return records


def _serve(*, java: bool) -> None:
    """Serve until standard input ends; each line there is the time, and is answered with the figures."""
    with contextlib.ExitStack() as stack:
        aws = stack.enter_context(StrictAws())
        _point_at(aws)
        if java:
            from tests.interop.test_rest_fixture import serve_fixture

            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lakewriter-bench-")))
            catalog: OpenCatalog = stack.enter_context(serve_fixture(aws, BUCKET, folder))
        else:
            catalog = stack.enter_context(OpenCatalog(aws, BUCKET))
        counts, (name, secret) = Counts(aws), catalog.secret
        environment = {name: os.environ[name] for name in os.environ if name.startswith("AWS_")} | {name: secret}
        print(json.dumps({"settings": catalog.make_settings(), "environment": environment}), flush=True)  # noqa: T201
        for line in sys.stdin:
            aws.clock = lambda ahead=float(line): datetime.now(UTC) + timedelta(seconds=ahead)  # type: ignore[misc]
            print(json.dumps(counts.take()), flush=True)  # noqa: T201


class Servers:
    """The bucket and the catalog, in a process of their own."""

    def __init__(self, *, java: bool) -> None:
        command = [sys.executable, "-m", "bench.week", "--serve", *(["--java"] if java else [])]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        given = self._read()
        self.settings: dict[str, Any] = given["settings"]
        os.environ.update(given["environment"])

    def _read(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def go_on(self) -> dict[str, float]:
        """Set their clock, and return what they were asked since the last time."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{Clock.ahead}\n")
        self._process.stdin.flush()
        answer: dict[str, float] = self._read()
        return answer

    def close(self) -> None:
        """End them."""
        self._process.communicate("")


class Rows(Feed):
    """The rows of a batch, in one task."""

    kind = "rows"
    reason = "the benchmark has made them"
    partitions = 1
    is_in_order = True

    def __init__(self, rows: pa.Table) -> None:
        self.schema, self._rows = rows.schema, rows

    def run(self, body: Any) -> list[str]:
        """See ``Feed``."""
        return list(body(0, iter(self._rows.to_batches())))


class Minutes:
    """In place of the stream of Spark: rows of random keys, as many new ones as are deleted."""

    def __init__(self, keys: int, live: int, rows: int) -> None:
        self.keys, self._live, self._rows = keys, live, rows
        self._rng = np.random.default_rng(1)
        self._there = np.empty(0, np.int64)

    def read_plan(self, number: int) -> BatchPlan:
        """See ``TableStream``."""
        return BatchPlan(number, str(number).encode())

    def take_notes(self) -> list[str]:
        """See ``TableStream``."""
        return []

    def open_feed(self, _frame: Any, plan: BatchPlan, _request: RowsRequest, *, least: int) -> Feed:
        """See ``TableStream``."""
        del least
        return Rows(self.make(plan.number))

    def make(self, number: int) -> pa.Table:
        """Return the rows of a batch: the first one has the deleted keys, the second one the table's rows."""
        rng, quarter = self._rng, self._rows // 4
        if number == 0:
            return _make_rows(number, rng.integers(0, 2**62, self.keys), self.keys)
        if number == 1:
            self._there = rng.integers(0, 2**62, self._live)
            return _make_rows(number, self._there, 0)
        rng.shuffle(self._there)
        new = rng.integers(0, 2**62, quarter)
        gone, changed = self._there[:quarter], self._there[quarter : 3 * quarter]
        self._there = np.concatenate([self._there[quarter:], new])
        return _make_rows(number, np.concatenate([gone, changed, new]), quarter)


def _make_rows(at: int, ids: Any, gone: int) -> pa.Table:
    columns = {"id": ids, "at": np.full(len(ids), at), "v": np.full(len(ids), f"v{at}")}
    return pa.table(columns | {DELETED: np.arange(len(ids)) < gone})


class Watcher:
    """Notes what a batch says of itself."""

    def __init__(self) -> None:
        self.notes, self.batches = list[str](), list[Any]()

    def step(self, _table: Any, step: str, detail: str) -> None:
        """See ``Watch``."""
        if step in ("compacted", "expired", "note"):
            self.notes.append(step if step != "note" else f"{step}: {detail}")

    def batch(self, _table: Any, metrics: Any) -> None:
        """See ``Watch``."""
        self.batches.append(metrics)

    def minute(self, _metrics: Any) -> None:
        """See ``Watch``."""


def _write_spec(servers: Servers, folder: Path, **maintenance: Any) -> Spec:
    location = {"location": f"s3://{BUCKET}/lake", "region": "us-east-1"}
    columns, options = "id BIGINT, at BIGINT, v STRING, gone BOOLEAN", {"maxFilesPerTrigger": "1"}
    entry = {
        "table": "t", "schema": "public", "mode": "merge", "primary_key": ["id"], "order_by": ["at"], "deleted": "gone",
        "read": {"format": "parquet", "path": str(folder / "in"), "columns": columns, "options": options},
        "deleted_for": "30 days",
    }  # fmt: skip
    content = {
        "pipeline": "week",
        "destination": {"type": "lakewriter-s3", "tracking": ["deleted"]} | location | servers.settings,
        "tables": [entry],
        "checkpoint": str(folder / "checkpoint"),
        "interval_seconds": 1,
        "maintenance": {"by": "run", "compact": True, "expire_snapshots_days": 1} | maintenance,
    }
    (folder / "lake.yaml").write_text(yaml.safe_dump(content), "utf-8")
    return load_spec(folder / "lake.yaml")


def _open_run(spec: Spec, minutes: Minutes, watch: Watcher, days: float) -> TableRun:
    """Return the run of the one table, its query begun; snapshots are kept for so many days."""
    assert spec.maintenance is not None
    maintenance = spec.maintenance.model_copy(update={"expire_snapshots_days": days})
    spec = spec.model_copy(update={"maintenance": maintenance})
    clients, stop = Clients(spec.access), threading.Event()
    run = TableRun(spec, spec.tables[0], clients, local_session, watch, stop, BETWEEN_BATCHES)
    run._stream = cast(Any, minutes)
    run._started.set()
    run.status = run.status.model_copy(update={"query": "q1"})
    return run


def run_spark(servers: Servers, folder: Path, minutes: Minutes, batches: int) -> Iterator[dict[str, float]]:
    """Run batches by a continuous run of the command, a file each, kept up every two minutes; yield their figures."""
    _write_spec(servers, folder, every="2 minutes")
    (folder / "in").mkdir()
    for number in range(batches):
        rows = minutes.make(number)
        file = folder / "in" / f"{number:06}.parquet"
        pq.write_table(rows.rename_columns([*rows.column_names[:-1], "gone"]), file)
        os.utime(file, (number, number))
    command = [sys.executable, "-m", "lakewriter", "run", str(folder / "lake.yaml"), "--continuous", "--json"]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        done = 0
        for line in process.stderr:
            told = json.loads(line) if line.startswith(b"{") else {}
            if told.get("step") in ("compacted", "expired", "note", "failed", "restarting"):
                print(told["step"], told.get("detail", ""), file=sys.stderr, flush=True)  # noqa: T201
            if told.get("step") == "batch" and told["status"] == "done":
                done += 1
                yield {"seconds": told["seconds"]} | servers.go_on() | measure_memory(process.pid)
            if done == batches:
                break
        process.terminate()
        process.communicate()


class Week:
    """Batches and their figures."""

    def __init__(self, servers: Servers, run: TableRun) -> None:
        self.servers, self.run = servers, run
        self._asked = Counter[str]()
        send = requests.Session.send

        def counted(session: Any, request: Any, **options: Any) -> Any:
            answer = send(session, request, **options)
            self._asked.update({"catalog": 1, "catalog bytes": len(answer.content)})
            return answer

        requests.Session.send = counted  # type: ignore[assignment,method-assign]

    def go(self, batches: int) -> Iterator[dict[str, float]]:
        """Run batches, a minute apart, each with its figures."""
        self.servers.go_on()
        for number in range(batches):
            began, cpu = time.monotonic(), time.process_time()
            self._asked.clear()
            self.run._run_batch(cast(Any, None), number)
            taken: dict[str, float] = {"seconds": time.monotonic() - began, "cpu": time.process_time() - cpu}
            Clock.ahead += max(60 - taken["seconds"], 0)
            taken |= dict(self._asked) | self.servers.go_on()
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            taken["driver"] = pages * os.sysconf("SC_PAGE_SIZE")
            yield taken


def print_table(figures: Sequence[dict[str, float]], a_day: int) -> None:
    """Print medians and maxima by day, and what the last whole day has of the second one."""
    days = [figures[first : first + a_day] for first in range(0, len(figures), a_day)]
    days = [day for day in days if len(day) == a_day]
    last = [f"day {number}" for number in range(1, len(days) + 1)]
    print(f"| a batch | {' | '.join(last)} | last ÷ second |\n|---|{'---|' * (len(days) + 1)}")  # noqa: T201
    for name, (heading, unit, digits) in COLUMNS.items():
        if not any(name in one for one in figures):
            continue
        values = [[one.get(name, 0.0) / unit for one in day] for day in days]
        cells = [f"{statistics.median(day):,.{digits}f}, {max(day):,.{digits}f}" for day in values]
        ratio = "" if len(days) < 3 else _divide(statistics.mean(values[-1]), statistics.mean(values[1]))
        print(f"| {heading} | {' | '.join(cells)} | {ratio} |")  # noqa: T201


def _divide(last: float, second: float) -> str:
    return f"{last / second:.2f}" if second else "" if not last else "from none"


def _parse_arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--batches", type=int, default=10_080)
    arguments.add_argument("--day", type=int, default=DAY, help="batches of a day in the table")
    arguments.add_argument("--days", type=float, default=1, help="that snapshots are kept")
    arguments.add_argument("--keys", type=int, default=5_000_000, help="that are deleted before the first batch")
    arguments.add_argument("--live", type=int, default=100_000, help="rows of the table")
    arguments.add_argument("--rows", type=int, default=200, help="of a batch, a quarter of which delete")
    arguments.add_argument("--java", action="store_true", help="the REST catalog of Iceberg's own tests")
    arguments.add_argument("--spark", action="store_true", help="batches of a run of the command, by the real clock")
    arguments.add_argument("--serve", action="store_true", help="serve the bucket and the catalog")
    arguments.add_argument("--out", type=Path, help="a file for the figures of each batch, a line of JSON each")
    return arguments.parse_args()


def main() -> None:
    """Print a Markdown table by day."""
    given = _parse_arguments()
    if given.serve:
        _serve(java=given.java)
        return
    servers, watch, figures = Servers(java=given.java), Watcher(), list[dict[str, float]]()
    minutes = Minutes(given.keys, given.live, given.rows)
    try:
        with tempfile.TemporaryDirectory(prefix="lakewriter-bench-") as name, contextlib.ExitStack() as stack:
            folder, out = Path(name), stack.enter_context(given.out.open("w")) if given.out else None
            if given.spark:
                batches = run_spark(servers, folder, minutes, given.batches + 2)
            else:
                _set_clock()
                Clock.ahead = -60.0 * (given.batches + 10)
                run = _open_run(_write_spec(servers, folder, every="1 hour"), minutes, watch, given.days)
                batches = Week(servers, run).go(given.batches + 2)
            for taken in batches:
                figures.append(taken)
                if out is not None:
                    print(json.dumps(taken), file=out, flush=True)
    finally:
        servers.close()
    print_table(figures[2:], given.day)
    for note, times in Counter(watch.notes).most_common(20):
        print(f"{times} times {note}")  # noqa: T201


if __name__ == "__main__":
    main()
