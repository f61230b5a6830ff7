"""``auth: none`` against real servers: the REST catalog of the Iceberg project's own tests, and Nessie.

Other sign-ins are asked of the catalogs in ``tests.support.sign_ins``.
"""

import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
import requests
from pyiceberg.catalog import load_catalog

from tests.iceberg.commits import Table, stores
from tests.interop.maven import jars
from tests.load import test_expired as expiries
from tests.load.refreshed import Refreshed
from tests.support.server import StrictAws
from tests.support.sign_ins import PlainCatalog

ICEBERG, JETTY = "1.11.0", "12.1.3"
JARS = [
    *(f"org.apache.iceberg:iceberg-{name}:{ICEBERG}" for name in ("api", "common", "core", "bundled-guava", "aws")),
    f"org.apache.iceberg:iceberg-core:{ICEBERG}:tests",
    f"org.apache.iceberg:iceberg-open-api:{ICEBERG}:test-fixtures",
    "org.apache.iceberg:iceberg-aws-bundle:1.12.0",
    *(f"org.eclipse.jetty:jetty-{n}:{JETTY}" for n in ("server", "http", "io", "util", "session", "security")),
    *(f"org.eclipse.jetty.compression:jetty-compression-{n}:{JETTY}" for n in ("common", "server", "gzip")),
    f"org.eclipse.jetty.ee10:jetty-ee10-servlet:{JETTY}",
    "jakarta.servlet:jakarta.servlet-api:6.0.0",
    "com.github.ben-manes.caffeine:caffeine:2.9.3",
    "com.fasterxml.jackson.core:jackson-core:2.21.3",
    "com.fasterxml.jackson.core:jackson-databind:2.21.3",
    "com.fasterxml.jackson.core:jackson-annotations:2.21",
    "org.apache.httpcomponents.client5:httpclient5:5.6.1",
    "org.apache.httpcomponents.core5:httpcore5:5.4",
    "org.apache.httpcomponents.core5:httpcore5-h2:5.4",
    "software.amazon.awssdk:url-connection-client:2.33.0",
    "dev.failsafe:failsafe:3.3.2",
    "org.xerial:sqlite-jdbc:3.50.3.0",
]
SPARK_JARS = ("avro-1", "slf4j-api", "RoaringBitmap", "aircompressor-2", "hadoop-client")


NESSIE = "org.projectnessie.nessie:nessie-quarkus:0.99.0:runner"
"""The last release on Maven Central as a server that runs; it needs Java 21."""


class Fixture(PlainCatalog):
    """Where the server is; it has one catalog, without a name."""

    path: str = ""
    port: int = 0

    @property
    def url(self) -> str:
        """See ``OpenCatalog``."""
        return f"http://127.0.0.1:{self.port}{self.path}"


class Nessie(Fixture):
    """The branch ``main``, and its default warehouse."""

    path = "/iceberg/main"


def find_java(least: int) -> str:
    """A Java of this release or a later one; the test is skipped where there is none."""
    for java in ("java", *map(str, Path("/usr/lib/jvm").glob("*/bin/java"))):
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
        version = re.search(r'version "(\d+)', said)
        if version and int(version[1]) >= least:
            return java
    pytest.skip(f"Nessie needs Java {least}.")


@contextmanager
def serve(
    command: list[str], catalog: Fixture, log: Path, config: str, environment: Mapping[str, str] | None = None
) -> Iterator[Fixture]:
    """Run the server until it is left; ``config`` is the path that answers once it is up."""
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out, env=environment) as server:
        try:
            _await(f"http://127.0.0.1:{catalog.port}{config}")
            yield catalog
        finally:
            server.terminate()


def find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def nessie(aws, bucket, tmp_path):
    """Nessie over the embedded S3. https://projectnessie.org/guides/iceberg-rest/"""
    aws.hide_missing = False
    java, (jar,) = find_java(21), jars([NESSIE])
    catalog = Nessie(aws, bucket)
    catalog.port = find_port()
    store = "nessie.catalog.service.s3.default-options"
    options = {
        "quarkus.http.port": str(catalog.port),
        "nessie.version.store.type": "IN_MEMORY",
        "nessie.catalog.default-warehouse": "lake",
        "nessie.catalog.warehouses.lake.location": f"s3://{bucket}/open",
        f"{store}.region": "us-east-1",
        f"{store}.endpoint": aws.url,
        f"{store}.path-style-access": "true",
        f"{store}.access-key": "urn:nessie-secret:quarkus:lake-keys",
        "lake-keys.name": "testing",
        "lake-keys.secret": "testing",
    }
    command = [java, *(f"-D{name}={value}" for name, value in options.items()), "-jar", str(jar)]
    with serve(command, catalog, tmp_path / "log", "/iceberg/v1/config") as served:
        yield served


