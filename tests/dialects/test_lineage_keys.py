"""The key ``lineage``: what becomes of it, for every destination, and in a stage of its own."""

import pytest

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import TlsRequiredError
from lakewriter.spec.access import SecretText
from lakewriter.spec.lineage import Lineage
from tests.dialects.mistakes import A, E, S

KEY = SecretText("${env:KEY}")
ENDPOINT = "api/v1/lineage"

LINEAGES = [
    # the value, what becomes of it; FOLDER is that of lake.yaml
    ("{to: log}", {"to": "log", "namespace": "lakewriter"}),
    ("{to: events.jsonl, namespace: shop}", {"to": "FOLDER/events.jsonl", "namespace": "shop"}),
    ("{to: /var/log/events.jsonl}", {"to": "/var/log/events.jsonl", "namespace": "lakewriter"}),
    (
        "{to: https://marquez, api_key: '${env:KEY}', timeout_seconds: 2}",
        {"to": "https://marquez", "endpoint": ENDPOINT, "namespace": "lakewriter", "api_key": KEY,
         "timeout_seconds": 2.0},
    ),
    (
        "{to: https://hub, endpoint: openapi/openlineage/api/v1/lineage}",
        {"to": "https://hub", "endpoint": "openapi/openlineage/api/v1/lineage", "namespace": "lakewriter"},
    ),
    # A server inside a VPC may have no TLS; on this machine nothing is sent anywhere.
    (
        "{to: http://marquez, allow_insecure: true}",
        {"to": "http://marquez", "endpoint": ENDPOINT, "namespace": "lakewriter"},
    ),
    (
        "{to: http://localhost:5000, api_key: '${env:KEY}'}",
        {"to": "http://localhost:5000", "endpoint": ENDPOINT, "namespace": "lakewriter", "api_key": KEY},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "fields"), LINEAGES)
def test_lineage(tmp_path, text, fields):
    file = tmp_path / "lake.yaml"
    file.write_text(f"{S}lineage: {text}\n", "utf-8")
    to = fields["to"].replace("FOLDER", str(tmp_path))
    assert load_spec(file).lineage == Lineage(**fields | {"to": to})


@pytest.mark.parametrize("text", [S, A, E])
def test_every_destination_has_it_and_none_by_itself(tmp_path, text):
    file = tmp_path / "lake.yaml"
    file.write_text(text, "utf-8")
    assert load_spec(file).lineage is None
    file.write_text(f"{text}lineage: {{to: log}}\n", "utf-8")
    assert load_spec(file).lineage == Lineage(to="log", namespace="lakewriter")


def test_stage_has_its_own(tmp_path):
    file = tmp_path / "lake.yaml"
    text = S.replace("stages: {dev: {}}", "stages: {dev: {}, prod: {lineage: {namespace: prod}}}")
    file.write_text(f"{text}lineage: {{to: log, namespace: any}}\n", "utf-8")
    lineages = [load_spec(file, stage=stage).lineage for stage in ("dev", "prod")]
    assert [lineage and lineage.namespace for lineage in lineages] == ["any", "prod"]


@pytest.mark.parametrize("more", ["", ", api_key: '${env:KEY}'"])
def test_nothing_is_sent_without_tls(tmp_path, more):
    file = tmp_path / "lake.yaml"
    file.write_text(f"{S}lineage: {{to: http://marquez{more}}}\n", "utf-8")
    with pytest.raises(TlsRequiredError, match=r"lineage\.to: 'http://marquez' has no TLS"):
        load_spec(file)


def test_literal_key_is_a_warning_and_in_no_text(tmp_path):
    file = tmp_path / "lake.yaml"
    file.write_text(f"{S}lineage: {{to: https://marquez, api_key: hush}}\n", "utf-8")
    spec = load_spec(file)
    told = "lake.yaml:13: lineage.api_key is written out; a reference such as ${env:NAME} keeps it out of the file."
    assert told in spec.warnings
    assert "hush" not in repr(spec)
    assert "hush" not in spec.model_dump_json()
