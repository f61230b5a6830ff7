"""Let all connections of a read see one moment of the database."""

import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from lakewriter.errors import SourceFailedError, SpecInvalidError
from lakewriter.report import format_count
from lakewriter.source.databases.database_connection import Connection, drop_options, find_option, write_source
from lakewriter.source.databases.database_server import Moment, Server, is_plain_table
from lakewriter.source.session import count_slots
from lakewriter.spec.table_spec import Read

LOCK_SECONDS: Final = 60
"""The limit for the time that a table is locked, and for the wait for a lock."""
_POLL_SECONDS: Final = 0.2
_TASK_SECONDS: Final = 2 * LOCK_SECONDS
_REFUSED: Final = "(SELECT 1 UNION SELECT 2)"
_REFUSAL: Final = "Subquery returns more than 1 row"
"""The error with which both servers stop a session that comes too late. An error of our own text would come at once."""
_SNAPSHOT: Final = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
_NAMES: Final = re.compile(r"`([^`]+)`|([\w$#]+)")
_STATE, _STATEMENT = 6, 7
"""Columns of SHOW FULL PROCESSLIST."""


def begin_moment(
    connection: Connection, server: Server, options: Mapping[str, str], read: Read, *, is_own: bool
) -> tuple[Moment | None, tuple[str, ...]]:
    """Return a moment that all connections of a read can see, None for none, and notes for the user."""
    is_cut = read.partition is not None or bool(find_option(options, "partitioncolumn"))
    is_compared = is_own and read.jdbc.reconcile != "off" and (server.has_free_moments or read.jdbc.reconcile)
    # PostgreSQL's driver begins a transaction only if it fetches rows in parts.
    if not (server.shares_moments and (is_cut or is_compared)) or find_option(options, "fetchsize") == "0":
        return None, ()
    try:
        return server.begin_moment(connection, write_source(options)), ()
    except Py4JJavaError as error:
        connection.roll_back()
        return None, (f"{server.name} gives no snapshot ({error.java_exception.getMessage()})",)


def begin_sessions(options: Mapping[str, str], statement: str) -> dict[str, str]:
    """Return the options with a statement that each session runs before its others."""
    if not statement:
        return dict(options)
    begun = find_option(options, "sessioninitstatement")
    joined = f"{statement}; {begun}" if begun else statement
    return {**drop_options(options, ("sessioninitstatement",)), "sessionInitStatement": joined}


