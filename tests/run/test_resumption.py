"""What a source is handed back: states of streams whose committed records stay."""

from datetime import UTC, datetime

import pytest
import yaml

from lakewriter.commit.decisions import Decision
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import SourceFailedError
from lakewriter.records.state import TableState
from lakewriter.records.sync_records import Live, SourceState, SyncState
from lakewriter.run.resumption import is_covered, plan_resumption, split_state
from lakewriter.spec.stream import Stream

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


def keep_own(*_):
    """Of states that the tables keep themselves."""


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
    found = plan_resumption([table], {table.id: state}, continues=continues, read=keep_own)
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
    found = plan_resumption([users, whole], {users.id: first, whole.id: second}, continues=False, read=keep_own)
    assert (found.text, list(found.given)) == (text, given)


def test_stream_without_a_state_of_its_own_begins_anew(tmp_path):
    users, orders = tables(tmp_path, ("u", {}), ("o", {}))
    states = {users.id: saved(both("u", "o"), kind="global"), orders.id: TableState()}
    assert plan_resumption([users, orders], states, continues=True, read=keep_own).text == f"[{both('u')}]"


def test_nothing_saved(tmp_path):
    (table,) = tables(tmp_path, ("u", {}))
    assert plan_resumption([table], {table.id: TableState()}, continues=True, read=keep_own).text is None


def at(number, *, unfinished=False, kept="record", live=True, anew=False):
    """A table at the state for all streams with this number, 0 for none; ``kept`` in its sync's record or in itself."""
    source = None
    if number:
        record = f"j{number}/a" if kept == "record" else None
        text = "" if record else both("u", "o", shared=number)
        source = SourceState(kind="global", text=text, digest=str(number), job_id=f"j{number}", record=record)
    own = (Live(job_id="j", generation_id=0),) if live else ()
    return TableState(sync=SyncState(sync_id=1, source=source, unfinished=unfinished, live=own, begins_anew=anew))


def read_record(decisions):
    """Read the decision of a state: of number 2 it says which tables have it, and which state was before."""

    def read(_, state):
        if state.record is None:
            return None
        number = int(state.digest)
        tables, before = decisions.get(number, ((), None))
        kept = SourceState(kind="global", text=both("u", "o", shared=number), digest=str(number), job_id="j")
        return Decision(bound=True, tables=tables, source=kept, before=before)

    return read


U, W = "p.u", "p.o"
BOTH = {2: ((U, W), "1")}
APART = "are not at the same one"
EARLIER = "in a sync of an earlier release"
AGAIN = "would send all of its rows again"
COMMON = [
    # the states of two streams, the tables and the state before of decisions, the number of the state that is handed
    # over (0: from the beginning), or the error; the streams that are in it
    pytest.param(at(2), at(2), BOTH, 2, "uo", id="the same"),
    pytest.param(at(2, kept="own"), at(2, kept="own"), {}, 2, "uo", id="of an earlier release"),
    pytest.param(at(2, kept="own"), at(2), BOTH, 2, "uo", id="of both"),
    pytest.param(at(2), at(1), BOTH, 1, "uo", id="one table was not committed"),
    pytest.param(at(1), at(2), BOTH, 1, "uo", id="the other"),
    pytest.param(at(2), at(1), {2: ((U, W), "0")}, APART, "", id="two syncs apart"),
    pytest.param(at(2), at(1), {2: ((U,), "1")}, APART, "", id="was left out of the last sync"),
    pytest.param(at(2, kept="own"), at(1, kept="own"), {}, APART, "", id="earlier release, apart"),
    pytest.param(at(2, kept="own"), at(2, kept="own", unfinished=True), {}, EARLIER, "", id="ended alone"),
    pytest.param(at(2), at(0, live=False), BOTH, APART, "", id="first sync of one, committed in the other alone"),
    pytest.param(at(2), at(0, live=False), {2: ((U, W), None)}, 0, "", id="first sync of both"),
    pytest.param(at(2), at(0, live=False), {2: ((U,), "1")}, 2, "u", id="a stream that was added"),
    pytest.param(at(2), at(0), {2: ((U,), "1")}, AGAIN, "", id="rows without a state"),
    pytest.param(at(2), at(0, anew=True), BOTH, 2, "u", id="reset"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "decisions", "expected", "named"), COMMON)
