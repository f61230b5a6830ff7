"""Instants of PostgreSQL and MariaDB, whatever time zone the server's sessions are in, as values and as cursors."""

import pytest

from tests.interop import mariadb, postgresql
from tests.interop.test_database_loads import run

pytestmark = [pytest.mark.timeout(900), pytest.mark.exhaustive]

ZONES = ["UTC", "Europe/Berlin", "America/New_York"]
# Each is one of two that have the same clock time in Berlin or New York.
INSTANTS = [
    "1990-07-01 00:00:00", "2024-10-27 00:30:00", "2024-10-27 01:30:00", "2024-11-03 05:30:00", "2024-11-03 06:30:00",
]  # fmt: skip

ZONED = """
def attempt(spec):
    try:
        return sorted(load(spec, None)[0])
    except LakeError as error:
        return str(error)


found = {}
for name, options in given["sources"].items():
    options = {**options, "dbtable": "zoned"}
    spec = table(format="jdbc", options=options, cursor="at", primary_key=("id",), jdbc=JdbcRules(reconcile="columns"),
                 partition=JdbcPartition(column="id", count=2), index="sparse")
    first = spec.model_copy(update={"read": spec.read.model_copy(update={
        "options": {**options, "dbtable": "(SELECT * FROM zoned WHERE id < 3) z"}})})
    before, since, _ = load(first, None)
    after, since, _ = load(spec, since)
    none, _, _ = load(spec, since)
    own = {**options, "sessionInitStatement": given["own"][name]}
    own_zone = spec.model_copy(update={"read": spec.read.model_copy(update={"options": own})})
    found[name] = [sorted(before), sorted(after), none, attempt(own_zone)]
print(json.dumps(found))
"""


def insert(rows):
    return "INSERT INTO zoned VALUES " + ", ".join(f"({n}, '{at}', '{at}')" for n, at in rows) + ";"


@pytest.mark.parametrize("zone", ZONES)
def test_instants_in_a_zone_of_the_sessions(zone):
    rows = list(enumerate(INSTANTS))
    with postgresql.serving() as postgres, mariadb.serving(zone=zone) as maria:
        postgres.execute(
            f"ALTER ROLE {postgresql.USER} SET TimeZone = '{zone}'; SET TimeZone = 'UTC';"
            f"CREATE TABLE zoned (id int PRIMARY KEY, at timestamptz, local timestamp); {insert(rows)}"
        )
        maria.execute(
            "SET time_zone = '+00:00'; CREATE TABLE zoned (id int PRIMARY KEY, at timestamp NULL, local datetime);"
            f"{insert(rows)}"
        )
        user = {"user": mariadb.USER, "password": mariadb.PASSWORD}
        sources = {
            "postgresql": {"url": postgres.url, "user": postgresql.USER, "password": "-"},
            "mariadb": {"url": maria.make_url("mariadb"), **user},
            "mysql": {"url": maria.make_url("mysql"), **user},
        }
        # Both drivers of MariaDB take its URL, which names the class.
        sources["mariadb"]["driver"], sources["mysql"]["driver"] = "org.mariadb.jdbc.Driver", "com.mysql.cj.jdbc.Driver"
        zones = dict.fromkeys(("mariadb", "mysql"), "SET time_zone = '+02:00'") | {
            "postgresql": f"SET TimeZone = '{zone}'"
        }
        given = {"sources": sources, "own": zones}
        found = run(ZONED, given, postgresql.DRIVER, mariadb.DRIVER, mariadb.CONNECTOR_J)
    expected = [[str(n), f"{at}+00:00", f"{at}+00:00"] for n, at in rows]
    for name, (before, after, none, own) in found.items():
        assert (before, after, none) == (expected[:3], expected[3:], []), name
        if name == "postgresql":
            assert own == expected
        else:
            assert "its sessions have time_zone='+02:00', in which a TIMESTAMP is not an instant" in own
