"""One moment for several connections: what each server is asked for it, and the SQL by which tasks see it."""

import pytest
import sqlglot

from lakewriter.source.databases.database_server import Moment, is_plain_table
from lakewriter.source.databases.moments import begin_sessions
from lakewriter.source.databases.servers import find_server

SCN = "SELECT TO_CHAR(DBMS_FLASHBACK.GET_SYSTEM_CHANGE_NUMBER) FROM DUAL"
STILL = (
    "SELECT CASE WHEN source_database_id IS NULL AND is_read_only = 0 THEN 0 ELSE 1 END FROM sys.databases "
    "WHERE database_id = DB_ID()"
)
REPEATABLE = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"


class Answers:
    """A connection that answers in turn, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def read_rows(self, sql, most=0):
        self.asked.append(sql)
        return [(self.answers.pop(0),)]

    def execute(self, sql):
        self.asked.append(sql)

    def begin_transaction(self):
        self.asked.append("BEGIN")


MOMENTS = [
    # scheme, what stands behind FROM, the answers: the moment, and what was asked
    (
        "postgresql",
        "(SELECT 1) q",
        ["00000003-0000001B-1"],
        Moment(session=f"{REPEATABLE}; SET TRANSACTION SNAPSHOT '00000003-0000001B-1'"),
        [
            "SET idle_in_transaction_session_timeout = 0",
            "BEGIN",
            f"{REPEATABLE}, READ ONLY",
            "SELECT pg_export_snapshot()",
        ],
    ),
    (
        "oracle",
        "shop.orders",
        ["8743219", "1"],
        Moment(suffix=" AS OF SCN 8743219"),
        [SCN, "SELECT 1 FROM shop.orders AS OF SCN 8743219 WHERE 1 = 0"],
    ),
    ("oracle", "(SELECT * FROM shop.orders) q", [], None, []),
    ("sqlserver", "dbo.orders", ["1"], Moment(), [STILL]),
    ("sqlserver", "dbo.orders", ["0"], None, [STILL]),
    ("sqlserver", "other.dbo.orders", [], None, []),
    ("mysql", "orders", [], None, []),
    ("derby", "orders", [], None, []),
]
DIALECTS = {"postgresql": "postgres", "oracle": "oracle", "sqlserver": "tsql"}


@pytest.mark.parametrize(("scheme", "source", "answers", "moment", "asked"), MOMENTS)
def test_moment_of_a_server(scheme, source, answers, moment, asked):
    connection = Answers(*answers)
    assert find_server(f"jdbc:{scheme}:d").begin_moment(connection, source) == moment
    assert connection.asked == asked
    for sql in asked:
        if sql.startswith("SELECT"):
            sqlglot.parse_one(sql, dialect=DIALECTS[scheme])


PLAIN = [
    ("orders", True),
    ("shop.orders", True),
    ('"Shop"."Order lines"', True),
    ("[dbo].[Order lines]", True),
    ("`order``s`", False),
    ("other.dbo.orders", False),
    ("orders@link", False),
    ("orders o", False),
    ("(SELECT 1) q", False),
    ("orders; DROP TABLE orders", False),
]


@pytest.mark.parametrize(("source", "is_plain"), PLAIN)
def test_table_that_is_read_as_it_was(source, is_plain):
    assert is_plain_table(source) == is_plain


SESSIONS = [
    ({"url": "u"}, "", {"url": "u"}),
    ({"url": "u"}, "A", {"url": "u", "sessionInitStatement": "A"}),
    ({"url": "u", "SESSIONINITSTATEMENT": "B"}, "A", {"url": "u", "sessionInitStatement": "A; B"}),
]


@pytest.mark.parametrize(("options", "statement", "expected"), SESSIONS)
def test_statement_before_the_users_own(options, statement, expected):
    assert begin_sessions(options, statement) == expected


ZONES = [("+00:00", True), ("utc", True), ("SYSTEM", False), ("Europe/Berlin", False)]


@pytest.mark.parametrize(("zone", "is_right"), ZONES)
def test_sessions_of_mysql_have_to_be_in_utc(zone, is_right):
    problem = find_server("jdbc:mysql:d").explain_session(Answers(zone))
    assert (problem == "") == is_right
    assert is_right or f"time_zone={zone!r}" in problem
