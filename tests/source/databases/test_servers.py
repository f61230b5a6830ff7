"""Which database a URL names, and what its sessions get."""

from typing import Any, cast

import pytest
from py4j.protocol import Py4JJavaError

from lakewriter.errors import SpecInvalidError
from lakewriter.source.databases import database_rows
from lakewriter.source.databases.database_rows import complete_options
from lakewriter.source.databases.database_server import Column
from lakewriter.source.databases.servers import SERVERS, find_server

URLS = [
    # URL, the database, the driver's class: as the drivers' own documents name it
    ("jdbc:postgresql://h:5432/d", "PostgreSQL", "org.postgresql.Driver"),
    ("JDBC:PostgreSQL://h/d", "PostgreSQL", "org.postgresql.Driver"),
    ("jdbc:mysql://h/d", "MySQL", "com.mysql.cj.jdbc.Driver"),
    ("jdbc:mysql:loadbalance://a,b/d", "MySQL", "com.mysql.cj.jdbc.Driver"),
    ("jdbc:mariadb://h/d", "MariaDB", "org.mariadb.jdbc.Driver"),
    ("jdbc:sqlserver://h;databaseName=d", "SQL Server", "com.microsoft.sqlserver.jdbc.SQLServerDriver"),
    ("jdbc:oracle:thin:@//h:1521/s", "Oracle", "oracle.jdbc.OracleDriver"),
    ("jdbc:derby:memory:x;create=true", "Derby", "org.apache.derby.iapi.jdbc.AutoloadedDriver"),
    ("jdbc:derby://h:1527/x", "Derby", "org.apache.derby.client.ClientAutoloadedDriver"),
    ("jdbc:h2:mem:x", "H2", "org.h2.Driver"),
]


@pytest.mark.parametrize(("url", "name", "driver"), URLS)
def test_server_by_url(url, name, driver):
    server = find_server(url)
    assert (server.name, complete_options({"URL": url}, server)["driver"]) == (name, driver)


REFUSED = [
    ("jdbc:postgres://reader:pa55@h/d", "begins with 'jdbc:postgres:'", "did you mean 'jdbc:postgresql:'?"),
    ("jdbc:db2://h:50000/d", "begins with 'jdbc:db2:'", "read.jdbc: {quote: '\"'}"),
    ("mysql://h/d", "begins with 'mysql:'", ""),
    ("", "begins with ''", "known are jdbc:postgresql:, jdbc:mysql:, jdbc:mariadb:, jdbc:sqlserver:, jdbc:oracle:"),
]


@pytest.mark.parametrize(("url", "what", "remedy"), REFUSED)
def test_url_of_no_known_database_is_refused(url, what, remedy):
    with pytest.raises(SpecInvalidError) as caught:
        find_server(url)
    assert what in str(caught.value)
    assert remedy in str(caught.value)
    assert "pa55" not in str(caught.value)


def test_a_quote_takes_another_database():
    assert find_server("jdbc:db2://h:50000/d", "[").quote("a]b") == "[a]]b]"


PG = "SET TimeZone = 'UTC'; SET IntervalStyle = 'postgres'; SET bytea_output = 'hex'"
UTC = "time_zone='+00:00'"
GIVEN = [
    # options, what is changed: MySQL converts TIMESTAMP to the zone of its session, and reads whole results
    ({"url": "jdbc:postgresql://h/d", "Driver": "my.Driver", "fetchSize": "5"}, {"sessionInitStatement": PG}),
    (
        {"url": "jdbc:postgresql://h/d", "driver": "d", "fetchsize": "5", "sessionInitStatement": "SET x = 1"},
        {"sessionInitStatement": f"{PG}; SET x = 1"},
    ),
    (
        {"url": "jdbc:mysql://h/d"},
        {
            "driver": "com.mysql.cj.jdbc.Driver",
            "fetchsize": "10000",
            "useCursorFetch": "true",
            "sessionVariables": UTC,
        },
    ),
    (
        {"url": "jdbc:mysql://h/d?useCursorFetch=false", "driver": "d", "fetchsize": "5", "sessionvariables": "x=1"},
        {"sessionvariables": f"{UTC},x=1"},
    ),
    (
        {"url": "jdbc:mysql://h/d?sessionVariables=x=1&useCursorFetch=false", "driver": "d", "fetchsize": "5"},
        {"sessionInitStatement": f"SET {UTC}"},
    ),
    (
        {"url": "jdbc:mariadb://h/d", "driver": "d", "fetchsize": "5"},
        {"url": "jdbc:mysql://h/d?permitMysqlScheme=true", "sessionVariables": UTC},
    ),
    (
        {"url": "jdbc:MariaDB://h/d?sslMode=trust", "driver": "d", "fetchsize": "5"},
        {"url": "jdbc:mysql://h/d?sslMode=trust&permitMysqlScheme=true", "sessionVariables": UTC},
    ),
]


@pytest.mark.parametrize(("options", "changed"), GIVEN)
def test_options_of_a_connection(options, changed):
    assert complete_options(options, find_server(options["url"])) == options | changed


NAMES = [("PostgreSQL", '"a""b"'), ("MySQL", '`a"b`'), ("SQL Server", '[a"b]'), ("Oracle", '"a""b"'), ("H2", '"a""b"')]


@pytest.mark.parametrize(("name", "quoted"), NAMES)
def test_names_are_quoted(name, quoted):
    assert next(server for server in SERVERS if server.name == name).quote('a"b') == quoted


class Probed:
    """An unknown database, which refuses a query where ``refuses`` says so of the name that is asked for."""

    def __init__(self, refuses):
        self.refuses = refuses

    def read_rows(self, sql, most=0):
        if self.refuses("absent" in sql):
            error = Py4JJavaError.__new__(Py4JJavaError)
            error.java_exception = "syntax error"
            raise error
        return [("id",)]


PROBES = [
    # whether a name that is no column's is refused, and one that is; what is said
    (lambda is_absent: is_absent, None),
    (lambda is_absent: False, 'has no column lakewriter_absent, and returned a text for "lakewriter_absent".'),
    (lambda is_absent: True, "\"id\" is not column 'id': syntax error."),
]


@pytest.mark.parametrize(("refuses", "problem"), PROBES)
def test_quotes_of_an_unknown_database_are_probed(refuses, problem):
    server = find_server("jdbc:db2://h/d", '"')
    columns = [Column("id", "integer")]
    if problem is None:
        database_rows._require_quote(cast(Any, Probed(refuses)), server, "t", columns)
        return
    with pytest.raises(SpecInvalidError) as caught:
        database_rows._require_quote(cast(Any, Probed(refuses)), server, "t", columns)
    assert problem in str(caught.value)
