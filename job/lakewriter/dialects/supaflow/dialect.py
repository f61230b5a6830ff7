"""Supaflow's Amazon S3 destination and its S3 Data Lake destination, which has a model for each table format."""

from typing import Final

from lakewriter.dialects.common.dialect import Dialect, Variant
from lakewriter.dialects.supaflow.policy import POLICIES
from lakewriter.dialects.supaflow.settings import AnyDestination, S3DataLakeIceberg, S3DataLakeParquet, S3Parquet
from lakewriter.dialects.supaflow.translate import make_form_fields, translate

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
    policies=POLICIES,
    principals={"supaflow-s3": "supaflow", "supaflow-s3-data-lake": "supaflow"},
)
