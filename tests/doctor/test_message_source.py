"""Where a pipeline's messages come from: files that are there, a connector that can be run."""

import sys
from pathlib import Path
from typing import Any

import pytest

from lakewriter.doctor.message_source import MessageProbes
from lakewriter.doctor.probe import Finding, run_probes
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.stream import MessageSource, Stream
from tests.doctor.pipeline import checked, spec

DEPLOYED = Deployment(protect=True)


def probed(deployment: Deployment | None = None, **source: Any) -> Finding:
    own = spec().model_copy(update={"source": MessageSource(**source)})
    (found,) = run_probes(MessageProbes(own, deployment).list_probes())
    return found


@pytest.fixture
def connector(tmp_path: Path) -> Path:
    (tmp_path / "source-faker").write_text("#!/bin/sh\n", "utf-8")
    (tmp_path / "source-faker").chmod(0o755)
    return tmp_path


def test_connector(connector: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = probed(command=("./source-faker", "read"), folder=str(connector))
    assert (found.status, found.message) == ("ok", f"the connector is {connector}/source-faker.")
    assert probed(command=("source-faker", "read"), folder=str(connector)).code == "SOURCE_FAILED"
    monkeypatch.setenv("PATH", str(connector))
    assert probed(Deployment(), command=("source-faker", "read")).status == "ok"
    assert probed(command=(sys.executable, "read")).status == "ok"


def test_connector_of_a_pipeline_with_stacks(connector: Path) -> None:
    found = probed(DEPLOYED, command=("./source-faker",), folder=str(connector))
    assert (found.status, "on EMR, have none" in found.message) == ("warning", True)


def test_files(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"x" * 1_500_000)
    (tmp_path / "b.jsonl").touch()
    assert probed(paths=(str(tmp_path),)).message == "2 files of messages, 1.5 MB."
    found = probed(DEPLOYED, paths=(str(tmp_path / "c.jsonl"),))
    assert (found.status, found.code) == ("failed", "SOURCE_FAILED")
    assert f"'{tmp_path}/c.jsonl' does not exist" in found.message


MESSAGES = """\
{"type": "RECORD", "record": {"stream": "users", "data": {"id": 1}, "emitted_at": 1}}
{"type": "RECORD", "record": {"stream": "orders", "data": {"id": 1}, "emitted_at": 1}}
{"type": "RECORD", "record": {"stream": "users", "data": {"id": 2}, "emitted_at": 1}}
no message
"""


def test_what_the_files_hold(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(MESSAGES, "utf-8")
    own = spec().model_copy(update={"source": MessageSource(paths=(str(tmp_path),))})
    users = own.tables[0].model_copy(update={"stream": Stream(name="users")})
    probes = MessageProbes(own.model_copy(update={"tables": (users,)}), None, look=True).list_probes()
    assert [(found.status, found.message) for found in run_probes(probes)] == [
        ("ok", "1 file of messages, 0.0 MB; records: 2 of nyc_public.flights."),
        ("warning", "1 line of the input were no message, such as 'no message'."),
        ("warning", "1 record of stream 'orders', which the catalog does not name, were left out."),
    ]


def test_standard_input() -> None:
    assert probed(paths=("-",)).status == "ok"


@pytest.mark.usefixtures("bucket")
def test_only_pipelines_with_messages_are_asked() -> None:
    assert "messages" not in checked(spec())
