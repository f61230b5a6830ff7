"""``mode: merge`` on the server of this machine: the walk of the page, then all that the catalog has to stand."""

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

import lakewriter
from lakewriter.cli.main import main
from lakewriter.errors import SpecInvalidError
from lakewriter.local_server.catalog_server import find_catalog
from lakewriter.local_server.server import LocalServer, find_program
from lakewriter.operate import read_tables
from tests.docs.fences import list_fences
from tests.iceberg.test_readers import extension
from tests.support.narrow import need

pytestmark = pytest.mark.spark

CODE = [fence for fence in list_fences() if fence.page == "docs/merge.md"]
LAKE, COMMANDS, SHOWN = (
    next(fence.code for fence in CODE if fence.language == kind) for kind in ("yaml", "sh", "text")
)
MONDAY, TUESDAY = (line for line in COMMANDS.splitlines() if "printf" in line)
STATEMENT = "SELECT order_id, status FROM crm_orders ORDER BY order_id"
AFTER_MONDAY = [[1, "new"], [2, "new"]]
AFTER_TUESDAY = [[1, "paid"], [3, "new"]]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    try:
        find_program()
    except SpecInvalidError as error:
        pytest.skip(str(error))
    (tmp_path / "lake.yaml").write_text(LAKE, "utf-8")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    LocalServer.beside(tmp_path / "lake.yaml").stop()


def call(*arguments):
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    return result


def select(statement=STATEMENT):
    return json.loads(call("sql", "lake.yaml", statement, "--local", "--json").stdout)


def load(job_id, changes=None):
    if changes is not None:
        subprocess.run(["bash", "-ec", changes], check=True)
    with lakewriter.local("lake.yaml"):
        report = lakewriter.load("lake.yaml", job_id=job_id)
    assert [table.status for table in report.tables] == ["done"]


@pytest.mark.exhaustive
@pytest.mark.timeout(600)
def test_the_page_as_it_is_printed(folder, monkeypatch):
    program = Path(sys.executable).parent
    monkeypatch.setenv("PATH", str(program), prepend=":")
    done = subprocess.run(["bash", "-ec", COMMANDS], check=True, capture_output=True, text=True)
    shown = [line.rstrip() for line in done.stdout.splitlines()]
    assert shown[-3:] == SHOWN.splitlines()


@pytest.mark.exhaustive
def test_two_loads_a_compaction_and_an_undo(folder, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    load("monday", MONDAY)
    assert select()["rows"] == AFTER_MONDAY
    load("tuesday", TUESDAY)
    read = select()
    assert (read["engine"], read["rows"]) == (f"DuckDB {duckdb.__version__}", AFTER_TUESDAY)
    read_by_others()
    call("verify", "lake.yaml", "tuesday", "--rows", "--local")
    restart(folder)
    monkeypatch.setattr(read_tables, "_EXTENSIONS", ("none_of_this_name",))
    read = select()
    assert (read["engine"].partition(" ")[0], read["rows"]) == ("DataFusion", AFTER_TUESDAY)
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    compacted = json.loads(call("compact", "lake.yaml", "crm.orders", "--local", "--json").stdout)
    assert compacted["error"] is None
    assert select()["rows"] == AFTER_TUESDAY
    call("undo", "lake.yaml", "tuesday", "--reason", "a test", "--local")
    assert select()["rows"] == AFTER_MONDAY
    load("tuesday.r2")
    assert select()["rows"] == AFTER_TUESDAY


def read_by_others():
    """DuckDB runs every printed statement, by the catalog's own answers, and no statement refers to a variable."""
    printed = json.loads(call("queries", "lake.yaml", "--local", "--json").stdout)["queries"]
    views = call("queries", "lake.yaml", "--local").stdout
    with duckdb.connect() as connection:
        connection.execute("SET autoinstall_known_extensions = false; SET TimeZone = 'UTC'")
        for name in ("httpfs", "avro", "aws", "iceberg"):
            connection.execute(f"LOAD '{extension(name)}'")
        results = {query["title"]: connection.execute(query["sql"]).fetchall() for query in printed}
        assert {title: len(rows) for title, rows in results.items() if "lake" not in title[:4]} == {
            "Let DuckDB read the bucket": 1,
            "Let DuckDB sign in to the catalog": 1,
            "Attach the catalog": 0,
            "Query a table": 2,
            "Time travel: the table as of a moment (UTC)": 2,
        }
        connection.execute("DETACH lake")
        connection.execute(views)
        assert [list(row) for row in connection.execute(STATEMENT).fetchall()] == AFTER_TUESDAY


def restart(folder):
    """The catalog's port and tables are those of before."""
    server = LocalServer.beside(folder / "lake.yaml")
    # The process imports the package that runs, not the one of another path.
    os.environ["PYTHONPATH"] = str(folder)
    before = need(find_catalog(server.folder))
    server.stop()
    assert find_catalog(server.folder) is None
    server.start()
    after = server.start_catalog()
    assert (after.port, after.id != before.id) == (before.port, True)


REFUSED = [
    # statement, what is said
    ("DELETE FROM crm_orders", "DELETE is no SELECT, and sql only reads."),
    ("COPY (SELECT 1) TO 'x.csv'", "COPY is no SELECT, and sql only reads."),
    ("SELECT 1; SELECT 2", "expected exactly one statement."),
    ("SET lock_configuration = false", "SET is no SELECT, and sql only reads."),
    ("SELECT * FROM orders", "Table with name orders does not exist"),
]


def test_before_a_load_and_what_is_refused(folder, monkeypatch):
    """Nothing is made by a question: the table is not there, and no statement is printed for it."""
    sql = json.loads(call("queries", "lake.yaml", "--local", "--json").stdout)["queries"]
    assert [(query["table"], query["sql"]) for query in sql if query["table"] != "all"] == [
        ("crm.orders", "-- no load of crm.orders is committed yet. Print its queries again after one.")
    ]
    for statement, said in REFUSED:
        result = CliRunner().invoke(main, ["sql", "lake.yaml", statement, "--local"])
        assert result.exit_code == 2
        message = " ".join(result.stderr.split())
        assert said in message
        assert message.endswith("Expected one SELECT over these tables: crm_orders.")
    assert not Path("x.csv").exists()
    monkeypatch.setattr(read_tables, "_EXTENSIONS", ("none_of_this_name",))
    result = CliRunner().invoke(main, ["sql", "lake.yaml", "CREATE TABLE a (b INT)", "--local"])
    assert (result.exit_code, "the statement was refused: " in result.stderr) == (2, True)


def test_without_an_engine_the_message_says_what_to_install(folder, monkeypatch):
    plain = (
        LAKE.replace("  catalog: iceberg\n", "")
        .replace("    mode: merge\n", "")
        .replace("    order_by", "    # order_by")
    )
    Path("lake.yaml").write_text(plain, "utf-8")
    monkeypatch.setattr(read_tables, "_EXTENSIONS", ("none_of_this_name",))
    result = CliRunner().invoke(main, ["sql", "lake.yaml", "SELECT 1", "--local"])
    assert result.exit_code == 2
    assert " ".join(result.stderr.split()) == (
        "SPEC_INVALID: no engine here reads the tables' files: DuckDB 1.5.5 has no extension 'none_of_this_name' on "
        "this machine. DuckDB and its extensions come with pip install '.[sql]' in a clone, or 'FILE.whl[sql]' of a "
        "wheel; then call sql again."
    )
