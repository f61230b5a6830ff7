"""Allow each role what it needs in the bucket, and with the bucket's key."""

from collections.abc import Sequence
from typing import Final

from lakewriter.errors import SpecInvalidError
from lakewriter.naming import CONTROL_DIRECTORY, ControlKeys, join_key
from lakewriter.policy.arns import Arns, escape
from lakewriter.policy.statements import Statement, allow, deny
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Mode, Spec

_OBJECTS: Final = ("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
_DELETE: Final = "s3:DeleteObject"
_READ: Final = ("s3:GetObject", "s3:GetObjectVersion")
_UPLOADS: Final = "s3:ListBucketMultipartUploads"
_LOCATION: Final = "s3:GetBucketLocation"
_LIFECYCLE: Final = "s3:GetLifecycleConfiguration"


def list_table_prefixes(spec: Spec) -> tuple[str, ...]:
    """List the constant prefixes of the tables' keys: ``P/``, or ``P`` if a variable continues the last folder's name;
    blank for the whole bucket."""
    keys = [table.layout.prefix for table in spec.tables if not table.layout.directory]
    return tuple(
        f"{prefix}/" if prefix and all(key.startswith(f"{prefix}/") for key in keys) else prefix
        for prefix in spec.prefixes
    )


def list_written_prefixes(spec: Spec) -> tuple[str, ...]:
    """List the prefixes that a load writes under: those of its tables, and the control objects' if outside of them."""
    records, prefixes = f"{ControlKeys(spec.access.prefix, spec.pipeline).root}/", list_table_prefixes(spec)
    return prefixes if records.startswith(prefixes) else (*prefixes, records)


def allow_loader(spec: Spec, arns: Arns) -> list[Statement]:
    """Allow running loads, which includes deleting objects of withdrawn loads and reading the lifecycle rules."""
    bucket = arns.bucket(spec.access.bucket)
    return [
        _allow_listing(spec, arns, list_written_prefixes(spec)),
        allow("InspectBucket", [_LOCATION, _UPLOADS, _LIFECYCLE], [bucket]),
        allow("WriteObjects", [*_OBJECTS, _DELETE], _make_object_arns(spec, arns, list_written_prefixes(spec))),
    ]


def allow_vendor(spec: Spec, arns: Arns) -> list[Statement]:
    """Allow a party to write beside the job; it may delete only if tables are replaced."""
    bucket, prefixes = arns.bucket(spec.access.bucket), list_table_prefixes(spec)
    return [
        _allow_listing(spec, arns, prefixes),
        allow("InspectBucket", [_LOCATION, _UPLOADS], [bucket]),
        allow(
            "WriteObjects",
            [*_OBJECTS, *([_DELETE] if _may_replace(spec) else [])],
            _make_object_arns(spec, arns, prefixes),
        ),
        deny_control_objects(spec, arns),
    ]


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


def allow_reader(spec: Spec, arns: Arns) -> list[Statement]:
    """Allow a party to read the tables."""
    return [
        _allow_listing(spec, arns, list_table_prefixes(spec)),
        allow("InspectBucket", [_LOCATION], [arns.bucket(spec.access.bucket)]),
        allow("ReadObjects", _READ, _make_object_arns(spec, arns, list_table_prefixes(spec))),
        deny_control_objects(spec, arns),
    ]


def deny_control_objects(spec: Spec, arns: Arns) -> Statement:
    """Deny the control objects, which only loads may use."""
    return deny("KeepOutOfControlObjects", ["s3:*"], list_control_objects(spec, arns))


def list_control_objects(spec: Spec, arns: Arns) -> list[str]:
    """List the ARN of the objects under the control prefix."""
    return [arns.objects(spec.access.bucket, escape(join_key(spec.access.prefix, CONTROL_DIRECTORY)) + "/*")]


def allow_encryption(spec: Spec, deployment: Deployment, arns: Arns, *, writes: bool) -> list[Statement]:
    """Allow using the bucket's key through S3 only; writing needs Decrypt too, for multipart uploads."""
    key = arns.key or deployment.existing.kms_key_arn
    if key is None and deployment.encryption == "SSE-S3":
        return []
    if key is None:
        raise SpecInvalidError(
            "deployment.encryption is SSE-KMS: expected the ARN of the key, got none.",
            remedy="Give the key: --kms-key ARN, or deployment.existing.kms_key_arn.",
        )
    actions = ["kms:Decrypt", *(["kms:GenerateDataKey"] if writes else [])]
    through_s3 = {"StringEquals": {"kms:ViaService": f"s3.{arns.region}.amazonaws.com"}}
    return [allow("UseKeyThroughS3", actions, [key], through_s3)]


def _allow_listing(spec: Spec, arns: Arns, begin: Sequence[str]) -> Statement:
    """Allow s3:ListBucket alone: no other action has ``s3:prefix``, so the condition would never match it."""
    forms = [
        form
        for start in begin
        for form in (list_prefix_values(start.removesuffix("/")) if start.endswith("/") else [f"{escape(start)}*"])
    ]
    condition = {"StringLike": {"s3:prefix": forms}} if all(begin) else None
    return allow("ListUnderPrefix", ["s3:ListBucket"], [arns.bucket(spec.access.bucket)], condition)


def list_prefix_values(prefix: str) -> list[str]:
    """List the values of ``s3:prefix`` that list a folder and everything below it."""
    safe = escape(prefix)
    return [safe, f"{safe}/", f"{safe}/*"]


def _make_object_arns(spec: Spec, arns: Arns, begin: Sequence[str]) -> list[str]:
    return [arns.objects(spec.access.bucket, f"{escape(start)}*") for start in begin]


def _may_replace(spec: Spec) -> bool:
    """True if loads replace files: by the table's mode, or by the minimum generation id of Airbyte's platform."""
    lowest = [table.stream.minimum_generation_id for table in spec.tables if table.stream]
    return spec.iceberg or any(lowest) or any(table.mode is not Mode.APPEND for table in spec.tables)
