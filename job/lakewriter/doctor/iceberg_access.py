"""Check that the Iceberg catalog admits the job, where its tables lie, and what it does with them by itself."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from lakewriter import aws
from lakewriter.commit.iceberg.connection import Connection
from lakewriter.commit.iceberg.glue_optimizers import SET_AGAIN, Optimizers, find_faults, make_configurations
from lakewriter.commit.iceberg.s3_tables_upkeep import Removal, TableService, find_removal
from lakewriter.doctor.probe import Finding, Probe, call, find_cause_code
from lakewriter.errors import BucketNotFoundError, GlueAccessDeniedError, LakeError, LoadGoneError, StagedLostError
from lakewriter.naming import join_key
from lakewriter.records.actions import IcebergAction
from lakewriter.report import format_count
from lakewriter.spec.catalogs import IcebergService
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.maintenance import Maintenance
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import TableSpec

CATALOG_REMEDY: Final = (
    "Add glue:GetCatalog and glue:GetCatalogs on the catalog to the Glue policy of the role: engines that read Iceberg "
    "tables need them. Loads of this job do not."
)


@dataclass(frozen=True)
class IcebergProbes:
    """Probes of the catalog and of each table in it; ``gate`` is the probe of the credentials.

    A table bucket has to keep what no snapshot names for ``unreferenced_days``.
    """

    spec: Spec
    clients: aws.Clients
    gate: str
    unreferenced_days: int = Deployment().unreferenced_days

    def list_probes(self) -> list[Probe]:
        """List the probes; none without an Iceberg catalog."""
        service = self.spec.service
        if service is None:
            return []
        first = [Probe("glue catalog", self.check_glue, (self.gate,))]
        if service.rest is not None:
            first = [Probe("iceberg catalog", partial(self.check_connection, service), (self.gate,))]
        if service.table_bucket is not None:
            first.insert(0, Probe("table bucket", partial(self.check_table_bucket, service.table_bucket), (self.gate,)))
        tables = [
            Probe(f"iceberg table {table.id}", partial(self.check_table, service, table), (self.gate, first[-1].name))
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

    def check_table_bucket(self, arn: str) -> Iterator[Finding]:
        """Look for the table bucket, and at how long it keeps files that no snapshot names: those of a load that waits
        are not named yet."""
        name, s3tables = "table bucket", self.clients.s3tables
        try:
            call(
                f"s3tables:GetTableBucket on {arn}",
                self.spec.access,
                lambda: s3tables.get_table_bucket(tableBucketARN=arn),
            )
        except LakeError as error:
            if find_cause_code(error) != "NotFoundException":
                raise
            remedy = "Check table_bucket_arn for typing errors; or create the table bucket: the stacks do, and no load."
            yield Finding(name, "failed", f"there is no table bucket {arn}.", remedy, BucketNotFoundError.code)
            return
        yield judge_removal(arn, find_removal(self.clients, arn), self.unreferenced_days)

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
        """Compare what the catalog does by itself with the file, which the first load of the table sets."""
        name = f"maintenance of {table.id}"
        if action.service.table_bucket is not None:
            yield self._check_snapshots(name, action, table, maintenance)
            return
        if not make_configurations(maintenance):
            return
        faults = list(find_faults(Optimizers(self.clients, action, maintenance), maintenance))
        for message, remedy in faults:
            yield Finding(name, "warning", message, remedy)
        if not faults:
            yield Finding(name, "ok", "Glue's optimizers are as 'maintenance' has them, and none failed last.")

    def _check_snapshots(self, name: str, action: IcebergAction, table: TableSpec, maintenance: Maintenance) -> Finding:
        """Compare how long Amazon S3 Tables keeps snapshots with what an undo and ``--as-of`` promise."""
        days = maintenance.expire_snapshots_days or self.spec.keep_loads_days
        hours, least = TableService(self.clients, action, maintenance).find_snapshot_hours(), math.ceil(24 * days)
        ago = format_count(days, "day") if isinstance(days, int) else format_count(least, "hour")
        if hours is not None and hours < least:
            return Finding(
                name, "failed", f"Amazon S3 Tables keeps snapshots of {table.id} for {hours} hours, expected "
                f"{least} or more: a load of {ago} ago is to be undone, or read as of it.",
                SET_AGAIN, LoadGoneError.code,
            )  # fmt: skip
        keeps = "every snapshot" if hours is None else f"snapshots for {format_count(hours // 24, 'day')}"
        return Finding(name, "ok", f"Amazon S3 Tables keeps {keeps} of {table.id}.")


def judge_removal(arn: str, removal: Removal | None, least: int) -> Finding:
    """Report whether a table bucket keeps files that no snapshot names for as long as a load may wait: its files are
    named once it commits."""
    name = "table bucket"
    if removal is None:
        return Finding(name, "ok", f"{arn} keeps files that no snapshot names.")
    days = format_count(removal.unreferenced, "day")
    if removal.unreferenced >= least:
        more = format_count(removal.noncurrent, "day")
        return Finding(name, "ok", f"{arn} keeps files that no snapshot names for {days}, and out of sight for {more}.")
    message = (
        f"{arn} takes files away that no snapshot names after {days}, and a load may wait for {least - 1} days before "
        "it commits (deployment.abort_incomplete_uploads_days): it would lose its files."
    )
    remedy = (
        f"Deploy the stacks again, or set unreferencedDays of icebergUnreferencedFileRemoval to {least} or more: 'aws "
        "s3tables put-table-bucket-maintenance-configuration'."
    )
    return Finding(name, "failed", message, remedy, StagedLostError.code)
