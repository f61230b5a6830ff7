"""Columns of a database that are read as another type, by the pages of the servers' types."""

import pytest

from lakewriter.source.databases.database_server import Column
from lakewriter.source.databases.mysql import Mysql
from lakewriter.source.databases.postgresql import Postgresql

CHANGES = [
    # server, type, precision, whether its values are read as another type (docs/databases.md)
    (Postgresql(), "int4", 10, False),
    (Postgresql(), "date", 13, False),
    (Postgresql(), "numeric", 9, False),
    (Postgresql(), "numeric", 0, True),
    (Postgresql(), "timestamp", 29, True),
    (Postgresql(), "timestamptz", 35, True),
    (Postgresql(), "uuid", 0, True),
    (Mysql(), "bigint", 19, False),
    (Mysql(), "bigint unsigned", 20, True),
]


@pytest.mark.parametrize(("server", "kind", "precision", "changes"), CHANGES)
def test_types_that_are_read_as_another(server, kind, precision, changes):
    assert server.changes_type(Column("c", kind, precision)) == changes
