"""The key ``catalog_account``: whose Glue Data Catalog the tables are in."""

from lakewriter.dialects.common.faults import FaultError
from lakewriter.dialects.common.maintenance_keys import MaintenanceEntry
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
