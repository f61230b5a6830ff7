"""Whole loads of ``lakewriter-s3``: each format and catalog, read back by others."""

import gzip
import io
import json
from typing import Any, cast

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from pyiceberg.catalog import load_catalog

from lakewriter.aws import Clients
from lakewriter.cli.main import main
from lakewriter.commit.iceberg.iceberg_catalogs import open_catalog
from lakewriter.operate.planning import plan
from lakewriter.operate.queries import list_engines, write_queries
from lakewriter.operate.sql_text import Engine
from lakewriter.report import TableResult
from lakewriter.run.loader import load as run_load
from lakewriter.spec.catalogs import GlueService
from tests.iceberg.commits import stores
from tests.load.lakes import BUCKET, PREFIX, table
from tests.support.sample import in_turn
from tests.support.sign_ins import SIGN_INS

pytestmark = pytest.mark.spark

ORDERS = 'id,Größe,amount,region,at\n1,S,1.5,EU,2027-01-03\n2,,-2,US,2027-01-04\n3,"a""b,c",,EU,2027-01-04\n'
DDL = "id BIGINT, `Größe` STRING, amount DOUBLE, region STRING, at DATE"
SCHEMA = "supaflow_nyc_public"


class Orders:
    """A pipeline of one table."""

    def __init__(self, lake: Any) -> None:
        self.lake = lake

    def write(self, *, entry: Any = None, **destination: Any) -> None:
        own = table("Orders", self.lake.csv("orders.csv", ORDERS), **(entry or {}))
        own["read"] = {
            "format": "csv",
            "path": own["read"]["path"],
            "options": {"header": "true", "escape": '"'},
            "columns": DDL,
        }
        base = {"type": "lakewriter-s3", "location": f"s3://{BUCKET}/{PREFIX}", "region": "us-east-1"}
        content = {"pipeline": "flights", "destination": base | destination, "tables": [own]}
        self.lake.file.write_text(yaml.safe_dump(content, allow_unicode=True), "utf-8")

    def load(self, job_id: str) -> TableResult:
        spec = self.lake.spec
        spark = self.lake._spark
        report = run_load(spec, job_id=job_id, clients=Clients(spec.access), spark=lambda: spark)
        (result,) = report.tables
        return result


@pytest.fixture
def orders(lake) -> Orders:
    return Orders(lake)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("catalog", ["none", "glue", "iceberg"])
@pytest.mark.parametrize("feed", ["rows", "splits"])
def test_rows_are_sorted(orders, catalog, feed):
    """In the files as they lie; the numbers of the rows are those of the source."""
    tracking = {"tracking": {"row_number": "_row_number"}}
    orders.write(entry={"schema": "public", "sort_by": ["größe", "id"]}, catalog=catalog, **tracking)
    content = yaml.safe_load(orders.lake.file.read_text("utf-8"))
    [entry] = content["tables"]
    if feed == "splits":
        rows = [{"id": 1, "Größe": "S"}, {"id": 2, "Größe": None}, {"id": 3, "Größe": 'a"b,c'}]
        pq.write_table(pa.Table.from_pylist(rows), orders.lake.folder / "orders.parquet")
        entry["read"] = {"format": "parquet", "path": "orders.parquet"}
    else:
        entry["read"] = {"sql": "SELECT * FROM v", "views": {"v": entry["read"]}}
    orders.lake.file.write_text(yaml.safe_dump(content, allow_unicode=True), "utf-8")
    result = orders.load("j")
    assert (result.status, result.feed) == ("done", feed), result.message
    (body,) = (body for key, body in orders.lake.data().items() if key.endswith(".parquet"))
    found = pq.read_table(io.BytesIO(body))
    assert list(zip(*(found[name].to_pylist() for name in ("id", "_row_number")), strict=True)) == [
        (1, 1), (3, 3), (2, 2),
    ]  # fmt: skip


