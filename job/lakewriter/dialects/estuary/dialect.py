"""Estuary's Apache Parquet in S3."""

from typing import Any, Final

from lakewriter.dialects.common.dialect import Dialect, Refusing, TableForm, Variant
from lakewriter.dialects.estuary.current_settings import EstuaryConnector, is_current
from lakewriter.dialects.estuary.flow_file import KIND, with_flow
from lakewriter.dialects.estuary.foreign_files import FILES
from lakewriter.dialects.estuary.settings import BindingEntry, EstuaryDestination, EstuaryS3Parquet
from lakewriter.dialects.estuary.translate import choose_limits, make_form_fields, translate
from lakewriter.spec.pairs import Refusal, refuse_modes


def _begin_destination(kind: str, bucket: str, region: str) -> dict[str, Any]:
    return {"type": kind, "bucket": bucket, "region": region, "uploadIntervalInSeconds": 300}


def _begin_table(name: str, schema: str) -> dict[str, Any]:
    source = f"{schema}/{name}" if schema else name
    return {"source": source, "resource": {"pathPrefix": source}}


REFUSES: Final = Refusing[EstuaryDestination](
    "every binding",
    lambda destination: True,
    {
        **{
            key: Refusal(f"{{table}} has '{key}'; this destination writes documents as they are.", f"Leave {key} out.")
            for key in (
                "deleted",
                "unique_key",
                "partition_by",
                "sort_by",
                "names",
                "renamed_from",
                "order_by",
                "written_as",
                "index",
            )
        },
        **refuse_modes("this destination only appends delta updates"),
    },
)

DIALECT: Final = Dialect[EstuaryDestination](
    types={KIND: EstuaryS3Parquet},
    variants=(Variant(KIND, "present configuration", is_current, EstuaryConnector),),
    translate=translate,
    form_fields=make_form_fields,
    limits=choose_limits,
    table_form=TableForm("a binding", BindingEntry, ("source", "resource")),
    read_files=with_flow,
    refuses=(REFUSES,),
    foreign_files=FILES,
    first_keys=_begin_destination,
    first_table_keys=_begin_table,
)
