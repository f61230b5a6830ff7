"""Name the table that a load writes: the place of its files, and its name in the catalog."""

from collections.abc import Callable
from functools import partial

from lakewriter.commit.intent import CatalogAction, GlueAction, IcebergAction
from lakewriter.lineage.columns import describe_columns
from lakewriter.lineage.facts import Column, Dataset, Output, Symlink
from lakewriter.lineage.inputs import name_path
from lakewriter.shape.shapers import AnyPlan
from lakewriter.spec.specification import Mode, Spec, TableSpec

FindAccount = Callable[[], str | None]
"""The number of the account whose Glue Data Catalog is written; None where it cannot be found."""


def name_output(spec: Spec, table: TableSpec, find_account: FindAccount) -> Output | None:
    """Return the table before its load; None where the catalog decides its location."""
    service = spec.rest_service
    if service is not None:
        return None
    place = name_path(spec.table_location(table))
    assert place is not None
    symlink = Symlink(partial(_name_in_glue, spec, table.schema_name, table.name, find_account))
    return Output(
        place,
        symlink if spec.in_glue else None,
        is_iceberg=spec.iceberg,
        is_replaced=table.mode is not Mode.APPEND,
    )


def describe_output(
    spec: Spec, table: TableSpec, plan: AnyPlan, action: CatalogAction, find_account: FindAccount
) -> Output:
    """Return the table with its columns, as the load writes it."""
    in_catalog = isinstance(action, GlueAction | IcebergAction)
    columns = describe_columns(plan, in_catalog=in_catalog)
    location, symlink = spec.table_location(table), None
    if isinstance(action, GlueAction):
        location = action.location
        symlink = Symlink(partial(_name_in_glue, spec, action.database, action.table, find_account))
        if action.partition_key is not None:
            columns = (*columns, Column(action.partition_key, "string"))
    if isinstance(action, IcebergAction):
        location = action.location
        symlink = _link_iceberg(spec, action, find_account)
    place = name_path(location)
    assert place is not None
    return Output(place, symlink, columns, spec.iceberg, table.mode is not Mode.APPEND)


def _link_iceberg(spec: Spec, action: IcebergAction, find_account: FindAccount) -> Symlink:
    service = action.service
    if service.kind == "rest":
        named = Dataset(service.uri.rstrip("/"), f"{action.namespace}.{action.table}")
        return Symlink(lambda: named)
    return Symlink(partial(_name_in_glue, spec, action.namespace, action.table, find_account))


def _name_in_glue(spec: Spec, database: str, table: str, find_account: FindAccount) -> Dataset | None:
    account = find_account()
    if account is None:
        return None
    return Dataset(f"arn:aws:glue:{spec.access.region}:{account}", f"table/{database}/{table}")
