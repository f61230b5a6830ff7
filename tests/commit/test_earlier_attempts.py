"""What other attempts of a load would name their files: read once for all tables, and again where it may be old."""

import random

import pytest

from lakewriter.commit.earlier_attempts import BeginRecords
from lakewriter.commit.history import History
from lakewriter.errors import PendingUnrecoverableError
from lakewriter.naming import ControlKeys
from tests.commit.memory import Memory, World

KEYS = ControlKeys("lake", "p")
FILES = {"location": "lake/t", "pattern": "lake/t/.*"}


class Counted(Memory):
    """A store that writes down what is asked of it."""

    def __init__(self, world: World) -> None:
        super().__init__(world, lambda: None, random.Random(0), 0)
        self.asked: list[str] = []

    def get(self, key):
        self.asked.append(f"GET {key.removeprefix('lake/_lakewriter/p/loads/j/')}")
        return super().get(key)

    def list_entries(self, prefix, limit=None):
        self.asked.append(f"LIST {prefix.removeprefix('lake/_lakewriter/p/loads/j/')}")
        return super().list_entries(prefix, limit)


def put(world: World, key: str, attempt: str) -> None:
    body = f'{{"version":1,"attempt":"{attempt}","started":"2024-01-15T00:00:00Z","tables":{{}}}}'
    world.objects[key] = (body.encode(), key)


def read(records: BeginRecords, table: str, registered: str | None) -> list[str]:
    return [record.attempt for record in records.read(table, "j", "A9", registered)]


@pytest.fixture
def store() -> Counted:
    world = World()
    for attempt in ("A1", "A2", "A9"):
        put(world, KEYS.begin("j", attempt), attempt)
    put(world, KEYS.table_begin("j", "A2", "t"), "A2/t")
    world.objects[KEYS.report("j", "t")] = (b"{}", "e")
    world.objects[KEYS.intent("j", "A1", "t")] = (b"{}", "e")
    return Counted(world)


def test_a_thousand_tables_list_once(store):
    records = BeginRecords(store, KEYS, History(store, KEYS))
    assert read(records, "t", "A1") == ["A1", "A2", "A2/t"]
    assert store.asked == ["LIST ", "GET A1/begin.json", "GET A2/begin.json", "GET A2/begin/t.json"]
    store.asked.clear()
    assert [read(records, f"t{number}", None) for number in range(1000)] == [["A1", "A2"]] * 1000
    assert store.asked == []
    # Only the table's own record of the attempt that its state names may have come since.
    assert read(records, "u", "A2") == ["A1", "A2"]
    assert store.asked == ["LIST A2/begin/u.json"]


def test_what_came_since_the_listing_is_read(store):
    records = BeginRecords(store, KEYS, History(store, KEYS))
    read(records, "t", None)
    put(store.world, KEYS.table_begin("j", "A1", "u"), "A1/u")
    put(store.world, KEYS.begin("j", "A3"), "A3")
    assert read(records, "u", "A1") == ["A1", "A2", "A1/u"]
    assert read(records, "u", "A3") == ["A1", "A2", "A3", "A1/u"]
    # Another attempt of this process is another's for the next one.
    assert [record.attempt for record in records.read("t", "j", "B1", None)] == ["A1", "A2", "A3", "A9", "A2/t"]


def test_a_record_that_cannot_be_read(store):
    store.world.objects[KEYS.begin("j", "A1")] = (b"{", "e")
    with pytest.raises(PendingUnrecoverableError, match=r"A1/begin\.json"):
        read(BeginRecords(store, KEYS, History(store, KEYS)), "t", None)
