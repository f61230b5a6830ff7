"""Tables whose readers see what another pipeline, an earlier state, or another program has left."""

import json
from unittest.mock import patch

import botocore.client
import pytest

from lakewriter.aws import Clients
from lakewriter.commit.latest import write_latest
from lakewriter.doctor.doctor import run_checks
from lakewriter.errors import CommitUnknownError, LakeError, NameCollisionError, StateLostError
from lakewriter.operate.adoption import adopt_found, find_files
from lakewriter.operate.planning import plan
from lakewriter.operate.rebuild import ask_catalog, rebuild
from lakewriter.operate.repair import abandon
from tests.load.lakes import BUCKET
from tests.load.refreshed import FOLDER, LATEST, Refreshed
from tests.load.test_merged import CALL
from tests.operate.test_undo_again import binds, cut_off
from tests.support.call import Answer, Call
from tests.support.local_tasks import local_session
from tests.support.narrow import need
from tests.support.sample import in_turn

OWNERS = f"{FOLDER}_lakewriter/owners/"
STATE = "data/_lakewriter/crm/tables/crm.users/state.json"


@pytest.fixture(params=in_turn("none", "glue"))
def users(request, tmp_path, aws, bucket):
    """A table of pipeline ``crm`` with three refreshes."""
    lake = Refreshed(tmp_path, aws, request.param)
    for number, job in enumerate("abc"):
        lake.load(job, id=[number])
    return lake


def delete(lake, *prefixes):
    s3 = lake.aws.client("s3")
    for key in [key for key in lake.aws.objects(BUCKET) if key.startswith(prefixes)]:
        s3.delete_object(Bucket=BUCKET, Key=key)


def put(lake, key, body):
    lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body)


def code_of(lake, job, **columns):
    """The code of a load that fails, for this table or as a whole."""
    try:
        return lake.try_load(job, **columns).tables[0].code
    except LakeError as error:
        return error.code


def check(lake):
    """Status and code of the finding on what readers see."""
    findings = run_checks(lake.spec, Clients(lake.spec.access))
    return next((finding.status, finding.code) for finding in findings if finding.probe == "readers")


def require_loads(lake, *jobs):
    """Each of these loads is what its readers see, and nothing differs."""
    for number, job in enumerate(jobs, 10):
        lake.load(job, id=[number])
        assert lake.ids() == [number]
        assert (lake.latest["job_id"], lake.latest["pipeline"]) == (job, lake.name)
    assert lake.differences() == []
    assert check(lake) == ("ok", None)


def test_a_hand_over_works_with_the_first_load(users):
    delete(users, OWNERS)
    users.hand_over("sales", shares_tables=True)
    require_loads(users, *"xyz")
    # And back, where the other pipeline has its old state.
    delete(users, OWNERS)
    users.hand_over("crm")
    require_loads(users, "d", "e")


def test_the_pipeline_that_handed_over_changes_nothing_any_more(users):
    delete(users, OWNERS)
    users.hand_over("sales", shares_tables=True)
    require_loads(users, "x")
    users.hand_over("crm", shares_tables=False)
    for forbidden in (lambda: users.undo("c").run(), lambda: users.undo("c", through=True).run()):
        with pytest.raises(StateLostError, match="pipeline 'sales'"):
            forbidden()
    assert code_of(users, "d", id=[9]) == "STATE_LOST"
    users.hand_over("crm", shares_tables=True)
    assert code_of(users, "e", id=[9]) == "NAME_COLLISION", "the other one's record of the directory is there"
    with pytest.raises(StateLostError):
        users.undo("c").run()
    assert (users.latest["job_id"], users.latest["pipeline"]) == ("x", "sales")
    assert users.ids() == [10]


def stop_at(users, moment, job):
    """Load until the call, and die there."""
    users.write_rows(id=[9])
    cut_off(users.aws, lambda: users.run(job), moment)


def test_a_table_is_handed_over_when_nothing_is_pending(users):
    stop_at(users, binds, "d")
    delete(users, OWNERS)
    users.hand_over("sales", shares_tables=True)
    report = users.try_load("x", id=[10])
    assert report.tables[0].code == "NAME_COLLISION"
    assert "of pipeline 'crm', whose load 'd' is pending" in report.tables[0].message
    assert "lakewriter abandon LAKE d --reason TEXT" in report.tables[0].remedy
    delete(users, OWNERS)
    users.hand_over("crm")
    users.run("d")
    delete(users, OWNERS)
    users.hand_over("sales", shares_tables=True)
    require_loads(users, "x")


def test_files_of_two_pipelines_have_folders_of_their_own(users):
    """The other one may have a load that is not bound yet, with files in the folder after its last."""
    delete(users, OWNERS)
    users.hand_over("sales", shares_tables=True)
    require_loads(users, "x")
    assert [key.partition("/")[0] for key in users.keys()[-2:]] == ["g0000000003", "g0000000005"]


