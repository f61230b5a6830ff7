"""The embedded AWS for tests: one server a session, emptied for every test."""

from collections.abc import Iterator

import pytest

from lakewriter.source import file_splits
from tests.support.direct import direct_requests
from tests.support.recording import RECORD
from tests.support.server import StrictAws

DIRECT = ("load", "iceberg", "operate", "compatibility", "commit", "staging", "doctor", "cli", "api", "source")


@pytest.fixture(scope="session")
def aws_server(pytestconfig: pytest.Config) -> Iterator[StrictAws]:
    """The server itself, running."""
    with StrictAws() as server:
        server.observers.append(pytestconfig.stash[RECORD].observe)
        yield server


@pytest.fixture
def aws(aws_server: StrictAws, monkeypatch: pytest.MonkeyPatch) -> StrictAws:
    """An empty AWS that every SDK call of this process and its children goes to."""
    return empty_aws(aws_server, monkeypatch)


def empty_aws(aws_server: StrictAws, monkeypatch: pytest.MonkeyPatch) -> StrictAws:
    """See ``aws``; for as long as ``monkeypatch`` holds."""
    aws_server.reset()
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "AWS_ENDPOINT_URL": aws_server.url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "NO_PROXY": "127.0.0.1,localhost",
    }.items():
        monkeypatch.setenv(name, value)
    return aws_server


@pytest.fixture
def bucket(aws: StrictAws) -> str:
    """An empty bucket in us-east-1."""
    aws.client("s3").create_bucket(Bucket="acme-lake")
    return "acme-lake"


@pytest.fixture
def small_files_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each small file of a source has a task of its own, so that a load of two has two files."""
    monkeypatch.setattr(file_splits, "_ONE_TASK_BYTES", 0)


@pytest.fixture(autouse=True)
def quick_requests(request: pytest.FixtureRequest) -> Iterator[None]:
    """In these folders, whose subject no connection is, the SDK calls the embedded AWS without one."""
    if request.path.parent.name not in DIRECT or "aws" not in request.fixturenames:
        yield
        return
    with direct_requests(request.getfixturevalue("aws_server")):
        yield
