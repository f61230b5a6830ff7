"""What somebody types into a form, under the form's labels."""

from typing import Any

import pytest

from infra.destination.outputs import list_form_values
from lakewriter.dialects.common.form import FormField, Provided
from lakewriter.dialects.registry import BY_TYPE
from tests.infra.destination.airbyte import file
from tests.infra.destination.conftest import Synthesise
from tests.infra.destination.lakes import SUPAFLOW, lake

pytestmark = pytest.mark.synth


def _arn(role: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [role, "Arn"]}


def _labelled(template: dict[str, Any]) -> dict[str, Any]:
    return {output["Description"]: output["Value"] for output in template["Outputs"].values()}


def test_vendors_form_under_its_labels(plain: dict[str, Any]) -> None:
    # The labels of the vendor's set-up page, in its order.
    assert _labelled(plain) == {
        "S3 Bucket Name": "acme-lake",
        "Bucket Region": "us-east-1",
        "S3 Path Prefix": "data/production",
        "IAM Role ARN": _arn("SupaflowConsumerRole"),
        "External ID": "acme-2026",
        "Table Format": "PARQUET",
        "Update AWS Glue Catalog": "true",
        "Partition Strategy": "HOUR",
        "File Name Pattern": "part-{supa_job_id}-{seq}",
        "Glue Database Prefix": "supaflow",
        "Job Role ARN": _arn("JobRole"),
    }


def test_keys_are_labels_without_spaces_and_nothing_is_exported(plain: dict[str, Any]) -> None:
    assert list(plain["Outputs"])[:4] == ["S3BucketName", "BucketRegion", "S3PathPrefix", "IAMRoleARN"]
    assert not any("Export" in output for output in plain["Outputs"].values())


def test_other_parties_have_outputs_of_their_own(full: dict[str, Any]) -> None:
    outputs = _labelled(full)
    base = "s3://acme-lake/data/production/"
    assert outputs["IAM Role ARN"] == _arn("SupaflowConsumerRole")
    assert outputs["IAM Role ARN (laptop)"] == _arn("LaptopConsumerRole")
    assert outputs["External ID (laptop)"] == "laptop-1"
    assert {label: value for label, value in outputs.items() if label.startswith("Snowflake")} == {
        "Snowflake Open Catalog: Default base location": base,
        "Snowflake Open Catalog: S3 role ARN": _arn("SnowflakeCatalogConsumerRole"),
        "Snowflake Open Catalog: External ID": "lakewriter",
        "Snowflake: STORAGE_BASE_URL": base,
        "Snowflake: STORAGE_AWS_ROLE_ARN": _arn("SnowflakeComputeConsumerRole"),
        "Snowflake: STORAGE_AWS_EXTERNAL_ID": "lakewriter",
    }
    # What `lakewriter queries` tells people to look up.
    assert full["Outputs"]["SnowflakeSTORAGEAWSROLEARN"]["Value"] == _arn("SnowflakeComputeConsumerRole")


def test_role_of_the_file_where_no_vendor_is_trusted(synthesise: Synthesise) -> None:
    role = "arn:aws:iam::123456789012:role/LakeWriter"
    outputs = _labelled(synthesise(lake(iam_role_arn=role)).template)
    assert outputs["IAM Role ARN"] == role
    assert "External ID" not in outputs


def test_fields_without_an_answer_are_left_out() -> None:
    fields = [FormField("Bucket", "b"), FormField("Role", Provided.ROLE_ARN), FormField("Key", Provided.ACCESS_KEY_ID)]
    assert list(list_form_values(fields, {Provided.ACCESS_KEY_ID: "where it is"})) == [
        ("Bucket", "b"),
        ("Key", "where it is"),
    ]


@pytest.mark.parametrize(
    ("dialect", "vendor"),
    [
        ("supaflow-s3", "supaflow"),
        ("supaflow-s3-data-lake", "supaflow"),
        ("airbyte-s3", "airbyte-cloud"),
        ("heropixel-s3", "heropixel-cloud"),
        ("estuary-s3-parquet", None),
    ],
)
def test_vendor_of_a_dialect(dialect: str, vendor: str | None) -> None:
    assert BY_TYPE[dialect].principals.get(dialect) == vendor


CONTRACTS = [
    # the file; the field for the prefix in the vendor's form
    (lake({"trust": [SUPAFLOW | {"paths": ["supaflow"]}]}), ("S3PathPrefix", "data/production/supaflow")),
    (lake({"trust": [SUPAFLOW | {"paths": ["/own"]}]}, s3_path_prefix=""), ("S3PathPrefix", "own")),
    # tables and several folders lie below the file's prefix, which the vendor keeps
    (lake({"trust": [SUPAFLOW | {"tables": ["supaflow_crm.*"]}]}), ("S3PathPrefix", "data/production")),
    (lake({"trust": [SUPAFLOW | {"paths": ["a", "b"]}]}), ("S3PathPrefix", "data/production")),
    (file("heropixel", iam_user={"paths": ["/heropixel"]}), ("S3BucketPath", "heropixel")),
]


@pytest.mark.parametrize(("content", "expected"), CONTRACTS)
def test_party_with_a_folder_types_it_as_its_prefix(
    synthesise: Synthesise, content: dict[str, Any], expected: tuple[str, str]
) -> None:
    key, value = expected
    assert synthesise(content).template["Outputs"][key]["Value"] == value
