"""A continuous run from a real Kafka broker: killed, and without its broker, and every message there exactly once."""

import json
import random
import signal
import time

import pytest

from tests.interop.brokers import CONNECTOR, broker, jars_of
from tests.load.lakes import BUCKET, completes
from tests.load.materializations import Materialization, binding, logged
from tests.support import sessions

pytestmark = pytest.mark.spark


@pytest.fixture
def kafka(tmp_path_factory):
    with broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture
def lake(tmp_path, aws, bucket, spark, kafka, monkeypatch):
    """A binding of the broker's topic."""
    jars = ",".join(map(str, jars_of("spark-kafka", CONNECTOR, transitive=False).glob("*.jar")))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {jars} pyspark-shell")
    options = {"kafka.bootstrap.servers": kafka.address, "subscribe": "changes", "startingOffsets": "earliest"}
    entry = binding("changes", "unused", collection={"schema": {"properties": {"id": {"type": "integer"}}}})
    entry |= {"read": {"format": "kafka", "options": options}, "primary_key": ["id"]}
    lake = Materialization(tmp_path, aws, spark)
    lake.write(entry, checkpoint="checkpoint")
    return lake


@pytest.mark.timeout(900)
def test_kafka(lake, aws, kafka):
    kafka.produce("changes", (json.dumps({"id": number}) for number in range(100)))
    first = lake.process()

    def kill(call, proceed):
        if completes(call) and first.poll() is None:
            sessions.kill(first.pid)
            return call.error(503, "SlowDown", "The caller is dead.")
        return proceed(call)

    aws.interceptors.append(kill)
    assert first.wait(300) == -signal.SIGKILL, first.communicate()
    first.communicate()
    aws.interceptors.remove(kill)
    kafka.produce("changes", (json.dumps({"id": number}) for number in range(100, 200)))
    second = lake.process()
    lake.until(1, "changes")
    second.send_signal(signal.SIGTERM)
    out, err = second.communicate(timeout=300)
    assert (second.returncode, json.loads(out)["state"]) == (0, "stopped"), err
    assert lake.rows("SELECT count(*), count(DISTINCT id), max(id) FROM t", "changes") == [(200, 200, 199)]
    assert not aws.uploads(BUCKET)


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_three_kills_and_an_outage(lake, aws, kafka):
    """The broker goes away while a run lives, for longer than its client waits, and comes back."""
    rng = random.Random(1)
    for number in range(3):
        kafka.produce("changes", (json.dumps({"id": 100 * number + place}) for place in range(100)))
        process = lake.process()
        log = logged(process)
        assert next(log)["step"] == "running"
        time.sleep(rng.uniform(0, 10))
        sessions.kill(process.pid)
        process.communicate()
    last = lake.process()
    log = logged(last)
    wait_for(log, lambda line: line["step"] == "batch")
    kafka.stop()
    # Spark's own defect with metrics restarts the query after a kill, too.
    wait_for(log, lambda line: line["step"] == "restarting" and "SOURCE_UNREACHABLE" in line["detail"])
    kafka.start()
    kafka.produce("changes", (json.dumps({"id": 300 + place}) for place in range(100)))
    while lake.rows("SELECT count(DISTINCT id) FROM t", "changes") != [(400,)]:
        assert last.poll() is None
        time.sleep(2)
    last.send_signal(signal.SIGTERM)
    assert last.wait(300) == 0
    assert lake.rows("SELECT count(*), count(DISTINCT id), max(id) FROM t", "changes") == [(400, 400, 399)]
    assert not aws.uploads(BUCKET)


def wait_for(log, wanted):
    """Read on to such a line."""
    return next(line for line in log if wanted(line))
