"""Files that are wrong, and what is said of them."""

from pathlib import Path
from typing import Any

import pytest

from lakewriter.dialects.common.read_keys import make_absolute
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SpecInvalidError, TlsRequiredError
from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.readers import DELTA
from tests.dialects.files import READ, TABLE, lake
from tests.support.narrow import expect

PROBLEMS = [
    # what is laid over a valid file, its one problem
    ({"partition_strateg": "DAY"}, "destination.partition_strateg: unknown key, with value 'DAY'; did you mean "
     "'partition_strategy'?"),
    ({"partition_strategy": "HOURLY"}, "destination.partition_strategy: 'HOURLY' is not allowed; expected 'NONE', "
     "'DAY', 'HOUR' or 'SYNC_ID'; did you mean 'HOUR'?"),
    ({"s3_bucket_name": None}, "destination.s3_bucket_name: is required, such as s3_bucket_name: acme-lake."),
    ({"s3_bucket_name": "My_Bucket"}, "destination.s3_bucket_name: 'My_Bucket': expected a bucket name: 3 to 63 "
     "lower-case letters, digits, '.' and '-'."),
    ({"bucket_region": "Virginia"}, "destination.bucket_region: 'Virginia': expected an AWS region such as "
     "'us-east-1'."),
    ({"iam_role_arn": "LakeWriter"}, "destination.iam_role_arn: 'LakeWriter': expected a role's ARN such as "
     "'arn:aws:iam::123456789012:role/LakeWriter'."),
    ({"iam_role_arn": "arn:aws:iam::123456789012:role/L", "external_id": " x1 "}, "destination.external_id: (not "
     "shown): expected 2 to 1224 letters, digits and +=,.@:/-_ without spaces around them."),
    ({"iam_role_arn": "arn:aws:iam::123456789012:role/L", "external_id": "${ENV:X}"}, "destination.external_id: (not "
     "shown): expected ${env:NAME}, ${secret:ARN[:json-key]} or ${ssm:NAME}, and nothing around it."),
    ({"external_id": "abc"}, "destination.external_id: 'external_id' needs 'iam_role_arn' beside it."),
    ({"access_key_id": "abc"},
     "destination.access_key_id: 'access_key_id' and 'secret_access_key' are given both or not at all."),
    ({"custom_s3_endpoint": "minio"}, "destination.custom_s3_endpoint: 'minio': expected a URL such as "
     "'https://s3.example.com'."),
    ({"upload_parallelism": 11}, "destination.upload_parallelism: 11: expected at most 10."),
    ({"table_format": "DELTA"}, "destination.table_format: 'DELTA': expected 'PARQUET' or 'ICEBERG'."),
    ({"type": "supaflow-s3", "update_aws_glue_catalog": True}, "destination.update_aws_glue_catalog: unknown key, "
     "with value true; did you mean 'sync_schema_with_aws_glue_catalog'?"),
    ({"type": "supaflow-s4"}, "destination.type: 'supaflow-s4' is not a known destination; expected 'supaflow-s3', "
     "'supaflow-s3-data-lake', 'airbyte-s3', 'heropixel-s3', 'estuary-s3-parquet' or 'lakewriter-s3'; did you mean "
     "'supaflow-s3'?"),
    ({"file_name_pattern": "part-{seq}"}, "destination.file_name_pattern: 'part-{seq}': two loads would give "
     "their files one name; add {supa_job_id} or {uuid}."),
    ({"file_name_pattern": "{supa_job_id}"}, "destination.file_name_pattern: '{supa_job_id}': two files of a load "
     "would have one name; add {seq} or {uuid}."),
    ({"file_name_pattern": "{job_id}-{seq}"}, "destination.file_name_pattern: '{job_id}-{seq}': '{job_id}' is no "
     "variable; known: {seq}, {uuid}, {timestamp}, {supa_job_id}, {date}; did you mean '{supa_job_id}'?"),
    ({"file_name_pattern": "a/{uuid}"}, "destination.file_name_pattern: 'a/{uuid}': '/' cannot be in a file name; "
     "folders follow from 'partition_strategy'."),
    ({"file_name_pattern": "_{uuid}"}, "destination.file_name_pattern: '_{uuid}': Athena and Spark leave out files "
     "whose names begin with '_' or '.'."),
    ({"s3_path_prefix": "s3://my-bucket/data"}, "destination.s3_path_prefix: 's3://my-bucket/data': expected a path "
     "inside the bucket, such as 'data-lake/production'."),
    ({"custom_s3_endpoint": "https://s3.example.com", "bucket_region": "us_1"}, "destination.bucket_region: 'us_1': "
     "expected the store's name for its region, such as 'us-east-1' or 'nyc3'."),
    ({"type": ["a"]}, "destination.type: a list is not a known destination; expected 'supaflow-s3', "
     "'supaflow-s3-data-lake', 'airbyte-s3', 'heropixel-s3', 'estuary-s3-parquet' or 'lakewriter-s3'."),
    ({"type": None}, "destination.type: is required; expected 'supaflow-s3', 'supaflow-s3-data-lake', "
     "'airbyte-s3', 'heropixel-s3', 'estuary-s3-parquet' or 'lakewriter-s3'."),
    ({"top": {"destination": "s3"}}, "destination: 's3': expected a mapping with the key 'type'."),
    ({"tables": []}, "tables: an empty list: expected at least one table."),
    ({"tables": [TABLE | {"cursor": "c", "cursor_lag": "soon"}]}, "tables.0.cursor_lag: 'soon': expected a number, or "
     "a time such as '2 hours'."),
    ({"tables": [TABLE | {"partition_by": ["week(c)"]}]}, "tables.0.partition_by.0: 'week(c)': expected a column, or "
     "year(c), month(c), day(c), hour(c), bucket(16, c) or truncate(4, c)."),
    ({"tables": [TABLE | {"partition_by": ["bucket(0, c)"]}]}, "tables.0.partition_by.0: 'bucket(0, c)': expected a "
     "column, or year(c), month(c), day(c), hour(c), bucket(16, c) or truncate(4, c)."),
    ({"tables": [{"table": "t", "read": {}}]}, "tables.0.read: expected either 'format' or 'sql'."),
    ({"tables": [{"table": "t", "read": READ | {"pth": "x"}}]}, "tables.0.read.pth: unknown key, with value 'x'; did "
     "you mean 'path'?"),
    ({"tables": TABLE}, "tables: a mapping: expected a list, such as tables: [{table: orders, read: "
      "{format: csv, path: orders/*.csv}}]."),
    ({"tables": ["accounts"]}, "tables.0: 'accounts': expected a mapping."),
    ({"tables": [{"table": "t", "read": {}}]}, "tables.0.read: expected either 'format' or 'sql'."),
    ({"tables": [TABLE | {"table": 5}]}, "tables.0.table: 5: expected text, in quotes."),
    ({"tables": [TABLE | {"primary_key": "id"}]}, "tables.0.primary_key: 'id': expected a list, such as [id]."),
    ({"tables": [TABLE | {"columns": ["a"]}]}, "tables.0.columns: a list: expected a mapping, such as "
      "columns: {amount: 'decimal(12,2)'}."),
    ({"tables": [TABLE | {"cursor": "c", "cursor_lag": ["a"]}]}, "tables.0.cursor_lag: a list: expected text or a "
     "number."),
    ({"tables": [{"table": "t", "read": READ | {"options": {"header": None}}}]}, "tables.0.read.options.header: (not "
     "shown): expected text, true or false or a number."),
    ({"tables": [{"table": "t", "read": READ | {"options": {"x": "${env:}"}}}]}, "tables.0.read.options.x: (not "
     "shown): expected ${env:NAME}, ${secret:ARN[:json-key]} or ${ssm:NAME}, and nothing around it."),
    ({"tables": [{"table": "t", "read": {"format": "csv", "path": "x", "options": {"delimeter": ";"}}}]},
     "tables.0.read.options.delimeter: 'delimeter' is no option of csv; did you mean 'delimiter'?"),
    ({"tables": [{"table": "t", "read": {"sql": "SELECT 1", "views": {"v": {"format": "CSV", "options": {"heder": 1}}}}
     }]},
     "tables.0.read.views.v.options.heder: 'heder' is no option of CSV; did you mean 'header'?"),
    ({"tables": [{"table": "t", "read": READ | {"partition": {"column": "id", "count": 4}}}]},
     "tables.0.read.partition: 'partition' is only for 'format: jdbc'."),
    ({"tables": [{"table": "t", "read": {"format": "jdbc", "jdbc": {"lock": True}}}]},
     "tables.0.read: 'jdbc.lock' is for 'partition': one connection sees one moment by itself."),
    ({"tables": [{"table": "t", "read": {"format": "jdbc", "options": {"lowerBound": 1}, "partition": {"column": "id",
      "count": 4}}}]},
     "tables.0.read.partition: 'partition' finds the bounds itself: leave out 'lowerBound', or leave out "
     "'partition'."),
    ({"update_aws_glue_catalog": "maybe"}, "destination.update_aws_glue_catalog: 'maybe': expected true or false."),
    ({"upload_parallelism": "many"}, "destination.upload_parallelism: 'many': expected a whole number."),
    ({"top": {1: "x"}}, "1: a key is text; put it in quotes."),
    ({"top": {"pipeline": "My Pipeline"}}, "pipeline: 'My Pipeline': expected lower-case letters, digits, '-' and "
     "'_', at most 63, a letter or digit first."),
    ({"top": {"on_bad_row": "skip"}},
     "on_bad_row: 'skip' is not allowed; expected 'fail' or 'quarantine'."),
    ({"tables": [TABLE | {"on_bad_row": {"action": "skip"}}]}, "tables.0.on_bad_row.action: 'skip' is not allowed; "
     "expected 'fail' or 'quarantine'."),
    ({"tables": [TABLE | {"on_bad_row": {"action": "quarantine", "at_most": 2}}]}, "tables.0.on_bad_row.at_most: 2: "
     "expected at most 1."),
    ({"tables": [TABLE | {"on_bad_row": {"action": "fail", "at_most": 0.5}}]},
     "tables.0.on_bad_row.at_most: 'at_most' is only for the action 'quarantine'."),
    ({"tables": [TABLE | {"on_bad_row": 5}]}, "tables.0.on_bad_row: 5: expected a mapping."),
    ({"tables": [TABLE | {"contract": {"columns": "drop"}}]}, "tables.0.contract.columns: 'drop' is not allowed; "
     "expected 'evolve', 'freeze' or 'discard'."),
    ({"top": {"contract": {"types": "discard"}}}, "contract.types: 'discard' is not allowed; expected 'evolve' or "
     "'freeze'."),
    ({"top": {"contract": {"column": "freeze"}}}, "contract.column: unknown key, with value 'freeze'; did you mean "
     "'columns'?"),
    ({"top": {"deployment": {"schedule": {"cron": "0 6 * * ? *", "timezone": "Europe/Berln"}}}},
     "deployment.schedule.timezone: 'Europe/Berln': there is no time zone 'Europe/Berln'; did you mean "
     "'Europe/Berlin'?"),
    ({"top": {"deployment": {"schedule": {"cron": "0 6 * * ? *", "timezone": "Q"}}}},
     "deployment.schedule.timezone: 'Q': there is no time zone 'Q'; expected a name such as 'Europe/Berlin'."),
    ({"top": {"on_failur": "stop"}}, "on_failur: unknown key, with value 'stop'; did you mean 'on_failure'?"),
]  # fmt: skip


