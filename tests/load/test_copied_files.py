"""Files that belong to records: copied beside them, committed, refreshed and undone with them."""

import json
import os
from urllib.parse import quote

import pytest

from lakewriter.aws import Clients
from lakewriter.commit.pipeline import Pipeline
from lakewriter.dialects.lake_yaml import load_spec
from lakewriter.errors import LakeError, SpecInvalidError
from lakewriter.operate.row_counts import Counting
from lakewriter.operate.undo import Undo
from lakewriter.operate.undo_plan import Choices
from lakewriter.operate.verification import verify
from tests.load.syncs import BUCKET, SyncLake, catalog, record, status, stream
from tests.support.local_tasks import local_session

SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}}
JSONL = {"format": {"format_type": "JSONL", "compression": {"compression_type": "No Compression"}}}


class Attachments(SyncLake):
    """A source that has put the files of its records into a folder."""

    def put(self, name: str, body: bytes) -> str:
        path = self.folder / "staging" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        return str(path)

    def attach(self, number: int, path: str, body: bytes | None, **changes: object):
        """A record with a file; its source has not put one there whose body is None."""
        place = self.put(f"{number}.bin", body) if body is not None else str(self.folder / "gone")
        reference = {"staging_file_url": place, "source_file_relative_path": path, "file_size_bytes": len(body or b"")}
        return record("files", {"id": number}, file_reference=reference | changes)

    def sync(self, job_id: str, *messages, path_format: str | None = None, form=JSONL, **settings):
        """A load of these records."""
        settings = {"include_files": True} | settings
        streams = [stream("files", SCHEMA, **settings)]
        source = {"messages": self.messages(*messages, status("files", "COMPLETE")), "catalog": catalog(*streams)}
        self.write(form | ({"s3_path_format": path_format} if path_format else {}), source=source)
        return self.load(job_id).tables[0]

    def copies(self) -> dict[str, bytes]:
        """The copied files by key."""
        return {key: body for key, body in self.data().items() if not key.endswith((".jsonl", ".parquet", ".csv"))}

    def told(self) -> dict[int, str]:
        """Where the records say that their files are."""
        rows = [row["_airbyte_data"] for key in self.data() if key.endswith(".jsonl") for row in self.rows(key)]
        return {row["id"]: row.get("_airbyte_file_path") for row in rows}


@pytest.fixture
def lake(tmp_path, aws, bucket) -> Attachments:
    return Attachments(tmp_path, aws, local_session(1))


def test_files_lie_in_the_final_folder(lake):
    """Folder and path as the vendor's connector joins them: https://docs.airbyte.com, Sync files and records."""
    big = os.urandom(9 * 1024 * 1024)
    result = lake.sync("a", lake.attach(1, "/2024/Test Plan.docx", b"one"), lake.attach(2, "ü/b.bin", big),
                       record("files", {"id": 3}), lake.attach(4, "empty.txt", b""))  # fmt: skip
    assert (result.status, result.rows, result.files) == ("done", 4, 4), result.message
    (rows,) = [key for key in lake.data() if key.endswith(".jsonl")]
    folder = rows.removesuffix("0.jsonl")
    assert lake.copies() == {
        f"{folder}/2024/Test Plan.docx": b"one", f"{folder}/ü/b.bin": big, f"{folder}/empty.txt": b"",
    }  # fmt: skip
    assert lake.told() == {
        1: f"{folder}/2024/Test Plan.docx", 2: f"{folder}/ü/b.bin", 3: None, 4: f"{folder}/empty.txt",
    }  # fmt: skip
    head = lake.aws.client("s3").head_object(Bucket=BUCKET, Key=f"{folder}/empty.txt")["Metadata"]
    assert (head["lakewriter-load"].split("/")[1], head["ab-generation-id"]) == ("a", "0")
    assert not lake.aws.uploads(BUCKET)
    # The input may be read again.
    assert (lake.folder / "staging" / "1.bin").exists()


def test_the_schema_has_the_path(lake):
    parquet = {"format": {"format_type": "Parquet"}}
    lake.sync("a", lake.attach(1, "a.txt", b"x"), record("files", {"id": 2}), form=parquet)
    rows = [row for key, body in lake.data().items() if key.endswith(".parquet") for row in lake.rows(key)]
    assert [(row["id"], str(row["_airbyte_file_path"]).rpartition("/")[2]) for row in rows] == [
        (1, "a.txt"),
        (2, "None"),
    ]


