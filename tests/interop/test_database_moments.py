"""Partitioned reads of PostgreSQL and MariaDB under writes: all connections see one moment, or the load says no."""

import pytest

from tests.interop import postgresql
from tests.interop.test_database_loads import run, served

pytestmark = [pytest.mark.timeout(900), pytest.mark.exhaustive]
__all__ = ["served"]

TRANSFERS = """
from lakewriter.source.databases import moments
moments._TASK_SECONDS = 20
options = given["options"]
execute(options, "CREATE TABLE accounts (id int PRIMARY KEY, v int NOT NULL)",
        "INSERT INTO accounts VALUES " + ", ".join(f"({n}, 100)" for n in range(1, 401)))
# With rows that are not numbered, no task reads from a cache.
spec = table(format="jdbc", options={**options, "dbtable": "accounts"}, index="sparse",
             jdbc=JdbcRules(reconcile="columns", lock=given["lock"]), partition=JdbcPartition(column="id", count=4))
ended, transfers = threading.Event(), 0


def transfer():
    # From the last range to the first, in one transaction, so that the sum is the same in each moment.
    global transfers
    java = connect(options)
    java.setAutoCommit(False)
    while not ended.is_set():
        place = transfers % 100
        for sql in (f"UPDATE accounts SET v = v - 1 WHERE id = {400 - place}",
                    f"UPDATE accounts SET v = v + 1 WHERE id = {1 + place}"):
            java.createStatement().execute(sql)
        java.commit()
        transfers += 1
    java.close()


def read():
    feed = open_feed(RowsRequest(lambda: spark, spec))
    try:
        before = transfers
        rows = [json.loads(text) for text in feed.run(show)]
        while transfers == before:
            time.sleep(0.1)
        feed.reconcile()
        return feed, rows
    except BaseException:
        feed.close()
        raise


writer = threading.Thread(target=transfer)
writer.start()
found = {"sums": [], "rows": []}
try:
    for number in range(4):
        feed, rows = read()
        found["sums"].append(sum(int(row[1]) for row in rows))
        found["rows"].append(len(rows))
        if number < 3 or not given["lock"]:
            feed.close()
            continue
        try:
            # Tasks that are repeated connect when the lock is over.
            feed.run(show)
        except LakeError as error:
            found["late"] = str(error)
        feed.close()
    found["notes"] = list(feed.notes)
    if given["lock"]:
        moments.LOCK_SECONDS = 15
        feed = open_feed(RowsRequest(lambda: spark, spec))
        feed._checks[0]._count = 5
        try:
            feed.run(show)
        except LakeError as error:
            found["few"] = str(error)
        feed.close()
        before = transfers
        while transfers == before:
            time.sleep(0.1)
        execute(options, "CREATE TABLE old (id int PRIMARY KEY) ENGINE=MyISAM", "INSERT INTO old VALUES (1), (2), (9)")
        old = spec.model_copy(update={
            "read": spec.read.model_copy(update={"options": {**options, "dbtable": "old"}})})
        try:
            open_feed(RowsRequest(lambda: spark, old))
        except LakeError as error:
            found["old"] = str(error)
        many = spec.model_copy(update={
            "read": spec.read.model_copy(update={"partition": JdbcPartition(column="id", count=40)})})
        try:
            open_feed(RowsRequest(lambda: spark, many))
        except LakeError as error:
            found["many"] = str(error)
finally:
    ended.set()
    writer.join()
print(json.dumps(found))
"""


def test_all_connections_see_one_moment(served):
    options, package, _ = served
    is_locked = package != postgresql.DRIVER
    found = run(TRANSFERS, {"options": options, "lock": is_locked}, package)
    assert (found["sums"], found["rows"], found["notes"]) == ([40_000] * 4, [400] * 4, [])
    if is_locked:
        assert "a connection began after accounts was unlocked, and would have seen another moment." in found["late"]
        assert "4 of 5 connections began within 15 s, for which accounts was locked." in found["few"]
        assert "read.jdbc.lock needs a table of the engine InnoDB, and old is MyISAM" in found["old"]
        assert "read.jdbc.lock needs all 40 connections at a time" in found["many"]


UNLOCKED = """
options = given["options"]
execute(options, "CREATE TABLE moved (id int PRIMARY KEY, v int)",
        "INSERT INTO moved VALUES " + ", ".join(f"({n}, 0)" for n in range(1, 401)))
spec = table(format="jdbc", options={**options, "dbtable": "moved"}, jdbc=JdbcRules(reconcile="columns"),
             partition=JdbcPartition(column="id", count=4), index="sparse")
changes = ("UPDATE moved SET v = 1", "DELETE FROM moved WHERE id > 390")
rows, _, notes = load(spec, None, lambda: execute(options, *changes))
print(json.dumps([len(rows), sorted({row[1] for row in rows}), list(notes)]))
"""


def test_partitions_without_a_lock(served):
    options, package, _ = served
    found = run(UNLOCKED, {"options": options}, package)
    if package == postgresql.DRIVER:
        assert found == [400, ["0"], []]
    else:
        assert found == [390, ["1"], ["its 4 connections do not see one moment of the database"]]
