"""``lakewriter plan`` after a load: the source or the file changes, and the plan says what that does to readers."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from lakewriter.cli.main import main

CSV = "id,name,zip\n1,Ada,01234\n2,Bob,99999\n"
WAYS = "  warning    A cursor, read: {files: new}, or a mode that replaces rows keeps them from coming again."
AGAIN = (
    "  warning    no cursor: all rows of the source are appended again, as by 1 load before (the last one had 2 rows)",
    WAYS,
)
FILES = "old and new files together fail, or give values of another type"


def write(folder: Path, text: str = CSV, columns: dict[str, str] | None = None, **destination: Any) -> Path:
    (folder / "a.csv").write_text(text, "utf-8")
    read = {"format": "csv", "path": "a.csv", "options": {"header": True}}
    settings = {"type": "lakewriter-s3", "location": "s3://acme-lake/lake", "region": "us-east-1", "tracking": []}
    table = {"table": "people", "read": read, **({"columns": columns} if columns else {})}
    content = {"pipeline": "p", "destination": {**settings, **destination}, "tables": [table]}
    path = folder / "lake.yaml"
    path.write_text(yaml.safe_dump(content), "utf-8")
    return path


def lakewriter(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def body(result: Result) -> list[str]:
    """The plan's lines without those on the key and how rows are read."""
    return [line.rstrip() for line in result.stdout.splitlines()[4:]]


pytestmark = pytest.mark.usefixtures("bucket")


def test_a_first_load(tmp_path: Path, spark: SparkSession) -> None:
    result = lakewriter("plan", write(tmp_path), "--exit-code")
    assert (result.exit_code, body(result)) == (0, [
        "  columns    3 new: id string, name string, zip string",
        "  warning    no cursor: each load after this one appends all rows of the source again",
        WAYS,
        "  text       1 column of text could have a type: columns: {id: bigint}",
    ])  # fmt: skip


def test_a_plan_says_what_a_load_is_expected_to_be(tmp_path: Path, spark: SparkSession) -> None:
    path = write(tmp_path)
    content = yaml.safe_load(path.read_text("utf-8"))
    rules = [{"rows": {"at_least": 1}}, {"rows": {"of_last_loads": 7, "between": ["50%", "200%"]}}, {"not_null": "id"},
             {"null_share": {"column": "zip", "at_most": "5%"}, "on_violation": "warn"},
             {"range": {"column": "zip", "at_least": "0", "at_most": "9"}},
             {"accepted_values": {"column": "name", "values": ["Ada", "Bob"]}}, {"unique": "id"},
             {"sql": "id <> zip", "name": "other"}]  # fmt: skip
    content["tables"][0]["expect"] = rules
    path.write_text(yaml.safe_dump(content), "utf-8")
    assert [line.removeprefix("  expects    ") for line in body(lakewriter("plan", path)) if "  expects" in line] == [
        "rows: at least 1 row",
        "rows.of_last_loads: 50% to 200% of the median of 7 loads",
        "not_null.id: no nulls in id",
        "null_share.zip: at most 5% nulls in zip (warns)",
        "range.zip: zip 0 to 9",
        "accepted_values.name: name is 'Ada' or 'Bob'",
        "unique.id: each id once",
        "other: no row of which id <> zip is false",
    ]
    content["tables"][0]["expect"] = [{"not_null": "nmae"}]
    path.write_text(yaml.safe_dump(content), "utf-8")
    assert "the source has no column 'nmae'. Did you mean 'name'?" in lakewriter("plan", path).stdout
    checked = lakewriter("check", path)
    assert "the source has no column 'nmae'" in checked.stdout


