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


TAGS = {"domain": "flights", "stage": "prod"}


def test_databases_have_the_tags_of_the_file(synthesise: Synthesise) -> None:
    """Keys that several databases share are there already: another stack's deletion would take them from all."""
    found = synthesise(lake({"lake_formation": {"tags": TAGS}, "account": "123456789012"})).template
    assert of_type(found, "LakeFormation::Tag") == {}
    [(name, association)] = of_type(found, "LakeFormation::TagAssociation").items()
    assert association == {
        "Resource": {"Database": {"CatalogId": "123456789012", "Name": "supaflow_nyc_public"}},
        "LFTags": [{"CatalogId": "123456789012", "TagKey": key, "TagValues": [value]} for key, value in TAGS.items()],
    }
    assert found["Resources"][name]["DependsOn"] == ["DatabaseSupaflowNycPublic"]


def test_keys_that_the_stack_makes_are_there_before_they_are_used(synthesise: Synthesise) -> None:
    """In a protected stage they stay, since everybody would lose what is granted by them."""
    governed = {"tags": TAGS, "create_tags": True}
    party = {"principal": "arn:aws:iam::123456789012:role/Lab", "name": "lab", "external_id": "lab-1", "access": "read"}
    given = {"lake_formation": governed, "trust": [party | {"lf_tags": {"domain": "flights"}}]}
    found = synthesise(lake(given)).template
    tags = of_type(found, "LakeFormation::Tag")
    assert [(each["TagKey"], each["TagValues"]) for each in tags.values()] == [(key, [TAGS[key]]) for key in TAGS]
    assert {found["Resources"][name]["DeletionPolicy"] for name in tags} == {"RetainExceptOnCreate"}
    users = [*of_type(found, "LakeFormation::TagAssociation")]
    users += [name for name, each in of_type(found, "LakeFormation::PrincipalPermissions").items()
              if "LFTagPolicy" in each["Resource"]]  # fmt: skip
    assert len(users) == 3
    assert all({*tags} <= {*found["Resources"][name]["DependsOn"]} for name in users)


def test_a_party_is_granted_by_tags_in_place_of_names(synthesise: Synthesise) -> None:
    """The job's own rights go by the names of its databases, whatever becomes of a tag."""
    vendor = {"vendor": "supaflow", "external_id": "acme-2026", "lf_tags": TAGS}
    lab = {"principal": "arn:aws:iam::123456789012:role/Lab", "name": "lab", "external_id": "lab-1", "access": "read"}
    user = {"access": "read", "lf_tags": {"domain": "shop"}}
    given = {"lake_formation": True, "trust": [vendor, lab], "iam_user": user, "account": "123456789012"}
    grants = of_type(synthesise(lake(given)).template, "LakeFormation::PrincipalPermissions").values()
    found: dict[str, list[Any]] = {}
    for grant in grants:
        who = grant["Principal"]["DataLakePrincipalIdentifier"]["Fn::GetAtt"][0]
        found.setdefault(who, []).append((grant["Resource"], grant["Permissions"]))

    def by_tags(kind: str, **tags: str) -> dict[str, Any]:
        expression = [{"TagKey": key, "TagValues": [value]} for key, value in tags.items()]
        return {"LFTagPolicy": {"CatalogId": "123456789012", "ResourceType": kind, "Expression": expression}}

    assert found["SupaflowConsumerRole"] == [
        (by_tags("DATABASE", **TAGS), ["DESCRIBE", "CREATE_TABLE"]),
        (by_tags("TABLE", **TAGS), ["DESCRIBE"]),
    ]
    assert found["VendorUser"] == [
        (by_tags("DATABASE", domain="shop"), ["DESCRIBE"]),
        (by_tags("TABLE", domain="shop"), ["DESCRIBE", "SELECT"]),
    ]
    assert [[*resource] for who in ("JobRole", "LabConsumerRole") for resource, _ in found[who]] == [
        ["Database"], ["Table"], ["Database"], ["Table"],
    ]  # fmt: skip


def test_lake_formation_is_left_alone_by_default(plain: dict[str, Any]) -> None:
    assert of_type(plain, "LakeFormation::PrincipalPermissions") == {}


def test_lake_formation_is_left_alone_without_glue(synthesise: Synthesise) -> None:
    party = {"vendor": "supaflow", "external_id": "acme-2026", "lf_tags": TAGS}
    given = {"lake_formation": {"tags": TAGS, "create_tags": True}, "trust": [party]}
    template = synthesise(lake(given, update_aws_glue_catalog=False)).template
    assert [each["Type"] for each in template["Resources"].values() if "LakeFormation" in each["Type"]] == []
