"""Buckets of other accounts: what their owners are told to grant.

Both sides have to allow:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic-cross-account.html
"""

import json
import re
from typing import Any

import pytest

from tests.infra.destination.conftest import Synthesise
from tests.infra.destination.lakes import SUPAFLOW, lake, of_type
from tests.policy.lakes import KEY

pytestmark = pytest.mark.synth

OTHER, OURS = "999999999999", "123456789012"


def printed(warnings: list[str], start: str) -> Any:
    """The statements in the one warning that begins so."""
    (warning,) = [each for each in warnings if each.startswith(start)]
    text = re.sub(r" \[ack:.*", "", warning)
    return json.JSONDecoder().raw_decode(text[text.index("[{") :])[0]


def test_owner_of_a_source(synthesise: Synthesise) -> None:
    source = {"bucket": "raw", "account": OTHER, "kms_key_arn": KEY}
    warnings = synthesise(lake({"account": OURS, "source_buckets": [source]})).warnings
    assert printed(warnings, f"Bucket 'raw' is account {OTHER}'s. Have its owner add to its policy:") == [
        {
            "Effect": "Allow",
            "Principal": {"AWS": "<JobRole.Arn>"},
            "Action": ["s3:ListBucket"],
            "Resource": ["arn:aws:s3:::raw"],
            "Condition": {"StringLikeIfExists": {"s3:prefix": ["flights", "flights/", "flights/*"]}},
        },
        {
            "Effect": "Allow",
            "Principal": {"AWS": "<JobRole.Arn>"},
            "Action": ["s3:GetObject"],
            "Resource": ["arn:aws:s3:::raw/flights", "arn:aws:s3:::raw/flights/*"],
        },
    ]
    (warning,) = warnings
    assert f"and to the policy of its key {KEY}: " in warning
    assert '"Action": ["kms:Decrypt"]' in warning


@pytest.mark.parametrize("source", [{"bucket": "raw"}, {"bucket": "raw", "account": OURS}, {"bucket": "other"}])
def test_owner_is_us(synthesise: Synthesise, source: dict[str, Any]) -> None:
    assert synthesise(lake({"account": OURS, "source_buckets": [source]})).warnings == []


JOBS = ("supaflow_nyc_public/flights", "_lakewriter/flights", "_lakewriter/_writers")


def test_owner_of_the_destination(synthesise: Synthesise) -> None:
    trust = [SUPAFLOW | {"paths": ["supaflow"]}]
    existing = {"bucket": True, "bucket_account": OTHER}
    found = printed(synthesise(lake({"account": OURS, "existing": existing, "trust": trust})).warnings, "Bucket 'acme")
    grants: dict[str, list[str]] = {}
    for each in found:
        if each["Effect"] == "Allow":
            grants.setdefault(each["Principal"]["AWS"], []).extend(each["Resource"])
    root = "arn:aws:s3:::acme-lake"
    assert grants == {
        "<JobRole.Arn>": [root, root, *(f"{root}/data/production/{folder}/*" for folder in JOBS)],
        "<SupaflowConsumerRole.Arn>": [root, root, f"{root}/data/production/supaflow/*"],
        # the state machine reads how an attempt ended
        "<LoadRoleArn>": [f"{root}/data/production/_lakewriter/flights/runs/*"],
    }


CENTRAL = {"catalog_account": OTHER}


def test_owner_of_the_catalog(synthesise: Synthesise) -> None:
    """The stack makes nothing there. Vendors name no catalog, and their rights are in this account's."""
    reader = {"principal": f"arn:aws:iam::{OURS}:role/Lab", "name": "lab", "external_id": "lab-1", "access": "read"}
    given = {
        "account": OURS,
        "trust": [SUPAFLOW | {"paths": ["crm"], "databases": ["crm"]}, reader | {"tables": ["supaflow_nyc_public.*"]}],
        "lake_formation": True,
        "operators": [f"arn:aws:iam::{OURS}:role/OnCall"],
        "encryption": "SSE-KMS",
    }
    made = synthesise(lake(given) | CENTRAL)
    assert of_type(made.template, "Glue::Database") == {}
    assert of_type(made.template, "LakeFormation::PrincipalPermissions") == {}
    [warning] = [each for each in made.warnings if each.startswith(f"The Data Catalog is account {OTHER}'s")]
    assert "Lake Formation's grants are that account's to give too." in warning
    grants: dict[str, list[str]] = {}
    for each in printed(made.warnings, "The Data Catalog"):
        assert all(action.startswith("glue:") for action in each["Action"])
        grants.setdefault(each["Principal"]["AWS"], []).extend(each["Resource"])
    there = f"arn:aws:glue:us-east-1:{OTHER}:"
    tables = [f"{there}{path}" for path in (
        "catalog", "database/supaflow_nyc_public", "table/supaflow_nyc_public/flights",
        "table/supaflow_nyc_public/lakewriter_check_*",
    )]  # fmt: skip
    read = [f"{there}{path}" for path in ("catalog", "database/supaflow_nyc_public", "table/supaflow_nyc_public/*")]
    assert grants == {"<JobRole.Arn>": tables, "<LabConsumerRole.Arn>": read, "<OperatorRoleArn>": tables}
    vendors = [
        resource
        for policy in of_type(made.template, "IAM::ManagedPolicy").values()
        if policy["Roles"] == [{"Ref": "SupaflowConsumerRole"}]
        for statement in policy["PolicyDocument"]["Statement"]
        for resource in statement["Resource"]
        if ":glue:" in str(resource)
    ]
    assert vendors
    assert [each for each in vendors if OTHER in str(each)] == []


def test_a_role_that_the_job_takes_is_let_into_the_catalog(synthesise: Synthesise) -> None:
    role = f"arn:aws:iam::{OURS}:role/Lake"
    made = synthesise(lake({"account": OURS}, iam_role_arn=role) | CENTRAL)
    assert {each["Principal"]["AWS"] for each in printed(made.warnings, "The Data Catalog")} == {role}


def test_destination_of_our_own_account_needs_no_grants(synthesise: Synthesise) -> None:
    existing = {"bucket": True, "bucket_account": OURS}
    found = printed(synthesise(lake({"account": OURS, "existing": existing})).warnings, "Bucket 'acme-lake'")
    assert [each for each in found if each["Effect"] == "Allow"] == []