def test_state_that_streams_have_in_common(tmp_path, first, second, decisions, expected, named):
    users, orders = tables(tmp_path, ("u", {}), ("o", {}))
    decisions = {number: (tuple({U: users.id, W: orders.id}[name] for name in names), before)
                 for number, (names, before) in decisions.items()}  # fmt: skip
    states = {users.id: first, orders.id: second}

    def plan():
        return plan_resumption([users, orders], states, continues=True, read=read_record(decisions))

    if isinstance(expected, str):
        with pytest.raises(SourceFailedError, match=expected) as failed:
            plan()
        assert "lakewriter reset LAKE" in failed.value.remedy
        return
    found = plan()
    assert found.text == (f"[{both(*named, shared=expected)}]" if expected else None)
    assert {state.digest for state in found.given.values()} == {str(expected) if expected else ""}
    assert found.before == (str(expected) if expected else None)


@pytest.mark.parametrize("unfinished", [False, True])
def test_full_refresh_takes_no_part_in_the_common_state(tmp_path, unfinished):
    """One that did not end begins anew where the others are at another state."""
    users, whole = tables(tmp_path, ("u", {}), ("w", FULL))
    states = {users.id: at(2), whole.id: at(1, unfinished=unfinished)}
    found = plan_resumption([users, whole], states, continues=True, read=read_record({2: ((users.id,), "1")}))
    assert found.text == f"[{both('u', 'o', shared=2)}]"


def test_streams_of_a_source_that_says_states_of_each_now(tmp_path):
    """The orders have had nothing new since the last LEGACY state."""
    users, orders = tables(tmp_path, ("u", {}), ("o", {}))
    legacy = saved('{"data": {"u": {"at": 1}, "o": {"at": 1.50}}}', kind="legacy")
    states = {users.id: saved('{"type":"STREAM"}'), orders.id: legacy}
    found = plan_resumption([users, orders], states, continues=True, read=keep_own)
    own = '{"type":"STREAM","stream":{"stream_descriptor":{"name":"o"},"stream_state":{"at": 1.50}}}'
    assert found.text == f'[{{"type":"STREAM"}},{own}]'
    assert found.given[orders.id] == legacy.sync.source


SPLIT = [
    # the kind and the text of a state for all streams, the state of the stream o in it, None where it has none
    ("legacy", '{"data": {"o": {"at": 1e400}}}', '{"at": 1e400}'),
    ("legacy", '{"data": {"o": 5}}', None),
    ("legacy", '{"data": {"at": 5}}', None),
    ("legacy", '{"data": "x"}', None),
    ("global", both("o"), None),
]


@pytest.mark.parametrize(("kind", "text", "expected"), SPLIT)
def test_state_of_one_stream_out_of_one_for_all(kind, text, expected):
    state = SourceState(kind=kind, text=text, digest="d", job_id="j")
    if expected is None:
        with pytest.raises(SourceFailedError, match=f"is at a {kind.upper()} state for all streams"):
            split_state(Stream(name="o", namespace="n"), state, None)
        return
    found = split_state(Stream(name="o", namespace="n"), state, None)
    descriptor = '{"name":"o","namespace":"n"}'
    assert (found.kind, found.job_id, found.record) == ("stream", "j", None)
    assert found.text == (
        f'{{"type":"STREAM","stream":{{"stream_descriptor":{descriptor},"stream_state":{expected}}}}}'
    )


COVERED = [
    # a state for all streams, whether it says how far an incremental stream u is, and a full refresh u
    (both("u", "w"), True, True),
    (both("w"), False, False),
    (both(), True, False),
    ('{"data": {"u": {}}}', True, True),
    ('{"data": {"w": {}}}', False, False),
    ('{"data": {"at": 5}}', True, False),
]


@pytest.mark.parametrize(("text", "incremental", "full"), COVERED)
def test_streams_that_a_state_covers(text, incremental, full):
    found = [is_covered(text, (None, "u"), needs_part=needed) for needed in (False, True)]
    assert found == [incremental, full]
