"""Datasets by OpenLineage's naming: https://openlineage.io/docs/spec/naming, and the client's ``naming`` module."""

import pytest
from openlineage.client.naming import dataset as naming

from lakewriter.lineage.facts import Dataset
from lakewriter.lineage.inputs import list_inputs, name_path
from lakewriter.spec.access import SecretText
from lakewriter.spec.table_spec import Read
from tests.lineage.specs import make_spec

PATHS = [
    # path, namespace, name
    ("s3://acme-landing/shop/orders.csv", "s3://acme-landing", "shop/orders.csv"),
    ("s3a://acme-landing/shop/orders", "s3://acme-landing", "shop/orders"),
    ("s3://acme-landing/shop/", "s3://acme-landing", "shop"),
    ("s3://acme-landing", "s3://acme-landing", "/"),
    # A pattern is the folder that holds all that it fits.
    ("s3://acme-landing/shop/2027-*.csv", "s3://acme-landing", "shop"),
    ("s3://acme-landing/shop/year=*/month=*/x.parquet", "s3://acme-landing", "shop"),
    ("s3://acme-landing/{a,b}/x.csv", "s3://acme-landing", "/"),
    ("s3://acme-landing/a#1/x.csv", "s3://acme-landing", "a#1/x.csv"),
    ("/data/orders.csv", "file", "/data/orders.csv"),
    ("/data/2027-*.csv", "file", "/data"),
    ("file:///data/orders.csv", "file", "/data/orders.csv"),
    ("file:/data/orders.csv", "file", "/data/orders.csv"),
    ("gs://acme/orders", "gs://acme", "orders"),
    (
        "abfss://landing@acme.dfs.core.windows.net/orders",
        "abfss://landing@acme.dfs.core.windows.net",
        "orders",
    ),
    ("hdfs://name:8020/data/orders", "hdfs://name:8020", "/data/orders"),
    ("ftp://me:hush@files.example.com/orders.csv", "ftp://files.example.com", "orders.csv"),
]


@pytest.mark.parametrize(("path", "namespace", "name"), PATHS)
def test_path(path, namespace, name):
    assert name_path(path) == Dataset(namespace, name)


@pytest.mark.parametrize("path", ["orders.csv", "file:orders.csv", "C:\\orders.csv"])
def test_path_without_a_place_has_no_name(path):
    assert name_path(path) is None


TABLES = [
    # url, dbtable, namespace, name
    ("jdbc:postgresql://db:5433/shop", "sales.orders", "postgres://db:5433", "shop.sales.orders"),
    ("jdbc:postgresql://db/shop?user=me&password=hush", "orders", "postgres://db:5432", "shop.public.orders"),
    ("jdbc:postgresql://a:1,b:2/shop", "orders", "postgres://a:1", "shop.public.orders"),
    # PostgreSQL folds names without quotes to lower case, Oracle to upper case.
    ("jdbc:postgresql://db/shop", 'Sales."Orders 2"', "postgres://db:5432", "shop.sales.Orders 2"),
    ("jdbc:postgresql://db/shop", "other.sales.orders", "postgres://db:5432", "other.sales.orders"),
    ("jdbc:mysql://me:hush@db/shop", "orders", "mysql://db:3306", "shop.orders"),
    ("jdbc:mysql://db:3307/shop?useSSL=true", "`sales`.`orders`", "mysql://db:3307", "sales.orders"),
    ("jdbc:mariadb://db/shop", "orders", "mysql://db:3306", "shop.orders"),
    ("jdbc:sqlserver://db;databaseName=shop;password=hush", "orders", "mssql://db:1433", "shop.dbo.orders"),
    ("jdbc:sqlserver://db\\one:1444;database=shop", "[sales].[orders]", "mssql://db:1444", "shop.sales.orders"),
    ("jdbc:oracle:thin:@//db:1522/ORCL", "sales.orders", "oracle://db:1522", "ORCL.SALES.ORDERS"),
    ("jdbc:oracle:thin:me/hush@db:1521:ORCL", '"sales"."orders"', "oracle://db:1521", "ORCL.sales.orders"),
]


def read_table(url: str | SecretText, table: str) -> Read:
    return Read(format="jdbc", options={"url": url, "dbtable": table, "password": SecretText("${env:HUSH}")})


@pytest.mark.parametrize(("url", "table", "namespace", "name"), TABLES)
def test_table_of_a_database(url, table, namespace, name):
    assert list_inputs(*make_spec(read_table(url, table))) == (Dataset(namespace, name),)


UNNAMED = [
    # A query, a URL that is a secret, a user's own schema, and a database that OpenLineage does not name.
    read_table("jdbc:postgresql://db/shop", "(SELECT 1 AS a) q"),
    read_table("jdbc:postgresql://db/shop", "orders o"),
    read_table("jdbc:postgresql://db/shop", "a.b.c.d"),
    read_table(SecretText("${env:URL}"), "orders"),
    read_table("jdbc:oracle:thin:@//db:1522/ORCL", "orders"),
    read_table("jdbc:derby:memory:shop", "orders"),
    Read(format="jdbc", options={"url": "jdbc:postgresql://db/shop", "query": "SELECT 1"}),
    Read(format="kafka", options={"kafka.bootstrap.servers": "k:9092", "subscribePattern": "a.*"}),
    Read(format="rate"),
]


@pytest.mark.parametrize("read", UNNAMED)
def test_what_has_no_plain_name_is_left_out(read):
    assert list_inputs(*make_spec(read)) == ()


TOPICS = [
    ({"subscribe": "a, b"}, ["a", "b"]),
    ({"assign": '{"a": [0, 1]}'}, ["a"]),
]


@pytest.mark.parametrize(("options", "topics"), TOPICS)
def test_topics(options, topics):
    read = Read(format="kafka", options={"kafka.bootstrap.servers": "k1:9092,k2:9092", **options})
    assert list_inputs(*make_spec(read)) == tuple(Dataset("kafka://k1:9092", topic) for topic in topics)


def test_sql_has_the_inputs_of_all_of_its_views_once():
    orders = Read(format="csv", path=("s3://a/orders", "s3://a/more"))
    named = read_table("jdbc:mysql://db/shop", "users")
    spec, table = make_spec(Read(sql="SELECT 1", views={"o": orders, "p": orders, "u": named}))
    assert list_inputs(spec, table) == (
        Dataset("s3://a", "orders"),
        Dataset("s3://a", "more"),
        Dataset("mysql://db:3306", "shop.users"),
    )


CLIENTS = [
    (Dataset("s3://a", "b/c"), naming.S3("a", "b/c")),
    (Dataset("file", "/b/c"), naming.LocalFileSystem("/b/c")),
    (Dataset("postgres://h:1", "d.s.t"), naming.Postgres("h", "1", "d", "s", "t")),
    (Dataset("mysql://h:1", "d.t"), naming.MySQL("h", "1", "d", "t")),
    (Dataset("oracle://h:1", "d.s.t"), naming.Oracle("h", "1", "d", "s", "t")),
    (Dataset("kafka://h:1", "t"), naming.Kafka("h", "1", "t")),
    (Dataset("arn:aws:glue:r:1", "table/d/t"), naming.AWSGlue("r", "1", "d", "t")),
]


@pytest.mark.parametrize(("named", "client"), CLIENTS)
def test_names_are_those_of_the_client(named, client):
    assert (named.namespace, named.name) == (client.get_namespace(), client.get_name())
