"""What somebody does to a load behind its back, and what ``verify`` says of it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from lakewriter.operate.verification import verify_all
from tests.load.lakes import BUCKET
from tests.operate.tampered import GLUE, ICEBERG, STREAM, Loaded, compact, make, put_back
from tests.support.fixtures import empty_aws
from tests.support.server import StrictAws


@pytest.fixture(scope="module")
def loads(aws_server: StrictAws, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Loaded]]:
    with pytest.MonkeyPatch.context() as patch:
        yield make(empty_aws(aws_server, patch), tmp_path_factory.mktemp("lakes"))


@pytest.fixture
def undone(loads):
    with put_back():
        yield loads


def gone(lake):
    lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=lake.file)


def body(lake):
    return lake.aws.objects(BUCKET)[lake.file]


def truncated(lake):
    lake.put(lake.file, body(lake)[:-9], load=lake.load_of_a)


def zeroed(lake):
    lake.put(lake.file, bytes(len(body(lake))), load=lake.load_of_a)


def changed(lake):
    at = len(body(lake)) // 2
    lake.put(lake.file, body(lake)[:at] + bytes([body(lake)[at] ^ 1]) + body(lake)[at + 1 :], load=lake.load_of_a)


def replaced(lake):
    lake.put(lake.file, body(lake))


def changed_in_parts(lake):
    """By whoever knows how a load uploads: the number of parts, the size, the metadata are the same."""
    where = {"Bucket": BUCKET, "Key": lake.file}
    s3, content = lake.aws.client("s3"), body(lake)
    upload = s3.create_multipart_upload(
        **where, Metadata={"lakewriter-load": lake.load_of_a}, ChecksumAlgorithm="CRC32"
    )
    part = s3.upload_part(**where, UploadId=upload["UploadId"], PartNumber=1, Body=content[:9] + b"?" + content[10:])
    parts = [{"PartNumber": 1, "ETag": part["ETag"], "ChecksumCRC32": part["ChecksumCRC32"]}]
    s3.complete_multipart_upload(**where, UploadId=upload["UploadId"], MultipartUpload={"Parts": parts})


def copied(lake):
    place = lake.file.rpartition("/")[0]
    name = f"{place}/2022_01_01_0_9.jsonl.gz" if "jsonl" in lake.file else f"{place}/copy.parquet"
    lake.put(name, body(lake), load=lake.load_of_a)


def foreign(lake):
    lake.put(f"{lake.file.rpartition('/')[0]}/foreign.parquet", b"?")


def hidden(lake):
    """No reader takes these for files of the table."""
    place = lake.file.rpartition("/")[0]
    for name in ("_SUCCESS", ".part.crc", "_temporary/0/part.parquet", "folder/"):
        lake.put(f"{place}/{name}", b"")


def glue_of(lake):
    return lake.aws.client("glue"), "supaflow_nyc_public"


def table_of(lake):
    client, database = glue_of(lake)
    table = client.get_table(DatabaseName=database, Name="shots")["Table"]
    kept = ("Name", "StorageDescriptor", "PartitionKeys", "TableType", "Parameters")
    return {name: table[name] for name in kept if name in table}


def update(lake, table):
    client, database = glue_of(lake)
    client.update_table(DatabaseName=database, TableInput=table)


def stored(**fields):
    def harm(lake):
        table = table_of(lake)
        update(lake, table | {"StorageDescriptor": table["StorageDescriptor"] | fields})

    return harm


def table_dropped(lake):
    client, database = glue_of(lake)
    client.delete_table(DatabaseName=database, Name="shots")


def keys_changed(lake):
    update(lake, table_of(lake) | {"PartitionKeys": [{"Name": "day", "Type": "string"}]})


def projected(lake):
    table = table_of(lake)
    update(lake, table | {"Parameters": table["Parameters"] | {"projection.enabled": "true"}})


def columns(change):
    def harm(lake):
        table = table_of(lake)
        own = table["StorageDescriptor"]["Columns"]
        update(lake, table | {"StorageDescriptor": table["StorageDescriptor"] | {"Columns": change(own)}})

    return harm


def retyped(own):
    return [column | {"Type": "boolean"} if column["Name"] == "id" else column for column in own]


def dropped(own):
    return [column for column in own if column["Name"] != "text"]


def renamed(own):
    return [column | {"Name": "words"} if column["Name"] == "text" else column for column in own]


def partition(change):
    def harm(lake):
        client, database = glue_of(lake)
        where = {"DatabaseName": database, "TableName": "shots"}
        found = client.get_partition(**where, PartitionValues=["a"])["Partition"]
        client.delete_partition(**where, PartitionValues=["a"])
        if change:
            storage = found["StorageDescriptor"] | change
            client.create_partition(**where, PartitionInput={"Values": ["a"], "StorageDescriptor": storage})

    return harm


def partition_of_another_value(place):
    def harm(lake):
        client, database = glue_of(lake)
        where = {"DatabaseName": database, "TableName": "shots"}
        storage = client.get_partition(**where, PartitionValues=["a"])["Partition"]["StorageDescriptor"]
        location = place(storage["Location"])
        partition_input = {"Values": ["z"], "StorageDescriptor": storage | {"Location": location}}
        client.create_partition(**where, PartitionInput=partition_input)

    return harm


def rolled_back(lake):
    table = lake.iceberg()
    with table.manage_snapshots() as change:
        change.set_current_snapshot(snapshot_id=table.current_snapshot().parent_snapshot_id)


def rows_deleted(lake):
    lake.iceberg().delete("_supa_job_id = 'a'")


def column_dropped(lake):
    with lake.iceberg().update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("text")


def metadata_gone(which):
    def harm(lake):
        table = lake.iceberg()
        locations = {
            "metadata": table.metadata_location,
            "list": table.current_snapshot().manifest_list,
            "manifest": table.current_snapshot().manifests(table.io)[0].manifest_path,
        }
        lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=locations[which].removeprefix(f"s3://{BUCKET}/"))

    return harm


def metadata_damaged(lake):
    table = lake.iceberg()
    lake.put(table.current_snapshot().manifest_list.removeprefix(f"s3://{BUCKET}/"), b"Obj\x01")


def record_gone(which):
    return lambda lake: lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=key_of(lake, which))


def key_of(lake, which):
    return {"report": lake.report_key("a"), "intent": lake.intent_key, "state": lake.state_key}[which]


def record(which, **fields):
    return lambda lake: lake.change(key_of(lake, which), **fields)


def damaged(which, content=b"{"):
    return lambda lake: lake.put(key_of(lake, which), content)


def receipt(**fields):
    def harm(lake):
        first, *rest = lake.read(lake.intent_key)["receipts"]
        lake.change(lake.intent_key, receipts=[first | fields, *rest])

    return harm


def part(**fields):
    def harm(lake):
        first, *rest = lake.read(lake.intent_key)["receipts"]
        parts = [each | fields for each in first["parts"]]
        lake.change(lake.intent_key, receipts=[first | {"parts": parts}, *rest])

    return harm


LAZY = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
CASES = [
    # Objects.
    ("file deleted", GLUE, gone, ["object_gone STAGED_LOST"]),
    ("file deleted", ICEBERG, gone, ["object_gone STAGED_LOST"]),
    ("file deleted", STREAM, gone, ["object_gone STAGED_LOST"]),
    ("file truncated", GLUE, truncated, ["object_changed KEY_EXISTS"]),
    ("file truncated", STREAM, truncated, ["object_changed KEY_EXISTS"]),
    ("file zeroed", GLUE, zeroed, ["object_changed KEY_EXISTS"]),
    ("file zeroed", ICEBERG, zeroed, ["object_changed KEY_EXISTS"]),
    ("file zeroed", STREAM, zeroed, ["object_changed KEY_EXISTS"]),
    ("changed at the same size", GLUE, changed, ["object_changed KEY_EXISTS"]),
    ("changed at the same size", STREAM, changed, ["object_changed KEY_EXISTS"]),
    ("changed as a load uploads", GLUE, changed_in_parts, ["object_changed KEY_EXISTS"]),
    ("written by another", GLUE, replaced, ["object_replaced KEY_EXISTS"]),
    ("a copy beside the file", GLUE, copied, ["object_copied KEY_EXISTS"]),
    ("a copy beside the file", STREAM, copied, ["object_copied KEY_EXISTS"]),
    ("a foreign file", GLUE, foreign, ["object_foreign KEY_EXISTS"]),
    ("a foreign file", ICEBERG, foreign, []),
    ("a name that the template does not give", STREAM, foreign, []),
    ("hidden files", GLUE, hidden, []),
    # Glue.
    ("table dropped", GLUE, table_dropped, ["table_gone COMMIT_UNKNOWN"]),
    ("partition dropped", GLUE, partition(None), ["partition_gone COMMIT_UNKNOWN"]),
    ("partition moved", GLUE, partition({"Location": "s3://acme-lake/e"}), ["partition_changed COMMIT_UNKNOWN"]),
    ("SerDe of the partition", GLUE, partition({"SerdeInfo": {"SerializationLibrary": LAZY}}),
     ["partition_changed COMMIT_UNKNOWN"]),
    ("a partition of another value at the load's files", GLUE, partition_of_another_value(lambda own: f"{own}/"),
     ["partition_foreign COMMIT_UNKNOWN"]),
    ("a partition above the load's files", GLUE, partition_of_another_value(lambda own: own.rpartition("/")[0]),
     ["partition_foreign COMMIT_UNKNOWN"]),
    ("a partition elsewhere", GLUE, partition_of_another_value(lambda own: f"{own}b"), []),
    ("SerDe", GLUE, stored(SerdeInfo={"SerializationLibrary": LAZY}), ["table_changed COMMIT_UNKNOWN"]),
    ("InputFormat", GLUE, stored(InputFormat="org.apache.hadoop.mapred.TextInputFormat"),
     ["table_changed COMMIT_UNKNOWN"]),
    ("partition columns", GLUE, keys_changed, ["table_changed COMMIT_UNKNOWN"]),
    ("projection.enabled", GLUE, projected, ["table_changed COMMIT_UNKNOWN"]),
    ("location", GLUE, stored(Location="s3://acme-lake/elsewhere"), ["table_changed COMMIT_UNKNOWN"]),
    ("a column retyped", GLUE, columns(retyped), ["column_retyped COMMIT_UNKNOWN"]),
    ("a column dropped", GLUE, columns(dropped), ["column_gone COMMIT_UNKNOWN"]),
    ("a column renamed", GLUE, columns(renamed), ["column_gone COMMIT_UNKNOWN"]),
    # Iceberg.
    ("rolled back", ICEBERG, rolled_back, []),
    ("rows deleted", ICEBERG, rows_deleted, ["rows_removed LOAD_GONE"]),
    ("a column dropped", ICEBERG, column_dropped, ["column_gone COMMIT_UNKNOWN"]),
    ("metadata deleted", ICEBERG, metadata_gone("metadata"), ["metadata_damaged LOAD_GONE"]),
    ("manifest list deleted", ICEBERG, metadata_gone("list"), ["metadata_damaged LOAD_GONE"]),
    ("manifest deleted", ICEBERG, metadata_gone("manifest"), ["metadata_damaged LOAD_GONE"]),
    ("manifest list truncated", ICEBERG, metadata_damaged, ["metadata_damaged LOAD_GONE"]),
    # Records.
    ("rows of the report", GLUE, record("report", rows=5), ["records_disagree PENDING_UNRECOVERABLE"]),
    ("changed values of the report", GLUE, record("report", changes=5), ["records_disagree PENDING_UNRECOVERABLE"]),
    ("notes of the report, which the intent does not decide", GLUE, record("report", notes=["slow"]), []),
    ("keys of the report", STREAM, record("report", keys=[]), ["records_disagree PENDING_UNRECOVERABLE"]),
    ("report truncated", GLUE, damaged("report"), ["record_damaged PENDING_UNRECOVERABLE"]),
    ("rows of a receipt", GLUE, receipt(rows=5), ["records_disagree PENDING_UNRECOVERABLE", "rows_differ KEY_EXISTS"]),
    ("size of a receipt", STREAM, receipt(size=5),
     ["object_changed KEY_EXISTS", "records_disagree PENDING_UNRECOVERABLE"]),
    ("etag of a receipt", STREAM, part(etag="0" * 32), ["object_changed KEY_EXISTS"]),
    ("intent deleted", GLUE, record_gone("intent"), ["record_gone PENDING_UNRECOVERABLE"]),
    ("intent truncated", GLUE, damaged("intent"), ["record_damaged PENDING_UNRECOVERABLE"]),
    ("commits of the state", GLUE, record("state", committed=1), ["records_disagree PENDING_UNRECOVERABLE"]),
    ("last load of the state", GLUE, record("state", last_job="z"), ["records_disagree PENDING_UNRECOVERABLE"]),
    ("state truncated", GLUE, damaged("state"), ["record_damaged STATE_LOST"]),
    ("state deleted", GLUE, record_gone("state"), ["record_damaged STATE_LOST"]),
    ("report deleted", GLUE, record_gone("report"), ["record_gone PENDING_UNRECOVERABLE"]),
    ("report deleted", STREAM, record_gone("report"), ["record_gone PENDING_UNRECOVERABLE"]),
]  # fmt: skip


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("kind", "harm", "expected"), [pytest.param(*rest, id=f"{rest[0]}: {name}")
                                                        for name, *rest in CASES])  # fmt: skip
def test_what_verify_tells(undone, kind, harm, expected):
    lake = undone[kind]
    lake.aws.hide_missing = False
    harm(lake)
    lake.aws.hide_missing = True
    found = lake.verify()
    assert sorted(f"{each.kind} {each.code}" for each in found.differences) == expected, found.differences
    assert found.exit_code == bool(expected)


@pytest.mark.parametrize("kind", [GLUE, ICEBERG, STREAM])
def test_loads_that_nobody_touched(undone, kind):
    lake = undone[kind]
    for job_id in "ab":
        found = lake.verify(job_id, rows=True)
        assert (found.differences, found.notes, found.exit_code) == ((), (), 0)
        (count,) = found.counted
        expected = 3 if kind == STREAM else 4
        assert (count.rows, count.expected, count.repeated_ids) == (expected, expected, 0)
    assert [each.differences for each in verify_all(lake.controls, lake.clients)] == [(), ()]


def test_partitions_that_nobody_may_list(undone):
    """As under the policies of an earlier release: it is said, and is no difference."""
    lake = undone[GLUE]
    lake.aws.deny("glue:GetPartitions")
    try:
        found = lake.verify()
    finally:
        lake.aws.allow_everything()
    assert (found.differences, found.exit_code) == ((), 0)
    (note,) = found.notes
    assert note.startswith(
        "whether another partition has the files of supaflow_nyc_public.shots too is not known: glue:"
    )


@pytest.mark.parametrize("vacuumed", [False, True])
def test_a_compaction_is_noted_and_is_no_difference(undone, vacuumed):
    """Nor is it one that the files are gone which no reader needs any more."""
    lake = undone[ICEBERG]
    lake.aws.hide_missing = False
    compact(lake.iceberg())
    if vacuumed:
        for key in lake.first["keys"]:
            lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    lake.aws.hide_missing = True
    found = lake.verify(rows=True)
    assert (found.differences, found.counted, found.exit_code) == ((), (), 0)
    *files, rows = found.notes
    assert len(files) == len(lake.first["keys"])
    assert all(f"{lake.first['keys'][0].rpartition('/')[0]}/" in note for note in files)
    assert all(note.endswith("(overwrite), with as many rows") for note in files)
    assert rows.endswith("of load 'a' are no longer in supaflow_ice_public.shots, and their rows are not counted")


def test_rolled_back_snapshot_hides_only_the_later_load(undone):
    lake = undone[ICEBERG]
    lake.aws.hide_missing = False
    rolled_back(lake)
    lake.aws.hide_missing = True
    (difference,) = lake.verify("b").differences
    assert (difference.kind, difference.code) == ("rolled_back", "LOAD_GONE")
    assert lake.verify("a").differences == ()


def test_all_tells_each_difference_once(undone):
    lake = undone[GLUE]
    foreign(lake)
    table_dropped(lake)
    found = list(verify_all(lake.controls, lake.clients))
    assert [each.job_id for each in found] == ["a", "b"]
    kinds = [sorted(difference.kind for difference in each.differences) for each in found]
    assert kinds == [["object_foreign", "table_gone"], []]


def test_what_is_older_than_the_load_is_told_by_all(undone):
    lake = undone[GLUE]
    foreign(lake)
    began = f"{datetime.now(UTC) + timedelta(hours=1):%Y-%m-%dT%H:%M:%S.%fZ}"
    for key in (lake.report_key("a"), lake.intent_key):
        lake.change(key, started=began)
    (first,) = (each for each in verify_all(lake.controls, lake.clients) if each.job_id == "a")
    older = f"1 objects under the path of {lake.table_id} are older than the load, and no load wrote them"
    assert (first.differences, first.notes) == ((), (older,))
    alone = lake.verify()
    assert (alone.differences, alone.notes) == ((), ())


@pytest.mark.parametrize("kind", [GLUE, STREAM])
def test_a_copy_is_counted(undone, kind):
    lake = undone[kind]
    copied(lake)
    found = lake.verify(rows=True)
    (count,) = found.counted
    rows = lake.first["rows"]
    assert (count.rows > rows, count.expected, count.repeated_ids) == (True, rows, count.rows - rows), found.differences
    kinds = {each.kind for each in found.differences}
    assert kinds == {"object_copied", "rows_differ"} | ({"ids_repeated"} if kind == STREAM else set())
