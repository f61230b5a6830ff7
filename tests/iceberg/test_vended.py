"""Credentials that Open Catalog gives out for a table's files: when they are used, and by whom they are renewed."""

import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from lakewriter.aws.vended import Vended, VendedCredentials
from lakewriter.commit.iceberg.catalog_vendor import find_vendor
from lakewriter.dialects.lakewriter_s3.settings import LakewriterS3
from lakewriter.errors import CatalogUnauthorizedError, S3AccessDeniedError
from lakewriter.spec.access import KeyNames
from tests.iceberg.commits import ACCESS, Table
from tests.support.narrow import need
from tests.support.open_catalog import CLIENT_SECRET, OpenCatalog

ROWS = pa.table({"id": [1, 2]})
ROLE = "arn:aws:iam::123456789012:role/LakeWriter"


@pytest.fixture
def catalog(aws, bucket):
    """Open Catalog's catalog over the bucket."""
    with OpenCatalog(aws, bucket) as catalog:
        yield catalog


@pytest.mark.one_in(2)
@pytest.mark.parametrize("told_by", ["config", "storage-credentials"])
@pytest.mark.parametrize("tells_end", [True, False])
def test_metadata_by_vended_credentials(catalog, told_by, tells_end):
    vending = catalog.vend(told_by=told_by, tells_end=tells_end)
    table = Table(catalog.aws, catalog)
    table.publish(table.intent("a", ROWS), 1)
    table.publish(table.intent("b", ROWS, committed=1), 2)
    assert (len(vending.used), vending.refused) == (1, [])
    assert catalog.tables["db", "t"].metadata.snapshots[-1].summary["total-records"] == "4"


def test_credentials_are_renewed_before_their_end(catalog):
    vending = catalog.vend(lifetime=timedelta(seconds=50))
    table = Table(catalog.aws, catalog)
    table.publish(table.intent("a", ROWS), 1)
    assert len(vending.used) > 1
    assert vending.refused == []


def test_a_role_of_lake_yaml_comes_first(catalog):
    catalog.aws.role(ROLE)
    vending = catalog.vend()
    table = Table(catalog.aws, catalog, role_arn=ROLE)
    with pytest.raises(S3AccessDeniedError):
        table.publish(table.intent("a", ROWS), 1)
    assert vending.keys == {}


def test_a_catalog_that_vends_nothing(catalog):
    table = Table(catalog.aws, catalog)
    table.publish(table.intent("a", ROWS), 1)
    assert len(table.seen.snapshots()) == 1


def test_vendor_has_no_secret(catalog):
    vending = catalog.vend()
    table = Table(catalog.aws, catalog)
    vendor = find_vendor(table.ready("a", ROWS.schema)[0], ACCESS)
    shipped = pickle.dumps(vendor)
    assert pickle.loads(shipped)().access_key in vending.keys
    assert not [text for text in (*vending.secrets, CLIENT_SECRET) if text.encode() in shipped]


def test_vended_shows_no_secret():
    assert repr(Vended("id", "secret", "token")) == "Vended(access_key='id', expires=None)"


def given(*seconds: int) -> Callable[[], Vended | None]:
    """A vendor whose credentials end so many seconds from now, one after the other; then it gives none."""
    rest = list(seconds)
    return lambda: Vended("id", "s", "t", datetime.now(UTC) + timedelta(seconds=rest.pop(0))) if rest else None


RENEWALS = [
    # seconds that each lasts, uses, how many are asked for
    ([3600], 3, 1),
    ([240, 3600], 3, 2),
    ([240], 3, 1),
]


@pytest.mark.parametrize(("seconds", "uses", "asked"), RENEWALS)
def test_renewed_five_minutes_before(seconds, uses, asked):
    calls: list[Vended] = []
    vendor = given(*seconds)

    def ask() -> Vended | None:
        vended = vendor()
        calls.extend([vended] if vended else [])
        return vended

    credentials = need(VendedCredentials(ask, KeyNames()).load())
    for _ in range(uses):
        assert credentials.get_frozen_credentials().access_key == "id"
    assert len(calls) == asked


def test_nothing_new_at_the_end():
    credentials = need(VendedCredentials(given(30), LakewriterS3.key_names).load())
    with pytest.raises(CatalogUnauthorizedError, match="vends none now") as caught:
        credentials.get_frozen_credentials()
    assert caught.value.remedy == (
        "Let the catalog vend credentials again, or give role_arn, or access_key_id with its secret, in lake.yaml."
    )


def test_nothing_from_the_start():
    assert VendedCredentials(given(), KeyNames()).load() is None
