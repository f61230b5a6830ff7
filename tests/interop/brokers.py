"""A real Kafka broker and Spark's connector for it, out of Maven's repository, which tests elsewhere never need."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, JavaMember, launch_gateway
from py4j.protocol import STATIC_PREFIX

from tests.interop.servers import free_port

KAFKA: Final = "3.9.1"
SPARK: Final = "4.1.1"
# The connector asks for the token provider of its own version, which not every mirror has; an older one does.
BROKER: Final = (f"org.apache.kafka:kafka_2.13:{KAFKA}",)
CONNECTOR: Final = (
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK}",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    f"org.apache.kafka:kafka-clients:{KAFKA}",
    "org.apache.commons:commons-pool2:2.12.1",
    "org.scala-lang.modules:scala-parallel-collections_2.13:1.2.0",
)
_POM: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>lakewriter</groupId><artifactId>interop</artifactId><version>1</version><dependencies>{}</dependencies></project>
"""
_ALL: Final = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
_PROPERTIES: Final = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={folder}/data
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.cleaner.backoff.ms=100
num.partitions=2
"""


class Broker:
    """A broker with two partitions a topic, which may go away and come back with what it has."""

    def __init__(self, jars: Path, port: int, folder: Path, settings: Path) -> None:
        self.address, self.jars = f"127.0.0.1:{port}", jars
        self._port, self._folder = port, folder
        self._command = ["java", "-Xmx256m", "-cp", f"{jars}/*", "kafka.Kafka", str(settings)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = self._folder / "log"
        with log.open("ab") as file:
            self._process = subprocess.Popen(self._command, stdout=file, stderr=file, cwd=self._folder)
        _await(self._process, self._port, log)

    def stop(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def produce(self, topic: str, messages: Iterable[str]) -> None:
        """Send each message, without a key."""
        options = ["--bootstrap-server", self.address, "--topic", topic]
        _java(self.jars, "kafka.tools.ConsoleProducer", *options, text="".join(f"{each}\n" for each in messages))


class Topics:
    """Kafka's own clients, for what its console has no command for: they live in a Java of their own."""

    def __init__(self, running: Broker) -> None:
        (jar,) = (Path(pyspark.__file__).parent / "jars").glob("py4j*.jar")
        options = {"classpath": f"{running.jars}/*", "javaopts": ["-Xmx192m"], "die_on_exit": True}
        port = launch_gateway(jarpath=str(jar), **options)
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        self._kafka, self._address, self._jars = self._gateway.jvm.org.apache.kafka, running.address, running.jars
        self._admin = self._kafka.clients.admin.AdminClient.create(self._properties())
        self._producer = self._open_producer()

    def close(self) -> None:
        """End Java."""
        self._gateway.shutdown()

    def make(self, name: str, partitions: int = 1, **config: str) -> None:
        """Make a topic; ``config`` has an underscore for each dot."""
        topic = self._kafka.clients.admin.NewTopic(name, partitions, 1)
        topic.configs({key.replace("_", "."): value for key, value in config.items()})
        self._admin.createTopics([topic]).all().get()

    def delete(self, name: str) -> None:
        """Delete a topic, and wait until a new one may have its name."""
        self._admin.deleteTopics([name]).all().get()
        while name in self._admin.listTopics().names().get():
            time.sleep(0.1)

    def grow(self, name: str, partitions: int) -> None:
        """Give a topic more partitions."""
        more = self._kafka.clients.admin.NewPartitions.increaseTo(partitions)
        self._admin.createPartitions({name: more}).all().get()

    def drop_before(self, name: str, offset: int, partition: int = 0) -> None:
        """Delete the messages of a partition below the offset, as retention does."""
        # The class has a method of the same name, which hides this one from Py4J.
        fqn = "org.apache.kafka.clients.admin.RecordsToDelete"
        before = JavaMember("beforeOffset", None, f"{STATIC_PREFIX}{fqn}", self._gateway._gateway_client)
        self._admin.deleteRecords({self._kafka.common.TopicPartition(name, partition): before(offset)}).all().get()

    def send(self, topic: str, *messages: dict[str, Any], producer: Any = None) -> None:
        """Send messages of ``value``, ``key``, ``partition``, ``timestamp`` and ``headers``, and wait for each."""
        producer = producer or self._producer
        for message in messages:
            header = self._kafka.common.header.internals.RecordHeader
            headers = [header(key, value) for key, value in message.get("headers", ())]
            place = (message.get("partition", 0), message.get("timestamp"), message.get("key"))
            record = self._kafka.clients.producer.ProducerRecord(topic, *place, message["value"], headers)
            producer.send(record).get()

    def read(self, name: str) -> list[str]:
        """Return the values of all messages that a topic has now, partition by partition; a null as ``null``.

        They must be a line each.
        """
        # A hundred thousand messages as objects of the gateway would fill its memory.
        return _java(self._jars, str(Path(__file__).with_name("ReadTopic.java")), self._address, name).splitlines()

    def begin(self, name: str) -> Any:
        """Return a producer in a transaction, to commit or to abort."""
        producer = self._open_producer(transactional_id=name, transaction_timeout_ms="900000")
        producer.initTransactions()
        producer.beginTransaction()
        return producer

    def _open_producer(self, **more: str) -> Any:
        name = "org.apache.kafka.common.serialization.ByteArraySerializer"
        shared = {"key_serializer": name, "value_serializer": name, "max_request_size": "8000000"}
        return self._kafka.clients.producer.KafkaProducer(self._properties(**(shared | more)))

    def _properties(self, **more: str) -> Any:
        properties = self._gateway.jvm.java.util.Properties()
        for name, value in ({"bootstrap_servers": self._address} | more).items():
            properties.setProperty(name.replace("_", "."), value)
        return properties