PLANS: list[tuple[dict[str, Any], dict[str, Any], int, list[str]]] = [
    # the destination, what changes of the file and of the source; the exit code, the plan
    ({}, {}, 0, ["  columns    3 as before", *AGAIN]),
    ({}, {"text": "id,name,zip,vip\n1,Ada,01234,true\n"}, 0, [
        "  columns    1 new, 3 as before",
        "             + vip string  null in the rows of earlier loads", *AGAIN,
        "  text       1 column of text could have a type: columns: {vip: boolean}"]),
    ({}, {"text": "id,name,zip,vip\n1,Ada,01234,true\n", "columns": {"zip": "string"}}, 0, [
        "  columns    1 new, 3 as before",
        "             + vip string  null in the rows of earlier loads", *AGAIN,
        "  text       1 column of text could have a type: columns: {zip: string, vip: boolean}"]),
    ({}, {"text": "id,zip\n1,01234\n"}, 0, [
        "  columns    1 gone, 2 as before",
        "             - name string  null in the rows of this load", *AGAIN]),
    ({}, {"columns": {"zip": "bigint"}}, 3, [
        "  columns    1 of another type, 2 as before",
        f"             ! zip string -> bigint  breaks readers: {FILES}", *AGAIN]),
    ({"format": "avro"}, {"columns": {"zip": "bigint"}}, 3, [
        "  columns    1 of another type, 2 as before",
        f"             ! zip string -> bigint  breaks readers: {FILES}", *AGAIN]),
    ({"format": "jsonl"}, {"text": "id,who\n1,Ada\n"}, 0, [
        "  columns    1 new, 2 gone, 1 as before",
        "             + who   null in the rows of earlier loads",
        "             - name  null in the rows of this load",
        "             - zip   null in the rows of this load", *AGAIN]),
    ({"format": "csv"}, {"text": "id,zip,name\n1,2,Ada\n"}, 3, [
        "  columns    1 in another place, 3 as before",
        "             ! column 2 name -> zip  breaks readers: by position, one column is taken for another", *AGAIN]),
    ({}, {"partition_strategy": "none"}, 3, [
        "  columns    3 as before",
        "  breaks     the files go to the folder lake/people, they were in lake/people/load_date=DATE", *AGAIN]),
    ({}, {"format": "csv"}, 3, [
        "  columns    3 as before", "  breaks     the files become csv, they were parquet", *AGAIN]),
    ({"catalog": "glue", "database": "d"}, {"text": "id,name,vip\n1,Ada,true\n"}, 0, [
        "  catalog    add column vip string to d.people",
        "  catalog    add partition load_date=DATE to d.people, unless it is there",
        "  columns    1 new, 1 gone, 2 as before",
        "             + vip string  null in the rows of earlier loads",
        "             - zip string  null in the rows of this load", *AGAIN,
        "  text       1 column of text could have a type: columns: {vip: boolean}"]),
    ({"catalog": "iceberg", "database": "d"}, {"text": "id,name\n1,Ada\n"}, 0, [
        "  columns    1 gone, 2 as before",
        "             - zip string  null in the rows of this load", *AGAIN]),
]  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("destination", "change", "exit_code", "expected"), PLANS)
def test_after_a_load(
    tmp_path: Path, spark: SparkSession, destination: dict[str, Any], change: dict[str, Any], exit_code: int,
    expected: list[str],
) -> None:  # fmt: skip
    assert lakewriter("run", write(tmp_path, **destination)).exit_code == 0
    file = write(tmp_path, **(destination | change))

    result = lakewriter("plan", file, "--exit-code")

    key = result.stdout.splitlines()[1]
    date = key.partition("load_date=")[2][:10]
    shown = [line.replace(date, "DATE") if date else line for line in body(result)]
    if not date:
        shown = [
            f"{line[: line.index('load_date=')]}load_date=DATE" if "load_date=" in line else line for line in shown
        ]
    assert shown == expected
    assert (result.exit_code, lakewriter("plan", file).exit_code) == (exit_code, 0)


def test_programs_are_told_what_changes(tmp_path: Path, spark: SparkSession) -> None:
    lakewriter("run", write(tmp_path))
    printed = lakewriter("plan", write(tmp_path, columns={"zip": "int"}), "--json", "--exit-code")
    (table,) = json.loads(printed.stdout)["tables"]
    assert printed.exit_code == 3
    assert table["changes"] == [{
        "name": "zip", "change": "type", "before": "string", "after": "int", "effect": FILES, "breaks": True,
    }]  # fmt: skip
    assert (table["loads"], table["breaks"]) == (1, [f"zip string -> int: {FILES}"])
    assert table["compared_with"].startswith("a file of the last load, lake/people/load_date=")


def test_a_table_that_would_fail_keeps_its_code(tmp_path: Path, spark: SparkSession) -> None:
    lakewriter("run", write(tmp_path))
    file = write(tmp_path, columns={"zipp": "int"})
    assert lakewriter("plan", file, "--exit-code").exit_code == 2


def test_every_column_is_shown_on_request(tmp_path: Path, spark: SparkSession) -> None:
    file = write(tmp_path)
    shown = body(lakewriter("plan", file, "--all-columns"))
    assert [line.split() for line in shown[:4]] == [
        ["column", "type", "from"], ["id", "string", "id"], ["name", "string", "name"], ["zip", "string", "zip"],
    ]  # fmt: skip
    assert body(lakewriter("plan", file, "--all"))[:4] == shown[:4]


def test_a_plan_says_what_names_and_types_become(tmp_path: Path, spark: SparkSession) -> None:
    table = pa.table({"Order Id": pa.array([1], pa.uint64()), "n": pa.array([1], pa.int64())})
    pq.write_table(table, tmp_path / "a.parquet")
    path = write(tmp_path)
    content = yaml.safe_load(path.read_text("utf-8"))
    content["tables"][0]["read"] = {"format": "parquet", "path": "a.parquet"}
    path.write_text(yaml.safe_dump(content), "utf-8")
    assert "  becomes    Order Id uint64 -> Order_Id decimal128(20, 0)" in body(lakewriter("plan", path))
