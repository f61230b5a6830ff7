"""The connector's present configuration, key by key. What is expected is the connector's own specification and keys:
https://github.com/estuary/connectors/blob/main/materialize-s3-parquet/.snapshots/TestSpec and filesink/filesink_test.go
in the same repository."""

from datetime import UTC, datetime

import jsonschema
import pytest
import yaml

from lakewriter.dialects.estuary.current_settings import read_duration
from lakewriter.dialects.lake_yaml import LakeFile, load, load_spec
from lakewriter.errors import SpecInvalidError
from lakewriter.spec.access import SecretText
from tests.dialects.flows import DOCUMENTED, TABLE, bindings, flow

AT = datetime(2026, 2, 11, 10, 2, 3, 4, tzinfo=UTC)
KEYS = {"auth_type": "AWSAccessKey", "awsAccessKeyId": "AKIAIOSFODNN7EXAMPLE", "awsSecretAccessKey": "${env:SECRET}"}
ROLE = {"auth_type": "AWSIAM", "aws_role_arn": "arn:aws:iam::123456789012:role/flow", "aws_region": "us-east-1"}
CONFIG = {"bucket": "my-bucket", "region": "us-east-1", "credentials": KEYS, "uploadInterval": "5m"}
BINDING = TABLE | {"resource": {"path": "path"}}


def lake(folder, *tables, **over):
    """A lake.yaml with the present keys; None takes one out."""
    return bindings(folder, *(tables or [BINDING]), **{"uploadIntervalInSeconds": None} | CONFIG | over)


def key_of(table, seq=0, backfill=0, first=0):
    names = table.layout.bind(job_id="j", attempt="x", start=AT)
    return names.number(backfill, first).object_key(seq)


def test_whole_configuration(tmp_path):
    spec = load_spec(
        lake(
            tmp_path,
            prefix="lake",
            fileSizeLimit=1_000_000,
            endpoint="https://s3.example.com",
            parquetConfig={"rowGroupRowLimit": 5000, "rowGroupByteLimit": 2_000_000, "bufferSize": 1000},
        )
    )
    access, limits = spec.access, spec.limits
    assert (access.bucket, access.region, access.endpoint) == ("my-bucket", "us-east-1", "https://s3.example.com")
    assert access.access_key_id == SecretText("AKIAIOSFODNN7EXAMPLE")
    assert (spec.interval_seconds, spec.roots, spec.warnings) == (300, ("lake/path",), ())
    assert (limits.target_file_bytes, limits.row_group_bytes, limits.row_group_rows) == (1_000_000, 2_000_000, 5000)


def test_blank_sizes_are_the_pipelines_own(tmp_path):
    limits = load_spec(lake(tmp_path, fileSizeLimit=0)).limits
    assert (limits.target_file_bytes, limits.row_group_rows) == (200 * 1024 * 1024, 1_000_000)


def test_role(tmp_path):
    access = load_spec(lake(tmp_path, credentials=ROLE | {"external_id": "acme-1"})).access
    assert (access.role_arn, access.access_key_id) == (ROLE["aws_role_arn"], None)
    assert access.external_id is not None


def test_no_credentials_are_the_jobs_own(tmp_path):
    access = load_spec(lake(tmp_path, credentials=None)).access
    assert (access.role_arn, access.access_key_id, access.explicit) == (None, None, False)


KEYS_OF_FILES = [
    # prefix, path, backfill, first number, the key: filesink_test.go, with the extension of Parquet
    ("", "path", 0, 0, "path/v0000000000/00000000000000000000.parquet"),
    ("prefix", "path", 0, 0, "prefix/path/v0000000000/00000000000000000000.parquet"),
    ("prefix/", "path", 0, 0, "prefix/path/v0000000000/00000000000000000000.parquet"),
    ("", "path", 1, 0, "path/v0000000001/00000000000000000000.parquet"),
    ("", "path", 0, 2, "path/v0000000000/00000000000000000002.parquet"),
    ("prefix/", "path", 2, 4, "prefix/path/v0000000002/00000000000000000004.parquet"),
    ("prefix/%Y/%m/%d", "path", 0, 0, "prefix/2026/02/11/path/v0000000000/00000000000000000000.parquet"),
    ("prefix/%Y-%m-%dT%H:%M:%S%z", "path", 0, 0,
     "prefix/2026-02-11T10:02:03+0000/path/v0000000000/00000000000000000000.parquet"),
    ("prefix/%Y-%m-%dT%H:%M:%S %Z", "path", 0, 0,
     "prefix/2026-02-11T10:02:03 UTC/path/v0000000000/00000000000000000000.parquet"),
    # date patterns in the path; what is no pattern stays; the zone alone is no date
    ("a", "/%Y/x%H/", 0, 0, "a/2026/x10/v0000000000/00000000000000000000.parquet"),
    ("100%", "%q/%", 0, 0, "100%/%q/%/v0000000000/00000000000000000000.parquet"),
    ("%Z", "path", 0, 0, "UTC/path/v0000000000/00000000000000000000.parquet"),
]  # fmt: skip


