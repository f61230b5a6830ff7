"""Loads of a later release, whose control objects have fields that ours does not know, or needs it does not meet."""

import json

import pytest
from click.testing import CliRunner

from lakewriter.cli.main import main
from lakewriter.errors import PendingUnrecoverableError
from tests.commit.later import grow_body, kept
from tests.load.lakes import BUCKET
from tests.load.test_looks import LEFT, cut_off
from tests.load.test_writers import LAKES

STATE = "/_lakewriter/crm/tables/crm.users/state.json"


def change(users, make, ending=".json"):
    """Replace control objects by what ``make`` makes of their bytes."""
    for key, body in users.aws.objects(BUCKET).items():
        if "/_lakewriter/" in f"/{key}" and f"/{key}".endswith(ending):
            users.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=make(body))


def read_state(users):
    return next(json.loads(body) for key, body in users.aws.objects(BUCKET).items() if f"/{key}".endswith(STATE))


@pytest.mark.one_in(9)
@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("kind", LAKES)
def test_unknown_fields_keep_no_load_from_its_end(kind, left, tmp_path, aws, bucket):
    """Each is carried on to the next state."""
    users = LAKES[kind](tmp_path, aws)
    users.load("a", id=[1])
    if (at := LEFT[left]) is not None:
        cut_off(users, at)
    change(users, grow_body)
    (table,) = users.try_load("b", id=[2]).tables
    assert (table.status in ("done", "already_done"), table.code) == (True, None), table.message
    assert "." in kept(read_state(users))
    assert users.try_load("a", id=[1]).tables[0].status == "already_done"
    assert users.differences() == []


COMMANDS = [
    ["abandon", "b", "--reason", "r"],
    ["reset", "crm.users", "--no-cursor", "--reason", "r"],
    ["run"],
    ["status"],
    ["undo", "a", "--reason", "r"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_what_a_state_needs_stops_every_command(command, tmp_path, aws, bucket):
    users = LAKES["glue"](tmp_path, aws)
    users.load("a", id=[1])
    cut_off(users, LEFT["a pending intent"])
    change(users, lambda body: json.dumps(json.loads(body) | {"needs": ["two-writers"]}).encode(), STATE)
    before, uploads = aws.objects(BUCKET), aws.uploads(BUCKET)
    result = CliRunner().invoke(main, [command[0], str(users.folder / "lake.yaml"), *command[1:]])
    assert result.exit_code == 1
    assert f"{STATE.removeprefix('/')} cannot be used by this release: it needs 'two-writers'" in result.stderr
    assert (aws.objects(BUCKET), aws.uploads(BUCKET)) == (before, uploads)


def test_what_a_state_needs_stops_a_load(tmp_path, aws, bucket):
    users = LAKES["airbyte"](tmp_path, aws)
    users.load("a", id=[1])
    change(users, lambda body: json.dumps(json.loads(body) | {"needs": ["two-writers"]}).encode(), STATE)
    before = aws.objects(BUCKET)
    with pytest.raises(PendingUnrecoverableError, match="it needs 'two-writers'"):
        users.try_load("c", id=[2])
    assert aws.objects(BUCKET) == before
