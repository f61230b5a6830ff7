"""An undo that died is run again by the same command, wherever it died; ``--plan`` says that it is pending."""

import pytest
from click.testing import CliRunner

from lakewriter.cli.main import main
from lakewriter.cli.printed import UndoneTable
from lakewriter.errors import LakeError
from tests.load.refreshed import Refreshed
from tests.load.test_merged import load, make
from tests.operate.shop import FILES, ICEBERG


def cut_off(aws, act, moment):
    """A process dies: no call after the first that ``moment`` matches reaches a service."""
    seen = [False]

    def refuse(call, proceed):
        is_dead, seen[0] = seen[0], seen[0] or moment(call)
        return call.denied() if is_dead else proceed(call)

    aws.interceptors.append(refuse)
    with pytest.raises(LakeError):
        act()
    aws.interceptors.remove(refuse)
    assert seen[0]


def binds(call):
    return call.method == "PUT" and call.key.endswith("/state.json") and b'"phase"' in call.body


def is_report(call):
    return call.method == "PUT" and "/undo." in call.key and call.key.endswith(".report.json")


def commits(call):
    return call.action in ("glue:UpdateTable", "glue:DeletePartition")


def points_back(call):
    return call.method == "PUT" and call.key.endswith("_latest/files.json")


def make_shop(settings, undo=None):
    def begin(shop, tmp_path, aws):
        lake = shop(settings, undo=undo, cursor="id")
        lake.load("a", "b")
        return lake

    return begin


def make_merged(_, tmp_path, aws):
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"))
    load(users, "b", (1, 2, "b"), (2, 1, "b"))
    return users


def make_refreshed(catalog):
    def begin(_, tmp_path, aws):
        users = Refreshed(tmp_path, aws, catalog)
        users.load("a", id=[1])
        users.load("b", id=[2])
        return users

    return begin


BEGINNINGS = {
    "files": (make_shop(FILES), (binds, is_report)),
    "glue": (make_shop({}, {"drop_partitions": True, "grace_minutes": 0}), (binds, commits, is_report)),
    "iceberg": (make_shop(ICEBERG), (binds, commits, is_report)),
    "merged": (make_merged, (binds, commits, is_report)),
    "refreshed files": (make_refreshed("none"), (binds, points_back, is_report)),
    "refreshed glue": (make_refreshed("glue"), (binds, commits, is_report)),
    "refreshed iceberg": (make_refreshed("iceberg"), (binds, commits, is_report)),
}
MOMENTS = [(kind, at) for kind, (_, moments) in BEGINNINGS.items() for at in range(len(moments))]


def show(undoings, *, planned=False):
    tables = (UndoneTable.of(undoing, planned=planned) for undoing in undoings)
    return [(table.status, table.notes) for table in tables]


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("kind", "at"), MOMENTS)
def test_an_undo_that_died_is_run_again(shop, tmp_path, aws, bucket, kind, at):
    begin, moments = BEGINNINGS[kind]
    lake = begin(shop, tmp_path, aws)
    cut_off(aws, lake.undo("b").run, moments[at])
    assert lake.differences() == []
    state = lake.pipeline.first_control.state.read()
    said = f"its undo is pending ({state.pending.phase}): without --plan it is finished"
    assert show(lake.undo("b").plan(), planned=True) == [("pending", (said,))]
    assert lake.pipeline.first_control.state.read() == state
    assert show(lake.undo("b").run()) == [("finished", ())]
    state = lake.pipeline.first_control.state.read()
    assert (state.pending, [undone.job_id for undone in state.undone]) == (None, ["b"])
    assert lake.differences() == []
    assert show(lake.undo("b").run()) == [("already_undone", ())]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("moment", [binds, commits])
def test_a_load_that_died_is_finished_before_it_is_undone(tmp_path, aws, bucket, moment):
    users = make_merged(None, tmp_path, aws)
    cut_off(aws, lambda: load(users, "c", (1, 3, "c")), moment)
    said = f"c is pending ({users.state.pending.phase}): without --plan it is finished first, then the undo is planned"
    assert show(users.undo("c").plan(), planned=True) == [("pending", (said,))]
    assert show(
        users.undo(
            "b",
        ).plan(),
        planned=True,
    ) == [("pending", (said,))]
    assert show(users.undo("c").run()) == [("undone", ())]
    assert users.differences() == []


def test_a_compaction_is_planned_beside_what_is_pending(tmp_path, aws, bucket):
    users = make_merged(None, tmp_path, aws)
    command = ["compact", str(tmp_path / "lake.yaml"), "users"]
    cut_off(aws, users.undo("b").run, binds)
    result = CliRunner().invoke(main, [*command, "--plan"])
    assert "  undo.b (intended) is pending: it is finished first, then files are chosen" in result.output.splitlines()
    result = CliRunner().invoke(main, command)
    assert (result.exit_code, result.output) == (0, "crm.users: no files are worth replacing\n")
    assert [undone.job_id for undone in users.state.undone] == ["b"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("way", ["--no-cursor", "--backfill", "--go-on"])
def test_a_state_is_changed_by_hand_once_what_is_pending_is_finished(shop, tmp_path, aws, bucket, way):
    lake = make_shop(FILES)(shop, tmp_path, aws)
    cut_off(aws, lake.undo("b").run, binds)
    result = CliRunner().invoke(main, ["reset", str(lake.lake.file), "shots", way, "--reason", "a drill"])
    assert result.exit_code == 0, result.output
    state = lake.control.state.read()
    assert (state.pending, [undone.job_id for undone in state.undone]) == (None, ["b"])
