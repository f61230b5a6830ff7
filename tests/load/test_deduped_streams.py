"""Streams of Airbyte's sources in Iceberg tables: the platform's deduped modes, generations, changes of a database.

The cases of ``VENDOR`` are those of the vendor's own suite for destinations, ``BasicFunctionalityIntegrationTest`` of
its bulk CDK, by its names.
"""

import itertools
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import botocore.client
import pytest
import yaml
from pyiceberg.catalog import load_catalog

from lakewriter.aws import Clients
from lakewriter.commit.pipeline import Pipeline
from lakewriter.errors import SpecInvalidError
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.operate.verification import verify_all
from lakewriter.run.replay import require_replayable
from tests.load.lakes import read_quarantine
from tests.load.syncs import CONNECTOR, SyncLake, catalog, record, state, status, stream
from tests.support.local_tasks import local_session

pytestmark = pytest.mark.spark
CALL = "_make_api_call"
INTEGER, TEXT, TIME = {"type": "integer"}, {"type": "string"}, {"type": "string", "format": "date-time"}
DEDUPED: dict[str, Any] = {"destination_sync_mode": "append_dedup", "primary_key": [["id"]]}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


class Streams:
    """A pipeline of the stream ``users``; each sync has a catalog and records of its own."""

    def __init__(self, folder, aws, spark):
        self.lake, self.number = SyncLake(folder, aws, spark), 0
        self.top: dict[str, Any] = {}

    def write(self, *configured: dict[str, Any], **source: Any) -> None:
        destination = {
            "type": "lakewriter-s3", "location": "s3://acme-lake/data", "region": "us-east-1", "catalog": "iceberg",
            "tracking": ["load_id", "deleted"],
        }  # fmt: skip
        streams = {"source": {"catalog": catalog(*configured)} | source}
        content = {"pipeline": "p", "destination": destination} | streams | self.top
        self.lake.file.write_text(yaml.safe_dump(content), "utf-8")

    def sync(self, configured: dict[str, Any], *data: Any, ends: str = "COMPLETE", job: str = "") -> Any:
        """Load records, each its data or a message; the source says a state after them, and how the stream ended."""
        self.number += 1
        said = [one if "type" in one else record("users", one) for one in data]
        path = self.lake.messages(
            *said, state("users", self.number), status("users", ends), name=f"{self.number}.jsonl"
        )
        self.write(configured, messages=path)
        return self.lake.load(job or f"job-{self.number}")

    def table(self, name: str = "users"):
        settings = {"s3.endpoint": self.lake.aws.url, "s3.region": "us-east-1", "client.region": "us-east-1"}
        return load_catalog("own", type="glue", **settings).load_table(("public", name))

    def rows(self, *names: str, table: str = "users") -> list[Any]:
        rows = self.table(table).scan().to_arrow().to_pylist()
        return sorted(tuple(row.get(name) for name in names) if names[1:] else row[names[0]] for row in rows)

    def undo(self, job: str):
        spec = self.lake.spec
        return Undo(Pipeline.open(spec, Clients(spec.access)), job, Choices("a drill")).run()

    def differences(self) -> list[str]:
        spec = self.lake.spec
        pipeline = Pipeline.open(spec, Clients(spec.access))
        return [each.message for one in verify_all(pipeline.controls, pipeline.clients) for each in one.differences]


@pytest.fixture
def users(tmp_path, aws, bucket, spark):
    return Streams(tmp_path, aws, spark)


CHANGES = schema(id1=INTEGER, id2=INTEGER, updated_at=TIME, name=TEXT, _ab_cdc_deleted_at=TIME)
TWO_KEYS = stream("users", CHANGES, **DEDUPED | {"primary_key": [["id1"], ["id2"]], "cursor_field": ["updated_at"]})


