"""Control objects and answers that nobody of ours has written: every one is read, or refused with a code."""

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from lakewriter.commit.conditional_writes import parse_object
from lakewriter.commit.control import Control
from lakewriter.commit.earlier_attempts import BeginRecord
from lakewriter.commit.glue_table import check_layout, describe_differences, read_columns
from lakewriter.commit.ownership import Ownership, OwnershipRecord
from lakewriter.control_object import parse
from lakewriter.errors import LakeError, SchemaIncompatibleError
from lakewriter.records.actions import GlueAction
from lakewriter.records.changes import Intent, parse_intent
from lakewriter.records.state import TableState
from lakewriter.report import TableReport
from lakewriter.run.sync import SyncNumber, claim_number
from tests.commit.test_control_object import BEGIN, INTENT, STATE, Place

AT = datetime(2024, 1, 15, tzinfo=UTC)
IN_CI, ALL = 300, 10_000

ACTION = GlueAction(
    database="d",
    database_location="s3://b/d",
    table="t",
    location="s3://b/d/t",
    columns=(("a", "bigint"),),
    partition_key="day",
    partition="1",
    partition_location="s3://b/d/t/1",
)
TABLE: dict[str, Any] = {
    "Name": "t",
    "VersionId": "1",
    "PartitionKeys": [{"Name": "day", "Type": "string"}],
    "Parameters": {"classification": "parquet"},
    "StorageDescriptor": {
        "Columns": [{"Name": "a", "Type": "bigint"}],
        "Location": "s3://b/d/t",
        "SerdeInfo": {"SerializationLibrary": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"},
    },
}
HEAD: dict[str, Any] = {"ContentLength": 1, "ETag": '"e"', "Metadata": {"Lakewriter-Load": "p/a/1"}}
VALUES: list[Any] = [
    None, True, 0, -1, 10**30, 1.5, "", "x", "\ud800", "\x00", "²", "2024-01-15T00:00:00", "9" * 5000, [], {}, [[]],
    {"version": 2}, ["x"], {"x": {"x": None}}, "2024-01-15T00:00:00Z", "(",
]  # fmt: skip


def written() -> dict[str, bytes]:
    """Good control objects, by the kind that they are."""
    place = Place()
    bodies = {
        name: place.world.objects[key][0] for name, key in {"state": STATE, "begin": BEGIN, "intent": INTENT}.items()
    }
    report = parse_intent(INTENT, bodies["intent"]).make_report().model_dump_json().encode()
    owner = {"version": 1, "directory": "d", "writers": {"p": {"refreshes": True, "since": AT.isoformat()}}}
    return bodies | {
        "report": report,
        "owner": json.dumps(owner).encode(),
        "number": b'{"version": 1, "sync_id": 3}',
    }


def read(model: Any) -> Callable[[bytes], object]:
    """Read as ``model`` and write again, as whoever replaces an object does."""
    return lambda body: parse(model, "key", body).model_dump_json()


READERS: dict[str, Callable[[bytes], object]] = {
    "state": read(TableState),
    "begin": read(BeginRecord),
    "intent": read(Intent),
    "report": read(TableReport),
    "owner": read(OwnershipRecord),
    "number": read(SyncNumber),
}


def places(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [path, *(inner for name, value in items for inner in places(value, (*path, name)))]


def changed(content: Any, random_: random.Random) -> Any:
    """A copy with a place's value replaced, taken out, or grown."""
    copy = json.loads(json.dumps(content))
    for _ in range(random_.choice((1, 1, 1, 2, 5))):
        found = places(copy)[1:]
        if not found:
            break
        *path, last = random_.choice(found)
        at = copy
        for step in path:
            at = at[step]
        kind = random_.randrange(4)
        if kind == 0:
            del at[last]
        elif kind == 1 and isinstance(at, dict):
            at[random_.choice(("needs", "version", "later"))] = random_.choice(VALUES)
        else:
            at[last] = random_.choice(VALUES)
    return copy


def mutated(body: bytes, random_: random.Random) -> bytes:
    """The bytes of an object that was damaged, in its text or in its meaning."""
    kind = random_.randrange(8)
    if kind == 0:
        return body[: random_.randrange(len(body))]
    if kind == 1:
        at = random_.randrange(len(body))
        return body[:at] + random_.randbytes(random_.randrange(1, 5)) + body[at + 1 :]
    if kind == 2:
        depth = random_.choice((50, 101, 300, 5000, 100_000))
        return body.rstrip()[:-1] + b', "later": ' + b"[" * depth + b"]" * depth + b"}"
    if kind == 3:
        return random_.choice((b"", b"null", b"[]", b"NaN", b"\x00" * 9, b'{"version": 1e400}', b"\xff\xfe{}", b"{}"))
    return json.dumps(changed(json.loads(body), random_)).encode()


def tried(what: Callable[[], object], seed: object) -> None:
    """Anything but a ``LakeError`` names the seed it came from."""
    try:
        what()
    except LakeError:
        return
    except Exception as error:
        raise AssertionError(f"seed {seed!r}") from error


def try_objects(seeds: range) -> None:
    bodies = written()
    names = sorted(READERS)
    for seed in seeds:
        random_, name = random.Random(seed), names[seed % len(names)]
        body = mutated(bodies[name], random_)
        tried(lambda: READERS[name](body), (seed, name))  # noqa: B023 - called at once


def look_at_table(table: Any) -> None:
    check_layout(table, ACTION)
    read_columns(table)
    describe_differences(table, ACTION)


def without(content: Any, random_: random.Random) -> Any:
    """A copy that lacks members, as answers may: types are seen to by the SDK's parser."""
    copy = json.loads(json.dumps(content))
    for _ in range(random_.randrange(1, 4)):
        found = [path for path in places(copy)[1:] if isinstance(path[-1], str) and path[-1] not in ("Name",)]
        if found:
            *path, last = random_.choice(found)
            at = copy
            for step in path:
                at = at[step]
            del at[last]
    return copy


def try_answers(seeds: range) -> None:
    for seed in seeds:
        random_ = random.Random(seed)
        table = without(TABLE, random_)
        tried(lambda: look_at_table(table), (seed, "table"))  # noqa: B023 - called at once
        metadata = {"AB-Generation-Id": random_.choice([str(value) for value in VALUES])}
        tried(lambda: parse_object(HEAD | {"Metadata": metadata}), (seed, "head"))  # noqa: B023 - called at once


def test_mutated_objects():
    try_objects(range(IN_CI))


def test_mutated_answers():
    try_answers(range(IN_CI))


@pytest.mark.exhaustive
def test_all_mutated_objects():
    try_objects(range(ALL))


@pytest.mark.exhaustive
def test_all_mutated_answers():
    try_answers(range(ALL))


def test_metadata_have_no_case():
    """rclone and some stores give the names back in capitals."""
    named = {"Lakewriter-Load": "p/a/1", "LAKEWRITER-TABLE": "s.t", "Ab-Generation-Id": "7"}
    found = parse_object(HEAD | {"Metadata": named})
    assert (found.load, found.table, found.generation_id) == ("p/a/1", "s.t", 7)


ODD_TABLES = [
    # the table, words of the message
    ({"Name": "t", "TargetTable": {"DatabaseName": "other"}}, "is a resource link, expected a table"),
    ({"Name": "t", "TableType": "VIRTUAL_VIEW"}, "is a table without a StorageDescriptor"),
]


@pytest.mark.parametrize(("table", "words"), ODD_TABLES)
def test_table_without_a_storage_descriptor(table, words):
    with pytest.raises(SchemaIncompatibleError, match=words):
        check_layout(table, ACTION)


DAMAGED = [
    # what lies there instead, what reads it
    (b"[" * 100_000, "owner"),
    (b'{"version": 2, "directory": "d", "writers": {}}', "owner"),
    (b'{"version": 1, "directory": "d", "writers": {"other": []}}', "owner"),
    (b'{"version": 1}', "number"),
    (b'{"version": 1, "sync_id": "many"}', "number"),
]


@pytest.mark.parametrize(("body", "kind"), DAMAGED)
def test_damaged_records(body: bytes, kind: str, monkeypatch):
    control: Control = Place().control
    monkeypatch.setattr(control.store, "get", lambda _: (body, "etag"))
    if kind == "number":
        with pytest.raises(LakeError, match="PENDING_UNRECOVERABLE"):
            claim_number(control, "a", lambda: 0)
        return

    class Layout:
        glob, prefix = "d/*.csv", "d/"

    owner: Any = Ownership(control, "p", Layout())  # type: ignore[arg-type]
    with pytest.raises(LakeError, match="NAME_COLLISION"):
        owner.check(refreshes=True)
