"""Each way to sign in to an Iceberg REST catalog: loads, renewed credentials, and what is refused."""

import pickle
from types import SimpleNamespace

import pyarrow as pa
import pytest
from werkzeug import Response

from lakewriter.aws import Clients
from lakewriter.commit.iceberg.catalog_vendor import find_vendor
from lakewriter.errors import CatalogFailedError, CatalogUnauthorizedError
from lakewriter.records.changes import parse_intent
from lakewriter.spec.catalogs import SignedService
from tests.iceberg.commits import Table, strays
from tests.support.narrow import need
from tests.support.s3_tables import S3TablesCatalog
from tests.support.sign_ins import SIGN_INS, GlueCatalog
from tests.support.signed import SignedCatalog

ROWS = pa.table({"id": [1, 2]})
ROLE = "arn:aws:iam::123456789012:role/LakeWriter"


@pytest.fixture(params=SIGN_INS)
def catalog(request, aws, bucket):
    """A catalog of each sign-in."""
    with SIGN_INS[request.param](aws, bucket) as catalog:
        yield catalog


@pytest.fixture(params=[SignedCatalog, GlueCatalog, S3TablesCatalog])
def signed(request, aws, bucket):
    """A catalog of each kind that takes signatures alone."""
    with request.param(aws, bucket) as catalog:
        yield catalog


def test_two_loads_and_a_lost_answer(catalog):
    table = Table(catalog.aws, catalog)
    table.publish(table.intent("a", ROWS), 1)
    second = table.intent("b", pa.table({"id": [3], "more": ["x"]}), committed=1)
    catalog.drop_commits = 1
    table.publish(second, 2)
    table.publish(second, 2)
    assert sorted(row["id"] for row in table.seen.scan().to_arrow().to_pylist()) == [1, 2, 3]
    assert len(table.seen.snapshots()) == 2
    assert strays(catalog.aws, table.seen) == set()
    place = f"s3://acme-lake/{'data/production' if isinstance(catalog, GlueCatalog) else 'open'}/db/t"
    if isinstance(catalog, S3TablesCatalog):
        (place,) = (f"s3://{bucket}" for bucket in catalog.buckets)
    assert table.seen.location().rstrip("/") == place


def test_another_process_ends_a_load_by_its_intent(catalog):
    """The intent names the catalog and how to sign in, and has no secret in it."""
    table = Table(catalog.aws, catalog)
    body = table.intent("a", ROWS).model_dump_json().encode()
    table.publish(parse_intent("intent.json", body), 1)
    assert table.seen.scan().to_arrow()["id"].to_pylist() == [1, 2]
    assert catalog.secret[1].encode() not in body


def test_vended_credentials(catalog):
    """They are for files alone: the catalog's requests are signed with the job's own."""
    table = Table(catalog.aws, catalog)
    table.ready("a", ROWS.schema)
    if not table.action.service.vends_credentials:
        assert find_vendor(table.action, table.clients.access) is None
        return
    vending = catalog.vend()
    vending.root = table.seen.location()
    table.publish(table.intent("a", ROWS), 1)
    assert (len(vending.used), vending.refused) == (1, [])
    assert set(getattr(catalog, "keys", ["testing"])) == {"testing"}
    vendor = need(find_vendor(table.action, table.clients.access))
    assert need(pickle.loads(pickle.dumps(vendor))()).access_key in vending.keys


def test_the_roles_credentials_sign_and_are_renewed(signed):
    """The SDK renews a session that ends within ten minutes: here for each signature."""
    signed.aws.role(ROLE)
    signed.aws.session_seconds(300)
    table = Table(signed.aws, signed, role_arn=ROLE)
    table.publish(table.intent("a", ROWS), 1)
    assert len(set(signed.keys)) > 2
    assert set(signed.keys) <= signed.aws.sessions


WRONG = [
    # what the file says, a word of the catalog's refusal, a word of the remedy
    ({"signing_name": "s3tables"}, "should be scoped to us-east-1/execute-api", "signing_name 's3tables'"),
]


