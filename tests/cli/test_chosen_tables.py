"""``--table``: one table of several is checked, planned and loaded alone, and the same job id loads the rest."""

import json

import pytest
from click.testing import CliRunner

from lakewriter.cli.main import main
from tests.load.lakes import Lake, table
from tests.load.syncs import SyncLake, catalog, stream


def ask(lake, command, *options):
    done = CliRunner().invoke(main, [command, str(lake.file), *options, "--json"])
    return done.exit_code, json.loads(done.stdout)


@pytest.fixture
def lake(tmp_path, aws, bucket, spark):
    lake = Lake(tmp_path, aws, spark)
    lake.csv("a.csv", "id\n1\n2\n")
    lake.csv("b.csv", "id\n3\n")
    lake.write(table("orders", "a.csv"), table("users", "b.csv"), update_aws_glue_catalog=None)
    return lake


@pytest.mark.spark
def test_one_table_and_then_the_rest(lake):
    _, plan = ask(lake, "plan", "--table", "users")
    assert [entry["table"] for entry in plan["tables"]] == ["nyc_public.users"]
    code, report = ask(lake, "run", "--job-id", "a", "--table", "nyc_public.users")
    assert (code, [(entry["table"], entry["status"]) for entry in report["tables"]]) == (0, [("users", "done")])
    code, report = ask(lake, "run", "--job-id", "a")
    assert (code, [(entry["table"], entry["status"]) for entry in report["tables"]]) == (
        0,
        [("orders", "done"), ("users", "already_done")],
    )
    assert {name: lake.rows("SELECT id FROM t ORDER BY id", f"nyc_public/{name}") for name in ("orders", "users")} == {
        "orders": [(1,), (2,)],
        "users": [(3,)],
    }


@pytest.mark.spark
def test_a_table_that_would_fail_is_left_out(lake):
    lake.write(table("orders", "a.csv"), table("users", "none.csv"), update_aws_glue_catalog=None)
    code, report = ask(lake, "run", "--job-id", "a", "--table", "orders")
    assert (code, [entry["table"] for entry in report["tables"]]) == (0, ["orders"])
    code, report = ask(lake, "run", "--job-id", "a", "--table", "orders", "--table", "users")
    assert (code, [entry["status"] for entry in report["tables"]]) == (1, ["already_done", "failed"])


@pytest.mark.spark
def test_the_streams_of_an_input_of_messages_are_loaded_together(tmp_path, aws, bucket, spark):
    syncs = SyncLake(tmp_path, aws, spark)
    source = {"messages": syncs.messages(), "catalog": catalog(stream("users"), stream("orders"))}
    syncs.write({"format": {"format_type": "JSONL"}}, source=source)
    done = CliRunner().invoke(main, ["run", str(syncs.file), "--table", "public.users"])
    assert done.exit_code == 2
    assert done.stderr.startswith("SPEC_INVALID: --table is for a pipeline that reads each table by itself; ")


REFUSED = [
    *[
        ([command, "--table", "nobody"],
         "SPEC_INVALID: --table 'nobody' is no table of this pipeline. Expected nyc_public.orders, nyc_public.users.")
        for command in ("run", "plan", "check")
    ],
    (["run", "--table", "users", "--continuous"], "SPEC_INVALID: --table is for a single load; a continuous run "),
    (["run", "--table", "users", "--canary"], "SPEC_INVALID: --table is for a load of the file's tables; --canary "),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "said"), REFUSED)
def test_tables_that_cannot_be_chosen(lake, arguments, said):
    done = CliRunner().invoke(main, [arguments[0], str(lake.file), *arguments[1:]])
    assert done.exit_code == 2
    assert done.stderr.startswith(said)
