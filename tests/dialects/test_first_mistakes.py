"""Mistakes of a first hour: each is refused before anything starts, with its line, its value and what to write."""

import pytest

from lakewriter.dialects.common.read_keys import find_sql_fault
from lakewriter.dialects.lake_yaml import load
from lakewriter.errors import SpecInvalidError

READ = "read: {format: csv, path: orders.csv, options: {header: true}}"
PLACE = "location: s3://acme-lake/lake, region: us-east-1"


def write(table=READ, destination=PLACE, more=""):
    return (
        f"pipeline: shop\ndestination: {{type: lakewriter-s3, {destination}}}\n"
        f"tables:\n  - {{table: orders, {table}}}\n{more}"
    )


def schedule(cron):
    return write(more=f"deployment: {{schedule: {{cron: '{cron}'}}}}")


MISTAKES = [
    # the file, and what is said behind its name
    (
        schedule("30 25 * * ? *"),
        "5: deployment.schedule.cron: 'cron' '30 25 * * ? *': hour: expected 0 to 23, got '25'.",
    ),
    (
        schedule("30 6 * * * *"),
        "5: deployment.schedule.cron: 'cron' '30 6 * * * *': expected '?' for exactly one of the day of the month and "
        "the day of the week.",
    ),
    (schedule("0 6 31 2 ? *"), "5: deployment.schedule.cron: 'cron' '0 6 31 2 ? *': '0 6 31 2 ? *' never fires."),
    (
        write(destination="location: s3://acme-lake/lake, region: us-est-1"),
        "2: destination.region: 'us-est-1': expected an AWS region such as 'us-east-1'; did you mean 'us-east-1' or "
        "'us-west-1'.",
    ),
    (
        write(destination="location: s3://acme-lake/lake, region: useast1"),
        "2: destination.region: 'useast1': expected an AWS region such as 'us-east-1'; did you mean 'us-east-1'.",
    ),
    (
        write(destination="location: s3://acme-lake/lake, region: eu-frankfurt-1"),
        "2: destination.region: 'eu-frankfurt-1': expected an AWS region such as 'us-east-1'.",
    ),
    (
        write(destination="region: us-east-1"),
        "2: destination.location: is required, such as location: s3://acme-lake/production.",
    ),
    (
        write(destination=f"{PLACE}, target_file_mb: big"),
        "2: destination.target_file_mb: unknown key, with value 'big'; it goes into 'limits'.",
    ),
    (
        write("read: {format: csv}"),
        "4: tables.0.read: 'format: csv' reads files; expected 'path' beside it, such as 'path: orders/*'.",
    ),
    (
        write("read: {format: csvv, path: orders.csv}"),
        "4: tables.0.read.format: 'csvv': no format has this name; did you mean 'csv'.",
    ),
    (
        write("read: {format: jsonl, path: orders.jsonl}"),
        "4: tables.0.read.format: 'jsonl': no format has this name; did you mean 'json'.",
    ),
    (
        write("read: {format: xlsx, path: orders.xlsx}"),
        "4: tables.0.read.format: 'xlsx': Spark reads no Excel files: save each sheet as CSV or Parquet; or give "
        "'excel', with a package of this name in spark.jars.packages.",
    ),
    (
        write("read: {format: csv, path: o.csv, options: {encoding: latin-9x}}"),
        "4: tables.0.read: 'encoding' is 'latin-9x'; expected a charset that Python knows, such as UTF-8, windows-1252 "
        "or UTF-16LE.",
    ),
    (
        write("read: {format: jdbc, options: {dbtable: orders}}"),
        "4: tables.0.read.options: 'format: jdbc' reads a database; expected 'options' with 'url', such as 'url: "
        "jdbc:postgresql://db.acme.example/shop'.",
    ),
    (
        write("read: {format: jdbc, options: {URL: 'jdbc:postgresql://db/shop'}}"),
        "4: tables.0.read.options: 'format: jdbc' reads a table, 'dbtable: public.orders', or a statement, 'query: "
        "SELECT ...'; expected one of them in 'options', got neither.",
    ),
    (
        write("read: {format: jdbc, options: {url: 'jdbc:postgresql://db/shop', dbTable: o, query: SELECT 1}}"),
        "4: tables.0.read.options: 'format: jdbc' reads a table, 'dbtable: public.orders', or a statement, 'query: "
        "SELECT ...'; expected one of them in 'options', got both.",
    ),
    (
        write("read: {sql: SELEC id FROM o, views: {o: {format: csv, path: o.csv}}}"),
        "4: tables.0.read.sql: 'SELEC id FROM o': the statement begins with 'SELEC'; expected SELECT, or WITH before "
        "it; did you mean 'SELECT'.",
    ),
    (
        write(f"{READ}, primary_key: [id, id]"),
        "4: tables.0.primary_key: a list: 'id' is there 2 times; expected each once.",
    ),
    (write(f"{READ}, sort_by: [a, b, a]"), "4: tables.0.sort_by: a list: 'a' is there 2 times; expected each once."),
    (
        write(f"{READ}, cursor: [updated_at]"),
        "4: tables.0.cursor: a list: expected text, such as cursor: updated_at.",
    ),
    (
        write(f"{READ}, columns: [amount]"),
        "4: tables.0.columns: a list: expected a mapping, such as columns: {amount: 'decimal(12,2)'}.",
    ),
    (
        write(f"{READ}, on_bad_row: {{action: quarantine, at_most: 5%}}"),
        "4: tables.0.on_bad_row.at_most: '5%': expected a number, without '%': as a share from 0 to 1 it is 0.05.",
    ),
    (
        write("read: {format: csv, path: orders.csv, repeated: allow}"),
        "4: tables.0.read.repeated: unknown key, with value 'allow'; it goes into the top of the file or the entry of "
        "the table.",
    ),
    (
        write(more="schedule: {rate: 1 hour}"),
        "5: schedule: unknown key, with value a mapping; it goes into 'deployment'.",
    ),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES, ids=[said.partition(":")[2][:60] for _, said in MISTAKES])
