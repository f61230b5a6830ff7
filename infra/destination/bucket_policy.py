"""Attach the bucket's own policy, or ask the owner of an existing bucket to attach it."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from aws_cdk import Annotations
from aws_cdk import aws_iam as iam

from infra.destination.bucket import LakeBucket
from infra.settings import Settings
from lakewriter.policy.arns import Arns
from lakewriter.policy.bucket import find_encryption, make_bucket_policy
from lakewriter.policy.prefixes import list_key_prefixes, list_table_prefixes

_MOST_SHOWN: Final = 3


def restrict(
    lake: LakeBucket, *, settings: Settings, arns: Arns, kept_out: Sequence[str], exempt: Sequence[str]
) -> None:
    """Add the policy to a bucket that the stack makes; ``kept_out`` are ARNs that are denied the control objects,
    ``exempt`` those that may encrypt with another key."""
    named, referenced = arns.bucket(settings.spec.access.bucket), lake.bucket.bucket_arn
    guests = [guest.spec for guest in settings.guests]
    encryption = find_encryption(settings.deployment, arns, exempt)
    policy = make_bucket_policy(settings.spec, arns, kept_out=kept_out, guests=guests, encryption=encryption)
    for statement in policy["Statement"]:
        # By reference, since cdk-nag does not recognise the bucket by its name.
        resources = [resource.replace(named, referenced, 1) for resource in statement["Resource"]]
        lake.bucket.add_to_resource_policy(iam.PolicyStatement.from_json({**statement, "Resource": resources}))
    lake.retain_policies()


def warn_owner(
    lake: LakeBucket,
    *,
    settings: Settings,
    shown: Arns,
    kept_out: Sequence[str],
    exempt: Sequence[str],
    grants: Sequence[Mapping[str, object]] = (),
) -> None:
    """Warn of what the owner of an existing bucket has to do; ``kept_out`` are readable names, ``grants`` for another
    account."""
    deployment, name = settings.deployment, settings.spec.access.bucket
    guests = [guest.spec for guest in settings.guests]
    encryption = find_encryption(deployment, shown, exempt)
    policy = make_bucket_policy(settings.spec, shown, kept_out=kept_out, guests=guests, encryption=encryption)
    statements = [*policy["Statement"], *grants]
    Annotations.of(lake).add_warning_v2(
        "lakewriter:bucket-policy",
        f"Bucket {name!r} is used as it is. Have its owner block public access, abort incomplete uploads after "
        f"{deployment.abort_incomplete_uploads_days} days, and add to its policy: {json.dumps(statements)}",
    )


def warn_of_shared_prefix(lake: LakeBucket, *, settings: Settings) -> None:
    """Warn of parties that write under the prefix of the job: its tables there are refused to them."""
    parties = settings.deployment.parties
    shared = [name for name, party in parties if party.access == "write" and not (party.tables or party.paths)]
    if not shared:
        return
    spec = settings.spec
    uris = ", ".join(f"s3://{spec.access.bucket}/{start}*" for start in list_table_prefixes(spec))
    starts = [start for table in spec.tables for start in list_key_prefixes(table)]
    tables = ", ".join(f"{start}*" for start in starts[:_MOST_SHOWN])
    more = f" and {len(starts) - _MOST_SHOWN} more" if len(starts) > _MOST_SHOWN else ""
    Annotations.of(lake).add_warning_v2(
        "lakewriter:shared-prefix",
        f"{', '.join(map(repr, shared))} may write everywhere at {uris} but in this file's tables ({tables}{more}) "
        "and the job's records, and may list that folder with the delimiter '/' only. A pipeline of the vendor's that "
        "writes one of these tables fails with AccessDenied. Give the entry 'tables' or 'paths' of its own, or "
        "access: read.",
    )
