"""Values that events leave out, since they are unchanged, are filled on the snapshot that a merge is based on.

The expectations follow from the events: a row has the value that its last event gave it which had one. See
https://debezium.io/documentation/reference/3.2/connectors/postgresql.html#postgresql-toasted-values
"""

import json
import random
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.httpsession import URLLib3Session

from lakewriter.aws import Clients
from lakewriter.commit.iceberg import merge_keys, merge_rows, unchanged
from lakewriter.errors import InternalError, PendingUnrecoverableError
from lakewriter.receipt import Floor
from lakewriter.records.facets import MergeIntent
from lakewriter.shape.table import ORDINAL_FIELD, UNCHANGED_FIELD
from tests.commit import intents
from tests.iceberg.commits import ACCESS, Table, intent, strays
from tests.iceberg.test_merge import foreign, interfere, open_tables
from tests.support.sample import IS_NIGHTLY, in_turn

LACKING: Final = "<unchanged>"
SCHEMA: Final = pa.schema(
    [
        ("id", pa.int64()),
        ("epoch", pa.int64()),
        ("lsn", pa.int64()),
        ("v", pa.string()),
        ("tags", pa.list_(pa.int64())),
        ("gone", pa.bool_()),
    ]
)
BY: Final = MergeIntent(keys=("id",), order_by=("epoch", "lsn"), deleted="gone", fills=("tags", "v"))
Event = tuple[Any, ...]


def c(key: int, lsn: int, v: Any = "", tags: Any = None, epoch: int = 0, moved: bool = False) -> Event:
    """A row that is created, or has got another key."""
    return key, epoch, lsn, v, tags, False, moved


def u(key: int, lsn: int, v: Any = LACKING, tags: Any = None, epoch: int = 0) -> Event:
    return key, epoch, lsn, v, tags, False, False


def d(key: int, lsn: int, epoch: int = 0) -> Event:
    return key, epoch, lsn, None, None, True, False


def moved(key: int, lsn: int, v: Any = LACKING, tags: Any = None) -> Event:
    return c(key, lsn, v, tags, moved=True)


class Fed:
    """A table, and loads of events, of which each list is a file."""

    def __init__(self, aws: Any, format_version: int = 2, name: str = "t") -> None:
        self.aws, self.table, self.committed = aws, Table(aws, name=name), 0
        self.table.action = self.table.action.model_copy(update={"format_version": format_version})

    def make(self, *files: list[Event], by: MergeIntent = BY) -> Any:
        job = f"j{self.committed + 1}"
        action, schema = self.table.ready(job, SCHEMA, self.committed)
        receipts = []
        for number, events in enumerate(files):
            rows = pa.table([self.list_values(events, place) for place in range(len(SCHEMA))], schema=schema)
            lacks = [
                [name for name, value in zip(SCHEMA.names, event, strict=False) if value == LACKING] for event in events
            ]
            marks = [
                json.dumps([event[-1], *names]) if names else None for event, names in zip(events, lacks, strict=True)
            ]
            rows = rows.append_column(ORDINAL_FIELD, pa.array(range(len(rows)), pa.int64()))
            rows = rows.append_column(UNCHANGED_FIELD, pa.array(marks, pa.string()))
            written = self.table.write(action, f"part-{job}-{number:05}.parquet", rows)
            receipts.append(written.model_copy(update={"partition": number, "seq": number}))
        return intents.recast(intent(job, action, *receipts), "merge", merge=by)

    @staticmethod
    def list_values(events: list[Event], place: int) -> pa.Array:
        return pa.array([None if event[place] == LACKING else event[place] for event in events], SCHEMA.types[place])

    def publish(self, found: Any) -> Any:
        self.table.publish(found, self.committed + 1)
        self.committed += 1
        return found

    def load(self, *files: list[Event], by: MergeIntent = BY) -> Any:
        return self.publish(self.make(*files, by=by))

    def read(self) -> list[tuple[int, int, Any, Any]]:
        rows = self.table.seen.scan().to_arrow().to_pylist()
        return sorted((row["id"], row["lsn"], row["v"], row["tags"]) for row in rows)


