"""SQL that this machine runs over the tables of a pipeline: what it needs to know of them, and of itself."""

import sys

import pytest

from lakewriter.aws import Clients
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import EndpointUnreachableError, SpecInvalidError
from lakewriter.operate.queries import LastLoads
from lakewriter.operate.read_tables import run_statement
from lakewriter.spec.deployment import Deployment
from tests.dialects.files import lake

pytestmark = pytest.mark.usefixtures("bucket")


def run(folder, **destination):
    spec = load_spec(lake(folder, **destination))
    return run_statement(spec, Deployment(), None, LastLoads(), "SELECT 1 AS one", Clients(spec.access))


def test_without_duckdb(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(SpecInvalidError) as raised:
        run(tmp_path)
    assert str(raised.value) == (
        "SPEC_INVALID: no engine here reads the tables' files: DuckDB is not installed. DuckDB and its extensions "
        "come with pip install '.[sql]' in a clone, or 'FILE.whl[sql]' of a wheel; then call sql again."
    )


def test_what_only_a_person_knows(tmp_path, monkeypatch):
    monkeypatch.setattr("lakewriter.operate.read_tables.aws.find_account", lambda _: None)
    with pytest.raises(SpecInvalidError) as raised:
        run(tmp_path, table_format="ICEBERG", destination_prefix="postgres")
    assert raised.value.message == "sql needs <the AWS account's 12 digits>, which neither the file nor AWS says."
    assert raised.value.remedy.startswith("Give a secret as a reference such as ${env:NAME}, and the account as ")


def test_a_catalog_that_does_not_answer(tmp_path, monkeypatch):
    monkeypatch.setenv("CATALOG_SECRET", "secret")
    with pytest.raises(EndpointUnreachableError) as raised:
        run(
            tmp_path,
            table_format="ICEBERG",
            iceberg_catalog="SNOWFLAKE_OPEN_CATALOG",
            destination_prefix="postgres",
            catalog_endpoint="http://127.0.0.1:9/api/catalog",
            catalog_name="lake",
            client_id="me",
            client_secret="${env:CATALOG_SECRET}",
        )
    assert raised.value.message.startswith("DuckDB cannot open the tables: ")
    assert "secret" not in raised.value.message.lower().replace("lakewriter_catalog", "")
