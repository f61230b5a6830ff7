"""``lakewriter adopt`` tells the files of another writer from those that loads of Lakewriter have written."""

import io
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from lakewriter.cli.main import main
from lakewriter.commit import attempt as attempts
from lakewriter.operate.compaction import Compaction
from lakewriter.operate.rebuild import ask_catalog, rebuild
from tests.load.lakes import BUCKET
from tests.load.refreshed import Refreshed
from tests.load.test_merged import Killed

LEFT = "data/crm/users/another-writers.parquet"
ICEBERG_LEFT = "data/crm/users/data/another-writers.parquet"


def put(users, key=LEFT):
    body = io.BytesIO()
    pq.write_table(pa.table({"id": [100]}), body)
    users.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body.getvalue())


def delete(users, *parts):
    for key in users.aws.objects(BUCKET):
        if all(part in key for part in parts):
            users.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)


def lose_state(users):
    delete(users, "/_lakewriter/crm/tables/", "state.json")


def lose_records(users):
    delete(users, "/_lakewriter/crm/")


def load_twice(users):
    users.load("a", id=[1])
    users.load("b", id=[2])


def compact(users):
    (table,) = users.spec.tables
    for number in range(5):
        users.load(f"more-{number}", id=[1], at=[number])
    Compaction(users.pipeline, table, 2**30).run()


def merge(users):
    for number in range(2):
        users.load(f"job-{number}", id=[1], at=[number])


def undo(users):
    users.rules |= {"undo": {"grace_minutes": 60}}
    users.write()
    load_twice(users)
    users.undo("b").run()


def stage_only(users):
    users.load("a", id=[1])
    with patch.object(attempts, "bind", side_effect=Killed), suppress(Killed):
        users.load("b", id=[2])


def say(users, *options):
    answer = CliRunner().invoke(main, ["adopt", str(users.folder / "lake.yaml"), *options])
    assert answer.exit_code == 0, answer.output
    return answer.stdout.splitlines()


