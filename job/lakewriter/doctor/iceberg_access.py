"""Whether the Iceberg catalog lets the job in, knows its tables, and keeps them where it may write."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from lakewriter import aws
from lakewriter.commit.iceberg.connection import Connection
from lakewriter.commit.intent import IcebergAction
from lakewriter.doctor.probe import Finding, Probe, call
from lakewriter.errors import GlueAccessDeniedError
from lakewriter.spec.catalogs import GlueService, IcebergCatalog, IcebergService
from lakewriter.spec.specification import Spec, TableSpec

CATALOG_REMEDY: Final = (
    "Add glue:GetCatalog and glue:GetCatalogs on the catalog to the Glue policy, which engines ask for with Iceberg, "
    "and see that the updated policy is attached to the role. Loads of this job do without."
)


@dataclass(frozen=True)
class IcebergProbes:
    """Probes of the catalog and of each table in it; ``gate`` is the probe that credentials depend on."""

    spec: Spec
    clients: aws.Clients
    gate: str

    def probes(self) -> list[Probe]:
        """None when the spec has no Iceberg catalog."""
        if not isinstance(self.spec.catalog, IcebergCatalog):
            return []
        service = self.spec.catalog.service
        first = [Probe("glue catalog", self.glue, (self.gate,))]
        if not isinstance(service, GlueService):
            first = [Probe("iceberg catalog", partial(self.connected, service), (self.gate,))]
        tables = [
            Probe(f"iceberg table {table.id}", partial(self.table, service, table), (self.gate, first[0].name))
            for table in self.spec.tables
        ]
        return first + tables

    def glue(self) -> Iterator[Finding]:
        """glue:GetCatalog, of the account's own catalog."""
        account = call("sts:GetCallerIdentity", self.spec.access, self.clients.sts.get_caller_identity)["Account"]
        request = partial(self.clients.glue.get_catalog, CatalogId=account)
        try:
            call("glue:GetCatalog on catalog", self.spec.access, request)
        except GlueAccessDeniedError as error:
            yield Finding("glue catalog", "warning", error.message, CATALOG_REMEDY, error.code)
        else:
            yield Finding("glue catalog", "ok", "the Data Catalog can be looked at.")

    def connected(self, service: IcebergService) -> Iterator[Finding]:
        """A token, and the catalog's configuration with it."""
        told = Connection(service, self.clients).told
        yield Finding("iceberg catalog", "ok", f"{told} lets the job in.")

    def table(self, service: IcebergService, table: TableSpec) -> Iterator[Finding]:
        """The table loaded; a region that is not the bucket's is found here, where the catalog tells it."""
        name = f"iceberg table {table.id}"
        action = IcebergAction(service=service, namespace=table.schema_name, table=table.name, location="")
        location = Connection(service, self.clients).location(action)
        if location is None:
            message = (
                f"{table.id} does not exist yet; the first load creates it (which cannot be tried without doing it)."
            )
            yield Finding(name, "ok", message)
            return
        yield Finding(name, "ok", f"{table.id} lies at {location}.")
