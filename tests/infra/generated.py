"""Files that together ask the stacks for everything that they can make, in ever other combinations."""

import random
from typing import Any

SUPAFLOW = {"vendor": "supaflow", "external_id": "acme-2026"}
REPLICA = {"bucket": "acme-lake-west", "account": "999999999999", "within_15_minutes": True,
           "kms_key_arn": "arn:aws:kms:eu-west-1:999999999999:key/11111111-2222-3333-4444-555555555555"}  # fmt: skip
PODS = {"namespace": "airbyte", "service_account": "airbyte-admin"}
MACHINES: list[dict[str, Any]] = [
    {"name": "host", "identity": {"ec2": "arn:aws:iam::123456789012:role/Host"}, "paths": ["host"]},
    {"name": "pods", "identity": {"eks_pod_identity": PODS | {
        "cluster": "arn:aws:eks:us-east-1:123456789012:cluster/tools"}}, "paths": ["pods"]},
    {"name": "tokens", "identity": {"irsa": PODS | {
        "provider": "arn:aws:iam::123456789012:oidc-provider/oidc.example.org/id/A1"}}, "paths": ["tokens"]},
]  # fmt: skip
"""Parties on machines of one's own, in every fifth file."""
SOURCE = {"format": "parquet", "path": "s3://acme-landing/orders"}
CHOICES: dict[str, list[Any]] = {
    "encryption": ["SSE-S3", "SSE-KMS"],
    "trust": [
        [],
        [SUPAFLOW, {"service": "redshift", "access": "read"}],
        [SUPAFLOW | {"external_id": "${ssm:/lake/id}", "access": "read"}],
        [SUPAFLOW | {"external_id": "${ssm:/lake/id}", "earlier_external_ids": ["${ssm:/lake/id-2026}"]}],
    ],
    "iam_user": [False, {"paths": ["crm"]}],
    "lake_formation": [False, True, {"tags": {"domain": "sales"}}, {"tags": {"domain": "sales"}, "create_tags": True}],
    "schedule": [None, {"rate": "6 hours"}, {"cron": "0 6 * * ? *", "flexible_minutes": 10}],
    "alarms": [
        {},
        {"topic_arn": "arn:aws:sns:us-east-1:123456789012:lake"},
        {"email": "lake@example.org"},
        {"email": "lake@example.org", "monthly_budget_usd": 200},
    ],
    "network": [None, {"subnet_ids": ["subnet-0a1b2c3d"], "security_group_ids": ["sg-0a1b2c3d"]}],
    "access_logs": [False, True],
    "tags": [{}, {"team": "data"}],
    "replication": [None, REPLICA],
    "access_log_versions": [False, True],
    "role_path": ["/", "/lake/"],
    "allow_reset": [False, True],
    "destroy_data": [False, True],
    "bootstrap_qualifier": [None, "acme"],
    "snowflake": [None, {}],
    "operators": [[], ["arn:aws:iam::123456789012:role/OnCall"]],
    "existing": [
        {"bucket": True, "kms_key_arn": "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"},
        {"databases": True},
        {},
    ],
}
"""Values of ``deployment``, those that ask for most last."""
DESTINATIONS: list[dict[str, Any]] = [
    {"update_aws_glue_catalog": False},
    {"table_format": "ICEBERG"},
    {"update_aws_glue_catalog": True},
]


def generate_file(number: int, boundary: str) -> dict[str, Any]:
    """The content of one lake.yaml; the same for the same number. The first asks for everything."""
    chosen = random.Random(number)

    def choose(values: list[Any]) -> Any:
        return chosen.choice(values) if number else values[-1]

    deployment = {key: choose(values) for key, values in CHOICES.items()}
    if number % 5 == 0:
        deployment["trust"] = [*deployment["trust"], *MACHINES]
        deployment["catalog_kms_key_arn"] = "arn:aws:kms:us-east-1:123456789012:key/glue"
    if deployment["lake_formation"]:
        deployment["trust"] = [each | {"lf_tags": {"domain": "sales"}} for each in deployment["trust"]]
    if deployment["existing"].get("bucket"):
        deployment["replication"] = None
    elif deployment["replication"] and deployment["encryption"] == "SSE-S3":
        deployment["replication"] = {"bucket": REPLICA["bucket"]}
    if deployment["destroy_data"]:
        deployment["protect"] = False
    destination = choose(DESTINATIONS)
    account = choose(["999999999999", None])
    in_glue = destination.get("update_aws_glue_catalog", True)
    laid = {key: value for key, value in deployment.items() if value is not None}
    return {
        "pipeline": f"sales{number}",
        "destination": {
            "type": "supaflow-s3-data-lake",
            "s3_bucket_name": f"acme-lake-{number}",
            "bucket_region": "us-east-1",
            "s3_path_prefix": "data",
            "destination_prefix": "eu",
            **destination,
        },
        **({"catalog_account": account} if account and in_glue else {}),
        "tables": [{"table": "orders", "schema": "shop", "read": SOURCE}],
        "deployment": {**laid, "permissions_boundary_arn": boundary},
    }


def generate_stream(boundary: str) -> dict[str, Any]:
    """The content of a file whose loads never end, with all else that such a file can ask for."""
    content = generate_file(0, boundary)
    del content["deployment"]["schedule"]
    return content | {
        "pipeline": "stream",
        "destination": content["destination"] | {"s3_bucket_name": "acme-lake-stream"},
        "deployment": content["deployment"] | {"spark": {"mode": "STREAMING"}},
    }
