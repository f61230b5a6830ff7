"""The dialect-neutral specification: what a load does, with no vendor's name in it."""

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum
from typing import Final, Literal

from pydantic import Field

from lakewriter.naming import join_key
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import AnyRestService, Catalog, GlueService
from lakewriter.spec.encodings import FileEncoding, ParquetEncoding
from lakewriter.spec.expectations import Acceptance
from lakewriter.spec.lineage import Lineage
from lakewriter.spec.maintenance import Maintenance
from lakewriter.spec.model import Model
from lakewriter.spec.stream import Envelope, MessageSource
from lakewriter.spec.table_spec import TableSpec
from lakewriter.spec.vendor_policy import VendorPolicy

MIB: Final = 1024 * 1024
BLOCK_BYTES: Final = 16 * MIB
"""Rows gathered for one block of a format that has no row groups."""


class Tracking(StrEnum):
    """The content of a tracking column."""

    SYNCED = "synced"
    DELETED = "deleted"
    INDEX = "index"
    ID = "id"
    JOB_ID = "job_id"


class TrackingColumn(Model):
    """One column the job adds; they follow the data columns in this order."""

    name: str
    holds: Tracking


class Limits(Model):
    """Sizes in bytes. ``row_group_bytes`` bounds Arrow data held for one row group in a task, ``row_group_rows`` its
    rows. Without ``parallel_tables`` a load uses the sizes of its tables."""

    upload_parallelism: int = 5
    part_bytes: int = 8 * MIB
    target_file_bytes: int = 200 * MIB
    row_group_bytes: int = 80 * MIB
    row_group_rows: int = 1_000_000
    parallel_tables: int | None = None

    @property
    def tables_at_once(self) -> int:
        """Return the number of tables of any size that are loaded at a time."""
        return self.parallel_tables or 2

    def without_row_groups(self) -> "Limits":
        """Return the limits for a format without row groups, whose rows are gathered in blocks."""
        return self.model_copy(update={"row_group_bytes": min(BLOCK_BYTES, self.target_file_bytes)})


METRICS_NAMESPACE: Final = "Lakewriter"
"""CloudWatch has all metrics of loads and runs in this namespace."""


class UndoRules(Model):
    """The limits of an undo in Glue; ``grace_minutes`` is how long queries may go on that began before it."""

    drop_partitions: bool = False
    grace_minutes: int = 15


class RefreshRules(Model):
    """The days for which a full refresh keeps the files of the one before."""

    keep_days: int = 3


