"""Where a pipeline's messages come from: files that are there, a connector that can be run."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from lakewriter.dialects.lake_yaml import load_spec
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


EXPECTED = [
    # an expectation, the status of the stream's probe, what it says
    ({"range": {"column": "id", "at_least": 1}}, "ok", "its schema has the columns of its 1 expectation."),
    ({"not_null": "ids"}, "failed", "the source has no column 'ids'"),
    ({"fresh": {"column": "id", "within": "1 day"}}, "failed", "column 'id' has type 'int64', expected a date"),
    ({"accepted_values": {"column": "name", "values": ["a"]}, "on_violation": "quarantine"}, "ok", "1 expectation"),
    ({"range": {"column": "id", "at_most": "x"}, "on_violation": "quarantine"}, "failed", "'x' does not compare"),
]


@pytest.mark.parametrize("format_type", ["Parquet", "Avro", "CSV", "JSONL"])
@pytest.mark.parametrize(("entry", "status", "said"), EXPECTED, ids=lambda each: str(each)[:40])
def test_expectations_of_a_stream(tmp_path: Path, entry: Any, status: str, said: str, format_type: str) -> None:
    """The catalog has the types, whichever format they are written in."""
    schema = {"properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}
    users = {"stream": {"name": "users", "json_schema": schema}, "sync_mode": "full_refresh",
             "destination_sync_mode": "append"}  # fmt: skip
    (tmp_path / "catalog.json").write_text(json.dumps({"streams": [users]}), "utf-8")
    destination = {"type": "airbyte-s3", "s3_bucket_name": "acme-lake", "s3_bucket_path": "a",
                   "s3_bucket_region": "us-east-1", "format": {"format_type": format_type}}  # fmt: skip
    file = {"pipeline": "p", "destination": destination, "source": {"messages": "-", "catalog": "catalog.json"},
            "expect": [entry], "on_bad_row": "quarantine"}  # fmt: skip
    (tmp_path / "lake.yaml").write_text(json.dumps(file), "utf-8")
    messages, stream = run_probes(MessageProbes(load_spec(tmp_path / "lake.yaml"), None).list_probes())
    assert (messages.status, stream.status) == ("ok", status), stream.message
    assert said in stream.message
