"""The Open Catalog path: who is let in, what is told apart, and commits whose answer is lost."""

import json
from types import SimpleNamespace
from unittest.mock import Mock

import pyarrow as pa
import pytest
from pyiceberg.exceptions import RESTError, UnauthorizedError
from werkzeug import Response

from lakewriter.aws import Clients
from lakewriter.commit.iceberg.catalog_errors import check_region, explain_errors
from lakewriter.dialects.lakewriter_s3.settings import LakewriterS3
from lakewriter.dialects.supaflow.settings import S3DataLakeIceberg
from lakewriter.errors import (
    CatalogNotFoundError,
    CatalogRegionMismatchError,
    CatalogUnauthorizedError,
    EndpointUnreachableError,
    LakeError,
)
from lakewriter.spec.access import Access, SecretText
from lakewriter.spec.catalogs import PolarisService
from tests.iceberg.commits import Table, rest_service, strays
from tests.support.open_catalog import OpenCatalog

ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def catalog(aws, bucket):
    """Open Catalog's catalog over the bucket."""
    with OpenCatalog(aws, bucket) as catalog:
        yield catalog


REFUSED = [
    # what is wrong in the file, the error, a word of its remedy
    ({"client_id": "nobody"}, CatalogUnauthorizedError, "client_secret"),
    ({"warehouse": "sea"}, CatalogNotFoundError, "catalog_name"),
    ({"scope": "PRINCIPAL_ROLE:nobody"}, CatalogUnauthorizedError, "principal_role"),
    ({"scope": "PRINCIPAL_ROLE:reader"}, CatalogUnauthorizedError, "principal_role"),
    ({"uri": "http://127.0.0.1:1/api/catalog"}, EndpointUnreachableError, "catalog_endpoint"),
]


CHOSEN = [
    # the destination, what its file calls a REST catalog, and Iceberg in Glue
    (LakewriterS3, "catalog: open_catalog", "catalog: iceberg"),
    (S3DataLakeIceberg, "iceberg_catalog: SNOWFLAKE_OPEN_CATALOG", "iceberg_catalog: GLUE"),
]


@pytest.mark.parametrize(("destination", "chosen", "in_glue"), CHOSEN)
def test_remedies_name_the_catalog_as_the_file_does(destination, chosen, in_glue):
    access = Access(bucket="b", region="us-east-1", key_names=destination.key_names)
    service = PolarisService(
        uri="https://catalog.example.com", warehouse="lake", client_id="id",
        client_secret=SecretText.parse("${env:SECRET}"), scope="PRINCIPAL_ROLE:ALL",
    )  # fmt: skip
    for failure in (UnauthorizedError("no"), RESTError("no")):
        with pytest.raises(LakeError) as caught, explain_errors(service, Clients(access), "connect"):
            raise failure
        assert f"the catalog that {chosen} chooses" in caught.value.remedy
        assert "Snowflake Open Catalog" not in caught.value.remedy
    elsewhere = Mock(io=Mock(properties={"client.region": "eu-west-1"}))
    with pytest.raises(CatalogRegionMismatchError, match=f"a bucket in the catalog's region, or {in_glue}"):
        check_region(elsewhere, service, access)


@pytest.mark.parametrize(("wrong", "error", "word"), REFUSED)
def test_refused(catalog, wrong, error, word):
    table = Table(catalog.aws, catalog)
    service = rest_service(catalog, **wrong)
    table.action = table.action.model_copy(update={"service": service})
    with pytest.raises(error) as caught:
        table.ready("a", ROWS.schema)
    assert word in caught.value.remedy
    assert "top:secret" not in str(caught.value)


def test_catalog_chooses_the_location(catalog):
    table = Table(catalog.aws, catalog)
    found = table.intent("a", ROWS)
    table.publish(found, 1)
    assert found.files.at_hand[0].key == "open/db/t/data/part-a-00000.parquet"
    assert table.seen.location() == "s3://acme-lake/open/db/t/"
    assert table.seen.scan().to_arrow()["id"].to_pylist() == [1, 2]
    assert catalog.namespaces == {"db"}


