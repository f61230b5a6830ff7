"""Expiry of snapshots: what a branch, a tag, an undo or a reader of a kept snapshot needs stays, whoever dies."""

from contextlib import suppress
from unittest.mock import patch

import pytest

from lakewriter.commit import attempt as attempts
from lakewriter.commit.iceberg.append import COMMITS
from lakewriter.commit.iceberg.expire_snapshots import commit_expiry
from lakewriter.commit.recover import recover
from lakewriter.errors import LakeError, SpecInvalidError
from lakewriter.operate.expiry import Expiry
from lakewriter.records.facets import ExpireIntent
from tests.load.lakes import BUCKET
from tests.load.test_compacted import append, compact, ids, kill_at, make_appended
from tests.load.test_merged import Killed, load, make, rows

OLD = -1
"""Days of an expiry for which every snapshot is old."""


def expire(users, keep=1, days=OLD):
    table, *_ = users.spec.tables
    return Expiry(users.pipeline, table, days, keep)


def key_of(location):
    return location.removeprefix(f"s3://{BUCKET}/")


def list_named(table):
    """The keys of all that a snapshot of the table needs, by the library's own reading."""
    named = set()
    for snapshot in table.snapshots():
        named.add(key_of(snapshot.manifest_list))
        for manifest in snapshot.manifests(table.io):
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            named |= {key_of(manifest.manifest_path), *(key_of(entry.data_file.file_path) for entry in entries)}
    return named


def list_stored(users):
    """The keys of the table's objects but for its metadata files, and those of control objects."""
    ends = (".parquet", ".avro", ".puffin", ".stats")
    (table,) = users.spec.tables
    folder = f"/{table.schema_name}/users/"
    return {key for key in users.aws.objects(BUCKET) if folder in key and key.endswith(ends)}


def jobs(users):
    """The job ids of the snapshots that are left, the oldest first."""
    found = [
        snapshot.summary.additional_properties.get("lakewriter.job-id") for snapshot in users.iceberg().snapshots()
    ]
    return [job for job in found if not (job or "").startswith("expire.")]


