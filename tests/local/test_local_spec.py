"""A pipeline on the server of this machine: what of its file stays, and what does not."""

import pytest

from lakewriter.dialects.lake_yaml import load
from lakewriter.local_server.catalog_server import RunningCatalog
from lakewriter.local_server.local_spec import localize
from lakewriter.local_server.server import LocalServer, Running
from lakewriter.spec.access import SecretText
from lakewriter.spec.catalogs import NoCatalog, PolarisService
from lakewriter.spec.maintenance import Maintenance

RUNNING = Running(pid=1, port=8333, master_port=9333, key_id="local", secret="local")

TABLES = """
tables:
  - {table: orders, read: {format: csv, path: orders.csv, options: {header: true}}, primary_key: [id]}
"""


class Started(LocalServer):
    """A server that runs already."""

    def start(self):
        return RUNNING

    def start_catalog(self):
        return RunningCatalog(pid=2, port=8181, id="a")


def localized(tmp_path, destination):
    lake = tmp_path / "lake.yaml"
    lake.write_text(f"pipeline: shop\ndestination: {destination}\n{TABLES}", "utf-8")
    return localize(load(lake).spec, Started(tmp_path))


DESTINATIONS = [
    # destination, bucket, prefix, warning
    ("{type: lakewriter-s3, location: s3://acme-lake/prod, region: eu-west-1}", "acme-lake", "prod", False),
    (
        "{type: lakewriter-s3, location: s3://acme-lake/prod, region: eu-west-1, catalog: glue, database: shop}",
        "acme-lake",
        "prod",
        True,
    ),
    # A role is not assumed, and an external id that this machine lacks is not asked for.
    (
        "{type: supaflow-s3-data-lake, s3_bucket_name: acme-lake, bucket_region: us-east-1, update_aws_glue_catalog: "
        "true, iam_role_arn: 'arn:aws:iam::123456789012:role/LakeWriter', external_id: '${env:NO_SUCH_VARIABLE}'}",
        "acme-lake",
        "",
        True,
    ),
    (
        "{type: heropixel-s3, s3_bucket_name: my-bucket, s3_bucket_path: out, s3_bucket_region: us-east-1, format: "
        "{format_type: CSV, flattening: No flattening}, access_key_id: '${env:NONE}', secret_access_key: "
        "'${env:NONE}'}",
        "my-bucket",
        "out",
        False,
    ),
]


@pytest.mark.parametrize(("destination", "bucket", "prefix", "warns"), DESTINATIONS)
def test_the_place_stays_and_the_account_does_not(tmp_path, destination, bucket, prefix, warns):
    spec = localized(tmp_path, destination)
    access = spec.access
    assert (access.bucket, access.prefix, access.endpoint) == (bucket, prefix, "http://127.0.0.1:8333")
    assert (access.role_arn, access.external_id, spec.catalog) == (None, None, NoCatalog())
    told = "--local has no Glue: the files are the same, and no table or partition is registered"
    assert (told in spec.warnings) == warns


ICEBERG = [
    # destination, and the catalog that it names
    (
        "{type: lakewriter-s3, location: s3://acme-lake/prod, region: eu-west-1, catalog: iceberg, database: shop}",
        "the Glue Data Catalog",
    ),
    (
        "{type: lakewriter-s3, location: s3://acme-lake/prod, region: eu-west-1, catalog: open_catalog, "
        "catalog_endpoint: 'https://a.example.com/api/catalog', catalog_name: lake, client_id: me, "
        "client_secret: '${env:NO_SUCH_VARIABLE}', catalog_base_location: s3://acme-lake/other, database: shop}",
        "catalog 'lake' at https://a.example.com/api/catalog",
    ),
]


@pytest.mark.parametrize(("destination", "named"), ICEBERG, ids=["glue", "open catalog"])
def test_iceberg_tables_are_in_a_catalog_beside_the_file(tmp_path, destination, named):
    spec = localized(tmp_path, destination)
    assert spec.service == PolarisService(
        uri="http://127.0.0.1:8181",
        warehouse="acme-lake/prod",
        client_id="${env:LAKEWRITER_LOCAL_KEY_ID}",
        client_secret=SecretText("${env:LAKEWRITER_LOCAL_SECRET}"),
        scope="PRINCIPAL_ROLE:ALL",
    )
    assert (spec.roots, spec.base) == ((), "prod")
    told = f"--local: the tables are in an Iceberg catalog of this machine, and nothing is asked of {named}"
    assert told in spec.warnings


def test_glues_optimizers_are_left_out(tmp_path):
    destination = (
        "{type: lakewriter-s3, location: s3://acme-lake/prod, region: eu-west-1, catalog: iceberg, database: shop}\n"
        "maintenance: {expire_snapshots_days: 5, compact: true, optimizer_role: optimizers}"
    )
    spec = localized(tmp_path, destination)
    assert spec.maintenance == Maintenance(expire_snapshots_days=5)
    assert "--local has none of Glue's optimizers: the tables' properties say what to expire" in spec.warnings


def test_a_run_compacts_here_too(tmp_path):
    destination = (
        "{type: lakewriter-s3, location: s3://acme-lake/prod, region: eu-west-1, catalog: iceberg, database: shop}\n"
        "checkpoint: checkpoint\nmaintenance: {by: run, every: 2 minutes, expire_snapshots_days: 5}"
    )
    expected = Maintenance(by="run", every_seconds=120, compact=True, expire_snapshots_days=5)
    assert localized(tmp_path, destination).maintenance == expected
