"""The entries of the vendor's troubleshooting page on Iceberg, each told apart with its remedy."""

import pyarrow as pa
import pytest

from lakewriter.spec.catalogs import GlueService, IcebergCatalog
from tests.doctor.pipeline import checked, spec, statuses
from tests.iceberg.commits import Table, rest_service
from tests.support.open_catalog import OpenCatalog
from tests.support.server import StrictAws
from tests.support.sign_ins import SIGN_INS

TABLE = "iceberg table nyc_public.flights"


@pytest.fixture
def catalog(aws: StrictAws, bucket: str):
    """Open Catalog's catalog over the bucket."""
    with OpenCatalog(aws, bucket) as catalog:
        yield catalog


def iceberg(service):
    return spec().model_copy(update={"catalog": IcebergCatalog(service=service)})


def test_glue(aws: StrictAws, bucket: str) -> None:
    findings = checked(iceberg(GlueService()))
    assert statuses(findings, "failed") == []
    assert (findings["glue catalog"].status, findings[TABLE].status) == ("ok", "ok")


# Iceberg: Glue catalog 403 Forbidden
def test_glue_catalog_denied(aws: StrictAws, bucket: str) -> None:
    aws.deny("glue:GetCatalog")
    findings = checked(iceberg(GlueService()))
    assert statuses(findings, "failed") == []
    found = findings["glue catalog"]
    assert (found.status, found.code) == ("warning", "GLUE_ACCESS_DENIED")
    assert "glue:GetCatalog and glue:GetCatalogs" in found.remedy


@pytest.mark.parametrize(("action", "probe"), [("GetTable", TABLE), ("UpdateTable", "glue write nyc_public")])
def test_glue_action_denied(aws: StrictAws, bucket: str, action: str, probe: str) -> None:
    aws.deny(f"glue:{action}")
    found = checked(iceberg(GlueService()))[probe]
    assert (found.status, found.code) == ("failed", "GLUE_ACCESS_DENIED")


def test_open_catalog(catalog: OpenCatalog) -> None:
    findings = checked(iceberg(rest_service(catalog)))
    assert statuses(findings, "failed") == []
    assert findings["iceberg catalog"].message == f"catalog 'lake' at {catalog.url} lets the job in."
    assert not [name for name in findings if name.startswith("glue")]


@pytest.mark.parametrize("sign_in", SIGN_INS)
def test_each_sign_in(aws: StrictAws, bucket: str, sign_in: str) -> None:
    with SIGN_INS[sign_in](aws, bucket) as catalog:
        findings = checked(iceberg(rest_service(catalog)))
        assert statuses(findings, "failed") == []
        assert findings["iceberg catalog"].message.endswith(f"at {catalog.url} lets the job in.")
        assert bool([name for name in findings if name.startswith("glue")]) is (sign_in == "glue_rest")


# Iceberg: Snowflake Open Catalog authentication failed
WRONG = [
    # what is wrong, the code, a word of the remedy
    ({"client_id": "nobody"}, "CATALOG_UNAUTHORIZED", "rotated or revoked"),
    ({"warehouse": "sea"}, "CATALOG_NOT_FOUND", "catalog_name"),
    ({"scope": "PRINCIPAL_ROLE:nobody"}, "CATALOG_UNAUTHORIZED", "PRINCIPAL_ROLE:nobody"),
    ({"uri": "http://127.0.0.1:1"}, "ENDPOINT_UNREACHABLE", "catalog_endpoint"),
]


@pytest.mark.parametrize(("wrong", "code", "word"), WRONG)
def test_open_catalog_refuses(catalog: OpenCatalog, wrong: dict[str, str], code: str, word: str) -> None:
    findings = checked(iceberg(rest_service(catalog, **wrong)))
    found = findings["iceberg catalog"]
    assert (found.status, found.code) == ("failed", code)
    assert word in found.remedy
    assert findings[TABLE].status == "skipped"


LOCATIONS = [
    # the catalog's base location, the folders that the roles and Snowflake's volume have, how the table is judged
    ("open", (), "warning"),
    ("open", ("open",), "ok"),
    ("open", ("",), "ok"),
    ("open", ("ope",), "warning"),
    ("data", (), "ok"),
    ("data/inside", (), "ok"),
]


@pytest.mark.parametrize(("base", "roots", "status"), LOCATIONS)
def test_location_of_a_table(catalog: OpenCatalog, base: str, roots: tuple[str, ...], status: str) -> None:
    catalog.base = base
    table = Table(catalog.aws, catalog)
    table.action = table.action.model_copy(update={"namespace": "nyc_public", "table": "flights"})
    table.ready("a", pa.schema([("id", pa.int64())]))
    access = spec().access.model_copy(update={"prefix": "data"})
    found = checked(iceberg(rest_service(catalog)).model_copy(update={"roots": roots, "access": access}))[TABLE]
    assert (found.status, f"/{base}/nyc_public/flights" in found.message) == (status, True)
    assert ("destination.catalog_base_location" in found.remedy) is (status == "warning")


def test_snowflake_is_named_only_where_it_has_a_volume(aws: StrictAws, bucket: str) -> None:
    with SIGN_INS["token"](aws, bucket) as catalog:
        table = Table(aws, catalog)
        table.action = table.action.model_copy(update={"namespace": "nyc_public", "table": "flights"})
        table.ready("a", pa.schema([("id", pa.int64())]))
        found = checked(iceberg(rest_service(catalog)))[TABLE]
    assert (found.status, "nowflake" in found.message + found.remedy) == ("warning", False)


# Iceberg: Region mismatch with Snowflake Open Catalog
def test_region_mismatch(catalog: OpenCatalog) -> None:
    table = Table(catalog.aws, catalog)
    table.action = table.action.model_copy(update={"namespace": "nyc_public", "table": "flights"})
    table.ready("a", pa.schema([("id", pa.int64())]))
    catalog.region = "eu-west-1"
    found = checked(iceberg(rest_service(catalog)))[TABLE]
    assert (found.status, found.code) == ("failed", "CATALOG_REGION_MISMATCH")
    assert "in the catalog's region" in found.remedy
