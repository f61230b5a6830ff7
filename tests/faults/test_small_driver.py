"""A load of thousands of files, by a driver of 1 GB, on executors that die while copies of their tasks run."""

import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from tests.faults.cluster import SPECULATION, make_environment, make_java
from tests.faults.driver_memory import MIB, DriverMemory
from tests.faults.gate import Fault, Weather
from tests.faults.process import Process
from tests.faults.wide import Size, WidePipeline
from tests.iceberg.tables import IcebergLake
from tests.load.lakes import completes, uploads_part, writes
from tests.support import sessions
from tests.support.call import Call

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3600)]

HEAP: Final = 1024 * MIB
OVERHEAD: Final = 384 * MIB
"""What Spark asks for beside a heap of 1 GB (``spark.driver.memoryOverhead``), for Java's own and for Python."""
FILES: Final = int(os.environ.get("LAKEWRITER_CLUSTER_FILES", "8000"))
"""By default as many as have more receipts than all tasks together return, so that tasks put theirs into parts."""
SLOW_FILES, SLOW_SECONDS = 12, 5
ONE_FILE_A_TASK: Final = {
    "spark.sql.files.maxPartitionBytes": "1m",
    "spark.sql.files.openCostInBytes": "1m",
    "spark.sql.shuffle.partitions": "4",
}
"""Of the source. Rows are counted by few tasks."""


class Deaths:
    """Kills executors and Python workers of a load by turns; ``executors`` and ``workers`` count them."""

    def __init__(self, process: Process) -> None:
        self.executors = self.workers = 0
        self._process = process

    def kill_executor(self) -> None:
        """One that lives, alone: its Python is left behind, as by Linux where memory is short."""
        self._kill_executors(self._process.executors()[:1])

    def kill_machine(self) -> None:
        """An executor with all it has started, as when a machine is gone."""
        newest = self._process.executors()[-1:]
        self._kill_executors(newest, [pid for executor in newest for pid in self._process.executor_processes(executor)])

    def kill_all_machines(self) -> None:
        """Every executor with all it has started."""
        executors = self._process.executors()
        self._kill_executors(executors, self._process.workers())

    def kill_worker(self) -> None:
        """One process that runs a task."""
        for pid in self._process.workers()[:1]:
            sessions.send(pid, signal.SIGKILL)
            self.workers += 1

    def _kill_executors(self, executors: list[int], others: list[int] | None = None) -> None:
        for pid in [*executors, *(others or ())]:
            sessions.send(pid, signal.SIGKILL)
        self.executors += len(executors)


class SlowEnd:
    """Each of the wide table's last files stalls once: the last tasks take longer than those before, and when nothing
    else is left to run, Spark runs copies of them."""

    def __init__(self, files: int) -> None:
        self._files, self._first, self._seen = files, files - SLOW_FILES, set[str]()

    def __call__(self, call: Call) -> Fault | None:
        """What befalls the call."""
        if not uploads_part(call) or "/wide/" not in call.key or call.key in self._seen:
            return None
        self._seen.add(call.key)
        # A stalled call is not applied: the last file's is the moment of a kill.
        return Fault.STALL if self._first < len(self._seen) < self._files else None


