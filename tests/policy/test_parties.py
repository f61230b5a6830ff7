"""What a party reaches by its contract, and contracts that are refused.

Expected: the folders are those that the destinations' documents give: ``prefix/schema/table/`` of Supaflow's, the
constant part of the path of Airbyte's, ``pathPrefix`` of Estuary's.
"""

from pathlib import Path
from typing import Any

import pytest

from lakewriter.dialects.lake_yaml import Lake, load
from lakewriter.errors import SpecInvalidError
from lakewriter.policy.parties import find_reach, require_separate
from lakewriter.policy.role_documents import Who
from lakewriter.policy.roles import list_roles
from tests.policy.airbyte import airbyte, table
from tests.policy.estuary import estuary
from tests.policy.lakes import ARNS, BUCKET, DATABASE, TABLE, lake, made
from tests.policy.test_decisions import CREATED, NEW, Row, decided
from tests.spec.test_deployment import SUPAFLOW

PREFIXED = ["database/supaflow", "database/supaflow_*", "table/supaflow/*", "table/supaflow_*/*"]
REACHES: list[tuple[dict[str, Any], list[str], list[str]]] = [
    # the contract; what its keys begin with; what it reaches of the catalog
    ({}, ["data/"], PREFIXED),
    ({"paths": ["crm"]}, ["data/crm/"], []),
    ({"paths": ["crm/", "b/c"]}, ["data/crm/", "data/b/c/"], []),
    ({"paths": ["/crm"]}, ["crm/"], []),
    (
        {"paths": ["/crm"], "databases": ["supaflow_*", "crm"]},
        ["crm/"],
        ["database/supaflow_*", "table/supaflow_*/*", "database/crm", "table/crm/*"],
    ),
    ({"tables": ["supaflow_crm.*"]}, ["data/supaflow_crm/"], ["database/supaflow_crm", "table/supaflow_crm/*"]),
    (
        {"tables": ["supaflow_crm.contact", "supaflow_crm.lead"]},
        ["data/supaflow_crm/contact/", "data/supaflow_crm/lead/"],
        ["database/supaflow_crm", "table/supaflow_crm/contact", "table/supaflow_crm/lead"],
    ),
    # beside the job's own, in its database
    ({"tables": ["supaflow_nyc.own"]}, ["data/supaflow_nyc/own/"], ["database/supaflow_nyc", "table/supaflow_nyc/own"]),
    # who reads may name the job's own
    (
        {"tables": ["supaflow_nyc.flights"], "access": "read"},
        ["data/supaflow_nyc/flights/"],
        ["database/supaflow_nyc", "table/supaflow_nyc/flights"],
    ),
    (
        {"paths": ["supaflow_nyc/flights"], "access": "read"},
        ["data/supaflow_nyc/flights/"],
        ["database/supaflow_nyc", "table/supaflow_nyc/flights"],
    ),
    ({"paths": ["elsewhere"], "access": "read"}, ["data/elsewhere/"], []),
]


def contract(folder: Path, **party: Any) -> Lake:
    return lake(folder, {"trust": [SUPAFLOW | party]})


@pytest.mark.parametrize(("party", "starts", "catalog"), REACHES)
def test_reach(tmp_path: Path, party: dict[str, Any], starts: list[str], catalog: list[str]) -> None:
    found = contract(tmp_path, **party)
    require_separate(found.spec, found.deployment)
    reach = find_reach(found.spec, found.deployment.trust[0])
    assert (list(reach.starts), list(reach.catalog)) == (starts, catalog)


def test_reach_of_other_destinations(tmp_path: Path) -> None:
    trust = {"vendor": "airbyte-cloud", "external_id": "id-1", "paths": ["own", "/raw"]}
    path = airbyte(tmp_path, top={"deployment": {"trust": [trust]}})
    assert find_reach(path.spec, path.deployment.trust[0]).starts == ("data/own/", "raw/")
    keyed = estuary(tmp_path, top={"deployment": {"iam_user": {"paths": ["/recentchanges"]}}})
    require_separate(keyed.spec, keyed.deployment)
    ((name, user),) = keyed.deployment.parties
    assert (name, find_reach(keyed.spec, user).starts) == ("iam_user", ("recentchanges/",))


