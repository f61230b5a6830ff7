"""What comes through a pipe, put where tasks can read it."""

import io

from lakewriter.aws import Clients
from lakewriter.source.messages.splits import Piece, read_lines
from lakewriter.source.messages.spool import BucketSpool, LocalSpool
from lakewriter.source.task_sizes import Chunk
from lakewriter.spec.access import Access

TEXT = b"".join(b'{"n":%d}\n' % number for number in range(1000))


def read(found):
    (file,) = found.files
    piece = Piece(Chunk(file.path, 0, file.length), 0)
    return b"".join(line + b"\n" for _, line in read_lines(found.store.open(), piece))


def test_folder(tmp_path):
    assert read(LocalSpool(tmp_path).put(io.BytesIO(TEXT))) == TEXT


def test_bucket(aws, bucket):
    clients = Clients(Access(bucket=bucket, region="us-east-1"))
    spool = BucketSpool(clients, "data/_lakewriter/p/loads/j/f00/messages.jsonl")
    assert read(spool.put(io.BytesIO(TEXT))) == TEXT
    spool.clear()
    assert not aws.objects(bucket)


def test_object_that_cannot_be_deleted(aws, bucket):
    aws.deny("s3:DeleteObject")
    spool = BucketSpool(
        Clients(Access(bucket=bucket, region="us-east-1")), "data/_lakewriter/p/loads/j/f00/messages.jsonl"
    )
    spool.clear()
    assert "s3:DeleteObject" in [call.action for call, _ in aws.history]


def test_pieces_share_no_line(tmp_path):
    file = LocalSpool(tmp_path).put(io.BytesIO(TEXT)).files[0]
    store = LocalSpool(tmp_path).put(io.BytesIO(TEXT)).store.open()
    for size in (1, 2, 7, 9, 10, 1000, len(TEXT)):
        starts = range(0, file.length, size)
        pieces = [Piece(Chunk(file.path, start, min(size, file.length - start)), 0) for start in starts]
        found = [line for piece in pieces for _, line in read_lines(store, piece)]
        assert found == TEXT.splitlines()
