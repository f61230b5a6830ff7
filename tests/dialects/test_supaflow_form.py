"""The two connectors' forms: their fields in the order of their set-up pages, and fields that stay blank."""

from pathlib import Path
from typing import Any

import pytest

from lakewriter.dialects.common.form import Provided
from lakewriter.dialects.lake_yaml import load, load_spec
from lakewriter.spec.catalogs import GlueService, IcebergCatalog, NoCatalog
from tests.dialects.files import lake

FILLED = {"s3_path_prefix": "data", "custom_s3_endpoint": "https://s3.example.com"}
CONNECTION = [
    ("S3 Bucket Name", "my-bucket"),
    ("Bucket Region", "us-east-1"),
    ("S3 Path Prefix", "data"),
    ("IAM Role ARN", Provided.ROLE_ARN),
    ("External ID", Provided.EXTERNAL_ID),
]
ICEBERG = {"table_format": "ICEBERG", "destination_prefix": "a"}
OPEN_CATALOG = {
    "iceberg_catalog": "SNOWFLAKE_OPEN_CATALOG",
    "catalog_endpoint": "https://org-account.snowflakecomputing.com/polaris/api/catalog",
    "catalog_name": "lake",
    "client_id": "abc",
    "client_secret": "${env:S}",
}
FORMS: list[tuple[dict[str, Any], list[tuple[str, str | Provided]]]] = [
    # "Configuration" of the older connector's page: Connection, Authentication, AWS Glue, Advanced Settings
    (
        {"type": "supaflow-s3"},
        [
            *CONNECTION,
            ("Sync Schema with AWS Glue Catalog", "false"),
            ("Glue Database Prefix", "supaflow"),
            ("Partition Strategy", "HOUR"),
            ("File Name Pattern", "part-{supa_job_id}-{seq}"),
            ("Upload Parallelism", "5"),
            ("Custom S3 Endpoint", "https://s3.example.com"),
        ],
    ),
    # "Configuration" of the S3 Data Lake page, which has no Upload Parallelism: Connection, Storage Options, then the
    # settings of the table format, Common Settings
    (
        {"type": "supaflow-s3-data-lake", "update_aws_glue_catalog": True, "upload_parallelism": 7},
        [
            *CONNECTION,
            ("Custom S3 Endpoint", "https://s3.example.com"),
            ("Table Format", "PARQUET"),
            ("Update AWS Glue Catalog", "true"),
            ("Partition Strategy", "HOUR"),
            ("File Name Pattern", "part-{supa_job_id}-{seq}"),
            ("Glue Database Prefix", "supaflow"),
        ],
    ),
    (
        ICEBERG,
        [
            *CONNECTION,
            ("Custom S3 Endpoint", "https://s3.example.com"),
            ("Table Format", "ICEBERG"),
            ("Iceberg Catalog", "GLUE"),
            ("Glue Database Prefix", "supaflow"),
        ],
    ),
    (
        ICEBERG | OPEN_CATALOG,
        [
            *CONNECTION,
            ("Custom S3 Endpoint", "https://s3.example.com"),
            ("Table Format", "ICEBERG"),
            ("Iceberg Catalog", "SNOWFLAKE_OPEN_CATALOG"),
            ("Catalog Endpoint", "https://org-account.snowflakecomputing.com/polaris/api/catalog"),
            ("Catalog Name", "lake"),
            ("Client ID", "abc"),
            ("Client Secret", "${env:S}"),
            ("Principal Role", "ALL"),
            ("Glue Database Prefix", "supaflow"),
        ],
    ),
]


@pytest.mark.parametrize(("settings", "expected"), FORMS)
def test_form_is_in_the_vendors_order(
    tmp_path: Path, settings: dict[str, Any], expected: list[tuple[str, str | Provided]]
) -> None:
    form = load(lake(tmp_path, **FILLED | settings)).form
    assert [(field.label, field.value) for field in form] == expected


def test_blank_fields_are_not_in_the_form(tmp_path: Path) -> None:
    """But for the prefix, which a party with a folder of its own fills in."""
    form = load(lake(tmp_path, type="supaflow-s3", glue_database_prefix="")).form
    assert not {"Custom S3 Endpoint", "Glue Database Prefix"} & {field.label for field in form}
    assert [(field.label, field.value) for field in form if field.is_prefix] == [("S3 Path Prefix", "")]


# What the form shows only with Snowflake Open Catalog, as somebody writes it down who fills in none of it.
BLANK = dict.fromkeys(("catalog_endpoint", "catalog_name", "client_id", "client_secret", "principal_role"), "")


@pytest.mark.parametrize(
    ("settings", "catalog"),
    [
        ({"table_format": "ICEBERG"}, IcebergCatalog(service=GlueService())),
        ({"table_format": "ICEBERG", "iceberg_catalog": "GLUE"}, IcebergCatalog(service=GlueService())),
        ({"table_format": "PARQUET"}, NoCatalog(by_hand=True)),
    ],
)
def test_blank_open_catalog_fields_are_absent(tmp_path: Path, settings: dict[str, Any], catalog: Any) -> None:
    assert load_spec(lake(tmp_path, **settings | BLANK)).catalog == catalog
