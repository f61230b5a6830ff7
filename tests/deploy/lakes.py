"""The demo's file as somebody deploys it who also runs loads from elsewhere, and a file for such loads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from infra.settings import ROOT

STAGE: Final = "prod"
STACKS: Final = ("lakewriter-flights-prod-destination", "lakewriter-flights-prod-pipeline")
DESTINATION, PIPELINE = STACKS
ELSEWHERE: Final = {
    "principal": "arn:aws:iam::123456789012:root",
    "external_id": "acme-loads-90b3",
    "access": "load",
    "name": "laptop",
}


def deployed(folder: Path) -> Path:
    """Its stage has whatever the demo's has: encryption with a key, a schedule, a vendor, alarms."""
    content = demo()
    content["deployment"]["trust"].append(ELSEWHERE)
    content["undo"] = {"drop_partitions": True}
    return written(folder / "deployed" / "lake.yaml", content)


def demo() -> dict[str, Any]:
    """The demo's file, to be changed."""
    content: dict[str, Any] = yaml.safe_load((ROOT / "examples" / "demo" / "lake.yaml").read_text("utf-8"))
    return content


def from_outputs(folder: Path, outputs: Mapping[str, str], **destination: Any) -> Path:
    """A lake.yaml beside its source that knows the destination by the stack's outputs and in no other way."""
    content = {
        "pipeline": "flights",
        "destination": {
            "type": "supaflow-s3-data-lake",
            "s3_bucket_name": outputs["S3BucketName"],
            "bucket_region": outputs["BucketRegion"],
            "s3_path_prefix": outputs["S3PathPrefix"],
            "iam_role_arn": outputs["IAMRoleARNLaptop"],
            "external_id": outputs["ExternalIDLaptop"],
            "table_format": outputs["TableFormat"],
            "update_aws_glue_catalog": outputs["UpdateAWSGlueCatalog"] == "true",
            "glue_database_prefix": outputs["GlueDatabasePrefix"],
            "destination_prefix": "nyc",
            **destination,
        },
        "tables": [
            {
                "table": "airlines",
                "schema": "public",
                "read": {"format": "csv", "path": "airlines.csv", "options": {"header": True}},
                "primary_key": ["carrier"],
            }
        ],
    }
    path = written(folder / "lake.yaml", content)
    (path.parent / "airlines.csv").write_text("carrier,name\nAA,American\nUA,United\nDL,Delta\n", "utf-8")
    return path


def written(path: Path, content: Mapping[str, Any]) -> Path:
    """A lake.yaml, its folder made for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(dict(content), sort_keys=False), "utf-8")
    return path
