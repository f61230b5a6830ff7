"""SQL that this machine runs over the tables of a pipeline: what it needs to know of them, and of itself."""

import json
import re
import sys

import pytest
import yaml

from lakewriter.aws import Clients
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import EndpointUnreachableError, SpecInvalidError
from lakewriter.operate.queries import LastLoads, write_views
from lakewriter.operate.read_tables import run_statement
from lakewriter.operate.sql_text import Engine
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


@pytest.mark.parametrize(("codec", "is_read"), [("no compression", True), ("deflate", True), ("snappy", True),
                                                ("zstandard", False), ("bzip2", False), ("xz", False)])  # fmt: skip
def test_codecs_of_avro(tmp_path, codec, is_read):
    """Asked of DuckDB 1.5: of the last three its reader says that the header has an unknown codec."""
    levels = {"deflate": 5, "xz": 5, "zstandard": 3}
    settings = {"codec": codec, **({"compression_level": levels[codec]} if codec in levels else {})}
    catalog = tmp_path / "catalog.json"
    stream = {"name": "users", "namespace": "public", "json_schema": {"type": "object", "properties": {}}}
    sync = {"sync_mode": "full_refresh", "destination_sync_mode": "append"}
    catalog.write_text(json.dumps({"streams": [{"stream": stream, **sync}]}), "utf-8")
    (tmp_path / "messages.jsonl").write_text("", "utf-8")
    destination = {"type": "airbyte-s3", "s3_bucket_name": "bucket", "s3_bucket_path": "p",
                   "s3_bucket_region": "us-east-1",
                   "format": {"format_type": "Avro", "compression_codec": settings}}  # fmt: skip
    source = {"messages": "messages.jsonl", "catalog": "catalog.json"}
    (tmp_path / "lake.yaml").write_text(
        yaml.safe_dump({"pipeline": "p", "destination": destination, "source": source}), "utf-8"
    )
    spec = load_spec(tmp_path / "lake.yaml")
    _, view = write_views(spec, Engine.DUCKDB, LastLoads())
    assert view.sql.startswith("CREATE OR REPLACE VIEW") == is_read
    if is_read:
        return
    said = f"DuckDB reads no Avro files with the codec {codec!r}, which public.users has."
    assert view.sql.startswith(f"-- {said} Spark reads them;")
    with pytest.raises(SpecInvalidError, match=re.escape(said)):
        run_statement(spec, Deployment(), None, LastLoads(), "SELECT 1 AS one", Clients(spec.access))
