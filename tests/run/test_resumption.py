"""What a source is handed back: states of streams whose committed records stay."""

from datetime import UTC, datetime

import pytest
import yaml

from lakewriter.commit.state import TableState
from lakewriter.commit.sync_records import SourceState, SyncState
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.run.resumption import plan_resumption

DESTINATION = {
    "type": "airbyte-s3", "s3_bucket_name": "acme-lake", "s3_bucket_path": "data", "s3_bucket_region": "us-east-1",
    "format": {"format_type": "JSONL"},
}  # fmt: skip
FULL = {"sync_mode": "full_refresh", "destination_sync_mode": "overwrite"}


def tables(folder, *streams):
    """The tables of a catalog; each stream is its name and its settings."""
    own = [{"stream": {"name": name}, "sync_mode": "incremental"} | settings for name, settings in streams]
    content = {"pipeline": "p", "destination": DESTINATION, "source": {"messages": "-", "catalog": {"streams": own}}}
    (folder / "lake.yaml").write_text(yaml.safe_dump(content), "utf-8")
    return load_spec(folder / "lake.yaml").tables


def saved(text, *, kind="stream", generation=0, unfinished=False, day=1):
    source = text and SourceState(kind=kind, text=text, digest=text, job_id="j", place=0)
    sync = SyncState(generation_id=generation, source=source, unfinished=unfinished)
    return TableState(sync=sync, last_commit=datetime(2024, 1, day, tzinfo=UTC))


ONE = [
    # the stream, the generation of its state, whether its sync did not end, whether the next load knows that it goes
    # on, whether the state goes back
    ({}, 0, False, False, True),
    ({}, 0, True, False, True),
    (FULL, 4, True, True, True),
    # a load from standard input begins a new generation, and the records before the state would go
    (FULL, 4, True, False, False),
    (FULL | {"destination_sync_mode": "append"}, 0, True, False, True),
    (FULL | {"generation_id": 4}, 4, True, False, True),
    (FULL | {"generation_id": 5}, 4, True, True, False),
    ({"generation_id": 4, "minimum_generation_id": 4}, 4, False, False, True),
    # a refresh of an appended stream begins anew
    ({"generation_id": 5, "minimum_generation_id": 5}, 4, False, True, False),
    ({"generation_id": 5, "minimum_generation_id": 0}, 4, False, True, True),
    ({"destination_sync_mode": "overwrite"}, 4, False, True, False),
]


@pytest.mark.parametrize(("settings", "generation", "unfinished", "continues", "goes_back"), ONE)
def test_one_stream(tmp_path, settings, generation, unfinished, continues, goes_back):
    (table,) = tables(tmp_path, ("u", settings))
    state = saved('{"cursor": 1e400}', generation=generation, unfinished=unfinished)
    found = plan_resumption([table], {table.id: state}, continues=continues)
    assert found.text == ('[{"cursor": 1e400}]' if goes_back else None)
    assert found.given == ({table.id: state.sync.source} if goes_back else {})


def both(*names, shared=1):
    own = ",".join(f'{{"stream_descriptor":{{"name":"{name}"}},"stream_state":{{"at": 1.50}}}}' for name in names)
    return f'{{"type":"GLOBAL","global":{{"shared_state":{shared},"stream_states":[{own}]}}}}'


TWO = [
    # states of the incremental stream u and of the full refresh w, the file for the source, whom it stands for
    (saved('{"a": 1.10}'), saved(None), '[{"a": 1.10}]', ["u"]),
    (saved('{"a": 1}'), saved('{"b": 2}', unfinished=True, generation=1), '[{"a": 1}]', ["u"]),
    # a whole state without what it says of a stream that begins anew
    (saved(both("u", "w"), kind="global"), saved(None), f"[{both('u')}]", ["u"]),
    (saved(both("u", "x"), kind="global"), saved(None), f"[{both('u', 'x')}]", ["u"]),
    (saved('{"data": {"u": 1e400, "w": 5}}', kind="legacy"), saved(None), '{"u":1e400}', ["u"]),
    (saved('{"data": {"at": 1.50}}', kind="legacy"), saved(None), '{"at": 1.50}', ["u"]),
    (saved('{"data": "x"}', kind="legacy"), saved(None), '"x"', ["u"]),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "text", "given"), TWO)
def test_two_streams(tmp_path, first, second, text, given):
    users, whole = tables(tmp_path, ("u", {}), ("w", FULL))
    found = plan_resumption([users, whole], {users.id: first, whole.id: second}, continues=False)
    assert (found.text, list(found.given)) == (text, given)


def test_of_a_state_for_all_the_oldest_goes_back(tmp_path):
    users, orders = tables(tmp_path, ("u", {}), ("o", {}))
    # a catalog that is a file may give every sync one number: the time tells
    states = {users.id: saved(both("u", "o", shared=2), kind="global", day=2),
              orders.id: saved(both("u", "o"), kind="global")}  # fmt: skip
    found = plan_resumption([users, orders], states, continues=True)
    assert found.text == f"[{both('u', 'o')}]"
    assert found.given == dict.fromkeys([users.id, orders.id], states[orders.id].sync.source)


def test_stream_without_a_state_of_its_own_begins_anew(tmp_path):
    users, orders = tables(tmp_path, ("u", {}), ("o", {}))
    states = {users.id: saved(both("u", "o"), kind="global"), orders.id: TableState()}
    assert plan_resumption([users, orders], states, continues=True).text == f"[{both('u')}]"


def test_nothing_saved(tmp_path):
    (table,) = tables(tmp_path, ("u", {}))
    assert plan_resumption([table], {table.id: TableState()}, continues=True).text is None
