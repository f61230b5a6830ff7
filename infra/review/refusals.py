"""Refuse a deployment that would leave data behind without a word: under another key, or at another place."""

from collections.abc import Iterator
from typing import Final

from infra.review.permissions import ATTACHED
from infra.review.templates import Resource, Template, Templates
from lakewriter.errors import SpecInvalidError
from lakewriter.naming import CONTROL_DIRECTORY
from lakewriter.spec.deployment import Deployment

_BUCKET: Final = "Bucket"
"""The logical id of the tables' bucket."""
_JOB: Final = "JobRole"
_TABLES: Final = "WriteTables"
"""The statement of the job's role that names the tables in Glue."""
THIS_ACCOUNT: Final = "own"
"""The account of the stacks, which a template need not name."""
_OUTCOMES: Final = "ReadOutcomes"
"""The statement of the state machine's role that names where the pipeline's records lie."""


def require_readable(before: Templates, after: Templates, deployment: Deployment) -> None:
    """Raise ``SPEC_INVALID`` if what was loaded could not be read, or found, after the change.

    A key that no longer encrypts has to be among ``earlier_kms_key_arns``, a place that is left in ``left_behind``.
    """
    problems = [
        *_find_lost_key(before, after, deployment),
        *_find_left_places(before, after, deployment),
        *_find_left_catalog(before, after, deployment),
    ]
    if problems:
        raise SpecInvalidError("the change would leave data behind:", problems=problems)


def _find_lost_key(before: Templates, after: Templates, deployment: Deployment) -> Iterator[str]:
    """Find the key that encrypted and does so no more; S3's own keys need no permission of anybody."""
    old, new = _find_key(before), _find_key(after)
    if old in {None, new} or _find_resource(before, _BUCKET) is None:
        return
    earlier = deployment.earlier_kms_key_arns
    named = old if old and old.startswith("arn:") else None
    if named in earlier or (named is None and earlier):
        return
    which = f"{named!r}" if named else "the key that the stack made (the resource 'Key' of the destination stack)"
    yield (
        f"deployment.encryption: objects under {which}, the tables' state among them, could be read by nobody any more."
        " Give deployment.earlier_kms_key_arns its ARN, with which every role may decrypt them."
    )
    made = None if named else _find_resource(before, "Key")
    if made and made[1].deletion == "Delete" and _find_resource(after, "Key") is None:
        yield (
            "deployment.encryption: CloudFormation would schedule the deletion of the key that the stack made. Deploy "
            "once with deployment.protect: true, which retains it, and change the key then."
        )


def _find_left_places(before: Templates, after: Templates, deployment: Deployment) -> Iterator[str]:
    old, new = _find_place(before), _find_place(after)
    if old is None or new is None or before.stacks[-1].stack != after.stacks[-1].stack:
        return
    if (old, before.region) != (new, after.region) and old not in deployment.left_behind:
        yield (
            f"destination: tables and their records lie at {old} in {before.region}, and would begin anew at {new} in "
            f"{after.region}: cursors and what was loaded stay where they are. Move them (guide-deploy, 'Move the "
            f"tables'), or keep them as they are, and give deployment.left_behind: [{old}]."
        )


def _find_left_catalog(before: Templates, after: Templates, deployment: Deployment) -> Iterator[str]:
    """Find another account's Data Catalog in place of the present one: its tables get no load any more."""
    old, new = _find_catalog(before), _find_catalog(after)
    if old is None or new is None or old == new or f"glue:{old}" in deployment.left_behind:
        return
    yield (
        f"catalog_account: tables are in the Data Catalog of account {old}, and new loads would be in that of {new} "
        "alone: readers of the old one would see no load any more, and Iceberg's tables would begin anew. Register the "
        f"tables there (guide-deploy, 'A catalog in another account'), and give deployment.left_behind: [glue:{old}]."
    )


def _find_catalog(templates: Templates) -> str | None:
    """Find the account of the catalog that the job writes, by the permission for it."""
    for kind in ATTACHED:
        for template, policy in templates.list_resources(kind):
            for statement in policy.properties["PolicyDocument"]["Statement"]:
                if statement.get("Sid") != _TABLES or {"Ref": _JOB} not in policy.properties.get("Roles", []):
                    continue
                account = templates.resolve_all(statement["Resource"], template)[0].split(":")[4]
                return account if account.isdigit() and account != templates.account else THIS_ACCOUNT
    return None


def _find_key(templates: Templates) -> str | None:
    """Find the key of the tables' bucket; None for S3's own keys, and for a bucket that the stack does not make."""
    made = _find_resource(templates, _BUCKET)
    if made is None:
        return None
    template, bucket = made
    rules = bucket.properties.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration", [])
    keys = [rule.get("ServerSideEncryptionByDefault", {}).get("KMSMasterKeyID") for rule in rules]
    return next((templates.resolve(key, template) for key in keys if key), None)


def _find_resource(templates: Templates, logical_id: str) -> tuple[Template, Resource] | None:
    return next((resource for resource in templates.list_resources() if resource[1].id == logical_id), None)


def _find_place(templates: Templates) -> str | None:
    """Find where the pipeline's records lie, by the permission to read them; None for a store of its own endpoint."""
    for template, policy in templates.list_resources("AWS::IAM::Policy"):
        for statement in policy.properties["PolicyDocument"]["Statement"]:
            if statement.get("Sid") == _OUTCOMES:
                (resource,) = templates.resolve_all(statement["Resource"], template)
                uri = resource.split(":::", 1)[-1].partition(f"/{CONTROL_DIRECTORY}/")[0]
                return f"s3://{uri}"
    return None
