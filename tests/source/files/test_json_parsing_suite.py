"""JSONTestSuite: what is valid is read, what is not is told, and what the RFC leaves open is decided."""

import base64
from pathlib import Path

import pytest

from lakewriter.errors import LakeError
from tests.source.files.json_files import read_files

LARGE = {"*": b"[" * 100_000, "**": b'[{"":' * 50_000 + b"\n"}
TABLE = [
    line.split("\t")
    for line in Path(__file__).with_name("json_parsing.tsv").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
TWICE = {"y_object_duplicated_key", "y_object_duplicated_key_and_value"}
"""The RFC has names SHOULD be unique; which value is meant nobody can tell."""
READ = {
    "i_number_too_big_neg_int",
    "i_number_too_big_pos_int",
    "i_number_very_big_negative_int",
    "i_structure_500_nested_arrays",
}
"""What the RFC leaves open and is read."""


def tell_outcome(folder: Path, content: bytes, whole: str) -> str:
    """Return how many rows are read, or what is told first."""
    try:
        _, rows = read_files(folder, content, options={"multiLine": whole})
    except LakeError as error:
        return f"told: {error.code}"
    reason = next((row.reason for row in rows if row.reason), None)
    return f"read {len(rows)}" if reason is None else f"told: {reason}"


def read_content(packed: str) -> bytes:
    """Return the content of a file of the table."""
    return LARGE.get(packed) or base64.b85decode(packed)


@pytest.mark.parametrize(("name", "packed", "lines", "whole", "member"), TABLE, ids=[row[0] for row in TABLE])
def test_outcome(tmp_path, name, packed, lines, whole, member):
    content = read_content(packed)
    assert tell_outcome(tmp_path, content, "false") == lines
    assert tell_outcome(tmp_path, content, "true") == whole
    assert tell_outcome(tmp_path, b'{"v":%b}' % content, "true") == member


def test_table_has_every_file_and_decides_it():
    assert len(TABLE) == 318
    read = {name for name, _, _, _, member in TABLE if member == "read 1"}
    valid = {row[0] for row in TABLE if row[0].startswith("y_")}
    assert read == valid - TWICE | READ
    assert not [row for row in TABLE if row[0].startswith("n_") and any(cell.startswith("read") for cell in row[2:])]
