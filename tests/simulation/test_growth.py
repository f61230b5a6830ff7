"""What is done to all tables of a pipeline takes requests in proportion to the tables: twice as many, twice as many."""

from datetime import timedelta

import pytest

from tests.simulation.crowd import Crowd
from tests.simulation.stand_ins import installed
from tests.support.sample import IS_NIGHTLY

TABLES = 50 if IS_NIGHTLY else 20


def measure(tables: int, *, glue: bool) -> dict[str, int]:
    crowd = Crowd(tables, glue=glue)
    made = {"first load": crowd.load("a")}
    crowd.load_in_vain("b")
    made["retry"] = crowd.load("b")
    made["status"] = crowd.read_states()
    made["verify"] = crowd.verify("b")
    made["undo"] = crowd.undo("b")
    made["sweep"] = crowd.sweep()
    return {name: requests.total() for name, requests in made.items()}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("glue", [True, False])
def test_requests_grow_as_the_tables_do(glue: bool):
    with installed():
        few, many = measure(TABLES, glue=glue), measure(2 * TABLES, glue=glue)
    # Some tables have two files, by chance.
    assert {name: many[name] / few[name] for name in few} == {name: pytest.approx(2, rel=0.08) for name in few}, (
        few,
        many,
    )


def test_a_table_in_glue_shows_that_its_database_is_there():
    with installed():
        crowd = Crowd(3, glue=True)
        assert [crowd.load(job)["GetDatabase"] for job in ("a", "b")] == [3, 0]


@pytest.mark.parametrize("glue", [False, True])
def test_verify_of_the_last_load_takes_as_many_requests_as_of_the_first(glue: bool):
    with installed():
        crowd = Crowd(3, glue=glue)
        found = []
        for job in "abcdef":
            crowd.wait(timedelta(hours=1))
            crowd.load(job)
            found.append(crowd.verify(job))
    # Of each table its state, this load's report and intent, and the end of one file or two.
    assert {each.pop("GetObject") for each in found} <= set(range(12, 16))
    # One for ten reports, and for ten objects under a table's path.
    assert {each.pop("ListObjectsV2") for each in found} <= set(range(4, 10))
    assert found == [found[0]] * 6