def change(id2: int, at: str, name: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id1": 1, "id2": id2, "updated_at": f"2000-01-0{at}Z"} | ({"name": name} if name else {}) | more


GONE = {"_ab_cdc_deleted_at": "1970-01-01T00:00:00Z"}


def test_dedup(users):
    """``testDedup``: the newer record stays, a deletion's own time means nothing, Charlie comes and goes in a sync."""
    report = users.sync(
        TWO_KEYS, change(200, "1T00:00:00", "Alice1", _ab_cdc_deleted_at=None), change(200, "1T00:01:00", "Alice2"),
        change(201, "1T00:02:00", "Bob1"),
    )  # fmt: skip
    assert report.status == "done", report
    assert users.rows("id2", "name") == [(200, "Alice2"), (201, "Bob1")]
    report = users.sync(
        TWO_KEYS, change(200, "2T00:00:00", "Alice3", _ab_cdc_deleted_at=None), change(201, "2T00:00:00", "Bob2"),
        change(201, "2T00:01:00", **GONE), change(202, "2T00:00:00", "Charlie1"), change(202, "2T00:01:00", **GONE),
        change(203, "2T00:01:00", **GONE),
    )  # fmt: skip
    assert users.rows("id2", "name", "updated_at") == [(200, "Alice3", datetime(2000, 1, 2, tzinfo=UTC))]
    assert "0 inserted, 1 updated, 1 deleted" in report.tables[0].notes[0]
    # A record of before the deletion stays out.
    users.sync(TWO_KEYS, change(201, "1T00:05:00", "late"))
    assert users.rows("id2", "name") == [(200, "Alice3")]
    assert users.differences() == []


PLAIN = schema(id=INTEGER, name=TEXT)


def test_arrival_is_the_order_without_a_cursor(users):
    """``testDedupNoCursor``, and within one sync; the same key a second time changes nothing but the row."""
    by_id = stream("users", PLAIN, **DEDUPED)
    users.sync(by_id, {"id": 1234, "name": "a"}, {"id": 1, "name": "x"}, {"id": 1234, "name": "b"})
    assert users.rows("id", "name") == [(1, "x"), (1234, "b")]
    users.sync(by_id, {"id": 1234, "name": "a"})
    assert users.rows("id", "name") == [(1, "x"), (1234, "a")]
    assert users.rows("_deleted") == [False, False]
    assert users.differences() == []


def test_another_cursor_and_another_key(users):
    """``testDedupChangeCursor``: a row without the new cursor is older. ``testDedupChangePk``: other rows."""
    for cursor in ("cursor1", "cursor2"):
        columns = schema(id=INTEGER, id2=INTEGER, name=TEXT, **{cursor: INTEGER})
        users.sync(stream("users", columns, **DEDUPED, cursor_field=[cursor]), {"id": 1, cursor: 1, "name": cursor})
    assert users.rows("id", "cursor2", "name") == [(1, 1, "cursor2")]
    two = DEDUPED | {"primary_key": [["id"], ["id2"]]}
    users.sync(stream("users", schema(id=INTEGER, id2=INTEGER, name=TEXT), **two), {"id": 1, "id2": 200, "name": "new"})
    assert sorted(users.rows("name")) == ["cursor2", "new"]
    # Of one cursor the record that came later stays, as vendors' destinations have it.
    users.sync(stream("users", columns, **DEDUPED, cursor_field=["cursor2"]), {"id": 1, "cursor2": 1, "name": "again"})
    assert users.rows("name") == ["again"]


def of_generation(generation: int, minimum: int, **settings: Any) -> dict[str, Any]:
    generations = {"generation_id": generation, "minimum_generation_id": minimum}
    return stream("users", PLAIN, **DEDUPED | generations | settings)


def test_a_truncating_refresh_replaces_rows_once_it_is_whole(users):
    """``testTruncateRefresh``, ``testInterruptedTruncateWithPriorData`` and ``testTruncateRefreshNoData``."""
    users.sync(of_generation(12, 0), {"id": 42, "name": "first"}, {"id": 43, "name": "first"})
    report = users.sync(of_generation(13, 13), {"id": 42, "name": "second"}, ends="INCOMPLETE")
    assert (report.status, report.tables[0].rows) == ("failed", 0)
    assert users.rows("id", "name") == [(42, "first"), (43, "first")]
    # The source got no state back: it sends all of the generation again, and may repeat itself within it.
    twice = [{"id": 42, "name": "second"}, {"id": 44, "name": "a"}, {"id": 44, "name": "b"}]
    report = users.sync(of_generation(13, 13), *twice, job="whole")
    assert report.status == "done"
    assert users.rows("id", "name") == [(42, "second"), (44, "b")]
    # A later sync of the same generation merges into it, whether the catalog still has the minimum or not.
    users.sync(of_generation(13, 13), {"id": 42, "name": "third"}, job="later")
    users.sync(of_generation(13, 0), {"id": 45, "name": "third"}, job="last")
    assert users.rows("id", "name") == [(42, "third"), (44, "b"), (45, "third")]
    assert users.differences() == []
    users.write(of_generation(14, 14), messages="3.jsonl")
    [planned] = users.lake.plan()
    assert planned.catalog[-1] == "replace all rows that it has, once the stream is complete"
    # Taken back to before the refresh, the generation replaces rows once more.
    for job in ("last", "later", "whole"):
        users.undo(job)
    assert users.rows("id", "name") == [(42, "first"), (43, "first")]
    users.sync(of_generation(13, 13), {"id": 46, "name": "again"})
    assert users.rows("id", "name") == [(46, "again")]
    users.sync(of_generation(14, 14))
    assert users.rows("id") == []
    users.sync(of_generation(14, 0), {"id": 47, "name": "more"})
    assert users.rows("id") == [47]
    assert users.differences() == []


def test_a_generation_begins_apart(users):
    """A job of which a part is loaded goes on with a generation that replaces it: that comes whole, from the records
    that are the part's, too, and no key that was deleted before keeps its rows out."""
    first, second = ({"generation_id": number, "minimum_generation_id": number} for number in (0, 2))
    users.sync(TWO_KEYS | first, change(204, "4T00:00:00", **GONE), change(200, "2T00:00:00", "a"))
    again = change(200, "3T00:00:00", "b")
    assert users.sync(TWO_KEYS | first, again, ends="INCOMPLETE", job="a").status == "failed"
    assert users.rows("id2", "name") == [(200, "b")]
    users.number -= 1
    report = users.sync(TWO_KEYS | second, again, state("users", 2), change(204, "1T00:00:00", "back"), job="a")
    assert report.status == "done", report
    assert users.rows("id2", "name") == [(200, "b"), (204, "back")]


def test_overwrites(users):
    """Each generation of an overwrite replaces rows; without generations each sync does. Modes may change between."""
    over = {"destination_sync_mode": "overwrite_dedup", "sync_mode": "full_refresh"}
    repeated = [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}, {"id": 2, "name": "c"}]
    users.sync(of_generation(1, 1, **over), *repeated)
    assert users.rows("id", "name") == [(1, "b"), (2, "c")]
    users.sync(of_generation(2, 2, **over), {"id": 1, "name": "d"}, {"id": 1, "name": "e"})
    assert users.rows("id", "name") == [(1, "e")]
    counted = stream("users", PLAIN, **DEDUPED | over)
    users.sync(counted, *repeated)
    assert users.rows("id", "name") == [(1, "b"), (2, "c")]
    users.sync(counted, {"id": 3, "name": "f"})
    assert users.rows("id", "name") == [(3, "f")]
    # ``testTruncateRefreshChangeSyncMode``.
    users.sync(of_generation(13, 13, destination_sync_mode="append", primary_key=[]), *repeated[:2])
    assert users.rows("id", "name") == [(1, "a"), (1, "b")]
    users.sync(of_generation(14, 14, destination_sync_mode="overwrite", primary_key=[]), repeated[2])
    assert users.rows("id", "name") == [(2, "c")]
    assert users.differences() == []


