"""Each correction of the embedded Glue Data Catalog, shown with the SDK."""

from typing import Any

import pytest

from tests.support.sdk import refused, sdk
from tests.support.server import StrictAws


def table(name: str = "flights", columns: tuple[str, ...] = ("a",)) -> dict[str, Any]:
    described = {"Columns": [{"Name": column, "Type": "string"} for column in columns]}
    return {"Name": name, "StorageDescriptor": described, "PartitionKeys": [{"Name": "P", "Type": "string"}]}


@pytest.fixture
def glue(aws: StrictAws) -> Any:
    client = sdk("glue")
    client.create_database(DatabaseInput={"Name": "NYC"})
    client.create_table(DatabaseName="nyc", TableInput=table("Flights", ("Id", "NAME")))
    return client


def test_glue_folds_names(glue: Any) -> None:
    found = glue.get_table(DatabaseName="NYC", Name="FLIGHTS")["Table"]
    assert (found["DatabaseName"], found["Name"]) == ("nyc", "flights")
    assert [column["Name"] for column in found["StorageDescriptor"]["Columns"]] == ["id", "name"]
    assert found["PartitionKeys"][0]["Name"] == "p"


def test_glue_update_works_on_the_version_named(aws: StrictAws, glue: Any) -> None:
    version = glue.get_table(DatabaseName="nyc", Name="flights")["Table"]["VersionId"]
    update = {"DatabaseName": "nyc", "TableInput": table(), "VersionId": version}
    glue.update_table(**update)
    assert refused(lambda: glue.update_table(**update)) == (400, "ConcurrentModificationException")
    assert glue.get_table(DatabaseName="nyc", Name="flights")["Table"]["VersionId"] != version


def test_glue_partitions(glue: Any) -> None:
    made = {"DatabaseName": "nyc", "TableName": "flights"}
    many = [{"Values": [str(i)]} for i in range(101)]
    assert refused(lambda: glue.batch_create_partition(**made, PartitionInputList=many)) == (400, "ValidationException")
    assert "Errors" not in glue.batch_create_partition(**made, PartitionInputList=many[:100])
    (error,) = glue.batch_create_partition(**made, PartitionInputList=many[99:])["Errors"]
    assert (error["PartitionValues"], error["ErrorDetail"]["ErrorCode"]) == (["99"], "AlreadyExistsException")
    single = {"Values": ["0"]}
    assert refused(lambda: glue.create_partition(**made, PartitionInput=single)) == (400, "AlreadyExistsException")


GLUE_ACTIONS = [
    (lambda g: g.get_database(Name="nyc"), "glue:GetDatabase", "database/nyc"),
    (lambda g: g.create_database(DatabaseInput={"Name": "nyc"}), "glue:CreateDatabase", "database/nyc"),
    (lambda g: g.get_table(DatabaseName="nyc", Name="t"), "glue:GetTable", "table/nyc/t"),
    (lambda g: g.get_tables(DatabaseName="nyc"), "glue:GetTables", "table/nyc/*"),
    (lambda g: g.create_table(DatabaseName="nyc", TableInput=table("T")), "glue:CreateTable", "table/nyc/t"),
    (
        lambda g: g.batch_create_partition(DatabaseName="nyc", TableName="t", PartitionInputList=[]),
        "glue:BatchCreatePartition",
        "table/nyc/t",
    ),
]


@pytest.mark.parametrize(("call", "action", "path"), GLUE_ACTIONS)
def test_glue_requests_are_named_as_iam_does(aws: StrictAws, call: Any, action: str, path: str) -> None:
    aws.deny("glue:*")
    assert refused(lambda: call(sdk("glue"))) == (400, "AccessDeniedException")
    assert aws.calls == [(action, f"arn:aws:glue:us-east-1:123456789012:{path}", 400)]


def test_glue_denied_above_the_table(aws: StrictAws, glue: Any) -> None:
    aws.deny("glue:GetTable", "arn:aws:glue:*:database/nyc")
    assert refused(lambda: glue.get_table(DatabaseName="nyc", Name="flights")) == (400, "AccessDeniedException")
    assert refused(lambda: glue.get_table(DatabaseName="other", Name="t")) == (400, "EntityNotFoundException")