@pytest.mark.parametrize(("prefix", "path", "backfill", "first", "key"), KEYS_OF_FILES)
def test_keys(tmp_path, prefix, path, backfill, first, key):
    (table,) = load_spec(lake(tmp_path, TABLE | {"resource": {"path": path}}, prefix=prefix)).tables
    assert key_of(table, backfill=backfill, first=first) == key


def test_a_path_prefix_has_no_patterns(tmp_path):
    (table,) = load_spec(lake(tmp_path, TABLE | {"resource": {"pathPrefix": "/x/%Y"}}, prefix="%Y")).tables
    assert key_of(table) == "2026/x/%Y/v0000000000/00000000000000000000.parquet"


ROOTS = [("lake/%Y", "a", "lake"), ("lake-%Y", "a", ""), ("", "a/b-%Y", "a"), ("%Z/x", "a", "UTC/x/a")]


@pytest.mark.parametrize(("prefix", "path", "root"), ROOTS)
def test_policies_reach_what_does_not_change(tmp_path, prefix, path, root):
    spec = load_spec(lake(tmp_path, TABLE | {"resource": {"path": path}}, prefix=prefix))
    assert spec.roots == (root,)


def test_names_of_control_objects_go_by_patterns_and_not_by_dates(tmp_path):
    tables = [TABLE | {"resource": {"path": path}} for path in ("a/%Y", "b")]
    with pytest.raises(SpecInvalidError):
        load_spec(lake(tmp_path, *tables, credentials={"auth_type": "AWSAccessKey"}))
    tables[1] = tables[1] | {"source": "PREFIX/other"}
    assert [table.id for table in load_spec(lake(tmp_path, *tables)).tables] == ["a.%25Y", "b"]


DURATIONS = [
    # The six that the connector's form offers, then others that Go's time.ParseDuration reads: https://pkg.go.dev/time
    ("1s", 1), ("1m", 60), ("5m", 300), ("15m", 900), ("30m", 1800), ("1h", 3600),
    ("1h30m", 5400), ("90s", 90), ("1.5m", 90), ("24h", 86_400), ("0h1m0s", 60), ("1000ms", 1),
    ("36h", 129_600), ("168h", 604_800), ("8784h", 31_622_400), ("+5m", 300), ("1.h", 3600), (".5h", 1800),
    ("2s2s", 4), ("1000000\u00b5s", 1), ("1000000\u03bcs", 1), ("1000000us", 1), ("3000000000ns", 3),
    # parts of a second are rounded up, and the shortest interval is one
    ("1.5s", 2), ("500ms", 1), ("1s1ns", 2), ("0.1s", 1), ("0s", 1), ("0", 1), ("-0s", 1),
]  # fmt: skip


@pytest.mark.parametrize(("text", "seconds"), DURATIONS)
def test_durations(text, seconds):
    assert read_duration(text) == seconds


NO_DURATIONS = [
    # the text, what is expected
    *((text, "a duration such as") for text in (
        "", "5", "300", "PT5M", "5 m", "m", "1d", "5M", ".s", "+", "5m ", "1h 30m", "1_0s", "\u0665m", "5\u2009m")),
    *((text, "an interval of 0 or more") for text in ("-5m", "-1ns")),
    *((text, "an interval of a year at most") for text in ("8785h", "8784h1ns", "9" * 40 + "h")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), NO_DURATIONS)
def test_no_durations(text, expected):
    with pytest.raises(ValueError, match=f"^expected {expected}"):
        read_duration(text)


def test_interval_that_is_rounded_is_told(tmp_path):
    spec = load_spec(lake(tmp_path, uploadInterval="1.5s"))
    assert spec.interval_seconds == 2
    assert spec.warnings == ("uploadInterval '1.5s' is rounded up to 2 s: the shortest is 1 s.",)


