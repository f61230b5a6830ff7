"""What Bloom filters on the key would save a merge of random keys, which touch every file: bytes to read, and CPU.

Each file has filters that were written by pyarrow, and is asked for the load's keys by NumPy, since pyarrow asks none.
Without filters the columns of the key and the order of every file are read, and the keys are looked up.

PYTHONPATH=job:. python -m bench.bloom_filters --files 1000 --rows 100000
"""

import argparse
import io
import sys
import time
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.merge_memory import make_keys
from lakewriter.commit.iceberg.merge_keys import number_keys

SALTS: Final = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)
"""See https://parquet.apache.org/docs/file-format/bloomfilter/."""
_PRIMES: Final = [
    np.uint64(prime)
    for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
]


def _turn(numbers: Any, bits: int) -> Any:
    return (numbers << np.uint64(bits)) | (numbers >> np.uint64(64 - bits))


def hash_keys(keys: Any) -> Any:
    """Return the XXH64 of numbers of 64 bits."""
    first, second, third, fourth, fifth = _PRIMES
    hashes = (fifth + np.uint64(8)) ^ (_turn(keys.view(np.uint64) * second, 31) * first)
    hashes = _turn(hashes, 27) * first + fourth
    hashes = (hashes ^ (hashes >> np.uint64(33))) * second
    hashes = (hashes ^ (hashes >> np.uint64(29))) * third
    return hashes ^ (hashes >> np.uint64(32))


def may_have(bits: Any, hashes: Any) -> Any:
    """Return which keys a filter may have; ``bits`` are its blocks of eight words."""
    blocks = ((hashes >> np.uint64(32)) * np.uint64(len(bits))) >> np.uint64(32)
    low, left = hashes.astype(np.uint32), np.arange(len(hashes))
    for word, salt in enumerate(SALTS):
        mask = np.uint32(1) << ((low[left] * salt) >> np.uint32(27))
        left = left[(bits[blocks[left], word] & mask) != 0]
    return left


def main() -> None:
    """Print a row for each number of keys and each share of false positives."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--files", type=int, default=1000)
    arguments.add_argument("--rows", type=int, default=100_000, help="of each file")
    given = arguments.parse_args()
    sys.stdout.write("| keys | false | files read | MiB without | MiB with | CPU without | CPU with |\n")
    sys.stdout.write("|---|---|---|---|---|---|---|\n")
    for count in (10, 1000, 100_000):
        for false in (0.01, 0.0001):
            sys.stdout.write(f"| {count:,} | {false:.2%} | {_measure(given.files, given.rows, count, false)} |\n")
            sys.stdout.flush()


def _measure(files: int, rows: int, count: int, false: float) -> str:
    numbers = np.random.default_rng(1).choice(files * rows, count, replace=False)
    keys = pa.table({"id": make_keys(numbers, text=False)})
    hashes, known = hash_keys(keys["id"].to_numpy()), number_keys(keys, ["id"])[0]
    read = whole = filters = 0
    seconds = [0.0, 0.0]
    for number in range(files):
        body, there = io.BytesIO(), np.arange(number * rows, (number + 1) * rows)
        table = pa.table({"id": make_keys(there, text=False), "at": there})
        options = {"id": {"ndv": rows, "fpp": false}}
        pq.write_table(table, body, compression="zstd", bloom_filter_options=options)
        group = pq.read_metadata(body).row_group(0)
        assert group.num_rows == rows
        size = sum(group.column(place).total_compressed_size for place in range(2))
        began = time.process_time()
        column = group.column(0)
        end = column.bloom_filter_offset + column.bloom_filter_length
        # A header comes before the blocks, whose number is a power of two.
        size_of_bits = 1 << (column.bloom_filter_length.bit_length() - 1)
        bits = np.frombuffer(body.getbuffer()[end - size_of_bits : end], np.uint32).reshape(-1, 8)
        is_read = len(may_have(bits, hashes)) > 0
        asked = time.process_time()
        selected = known.select_rows(pq.read_table(body, use_threads=False))
        looked = time.process_time() - asked
        assert is_read or not len(selected), "a filter lacks a key that its file has"
        whole += size
        filters += column.bloom_filter_length
        read += is_read * size
        seconds[0] += looked
        seconds[1] += asked - began + is_read * looked
        files_read = read // size
    sizes = f"{whole / 2**20:.0f} | {(filters + read) / 2**20:.0f}"
    return f"{files_read} | {sizes} | {seconds[0]:.1f} | {seconds[1]:.1f}"


if __name__ == "__main__":
    main()
