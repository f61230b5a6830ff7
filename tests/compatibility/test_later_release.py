"""Loads of a later release, whose control objects have fields that ours does not know, or needs it does not meet."""

import json

import pytest
from click.testing import CliRunner

from lakewriter.cli.main import main
from lakewriter.errors import PendingUnrecoverableError
from tests.compatibility.keys_0_1_0 import unknown_keys
from tests.compatibility.later import kept
from tests.compatibility.released import BUCKET
from tests.load.materializations import Running

pytestmark = pytest.mark.spark


def state_of(lake):
    control = lake.control
    return json.loads(lake.aws.objects(BUCKET)[control.keys.state(control.table_id)])


GROWN = [
    # A set, the rows that readers see when load b is run again, where the state has its unknown fields then.
    ("files-aborting", [1, 2, 3, 4], [".", ".resets.0", ".resets.1", ".sync"]),
    ("glue-intended", [1, 2, 3, 4], [".", ".cursor", ".resets.0", ".resets.1", ".sync"]),
    ("glue-uploaded", [1, 2, 3, 4], [".", ".cursor", ".resets.0", ".resets.1", ".sync"]),
    ("iceberg-glue-intended", [1, 2, 3, 4], [".", ".cursor", ".sync"]),
    ("iceberg-rest-intended", [1, 2, 3, 4], [".", ".cursor", ".sync"]),
    ("iceberg-rest-uploaded", [1, 2, 3, 4], [".", ".cursor", ".sync"]),
    ("airbyte-append-intended", [1, 2, 3, 4], [".", ".sync", ".sync.live.0", ".sync.source"]),
    ("airbyte-overwrite-uploaded", [3, 4], [".", ".sync"]),
    ("estuary-uploaded", [1, 2, 3], [".", ".resets.0", ".sync"]),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "ids", "places"), GROWN)
def test_unknown_fields_keep_no_load_from_its_end(put_back, name, ids, places):
    lake = put_back(name, grown=True)
    lake.remove_strangers()
    (result,) = lake.load("b").tables
    assert (result.status in ("done", "already_done"), result.code) == (True, None), result.message
    assert lake.ids() == ids
    assert sorted(kept(state_of(lake))) == sorted(places)
    assert lake.differences("b") == []
    assert lake.load("a").tables[0].status == "already_done"


def test_unknown_fields_through_the_next_load(put_back):
    lake = put_back("glue-uploaded", grown=True)
    lake.more(5)
    assert lake.load("c").status == "done"
    assert lake.ids() == [1, 2, 3, 4, 5]
    assert sorted(kept(state_of(lake))) == [".", ".resets.0", ".resets.1", ".sync"]
    own = {key: body for key, body in lake.aws.objects(BUCKET).items() if "/loads/c/" in key}
    # The cursor that load c began with is the one it read, as it was.
    places = {place.rpartition(": ")[2] for place in unknown_keys(own, lake.control.table_id)}
    assert places == {".cursor_before.later"}


@pytest.mark.parametrize("command", [("abandon", "b"), ("reset", "events"), ("verify", "b"), ("run",), ("status",)])
def test_what_a_state_needs_stops_every_command(put_back, command):
    lake = put_back("files-intended")
    key = lake.control.keys.state(lake.control.table_id)
    changed = json.dumps(state_of(lake) | {"needs": ["two-writers"]}).encode()
    lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=changed)
    before, uploads = lake.aws.objects(BUCKET), lake.aws.uploads(BUCKET)
    options = {"abandon": ["--reason", "r"], "reset": ["--no-cursor", "--reason", "r"]}.get(command[0], [])
    result = CliRunner().invoke(main, [command[0], str(lake.folder / "lake.yaml"), *command[1:], *options])
    if command[0] == "verify":
        # A load that is not committed is none to compare.
        assert result.stderr.startswith("SPEC_INVALID")
    else:
        assert result.stderr.startswith(f"PENDING_UNRECOVERABLE: {key} cannot be used by this release: it needs")
        assert result.exit_code == 1
    assert (lake.aws.objects(BUCKET), lake.aws.uploads(BUCKET)) == (before, uploads)


def test_what_a_state_needs_stops_a_sync(put_back):
    lake = put_back("airbyte-append-intended")
    key = lake.control.keys.state(lake.control.table_id)
    changed = json.dumps(state_of(lake) | {"needs": ["two-writers"]}).encode()
    lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=changed)
    before = lake.aws.objects(BUCKET)
    with pytest.raises(PendingUnrecoverableError, match="it needs 'two-writers'"):
        lake.load("c")
    assert lake.aws.objects(BUCKET) == before


@pytest.mark.parametrize("object_", ["state", "continuous"])
def test_what_an_object_needs_stops_a_continuous_run(put_back, spark, object_):
    lake = put_back("continuous-intended")
    keys = lake.control.keys
    key = keys.continuous if object_ == "continuous" else keys.state(lake.control.table_id)
    changed = json.dumps(json.loads(lake.aws.objects(BUCKET)[key]) | {"needs": ["two-writers"]}).encode()
    lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=changed)
    before = {key: body for key, body in lake.aws.objects(BUCKET).items() if key != keys.continuous}
    run = Running(lake.spec, spark)
    if object_ == "continuous":
        with pytest.raises(PendingUnrecoverableError, match="it needs 'two-writers'"):
            run.run()
        assert lake.aws.objects(BUCKET)[key] == changed
    else:
        run.run()
        assert run.ended[1] is not None
        assert run.ended[1].code == "PENDING_UNRECOVERABLE"
    after = {key: body for key, body in lake.aws.objects(BUCKET).items() if key != keys.continuous}
    assert after == before