def test_interval_of_days(tmp_path):
    assert load_spec(lake(tmp_path, uploadInterval="36h")).interval_seconds == 129_600
    assert load_spec(bindings(tmp_path, uploadIntervalInSeconds=129_600)).interval_seconds == 129_600


AT_THE_ROOT = {"awsAccessKeyId": "AKIAIOSFODNN7EXAMPLE", "awsSecretAccessKey": "${env:SECRET}"}
READ_STILL = [
    # laid over the configuration: what S3StoreConfig and ParquetConfig of filesink/ read without an error
    {"credentials": None} | AT_THE_ROOT,
    {"use_path_style": True},
    {"use_path_style": False, "endpoint": "https://s3.example.com"},
    {"parquetConfig": {"rowGroupRowLimit": 0, "rowGroupByteLimit": 0, "bufferSize": 0}},
    {"fileSizeLimit": 0},
    {"advanced": {"feature_flags": ""}},
    {"advanced": {}},
]


@pytest.mark.parametrize("over", READ_STILL)
def test_forms_that_the_connector_reads(tmp_path, over):
    spec = load_spec(lake(tmp_path, **over))
    access, limits = spec.access, spec.limits
    assert access.access_key_id == SecretText("AKIAIOSFODNN7EXAMPLE")
    assert access.secret_access_key == SecretText("${env:SECRET}")
    assert (limits.row_group_rows, limits.target_file_bytes, spec.warnings) == (1_000_000, 200 * 1024 * 1024, ())
    schema = LakeFile.model_json_schema()
    jsonschema.validate(yaml.safe_load((tmp_path / "lake.yaml").read_text("utf-8")), schema)


def test_keys_beside_credentials_have_no_effect(tmp_path):
    """CredentialsProvider of filesink/store_s3.go takes the credentials where there are any."""
    spec = load_spec(lake(tmp_path, credentials=ROLE, **AT_THE_ROOT))
    assert (spec.access.role_arn, spec.access.access_key_id) == (ROLE["aws_role_arn"], None)
    assert spec.warnings == (
        "awsAccessKeyId and awsSecretAccessKey beside 'credentials' have no effect: credentials count.",
    )


# https://docs.estuary.dev/reference/Connectors/materialization-connectors/amazon-s3-parquet/, "Sample"; its variables
# are given values.
SAMPLE = """
materializations:
  acme/lake:
    endpoint:
      connector:
        image: "ghcr.io/estuary/materialize-s3-parquet:v3"
        config:
          bucket: bucket
          awsAccessKeyId: AKIAIOSFODNN7EXAMPLE
          awsSecretAccessKey: wJalrXUtnFEMI/K7MDENG/bPxRfiCYSECRET
          region: us-east-2
          uploadInterval: 5m
    bindings:
      - resource:
          path: source_collection
        source: PREFIX/source_collection
"""


def test_documented_sample_of_today(tmp_path):
    spec = load_spec(flow(tmp_path, SAMPLE))
    assert (spec.access.bucket, spec.access.region, spec.interval_seconds) == ("bucket", "us-east-2", 300)
    assert spec.access.access_key_id == SecretText("AKIAIOSFODNN7EXAMPLE")
    assert key_of(spec.tables[0]) == "source_collection/v0000000000/00000000000000000000.parquet"
    assert spec.warnings == (
        "flow.yaml:10: materializations.acme/lake.endpoint.connector.config.awsSecretAccessKey is written "
        "out; a reference "
        "such as ${env:NAME} keeps it out of the file.",
    )


