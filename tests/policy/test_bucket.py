"""The bucket's own policy."""

from pathlib import Path
from typing import Any

import pytest

from lakewriter.dialects.lake_yaml import load
from lakewriter.policy.bucket import deny_replacement, make_bucket_policy
from tests.dialects.test_lakewriter_s3 import lake as own_lake
from tests.policy.airbyte import airbyte, table
from tests.policy.lakes import ARNS, BUCKET, lake
from tests.support.iam import Policies, Request, simulate
from tests.support.lint import findings

ROLE = "arn:aws:iam::123456789012:role/supaflow"
ROOT = f"{BUCKET}/data/supaflow_nyc"


def denied(sid: str, actions: list[str], resources: list[str], condition: Any) -> dict[str, Any]:
    return {
        "Sid": sid, "Effect": "Deny", "Principal": "*", "Action": actions, "Resource": resources,
        "Condition": condition,
    }  # fmt: skip


def test_bucket_policy(tmp_path: Path) -> None:
    found = make_bucket_policy(lake(tmp_path).spec, ARNS, kept_out=[ROLE])
    assert found["Statement"] == [
        denied("RequireTls", ["s3:*"], [BUCKET, f"{BUCKET}/*"], {"Bool": {"aws:SecureTransport": "false"}}),
        denied(
            "KeepObjectsOfTables",
            ["s3:PutObject"],
            [f"{ROOT}/flights/*", f"{ROOT}/airlines/*"],
            {"Null": {"s3:if-none-match": "true"}, "Bool": {"s3:ObjectCreationOperation": "true"}},
        ),
        denied(
            "KeepOutOfControlObjects",
            ["s3:*"],
            [f"{BUCKET}/data/_lakewriter/*", f"{BUCKET}/*/_lakewriter/*"],
            {"ArnEquals": {"aws:PrincipalArn": [ROLE]}},
        ),
    ]


def test_a_refresh_replaces_the_object_that_names_its_files(tmp_path: Path) -> None:
    """``_latest/files.json`` lies beside the folders of the refreshes, whose files nobody replaces."""
    table = {"table": "users", "schema": "crm", "read": {"format": "csv", "path": "s3://acme-landing/a.csv"}}
    refreshed = table | {"table": "people", "mode": "refresh"}
    spec = load(own_lake(tmp_path, table, refreshed)).spec
    (statement,) = deny_replacement(spec, ARNS)
    assert statement["Resource"] == [f"{BUCKET}/production/crm/users/*", f"{BUCKET}/production/crm/people/g*"]
    many = [refreshed | {"table": f"table_{n}"} for n in range(300)]
    (statement,) = deny_replacement(load(own_lake(tmp_path, *many)).spec, ARNS)
    assert statement["Resource"] == [f"{BUCKET}/production/crm/table_{n}/g*" for n in range(300)]


def test_nobody_replaces_bad_rows(tmp_path: Path) -> None:
    table = {"table": "users", "schema": "crm", "read": {"format": "csv", "path": "s3://acme-landing/a.csv"}}
    path = own_lake(tmp_path, table | {"on_bad_row": "quarantine"}, table | {"table": "leads"})
    (statement,) = deny_replacement(load(path).spec, ARNS)
    folders = ["users", "users__quarantine", "leads"]
    assert statement["Resource"] == [f"{BUCKET}/production/crm/{folder}/*" for folder in folders]


@pytest.mark.parametrize(("guests", "folders"), [(0, ["users"]), (1, [])])
def test_a_record_of_who_writes_a_shared_folder_is_replaced(tmp_path: Path, guests: int, folders: list[str]) -> None:
    """Airbyte's folders of a stream have the record in them; that of one pipeline alone is only created."""
    users = [table("users", mode="append")]
    spec = airbyte(tmp_path, s3_path_format="${NAMESPACE}/${STREAM_NAME}/${EPOCH}_", top={"tables": users}).spec
    found = deny_replacement(spec, ARNS, [spec] * guests)
    assert [arn for each in found for arn in each["Resource"]] == [
        f"{BUCKET}/{spec.access.prefix}/crm/{folder}/*" for folder in folders
    ]


def test_parliament_finds_nothing(tmp_path: Path) -> None:
    assert findings(make_bucket_policy(lake(tmp_path).spec, ARNS, kept_out=[ROLE])) == []


def test_nothing_is_promised_of_unconditional_writers(tmp_path: Path) -> None:
    assert deny_replacement(lake(tmp_path, single_writer=True).spec, ARNS) == []


@pytest.mark.parametrize(
    ("destination", "resources"),
    # a bucket policy has 20 KB: the schemas stand for so many tables, but the prefix never does
    [({}, [f"{ROOT}/*"]), ({"glue_database_prefix": "", "destination_prefix": ""}, None)],
)
def test_many_tables(tmp_path: Path, destination: Any, resources: list[str] | None) -> None:
    tables = [{"table": f"table_{n}", "read": {"format": "csv", "path": "a.csv"}} for n in range(300)]
    without_glue: dict[str, Any] = {"update_aws_glue_catalog": False} if resources is None else {}
    found = deny_replacement(lake(tmp_path, tables=tables, **destination, **without_glue).spec, ARNS)[0]["Resource"]
    assert found == (resources or [f"{BUCKET}/data/table_{n}/*" for n in range(300)])


WRITE_ALL = {
    "Version": "2012-10-17",
    "Statement": [{"Sid": "All", "Effect": "Allow", "Action": "s3:*", "Resource": "*"}],
}
STATE = f"{BUCKET}/data/_lakewriter/p/tables/x/state.json"


@pytest.mark.parametrize(("role", "allowed"), [("supaflow", False), ("supaflow-2", True)])
def test_kept_out_whatever_the_role_allows(tmp_path: Path, role: str, allowed: bool) -> None:
    policy = make_bucket_policy(lake(tmp_path).spec, ARNS, kept_out=[ROLE])
    who = f"arn:aws:sts::123456789012:assumed-role/{role}/session"
    request = Request("s3:PutObject", STATE, {}, who)
    assert [found.allowed for found in simulate([request], Policies({"All": WRITE_ALL}, policy))] == [allowed]
