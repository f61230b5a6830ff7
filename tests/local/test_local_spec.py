"""A pipeline on the server of this machine: what of its file stays, and what does not."""

import pytest

from lakewriter.dialects.lake_yaml import load
from lakewriter.errors import SpecInvalidError
from lakewriter.local_server.local_spec import localize
from lakewriter.local_server.server import LocalServer, Running
from lakewriter.spec.catalogs import NoCatalog

RUNNING = Running(pid=1, port=8333, key_id="local", secret="local")

TABLES = """
tables:
  - {table: orders, read: {format: csv, path: orders.csv, options: {header: true}}, primary_key: [id]}
"""


class Started(LocalServer):
    """A server that runs already."""

    def start(self):
        return RUNNING


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


def test_iceberg_has_no_stand_in(tmp_path):
    destination = (
        "{type: lakewriter-s3, location: s3://acme-lake/prod, region: eu-west-1, catalog: iceberg, database: shop}"
    )
    with pytest.raises(SpecInvalidError) as raised:
        localized(tmp_path, destination)
    assert str(raised.value) == (
        "SPEC_INVALID: --local has no Iceberg catalog, and this pipeline's tables are Iceberg's. "
        "Try it with Parquet files in no catalog, or in a stage that has an account."
    )