class Spec(Model):
    """One pipeline, ready to run. ``interval_seconds`` and ``checkpoint``, a URI, are for continuous runs."""

    pipeline: str
    dialect: str
    access: Access
    catalog: Catalog
    tracking: tuple[TrackingColumn, ...]
    tables: tuple[TableSpec, ...]
    encoding: FileEncoding = ParquetEncoding()
    envelope: Envelope | None = None
    source: MessageSource | None = None
    purge_first: bool = False
    limits: Limits = Limits()
    interval_seconds: int = 300
    most_interval_seconds: int | None = None
    """The longest that the interval grows to while little arrives; None for a fixed one."""
    put_metrics: bool = False
    checkpoint: str | None = None
    on_failure: Literal["continue", "stop"] = "continue"
    keep_loads_days: int = 30
    shares_tables: bool = False
    """True if other pipelines may write the tables too."""
    undo: UndoRules = UndoRules()
    refresh: RefreshRules = RefreshRules()
    maintenance: Maintenance | None = None
    lineage: Lineage | None = None
    roots: tuple[str, ...] = ()
    """The folders that the tables lie in, where they have none in common."""
    database_prefix: str = ""
    """The vendor's database in Glue for tables without a schema; ``databases_below`` begins the names of all others."""
    folder_keys: tuple[str, ...] = ()
    """Keys in the names of folders, ``key=value``: readers make columns of them."""
    column_names: Literal["normalised", "kept"] = "normalised"
    vendor: str | None = None
    """The vendor whose destination this is, as ``deployment.trust`` names it; None where it has no name there."""
    vendor_policies: dict[str, VendorPolicy] = Field(default_factory=dict)
    """The documents of the vendors' set-up pages, by the names of vendors."""
    acceptance: Acceptance | None = None
    """Expectations that this one load need not meet."""
    scheduled_at: datetime | None = None
    """The time that this one load is for, where it was given."""
    warnings: tuple[str, ...] = ()

    @property
    def has_syncs(self) -> bool:
        """Return whether each load is a sync, which has a number and, of streams, a generation."""
        return self.envelope is not None or self.source is not None

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Return the prefixes of the tables and their bad rows. The pipeline's records lie under
        ``access.prefix`` in any case.
        """
        roots = self.roots or (self.access.prefix,)
        starts = tuple(f"{root}/" for root in roots if root)
        quarantines = (table.quarantine for table in self.tables if table.quarantine is not None)
        return (*roots, *(quarantine for quarantine in quarantines if starts and not quarantine.startswith(starts)))

    @property
    def base(self) -> str:
        """The folder above the tables, without slashes around it, blank for the bucket: the catalog's where the file
        gives it."""
        return self.roots[0] if len(self.roots) == 1 else self.access.prefix

    @property
    def vendor_policy(self) -> VendorPolicy | None:
        """The document of this destination's vendor; None where there is none."""
        return self.vendor_policies.get(self.vendor) if self.vendor else None

    @property
    def databases_below(self) -> str:
        """The prefix and an underscore: one that ends with an underscore gets no second one. Blank without a prefix."""
        return f"{self.database_prefix.rstrip('_')}_" if self.database_prefix else ""

    @property
    def iceberg(self) -> bool:
        """Return whether the tables are Iceberg tables, in any catalog."""
        return self.service is not None

    @property
    def in_glue(self) -> bool:
        """Return whether the tables are in the Glue Data Catalog."""
        return self.catalog.in_glue

    @property
    def service(self) -> GlueService | AnyRestService | None:
        """The Iceberg catalog that the tables are in, if they are Iceberg tables."""
        return self.catalog.service

    @property
    def rest_service(self) -> AnyRestService | None:
        """The Iceberg REST catalog that the tables are in, if they are in one."""
        return self.service.rest if self.service is not None else None

    @property
    def table_bucket(self) -> str | None:
        """The ARN of the table bucket of Amazon S3 Tables that the tables lie in, if they do."""
        return self.service.table_bucket if self.service is not None else None

    @property
    def servers(self) -> tuple[str, ...]:
        """The URLs of servers that the file names and that are sent a secret as it is."""
        catalog, lineage = self.rest_service, self.lineage
        endpoint = self.access.endpoint if not self.access.role_arn and self.access.access_key_id else None
        events = lineage.to if lineage is not None and lineage.api_key is not None else None
        sources = (read.values for table in self.tables for read in table.read.leaves)
        registries = dict.fromkeys(values.registry for values in sources if values is not None and values.secrets)
        own_catalog = catalog.secret_server if catalog is not None else None
        return tuple(filter(None, (endpoint, own_catalog, events, *registries)))

    @property
    def reserved_columns(self) -> tuple[str, ...]:
        """Names that a source column cannot have."""
        names = [column.name for column in self.tracking]
        if self.catalog.partition_key:
            names.append(self.catalog.partition_key)
        names += [key for key in self.folder_keys if key not in names]
        return (*names, *(self.envelope.names if self.envelope else ()))

    @property
    def named_tables(self) -> tuple[TableSpec, ...]:
        """The tables of the file, without their histories."""
        return tuple(table for table in self.tables if table.history_of is None)

    def add_groups(self, ids: Collection[str]) -> frozenset[str]:
        """Return the ids of tables, and of those that are loaded together with them."""
        groups = {table.group for table in self.tables if table.id in ids and table.group is not None}
        return frozenset(ids) | {table.id for table in self.tables if table.group in groups}

    def keep_tables(self, ids: Collection[str]) -> "Spec":
        """Return the pipeline with these tables, and those that are loaded together with them, alone."""
        together = self.add_groups(ids)
        return self.model_copy(update={"tables": tuple(table for table in self.tables if table.id in together)})

    def table_location(self, table: TableSpec) -> str:
        """Return the table's ``s3://`` URI, without a slash at its end."""
        return f"s3://{join_key(self.access.bucket, table.path)}"
