"""The order in which files of messages are read."""

import pytest

from lakewriter.errors import SourceFailedError
from lakewriter.source.messages.splits import list_message_files


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("sync_9.jsonl", "sync_10.jsonl", "in/b.jsonl", "in/a.jsonl", "in/c.jsonl"):
        (tmp_path / name).write_text("x\n", "utf-8")
    return tmp_path


ORDERS = [
    # as listed; a folder's files by their names
    (["sync_9.jsonl", "sync_10.jsonl"], ["sync_9.jsonl", "sync_10.jsonl"]),
    (["sync_10.jsonl", "in", "sync_9.jsonl"],
     ["sync_10.jsonl", "in/a.jsonl", "in/b.jsonl", "in/c.jsonl", "sync_9.jsonl"]),
]  # fmt: skip


@pytest.mark.parametrize(("paths", "expected"), ORDERS)
def test_order(folder, paths, expected):
    found = list_message_files([str(folder / path) for path in paths])
    assert [file.path for file in found.files] == [str(folder / path) for path in expected]


def test_file_named_with_its_folder(folder):
    with pytest.raises(SourceFailedError, match="named twice"):
        list_message_files([str(folder / "in"), str(folder / "in" / "a.jsonl")])


@pytest.mark.usefixtures("bucket")
def test_order_in_s3(aws):
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="landing")
    for key in ("sync_9.jsonl", "sync_10.jsonl"):
        s3.put_object(Bucket="landing", Key=key, Body=b"x\n")
    found = list_message_files(["s3://landing/sync_9.jsonl", "s3://landing/sync_10.jsonl"])
    assert [file.path for file in found.files] == ["landing/sync_9.jsonl", "landing/sync_10.jsonl"]
