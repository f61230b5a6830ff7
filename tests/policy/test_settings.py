"""What a file's settings add to the documents, and what they take away."""

from pathlib import Path
from typing import Any

import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.policy.role_documents import Who, make_documents
from lakewriter.spec.deployment import Spark
from tests.policy.lakes import (
    ARNS,
    BUCKET,
    CATALOG,
    DATABASE,
    JOB_TABLES,
    KEY,
    PREFIXED_TABLES,
    TABLE,
    lake,
    made,
    statement,
)
from tests.support.lint import findings

ASSUMED = {"iam_role_arn": "arn:aws:iam::123456789012:role/Lake", "external_id": "${ssm:/lake/id}"}
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:db-AbCdEf"
LANDING = {"format": "csv", "path": "s3://acme-landing/a.csv"}


def jdbc(password: str) -> dict[str, Any]:
    return {"table": "t", "read": {"format": "jdbc", "options": {"url": "u", "dbtable": "t", "password": password}}}


def prefixed(*names: str) -> list[str]:
    return [f"{DATABASE}/{name}" for name in names] + [f"{TABLE}/{name}/*" for name in names]


def test_metrics_may_be_sent_where_the_file_says_so(tmp_path):
    loaded = lake(tmp_path)
    assert "Metrics" not in make_documents(loaded.spec, loaded.deployment, Who.JOB, ARNS)
    sending = loaded.spec.model_copy(update={"put_metrics": True})
    document = make_documents(sending, loaded.deployment, Who.JOB, ARNS)["Metrics"]
    assert document["Statement"] == [
        {
            "Sid": "PutMetrics",
            "Effect": "Allow",
            "Action": ["cloudwatch:PutMetricData"],
            "Resource": ["*"],
            "Condition": {"StringEquals": {"cloudwatch:namespace": "Lakewriter"}},
        }
    ]


