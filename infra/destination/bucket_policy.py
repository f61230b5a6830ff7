"""Attach the bucket's own policy, or tell the owner of an existing bucket to attach it."""

import json
from collections.abc import Sequence
from typing import Final

from aws_cdk import Annotations
from aws_cdk import aws_iam as iam

from infra.destination.bucket import LakeBucket
from infra.settings import Settings
from lakewriter.policy.arns import Arns
from lakewriter.policy.bucket import list_append_only_prefixes, make_bucket_policy

_MOST_SHOWN: Final = 3


def restrict(lake: LakeBucket, *, settings: Settings, arns: Arns, kept_out: Sequence[str]) -> None:
    """Add the policy to a bucket that the stack makes; ``kept_out`` are ARNs that are denied the control objects."""
    named, referenced = arns.bucket(settings.spec.access.bucket), lake.bucket.bucket_arn
    for statement in make_bucket_policy(settings.spec, arns, kept_out=kept_out)["Statement"]:
        # By reference, since cdk-nag does not recognise the bucket by its name.
        resources = [resource.replace(named, referenced, 1) for resource in statement["Resource"]]
        lake.bucket.add_to_resource_policy(iam.PolicyStatement.from_json({**statement, "Resource": resources}))
    lake.retain_policies()


def warn_owner(lake: LakeBucket, *, settings: Settings, shown: Arns, kept_out: Sequence[str]) -> None:
    """Warn of what the owner of an existing bucket has to do; ``kept_out`` are readable names."""
    deployment, name = settings.deployment, settings.spec.access.bucket
    policy = make_bucket_policy(settings.spec, shown, kept_out=kept_out)
    Annotations.of(lake).add_warning_v2(
        "lakewriter:bucket-policy",
        f"Bucket {name!r} is used as it is. Have its owner block public access, abort incomplete uploads after "
        f"{deployment.abort_incomplete_uploads_days} days, and add to its policy: {json.dumps(policy['Statement'])}",
    )


def warn_of_refused_writers(lake: LakeBucket, *, settings: Settings, writers: Sequence[str]) -> None:
    """Warn that the policy refuses ``writers``, who write their own files, under the prefixes of the file's tables."""
    bucket, roots = settings.spec.access.bucket, list_append_only_prefixes(settings.spec)
    if not writers or not roots:
        return
    places = ", ".join(f"s3://{bucket}/{root}*" for root in roots[:_MOST_SHOWN])
    more = f" and {len(roots) - _MOST_SHOWN} more" if len(roots) > _MOST_SHOWN else ""
    Annotations.of(lake).add_warning_v2(
        "lakewriter:refused-writers",
        f"{', '.join(map(repr, writers))} may write, but not into the tables of this file: the bucket's policy refuses "
        f"every object put without 'If-None-Match' at {places}{more}. A vendor's pipeline, which hardly sends it, "
        "fails there with AccessDenied: let it write other tables, or only read (access: read).",
    )
