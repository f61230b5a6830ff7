"""Rights in another account's Data Catalog, and no more in this one's."""

from pathlib import Path
from typing import Any

import pytest

from lakewriter.policy.role_documents import Who, make_documents
from lakewriter.spec.trust import Party
from tests.policy.lakes import ARNS, lake

OTHER = "999999999999"
BOUNDARY = "arn:aws:iam::123456789012:policy/lake"
ACCOUNTS: list[tuple[Who, set[str]]] = [
    # whose policies; whose catalog they are about
    (Who.JOB, {OTHER}),
    (Who.LOADER, {OTHER}),
    (Who.READER, {OTHER}),
    (Who.OPERATOR, {OTHER}),
    # A vendor's calls name no catalog, so that they reach that of its role's account.
    (Who.VENDOR, {"123456789012"}),
]


def list_accounts(folder: Path, who: Who, *names: str, **more: Any) -> set[str]:
    """The accounts in the ARNs of Glue, of the documents whose names begin so."""
    deployment = {"permissions_boundary_arn": BOUNDARY, "iam_user": {"paths": ["crm"]}} | more
    found = lake(folder, deployment, top={"catalog_account": OTHER})
    party = Party(access="read") if who is Who.READER else Party()
    documents = make_documents(found.spec, found.deployment, who, ARNS, party, stage="prod")
    resources = [
        resource
        for name, document in documents.items()
        if not names or name.startswith(names)
        for statement in document["Statement"]
        for resource in statement["Resource"]
    ]
    return {resource.split(":")[4] for resource in resources if ":glue:" in resource}


@pytest.mark.parametrize(("who", "accounts"), ACCOUNTS, ids=[who for who, _ in ACCOUNTS])
def test_rights_are_in_one_catalog(tmp_path: Path, who: Who, accounts: set[str]) -> None:
    assert list_accounts(tmp_path, who) == accounts


def test_a_deployer_makes_no_database_there(tmp_path: Path) -> None:
    """Roles are bounded to both catalogs: that of the tables, and that which vendors reach."""
    assert list_accounts(tmp_path, Who.DEPLOYER, "Execution", "Bootstrap") == set()
    assert list_accounts(tmp_path, Who.DEPLOYER, "Boundary") == {OTHER, "123456789012"}


def test_without_room_for_two_catalogs_a_pattern_is_for_both(tmp_path: Path) -> None:
    """IAM's 6,144 characters; the owners of other catalogs would have to let a role in, too."""
    given = {
        "operators": ["arn:aws:iam::123456789012:role/OnCall"],
        "destroy_data": True,
        "protect": False,
        "replication": {"bucket": "acme-lake-west"},
        "role_path": "/teams/data/lake/",
    }
    assert list_accounts(tmp_path, Who.DEPLOYER, "Boundary", **given) == {"*"}


def test_without_the_key_the_catalog_is_the_accounts_own(tmp_path: Path) -> None:
    found = lake(tmp_path)
    documents = make_documents(found.spec, found.deployment, Who.JOB, ARNS)
    resources = [each for statement in documents["Glue"]["Statement"] for each in statement["Resource"]]
    assert {resource.split(":")[4] for resource in resources} == {"123456789012"}
