"""The quick answers of S3 and Glue say what moto says behind Flask."""

import io
import json
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest
from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.datastructures import Headers
from werkzeug.test import EnvironBuilder, run_wsgi_app

from tests.support.call import Answer, read_call
from tests.support.quick_moto import ask_directly, ask_quickly
from tests.support.server import StrictAws

SCOPE = "AWS4-HMAC-SHA256 Credential=testing/20260101/us-east-1/{}/aws4_request, SignedHeaders=host, Signature=0"
OF_A_REQUEST = {"x-amz-request-id", "x-amz-id-2", "x-amzn-requestid", "access-control-allow-origin", "server", "date"}


@pytest.fixture(autouse=True)
def objects(aws: StrictAws, bucket: str) -> None:
    s3, glue = aws.client("s3"), aws.client("glue")
    for key in ("a/1", "a/2 ü&+<", "a/b/3", "c"):
        s3.put_object(Bucket=bucket, Key=key, Body=b"x" * 9, ContentType="text/csv", Metadata={"made-by": "p"})
    s3.put_object(Bucket=bucket, Key="typeless", Body=b"", ChecksumAlgorithm="SHA256")
    s3.put_object(Bucket=bucket, Key="cold", Body=b"x", StorageClass="GLACIER")
    s3.create_bucket(Bucket="versions")
    s3.put_bucket_versioning(Bucket="versions", VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket="versions", Key="a", Body=b"1")
    glue.create_database(DatabaseInput={"Name": "d"})
    glue.create_table(DatabaseName="d", TableInput={"Name": "t", "Parameters": {"a": "b"}})


def ask_all(service: str, method: str, target: str, headers: dict[str, str], body: bytes) -> list[Answer | None]:
    """Return the quick answer, the direct one and that of Flask."""
    path, _, query = target.partition("?")
    signed = {"Authorization": SCOPE.format(service)} | headers
    builder = EnvironBuilder(method=method, path=path, query_string=query, headers=Headers(signed), data=body)
    environ = builder.get_environ() | {"RAW_URI": target, "REQUEST_URI": target}
    call = read_call(dict(environ))

    def again() -> dict[str, Any]:
        return environ | {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}

    quick, direct = ask_quickly(call), ask_directly(call, again())
    app: Any = create_backend_app("glue" if service == "glue" else "s3")
    parts, status, answered = run_wsgi_app(app, again(), buffered=True)
    return [quick, direct, Answer(int(status.split()[0]), tuple(answered), b"".join(parts))]


def read(answer: Answer) -> tuple[int, dict[str, str], Any]:
    """Return what a client reads of it, whatever the order of XML and the ids of a request."""
    headers = {name.lower(): value for name, value in answer.headers if name.lower() not in OF_A_REQUEST}
    is_xml = answer.body.startswith(b"<?xml") or answer.body.startswith(b"<")
    if not is_xml:
        return answer.status, headers, answer.body
    headers.pop("content-length")
    tree = ElementTree.fromstring(answer.body)
    leaves = [(each.tag.rpartition("}")[2], each.text or "") for each in tree.iter() if not len(each)]
    return answer.status, headers, sorted(pair for pair in leaves if pair[0] not in {"RequestId", "HostId"})