PROBLEMS = [
    # laid over the configuration, what is said
    ({"uploadInterval": "5 minutes"}, r"destination\.uploadInterval: '5 minutes': expected a duration such as '30s'"),
    ({"uploadIntervalInSeconds": 300}, r"destination\.uploadIntervalInSeconds"),
    ({"prefix": "/lake"}, r"destination\.prefix: '/lake': expected a prefix without '/' at its beginning"),
    ({"fileSizeLimit": -1}, r"destination\.fileSizeLimit"),
    ({"parquetConfig": {"rowGroupRowLimit": -1}}, r"destination\.parquetConfig\.rowGroupRowLimit"),
    ({"parquetConfig": {"rowGroupByteLimit": -1}}, r"destination\.parquetConfig\.rowGroupByteLimit"),
    ({"parquetConfig": {"bufferSize": -1}}, r"destination\.parquetConfig\.bufferSize"),
    ({"credentials": None, "awsAccessKeyId": "A"}, r"'awsAccessKeyId' and 'awsSecretAccessKey' are given both"),
    ({"credentials": None, "awsSecretAccessKey": "A"}, r"'awsAccessKeyId' and 'awsSecretAccessKey' are given both"),
    ({"uploadInterval": "-5m"}, r"destination\.uploadInterval: '-5m': expected an interval of 0 or more"),
    ({"parquetConfig": {"pageSize": 1}}, r"destination\.parquetConfig\.pageSize"),
    ({"advanced": {"feature_flags": "x"}}, r"destination\.advanced\.feature_flags: 'x': the flags are for Estuary's"),
    ({"credentials": {"auth_type": "AWSAccessKey"}}, r"credentials: auth_type 'AWSAccessKey' needs 'awsAccessKeyId'"),
    ({"credentials": {"auth_type": "AWSIAM"}}, r"credentials: auth_type 'AWSIAM' needs 'aws_role_arn'"),
    ({"credentials": ROLE | {"awsAccessKeyId": "A"}}, r"'awsAccessKeyId' has no meaning beside auth_type 'AWSIAM'"),
    ({"credentials": ROLE | {"aws_region": "eu-west-1"}}, r"'credentials\.aws_region' is 'eu-west-1' and 'region'"),
    ({"credentials": KEYS | {"auth_type": "GCPIAM"}}, r"destination\.credentials\.auth_type"),
    ({"logical_types": ["uuid"]}, r"destination\.logical_types\.0"),
    ({"region": "us-east"}, r"destination\.region: .*an AWS region such as"),
    ({"bucket": "My_Bucket"}, r"destination\.bucket: .*a bucket name"),
]  # fmt: skip


@pytest.mark.parametrize(("over", "message"), PROBLEMS)
def test_problems(tmp_path, over, message):
    with pytest.raises(SpecInvalidError, match=message):
        load_spec(lake(tmp_path, **over))


def test_logical_types(tmp_path):
    (table,) = load_spec(lake(tmp_path, logical_types=["json", "interval"])).tables
    assert table.collection is not None
    assert table.collection.selection.logical_types == {"json", "interval"}


def test_published_at_is_a_timestamp(tmp_path):
    table = BINDING | {"fields": {"require": {"flow_published_at": {"castToString": True}}}}
    with pytest.raises(SpecInvalidError, match="'flow_published_at' is a TIMESTAMP: leave its castToString out"):
        load_spec(lake(tmp_path, table))


@pytest.mark.parametrize("resource", [{}, {"path": "a", "pathPrefix": "b"}])
def test_one_path(tmp_path, resource):
    with pytest.raises(SpecInvalidError, match="expected either 'path' or 'pathPrefix'"):
        load_spec(lake(tmp_path, TABLE | {"resource": resource}))


def test_path_among_the_control_objects(tmp_path):
    with pytest.raises(
        SpecInvalidError, match=r"destination\.prefix: .*has the segment '_lakewriter', and what begins"
    ):
        load_spec(lake(tmp_path, TABLE | {"resource": {"path": "a"}}, prefix="_lakewriter"))


def test_interval_of_the_pipeline_is_the_connectors(tmp_path):
    path = bindings(tmp_path, BINDING, top={"interval_seconds": 5}, uploadIntervalInSeconds=None, **CONFIG)
    with pytest.raises(SpecInvalidError, match="'interval_seconds' is called 'uploadInterval' here"):
        load_spec(path)


def test_form(tmp_path):
    labels = [field.label for field in load(lake(tmp_path, prefix="a", endpoint="https://s3.example.com")).form]
    assert labels == ["Bucket", "Region", "AWS Access Key ID", "AWS Secret Access Key", "Upload Interval", "Prefix",
                      "Custom S3 Endpoint"]  # fmt: skip


FLOW = """
materializations:
  acme/lake:
    endpoint:
      connector:
        image: ghcr.io/estuary/materialize-s3-parquet:v3
        config:
          advanced: {feature_flags: ""}
          bucket: my-bucket
          credentials: {auth_type: AWSAccessKey, awsAccessKeyId: AKIAIOSFODNN7EXAMPLE, awsSecretAccessKey: secret}
          region: us-east-1
          uploadInterval: 15m
          prefix: lake/%Y
          parquetConfig: {}
    bindings:
      - resource: {path: orders}
        source: PREFIX/source_collection
        fields: {recommended: true}
"""