def test_a_mistake_has_its_line_and_the_way_out(tmp_path, text, said):
    lake = tmp_path / "lake.yaml"
    lake.write_text(text, "utf-8")
    with pytest.raises(SpecInvalidError) as raised:
        load(lake)
    assert raised.value.problems == (f"lake.yaml:{said}",)


def test_a_key_without_its_colon_is_named_by_its_own_line(tmp_path):
    lake = tmp_path / "lake.yaml"
    lake.write_text(write().replace("pipeline: shop", "pipeline shop"), "utf-8")
    with pytest.raises(SpecInvalidError) as raised:
        load(lake)
    assert raised.value.message == "lake.yaml:1: expected ': ' between a key and its value."


REGIONS = ["us-gov-west-1", "cn-northwest-1", "eusc-de-east-1", "ap-southeast-7", "us-isob-east-1", "mx-central-1"]


@pytest.mark.parametrize("region", REGIONS)
def test_regions_of_every_partition_are_taken(tmp_path, region):
    lake = tmp_path / "lake.yaml"
    lake.write_text(write(destination=f"location: s3://acme-lake/lake, region: {region}"), "utf-8")
    assert load(lake).spec.access.region == region


STATEMENTS = [
    # the statement, and what is wrong with it as Spark's grammar has it:
    # https://spark.apache.org/docs/latest/sql-ref-syntax-qry-select.html
    ("SELECT 1", None),
    ("-- the newest\n/* of (each */ WITH a AS (SELECT ')' AS b, \"(\" AS c, `d``(` FROM o) SELECT * FROM a;", None),
    ("(SELECT id FROM a) UNION ALL (SELECT id FROM b)", None),
    ("FROM o |> WHERE id > 1", None),
    (r"SELECT r'\', 'it\'s (', l[0] FROM o", None),
    ("", "the statement is empty; expected SELECT, or WITH before it"),
    ("DELETE FROM o", "the statement begins with 'DELETE'; expected SELECT, or WITH before it"),
    ("SELECT max(a FROM o", "line 1 of the statement, character 11: '(' is not closed"),
    ("SELECT a\nFROM o)", "line 2 of the statement, character 7: ')' closes nothing that is open"),
    ("SELECT l[0) FROM o", "line 1 of the statement, character 11: ')' closes nothing that is open"),
    ("SELECT 'a FROM o", "line 1 of the statement, character 8: the quote ' is not closed"),
    ("SELECT 1; SELECT 2", "line 1 of the statement, character 9: a second statement follows ';'; expected one"),
]


@pytest.mark.parametrize(("sql", "fault"), STATEMENTS)
def test_what_is_wrong_with_a_statement_shows_without_spark(sql, fault):
    assert find_sql_fault(sql) == fault


def test_a_root_that_is_not_there_is_named(tmp_path):
    lake = tmp_path / "lake.yaml"
    lake.write_text(write(more="source_root: landing\n"), "utf-8")
    assert load(lake).spec.warnings == (
        f"lake.yaml:5: source_root: there is no folder '{tmp_path}/landing' on this machine, where relative paths of "
        "sources start.",
    )
    (tmp_path / "landing").mkdir()
    assert load(lake).spec.warnings == ()