PARTS = [
    # who; deployment; tables; destination; document; the statements' resources by Sid
    (Who.JOB, {}, None, ASSUMED, "AssumeRole", {"TakeDestinationRole": ["arn:aws:iam::123456789012:role/Lake"]}),
    (
        Who.JOB, {}, None, ASSUMED, "Secrets",
        {"ReadParameters": ["arn:aws:ssm:us-east-1:123456789012:parameter/lake/id"]},
    ),
    (
        Who.JOB, {}, [jdbc("${ssm:password:3}")], {}, "Secrets",
        {"ReadParameters": ["arn:aws:ssm:us-east-1:123456789012:parameter/password"]},
    ),
    (
        Who.JOB, {}, [jdbc("${ssm:arn:aws:ssm:us-east-1:123456789012:parameter/password:3}")], {}, "Secrets",
        {"ReadParameters": ["arn:aws:ssm:us-east-1:123456789012:parameter/password"]},
    ),
    (Who.JOB, {}, [jdbc(f"${{secret:{SECRET}:password}}")], {}, "Secrets", {"ReadSecrets": [SECRET]}),
    # without the six letters that Secrets Manager adds, and by name
    (Who.JOB, {}, [jdbc(f"${{secret:{SECRET[:-7]}}}")], {}, "Secrets", {"ReadSecrets": [f"{SECRET[:-7]}-??????"]}),
    (Who.JOB, {}, [jdbc("${secret:db}")], {}, "Secrets", {"ReadSecrets": [f"{SECRET[:-7]}-??????"]}),
    (Who.JOB, {}, [jdbc("${secret:db:password}")], {}, "Secrets", {"ReadSecrets": [f"{SECRET[:-7]}-??????"]}),
    (
        Who.JOB, {"reads": ["s3a://other"]}, [{"table": "t", "read": LANDING}], {}, "Sources",
        {
            "ListSource1": ["arn:aws:s3:::other"],
            "ReadSource1": ["arn:aws:s3:::other/*"],
            "ListSource2": ["arn:aws:s3:::acme-landing"],
            "ReadSource2": ["arn:aws:s3:::acme-landing/a.csv", "arn:aws:s3:::acme-landing/a.csv/*"],
        },
    ),
    # keys of sources and of secrets, each through its own service
    (
        Who.JOB, {"source_buckets": [{"bucket": "acme-landing", "kms_key_arn": KEY}]},
        [{"table": "t", "read": LANDING}], {}, "Sources",
        {
            "ListSource1": ["arn:aws:s3:::acme-landing"],
            "ReadSource1": ["arn:aws:s3:::acme-landing/a.csv", "arn:aws:s3:::acme-landing/a.csv/*"],
            "UseKeyOfSource1": [KEY],
        },
    ),
    (
        Who.JOB, {"secret_kms_key_arns": [KEY]}, [jdbc(f"${{secret:{SECRET}:password}}")], {}, "Secrets",
        {"ReadSecrets": [SECRET], "UseKeyOfSecrets1": [KEY]},
    ),
    (Who.READER, {"encryption": "SSE-KMS"}, None, {}, "Kms", {"UseKeyThroughS3": [KEY]}),
    (
        Who.VENDOR, {"lake_formation": True}, None, {}, "Glue",
        {"ReadCatalog": [CATALOG], "WriteTables": PREFIXED_TABLES, "AskLakeFormation": ["*"]},
    ),
    (
        Who.VENDOR, {"allow_reset": True}, None, {}, "Glue",
        {
            "ReadCatalog": [CATALOG],
            "WriteTables": PREFIXED_TABLES,
            "ResetTables": [
                *PREFIXED_TABLES,
                "arn:aws:glue:us-east-1:123456789012:userDefinedFunction/supaflow/*",
                "arn:aws:glue:us-east-1:123456789012:userDefinedFunction/supaflow_*/*",
            ],
        },
    ),
    # the vendor's page has mycompany_* for the prefix mycompany; one written mycompany_ makes the same databases
    (
        Who.VENDOR, {}, None, {"glue_database_prefix": "mycompany"}, "Glue",
        {"ReadCatalog": [CATALOG], "WriteTables": [CATALOG, *prefixed("mycompany", "mycompany_*")]},
    ),
    (
        Who.VENDOR, {}, None, {"glue_database_prefix": "mycompany_"}, "Glue",
        {"ReadCatalog": [CATALOG], "WriteTables": [CATALOG, *prefixed("mycompany_", "mycompany_*")]},
    ),
    (
        Who.READER, {}, None, {"glue_database_prefix": "mycompany_"}, "Glue",
        {"ReadTables": [CATALOG, *prefixed("mycompany_", "mycompany_*")]},
    ),
    (
        Who.VENDOR, {}, None, {"glue_database_prefix": ""}, "Glue",
        {"ReadCatalog": [CATALOG], "WriteTables": [CATALOG, f"{DATABASE}/nyc", f"{TABLE}/nyc/*"]},
    ),
    (
        Who.LOADER, {}, None, {"s3_path_prefix": "a*b/$?"}, "S3",
        {
            "ListUnderPrefix": [BUCKET],
            "InspectBucket": [BUCKET],
            "WriteObjects": [
                f"arn:aws:s3:::acme-lake/a${{*}}b/${{$}}${{?}}/{folder}/*"
                for folder in (
                    "supaflow_nyc/flights", "supaflow_nyc/airlines", "_lakewriter/p", "_lakewriter/_writers",
                )
            ],
        },
    ),
]  # fmt: skip


@pytest.mark.parametrize(("who", "deployment", "tables", "destination", "name", "expected"), PARTS)
def test_parts(
    tmp_path: Path, who: Who, deployment: Any, tables: Any, destination: Any, name: str, expected: dict[str, list[str]]
) -> None:
    found = made(tmp_path, who, deployment, tables, **destination)[name]["Statement"]
    assert {each["Sid"]: each["Resource"] for each in found if each["Effect"] == "Allow"} == expected


def test_no_condition_without_a_prefix(tmp_path: Path) -> None:
    statements = made(tmp_path, Who.VENDOR, s3_path_prefix="")["S3"]["Statement"]
    assert statements[0] == statement("ListUnderPrefix", ["s3:ListBucket"], [BUCKET])
    assert statements[2]["Resource"] == ["arn:aws:s3:::acme-lake/*"]
    assert statements[3]["Resource"] == [
        "arn:aws:s3:::acme-lake/_lakewriter/*",
        "arn:aws:s3:::acme-lake/*/_lakewriter/*",
    ]


KEY_USE = {"StringEquals": {"kms:ViaService": "s3.us-east-1.amazonaws.com"}}


@pytest.mark.parametrize(
    ("who", "actions"),
    [(Who.LOADER, ["kms:Decrypt", "kms:GenerateDataKey"]), (Who.READER, ["kms:Decrypt"])],
)
def test_key(tmp_path: Path, who: Who, actions: list[str]) -> None:
    expected = [statement("UseKeyThroughS3", actions, [KEY], KEY_USE)]
    assert made(tmp_path, who, {"encryption": "SSE-KMS"})["Kms"]["Statement"] == expected
    assert made(tmp_path, who, {"existing": {"kms_key_arn": KEY}})["Kms"]["Statement"] == expected


