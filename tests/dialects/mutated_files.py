"""Files of a specification with random damage: a seed gives the same files for ever."""

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tests.dialects.flows import DOCUMENTED

_FILES: Final[tuple[Mapping[str, str], ...]] = (
    {
        "lake.yaml": """\
pipeline: flights
destination:
  type: supaflow-s3-data-lake
  s3_bucket_name: acme-lake
  bucket_region: us-east-1
  s3_path_prefix: data/production
  iam_role_arn: arn:aws:iam::123456789012:role/LakeWriter
  external_id: ${env:LAKE_EXTERNAL_ID}
  table_format: PARQUET
  update_aws_glue_catalog: true
  file_name_pattern: part-{supa_job_id}-{seq}
tables:
  - &first
    table: flights
    schema: public
    read: {format: csv, path: flights.csv, options: {header: "true"}}
    primary_key: [flight_id]
    cursor: updated_at
    cursor_lag: 2 hours
    deleted: "op = 'D'"
    columns: {note: string}
    contract: {columns: evolve}
  - <<: *first
    table: more
    on_bad_row: {action: fail}
    read:
      sql: SELECT * FROM v
      views: {v: {format: json, path: [a, b]}}
limits: {target_file_mb: 100}
deployment:
  stages: {dev: {destination: {s3_bucket_name: acme-dev}}, prod: {}}
  trust: [{vendor: supaflow, external_id: "x1"}]
  schedule: {cron: "0 * * * ? *", timezone: UTC}
  spark: {release: emr-spark-8.1.0, architecture: X86_64, max_executors: 4}
  alarms: {no_success_hours: 3}
""",
    },
    {
        "lake.yaml": """\
pipeline: p
destination:
  type: supaflow-s3-data-lake
  s3_bucket_name: my-bucket
  bucket_region: us-east-1
  table_format: ICEBERG
  iceberg_catalog: SNOWFLAKE_OPEN_CATALOG
  catalog_endpoint: https://org-account.snowflakecomputing.com/polaris/api/catalog
  catalog_name: c
  client_id: i
  client_secret: ${env:S}
tables:
  - {table: t, schema: s, read: {format: csv, path: a.csv}, partition_by: ["day(c)", "bucket(16, d)"]}
""",
    },
    {
        "lake.yaml": """\
pipeline: p
destination: {type: airbyte-s3, config_file: config.json, upload_parallelism: 3}
source: {messages: [a.jsonl, b.jsonl], catalog: catalog.json, prefix: x_}
""",
        "config.json": json.dumps(
            {
                "access_key_id": "AKIA",
                "secret_access_key": "hush",
                "s3_bucket_name": "my-bucket",
                "s3_bucket_path": "data/${NAMESPACE}",
                "s3_bucket_region": "us-east-1",
                "s3_path_format": "${STREAM_NAME}/${YEAR}_${EPOCH}_",
                "file_name_pattern": "{date:yyyy_MM}_{part_number}{format_extension}",
                "format": {
                    "format_type": "Avro",
                    "compression_codec": {"codec": "zstandard", "compression_level": 3, "include_checksum": True},
                },
            },
            indent=1,
        ),
        "catalog.json": json.dumps(
            {
                "streams": [
                    {
                        "stream": {
                            "name": "users",
                            "namespace": "public",
                            "json_schema": {"type": "object", "properties": {"id": {"type": ["null", "integer"]}}},
                        },
                        "sync_mode": "incremental",
                        "destination_sync_mode": "append",
                        "cursor_field": ["id"],
                        "primary_key": [["id"]],
                        "generation_id": 4,
                        "minimum_generation_id": 0,
                        "sync_id": 12,
                    }
                ]
            },
            indent=1,
        ),
    },
    {
        "lake.yaml": """\
pipeline: p
destination: {type: heropixel-s3, s3_bucket_name: my-bucket, s3_bucket_path: "", s3_bucket_region: us-east-1,
  purge_first: true, format: {format_type: CSV, flattening: Root level flattening,
  compression: {compression_type: No Compression}}}
tables: [{table: t, mode: overwrite, read: {format: parquet, path: s3://a/b}}]
""",
    },
    {
        "lake.yaml": """\
pipeline: p
destination: {type: estuary-s3-parquet, config_file: flow.yaml, region: us-east-1}
tables:
  - source: PREFIX/source_collection
    read: {format: json, path: a.json}
    documents: doc
""",
        "flow.yaml": DOCUMENTED
        + """\
        fields: {include: {a: {}}, exclude: [b], recommended: 2}
collections:
  PREFIX/source_collection:
    key: [/id]
    readSchema:
      allOf: [{$ref: schema.yaml}, {$ref: "#/$defs/more"}]
      $defs: {more: {properties: {x: {type: string}}}}
    projections: {n: /id, m: {location: /a/b, partition: true}}
""",
        "schema.yaml": """\
type: object
required: [id]
properties:
  id: {type: integer}
  at: {type: string, format: date-time}
  deep: {$ref: "#/$defs/deep"}
  one: {oneOf: [{type: string}, {type: "null"}], enum: [a, null]}
$defs:
  deep: {type: object, properties: {again: {$ref: "#/$defs/deep"}, list: {type: array, items: {type: number}}}}
""",
    },
)

