"""Syncs of Airbyte messages: what lies in the bucket, and what a report says."""

import datetime as dt
import hashlib
import json
import re
import uuid

import pytest

from lakewriter.spec.specification import MIB
from tests.load.syncs import BUCKET, SyncLake, catalog, failure, record, state, status, stream

pytestmark = pytest.mark.spark

JOHN = {"user_id": 123, "name": {"first": "John", "last": "Doe"}}
JANE = {"user_id": 456, "name": {"first": "Jane", "last": "Roe"}}
DOCUMENTED = stream("users", generation_id=11, minimum_generation_id=0, sync_id=10111)
PLAIN = {"compression_type": "No Compression"}


@pytest.fixture
def lake(tmp_path, aws, bucket, spark):
    return SyncLake(tmp_path, aws, spark)


def written(lake, form, *, kind="airbyte-s3", messages=None, own=DOCUMENTED):
    path = lake.messages(*(messages or [record("users", JOHN), record("users", JANE, 1631948170000)]))
    lake.write({"format": form}, kind=kind, source={"messages": path, "catalog": catalog(own)})
    report = lake.load("j")
    assert report.status == "done", report
    ((key, body),) = lake.data().items()
    return key, body


def split_id(line: str) -> tuple[str, str]:
    """A line without its raw id, which is a UUID."""
    found = re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", line)
    assert found
    return found[0], line.replace(found[0], "ID")


CSV_TEXTS = [
    # the documents' example, with the product's order of columns and of meta's keys, and RFC 4180's quotes
    ("airbyte-s3", "No flattening",
     '"_airbyte_raw_id","_airbyte_extracted_at","_airbyte_meta","_airbyte_generation_id","_airbyte_data"\r\n',
     '"ID",1622135805000,"{""sync_id"":10111,""changes"":[]}",11,'
     '"{""user_id"":123,""name"":{""first"":""John"",""last"":""Doe""}}"\r\n'),
    ("airbyte-s3", "Root level flattening",
     '"_airbyte_raw_id","_airbyte_extracted_at","_airbyte_meta","_airbyte_generation_id","user_id","name"\r\n',
     '"ID",1622135805000,"{""sync_id"":10111,""changes"":[]}",11,123,'
     '"{""first"":""John"",""last"":""Doe""}"\r\n'),
    ("heropixel-s3", "No flattening", '"_airbyte_ab_id","_airbyte_emitted_at","_airbyte_data"\r\n',
     '"ID",1622135805000,"{""user_id"":123,""name"":{""first"":""John"",""last"":""Doe""}}"\r\n'),
    ("heropixel-s3", "Root level flattening", '"_airbyte_ab_id","_airbyte_emitted_at","user_id","name"\r\n',
     '"ID",1622135805000,123,"{""first"":""John"",""last"":""Doe""}"\r\n'),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "flattening", "header", "line"), CSV_TEXTS)
def test_documented_csv(lake, kind, flattening, header, line):
    form = {"format_type": "CSV", "flattening": flattening, "compression": PLAIN}
    _, body = written(lake, form, kind=kind, messages=[record("users", JOHN)])
    assert split_id(body.decode())[1] == header + line


JSONL_TEXTS = [
    ("airbyte-s3", "No flattening",
     ['{"_airbyte_raw_id":"ID","_airbyte_extracted_at":1622135805000,"_airbyte_meta":{"sync_id":10111,"changes":[]},'
      '"_airbyte_generation_id":11,"_airbyte_data":{"user_id":123,"name":{"first":"John","last":"Doe"}}}',
      '{"_airbyte_raw_id":"ID","_airbyte_extracted_at":1631948170000,"_airbyte_meta":{"sync_id":10111,"changes":[]},'
      '"_airbyte_generation_id":11,"_airbyte_data":{"user_id":456,"name":{"first":"Jane","last":"Roe"}}}']),
    ("airbyte-s3", "Root level flattening",
     ['{"_airbyte_raw_id":"ID","_airbyte_extracted_at":1622135805000,"_airbyte_meta":{"sync_id":10111,"changes":[]},'
      '"_airbyte_generation_id":11,"user_id":123,"name":{"first":"John","last":"Doe"}}',
      '{"_airbyte_raw_id":"ID","_airbyte_extracted_at":1631948170000,"_airbyte_meta":{"sync_id":10111,"changes":[]},'
      '"_airbyte_generation_id":11,"user_id":456,"name":{"first":"Jane","last":"Roe"}}']),
    ("heropixel-s3", "No flattening",
     ['{"_airbyte_ab_id":"ID","_airbyte_emitted_at":1622135805000,'
      '"_airbyte_data":{"user_id":123,"name":{"first":"John","last":"Doe"}}}',
      '{"_airbyte_ab_id":"ID","_airbyte_emitted_at":1631948170000,'
      '"_airbyte_data":{"user_id":456,"name":{"first":"Jane","last":"Roe"}}}']),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "flattening", "lines"), JSONL_TEXTS)
