"""Records decoded with Arrow's parser in front, and level by level alone: core-seconds of the two, and their ratio.

The two take turns in one process, batch by batch of one input, so that any other load on the machine affects both. Run
``python -m bench.record_decoding``.
"""

import json
import statistics
import time
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa

from bench.message_ways import PROPERTIES
from bench.messages import make_user
from lakewriter.documents import decoding
from lakewriter.documents.decoding import Documents
from lakewriter.documents.schema import make_record_type
from lakewriter.documents.types import make_arrow_field
from lakewriter.naming import name_avro_fields

RECORDS: Final = 60_000
BATCH: Final = 8192
ROUNDS: Final = 7
RECORD: Final = make_record_type({"properties": PROPERTIES})
FIELDS: Final = [make_arrow_field(name, t, name_avro_fields, name) for name, t in RECORD.fields]
ODD: Final[dict[str, dict[str, Any]]] = {
    "clean": {},
    "a text in a column of integers": {"id": "x"},
    "a fraction in a column of integers": {"id": 0.5},
    "an undeclared property": {"extra": 1},
    "an undeclared property that is null": {"extra": None},
    "an undeclared property of an object": {"address": {"zip": 1}},
}
"""What one record in a thousand has."""


def make_text(number: int, odd: dict[str, Any]) -> str:
    """Return the JSON of one record."""
    data = make_user(number)
    return json.dumps(data | odd if number % 1000 == 500 else data, separators=(",", ":"))


def decode(texts: pa.Array) -> float:
    """Return the core-seconds of one batch."""
    clock = time.process_time()
    Documents(texts).build_columns(RECORD, FIELDS)
    return time.process_time() - clock


def main() -> None:
    """Print a table."""
    print("| one record in a thousand has | level by level, s | Arrow in front, s | ratio |")  # noqa: T201
    print("|---|---|---|---|")  # noqa: T201
    for name, odd in ODD.items():
        texts = [make_text(number, odd) for number in range(RECORDS)]
        batches = [pa.array(texts[start : start + BATCH]) for start in range(0, RECORDS, BATCH)]
        pairs = []
        for _ in range(ROUNDS):
            fast = exact = 0.0
            for batch in batches:
                fast += decode(batch)
                with patch.object(decoding, "find_parsed_type", lambda _: None):
                    exact += decode(batch)
            pairs.append((exact, fast, exact / fast))
        exact, fast, ratio = (statistics.median(column) for column in zip(*pairs[1:], strict=True))
        print(f"| {name} | {exact:.2f} | {fast:.2f} | {ratio:.1f} |")  # noqa: T201


if __name__ == "__main__":
    main()
