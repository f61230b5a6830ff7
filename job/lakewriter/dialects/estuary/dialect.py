"""Estuary's Apache Parquet in S3."""

from typing import Final

from lakewriter.dialects.common.dialect import Dialect, TableForm, Variant
from lakewriter.dialects.estuary.current_settings import EstuaryConnector, is_current
from lakewriter.dialects.estuary.flow_file import KIND, with_flow
from lakewriter.dialects.estuary.foreign_files import FILES
from lakewriter.dialects.estuary.settings import BindingEntry, EstuaryDestination, EstuaryS3Parquet
from lakewriter.dialects.estuary.translate import choose_limits, make_form_fields, translate

DIALECT: Final = Dialect[EstuaryDestination](
    types={KIND: EstuaryS3Parquet},
    variants=(Variant(KIND, "present configuration", is_current, EstuaryConnector),),
    translate=translate,
    form_fields=make_form_fields,
    limits=choose_limits,
    table_form=TableForm("a binding", BindingEntry, ("source", "resource")),
    read_files=with_flow,
    foreign_files=FILES,
)
