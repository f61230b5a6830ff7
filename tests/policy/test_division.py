"""Permissions that one policy of IAM does not hold: as many policies as it takes, none over IAM's limit.

Limits: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html, 6,144 characters without white space
in a managed policy, and ten managed policies of a role.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakewriter.errors import SpecInvalidError
from lakewriter.policy.arns import Arns
from lakewriter.policy.division import divide
from lakewriter.policy.role_documents import Document, Who, make_documents
from lakewriter.policy.statements import allow
from tests.policy.estuary import binding, estuary
from tests.policy.lakes import ARNS, KEY, lake, made
from tests.policy.test_decisions import Row, decided

LIMIT = 6144


def from_buckets(count: int) -> list[dict[str, Any]]:
    """Each table from a bucket of its own."""
    paths = [f"s3://acme-department-landing-{n:03}/exports/daily/orders" for n in range(count)]
    return [{"table": f"t{n}", "read": {"format": "parquet", "path": path}} for n, path in enumerate(paths)]


def from_folders(count: int) -> list[dict[str, Any]]:
    paths = [f"s3://acme-landing/exports/department-{n:03}/orders" for n in range(count)]
    return [{"table": f"t{n}", "read": {"format": "parquet", "path": path}} for n, path in enumerate(paths)]


def sizes(documents: dict[str, Document]) -> list[int]:
    return [len(json.dumps(document, separators=(",", ":"))) for document in documents.values()]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("tables", [from_buckets(100), from_folders(100)], ids=["buckets", "folders"])
def test_a_hundred_sources(tmp_path: Path, tables: list[dict[str, Any]]) -> None:
    deployment = {"existing": {"kms_key_arn": KEY}, "encryption": "SSE-KMS"}
    found = made(tmp_path, Who.JOB, deployment, tables)
    assert max(sizes(found)) <= LIMIT
    assert len(found) <= 9
    rows: list[Row] = []
    for table in tables:
        bucket, _, key = table["read"]["path"].removeprefix("s3://").partition("/")
        own = f"arn:aws:s3:::{bucket}"
        rows += [
            ("s3:ListBucket", own, {"s3:prefix": f"{key}/"}, "allowed"),
            ("s3:GetObject", f"{own}/{key}/part-0.parquet", {}, "allowed"),
            ("s3:GetObject", f"{own}/{key}-secret/part-0.parquet", {}, "denied"),
            ("s3:ListBucket", own, {"s3:prefix": "exports/"}, "denied"),
        ]
    said = ["denied" if decision.startswith("denied") else "allowed" for decision in decided(rows, found)]
    assert said == [row[-1] for row in rows]


def test_documents_keep_their_names_and_number_the_further_ones(tmp_path: Path) -> None:
    found = made(tmp_path, Who.JOB, tables=from_folders(100))
    assert [name for name in found if not name.startswith("Sources")] == ["S3", "Glue"]
    sources = [name for name in found if name.startswith("Sources")]
    assert sources == ["Sources", "Sources2", "Sources3", "Sources4", "Sources5"]


def test_parts_of_one_statement_are_in_documents_of_their_own(tmp_path: Path) -> None:
    for document in made(tmp_path, Who.JOB, tables=from_folders(100)).values():
        sids = [statement["Sid"] for statement in document["Statement"]]
        assert len(sids) == len(set(sids))


def test_a_hundred_bindings(tmp_path: Path) -> None:
    """Their folders have nothing in common, in the job's listing neither."""
    found = estuary(tmp_path, top={"tables": [binding(f"department-{n:03}/orders") for n in range(100)]})
    documents = make_documents(found.spec, found.deployment, Who.JOB, ARNS)
    assert max(sizes(documents)) <= LIMIT


@pytest.mark.parametrize("tokens", [
    ("${Token[AWS.Partition.3]}", "${Token[AWS.AccountId.4]}", "${Token[AWS.Region.5]}", "${Token[TOKEN.901]}"),
    ("<AWS::Partition>", "<AWS::AccountId>", "<AWS::Region>", "<Key.Arn>"),
    ("aws-us-gov", "123456789012", "us-gov-west-1", KEY.replace(":aws:", ":aws-us-gov:")),
])  # fmt: skip
def test_division_is_the_same_however_arns_are_spelt(tmp_path: Path, tokens: tuple[str, str, str, str]) -> None:
    loaded = lake(tmp_path, {"encryption": "SSE-KMS", "trust": [], "existing": {}}, from_buckets(90))
    partition, account, region, key = tokens

    def names(arns: Arns) -> list[list[str]]:
        documents = make_documents(loaded.spec, loaded.deployment, Who.JOB, arns)
        return [[name, *(each["Sid"] for each in document["Statement"])] for name, document in documents.items()]

    assert names(Arns(partition, account, region, key)) == names(replace(ARNS, key=KEY))


def test_many_small_ones_are_put_together() -> None:
    """Ten names, each with little to say."""
    named = {f"N{n}": [allow(f"S{n}", ["s3:GetObject"], [f"arn:aws:s3:::b/{n}"])] for n in range(10)}
    assert {name: len(those) for name, those in divide(named, ARNS).items()} == {"All": 10}


def test_more_than_a_role_can_have() -> None:
    resources = [f"arn:aws:s3:::acme-landing/exports/department-{n:04}/orders/*" for n in range(2000)]
    with pytest.raises(SpecInvalidError, match="IAM attaches at most 10, one of them the pipeline stack's"):
        divide({"Sources": [allow("ReadSource1", ["s3:GetObject"], resources)]}, ARNS)