def test_key_that_nobody_knows(tmp_path: Path) -> None:
    loaded = lake(tmp_path, {"encryption": "SSE-KMS"})
    with pytest.raises(SpecInvalidError, match="Give the key: --kms-key ARN"):
        make_documents(loaded.spec, loaded.deployment, Who.JOB, ARNS)


def test_databases_that_are_there_are_not_made(tmp_path: Path) -> None:
    found = made(tmp_path, Who.JOB, {"existing": {"databases": True}})["Glue"]["Statement"][0]["Action"]
    assert found == [action for action in JOB_TABLES if action != "glue:CreateDatabase"]


def test_destination_of_others_keys_is_theirs(tmp_path: Path) -> None:
    keys = {"access_key_id": "${secret:k}", "secret_access_key": "${secret:s}"}
    assert list(made(tmp_path, Who.JOB, **keys)) == ["Secrets", "Sources"]


@pytest.mark.parametrize(
    ("count", "last"),
    # 6144 characters hold so many tables by name, and more only by their database
    [(40, "table/supaflow_nyc/lakewriter_check_*"), (100, "table/supaflow_nyc/*")],
)
def test_many_tables_fit_into_a_policy(tmp_path: Path, count: int, last: str) -> None:
    tables = [{"table": f"table_{n}", "read": {"format": "csv", "path": f"s3://b/in/{n}"}} for n in range(count)]
    found = made(tmp_path, Who.JOB, tables=tables)
    assert found["Glue"]["Statement"][0]["Resource"][-1] == f"arn:aws:glue:us-east-1:123456789012:{last}"
    assert max(len(str(document).replace(" ", "")) for document in found.values()) < 6144


VARIANTS = [{}, {"allow_reset": True, "encryption": "SSE-KMS", "reads": ["s3://other/x"]}]


# The deployer's has wildcards of actions, of which parliament knows others.
@pytest.mark.parametrize("who", [who for who in Who if who is not Who.DEPLOYER])
@pytest.mark.parametrize("deployment", VARIANTS)
@pytest.mark.parametrize("destination", [{}, {"s3_path_prefix": ""}, ASSUMED])
def test_parliament_finds_nothing(tmp_path: Path, who: Who, deployment: Any, destination: Any) -> None:
    found = made(tmp_path, who, deployment, **destination)
    assert {name: findings(document) for name, document in found.items()} == {name: [] for name in found}


def test_jars_of_the_job_and_their_key(tmp_path):
    """Exactly the objects, those of Spark's own setting too, and the key of their bucket through S3."""
    deployment = {
        "jars": ["s3://acme-jars/postgresql.jar", "drivers/mysql.jar"],
        "spark": {"conf": {"spark.jars": "s3://acme-other/a*b.jar, local:///usr/lib/x.jar"}},
        "source_buckets": [{"bucket": "acme-jars", "kms_key_arn": KEY}],
    }
    loaded = lake(tmp_path, deployment)
    assert loaded.deployment.jars[1] == f"{tmp_path}/drivers/mysql.jar"
    document = make_documents(loaded.spec, loaded.deployment, Who.JOB, ARNS)["Sources"]
    found = {each["Sid"]: each for each in document["Statement"]}
    assert found["ReadJars"]["Resource"] == [
        "arn:aws:s3:::acme-jars/postgresql.jar",
        "arn:aws:s3:::acme-other/a${*}b.jar",
    ]
    assert found["UseKeyOfJars"]["Resource"] == [KEY]
    assert found["UseKeyOfJars"]["Condition"] == {"StringEquals": {"kms:ViaService": ["s3.us-east-1.amazonaws.com"]}}
    assert findings(document) == []
    plain = make_documents(
        loaded.spec, loaded.deployment.model_copy(update={"jars": (), "spark": Spark()}), Who.JOB, ARNS
    )
    assert "ReadJars" not in str(plain)


@pytest.mark.parametrize("jar", ["s3://acme-jars/*.jar", "s3://acme-jars", "a.zip", "https://repo/a.jar", "a,b.jar"])
def test_jars_that_are_none(tmp_path, jar):
    with pytest.raises(SpecInvalidError) as caught:
        lake(tmp_path, {"jars": [jar]})
    assert "deployment.jars" in str(caught.value)