def test_a_connector_begins_a_refresh_anew_that_did_not_end(users, tmp_path):
    """It fails twice, behind a state: of an ordinary sync what lies before the state is loaded, and the state given;
    of a refresh nothing is, and no state."""
    (tmp_path / "connector.py").write_text(CONNECTOR)
    said = [record("users", {"id": 1, "name": "a"}), state("users", 1), record("users", {"id": 2, "name": "a"})]
    for number in range(4):
        ended = [state("users", 2), status("users", "COMPLETE")] if number > 1 else []
        (tmp_path / f"{number}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in [*said, *ended]))
    source = {"messages": None, "command": ["python", "connector.py"]}
    users.write(of_generation(1, 0), **source)
    assert users.lake.load("a").status == "failed"
    assert users.rows("id") == [1]
    users.write(of_generation(2, 2), **source)
    assert users.lake.load("b").status == "failed"
    assert users.rows("id") == [1]
    assert users.lake.load("b").status == "done"
    assert users.rows("id") == [1, 2]
    users.write(of_generation(2, 0), **source)
    assert users.lake.load("c").status == "done"
    given = [json.loads((tmp_path / f"given{number}").read_text()) for number in range(4)]
    assert [one and one[0]["stream"]["stream_state"] for one in given] == [None, None, None, {"cursor": 2}]


def test_a_refresh_beside_a_stream_that_goes_on(users):
    """A source of change data says one state for all streams: both are loaded up to it, or neither."""
    orders = of_generation(1, 0)
    orders["stream"] = orders["stream"] | {"name": "orders"}

    def load(job: str, generation: int, ends: str) -> str:
        own = [{"stream_descriptor": {"name": name, "namespace": "public"}} for name in ("users", "orders")]
        shared = {"type": "GLOBAL", "global": {"shared_state": {"lsn": job}, "stream_states": own}}
        rows = [{"id": 1, "name": job}, {"id": 2 + generation, "name": job}]
        said = [
            *(record(name, row) for row in rows for name in ("users", "orders")),
            {"type": "STATE", "state": shared}, status("users", ends), status("orders", "COMPLETE"),
        ]  # fmt: skip
        path = users.lake.messages(*said, name=f"{job}.jsonl")
        users.write(of_generation(generation, generation if generation > 1 else 0), orders, messages=path)
        return str(users.lake.load(job).status)

    before = [(1, "a"), (3, "a")]
    assert load("a", 1, "COMPLETE") == "done"
    assert load("b", 2, "INCOMPLETE") == "failed"
    assert [users.rows("id", "name", table=name) for name in ("users", "orders")] == [before, before]
    assert load("c", 2, "COMPLETE") == "done"
    assert users.rows("id", "name") == [(1, "c"), (4, "c")]
    assert users.rows("id", "name", table="orders") == [(1, "c"), (3, "a"), (4, "c")]
    # No part of the next sync replaces rows: up to its last state it is loaded, and both go on behind it.
    assert load("d", 2, "INCOMPLETE") == "failed"
    assert users.rows("id", "name") == [(1, "d"), (4, "d")]
    assert users.differences() == []


LOG = {"_ab_cdc_deleted_at": TEXT, "name": TEXT}
# The types of a connector's releases, and places in them: the first two of each stand in the order of the log.
PLACES = {
    "numbers, then text of numbers": ({"type": "number"}, 24036288, 24036290, TEXT, "24036289", "24036291"),
    "integers, then PostgreSQL's own form": (INTEGER, 93503893576, 93503893578, TEXT, "15/C5443049", "15/C544304B"),
}


@pytest.mark.parametrize("case", PLACES)
def test_the_place_in_the_log_is_the_order_whatever_its_type(users, case):
    first, low, high, second, between, above = PLACES[case]
    key = {"who": {"type": "object", "properties": {"id": INTEGER}}}
    deduped = DEDUPED | {"primary_key": [["who", "id"]], "cursor_field": ["_ab_cdc_lsn"]}

    def at(number: int, lsn: Any, name: str | None, deleted: str | None = None) -> dict[str, Any]:
        return {"who": {"id": number}, "_ab_cdc_lsn": lsn, "name": name, "_ab_cdc_deleted_at": deleted}

    old = stream("users", schema(**key, **LOG, _ab_cdc_lsn=first), **deduped)
    users.sync(old, at(1, high, "b"), at(1, low, "a"), at(2, low, "a"), at(3, low, "a"))
    assert users.rows("who_id", "name") == [(1, "b"), (2, "a"), (3, "a")]
    new = stream("users", schema(**key, **LOG, _ab_cdc_lsn=second), **deduped)
    report = users.sync(new, at(1, between, "late"), at(2, above, None, "2026-01-05"), at(3, between, "c"))
    assert report.status == "done", report
    assert users.rows("who_id", "name") == [(1, "b"), (3, "c")]
    # A connector that begins to say a cursor of its own outranks what it said before.
    own = stream("users", schema(**key, **LOG, _ab_cdc_lsn=second, _ab_cdc_cursor=INTEGER), **deduped)
    users.sync(own, at(3, low, "d") | {"_ab_cdc_cursor": 7}, at(2, low, "d") | {"_ab_cdc_cursor": 6})
    assert users.rows("who_id", "name") == [(1, "b"), (2, "d"), (3, "d")]
    assert users.differences() == []


def test_bad_records_are_kept_out(users):
    """One without a key, and one whose place in the log is none; only those with an order can be replayed."""
    rule = {"on_bad_row": {"action": "quarantine", "at_most": 1}}
    users.top = rule
    of_log = stream("users", schema(id=INTEGER, _ab_cdc_lsn=TEXT), **DEDUPED)
    report = users.sync(of_log, {"id": 1, "_ab_cdc_lsn": "1"}, {"_ab_cdc_lsn": "2"}, {"id": 2, "_ab_cdc_lsn": "soon"})
    assert (report.status, users.rows("id")) == ("done", [1])
    reasons = sorted(row["_lake_reasons"][0] for row in read_quarantine(users.lake.aws))
    assert [reason.split(":")[0] for reason in reasons] == ["column '_ab_cdc_lsn'", "id of primary_key"], reasons
    require_replayable(users.lake.spec, users.lake.spec.tables[0])
    users.write(stream("users", PLAIN, **DEDUPED), messages="m.jsonl")
    with pytest.raises(SpecInvalidError, match="newer than others by their arrival"):
        require_replayable(users.lake.spec, users.lake.spec.tables[0])


class Killed(BaseException):
    """The process is gone: no further call reaches a service."""


def kill(number: int, load: Callable[[], Any]) -> bool:
    """Let a load's process die at a call; return False where it had fewer calls."""
    calls, call = itertools.count(1), getattr(botocore.client.BaseClient, CALL)

    def counted(client: Any, operation: str, arguments: Any) -> Any:
        if next(calls) > number:
            raise Killed
        return call(client, operation, arguments)

    with patch.object(botocore.client.BaseClient, CALL, counted):
        try:
            load()
        except Killed:
            return True
    return next(calls) > number + 1


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(10))
def test_a_replacing_sync_that_is_killed(tmp_path, aws, bucket, first):
    """At every tenth call: readers see the generation before it or all of it, and the same load again ends it."""
    users, is_killed = Streams(tmp_path, aws, local_session(2)), True
    users.sync(of_generation(1, 0), {"id": 9, "name": "x"}, job="start")
    generations = itertools.count(2)
    while is_killed:
        number = next(generations)
        configured, before = of_generation(number, number), users.rows("id", "name")
        said = [{"id": key, "name": f"{name}{number}"} for key, name in ((1, "a"), (1, "b"), (2, "c"), (2, "d"))]
        is_killed = kill(first + 10 * (number - 2), lambda: users.sync(configured, *said, job=f"g{number}"))  # noqa: B023
        whole = [(1, f"b{number}"), (2, f"d{number}")]
        assert users.rows("id", "name") in (before, whole)
        assert users.sync(configured, *said, job=f"g{number}").status == "done"
        assert users.rows("id", "name") == whole
        users.sync(configured, {"id": 1, "name": "merged"}, job=f"m{number}")
        assert users.rows("id", "name") == [whole[1], (1, "merged")][::-1]
    assert users.differences() == []


REFUSED = [
    # the stream's settings, the destination's, what the message has
    ({"primary_key": []}, {}, "streams.0.primary_key: stream 'users' is deduplicated, and has no primary_key"),
    ({"include_files": True}, {}, "stream 'users' includes files, and this destination has no place for them"),
    ({}, {"catalog": "none"}, "source: streams of records are loaded into Iceberg tables here"),
    ({"destination_sync_mode": "update"}, {}, "'update' of 'users': expected 'append', 'overwrite', 'append_dedup' or"),
    ({}, {"tracking": []}, "stream 'users' has '_ab_cdc_deleted_at', which deletes rows, and no column that says so"),
]


@pytest.mark.parametrize(("settings", "destination", "expected"), REFUSED)
def test_what_is_refused(tmp_path, settings, destination, expected):
    streams = Streams(tmp_path, None, None)
    streams.write(stream("users", CHANGES, **DEDUPED | settings), messages="m.jsonl")
    content = yaml.safe_load(streams.lake.file.read_text())
    content["destination"] |= destination
    streams.lake.file.write_text(yaml.safe_dump(content))
    with pytest.raises(SpecInvalidError) as raised:
        streams.lake.spec  # noqa: B018 - reading it is what fails
    assert expected in str(raised.value)
