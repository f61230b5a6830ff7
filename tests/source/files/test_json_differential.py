"""Random small files, read by the product and by Python's json: each row is the same, or bad in both."""

import json
import os
import random
import re
from math import isinf
from typing import Any

import pyarrow as pa
import pytest

from lakewriter.errors import SourceFailedError
from tests.source.files.json_files import Digits, is_same, parse_by_python, read_files
from tests.support.sample import fifth_of

FILES = int(os.environ.get("LAKEWRITER_JSON_FILES", fifth_of(500)))
PARTS = 4
KEYS = ["a", "A", "b", "", "a b", "é", "id", "Id", "_corrupt_record"]
VALUES = [
    *(None, True, False, 1, 0, -1, 2**53 + 1, 2**63, 2**70, 10**40, 0.1, 1.5, 1e20, 1e-7, 123456789.123456789, -0.0),
    *("", "x", "1", "1.10", "2024-01-01", "2024-01-01T00:00:00Z", "\u20ac\U0001f600", 'a\\b"c\n', "{}", "[", "\0\x1f"),
]
NO_TYPE = "is beyond the range of double", "is closer to zero than any double"
"""Why a number of a valid document is bad after all."""


def is_of_no_type(text: str) -> bool:
    """Whether a number is beyond every type: it says nothing about its column, which is that of other documents."""
    number, exponent = float(text), "e" in text.lower()
    return exponent and (isinf(number) or (not number and bool(re.search("[1-9]", text.lower().partition("e")[0]))))


class Chance:
    """Random documents, and texts that are nearly some."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def make_lines(self) -> list[bytes]:
        """Return a few lines, sometimes many times so that they are parsed together."""
        lines = [self._make_line() for _ in range(self.random.randint(1, 6))]
        return lines * self.random.choice([1, 1, 1, 8])

    def _make_line(self) -> bytes:
        is_object = self.random.random() < 0.8
        value = {self._make_key(): self._make_value() for _ in range(4)} if is_object else self._make_value()
        separators = self.random.choice([(",", ":"), (", ", ": ")])
        text = json.dumps(value, ensure_ascii=self.random.random() < 0.5, separators=separators)
        return self._change(text.encode()) if self.random.random() < 0.3 else text.encode()

    def _make_key(self) -> str:
        return self.random.choice(KEYS)

    def _make_value(self, depth: int = 0) -> Any:
        chance = self.random.random()
        count = self.random.randint(0, 3)
        if depth < 3 and chance < 0.12:
            return {self._make_key(): self._make_value(depth + 1) for _ in range(count)}
        if depth < 3 and chance < 0.2:
            return [self._make_value(depth + 1) for _ in range(count)]
        return self.random.choice(VALUES)

    def _change(self, line: bytes) -> bytes:
        data = bytearray(line)
        place, kind = self.random.randrange(len(data)), self.random.random()
        if kind < 0.3:
            del data[place]
        elif kind < 0.6:
            data.insert(place, self.random.choice(b'{}[]",:\\0123456789-+eE.tfn \t\xff\xc3\x00u'))
        elif kind < 0.8:
            data[place] = self.random.choice(b'{}[]",:\\0-e \xff')
        else:
            start = self.random.randrange(len(data))
            data[place:place] = data[start : start + self.random.randint(1, 8)]
        return bytes(data).replace(b"\n", b" ").replace(b"\r", b" ")


def list_rows(lines: list[bytes]) -> list[dict[str, Any] | None]:
    """Return the documents of lines by Python's json, None for a bad one."""
    rows: list[dict[str, Any] | None] = []
    for line in lines:
        if not line.strip(b" \t\r\n"):
            continue
        try:
            value = parse_by_python(line)
        except ValueError:
            rows.append(None)
            continue
        values = value if isinstance(value, list) else [value]
        rows += [each if isinstance(each, dict) else None for each in values]
    return rows


@pytest.mark.one_in(2)
@pytest.mark.parametrize("part", range(PARTS))
def test_rows_are_those_of_python(tmp_path, part):
    chance, files = Chance(part), FILES // PARTS
    for _ in range(files):
        lines = chance.make_lines()
        data = chance.random.choice([b"\n", b"\r\n"]).join(lines) + chance.random.choice([b"", b"\n"])
        expected = list_rows(lines)
        if not any(expected):
            with pytest.raises(SourceFailedError):
                read_files(tmp_path, data)
            continue
        schema, rows = read_files(tmp_path, data, size=chance.random.choice([10**9, 20, 50]))
        assert len(rows) == len(expected), data
        for row, document in zip(rows, expected, strict=True):
            if document is not None and row.reason is not None:
                assert row.reason.endswith(NO_TYPE) or is_of_no_type(row.text or ""), (data, row)
            elif document is None:
                assert row.reason is not None, (data, row)
            else:
                assert set(document) <= set(schema.names)
                for field in schema:
                    assert is_same(row.values[field.name], document.get(field.name), field.type), (data, field, row)


SEEN = [
    (1.0, Digits("1.0000000000000001"), pa.float64()),
    ("1.1", Digits("1.10"), pa.string()),
    (None, "x", pa.string()),
    (1, True, pa.int64()),
]


@pytest.mark.parametrize(("read", "written", "kind"), SEEN, ids=range(len(SEEN)))
def test_a_difference_is_seen(read, written, kind):
    assert not is_same(read, written, kind)