_ODD: Final[tuple[Any, ...]] = (
    None, True, 0, -1, 10**30, 1.5, float("nan"), float("inf"), "", " ", "x", "null", "${", "${env:}", "${env:X}",
    "*" * 12, "\u0000", "\ud7ff\u0301", "a" * 10_000, "s3://x", "/", "..", "{}", "${X}", "{seq", [], {}, [None], [[]],
    {"a": None}, [{}], {"": ""}, {"type": "x"}, {"$ref": "#"}, {"$ref": "flow.yaml"}, {"allOf": [{"$ref": "#"}]},
    ["a"] * 300, 2**63, -0.0, "2024-01-01", "yes", "\n", "'", "\u202e",
)  # fmt: skip
_TEXTS: Final = (
    ":", ": ", "- ", "\t", "[", "]", "{", "}", "'", '"', "\\", "|\n", ">", "&a ", "*a", "*first", "<<: *first",
    "!!int ", "!x ", "%", "@", "`", "#", ",", "? ", "---\n", "...\n",
    "\x00", "\ufeff", "\x85", "~", "2024-99-99", "1:61:9", "0x",
    "=", "\r", "&a [*a]", "null: ", "1: ", "yes: ", "\\ud800", "\U0001f600", "<<: 1", "{{{{", "!!binary x", "!!set {a}",
)  # fmt: skip


def mutated(seed: int) -> dict[str, str]:
    """The files of one case, one of them damaged in up to four places."""
    random_ = random.Random(f"files {seed}")
    files = dict(random_.choice(_FILES))
    name = random_.choice(list(files))
    for _ in range(random_.randint(1, 4)):
        files[name] = random_.choice(_WAYS)(random_, files[name])
    return files


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    """The files into ``folder``; the path of the lake.yaml."""
    for name, text in files.items():
        (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))
    return folder / "lake.yaml"


def _without(random_: random.Random, text: str) -> str:
    start = random_.randint(0, len(text))
    return text[:start] + text[start + random_.choice((1, 1, 2, 5, 40)) :]


def _with(random_: random.Random, text: str) -> str:
    at = random_.randint(0, len(text))
    return text[:at] + random_.choice(_TEXTS) + text[at:]


def _in_lines(random_: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True) or [""]
    here, there = random_.randrange(len(lines)), random_.randrange(len(lines))
    way = random_.randrange(4)
    if way == 0:
        lines[here], lines[there] = lines[there], lines[here]
    elif way == 1:
        lines.insert(here, lines[there])
    elif way == 2:
        lines[here] = " " * random_.randint(1, 3) + lines[here]
    else:
        del lines[here]
    return "".join(lines)


def _in_values(random_: random.Random, text: str) -> str:
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, RecursionError):
        return _with(random_, text)
    places: list[tuple[Any, Any]] = []
    _collect(content, places, 0)
    if not places:
        return _with(random_, text)
    parent, key = random_.choice(places)
    way = random_.randrange(4)
    if way == 0:
        del parent[key]
    elif way == 1 and isinstance(parent, dict):
        parent[_renamed(random_, str(key))] = parent.pop(key)
    elif way == 2:
        other, its_key = random_.choice(places)
        try:
            parent[key] = json.loads(json.dumps(other[its_key], default=str))
        except (ValueError, LookupError):
            parent[key] = None
    else:
        parent[key] = random_.choice(_ODD)
    is_json = text.lstrip().startswith(("{", "["))
    return json.dumps(content, default=str) if is_json else yaml.safe_dump(content, sort_keys=False)


def _collect(value: Any, places: list[tuple[Any, Any]], depth: int) -> None:
    if depth > 20 or not isinstance(value, dict | list):
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        places.append((value, key))
        _collect(inner, places, depth + 1)


def _renamed(random_: random.Random, key: str) -> Any:
    at = random_.randint(0, len(key))
    return random_.choice((key[:at] + key[at + 1 :], key[:at] + "_" + key[at:], key.upper(), f"x{key}", 5, None, True))


_WAYS: Final[tuple[Callable[[random.Random, str], str], ...]] = (_without, _with, _in_lines, _in_values, _in_values)
