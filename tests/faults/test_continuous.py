"""Continuous runs for as long as it takes: ten kills at random instants, and an hour's backlog in little memory."""

import json
import os
import random
import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from tests.load.lakes import BUCKET
from tests.load.materializations import DESTINATION, Materialization, binding, drained, logged
from tests.support import sessions

SEED = os.environ.get("LAKEWRITER_FAULTS_SEED", "1")
pytestmark = [pytest.mark.spark, pytest.mark.exhaustive, pytest.mark.timeout(3600)]

KILLS = 10
SECONDS = 60
INTERVAL = 5
PER_FILE = 10
SCHEMA = {"schema": {"properties": {"id": {"type": "integer"}, "text": {"type": "string"}}}}


@pytest.fixture
def wiki(tmp_path, aws, bucket, spark):
    lake = Materialization(tmp_path, aws, spark)
    (tmp_path / "in").mkdir()
    lake.write(binding("changes", "in", primary_key=["id"], collection=SCHEMA), checkpoint="checkpoint")
    content = yaml.safe_load(lake.file.read_text("utf-8"))
    content["destination"] = DESTINATION | {"uploadIntervalInSeconds": INTERVAL}
    lake.file.write_text(yaml.safe_dump(content), "utf-8")
    return lake


class Feeder(threading.Thread):
    """A file of documents every second, for a minute at least."""

    def __init__(self, lake: Materialization) -> None:
        super().__init__()
        self.lake, self.over, self.files = lake, threading.Event(), 0

    def run(self) -> None:
        began = time.monotonic()
        while not self.over.is_set() or time.monotonic() - began < SECONDS:
            first = self.files * PER_FILE
            self.lake.documents(f"in/{self.files:06d}.jsonl", [{"id": first + place} for place in range(PER_FILE)])
            self.files += 1
            time.sleep(1)


def killed_at_random(wiki: Materialization, rng: random.Random) -> None:
    """A run that is killed up to two intervals after it began to run, or after a batch of it, so often within one."""
    process = wiki.process()
    with drained(process):
        log = logged(process)
        assert next(log)["step"] == "running"
        if rng.random() < 0.7:
            assert next(log)["step"] == "batch"
        time.sleep(rng.uniform(0, 2 * INTERVAL))
        sessions.kill(process.pid)
        process.wait()


def test_ten_kills(wiki):
    rng, feeder = random.Random(f"{SEED}/continuous"), Feeder(wiki)
    seen: list[str] = []
    feeder.start()
    for number in range(KILLS):
        killed_at_random(wiki, rng)
        keys = sorted(wiki.data())
        assert keys[: len(seen)] == seen, "a counter went back"
        seen = keys
        print(f"kill {number}: {len(keys)} files, {len(wiki.aws.uploads(BUCKET))} uploads")
    feeder.over.set()
    feeder.join()
    last = wiki.process()
    wanted = list(range(feeder.files * PER_FILE))
    until(lambda: ids(wiki) == wanted)
    last.send_signal(signal.SIGTERM)
    out, err = last.communicate(timeout=300)
    assert (last.returncode, json.loads(out)["state"]) == (0, "stopped"), err
    assert ids(wiki) == wanted
    assert sorted(wiki.data())[: len(seen)] == seen
    assert not wiki.aws.uploads(BUCKET)
    controls = [key for key in wiki.aws.objects(BUCKET) if key.startswith("_lakewriter/")]
    print(f"{feeder.files} files in, {len(wiki.data())} files out, {len(controls)} control objects")


def test_two_copies_of_a_checkpoint(wiki):
    """Two machines with one checkpoint, at once and killed at random instants: one goes on, no row is there twice."""
    rng, feeder = random.Random(f"{SEED}/copies"), Feeder(wiki)
    feeder.start()
    killed_at_random(wiki, rng)
    shutil.copytree(wiki.folder / "checkpoint", wiki.folder / "other")
    text = wiki.file.read_text("utf-8")
    other = Materialization(wiki.folder, wiki.aws, wiki._spark)
    other.file = wiki.folder / "other.yaml"
    other.file.write_text(text.replace("checkpoint: checkpoint", "checkpoint: other"), "utf-8")
    lakes, ends = {"one": wiki, "other": other}, dict[str, str]()
    for _ in range(3):
        alive = {name: lake for name, lake in lakes.items() if name not in ends}
        with ThreadPoolExecutor(len(alive)) as pool:
            found = pool.map(lambda lake: killed_or_lost(lake, rng), alive.values())
            ends |= {name: code for name, code in zip(alive, found, strict=True) if code}
    feeder.over.set()
    feeder.join()
    alive = {name: lake for name, lake in lakes.items() if name not in ends}
    wanted = list(range(feeder.files * PER_FILE))
    runs = [lake.process() for lake in alive.values()]
    until(lambda: ids(wiki) == wanted)
    for run in runs:
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=300)
    assert ids(wiki) == wanted
    assert set(ends.values()) <= {"CHECKPOINT_LOST"}
    assert len(ends) <= 1, "no copy goes on"
    print(f"{feeder.files} files in, {len(wiki.data())} files out, ended: {ends}")


def killed_or_lost(lake: Materialization, rng: random.Random) -> str:
    """A run that is killed some intervals after its start, or ends by itself: then the code of why, otherwise blank."""
    process, code = lake.process(), ""
    timer = threading.Timer(20 + rng.uniform(0, 4 * INTERVAL), sessions.kill, [process.pid])
    timer.start()
    with drained(process):
        for line in logged(process):
            if line["step"] == "failed":
                code = str(line["detail"]).partition(":")[0]
        process.wait()
    timer.cancel()
    return code


def ids(wiki: Materialization) -> list[int]:
    return [row[0] for row in wiki.rows("SELECT id FROM t ORDER BY id", "changes")] if wiki.data() else []


def until(done, seconds: float = 600) -> None:
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        time.sleep(1)


def test_an_hours_backlog_in_little_memory(wiki):
    """3,600 files of 100 KB, 300 a batch: the processes hold as much at the end as after a third of them."""
    filler = "x" * 1000
    for number in range(3600):
        first = number * 100
        wiki.documents(f"in/{number:06d}.jsonl", [{"id": first + place, "text": filler} for place in range(100)])
    content = yaml.safe_load(wiki.file.read_text("utf-8"))
    content["tables"][0]["read"]["options"] = {"maxFilesPerTrigger": "300"}
    content["tables"][0]["collection"] = {
        "schema": {"properties": {"id": {"type": "integer"}, "text": {"type": "string"}}}
    }
    wiki.file.write_text(yaml.safe_dump(content), "utf-8")
    process = wiki.process()
    held = []
    with drained(process):
        for metrics in logged(process):
            if metrics["step"] == "batch":
                held.append(memory(process.pid))
                print(f"batch {metrics['batch']}: {metrics['rows']} rows, {held[-1] / 2**20:.0f} MiB held")
                assert metrics["rows"] == 30_000
            if metrics.get("batch") == 11:
                break
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
    assert len(held) == 12
    assert max(held[8:]) < 1.3 * max(held[2:5])


def memory(group: int) -> int:
    """Bytes that the processes of a group hold."""
    page, total = os.sysconf("SC_PAGE_SIZE"), 0
    for found in Path("/proc").glob("[0-9]*"):
        try:
            fields = (found / "stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                total += int((found / "statm").read_text().split()[1]) * page
        except (OSError, IndexError):
            continue
    return total
