"""The state that a table has once its pending change is done."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import NoneType
from typing import Any, get_args

import pytest

from lakewriter.commit.attempt import Attempt
from lakewriter.commit.catalog import FilesOnly
from lakewriter.receipt import Part, Receipt
from lakewriter.records.actions import FilesAction, GlueAction
from lakewriter.records.changes import KINDS, Effects, Kind, Load, lets_loads_go_on, require_able
from lakewriter.records.facets import CompactIntent, MergeIntent, Quarantine, Removal, Switch, UndoneLoad
from lakewriter.records.fold.closing import Close, CloseBlindly, choose_last_job
from lakewriter.records.fold.steps import fold
from lakewriter.records.state import LOADED_AGAIN, DroppedPartition, Generation, Retiring, TableState, Undone
from lakewriter.report import COUNTS, CompactCounts, Counts, ExpireCounts, MergeCounts, TableReport
from lakewriter.spec.load_ids import JOB_IDS, is_id_of_load
from tests.commit.intents import intent

NOW = datetime(2024, 1, 15, tzinfo=UTC)
OWN = Attempt("p", "a.r3", "A1", NOW, timedelta(days=30))

THREE_ROWS = Receipt(
    bucket="b",
    key="k",
    upload_id="u",
    parts=(Part(1, '"e"'),),
    checksum_algorithm=None,
    size=1,
    rows=3,
    partition=0,
    seq=0,
    first_index=1,
    engine="none",
    row_groups=1,
    requests={},
)


def undone(job_id: str, by: str, following: str) -> Undone:
    return Undone(job_id=job_id, by=by, at=NOW, next=following, reason=LOADED_AGAIN)


def test_job_ids_that_a_load_stands_for_load_nothing_any_more():
    """A slow attempt at one of them would load its rows a second time."""
    state = fold(TableState(), Close(intent(OWN, repeats=("a", "a.r2")), NOW, None))
    assert state.undone == (undone("a", "a.r3", "a.r2"), undone("a.r2", "a.r3", "a.r3"))


def test_a_job_id_that_was_undone_says_so_as_it_did():
    before = Undone(job_id="a", by="undo.a", at=NOW - timedelta(days=1), next="a.r2", reason="a drill")
    state = fold(TableState(undone=(before,)), Close(intent(OWN, repeats=("a", "a.r2")), NOW, None))
    assert state.undone == (before, undone("a.r2", "a.r3", "a.r3"))


def test_files_of_a_full_refresh_that_is_undone_go_when_its_queries_have_ended():
    """Those of the refresh before it, which waited to be deleted, are shown again and stay."""
    first, second = (Generation(number=n, job_id=job, attempt="A", started=NOW) for n, job in ((1, "a"), (2, "b")))
    waiting = Retiring(job_id="a", attempt="A", not_before=NOW + timedelta(days=3), generation=1)
    state = TableState(generation=2, generations=(first, second), retiring=(waiting,))
    load = UndoneLoad(job_id="b", attempt="A", files=1, rows=1, reason="a drill", next="b.r2", grace_seconds=60)
    undo = intent(OWN, kind="undo", undoes=load, switch=Switch(before=2, after=1))
    after = fold(state, Close(undo, NOW, None))
    assert after.generations == (first,)
    gone = Retiring(job_id="b", attempt="A", not_before=NOW + timedelta(seconds=60), generation=2)
    assert after.retiring == (gone,)


ADDED = GlueAction(
    database="d", database_location="s3://b/d", table="t", location="s3://b/d/t", columns=(), partition_key="day",
    compression=None, partition="1", partition_location="s3://b/d/t/1",
)  # fmt: skip
DROPS = UndoneLoad(job_id="a", attempt="A", files=1, rows=1, reason="", next="a.r2", drops_partition=True)
DROPPED = DroppedPartition(
    partition="1", location="s3://b/d/t/1", job_id="x", attempt="X", is_due=False, until=NOW + timedelta(days=1)
)
PARTITIONS = [
    # partitions of the state, the change, whether it is abandoned; which change then decides about the partition
    ((), {}, False, None),
    ((), {"kind": "undo", "undoes": DROPS}, False, ("a.r3", False)),
    ((), {"kind": "undo", "undoes": DROPS.model_copy(update={"drops_partition": False})}, False, None),
    ((DROPPED,), {}, False, ("a.r3", True)),
    ((DROPPED,), {}, True, ("x", False)),
    ((DROPPED,), {"catalog": FilesAction()}, False, ("x", False)),
    ((DROPPED.model_copy(update={"partition": "2"}),), {}, False, ("x", False)),
    ((DROPPED.model_copy(update={"until": NOW}),), {}, False, None),
]


@pytest.mark.parametrize(("before", "fields", "abandoned", "decides"), PARTITIONS)
def test_partitions_that_were_dropped(before, fields, abandoned, decides):
    change = intent(OWN, **{"catalog": ADDED} | fields)
    closed = fold(TableState(partitions=before), Close(change, NOW, None, abandoned))
    assert [(entry.job_id, entry.is_due) for entry in closed.partitions] == ([decides] if decides else [])


def test_each_kind_that_an_intent_may_be_of_is_a_change():
    assert set(get_args(Kind)) == set(KINDS)


def test_each_kind_of_change_that_is_no_load_has_job_ids_of_its_own():
    assert {ids.kind for ids in JOB_IDS if not ids.are_loads} == {
        kind for kind, change in KINDS.items() if not issubclass(change, Load)
    }


def test_counts_of_each_kind_have_a_field_in_the_report():
    assert set(COUNTS) <= set(KINDS)
    for counts in COUNTS.values():
        assert TableReport.model_fields[counts.field].annotation == counts | None


COUNTED = [
    # what an intent of its own has, the counts that are known, the fields of its report
    ({}, None, {"rows": 3}),
    ({"kind": "merge"}, None, {"rows": 3, "merged": MergeCounts()}),
    ({"kind": "merge"}, MergeCounts(late=3), {"rows": 3, "merged": MergeCounts(late=3)}),
    ({"kind": "compact"}, None, {"rows": 0, "compacted": CompactCounts()}),
    ({"kind": "compact"}, CompactCounts(rows=3), {"rows": 0, "compacted": CompactCounts(rows=3)}),
    ({"kind": "expire"}, ExpireCounts(files=3), {"rows": 0, "expired": ExpireCounts(files=3)}),
]


@pytest.mark.parametrize(("of", "counts", "fields"), COUNTED)
def test_a_report_has_the_counts_of_its_kind(of: dict[str, Any], counts: Counts | None, fields: dict[str, Any]):
    report = intent(OWN, receipts=(THREE_ROWS,), **of).make_report(counts=counts)
    assert {name: getattr(report, name) for name in fields} == fields
    assert report.counts == next((value for name, value in fields.items() if name != "rows"), None)


WORK = [
    # the effects, the work that a catalog can do, whether it is able
    (Effects(adds=True), {NoneType}, True),
    (Effects(adds=True, work=MergeIntent(keys=("id",), order_by=("at",))), {NoneType, MergeIntent}, True),
    (Effects(adds=True, work=MergeIntent(keys=("id",), order_by=("at",))), {NoneType, UndoneLoad}, False),
    (Effects(adds=False, work=CompactIntent(snapshot=1, sequence=1, groups=())), {CompactIntent}, True),
    # A change that does nothing would count as committed all the same.
    (Effects(adds=False), {NoneType}, False),
]


@pytest.mark.parametrize(("effects", "works", "is_able"), WORK)
def test_a_catalog_refuses_work_that_it_cannot_do(effects: Effects, works: set[type], is_able: bool):
    with nullcontext() if is_able else pytest.raises(TypeError, match="has no way to publish the work"):
        require_able(effects, works)


def test_files_without_a_catalog_are_not_merged():
    merge = MergeIntent(keys=("id",), order_by=("at",))
    with pytest.raises(TypeError, match="has no way to publish the work MergeIntent"):
        FilesOnly().publish(intent(OWN, kind="merge", merge=merge), 1)


REMOVAL = Removal(key="old", etag="e")
FILES = FilesAction()
UNKNOWN = [
    # what an intent of its own has, what is said where its catalog cannot tell whether readers see it
    ({}, ". Whether readers see this change cannot be known (GONE). Its files: k"),
    ({"kind": "merge"}, ". Whether readers see this change cannot be known (GONE). Its files: k"),
    ({"kind": "refresh"}, "both, cannot be known (GONE). Its files: k. Those of before: old. The next refresh "),
    # Its rows are in the quarantine too, as is said elsewhere.
    ({"quarantine": Quarantine(catalog=FILES, takes=(REMOVAL,))}, ""),
    ({"kind": "compact"}, ". Whether readers see this change cannot be known (GONE). Its files: k"),
]


@pytest.mark.parametrize(("of", "said"), UNKNOWN)
def test_who_gives_a_change_up_is_told_what_is_unknown(of: dict[str, Any], said: str):
    change = intent(OWN, receipts=(THREE_ROWS,), **of)
    text = change.describe_unknown(" (GONE)", ["old"])
    assert said in text if said else not text


GO_ON = [
    # what an intent of its own has, the changes that let loads go on after it
    ({}, 2),
    ({"kind": "refresh"}, 2),
    ({"kind": "undo", "undoes": UndoneLoad(job_id="b", attempt="A", files=1, rows=1, reason="r", next="b.r2")}, 2),
    ({"kind": "compact", "job_id": "compact.s.t.4"}, 3),
    ({"kind": "expire", "job_id": "expire.s.t.4"}, 3),
]


@pytest.mark.parametrize(("of", "compactions"), GO_ON)
def test_changes_that_let_loads_go_on_are_counted(of: dict[str, Any], compactions: int):
    state = TableState(compactions=2)
    change = intent(OWN, **of)
    assert fold(state, Close(change, NOW, None)).compactions == compactions
    # A person ends it without its intent.
    assert fold(state, CloseBlindly(change.job_id, NOW, NOW)).compactions == compactions


LAST_JOBS = [
    # the job id, whether it is a load's, the table's last job after it
    ("b", True, "b"),
    ("undone", True, "undone"),
    ("undo.a", False, "undo.a"),
    ("replay.0f", True, "replay.0f"),
    ("compact.crm.users.2", False, "a"),
]


@pytest.mark.parametrize(("job_id", "is_load", "last"), LAST_JOBS)
def test_job_ids_say_what_their_changes_are(job_id: str, is_load: bool, last: str):
    assert is_id_of_load(job_id) == is_load
    assert choose_last_job(TableState(last_job="a"), job_id) == last
    assert lets_loads_go_on(job_id) == (last == "a")
