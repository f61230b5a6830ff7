"""Supaflow's Amazon S3 destination and its S3 Data Lake destination, which has a model for each table format."""

from typing import Final

from lakewriter.dialects.common.dialect import Dialect, Refusing, Variant
from lakewriter.dialects.supaflow.settings import AnyDestination, S3DataLakeIceberg, S3DataLakeParquet, S3Parquet
from lakewriter.dialects.supaflow.translate import make_form_fields, translate
from lakewriter.spec.pairs import Refusal, refuse_modes
from lakewriter.spec.vendor_policy import Target, VendorPolicy, VendorStatement

_LISTING: Final = VendorStatement(
    sid="AllowBucketListForPrefix",
    actions=("s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads"),
    targets=(Target.BUCKET,),
    prefix_only=True,
)
_OBJECTS: Final = VendorStatement(
    sid="AllowObjectReadWriteInPrefix",
    actions=(
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
    ),
    targets=(Target.OBJECTS_IN_PREFIX,),
)
_WHERE: Final = (Target.CATALOG, Target.DATABASES, Target.TABLES)
_TABLES: Final = VendorStatement(
    sid="AllowDbAndTableReadWriteForSupaflowPrefix",
    actions=(
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
    ),
    targets=_WHERE,
)
_RESET: Final = VendorStatement(
    sid="AllowResetOperationsForSupaflowPrefix",
    actions=("glue:DeleteTable", "glue:BatchDeleteTable", "glue:DeleteDatabase"),
    targets=_WHERE,
)
_CATALOG: Final = {
    "supaflow-s3": ("glue:GetCatalogImportStatus",),
    "supaflow-s3-data-lake": ("glue:GetCatalog", "glue:GetCatalogs", "glue:GetCatalogImportStatus"),
}
"""The actions on the catalog, in which the two pages differ."""
POLICIES: Final = {
    kind: VendorPolicy(
        s3=(_LISTING, _OBJECTS),
        glue=(
            VendorStatement(sid="AllowCatalogRead", actions=actions, targets=(Target.CATALOG,)),
            _TABLES,
            _RESET,
        ),
    )
    for kind, actions in _CATALOG.items()
}
"""The policy documents of Supaflow's set-up pages, word for word, by the type of the destination."""


REFUSES: Final = (
    Refusing[AnyDestination](
        "every table_format",
        lambda destination: True,
        {
            "order_by": Refusal("{table} has order_by; this destination orders rows by their load and row number."),
            **refuse_modes("this destination only appends"),
        },
    ),
    Refusing[AnyDestination](
        "table_format: PARQUET",
        lambda destination: not isinstance(destination, S3DataLakeIceberg),
        {
            "renamed_from": Refusal(
                "{table} has renamed_from, which only Iceberg tables have: other files have their columns by name.",
                "Set table_format: ICEBERG, or leave it out: the column is then added as a new one.",
            ),
            "partition_by": Refusal(
                "{table} has partition_by, which only Iceberg tables have.",
                "Set table_format: ICEBERG, or leave partition_by out; Parquet tables have partition_strategy.",
            ),
        },
    ),
)

DIALECT: Final = Dialect[AnyDestination](
    types={"supaflow-s3": S3Parquet, "supaflow-s3-data-lake": S3DataLakeParquet},
    variants=(
        Variant(
            "supaflow-s3-data-lake", "ICEBERG", lambda value: value("table_format") == "ICEBERG", S3DataLakeIceberg
        ),
    ),
    translate=translate,
    form_fields=make_form_fields,
    top_keys=frozenset({"delta_encodings"}),
    refuses=REFUSES,
    policies=POLICIES,
    principals={"supaflow-s3": "supaflow", "supaflow-s3-data-lake": "supaflow"},
)