def test_job_is_named_by_its_folders_where_its_tables_do_not_fit(tmp_path: Path) -> None:
    tables = [{"table": f"table_{n}", "read": {"format": "csv", "path": "s3://b/a"}} for n in range(300)]
    found = lake(tmp_path, {"trust": [SUPAFLOW]}, tables)
    reach = find_reach(found.spec, found.deployment.trust[0])
    assert reach.job_starts == ("data/supaflow_nyc/",)
    assert reach.job_catalog == ("database/supaflow_nyc", "table/supaflow_nyc/*")
    # but not where the party's own lies among them
    beside = lake(tmp_path, {"trust": [SUPAFLOW | {"paths": ["supaflow_nyc/own"]}]}, tables)
    assert len(find_reach(beside.spec, beside.deployment.trust[0]).job_starts) == 300


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"paths": ["supaflow_nyc"]},
        "deployment.trust.0.paths: table 'supaflow_nyc.flights' of this file lies there, at "
        "'data/supaflow_nyc/flights/', and no party writes among the job's own files. Give paths of the party's own, "
        "or access: read.",
    ),
    (
        {"tables": ["supaflow_nyc.flights"]},
        "deployment.trust.0.tables: table 'supaflow_nyc.flights' of this file lies there, at "
        "'data/supaflow_nyc/flights/', and no party writes among the job's own files. Give tables of the party's own, "
        "or access: read.",
    ),
    (
        {"paths": ["supaflow_nyc/flights/2027"]},
        "deployment.trust.0: the party could write nothing, since table 'supaflow_nyc.flights' of this file lies at "
        "'data/supaflow_nyc/flights/' and what is the job's is refused to it. Give 'paths', folders apart from this "
        "file's tables, or access: read.",
    ),
]


@pytest.mark.parametrize(("party", "problem"), REFUSED)
def test_refused(tmp_path: Path, party: dict[str, Any], problem: str) -> None:
    found = contract(tmp_path, **party)
    with pytest.raises(SpecInvalidError) as caught:
        list(list_roles(found.spec, found.deployment, ARNS))
    assert caught.value.problems[0] == problem


def test_refused_where_folders_do_not_follow_from_names(tmp_path: Path) -> None:
    trust = {"vendor": "airbyte-cloud", "external_id": "id-1", "tables": ["crm.leads"]}
    found = airbyte(tmp_path, top={"deployment": {"trust": [trust]}})
    with pytest.raises(SpecInvalidError, match=r"where 'crm\.leads' lies is not known") as caught:
        require_separate(found.spec, found.deployment)
    assert len(caught.value.problems) == 1


NOTHING_LEFT: list[tuple[str, dict[str, Any]]] = [
    # Estuary's bindings are this file's tables, and no folder holds them all
    ("estuary", {"iam_user": True}),
    # a path that begins with a variable may lead anywhere under the prefix
    ("airbyte", {"trust": [{"vendor": "airbyte-cloud", "external_id": "id-1"}]}),
]


@pytest.mark.parametrize(("kind", "deployment"), NOTHING_LEFT)
def test_key_that_could_write_nothing(tmp_path: Path, kind: str, deployment: dict[str, Any]) -> None:
    top = {"deployment": deployment}
    found = estuary(tmp_path, top=top) if kind == "estuary" else airbyte(tmp_path, s3_path_format="${YEAR}/", top=top)
    with pytest.raises(SpecInvalidError) as caught:
        require_separate(found.spec, found.deployment)
    assert "the party could write nothing" in caught.value.problems[0]


