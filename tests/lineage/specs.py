"""A specification of one table, for what goes by the file alone."""

from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import NoCatalog
from lakewriter.spec.key_template import Template
from lakewriter.spec.layout import Layout
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import Read, TableSpec


def make_spec(read: Read) -> tuple[Spec, TableSpec]:
    """A table with this source."""
    table = TableSpec(
        source_table="orders",
        schema_name="shop",
        name="orders",
        read=read,
        layout=Layout("lake/orders", Template.parse("part-{uuid}.parquet")),
        path="lake/orders",
    )
    access = Access(bucket="acme-lake", region="us-east-1")
    spec = Spec(pipeline="shop", dialect="d", access=access, catalog=NoCatalog(), tracking=(), tables=(table,))
    return spec, table
