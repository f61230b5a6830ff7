"""``lakewriter policy``: what is printed, for whom."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lakewriter.cli.main import main
from tests.dialects import files
from tests.policy.lakes import DESTINATION, KEY, TABLES

ACCOUNT = ["--account", "123456789012"]


def printed(folder: Path, *arguments: str, deployment: Any = None, **destination: Any) -> Result:
    path = files.lake(folder, tables=TABLES, top={"deployment": deployment or {}}, **(DESTINATION | destination))
    return CliRunner().invoke(main, ["policy", str(path), *arguments])


def test_all_roles_and_the_bucket(tmp_path: Path) -> None:
    trust = [{"vendor": "supaflow", "external_id": "id-1"}]
    found = json.loads(printed(tmp_path, *ACCOUNT, "--json", deployment={"trust": trust}).stdout)
    assert [(role["name"], role["who"], list(role["documents"])) for role in found["roles"]] == [
        ("job", "job", ["S3", "Glue", "Sources"]),
        ("supaflow", "vendor", ["S3", "Glue"]),
    ]
    assert [each["Sid"] for each in found["bucket_policy"]["Statement"]] == ["RequireTls", "KeepObjectsOfTables"]


def test_for_people(tmp_path: Path) -> None:
    lines = printed(tmp_path, *ACCOUNT).stdout.splitlines()
    assert [line for line in lines if line[:1] not in ("", " ", "{", "}")] == [
        "role 'job' (job): policy S3",
        "role 'job' (job): policy Glue",
        "role 'job' (job): policy Sources",
        "role 'job' (job): trust policy",
        "policy of the bucket, for its owner",
    ]


ACCOUNTS: list[tuple[list[str], dict[str, Any], dict[str, Any]]] = [
    # options; deployment; destination
    (["--account", "111111111111"], {"account": "222222222222"}, {}),
    ([], {"account": "111111111111"}, {}),
    ([], {}, {"iam_role_arn": "arn:aws:iam::111111111111:role/Lake"}),
]


@pytest.mark.parametrize(("options", "deployment", "destination"), ACCOUNTS)
def test_account(tmp_path: Path, options: list[str], deployment: Any, destination: Any) -> None:
    shown = printed(tmp_path, "--who", "loader", *options, deployment=deployment, **destination).stdout
    assert "arn:aws:glue:us-east-1:111111111111:catalog" in shown


@pytest.mark.parametrize(
    ("region", "catalog"),
    [
        ("cn-north-1", "arn:aws-cn:glue:cn-north-1:123456789012:catalog"),
        ("us-gov-west-1", "arn:aws-us-gov:glue:us-gov-west-1:123456789012:catalog"),
    ],
)
def test_partition(tmp_path: Path, region: str, catalog: str) -> None:
    assert catalog in printed(tmp_path, *ACCOUNT, bucket_region=region).stdout


def test_who_the_file_has_none_of(tmp_path: Path) -> None:
    found = json.loads(printed(tmp_path, *ACCOUNT, "--json", "--who", "reader").stdout)
    assert [(role["name"], list(role["documents"]), role["trust"]) for role in found["roles"]] == [
        ("reader", ["S3", "Glue"], None)
    ]
    assert "bucket_policy" not in found


def test_documents_without_an_account_in_them(tmp_path: Path) -> None:
    assert printed(tmp_path, "--who", "vendor", update_aws_glue_catalog=False).exit_code == 0


@pytest.mark.parametrize(
    ("options", "deployment", "said"),
    [
        ([], {}, "SPEC_INVALID: these documents name the AWS account, and it is not known. Give --account"),
        (ACCOUNT, {"encryption": "SSE-KMS"}, "SPEC_INVALID: deployment.encryption is SSE-KMS: expected the ARN"),
        (["--who", "vendors"], {}, "Invalid value for '--who'"),
    ],
)
def test_what_is_not_known(tmp_path: Path, options: list[str], deployment: Any, said: str) -> None:
    found = printed(tmp_path, *options, deployment=deployment)
    assert (found.exit_code, said in found.stderr) == (2, True)


def test_key_that_a_stack_makes(tmp_path: Path) -> None:
    found = printed(tmp_path, *ACCOUNT, "--kms-key", KEY, "--who", "job", deployment={"encryption": "SSE-KMS"})
    assert KEY in found.stdout
