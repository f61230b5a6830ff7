"""Permissions in Glue; the entries of the vendor's troubleshooting page that a case is for are named."""

from typing import Any

import pytest

from lakewriter.commit.glue_table import FORMAT
from tests.doctor.pipeline import checked, spec, statuses
from tests.support.server import StrictAws

TABLE = "glue table nyc_public.flights"


LOCATION = "s3://acme-lake/data/production/nyc_public/flights"


def databases(aws: StrictAws, **storage: Any) -> None:
    """The database and table of the spec, made; ``storage`` differs from what a load makes."""
    glue = aws.client("glue")
    glue.create_database(DatabaseInput={"Name": "nyc_public"})
    keys = [{"Name": key, "Type": "string"} for key in storage.pop("keys", ())]
    described = {"StorageDescriptor": FORMAT | {"Columns": [], "Location": LOCATION} | storage}
    if storage.get("Location") == "":
        described = {}
    glue.create_table(DatabaseName="nyc_public", TableInput={"Name": "flights", "PartitionKeys": keys, **described})


@pytest.mark.parametrize(
    ("there", "words"), [(False, "does not exist yet; the first load creates it"), (True, "exists")]
)
def test_database_and_table(aws: StrictAws, bucket: str, there: bool, words: str) -> None:
    if there:
        databases(aws)
    findings = checked(spec(glue=True))
    for name in ("glue database nyc_public", TABLE):
        assert findings[name].status == "ok"
        assert words in findings[name].message
    assert findings["glue write nyc_public"].status == "ok"


UNLIKE = [
    # how the table differs from what a load expects, and what check says of it, as the load does
    ({"keys": ["day"]}, "has partition keys [('day', 'string')], expected []."),
    ({"Location": "s3://elsewhere/flights"}, f"lies at 's3://elsewhere/flights', expected '{LOCATION}'."),
    ({"SerdeInfo": {"SerializationLibrary": "org.openx.data.jsonserde.JsonSerDe"}}, "is read by SerDe 'org.openx"),
    ({"Location": ""}, "is a table without a StorageDescriptor, such as a view"),
]


@pytest.mark.parametrize(("storage", "words"), UNLIKE)
def test_table_that_a_load_would_refuse(aws: StrictAws, bucket: str, storage: dict[str, Any], words: str) -> None:
    databases(aws, **storage)
    finding = checked(spec(glue=True))[TABLE]
    assert (finding.status, finding.code) == ("failed", "SCHEMA_INCOMPATIBLE")
    assert f"Glue table nyc_public.flights {words}" in finding.message
    assert "load into another schema" in finding.remedy.lower()


# Access Denied on Glue operations: "AccessDeniedException" when creating Glue tables; tables not appearing
DENIED = [
    # denied action and resource, database is there, probes that fail
    ("glue:GetDatabase", "*", False, ["glue database nyc_public"]),
    ("glue:GetTable", "*", False, [TABLE]),
    ("glue:CreateTable", "*", False, ["glue write nyc_public"]),
    ("glue:UpdateTable", "*", True, ["glue write nyc_public"]),
    ("glue:GetPartition", "*", True, ["glue write nyc_public"]),
    ("glue:BatchCreatePartition", "*", True, ["glue write nyc_public"]),
    ("glue:*", "arn:aws:glue:us-east-1:*", False, ["glue database nyc_public", "glue write nyc_public", TABLE]),
    ("glue:*", "*:table/nyc_*", True, ["glue write nyc_public", TABLE]),
]


@pytest.mark.parametrize(("action", "resource", "there", "failed"), DENIED)
def test_denied_glue_action(
    aws: StrictAws, bucket: str, action: str, resource: str, there: bool, failed: list[str]
) -> None:
    if there:
        databases(aws)
    aws.deny(action, resource)
    findings = checked(spec(glue=True))
    assert statuses(findings, "failed") == failed
    for name in failed:
        assert findings[name].code == "GLUE_ACCESS_DENIED"
        assert action.rstrip("*") in findings[name].message
        assert findings[name].remedy.startswith("Check that the Glue policy is attached to the role, names this region")


def test_denied_writes_are_named_together(aws: StrictAws, bucket: str) -> None:
    aws.deny("glue:CreateTable")
    aws.deny("glue:BatchCreatePartition")
    message = checked(spec(glue=True))["glue write nyc_public"].message
    assert "glue:CreateTable on nyc_public." in message
    assert "glue:BatchCreatePartition on nyc_public." in message


def test_what_cannot_be_tried_is_said(aws: StrictAws, bucket: str) -> None:
    databases(aws)
    findings = checked(spec(glue=True))
    assert findings["glue write nyc_public"].message.endswith("glue:CreateTable cannot be tried without creating one.")
    assert len(aws.client("glue").get_tables(DatabaseName="nyc_public")["TableList"]) == 1


def test_no_catalog_no_question(aws: StrictAws, bucket: str) -> None:
    assert not [name for name in checked(spec()) if name.startswith("glue")]