APPEND, MERGE = {"mode": "append"}, {"mode": "merge", "primary_key": ["id"], "order_by": ["at"]}
# Catalog and mode, what has happened, and what is said of the table's files, without the newest one's name.
WRITERS: Final[dict[str, tuple[str, dict[str, Any], list[Callable[[Refreshed], object]], str]]] = {
    "nobody": ("none", APPEND, [], "nothing to go on from"),
    "another writer": ("none", APPEND, [put], "1 file of another writer, the newest"),
    "its own loads": ("none", APPEND, [load_twice], "nothing to go on from (2 files of its own loads)"),
    "its own loads in Glue": ("glue", APPEND, [load_twice], "nothing to go on from (2 files of its own loads)"),
    "its own loads, of a table that was dropped": (
        "glue",
        APPEND,
        [load_twice, lambda users: users.aws.client("glue").delete_table(DatabaseName="crm", Name="users")],
        "nothing to go on from (2 files of its own loads)",
    ),
    "beside its own loads": (
        "none",
        APPEND,
        [load_twice, put],
        "nothing to go on from (1 file of another writer, 2 files of its own loads)",
    ),
    "an undone load": ("none", APPEND, [undo], "nothing to go on from (1 file of its own loads)"),
    "a load that was only staged": ("none", APPEND, [stage_only], "nothing to go on from (1 file of its own loads)"),
    "refreshes of another pipeline": (
        "none",
        {"mode": "refresh"},
        [load_twice, lambda users: delete(users, "/owners/"), lambda users: users.hand_over("sales")],
        "2 files of pipeline 'crm', the newest",
    ),
    "refreshes": ("none", {"mode": "refresh"}, [load_twice], "nothing to go on from (2 files of its own loads)"),
    "merged deletes": ("iceberg", MERGE, [merge], "nothing to go on from (3 files of its own loads)"),
    "a compaction": ("iceberg", APPEND, [compact], "nothing to go on from (6 files of its own loads)"),
    "Iceberg, and another writer": (
        "iceberg",
        APPEND,
        [load_twice, lambda users: put(users, ICEBERG_LEFT)],
        "nothing to go on from (1 file of another writer, 2 files of its own loads)",
    ),
    "another pipeline": (
        "none",
        APPEND,
        [load_twice, lambda users: users.hand_over("sales")],
        "2 files of pipeline 'crm', the newest",
    ),
    "another pipeline, and another writer": (
        "glue",
        APPEND,
        [load_twice, put, lambda users: users.hand_over("sales")],
        "1 file of another writer, 2 files of pipeline 'crm', the newest",
    ),
    "a hand-over": (
        "none",
        APPEND,
        [load_twice, lambda users: users.hand_over("sales", shares_tables=True), lambda users: users.load("c", id=[3])],
        "nothing to go on from (2 files of pipeline 'crm', 1 file of its own loads)",
    ),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("case", WRITERS)
def test_whose_files_there_are(tmp_path, aws, bucket, case):
    catalog, table, acts, expected = WRITERS[case]
    users = Refreshed(tmp_path, aws, catalog, **table)
    for act in acts:
        act(users)
    before = users.state
    said = say(users)
    assert said[0].startswith(f"crm.users: {expected}"), said
    # Nothing is adopted of a table whose state accounts for all.
    is_adoptable = "the newest" in expected
    assert len(said) == (2 if is_adoptable else 1)
    again = say(users, "--write", "--stopped", "--from-start")
    assert (users.state == before) is not is_adoptable
    if is_adoptable:
        (reset,) = users.state.resets
        assert reset.what == f"adopted {expected.removesuffix(', the newest')}; the next load reads all rows"
        # Once is enough.
        writers = expected.removesuffix(", the newest")
        assert say(users)[0] == f"crm.users: nothing to go on from ({writers})"
    else:
        assert again == said
    if "another writer" in case:
        newest = ICEBERG_LEFT if catalog == "iceberg" else LEFT
        assert not is_adoptable or newest in said[0]


@pytest.mark.parametrize("lose", [lose_state, lose_records])
@pytest.mark.parametrize("beside", [lambda users: None, put], ids=["alone", "beside another writer's"])
def test_files_of_its_own_loads_whose_state_is_lost_are_not_adopted(tmp_path, aws, bucket, lose, beside):
    users = Refreshed(tmp_path, aws, "none", mode="append")
    load_twice(users)
    beside(users)
    lose(users)
    for options in ([], ["--write", "--stopped", "--from-start"]):
        answer = CliRunner().invoke(main, ["adopt", str(tmp_path / "lake.yaml"), *options])
        assert answer.exit_code == 1
        assert "STATE_LOST" in answer.output
        assert f"lakewriter rebuild {tmp_path / 'lake.yaml'} TABLE" in answer.output


@pytest.mark.parametrize("loads_after", [1, 0])
def test_what_was_adopted_is_rebuilt_by_the_loads_after_it(tmp_path, aws, bucket, loads_after):
    users = Refreshed(tmp_path, aws, "none", mode="append")
    put(users)
    if loads_after:
        say(users, "--write", "--stopped", "--from-start")
    users.load("a", id=[1])
    adopted = users.state.adopted
    assert (adopted is not None) == bool(loads_after)
    lose_state(users)
    (table,) = users.spec.tables
    catalog = ask_catalog(users.spec, table, users.pipeline.clients)
    rebuilt = rebuild(users.pipeline.first_control, table, catalog, "a drill", None, from_start=True)
    assert users.state.adopted == adopted
    unknown = (
        "whether adopt has taken over any of 1 object that no load of this pipeline is known to have written: verify "
        "reports those that are newer than a load"
    )
    assert (unknown in rebuilt.unknown) == (not loads_after)
    assert not loads_after or users.differences() == []