def test_parquet_in_glue(orders):
    orders.write(catalog="glue", database="supaflow_nyc", partition_strategy="load")
    result = orders.load("abc")
    assert (result.status, result.code, result.message, result.rows) == ("done", None, None, 3)
    key = f"{SCHEMA}/orders/load_id=abc/part-abc-00000.parquet"
    assert list(orders.lake.data()) == [key]
    names = ["id", "Gro_e", "amount", "region", "at", "_loaded_at", "_load_id"]
    rows = orders.lake.rows("SELECT id, amount, _load_id, load_id FROM t ORDER BY id", f"{SCHEMA}/orders")
    assert rows == [(1, 1.5, "abc", "abc"), (2, -2.0, "abc", "abc"), (3, None, "abc", "abc")]
    glue = orders.lake.aws.client("glue")
    found = glue.get_table(DatabaseName=SCHEMA, Name="orders")["Table"]
    assert [each["Name"] for each in found["StorageDescriptor"]["Columns"]] == [name.lower() for name in names]
    assert found["PartitionKeys"] == [{"Name": "load_id", "Type": "string"}]
    assert found["Parameters"]["compressionType"] == "zstd"
    (partition,) = glue.get_partitions(DatabaseName=SCHEMA, TableName="orders")["Partitions"]
    assert partition["Values"] == ["abc"]
    location = f"s3://{BUCKET}/{PREFIX}/{SCHEMA}/orders"
    assert partition["StorageDescriptor"]["Location"] == f"{location}/load_id=abc"
    copy = orders.lake.folder / "copies" / key
    column = pq.read_metadata(copy).row_group(0).column(0)
    assert column.compression == "ZSTD"
    assert orders.load("abd").rows == 3
    values = [each["Values"] for each in glue.get_partitions(DatabaseName=SCHEMA, TableName="orders")["Partitions"]]
    assert sorted(values) == [["abc"], ["abd"]]


def test_json_lines(orders):
    orders.write(format="jsonl", partition_strategy="none", column_names="kept", tracking=["load_id", "row_number"])
    assert orders.load("abc").message is None
    ((key, body),) = orders.lake.data().items()
    assert key == "public/orders/part-abc-00000.jsonl.gz"
    assert [json.loads(line) for line in gzip.decompress(body).splitlines()] == [
        {"id": 1, "Größe": "S", "amount": 1.5, "region": "EU", "at": "2027-01-03", "_load_id": "abc", "_row_number": 1},
        {"id": 2, "Größe": None, "amount": -2.0, "region": "US", "at": "2027-01-04", "_load_id": "abc",
         "_row_number": 2},
        {"id": 3, "Größe": 'a"b,c', "amount": None, "region": "EU", "at": "2027-01-04", "_load_id": "abc",
         "_row_number": 3},
    ]  # fmt: skip


def test_csv(orders):
    orders.write(format="csv", compression="none", partition_strategy="load", tracking=[])
    orders.load("abc")
    ((key, body),) = orders.lake.data().items()
    assert key == "public/orders/load_id=abc/part-abc-00000.csv"
    assert body.decode() == (
        '"id","Gro_e","amount","region","at"\r\n'
        '1,"S",1.5,"EU","2027-01-03"\r\n'
        '2,,-2.0,"US","2027-01-04"\r\n'
        '3,"a""b,c",,"EU","2027-01-04"\r\n'
    )
    (orders.lake.folder / "orders-out.csv").write_bytes(body)
    query = f"SELECT id, amount FROM read_csv('{orders.lake.folder}/orders-out.csv') ORDER BY id"
    assert duckdb.sql(query).fetchall() == [(1, 1.5), (2, -2.0), (3, None)]


def test_value_without_text_is_refused(orders):
    orders.write(format="jsonl", entry={"columns": {"amount": "double"}})
    orders.lake.csv("orders.csv", ORDERS + "4,M,NaN,EU,2027-01-05\n")
    result = orders.load("abc")
    assert (result.status, result.code) == ("failed", "VALUE_UNREPRESENTABLE")
    assert "column 'amount', row 4: nan has no text in JSON" in str(result.message)
    assert orders.lake.data() == {}


def test_avro(orders):
    orders.write(format="avro", compression="zstd", tracking={"row_id": "id_of_row"}, entry={"primary_key": ["id"]})
    assert orders.load("abc").message is None
    ((key, body),) = orders.lake.data().items()
    path = orders.lake.folder / "orders.avro"
    path.write_bytes(body)
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        rows = cast("list[dict[str, Any]]", list(reader))
        assert reader.codec == "zstandard"
    assert key.endswith(".avro")
    assert [(row["id"], row["Gro_e"], row["amount"]) for row in rows] == [
        (1, "S", 1.5), (2, None, -2.0), (3, 'a"b,c', None),
    ]  # fmt: skip
    # The lower-case hex SHA-256 of the key's text, as for every destination: printf 1 | sha256sum
    assert rows[0]["id_of_row"] == "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"


def test_iceberg(orders):
    entry = {"partition_by": ["region"]}
    orders.write(catalog="iceberg", database="supaflow_nyc", entry=entry)
    result = orders.load("abc")
    assert (result.status, result.message, result.files) == ("done", None, 2)
    spec = orders.lake.spec
    found = open_catalog(GlueService(), Clients(spec.access), "test", []).load_table((SCHEMA, "orders"))
    rows = found.scan().select("id", "Gro_e", "region", "_load_id").to_arrow().sort_by("id").to_pylist()
    assert rows == [
        {"id": 1, "Gro_e": "S", "region": "EU", "_load_id": "abc"},
        {"id": 2, "Gro_e": None, "region": "US", "_load_id": "abc"},
        {"id": 3, "Gro_e": 'a"b,c', "region": "EU", "_load_id": "abc"},
    ]
    assert found.spec().fields[0].name == "region"


