"""The vendors' own documents, word for word, for a vendor that checks them; the rest of this package knows better."""

from typing import Final

from lakewriter.errors import SpecInvalidError
from lakewriter.policy import glue_statements as glue
from lakewriter.policy.arns import Arns, literal
from lakewriter.policy.statements import Statement, allow
from lakewriter.spec.specification import Spec

_OBJECTS: Final = (
    "s3:DeleteObjectTagging",
    "s3:ReplicateObject",
    "s3:PutObject",
    "s3:GetObjectAcl",
    "s3:GetObject",
    "s3:DeleteObjectVersion",
    "s3:PutObjectTagging",
    "s3:DeleteObject",
    "s3:PutObjectAcl",
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
)
_AIRBYTE: Final = (
    "s3:PutObject",
    "s3:GetObject",
    "s3:DeleteObject",
    "s3:PutObjectAcl",
    "s3:ListBucket",
    "s3:ListBucketMultipartUploads",
    "s3:AbortMultipartUpload",
    "s3:GetBucketLocation",
)
_AIRBYTE_DIALECTS: Final = ("airbyte-s3", "heropixel-s3")
_TABLES: Final = (
    "glue:GetDatabase",
    "glue:GetDatabases",
    "glue:CreateDatabase",
    "glue:UpdateDatabase",
    "glue:GetTable",
    "glue:GetTables",
    "glue:CreateTable",
    "glue:UpdateTable",
    "glue:GetPartition",
    "glue:GetPartitions",
    "glue:CreatePartition",
    "glue:BatchCreatePartition",
)
_RESET: Final = ("glue:DeleteTable", "glue:BatchDeleteTable", "glue:DeleteDatabase")
_CATALOG: Final = {
    "supaflow-s3": ("glue:GetCatalogImportStatus",),
    "supaflow-s3-data-lake": ("glue:GetCatalog", "glue:GetCatalogs", "glue:GetCatalogImportStatus"),
}


def documented(spec: Spec, arns: Arns) -> dict[str, list[Statement]]:
    """``S3`` and ``Glue`` as the vendor's set-up page has them, with its placeholders filled in."""
    if spec.dialect in _AIRBYTE_DIALECTS:
        return {"S3": [_airbyte(spec, arns)], "Glue": []}
    if spec.dialect not in _CATALOG:
        raise SpecInvalidError(
            f"deployment.vendor_verbatim is on, and no policy of the vendor of {spec.dialect!r} is known.",
            remedy=f"Switch it off; it is for {', '.join((*_CATALOG, *_AIRBYTE_DIALECTS))}.",
        )
    return {"S3": _s3(spec, arns), "Glue": _glue(spec, arns) if glue.used(spec) else []}


def _airbyte(spec: Spec, arns: Arns) -> Statement:
    """On the whole bucket, as the page has it; the page gives it no name.

    https://docs.airbyte.com/integrations/destinations/s3
    """
    name = spec.access.bucket
    return allow("AllowReadWriteInBucket", _AIRBYTE, [arns.objects(name), arns.bucket(name)])


def _s3(spec: Spec, arns: Arns) -> list[Statement]:
    """Its condition on ``s3:prefix`` denies the second and third action always, as it does at the vendor's."""
    name, prefix = spec.access.bucket, literal(spec.access.prefix)
    condition = {"StringLike": {"s3:prefix": [f"{prefix}/*"]}} if prefix else None
    listing = ["s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads"]
    return [
        allow("AllowBucketListForPrefix", listing, [arns.bucket(name)], condition),
        allow("AllowObjectReadWriteInPrefix", _OBJECTS, [arns.objects(name, f"{prefix}/*" if prefix else "*")]),
    ]


def _glue(spec: Spec, arns: Arns) -> list[Statement]:
    """Without a prefix the vendor's text would open every database of the account: the file's own stand for it."""
    prefix = literal(spec.database_prefix)
    names = [f"{prefix}*"] if prefix else list(dict.fromkeys(table.schema_name for table in spec.tables))
    resources = [
        arns.glue("catalog"),
        *(arns.glue(f"database/{name}") for name in names),
        *(arns.glue(f"table/{name}/*") for name in names),
    ]
    return [
        allow("AllowCatalogRead", _CATALOG[spec.dialect], [arns.glue("catalog")]),
        allow("AllowDbAndTableReadWriteForSupaflowPrefix", _TABLES, resources),
        allow("AllowResetOperationsForSupaflowPrefix", _RESET, resources),
    ]