HELD = [
    # Where the load of the old pipeline is held up, and its code: before it is bound, and after the last look before.
    ("ListObjectsV2", "Prefix", "/users/g", "STATE_LOST"),
    ("PutObject", "Key", "/tables/crm.users.json", "COMMIT_UNKNOWN"),
]


@pytest.mark.parametrize(("operation", "name", "end", "code"), HELD)
def test_a_load_that_is_held_up_while_its_table_is_handed_over(users, operation, name, end, code):
    call, file, met = getattr(botocore.client.BaseClient, CALL), users.folder / "lake.yaml", list[str]()

    def hand_over_first(client, called, parameters):
        if not met and called == operation and parameters[name].endswith(end):
            met.append(called)
            content = file.read_bytes()
            delete(users, OWNERS)
            users.hand_over("sales", shares_tables=True)
            require_loads(users, "x")
            users.name = "crm"
            file.write_bytes(content)
        return call(client, called, parameters)

    users.write_rows(id=[9])
    with patch.object(botocore.client.BaseClient, CALL, hand_over_first):
        assert users.run("d").tables[0].code == code
    assert (users.ids(), users.latest["pipeline"]) == ([10], "sales")
    if users.state.pending is not None:
        assert "pipeline 'sales' has taken the table over: lakewriter abandon LAKE d" in code_and_remedy(users)
        abandon(users.pipeline.controls, "d", "a drill", users.pipeline.clients)
    assert (users.ids(), users.state.pending) == ([10], None)
    delete(users, OWNERS)
    users.hand_over("sales", shares_tables=True)
    assert users.differences() == []
    users.load("y", id=[11])
    assert users.ids() == [11]


def code_and_remedy(users):
    (table,) = users.run("d").tables
    return f"{table.code} {table.remedy}"


def test_a_hand_over_by_adopt(users):
    users.hand_over("sales")
    with pytest.raises(NameCollisionError):
        adopt_found(users.spec, Clients(users.spec.access), (), {}, "the other one's record of the directory is there")
    delete(users, OWNERS)
    assert code_of(users, "x", id=[10]) == "NAME_COLLISION"
    spec = users.spec
    clients = Clients(spec.access)
    left = find_files(spec, clients)
    assert adopt_found(spec, clients, left, {"crm.users": None}, "handed over") == {"crm.users": True}
    assert (users.latest["job_id"], users.latest["pipeline"]) == ("c", "sales"), "readers see what they saw"
    assert users.ids() == [2]
    require_loads(users, *"xyz")


