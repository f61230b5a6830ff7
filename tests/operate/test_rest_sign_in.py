"""How each engine signs in to an Iceberg REST catalog, as its own page has it.

https://iceberg.apache.org/docs/latest/configuration/, https://trino.io/docs/current/object-storage/metastores.html,
https://duckdb.org/docs/stable/core_extensions/iceberg/iceberg_rest_catalogs
"""

import pytest
import yaml

from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.operate.queries import write_queries
from lakewriter.operate.rest_sign_in import describe_unsigned_by_duckdb, find_sign_in
from lakewriter.operate.sql_text import Engine
from lakewriter.spec.access import SecretText
from lakewriter.spec.catalogs import (
    GlueRestService,
    OAuthService,
    OpenService,
    S3TablesService,
    SignedService,
    TokenService,
)

URI = "https://catalog.example/iceberg"
GLUE = "https://glue.us-east-1.amazonaws.com/iceberg"
S3_TABLES = "https://s3tables.us-east-1.amazonaws.com/iceberg"
SECRET = SecretText("${env:SECRET}")
TRINO = "iceberg.rest-catalog"

SIGN_INS = [
    # the catalog, Spark's settings, Trino's, and the options of DuckDB's secret and of its ATTACH
    (
        OAuthService(uri=URI, warehouse="w", client_id="me", client_secret=SECRET, scope="catalog"),
        {"credential": "me:${env:SECRET}", "scope": "catalog"},
        {f"{TRINO}.security": "OAUTH2", f"{TRINO}.oauth2.credential": "me:<value of ${env:SECRET}>",
         f"{TRINO}.oauth2.scope": "catalog"},
        ["TYPE iceberg", "CLIENT_ID 'me'", "CLIENT_SECRET '<value of ${env:SECRET}>'", "OAUTH2_SCOPE 'catalog'",
         f"OAUTH2_SERVER_URI '{URI}/v1/oauth/tokens'"],
        [f"ENDPOINT '{URI}'", "SECRET lakewriter_catalog"],
    ),
    (
        OAuthService(uri=URI, warehouse="w", client_id="me", client_secret=SECRET, scope="all-apis",
                     oauth2_server_uri="https://catalog.example/iceberg/realms/token"),
        {"credential": "me:${env:SECRET}", "scope": "all-apis", "oauth2-server-uri": "https://catalog.example/iceberg/realms/token"},
        {f"{TRINO}.security": "OAUTH2", f"{TRINO}.oauth2.credential": "me:<value of ${env:SECRET}>",
         f"{TRINO}.oauth2.scope": "all-apis", f"{TRINO}.oauth2.server-uri": "https://catalog.example/iceberg/realms/token"},
        ["TYPE iceberg", "CLIENT_ID 'me'", "CLIENT_SECRET '<value of ${env:SECRET}>'", "OAUTH2_SCOPE 'all-apis'",
         "OAUTH2_SERVER_URI 'https://catalog.example/iceberg/realms/token'"],
        [f"ENDPOINT '{URI}'", "SECRET lakewriter_catalog"],
    ),
    (
        TokenService(uri=URI, warehouse="w", token=SECRET),
        {"token": "${env:SECRET}"},
        {f"{TRINO}.security": "OAUTH2", f"{TRINO}.oauth2.token": "<value of ${env:SECRET}>"},
        ["TYPE iceberg", "TOKEN '<value of ${env:SECRET}>'"],
        [f"ENDPOINT '{URI}'", "SECRET lakewriter_catalog"],
    ),
    (
        OpenService(uri=URI, warehouse="w"),
        {"rest.auth.type": "none"},
        {f"{TRINO}.security": "NONE"},
        [],
        [f"ENDPOINT '{URI}'", "AUTHORIZATION_TYPE 'none'"],
    ),
    # https://docs.aws.amazon.com/glue/latest/dg/connect-glu-iceberg-rest.html
    (
        GlueRestService(uri=GLUE, warehouse="123456789012"),
        {"rest.sigv4-enabled": "true", "rest.signing-name": "glue", "rest.signing-region": "us-east-1"},
        {f"{TRINO}.security": "SIGV4", f"{TRINO}.signing-name": "glue"},
        [],
        ["ENDPOINT 'glue.us-east-1.amazonaws.com/iceberg'", "AUTHORIZATION_TYPE 'sigv4'", "SECRET lakewriter_s3"],
    ),
    # https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-tables-integrating-open-source.html
    (
        S3TablesService(uri=S3_TABLES, warehouse="arn:aws:s3tables:us-east-1:123456789012:bucket/lake"),
        {"rest.sigv4-enabled": "true", "rest.signing-name": "s3tables", "rest.signing-region": "us-east-1"},
        {f"{TRINO}.security": "SIGV4", f"{TRINO}.signing-name": "s3tables"},
        [],
        ["ENDPOINT 's3tables.us-east-1.amazonaws.com/iceberg'", "AUTHORIZATION_TYPE 'sigv4'", "SECRET lakewriter_s3"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("service", "spark", "trino", "secret", "attached"), SIGN_INS)
def test_each_engine(service, spark, trino, secret, attached):
    sign_in = find_sign_in(service)
    assert sign_in.list_spark_settings("us-east-1") == spark
    assert sign_in.list_trino_settings() == trino
    assert sign_in.list_duckdb_options() == (secret, attached)


GATEWAY = "https://abc.execute-api.us-east-1.amazonaws.com"
HOSTS = [
    # the catalog's URL, the service that is signed for, and what DuckDB says
    (GATEWAY, "execute-api", ""),
    (GATEWAY, "other", "has none"),
    (URI, "execute-api", "'catalog.example' has none"),
]


@pytest.mark.parametrize(("uri", "name", "said"), HOSTS)
def test_what_duckdb_cannot_sign_for(uri, name, said):
    found = describe_unsigned_by_duckdb(SignedService(uri=uri, warehouse="", signing_name=name), "us-east-1")
    assert (said in found, bool(found)) == (True, bool(said))
    assert describe_unsigned_by_duckdb(OpenService(uri=uri, warehouse=""), "us-east-1") == ""


def test_duckdb_reads_no_table_that_it_cannot_sign_for(tmp_path):
    destination = {"type": "lakewriter-s3", "location": "s3://acme-lake", "region": "us-east-1", "catalog": "rest",
                   "uri": URI, "auth": "sigv4", "signing_name": "execute-api"}  # fmt: skip
    table = {"table": "t", "schema": "s", "read": {"format": "csv", "path": "a.csv"}}
    (tmp_path / "lake.yaml").write_text(
        yaml.safe_dump({"pipeline": "p", "destination": destination, "tables": [table]}), "utf-8"
    )
    written = write_queries(load_spec(tmp_path / "lake.yaml"), [Engine.DUCKDB])
    assert [query.title for query in written if query.table == "all"] == ["Let DuckDB read the bucket"]
    assert [query.sql for query in written if query.table != "all"] == [
        "-- DuckDB signs for the service and region in the host's name, and 'catalog.example' has none; Spark and "
        "Trino read it."
    ]