def test_documented_jsonl(lake, kind, flattening, lines):
    form = {"format_type": "JSONL", "flattening": flattening, "compression": PLAIN}
    _, body = written(lake, form, kind=kind)
    found = [split_id(line) for line in body.decode().splitlines()]
    assert [line for _, line in found] == lines
    assert len({own for own, _ in found}) == 2


ENVELOPE = {
    "_airbyte_extracted_at": dt.datetime(2021, 5, 27, 17, 16, 45, tzinfo=dt.UTC),
    "_airbyte_meta": {"sync_id": 10111, "changes": []},
    "_airbyte_generation_id": 11,
}


@pytest.mark.parametrize("form", ["Avro", "Parquet"])
def test_documented_record_in_typed_files(lake, form):
    key, _ = written(lake, {"format_type": form})
    assert re.fullmatch(rf"data/public/users/\d{{4}}_\d\d_\d\d_\d{{13}}_0\.{form.lower()}", key)
    first, second = lake.rows()
    assert uuid.UUID(str(first.pop("_airbyte_raw_id"))).version == 8
    assert first == ENVELOPE | JOHN
    assert second["user_id"] == 456


@pytest.mark.parametrize("form", ["Avro", "Parquet"])
def test_hero_pixel_in_typed_files(lake, form):
    written(lake, {"format_type": form}, kind="heropixel-s3", messages=[record("users", JOHN | {"x": [1], "y": "z"})])
    (row,) = lake.rows()
    assert dict(row.pop("_airbyte_additional_properties")) == {"x": "[1]", "y": "z"}
    assert row.pop("_airbyte_ab_id")
    emitted = {"_airbyte_emitted_at": ENVELOPE["_airbyte_extracted_at"]}
    assert row == emitted | {"user_id": 123} | {
        "name": {"first": "John", "last": "Doe", "_airbyte_additional_properties": None}
    }


def test_each_file_of_a_load_has_its_own_uuid(lake):
    """The guide: one for each file. Two streams of a load shared one."""
    path = lake.messages(record("users", JOHN), record("orders", JANE))
    form = {"format": {"format_type": "JSONL"}, "s3_path_format": "${STREAM_NAME}/${UUID}/"}
    lake.write(form, source={"messages": path, "catalog": catalog(stream("users"), stream("orders"))})
    assert lake.load("j").status == "done"
    assert len({key.split("/")[2] for key in lake.data()}) == 2


def make_texts(count):
    """Records of a kilobyte that a compressor cannot make much smaller than half."""
    return [record("users", {"user_id": 1, "x": hashlib.shake_256(b"%d" % n).hexdigest(480)}) for n in range(count)]


