"""DEFLATE by three libraries. What they make is held to zlib: it reads all of it, and it is seldom smaller."""

import gzip
import hashlib
import json
import random
import zlib

import pytest

from lakewriter.encode.deflate import (
    GZIP,
    HUFFMAN,
    ISAL_1,
    ISAL_2,
    RAW,
    SEARCH,
    choose_gzip,
    compress,
    make_gzip,
    open_gzip,
)

HASHES = "".join(hashlib.sha256(str(number).encode()).hexdigest() for number in range(4000)).encode()
COUNTER = b"".join(number.to_bytes(8, "little") for number in range(30_000))
DRAW = random.Random(1)
WORDS = ["".join(DRAW.choices("etaoinshrdlu", k=DRAW.randint(2, 9))) for _ in range(600)]
ENTRIES = [
    {"id": n, "city": DRAW.choice(WORDS), "note": " ".join(DRAW.choices(WORDS, k=2)), "by": "AA"} for n in range(4000)
]
TEXT = "\n".join(map(json.dumps, ENTRIES)).encode()
FEW = b"\x01\x02" * 1000

CHOSEN = [
    # what a page holds, the way it is compressed
    ("hexadecimal digests, in which nothing repeats", HASHES, HUFFMAN),
    ("eight bytes for each of a counter's numbers", COUNTER, ISAL_1),
    ("text with long repetitions", TEXT, SEARCH),
    ("too little to choose by", FEW, SEARCH),
    ("nothing", b"", SEARCH),
]


@pytest.mark.parametrize(("page", "way"), [pytest.param(*rest, id=name) for name, *rest in CHOSEN])
def test_choose_gzip(page, way):
    found = choose_gzip(memoryview(page))
    assert found is way
    assert gzip.decompress(found(page)) == page


@pytest.mark.parametrize("level", range(1, 10))
@pytest.mark.parametrize("data", [b"", FEW, HASHES, COUNTER, TEXT], ids=["empty", "few", "hashes", "counter", "text"])
def test_levels_are_about_as_small_as_zlibs(data, level):
    packed = make_gzip(level)(data)
    assert gzip.decompress(packed) == data
    assert len(packed) <= 1.06 * len(zlib.compress(data, level, GZIP)) + 64


@pytest.mark.parametrize("level", range(10))
def test_raw_streams_for_avro(level):
    packed = compress(TEXT, level, RAW)
    assert zlib.decompress(packed, RAW) == TEXT
    assert len(packed) <= 1.06 * len(zlib.compress(TEXT, level, RAW))


def test_no_time_in_the_frame():
    """Bytes 4 to 7 of a gzip member, RFC 1952."""
    for way in (ISAL_1, ISAL_2, HUFFMAN, SEARCH, make_gzip(1), make_gzip(6)):
        packed = way(TEXT)
        assert (packed[:3], packed[4:8]) == (b"\x1f\x8b\x08", bytes(4))


@pytest.mark.parametrize("way", [HUFFMAN, SEARCH, make_gzip(6)], ids=["huffman", "search", "level 6"])
def test_equal_bytes_of_equal_data(way):
    """By zlib-ng, so also for every page that is too little to choose by; ISA-L promises none."""
    assert {way(TEXT) for _ in range(20)} == {way(TEXT)}


def test_stream_in_pieces():
    packer = open_gzip(6)
    packed = b"".join(packer.compress(TEXT[start : start + 777]) for start in range(0, len(TEXT), 777))
    assert gzip.decompress(packed + packer.flush()) == TEXT