def flow_with(**over):
    data = yaml.safe_load(FLOW)
    data["materializations"]["acme/lake"]["endpoint"]["connector"]["config"] |= over
    return yaml.safe_dump(data)


def test_flow_file(tmp_path):
    spec = load_spec(flow(tmp_path, FLOW))
    assert (spec.interval_seconds, spec.roots) == (900, ("lake",))
    assert key_of(spec.tables[0]) == "lake/2026/orders/v0000000000/00000000000000000000.parquet"
    assert spec.warnings == (
        "flow.yaml:10: materializations.acme/lake.endpoint.connector.config.credentials.awsSecretAccessKey "
        "is written out; "
        "a reference such as ${env:NAME} keeps it out of the file.",
    )


FLOW_PROBLEMS = [
    # the file, what is said
    (flow_with(buckett="b"), r"config\.buckett: the connector's configuration has no such key; did you mean 'bucket'"),
    (flow_with(uploadIntervalInSeconds=5), r"config\.uploadIntervalInSeconds: the connector's configuration has no"),
    (flow_with(credentials={"auth_type": "AWSAccessKey", "awsAccessKeyId": "A", "awsSecretAccessKey_sops": "ENC[x]"}),
     r"credentials\.awsSecretAccessKey_sops is encrypted by Estuary's platform.* Give awsSecretAccessKey in its place"),
    (FLOW.replace("connector:\n", "local:\n", 1), r"endpoint: expected 'connector' with the image .* got local\."),
    (FLOW.replace("s3-parquet:v3", "postgres:v1"), r"'materialize-postgres' is another connector; expected 'materiali"),
    (FLOW.replace("s3-parquet:v3", "s3-iceberg:v1"), r"'materialize-s3-iceberg' is another connector"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), FLOW_PROBLEMS)
def test_flow_problems(tmp_path, text, message):
    with pytest.raises(SpecInvalidError, match=message):
        load_spec(flow(tmp_path, text))


@pytest.mark.parametrize(
    ("found", "anew"),
    [
        ({"credentials": {"auth_type": "AWSAccessKey", "awsAccessKeyId": "A", "awsSecretAccessKey_sops": "ENC[x]"}},
         {"credentials": {"auth_type": "AWSIAM", "aws_role_arn": "arn:aws:iam::123456789012:role/a",
                          "aws_region": "us-east-1"}}),
        ({"sops": {"encrypted_suffix": "_sops"}, "credentials_sops": "ENC[x]"}, {"credentials": None}),
    ],
)  # fmt: skip
def test_encrypted_secrets_that_are_given_anew(tmp_path, found, anew):
    """An export of the platform is taken as it is where lake.yaml has the credentials."""
    spec = load_spec(flow(tmp_path, flow_with(**found), **anew))
    assert spec.access.role_arn == (anew["credentials"] or {}).get("aws_role_arn")


def test_what_the_platform_adds_is_left_out(tmp_path):
    text = flow_with(credentials_title="Access Key", sops={"gcp_kms": [], "encrypted_suffix": "_sops"})
    assert load_spec(flow(tmp_path, text)).access.bucket == "my-bucket"


def test_image_of_ones_own(tmp_path):
    for image in ("registry.acme.test/s3-parquet@sha256:0", "materialize-s3-parquet", None):
        data = yaml.safe_load(FLOW)
        data["materializations"]["acme/lake"]["endpoint"]["connector"]["image"] = image
        assert load_spec(flow(tmp_path, yaml.safe_dump(data))).access.bucket == "my-bucket"


@pytest.mark.parametrize("text", [DOCUMENTED, FLOW])
def test_configuration_in_place_of_a_lake_yaml(tmp_path, text):
    (config,) = yaml.safe_load(text)["materializations"].values()
    path = tmp_path / "lake.yaml"
    path.write_text(yaml.safe_dump(config["endpoint"]["connector"]["config"]), "utf-8")
    with pytest.raises(SpecInvalidError, match="the configuration of an Estuary endpoint"):
        load_spec(path)


def test_schema_for_editors_takes_it(tmp_path):
    schema = LakeFile.model_json_schema()
    for path in (lake(tmp_path, prefix="a"), flow(tmp_path, FLOW)):
        jsonschema.validate(yaml.safe_load(path.read_text("utf-8")), schema)