def test_old_snapshots_go_with_their_files(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    for number in range(4):
        load(users, f"job-{number}", (1, number, "a"), (10 + number, 1, "b"))
    compact(users).run()
    before = rows(users)
    plan = expire(users).plan()
    assert [len(plan.intent.snapshots), plan.intent.undos] == [2, ("job-2", "job-1", "job-0")]
    planned = plan.find_unused()
    report = expire(users).run()
    # The last load, the snapshot before it, the compaction, and the snapshot of the expiry itself.
    assert jobs(users) == ["job-2", "job-3", "compact.crm.users.5"]
    assert (report.job_id, report.expired.snapshots, report.rows) == ("expire.crm.users.6", 2, 0)
    assert (report.expired.files, report.expired.bytes) == (len(planned), planned.bytes)
    assert list_stored(users) == list_named(users.iceberg())
    assert rows(users) == before
    assert users.differences() == []
    state = users.state
    assert (state.committed, state.compactions, state.last_job, state.pending) == (6, 2, "job-3", None)
    assert (state.running, expire(users).run()) == ({}, None)
    # The last load is undone, and loads go on.
    users.undo("job-3").run()
    assert rows(users) == [(1, 2, "a"), (10, 1, "b"), (11, 1, "b"), (12, 1, "b")]
    load(users, "after", (1, 9, "c"))
    assert rows(users)[0] == (1, 9, "c")
    assert users.differences() == []


def test_files_stay_that_a_merged_manifest_has(tmp_path, aws, bucket):
    """Each load writes the manifests of those before it into its own: only expired snapshots have theirs, and the table
    still has the files in them."""
    users = make_appended(tmp_path, aws)
    users.load("first", id=[9], v=["a"])
    aws.hide_missing = False
    with users.iceberg().transaction() as transaction:
        transaction.set_properties({"commit.manifest.min-count-to-merge": "2"})
    aws.hide_missing = True
    append(users)
    # The first two loads' manifests go with their snapshots, and the files of both stay.
    report = expire(users).run()
    assert (report.expired.snapshots, ids(users)) == (4, [0, 1, 2, 3, 4, 9])
    assert list_stored(users) == list_named(users.iceberg())


def test_a_load_that_was_undone_is_not_the_last(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    for number in range(3):
        load(users, f"job-{number}", (1, number, "a"))
    users.undo("job-2").run()
    expire(users).run()
    assert jobs(users) == ["job-0", "job-1", "undo.job-2"]
    users.undo("job-1").run()
    assert rows(users) == [(1, 0, "a")]


def test_an_older_undo_is_refused_with_the_date_of_the_expiry(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    for number in range(3):
        load(users, f"job-{number}", (1, number, "a"))
    report = expire(users).run()
    with pytest.raises(SpecInvalidError) as refused:
        users.undo("job-1", through=True).run()
    day = report.started.strftime("%Y-%m-%d")
    assert f"an expiry has removed it on {day}" in str(refused.value)
    with pytest.raises(SpecInvalidError, match="is an expiry, which changes no rows"):
        users.undo("expire.crm.users.4").run()
    users.undo("job-2").run()
    assert rows(users) == [(1, 1, "a")]


def test_an_appended_load_is_undone_without_its_snapshot(tmp_path, aws, bucket):
    users = make_appended(tmp_path, aws)
    append(users)
    assert expire(users).plan().intent.undos == ()
    expire(users).run()
    assert jobs(users) == ["job-3", "job-4"]
    users.undo("job-1").run()
    assert ids(users) == [0, 2, 3, 4]
    assert users.differences() == []


def branch(users, name, number, **retention):
    users.aws.hide_missing = False
    table = users.iceberg()
    table.manage_snapshots().create_branch(table.snapshots()[number].snapshot_id, name, **retention).commit()
    users.aws.hide_missing = True


def tag(users, name, number, **retention):
    users.aws.hide_missing = False
    table = users.iceberg()
    table.manage_snapshots().create_tag(table.snapshots()[number].snapshot_id, name, **retention).commit()
    users.aws.hide_missing = True


YEAR = 365 * 86_400_000
# What is done to a table of five loads, the snapshots to keep, and those that are left with the names of branches and
# tags. The rules are those of https://iceberg.apache.org/spec/#snapshot-retention-policy; the last load and the
# snapshot before it stay in any case.
KEPT = {
    "nothing": (lambda users: None, 1, [3, 4], ["main"]),
    "three of them": (lambda users: None, 3, [2, 3, 4], ["main"]),
    "a tag": (lambda users: tag(users, "t", 1), 1, [1, 3, 4], ["main", "t"]),
    "a branch": (lambda users: branch(users, "b", 2), 1, [2, 3, 4], ["b", "main"]),
    "a branch that keeps two": (
        lambda users: branch(users, "b", 2, min_snapshots_to_keep=2),
        1,
        [1, 2, 3, 4],
        ["b", "main"],
    ),
    "a branch that keeps a year": (
        lambda users: branch(users, "b", 1, max_snapshot_age_ms=YEAR),
        1,
        [0, 1, 3, 4],
        ["b", "main"],
    ),
    "a tag whose time has passed": (lambda users: tag(users, "t", 1, max_ref_age_ms=1), 1, [3, 4], ["main"]),
    "a tag with a year left": (lambda users: tag(users, "t", 1, max_ref_age_ms=YEAR), 1, [1, 3, 4], ["main", "t"]),
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", KEPT)
def test_what_branches_and_tags_name_stays(tmp_path, aws, bucket, case):
    require_kept(make_appended(tmp_path, aws), case)


def require_kept(users, case):
    """Play a case of ``KEPT`` on a new table."""
    change, keep, left, names = KEPT[case]
    append(users)
    change(users)
    expire(users, keep).run()
    assert jobs(users) == [f"job-{number}" for number in left]
    assert sorted(users.iceberg().refs()) == names
    assert list_stored(users) == list_named(users.iceberg())


def test_young_snapshots_stay(tmp_path, aws, bucket):
    users = make_appended(tmp_path, aws)
    append(users)
    assert expire(users, days=1).run() is None
    # Those that no branch has any more, too.
    roll_back(users, 0)
    assert expire(users, days=1).run() is None
    assert len(users.iceberg().snapshots()) == 5


def roll_back(users, number):
    users.aws.hide_missing = False
    table = users.iceberg()
    table.manage_snapshots().set_current_snapshot(table.snapshots()[number].snapshot_id).commit()
    users.aws.hide_missing = True


def expire_by_hand(users):
    users.aws.hide_missing = False
    table = users.iceberg()
    table.maintenance.expire_snapshots().by_id(table.snapshots()[0].snapshot_id).commit()
    users.aws.hide_missing = True


# What comes between the plan of an expiry and its commit, and the snapshots that are left.
BETWEEN = {
    "a tag of one that was to go": (lambda users: tag(users, "t", 1), [1, 3, 4]),
    "a branch": (lambda users: branch(users, "b", 0), [0, 3, 4]),
    "a branch that keeps all": (
        lambda users: branch(users, "b", 2, min_snapshots_to_keep=9),
        [0, 1, 2, 3, 4],
    ),
    "a rollback": (lambda users: roll_back(users, 2), [1, 2, 3, 4]),
    "an expiry by another tool": (expire_by_hand, [3, 4]),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("is_bound", [False, True])
@pytest.mark.parametrize("case", BETWEEN)
def test_changes_between_plan_and_commit(tmp_path, aws, bucket, case, is_bound):
    require_left(make_appended(tmp_path, aws), case, is_bound=is_bound)


def require_left(users, case, *, is_bound):
    """Play a case of ``BETWEEN`` on a new table, after the intent is bound or before."""
    between, left = BETWEEN[case]
    append(users)
    if is_bound:
        with patch.object(attempts, "settle", side_effect=Killed), suppress(Killed):
            expire(users).run()
        pending = users.state.pending
        assert (pending.phase, pending.job_id) == ("intended", f"expire.{users.spec.tables[0].id}.6")
        between(users)
        recover(users.pipeline.first_control, users.pipeline.open_clients)
    else:
        bind = attempts.bind
        with patch.object(attempts, "bind", lambda *given: (between(users), bind(*given))):
            expire(users).run()
    kept = [job for job in jobs(users) if job is not None]
    assert [job for job in kept if job.startswith("job-")] == [f"job-{number}" for number in left]
    assert list_named(users.iceberg()) <= list_stored(users)
    assert (users.state.pending, users.state.compactions) == (None, 1)


def test_another_tool_expires_within_the_commit(tmp_path, aws, bucket, monkeypatch):
    """Between the reading of the table and the catalog's own look at it."""
    users, calls = make_appended(tmp_path, aws), list[tuple[object, ...]]()
    append(users)

    def commit_late(*given):
        if not calls:
            expire_by_hand(users)
        calls.append(given)
        commit_expiry(*given)

    monkeypatch.setitem(COMMITS, ExpireIntent, commit_late)
    report = expire(users).run()
    assert (len(calls), report.expired.snapshots, jobs(users)) == (2, 2, ["job-3", "job-4"])


def test_an_undo_that_an_expiry_overtakes(tmp_path, aws, bucket):
    """It is planned anew, and refused if its snapshot is gone by then."""
    users = make(tmp_path, aws)
    for number in range(3):
        load(users, f"job-{number}", (1, number, "a"))
    register = attempts.register

    def expire_first(*given):
        with patch.object(attempts, "register", register):
            expire(users).run()
        return register(*given)

    with patch.object(attempts, "register", expire_first):
        users.undo("job-2").run()
    assert rows(users) == [(1, 1, "a")]
    assert users.differences() == []


@pytest.mark.exhaustive
def test_an_expiry_that_is_killed_at_any_call(tmp_path, aws, bucket):
    users, number, kills = make(tmp_path, aws), 1, 0
    load(users, "first", (1, 0, "a"))
    while True:
        for part in "ab":
            load(users, f"job-{kills}-{part}", (1, 2 * kills + (part == "b") + 1, "a"))
        compact(users).run()
        expected = [(1, 2 * kills + 2, "a")]
        is_killed = kill_at(number, expire(users).run, after=bool(number % 2))
        assert rows(users) == expected
        assert list_named(users.iceberg()) <= list_stored(users)
        if not is_killed:
            break
        recover(users.pipeline.first_control, users.pipeline.open_clients)
        expire(users).run()
        assert list_stored(users) == list_named(users.iceberg())
        kills, number = kills + 1, number + 1
    assert kills >= 20
    assert users.differences() == []
    users.undo(f"job-{kills}-b").run()
    assert rows(users) == [(1, 2 * kills + 1, "a")]


def test_two_expiries_at_once(tmp_path, aws, bucket):
    """The one that comes first does the work of both."""
    users, reports = make_appended(tmp_path, aws), []
    append(users)
    begin = Expiry._begin

    def expire_first(self, job_id):
        with patch.object(Expiry, "_begin", begin):
            reports.append(expire(users).run())
        return begin(self, job_id)

    with patch.object(Expiry, "_begin", expire_first):
        assert expire(users).run() == reports[0]
    assert (users.state.committed, users.state.running) == (6, {})


def test_a_table_that_is_gone(tmp_path, aws, bucket):
    users = make_appended(tmp_path, aws)
    append(users, 1)
    aws.client("glue").delete_table(DatabaseName="crm", Name="users")
    with pytest.raises(SpecInvalidError, match="is not in its catalog: crm"):
        expire(users).plan()


def test_files_of_a_table_that_shares_them_stay(tmp_path, aws, bucket):
    users = make_appended(tmp_path, aws)
    append(users)
    with patch.object(attempts, "settle", side_effect=Killed), suppress(Killed):
        expire(users).run()
    stored = list_stored(users)
    users.aws.hide_missing = False
    with users.iceberg().transaction() as transaction:
        transaction.set_properties({"gc.enabled": "false"})
    users.aws.hide_missing = True
    recover(users.pipeline.first_control, users.pipeline.open_clients)
    assert jobs(users) == ["job-3", "job-4"]
    assert stored <= list_stored(users)
    with pytest.raises(LakeError, match=r"has gc\.enabled=false"):
        expire(users).run()
