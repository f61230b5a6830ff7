"""Receipts of files that nobody has staged."""

from typing import Any

from lakewriter.receipt import ColumnStatistics, Part, Receipt


def make_receipt(seq: int, **fields: Any) -> Receipt:
    """The receipt of file ``seq``, of 10 rows and 100 bytes, with the statistics of one column."""
    plain: dict[str, Any] = {
        "bucket": "b", "key": f"t/{seq}.parquet", "upload_id": f"u{seq}", "parts": (Part(1, "e"),),
        "checksum_algorithm": None, "size": 100, "rows": 10, "row_groups": 1, "partition": 0, "seq": seq,
        "first_index": 0, "engine": "arro3", "requests": {"POST": 1, "PUT": 1},
        "columns": {"n": ColumnStatistics(10, 0, 40, "1", "9")},
    }  # fmt: skip
    return Receipt(**plain | fields)


class Objects:
    """Control objects in memory; ``reads`` are the keys that were asked for."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.reads: list[str] = []

    def write(self, key: str, body: bytes) -> None:
        """Create one."""
        assert self.bodies.setdefault(key, body) == body

    def read(self, key: str) -> bytes | None:
        """Return one."""
        self.reads.append(key)
        return self.bodies.get(key)
