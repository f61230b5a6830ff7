"""Which error a REST catalog's answer becomes, whether a retry helps, and what its remedy is about.

The texts of Polaris and of Snowflake are theirs; the statuses are those of the REST catalog's specification:
https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml
"""

import json

import pyarrow as pa
import pytest
from werkzeug.wrappers import Response

from lakewriter.commit.iceberg import rest_session
from lakewriter.errors import CatalogFailedError, LakeError
from lakewriter.spec.access import TRUSTED
from tests.iceberg.commits import Table, rest_service, strays
from tests.support.open_catalog import OpenCatalog

ROWS = pa.table({"id": [1, 2]})

TOKEN, CONFIG = ("POST", "/oauth/tokens"), ("GET", "/config")
LOAD, NAMESPACE, CREATE, COMMIT = (
    ("GET", "/tables/t"),
    ("POST", "/namespaces"),
    ("POST", "/tables"),
    ("POST", "/tables/t"),
)

HTML = b"<html><body>Please sign in</body></html>"
NO_RIGHT = "Principal 'client' with activated PrincipalRoles '[]' is not authorized for op CREATE_TABLE_DIRECT"
NO_LOCATION = "Invalid locations '[s3://other/db/t]' for identifier 'db.t': not in the list of allowed locations"
NO_STS = "Failed to get subscoped credentials: User: arn:aws:iam::1:user/x is not authorized to perform: sts:AssumeRole"
NO_REGION = "The bucket is in a different region than the catalog"
S3_REGION = "The bucket is in this region: eu-west-1. Please use this region to retry the request (Status Code: 301)"
NO_NETWORK = "Incoming request with IP/Token 192.0.2.1 is not allowed to access Snowflake."


def answer(status, said):
    """An answer: an error of the specification with this text, or the bytes as they are."""
    if isinstance(said, bytes):
        return Response(said, status, content_type="text/html")
    body = {"error": {"message": said, "type": "SomeException", "code": status}}
    return Response(json.dumps(body), status, content_type="application/json")


