"""The bucket's own policy: what no role's permissions can override."""

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
    """Adds it to a bucket that the stack makes; ``kept_out`` are ARNs that leave the job's records alone."""
    named, own = arns.bucket(settings.spec.access.bucket), lake.bucket.bucket_arn
    for statement in make_bucket_policy(settings.spec, arns, kept_out=kept_out)["Statement"]:
        # By reference, since cdk-nag does not see that the name is this bucket's.
        resources = [resource.replace(named, own, 1) for resource in statement["Resource"]]
        lake.bucket.add_to_resource_policy(iam.PolicyStatement.from_json({**statement, "Resource": resources}))
    lake.retain_policies()


def tell_owner(lake: LakeBucket, *, settings: Settings, shown: Arns, kept_out: Sequence[str]) -> None:
    """Warns of what the owner of a bucket that was there has to do; ``kept_out`` as people read them."""
    deployment, name = settings.deployment, settings.spec.access.bucket
    policy = make_bucket_policy(settings.spec, shown, kept_out=kept_out)
    Annotations.of(lake).add_warning_v2(
        "lakewriter:bucket-policy",
        f"Bucket {name!r} is used as it is. Have its owner block public access, abort incomplete uploads after "
        f"{deployment.abort_incomplete_uploads_days} days, and add to its policy: {json.dumps(policy['Statement'])}",
    )


def tell_refused(lake: LakeBucket, *, settings: Settings, writers: Sequence[str]) -> None:
    """Warns of ``writers``, parties with files of their own, whom the policy refuses under the file's tables."""
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