@pytest.mark.parametrize(("over", "expected"), PROBLEMS)
def test_problem(tmp_path, over, expected):
    with pytest.raises(SpecInvalidError) as caught:
        load_spec(lake(tmp_path, **over))
    assert [problem.split(": ", 1)[1] for problem in caught.value.problems] == [expected]
    assert caught.value.exit_code == 2


HUSHED = [
    {"access_key_id": "A", "secret_access_key": ["hush"]},
    {"access_key_id": "A", "secret_access_key": {"value": "hush"}},
    {"secret_access_kye": "hush"},
    {"external_id": "hush hush"},
    {"tables": [{"table": "t", "read": READ | {"password": "hush"}}]},
    {"tables": [{"table": "t", "read": READ | {"url": "jdbc:postgresql://db/shop?password=hush"}}]},
    {"tables": [{"table": "t", "read": READ | {"options": "password=hush"}}]},
    {"tables": [{"table": "t", "read": READ | {"options": {"password": ["hush"]}}}]},
    {"tables": {"read": {"options": {"password": "hush"}}}},
]


@pytest.mark.parametrize("over", HUSHED)
def test_no_message_shows_a_secret(tmp_path, over):
    with pytest.raises(SpecInvalidError) as caught:
        load_spec(lake(tmp_path, **over))
    assert "hush" not in str(caught.value) + repr(caught.value.problems)


