"""What becomes of the vendor's own files, its messages and its connectors when a lake.yaml goes to S3."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.pipeline.artifact import render_lake_file
from lakewriter.deployable.lake_file import find_unshippable
from lakewriter.dialects.lake_yaml import load
from tests.policy.airbyte import DESTINATION, airbyte, messages, stream

EXPECTED = "expected ${secret:ARN} or ${ssm:NAME}, which the job's role reads."
ROLE = {"role_arn": "arn:aws:iam::123456789012:role/LakeWriter"}
KEYS = {"access_key_id": "AKIAIOSFODNN7EXAMPLE", "secret_access_key": "wJalrXUtnFEMI"}
COMMAND = {"source": {"command": ["source-faker", "read"], "catalog": {"streams": [stream()]}}, "tables": None}

PROBLEMS: list[tuple[str, Any, dict[str, Any], list[str]]] = [
    ("messages in S3", messages(path=["s3://acme/a.jsonl", "S3A://acme/b/"]), ROLE | {"external_id": "ws-1"}, []),
    ("tables", {}, {}, []),
    (
        "messages beside the file",
        messages(path=["s3://acme/a.jsonl", "b.jsonl"]),
        {},
        ["source.messages: 'FOLDER/b.jsonl' is on this machine; expected s3://..., or give source_root."],
    ),
    ("messages under source_root", messages(path="b.jsonl") | {"source_root": "s3://acme/landing"}, {}, []),
    (
        "standard input",
        messages(path="-"),
        {},
        ["source.messages: '-' is standard input, which a load on EMR does not have; expected s3://..."],
    ),
    (
        "a connector",
        COMMAND,
        {},
        [
            "source.command: 'source-faker' is a program of this machine; expected source.messages in S3. Run the "
            "connector where it is, and land its messages there, or run the loads where it is."
        ],
    ),
    ("a key", {}, KEYS, [f"secret_access_key is written out; {EXPECTED}"]),
    (
        "the external id that the vendor's product takes from its environment",
        {},
        ROLE,
        [f"destination.external_id: is read from '${{env:AWS_ASSUME_ROLE_EXTERNAL_ID}}' of this machine; {EXPECTED}"],
    ),
]


@pytest.fixture(autouse=True)
def platform(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment in which Airbyte's platform runs a destination."""
    monkeypatch.setenv("AWS_ASSUME_ROLE_EXTERNAL_ID", "workspace-1")


@pytest.mark.parametrize(
    ("top", "destination", "problems"), [row[1:] for row in PROBLEMS], ids=[r[0] for r in PROBLEMS]
)
def test_what_may_go(tmp_path: Path, top: Any, destination: Any, problems: list[str]) -> None:
    found = find_unshippable(airbyte(tmp_path, top=top, **destination))
    assert [problem.replace(str(tmp_path), "FOLDER") for problem in found] == problems


def test_files_of_the_vendor_go_inside(tmp_path: Path) -> None:
    own = {key: value for key, value in DESTINATION.items() if key != "type"}
    (tmp_path / "destination.json").write_text(json.dumps(own | {"s3_path_format": "${STREAM_NAME}/"}), "utf-8")
    (tmp_path / "catalog.json").write_text(json.dumps({"streams": [stream()]}), "utf-8")
    source = {"messages": "s3://acme/a.jsonl", "catalog": "catalog.json"}
    destination = {"type": "airbyte-s3", "config_file": "destination.json", "single_writer": True}
    lake = airbyte(tmp_path, top={"destination": destination, "source": source, "tables": None})
    away = tmp_path / "away"
    away.mkdir()
    (away / "lake.yaml").write_text(render_lake_file(lake), "utf-8")
    assert yaml.safe_load(render_lake_file(lake)) == {
        "pipeline": "crm",
        "destination": {**own, "s3_path_format": "${STREAM_NAME}/", "type": "airbyte-s3", "single_writer": True},
        "source": {"messages": "s3://acme/a.jsonl", "catalog": {"streams": [stream()]}},
    }
    again = load(away / "lake.yaml").spec
    assert again.model_copy(update={"source": lake.spec.source}) == lake.spec


def test_secrets_of_the_vendors_file_stay_here(tmp_path: Path) -> None:
    own = {key: value for key, value in DESTINATION.items() if key != "type"}
    (tmp_path / "destination.json").write_text(json.dumps(own | KEYS), "utf-8")
    lake = airbyte(tmp_path, top={"destination": {"type": "airbyte-s3", "config_file": "destination.json"}})
    assert find_unshippable(lake) == (f"secret_access_key is written out; {EXPECTED}",)