@pytest.mark.parametrize("sign_in", in_turn(*SIGN_INS))
def test_iceberg_in_a_rest_catalog(orders, sign_in, monkeypatch):
    """By each sign-in: tasks encode, the driver commits, the same job again adds nothing."""
    with SIGN_INS[sign_in](orders.lake.aws, BUCKET) as catalog:
        monkeypatch.setenv(*catalog.secret)
        orders.write(**catalog.make_settings(), database="supaflow_nyc")
        assert [orders.load("abc").status for _ in range(2)] == ["done", "already_done"]
        seen = load_catalog("own", **catalog.make_options(), **stores(orders.lake.aws)).load_table((SCHEMA, "orders"))
        rows = seen.scan().select("id", "_load_id").to_arrow().sort_by("id").to_pylist()
        assert rows == [{"id": number, "_load_id": "abc"} for number in (1, 2, 3)]
        engines = [query.engine for query in write_queries(orders.lake.spec, list_engines(orders.lake.spec))]
        assert {Engine.SPARK, Engine.TRINO} <= set(engines)


def test_partitions_that_athena_alone_finds(orders):
    """No entry is made, and what a load wrote is compared with what Athena computes."""
    orders.write(catalog="glue", database="supaflow_nyc")
    text = orders.lake.file.read_text("utf-8")
    orders.lake.file.write_text(f"projection: only\n{text}", "utf-8")
    assert orders.load("abc").message is None
    glue = orders.lake.aws.client("glue")
    parameters = glue.get_table(DatabaseName=SCHEMA, Name="orders")["Table"]["Parameters"]
    (key,) = orders.lake.data()
    folder = f"s3://{BUCKET}/{PREFIX}/{key}".rpartition("/")[0]
    day = folder.rpartition("=")[2]
    assert parameters["projection.load_date.range"] == f"{day},NOW"
    assert parameters["storage.location.template"].replace("${load_date}", day) == f"{folder}/"
    assert glue.get_partitions(DatabaseName=SCHEMA, TableName="orders")["Partitions"] == []
    result = CliRunner().invoke(main, ["verify", str(orders.lake.file), "abc"])
    assert (result.exit_code, "mismatch" in result.output) == (0, False), result.output


def test_plan(orders):
    orders.write(format="csv", column_names="kept", partition_strategy="load")
    spec, spark = orders.lake.spec, orders.lake._spark
    controls = {each.id: orders.lake.control(each.id) for each in spec.tables}
    (planned,) = plan(spec, job_id="abc", clients=Clients(spec.access), spark=lambda: spark, controls=controls)
    assert planned.error is None
    assert planned.key == f"s3://{BUCKET}/{PREFIX}/public/orders/load_id=abc/part-abc-00000.csv.gz"
    assert [(column.source, column.name, column.type, column.change) for column in planned.columns] == [
        ("id", "id", "int64", ""),
        ("Größe", "Größe", "string", ""),
        ("amount", "amount", "double", ""),
        ("region", "region", "string", ""),
        ("at", "at", "date32[day]", ""),
        ("", "_loaded_at", "string", "added"),
        ("", "_load_id", "string", "added"),
    ]
    assert planned.catalog == ()
    assert orders.lake.data() == {}


def test_plan_is_printed(orders):
    orders.write(catalog="glue", database="supaflow_nyc", partition_strategy="load", tracking=["load_id"])
    result = CliRunner().invoke(main, ["plan", str(orders.lake.file), "--job-id", "abc"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        "supaflow_nyc_public.orders  from public.Orders",
        "  first key  s3://acme-lake/data/production/supaflow_nyc_public/orders/load_id=abc/part-abc-00000.parquet",
        "  how        1 file, read by the tasks themselves (1 task)",
        "  reads      all rows",
        "  catalog    create table supaflow_nyc_public.orders at "
        "s3://acme-lake/data/production/supaflow_nyc_public/orders with 6 columns",
        "  catalog    add partition load_id=abc to supaflow_nyc_public.orders, unless it is there",
        "  columns    6 new: id bigint, Gro_e string, amount double, region string, at date, _load_id string",
        "  becomes    Größe -> Gro_e",
        "  warning    no cursor: each load after this one appends all rows of the source again",
        "  warning    A cursor, read: {files: new}, or a mode that replaces rows keeps them from coming again.",
    ]