BIG: Final = "x" * 3000
CASES: Final[dict[str, tuple[list[list[Event]], list[tuple[int, int, Any, Any]] | str]]] = {
    # The loads, each of one file, and the rows afterwards; or the key of a row without a value.
    "the table's row": ([[c(1, 1, BIG)], [u(1, 2)]], [(1, 2, BIG, None)]),
    "several columns": ([[c(1, 1, "a", [7])], [u(1, 2, LACKING, LACKING)]], [(1, 2, "a", [7])]),
    "columns of several rows": (
        [[c(1, 1, "a", [7])], [u(1, 2, "b", LACKING), u(1, 3, LACKING, LACKING)]],
        [(1, 3, "b", [7])],
    ),
    "a null": ([[c(1, 1, None)], [u(1, 2)]], [(1, 2, None, None)]),
    "an earlier event": ([[c(1, 1, "a"), u(1, 2, "b"), u(1, 3), u(1, 4)]], [(1, 4, "b", None)]),
    "an event further down in the file": ([[u(1, 4), u(1, 2, "b"), c(1, 1, "a")]], [(1, 4, "b", None)]),
    "the table's row, above an event that is late": ([[c(1, 5, "a")], [u(1, 3, "late"), u(1, 7)]], [(1, 7, "a", None)]),
    "a row that is late itself": ([[c(1, 5, "a")], [u(1, 3)]], [(1, 5, "a", None)]),
    "a row that another one replaces": ([[u(1, 3), u(1, 4, "b")]], [(1, 4, "b", None)]),
    "a row that is deleted": ([[c(1, 1, "a"), u(1, 3), d(1, 4)]], []),
    "the same load again": ([[c(1, 1, "a")], [u(1, 2), u(2, 1, "b")], [u(1, 2), u(2, 1, "b"), u(1, 3)]],
        [(1, 3, "a", None), (2, 1, "b", None)]),
    "an event twice": ([[c(1, 1, "a"), c(1, 1, "a"), u(1, 2), u(1, 2)]], [(1, 2, "a", None)]),
    "created anew": ([[c(1, 1, "a"), d(1, 2), c(1, 3, "b"), u(1, 4)]], [(1, 4, "b", None)]),
    "another key": ([[c(1, 1, "a")], [d(1, 5), moved(2, 5)]], [(2, 5, "a", None)]),
    "another key, then an update": ([[c(1, 1, "a")], [d(1, 5), moved(2, 5), u(2, 6)]], [(2, 6, "a", None)]),
    "another key, in one load": ([[c(1, 1, "a"), u(1, 2, "b"), d(1, 5), moved(2, 5)]], [(2, 5, "b", None)]),
    "another key, which had a row": (
        [[c(1, 1, "a"), c(2, 1, "z")], [d(2, 3), d(1, 5), moved(2, 5)]],
        [(2, 5, "a", None)],
    ),
    "another key twice, and back": (
        [[c(1, 1, "a")], [d(1, 5), moved(2, 5), d(2, 6), moved(3, 6), d(3, 7), moved(1, 7)]],
        [(1, 7, "a", None)],
    ),
    "another key, delivered twice": (
        [[c(1, 1, "a")], [d(1, 5), moved(2, 5), d(1, 5), moved(2, 5)]],
        [(2, 5, "a", None)],
    ),
    "keys that are passed on": (
        [[c(1, 1, "a"), c(2, 1, "b")], [d(2, 5), moved(3, 5), d(1, 6), moved(2, 6)]],
        [(2, 6, "a", None), (3, 5, "b", None)],
    ),
    "no row": ([[c(2, 1, "a")], [u(1, 2)]], "1"),
    "no row of any": ([[u(1, 2), u(1, 3)]], "1"),
    "a row that was deleted": ([[c(1, 1, "a")], [d(1, 2)], [u(1, 3)]], "1"),
    "a row that the load deletes": ([[c(1, 1, "a")], [d(1, 2), u(1, 3)]], "1"),
    "another epoch": ([[c(1, 1, "a")], [u(1, 1, epoch=1)]], "1"),
    "an event of this epoch": ([[c(1, 9, "a")], [u(1, 1, "b", epoch=1), u(1, 2, epoch=1)]], [(1, 2, "b", None)]),
    "another key, whose old row another load has deleted": ([[c(1, 1, "a")], [d(1, 5)], [moved(2, 5)]], "2"),
    "another key, without the event of the old one": ([[c(1, 1, "a")], [moved(2, 5)]], "2"),
    # The row that had the key before is another one.
    "another key, which has a row": ([[c(1, 1, "a"), c(2, 1, "z")], [moved(2, 5)]], "2"),
    "two old keys": ([[c(1, 1, "a"), c(3, 1, "b")], [d(1, 5), d(3, 5), moved(2, 5)]], "2"),
    "two new keys": ([[c(1, 1, "a")], [d(1, 5), moved(2, 5), moved(3, 5)]], "2"),
}  # fmt: skip