@pytest.mark.parametrize(("wrong", "said", "word"), WRONG)
def test_refused_signatures(aws, bucket, wrong, said, word):
    with SignedCatalog(aws, bucket) as catalog:
        table = Table(aws, catalog)
        service = catalog.make_service(**wrong)
        assert isinstance(service, SignedService)
        table.action = table.action.model_copy(update={"service": service})
        with pytest.raises(CatalogUnauthorizedError, match=said) as caught:
            table.ready("a", ROWS.schema)
        assert word in caught.value.remedy


def test_the_whole_request_is_signed(signed, monkeypatch):
    """The catalogs of tests take no signature of another request."""
    sign = Clients.sign

    def sign_another(clients, service, method, url, headers, body):
        return sign(clients, service, method, f"{url}&more=1", headers, body)

    monkeypatch.setattr(Clients, "sign", sign_another)
    with pytest.raises(CatalogUnauthorizedError, match="does not match"):
        Table(signed.aws, signed).ready("a", ROWS.schema)


@pytest.mark.parametrize("name", ["oauth", "token", "sigv4"])
def test_nothing_gets_in_without_its_sign_in(aws, bucket, name):
    with SIGN_INS[name](aws, bucket) as catalog, SIGN_INS["none"](aws, bucket) as plain:
        table = Table(aws, catalog)
        service = plain.make_service(uri=catalog.url)
        table.action = table.action.model_copy(update={"service": service})
        with pytest.raises(CatalogUnauthorizedError) as caught:
            table.ready("a", ROWS.schema)
        assert "set auth to oauth, sigv4 or token" in caught.value.remedy


def test_glue_asks_iam_for_each_request(aws, bucket):
    with GlueCatalog(aws, bucket) as catalog:
        aws.deny("glue:UpdateTable")
        table = Table(aws, catalog)
        found = table.intent("a", ROWS)
        with pytest.raises(CatalogUnauthorizedError, match="not authorized to perform: glue:UpdateTable") as caught:
            table.publish(found, 1)
        assert "'lakewriter policy'" in caught.value.remedy
        aws.allow_everything()
        table.publish(found, 1)
    asked = {action for action, _, _ in aws.calls if action.startswith("glue:")}
    assert asked == {f"glue:{name}" for name in (
        "GetCatalog", "GetDatabase", "CreateDatabase", "GetTable", "CreateTable", "UpdateTable",
    )}  # fmt: skip


def throttle() -> Response:
    """What Glue answers where requests are too many: https://github.com/apache/iceberg/pull/17710"""
    return Response('{"message":"Rate exceeded"}', 400, {"x-amzn-ErrorType": "ThrottlingException"})


THROTTLED = [
    ("GET", "/config"),
    ("GET", "/tables/t"),
    ("POST", "/namespaces"),
    ("POST", "/tables"),
    ("POST", "/tables/t"),
]


def test_throttled_requests_are_sent_again(signed, monkeypatch):
    pauses: list[float] = []
    # Of this module alone: threads of other tests sleep, too.
    monkeypatch.setattr("lakewriter.commit.iceberg.rest_session.time", SimpleNamespace(sleep=pauses.append))
    signed.foreign = [(method, path, throttle()) for method, path in THROTTLED]
    table = Table(signed.aws, signed)
    table.publish(table.intent("a", ROWS), 1)
    assert (signed.foreign, pauses) == ([], [0.5] * len(THROTTLED))
    assert len(table.seen.snapshots()) == 1


def test_a_catalog_that_throttles_on_is_busy(signed, monkeypatch):
    monkeypatch.setattr("lakewriter.commit.iceberg.rest_session.time", SimpleNamespace(sleep=lambda _: None))
    table = Table(signed.aws, signed)
    signed.failing["GET", "/tables/t"] = throttle()
    with pytest.raises(CatalogFailedError, match="HTTP 429") as caught:
        table.ready("a", ROWS.schema)
    assert caught.value.transient