def test_catalog_in_another_region(catalog):
    catalog.region = "eu-west-1"
    with pytest.raises(CatalogRegionMismatchError, match=r"'eu-west-1'.*'us-east-1'"):
        Table(catalog.aws, catalog).ready("a", ROWS.schema)


def test_token_expires_during_the_load(catalog):
    table = Table(catalog.aws, catalog)
    found = table.intent("a", ROWS)
    catalog.expire_tokens()
    table.publish(found, 1)
    assert len(table.seen.snapshots()) == 1


def test_no_catalog_turns_on_signing(catalog):
    """The library would sign with the default chain's credentials, for whoever the catalog is."""
    overrides = {"prefix": "lake", "rest.sigv4-enabled": "true", "rest.signing-region": "us-east-1"}
    catalog.failing["GET", "/v1/config"] = Response(json.dumps({"defaults": {}, "overrides": overrides}))
    table = Table(catalog.aws, catalog)
    table.publish(table.intent("a", ROWS), 1)
    # What reads the table here is the library itself.
    catalog.failing.clear()
    assert table.seen.scan().to_arrow()["id"].to_pylist() == [1, 2]


SIGNED_IN = [
    # what happens between two who open the catalog, and how often one signs in
    ("nothing", 1),
    ("the token expires", 2),
    ("the catalog refuses somebody", 2),
    ("a quarter of an hour passes", 2),
]


@pytest.mark.parametrize(("event", "times"), SIGNED_IN)
def test_those_who_open_the_catalog_share_a_sign_in(catalog, monkeypatch, event, times):
    now = [1000.0]
    monkeypatch.setattr("lakewriter.commit.iceberg.iceberg_catalogs.time", SimpleNamespace(monotonic=lambda: now[0]))
    table = Table(catalog.aws, catalog)
    found = table.intent("a", ROWS)
    match event:
        case "the token expires":
            catalog.expire_tokens()
        case "the catalog refuses somebody":
            catalog.foreign = [("GET", "/tables/t", Response("{}", 403))]
            with pytest.raises(CatalogUnauthorizedError):
                table.plan(ROWS.schema)
        case "a quarter of an hour passes":
            now[0] += 901
    table.publish(found, 1)
    asked = [path for _, path, _ in catalog.calls]
    # Whoever asks the catalog for credentials of the table's files has a sign-in of its own.
    assert asked.count("/v1/oauth/tokens") - 1 == times
    assert asked.count("/v1/config") - 1 == times - (event == "the token expires")


def test_a_changed_secret_is_used_at_once(catalog, monkeypatch):
    table = Table(catalog.aws, catalog)
    table.ready("a", ROWS.schema)
    monkeypatch.setenv("OPEN_CATALOG_SECRET", "another")
    with pytest.raises(CatalogUnauthorizedError):
        table.ready("a", ROWS.schema)


def test_a_catalog_that_overrides_the_scope(catalog):
    overrides = {"prefix": "lake", "scope": "PRINCIPAL_ROLE:writer"}
    catalog.failing["GET", "/v1/config"] = Response(json.dumps({"defaults": {}, "overrides": overrides}))
    Table(catalog.aws, catalog).ready("a", ROWS.schema)
    assert list(catalog.tokens.values()) == ["ALL", "writer"]


@pytest.mark.parametrize("fault", ["drop_commits", "fail_commits"])
@pytest.mark.parametrize("times", [1, 3])
def test_commit_without_a_clear_answer(catalog, fault, times):
    table = Table(catalog.aws, catalog)
    found = table.intent("a", ROWS)
    setattr(catalog, fault, times)
    table.publish(found, 1)
    assert len(table.seen.snapshots()) == 1
    assert strays(catalog.aws, table.seen) == set()
