"""The tables of a pipeline as the auditor watches them."""

from lakewriter.spec.table_spec import Mode, TableSpec
from tests.simulation.books import MergeRule, Place
from tests.simulation.lakes import Lake


def places_of(lake: Lake) -> list[Place]:
    """Its tables, as the auditor watches them."""
    spec, found = lake.spec, list[Place]()
    for table in spec.tables:
        catalog = spec.catalog.kind
        is_partitioned = getattr(spec.catalog, "partition_key", None) is not None
        found.append(
            Place(
                pipeline=spec.pipeline,
                root=f"{spec.access.prefix}/_lakewriter/{spec.pipeline}".lstrip("/"),
                table=table.id,
                path=table.path,
                catalog=catalog,
                names=(table.schema_name, table.name),
                overwrites=table.mode in {Mode.OVERWRITE, Mode.REFRESH},
                refreshes=table.mode is Mode.REFRESH,
                is_synced=lake.kind == "connector",
                goes_on=table.cursor is not None or lake.is_streamed or bool(table.read.new_files),
                has_new_files=bool(table.read.new_files),
                has_cursor=table.cursor is not None,
                partitioned=is_partitioned and table.mode is not Mode.REFRESH,
                exclusive=table.cursor is not None or table.mode is not Mode.APPEND,
                quarantine=table.quarantine or "",
                in_glue=spec.in_glue,
                merges=_find_rule(table),
                history_of=table.history_of,
            )
        )
    return found


def _find_rule(table: TableSpec) -> MergeRule | None:
    if table.mode is not Mode.MERGE:
        return None
    has_deletes = table.marks_deleted
    seconds = table.deleted_seconds if has_deletes and not table.keep_deleted else 0.0
    order_by = ("lsn",) if table.stream is not None and table.stream.log is not None else table.order_by
    is_history = table.history_of is not None
    return MergeRule(
        order_by,
        has_deletes,
        table.keep_deleted,
        seconds,
        is_stream=table.stream is not None,
        has_floors=table.envelope is not None and (is_history or not table.keep_deleted),
        is_history=is_history,
    )
