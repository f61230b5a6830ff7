"""The key of an encrypted Data Catalog: Glue uses it as its caller, so that each role that asks the catalog needs it.

https://docs.aws.amazon.com/glue/latest/dg/set-up-encryption.html: a client that reads or writes needs three actions.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakewriter.policy.role_documents import Who, make_documents
from lakewriter.policy.statements import make_document
from lakewriter.spec.trust import Party
from tests.policy.lakes import ARNS, lake
from tests.support.iam import Policies, Request, simulate

KEY = "arn:aws:kms:us-east-1:123456789012:key/99999999-2222-3333-4444-555555555555"
GIVEN = {"catalog_kms_key_arn": KEY, "permissions_boundary_arn": "arn:aws:iam::123456789012:policy/B"}
GLUE, S3 = ({"kms:ViaService": f"{service}.us-east-1.amazonaws.com"} for service in ("glue", "s3"))
ROOT = {"AWS": "arn:aws:iam::123456789012:root"}
KEYS_OWN = make_document([
    {"Sid": "Root", "Effect": "Allow", "Principal": ROOT, "Action": "kms:*", "Resource": "*"}
])  # fmt: skip
"""The key's policy leaves it to those of roles."""
CALLS = [
    # action, context, whether a role that asks the catalog may
    ("kms:GenerateDataKey", GLUE, True),
    ("kms:Decrypt", GLUE, True),
    ("kms:Encrypt", GLUE, True),
    ("kms:Decrypt", S3, False),
    ("kms:Decrypt", {}, False),
    ("kms:ScheduleKeyDeletion", GLUE, False),
]
ICEBERG: dict[str, Any] = {"table_format": "ICEBERG", "update_aws_glue_catalog": None}
PLAIN: dict[str, Any] = {"update_aws_glue_catalog": False}
ROLES: list[tuple[Who, dict[str, Any], Party | None, bool]] = [
    # whose role; the destination; the party; whether it asks the catalog
    (Who.JOB, {}, None, True),
    (Who.LOADER, {}, None, True),
    (Who.VENDOR, {}, Party(), True),
    (Who.VENDOR, {}, Party(paths=("own",)), False),
    (Who.VENDOR, {}, Party(paths=("own",), databases=("crm",)), True),
    (Who.READER, {}, Party(access="read", tables=("supaflow_nyc.*",)), True),
    (Who.READER, {}, Party(access="read", paths=("own",)), False),
    (Who.OPERATOR, {}, None, True),
    (Who.OPTIMIZER, ICEBERG, None, True),
    (Who.DEPLOYER, {}, None, True),
    (Who.CATALOG, ICEBERG, None, False),
    *((who, PLAIN, None, False) for who in (Who.JOB, Who.OPERATOR, Who.DEPLOYER)),
]


@pytest.mark.parametrize("verbatim", [False, True])
@pytest.mark.parametrize(("who", "destination", "party", "asks"), ROLES)
def test_roles_that_ask_the_catalog_may_use_its_key(
    tmp_path: Path, who: Who, destination: dict[str, Any], party: Party | None, asks: bool, verbatim: bool
) -> None:
    loaded = lake(tmp_path, GIVEN | {"vendor_verbatim": verbatim}, **destination)
    documents = make_documents(loaded.spec, loaded.deployment, who, ARNS, party)
    documents.pop("Boundary", None)
    requests = [Request(action, KEY, context) for action, context, _ in CALLS]
    decisions = simulate(requests, Policies(documents, KEYS_OWN))
    assert [decision.allowed for decision in decisions] == [allowed and asks for *_, allowed in CALLS]


def test_the_boundary_has_the_key(tmp_path: Path) -> None:
    loaded = lake(tmp_path, GIVEN)
    documents = make_documents(loaded.spec, loaded.deployment, Who.DEPLOYER, ARNS)
    boundary = next(document for name, document in documents.items() if name == "Boundary")
    everything = {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}], "Version": "2012-10-17"}
    requests = [Request(action, KEY, context) for action, context, _ in CALLS]
    decisions = simulate(requests, Policies({"All": everything}, KEYS_OWN, boundary))
    # It bounds actions and keys; through which service a role may use them, its own policies say.
    assert [decision.allowed for decision in decisions] == [True, True, True, True, True, False]


def test_the_key_of_another_accounts_catalog(tmp_path: Path) -> None:
    """The domain of its region's partition; without the setting no role gets a statement."""
    other = KEY.replace("123456789012", "999999999999")
    loaded = lake(tmp_path, {"catalog_kms_key_arn": other}, top={"catalog_account": "999999999999"})
    documents = make_documents(loaded.spec, loaded.deployment, Who.JOB, replace(ARNS))
    named = [each["Resource"] for each in documents["Kms"]["Statement"] if each["Sid"] == "UseKeyOfCatalog"]
    assert named == [[other]]
    without = lake(tmp_path)
    assert "UseKeyOfCatalog" not in str(make_documents(without.spec, without.deployment, Who.JOB, ARNS))
