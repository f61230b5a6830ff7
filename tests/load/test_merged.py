"""``mode: merge``: a table has one row of each key, the newest, whoever dies while rows are merged."""

from contextlib import suppress
from typing import Any
from unittest.mock import patch

import botocore.client
import pytest

from lakewriter.errors import SpecInvalidError
from tests.load.lakes import BUCKET
from tests.load.refreshed import Refreshed

CALL = "_make_api_call"


class Killed(BaseException):
    """The process is gone: no further call reaches a service."""


def make(tmp_path, aws, **changes):
    rules = {"primary_key": ["id"], "order_by": ["at"]} | changes
    return Refreshed(tmp_path, aws, "iceberg", mode="merge", **rules)


def rows(users) -> list[tuple[Any, ...]]:
    return sorted((row["id"], row["at"], row["v"]) for row in users.iceberg().scan().to_arrow().to_pylist())


def load(users, job, *given):
    ids, ats, values = zip(*given, strict=True)
    return users.load(job, id=list(ids), at=list(ats), v=list(values))


def test_the_newest_row_of_a_key_stays(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"), (2, 1, "a"), (2, 5, "b"), (2, 3, "c"))
    assert rows(users) == [(1, 1, "a"), (2, 5, "b")]
    load(users, "b", (1, 2, "new"), (2, 4, "late"), (3, 1, "first"))
    assert rows(users) == [(1, 2, "new"), (2, 5, "b"), (3, 1, "first")]
    assert users.differences() == []
    # Older rows, and the same again, change nothing.
    load(users, "c", (1, 1, "a"), (2, 5, "b"), (3, 1, "first"))
    assert rows(users) == [(1, 2, "new"), (2, 5, "b"), (3, 1, "first")]
    assert users.differences() == []


DELETED = {"destination": {"tracking": ["deleted"]}, "deleted": "v = 'D'"}


@pytest.mark.spark
@pytest.mark.parametrize("keeps", [False, True])
def test_deleted_rows(tmp_path, aws, bucket, spark, keeps):
    users = make(tmp_path, aws, **DELETED, spark=spark, **({"keep_deleted": True} if keeps else {}))
    load(users, "a", (1, 1, "a"), (2, 1, "a"))
    load(users, "b", (1, 2, "D"), (3, 1, "D"))
    flags = {row["id"]: row["_deleted"] for row in users.iceberg().scan().to_arrow().to_pylist()}
    assert flags == ({1: True, 2: False, 3: True} if keeps else {2: False})
    load(users, "c", (1, 1, "a"))
    assert (1, 1, "a") in rows(users) or keeps
    assert users.differences() == []


def test_the_report_has_what_became_of_the_rows(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    load(users, "a", (1, 2, "a"), (2, 2, "a"))
    (table,) = load(users, "b", (1, 3, "b"), (2, 1, "b"), (3, 1, "b"), (3, 2, "b")).tables
    assert "rows merged: 1 inserted, 1 updated, 0 deleted; 0 unchanged, 1 late, 1 superseded" in table.notes


def test_a_row_without_a_key_is_a_bad_row(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    report = users.try_load("a", id=[1, None], at=[1, 1], v=["a", "a"])
    assert report.tables[0].code == "EXPECTATION_FAILED"
    users.write(on_bad_row={"action": "quarantine", "at_most": 1.0})
    load(users, "b", (1, 1, "a"), (None, 1, "a"))
    assert rows(users) == [(1, 1, "a")]


def test_rows_are_not_merged_by_floats(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    report = users.try_load("a", id=[1.0], at=[1], v=["a"])
    assert report.tables[0].code == "SPEC_INVALID"
    assert "primary_key of 'crm.users': column 'id' has type 'double'" in report.tables[0].message


def test_a_load_that_appended_is_not_undone_behind_a_merge(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    users.write(mode="append", order_by=[])
    load(users, "a", (1, 1, "a"))
    users.write()
    load(users, "b", (1, 2, "b"))
    with pytest.raises(SpecInvalidError, match="load b has merged rows into the table since"):
        users.undo("a").plan()


def test_an_undo_shows_the_rows_before_again(tmp_path, aws, bucket):
    users = make(tmp_path, aws)
    load(users, "a", (1, 1, "a"), (2, 1, "a"))
    load(users, "b", (1, 2, "b"))
    load(users, "c", (2, 2, "c"))
    with pytest.raises(SpecInvalidError, match="the table has changed since"):
        users.undo("b").plan()
    users.undo("c").run()
    assert rows(users) == [(1, 2, "b"), (2, 1, "a")]
    users.undo("b").run()
    assert rows(users) == [(1, 1, "a"), (2, 1, "a")]
    assert users.differences() == []


@pytest.mark.one_in(15)
@pytest.mark.parametrize("first", range(15))
def test_kills_at_every_call(tmp_path, aws, bucket, first):
    """A process dies at every fifteenth call; the next load ends what was begun, or it has not happened."""
    users, is_killed, number, ends = make(tmp_path, aws), True, first, set()
    while is_killed:
        begin_anew(aws)
        load(users, "a", (1, 1, "a"), (2, 1, "a"), (3, 1, "a"))
        is_killed = kill(users, number, (1, 2, "b"), (3, 2, "b"), (4, 2, "b"))
        load(users, "c", (1, 3, "c"), (5, 3, "c"))
        before = ((2, 1, "a"), (3, 1, "a"))
        after = ((2, 1, "a"), (3, 2, "b"), (4, 2, "b"))
        seen = rows(users)
        assert seen in ([(1, 3, "c"), *rest, (5, 3, "c")] for rest in (before, after))
        assert users.differences() == []
        ends.add(len(seen))
        number += 15
    assert ends == {4, 5}


def begin_anew(aws) -> None:
    glue, s3 = aws.client("glue"), aws.client("s3")
    for key in aws.objects(BUCKET):
        s3.delete_object(Bucket=BUCKET, Key=key)
    with suppress(glue.exceptions.EntityNotFoundException):
        glue.delete_table(DatabaseName="crm", Name="users")


def kill(users, number: int, *given) -> bool:
    """A load whose process dies at a call; False where it had fewer calls."""
    calls, call = 0, getattr(botocore.client.BaseClient, CALL)

    def counted(client, operation, arguments):
        nonlocal calls
        calls += 1
        if calls > number:
            raise Killed
        return call(client, operation, arguments)

    with patch.object(botocore.client.BaseClient, CALL, counted):
        try:
            load(users, "b", *given)
        except Killed:
            return True
    return False