@pytest.fixture
def fixture(aws, bucket, tmp_path):
    """The server over the embedded S3, in a process of its own."""
    # Java's SDK looks for objects by HEAD, as a role with s3:ListBucket may.
    aws.hide_missing = False
    with serve_fixture(aws, bucket, tmp_path) as served:
        yield served


@contextmanager
def serve_fixture(aws: StrictAws, bucket: str, folder: Path) -> Iterator[Fixture]:
    """Run the server over the embedded S3, in a process of its own."""
    shipped = [str(f) for f in Path(pyspark.__path__[0], "jars").iterdir() if f.name.startswith(SPARK_JARS)]
    catalog = Fixture(aws, bucket)
    catalog.port = find_port()
    options = {
        "REST_PORT": str(catalog.port),
        "URI": f"jdbc:sqlite:{folder}/catalog.db",
        "WAREHOUSE": f"s3://{bucket}/open",
        "IO__IMPL": "org.apache.iceberg.aws.s3.S3FileIO",
        "S3_ENDPOINT": aws.url,
        "S3_PATH__STYLE__ACCESS": "true",
        "CLIENT_REGION": "us-east-1",
        "HTTP__CLIENT_TYPE": "urlconnection",
    }
    environment = os.environ | {f"CATALOG_{name}": value for name, value in options.items()}
    classpath = ":".join([*map(str, jars(JARS)), *shipped])
    command = ["java", "-cp", classpath, "org.apache.iceberg.rest.RESTCatalogServer"]
    with serve(command, catalog, folder / "log", "/v1/config", environment) as served:
        yield served


def _await(url: str) -> None:
    for _ in range(120):
        try:
            requests.get(url, timeout=5)
        except (requests.ConnectionError, requests.Timeout):
            time.sleep(0.5)
        else:
            return
    pytest.fail(f"{url} does not answer")


@pytest.mark.exhaustive
def test_loads_into_the_fixture(aws, fixture):
    table = Table(aws, fixture)
    first = table.intent("a", pa.table({"id": [1, 2]}))
    table.publish(first, 1)
    table.publish(first, 1)
    table.publish(table.intent("b", pa.table({"id": [3], "more": ["x"]}), committed=1), 2)
    rows = table.seen.scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["more"]) for row in rows) == [(1, None), (2, None), (3, "x")]
    assert first.files.at_hand[0].key == "open/db/t/data/part-a-00000.parquet"
    assert len(table.seen.snapshots()) == 2


@pytest.mark.exhaustive
def test_writers_at_once(aws, fixture):
    table = Table(aws, fixture)
    jobs = [f"j{number}" for number in range(4)]
    found = [table.intent(job, pa.table({"id": [1]})).model_copy(update={"pipeline": job}) for job in jobs]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: table.publish(each, 1), found))
    assert len(table.seen.snapshots()) == 4
    assert table.seen.scan().to_arrow().num_rows == 4


class Users(Refreshed):
    """The table ``users`` of a schema of its own in the server's catalog."""

    def __init__(self, folder, aws, fixture, schema, **table):
        folder.mkdir()
        self.options, self.schema = fixture.make_options(), schema
        settings = fixture.make_settings() | {"location": f"s3://{fixture.bucket}/{schema}"}
        super().__init__(folder, aws, "rest", destination=settings, schema=schema, mode="append", **table)

    def iceberg(self):
        """See ``Refreshed``."""
        return load_catalog("own", **self.options, **stores(self.aws)).load_table((self.schema, "users"))


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_expiry(aws, fixture, tmp_path):
    """The cases of ``tests.load.test_expired`` by the rules of the Java library, which builds the new metadata."""
    cases = [partial(expiries.require_kept, case=case) for case in expiries.KEPT]
    cases += [
        partial(expiries.require_left, case=case, is_bound=is_bound)
        for case in expiries.BETWEEN
        for is_bound in (False, True)
    ]
    for number, case in enumerate(cases):
        case(Users(tmp_path / str(number), aws, fixture, f"c{number}"))


@pytest.mark.exhaustive
def test_loads_into_nessie(aws, nessie):
    """Without a new column: this release of Nessie asks for a field of such changes that the specification does not."""
    table = Table(aws, nessie)
    for number, job in enumerate("ab"):
        found = table.intent(job, pa.table({"id": [number]}), committed=number)
        table.publish(found, number + 1)
        table.publish(found, number + 1)
    assert sorted(table.seen.scan().to_arrow()["id"].to_pylist()) == [0, 1]
    assert table.seen.location().startswith("s3://acme-lake/open/db/t")
