"""The stack of a destination without a vendor: bucket, databases, and outputs that say where the lake is."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.review.load import describe_names
from infra.review.page import Code
from infra.settings import Settings
from lakewriter.deployable.stage_overlaps import check_stages
from lakewriter.dialects.lake_yaml import load
from tests.dialects.test_lakewriter_s3 import GLUE_REST, TABLE, lake
from tests.dialects.test_lakewriter_s3 import REST as REST_CATALOG
from tests.infra.destination.conftest import Synthesise

pytestmark = pytest.mark.synth

PARTY = {"principal": "arn:aws:iam::210987654321:role/Analysts", "name": "analysts", "external_id": "acme-1"}


def content(folder: Path, **settings: Any) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(lake(folder, **settings).read_text("utf-8"))
    return found


def test_outputs_and_database(tmp_path: Path, synthesise: Synthesise) -> None:
    top = {"deployment": {"trust": [PARTY | {"access": "read"}]}}
    template = synthesise(content(tmp_path, catalog="glue", database="Sales", top=top)).template
    outputs = {output["Description"]: output["Value"] for output in template["Outputs"].values()}
    assert list(outputs) == [
        "Location", "Region", "IAM Role ARN (analysts)", "External ID (analysts)", "Job Role ARN",
    ]  # fmt: skip
    assert (outputs["Location"], outputs["Region"]) == ("s3://acme-lake/production", "us-east-1")
    (database,) = [each for each in template["Resources"].values() if each["Type"] == "AWS::Glue::Database"]
    assert database["Properties"]["DatabaseInput"] == {
        "LocationUri": "s3://acme-lake/production/sales_public",
        "Name": "sales_public",
    }
    (bucket,) = [
        each["Properties"]["BucketName"] for each in template["Resources"].values()
        if each["Type"] == "AWS::S3::Bucket" and each["Properties"].get("BucketName")
    ]  # fmt: skip
    assert bucket == "acme-lake"


SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:catalog-AbCdEf"
REST: list[tuple[dict[str, Any], list[str], list[str]]] = [
    # the catalog, the databases of the stack, and what its policies have beside those of the bucket
    (GLUE_REST, ["shop_public"], ["glue:GetCatalog", "glue:UpdateTable", ":table/shop_public/orders"]),
    (REST_CATALOG | {"auth": "token", "token": f"${{secret:{SECRET}}}"}, [], ["secretsmanager:GetSecretValue", SECRET]),
]


@pytest.mark.parametrize(("catalog", "databases", "parts"), REST)
def test_a_rest_catalog(
    tmp_path: Path, synthesise: Synthesise, catalog: dict[str, Any], databases: list[str], parts: list[str]
) -> None:
    template = synthesise(content(tmp_path, database="shop", **catalog)).template
    resources = template["Resources"].values()
    made = [each["Properties"]["DatabaseInput"]["Name"] for each in resources if each["Type"] == "AWS::Glue::Database"]
    assert made == databases
    text = json.dumps(template)
    assert [part for part in parts if part not in text] == []
    assert ("glue:" in text) is bool(databases)
    assert "snowflake" not in text.lower()


def test_review_shows_a_key(tmp_path: Path) -> None:
    table = TABLE | {"read": {"format": "csv", "path": "s3://acme-landing/orders"}}
    rows = describe_names(load(lake(tmp_path, table, format="jsonl")).spec).tables[0].rows
    key = "production/public/orders/load_date=2027-01-04/part-5f0e4c1a-8f0b-5d57-9a53-3f1c2d4b6e70-00001.jsonl.gz"
    assert rows == ((("public.Orders", Code("s3://acme-landing/orders")), Code("public.orders"), Code(key)),)


def test_stages_are_told_in_own_keys(tmp_path: Path) -> None:
    deployment: dict[str, Any] = {"stages": {"dev": {}, "prod": {}}}
    path = lake(tmp_path, catalog="glue", database="sales", top={"deployment": deployment})
    lakes = {stage: load(path, stage=stage) for stage in ("dev", "prod")}
    settings = Settings(lakes["dev"], "dev", tmp_path, siblings={"prod": lakes["prod"]})
    assert list(check_stages(settings)) == [
        "deployment.stages: stages 'dev' and 'prod' write to s3://acme-lake/production and s3://acme-lake/production; "
        "expected prefixes of which none holds the other. Give deployment.stages.prod another location, or another "
        "bucket.",
        "deployment.stages: stages 'dev' and 'prod' both write the Glue database 'sales_public'; expected databases of "
        "their own. Give deployment.stages.prod another database.",
    ]
