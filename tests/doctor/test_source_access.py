"""Sources with one fault each: what a look at them says, which is what a load of them ends with."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lakewriter.aws import Clients
from lakewriter.doctor.probe import Finding, SeenColumn, run_probes
from lakewriter.doctor.source_access import SourceProbes
from lakewriter.run.loader import load
from lakewriter.spec.deployment import Deployment
from lakewriter.spec.specification import Spec
from lakewriter.spec.table_spec import ColumnType, Read
from tests.doctor.pipeline import spec

CSV = b"id,name,zip\n1,Ada,01234\n2,Bob,99999\n"
HEADER = {"header": "true"}
NO_REMEDY = "Nothing to do."
MEANT = "Nothing, if that is meant."
DECLARED = Read(format="csv", path="x.csv", options=HEADER, columns="id BIGINT")


def write_parquet(path: Path, **columns: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), path)


def write(folder: Path, **files: bytes) -> None:
    for name, content in files.items():
        (folder / name.replace("_dot_", ".")).write_bytes(content)


def make_files(folder: Path) -> None:
    write(
        folder,
        a_dot_csv=CSV,
        semicolon_dot_csv=CSV.replace(b",", b";"),
        tab_dot_csv=CSV.replace(b",", b"\t"),
        data_dot_csv=b"7,Ada,2026-01-31\n8,Bob,2026-02-01\n",
        twice_dot_csv=b"id,ID,,x\na,b,c,d\n",
        mark_dot_csv=b"\xef\xbb\xbf" + CSV,
        utf16_dot_csv=CSV.decode().encode("utf-16"),
        bare16_dot_csv=CSV.decode().encode("utf-16-le"),
        open_dot_csv=b'id,name\n1,"x\n',
        latin_dot_csv="id,name\nx,Jos\u00e9\n".encode("latin-1"),
        empty_dot_csv=b"",
        text_dot_csv_dot_gz=CSV,
        cut_dot_csv_dot_gz=gzip.compress(CSV * 100)[:70],
        packed_dot_csv=gzip.compress(CSV),
        named_dot_parquet=CSV,
        book_dot_xlsx=b"PK\x03\x04\x14\x00\xff\xfe",
        lines_dot_json=b'{"id": 1, "at": "2026-01-31 10:00"}\n{"id": 2, "at": null}\n',
        array_dot_json=json.dumps([{"id": 1}, {"id": 2}], indent=1).encode(),
    )
    for name in ("hidden", "nested/2026", "bare"):
        (folder / name).mkdir(parents=True)
    (folder / "hidden/_SUCCESS").touch()
    (folder / "nested/2026/a.csv").write_bytes(CSV)
    write_parquet(folder / "a.parquet", id=[1, 2, 3], at=pa.array([1, 2, None], pa.timestamp("us")))
    write_parquet(folder / "drift/1.parquet", id=[1, 2], name=["a", "b"])
    write_parquet(folder / "drift/2.parquet", id=pa.array([3], pa.int32()))
    write_parquet(folder / "clash/1.parquet", id=[1])
    write_parquet(folder / "clash/2.parquet", id=["a"])


def csv(path: str, **options: str) -> Read:
    return Read(format="csv", path=path, options=HEADER | options)


ASIDE = (
    "Correct the file, or keep such rows apart, up to a share of all: on_bad_row: {action: quarantine, at_most: 0.01}."
)
FAILURES: list[tuple[Read, dict[str, Any], str, str, str]] = [
    # the source, the table's keys, code, message, remedy; ~ is the folder
    (csv("b.csv"), {}, "SOURCE_FAILED", "there is no '~/b.csv'.", "Did you mean '~/tab.csv'?"),
    (csv("none/a.csv"), {}, "SOURCE_FAILED", "there is no '~/none/a.csv'.", "The folder '~' has a.csv, a.parquet, "
     "array.json, bare and 20 more."),
    (csv("a.csv/b.csv"), {}, "SOURCE_FAILED", "there is no '~/a.csv/b.csv'.", "'~/a.csv' is a file, not a folder."),
    (csv("*.cvs"), {}, "SOURCE_FAILED", "no file matches '~/*.cvs'.", "Did you mean '~/a.csv'?"),
    (csv("empty.csv"), {}, "SOURCE_FAILED", "'~/empty.csv' is empty, without any byte.", "Check what writes it; a file "
     "without rows can be read if its columns are declared under read.columns."),
    (csv("bare"), {}, "SOURCE_FAILED", "the folder '~/bare' is empty.", "Name a folder with files."),
    (csv("hidden"), {}, "SOURCE_FAILED", "'~/hidden' has only files that are skipped: _SUCCESS.", "No file is read "
     "whose name begins with _ or ., or that pathGlobFilter does not match."),
    (csv("nested"), {}, "SOURCE_FAILED", "'~/nested' has no files, only folders: 2026.", "Name a folder of them, such "
     "as ~/nested/2026; or all files below it, with options: {recursiveFileLookup: true}."),
    (csv("cut.csv.gz"), {}, "SOURCE_FAILED", "'~/cut.csv.gz' cannot be read: its gzip data breaks off.", "Check that "
     "the file is there, whole, and may be read."),
    (csv("a.parquet"), {}, "SOURCE_FAILED", "'~/a.parquet' is a Parquet file, expected text.", "Set format: parquet."),
    (csv("book.xlsx"), {}, "SOURCE_FAILED", "'~/book.xlsx' is a ZIP archive, as Excel workbooks are, expected text.",
     "Save its sheet or table as CSV or Parquet, and name that file."),
    (csv("bare16.csv"), {}, "SOURCE_FAILED", "'~/bare16.csv' is UTF-16LE text without a byte order mark, read as "
     "UTF-8.", "Set options: {encoding: UTF-16LE}."),
    (csv("latin.csv"), {}, "VALUE_UNREPRESENTABLE", "'~/latin.csv', line 2, offset 8: byte 0xe9 is not UTF-8: "
     "'x,Jos\\\\xe9'.", "If 'x,José' is right in it, set options: {encoding: windows-1252}. Correct the file, or keep "
     "such rows apart, up to a share of all: on_bad_row: {action: quarantine, at_most: 0.01}."),
    (csv("open.csv"), {}, "SOURCE_FAILED", "'~/open.csv', line 2, offset 8: ", ASIDE),
    (Read(format="parquet", path="named.parquet"), {}, "SOURCE_FAILED", "'~/named.parquet' is not a Parquet file: it "
     "begins with 'id,name,zip'.", "Set format: csv, or name the file that is meant."),
    (Read(format="orc", path="a.parquet"), {}, "SOURCE_FAILED", "'~/a.parquet' is not an ORC file: it is a Parquet "
     "file.", "Set format: parquet, or name the file that is meant."),
    (Read(format="json", path="a.csv"), {}, "SOURCE_FAILED", "'~/a.csv' is not JSON: it begins with 'id,name,zip'.",
     "Set format: csv, or name the file that is meant."),
    (Read(format="json", path="array.json"), {}, "SOURCE_FAILED", "'~/array.json' has JSON documents over several "
     "lines, expected a document a line.", "Set options: {multiLine: true}."),
    (Read(format="parquet", path="clash"), {}, "SCHEMA_INCOMPATIBLE", "column 'id' is bigint in '~/clash/1.parquet' "
     "and string in '~/clash/2.parquet', and no type holds all values of both.", "Load the files as two "
     "tables, or read each as a view of an sql: read that casts the column."),
    (Read(sql="SELECT * FROM v", views={"v": csv("z.csv")}), {}, "SOURCE_FAILED", "there is no '~/z.csv'.",
     "Did you mean '~/a.csv'?"),
]  # fmt: skip


def place(read: Read, folder: Path) -> Read:
    views = {name: place(view, folder) for name, view in read.views.items()}
    paths = tuple(path if ":" in path else f"{folder}/{path}" for path in read.paths)
    return read.model_copy(update={"path": paths or None, "views": views})


def make_spec(read: Read, folder: Path, **keys: Any) -> Spec:
    own = spec(read=place(read, folder))
    (table,) = own.tables
    keys = keys | {"columns": {name: ColumnType(type=kind) for name, kind in keys.get("columns", {}).items()}}
    return own.model_copy(update={"tables": (table.model_copy(update=keys),)})


def probe(wanted: Spec, spark: Callable[[], SparkSession], deployment: Deployment | None = None) -> list[Finding]:
    return list(run_probes(SourceProbes(wanted, deployment, spark).list_probes()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_files(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize(("read", "keys", "code", "message", "remedy"), FAILURES)
def test_a_fault_is_told_as_a_load_would_end(
    folder: Path, spark: SparkSession, read: Read, keys: dict[str, Any], code: str, message: str, remedy: str
) -> None:
    wanted = make_spec(read, folder, **keys)

    (found,) = probe(wanted, lambda: spark)

    expected = f"table 'nyc_public.flights': {message}".replace("~", str(folder))
    assert (found.status, found.code) == ("failed", code)
    assert found.message.startswith(expected) if message.endswith(": ") else found.message == expected
    assert found.remedy == remedy.replace("~", str(folder))
    loaded = load(wanted, job_id="j", clients=Clients(wanted.access), spark=lambda: spark)
    said = f"{loaded.tables[0].message} {loaded.tables[0].remedy}"
    assert loaded.tables[0].code == code, said
    if read.format in ("csv", "json"):
        # A load tells it in the same words.
        assert found.message in said
        assert found.remedy in said


def refuse_spark() -> SparkSession:
    raise AssertionError("Spark is not needed to see this")


@pytest.mark.parametrize(("read", "keys", "code", "message", "remedy"), FAILURES)
def test_no_fault_of_files_needs_spark(
    folder: Path, read: Read, keys: dict[str, Any], code: str, message: str, remedy: str
) -> None:
    (found,) = probe(make_spec(read, folder, **keys), refuse_spark)
    assert found.code == code


FLIGHTS = "table 'nyc_public.flights'"
ODDITIES: list[tuple[Read, dict[str, Any], list[tuple[str, str, str]]]] = [
    # the source, the table's keys; status, message and remedy of what is found
    (csv("a.csv"), {"primary_key": ("ID",), "columns": {"id": "bigint"}}, [
        ("ok", "csv, 1 file, 36 B, 3 columns: id bigint, name string, zip string (2 rows looked at).", NO_REMEDY)]),
    (csv("mark.csv"), {"primary_key": ("id",), "columns": {"id": "int"}}, [
        ("ok", "csv, 1 file, 39 B, 3 columns: id int, name string, zip string (2 rows looked at).", NO_REMEDY)]),
    (Read(format="parquet", path="a.parquet"), {}, [
        ("ok", "parquet, 1 file, 808 B, 3 rows, 2 columns: id bigint, at timestamp_ntz.", NO_REMEDY)]),
    (Read(format="parquet", path="a.parquet"), {"cursor": "AT"}, [
        ("ok", "parquet, 1 file, 808 B, 3 rows, 2 columns: id bigint, at timestamp_ntz.", NO_REMEDY),
        ("warning", "cursor 'at' of 'nyc_public.flights' is null in 1 of 3 rows looked at.",
         "Only the first load reads such rows: null is above no cursor.")]),
    (Read(format="csv", path="a.csv"), {}, [
        ("warning", f"{FLIGHTS}: the first row of '~/a.csv' is read as data and looks like names: id, name, zip.",
         "Set options: {header: true}."),
        ("ok", "csv, 1 file, 36 B, 3 columns: _c0 string, _c1 string, _c2 string (3 rows looked at).", NO_REMEDY)]),
    (csv("data.csv"), {}, [
        ("warning", f"{FLIGHTS}: the first row of '~/data.csv' is read as the columns' names, and has 7, 2026-01-31.",
         'If it is data, set options: {header: false}, and declare the names: read.columns: "id BIGINT, name STRING".'),
        ("ok", "csv, 1 file, 34 B, 3 columns: 7 string, Ada string, 2026-01-31 string (1 row looked at).", NO_REMEDY)]),
    (csv("semicolon.csv"), {}, [
        ("failed", f"{FLIGHTS}: the source has one column, 'id;name;zip', with ';' in its name.",
         "Give the character between its values: read: {options: {sep: \";\"}}. If it is one column, name it: columns: "
         '{"id;name;zip": string}.')]),
    (csv("semicolon.csv"), {"columns": {"id;name;zip": "string"}}, [
        ("warning", f"{FLIGHTS}: '~/semicolon.csv' has one column by the delimiter ',', and ';' in every row.",
         'Set options: {sep: ";"}.'),
        ("ok", "csv, 1 file, 36 B, 1 column: id;name;zip string (2 rows looked at).", NO_REMEDY)]),
    (csv("tab.csv"), {}, [
        ("failed", f"{FLIGHTS}: the source has one column, 'id\\tname\\tzip', with '\\t' in its name.",
         'Give the character between its values: read: {options: {sep: "\\t"}}. If it is one column, name it: columns: '
         '{"id\\tname\\tzip": string}.')]),
    (csv("twice.csv"), {}, [
        ("warning", f"{FLIGHTS}: the header of '~/twice.csv' has no name for column 3 and the name id more than once.",
         "The columns get names by their positions. Name them where the file is written, or with an sql: read."),
        ("ok", "csv, 1 file, 17 B, 4 columns: id string, ID string, _c2 string, x string (1 row looked at).",
         NO_REMEDY)]),
    (csv("lines.json"), {}, [
        ("warning", f"{FLIGHTS}: '~/lines.json' begins like JSON, and is read as csv.",
         "If it is JSON, set format: json."),
        ("ok", 'csv, 1 file, 58 B, 2 columns: {"id": 1 string,  "at": "2026-01-31 10:00"} string (1 row looked at).',
         NO_REMEDY)]),
    (DECLARED.model_copy(update={"path": "empty.csv"}), {}, [
        ("warning", f"{FLIGHTS}: '~/empty.csv' is empty, without any byte.", "Check what writes it; a file without "
         "rows can be read if its columns are declared under read.columns."),
        ("ok", "csv, 1 file, 0 B, 1 column: id bigint (0 rows looked at).", NO_REMEDY)]),
    (Read(format="json", path="lines.json"), {"cursor": "at"}, [
        ("ok", "json, 1 file, 58 B, 2 columns: at string, id bigint (2 rows looked at).", NO_REMEDY),
        ("warning", "cursor 'at' of 'nyc_public.flights' is null in 1 of 2 rows looked at.",
         "Only the first load reads such rows: null is above no cursor."),
        ("warning", f"{FLIGHTS}: 1 column of text could have a type. at: all values (1) are times, such as "
         "'2026-01-31 10:00'; taken as UTC where they name no zone.",
         "To have them, set columns: {at: timestamp}.")]),
    (Read(format="parquet", path="drift"), {}, [
        ("ok", "parquet, 2 files, 1.2 KB, 3 rows, 2 columns: id bigint, name string.", NO_REMEDY),
        ("warning", f"{FLIGHTS}: column 'id' is bigint in '~/drift/1.parquet', int in '~/drift/2.parquet': read as "
         "bigint.", MEANT),
        ("warning", f"{FLIGHTS}: column 'name' is not in 1 of 2 files, such as '~/drift/2.parquet': null in their "
         "rows.", MEANT)]),
    (Read(sql="SELECT id, name AS who FROM v", views={"v": csv("a.csv")}), {"columns": {"id": "int"}}, [
        ("ok", "sql, 2 columns: id int, who string (2 rows looked at).", NO_REMEDY)]),
    (csv("a.csv"), {"primary_key": ("idd",), "cursor": "updated_at", "columns": {"nam": "string"}}, [
        ("failed", "primary_key of 'nyc_public.flights': the source has no column 'idd'.", "Did you mean 'id'?"),
        ("failed", "cursor of 'nyc_public.flights': the source has no column 'updated_at'.",
         "It has: id, name, zip."),
        ("failed", "columns of 'nyc_public.flights': the source has no column 'nam'.", "Did you mean 'name'?")]),
    (csv("a.csv"), {"cursor": "ID"}, [
        ("ok", "csv, 1 file, 36 B, 3 columns: id string, name string, zip string (2 rows looked at).", NO_REMEDY),
        ("failed", "table 'nyc_public.flights': cursor 'ID' is text, which is compared letter by letter: it has '1' "
         "and '2', and '10' sorts below '9'. Later loads would leave out rows.",
         "Declare its type: columns: {ID: bigint}."),
        ("warning", f"{FLIGHTS}: 1 column of text could have a type. id: all values (2) are whole numbers, from 1 to "
         "2.", "To have them, set columns: {id: bigint}.")]),
    (csv("a.csv"), {"columns": {"zip": "string"}}, [
        ("ok", "csv, 1 file, 36 B, 3 columns: id string, name string, zip string (2 rows looked at).", NO_REMEDY),
        ("warning", f"{FLIGHTS}: 1 column of text could have a type. id: all values (2) are whole numbers, from 1 to "
         "2.", "To have them, set columns: {zip: string, id: bigint}.")]),
    (csv("a.csv"), {"columns": {"name": "int", "id": "int"}}, [
        ("failed", f"{FLIGHTS}: '~/a.csv', line 2, offset 12, column 'name': it does not convert to int: it is not a "
         "whole number of digits 0 to 9: 'Ada'.", f"Declare another type under columns:. {ASIDE}")]),
    (csv("a.csv"), {"cursor": "id", "columns": {"id": "boolean"}}, [
        ("failed", "cursor of 'nyc_public.flights': column 'id' has type 'bool'.",
         "Use a number, a date, a timestamp or a string.")]),
    (csv("a.csv"), {"deleted": "op = 'D'"}, [
        ("failed", "tables.nyc_public.flights.deleted is \"op = 'D'\", which cannot be used: "
         "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `op` cannot be "
         "resolved. Did you mean one of the following? [`id`, `zip`, `name`]. SQLSTATE: 42703; line 1 pos 0;",
         "Give a boolean SQL expression over the source's columns, such as \"op = 'D'\".")]),
    (Read(format="exel", path="book.xlsx"), {}, [
        ("failed", f"{FLIGHTS} cannot be read from exel '~/book.xlsx': [DATA_SOURCE_NOT_FOUND] Failed to find the data "
         "source: exel. Make sure the provider name is correct and the package is properly registered and compatible "
         "with your Spark version.", "Spark reads no Excel files: save each sheet as CSV or Parquet, or set "
         "spark.jars.packages to a package that reads them.")]),
    (Read(format="parqet", path="a.parquet"), {}, [
        ("failed", f"{FLIGHTS} cannot be read from parqet '~/a.parquet': [DATA_SOURCE_NOT_FOUND] Failed to find the "
         "data source: parqet. Make sure the provider name is correct and the package is properly registered and "
         "compatible with your Spark version.", "Did you mean format: parquet?")]),
    (Read(format="jdbc", options={"url": "jdbc:postgresql://127.0.0.1:1/x", "dbtable": "t"}), {}, [
        ("failed", f"{FLIGHTS} cannot be read from jdbc t: org.postgresql.Driver", "The JDBC driver is not on Spark's "
         "class path. Set spark.jars.packages to org.postgresql:postgresql:42.7.7, in spark-defaults.conf or with "
         "--packages of spark-submit.")]),
]  # fmt: skip


@pytest.mark.parametrize(("read", "keys", "expected"), ODDITIES)
def test_what_is_seen_and_what_is_odd(
    folder: Path, spark: SparkSession, read: Read, keys: dict[str, Any], expected: list[tuple[str, str, str]]
) -> None:
    found = probe(make_spec(read, folder, **keys), lambda: spark)
    shown = [tuple(text.replace(str(folder), "~") for text in (f.status, f.message, f.remedy)) for f in found]
    assert shown == expected


def test_programs_are_told_what_was_seen(folder: Path, spark: SparkSession) -> None:
    found, proposal = probe(make_spec(csv("a.csv"), folder), lambda: spark)
    assert found.source is not None
    assert proposal.source == found.source
    assert found.source.model_dump() == {
        "table": "nyc_public.flights", "format": "csv", "files": 1, "looked_at": 1, "bytes": 36, "rows": None,
        "sampled": 2, "proposed": {"id": "bigint"},
        "columns": tuple(SeenColumn(name=name, type="string").model_dump() for name in ("id", "name", "zip")),
    }  # fmt: skip


def test_a_bare_parquet_scan_is_seen_without_spark(folder: Path) -> None:
    (found,) = probe(make_spec(Read(format="parquet", path="a.parquet"), folder), refuse_spark)
    assert (found.status, found.source and found.source.rows) == ("ok", 3)


def test_the_columns_of_so_many_files_are_looked_at(tmp_path: Path) -> None:
    for number in range(210):
        write_parquet(tmp_path / f"many/{number:03}.parquet", id=[1])
    (found,) = probe(make_spec(Read(format="parquet", path="many"), tmp_path), refuse_spark)
    assert "210 files" in found.message
    assert found.message.endswith("1 column: id bigint (columns of 200 files looked at, 200 rows looked at).")


S3 = Read(format="orc", engine="spark", path="s3://acme-lake/in/")


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize(
    ("deployment", "status", "code"),
    [
        (None, "failed", "SOURCE_FAILED"),
        (Deployment(), "failed", "SOURCE_FAILED"),
        (Deployment(protect=True), "warning", None),
    ],
)
def test_spark_here_may_not_read_s3(tmp_path: Path, aws: Any, deployment: Any, status: str, code: str | None) -> None:
    """Where the stacks are deployed, EMR has hadoop-aws, and a load there can read it."""
    aws.client("s3").put_object(Bucket="acme-lake", Key="in/a.orc", Body=b"ORC")
    (found,) = probe(make_spec(S3, tmp_path), refuse_spark, deployment)
    assert (found.status, found.code) == (status, code)
    assert "there is no hadoop-aws library here." in found.message


ELSEWHERE = [
    # the source, and the package or the network that a deployed job may have
    (Read(format="jdbc", options={"url": "jdbc:postgresql://127.0.0.1:1/x", "dbtable": "t"}),
     "Set spark.jars.packages to org.postgresql:postgresql:42.7.7"),
    (Read(format="kafka", options={"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}),
     "Set spark.jars.packages to org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1"),
]  # fmt: skip


@pytest.mark.parametrize(("read", "remedy"), ELSEWHERE)
def test_what_a_deployed_job_may_have(tmp_path: Path, spark: SparkSession, read: Read, remedy: str) -> None:
    (here,) = probe(make_spec(read, tmp_path), lambda: spark)
    (deployed,) = probe(make_spec(read, tmp_path), lambda: spark, Deployment(protect=True))
    assert (here.status, here.code, remedy in here.remedy) == ("failed", "SOURCE_FAILED", True)
    assert (deployed.status, deployed.code, deployed.remedy) == ("warning", None, here.remedy)
    assert deployed.message == f"{here.message} The job may have what is missing here."


def test_a_header_alone_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,at\n")
    read = csv("a.csv", header="true", inferSchema="true")
    findings = probe(make_spec(read, tmp_path, cursor="at", cursor_lag="3 days", primary_key=["id"]), refuse_spark)
    seen = [(finding.status, finding.source and finding.source.columns) for finding in findings]
    assert seen == [("ok", (SeenColumn(name="id", type="null"), SeenColumn(name="at", type="null")))]


@pytest.mark.usefixtures("bucket")
def test_objects_that_are_not_there(tmp_path: Path) -> None:
    (found,) = probe(make_spec(S3, tmp_path), refuse_spark)
    assert (found.code, found.message) == (
        "SOURCE_FAILED", "table 'nyc_public.flights': there is no object at or below 's3://acme-lake/in/'."
    )  # fmt: skip


def test_a_source_that_does_not_answer(folder: Path, spark: SparkSession) -> None:
    query = Read(sql="SELECT * FROM v", views={"v": csv("a.csv")})
    probes = SourceProbes(make_spec(query, folder), None, lambda: spark, seconds=0.0)
    (found,) = run_probes(probes.list_probes())
    assert (found.status, found.message) == (
        "warning", "the source gave neither columns nor its first 1,000 rows in 0 s."
    )  # fmt: skip
