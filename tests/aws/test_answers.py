"""Remedies for what AWS answers: they name the keys of the destination at hand, and no other destination's."""

import re
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from lakewriter.aws.answers import explain
from lakewriter.dialects.registry import MODELS
from lakewriter.spec.access import Access, KeyNames, SecretText

NAMES = {tag: model.key_names for tag, model in MODELS.items()}
UNMISTAKABLE = re.compile(r"\w*[a-z][A-Z_.][A-Za-z_.]*\w")
"""A key that is no word of a sentence, such as ``bucket_region``, ``advanced.endpoint`` or ``awsAccessKeyId``."""
ANSWERS = [
    # the code of an answer, its status; the actions that get it
    ("AccessDenied", 403, ("s3:PutObject", "glue:CreateTable", "sts:AssumeRole")),
    ("NoSuchBucket", 404, ("s3:PutObject",)),
    ("InvalidAccessKeyId", 403, ("s3:PutObject",)),
    ("PermanentRedirect", 301, ("s3:PutObject",)),
    ("EntityNotFoundException", 400, ("glue:CreateTable",)),
    ("SlowDown", 503, ("s3:PutObject",)),
]


def spell(names: KeyNames) -> set[str]:
    keys = [*names.model_dump(exclude={"catalogs"}).values(), *dict(names.catalogs).values()]
    return {key for key in keys if key and UNMISTAKABLE.fullmatch(key)}


def refuse(code: str, status: int, action: str) -> ClientError:
    answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, action)


def explain_all(access: Access) -> str:
    answers = [
        explain(refuse(code, status, action), doing=action, access=access)
        for code, status, actions in ANSWERS
        for action in actions
    ]
    silence = explain(ConnectTimeoutError(endpoint_url="https://s3.example.com"), doing="s3:PutObject", access=access)
    return " ".join(error.remedy for error in (*answers, silence))


@pytest.mark.parametrize("destination", sorted(NAMES))
@pytest.mark.parametrize("endpoint", [None, "https://s3.example.com"])
def test_remedies_name_the_keys_of_the_destination(destination, endpoint):
    names = NAMES[destination]
    secret = SecretText.parse("${env:KEY}")
    remedies = explain_all(
        Access(bucket="b", region="us-east-1", endpoint=endpoint, key_names=names, access_key_id=secret)
    )
    others = set[str]().union(*map(spell, NAMES.values())) - spell(names)
    assert names.database_prefix in remedies
    assert [key for key in others if re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.]*\w)", remedies)] == []


@pytest.mark.parametrize(("code", "status"), [("InternalError", 500), ("NoSuchBucket", 404)])
def test_a_full_disk_of_this_machine_is_the_reason(monkeypatch, code, status):
    """SeaweedFS's answers when a write fails with ENOSPC, and when its volumes are read-only."""
    access = Access(bucket="b", region="us-east-1", endpoint="http://127.0.0.1:1", disk="/data/.lakewriter")
    error = refuse(code, status, "s3:PutObject")

    def explain_at(free: int) -> str:
        monkeypatch.setattr("lakewriter.aws.answers.shutil.disk_usage", lambda _: SimpleNamespace(free=free))
        return explain(error, doing="s3:PutObject on s3://b/t/part-0.parquet", access=access).message

    assert explain_at(160_000) == (
        f"s3:PutObject on s3://b failed ({code}): the disk of /data/.lakewriter has 0 MB free, and the local S3 server "
        "needs 268 MB to write."
    )
    assert "disk" not in explain_at(300_000_000)


CATALOGS: list[tuple[str | None, str]] = [
    (None, "Check that the Glue policy is attached to the role, names this region and account, and that its database "
     "prefix matches glue_database_prefix; where Lake Formation governs the catalog, grant there too."),
    ("999999999999", "Check that the Glue policy is attached to the role, names this region and account 999999999999, "
     "and that its database prefix matches glue_database_prefix, and that the policy of account 999999999999's catalog "
     "lets the role in; where Lake Formation governs the catalog, grant there too."),
]  # fmt: skip


@pytest.mark.parametrize(("account", "remedy"), CATALOGS)
def test_whose_catalog_refuses(account: str | None, remedy: str) -> None:
    access = Access(bucket="acme-lake", region="us-east-1", catalog_account=account)
    error = explain(refuse("AccessDeniedException", 400, "glue:CreateTable"), doing="glue:CreateTable", access=access)
    assert (error.code, error.remedy) == ("GLUE_ACCESS_DENIED", remedy)
