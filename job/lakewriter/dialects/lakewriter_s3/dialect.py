"""``lakewriter-s3``: S3 for people without a vendor."""

from typing import Any, Final

from lakewriter.dialects.common.dialect import Dialect, Refusing
from lakewriter.dialects.configured_catalog import SourceEntry
from lakewriter.dialects.lakewriter_s3.settings import LakewriterS3
from lakewriter.dialects.lakewriter_s3.translate import adjust_limits, make_form_fields, translate
from lakewriter.spec.pairs import Refusal, name_mode
from lakewriter.spec.table_spec import Mode


def _begin_destination(kind: str, bucket: str, region: str) -> dict[str, Any]:
    return {"type": kind, "location": f"s3://{bucket}/lake", "region": region}


REFUSES: Final = (
    Refusing[LakewriterS3](
        "every catalog",
        lambda form: True,
        {
            name_mode(Mode.OVERWRITE): Refusal(
                "{table} has mode 'overwrite'; expected 'append', 'refresh', 'replace_partitions' or 'merge'.",
                "Set mode: refresh: readers see the old rows until they see all new ones.",
            )
        },
    ),
    Refusing[LakewriterS3](
        "catalog: none and glue",
        lambda form: not form.is_iceberg,
        {
            name_mode(Mode.MERGE): Refusal(
                "{table} has mode 'merge', and is no Iceberg table: plain files have no deletes of single rows.",
                "Set catalog: iceberg; or append, and read the newest rows by a query of lakewriter queries.",
            ),
            name_mode(Mode.REPLACE_PARTITIONS): Refusal(
                "{table} has mode 'replace_partitions', and is no Iceberg table: files have no such partitions.",
                "Set catalog: iceberg and partition_by, or mode: refresh.",
            ),
            "renamed_from": Refusal(
                "{table} has renamed_from, which only Iceberg tables have: other files have their columns by name.",
                "Set catalog: iceberg, or leave it out: the column is then added as a new one.",
            ),
            "partition_by": Refusal(
                "{table} has partition_by, which only Iceberg tables have.",
                "Set catalog: iceberg, or leave partition_by out; files have partition_strategy.",
            ),
        },
    ),
    Refusing[LakewriterS3](
        "formats but parquet",
        lambda form: form.format != "parquet",
        {
            "sort_by": Refusal(
                "{table} has sort_by, and only Parquet files have row groups to sort.",
                "Set format: parquet, or leave sort_by out.",
            )
        },
    ),
    Refusing[LakewriterS3](
        "tracking without deleted",
        lambda form: "deleted" not in form.tracking,
        {
            "deleted": Refusal(
                "{table} has 'deleted', and no column for it.",
                "Add 'deleted' to destination.tracking, or leave it out.",
            ),
            "envelope": Refusal(
                "{table} has envelope, whose events delete rows, and no column that says so.",
                "Add 'deleted' to destination.tracking.",
            ),
        },
    ),
    Refusing[LakewriterS3](
        "tracking without row_number",
        lambda form: "row_number" not in form.tracking,
        {
            "index": Refusal(
                "{table} has index, and no column with row numbers.",
                "Add 'row_number' to destination.tracking, or leave index out.",
            )
        },
    ),
)

DIALECT: Final = Dialect[LakewriterS3](
    types={"lakewriter-s3": LakewriterS3},
    translate=translate,
    form_fields=make_form_fields,
    limits=adjust_limits,
    top_keys=frozenset({"source"}),
    source=SourceEntry,
    refuses=REFUSES,
    first_keys=_begin_destination,
)