def test_digits_and_order_of_a_record_stay(lake):
    one = lake.attach(1, "a.txt", b"x")
    line = json.dumps(one).replace(
        '{"id": 1}', '{"z": 1.10, "id": 1, "a": 12345678901234567890123, "_airbyte_file_path": 5}'
    )
    lake.sync("a", line)
    (body,) = [body for key, body in lake.data().items() if key.endswith(".jsonl")]
    (path,) = lake.copies()
    assert f'{{"z":1.10,"id":1,"a":12345678901234567890123,"_airbyte_file_path":"{path}"}}' in body.decode()


AGAIN = [
    # path format, the keys of the same path in two loads
    ("${STREAM_NAME}/", ["data/files/a/x.txt", "data/files/b/x.txt"]),
    ("${STREAM_NAME}/${YEAR}/", ["data/files/YEAR/a/x.txt", "data/files/YEAR/b/x.txt"]),
    ("${STREAM_NAME}/${EPOCH}/", ["data/files/EPOCH/x.txt", "data/files/EPOCH/x.txt"]),
]


@pytest.mark.parametrize(("path_format", "expected"), AGAIN)
def test_a_path_that_comes_again_in_another_load(lake, path_format, expected):
    """Where the template has the same folder for each load, the load's own folder is in it: nothing is replaced."""
    for job, body in (("a", b"old"), ("b", b"new")):
        assert lake.sync(job, lake.attach(1, "x.txt", body), path_format=path_format).status == "done"
    copies = lake.copies()
    shown = ["/".join("EPOCH" if p.isdigit() and len(p) > 4 else "YEAR" if p.isdigit() else p for p in key.split("/"))
             for key in sorted(copies)]  # fmt: skip
    assert (shown, sorted(copies.values())) == (expected, [b"new", b"old"])


def test_a_path_that_comes_again_in_one_load(lake):
    """The last one stays, as where a destination writes one after the other."""
    result = lake.sync("a", lake.attach(1, "x.txt", b"old"), lake.attach(2, "x.txt", b"newer"))
    ((key, body),) = lake.copies().items()
    assert (result.rows, result.files, body, lake.told()) == (2, 2, b"newer", {1: key, 2: key})
    assert not lake.aws.uploads(BUCKET)


def test_a_file_named_like_the_records_own(lake):
    lake.sync("a", lake.attach(1, "0.jsonl", b"mine"), path_format="${STREAM_NAME}/${EPOCH}/")
    assert sorted(key.split("/")[3:] for key in lake.data()) == [["0.jsonl"], ["files", "0.jsonl"]]


REFUSED = [
    # the path in the source, what is wrong with it
    ("../x", "has the segment '..', which names no folder of its own"),
    ("a/./x", "has the segment '.', which names no folder of its own"),
    ("_lakewriter/p/state.json", "what begins with '_lakewriter' is for control objects"),
    ("a\nb", "has the control character U+000A"),
    ("///", "the path is blank"),
    ("x" * 1025, "has more than 1024 bytes"),
]


@pytest.mark.parametrize(("path", "why"), REFUSED)
def test_paths_that_would_leave_their_folder(lake, path, why):
    result = lake.sync("a", lake.attach(1, path, b"x"))
    assert (result.code, why in result.message) == ("SOURCE_FAILED", True), result.message
    assert (lake.data(), lake.aws.uploads(BUCKET)) == ({}, [])


BROKEN = [
    # how the record is made, what the message has
    (lambda lake: lake.attach(1, "x", None), "cannot be copied: there is no such file here"),
    (lambda lake: lake.attach(1, "x", b"abc", file_size_bytes=4), "it has 3 bytes, and its record says 4"),
    (lambda lake: lake.attach(1, "x", b"abc", staging_file_url=None), "without staging_file_url"),
]


@pytest.mark.parametrize(("make", "why"), BROKEN)
def test_a_file_that_cannot_be_copied_fails_its_stream(lake, make, why):
    """And the files before it are withdrawn with their records."""
    result = lake.sync("a", lake.attach(9, "before.txt", b"x"), make(lake))
    assert (result.code, why in result.message) == ("SOURCE_FAILED", True), result.message
    assert (lake.data(), lake.aws.uploads(BUCKET)) == ({}, [])


