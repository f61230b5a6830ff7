"""Two loads at once, foreign objects, failing tables: what is committed, and what is said."""

import pytest
from click.testing import CliRunner

from lakewriter.aws import Clients
from lakewriter.cli.main import main
from lakewriter.doctor import run_checks
from lakewriter.errors import SpecInvalidError
from tests.load.lakes import BUCKET, Lake, completes, table
from tests.support.call import Call

pytestmark = pytest.mark.spark

SCHEMA = "supaflow_nyc_public"
EVENTS = "id,at\n1,5\n2,7\n"


def during_commit(lake: Lake, job_id: str) -> object:
    """Progress that runs another whole load when the first is about to bind its intent."""
    others = [job_id]

    def progress(_table: object, step: str, _detail: str) -> None:
        if step == "committing" and others:
            assert lake.load(others.pop()).status == "done"

    return progress


def test_two_incremental_loads_at_once(lake):
    lake.write(table("events", lake.csv("events.csv", EVENTS), cursor="at"))
    (late,) = lake.load("late", progress=during_commit(lake, "early")).tables
    assert late.code == "CONCURRENT_LOAD"
    assert lake.rows("SELECT id, _supa_job_id FROM t ORDER BY id", f"{SCHEMA}/events") == [(1, "early"), (2, "early")]
    assert not lake.aws.uploads(BUCKET)


def test_two_plain_appends_at_once(lake):
    lake.write(table("events", lake.csv("events.csv", EVENTS)))
    assert lake.load("late", progress=during_commit(lake, "early")).status == "done"
    query = "SELECT _supa_job_id, count(*) FROM t GROUP BY ALL ORDER BY ALL"
    assert lake.rows(query, f"{SCHEMA}/events") == [("early", 2), ("late", 2)]
    assert lake.control(f"{SCHEMA}.events").state.read().committed == 2


def test_two_attempts_of_one_load(lake):
    lake.write(table("events", lake.csv("events.csv", EVENTS)))
    (slow,) = lake.load("same", progress=during_commit(lake, "same")).tables
    assert (slow.status, slow.code) in [("done", None), ("already_done", None)]
    assert lake.rows("SELECT count(*) FROM t", f"{SCHEMA}/events") == [(2,)]
    assert not lake.aws.uploads(BUCKET)


def test_existing_key_is_never_overwritten(lake):
    lake.write(table("events", lake.csv("events.csv", EVENTS)))
    key = f"data/production/{SCHEMA}/events/a/part-a-00000.gzip.parquet"
    lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"a stranger's")
    (result,) = lake.load("a").tables
    assert result.code == "KEY_EXISTS"
    assert key in result.message
    assert lake.aws.objects(BUCKET)[key] == b"a stranger's"
    assert not lake.aws.uploads(BUCKET)
    state = lake.control(f"{SCHEMA}.events").state.read()
    assert (state.pending, state.committed, dict(state.running)) == (None, 0, {})


def test_one_bad_table_of_five(lake):
    good = [table(f"t{number}", lake.csv(f"{number}.csv", EVENTS)) for number in range(4)]
    lake.write(*good, table("bad", "missing.csv"))
    report = lake.load("a")
    assert [(t.table, t.status, t.code) for t in report.tables] == [
        ("t0", "done", None),
        ("t1", "done", None),
        ("t2", "done", None),
        ("t3", "done", None),
        ("bad", "failed", "SOURCE_FAILED"),
    ]
    assert report.status == "failed"
    assert len(lake.data()) == 4


def test_first_run_check(lake):
    lake.write(table("t", lake.csv("t.csv", EVENTS)), destination_table_handling="FAIL")
    stray = f"data/production/{SCHEMA}/t/old.parquet"
    lake.aws.client("s3").put_object(Bucket=BUCKET, Key=stray, Body=b"old")
    (result,) = lake.load("a").tables
    assert result.code == "TABLE_NOT_EMPTY"
    # check says what run will: before the first load, and not once the table is loaded
    place = f"place of {SCHEMA}.t"
    refused = find_refusals(lake)
    assert [(name, finding.status, finding.code) for name, finding in refused.items()] == [
        (place, "failed", "TABLE_NOT_EMPTY")
    ]
    assert (refused[place].message, refused[place].remedy) == (
        f"table {SCHEMA}.t was never loaded, and {stray!r} lies under its path 'data/production/{SCHEMA}/t/'.",
        "Move what is there away, or set destination_table_handling: APPEND.",
    )
    lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=stray)
    assert find_refusals(lake) == {}
    assert [lake.load("a").status, lake.load("b").status] == ["done", "done"]
    lake.aws.client("s3").put_object(Bucket=BUCKET, Key=stray, Body=b"old")
    assert find_refusals(lake) == {}


