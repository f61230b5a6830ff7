"""The keys ``catalog_account``, ``format_version`` and ``projection``: whose Glue Data Catalog has the tables, which
version of Iceberg they are made with, and how Athena finds their partitions."""

from collections.abc import Sequence
from typing import Final, Literal

from lakewriter.dialects.common.faults import FaultError
from lakewriter.dialects.common.maintenance_keys import MaintenanceEntry
from lakewriter.spec.catalogs import HIGHEST_OF_ATHENA, FormatVersion, GlueCatalog, IcebergCatalog
from lakewriter.spec.readers import ReaderName
from lakewriter.spec.specification import Spec


def place_catalog(account: str | None, spec: Spec, maintenance: MaintenanceEntry | None) -> Spec:
    """Place the tables in the catalog of ``account``; a fault where they are in none, or its optimizers are asked."""
    if account is None:
        return spec
    if not spec.in_glue:
        raise FaultError(
            ("catalog_account",), "it is the account of a Glue Data Catalog, and these tables are in none.",
            remedy="Leave it out.",
        )  # fmt: skip
    rest = spec.rest_service
    if rest is not None and rest.warehouse != account:
        raise FaultError(
            ("catalog_account",), f"it is {account}, and the catalog of destination.warehouse is {rest.warehouse!r}.",
            remedy="Give both the same account.",
        )  # fmt: skip
    if maintenance is not None and maintenance.optimizer_role is not None:
        raise FaultError(
            ("maintenance", "optimizer_role"), "Glue's optimizers take a role of the catalog's own account, and "
            f"'catalog_account' is {account}.", remedy="Leave it out, and have that account set them.",
        )  # fmt: skip
    return spec.model_copy(update={"access": spec.access.model_copy(update={"catalog_account": account})})


def choose_format(version: FormatVersion | None, spec: Spec, readers: Sequence[ReaderName]) -> Spec:
    """Make new Iceberg tables with the format version that the file gives; a fault where its readers do not read it."""
    if version is None:
        return spec
    if not isinstance(spec.catalog, IcebergCatalog):
        raise FaultError(
            ("format_version",), "it is for Iceberg tables, and these are files.", remedy="Leave it out.",
        )  # fmt: skip
    if version > HIGHEST_OF_ATHENA and "athena" in readers:
        raise FaultError(
            ("format_version",), f"Athena reads no tables of format version {version}, and 'readers' names it.",
            remedy="Leave it out: the tables then have version 2.",
        )  # fmt: skip
    return spec.model_copy(update={"catalog": spec.catalog.model_copy(update={"format_version": version})})


_EARLY: Final = (
    "projection: Athena sees a file as soon as it is complete, so a query that runs while a load commits may see some "
    "of its files"
)


def project_partitions(
    projection: bool | Literal["only"], spec: Spec, readers: Sequence[ReaderName], *, drops_partitions: bool
) -> Spec:
    """Let Athena compute the partitions of the tables; a fault where it cannot, or others read them too."""
    catalog = spec.catalog
    if not projection:
        return spec
    if not isinstance(catalog, GlueCatalog) or catalog.partition_key is None:
        raise FaultError(
            ("projection",), "it is for partitions of Hive tables in Glue, and these tables have none.",
            remedy="Leave it out.",
        )  # fmt: skip
    templates = [table.layout.template for table in spec.tables if not table.layout.has_generations]
    if any(template.first_variable[0] != "date" for template in templates):
        raise FaultError(
            ("projection",), "each partition is a load's, so that a query would have to name the load's job id.",
            remedy="Set partition_strategy to days or hours.",
        )  # fmt: skip
    if drops_partitions:
        raise FaultError(
            ("undo", "drop_partitions"), "Athena computes the partitions, and would read one that an undo has dropped.",
            remedy="Leave it out, or 'projection'.",
        )  # fmt: skip
    others = [name for name in readers if name != "athena"]
    if projection == "only" and others:
        raise FaultError(
            ("projection",), f"with 'only' Athena alone finds the partitions, and 'readers' names {', '.join(others)}.",
            remedy="Set it to true: the partitions then have entries in the catalog too.",
        )  # fmt: skip
    chosen = catalog.model_copy(update={"projection": "only" if projection == "only" else "entries"})
    return spec.model_copy(update={"catalog": chosen, "warnings": (*spec.warnings, _EARLY)})
