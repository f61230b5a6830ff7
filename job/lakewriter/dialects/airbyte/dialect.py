"""Airbyte's S3 destination, and Hero Pixel's, which is a form of Airbyte's."""

from collections.abc import Mapping
from typing import Any, Final

from lakewriter.dialects.airbyte.file_formats import FORMAT_TAGS, FORMATS, find_part_model
from lakewriter.dialects.airbyte.foreign_files import FILES
from lakewriter.dialects.airbyte.translate import AirbyteForm, adjust_limits, make_form_fields, translate
from lakewriter.dialects.airbyte.vendor_file import TYPES, read_files
from lakewriter.dialects.common.dialect import Dialect, Refusing
from lakewriter.dialects.common.problems import find_model, list_keys
from lakewriter.dialects.common.source_files import Location
from lakewriter.dialects.configured_catalog import SourceEntry
from lakewriter.spec.model import Model
from lakewriter.spec.pairs import Refusal, refuse_modes
from lakewriter.spec.table_spec import Mode
from lakewriter.spec.vendor_policy import Target, VendorPolicy, VendorStatement

POLICY: Final = VendorPolicy(
    s3=(
        VendorStatement(
            sid="AllowReadWriteInBucket",
            actions=(
                "s3:PutObject",
                "s3:GetObject",
                "s3:DeleteObject",
                "s3:PutObjectAcl",
                "s3:ListBucket",
                "s3:ListBucketMultipartUploads",
                "s3:AbortMultipartUpload",
                "s3:GetBucketLocation",
            ),
            targets=(Target.OBJECTS, Target.BUCKET),
        ),
    ),
    self_hosted=True,
)
"""The policy document of Airbyte's set-up page, word for word, on the whole bucket; the page gives no name.
https://docs.airbyte.com/integrations/destinations/s3"""


def _list_keys(model: type[Model], steps: Location, destination: Mapping[str, Any]) -> list[str]:
    """List the keys of the file's form: formats are unions, so the keys depend on what the file says it has."""
    if steps[:1] != ("format",):
        return list_keys(find_model(model, steps))
    form = destination.get("format", {})
    chosen = FORMATS.get(str(form.get("format_type")))
    if steps[1:]:
        chosen = find_part_model(form.get(steps[1], {}))
    return list_keys(chosen) if chosen else []


def _begin_destination(kind: str, bucket: str, region: str) -> dict[str, Any]:
    """Parquet: of the formats the one whose columns have types, and that all readers take."""
    keys = {"type": kind, "s3_bucket_name": bucket, "s3_bucket_path": "lake", "s3_bucket_region": region}
    return {**keys, "format": {"format_type": "Parquet"}}


REFUSES: Final = Refusing[AirbyteForm](
    "every format",
    lambda form: True,
    {
        "deleted": Refusal(
            "{table} has 'deleted', and this destination has no column for it.",
            "Leave it out; the source's own columns are written as they are.",
        ),
        "order_by": Refusal("{table} has order_by, and this destination has no columns to compare."),
        "written_as": Refusal("{table} has written_as, and here s3_path_format says where it lies."),
        "renamed_from": Refusal(
            "{table} has renamed_from, which only Iceberg tables have: other files have their columns by name.",
            "Leave it out: the column is then a new one.",
        ),
        "partition_by": Refusal(
            "{table} has partition_by, which only Iceberg tables have.",
            "Leave it out; s3_path_format says where the files of a load lie.",
        ),
        "sort_by": Refusal(
            "{table} has sort_by, and this destination keeps the order of the source.",
            "Leave it out, or load it into a destination of type lakewriter-s3.",
        ),
        "index": Refusal("{table} has index, and this destination has no column with row numbers."),
        **refuse_modes(
            "expected 'append' or 'overwrite'",
            "Set mode: overwrite: readers see old and new files until the old ones are deleted; or load it into a "
            "destination of type lakewriter-s3.",
            but=Mode.OVERWRITE,
        ),
    },
)

DIALECT: Final = Dialect[AirbyteForm](
    types=TYPES,
    translate=translate,
    form_fields=make_form_fields,
    limits=adjust_limits,
    top_keys=frozenset({"source"}),
    source=SourceEntry,
    union_tags=FORMAT_TAGS,
    keys_at=_list_keys,
    read_files=read_files,
    refuses=(REFUSES,),
    foreign_files=FILES,
    policies=dict.fromkeys(TYPES, POLICY),
    principals={"airbyte-s3": "airbyte-cloud", "heropixel-s3": "heropixel-cloud"},
    first_keys=_begin_destination,
)
