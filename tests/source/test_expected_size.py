"""How many tasks share messages, so that their files are near the target size."""

import pytest

from lakewriter.source.messages.expected_size import FileSizes
from lakewriter.source.messages.splits import MessagesFeed, Piece, Stretch, cut_pieces, list_message_files
from lakewriter.source.task_sizes import Chunk
from lakewriter.spec.encodings import AvroEncoding, ParquetEncoding, TextEncoding
from lakewriter.spec.specification import MIB, Limits

GZIP, PLAIN = TextEncoding(kind="jsonl"), TextEncoding(kind="jsonl", gzip=False)

# (the format, MiB of messages, what they became, slots, tasks): files of 200 MiB, or 25 where tasks would be idle
TASKS = [
    (GZIP, 0, None, 2, 1),
    (GZIP, 160, 28 / 160, 2, 1),
    (GZIP, 350, 0.2, 2, 2),
    (GZIP, 1536, 0.2, 2, 2),
    (GZIP, 1536, 0.2, 100, 12),
    (GZIP, 3800, 0.2, 2, 4),
    (PLAIN, 1536, 0.83, 2, 7),
    (PLAIN, 160, 0.83, 1, 1),
    (PLAIN, 160, 0.83, 8, 5),
]


@pytest.mark.parametrize(("encoding", "mib", "ratio", "slots", "tasks"), TASKS)
def test_tasks_for_messages(encoding, mib, ratio, slots, tasks):
    sizes = FileSizes(encoding, Limits())
    if ratio is not None:
        sizes.learn(100 * MIB, int(100 * MIB * ratio))
    assert sizes.count_tasks(mib * MIB, slots) == tasks


# (the format, MiB of messages that are expected to fill a file of 200 MiB, before any was written)
FIRST = [
    (GZIP, 950),
    (PLAIN, 158),
    (AvroEncoding(codec="deflate"), 950),
    (AvroEncoding(), 158),
    (ParquetEncoding(codec="uncompressed"), 158),
    (ParquetEncoding(codec="snappy"), 950),
]


@pytest.mark.parametrize(("encoding", "mib"), FIRST)
def test_before_the_first_load(encoding, mib):
    assert FileSizes(encoding, Limits()).bytes_for(1) // MIB == mib


def test_few_messages_tell_nothing():
    sizes = FileSizes(GZIP, Limits())
    sizes.learn(MIB - 1, 10 * MIB)
    assert sizes.bytes_for(1) // MIB == 950
    sizes.learn(MIB, MIB // 2)
    assert sizes.bytes_for(1) // MIB == 380


def test_pieces_are_shared_evenly_and_in_order():
    pieces = {Piece(Chunk("m.jsonl", start, 10), 0): size for start, size in enumerate((8, 1, 1, 9, 3, 2))}
    feed = MessagesFeed(None, None, Stretch(("n", "s")), pieces, "n.s")  # type: ignore[arg-type]
    # (tasks, the sizes of what each has)
    for count, shares in ((1, [[8, 1, 1, 9, 3, 2]]), (2, [[8, 1, 1], [9, 3, 2]]), (3, [[8], [1, 1, 9], [3, 2]])):
        feed.divide(count)
        assert [[pieces[piece] for piece in share] for share in feed._pieces] == shares
    assert feed.merge().partitions == 1
    feed.divide(3)
    assert feed.partitions == 1


def test_files_are_cut_into_pieces(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b"\n" * (40 * MIB))
    (tmp_path / "b.jsonl.gz").write_bytes(b"\n" * (20 * MIB))
    (tmp_path / "c.jsonl").write_bytes(b"")
    pieces = cut_pieces(list_message_files([str(tmp_path)]))
    assert [(piece.number, piece.chunk.start // MIB, piece.chunk.length // MIB) for piece in pieces] == [
        (0, 0, 16),
        (0, 16, 16),
        (0, 32, 8),
        (1, 0, 20),
    ]