def test_all_problems_at_once_with_their_lines(tmp_path):
    file = lake(tmp_path, partition_strategy="HOURLY", bucket_region=None, tables=[TABLE | {"mode": "apend"}])
    with pytest.raises(SpecInvalidError) as caught:
        load_spec(file)
    assert caught.value.summary == "lake.yaml has 3 problems:"
    assert [problem.split(" ")[0] for problem in caught.value.problems] == [
        "lake.yaml:2:",
        "lake.yaml:5:",
        "lake.yaml:11:",
    ]


MERGED = {"mode": "merge", "primary_key": ["id"], "order_by": ["at"]}


@pytest.mark.parametrize("entry", [{"mode": "overwrite"}, {"mode": "refresh"}, MERGED])
def test_overwrite_is_refused(tmp_path, entry):
    with pytest.raises(SpecInvalidError, match="this destination only appends"):
        load_spec(lake(tmp_path, tables=[TABLE | entry]))


def test_delta_encodings_are_asked_for(tmp_path):
    encoding = expect(ParquetEncoding, load_spec(lake(tmp_path, top={"delta_encodings": True})).encoding)
    assert encoding.value_encodings == DELTA
    assert expect(ParquetEncoding, load_spec(lake(tmp_path)).encoding).value_encodings == frozenset()


