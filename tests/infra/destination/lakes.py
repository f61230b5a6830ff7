"""A lake.yaml as a mapping, and what tests ask of a template."""

from typing import Any

Template = dict[str, Any]

DESTINATION = {
    "type": "supaflow-s3-data-lake",
    "s3_bucket_name": "acme-lake",
    "bucket_region": "us-east-1",
    "s3_path_prefix": "data/production",
    "update_aws_glue_catalog": True,
    "destination_prefix": "nyc",
}
TABLES = [{"table": "flights", "schema": "public", "read": {"format": "parquet", "path": "s3://raw/flights"}}]
SUPAFLOW = {"vendor": "supaflow", "external_id": "acme-2026"}
BOUNDARY = "arn:aws:iam::123456789012:policy/Boundary"
REPLICA = {
    "bucket": "acme-lake-west",
    "account": "999999999999",
    "kms_key_arn": "arn:aws:kms:eu-west-1:999999999999:key/11111111-2222-3333-4444-555555555555",
    "within_15_minutes": True,
}
EVERYTHING: dict[str, Any] = {
    "account": "123456789012",
    "trust": [
        SUPAFLOW,
        {"vendor": "supaflow", "name": "second-1", "external_id": "${ssm:/lake/id}", "access": "read"},
        {
            "principal": "arn:aws:iam::111122223333:role/Laptop",
            "name": "laptop",
            "external_id": "laptop-1",
            "access": "load",
        },
    ],
    "snowflake": {},
    "iam_user": True,
    "encryption": "SSE-KMS",
    "lake_formation": True,
    "allow_reset": True,
    "protect": False,
    "destroy_data": True,
    "permissions_boundary_arn": BOUNDARY,
    "role_path": "/lake/",
    "alarms": {"email": "data@example.com"},
}


def lake(deployment: dict[str, Any] | None = None, **destination: Any) -> dict[str, Any]:
    """One table, with ``deployment`` as it is given and ``destination`` laid over the usual one."""
    return {
        "pipeline": "flights",
        "destination": {**DESTINATION, **destination},
        "tables": TABLES,
        "deployment": deployment or {},
    }


def of_type(template: Template, kind: str) -> dict[str, Any]:
    """Logical id to properties."""
    return {
        name: resource.get("Properties", {})
        for name, resource in template["Resources"].items()
        if resource["Type"] == f"AWS::{kind}"
    }


def statements(template: Template, bucket_policy: str) -> dict[str, Any]:
    """The statements of a bucket policy by their ids."""
    document = of_type(template, "S3::BucketPolicy")[bucket_policy]["PolicyDocument"]
    return {statement.get("Sid", ""): statement for statement in document["Statement"]}


def trust(template: Template, role: str) -> list[Any]:
    """The statements of a role's trust policy."""
    found: list[Any] = of_type(template, "IAM::Role")[role]["AssumeRolePolicyDocument"]["Statement"]
    return found


def attached(template: Template) -> dict[str, dict[str, list[str]]]:
    """By role or user, and by the policy's name, the ids of its statements."""
    found: dict[str, dict[str, list[str]]] = {}
    for policy in of_type(template, "IAM::ManagedPolicy").values():
        name = policy["Description"].split(": ")[1].split()[0]
        identity = (policy.get("Roles") or policy.get("Users"))[0]["Ref"]
        sids = [statement["Sid"] for statement in policy["PolicyDocument"]["Statement"]]
        found.setdefault(identity, {})[name] = sids
    return found
