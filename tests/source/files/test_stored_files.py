"""Files read as they were listed: pinned, decompressed by their content."""

import bz2
import gzip
import lzma
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import zstandard

from lakewriter.errors import SourceFailedError
from lakewriter.source.files.file_reader import Fault, make_marks
from lakewriter.source.files.stored_files import StoredFile, decompress, find_compression
from lakewriter.source.storage import BLOCK, FileChangedError, pin_local

TEXT = b"a,b\n" + b"1,2\n" * 50_000
PACKED = {
    "gzip": gzip.compress(TEXT),
    "bzip2": bz2.compress(TEXT),
    "xz": lzma.compress(TEXT),
    "zstd": zstandard.compress(TEXT),
}


def store(path: Path, data: bytes) -> StoredFile:
    path.write_bytes(data)
    size, version = pin_local(path)
    return StoredFile(str(path), size, version)


def split(data: bytes, size: int = 1000) -> Iterator[bytes]:
    yield from (data[start : start + size] for start in range(0, len(data), size))


@pytest.mark.parametrize("name", sorted(PACKED))
def test_content_decides_on_the_compression(tmp_path: Path, name: str) -> None:
    file = store(tmp_path / "a.csv", PACKED[name])
    assert find_compression(file, file.read_head(16)) == name
    assert b"".join(decompress(file.stream(), name)) == TEXT


@pytest.mark.parametrize("name", sorted(PACKED))
def test_members_follow_each_other(name: str) -> None:
    assert b"".join(decompress(split(PACKED[name] * 2), name)) == TEXT * 2


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.compress,
}


@pytest.mark.parametrize("name", sorted(COMPRESSORS))
@pytest.mark.parametrize("size", [3 * BLOCK, 3 * BLOCK + 1])
def test_data_that_grows_a_thousandfold_comes_in_blocks(name: str, size: int) -> None:
    packed = COMPRESSORS[name](b"\0" * size)
    assert len(packed) < size / 500
    blocks = [len(block) for block in decompress(iter([packed]), name)]
    assert (sum(blocks), max(blocks) <= BLOCK) == (size, True)


@pytest.mark.parametrize("name", sorted(PACKED))
@pytest.mark.parametrize("cut", [1, 4, 10])
def test_data_that_breaks_off_is_an_error(name: str, cut: int) -> None:
    with pytest.raises(OSError, match=r"breaks off|damaged|[Tt]runcated"):
        list(decompress(split(PACKED[name][:-cut]), name))


def test_a_plain_file_may_have_the_name_of_a_compressed_one(tmp_path: Path) -> None:
    file = store(tmp_path / "a.csv.gz", TEXT)
    assert find_compression(file, file.read_head(16)) is None


def test_compressions_that_are_not_read_are_refused(tmp_path: Path) -> None:
    file = store(tmp_path / "a.csv.lz4", b"\x04\x22\x4d\x18")
    with pytest.raises(SourceFailedError, match=r"LZ4, expected gzip, bzip2, zstd, xz .*engine: spark"):
        find_compression(file, file.read_head(16))


def test_a_range_is_read(tmp_path: Path) -> None:
    assert b"".join(store(tmp_path / "a.csv", b"0123456789").stream(3, 7)) == b"3456"


@pytest.mark.parametrize("after", [b"01234567", b"0123456789ab", b"9876543210"], ids=["shorter", "longer", "rewritten"])
def test_a_file_that_changes_is_an_error(tmp_path: Path, after: bytes) -> None:
    file = store(tmp_path / "a.csv", b"0123456789")
    Path(file.path).write_bytes(after)
    os.utime(file.path, ns=(1, 1))
    with pytest.raises(FileChangedError, match="has changed since the load listed it"):
        list(file.stream())


def test_marks_tell_where_rows_begin_and_which_are_bad() -> None:
    marks = make_marks("a.csv", np.array([4, 8]), {1: Fault("too few fields", "1", None)})
    assert marks.to_pylist() == [
        {"file": "a.csv", "offset": 4, "column": None, "value": None, "reason": None, "row": None},
        {"file": "a.csv", "offset": 8, "column": None, "value": "1", "reason": "too few fields", "row": None},
    ]