ANSWERS = [
    # the call, its answer, the error's code, whether a retry helps, a word of the remedy
    (TOKEN, 400, b'{"error": "invalid_scope"}', "CATALOG_UNAUTHORIZED", False, "principal_role"),
    (TOKEN, 400, b'{"error": "invalid_client"}', "CATALOG_UNAUTHORIZED", False, "client_secret"),
    (TOKEN, 401, b'{"error": "unauthorized_client"}', "CATALOG_UNAUTHORIZED", False, "client_secret"),
    (TOKEN, 401, HTML, "CATALOG_UNAUTHORIZED", False, "client_secret"),
    (TOKEN, 403, NO_NETWORK, "CATALOG_UNAUTHORIZED", False, "network policy"),
    (TOKEN, 404, HTML, "CATALOG_NOT_FOUND", False, "catalog_endpoint"),
    (TOKEN, 405, b"", "CATALOG_NOT_FOUND", False, "catalog_endpoint"),
    (TOKEN, 408, b"", "CATALOG_FAILED", True, "the same job id"),
    (TOKEN, 429, "Too many requests", "CATALOG_FAILED", True, "the same job id"),
    (TOKEN, 500, "oops", "CATALOG_FAILED", True, "the same job id"),
    (TOKEN, 502, HTML, "CATALOG_FAILED", True, "the same job id"),
    (TOKEN, 503, "Service unavailable in region us-east-1", "CATALOG_FAILED", True, "the same job id"),
    (TOKEN, 504, b"", "CATALOG_FAILED", True, "the same job id"),
    (TOKEN, 200, HTML, "CATALOG_FAILED", True, "a sign-in page"),
    (TOKEN, 200, b"", "CATALOG_FAILED", True, "a sign-in page"),
    (CONFIG, 400, "Please specify a warehouse", "CATALOG_NOT_FOUND", False, "catalog_name"),
    (CONFIG, 401, "Credentials are required", "CATALOG_UNAUTHORIZED", False, "client_secret"),
    (CONFIG, 403, NO_RIGHT, "CATALOG_UNAUTHORIZED", False, "principal_role"),
    (CONFIG, 404, "Unable to find warehouse lake", "CATALOG_NOT_FOUND", False, "catalog_name"),
    (CONFIG, 419, "expired", "CATALOG_FAILED", True, "the same job id"),
    (CONFIG, 429, "Too many requests", "CATALOG_FAILED", True, "the same job id"),
    (CONFIG, 500, HTML, "CATALOG_FAILED", True, "the same job id"),
    (CONFIG, 501, b"", "CATALOG_NOT_FOUND", False, "catalog_endpoint"),
    (CONFIG, 200, HTML, "CATALOG_FAILED", True, "a sign-in page"),
    (CONFIG, 200, b'{"defaults": 1, "overrides": 2}', "CATALOG_FAILED", True, "a sign-in page"),
    (LOAD, 400, "Namespace name is not valid", "SCHEMA_INCOMPATIBLE", False, "Change what the catalog names"),
    (LOAD, 401, "Credentials are required", "CATALOG_UNAUTHORIZED", False, "client_secret"),
    (LOAD, 403, NO_RIGHT, "CATALOG_UNAUTHORIZED", False, "principal_role"),
    (LOAD, 403, NO_STS, "CATALOG_UNAUTHORIZED", False, "external id"),
    (LOAD, 403, NO_REGION, "CATALOG_REGION_MISMATCH", False, "a bucket in the catalog's region"),
    (LOAD, 408, b"", "CATALOG_FAILED", True, "the same job id"),
    (LOAD, 419, "expired", "CATALOG_FAILED", True, "the same job id"),
    (LOAD, 429, "Too many requests", "CATALOG_FAILED", True, "the same job id"),
    (LOAD, 500, "oops", "CATALOG_FAILED", True, "the same job id"),
    (LOAD, 500, S3_REGION, "CATALOG_REGION_MISMATCH", False, "a bucket in the catalog's region"),
    (LOAD, 501, b"", "CATALOG_NOT_FOUND", False, "catalog_endpoint"),
    (LOAD, 502, HTML, "CATALOG_FAILED", True, "the same job id"),
    (LOAD, 503, b"", "CATALOG_FAILED", True, "the same job id"),
    (LOAD, 504, b"", "CATALOG_FAILED", True, "the same job id"),
    (LOAD, 200, HTML, "CATALOG_FAILED", True, "a sign-in page"),
    (LOAD, 200, b'{"metadata": {}, "metadata-location": 1}', "SCHEMA_INCOMPATIBLE", False, "Change what it names back"),
    (NAMESPACE, 403, NO_RIGHT, "CATALOG_UNAUTHORIZED", False, "principal_role"),
    (NAMESPACE, 500, "oops", "CATALOG_FAILED", True, "the same job id"),
    (CREATE, 400, "Malformed request: schema", "SCHEMA_INCOMPATIBLE", False, "Change what the catalog names"),
    (CREATE, 403, NO_RIGHT, "CATALOG_UNAUTHORIZED", False, "principal_role"),
    (CREATE, 403, NO_LOCATION, "CATALOG_UNAUTHORIZED", False, "allowed locations"),
    (CREATE, 403, NO_REGION, "CATALOG_REGION_MISMATCH", False, "iceberg_catalog: GLUE"),
    (CREATE, 422, "Unsupported type", "SCHEMA_INCOMPATIBLE", False, "Change what the catalog names"),
    (CREATE, 500, "oops", "CATALOG_FAILED", True, "the same job id"),
    (CREATE, 503, b"", "CATALOG_FAILED", True, "the same job id"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(rest_session, "RETRIES", 0)


@pytest.fixture
def catalog(aws, bucket):
    """Open Catalog's catalog over the bucket."""
    with OpenCatalog(aws, bucket) as catalog:
        yield catalog


@pytest.mark.one_in(6)
@pytest.mark.parametrize(("call", "status", "said", "code", "is_transient", "word"), ANSWERS)
def test_answers(catalog, call, status, said, code, is_transient, word):
    table = Table(catalog.aws, catalog)
    catalog.failing[call] = answer(status, said)
    with pytest.raises(LakeError) as caught:
        table.ready("a", ROWS.schema)
    error = caught.value
    assert (error.code, error.transient) == (code, is_transient), str(error)
    assert word in error.remedy
    assert "top:secret" not in str(error)
    catalog.failing.clear()
    table.ready("a", ROWS.schema)


COMMITS = [
    # the answer to a commit, and the error's code if the load cannot go on: an unclear one is read back and tried again
    (400, "Unknown update", "SCHEMA_INCOMPATIBLE"),
    (401, "Credentials are required", None),
    (403, NO_RIGHT, "CATALOG_UNAUTHORIZED"),
    (404, "Table does not exist: db.t", None),
    (408, b"", None),
    (409, "Requirement failed", None),
    (419, "expired", None),
    (422, "Unsupported", "SCHEMA_INCOMPATIBLE"),
    (429, "Too many requests", None),
    (500, "oops", None),
    (501, b"", "CATALOG_NOT_FOUND"),
    (502, HTML, None),
    (503, "Service unavailable", None),
    (504, b"", None),
    (200, HTML, None),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("status", "said", "code"), COMMITS)
def test_answers_to_a_commit(catalog, status, said, code):
    table = Table(catalog.aws, catalog)
    intent = table.intent("a", ROWS)
    catalog.foreign.append((*COMMIT, answer(status, said)))
    if code:
        with pytest.raises(LakeError) as caught:
            table.publish(intent, 1)
        assert caught.value.code == code
        assert table.seen.snapshots() == []
    table.publish(intent, 1)
    assert catalog.foreign == []
    assert len(table.seen.snapshots()) == 1
    assert strays(catalog.aws, table.seen) == set()


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_reads_of_a_busy_catalog_are_repeated(catalog, monkeypatch, status):
    monkeypatch.setattr(rest_session, "RETRIES", 3)
    table = Table(catalog.aws, catalog)
    for call in (CONFIG, LOAD):
        busy = answer(status, "busy")
        busy.headers["Retry-After"] = "0"
        catalog.foreign.append((*call, busy))
    table.ready("a", ROWS.schema)
    assert catalog.foreign == []


REDIRECTS = [
    # the call, the answer's status, what comes before and behind the call's own path, and whether it is followed
    (CONFIG, 302, "", "/", True),
    (CONFIG, 301, "/polaris", "", True),
    (CONFIG, 308, "/polaris", "/", True),
    (CONFIG, 302, "/console/login?from=", "", False),
    (LOAD, 302, "/polaris", "", True),
    (LOAD, 302, "", "-other", False),
    (COMMIT, 307, "/polaris", "", True),
    (COMMIT, 308, "", "/", True),
    (COMMIT, 302, "/polaris", "", False),
    (COMMIT, 303, "", "/", False),
    (COMMIT, 307, "", "-other", False),
]


@pytest.mark.parametrize(("call", "status", "before", "behind", "is_followed"), REDIRECTS)
def test_redirects_to_the_same_call_are_followed(catalog, call, status, before, behind, is_followed):
    table = Table(catalog.aws, catalog)
    intent = table.intent("a", ROWS)
    path = {CONFIG: "config", LOAD: "lake/namespaces/db/tables/t", COMMIT: "lake/namespaces/db/tables/t"}[call]
    target, query = f"{before}/api/catalog/v1/{path}{behind}", "?warehouse=lake" if call == CONFIG else ""
    location = f"{catalog.url.removesuffix('/api/catalog')}{target}{query}"
    catalog.foreign.append((*call, Response(b"", status, {"Location": location})))
    if is_followed or call == COMMIT:
        # A commit without an answer of its own is read back and tried again.
        table.publish(intent, 1)
        assert len(table.seen.snapshots()) == 1
    else:
        with pytest.raises(CatalogFailedError, match=f"HTTP {status} leads to "):
            table.publish(intent, 1)
    assert catalog.foreign == []
    answered = [path for _, path, status in catalog.calls if status == 200]
    assert (target.removeprefix("/api/catalog") in answered) == is_followed


def test_long_pages_are_cut_in_messages(catalog):
    catalog.failing[CONFIG] = answer(500, b"<html>" + b"<p>\n" * 10_000)
    with pytest.raises(CatalogFailedError) as caught:
        Table(catalog.aws, catalog).ready("a", ROWS.schema)
    assert len(caught.value.message) < 700
    assert "\n" not in caught.value.message


SILENT = [
    # the endpoint, or None for a catalog that has answered and does not any more
    ("http://127.0.0.1:1/api/catalog", "ENDPOINT_UNREACHABLE"),
    ("http://catalog.invalid/api/catalog", "ENDPOINT_UNREACHABLE"),
    (None, "TIMEOUT"),
]


@pytest.mark.parametrize(("uri", "code"), SILENT)
def test_silence(aws, bucket, uri, code, monkeypatch):
    monkeypatch.setenv(TRUSTED, "http://catalog.invalid")
    with OpenCatalog(aws, bucket) as catalog:
        table = Table(aws, catalog)
        if uri is None:
            table.ready("a", ROWS.schema)
        else:
            table.action = table.action.model_copy(update={"service": rest_service(catalog, uri=uri)})
    with pytest.raises(LakeError) as caught:
        table.ready("a", ROWS.schema)
    assert caught.value.code == code
