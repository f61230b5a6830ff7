"""Write what ``cdk import`` needs to take back the resources that a destroyed stack has left."""

import json
from pathlib import Path
from typing import Final

from infra.review.sections import RETAINED
from infra.review.templates import Resource, Templates
from infra.settings import Settings

FILL_IN: Final = "FILL IN: its id"
_TABLE_BUCKET: Final = "TableBucketARN"
IDENTIFIERS: Final = {
    "AWS::Glue::Database": ("DatabaseName",),
    "AWS::KMS::Key": ("KeyId",),
    "AWS::LakeFormation::Tag": ("TagKey",),
    "AWS::S3::Bucket": ("BucketName",),
    "AWS::S3::BucketPolicy": ("Bucket",),
    "AWS::S3Tables::Namespace": (_TABLE_BUCKET, "Namespace"),
    "AWS::S3Tables::TableBucket": (_TABLE_BUCKET,),
}
"""Maps a type to the properties that name a resource to CloudFormation, of those that a new stack could not do without.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources-manually.html
"""


def write_imports(folder: Path, settings: Settings) -> None:
    """Write ``import.json`` for the destination's stack; without resources to keep there is none."""
    templates = Templates.read(folder, settings.stack_names)
    destination = templates.stacks[0]
    table_bucket = settings.spec.table_bucket
    identifiers = {
        resource.id: {key: table_bucket if key == _TABLE_BUCKET else name for key in IDENTIFIERS[resource.type]}
        for resource in destination.list_resources()
        if resource.type in IDENTIFIERS
        and resource.deletion in RETAINED
        and (name := _find_name(resource, destination.body["Resources"]))
    }
    if identifiers:
        (folder / "import.json").write_text(json.dumps(identifiers, indent=1) + "\n", "utf-8")


def _find_name(resource: Resource, resources: dict[str, dict[str, object]]) -> str | None:
    """Find the name that the template sets; None for what has another name in each deployment, and cannot collide."""
    if resource.type == "AWS::KMS::Key":
        return FILL_IN
    if resource.type == "AWS::S3::BucketPolicy":
        properties = resources[resource.properties["Bucket"]["Ref"]].get("Properties", {})
        name = properties.get("BucketName") if isinstance(properties, dict) else None
        return str(name) if name else None
    return None if resource.name.startswith("<") else resource.name