def test_a_stream_that_includes_no_files_takes_no_reference(lake):
    result = lake.sync("a", lake.attach(1, "x", b"abc"), include_files=False)
    assert (result.code, "its stream includes none" in result.message) == ("SOURCE_FAILED", True)


def test_a_reference_by_uri(lake):
    place = lake.put("with space.bin", b"x")
    lake.sync("a", lake.attach(1, "x.txt", b"y", staging_file_url=f"file://{quote(place)}"))
    assert list(lake.copies().values()) == [b"x"]


def test_files_go_with_their_generation(lake):
    for generation in (1, 2):
        numbers = {"generation_id": generation, "minimum_generation_id": generation}
        body = f"of {generation}".encode()
        lake.sync(f"g{generation}", lake.attach(1, "x.txt", body), destination_sync_mode="overwrite", **numbers)
    assert list(lake.copies().values()) == [b"of 2"]
    assert len(lake.data()) == 2


def test_files_are_verified_and_undone_with_their_load(lake):
    lake.sync("a", lake.attach(1, "x.txt", b"abc"))
    lake.sync("b", lake.attach(2, "y.txt", b"def"))
    pipeline = Pipeline.open(lake.spec, Clients(lake.spec.access))
    (key,) = [key for key in lake.copies() if key.endswith("y.txt")]
    assert verify_job(lake, "b") == []
    lake.aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=b"dxf")
    assert [(each.key, each.kind) for each in verify_job(lake, "b")] == [(key, "object_replaced")]
    lake.aws.client("s3").delete_object(Bucket=BUCKET, Key=key)
    assert [(each.key, each.kind) for each in verify_job(lake, "b")] == [(key, "object_gone")]
    Undo(pipeline, "a", Choices("a drill")).run()
    assert list(lake.copies()) == []


def verify_job(lake, job_id):
    spec = lake.spec
    clients = Clients(spec.access)
    return list(verify(Pipeline.open(spec, clients).controls, job_id, clients, Counting.of(spec)).differences)


def test_messages_from_elsewhere_are_refused_at_the_catalog(lake):
    source = {"messages": "s3://acme-landing/m.jsonl", "catalog": catalog(stream("files", SCHEMA, include_files=True))}
    lake.write(JSONL, source=source)
    with pytest.raises(SpecInvalidError) as refused:
        load_spec(lake.file)
    assert "stream 'files' includes files, and its messages are read from elsewhere" in refused.value.report


def test_tasks_on_other_machines_are_refused_before_anything_starts(lake, monkeypatch):
    session = local_session(1)
    monkeypatch.setattr(session.sparkContext, "master", "yarn")
    lake._spark = session
    with pytest.raises(SpecInvalidError) as refused:
        lake.sync("a", lake.attach(1, "x", b"abc"))
    assert "stream 'files' includes files, which its source puts on this machine" in str(refused.value)
    assert lake.aws.objects(BUCKET) == {}


@pytest.mark.parametrize("path_format", [None, "${STREAM_NAME}/"])
def test_what_a_killed_attempt_has_staged_goes_with_the_next_one(lake, path_format):
    """AWS refuses everything from the intent on: nothing can be withdrawn either."""
    dead = []

    def refuse(call, proceed):
        dead.extend([call] if call.method == "PUT" and "/loads/" in call.key and "/tables/" in call.key else [])
        return call.denied() if dead else proceed(call)

    lake.aws.interceptors.append(refuse)
    try:
        assert lake.sync("a", lake.attach(1, "x.txt", b"abc"), path_format=path_format).status == "failed"
    except LakeError:
        # Its outcome could not be written either.
        pass
    finally:
        lake.aws.interceptors.remove(refuse)
    assert len(lake.aws.uploads(BUCKET)) == 2
    assert lake.sync("a", lake.attach(1, "x.txt", b"abc"), path_format=path_format).status == "done"
    assert list(lake.copies().values()) == [b"abc"]
    left = [upload for upload in lake.aws.uploads(BUCKET) if "x.txt" in str(upload)]
    assert left == []
