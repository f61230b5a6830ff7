"""Allow each role what it needs in the bucket, and with the bucket's key."""

from collections.abc import Mapping, Sequence
from typing import Final

from lakewriter.errors import SpecInvalidError
from lakewriter.naming import ControlKeys
from lakewriter.policy.arns import Arns, escape, name_services
from lakewriter.policy.control_objects import deny_control_objects, hide_control_objects
from lakewriter.policy.parties import Reach
from lakewriter.policy.prefixes import list_table_prefixes, list_written_keys, list_written_prefixes
from lakewriter.policy.statements import Statement, allow, deny
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec
from lakewriter.spec.vendor_policy import VendorPolicy

_OBJECTS: Final = ("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
_DELETE: Final = "s3:DeleteObject"
_READ: Final = ("s3:GetObject", "s3:GetObjectVersion")
_LIST: Final = "s3:ListBucket"
_UPLOADS: Final = "s3:ListBucketMultipartUploads"
_LOCATION: Final = "s3:GetBucketLocation"
_LIFECYCLE: Final = "s3:GetLifecycleConfiguration"

WITHHELD: Final[Mapping[str, str]] = {
    "s3:ReplicateObject": "only S3's own replication calls it, with a role of its own",
    "s3:DeleteObjectVersion": "it would delete for good what versioning keeps",
}
"""Actions on objects that vendors' documents list and no party gets, with the reasons.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/setting-repl-config-perm-overview.html
https://docs.aws.amazon.com/AmazonS3/latest/userguide/DeletingObjectVersions.html
"""


def allow_loader(spec: Spec, arns: Arns) -> list[Statement]:
    """Allow running loads, which includes deleting objects of withdrawn loads and reading the lifecycle rules."""
    bucket = arns.bucket(spec.access.bucket)
    return [
        _allow_listing(spec, arns, list_written_prefixes(spec)),
        allow("InspectBucket", [_LOCATION, _UPLOADS, _LIFECYCLE], [bucket]),
        allow("WriteObjects", [*_OBJECTS, _DELETE], _list_written(spec, arns)),
    ]


def allow_operator(spec: Spec, arns: Arns) -> list[Statement]:
    """Allow reading everything of a pipeline, writing its records or restoring their versions, and withdrawing what an
    abandoned load has left."""
    written = _list_written(spec, arns)
    root = f"{ControlKeys(spec.access.prefix, spec.pipeline).root}/"
    return [
        _allow_listing(spec, arns, list_written_prefixes(spec)),
        allow("InspectBucket", [_LOCATION, _UPLOADS, _LIFECYCLE], [arns.bucket(spec.access.bucket)]),
        allow("ReadObjects", ["s3:GetObject"], written),
        allow("WithdrawObjects", [_DELETE, "s3:AbortMultipartUpload"], written),
        allow("WriteRecords", ["s3:PutObject", "s3:GetObjectVersion"], _make_object_arns(spec, arns, [root])),
        allow(
            "ListVersions",
            ["s3:ListBucketVersions"],
            [arns.bucket(spec.access.bucket)],
            {"StringLike": {"s3:prefix": [f"{escape(root)}*"]}},
        ),
    ]


def allow_vendor(spec: Spec, arns: Arns, reach: Reach, policy: VendorPolicy | None) -> list[Statement]:
    """Allow a party to write its own files, with what its vendor's document lists for them."""
    return [
        _allow_listing(spec, arns, reach.starts),
        allow("InspectBucket", [_LOCATION, _UPLOADS], [arns.bucket(spec.access.bucket)]),
        allow("WriteObjects", list_vendor_actions(policy), _make_object_arns(spec, arns, reach.starts)),
        *deny_what_is_the_jobs(spec, arns, reach),
    ]


def deny_what_is_the_jobs(spec: Spec, arns: Arns, reach: Reach) -> list[Statement]:
    """Deny a party that writes the control objects, their names, and the files of the job's tables."""
    of_job = _make_object_arns(spec, arns, reach.job_starts)
    return [
        deny_control_objects(spec, arns),
        *hide_control_objects(spec, arns, reach.starts),
        *([deny("KeepOutOfTables", ["s3:*"], of_job)] if of_job else []),
    ]


def list_vendor_actions(policy: VendorPolicy | None) -> list[str]:
    """List the actions on objects that a party has for its own: those of its vendor's document but ``WITHHELD``."""
    documented = policy.s3 if policy else ()
    listed = [action for statement in documented for action in statement.actions]
    further = [action for action in listed if action not in {_LIST, _LOCATION, _UPLOADS, *WITHHELD}]
    return list(dict.fromkeys([*_OBJECTS, _DELETE, *further]))


def allow_catalog(spec: Spec, arns: Arns) -> list[Statement]:
    """Allow Snowflake Open Catalog to write metadata, and to vend credentials that are a subset of its own."""
    return [
        _allow_listing(spec, arns, list_table_prefixes(spec)),
        allow("InspectBucket", [_LOCATION], [arns.bucket(spec.access.bucket)]),
        allow(
            "WriteObjects", [*_READ, "s3:PutObject", _DELETE], _make_object_arns(spec, arns, list_table_prefixes(spec))
        ),
        deny_control_objects(spec, arns),
    ]


def allow_reader(spec: Spec, arns: Arns, reach: Reach, *, hidden: bool = True) -> list[Statement]:
    """Allow a party to read files; ``hidden`` keeps control objects out of its listings too.

    Snowflake lists its whole base location to verify a volume, so its role is denied the objects alone:
    https://docs.snowflake.com/en/sql-reference/functions/system_verify_ext_volume. A party whose tables lie in a table
    bucket reads no object of the bucket.
    """
    if not reach.starts:
        return []
    return [
        _allow_listing(spec, arns, reach.starts),
        allow("InspectBucket", [_LOCATION], [arns.bucket(spec.access.bucket)]),
        allow("ReadObjects", _READ, _make_object_arns(spec, arns, reach.starts)),
        deny_control_objects(spec, arns),
        *(hide_control_objects(spec, arns, reach.starts) if hidden else []),
    ]


def allow_encryption(spec: Spec, deployment: Deployment, arns: Arns, *, writes: bool) -> list[Statement]:
    """Allow using the bucket's key through S3 only; writing needs Decrypt too, for multipart uploads.

    No page says whether S3 Tables uses a table's key by its own name or by that of S3, so that both are named.

    Earlier keys decrypt what they encrypted.
    """
    key = arns.key or deployment.existing.kms_key_arn
    services = ["s3", *(["s3tables"] if spec.table_bucket else [])]
    through_s3 = {"StringEquals": {"kms:ViaService": name_services(services, arns.region)}}
    keys = deployment.earlier_kms_key_arns
    earlier = [allow("UseEarlierKeysThroughS3", ["kms:Decrypt"], keys, through_s3)] if keys else []
    if key is None and deployment.encryption == "SSE-S3":
        return earlier
    if key is None:
        raise SpecInvalidError(
            "deployment.encryption is SSE-KMS: expected the ARN of the key, got none.",
            remedy="Give the key: --kms-key ARN, or deployment.existing.kms_key_arn.",
        )
    actions = ["kms:Decrypt", *(["kms:GenerateDataKey"] if writes else [])]
    return [allow("UseKeyThroughS3", actions, [key], through_s3), *earlier]


def _allow_listing(spec: Spec, arns: Arns, begin: Sequence[str]) -> Statement:
    """Allow s3:ListBucket alone: no other action has ``s3:prefix``, so the condition would never match it."""
    forms = [
        form
        for start in begin
        for form in (list_prefix_values(start.removesuffix("/")) if start.endswith("/") else [f"{escape(start)}*"])
    ]
    condition = {"StringLike": {"s3:prefix": forms}} if all(begin) else None
    return allow("ListUnderPrefix", [_LIST], [arns.bucket(spec.access.bucket)], condition)


def list_prefix_values(prefix: str) -> list[str]:
    """List the values of ``s3:prefix`` that list a folder and everything below it."""
    safe = escape(prefix)
    return [safe, f"{safe}/", f"{safe}/*"]


def _list_written(spec: Spec, arns: Arns) -> list[str]:
    return [arns.objects(spec.access.bucket, pattern) for pattern in list_written_keys(spec)]


def _make_object_arns(spec: Spec, arns: Arns, begin: Sequence[str]) -> list[str]:
    return [arns.objects(spec.access.bucket, f"{escape(start)}*") for start in begin]
