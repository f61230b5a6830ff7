"""Check that the Iceberg catalog admits the job, and where its tables lie."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from lakewriter import aws
from lakewriter.commit.iceberg.connection import Connection
from lakewriter.commit.iceberg.glue_optimizers import Optimizers, find_faults, make_configurations
from lakewriter.doctor.probe import Finding, Probe, call
from lakewriter.errors import GlueAccessDeniedError
from lakewriter.naming import join_key
from lakewriter.records.actions import IcebergAction
from lakewriter.spec.catalogs import IcebergService
from lakewriter.spec.maintenance import Maintenance
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

CATALOG_REMEDY: Final = (
    "Add glue:GetCatalog and glue:GetCatalogs on the catalog to the Glue policy of the role: engines that read Iceberg "
    "tables need them. Loads of this job do not."
)


@dataclass(frozen=True)
class IcebergProbes:
    """Probes of the catalog and of each table in it; ``gate`` is the probe of the credentials."""

    spec: Spec
    clients: aws.Clients
    gate: str

    def list_probes(self) -> list[Probe]:
        """List the probes; none without an Iceberg catalog."""
        service = self.spec.service
        if service is None:
            return []
        first = [Probe("glue catalog", self.check_glue, (self.gate,))]
        if service.rest is not None:
            first = [Probe("iceberg catalog", partial(self.check_connection, service), (self.gate,))]
        tables = [
            Probe(f"iceberg table {table.id}", partial(self.check_table, service, table), (self.gate, first[0].name))
            for table in self.spec.tables
        ]
        return first + tables

    def check_glue(self) -> Iterator[Finding]:
        """Call glue:GetCatalog on the catalog of the file, by default the account's own."""
        account = self.spec.access.catalog_account or self._find_own_account()
        request = partial(self.clients.glue.get_catalog, CatalogId=account)
        try:
            call("glue:GetCatalog on catalog", self.spec.access, request)
        except GlueAccessDeniedError as error:
            yield Finding("glue catalog", "warning", error.message, CATALOG_REMEDY, error.code)
        else:
            yield Finding("glue catalog", "ok", "the Data Catalog can be read.")

    def _find_own_account(self) -> str:
        who = call("sts:GetCallerIdentity", self.spec.access, self.clients.sts.get_caller_identity)
        return str(who["Account"])

    def check_connection(self, service: IcebergService) -> Iterator[Finding]:
        """Fetch a token, and the catalog's configuration with it."""
        catalog = Connection(service, self.clients).name
        yield Finding("iceberg catalog", "ok", f"{catalog} lets the job in.")

    def check_table(self, service: IcebergService, table: TableSpec) -> Iterator[Finding]:
        """Load the table; this also finds a catalog whose region is not the bucket's."""
        name = f"iceberg table {table.id}"
        action = IcebergAction(service=service, namespace=table.schema_name, table=table.name, location="")
        location = Connection(service, self.clients).find_location(action)
        if location is None:
            message = (
                f"{table.id} does not exist yet; the first load creates it (which cannot be tried without doing it)."
            )
            yield Finding(name, "ok", message)
            return
        yield self._judge_location(name, service, table, location)
        if self.spec.maintenance:
            yield from self._check_upkeep(action, table, self.spec.maintenance)

    def _judge_location(self, name: str, service: IcebergService, table: TableSpec, location: str) -> Finding:
        """Report a table outside the folder that the roles have, and Snowflake's volume where it has one."""
        access = self.spec.access
        base = f"{join_key(access.bucket, self.spec.base)}/"
        if not service.chooses_location or f"{location.partition('://')[2].rstrip('/')}/".startswith(base):
            return Finding(name, "ok", f"{table.id} lies at {location}.")
        said = f"the catalog keeps {table.id} at {location}, outside s3://{base}: the stack's roles do not reach it"
        remedy = "Set destination.catalog_base_location to the catalog's default base location, and deploy"
        if service.takes_roles:
            said += ", and no table of Snowflake can be made of it"
            remedy += "; then have the volume's statements printed again"
        return Finding(name, "warning", f"{said}.", f"{remedy}.")

    def _check_upkeep(self, action: IcebergAction, table: TableSpec, maintenance: Maintenance) -> Iterator[Finding]:
        """Compare Glue's optimizers with the file, which the first load of the table sets."""
        if not make_configurations(maintenance):
            return
        name = f"maintenance of {table.id}"
        faults = list(find_faults(Optimizers(self.clients, action, maintenance), maintenance))
        for message, remedy in faults:
            yield Finding(name, "warning", message, remedy)
        if not faults:
            yield Finding(name, "ok", "Glue's optimizers are as 'maintenance' has them, and none failed last.")