FILLED: Final = {name: case for name, case in CASES.items() if not isinstance(case[1], str)}
FIRST: Final = 1000
"""The keys and positions of a case are its own: all cases are in one table."""


def play(number: int, events: list[Event]) -> list[Event]:
    return [(key + number * FIRST, epoch, lsn + number * FIRST, *rest) for key, epoch, lsn, *rest in events]


@pytest.mark.parametrize("format_version", in_turn(2, 3))
@pytest.mark.parametrize("as_files", [False, True])
def test_values_that_are_left_out(aws, bucket, format_version, as_files):
    fed, most = Fed(aws, format_version), max(len(loads) for loads, _ in FILLED.values())
    for step in range(-most, 0):
        of_step = [
            play(number, loads[step]) for number, (loads, _) in enumerate(FILLED.values()) if len(loads) >= -step
        ]
        fed.load(*(of_step if as_files else [[event for events in of_step for event in events]]))
    rows = fed.read()
    for number, (name, (_, expected)) in enumerate(FILLED.items()):
        found = [
            (key - number * FIRST, lsn - number * FIRST, *rest) for key, lsn, *rest in rows if key // FIRST == number
        ]
        assert found == expected, name
    assert strays(aws, fed.table.seen) == set()


@pytest.mark.parametrize("format_version", in_turn(2, 3))
@pytest.mark.parametrize("name", [name for name in CASES if name not in FILLED])
def test_values_that_nothing_has(aws, bucket, name, format_version):
    fed, (loads, expected) = Fed(aws, format_version), CASES[name]
    for events in loads[:-1]:
        fed.load(events)
    before, found = fed.read() if fed.committed else [], fed.make(loads[-1])
    with pytest.raises(PendingUnrecoverableError, match=f"key {expected}: ") as refused:
        fed.publish(found)
    assert f"abandon LAKE {found.job_id}" in refused.value.remedy
    assert (fed.read() if fed.committed else []) == before


@pytest.mark.parametrize("format_version", in_turn(2, 3))
def test_a_floor_between_a_row_and_its_update(aws, bucket, format_version):
    """What a truncate takes out has no values for what comes after it; v is the source table here."""
    fed = Fed(aws, format_version)
    truncate = BY.model_copy(update={"floors": (Floor(source="t", order=("0", "9")),), "source": "v"})
    before = [(1, 1, "t", [1]), (2, 2, "t", [2]), (3, 3, "u", [3]), (4, 10, "t", [4])]
    fed.load([c(*event) for event in before])
    # Of the load itself: an event below the floor, as from another partition of the topic.
    for events in ([u(1, 11, "t", LACKING)], [u(5, 8, "t", [5]), u(5, 11, "t", LACKING)]):
        found = fed.make(events, by=truncate)
        with pytest.raises(PendingUnrecoverableError, match=f"'tags', such as that with the key {events[0][0]}: "):
            fed.publish(found)
        assert fed.read() == before
        open_tables(fed.table, found).clear_up(found, gone=True)
    # A late event needs no value. A row that came after the truncate has one, and so has one of another table.
    after = [u(2, 8, "t", LACKING), c(1, 11, "t", [7]), u(1, 12, "t", LACKING)]
    fed.load([*after, u(3, 12, "u", LACKING), u(4, 12, "t", LACKING)], by=truncate)
    assert fed.read() == [(1, 12, "t", [7]), (3, 12, "u", [3]), (4, 12, "t", [4])]
    fed.load([u(1, 13, "t", LACKING)])
    assert fed.read() == [(1, 13, "t", [7]), (3, 12, "u", [3]), (4, 12, "t", [4])]
    assert strays(aws, fed.table.seen) == set()


