"""The canary: a load of one row into a table of its own, which proves a deployment without touching its tables."""

import dataclasses
from typing import Final

from lakewriter.naming import CHECK_TABLE, ControlKeys, join_key
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import IndexKind, Mode, Read, TableSpec

CANARY_TABLE: Final = f"{CHECK_TABLE}canary"
"""A name that every role which loads may write in the catalog."""
CANARY_READ: Final = Read(sql="SELECT 1 AS id, current_timestamp() AS written_at")


def make_canary(spec: Spec) -> Spec:
    """Return the same destination, as the same role and in the same catalog, with the canary's table alone.

    Its files lie among the pipeline's own records, where every role that loads may write, and where no reader looks.
    """
    first = spec.tables[0]
    path = join_key(ControlKeys(spec.access.prefix, spec.pipeline).root, "canary")
    table = TableSpec(
        source_schema=first.source_schema,
        source_table=CANARY_TABLE,
        schema_name=first.schema_name,
        name=CANARY_TABLE,
        read=CANARY_READ,
        # A full refresh is published in another way, which the canary is to prove as well.
        mode=Mode.REFRESH if first.layout.has_generations else Mode.APPEND,
        index=IndexKind.SPARSE,
        layout=dataclasses.replace(first.layout, directory=path, depth=0, purged="", variants=()),
        path=path,
        encoding=first.encoding,
    )
    return spec.model_copy(update={"tables": (table,), "source": None, "checkpoint": None, "lineage": None})
