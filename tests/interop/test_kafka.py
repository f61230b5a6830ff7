"""A continuous run from a real Kafka broker: killed once, and every message there exactly once."""

import json
import signal

import pytest

from tests.interop.brokers import CONNECTOR, broker, jars_of
from tests.load.lakes import BUCKET, completes
from tests.load.materializations import Materialization, binding
from tests.support import sessions

pytestmark = pytest.mark.spark


@pytest.fixture
def kafka(tmp_path_factory):
    with broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.mark.timeout(900)
def test_kafka(tmp_path, aws, bucket, spark, kafka, monkeypatch):
    jars = ",".join(map(str, jars_of("spark-kafka", CONNECTOR, transitive=False).glob("*.jar")))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--jars {jars} pyspark-shell")
    options = {"kafka.bootstrap.servers": kafka.address, "subscribe": "changes", "startingOffsets": "earliest"}
    entry = binding("changes", "unused", collection={"schema": {"properties": {"id": {"type": "integer"}}}})
    entry |= {"read": {"format": "kafka", "options": options}, "primary_key": ["id"]}
    lake = Materialization(tmp_path, aws, spark)
    lake.write(entry, checkpoint="checkpoint")
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