@pytest.mark.parametrize(
    ("method", "target", "headers", "is_quick"),
    [
        ("GET", "/acme-lake/a/1", {}, True),
        ("GET", "/acme-lake/a/1", {"x-amz-checksum-mode": "ENABLED"}, True),
        ("GET", "/acme-lake/a/2%20%C3%BC%26%2B%3C", {}, True),
        ("GET", "/acme-lake/typeless", {"x-amz-checksum-mode": "ENABLED"}, True),
        ("HEAD", "/acme-lake/typeless", {"x-amz-checksum-mode": "ENABLED"}, True),
        ("HEAD", "/acme-lake/a/1", {}, True),
        ("GET", "/acme-lake/a/1", {"Range": "bytes=2-4"}, False),
        ("GET", "/acme-lake/a/1", {"Range": "bytes=20-"}, False),
        ("GET", "/acme-lake/a/1", {"If-Match": '"0"'}, False),
        ("GET", "/acme-lake/none", {}, False),
        ("HEAD", "/acme-lake/none", {}, False),
        ("GET", "/acme-lake/cold", {}, False),
        ("HEAD", "/acme-lake/cold", {}, False),
        ("GET", "/versions/a", {}, False),
        ("GET", "/no-such-bucket/a", {}, False),
        ("GET", "/acme-lake/a/1?tagging", {}, False),
        ("HEAD", "/acme-lake", {}, False),
        ("GET", "/acme-lake?list-type=2", {}, True),
        ("GET", "/acme-lake?list-type=2&prefix=a%2F&encoding-type=url", {}, True),
        ("GET", "/acme-lake?list-type=2&prefix=a%2F2%20%C3%BC%26&encoding-type=url", {}, True),
        ("GET", "/acme-lake?list-type=2&prefix=a/&delimiter=%2F", {}, True),
        ("GET", "/acme-lake?list-type=2&prefix=none/&max-keys=1", {}, True),
        ("GET", "/acme-lake?list-type=2&start-after=a%2F1", {}, True),
        ("GET", "/acme-lake?list-type=2&fetch-owner=true", {}, False),
        ("GET", "/acme-lake?list-type=2&continuation-token=", {}, False),
        ("GET", "/acme-lake?prefix=a", {}, False),
        ("GET", "/acme-lake?location", {}, False),
        ("GET", "/no-such-bucket?list-type=2", {}, False),
        ("PUT", "/acme-lake/a/1", {"If-None-Match": "*"}, False),
        ("PUT", "/acme-lake/a/1", {"x-amz-meta-one": "1"}, False),
        ("DELETE", "/acme-lake/none", {}, False),
    ],
)
def test_s3(method: str, target: str, headers: dict[str, str], is_quick: bool) -> None:
    quick, direct, behind_flask = ask_all("s3", method, target, headers, b"new" if method == "PUT" else b"")
    assert direct is not None
    assert behind_flask is not None
    seen, expected = read(direct), read(behind_flask)
    if method == "PUT":
        # The objects are made one after the other.
        assert seen[1].keys() == expected[1].keys()
        for _, headers, _ in (seen, expected):
            headers.pop("last-modified", None)
    assert seen == expected
    assert (quick is not None) == is_quick
    assert quick is None or read(quick) == read(behind_flask)


def test_pages_of_a_listing(aws: StrictAws, bucket: str) -> None:
    """A token of one page opens the next; moto keeps those of all three."""
    pages = aws.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, PaginationConfig={"PageSize": 2})
    keys = [[each["Key"] for each in page["Contents"]] for page in pages]
    assert keys == [["a/1", "a/2 ü&+<"], ["a/b/3", "c"], ["cold", "typeless"]]


@pytest.mark.parametrize(
    ("operation", "document"),
    [
        ("GetTable", {"DatabaseName": "d", "Name": "t"}),
        ("GetTable", {"DatabaseName": "d", "Name": "none"}),
        ("GetTables", {"DatabaseName": "d"}),
        ("GetDatabase", {"Name": "none"}),
        ("CreateDatabase", {"DatabaseInput": {"Name": "d"}}),
    ],
)
def test_glue(operation: str, document: dict[str, Any]) -> None:
    headers = {"X-Amz-Target": f"AWSGlue.{operation}", "Content-Type": "application/x-amz-json-1.1"}
    quick, direct, behind_flask = ask_all("glue", "POST", "/", headers, json.dumps(document).encode())
    assert quick is None
    assert direct is not None
    assert behind_flask is not None
    assert read(direct) == read(behind_flask)