def plan_deaths(process: Process, size: Size) -> Deaths:
    """While tasks stage, when a task has just put its receipts into parts, after the last file, and while the driver
    completes."""
    deaths, gate, files = Deaths(process), process.gate, size.files
    # First, since a call that is another moment's goes no further.
    gate.at(LastFile(files), deaths.kill_all_machines, applied=True)
    for seventh, kill in enumerate([deaths.kill_executor, deaths.kill_worker, deaths.kill_machine] * 2, 1):
        gate.at(uploads_part, kill, after=files * seventh // 7, applied=True)
    gate.at(writes(".jsonl.gz"), deaths.kill_all_machines, after=size.tasks // 4, applied=True)
    gate.at(completes, deaths.kill_machine, after=files // 2)
    return deaths


class LastFile:
    """Matches the part that is the first of the wide table's last file."""

    def __init__(self, files: int) -> None:
        self._files, self._seen = files, set[str]()

    def __call__(self, call: Call) -> bool:
        """Whether it is this call."""
        if not uploads_part(call) or "/wide/" not in call.key:
            return False
        self._seen.add(call.key)
        return len(self._seen) == self._files


def read_events(folder: Path) -> Counter[str]:
    """What Spark's own log says: executors that were lost, tasks that failed, and copies of tasks."""
    counted: Counter[str] = Counter()
    for file in folder.iterdir():
        for line in file.read_text("utf-8").splitlines():
            event: dict[str, Any] = json.loads(line)
            kind, info = event["Event"], event.get("Task Info", {})
            counted["executors lost"] += kind == "SparkListenerExecutorRemoved"
            counted["tasks started"] += kind == "SparkListenerTaskStart"
            counted["speculative tasks"] += kind == "SparkListenerTaskStart" and info["Speculative"]
            counted["tasks failed"] += kind == "SparkListenerTaskEnd" and info["Failed"]
    return counted


@pytest.mark.exhaustive
def test_more_deaths_than_spark_takes_then_the_same_job_again(tmp_path, aws, bucket, spark):
    """The table's rows are shuffled, and with an executor those are lost that it has shuffled."""
    lake = IcebergLake(tmp_path, aws, spark)
    pipeline = WidePipeline(lake, Size(tasks=10, files=40, shuffled=0))
    environment: dict[str, Any] = {**make_environment(make_java(tmp_path), **ONE_FILE_A_TASK)}
    with Process(lake.file, "a", aws.url, **environment) as process:
        deaths = Deaths(process)
        for third in range(0, 60, 3):
            process.gate.at(uploads_part, deaths.kill_all_machines, after=third, applied=True)
        assert process.wait() == 75, process.errors
    assert "WORKER_DIED: " in process.errors
    assert lake.load("a").status == "done"
    pipeline.audit("a")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("size", "executors"),
    [
        pytest.param(Size(tasks=10, files=40, shuffled=1), 2, id="40 files"),
        pytest.param(Size(tasks=40, files=FILES, shuffled=3), 4, id="thousands of files"),
    ],
)
def test_executors_that_die_under_a_small_driver(tmp_path, aws, bucket, spark, size, executors, record_property):
    lake = IcebergLake(tmp_path, aws, spark)
    pipeline = WidePipeline(lake, size)
    (tmp_path / "events").mkdir()
    settings = (
        SPECULATION
        | {
            # What an operator of machines that come and go sets: Spark gives up a stage whose shuffled rows are lost at
            # the fourth time in a row, and a task that has died four times.
            "spark.stage.maxConsecutiveAttempts": "20",
            "spark.task.maxFailures": "20",
            "spark.driver.memory": "1g",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": (tmp_path / "events").as_uri(),
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.compress": "false",
        }
        | ONE_FILE_A_TASK
    )
    environment = make_environment(make_java(tmp_path), master=f"local-cluster[{executors},1,1024]", **settings)
    slow: Weather = SlowEnd(size.files)
    process = Process(lake.file, "a", aws.url, weather=slow, stall_seconds=SLOW_SECONDS, **environment)
    with process, DriverMemory(process) as memory:
        deaths = plan_deaths(process, size)
        assert process.wait(3000) == 0, process.errors
    events = read_events(tmp_path / "events")
    pipeline.audit("a")
    spilled = sum(writes(".jsonl.gz")(call) for call in process.gate.calls)
    figures = dict(events) | {
        "files": size.files,
        "executors killed": deaths.executors,
        "workers killed": deaths.workers,
        "parts of receipts": spilled,
    }
    for name, value in figures.items():
        record_property(name, value)
    record_property("MiB of the driver", memory.peaks.in_mib())
    print(f"figures: {json.dumps(figures | memory.peaks.in_mib())}")
    assert spilled >= (size.tasks // 4 if size.files >= 8_000 else 0)
    assert "-Xmx1g" in memory.peaks.options
    assert memory.peaks.together < HEAP + OVERHEAD, memory.peaks
    assert deaths.executors >= executors
    assert deaths.workers
    # Those that die while the driver completes may not be missed before it ends.
    assert events["executors lost"] >= deaths.executors - executors
    assert events["speculative tasks"]
