"""A lake.yaml of somebody else: what it can make this machine send, and to whom."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, cast

import pytest
import yaml
from click.testing import CliRunner

from lakewriter.aws import Clients
from lakewriter.cli.main import main
from lakewriter.commit.iceberg.rest_services import make_sign_in
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.access import TRUSTED, is_trusted
from lakewriter.spec.catalogs import AnyRestService

TOKEN = "AKIATOKENOFTHECI00000"
TABLE = {"table": "t", "columns": {"id": "bigint", "at": "timestamp"}, "read": {"format": "csv", "path": "missing.csv"}}


class Listener(HTTPServer):
    """A server that is none of this machine's names for itself; ``heard`` are the headers and bodies that came."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        super().__init__(("127.0.0.2", 0), _Answer)

    @property
    def url(self) -> str:
        return f"http://127.0.0.2:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        assert isinstance(self.server, Listener)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.heard.append(f"{self.headers}{body.decode(errors='replace')}")
        self.send_response(403)
        self.end_headers()

    do_GET = do_PUT = do_HEAD = do_POST = _answer  # noqa: N815 - as the library calls them

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def listener(monkeypatch):
    monkeypatch.setenv("CI_TOKEN", TOKEN)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    with Listener() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def write(folder, url, destination, **top):
    settings = {"type": "lakewriter-s3", "location": "s3://lake/l", "region": "us-east-1", "allow_insecure": True}
    text = json.dumps({"pipeline": "p", "destination": settings | destination, "tables": [TABLE]} | top)
    path = folder / "lake.yaml"
    path.write_text(yaml.safe_dump(json.loads(text.replace("URL", url))), "utf-8")
    return path


REFERENCE = "${env:CI_TOKEN}"
KEYS = {"endpoint": "URL", "access_key_id": REFERENCE, "secret_access_key": "x"}
OPEN_CATALOG = {
    "database": "d", "catalog": "open_catalog", "catalog_endpoint": "URL/api/catalog", "catalog_name": "c",
    "principal_role": "r", "client_id": "me", "client_secret": REFERENCE,
}  # fmt: skip
FILES: list[Any] = [
    pytest.param(KEYS, {}, "access_key_id", id="the key id, which each request carries"),
    pytest.param(OPEN_CATALOG, {}, "client_secret", id="a catalog's secret, which the request for a token carries"),
    pytest.param({}, {"lineage": {"to": "URL", "api_key": REFERENCE, "allow_insecure": True}}, "lineage.api_key",
                 id="a key of the server of lineage"),
]  # fmt: skip


@pytest.mark.parametrize(
    "command", [["check", "--no-sources"], ["plan", "--exit-code"], ["status"]], ids=lambda own: own[0]
)
@pytest.mark.parametrize(("destination", "top", "key"), FILES)
def test_a_file_cannot_have_a_secret_sent_to_a_server_of_its_own(tmp_path, listener, destination, top, key, command):
    path = write(tmp_path, listener.url, destination, **top)
    result = CliRunner().invoke(main, [command[0], str(path), *command[1:]])
    assert not any(TOKEN in heard for heard in listener.heard)
    # A catalog is asked after AWS, which has no credentials here.
    if key == "access_key_id" or (command[0], key) == ("check", "lineage.api_key"):
        assert f"{key}: the value of ${{env:CI_TOKEN}} would be sent to {listener.url}" in result.output
        assert f"export {TRUSTED}={listener.url}" in result.output


def test_a_catalog_is_sent_no_secret_either(tmp_path, listener):
    spec = load_spec(write(tmp_path, listener.url, OPEN_CATALOG))
    with pytest.raises(SpecInvalidError, match=f"client_secret: .* would be sent to {listener.url}"):
        make_sign_in(cast(AnyRestService, spec.rest_service), Clients(spec.access))


def test_what_is_allowed_outside_the_file_is_sent(tmp_path, listener, monkeypatch):
    monkeypatch.setenv(TRUSTED, f"https://other.example, {listener.url}/")
    CliRunner().invoke(main, ["check", str(write(tmp_path, listener.url, KEYS)), "--no-sources"])
    assert any(f"Credential={TOKEN}" in heard for heard in listener.heard)


@pytest.mark.parametrize(("destination", "top", "key"), FILES)
def test_an_offline_plan_asks_nobody(tmp_path, listener, monkeypatch, destination, top, key):
    monkeypatch.setenv(TRUSTED, listener.url)
    path = write(tmp_path, listener.url, destination, **top)
    result = CliRunner().invoke(main, ["plan", "--offline", "--exit-code", "--json", str(path)])
    assert (result.exit_code, listener.heard) == (0, [])
    (table,) = json.loads(result.stdout)["tables"]
    assert table["reads"] == f"csv {tmp_path}/missing.csv, append"
    columns = sorted((column["source"], column["type"]) for column in table["columns"])
    assert columns == [("at", "timestamp"), ("id", "bigint")]
    assert table["warnings"] == [
        "planned from the file alone: neither its sources, nor its bucket and catalog were asked (--offline)"
    ]


# (the server, what the variable holds, whether it is sent secrets)
SERVERS = [
    ("http://localhost:9000", "", True),
    ("http://[::1]:9000", "", True),
    ("https://s3.eu-central-1.amazonaws.com", "", True),
    ("https://lake.s3-accelerate.dualstack.amazonaws.com", "", True),
    ("https://glue.us-east-1.amazonaws.com/iceberg", "", True),
    ("https://org-account.snowflakecomputing.com/polaris/api/catalog", "", True),
    # Machines of customers.
    ("https://x1.execute-api.us-east-1.amazonaws.com", "", False),
    ("https://ec2-1-2-3-4.compute-1.amazonaws.com", "", False),
    ("https://s3.evil.example/amazonaws.com", "", False),
    ("https://snowflakecomputing.com.evil.example", "", False),
    ("https://user@localhost.evil.example", "", False),
    ("https://minio.example", "https://minio.example", True),
    ("https://MINIO.example/", "https://minio.example/path", True),
    ("http://minio.example", "https://minio.example", False),
    ("https://minio.example:9000", "https://minio.example", False),
    ("https://minio.example", "https://other.example, https://minio.example", True),
]


@pytest.mark.parametrize(("url", "trusted", "expected"), SERVERS)
def test_which_servers_are_trusted(url, trusted, expected):
    assert is_trusted(url, trusted) is expected
