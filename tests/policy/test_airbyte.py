"""Policies for destinations whose paths have variables, whose tables may have no schema, and that may delete.

Expected: the constant part of the path before its first variable bounds everything; what the vendor's own page says is
that of docs.airbyte.com/integrations/destinations/s3.
"""

from pathlib import Path
from typing import Any

import pytest

from lakewriter.policy.bucket import deny_control_objects, deny_replacement
from lakewriter.policy.role_documents import Who, make_documents
from lakewriter.policy.s3_statements import allow_loader
from lakewriter.policy.sources import allow_sources
from tests.policy.airbyte import airbyte, messages, table
from tests.policy.lakes import ARNS, BUCKET

WHOLE = [
    # bucket path, path format; what may be listed, the table's keys, the folder of its record, the control objects
    (
        "data",
        "${NAMESPACE}/${STREAM_NAME}/",
        ["data", "data/", "data/*"],
        "data/crm/users/*.*",
        "data/crm/users",
        "data",
    ),
    (
        "data/${NAMESPACE}",
        "${STREAM_NAME}/",
        ["data", "data/", "data/*"],
        "data/crm/users/*.*",
        "data/crm/users",
        "data",
    ),
    ("/data//raw/", "${YEAR}/", ["data/raw", "data/raw/", "data/raw/*"], "data/raw/*/*.*", "data/raw", "data/raw"),
    # a variable that goes on in a folder's name: "data/a_/" alone would hold nothing
    ("data/a_${NAMESPACE}", "${STREAM_NAME}/", ["data/a_*"], "data/a_crm/users/*.*", "data/a_crm/users", "data/a_"),
    ("data${YEAR}", "${STREAM_NAME}/", ["data*"], "data*/users/*.*", "", "data"),
    ("", "${NAMESPACE}/", None, "crm/*.*", "crm", ""),
    ("${NAMESPACE}", "${STREAM_NAME}/", None, "crm/users/*.*", "crm/users", ""),
    # the policy language has variables of its own
    ("we$rd", "a/", ["we${$}rd", "we${$}rd/", "we${$}rd/*"], "we${$}rd/a/*.*", "we${$}rd/a", "we${$}rd"),
]


@pytest.mark.parametrize(("path", "form", "listed", "written", "folder", "records"), WHOLE)
def test_constant_part_of_the_path(
    tmp_path: Path, path: str, form: str, listed: Any, written: str, folder: str, records: str
) -> None:
    spec = airbyte(tmp_path, s3_bucket_path=path, s3_path_format=form).spec
    listing, _, objects = allow_loader(spec, ARNS)
    control = f"{BUCKET}/{records}/_lakewriter" if records else f"{BUCKET}/_lakewriter"
    owners = f"{BUCKET}/{folder}/_lakewriter/owners/*" if folder else f"{BUCKET}/_lakewriter/owners/*"
    assert listing.get("Condition") == (listed and {"StringLike": {"s3:prefix": listed}})
    own = [f"{BUCKET}/{written}", owners, f"{control}/{spec.pipeline}/*", f"{control}/_writers/*"]
    assert objects["Resource"] == own
    assert deny_control_objects(spec, ARNS, roles=["r"])[0]["Resource"] == [f"{control}/*", f"{BUCKET}/*/_lakewriter/*"]


APPENDED = [
    # path format, tables; which objects nobody may replace
    ("${NAMESPACE}/${STREAM_NAME}/${YEAR}_", [table()], ["data/crm/users/*"]),
    ("${STREAM_NAME}/", [table(schema="")], ["data/users/*"]),
    ("${STREAM_NAME}_${YEAR}/", [table(), table("a*b")], ["data/users_*", "data/a${*}b_*"]),
    ("${NAMESPACE}/${STREAM_NAME}/", [table(), table("all", mode="overwrite")], ["data/crm/users/*"]),
    ("${STREAM_NAME}/", [table(mode="overwrite")], None),
    # the job replaces its records in data/_lakewriter/, at which such keys could lie
    ("${YEAR}/${STREAM_NAME}/", [table()], None),
    ("${YEAR}_${STREAM_NAME}/", [table()], None),
]


@pytest.mark.parametrize(("form", "tables", "kept"), APPENDED)
def test_what_is_appended_to_is_never_replaced(tmp_path: Path, form: str, tables: Any, kept: Any) -> None:
    spec = airbyte(tmp_path, s3_path_format=form, top={"tables": tables}).spec
    found = deny_replacement(spec, ARNS)
    assert [statement["Resource"] for statement in found] == ([[f"{BUCKET}/{key}" for key in kept]] if kept else [])


@pytest.mark.parametrize(
    ("path", "form", "kept"),
    # so many streams' keys do not fit: their folders stand for them, but never one that the records lie in
    [
        ("data", "${NAMESPACE}/${STREAM_NAME}/", [f"{BUCKET}/data/crm/*"]),
        ("data", "${STREAM_NAME}/", [f"{BUCKET}/data/stream_{n}/*" for n in range(300)]),
        ("", "${STREAM_NAME}/", [f"{BUCKET}/stream_{n}/*" for n in range(300)]),
        ("data/a_${NAMESPACE}", "${STREAM_NAME}/", [f"{BUCKET}/data/a_crm/*"]),
    ],
)
def test_many_streams(tmp_path: Path, path: str, form: str, kept: list[str]) -> None:
    tables = [table(f"stream_{n}") for n in range(300)]
    spec = airbyte(tmp_path, s3_bucket_path=path, s3_path_format=form, top={"tables": tables}).spec
    assert deny_replacement(spec, ARNS)[0]["Resource"] == kept


def test_documents_of_the_job(tmp_path: Path) -> None:
    lake = airbyte(tmp_path, top=messages(path=["s3://acme-landing/crm/", "s3a://other/m.jsonl.gz"]))
    assert list(make_documents(lake.spec, lake.deployment, Who.JOB, ARNS)) == ["S3", "Sources"]
    assert [(each["Sid"], each["Resource"]) for each in allow_sources(lake.spec, lake.deployment, ARNS)] == [
        ("ListSource1", ["arn:aws:s3:::acme-landing"]),
        ("ReadSource1", ["arn:aws:s3:::acme-landing/crm", "arn:aws:s3:::acme-landing/crm/*"]),
        ("ListSource2", ["arn:aws:s3:::other"]),
        ("ReadSource2", ["arn:aws:s3:::other/m.jsonl.gz", "arn:aws:s3:::other/m.jsonl.gz/*"]),
    ]


@pytest.mark.parametrize("kind", ["airbyte-s3", "heropixel-s3"])
def test_vendors_own_document(tmp_path: Path, kind: str) -> None:
    lake = airbyte(tmp_path, type=kind, top={"deployment": {"vendor_verbatim": True}})
    found = make_documents(lake.spec, lake.deployment, Who.VENDOR, ARNS)
    assert list(found) == ["S3", "Control"]
    (statement,) = found["S3"]["Statement"]
    assert statement == {
        "Sid": "AllowReadWriteInBucket",
        "Effect": "Allow",
        "Action": [
            "s3:PutObject", "s3:GetObject", "s3:DeleteObject", "s3:PutObjectAcl", "s3:ListBucket",
            "s3:ListBucketMultipartUploads", "s3:AbortMultipartUpload", "s3:GetBucketLocation",
        ],
        "Resource": ["arn:aws:s3:::acme-lake/*", "arn:aws:s3:::acme-lake"],
    }  # fmt: skip
