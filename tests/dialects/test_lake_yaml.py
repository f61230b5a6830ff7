"""Files that are wrong, and what is said of them."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from job.dialects.lake_yaml import LakeFile, load_spec
from job.errors import SpecInvalidError, TlsRequiredError
from tests.dialects.files import READ, TABLE, lake

PROBLEMS = [
    # what is laid over a valid file, its one problem
    ({"partition_strateg": "DAY"}, "destination.partition_strateg: unknown key, with value 'DAY'; did you mean "
     "'partition_strategy'?"),
    ({"partition_strategy": "HOURLY"}, "destination.partition_strategy: 'HOURLY' is not allowed; expected 'NONE', "
     "'DAY', 'HOUR' or 'SYNC_ID'; did you mean 'HOUR'?"),
    ({"s3_bucket_name": None}, "destination.s3_bucket_name: is required."),
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
    ({"external_id": "abc"}, "destination: 'external_id' goes with 'iam_role_arn'."),
    ({"access_key_id": "abc"}, "destination: 'access_key_id' and 'secret_access_key' go together."),
    ({"custom_s3_endpoint": "minio"}, "destination.custom_s3_endpoint: 'minio': expected a URL such as "
     "'https://s3.example.com'."),
    ({"upload_parallelism": 11}, "destination.upload_parallelism: 11: input should be less than or equal to 10."),
    ({"table_format": "ICEBERG"}, "destination.table_format: 'ICEBERG': this version writes PARQUET only; expected "
     "'PARQUET'."),
    ({"type": "supaflow-s3", "update_aws_glue_catalog": True}, "destination.update_aws_glue_catalog: unknown key, "
     "with value True; did you mean 'sync_schema_with_aws_glue_catalog'?"),
    ({"type": "supaflow-s4"}, "destination.type: 'supaflow-s4' is no known destination; expected 'supaflow-s3', "
     "'supaflow-s3-data-lake'; did you mean 'supaflow-s3'?"),
    ({"file_name_pattern": "part-{seq}"}, "destination.file_name_pattern: 'part-{seq}': two loads would give one "
     "name; add {supa_job_id} or {uuid}."),
    ({"file_name_pattern": "{supa_job_id}"}, "destination.file_name_pattern: '{supa_job_id}': two files of a load "
     "would have one name; add {seq} or {uuid}."),
    ({"file_name_pattern": "{job_id}-{seq}"}, "destination.file_name_pattern: '{job_id}-{seq}': '{job_id}' is no "
     "variable; known: {seq}, {uuid}, {timestamp}, {supa_job_id}, {date}; did you mean '{supa_job_id}'?"),
    ({"file_name_pattern": "a/{uuid}"}, "destination.file_name_pattern: 'a/{uuid}': '/' cannot be in a file name; "
     "folders follow from 'partition_strategy'."),
    ({"tables": []}, "tables: []: expected at least one table."),
    ({"tables": [TABLE | {"cursor_lag": "1 hour"}]}, "tables.0: 'cursor_lag' goes with 'cursor'."),
    ({"tables": [TABLE | {"cursor": "c", "cursor_lag": "soon"}]}, "tables.0.cursor_lag: 'soon': expected a number, or "
     "a time such as '2 hours'."),
    ({"tables": [{"table": "t", "read": {}}]}, "tables.0.read: expected either 'format' or 'sql'."),
    ({"tables": [{"table": "t", "read": READ | {"pth": "x"}}]}, "tables.0.read.pth: unknown key, with value 'x'; did "
     "you mean 'path'?"),
    ({"top": {"pipeline": "My Pipeline"}}, "pipeline: 'My Pipeline': expected lower-case letters, digits, '-' and "
     "'_', at most 63, a letter or digit first."),
    ({"top": {"on_failur": "stop"}}, "on_failur: unknown key, with value 'stop'; did you mean 'on_failure'?"),
]  # fmt: skip


@pytest.mark.parametrize(("over", "expected"), PROBLEMS)
def test_problem(tmp_path, over, expected):
    with pytest.raises(SpecInvalidError) as caught:
        load_spec(lake(tmp_path, **over))
    assert [problem.split(": ", 1)[1] for problem in caught.value.problems] == [expected]
    assert caught.value.exit_code == 2


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


TEXTS = [
    ("a: [1", "lake.yaml is not YAML"),
    ("- a", "lake.yaml holds list, expected a mapping"),
    ("pipeline: a\npipeline: b\n", "line 2: pipeline is given twice."),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_text_that_is_no_file_of_ours(tmp_path, text, expected):
    (tmp_path / "lake.yaml").write_text(text, "utf-8")
    with pytest.raises(SpecInvalidError) as caught:
        load_spec(tmp_path / "lake.yaml")
    assert expected in str(caught.value)


def test_overwrite_is_refused(tmp_path):
    with pytest.raises(SpecInvalidError, match="this destination only appends"):
        load_spec(lake(tmp_path, tables=[TABLE | {"mode": "overwrite"}]))


def test_stage_is_merged(tmp_path):
    stages = {"deployment": {"stages": {"dev": {"destination": {"s3_bucket_name": "dev-bucket"}}}}}
    file = lake(tmp_path, top=stages)
    assert load_spec(file, stage="dev").access.bucket == "dev-bucket"
    assert load_spec(file).access.bucket == "my-bucket"
    with pytest.raises(SpecInvalidError, match=r"no stage .prod.; deployment\.stages has: dev"):
        load_spec(file, stage="prod")


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
        with pytest.raises(TlsRequiredError):
            load_spec(file)


def test_secrets_are_never_shown(tmp_path):
    keys = {"access_key_id": "AKIALITERAL", "secret_access_key": "hush-hush"}
    spec = load_spec(lake(tmp_path, **keys))
    assert "hush" not in repr(spec) + spec.model_dump_json() + str(spec.warnings)
    assert "secret_access_key is written out" in spec.warnings[0]


@pytest.mark.parametrize("name", ["demo/lake.yaml", "supaflow-s3.yaml", "supaflow-s3-data-lake.yaml"])
def test_schema_accepts_the_examples(name):
    content = yaml.safe_load((Path("examples") / name).read_text("utf-8"))
    jsonschema.validate(json.loads(json.dumps(content)), LakeFile.model_json_schema())