@contextmanager
def broker(folder: Path) -> Iterator[Broker]:
    """A broker of its own; skipped with the reason where its jars or Java cannot be had."""
    jars, port = jars_of("kafka", BROKER, transitive=True), free_port()
    settings = folder / "server.properties"
    settings.write_text(_PROPERTIES.format(port=port, controller=free_port(), folder=folder), "utf-8")
    _java(jars, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(settings))
    running = Broker(jars, port, folder, settings)
    try:
        running.start()
        yield running
    finally:
        running.stop()


def jars_of(name: str, packages: Sequence[str], *, transitive: bool) -> Path:
    """The folder of the packages' jars, fetched by Maven once a machine."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "lakewriter" / f"{name}-{KAFKA}-{SPARK}"
    if (folder / "done").exists():
        return folder
    if os.environ.get("LAKEWRITER_INTEROP") != "all":
        pytest.skip("Kafka's jars are not here: set LAKEWRITER_INTEROP=all to fetch them with Maven")
    if shutil.which("mvn") is None or shutil.which("java") is None:
        pytest.skip("Kafka needs Maven and Java on the PATH")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pom.xml").write_text(_POM.format("".join(_dependency(each, transitive) for each in packages)), "utf-8")
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    done = subprocess.run(["mvn", "-q", "-B", *goal], cwd=folder, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"Maven could not fetch {', '.join(packages)}: {done.stdout.decode()[-300:]}")
    (folder / "done").touch()
    return folder


def _dependency(package: str, transitive: bool) -> str:
    group, artifact, version = package.split(":")
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"{'' if transitive else _ALL}</dependency>"
    )


def _java(jars: Path, program: str, *arguments: str, text: str | None = None) -> str:
    command = ["java", "-Xmx128m", "-cp", f"{jars}/*", program, *arguments]
    return subprocess.run(command, input=text, text=True, capture_output=True, check=True, timeout=180).stdout


def _await(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    for _ in range(480):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.25)
        else:
            return
    raise RuntimeError(f"Kafka did not start; it said: {log.read_text('utf-8')[-2000:]}")