def test_stage_is_merged(tmp_path):
    stages = {"deployment": {"stages": {"dev": {"destination": {"s3_bucket_name": "dev-bucket"}}}}}
    file = lake(tmp_path, top=stages)
    assert load_spec(file, stage="dev").access.bucket == "dev-bucket"
    assert load_spec(file).access.bucket == "my-bucket"
    with pytest.raises(
        SpecInvalidError, match=r"lake.yaml:12: deployment.stages: there is no stage .prod.; known stages: dev"
    ):
        load_spec(file, stage="prod")


def test_problem_of_a_stage_is_at_the_line_of_the_stage(tmp_path):
    stages = {"deployment": {"stages": {"dev": {"destination": {"bucket_region": "Virginia"}}, "odd": "x"}}}
    file = lake(tmp_path, top=stages)
    with pytest.raises(
        SpecInvalidError, match=r"lake\.yaml:15: deployment\.stages\.dev\.destination\.bucket_region: 'Virginia'"
    ):
        load_spec(file, stage="dev")
    with pytest.raises(SpecInvalidError, match=r"lake\.yaml:16: deployment\.stages\.odd: text, expected a mapping"):
        load_spec(file, stage="odd")


ENDPOINTS = [
    ("http://minio.example.com:9000", False, False),
    ("http://minio.example.com:9000", True, True),
    ("http://127.0.0.1:9000", False, True),
    ("https://s3.example.com", False, True),
]


@pytest.mark.parametrize(("endpoint", "insecure", "accepted"), ENDPOINTS)
def test_endpoint(tmp_path, endpoint, insecure, accepted):
    file = lake(tmp_path, custom_s3_endpoint=endpoint, allow_insecure=insecure)
    if accepted:
        assert load_spec(file).access.checksum_algorithm is None
    else:
        with pytest.raises(TlsRequiredError, match="has no TLS and is not on this machine"):
            load_spec(file)


def test_store_names_its_own_region(tmp_path):
    store: dict[str, Any] = {"custom_s3_endpoint": "https://nyc3.digitaloceanspaces.com", "bucket_region": "nyc3"}
    assert load_spec(lake(tmp_path, **store)).access.region == "nyc3"


PATHS = [
    # path, where relative ones start, the path that is read
    ("a.csv", "/srv", "/srv/a.csv"),
    ("/data/a.csv", "s3://acme", "/data/a.csv"),
    ("a.csv", "s3://acme/", "s3://acme/a.csv"),
    ("s3a://b/a.csv", "/srv", "s3a://b/a.csv"),
    ("file:/data/a.csv", "/srv", "file:/data/a.csv"),
    # one letter is a drive of Windows, not a scheme
    ("a.csv", "C:\\lake", str(Path("C:\\lake", "a.csv"))),
]


@pytest.mark.parametrize(("path", "root", "expected"), PATHS)
def test_relative_paths(path, root, expected):
    assert make_absolute(path, root) == expected


def test_secrets_are_never_shown(tmp_path):
    keys: dict[str, Any] = {"access_key_id": "AKIALITERAL", "secret_access_key": "hush-hush"}
    spec = load_spec(lake(tmp_path, **keys))
    assert "hush" not in repr(spec) + spec.model_dump_json() + str(spec.warnings)
    assert "secret_access_key is written out" in spec.warnings[0]


EXAMPLES = [
    "demo/lake.yaml",
    "supaflow-s3.yaml",
    "supaflow-s3-data-lake.yaml",
    "supaflow-s3-data-lake-iceberg.yaml",
    "estuary-s3-parquet.yaml",
]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_load(name):
    assert load_spec(Path("examples") / name).tables
