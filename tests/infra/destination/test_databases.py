"""Glue's databases, and grants on them in Lake Formation."""

from typing import Any

import pytest

from tests.infra.destination.conftest import Synthesise
from tests.infra.destination.lakes import TABLES, lake, of_type

pytestmark = pytest.mark.synth


def _database(name: str, location: str) -> dict[str, Any]:
    return {"CatalogId": {"Ref": "AWS::AccountId"}, "DatabaseInput": {"Name": name, "LocationUri": location}}


def test_one_database_for_each_schema(synthesise: Synthesise) -> None:
    others = [{**TABLES[0], "table": "planes"}, {**TABLES[0], "schema": "Archive 1"}, {**TABLES[0], "schema": ""}]
    template = synthesise({**lake(), "tables": [*TABLES, *others]}).template
    under = "s3://acme-lake/data/production"
    assert of_type(template, "Glue::Database") == {
        "DatabaseSupaflowNycPublic": _database("supaflow_nyc_public", f"{under}/supaflow_nyc_public"),
        # "1" is no capital: the hash keeps archive_1 apart from archive1.
        "DatabaseSupaflowNycArchive19f173357": _database("supaflow_nyc_archive_1", f"{under}/supaflow_nyc_archive_1"),
        "DatabaseSupaflowNyc": _database("supaflow_nyc", f"{under}/supaflow_nyc"),
    }


def test_no_database_without_glue(synthesise: Synthesise) -> None:
    template = synthesise(lake(update_aws_glue_catalog=False)).template
    assert of_type(template, "Glue::Database") == {}


def test_lake_formation_has_grants_for_each_that_uses_glue(full: dict[str, Any]) -> None:
    found: dict[str, list[list[str]]] = {}
    for grant in of_type(full, "LakeFormation::PrincipalPermissions").values():
        principal = grant["Principal"]["DataLakePrincipalIdentifier"]["Fn::GetAtt"][0]
        found.setdefault(principal, []).append(grant["Permissions"])
    loads = [["DESCRIBE", "CREATE_TABLE"], ["DESCRIBE", "SELECT", "INSERT", "DELETE", "ALTER"]]
    resets = [
        ["DESCRIBE", "CREATE_TABLE"],
        ["DESCRIBE"],
    ]
    reads = [["DESCRIBE"], ["DESCRIBE", "SELECT"]]
    assert found == {
        "JobRole": loads,
        "SupaflowConsumerRole": resets,
        "Second131b00396ConsumerRole": reads,
        "LaptopConsumerRole": loads,
        "SnowflakeComputeConsumerRole": reads,
        "VendorUser": resets,
    }


def test_grants_name_the_database_and_come_after_it(full: dict[str, Any]) -> None:
    grants = [
        resource
        for resource in full["Resources"].values()
        if resource["Type"] == "AWS::LakeFormation::PrincipalPermissions"
    ]
    name, account = "supaflow_nyc_public", "123456789012"
    assert [grant["Properties"]["Resource"] for grant in grants[:2]] == [
        {"Database": {"CatalogId": account, "Name": name}},
        {"Table": {"CatalogId": account, "DatabaseName": name, "TableWildcard": {}}},
    ]
    assert all("DatabaseSupaflowNycPublic" in grant["DependsOn"] for grant in grants)


def test_lake_formation_is_left_alone_by_default(plain: dict[str, Any]) -> None:
    assert of_type(plain, "LakeFormation::PrincipalPermissions") == {}
