"""Commits of Iceberg tables without Spark: small files put into the bucket, and what a load would know of them."""

import os
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.table import Table as PyIcebergTable

from lakewriter.aws import Clients
from lakewriter.commit.attempt import Attempt
from lakewriter.commit.iceberg.append import IcebergTables
from lakewriter.commit.iceberg.compact_groups import find_groups
from lakewriter.commit.iceberg.schema_evolution import IcebergTargetTable
from lakewriter.dialects.common.tables import parse_partition_field
from lakewriter.encode.parquet_footer import Tail, read_column_statistics
from lakewriter.naming import join_key
from lakewriter.receipt import Part, Receipt
from lakewriter.records.actions import IcebergAction
from lakewriter.records.changes import Intent
from lakewriter.records.facets import CompactIntent
from lakewriter.records.state import TableState
from lakewriter.shape.partitions import Transforms
from lakewriter.spec.access import Access
from lakewriter.spec.catalogs import AnyRestService, GlueService
from lakewriter.spec.encodings import ParquetEncoding
from lakewriter.spec.maintenance import Maintenance
from tests.commit import intents
from tests.encode.files import written
from tests.load.lakes import BUCKET
from tests.support.open_catalog import OpenCatalog
from tests.support.server import StrictAws

AT = datetime(2024, 1, 15, tzinfo=UTC)
ACCESS = Access(bucket=BUCKET, region="us-east-1", prefix="data/production")


class Table:
    """One table, loads of which are committed as the product commits them."""

    def __init__(self, aws: StrictAws, open_catalog: OpenCatalog | None = None, name: str = "t", **access: str) -> None:
        self.aws, self.clients = aws, Clients(ACCESS.model_copy(update=access))
        self.maintenance: Maintenance | None = None
        self.renames: dict[str, str] = {}
        """The columns that loads rename: the names before, and those after."""
        service = rest_service(open_catalog) if open_catalog else GlueService()
        location = "" if service.chooses_location else f"s3://{BUCKET}/data/production/db/{name}"
        self.options = rest_options(open_catalog) if open_catalog else {"type": "glue"}
        self.action = IcebergAction(service=service, namespace="db", table=name, location=location)

    @property
    def seen(self) -> PyIcebergTable:
        """The table as PyIceberg finds it by itself."""
        return load_catalog("own", **self.options, **stores(self.aws)).load_table(("db", self.action.table))

    def ready(self, job: str, schema: pa.Schema, committed: int = 0) -> tuple[IcebergAction, pa.Schema]:
        """The table made ready for a load of this schema."""
        return self._before(job).prepare(schema, TableState(committed=committed))

    def plan(self, schema: pa.Schema) -> list[str]:
        """What a load of this schema would change."""
        return self._before("plan").describe_changes(schema)

    def _before(self, job: str) -> IcebergTargetTable:
        return IcebergTargetTable(self.action, self.clients, f"p/{job}/{job}1", self.maintenance).rename(self.renames)

    def intent(self, job: str, rows: pa.Table, committed: int = 0) -> Any:
        """A load of one file, made ready, encoded, and its object there."""
        action, schema = self.ready(job, rows.schema, committed)
        return intent(job, action, self.write(action, f"part-{job}-00000.parquet", rows.cast(schema)))

    def partitioned(self, job: str, rows: pa.Table, *fields: str, committed: int = 0) -> Any:
        """A load with a file for each run of rows in one partition; ``fields`` as partition_by has them."""
        partition = tuple(map(parse_partition_field, fields))
        action, schema = self._before(job).prepare(rows.schema, TableState(committed=committed), partition)
        transforms = Transforms.of(partition, schema)
        receipts = []
        for number, (values, run) in enumerate(
            transforms.split_by_partition(rows.cast(schema).combine_chunks().to_batches()[0])
        ):
            file = f"{transforms.name_directory(values)}/part-{job}-{number:05}.parquet"
            found = self.write(action, file, pa.table(run))
            receipts.append(found.model_copy(update={"seq": number, "partition_values": values}))
        return intent(job, action, *receipts)

    def compacted(self, job: str, committed: int) -> Any:
        """A compaction of all that is worth it, its files there."""
        found = find_groups(self.action, self.clients, "p", lambda: TableState(committed=committed), 2**20, 2**30)
        assert found is not None
        groups, receipts = found.choice.groups, []
        for number, group in enumerate(groups):
            rows = pa.Table.from_batches(found.read_rows(group), found.schema)
            if len(rows):
                made = self.write(found.action, f"{group.directory}/part-{job}-{number:05}.parquet", rows)
                own = {"partition": number, "seq": number, "partition_values": group.values}
                receipts.append(made.model_copy(update=own))
        named = tuple(group.make_intent() for group in groups)
        compact = CompactIntent(snapshot=found.snapshot, sequence=found.sequence, groups=named)
        return intents.recast(intent(job, found.action, *receipts), "compact", compact=compact)

    def write(self, action: IcebergAction, file: str, rows: pa.Table) -> Receipt:
        """A file among the table's data."""
        body = written(ParquetEncoding(), rows.schema, rows.to_batches(), rows.num_rows)
        bucket, _, root = action.location.removeprefix("s3://").partition("/")
        key = join_key(root, "data", file)
        self.aws.client("s3").put_object(Bucket=bucket, Key=key, Body=body)
        return receipt(key, body, rows.num_rows, bucket)

    def publish(self, found: Intent, number: int) -> None:
        """Published and read back."""
        assert isinstance(found.catalog, IcebergAction)
        tables = IcebergTables(found.catalog, self.clients, found.load)
        tables.publish(found, number)
        tables.read_back(found)


def rest_service(catalog: OpenCatalog, **other: str) -> AnyRestService:
    """The catalog as a lake.yaml names it; the secret is in the environment."""
    name, secret = catalog.secret
    os.environ[name] = secret
    return catalog.make_service(**other)


def rest_options(catalog: OpenCatalog) -> dict[str, Any]:
    """The catalog as PyIceberg wants it."""
    return catalog.make_options()


def stores(aws: StrictAws) -> dict[str, str]:
    """Where PyIceberg's own FileIO finds the embedded S3."""
    return {"s3.endpoint": aws.url, "s3.region": "us-east-1", "client.region": "us-east-1"}


def receipt(key: str, body: bytes, rows: int, bucket: str = BUCKET) -> Receipt:
    tail = Tail()
    tail.write(body)
    footer = tail.metadata()
    assert footer is not None
    return Receipt(
        bucket=bucket,
        key=key,
        upload_id="u",
        parts=(Part(1, "etag"),),
        checksum_algorithm=None,
        size=len(body),
        rows=rows,
        partition=0,
        seq=0,
        first_index=1,
        engine="none",
        row_groups=1,
        requests={},
        columns=read_column_statistics(footer),
    )


def intent(job: str, action: IcebergAction, *receipts: Receipt) -> Any:
    own = Attempt("p", job, f"{job}1", datetime.now(UTC), timedelta(days=30))
    return intents.intent(own, receipts, access=ACCESS, catalog=action, table_id="db.t", schema_name="db", table="t")


def strays(aws: StrictAws, table: PyIcebergTable) -> set[str]:
    """Objects under the table's location that none of its snapshots, and no version of its metadata, knows."""
    known = {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}
    for snapshot in table.snapshots():
        known.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(table.io):
            known.add(manifest.manifest_path)
            known.update(entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io))
    prefix = f"{table.location().rstrip('/')}/"
    bucket = prefix.removeprefix("s3://").partition("/")[0]
    return {uri for key in aws.objects(bucket) if (uri := f"s3://{bucket}/{key}").startswith(prefix)} - known
