"""Estuary's Apache Parquet in S3."""

from typing import Final

from lakewriter.dialects.common.dialect import Dialect, TableForm
from lakewriter.dialects.estuary.flow_file import KIND, with_flow
from lakewriter.dialects.estuary.foreign_files import FILES
from lakewriter.dialects.estuary.settings import BindingEntry, EstuaryS3Parquet
from lakewriter.dialects.estuary.translate import make_form_fields, translate

DIALECT: Final = Dialect[EstuaryS3Parquet](
    types={KIND: EstuaryS3Parquet},
    translate=translate,
    form_fields=make_form_fields,
    renamed_keys={"interval_seconds": "uploadIntervalInSeconds"},
    table_form=TableForm("a binding", BindingEntry, ("source", "resource")),
    read_files=with_flow,
    foreign_files=FILES,
)
