"""What Iceberg changes: no partitions to write in Glue, the catalog itself to look at, files that engines replace."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from lakewriter.dialects.lake_yaml import load
from lakewriter.errors import SpecInvalidError
from lakewriter.policy.bucket import deny_replacement
from lakewriter.policy.role_documents import Who, make_documents
from lakewriter.policy.roles import list_roles
from tests.policy.lakes import ARNS, CATALOG, OWN_TABLES, PREFIXED_TABLES, VENDOR_TABLES, lake, made, statement
from tests.policy.test_documents import KEEP_TABLES

GLUE: dict[str, Any] = {"table_format": "ICEBERG", "update_aws_glue_catalog": None}
OPEN_CATALOG = GLUE | {
    "iceberg_catalog": "SNOWFLAKE_OPEN_CATALOG",
    "catalog_endpoint": "https://acme-lake.snowflakecomputing.com/polaris/api/catalog",
    "catalog_name": "lake",
    "client_id": "${ssm:/lake/client-id}",
    "client_secret": "${secret:arn:aws:secretsmanager:us-east-1:123456789012:secret:open-catalog-AbCdEf}",
}
JOB_TABLES = ["glue:GetDatabase", "glue:CreateDatabase", "glue:GetTable", "glue:CreateTable", "glue:UpdateTable"]
DOCUMENTS: list[tuple[Who, list[dict[str, Any]]]] = [
    (
        Who.JOB,
        [statement("ReadCatalog", ["glue:GetCatalog"], [CATALOG]), statement("WriteTables", JOB_TABLES, OWN_TABLES)],
    ),
    (
        # the vendor's page: "GetCatalog" and "GetCatalogs"; partitions are those of its other tables
        Who.VENDOR,
        [
            statement("ReadCatalog", ["glue:GetCatalog", "glue:GetCatalogs", "glue:GetCatalogImportStatus"], [CATALOG]),
            statement("WriteTables", VENDOR_TABLES, PREFIXED_TABLES),
            *KEEP_TABLES,
        ],
    ),
]


@pytest.mark.parametrize(("who", "expected"), DOCUMENTS)
def test_glue(tmp_path: Path, who: Who, expected: list[dict[str, Any]]) -> None:
    assert made(tmp_path, who, **GLUE)["Glue"]["Statement"] == expected


def test_open_catalog(tmp_path: Path) -> None:
    found = lake(tmp_path, **OPEN_CATALOG)
    documents = made(tmp_path, Who.JOB, **OPEN_CATALOG)
    assert list(documents) == ["S3", "Secrets", "Sources"]
    assert [(each["Action"], each["Resource"]) for each in documents["Secrets"]["Statement"]] == [
        (
            ["secretsmanager:GetSecretValue"],
            ["arn:aws:secretsmanager:us-east-1:123456789012:secret:open-catalog-AbCdEf"],
        ),
        (["ssm:GetParameter"], ["arn:aws:ssm:us-east-1:123456789012:parameter/lake/client-id"]),
    ]
    assert [role.name for role in list_roles(found.spec, found.deployment, ARNS)] == [
        "job",
        "snowflake-catalog",
        "snowflake-compute",
    ]


OWN = {"type": "lakewriter-s3", "location": "s3://acme-lake/data", "region": "us-east-1", "database": "shop"}
SIGNED = {"catalog": "rest", "auth": "sigv4", "uri": "https://glue.us-east-1.amazonaws.com/iceberg"}
TOKEN = {"catalog": "rest", "auth": "token", "uri": "https://a.example/api", "token": "${ssm:/lake/token}"}
REST: list[tuple[dict[str, Any], dict[str, Any]]] = [
    # What Glue's REST endpoint asks IAM: https://docs.aws.amazon.com/glue/latest/dg/iceberg-rest-apis.html
    (SIGNED | {"warehouse": "123456789012"}, {"Glue": ["glue:GetCatalog", *JOB_TABLES]}),
    (SIGNED | {"uri": "https://a.execute-api.us-east-1.amazonaws.com"}, {}),
    (TOKEN, {"Secrets": ["ssm:GetParameter"]}),
]


@pytest.mark.parametrize(("catalog", "expected"), REST)
def test_rest_catalogs(tmp_path: Path, catalog: dict[str, Any], expected: dict[str, Any]) -> None:
    table = {"table": "t", "schema": "s", "read": {"format": "csv", "path": "s3://acme-landing/t.csv"}}
    path = tmp_path / "lake.yaml"
    path.write_text(yaml.safe_dump({"pipeline": "p", "destination": OWN | catalog, "tables": [table]}), "utf-8")
    found = load(path)
    documents = make_documents(found.spec, found.deployment, Who.JOB, ARNS)
    actions = {name: [action for each in document["Statement"] for action in each["Action"]]
               for name, document in documents.items() if name not in ("S3", "Sources")}  # fmt: skip
    assert actions == expected
    assert [role.name for role in list_roles(found.spec, found.deployment, ARNS)] == ["job"]


@pytest.mark.parametrize("destination", [GLUE, OPEN_CATALOG])
def test_engines_may_replace_files(tmp_path: Path, destination: dict[str, Any]) -> None:
    found = lake(tmp_path, **destination)
    assert deny_replacement(found.spec, ARNS) == []
    (write,) = (
        each for each in made(tmp_path, Who.VENDOR, **destination)["S3"]["Statement"] if each["Sid"] == "WriteObjects"
    )
    assert "s3:DeleteObject" in write["Action"]


MAINTAINED = {"maintenance": {"expire_snapshots_days": 5, "optimizer_role": "data/nyc-optimizers"}}
OPTIMIZERS = "arn:aws:iam::123456789012:role/data/nyc-optimizers"
LOGS = "arn:aws:logs:us-east-1:123456789012:log-group:/aws-glue"
SET = [
    "glue:GetTableOptimizer", "glue:CreateTableOptimizer", "glue:UpdateTableOptimizer", "glue:DeleteTableOptimizer",
]  # fmt: skip


def make_maintained(folder: Path, who: Who, **top: Any) -> dict[str, Any]:
    found = lake(folder, top=MAINTAINED | top, **GLUE)
    return make_documents(found.spec, found.deployment, who, ARNS)


def test_the_job_sets_optimizers_and_passes_their_role_alone(tmp_path: Path) -> None:
    assert make_maintained(tmp_path, Who.JOB)["Glue"]["Statement"][2:] == [
        statement("SetOptimizers", SET, OWN_TABLES),
        statement(
            "PassOptimizerRole",
            ["iam:PassRole"],
            [OPTIMIZERS],
            {"StringEquals": {"iam:PassedToService": "glue.amazonaws.com"}},
        ),
    ]


def test_the_job_lists_tables_where_it_deletes_orphans(tmp_path: Path) -> None:
    """Glue asks for all tables of the database."""
    top = {"maintenance": {"by": "command", "delete_orphans_days": 31}}
    listed = [OWN_TABLES[0], *(arn for arn in OWN_TABLES if ":database/" in arn)]
    every = [arn.replace(":database/", ":table/") + "/*" for arn in listed[1:]]
    (_, _, found) = make_maintained(tmp_path, Who.JOB, **top)["Glue"]["Statement"]
    assert found == statement("ListTables", ["glue:GetTables"], [*listed, *every])


NO_OPTIMIZERS = [
    # without a role nobody sets optimizers, and nobody is passed
    {"maintenance": {"expire_snapshots_days": 5}},
    {"maintenance": None},
]


@pytest.mark.parametrize("top", NO_OPTIMIZERS)
def test_without_a_role_nothing_is_allowed_for_it(tmp_path: Path, top: dict[str, Any]) -> None:
    found = lake(tmp_path, top=top, **GLUE)
    sids = [each["Sid"] for each in make_maintained(tmp_path, Who.JOB, **top)["Glue"]["Statement"]]
    assert sids == ["ReadCatalog", "WriteTables"]
    assert [role.name for role in list_roles(found.spec, found.deployment, ARNS)] == ["job"]


def test_the_optimizers_reach_the_tables_and_no_records(tmp_path: Path) -> None:
    """https://docs.aws.amazon.com/glue/latest/dg/optimization-prerequisites.html"""
    found = lake(tmp_path, top=MAINTAINED, **GLUE)
    role = list(list_roles(found.spec, found.deployment, ARNS))[-1]
    assert (role.name, role.who) == ("optimizers", Who.OPTIMIZER)
    assert (role.trust or {})["Statement"] == [
        {
            "Sid": "TrustGlue",
            "Effect": "Allow",
            "Principal": {"Service": "glue.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ]
    assert [each["Sid"] for each in role.documents["S3"]["Statement"]] == [
        "ListUnderPrefix", "InspectBucket", "WriteObjects", "KeepOutOfControlObjects",
    ]  # fmt: skip
    assert role.documents["Glue"]["Statement"] == [
        statement("MaintainTables", ["glue:GetTable", "glue:UpdateTable"], OWN_TABLES),
        statement(
            "WriteOptimizerLogs",
            ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"],
            [
                f"{LOGS}/iceberg-compaction/logs:*",
                f"{LOGS}/iceberg-retention/logs:*",
                f"{LOGS}/iceberg-orphan-file-deletion/logs:*",
            ],
        ),
    ]


def test_a_role_that_is_there_is_not_described(tmp_path: Path) -> None:
    arn = "arn:aws:iam::123456789012:role/Own"
    top = {"maintenance": {"compact": True, "optimizer_role": arn}}
    found = lake(tmp_path, top=top, **GLUE)
    assert [role.name for role in list_roles(found.spec, found.deployment, ARNS)] == ["job"]
    passed = make_maintained(tmp_path, Who.JOB, **top)["Glue"]["Statement"][-1]
    assert passed["Resource"] == [arn]


def test_a_deployer_may_make_the_role(tmp_path: Path) -> None:
    boundary = {"permissions_boundary_arn": "arn:aws:iam::123456789012:policy/Boundary"}
    found = lake(tmp_path, boundary, top=MAINTAINED, **GLUE)
    execution = make_documents(found.spec, found.deployment, Who.DEPLOYER, ARNS, stage="dev")["Execution"]
    (identities,) = (each for each in execution["Statement"] if each["Sid"] == "ManageIdentities")
    assert OPTIMIZERS in identities["Resource"]


def test_another_catalog_has_no_optimizers(tmp_path: Path) -> None:
    with pytest.raises(SpecInvalidError) as refused:
        lake(tmp_path, top=MAINTAINED, **OPEN_CATALOG)
    assert "maintenance.optimizer_role: Glue's optimizers reach tables of the Glue Data Catalog" in str(refused.value)
    assert lake(tmp_path, top={"maintenance": {"expire_snapshots_days": 5}}, **OPEN_CATALOG).spec.maintenance