def test_another_writer_of_the_row_comes_between(aws, bucket, monkeypatch):
    """Each try of the commit fills from the snapshot that it is based on."""
    fed = Fed(aws)
    fed.load([c(1, 1, "a", [7]), c(2, 1, "a")])

    def write() -> None:
        # That writer replaces the row by a newer one, as an UPDATE does, and deletes the other one.
        row = pa.table(
            [fed.list_values([u(1, 2, "foreign", [8])], place) for place in range(len(SCHEMA))], schema=SCHEMA
        )
        foreign(fed.table).overwrite(row)

    interfere(monkeypatch, write)
    fed.load([u(1, 3, LACKING, LACKING)])
    assert fed.read() == [(1, 3, "foreign", [8])]
    assert strays(aws, fed.table.seen) == set()


def test_another_writer_takes_the_row_out(aws, bucket, monkeypatch):
    fed = Fed(aws)
    fed.load([c(1, 1, "a"), c(2, 1, "b")])
    interfere(monkeypatch, lambda: foreign(fed.table).delete("id == 1"))
    found = fed.make([u(1, 3), u(2, 3)])
    with pytest.raises(PendingUnrecoverableError, match="has 1 row without a value in column 'v'"):
        fed.publish(found)
    assert fed.read() == [(2, 1, "b", None)]
    # Once the row is there again, the same load goes on.
    foreign(fed.table).append(pa.table([fed.list_values([u(1, 2, "c")], n) for n in range(len(SCHEMA))], schema=SCHEMA))
    fed.publish(found)
    assert fed.read() == [(1, 3, "c", None), (2, 3, "b", None)]
    open_tables(fed.table, found).clear_up(found, gone=True)
    assert strays(aws, fed.table.seen) == set()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("format_version", [2, 3])
@pytest.mark.parametrize("seed", range(2))
def test_random_histories(aws, bucket, monkeypatch, format_version, seed):
    """A database whose updates leave out what they do not change, in loads that end anywhere; compactions between."""
    monkeypatch.setattr(merge_keys, "FEW_ROWS", 3)
    # The old and the new key may be in two parts.
    monkeypatch.setattr(merge_rows, "PART", 4)
    monkeypatch.setattr(merge_rows, "SAMPLED", 1)
    rng, fed = random.Random(seed), Fed(aws, format_version)
    rows, events = dict[int, tuple[Any, Any]](), list[Event]()
    for lsn in range(1, 90):
        key = rng.randrange(12)
        if key not in rows:
            rows[key] = (f"{lsn}", [lsn])
            events.append(c(key, lsn, *rows[key]))
        elif (kind := rng.random()) < 0.1:
            rows.pop(key)
            events.append(d(key, lsn))
        elif kind < 0.25 and (other := rng.randrange(12)) not in rows:
            rows[other] = rows.pop(key)
            # The values that are left out are those that the row had.
            events += [d(key, lsn), moved(other, lsn, LACKING, LACKING)]
        else:
            old = rows[key]
            rows[key] = rng.choice([(f"{lsn}", old[1]), (old[0], [lsn]), old])
            new = (one if one is not before else LACKING for one, before in zip(rows[key], old, strict=True))
            events.append((key, 0, lsn, *new, False, False))
        if rng.random() < 0.08 or lsn == 89:
            cut = rng.randrange(len(events)) if len(events) > 1 else 0
            fed.load(*(part for part in (events[:cut], events[cut:]) if part))
            events = []
            assert [(key, v, tags) for key, _, v, tags in fed.read()] == sorted(
                (key, *row) for key, row in rows.items()
            )
            if rng.random() < 0.3 and format_version == 2:
                foreign(fed.table).overwrite(fed.table.seen.scan().to_arrow())