class LockedMoment:
    """A lock of a table until all connections of a read have begun their transactions, for MySQL and MariaDB.

    Each connection begins a transaction with a snapshot, and waits for our lock. Once all wait, the table is unlocked
    and they read. The lock is then held again until the end. A connection that comes later, for a task that is
    repeated, fails: it would see another moment.
    """

    def __init__(
        self, connect: Callable[[], Connection], witness: Connection, table: str, count: int, name: str
    ) -> None:
        self._connect, self._witness, self._table, self._count, self._name = connect, witness, table, count, name
        self._gate = f"lakewriter-{uuid.uuid4().hex}"
        self._ended, self._keeper = threading.Event(), threading.Thread(target=self._keep, daemon=True)
        self._locker: Connection | None = None
        self._holder: Connection | None = None
        self._failure: SourceFailedError | None = None

    @property
    def session(self) -> str:
        """The statements with which each session of a task begins."""
        passed = f"IF(GET_LOCK('{self._gate}', {_TASK_SECONDS}) = 1, RELEASE_LOCK('{self._gate}'), {_REFUSED})"
        return f"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; {_SNAPSHOT}; SET @lakewriter_gate = {passed}"

    def require(self, session: SparkSession, table: str) -> None:
        """Lock the table. A thread unlocks it once all have begun."""
        del session, table
        self._locker, self._holder = self._connect(), self._connect()
        self._holder.read_rows(f"SELECT GET_LOCK('{self._gate}', 0)")
        self._locker.execute(f"SET SESSION lock_wait_timeout = {LOCK_SECONDS}")
        self._locker.execute(f"LOCK TABLES {self._table} READ")
        self._witness.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self._witness.execute(_SNAPSHOT)
        self._keeper.start()

    def explain(self, message: str) -> SourceFailedError | None:
        """Return the error of the read if the lock is the reason; ``message`` is a task's error."""
        if self._failure is None and _REFUSAL in message:
            return SourceFailedError(
                f"table {self._name!r}: a connection began after {self._table} was unlocked, and would have seen "
                "another moment.",
                remedy="A task was lost and repeated, or its session waited too long. Run the load again.",
            )
        return self._failure

    def close(self) -> None:
        """Release all locks."""
        self._ended.set()
        if self._keeper.ident is not None:
            self._keeper.join()
        for connection in (self._locker, self._holder):
            if connection is not None:
                connection.close()

    def _keep(self) -> None:
        assert self._locker is not None
        assert self._holder is not None
        try:
            has_begun = self._wait_for(self._count, LOCK_SECONDS)
            self._locker.execute("UNLOCK TABLES")
            if not has_begun:
                self._fail()
                return
            self._holder.read_rows(f"SELECT RELEASE_LOCK('{self._gate}')")
            if self._wait_for(0, LOCK_SECONDS):
                self._holder.read_rows(f"SELECT GET_LOCK('{self._gate}', {LOCK_SECONDS})")
        except Py4JError as error:
            self._failure = SourceFailedError(f"table {self._name!r}: the lock of {self._table} was lost: {error}.")

    def _wait_for(self, count: int, seconds: float) -> bool:
        """Return True if ``count`` connections wait before the time is over."""
        until = time.monotonic() + seconds
        while len(self._list_waiting()) != count:
            if time.monotonic() > until or self._ended.wait(_POLL_SECONDS):
                return False
        return True

    def _list_waiting(self) -> list[str]:
        """Return the numbers of the connections that wait for the lock. A user sees only its own."""
        assert self._locker is not None
        rows = self._locker.read_rows("SHOW FULL PROCESSLIST")
        return [str(row[0]) for row in rows if row[_STATE] == "User lock" and self._gate in (row[_STATEMENT] or "")]

    def _fail(self) -> None:
        assert self._locker is not None
        waiting = self._list_waiting()
        self._failure = SourceFailedError(
            f"table {self._name!r}: {len(waiting)} of {self._count} connections began within {LOCK_SECONDS} s, for "
            f"which {self._table} was locked.",
            remedy="All tasks have to run at a time: lower read.partition.count, or give Spark more cores.",
        )
        for number in waiting:
            self._locker.execute(f"KILL QUERY {number}")


def plan_lock(
    session: SparkSession,
    connect: Callable[[], Connection],
    witness: Connection,
    server: Server,
    source: str,
    count: int,
    name: str,
) -> LockedMoment:
    """Return the lock of a table that ``count`` tasks read. Raise ``SPEC_INVALID`` if the lock is not possible."""
    problem = ""
    is_dynamic = session.conf.get("spark.dynamicAllocation.enabled", "false") == "true"
    slots = count_slots(session)
    if not server.begins_by_lock:
        problem = f"is for MySQL and MariaDB, and the source is {server.name}"
    elif not is_plain_table(source):
        problem = f"needs a table in dbtable, and it is {source!r}"
    elif (engine := _ask_engine(witness, server, source)) != "InnoDB":
        problem = f"needs a table of the engine InnoDB, and {source} is {engine or 'a view'}"
    elif not is_dynamic and count > slots:
        problem = f"needs all {count} connections at a time, and Spark runs {format_count(slots, 'task')}"
    if problem:
        raise SpecInvalidError(f"table {name!r}: read.jdbc.lock {problem}.", remedy="Leave it out, or change the read.")
    return LockedMoment(connect, witness, source, count, name)


def _ask_engine(connection: Connection, server: Server, source: str) -> str | None:
    """Return the engine of a table, None for a view. MyISAM has no snapshots."""
    names = [next(filter(None, match)) for match in _NAMES.findall(source)]
    schema = server.write_text(names[-2]) if len(names) > 1 else "DATABASE()"
    rows = connection.read_rows(
        "SELECT ENGINE FROM information_schema.TABLES "
        f"WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {server.write_text(names[-1])}"
    )
    return rows[0][0] if rows else None
