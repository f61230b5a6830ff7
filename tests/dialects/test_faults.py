"""What is wrong in a file that the lake.yaml names is told with that file's own line and key, and in its stage's."""

import json
from typing import Any

import pytest

from lakewriter.dialects.airbyte.connector import read_connection
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import LakeError

CONFIG = """\
{
 "s3_bucket_name": "my-bucket",
 "s3_bucket_path": "sync",
 "s3_bucket_region": "us-east-1",
 "s3_endpoint": "http://store.example.com",
 "format": {"format_type": "CSV"}
}
"""
CATALOG = """\
{"streams": [
 {"stream": {"name": "a.b"}},
 {"stream": {"name": "a_b_2e7336dc"}}
]}
"""
FLOW = """\
materializations:
  m:
    endpoint:
      connector:
        config:
          bucket: my-bucket
          region: us-east-1
          uploadIntervalInSeconds: 300
          advanced: {}
    bindings:
      - source: acme/a
        resource: {pathPrefix: /a}
collections:
  acme/a:
    key: [/id]
    schema: {type: object}
"""
AIRBYTE = """\
pipeline: p
destination: {type: airbyte-s3, config_file: config.json}
source: {messages: m.jsonl, catalog: catalog.json}
"""
ESTUARY = """\
pipeline: p
destination:
  type: estuary-s3-parquet
  config_file: flow.yaml
tables:
  - {source: acme/a, read: {format: json, path: a.json}}
"""
STAGES = """\
pipeline: p
destination: {type: supaflow-s3, s3_bucket_name: my-bucket, bucket_region: us-east-1}
tables:
  - {table: t, read: {format: csv, path: a.csv}}
deployment:
  stages:
    dev:
      destination:
        custom_s3_endpoint: http://store.example.com
"""
NO_TLS = "'http://store.example.com' has no TLS and is not on this machine. Use https://, or set allow_insecure: true."

FAULTS: list[tuple[dict[str, str], str | None, str]] = [
    # the files, the stage, what is said
    ({"lake.yaml": AIRBYTE, "config.json": CONFIG, "catalog.json": '{"streams": [{"stream": {"name": "a"}}]}'}, None,
     f"TLS_REQUIRED: config.json:5: s3_endpoint: {NO_TLS}"),
    ({"lake.yaml": AIRBYTE, "config.json": CONFIG.replace("http://store.example.com", ""), "catalog.json": CATALOG},
     None, "NAME_COLLISION: catalog.json:3: streams.1: streams 'a.b' and 'a_b_2e7336dc' would both be known as "
     "'a_b_2e7336dc'. Give one of them another name, with 'prefix' or 'namespace_format' for example."),
    ({"lake.yaml": AIRBYTE + "on_bad_row: fail\n", "config.json": CONFIG.replace("http://store.example.com", ""),
      "catalog.json": CATALOG.replace("a.b", "c")}, None,
     "SPEC_INVALID: lake.yaml:4: on_bad_row: table 'c' has on_bad_row: fail, which cannot be kept for messages. "
     "Leave it out; a row that cannot be read then fails the load, or is treated as the destination's guide "
     "says."),
    ({"lake.yaml": ESTUARY, "flow.yaml": FLOW.replace("{}", "{endpoint: 'http://store.example.com'}")}, None,
     f"TLS_REQUIRED: flow.yaml:9: materializations.m.endpoint.connector.config.advanced.endpoint: {NO_TLS}"),
    ({"lake.yaml": ESTUARY, "flow.yaml": FLOW.replace("/a}", "/_lakewriter}")}, None,
     "SPEC_INVALID: lake.yaml has 1 problem: flow.yaml:12: materializations.m.bindings.0.resource.pathPrefix: "
     "'/_lakewriter': has the segment '_lakewriter', and what begins with '_lakewriter' is for control objects; "
     "expected text such as '/my-prefix'."),
    ({"lake.yaml": ESTUARY + "  - {source: acme/b, read: {format: json, path: b}}\n", "flow.yaml": FLOW}, None,
     "SPEC_INVALID: lake.yaml:7: tables.1.source: 'acme/b' is the source of no binding of flow.yaml. Leave it out of "
     "tables, or add a binding with this source."),
    ({"lake.yaml": ESTUARY, "flow.yaml": FLOW.replace("{type: object}", "none.yaml")}, None,
     "SPEC_INVALID: flow.yaml:16: collections.acme/a.schema: there is no file FOLDER/none.yaml'. The folder has: "
     "flow.yaml, lake.yaml."),
    ({"lake.yaml": ESTUARY, "flow.yaml": FLOW.replace("{type: object}", "{$ref: none.yaml}")}, None,
     "SPEC_INVALID: flow.yaml:16: collections.acme/a.schema: there is no file FOLDER/none.yaml'. The folder has: "
     "flow.yaml, lake.yaml."),
    ({"lake.yaml": ESTUARY}, None,
     "SPEC_INVALID: lake.yaml:4: destination.config_file: there is no file FOLDER/flow.yaml'. The folder has: "
     "lake.yaml."),
    ({"lake.yaml": STAGES}, "dev",
     f"TLS_REQUIRED: lake.yaml:9: deployment.stages.dev.destination.custom_s3_endpoint: {NO_TLS}"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "stage", "said"), FAULTS, ids=range(len(FAULTS)))
def test_fault_of_a_file(tmp_path, files, stage, said):
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(LakeError) as caught:
        load_spec(tmp_path / "lake.yaml", stage=stage)
    assert str(caught.value).replace(f"'{tmp_path}", "FOLDER") == said


CONNECTOR: list[tuple[dict[str, Any], str, str]] = [
    # what the platform's configuration has beside, its catalog, what is said
    ({"s3_endpoint": "http://store.example.com"}, CATALOG.replace("a.b", "c"),
     f"TLS_REQUIRED: config.json:1: s3_endpoint: {NO_TLS}"),
    ({"s3_endpoint": ""}, CATALOG, "NAME_COLLISION: catalog.json:3: streams.1: streams 'a.b' and 'a_b_2e7336dc' would "
     "both be known as 'a_b_2e7336dc'. Give one of them another name, with 'prefix' or 'namespace_format' for "
     "example."),
]  # fmt: skip


@pytest.mark.parametrize(("over", "catalog", "said"), CONNECTOR)
def test_fault_of_the_platforms_files(tmp_path, over, catalog, said):
    (tmp_path / "config.json").write_text(json.dumps(json.loads(CONFIG) | over), "utf-8")
    (tmp_path / "catalog.json").write_text(catalog, "utf-8")
    with pytest.raises(LakeError) as caught:
        read_connection(tmp_path / "config.json", tmp_path / "catalog.json")
    assert str(caught.value) == said