def test_rows_that_need_no_value(aws, bucket):
    """Those that do not stay: late ones, and one that another replaces. A load without a gap reads nothing for it."""
    fed = Fed(aws)
    fed.load([c(1, 5, "a"), c(2, 5, "a")])
    fed.load([u(1, 3), u(2, 6), u(2, 7, "b")])
    assert fed.read() == [(1, 5, "a", None), (2, 7, "b", None)]
    asked = len(aws.history)
    fed.load([u(1, 8, "c")], by=BY.model_copy(update={"fills": ()}))
    data = [call.key for call, _ in aws.history[asked:] if call.method == "PUT" and call.key.endswith(".parquet")]
    assert sorted(key.rpartition("/")[2].partition("-")[0] for key in data) == ["deletes"]


def test_row_groups_that_have_no_value_are_not_read():
    body, rows = BytesIO(), pa.table({"v": ["a" * 100, "b" * 100, "c" * 100, "d" * 100, "e" * 100]})
    pq.write_table(rows, body, row_group_size=2, compression="none", use_dictionary=False)
    column = pq.read_metadata(BytesIO(body.getvalue())).row_group(0).column(0)
    # Nobody can read the first group.
    body.seek(column.data_page_offset)
    body.write(bytes(column.total_compressed_size))
    with pq.ParquetFile(BytesIO(body.getvalue())) as parquet:
        read = list(merge_keys.iterate_rows(parquet, pa.array([3, 3, 4]), ["v"]))
    assert [(batch.to_pydict(), positions.to_pylist()) for batch, positions in read] == [
        ({"v": ["d" * 100] * 2}, [3, 3]),
        ({"v": ["e" * 100]}, [4]),
    ]


@pytest.mark.parametrize("where", ["rows", "values"])
def test_the_disk_is_full(aws, bucket, monkeypatch, tmp_path, where):
    """Nothing is published, the message says what to do, and once there is space the same load goes on."""
    monkeypatch.setattr(merge_rows, "PART", 1)
    fed, no_space = Fed(aws), tmp_path / "0"
    fed.load([c(1, 1, "a"), c(2, 1, "b")])
    found = fed.make([u(1, 2), u(2, 2)])
    no_space.mkdir()
    (no_space / "key0").symlink_to("/dev/full")
    with monkeypatch.context() as patched:
        if where == "rows":
            patched.setattr(tempfile, "TemporaryFile", partial(Path("/dev/full").open, "w+b"))
        else:
            patched.setattr(unchanged, "TemporaryDirectory", lambda **_: nullcontext(no_space))
        with pytest.raises(OSError, match="No space left") as refused:
            fed.publish(found)
    remedy, folder = InternalError.met("table t", refused.value).remedy, tempfile.gettempdir()
    assert remedy.startswith(f"Free space in {folder} of this machine, or name another folder in TMPDIR.")
    assert fed.read() == [(1, 1, "a", None), (2, 1, "b", None)]
    fed.publish(found)
    assert fed.read() == [(1, 2, "a", None), (2, 2, "b", None)]
    open_tables(fed.table, found).clear_up(found, gone=True)
    assert strays(aws, fed.table.seen) == set()


class Killed(BaseException):
    """The process is gone: no further call reaches a service."""


def test_a_process_is_killed_at_each_call(aws, bucket, monkeypatch):
    """Another one goes on, and finds the values anew."""
    send, calls, is_killed = URLLib3Session.send, 0, True
    while is_killed:
        fed, left = Fed(aws, name=f"t{calls}"), iter(range(calls))
        fed.load([c(1, 1, BIG, [1])])
        found = fed.make([u(1, 2, LACKING, [2])])

        def send_some(session: Any, request: Any, left: Iterator[int] = left) -> Any:
            if next(left, None) is None:
                raise Killed
            return send(session, request)

        fed.table.clients, is_killed = Clients(ACCESS), True
        with monkeypatch.context() as patched, suppress(Killed):
            patched.setattr(URLLib3Session, "send", send_some)
            fed.table.publish(found, fed.committed + 1)
            is_killed = False
        fed.table.clients = Clients(ACCESS)
        fed.publish(found)
        assert fed.read() == [(1, 2, BIG, [2])]
        open_tables(fed.table, found).clear_up(found, gone=True)
        assert strays(aws, fed.table.seen) == set()
        # CI kills it at each fifth call.
        calls += 1 if IS_NIGHTLY else 5
    assert calls > 10