OTHERS = {
    "ahead of the state": lambda latest: latest | {"change": 1_000_000_000},
    "one ahead": lambda latest: latest | {"change": 4},
    "an earlier state": lambda latest: latest | {"state": "0123456789ab", "change": 1},
    "another pipeline": lambda latest: latest | {"pipeline": "sales", "change": 1},
    "another table": lambda latest: latest | {"table": "crm.visitors", "change": 1},
    "another program": lambda _: {"change": 1_000_000_000},
    "no object": lambda _: [1],
    "a number that is none": lambda latest: latest | {"change": True},
    "files that are none": lambda latest: latest | {"files": [1]},
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("content", OTHERS.values(), ids=OTHERS)
def test_an_object_that_the_state_does_not_know(users, content):
    put(users, LATEST, json.dumps(content(users.latest)))
    state = users.state
    assert code_of(users, "x", id=[10]) == "STATE_LOST"
    assert users.state == state, "nothing was registered"
    with pytest.raises(StateLostError):
        users.undo("c").run()
    assert check(users) == ("failed", "STATE_LOST")
    pipeline = users.pipeline
    (planned,) = plan(
        users.spec, job_id="x", clients=pipeline.clients, spark=lambda: local_session(2), controls=pipeline.controls
    )
    assert planned.failure is not None
    assert planned.failure.code == "STATE_LOST"
    assert [LATEST in message for message in users.differences()] == [True]
    delete(users, LATEST)
    assert [LATEST in message for message in users.differences()] == [True]
    assert check(users) == ("warning", None)
    require_loads(users, *"yz")


def test_files_that_the_state_does_not_know(users):
    """The object is the state's, and names other files."""
    put(users, LATEST, json.dumps(users.latest | {"files": [f"s3://{BUCKET}/elsewhere.parquet"]}))
    assert [LATEST in message for message in users.differences()] == [True]
    assert check(users) == ("warning", None)
    require_loads(users, "x")


def test_an_empty_table_is_compared(tmp_path, aws, bucket):
    users = Refreshed(tmp_path, aws, "none")
    users.load("a", id=[1])
    seen = users.latest
    users.undo("a").run()
    assert users.differences() == []
    put(users, LATEST, json.dumps(users.latest | {"files": seen["files"]}))
    assert [LATEST in message for message in users.differences()] == [True]


LOST = {
    "the control folder and the data": ("data/_lakewriter/crm/", f"{FOLDER}g"),
    "the control folder": ("data/_lakewriter/crm/",),
    "the state": (STATE,),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("deleted", LOST.values(), ids=LOST)
def test_a_state_that_is_begun_anew(users, deleted):
    delete(users, *deleted)
    assert code_of(users, "x", id=[10]) == "STATE_LOST"
    assert STATE not in users.aws.objects(BUCKET), "nothing was registered"
    control = users.pipeline.first_control
    table = users.spec.tables[0]
    rebuilt = rebuild(control, table, ask_catalog(users.spec, table, users.pipeline.clients), "lost", None,
                      from_start=False).state  # fmt: skip
    assert (rebuilt.committed, rebuilt.id) == (3, users.latest["state"])
    require_loads(users, *"xyz")


def test_a_table_that_is_begun_anew(users):
    """Whoever wants that moves the object away, and drops the table in Glue."""
    delete(users, "data/_lakewriter/crm/", f"{FOLDER}g", LATEST)
    if users.catalog == "glue":
        assert code_of(users, "x", id=[10]) == "STATE_LOST"
        assert users.state.pending is None
        users.aws.client("glue").delete_table(DatabaseName="crm", Name="users")
    require_loads(users, *"xyz")


def test_a_state_is_rebuilt_without_the_object(users):
    delete(users, STATE, LATEST)
    table = users.spec.tables[0]
    rebuild(users.pipeline.first_control, table, ask_catalog(users.spec, table, users.pipeline.clients), "lost", None,
            from_start=False)  # fmt: skip
    require_loads(users, *"xyz")


@pytest.mark.parametrize("catalog", in_turn("iceberg", "glue"))
def test_an_older_state_undoes_nothing(tmp_path, aws, bucket, catalog):
    """The number of the undo is in the catalog already, for another change."""
    # In Iceberg a refresh that others came after is not undone anyway.
    users = Refreshed(tmp_path, aws, catalog, **({"mode": "append"} if catalog == "iceberg" else {}))
    users.load("a", id=[1])
    users.load("b", id=[2])
    before = aws.objects(BUCKET)[STATE], aws.objects(BUCKET).get(LATEST)
    users.load("c", id=[3])
    put(users, STATE, before[0])
    if before[1] is not None:
        put(users, LATEST, before[1])
    with pytest.raises(LakeError) as raised:
        users.undo("b").run()
    assert (raised.value.code, users.state.pending) == ("STATE_LOST", None)


COUNTED = {"a refreshed Glue table": ("glue", "refresh"), "an Iceberg table": ("iceberg", "append")}


@pytest.mark.parametrize("case", COUNTED)
def test_a_number_in_the_catalog_that_the_state_does_not_know(tmp_path, aws, bucket, case):
    """A state that was restored from before the last load: what a load says, plan and check say."""
    catalog, mode = COUNTED[case]
    users = Refreshed(tmp_path, aws, catalog, mode=mode)
    users.load("a", id=[1])
    before = {key: aws.objects(BUCKET).get(key) for key in (STATE, LATEST)}
    users.load("b", id=[2])
    for key, body in before.items():
        if body is not None:
            put(users, key, body)
    pipeline = users.pipeline
    (planned,) = plan(
        users.spec, job_id="c", clients=pipeline.clients, spark=lambda: local_session(2), controls=pipeline.controls
    )
    failure = need(planned.failure)
    assert failure.code == "STATE_LOST"
    what = "crm.users has 2 loads of pipeline 'crm' by its property 'lakewriter.crm', and the state knows of 1."
    assert what in failure.message
    findings = run_checks(users.spec, Clients(users.spec.access))
    (place,) = [finding for finding in findings if finding.probe == "place of crm.users"]
    assert (place.status, place.code, place.message) == ("failed", "STATE_LOST", failure.message)
    (table,) = users.try_load("c", id=[3]).tables
    assert (table.code, failure.message in need(table.message)) == ("STATE_LOST", True)


def test_what_was_written_is_read_back(users):
    """The store has confirmed the write, and not done it."""
    ignored: list[Call] = []

    def ignore(call, proceed):
        if call.method == "PUT" and call.key == LATEST and not ignored:
            ignored.append(call)
            return Answer(200, (("ETag", '"0"'),))
        return proceed(call)

    users.aws.interceptors.append(ignore)
    require_loads(users, "d")
    assert len(ignored) == 1


def test_a_late_process_leaves_the_other_pipelines_object(users):
    """It was held before its write; the load was brought to its end, and the table handed over."""
    pipeline = users.pipeline
    control, state = pipeline.first_control, users.state
    control.state.read()
    shown = state.shown
    intent = control.find_intent(shown.job_id, shown.attempt)
    delete(users, OWNERS)
    users.hand_over("sales", shares_tables=True)
    require_loads(users, "x")
    seen = users.latest
    with pytest.raises(CommitUnknownError, match="pipeline 'sales'"):
        write_latest(control, intent, 3)
    assert users.latest == seen
