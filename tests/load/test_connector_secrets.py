"""A connector that prints its secrets everywhere: none is in what a load says, nor in what it leaves."""

import base64
import json
import sys
from typing import Any
from urllib.parse import quote

import pytest
from click.testing import CliRunner

from lakewriter.api.pipeline_file import Opened
from lakewriter.cli.main import main
from tests.load.syncs import BUCKET, SyncLake, catalog, stream

pytestmark = pytest.mark.spark

PASSWORD, TOKEN, VARIABLE = 'hunter2 "long"', "token-of-the-api", "of-the-environment"
CONNECTOR = """
import base64, json, os, sys
from urllib.parse import quote
if sys.argv[1] == "spec":
    schema = {"properties": {"handle": {"type": "string", "airbyte_secret": True}}}
    print(json.dumps({"type": "SPEC", "spec": {"connectionSpecification": schema}}))
    sys.exit()
config = json.loads(open("c.json").read())
secrets = [config["password"], config["handle"], os.environ["DB_TOKEN"]]
said = " ".join(f"{one} {quote(one)} {base64.b64encode(one.encode()).decode()} {json.dumps(one)}" for one in secrets)
error = {"message": f"cannot connect to db.example.com with {said}", "stack_trace": said}
print("a line with " + said)
if sys.argv[-1] != "trace":
    print(json.dumps({"type": "RECORD", "record": {"stream": "users", "namespace": "public", "data": said}}))
print(json.dumps({"type": "LOG", "log": {"level": "ERROR", "message": said}}))
if sys.argv[-1] == "trace":
    print(json.dumps({"type": "TRACE", "trace": {"type": "ERROR", "emitted_at": 1.0, "error": error}}))
print("Traceback of db.example.com\\n" + said, file=sys.stderr)
print("seen: " + ",".join(sorted(os.environ)), file=sys.stderr)
sys.exit(1)
"""


@pytest.fixture
def lake(tmp_path, aws, bucket, spark, monkeypatch):
    monkeypatch.setenv("DB_TOKEN", VARIABLE)
    monkeypatch.setenv("NOT_LISTED", "not-listed")
    (tmp_path / "source.py").write_text(CONNECTOR, "utf-8")
    (tmp_path / "c.json").write_text(json.dumps({"password": PASSWORD, "handle": TOKEN}), "utf-8")
    return SyncLake(tmp_path, aws, spark)


def write(lake: SyncLake, *words: str) -> None:
    source: dict[str, Any] = {
        "command": [sys.executable, "source.py", "read", "--config", "c.json", *words],
        "environment": ["DB_TOKEN"],
        "catalog": catalog(stream("users")),
    }
    lake.write({"format": {"format_type": "JSONL"}}, source=source)


@pytest.mark.parametrize("words", [[], ["trace"]])
def test_nothing_that_is_kept_has_a_secret(lake, words):
    write(lake, *words)
    assert Opened(lake.file, None).load("a").status == "failed"
    printed = CliRunner().invoke(main, ["show", str(lake.file), "a", "--json"]).output
    kept = {key: body.decode() for key, body in lake.aws.objects(BUCKET).items()} | {"show": printed}
    assert {"outcome.json", "record.json", "report.html"} <= {key.rsplit("/", 1)[-1] for key in kept}
    for secret in (PASSWORD, TOKEN, VARIABLE):
        forms = {secret, quote(secret), base64.b64encode(secret.encode()).decode(), json.dumps(secret)[1:-1]}
        assert [(key, form) for key, text in kept.items() for form in forms if form in text] == []
    (outcome,) = [text for key, text in kept.items() if key.endswith("outcome.json")]
    assert "***" in outcome
    assert "db.example.com" in kept["show"]


def test_environment(lake):
    """What is not listed does not reach the connector."""
    write(lake)
    message = str(lake.load("a").tables[0].message) + " ".join(lake.load("a").notes)
    seen = message.rsplit("seen: ", 1)[1].split(".")[0].split(",")
    assert {"DB_TOKEN", "PATH"} <= set(seen)
    assert not {"NOT_LISTED", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"}.intersection(seen)
