"""Answers with status 200 that are not the catalog's own."""

import pyarrow as pa
import pytest
from werkzeug.wrappers import Response

from lakewriter.errors import CatalogFailedError
from tests.iceberg.commits import Table, strays
from tests.support.open_catalog import OpenCatalog

ROWS = pa.table({"id": [1, 2]})
BODIES = [b"<html><body>Please sign in</body></html>", b'{"status": "ok"}', b"[]", b""]


@pytest.fixture
def catalog(aws, bucket):
    """Open Catalog's catalog over the bucket."""
    with OpenCatalog(aws, bucket) as catalog:
        yield catalog


READY = [
    # method, the path's end: what a load asks before it writes
    ("POST", "/oauth/tokens"),
    ("GET", "/config"),
    ("GET", "/tables/t"),
    ("GET", "/namespaces/db"),
    ("POST", "/namespaces"),
    ("POST", "/tables"),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize(("method", "path"), READY)
def test_before_the_load(catalog, method, path, body):
    catalog.foreign.append((method, path, Response(body, 200, content_type="text/html")))
    with pytest.raises(CatalogFailedError, match="something else answered in the catalog's place"):
        Table(catalog.aws, catalog).ready("a", ROWS.schema)
    assert catalog.foreign == []
    Table(catalog.aws, catalog).ready("a", ROWS.schema)


@pytest.mark.parametrize("body", BODIES)
def test_of_the_commit(catalog, body):
    """It is unclear: the table is read again, and the commit tried anew."""
    table = Table(catalog.aws, catalog)
    found = table.intent("a", ROWS)
    catalog.foreign.append(("POST", "/tables/t", Response(body, 200, content_type="text/html")))
    table.publish(found, 1)
    assert catalog.foreign == []
    assert table.seen.scan().to_arrow().num_rows == 2
    assert len(table.seen.snapshots()) == 1
    assert strays(catalog.aws, table.seen) == set()