def test_check_tells_of_another_pipelines_table(lake):
    lake.write(table("t", lake.csv("t.csv", EVENTS)))
    assert lake.load("a").status == "done"
    text = lake.file.read_text("utf-8")
    lake.file.write_text(text.replace("pipeline: flights", "pipeline: other"), "utf-8")
    ((name, finding),) = find_refusals(lake).items()
    assert (name, finding.code) == (f"place of {SCHEMA}.t", "NAME_COLLISION")
    assert "pipeline flights writes it" in finding.message
    assert lake.load("b").tables[0].code == "NAME_COLLISION"


def find_refusals(lake):
    """Return the findings of ``check`` on where tables lie that are not ok."""
    findings = run_checks(lake.spec, Clients(lake.spec.access))
    return {finding.probe: finding for finding in findings if "place" in finding.probe and finding.status != "ok"}


def test_column_nobody_can_store(lake):
    read = {"sql": "SELECT TIME '12:00:00' AS t, 1 AS id FROM x", "views": {"x": {"format": "csv", "path": "t.csv"}}}
    lake.csv("t.csv", EVENTS)
    lake.write({"table": "t", "schema": "public", "read": read})
    (result,) = lake.load("a").tables
    assert result.code in ("SCHEMA_INCOMPATIBLE", "SOURCE_FAILED")
    assert "columns" in result.message


def test_denied_glue_leaves_a_load_that_can_go_on(lake):
    lake.write(table("t", lake.csv("t.csv", EVENTS)))
    lake.aws.deny("glue:CreateTable")
    assert lake.load("a").tables[0].code == "GLUE_ACCESS_DENIED"
    assert lake.control(f"{SCHEMA}.t").state.read().pending.phase == "uploaded"
    assert lake.load("b").tables[0].code == "PENDING_UNRECOVERABLE"
    lake.aws.allow_everything()
    assert lake.load("b").status == "done"
    assert lake.rows("SELECT _supa_job_id, count(*) FROM t GROUP BY ALL ORDER BY ALL", f"{SCHEMA}/t") == [
        ("a", 2),
        ("b", 2),
    ]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("strategy", "said"), [("NONE", "has partition keys [('_supa_partition',"), ("DAY", "partition_strategy 'SYNC_ID'")]
)
def test_glue_table_of_another_layout(lake, strategy, said):
    lake.write(table("t", lake.csv("t.csv", EVENTS)))
    lake.load("a")
    lake.write(table("t", lake.csv("t.csv", EVENTS)), partition_strategy=strategy)
    (result,) = lake.load("b").tables
    assert result.code == "SCHEMA_INCOMPATIBLE"
    assert said in result.message
    assert len(lake.data()) == 1


LOST = [
    # calls that change something; the answer to the call of this number is dropped after it was applied
    *((lambda call: call.action == "s3:PutObject" and call.method == "PUT", number) for number in range(8)),
    (completes, 0),
    *(
        (lambda call, action=action: call.action == action, 0)
        for action in ("glue:CreateDatabase", "glue:CreateTable", "glue:BatchCreatePartition")
    ),
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("match", "number"), LOST)
def test_lost_answer(lake, match, number: int):
    lake.write(table("t", lake.csv("t.csv", EVENTS)))
    passed: list[Call] = []

    def this_one(call: Call) -> bool:
        if not match(call):
            return False
        passed.append(call)
        return len(passed) == number + 1

    lake.aws.drop_answer(this_one)
    assert lake.load("a").status == "done"
    assert len(passed) > number
    assert lake.rows("SELECT count(*) FROM t", f"{SCHEMA}/t") == [(2,)]
    assert lake.control(f"{SCHEMA}.t").state.read().committed == 1
    assert not lake.aws.uploads(BUCKET)


@pytest.mark.parametrize(
    ("conditional", "single_writer", "code"), [(True, False, None), (False, False, "SPEC_INVALID"), (False, True, None)]
)
def test_store_behind_an_endpoint_of_its_own(lake, conditional, single_writer, code):
    lake.aws.conditional_writes = conditional
    settings = {"custom_s3_endpoint": lake.aws.url, "single_writer": single_writer}
    lake.write(table("t", lake.csv("t.csv", EVENTS)), **settings)
    if code is None:
        assert lake.load("a").status == "done"
    else:
        with pytest.raises(SpecInvalidError, match="If-None-Match"):
            lake.load("a")


def test_command_says_which_table_failed(lake):
    lake.write(table("good", lake.csv("t.csv", EVENTS)), table("bad", "missing.csv"))
    done = CliRunner().invoke(main, ["run", str(lake.file), "--job-id", "a"])
    assert done.exit_code == 1
    assert "SOURCE_FAILED: " in done.stderr
    assert "Traceback" not in done.stderr
    assert "good" in done.stdout
