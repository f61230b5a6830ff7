"""What each role may do in the bucket, and with its key."""

from collections.abc import Sequence
from typing import Final

from lakewriter.errors import SpecInvalidError
from lakewriter.naming import CONTROL_DIRECTORY, ControlKeys, join_key
from lakewriter.policy.arns import Arns, literal
from lakewriter.policy.statements import Statement, allow, deny
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Mode, Spec

_OBJECTS: Final = ("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts")
_DELETE: Final = "s3:DeleteObject"
_READ: Final = ("s3:GetObject", "s3:GetObjectVersion")
_UPLOADS: Final = "s3:ListBucketMultipartUploads"
_LOCATION: Final = "s3:GetBucketLocation"
_LIFECYCLE: Final = "s3:GetLifecycleConfiguration"


def starts(spec: Spec) -> tuple[str, ...]:
    """What every table's keys begin with, as far as it is constant: ``P/``, or ``P`` where a variable goes on in the
    name of its last folder; blank for the whole bucket."""
    keys = [table.layout.prefix for table in spec.tables if not table.layout.directory]
    return tuple(
        f"{prefix}/" if prefix and all(key.startswith(f"{prefix}/") for key in keys) else prefix
        for prefix in spec.prefixes
    )


def held(spec: Spec) -> tuple[str, ...]:
    """What every key begins with that a load writes: ``starts``, and the pipeline's records where they lie apart."""
    records, found = f"{ControlKeys(spec.access.prefix, spec.pipeline).root}/", starts(spec)
    return found if records.startswith(found) else (*found, records)


def loader(spec: Spec, arns: Arns) -> list[Statement]:
    """Of whoever runs loads: it also withdraws what cannot be completed, and reads the rule for staged uploads."""
    bucket = arns.bucket(spec.access.bucket)
    return [
        _listing(spec, arns, held(spec)),
        allow("InspectBucket", [_LOCATION, _UPLOADS, _LIFECYCLE], [bucket]),
        allow("WriteObjects", [*_OBJECTS, _DELETE], _objects(spec, arns, held(spec))),
    ]


def vendor(spec: Spec, arns: Arns) -> list[Statement]:
    """Of a party that writes beside the job; deleting is for those who replace files."""
    bucket = arns.bucket(spec.access.bucket)
    return [
        _listing(spec, arns, starts(spec)),
        allow("InspectBucket", [_LOCATION, _UPLOADS], [bucket]),
        allow("WriteObjects", [*_OBJECTS, *([_DELETE] if _replaces(spec) else [])], _objects(spec, arns, starts(spec))),
        control_denied(spec, arns),
    ]


def catalog(spec: Spec, arns: Arns) -> list[Statement]:
    """Of Snowflake Open Catalog, which writes metadata and hands out credentials cut down from its own."""
    return [
        _listing(spec, arns, starts(spec)),
        allow("InspectBucket", [_LOCATION], [arns.bucket(spec.access.bucket)]),
        allow("WriteObjects", [*_READ, "s3:PutObject", _DELETE], _objects(spec, arns, starts(spec))),
        control_denied(spec, arns),
    ]


def reader(spec: Spec, arns: Arns) -> list[Statement]:
    """Of a party that only reads the tables."""
    return [
        _listing(spec, arns, starts(spec)),
        allow("InspectBucket", [_LOCATION], [arns.bucket(spec.access.bucket)]),
        allow("ReadObjects", _READ, _objects(spec, arns, starts(spec))),
        control_denied(spec, arns),
    ]


def control_denied(spec: Spec, arns: Arns) -> Statement:
    """The job's own records are nobody else's."""
    return deny("KeepOutOfControlObjects", ["s3:*"], control_objects(spec, arns))


def control_objects(spec: Spec, arns: Arns) -> list[str]:
    """The objects under the control prefix."""
    return [arns.objects(spec.access.bucket, literal(join_key(spec.access.prefix, CONTROL_DIRECTORY)) + "/*")]


def encryption(spec: Spec, deployment: Deployment, arns: Arns, *, writes: bool) -> list[Statement]:
    """Use of the bucket's key through S3 alone; a multipart upload needs both actions."""
    key = arns.key or deployment.existing.kms_key_arn
    if key is None and deployment.encryption == "SSE-S3":
        return []
    if key is None:
        raise SpecInvalidError(
            "deployment.encryption is SSE-KMS, and the key's ARN is not known.",
            remedy="Give the key: --kms-key ARN, or deployment.existing.kms_key_arn.",
        )
    actions = ["kms:Decrypt", *(["kms:GenerateDataKey"] if writes else [])]
    through_s3 = {"StringEquals": {"kms:ViaService": f"s3.{arns.region}.amazonaws.com"}}
    return [allow("UseKeyThroughS3", actions, [key], through_s3)]


def _listing(spec: Spec, arns: Arns, begin: Sequence[str]) -> Statement:
    """``s3:prefix`` is known to s3:ListBucket only: beside it another action would always be denied."""
    forms = [
        form
        for start in begin
        for form in (list_forms(start.removesuffix("/")) if start.endswith("/") else [f"{literal(start)}*"])
    ]
    condition = {"StringLike": {"s3:prefix": forms}} if all(begin) else None
    return allow("ListUnderPrefix", ["s3:ListBucket"], [arns.bucket(spec.access.bucket)], condition)


def list_forms(prefix: str) -> list[str]:
    """The values of ``s3:prefix`` under which a folder and all below it is listed."""
    safe = literal(prefix)
    return [safe, f"{safe}/", f"{safe}/*"]


def _objects(spec: Spec, arns: Arns, begin: Sequence[str]) -> list[str]:
    return [arns.objects(spec.access.bucket, f"{literal(start)}*") for start in begin]


def _replaces(spec: Spec) -> bool:
    """Whether files go when others are there: Airbyte's platform says so by the mode, or by the lowest generation."""
    lowest = [table.stream.minimum_generation_id for table in spec.tables if table.stream]
    return spec.iceberg or any(lowest) or any(table.mode is not Mode.APPEND for table in spec.tables)