def test_loads_elsewhere_are_the_jobs_own(tmp_path: Path) -> None:
    found = lake(tmp_path, {"iam_user": {"access": "load"}, "trust": [SUPAFLOW | {"access": "load"}]})
    assert [(role.name, role.who) for role in list_roles(found.spec, found.deployment, ARNS)] == [
        ("job", Who.JOB),
        ("supaflow", Who.LOADER),
        ("user", Who.LOADER),
    ]


ROWS: list[Row] = [
    # its own, with what its document lists; listed as deep as it likes, since no control object lies there
    ("s3:ListBucket", BUCKET, {"s3:prefix": "data/supaflow_crm/"}, "S3/ListUnderPrefix"),
    ("s3:PutObject", f"{BUCKET}/data/supaflow_crm/contact/1.parquet", CREATED, "S3/WriteObjects"),
    ("s3:DeleteObject", f"{BUCKET}/data/supaflow_crm/contact/1.parquet", {}, "S3/WriteObjects"),
    ("glue:CreateTable", f"{TABLE}/supaflow_crm/contact", {}, "Glue/WriteTables"),
    ("glue:CreateDatabase", f"{DATABASE}/supaflow_crm", {}, "Glue/WriteTables"),
    # nothing else, though it begins alike
    ("s3:ListBucket", BUCKET, {"s3:prefix": "data/", "s3:delimiter": "/"}, "denied"),
    ("s3:ListBucket", BUCKET, {"s3:prefix": "data/supaflow_crm_2/"}, "denied"),
    ("s3:PutObject", f"{BUCKET}/data/supaflow_crm_2/contact/1.parquet", NEW, "denied"),
    ("s3:GetObject", f"{BUCKET}/data/supaflow_nyc/flights/1.parquet", {}, "denied by S3/KeepOutOfTables"),
    ("s3:PutObject", f"{BUCKET}/data/supaflow_crm/_lakewriter/x", NEW, "denied by S3/KeepOutOfControlObjects"),
    ("glue:CreateTable", f"{TABLE}/supaflow_other/contact", {}, "denied"),
    ("glue:UpdateTable", f"{TABLE}/supaflow_nyc/flights", {}, "denied by Glue/KeepOutOfJobTables"),
]


def test_contract_over_tables_is_all_that_is_allowed(tmp_path: Path) -> None:
    own = made(tmp_path, Who.VENDOR, {"trust": [SUPAFLOW | {"tables": ["supaflow_crm.*"]}]})
    assert decided(ROWS, own) == [row[-1] for row in ROWS]


ICEBERG: dict[str, Any] = {"table_format": "ICEBERG", "update_aws_glue_catalog": None}
OF_ICEBERG: list[Row] = [
    (action, f"{BUCKET}/data/supaflow_nyc/flights/{part}", {}, "denied by S3/KeepOutOfTables")
    for action in ("s3:GetObject", "s3:DeleteObject", "s3:PutObject", "s3:AbortMultipartUpload")
    for part in ("data/00000-0.parquet", "metadata/00001-a.metadata.json", "metadata/snap-1.avro")
]


def test_iceberg_files_are_the_jobs(tmp_path: Path) -> None:
    own = made(tmp_path, Who.VENDOR, {"trust": [SUPAFLOW]}, **ICEBERG)
    assert decided(OF_ICEBERG, own) == [row[-1] for row in OF_ICEBERG]


def test_every_file_of_airbytes_form_is_refused_to_its_vendor(tmp_path: Path) -> None:
    """Whatever its path has after the constant part."""
    trust = [{"vendor": "airbyte-cloud", "external_id": "id-1"}]
    found = airbyte(tmp_path, top={"deployment": {"trust": trust}, "tables": [table(), table("visits", schema="")]})
    assert find_reach(found.spec, found.deployment.trust[0]).job_starts == ("data/crm/users/", "data/visits/")


def test_contract_is_of_a_stage(tmp_path: Path) -> None:
    path = tmp_path / "lake.yaml"
    contract(tmp_path, paths=["crm"])
    assert load(path).deployment.trust[0].paths == ("crm",)
