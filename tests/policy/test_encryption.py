"""Which key an object is under: what S3 asks the bucket's policy about each request of a writer.

A request has the condition keys of the headers that it sends: CreateMultipartUpload those of the object, UploadPart and
CompleteMultipartUpload none of them, unless the caller keeps the key.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html#require-sse-kms
https://docs.aws.amazon.com/AmazonS3/latest/userguide/ServerSideEncryptionCustomerKeys.html
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakewriter.policy.bucket import find_encryption, make_bucket_policy
from lakewriter.policy.role_documents import Who, make_documents
from lakewriter.policy.statements import make_document
from tests.policy.lakes import ARNS, BUCKET, KEY, lake
from tests.support.iam import ACCOUNT, Policies, Request, simulate
from tests.support.lint import findings
from tests.support.recording import known_calls

EARLIER = KEY.replace("1111-2222", "9999-2222")
OTHERS = "arn:aws:kms:us-east-1:999999999999:key/11111111-2222-3333-4444-555555555555"
ALGORITHM = "s3:x-amz-server-side-encryption"
KEY_ID = "s3:x-amz-server-side-encryption-aws-kms-key-id"
CALLERS = "s3:x-amz-server-side-encryption-customer-algorithm"
OBJECT = f"{BUCKET}/data/other/a.parquet"
KMS: dict[str, Any] = {"encryption": "SSE-KMS", "earlier_kms_key_arns": [EARLIER]}
ALL = {"All": make_document([{"Sid": "All", "Effect": "Allow", "Action": "s3:*", "Resource": "*"}])}
REQUESTS: list[tuple[str, dict[str, Any], bool]] = [
    ("no header: a PUT, an upload that begins, a part, a completion", {}, True),
    ("the key", {ALGORITHM: "aws:kms", KEY_ID: KEY}, True),
    ("the key, twice", {ALGORITHM: "aws:kms:dsse", KEY_ID: KEY}, True),
    ("a key of before, which a running load may name", {ALGORITHM: "aws:kms", KEY_ID: EARLIER}, True),
    ("another account's key", {ALGORITHM: "aws:kms", KEY_ID: OTHERS}, False),
    ("the key by its id alone, which may be another account's", {ALGORITHM: "aws:kms", KEY_ID: KEY[-36:]}, False),
    ("AWS's key for S3", {ALGORITHM: "aws:kms"}, False),
    ("S3's own keys", {ALGORITHM: "AES256"}, False),
    ("a key of the caller's, on any request of an upload", {CALLERS: "AES256"}, False),
]


def make_policy(folder: Path, *exempt: str, **deployment: Any) -> dict[str, Any]:
    loaded, arns = lake(folder, KMS | deployment), replace(ARNS, key=KEY)
    return make_bucket_policy(loaded.spec, arns, encryption=find_encryption(loaded.deployment, arns, exempt))


def test_bucket_holds_every_object_to_its_key(tmp_path: Path) -> None:
    requests = [Request("s3:PutObject", OBJECT, context) for _, context, _ in REQUESTS]
    decisions = simulate(requests, Policies(ALL, make_policy(tmp_path)))
    assert [(row[0], decision.allowed) for row, decision in zip(REQUESTS, decisions, strict=True)] == [
        (row[0], row[-1]) for row in REQUESTS
    ]
    assert {key for decision in decisions for key in decision.ignored} == set()


def test_no_writer_of_ours_sends_a_header() -> None:
    """Of all calls that the tests see the product make: so each gets the bucket's encryption."""
    sent = {key for call in known_calls() for key, _ in call.context if "encryption" in key}
    assert sent == set()


def test_a_vendor_that_must_send_another_header_is_let_through(tmp_path: Path) -> None:
    role = f"arn:aws:iam::{ACCOUNT}:role/vendor"
    session = f"arn:aws:sts::{ACCOUNT}:assumed-role/vendor/session"
    other = f"arn:aws:sts::{ACCOUNT}:assumed-role/vendor-2/session"
    requests = [Request("s3:PutObject", OBJECT, {ALGORITHM: "AES256"}, who) for who in (session, other)]
    decisions = simulate(requests, Policies(ALL, make_policy(tmp_path, role)))
    assert [decision.allowed for decision in decisions] == [True, False]


def test_s3s_own_keys_need_no_rule(tmp_path: Path) -> None:
    loaded = lake(tmp_path)
    assert find_encryption(loaded.deployment, ARNS) is None
    assert "EncryptWithTheKey" not in str(make_bucket_policy(loaded.spec, ARNS))


def test_parliament_finds_an_arn_compared_as_text_and_nothing_else(tmp_path: Path) -> None:
    (found,) = findings(make_policy(tmp_path))
    assert "StringNotEquals requires a value of type String but given Arn" in found


THROUGH_S3 = {"kms:ViaService": "s3.us-east-1.amazonaws.com"}


@pytest.mark.parametrize("who", [Who.JOB, Who.LOADER, Who.VENDOR, Who.READER, Who.CATALOG, Who.OPERATOR])
@pytest.mark.parametrize("encryption", ["SSE-S3", "SSE-KMS"])
def test_every_role_decrypts_with_earlier_keys(tmp_path: Path, who: Who, encryption: str) -> None:
    loaded = lake(tmp_path, {"encryption": encryption, "earlier_kms_key_arns": [EARLIER]})
    arns = replace(ARNS, key=KEY if encryption == "SSE-KMS" else None)
    documents = make_documents(loaded.spec, loaded.deployment, who, arns)
    root = {"Sid": "Root", "Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"},
            "Action": "kms:*", "Resource": "*"}  # fmt: skip
    rows = [("kms:Decrypt", THROUGH_S3, True), ("kms:GenerateDataKey", THROUGH_S3, False), ("kms:Decrypt", {}, False)]
    requests = [Request(action, EARLIER, dict(context)) for action, context, _ in rows]
    decisions = simulate(requests, Policies(documents, make_document([root])))
    assert [decision.allowed for decision in decisions] == [row[-1] for row in rows]