def test_messages_in_files_become_files_of_the_target_size(lake, monkeypatch):
    """Each piece that a task read was a file: 1.5 GiB became 12 files of 86 to 125 MiB, 160 MiB two of 14 MiB."""
    monkeypatch.setattr("lakewriter.source.messages.splits.PIECE_BYTES", MIB // 8)
    path = lake.messages(*make_texts(5400))
    # (compression, the target, MiB of each file): two of 1.6 MiB and six of 0.9, the last ones where the text is plain
    for compression, target, count, least in (("GZIP", 200, 1, 2.5), ("No Compression", 1, 7, 0.75)):
        form = {"format": {"format_type": "JSONL", "compression": {"compression_type": compression}}}
        lake.write(
            form, source={"messages": path, "catalog": catalog(stream("users"))}, limits={"target_file_mb": target}
        )
        before = lake.data().keys()
        assert lake.load(compression.split()[0]).status == "done"
        sizes = [len(body) / MIB for key, body in lake.data().items() if key not in before]
        assert len(sizes) == count, sizes
        assert min(sizes) > least, sizes


def test_objects_carry_their_generation_and_raw_ids_are_those_of_the_load(lake):
    written(lake, {"format_type": "JSONL"})
    assert list(lake.generations().values()) == ["11"]
    before = [row["_airbyte_raw_id"] for row in lake.rows()]
    s3 = lake.aws.client("s3")
    for key in list(lake.aws.objects(BUCKET)):
        s3.delete_object(Bucket=BUCKET, Key=key)
    lake.load("j")
    assert [row["_airbyte_raw_id"] for row in lake.rows()] == before


def test_nothing_of_a_record_is_lost_in_text(lake):
    odd = '{"type":"RECORD","record":{"namespace":"public","stream":"users","data":{"a":1.10,"n":123456789012345678901234567890,"\\u00e9": "\\ud83c\\udf89\\n","user_id":1e400}}}'  # noqa: E501
    lake.write({"format": {"format_type": "JSONL", "compression": PLAIN}},
               source={"messages": lake.messages(odd), "catalog": catalog(stream("users"))})  # fmt: skip
    lake.load("j")
    ((_, body),) = lake.data().items()
    assert '{"a":1.10,"n":123456789012345678901234567890,"é":"🎉\\n","user_id":1e400}'.encode() in body


def test_changes(lake):
    own = {"changes": [{"field": "z", "change": "NULLED", "reason": "SOURCE_SERIALIZATION_ERROR"}]}
    odd = record("users", {"user_id": 2**70, "name": {"first": 1.5}, "more": 1}, meta=own)
    lake.write({"format": {"format_type": "Avro"}, "record_undeclared": True},
               source={"messages": lake.messages(odd), "catalog": catalog(stream("users"))})  # fmt: skip
    (result,) = lake.load("j").tables
    (row,) = lake.rows()
    assert (row["user_id"], row["name"]) == (None, {"first": "1.5", "last": None})
    assert row["_airbyte_meta"]["changes"] == [
        {"field": "z", "change": "NULLED", "reason": "SOURCE_SERIALIZATION_ERROR"},
        {"field": "user_id", "change": "NULLED", "reason": "DESTINATION_FIELD_SIZE_LIMITATION"},
        {"field": "more", "change": "NULLED", "reason": "DESTINATION_SERIALIZATION_ERROR"},
    ]
    assert (result.changes, dict(result.undeclared)) == (2, {"more": 1})


@pytest.mark.parametrize("form", ["Avro", "CSV"])
def test_key_twice_in_a_record_is_a_change(lake, form):
    """A file with such a line is refused: a record loads, with the last value, and says so."""
    line = json.dumps(record("users", {"user_id": 1})).replace('"user_id": 1', '"user_id":1,"user_id":2')
    flattening = {"flattening": "Root level flattening"} if form == "CSV" else {}
    lake.write({"format": {"format_type": form, **flattening}},
               source={"messages": lake.messages(line), "catalog": catalog(stream("users"))})  # fmt: skip
    (result,) = lake.load("j").tables
    (row,) = lake.rows()
    assert (result.status, int(row["user_id"]), result.changes) == ("done", 2, 1)
    assert [(changed.field, changed.reason) for changed in result.changed] == [
        ("user_id", "SOURCE_SERIALIZATION_ERROR")
    ]
    meta = row["_airbyte_meta"] if form == "Avro" else json.loads(row["_airbyte_meta"])
    assert meta["changes"] == [
        {"field": "user_id", "change": "TRUNCATED", "reason": "SOURCE_SERIALIZATION_ERROR"},
    ]


def interleaved(*last):
    return [
        record("users", {"user_id": 1}), record("orders", {"id": "a"}), state("users", 1),
        record("users", {"user_id": 2}),
        state("orders", 1), record("orders", {"id": {"odd": 1}}), "this is no message", record("strangers", {"x": 1}),
        state("users", 2), record("users", {"user_id": 3}), *last,
    ]  # fmt: skip


ORDERS = {"properties": {"id": {"type": "string"}}}
TWO = catalog(stream("users"), stream("orders", ORDERS))
PARQUET = {"format": {"format_type": "Parquet"}}


def test_error_at_the_end_then_a_run_that_goes_on(lake):
    lake.write(PARQUET, source={"messages": lake.messages(*interleaved(failure("boom"))), "catalog": TWO})
    report = lake.load("j")
    assert [(result.status, result.code) for result in report.tables] == [("failed", "SOURCE_FAILED")] * 2
    assert "boom" in report.tables[0].message
    assert sorted(row["user_id"] for row in lake.rows("data/public/users/")) == [1, 2]
    assert [row["id"] for row in lake.rows("data/public/orders/")] == ["a"]
    assert any("1 line" in note and "this is no message" in note for note in report.notes)
    assert any("strangers" in note for note in report.notes)
    assert '"cursor": 2' in lake.control("public.users").state.read().sync.source.text
    # the same load again changes nothing, and neither does the same input once it ends well load anything twice
    lake.load("j")
    assert len(lake.data()) == 2
    lake.messages(*interleaved())
    assert lake.load("j").status == "done"
    assert sorted(row["user_id"] for row in lake.rows("data/public/users/")) == [1, 2, 3]
    assert sorted(row["id"] for row in lake.rows("data/public/orders/")) == ["a", '{"odd":1}']


def test_without_a_state_a_failed_load_leaves_nothing(lake):
    lake.write(PARQUET, source={"messages": lake.messages(record("users", JOHN), failure("boom")),
                                "catalog": catalog(stream("users"))})  # fmt: skip
    assert lake.load("j").status == "failed"
    assert not lake.data()
    assert not lake.aws.uploads(BUCKET)


def test_statuses_decide(lake):
    messages = [record("users", JOHN), status("users", "COMPLETE"), record("orders", {"id": "a"}),
                status("orders", "INCOMPLETE")]  # fmt: skip
    lake.write(PARQUET, source={"messages": lake.messages(*messages), "catalog": TWO})
    report = lake.load("j")
    assert {result.table: result.status for result in report.tables} == {"users": "done", "orders": "failed"}
    assert [key.split("/")[2] for key in lake.data()] == ["users"]


def overwrite(name="users", **settings):
    return catalog(stream(name, destination_sync_mode="overwrite", sync_mode="full_refresh", **settings))


def test_overwrite_by_generation(lake):
    s3 = lake.aws.client("s3")
    theirs = "data/public/users/2021_01_01_1234567890_0.parquet"
    s3.put_object(Bucket=BUCKET, Key=theirs, Body=b"x")
    s3.put_object(Bucket=BUCKET, Key=theirs + "-1", Body=b"x", Metadata={"ab-generation-id": "4"})
    kept = ["data/public/users/notes.txt", "data/public/users_archive/2021_01_01_1234567890_0.parquet"]
    for key in kept:
        s3.put_object(Bucket=BUCKET, Key=key, Body=b"x")
    lake.write(PARQUET, source={"messages": lake.messages(record("users", JOHN)), "catalog": overwrite()})
    (result,) = lake.load("a").tables
    assert (result.generation_id, result.retired) == (5, 2)
    (first,) = set(lake.data()) - set(kept)
    (result,) = lake.load("b").tables
    assert (result.generation_id, result.retired) == (6, 1)
    (second,) = set(lake.data()) - set(kept)
    assert first != second


def test_failed_overwrite_deletes_nothing(lake):
    lake.write(PARQUET, source={"messages": lake.messages(record("users", JOHN)), "catalog": overwrite()})
    lake.load("a")
    lake.messages(record("users", JANE), state("users", 1), record("users", JANE), failure("boom"))
    assert lake.load("b").status == "failed"
    assert sorted(lake.generations().values()) == ["1", "2"]
    lake.messages(record("users", JANE))
    lake.load("c")
    assert list(lake.generations().values()) == ["3"]


def test_refresh_with_a_minimum_generation(lake):
    messages = lake.messages(record("users", JOHN))
    for generation, lowest, expected in [(1, 0, ["1"]), (2, 0, ["1", "2"]), (2, 2, ["2", "2"])]:
        own = stream("users", generation_id=generation, minimum_generation_id=lowest)
        lake.write(PARQUET, source={"messages": messages, "catalog": catalog(own)})
        lake.load(f"j{generation}{lowest}")
        assert sorted(lake.generations().values()) == expected


TRUNCATED = [
    # how the stream is written, the minimum of generation 3, the generations of the objects that stay of 0, 1 and 3
    ("append", 0, ["0", "1", "3"]),
    ("append", 1, ["0", "1", "3"]),
    ("append", 3, ["3"]),
    ("overwrite", 1, ["1", "3"]),
    ("overwrite", 3, ["3"]),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("mode", "minimum", "expected"), TRUNCATED)
def test_generations_that_a_sync_truncates(lake, mode, minimum, expected):
    """As Airbyte's connector: append with a minimum below its own generation truncates nothing."""
    messages = lake.messages(record("users", JOHN), status("users", "COMPLETE"))
    syncs = [("append", 0, 0), ("append", 1, 0), (mode, 3, minimum)]
    for number, (own_mode, generation, lowest) in enumerate(syncs):
        ids = {"generation_id": generation, "minimum_generation_id": lowest}
        own = stream("users", destination_sync_mode=own_mode, **ids)
        lake.write(PARQUET, source={"messages": messages, "catalog": catalog(own)})
        assert lake.load(f"j{number}").status == "done"
    assert sorted(lake.generations().values()) == expected
    assert len(lake.rows()) == len(expected)


def test_overwrite_without_rows_empties_the_stream(lake):
    lake.write(PARQUET, source={"messages": lake.messages(record("users", JOHN)), "catalog": overwrite()})
    lake.load("a")
    lake.messages(status("users", "COMPLETE"))
    assert lake.load("b").status == "done"
    assert not lake.data()


@pytest.mark.parametrize("purge_first", [False, True])
def test_hero_pixel_refresh_replaces_all_of_the_streams_directory(lake, purge_first):
    """Its document: data in the configured path is wiped out, each stream has a directory of its own."""
    old = ["2021_01_01_1_0.csv.gz", "2021_01_01_1_0.avro", "notes.txt", "2021/a.jsonl", "2021_01_01_1_0.parquet-1"]
    gone = [f"data/public/users/{name}" for name in old]
    foreign = "data/public/users/other.csv"
    kept = [foreign, "data/public/users_archive/a.csv", "data/public/orders/a.csv", "data/public/notes.txt"]
    s3 = lake.aws.client("s3")
    for key in (*gone, *kept):
        metadata = {"lakewriter-load": "other/j/a"} if key == foreign else {}
        s3.put_object(Bucket=BUCKET, Key=key, Body=b"x", Metadata=metadata)
    source = {"messages": lake.messages(record("users", JOHN)), "catalog": overwrite()}
    lake.write(PARQUET | {"purge_first": purge_first}, kind="heropixel-s3", source=source)
    (planned,) = lake.plan()
    assert (planned.error, sorted(planned.deletes)) == (None, sorted(f"s3://{BUCKET}/{key}" for key in gone))
    assert lake.load("a").status == "done"
    (new,) = set(lake.data()) - set(kept)
    assert new.endswith(".parquet")
    assert set(kept) <= set(lake.data())
    assert not set(gone) & set(lake.data())


def test_purge_first_deletes_before_it_writes(lake):
    form = PARQUET | {"purge_first": True}
    lake.write(form, kind="heropixel-s3",
               source={"messages": lake.messages(record("users", JOHN)), "catalog": overwrite()})  # fmt: skip
    lake.load("a")
    for job_id, messages, message, rows in [
        # without a STATE nothing of the stream is loaded, and so nothing is purged
        ("b", [record("users", JANE), failure("boom.")],
         "stream 'users' is not complete: the source reports: boom. No more of its rows are committed.", [123]),
        ("c", [record("users", JANE), state("users", 1), failure("boom")],
         "stream 'users' is not complete: the source reports: boom. 1 row before its last STATE is committed.", [456]),
    ]:  # fmt: skip
        lake.messages(*messages)
        (result,) = lake.load(job_id).tables
        assert (result.status, result.message) == ("failed", message)
        assert [row["user_id"] for row in lake.rows()] == rows


def test_one_place_for_all_loads(lake):
    form = PARQUET | {"s3_path_format": "${STREAM_NAME}/"}
    lake.write(form, source={"messages": lake.messages(record("users", JOHN)), "catalog": catalog(stream("users"))})
    lake.load("a")
    lake.load("b")
    assert list(lake.data()) == ["data/users/0.parquet", "data/users/1.parquet"]


def test_one_file_for_a_load_without_part_numbers(lake):
    form = PARQUET | {"file_name_pattern": "all{format_extension}"}
    lake.messages(*(record("users", {"user_id": n}) for n in range(10)), name="1.jsonl")
    lake.messages(*(record("users", {"user_id": n}) for n in range(10, 20)), name="2.jsonl")
    source = {"messages": ["1.jsonl", "2.jsonl"], "catalog": catalog(stream("users"))}
    lake.write(form, source=source)
    lake.load("a")
    (key,) = lake.data()
    assert key.endswith("_all.parquet")
    assert sorted(row["user_id"] for row in lake.rows()) == list(range(20))
