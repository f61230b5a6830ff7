"""What may go to S3 in a lake.yaml and what may not; the messages are given in full."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.pipeline.artifact import render_lake_file
from lakewriter.deployable.lake_file import find_unshippable
from lakewriter.dialects.lake_yaml import Lake, load

DESTINATION = {
    "type": "supaflow-s3-data-lake",
    "s3_bucket_name": "acme-lake",
    "bucket_region": "us-east-1",
    "update_aws_glue_catalog": True,
}
ROLE = {"iam_role_arn": "arn:aws:iam::123456789012:role/LakeWriter"}
KEYS = {"access_key_id": "AKIAIOSFODNN7EXAMPLE"}
EXPECTED = "expected ${secret:ARN} or ${ssm:NAME}, which the job's role reads."


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """``read(read_entry, **destination)``: a Lake of one table, in a folder of its own."""

    def make(entry: dict[str, Any], **destination: Any) -> Lake:
        data = {
            "pipeline": "flights",
            "destination": DESTINATION | destination,
            "tables": [{"table": "flights", "schema": "nyc", "read": entry}],
            "deployment": {"trust": [{"vendor": "supaflow", "external_id": "${env:VENDOR}"}]},
        }
        (tmp_path / "lake.yaml").write_text(yaml.safe_dump(data))
        return load(tmp_path / "lake.yaml")

    return make


REMOTE = {"format": "parquet", "path": "s3://acme-landing/flights"}

GOOD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (REMOTE, {}),
    (REMOTE, ROLE | {"external_id": "spf-12345"}),
    (REMOTE, ROLE | {"external_id": "${ssm:/lake/external-id}"}),
    (REMOTE, KEYS | {"secret_access_key": "${secret:arn:aws:secretsmanager:us-east-1:123456789012:secret:s3-Ab12cd}"}),
    (
        {
            "format": "jdbc",
            "options": {"url": "jdbc:postgresql://db/x", "query": "q", "password": "${ssm:/db/password}"},
        },
        {},
    ),
    ({"format": "delta", "path": "S3://acme/x", "options": {"header": True, "sep": "|", "useToken": True}}, {}),
    ({"sql": "SELECT '${env:HOME}/x' FROM f", "views": {"f": REMOTE}}, {}),
]


@pytest.mark.parametrize(("entry", "destination"), GOOD)
def test_what_the_job_can_read_anywhere_may_go(read: Any, entry: dict[str, Any], destination: dict[str, Any]) -> None:
    assert find_unshippable(read(entry, **destination)) == ()


BAD: list[tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]] = [
    (
        REMOTE,
        ROLE | {"external_id": "${env:EXTERNAL_ID}"},
        (f"destination.external_id: '${{env:EXTERNAL_ID}}' names a variable of this machine; {EXPECTED}",),
    ),
    (
        {"format": "jdbc", "options": {"url": "jdbc:postgresql://db/x", "query": "q", "password": "${env:DB}"}},
        {},
        (f"tables.0.read.options.password: '${{env:DB}}' names a variable of this machine; {EXPECTED}",),
    ),
    (
        REMOTE,
        KEYS | {"secret_access_key": "wJalrXUtnFEMI"},
        (f"secret_access_key is written out; {EXPECTED}",),
    ),
    *(
        (
            {"format": "jdbc", "options": {"url": "u", "query": "q"} | {name: value}},
            {},
            (f"table 'supaflow_nyc.flights': read.options.{name} holds a secret, written out; {EXPECTED}",),
        )
        for name, value in (
            ("password", "hunter2"),
            ("sfPassword", "hunter2"),
            ("url", "jdbc:postgresql://db/x?user=me&password=hunter2"),
            ("url", "mongodb://me:hunter2@db/x"),
            ("kafka.sasl.jaas.config", "PlainLoginModule required;"),
            ("apiKey", "hunter2"),
        )
    ),
    (
        {"sql": "SELECT * FROM f", "views": {"f": {"format": "csv", "path": "file:///data/f.csv"}}},
        {},
        (
            "table 'supaflow_nyc.flights': read.views.f.path: 'file:///data/f.csv' is on this machine; "
            "expected s3://..., or give source_root.",
        ),
    ),
]


@pytest.mark.parametrize(("entry", "destination", "problems"), BAD)
def test_what_means_nothing_there_may_not(
    read: Any, entry: dict[str, Any], destination: dict[str, Any], problems: tuple[str, ...]
) -> None:
    assert find_unshippable(read(entry, **destination)) == problems


def test_relative_path_is_on_this_machine(read: Any, tmp_path: Path) -> None:
    assert find_unshippable(read({"format": "csv", "path": ["a.csv", "s3://acme/b.csv"]})) == (
        f"table 'supaflow_nyc.flights': read.path: '{tmp_path}/a.csv' is on this machine; "
        "expected s3://..., or give source_root.",
    )


SECRET = "${secret:arn:aws:secretsmanager:us-east-1:123456789012:secret:registry-Ab12cd}"
REGISTRY = {"type": "avro", "registry": "https://registry.acme.example", "user": "loader", "password": SECRET}
VALUES: list[tuple[dict[str, str], tuple[str, ...]]] = [
    (REGISTRY, ()),
    (REGISTRY | {"password": "hush"}, (f"password is written out; {EXPECTED}",)),
    ({"type": "avro", "schema": "s3://acme-schemas/orders.avsc"}, ()),
    (
        {"type": "avro", "schema": "/schemas/orders.avsc"},
        (
            "table 'nyc.flights': read.values.schema: '/schemas/orders.avsc' is on this machine; expected s3://..., or "
            "give source_root.",
        ),
    ),
]


@pytest.mark.parametrize(("values", "problems"), VALUES)
def test_values_of_a_topic(tmp_path: Path, values: dict[str, str], problems: tuple[str, ...]) -> None:
    topic = {"format": "kafka", "options": {"kafka.bootstrap.servers": "b:9092", "subscribe": "t"}, "values": values}
    table = {"table": "flights", "schema": "nyc", "mode": "merge", "primary_key": ["id"], "envelope": "debezium"}
    place = {"location": "s3://acme-lake/data", "region": "us-east-1", "catalog": "iceberg", "tracking": ["deleted"]}
    data = {
        "pipeline": "flights",
        "destination": {"type": "lakewriter-s3"} | place,
        "tables": [table | {"read": topic}],
    }
    (tmp_path / "lake.yaml").write_text(yaml.safe_dump(data))
    assert find_unshippable(load(tmp_path / "lake.yaml")) == problems


SERVER = {"to": "https://marquez.example.com"}
LINEAGES: list[tuple[dict[str, str], tuple[str, ...]]] = [
    ({"to": "log"}, ()),
    (SERVER, ()),
    (SERVER | {"api_key": "${secret:arn:aws:secretsmanager:us-east-1:123456789012:secret:marquez-Ab12cd}"}, ()),
    (SERVER | {"api_key": "${ssm:/lake/marquez}"}, ()),
    (SERVER | {"api_key": "hush"}, (f"api_key is written out; {EXPECTED}",)),
    (
        SERVER | {"api_key": "${env:MARQUEZ}"},
        (f"lineage.api_key: '${{env:MARQUEZ}}' names a variable of this machine; {EXPECTED}",),
    ),
    (
        {"to": "events.jsonl"},
        (
            "lineage.to: 'events.jsonl' would be a file of a machine that is gone after the load; expected 'log' or a "
            "URL.",
        ),
    ),
]


@pytest.mark.parametrize(("lineage", "problems"), LINEAGES)
def test_lineage(read: Any, tmp_path: Path, lineage: dict[str, str], problems: tuple[str, ...]) -> None:
    read(REMOTE)
    file = tmp_path / "lake.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text("utf-8")) | {"lineage": lineage}), "utf-8")
    assert find_unshippable(load(file)) == problems


def test_shipped_file_reads_as_the_same_pipeline(read: Any, tmp_path: Path) -> None:
    lake = read(REMOTE, **ROLE, external_id="${ssm:/lake/external-id}")
    (tmp_path / "shipped.yaml").write_text(render_lake_file(lake), "utf-8")
    again = load(tmp_path / "shipped.yaml")
    assert again.spec == lake.spec
    assert (again.deployment.trust, "deployment" in again.data) == ((), False)
